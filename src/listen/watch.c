/* SPDX-License-Identifier: MIT */
/* What the messages of the subscription mean.
 *
 *   event     a trigger of the queue expired: its job is due. If we are the listener to answer it,
 *             its id goes to the claim of the queue
 *   canary    a trigger of a listener expired; of our own it shows that events arrive
 *   notice    published by scripts: jobs that are due at once, or soon, or before all others;
 *             'members': listeners have joined or left; 'queue': the settings have changed;
 *             'stop': running jobs are asked to stop
 *   wake      published by scripts of no queue: a name is new in the registry; 'told': a listener
 *             was told something
 *
 * Anyone may publish such messages, so they are only hints: at worst we look in vain. */
#include "listen/watch.h"

/* ---- do events arrive at all? ---- */
/* Reports a change, and nothing else. false: this was known already. */
static bool ear_set_events(struct ear *e, enum events_state now, struct lapse_health report)
{
    if (e->events == now) {
        return false;
    }

    e->events = now;
    health_report(&e->watches->context->health, report);
    return true;
}

static void on_silent(void *arg)
{
    struct ear *e = arg;
    struct context *c = e->watches->context;
    struct lapse_health report = {.kind = LAPSE_HEALTH_NO_EVENTS};
    char kind = c->options.notify == LAPSE_KEYSPACE ? 'K' : 'E';

    if (ear_set_events(e, EVENTS_SILENT, report)) {
        log_line(&c->log, LOG_NO_EVENTS, LOG_WARNING,
                 "expiry events do not arrive: notify-keyspace-events of this Redis lacks %c or x "
                 "(CONFIG SET notify-keyspace-events %cx); alarm and sweep deliver the jobs, a "
                 "little later",
                 kind, kind);
    }
}

/* Sets the canary among the triggers of any queue that is subscribed to. */
static void ear_move_canary(struct ear *e)
{
    e->canary_of = NULL;
    LIST_EACH (i, &e->all) {
        struct watch *w = CONTAINER(i, struct watch, node);
        if (watch_is_subscribed(w)) {
            e->canary_of = w;
            canary_start(&e->canary, w->queue, e->watches->member_name);
            return;
        }
    }

    canary_stop(&e->canary);
}

/* Of a job or of our canary. */
static void watch_heard_event(struct watch *w)
{
    struct ear *e = w->ear;
    struct lapse_health report = {.kind = LAPSE_HEALTH_EVENTS};

    canary_heard(&e->canary);
    if (ear_set_events(e, EVENTS_ARRIVE, report)) {
        log_line(&w->watches->context->log, LOG_EVENTS, LOG_NOTICE, "expiry events arrive again");
    }
}

/* ---- events ---- */
static void watch_heard_trigger(struct watch *w, struct span id)
{
    bool tells = alarm_heard_event(w->alarm);

    watch_heard_event(w);
    w->events->heard(w->arg);
    if (tells && membership_owns(&w->membership, id)) {
        w->events->named(w->arg, id, LAPSE_VIA_EVENT);
    }
}

static void watch_heard_canary(struct watch *w, struct span name)
{
    if (membership_is_ours(&w->membership, name)) {
        watch_heard_event(w);
    }
}

static struct watch *watches_find(const struct watches *ws, struct span queue)
{
    struct table_node *found = table_find(&ws->names, queue);

    return found ? CONTAINER(found, struct watch, named) : NULL;
}

/* A key expired. */
static void on_expired(void *arg, struct span channel, struct span text)
{
    const struct ear *e = arg;
    const struct watches *ws = e->watches;
    struct lapse_stats *stats = &ws->context->stats;
    const char *space = ws->context->options.space;
    struct keys_event event = keys_event(channel, text, space, ws->script->topo->db);
    struct watch *w = NULL;

    if (event.kind != KEYS_FOREIGN) {
        w = watches_find(ws, event.queue);
    }

    if (!w) {
        stats->foreign_events++;
    } else if (event.kind == KEYS_CANARY) {
        watch_heard_canary(w, event.id);
    } else {
        stats->events++;
        watch_heard_trigger(w, event.id);
    }
}

