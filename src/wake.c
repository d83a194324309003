/* SPDX-License-Identifier: MIT */
/* When to look for due jobs: on an event, on a wake, on our alarm, on the sweep. Nothing here decides what is due.
 *
 * The ring. Every listener hears every event; the one whose rank is hash(id) mod n answers it. Rank 0 has the exact
 * alarm and touches the due triggers, which makes Redis expire them and tell everybody. Rank k is its watchdog: it
 * looks min(2k, 40) ms later, and not at all when an event or a wake was heard since. It then does not know what is
 * next, so it asks after WATCHDOG_MS, at the most that often. What its owner does not take is overdue after GRACE_MS,
 * and the alarm that finds it takes it. Without a confirmed subscription there are no events to make: the alarm claims
 * at once.
 *
 * The alarm is set to the earlier of what the last script said and of what wakes told since that script was sent: the
 * two come on different sockets, in no order. */
#include "wake.h"
#include "err.h"
#include <stdio.h>

enum { GRACE_MS = 50, LIFE_MS = 15000, WATCHDOG_MS = 50, LAG_MAX_MS = 40, PAUSE_MS = 200, ROOM_MS = 100 };
enum { CANARY_FIRST_MS = 100, CANARY_WAIT_MS = 1000 }; /* the second look reads the first canary; its event must come */

static int64_t server_us(const struct wake *wk)
{
    return clock_server_us(&wk->core->clock, clock_us());
}

static int64_t deadline_us(const struct wake *wk)
{
    return clock_us() + wk->core->options.set.reply_ms * 1000;
}

/* ---- alarm ---- */
static int64_t lag_us(const struct watch *w)
{
    int64_t lag_ms = 2 * (w->rank < 0 ? w->n : w->rank);
    return 1000 * (lag_ms < LAG_MAX_MS ? lag_ms : LAG_MAX_MS);
}

static int64_t rings_at_us(const struct watch *w)
{
    return w->look_us && !w->touch.ask.asked ? w->look_us + lag_us(w) : 0;
}

static void set_alarm(struct wake *wk)
{
    int64_t first = 0;
    if (!(wk->core->options.set.flags & LAPSE_NO_ALARM) && wk->core->clock.known && conn_up(wk->script->conn)) {
        LIST_EACH (i, &wk->watches) {
            int64_t at = rings_at_us(CONTAINER(i, struct watch, node));
            first = at && (!first || at < first) ? at : first;
        }
    }
    alarm_set(&wk->alarm, first ? clock_mono_us(&wk->core->clock, first) : 0);
}

static void look_at(struct watch *w, int64_t at_us)
{
    w->look_us = at_us && (!w->look_us || at_us < w->look_us) ? at_us : w->look_us;
}

void wake_told(struct watch *w, int64_t due_ms)
{
    if (!w->on) {
        return;
    }
    w->told_us = w->told_us && w->told_us < due_ms * 1000 ? w->told_us : due_ms * 1000;
    w->told_heard_us = clock_us();
    look_at(w, w->told_us);
    set_alarm(w->wake);
}

void wake_outlook(struct watch *w, const struct outlook *o, int64_t sent_us)
{
    w->look_us = o->next_ms * 1000;
    w->ask_anyway = false;
    if (o->oldest_ms) {
        int64_t grace = (o->oldest_ms + GRACE_MS) * 1000;
        look_at(w, grace > o->now_us ? grace : o->now_us + GRACE_MS * 1000);
    }
    if (w->told_heard_us >= sent_us) {
        look_at(w, w->told_us);
    } else {
        w->told_us = 0;
    }
    set_alarm(w->wake);
}

static void on_touched(struct queue_ask *a, int err)
{
    struct watch *w = CONTAINER(a, struct watch, touch);
    struct wake *wk = w->wake;
    enum { OLDEST, NEXT, READ, STILL, CURSOR };
    if (!w->on) {
        return;
    }
    if (err) {
        look_at(w, server_us(wk) + PAUSE_MS * 1000);
        set_alarm(wk);
        return;
    }
    struct outlook o = {a->now_us, a->n[OLDEST], a->n[NEXT]};
    wk->core->stats.touches += (uint64_t)(a->n[READ] - a->n[STILL]);
    w->cursor_ms = a->n[CURSOR];
    wake_outlook(w, &o, a->ask.sent_us);
    if (a->n[STILL]) {
        look_at(w, (o.now_us / 1000 + 1) * 1000);
        set_alarm(wk);
    }
    if (a->n[READ] >= SCRIPT_BATCH || (o.oldest_ms && o.now_us / 1000 - o.oldest_ms >= GRACE_MS)) {
        wk->events->oldest(wk->arg, w, LAPSE_VIA_ALARM);
    }
}

