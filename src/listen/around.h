/* SPDX-License-Identifier: MIT */
/* What the program wants called before and after each handler: lapse_around(). */
#ifndef LAPSE_AROUND_H
#define LAPSE_AROUND_H
#include <lapse.h>
#include <stdbool.h>

struct arounds {
    unsigned n;
    struct around {
        lapse_before_fn *before; /* one of the two may be NULL */
        lapse_after_fn *after;
        void *arg;
    } of[LAPSE_AROUND_MAX];
};

/* The way of one job through them: in their order to its handler, and back when it is settled. */
struct passage {
    const struct arounds *all; /* NULL: there were none when its handler was to begin */
    unsigned n;                /* those that it has entered, and not left */
    int64_t began_us, ran_us;  /* by clock_us() */
    enum lapse_how how;        /* 0: its holder forgot it */
};

void passage_begin(struct passage *p, const struct arounds *all, int64_t now_us);
/* Enters the next of them; false: the handler comes next. */
bool passage_enter(struct passage *p, const struct around **out);
/* The run is over. */
void passage_turn(struct passage *p, enum lapse_how how);
/* Goes back to the next that wants to hear of it; false: there is none. It is to be left by
 * passage_leave(). */
bool passage_comes_back(struct passage *p);
void passage_leave(struct passage *p, struct lapse *l, const struct lapse_job *job, int err);

#endif