/* ---- notices ---- */
/* due_ms 0: now. */
static void watch_heard_due(struct watch *w, struct span id, int64_t due_ms)
{
    bool own = membership_owns(&w->membership, id);

    if (due_ms) {
        alarm_notify(w->alarm, due_ms, own);
        return;
    }

    if (own) {
        w->events->named(w->arg, id, LAPSE_VIA_NOTICE);
    }
    alarm_check_after_grace(w->alarm);
}

/* 'ID TOKEN ID TOKEN...' */
static void watch_heard_stop(struct watch *w, struct span rest)
{
    for (bool more = true; more;) {
        struct span id;
        struct span number;
        int64_t token = 0;

        if (!span_cut(&rest, ' ', &id)) {
            return;
        }
        more = span_cut(&rest, ' ', &number);
        if (!span_decimal(more ? number : rest, EXACT_MAX, &token)) {
            return;
        }
        if (keys_id_ok(id)) {
            w->events->stop(w->arg, id, (uint64_t)token);
        }
    }
}

/* 'members', 'queue', 'stop ID TOKEN...', or 'DUE ID DUE ID...': src/lua/README.md draws them. */
static void watch_heard_notice(struct watch *w, struct span text)
{
    struct span rest = text;

    if (span_is(text, "members")) {
        membership_refresh(&w->membership);
        return;
    }
    if (span_is(text, "queue")) {
        w->events->configured(w->arg);
        return;
    }

    if (span_skip(&rest, "stop ")) {
        watch_heard_stop(w, rest);
        return;
    }

    w->events->heard(w->arg);
    for (bool more = true; more;) {
        struct span number = rest;
        int64_t due_ms = 0;

        more = span_cut(&rest, ' ', &number);
        struct span id = rest;
        if (!more || !span_decimal(number, EXACT_MAX, &due_ms)) {
            return;
        }

        more = span_cut(&rest, ' ', &id);
        if (keys_id_ok(id)) {
            watch_heard_due(w, id, due_ms);
        }
    }
}

/* 'told NAME', or the name of a queue. */
static void watches_heard_wake(struct watches *ws, struct span text)
{
    struct span name = text;

    if (span_skip(&name, "told ")) {
        peers_look(&ws->memberships.peers, name);
    } else if (ws->names_events) {
        ws->names_events->added(ws->names_arg, text);
    }
}

/* ---- the subscription ---- */
static void on_message(void *arg, struct channel *ch, struct span text)
{
    struct ear *e = arg;

    if (ch == &e->watches->wake) {
        watches_heard_wake(e->watches, text);
    } else {
        watch_heard_notice(CONTAINER(ch, struct watch, channel), text);
    }
}

static void on_confirmed(void *arg, struct channel *ch)
{
    struct ear *e = arg;
    struct watches *ws = e->watches;

    if (ch == &ws->wake && ws->names_events) {
        ws->names_events->subscribed(ws->names_arg);
    }
    if (ch == &ws->wake) {
        return;
    }

    struct watch *w = CONTAINER(ch, struct watch, channel);

    membership_join(&w->membership);
    if (!e->canary_of) {
        ear_move_canary(e);
    }
    w->events->subscribed(w->arg);
}

static void on_refused(void *arg, struct span error)
{
    struct ear *e = arg;
    struct context *c = e->watches->context;
    char text[LOG_VALUE];
    struct lapse_health report = {
        .kind = LAPSE_HEALTH_NO_EVENTS, .err = LAPSE_EDENIED, .detail = text};

    log_escape(text, sizeof text, error.at, error.len);
    c->stats.missed_events++;
    if (ear_set_events(e, EVENTS_REFUSED, report)) {
        log_line(&c->log, LOG_SUBSCRIBE, LOG_ERR,
                 "Redis refuses the subscription: %s; alarm and sweep go on without events", text);
    }
}