static void look(struct wake *wk, struct watch *w)
{
    int64_t since_us = clock_mono_us(&wk->core->clock, w->look_us);
    w->look_us = 0;
    if (!w->ear.confirmed || wk->deaf || !w->room) { /* without room it is owed */
        wk->events->oldest(wk->arg, w, LAPSE_VIA_ALARM);
    } else if (w->rank != 0 && !w->ask_anyway && w->heard_us >= since_us) {
        w->ask_anyway = true;
        w->look_us = server_us(wk) + WATCHDOG_MS * 1000;
    } else {
        w->touch.ask.until_us = deadline_us(wk);
        store_touch(wk->script, &w->touch, w->key, w->cursor_ms);
    }
}

static void on_alarm(void *arg)
{
    struct wake *wk = arg;
    int64_t now = server_us(wk);
    LIST_EACH (i, &wk->watches) {
        struct watch *w = CONTAINER(i, struct watch, node);
        int64_t at = rings_at_us(w);
        if (at && at <= now) {
            look(wk, w);
        }
    }
    set_alarm(wk);
}

/* ---- ring ---- */
static bool owner(const struct watch *w, struct span id)
{
    return w->rank < 0 ? w->n == 0 : keys_hash(id.at, id.len) % w->n == w->rank;
}

static void enter(struct watch *w)
{
    struct wake *wk = w->wake;
    bool wanted = w->on && w->room && w->ear.confirmed;
    if (w->listen.ask.asked) {
        w->again = true;
    } else if (conn_up(wk->script->conn) && (wanted || w->entered)) {
        w->entered = wanted;
        w->again = false;
        w->listen.ask.until_us = deadline_us(wk);
        store_listen(wk->script, &w->listen, w->key, (struct span){wk->name, strlen(wk->name)}, wanted ? LIFE_MS : 0);
    }
}

static void on_beat(void *arg)
{
    enter(arg);
}

/* Each call reads the canary that the one before it set. With the third and no event between, one is overdue. */
static int64_t count_canaries(struct watch *w)
{
    struct wake *wk = w->wake;
    bool silent = w->entered && w->n_events == wk->n_events;
    w->n_canaries = silent ? w->n_canaries + 1 : w->entered;
    w->n_events = wk->n_events;
    if (w->n_canaries >= 3 && !wk->deaf) {
        wk->deaf = true;
        log_line(&wk->core->log, LOG_DEAF, LOG_WARNING,
                 "expiry events do not arrive: notify-keyspace-events of this Redis lacks E or x (CONFIG SET "
                 "notify-keyspace-events Ex); alarm and sweep deliver the jobs, a little later");
    }
    return w->n_canaries == 1 ? CANARY_FIRST_MS : w->n_canaries == 2 ? CANARY_WAIT_MS : LIFE_MS / 3;
}

/* An event came, of a job or of a canary. */
static void events_come(struct wake *wk)
{
    wk->n_events++;
    if (wk->deaf) {
        wk->deaf = false;
        log_line(&wk->core->log, LOG_DEAF, LOG_NOTICE, "expiry events arrive again");
    }
}

static void on_listened(struct queue_ask *a, int err)
{
    struct watch *w = CONTAINER(a, struct watch, listen);
    int64_t wait_ms = PAUSE_MS;
    if (!err) {
        w->rank = a->n[0];
        w->n = a->n[1];
        wait_ms = count_canaries(w);
    }
    if (w->again) {
        enter(w);
    } else if (w->on) {
        timer_set(&w->beat, wait_ms);
    }
    if (w->on) {
        set_alarm(w->wake);
    }
}

/* At the edge of what it can take a listener would go in and out with each job, and tell all others each time. */
void wake_room(struct watch *w, bool room)
{
    if (w->room != room) {
        w->room = room;
        timer_set(&w->beat, ROOM_MS);
    }
}

/* ---- hints from the subscription ---- */
static void on_expired(void *arg, struct ear *e, struct span id)
{
    struct wake *wk = arg;
    struct watch *w = CONTAINER(e, struct watch, ear);
    w->heard_us = clock_us();
    events_come(wk);
    if (owner(w, id)) {
        wk->events->named(wk->arg, w, id, LAPSE_VIA_EVENT);
    }
}

static void on_canary(void *arg, struct span name)
{
    struct wake *wk = arg;
    if (span_is(name, wk->name, strlen(wk->name))) {
        events_come(wk);
    }
}

/* 'members', or 'HEAD ID ID...': see README.md of src/lua. Anyone may have sent it: the worst it does is a look. */
static void on_woken(void *arg, struct ear *e, struct span text)
{
    struct wake *wk = arg;
    struct watch *w = CONTAINER(e, struct watch, ear);
    const char *at = text.at, *end = at + text.len;
    int64_t head = 0;
    w->heard_us = clock_us();
    if (span_is(text, "members", 7)) {
        enter(w);
        return;
    }
    for (; at < end && at - text.at < 15 && *at >= '0' && *at <= '9'; at++) {
        head = head * 10 + (*at - '0');
    }
    if (head) {
        wake_told(w, head);
    }
    if (at == text.at || at == end || *at++ != ' ' || at == end) {
        return;
    }
    while (at < end) {
        const char *stop = memchr(at, ' ', (size_t)(end - at));
        struct span id = {at, (size_t)((stop ? stop : end) - at)};
        if (keys_id_ok(id.at, id.len) && owner(w, id)) {
            wk->events->named(wk->arg, w, id, LAPSE_VIA_WAKE);
        }
        at += id.len + 1;
    }
    look_at(w, server_us(wk) + GRACE_MS * 1000); /* should an owner not take its own */
    set_alarm(wk);
}

