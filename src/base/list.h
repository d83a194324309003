/* SPDX-License-Identifier: MIT */
/* A doubly linked, circular list of embedded nodes; a node that is in no list points to itself. */
#ifndef LAPSE_LIST_H
#define LAPSE_LIST_H
#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next, *prev;
};

#define CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
/* The body may remove the current node, and no other. */
#define LIST_EACH(i, head)                                                \
    for (struct list *i = (head)->next, *i##_next = i->next; i != (head); \
         i = i##_next, i##_next = i->next)

static inline void list_init(struct list *l)
{
    l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

static inline void list_remove(struct list *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    list_init(n);
}

/* Puts n before at: at the end of the list, when at is its head. */
static inline void list_insert(struct list *at, struct list *n)
{
    n->next = at;
    n->prev = at->prev;
    at->prev->next = n;
    at->prev = n;
}

static inline struct list *list_pop(struct list *l)
{
    struct list *n = l->next;
    if (n == l) {
        return NULL;
    }
    list_remove(n);
    return n;
}

/* Moves all nodes of from to the end of to. */
static inline void list_move(struct list *to, struct list *from)
{
    if (list_empty(from)) {
        return;
    }
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

#endif
