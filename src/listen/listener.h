/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_LISTENER_H
#define LAPSE_LISTENER_H
#include "listen/queue.h"
#include "script/registry.h"

/* The queues that this process has handlers for, or asks for jobs of. */
struct listener {
    struct shared shared;
    struct registry *registry;
    struct patterns patterns;
    struct list queues;
    struct table names;    /* of these queues */
    struct list stopped;   /* queues of which something is pending; then they are freed */
    uint64_t n_queues;     /* that there have been */
    struct node *names_at; /* the Redis that has the registry, */
    struct node *alive_at; /* and that which knows who is alive, as far as was known last */

    enum lapse_told told;
    struct task_queue *tasks;
    struct task told_task; /* tells the program */
    bool told_pending;
};

void listener_init(struct listener *l, struct fences *fences, struct registry *registry,
                   struct calendars *calendars, struct task_queue *tasks);

/* fn NULL: the queue is only forwarded. EEXIST: it has a handler, or a pull. ENOMEM. */
int listener_add(struct listener *l, const char *queue, const struct share_spec *share,
                 lapse_handler *fn, void *arg);
/* The same of all queues of a pattern, as the registry brings them, but for those that are added by
 * their own names, or have a longer pattern. max of the share is of them together. EEXIST,
 * ENOMEM. */
int listener_add_pattern(struct listener *l, const struct pattern_spec *spec);
/* ENOENT. */
int listener_remove(struct listener *l, const char *queue);
int listener_remove_pattern(struct listener *l, struct span beginning);
/* What tells a queue that is there from one of the same name that comes after it. 0: it is not
 * there. */
uint64_t listener_number(const struct listener *l, const char *queue);
/* Removes the queue of this number, if it is still there. */
void listener_remove_numbered(struct listener *l, const char *queue, uint64_t number);

/* Takes a pull on, whose id, n, wait_ms and end are set. EEXIST: the queue has a handler. EFULL,
 * ENOMEM. */
int listener_pull(struct listener *l, const char *queue, struct pull *p);

/* This process made a job of the queue due then. */
void listener_scheduled(struct listener *l, const char *queue, struct span id, int64_t due_ms);

/* This process changed the settings of the queue. */
void listener_configured(struct listener *l, const char *queue);

/* As lapse_around(). */
int listener_around(struct listener *l, const struct around *a);

/* A job was settled, or renewed, by its token: perhaps we hold it. */
void listener_settled(struct listener *l, const struct leased_job *job);
/* To be called before that: the job is dead by it. */
void listener_died(struct listener *l, const char *queue, const struct leased_job *job,
                   struct span reason);
void listener_renewed(struct listener *l, const struct leased_job *job,
                      const struct lease_span *span);

/* The connection for commands to this node is there, for the first time or again. */
void listener_up(struct listener *l, struct node *node);
/* Some queues have another node than before. false: there is no memory, and it is to be called
 * again. */
bool listener_remapped(struct listener *l);
/* Nobody has used this node for a while: lets go of it, if no queue is there. */
void listener_let_go_of(struct listener *l, struct node *node);

/* There are enough replicas for what is claimed, after there were too few. */
void listener_in_company(struct listener *l);

/* To be called at the end of each turn of the loop in which listener_turn_due_us() is not 0: claims
 * for queues that found no free slot, as far as there are slots now, and frees stopped queues. */
void listener_turn(struct listener *l);
/* By clock_us(): since when there is something to do; 0: there is nothing. */
int64_t listener_turn_due_us(const struct listener *l);

/* The handle closes: takes nothing more, and returns the jobs whose handlers have not begun. */
void listener_drain(struct listener *l);
/* Returns the jobs that handlers have. false: there was nothing to return, and no settle or claim
 * is under way. */
bool listener_give_back(struct listener *l);
/* No job is held, and no claim is pending. */
bool listener_is_idle(const struct listener *l);

/* Before the connection is closed, and after that. */
void listener_stop(struct listener *l);
void listener_close(struct listener *l);

#endif
