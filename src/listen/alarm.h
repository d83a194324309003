/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_ALARM_H
#define LAPSE_ALARM_H
#include "base/exact_timer.h"
#include "base/heap.h"
#include "listen/dues.h"
#include "script/lease_verbs.h"

/* The alarms of all queues of one Redis: one timer, for the first of them. */
struct alarms {
    struct context *context;
    struct node *node;
    struct heap heap; /* by Redis's clock */
    struct exact_timer timer;
    bool enabled; /* not switched off by an option */
};

void alarms_init(struct alarms *as, struct node *node);
/* The connection for commands is there again. */
void alarms_up(struct alarms *as);
void alarms_close(struct alarms *as);

struct alarm_events {
    /* It is time to touch: sends it, to arrive at target_ms, and calls alarm_touched() or
     * alarm_touch_failed() with the answer. False: nothing was sent, and need not be. */
    bool (*touch)(void *arg, const struct touch_range *range, int64_t target_ms);
    /* Jobs of the queue are overdue, for anybody to claim: claim the oldest. */
    void (*overdue)(void *arg);
};

/* A moment that a notice asked us to look at, and that no script has answered since. */
struct alarm_notified {
    int64_t grace_us; /* by Redis's clock; 0: none */
    int64_t at_us;    /* of the last notice, by clock_us(); 0: there was none */
};

/* The alarm of one queue. */
struct alarm {
    struct alarms *alarms;
    struct span key;
    const struct alarm_events *events;
    void *arg;
    bool on;

    /* as it was set */
    int64_t rank; /* ours among the listeners of the queue; -1: we are no member */
    int64_t n_members;

    struct heap_node node;
    struct dues dues;

    /* when to look, by Redis's clock; 0: need not */
    int64_t look_us;  /* which moments come after those that we know */
    int64_t check_us; /* at all triggers: an event may have hidden that others were not touched */
    int64_t grace_us; /* the grace of the jobs that were due is over: anybody may claim them */
    struct alarm_notified older, newer;

    int64_t expired_us; /* when the event of a trigger was heard last, by clock_us() */
    int64_t cursor_ms;  /* triggers up to this due time were touched */
    int64_t sent_ms;    /* touches up to this one are on their way */
    unsigned n_sent;    /* touches without an answer */
    int64_t watched_ms; /* moments of others up to this one have passed, */
    int64_t watched_us; /* as we found then, by clock_us() */
};

/* What a script saw of the due times of a queue. */
struct due_times {
    int64_t now_us;
    int64_t oldest_ms; /* due, and not taken; 0: none */
    int64_t next_ms;   /* the first that is due later; 0: none */
};

struct alarm_spec {
    struct alarms *alarms;
    struct span key;
    const struct alarm_events *events;
    void *arg;
};

void alarm_init(struct alarm *a, const struct alarm_spec *spec);

void alarm_set_rank(struct alarm *a, int64_t rank, int64_t n_members);

/* The event of a trigger was heard, whosever job it is. True: no answer to a touch is pending that
 * will say what is due. */
bool alarm_heard_event(struct alarm *a);
/* A job is due then: a notice said so, or we made it. own: it is ours. */
void alarm_notify(struct alarm *a, int64_t due_ms, bool own);
/* Jobs are due now: checks when their grace is over, in case the listener responsible for one of
 * them does not claim it. */
void alarm_check_after_grace(struct alarm *a);
/* A claim has looked at the queue; it was sent at sent_us, by clock_us(). True: jobs are overdue,
 * and are for anybody to claim, now. */
bool alarm_answered(struct alarm *a, const struct due_times *seen, int64_t sent_us);

/* The answer to a touch; the same. */
bool alarm_touched(struct alarm *a, const struct touch_reply *reply, int64_t target_ms,
                   int64_t sent_us);
void alarm_touch_failed(struct alarm *a, bool again);

/* Another Redis has the queue now: the moments are told by its clock. */
void alarm_move(struct alarm *a, struct alarms *to);

void alarm_stop(struct alarm *a);

static inline bool alarm_pending(const struct alarm *a)
{
    return a->n_sent > 0;
}

#endif
