/* SPDX-License-Identifier: MIT */
/* When to touch the due triggers of a queue, which makes Redis expire them and publish their
 * events. The script that touches also claims what is ours. What is due is decided by Redis alone.
 *
 * Owners. Each job belongs to one listener, by its id. The owner touches it at its moment. Its
 * touch is sent ahead, so that Redis reads it just then; where the way there was shorter than it
 * had been of late, Redis finds nothing due, and we touch again. Several touches may be on their
 * way. Which moments come a script tells that looks for them, and notices tell what it could not
 * see; dues.c keeps them.
 *
 * Watching. At a moment of a job that another listener owns we touch as well, but later: by rank,
 * min(2(k + 1), 40) ms after its event can have been heard. We do not if a trigger has expired
 * since, because that shows that triggers are touched; only, it may have been that of another job,
 * so we check after WATCH_MS unless a script has looked at the queue by then.
 *
 * Grace. A job that its owner does not claim may be claimed by any other GRACE_MS after it was due.
 * Each script that looks at a queue says which of the due jobs is the oldest. Where its grace is
 * over we claim it at once; otherwise the alarm checks when the grace ends. So no answer puts off
 * the check for a job that may still be there. A notice that jobs are due now is such an answer
 * too; the two come on different sockets, in no order, and so the next check is the earliest of
 * what the last script said and of what notices said since that script was sent. */
#include "listen/alarm.h"

enum {
    GRACE_MS = 50,
    WATCH_MS = 50,
    LAG_MAX_MS = 40,
    RETRY_MS = 200,
    IN_FLIGHT_MAX = 32, /* touches on their way */
    LOOK_MIN = 24,      /* jobs at which a touch looks: */
    LOOK_MAX = 100,     /* so many that */
    LOOK_OWN = 6,       /* some are ours, as a rule */
    LOOK_BELOW = 4,     /* known moments: then it does */
    LOOK_AHEAD_MS = 100 /* before what is known ends */
};

#define GRACE_US (GRACE_MS * INT64_C(1000))

/* 0 is no moment. */
static int64_t earlier(int64_t a, int64_t b)
{
    if (a && b) {
        return a < b ? a : b;
    }

    return a ? a : b;
}

static int64_t later_by(int64_t at_us, int64_t by_us)
{
    return at_us ? at_us + by_us : 0;
}

/* ---- when ---- */
/* How long the listeners before us have to touch or claim. */
static int64_t alarm_lag_us(const struct alarm *a)
{
    int64_t n_before = a->rank < 0 ? a->n_members : a->rank;
    int64_t lag_ms = 2 * n_before;

    return 1000 * (lag_ms < LAG_MAX_MS ? lag_ms : LAG_MAX_MS);
}

static int64_t alarm_own_us(const struct alarm *a)
{
    const struct due *due = dues_first(&a->dues, true);
    return due ? due->ms * 1000 : 0;
}

/* The owner comes before the first who watches. A watch is not sent ahead: it rings when the event
 * can have been heard, which is a round trip later than what would be sent ahead. */
static int64_t alarm_watch_us(const struct alarm *a)
{
    const struct due *due = dues_first(&a->dues, false);
    int64_t heard_us = node_round_trip_us(a->alarms->node);

    return due ? due->ms * 1000 + heard_us + alarm_lag_us(a) + 2000 : 0;
}

static int64_t alarm_next_us(const struct alarm *a)
{
    int64_t at_us = later_by(a->grace_us, alarm_lag_us(a));

    if (!a->on) {
        return 0;
    }

    if (a->n_sent < IN_FLIGHT_MAX) {
        at_us = earlier(at_us, alarm_own_us(a));
        at_us = earlier(at_us, alarm_watch_us(a));
        at_us = earlier(at_us, a->look_us);
        at_us = earlier(at_us, a->check_us);
    }

    return at_us;
}