/* Where the connection for commands is down too, LAPSE_HEALTH_DISCONNECTED says more. */
static void on_failed(void *arg)
{
    struct ear *e = arg;
    struct lapse_health report = {
        .kind = LAPSE_HEALTH_NO_EVENTS, .err = LAPSE_EDOWN, .what = "SUBSCRIBE"};

    if (node_up(e->node)) {
        ear_set_events(e, EVENTS_CUT, report);
    }
}

static void on_channel_left(void *arg, struct channel *ch)
{
    struct watch *w = CONTAINER(ch, struct watch, channel);

    (void)arg;
    w->events->ended(w->arg);
}

static void on_down(void *arg)
{
    struct ear *e = arg;
    const struct watches *ws = e->watches;

    e->canary_of = NULL;
    canary_stop(&e->canary);
    LIST_EACH (i, &e->all) {
        struct watch *w = CONTAINER(i, struct watch, node);
        membership_lost_events(&w->membership);
        w->events->unsubscribed(w->arg);
    }
    if (ws->names_events && ws->wake_at == e) {
        ws->names_events->unsubscribed(ws->names_arg);
    }
}

bool watch_is_subscribed(const struct watch *w)
{
    return w->channel.confirmed;
}

static void watches_add_wake(struct watches *ws, struct ear *at)
{
    if (!ws->wake_at) {
        ws->wake_at = at;
        keys_wake(ws->wake_name, ws->context->options.space, ws->script->topo->db);
        pubsub_add(&at->pubsub, &ws->wake, ws->wake_name, NULL);
    }
}

void watches_move_wake(struct watches *ws, struct ear *to)
{
    struct ear *from = ws->wake_at;

    if (!from || from == to || !list_empty(&from->all)) {
        return;
    }

    bool was_heard = ws->wake.confirmed;

    pubsub_leave(&from->pubsub, &ws->wake);
    ws->wake_at = NULL;
    if (was_heard && ws->names_events) {
        ws->names_events->unsubscribed(ws->names_arg);
    }
    watches_add_wake(ws, to);
}

static void watch_add_channel(struct watch *w)
{
    bool by_keyspace = w->watches->context->options.notify == LAPSE_KEYSPACE;

    watches_add_wake(w->watches, w->ear);
    pubsub_add(&w->ear->pubsub, &w->channel, w->notices, by_keyspace ? w->triggers : NULL);
}

static void watch_subscribe(struct watch *w)
{
    struct watches *ws = w->watches;
    const struct lapse_options *options = &ws->context->options;
    int db = ws->script->topo->db;

    keys_notice(w->notices, options->space, w->queue, db);
    keys_pattern(w->triggers, options->space, w->queue, db);
    table_add(&ws->names, &w->named, span_of(w->queue));
    watch_add_channel(w);
}

static void watch_unsubscribe(struct watch *w)
{
    struct watches *ws = w->watches;

    table_remove(&ws->names, &w->named);
    pubsub_remove(&w->ear->pubsub, &w->channel);
}

/* ---- membership ---- */
static void on_ranked(void *arg, int64_t rank, int64_t n_members)
{
    struct watch *w = arg;
    alarm_set_rank(w->alarm, rank, n_members);
}

static void on_left(void *arg)
{
    struct watch *w = arg;
    w->events->ended(w->arg);
}

/* Redis may have forgotten us. */
static void watch_rejoin(struct watch *w)
{
    if (watch_is_subscribed(w)) {
        membership_join(&w->membership);
    } else {
        membership_leave(&w->membership);
    }
}

void watch_verify(struct watch *w)
{
    membership_verify(&w->membership);
}

void watch_set_free_slots(struct watch *w, bool any)
{
    if (w->free_slots == any) {
        return;
    }

    w->free_slots = any;
    membership_set_free_slots(&w->membership, any);
}

bool watch_owns(const struct watch *w, struct span id)
{
    return membership_owns(&w->membership, id);
}

bool watch_is_first(const struct watch *w)
{
    return membership_is_first(&w->membership);
}

