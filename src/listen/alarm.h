/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_ALARM_H
#define LAPSE_ALARM_H
#include "base/exact_timer.h"
#include "base/heap.h"
#include "script/queue_verbs.h"

/* The alarms of all queues: one timer, for the first of them. */
struct alarms {
    struct context *context;
    struct script *script;
    struct heap heap; /* by Redis's clock */
    struct exact_timer timer;
    bool enabled;       /* not switched off by the settings */
    bool events_arrive; /* expiry events do, as far as is known */
};

void alarms_init(struct alarms *as, struct script *script);
/* The connection for commands is there again. */
void alarms_up(struct alarms *as);
/* Whether expiry events arrive, of any queue. At first that is assumed. */
void alarms_set_events_arrive(struct alarms *as, bool arrive);

void alarms_close(struct alarms *as);

struct alarm_events {
    /* Jobs of the queue are overdue, or there is no other way to learn which are due: claim the
     * oldest. */
    void (*overdue)(void *arg);
    /* After alarm_stop(): no request is pending any more. */
    void (*ended)(void *arg);
};

/* When to check a queue, by Redis's clock; 0: nothing is known. */
struct alarm_check {
    int64_t due_us;   /* the first job that was not due yet is: its trigger is to be touched */
    int64_t grace_us; /* the grace of the jobs that were due is over: anybody may claim them */
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
    bool subscribed; /* we are, to the events of the queue */
    bool free_slots; /* we can take jobs */

    struct heap_node node;
    struct alarm_check next;
    /* What notices said that the last script may not have known, the older and the newer ones. */
    struct alarm_notified {
        struct alarm_check check;
        int64_t at_us; /* of the last of them, by clock_us(); 0: there was none */
    } older, newer;
    int64_t expired_us;       /* when the event of a trigger was heard last, by clock_us() */
    bool check_even_if_heard; /* events show that triggers are touched, but not what is next */

    struct touch_request touch;
    int64_t cursor_ms; /* triggers up to this due time were touched */
    bool touch_again;  /* some of them too early: Redis's clock had not reached them */
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
void alarm_set_subscribed(struct alarm *a, bool subscribed);
void alarm_set_free_slots(struct alarm *a, bool any);

/* The event of a trigger was heard, whosever job it is. */
void alarm_heard_event(struct alarm *a);
/* A job is due then: a notice said so, or we made it. */
void alarm_notify(struct alarm *a, int64_t due_ms);
/* Jobs are due now: checks when their grace is over, in case the listener responsible for one of
 * them does not claim it. */
void alarm_check_after_grace(struct alarm *a);
/* A script has looked at the queue; it was sent at sent_us, by clock_us(). True: jobs are overdue,
 * and are for anybody to claim, now. */
bool alarm_answered(struct alarm *a, const struct due_times *seen, int64_t sent_us);

void alarm_stop(struct alarm *a);

static inline bool alarm_pending(const struct alarm *a)
{
    return a->touch.request.pending;
}

#endif