static void alarms_set_timer(struct alarms *as)
{
    const struct node *node = as->node;
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

/* ---- what notices say ---- */
static bool alarm_owns_all(const struct alarm *a)
{
    return a->n_members <= 1;
}

void alarm_notify(struct alarm *a, int64_t due_ms, bool own)
{
    struct due due = {.ms = due_ms, .heard_us = clock_us(), .own = own};

    if (a->on) {
        dues_add(&a->dues, due);
        alarm_set(a);
    }
}

void alarm_check_after_grace(struct alarm *a)
{
    int64_t now_us = node_time_us(a->alarms->node);

    a->newer.at_us = clock_us();
    a->newer.grace_us = earlier(a->newer.grace_us, now_us + GRACE_US);
    a->grace_us = earlier(a->grace_us, a->newer.grace_us);
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

bool alarm_heard_event(struct alarm *a)
{
    a->expired_us = clock_us();
    return a->n_sent == 0;
}

/* ---- what scripts say ---- */
/* There is a moment of ours, and nothing before it is unknown: the touch at that moment will look
 * further. */
static bool alarm_knows_own(const struct alarm *a)
{
    const struct due *own = dues_first(&a->dues, true);
    return own && own->ms <= a->dues.known_ms;
}

/* Where jobs are so close together that a look ended soon, the next one waits until then: it would
 * see the same jobs. */
static void alarm_set_look(struct alarm *a, int64_t now_ms)
{
    int64_t known_ms = a->dues.known_ms;

    a->look_us = 0;
    if (known_ms == DUES_ALL || alarm_knows_own(a)) {
        return;
    }

    if (known_ms - now_ms > INT64_C(2) * LOOK_AHEAD_MS) {
        known_ms -= LOOK_AHEAD_MS;
    }
    a->look_us = 1000 * (known_ms > now_ms ? known_ms : now_ms);
}

/* True: jobs are overdue. */
static bool alarm_set_grace(struct alarm *a, const struct due_times *seen, int64_t sent_us)
{
    bool overdue = false;

    a->grace_us = 0;
    if (seen->oldest_ms) {
        int64_t grace_us = seen->oldest_ms * 1000 + GRACE_US;
        overdue = grace_us + alarm_lag_us(a) <= seen->now_us;
        a->grace_us = overdue ? seen->now_us + GRACE_US : grace_us;
    }

    alarm_forget_notices(a, sent_us);
    a->grace_us = earlier(a->grace_us, a->older.grace_us);
    a->grace_us = earlier(a->grace_us, a->newer.grace_us);

    return overdue && a->alarms->enabled;
}

/* A moment that had not passed when a script looked may have passed when its answer comes. */
static int64_t alarm_taken_ms(const struct alarm *a, int64_t sent_us)
{
    bool passed_since = sent_us <= a->watched_us && a->watched_ms > a->sent_ms;
    return passed_since ? a->watched_ms : a->sent_ms;
}

bool alarm_answered(struct alarm *a, const struct due_times *seen, int64_t sent_us)
{
    bool overdue = alarm_set_grace(a, seen, sent_us);

    dues_learn_next(&a->dues, seen->next_ms, alarm_taken_ms(a, sent_us), alarm_owns_all(a));
    a->check_us = 0;
    alarm_set_look(a, seen->now_us / 1000);
    alarm_set(a);

    return overdue;
}

/* Redis's clock may have been set back: what is on its way is all that counts. */
static void alarm_touch_ended(struct alarm *a)
{
    a->n_sent--;
    if (a->n_sent == 0) {
        a->sent_ms = 0;
    }
}

bool alarm_touched(struct alarm *a, const struct touch_reply *reply, int64_t target_ms,
                   int64_t sent_us)
{
    struct due_times seen = {reply->now_us, reply->oldest_due_ms, reply->next_due_ms};
    struct dues_seen look = {.coming = reply->coming, .known_ms = reply->known_ms};

    alarm_touch_ended(a);
    a->alarms->context->stats.touches += (uint64_t)reply->n_expired;
    a->cursor_ms = reply->cursor_ms;

    if (reply->known_ms) {
        look.taken_ms = a->sent_ms;
        look.sent_us = sent_us;
        dues_learn(&a->dues, &look);
    }

    bool overdue = alarm_answered(a, &seen, sent_us);
    if (target_ms * 1000 > reply->now_us) { /* it was read too early */
        dues_add(&a->dues, (struct due){.ms = target_ms, .own = true});
    }
    if (reply->n_there > 0) {
        a->check_us = (reply->now_us / 1000 + 1) * 1000;
    }
    alarm_set(a);

    return overdue;
}

void alarm_touch_failed(struct alarm *a, bool again)
{
    alarm_touch_ended(a);
    if (again) {
        a->check_us = node_time_us(a->alarms->node) + RETRY_MS * INT64_C(1000);
    }
    alarm_set(a);
}

/* ---- the timer ---- */
static unsigned alarm_n_look(const struct alarm *a)
{
    int64_t n = LOOK_OWN * a->n_members;

    if (n < LOOK_MIN) {
        return LOOK_MIN;
    }

    return n < LOOK_MAX ? (unsigned)n : LOOK_MAX;
}

static void alarm_touch(struct alarm *a, int64_t target_ms, bool everyone)
{
    bool look = a->dues.n < LOOK_BELOW || !alarm_knows_own(a);
    struct touch_range range = {.cursor_ms = a->cursor_ms,
                                .rank = a->rank,
                                .n_members = a->n_members,
                                .everyone = everyone,
                                .look = look ? alarm_n_look(a) : 0};

    a->n_sent++;
    if (target_ms > a->sent_ms) {
        a->sent_ms = target_ms;
    }
    if (!a->events->touch(a->arg, &range, target_ms)) {
        alarm_touch_ended(a);
    }
}

static bool is_over(int64_t at_us, int64_t now_us)
{
    return at_us && at_us <= now_us;
}

/* A trigger has expired since the job of another listener was due: triggers are touched. */
static bool alarm_others_touch(const struct alarm *a)
{
    const struct due *due = dues_first(&a->dues, false);
    int64_t due_us = node_mono_us(a->alarms->node, due->ms * 1000);

    return a->expired_us >= due_us;
}

/* True: the triggers of others are to be touched. */
static bool alarm_watch(struct alarm *a, int64_t now_us)
{
    bool check = is_over(a->check_us, now_us);

    if (check) {
        a->check_us = 0;
    }

    while (is_over(alarm_watch_us(a), now_us)) {
        if (alarm_others_touch(a)) {
            a->check_us = earlier(a->check_us, now_us + WATCH_MS * INT64_C(1000));
        } else {
            check = true;
        }
        a->watched_ms = dues_first(&a->dues, false)->ms;
        a->watched_us = clock_us();
        dues_remove(&a->dues, false, a->watched_ms);
    }

    return check;
}

static void alarm_ring(struct alarm *a, int64_t now_us)
{
    bool own = is_over(alarm_own_us(a), now_us);
    bool look = is_over(a->look_us, now_us);
    bool everyone = alarm_watch(a, now_us);
    bool overdue = is_over(later_by(a->grace_us, alarm_lag_us(a)), now_us);

    if (overdue) {
        a->grace_us = 0;
    }

    if (own || everyone || look) {
        int64_t target_ms = own ? now_us / 1000 : 0;
        dues_remove(&a->dues, true, now_us / 1000);
        alarm_touch(a, target_ms, everyone);
        a->look_us = 0;
    }
    if (overdue) {
        a->events->overdue(a->arg);
    }
}

/* Each alarm that rings is set again: to a later moment, or to none. */
static void on_time(void *arg)
{
    struct alarms *as = arg;
    int64_t now_us = node_arrival_us(as->node);

    while (as->heap.first && as->heap.first->at <= now_us) {
        struct alarm *a = CONTAINER(as->heap.first, struct alarm, node);
        alarm_ring(a, now_us);
        heap_set(&as->heap, &a->node, alarm_next_us(a));
    }

    alarms_set_timer(as);
}

/* ---- what its owner sets, and its life ---- */
void alarm_set_rank(struct alarm *a, int64_t rank, int64_t n_members)
{
    bool owned_all = alarm_owns_all(a);

    if (a->rank == rank && a->n_members == n_members) {
        return;
    }

    a->rank = rank;
    a->n_members = n_members;
    if (!owned_all || !alarm_owns_all(a)) {
        dues_forget(&a->dues);
        alarm_set_look(a, node_time_us(a->alarms->node) / 1000);
    }
    alarm_set(a);
}

void alarm_move(struct alarm *a, struct alarms *to)
{
    struct alarms *from = a->alarms;

    heap_set(&from->heap, &a->node, 0);
    alarms_set_timer(from);

    a->alarms = to;
    dues_forget(&a->dues);
    alarm_set_look(a, node_time_us(to->node) / 1000);
    alarm_set(a);
}

void alarm_init(struct alarm *a, const struct alarm_spec *spec)
{
    *a = (struct alarm){
        .alarms = spec->alarms, .key = spec->key, .events = spec->events, .arg = spec->arg};
    a->on = true;
    a->rank = -1;
}

void alarm_stop(struct alarm *a)
{
    a->on = false;
    alarm_set(a);
}

void alarms_init(struct alarms *as, struct node *node)
{
    struct context *c = node->context;

    *as = (struct alarms){.context = c, .node = node};
    as->enabled = !(c->options.flags & LAPSE_NO_ALARM);
    exact_timer_init(&as->timer, c->loop, on_time, as);
}

void alarms_up(struct alarms *as)
{
    alarms_set_timer(as);
}

void alarms_close(struct alarms *as)
{
    exact_timer_close(&as->timer);
}
