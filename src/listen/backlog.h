/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_BACKLOG_H
#define LAPSE_BACKLOG_H
#include "listen/level.h"

/* Which of the queues that have due jobs and found no free slot is served next. */
struct backlog {
    unsigned n_slots;    /* that there are */
    struct table levels; /* by number */
    struct heap busy;    /* those of which a queue has a backlog, by number */
    struct list again;   /* seats that wait again, from the end of this round on */
    uint64_t round;      /* the number of times that it was served, and 1 */
    unsigned n_waiting;
};

void backlog_init(struct backlog *b, unsigned n_slots);
/* To be called when it has no seat. */
void backlog_close(struct backlog *b);

/* Takes a seat in, whose level is made with the first. ENOMEM. */
int backlog_add(struct backlog *b, struct seat *s, unsigned weight, unsigned level);
void backlog_remove(struct backlog *b, struct seat *s);

/* No slot is free for it, or a claim was answered that it has more: it will join. */
void backlog_note_more(struct seat *s);
/* It is to be served. */
void backlog_join(struct backlog *b, struct seat *s);
/* It has no backlog, or none that may be claimed. */
void backlog_leave(struct backlog *b, struct seat *s);
/* A claim for it is on its way; then it was answered, and the queue has joined again, or has no
 * more that may be claimed. */
void backlog_ask(struct backlog *b, struct seat *s);
void backlog_answered(struct backlog *b, struct seat *s);

static inline bool backlog_waits(const struct backlog *b)
{
    return b->n_waiting > 0;
}

/* Others are to be served before it: a slot that is free now is theirs. */
bool backlog_goes_before(const struct backlog *b, const struct seat *s);

/* A round of serving: backlog_next() until it is NULL or no slot is free, and for each what its
 * queue does, and backlog_served(); then backlog_end_round(). */
struct seat *backlog_next(struct backlog *b);
void backlog_served(struct backlog *b, struct seat *s);
void backlog_end_round(struct backlog *b);

#endif