static void on_confirmed(void *arg, struct ear *e)
{
    struct wake *wk = arg;
    struct watch *w = CONTAINER(e, struct watch, ear);
    enter(w);
    wk->events->oldest(wk->arg, w, LAPSE_VIA_SWEEP);
}

static void on_deaf(void *arg)
{
    struct wake *wk = arg;
    LIST_EACH (i, &wk->watches) {
        struct watch *w = CONTAINER(i, struct watch, node);
        w->rank = -1;
        w->n = 0;
        enter(w);
    }
    set_alarm(wk);
}

/* ---- sweep ---- */
static void set_sweep(struct watch *w)
{
    int64_t every = w->wake->core->options.set.sweep_ms;
    timer_set(&w->sweep_timer, every - (int64_t)(clock_random() % ((uint64_t)every / 5 + 1)));
}

static void recover(struct watch *w)
{
    if (!w->sweep.ask.asked) {
        w->sweep.ask.until_us = deadline_us(w->wake);
        store_sweep(w->wake->script, &w->sweep, w->key);
    }
}

static void on_swept(struct queue_ask *a, int err)
{
    struct watch *w = CONTAINER(a, struct watch, sweep);
    enum { TAKEN, DIED, MORE };
    if (!err) {
        w->wake->core->stats.recovered += (uint64_t)a->n[TAKEN];
        w->wake->core->stats.failed += (uint64_t)a->n[DIED];
    }
    if (!err && w->on && a->n[MORE]) {
        recover(w);
    }
}

static void on_sweep(void *arg)
{
    struct watch *w = arg;
    if (conn_up(w->wake->script->conn)) {
        recover(w);
        w->wake->events->oldest(w->wake->arg, w, LAPSE_VIA_SWEEP);
    }
    set_sweep(w);
}

void wake_up(struct wake *wk)
{
    LIST_EACH (i, &wk->watches) {
        enter(CONTAINER(i, struct watch, node));
    }
    set_alarm(wk);
}

/* ---- life ---- */
void wake_init(struct wake *wk, struct core *core, struct script *script, const struct wake_events *events, void *arg)
{
    static const struct sub_events sub_events = {on_confirmed, on_expired, on_canary, on_woken, on_deaf};
    *wk = (struct wake){.core = core, .script = script, .events = events, .arg = arg};
    list_init(&wk->watches);
    snprintf(wk->name, sizeof wk->name, "%s/%016llx", core->options.set.name, (unsigned long long)clock_random());
    alarm_init(&wk->alarm, core->loop, on_alarm, wk);
    sub_init(&wk->sub, core, &sub_events, wk);
}

void wake_watch(struct wake *wk, struct watch *w, const char *queue, struct span key)
{
    w->wake = wk;
    w->key = key;
    w->on = w->room = true;
    w->rank = -1;
    w->n = 0;
    w->look_us = w->told_us = 0;
    w->n_events = wk->n_events;
    w->touch.end = on_touched;
    w->listen.end = on_listened;
    w->sweep.end = on_swept;
    timer_init(&w->beat, wk->core->loop, on_beat, w);
    timer_init(&w->sweep_timer, wk->core->loop, on_sweep, w);
    list_init(&w->ear.node);
    list_insert(&wk->watches, &w->node);
    if (!(wk->core->options.set.flags & LAPSE_NO_EVENTS)) {
        sub_add(&wk->sub, &w->ear, queue);
    }
    set_sweep(w);
    wk->events->oldest(wk->arg, w, LAPSE_VIA_SWEEP);
}

void wake_unwatch(struct watch *w)
{
    w->on = false;
    enter(w); /* that is: leave */
    sub_remove(&w->wake->sub, &w->ear);
    list_remove(&w->node);
    timer_stop(&w->beat);
    timer_stop(&w->sweep_timer);
    set_alarm(w->wake);
}

bool wake_free_to_go(const struct watch *w)
{
    return !w->touch.ask.asked && !w->listen.ask.asked && !w->sweep.ask.asked;
}

void wake_close(struct wake *wk)
{
    LIST_EACH (i, &wk->watches) {
        struct watch *w = CONTAINER(i, struct watch, node);
        w->on = false;
        list_remove(i);
        timer_stop(&w->beat);
        timer_stop(&w->sweep_timer);
    }
    sub_close(&wk->sub);
    alarm_close(&wk->alarm);
}
