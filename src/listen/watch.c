/* SPDX-License-Identifier: MIT */
/* When to look for due jobs: on an event, on a wake, on our alarm, on the sweep. Nothing here
 * decides what is due.
 *
 * The ring. Every listener hears every event; the one whose rank is hash(id) mod n answers it. Rank
 * 0 has the exact alarm and touches the due triggers, which makes Redis expire them and tell
 * everybody. Rank k is its watchdog: it looks min(2k, 40) ms later, and not at all when a trigger
 * has expired since: somebody touches them. It then does not know what is next, so it asks after
 * WATCHDOG_MS. Without a confirmed subscription there are no events to make: the alarm claims at
 * once.
 *
 * The grace. A job that its owner does not take is anybody's GRACE_MS after it was due. Each script
 * that looks at the queue says which job is the oldest of those that are due: where its grace is
 * over we claim it at once, and else the alarm looks when it ends. So no answer puts off the look
 * for a job that it does not know to be gone.
 *
 * The alarm is set to the earliest of what the last script said and of what wakes told since that
 * script was sent: the two come on different sockets, in no order. */
#include "listen/watch.h"
#include "base/error.h"
#include <stdio.h>

enum { GRACE_MS = 50, WATCHDOG_MS = 50, LAG_MAX_MS = 40, PAUSE_MS = 200 };

static int64_t server_us(const struct wake *wk)
{
    return node_time_us(wk->script->node);
}

static int64_t deadline_us(const struct wake *wk)
{
    return clock_us() + wk->context->settings.reply_ms * 1000;
}

/* ---- alarm ---- */
static int64_t lag_us(const struct watch *w)
{
    int64_t lag_ms = 2 * membership_n_before(&w->membership);
    return 1000 * (lag_ms < LAG_MAX_MS ? lag_ms : LAG_MAX_MS);
}

/* 0 is no moment. */
static int64_t earlier(int64_t a, int64_t b)
{
    return a && (!b || a < b) ? a : b;
}

static bool has_alarm(const struct wake *wk)
{
    return !(wk->context->settings.flags & LAPSE_NO_ALARM);
}

static int64_t rings_at_us(const struct watch *w)
{
    int64_t at = earlier(w->look.due_us, w->look.grace_us);
    return at && !w->touch.ask.asked ? at + lag_us(w) : 0;
}

static void set_alarm(struct wake *wk)
{
    int64_t at_us = 0;
    const struct node *node = wk->script->node;

    if (wk->looks.first && has_alarm(wk) && node_knows_time(node) && node_up(node)) {
        at_us = node_mono_us(node, wk->looks.first->at);
    }
    exact_timer_set(&wk->alarm, at_us);
}

static void set_look(struct watch *w)
{
    heap_set(&w->wake->looks, &w->rings, w->on ? rings_at_us(w) : 0);
    set_alarm(w->wake);
}

static void look_no_later(struct looks *all, const struct looks *also)
{
    all->due_us = earlier(all->due_us, also->due_us);
    all->grace_us = earlier(all->grace_us, also->grace_us);
}

static void tell(struct watch *w, struct looks look)
{
    struct told *newer = &w->told[1];
    look_no_later(&newer->look, &look);
    newer->heard_us = clock_us();
    look_no_later(&w->look, &look);
    set_look(w);
}

/* A script that was sent after a wake was heard knows what that told. The rest becomes the older:
 * with wakes that never cease each is kept for two answers at the most. */
static void forget_told(struct watch *w, int64_t sent_us)
{
    static const struct told nothing;
    struct told *older = &w->told[0];
    struct told *newer = &w->told[1];

    if (older->heard_us < sent_us) {
        *older = newer->heard_us < sent_us ? nothing : *newer;
        *newer = nothing;
    }
}

void wake_told(struct watch *w, int64_t due_ms)
{
    if (w->on) {
        tell(w, (struct looks){.due_us = due_ms * 1000});
    }
}

