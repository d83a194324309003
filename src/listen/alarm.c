/* SPDX-License-Identifier: MIT */
/* When to check a queue for due jobs. What is due is decided by Redis alone, when we claim.
 *
 * Rank. Every listener hears every event, and the one whose rank is hash(id) mod n claims the job.
 * The listener of rank 0 has the exact alarm: it touches the due triggers, which makes Redis expire
 * them and publish their events. Rank k is its watchdog: it checks min(2k, 40) ms later, and not at
 * all if a trigger has expired since the job was due, because that shows that triggers are touched.
 * A watchdog that did not check does not know what is due next, so it checks after WATCHDOG_MS even
 * if it hears events. Without a subscription touching is of no use: the alarm claims at once.
 *
 * Grace. A job that its listener does not claim may be claimed by any other GRACE_MS after it was
 * due. Each script that looks at a queue says which of the due jobs is the oldest. Where its grace
 * is over we claim it at once; otherwise the alarm checks when the grace ends. So no answer puts
 * off the check for a job that may still be there.
 *
 * A check is sent ahead, so that Redis reads it at its moment. Where the way there was shorter than
 * it had been of late, Redis finds nothing due, and we check again.
 *
 * The next check is the earliest of what the last script said and of what notices said since that
 * script was sent: the two come on different sockets, in no order. */
#include "listen/alarm.h"

enum { GRACE_MS = 50, WATCHDOG_MS = 50, LAG_MAX_MS = 40, RETRY_MS = 200 };

#define GRACE_US (GRACE_MS * INT64_C(1000))

/* 0 is no moment. */
static int64_t earlier(int64_t a, int64_t b)
{
    if (a && b) {
        return a < b ? a : b;
    }

    return a ? a : b;
}

/* ---- when ---- */
/* How long the listeners before us have to touch or claim. */
static int64_t alarm_lag_us(const struct alarm *a)
{
    int64_t n_before = a->rank < 0 ? a->n_members : a->rank;
    int64_t lag_ms = 2 * n_before;

    return 1000 * (lag_ms < LAG_MAX_MS ? lag_ms : LAG_MAX_MS);
}

static int64_t alarm_next_us(const struct alarm *a)
{
    int64_t at_us = earlier(a->next.due_us, a->next.grace_us);

    if (!a->on || !at_us || a->touch.request.pending) {
        return 0;
    }

    return at_us + alarm_lag_us(a);
}

static void alarms_set_timer(struct alarms *as)
{
    const struct node *node = as->script->node;
    const struct heap_node *first = as->heap.first;
    int64_t at_us = 0;

    if (first && as->enabled && node_knows_time(node) && node_up(node)) {
        at_us = node_send_us(node, first->at);
    }

    exact_timer_set(&as->timer, at_us);
}

static void alarm_set(struct alarm *a)
{
    heap_set(&a->alarms->heap, &a->node, alarm_next_us(a));
    alarms_set_timer(a->alarms);
}

static void check_no_later(struct alarm_check *c, const struct alarm_check *than)
{
    c->due_us = earlier(c->due_us, than->due_us);
    c->grace_us = earlier(c->grace_us, than->grace_us);
}

/* ---- what notices say ---- */
static void alarm_check_at(struct alarm *a, struct alarm_check check)
{
    a->newer.at_us = clock_us();
    check_no_later(&a->newer.check, &check);
    check_no_later(&a->next, &check);
    alarm_set(a);
}

/* A script that was sent after a notice was heard knows what the notice said. What it does not know
 * becomes the older: so notices that never cease are each kept for two answers at most. */
static void alarm_forget_notices(struct alarm *a, int64_t sent_us)
{
    static const struct alarm_notified none;

    if (a->older.at_us >= sent_us) {
        return;
    }

    if (a->newer.at_us < sent_us) {
        a->older = none;
    } else {
        a->older = a->newer;
    }

    a->newer = none;
}

void alarm_notify(struct alarm *a, int64_t due_ms)
{
    if (a->on) {
        alarm_check_at(a, (struct alarm_check){.due_us = due_ms * 1000});
    }
}

void alarm_check_after_grace(struct alarm *a)
{
    int64_t now_us = node_time_us(node_of(a->alarms->script, a->key));

    alarm_check_at(a, (struct alarm_check){.grace_us = now_us + GRACE_US});
}

void alarm_heard_event(struct alarm *a)
{
    a->expired_us = clock_us();
}

/* ---- what scripts say ---- */
bool alarm_answered(struct alarm *a, const struct due_times *seen, int64_t sent_us)
{
    int64_t oldest_us = seen->oldest_ms * 1000;
    int64_t next_us = seen->next_ms * 1000;
    int64_t due_us = a->next.due_us;
    bool overdue = false;

    /* The job that we wait for may have become due meanwhile, and be the oldest. A watchdog still
     * has to see whether its trigger is touched. */
    bool still_waits = due_us && due_us <= seen->now_us && oldest_us && oldest_us <= due_us;

    if (next_us && next_us <= seen->now_us) { /* of a peer that names the past */
        next_us = seen->now_us + GRACE_US;
    }

    a->next = (struct alarm_check){.due_us = still_waits ? due_us : next_us};
    a->check_even_if_heard = false;

    if (oldest_us) {
        int64_t grace_us = oldest_us + GRACE_US;
        overdue = grace_us + alarm_lag_us(a) <= seen->now_us;
        a->next.grace_us = overdue ? seen->now_us + GRACE_US : grace_us;
    }

    alarm_forget_notices(a, sent_us);
    check_no_later(&a->next, &a->older.check);
    check_no_later(&a->next, &a->newer.check);
    alarm_set(a);

    return overdue && a->alarms->enabled;
}

