/* SPDX-License-Identifier: MIT */
/* What the messages of the subscription mean.
 *
 *   event     a trigger of the queue expired: its job is due. If we are the listener to answer it,
 *             its id goes to the claim of the queue
 *   canary    a trigger of a listener expired; of our own it shows that events arrive
 *   notice    published by scripts: a new first due time, ids that are due at once, or 'members':
 *             listeners have joined or left
 *
 * Anyone may publish such messages, so they are only hints: at worst we look in vain. */
#include "listen/watch.h"
#include "job/keys.h"

/* ---- do events arrive at all? ---- */
static void watches_miss_events(struct watches *ws)
{
    struct context *c = ws->context;
    char kind = c->settings.notify == LAPSE_KEYSPACE ? 'K' : 'E';

    if (!alarms_get_events(ws->alarms)) {
        return; /* this was said already */
    }

    alarms_set_events(ws->alarms, false);
    log_line(&c->log, LOG_DEAF, LOG_WARNING,
             "expiry events do not arrive: notify-keyspace-events of this Redis lacks %c or x "
             "(CONFIG SET notify-keyspace-events %cx); alarm and sweep deliver the jobs, a "
             "little later",
             kind, kind);
    health_report(&c->health, (struct lapse_health){.kind = LAPSE_HEALTH_NO_EVENTS});
}

static void watch_heard_event(struct watch *w)
{
    struct watches *ws = w->watches;
    struct context *c = ws->context;

    membership_heard(&w->membership);
    if (!alarms_get_events(ws->alarms)) {
        alarms_set_events(ws->alarms, true);
        log_line(&c->log, LOG_HEARS, LOG_NOTICE, "expiry events arrive again");
        health_report(&c->health, (struct lapse_health){.kind = LAPSE_HEALTH_EVENTS});
    }
}

/* ---- messages ---- */
static void on_expired(void *arg, struct ear *e, struct span id)
{
    struct watch *w = CONTAINER(e, struct watch, ear);

    (void)arg;
    alarm_heard_event(w->alarm);
    watch_heard_event(w);
    if (membership_owns(&w->membership, id)) {
        w->events->named(w->arg, id, LAPSE_VIA_EVENT);
    }
}

static void on_canary(void *arg, struct ear *e, struct span name)
{
    struct watch *w = CONTAINER(e, struct watch, ear);

    (void)arg;
    if (membership_is_ours(&w->membership, name)) {
        watch_heard_event(w);
    }
}

static void watch_heard_ids(struct watch *w, struct span ids)
{
    for (bool more = true; more;) {
        struct span id = ids;

        more = span_cut(&ids, ' ', &id);
        if (keys_id_ok(id) && membership_owns(&w->membership, id)) {
            w->events->named(w->arg, id, LAPSE_VIA_NOTICE);
        }
    }

    alarm_notify_others(w->alarm);
}

/* 'members', or 'HEAD ID ID...': src/lua/README.md draws both. */
static void on_notice(void *arg, struct ear *e, struct span text)
{
    struct watch *w = CONTAINER(e, struct watch, ear);
    struct span ids = text;
    struct span number = text;
    int64_t head_ms = 0;

    (void)arg;
    if (span_is(text, "members")) {
        membership_refresh(&w->membership);
        return;
    }

    bool has_ids = span_cut(&ids, ' ', &number);
    if (!span_decimal(number, EXACT_MAX, &head_ms)) {
        return;
    }

    if (head_ms) {
        alarm_notify(w->alarm, head_ms);
    }
    if (has_ids && ids.len > 0) {
        watch_heard_ids(w, ids);
    }
}

static void on_confirmed(void *arg, struct ear *e)
{
    struct watch *w = CONTAINER(e, struct watch, ear);

    (void)arg;
    alarm_set_subscribed(w->alarm, true);
    membership_join(&w->membership);
    w->events->subscribed(w->arg);
}

static void on_lost(void *arg)
{
    struct watches *ws = arg;

    LIST_EACH (i, &ws->all) {
        struct watch *w = CONTAINER(i, struct watch, node);
        alarm_set_subscribed(w->alarm, false);
        membership_lost_events(&w->membership);
    }
}

/* ---- membership ---- */
static void on_ranked(void *arg, int64_t rank, int64_t n_members)
{
    struct watch *w = arg;
    alarm_set_rank(w->alarm, rank, n_members);
}

static void on_silent(void *arg)
{
    struct watch *w = arg;
    watches_miss_events(w->watches);
}

static void on_left(void *arg)
{
    struct watch *w = arg;
    w->events->ended(w->arg);
}

/* Redis may have forgotten us. */
static void watch_rejoin(struct watch *w)
{
    if (w->ear.channel.confirmed) {
        membership_join(&w->membership);
    } else {
        membership_leave(&w->membership);
    }
}

void watch_set_free_slots(struct watch *w, bool any)
{
    if (w->free_slots == any) {
        return;
    }

    w->free_slots = any;
    membership_set_free_slots(&w->membership, any);
    alarm_set_free_slots(w->alarm, any);
}

bool watch_is_subscribed(const struct watch *w)
{
    return w->ear.channel.confirmed;
}

bool watch_is_first(const struct watch *w)
{
    return membership_is_first(&w->membership);
}

/* ---- life ---- */
void watch_start(struct watch *w, const struct watch_spec *spec)
{
    static const struct membership_events events = {on_ranked, on_silent, on_left};
    struct watches *ws = spec->watches;
    struct membership_spec membership = {.script = ws->script,
                                         .key = spec->key,
                                         .name = spec->member_name,
                                         .events = &events,
                                         .arg = w};

    *w = (struct watch){
        .watches = ws, .alarm = spec->alarm, .events = spec->events, .arg = spec->arg};
    w->free_slots = true;
    membership_init(&w->membership, &membership);
    list_insert(&ws->all, &w->node);
    if (!(ws->context->settings.flags & LAPSE_NO_EVENTS)) {
        sub_add(&ws->subscription, &w->ear, spec->queue);
    }
}

void watch_stop(struct watch *w)
{
    membership_leave_for_good(&w->membership);
    sub_remove(&w->watches->subscription, &w->ear);
    list_remove(&w->node);
}

void watch_end(struct watch *w)
{
    membership_stop(&w->membership);
    list_remove(&w->node);
}

bool watch_pending(const struct watch *w)
{
    return w->ear.channel.leaving || membership_pending(&w->membership);
}

void watches_init(struct watches *ws, struct script *script, struct alarms *alarms)
{
    static const struct sub_events events = {on_confirmed, on_expired, on_canary, on_notice,
                                             on_lost};

    *ws = (struct watches){.context = script->context, .script = script, .alarms = alarms};
    list_init(&ws->all);
    sub_init(&ws->subscription, script->node, &events, ws);
}

void watches_up(struct watches *ws)
{
    pubsub_start(&ws->script->node->pubsub);
    LIST_EACH (i, &ws->all) {
        watch_rejoin(CONTAINER(i, struct watch, node));
    }
}

void watches_drain(struct watches *ws)
{
    pubsub_ending(&ws->script->node->pubsub);
}

void watches_close(struct watches *ws)
{
    sub_close(&ws->subscription);
}