bool wake_outlook(struct watch *w, const struct outlook *o, int64_t sent_us)
{
    int64_t oldest_us = o->oldest_ms * 1000;
    int64_t next_us = o->next_ms * 1000;
    int64_t was_us = w->look.due_us;
    bool overdue = false;

    /* a watchdog still waits whether somebody touches it */
    bool due_meanwhile = was_us && was_us <= o->now_us && oldest_us && oldest_us <= was_us;

    if (next_us && next_us <= o->now_us) { /* of a peer that names the past */
        next_us = o->now_us + GRACE_MS * INT64_C(1000);
    }

    w->look = (struct looks){.due_us = due_meanwhile ? was_us : next_us};
    w->ask_anyway = false;

    if (oldest_us) {
        int64_t over_us = oldest_us + GRACE_MS * INT64_C(1000);
        overdue = over_us + lag_us(w) <= o->now_us;
        w->look.grace_us = overdue ? o->now_us + GRACE_MS * INT64_C(1000) : over_us;
    }

    forget_told(w, sent_us);
    look_no_later(&w->look, &w->told[0].look);
    look_no_later(&w->look, &w->told[1].look);
    set_look(w);

    return overdue && has_alarm(w->wake);
}

static void on_touched(struct queue_ask *a, int err)
{
    struct watch *w = CONTAINER(a, struct watch, touch);
    struct wake *wk = w->wake;
    enum { OLDEST, NEXT, READ, STILL, CURSOR, EXPIRED };

    if (!w->on) {
        wk->events->ended(wk->arg);
        return;
    }

    if (err) {
        tell(w, (struct looks){.due_us = server_us(wk) + PAUSE_MS * INT64_C(1000)});
        return;
    }

    struct outlook o = {a->now_us, a->n[OLDEST], a->n[NEXT]};
    wk->context->stats.touches += (uint64_t)(a->n[READ] - a->n[STILL]);
    w->cursor_ms = a->n[CURSOR];

    bool overdue = wake_outlook(w, &o, a->ask.sent_us);
    if (a->n[STILL]) {
        tell(w, (struct looks){.due_us = (o.now_us / 1000 + 1) * 1000});
    }

    /* A trigger that is not there will not ring: it was evicted, lost, or not set yet. Where it
     * expired just before, or at the hand of another, its event is on the way: so only the first to
     * look judges by that. */
    bool missing = membership_is_first(&w->membership) && !w->reading &&
                   a->n[READ] - a->n[STILL] > a->n[EXPIRED];
    w->reading = a->n[STILL] > 0;
    if (missing || overdue || a->n[READ] >= SCRIPT_BATCH) {
        wk->events->oldest(wk->arg, w, LAPSE_VIA_ALARM);
    }
}

static bool is_over(const struct watch *w, int64_t at_us, int64_t now_us)
{
    return at_us && at_us + lag_us(w) <= now_us;
}

static void look(struct wake *wk, struct watch *w, int64_t now_us)
{
    bool due = is_over(w, w->look.due_us, now_us), overdue = is_over(w, w->look.grace_us, now_us);
    int64_t since_us = node_mono_us(wk->script->node, w->look.due_us);

    w->look.due_us = due ? 0 : w->look.due_us;
    w->look.grace_us = overdue ? 0 : w->look.grace_us;

    if (!w->ear.channel.confirmed || wk->deaf || !w->room) { /* without room it is owed */
        wk->events->oldest(wk->arg, w, LAPSE_VIA_ALARM);
    } else if (!overdue && !(w->membership.rank == 0) && !w->ask_anyway &&
               w->expired_us >= since_us) {
        w->ask_anyway = true;
        w->look.due_us = now_us + WATCHDOG_MS * INT64_C(1000);
    } else {
        w->touch.ask.until_us = deadline_us(wk);
        store_touch(wk->script, &w->touch, w->key, w->cursor_ms);
    }
}

/* Each that rings is set anew: to a later moment, or to none while its touch is on its way. */
static void on_alarm(void *arg)
{
    struct wake *wk = arg;
    int64_t now_us = server_us(wk);

    while (wk->looks.first && wk->looks.first->at <= now_us) {
        struct watch *w = CONTAINER(wk->looks.first, struct watch, rings);
        look(wk, w, now_us);
        heap_set(&wk->looks, &w->rings, rings_at_us(w));
    }
    set_alarm(wk);
}

/* ---- membership ---- */
static bool wanted(const struct watch *w)
{
    return w->on && w->ear.channel.confirmed;
}

static void on_ranked(void *arg)
{
    set_look(arg);
}

static void on_left(void *arg)
{
    struct wake *wk = ((struct watch *)arg)->wake;
    wk->events->ended(wk->arg);
}