static void on_touched(struct touch_request *r, int err, const struct touch_reply *reply)
{
    struct alarm *a = CONTAINER(r, struct alarm, touch);
    struct alarms *as = a->alarms;

    if (!a->on) {
        a->events->ended(a->arg);
        return;
    }

    if (err) {
        int64_t retry_us = node_time_us(node_of(as->script, a->key)) + RETRY_MS * INT64_C(1000);
        alarm_check_at(a, (struct alarm_check){.due_us = retry_us});
        return;
    }

    struct due_times seen = {reply->now_us, reply->oldest_due_ms, reply->next_due_ms};
    int64_t n_touched = reply->n_read - reply->n_there;

    as->context->stats.touches += (uint64_t)reply->n_expired;
    a->cursor_ms = reply->cursor_ms;

    bool overdue = alarm_answered(a, &seen, r->request.sent_us);
    if (reply->n_there) {
        alarm_check_at(a, (struct alarm_check){.due_us = (seen.now_us / 1000 + 1) * 1000});
    }

    /* A trigger that is not there makes no event: it was evicted, was lost, or is not set yet.
     * Where it expired just before, or was touched by another, its event is on the way. So only the
     * first to look can judge by that. */
    bool missing = a->rank <= 0 && !a->touch_again && n_touched > reply->n_expired;

    a->touch_again = reply->n_there > 0;
    if (missing || overdue || reply->n_read >= SCRIPT_BATCH) {
        a->events->overdue(a->arg);
    }
}

/* ---- the timer ---- */
static bool alarm_is_over(const struct alarm *a, int64_t at_us, int64_t now_us)
{
    return at_us && at_us + alarm_lag_us(a) <= now_us;
}

/* A trigger has expired since the job that we wait for was due: another listener touches them. */
static bool alarm_others_touch(const struct alarm *a, int64_t due_us)
{
    return a->rank != 0 &&
           a->expired_us >= node_mono_us(node_of(a->alarms->script, a->key), due_us);
}

static void alarm_check(struct alarm *a, int64_t now_us)
{
    struct alarms *as = a->alarms;
    int64_t due_us = a->next.due_us;
    bool overdue = alarm_is_over(a, a->next.grace_us, now_us);
    bool events_help = a->subscribed && as->events_arrive;

    if (alarm_is_over(a, due_us, now_us)) {
        a->next.due_us = 0;
    }
    if (overdue) {
        a->next.grace_us = 0;
    }

    if (!events_help || !a->free_slots) {
        a->events->overdue(a->arg);
    } else if (!overdue && !a->check_even_if_heard && alarm_others_touch(a, due_us)) {
        a->check_even_if_heard = true;
        a->next.due_us = now_us + WATCHDOG_MS * INT64_C(1000);
    } else {
        a->touch.request.until_us = clock_us() + as->context->settings.reply_ms * 1000;
        script_touch(as->script, &a->touch, a->key, a->cursor_ms);
    }
}

/* Each alarm that is over is set again: to a later moment, or to none while its touch is pending.
 */
static void on_time(void *arg)
{
    struct alarms *as = arg;
    int64_t now_us = node_arrival_us(as->script->node);

    while (as->heap.first && as->heap.first->at <= now_us) {
        struct alarm *a = CONTAINER(as->heap.first, struct alarm, node);
        alarm_check(a, now_us);
        heap_set(&as->heap, &a->node, alarm_next_us(a));
    }

    alarms_set_timer(as);
}

/* ---- settings and life ---- */
void alarm_set_rank(struct alarm *a, int64_t rank, int64_t n_members)
{
    a->rank = rank;
    a->n_members = n_members;
    alarm_set(a);
}

void alarm_set_subscribed(struct alarm *a, bool subscribed)
{
    a->subscribed = subscribed;
}

void alarm_set_free_slots(struct alarm *a, bool any)
{
    a->free_slots = any;
}

void alarm_init(struct alarm *a, const struct alarm_spec *spec)
{
    *a = (struct alarm){
        .alarms = spec->alarms, .key = spec->key, .events = spec->events, .arg = spec->arg};
    a->on = true;
    a->rank = -1;
    a->free_slots = true;
    a->touch.end = on_touched;
}

void alarm_stop(struct alarm *a)
{
    a->on = false;
    alarm_set(a);
}

void alarms_init(struct alarms *as, struct script *script)
{
    struct context *c = script->context;

    *as = (struct alarms){.context = c, .script = script, .events_arrive = true};
    as->enabled = !(c->settings.flags & LAPSE_NO_ALARM);
    exact_timer_init(&as->timer, c->loop, on_time, as);
}

void alarms_up(struct alarms *as)
{
    alarms_set_timer(as);
}

void alarms_set_events_arrive(struct alarms *as, bool arrive)
{
    as->events_arrive = arrive;
}

void alarms_close(struct alarms *as)
{
    exact_timer_close(&as->timer);
}
