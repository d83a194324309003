/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_TALLY_H
#define LAPSE_TALLY_H
#include "base/heap.h"
#include "base/past.h"
#include "base/table.h"
#include "job/keys.h"
#include "script/queue_verbs.h"

enum { SENDER_LEN = 16 };

/* What this process has counted, by queue, and not yet added to the history that Redis keeps. */
struct tallies {
    struct context *context;
    struct script *script;
    struct table queues; /* those of which something was counted lately */
    struct heap heap;    /* the same, by when they are sent */
    struct timer timer;
    int64_t timer_us;
    char sender[SENDER_LEN + 1];
    uint64_t number;    /* of what was sent last */
    unsigned n_pending; /* calls */
    bool denied;        /* this user may not count */
    bool closing;       /* what is left is sent at once */
    bool closed;
};

/* How long after the first of it what was counted of a queue is sent, where so many have any. */
int64_t tally_every_ms(size_t n_queues);

void tallies_init(struct tallies *ts, struct script *script);

/* All three do nothing without memory, and where ts is NULL. */
void tally_count(struct tallies *ts, const char *queue, enum past_count what, uint64_t n);
void tally_late(struct tallies *ts, const char *queue, enum lapse_via via, int64_t late_us);
void tally_run(struct tallies *ts, const char *queue, int64_t run_us);
/* The queue was removed: what was counted of it is forgotten. */
void tally_forget(struct tallies *ts, const char *queue);

/* The connection for commands is there again. */
void tallies_up(struct tallies *ts);
/* The handle closes, and counts no more: sends what is left. */
void tallies_flush(struct tallies *ts);
/* Something was counted, and may not have been sent. */
bool tallies_have_any(const struct tallies *ts);
/* Nothing is on its way. */
bool tallies_are_idle(const struct tallies *ts);
/* Before the connection is closed, and after that. */
void tallies_stop(struct tallies *ts);
void tallies_close(struct tallies *ts);

#endif