static void on_silent(void *arg)
{
    struct wake *wk = ((struct watch *)arg)->wake;
    char kind = wk->context->settings.notify == LAPSE_KEYSPACE ? 'K' : 'E';

    if (!wk->deaf) {
        wk->deaf = true;
        log_line(&wk->context->log, LOG_DEAF, LOG_WARNING,
                 "expiry events do not arrive: notify-keyspace-events of this Redis lacks %c or x "
                 "(CONFIG SET notify-keyspace-events %cx); alarm and sweep deliver the jobs, a "
                 "little later",
                 kind, kind);
        health_report(&wk->context->health, (struct lapse_health){.kind = LAPSE_HEALTH_NO_EVENTS});
    }
}

/* An event came, of a job or of a canary. */
static void events_come(struct watch *w)
{
    membership_heard(&w->membership);
    if (w->wake->deaf) {
        w->wake->deaf = false;
        log_line(&w->wake->context->log, LOG_HEARS, LOG_NOTICE, "expiry events arrive again");
        health_report(&w->wake->context->health,
                      (struct lapse_health){.kind = LAPSE_HEALTH_EVENTS});
    }
}

void wake_room(struct watch *w, bool room)
{
    if (w->room != room) {
        w->room = room;
        membership_set_free_slots(&w->membership, room);
    }
}

/* ---- hints from the subscription ---- */
static void on_expired(void *arg, struct ear *e, struct span id)
{
    struct wake *wk = arg;
    struct watch *w = CONTAINER(e, struct watch, ear);

    w->expired_us = clock_us();
    events_come(w);
    if (membership_owns(&w->membership, id)) {
        wk->events->named(wk->arg, w, id, LAPSE_VIA_EVENT);
    }
}

static void on_canary(void *arg, struct ear *e, struct span name)
{
    struct watch *w = CONTAINER(e, struct watch, ear);
    (void)arg;
    if (span_eq(name, w->membership.name)) {
        events_come(w);
    }
}

/* 'members', or 'HEAD ID ID...': see README.md of src/lua. Anyone may have sent it: the worst it
 * does is a look. */
static void on_woken(void *arg, struct ear *e, struct span text)
{
    struct wake *wk = arg;
    struct watch *w = CONTAINER(e, struct watch, ear);
    struct span ids = text;
    struct span number = text;
    int64_t head = 0;

    if (span_is(text, "members")) {
        membership_refresh(&w->membership);
        return;
    }

    bool has_ids = span_cut(&ids, ' ', &number);
    if (!span_decimal(number, EXACT_MAX, &head)) {
        return;
    }

    if (head) {
        wake_told(w, head);
    }

    if (!has_ids || ids.len == 0) {
        return;
    }

    for (bool more = true; more;) {
        struct span id = ids;
        more = span_cut(&ids, ' ', &id);
        if (keys_id_ok(id) && membership_owns(&w->membership, id)) {
            wk->events->named(wk->arg, w, id, LAPSE_VIA_NOTICE);
        }
    }

    tell(w, (struct looks){.grace_us =
                               server_us(wk) +
                               GRACE_MS * INT64_C(1000)}); /* should an owner not take its own */
}

static void on_confirmed(void *arg, struct ear *e)
{
    struct wake *wk = arg;
    struct watch *w = CONTAINER(e, struct watch, ear);
    membership_join(&w->membership);
    wk->events->oldest(wk->arg, w, LAPSE_VIA_SWEEP);
}

static void on_deaf(void *arg)
{
    struct wake *wk = arg;

    LIST_EACH (i, &wk->watches) {
        struct watch *w = CONTAINER(i, struct watch, node);
        membership_lost_events(&w->membership);
        set_look(w);
    }
}

/* ---- sweep ---- */
static void set_sweep(struct watch *w)
{
    int64_t every = w->wake->context->settings.sweep_ms;
    timer_set(&w->sweep_timer, every - (int64_t)(clock_random() % ((uint64_t)every / 5 + 1)));
}

static void arm(struct watch *w)
{
    if (!w->arm.ask.asked) {
        w->arm.ask.until_us = deadline_us(w->wake);
        store_arm(w->wake->script, &w->arm, w->key, w->armed_ms);
    }
}

static void recover(struct watch *w)
{
    if (!w->sweep.ask.asked) {
        w->sweep.ask.until_us = deadline_us(w->wake);
        store_sweep(w->wake->script, &w->sweep, w->key);
    }
}

static void on_armed(struct queue_ask *a, int err)
{
    struct watch *w = CONTAINER(a, struct watch, arm);
    enum { CURSOR, MORE };

    if (!err) {
        w->armed_ms = a->n[CURSOR];
    }

    if (!err && w->on && a->n[MORE]) {
        arm(w);
    } else if (!w->on) {
        w->wake->events->ended(w->wake->arg);
    }
}