/* ---- life ---- */
void watch_start(struct watch *w, const struct watch_spec *spec)
{
    static const struct membership_events events = {on_ranked, on_left};
    struct watches *ws = spec->ear->watches;
    struct membership_spec membership = {.all = &ws->memberships,
                                         .queue = spec->queue,
                                         .key = spec->key,
                                         .events = &events,
                                         .arg = w};

    *w = (struct watch){.watches = ws,
                        .ear = spec->ear,
                        .queue = spec->queue,
                        .alarm = spec->alarm,
                        .events = spec->events,
                        .arg = spec->arg};
    w->free_slots = true;
    w->subscribes = !(ws->context->options.flags & LAPSE_NO_EVENTS);

    membership_init(&w->membership, &membership);
    list_insert(&w->ear->all, &w->node);
    if (w->subscribes) {
        watch_subscribe(w);
    }
}

/* It leaves the list of watches of an ear. */
static void watch_leave_ear(struct watch *w)
{
    list_remove(&w->node);
    if (w->ear->canary_of == w) {
        ear_move_canary(w->ear);
    }
}

void watch_move(struct watch *w, struct ear *to)
{
    if (w->subscribes) {
        pubsub_leave(&w->ear->pubsub, &w->channel);
        w->events->unsubscribed(w->arg);
    }
    watch_leave_ear(w);

    w->ear = to;
    list_insert(&to->all, &w->node);
    if (w->subscribes) {
        watch_add_channel(w);
    }
}

void watch_stop(struct watch *w)
{
    membership_leave_for_good(&w->membership);
    if (w->subscribes) {
        watch_unsubscribe(w);
    }
    watch_leave_ear(w);
}

void watch_end(struct watch *w)
{
    membership_stop(&w->membership);
    list_remove(&w->node);
}

void watch_free(struct watch *w)
{
    membership_free(&w->membership);
}

bool watch_pending(const struct watch *w)
{
    return w->channel.leaving || membership_pending(&w->membership);
}

/* ---- ears ---- */
void ear_init(struct ear *e, struct watches *ws, struct node *node)
{
    static const struct pubsub_events events = {
        on_confirmed, on_message, on_expired, on_refused, on_failed, on_channel_left, on_down};
    bool by_keyspace = ws->context->options.notify == LAPSE_KEYSPACE;

    *e = (struct ear){.watches = ws, .node = node};
    canary_init(&e->canary, node, on_silent, e);
    list_init(&e->all);
    pubsub_init(&e->pubsub, &node->endpoint, CONN_SUBSCRIPTION, by_keyspace ? NULL : KEYS_EXPIRED,
                &events, e);
    if (!ws->first_ear) {
        ws->first_ear = e;
    }
}

void ear_up(struct ear *e)
{
    pubsub_start(&e->pubsub);
    canary_up(&e->canary);
    LIST_EACH (i, &e->all) {
        watch_rejoin(CONTAINER(i, struct watch, node));
    }
}

void ear_drain(struct ear *e)
{
    pubsub_ending(&e->pubsub);
    canary_stop(&e->canary);
    e->canary_of = NULL;
}

void ear_close(struct ear *e)
{
    pubsub_close(&e->pubsub);
    canary_stop(&e->canary);
}

/* ---- all watches ---- */
void watches_init(struct watches *ws, struct script *script, const char *member_name)
{
    *ws =
        (struct watches){.context = script->context, .script = script, .member_name = member_name};
    memberships_init(&ws->memberships, script, span_of(member_name));
    table_init(&ws->names);
}

void watches_on_told(struct watches *ws, void (*told)(void *arg, enum lapse_told what), void *arg)
{
    ws->memberships.told = told;
    ws->memberships.arg = arg;
}

void watches_hear_names(struct watches *ws, const struct names_events *events, void *arg)
{
    if (ws->names_events || (ws->context->options.flags & LAPSE_NO_EVENTS)) {
        return;
    }

    ws->names_events = events;
    ws->names_arg = arg;
    watches_add_wake(ws, ws->first_ear);
    if (ws->wake.confirmed) {
        events->subscribed(arg);
    }
}

void watches_close(struct watches *ws)
{
    memberships_stop(&ws->memberships);
    table_free(&ws->names);
}

void watches_free(struct watches *ws)
{
    memberships_close(&ws->memberships);
}
