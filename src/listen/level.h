/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_LEVEL_H
#define LAPSE_LEVEL_H
#include "base/heap.h"
#include "base/list.h"
#include "base/table.h"
#include <stdbool.h>

/* The queues of one level: those that have a backlog take jobs by their weights. */
struct level {
    unsigned n_slots; /* that there are, for all levels */
    unsigned n_seats;
    unsigned n_weighted; /* seats whose weight is not 1 */
    struct heap waiting; /* for a slot, by pass */
    struct heap asking;  /* their claims are on their way, by pass */
    uint64_t weight_waiting;
    uint64_t weight_asking;
    uint64_t period; /* the number of this backlog: it ends when no seat waits or asks */

    /* of its backlog */
    unsigned number;
    struct table_node numbered;
    struct heap_node busy;
};

enum seat_state {
    SEAT_OUT,   /* it has no backlog, as far as is known */
    SEAT_WAITS, /* for a slot */
    SEAT_ASKS   /* it waited; its claim is on its way, and will tell whether it has more */
};

/* The seat of one queue. */
struct seat {
    struct level *level;
    unsigned weight;
    enum seat_state state;
    bool is_full;     /* its queue is at its own limit, and has a backlog: it is out for that */
    unsigned n_asked; /* jobs that its claims ask for */
    int64_t pass;     /* what it has taken, by weight, in this period */
    uint64_t period;
    struct heap_node node;

    /* of its backlog */
    struct list again;
    bool served;    /* it is this moment */
    bool has_more;  /* than there were slots for, as far as is known */
    uint64_t round; /* of serving, before which it began to wait */
};

void level_init(struct level *l, unsigned n_slots);

void seat_init(struct seat *s, struct level *l, unsigned weight);
void seat_end(struct seat *s);
void seat_set(struct seat *s, enum seat_state state);

/* Its queue has a backlog, and is at its own limit; or not any more. */
static inline void seat_set_full(struct seat *s, bool is_full)
{
    s->is_full = is_full;
}

/* So many jobs its claims ask for now. */
void seat_set_asked(struct seat *s, unsigned n);
/* It has got one job. */
void seat_take(struct seat *s);

/* How many of n free slots are for it, by weight: its claim may ask for so many; 0: for one all the
 * same. */
unsigned seat_room(const struct seat *s, unsigned n);
/* Another seat of the level waits. */
bool seat_others_wait(const struct seat *s);

/* A seat waits or asks. */
static inline bool level_is_busy(const struct level *l)
{
    return l->waiting.first || l->asking.first;
}

/* Who is to be served; NULL: none, or the answers to claims come first. */
struct seat *level_next(const struct level *l);

#endif