static void on_swept(struct queue_ask *a, int err)
{
    struct watch *w = CONTAINER(a, struct watch, sweep);
    enum { TAKEN, DIED, MORE };

    if (!err) {
        w->wake->context->stats.recovered += (uint64_t)a->n[TAKEN];
        w->wake->context->stats.failed += (uint64_t)a->n[DIED];
    }

    if (!err && w->on && a->n[MORE]) {
        recover(w);
    } else if (!w->on) {
        w->wake->events->ended(w->wake->arg);
    }
}

static void on_sweep(void *arg)
{
    struct watch *w = arg;

    if (node_up(w->wake->script->node)) {
        w->wake->events->sweeping(w->wake->arg);
        recover(w);
        w->wake->events->oldest(w->wake->arg, w, LAPSE_VIA_SWEEP);
        if (w->wake->context->settings.arm_ahead_ms && membership_is_first(&w->membership)) {
            arm(w);
        }
    }

    set_sweep(w);
}

void wake_up(struct wake *wk)
{
    pubsub_start(&wk->script->node->pubsub);
    LIST_EACH (i, &wk->watches) {
        struct watch *w = CONTAINER(i, struct watch, node);
        if (wanted(w)) {
            membership_join(&w->membership);
        } else {
            membership_leave(&w->membership);
        }
    }
    set_alarm(wk);
}

/* ---- life ---- */
/* The ring goes by the random bits of the names. The first of them puts those last that do not
 * touch triggers, so that rank 0 does wherever anybody does. */
static void name_us(struct wake *wk)
{
    uint64_t bits = clock_random() >> 1;

    if (!has_alarm(wk)) {
        bits |= UINT64_C(1) << 63;
    }
    snprintf(wk->name, sizeof wk->name, "%s/%016llx", wk->context->settings.name,
             (unsigned long long)bits);
}

void wake_init(struct wake *wk, struct context *context, struct script *script,
               const struct wake_events *events, void *arg)
{
    static const struct sub_events sub_events = {on_confirmed, on_expired, on_canary, on_woken,
                                                 on_deaf};

    *wk = (struct wake){.context = context, .script = script, .events = events, .arg = arg};
    list_init(&wk->watches);
    name_us(wk);
    exact_timer_init(&wk->alarm, context->loop, on_alarm, wk);
    sub_init(&wk->sub, script->node, &sub_events, wk);
}

void wake_watch(struct wake *wk, struct watch *w, const char *queue, struct span key)
{
    static const struct membership_events events = {on_ranked, on_silent, on_left};

    w->wake = wk;
    w->key = key;
    w->on = w->room = true;
    w->look = (struct looks){0};
    struct membership_spec spec = {
        .script = wk->script, .key = key, .name = span_of(wk->name), .events = &events, .arg = w};
    membership_init(&w->membership, &spec);
    w->touch.end = on_touched;
    w->sweep.end = on_swept;
    w->arm.end = on_armed;
    timer_init(&w->sweep_timer, wk->context->loop, on_sweep, w);
    list_insert(&wk->watches, &w->node);
    if (!(wk->context->settings.flags & LAPSE_NO_EVENTS)) {
        sub_add(&wk->sub, &w->ear, queue);
    }

    set_sweep(w);
    wk->events->oldest(wk->arg, w, LAPSE_VIA_SWEEP);
}

void wake_unwatch(struct watch *w)
{
    w->on = false;
    membership_leave_for_good(&w->membership);
    sub_remove(&w->wake->sub, &w->ear);
    list_remove(&w->node);
    timer_stop(&w->sweep_timer);
    set_look(w);
}

bool wake_free_to_go(const struct watch *w)
{
    return !w->ear.channel.leaving && !w->touch.ask.asked && !membership_pending(&w->membership) &&
           !w->sweep.ask.asked && !w->arm.ask.asked;
}

void wake_close(struct wake *wk)
{
    LIST_EACH (i, &wk->watches) {
        struct watch *w = CONTAINER(i, struct watch, node);
        w->on = false;
        list_remove(i);
        set_look(w);
        membership_stop(&w->membership);
        timer_stop(&w->sweep_timer);
    }

    sub_close(&wk->sub);
    exact_timer_close(&wk->alarm);
}
