/* SPDX-License-Identifier: MIT */
/* The map says which master has which slots. It is asked for
 *
 *   at the start, of a place of the URL
 *   when a node says that another one has a slot (MOVED), which is believed at once
 *   when a connection for commands is lost, or cannot be made
 *   when a node can do nothing for a slot: CLUSTERDOWN, LOADING, MASTERDOWN, READONLY
 *   each second in which a queue is handled, since no subscriber hears that a slot has gone
 *
 * and at most ten times a second. Any master that is up may be asked, each in its turn, so that one
 * which is cut off from the others is believed for a second at most, if we can reach who follows
 * it. While none is up, a connection of its own goes from place to place: to the masters of the
 * map, then to the hosts of the URL.
 *
 * It does so each second, too, while a slot is used whose master is away: to the places that are
 * not asked as nodes. For where the source of a move has died, the target goes on to name it, or
 * none; the others name the replica that followed.
 *
 * A node is made when it is first used, and freed when it was not for as long as an empty queue is
 * left alone.
 *
 * A redirection of the kind ASK is never followed. It comes while a slot moves, with a part of its
 * keys here and the others there: a script would run on a part of the queue. So that slot pauses
 * until its move has ended. All these errors come before a script has begun: nothing has happened.
 */
#include "redis/masters.h"
#include "base/error.h"
#include "base/mem.h"
#include <string.h>

enum {
    APART_MS = 100, /* from one question to the next */
    TICK_MS = 1000,
    PATIENCE_MS = 1000, /* with a place that is asked */
    MOVED_MAX = 5,      /* in a row that are followed without a pause */
    MOVING_MIN_MS = 20,
    MOVING_MAX_MS = 100,
    DOWN_MIN_MS = 8,
    DOWN_MAX_MS = 500
};

static void masters_want_map(struct masters *c);

static struct master *master_of(struct node *n)
{
    return CONTAINER(n, struct master, node);
}

static bool is_nowhere(const struct masters *c, const struct node *n)
{
    return n == &c->nowhere;
}

/* We tried to reach it, and failed. */
static bool node_is_away(const struct node *n)
{
    return !node_up(n) && n->commands.attempts.n_failed > 0;
}

/* ---- nodes ---- */
static void on_slots(struct call *call, int err, const struct redisReply *reply);

static void on_up(void *arg, struct node *n)
{
    struct masters *c = arg;
    c->events->up(c->arg, n);
}

static void on_down(void *arg, struct node *n)
{
    (void)n;
    masters_want_map(arg);
}

static void on_error(void *arg, struct node *n, struct span error);

static struct node *masters_find_node(const struct masters *c, const struct slot_place *place)
{
    LIST_EACH (i, &c->topo->nodes) {
        struct node *n = topo_node_at(i);
        if (!is_nowhere(c, n) && slot_place_eq(&master_of(n)->place, place)) {
            return n;
        }
    }
    return NULL;
}

/* NULL: there is no memory. */
static struct node *masters_make_node(struct masters *c, const struct slot_place *place)
{
    static const struct node_events events = {.up = on_up, .down = on_down, .error = on_error};
    struct master *m = mem_new(sizeof *m, 0);

    if (!m) {
        return NULL;
    }

    m->masters = c;
    m->place = *place;
    m->number = ++c->n_made;
    m->used_us = clock_us();
    m->question.end = on_slots;
    int err = node_init(&m->node, c->context, c->address, &events, c);
    ASSERT(!err); /* only Sentinel needs memory */
    endpoint_set_place(&m->node.endpoint, place->host, place->port);
    topo_add(c->topo, &m->node);
    node_start(&m->node);
    return &m->node;
}

/* The nodes of the places of the map, those that there are. */
static bool masters_place_nodes(struct masters *c)
{
    struct node **nodes = mem_grow(c->nodes, c->map.n_places, sizeof *nodes);

    if (!nodes) {
        return false;
    }
    c->nodes = nodes;
    c->n_nodes = c->map.n_places;
    for (unsigned i = 0; i < c->n_nodes; i++) {
        c->nodes[i] = masters_find_node(c, &c->map.places[i]);
    }
    return true;
}

static struct node *masters_node_at(struct masters *c, unsigned i)
{
    if (i >= c->n_nodes && !masters_place_nodes(c)) {
        return NULL; /* nor was there memory when the map came */
    }
    if (!c->nodes[i] && !c->closed) {
        c->nodes[i] = masters_make_node(c, &c->map.places[i]);
    }
    return c->nodes[i];
}

/* The next question wakes the loop. */
void masters_repeat_change(struct masters *c)
{
    c->changed = true;
    masters_want_map(c);
}

static void masters_use(struct masters *c)
{
    c->is_used = true;
    if (!timer_on(&c->tick) && !c->closed) {
        timer_set(&c->tick, TICK_MS);
    }
}

struct node *masters_node(struct masters *c, unsigned slot)
{
    unsigned owner = c->map.owner[slot];
    struct node *n = owner ? masters_node_at(c, owner - 1) : NULL;

    masters_use(c);
    c->lacks_owner = c->lacks_owner || (!owner && c->map.n_places > 0);
    if (owner && !n && !c->closed) {
        masters_repeat_change(c); /* there was no memory: who asks is to ask again */
    }
    if (!n) {
        return &c->nowhere;
    }
    master_of(n)->is_used = true;
    return n;
}

static struct node *masters_find(struct topo *t, struct span key)
{
    return masters_node(t->masters, slot_of_key(key));
}

static void masters_free_node(struct masters *c, struct node *n)
{
    for (unsigned i = 0; i < c->n_nodes; i++) {
        if (c->nodes[i] == n) {
            c->nodes[i] = NULL;
        }
    }
    list_remove(&n->of_topo);
    node_close(n);
    mem_free(master_of(n));
}

/* Closing it ends no call, and nobody knows it. */
static bool node_is_free(const struct node *n)
{
    return n->n_holders == 0 && list_empty(&n->commands.calls);
}

static void masters_reap(struct masters *c)
{
    int64_t now_us = clock_us();
    int64_t idle_us = context_rarely_ms(c->context) * 1000;

    LIST_EACH (i, &c->topo->nodes) {
        struct node *n = topo_node_at(i);
        struct master *m = master_of(n);

        if (is_nowhere(c, n)) {
            continue;
        }

        m->used_us = m->is_used ? now_us : m->used_us;
        m->is_used = false;
        if (now_us - m->used_us < idle_us) {
            continue;
        }

        c->events->idle(c->arg, n);
        if (node_is_free(n)) {
            masters_free_node(c, n);
        }
    }
}

/* ---- the map ---- */
static void masters_changed(struct masters *c)
{
    if (!masters_place_nodes(c)) {
        c->n_nodes = 0; /* it is tried again when a node is looked for */
    }
    c->changed = true;
    c->n_changes++;
}

static bool slot_has_same_owner(const struct slot_map *a, const struct slot_map *b, unsigned slot)
{
    const struct slot_place *of_a = slot_map_owner(a, slot);
    const struct slot_place *of_b = slot_map_owner(b, slot);

    return of_a && of_b && slot_place_eq(of_a, of_b);
}

static void masters_gain(struct masters *c, const struct slot_map *before)
{
    int64_t now_us = clock_us();

    for (unsigned slot = 0; slot < SLOT_COUNT; slot++) {
        if (!slot_has_same_owner(before, &c->map, slot)) {
            c->gained_us[slot] = now_us;
        }
    }
}

/* Who is up keeps a slot for which none or one that is away is named: had it given the slot away,
 * it would say so (MOVED). */
static bool masters_keeps(const struct masters *c, const struct slot_place *owner,
                          const struct slot_place *named)
{
    const struct node *n = masters_find_node(c, owner);
    const struct node *other = named ? masters_find_node(c, named) : NULL;

    return n && node_up(n) && (!named || (other && node_is_away(other)));
}

static void masters_keep_slots(const struct masters *c, struct slot_map *next)
{
    for (unsigned slot = 0; slot < SLOT_COUNT; slot++) {
        const struct slot_place *owner = slot_map_owner(&c->map, slot);
        if (owner && !slot_has_same_owner(&c->map, next, slot) &&
            masters_keeps(c, owner, slot_map_owner(next, slot))) {
            slot_map_set(next, slot, owner); /* no memory: it is as the map says */
        }
    }
}

/* NULL: it was taken, or says what is known. */
static const char *masters_take_map(struct masters *c, const struct redisReply *reply,
                                    const struct slot_place *asked)
{
    struct slot_map *next = mem_new(sizeof *next, 0);
    const char *why = next ? slot_map_read(next, reply, asked) : slot_map_no_memory;

    if (!why && !slot_map_eq(next, &c->map)) {
        masters_keep_slots(c, next);
    }
    if (!why && !slot_map_eq(next, &c->map)) {
        struct slot_map old = c->map;
        c->map = *next;
        *next = old;
        masters_changed(c);
        masters_gain(c, next);
    }

    if (next) {
        slot_map_free(next);
        mem_free(next);
    }
    return why;
}

bool masters_take_change(struct masters *c)
{
    bool changed = c->changed;

    c->changed = false;
    return changed;
}

/* ---- who is asked ---- */
/* One that has no slots any more may have come back, and not know that. */
static bool masters_may_ask(const struct masters *c, const struct node *n)
{
    bool has_slots = false;

    for (unsigned i = 0; i < c->n_nodes; i++) {
        has_slots = has_slots || c->nodes[i] == n;
    }
    return has_slots && node_up(n);
}

static bool masters_any_may_ask(const struct masters *c)
{
    LIST_EACH (i, &c->topo->nodes) {
        if (masters_may_ask(c, topo_node_at(i))) {
            return true;
        }
    }
    return false;
}

/* ---- places that are asked by a connection of its own ---- */
static struct slot_place place_of(const struct endpoint *e)
{
    struct slot_place place = {.port = e->address.port};

    snprintf(place.host, sizeof place.host, "%s", e->address.host);
    return place;
}

static unsigned masters_n_places(const struct masters *c)
{
    return c->map.n_places + c->address->n_seeds;
}

static void masters_seed_to(struct masters *c, unsigned at)
{
    c->at = at % masters_n_places(c);
    if (c->at < c->map.n_places) {
        const struct slot_place *place = &c->map.places[c->at];
        endpoint_set_place(&c->endpoint, place->host, place->port);
    } else {
        const struct address_place *seed = &c->address->seeds[c->at - c->map.n_places];
        endpoint_set_place(&c->endpoint, seed->host, seed->port);
    }
}

/* Once for each connection, whether it was made or not. */
static void masters_leave_seed(struct masters *c)
{
    if (c->left_us == c->seed.liveness.started_us || !c->endpoint.is_asked) {
        return;
    }

    c->left_us = c->seed.liveness.started_us;
    c->n_silent++;
    if (c->n_silent == masters_n_places(c)) {
        c->n_silent = 0;
        if (!topo_any_up(c->topo)) {
            report_no_seed(&c->seed.report);
        }
    }
    masters_seed_to(c, c->at + 1);
}

static void masters_refuse_seed(struct masters *c, const char *why)
{
    report_seed(&c->seed.report, why);
    if (why != slot_map_no_memory) {
        attempts_garbled(&c->seed.attempts);
    }
    conn_drop(&c->seed);
}

static void masters_ask_seed(struct masters *c)
{
    const char *argv[] = {"CLUSTER", "SLOTS"};

    c->endpoint.is_asked = true;
    c->endpoint.is_spare = masters_any_may_ask(c);
    if (!conn_up(&c->seed)) {
        conn_start(&c->seed);
    } else if (!c->seed_is_asked) {
        c->seed_is_asked = conn_send(&c->seed, &c->question, 2, argv, NULL);
    }
}

/* A place that no node has; those that there are try themselves. */
static void masters_ask_spare(struct masters *c)
{
    for (unsigned i = 0; i < masters_n_places(c) && !c->endpoint.is_asked; i++) {
        struct slot_place place = place_of(&c->endpoint);
        if (!masters_find_node(c, &place)) {
            masters_ask_seed(c);
            return;
        }
        masters_seed_to(c, c->at + 1);
    }
}

static void on_seed_up(void *arg)
{
    struct masters *c = arg;

    c->seed_is_asked = false;
    masters_ask_seed(c);
}

static void on_seed_down(void *arg)
{
    masters_leave_seed(arg);
}

/* The other addresses of a name are tried before. */
static void on_seed_failed(void *arg)
{
    struct masters *c = arg;

    if (!c->endpoint.is_spare) {
        c->nowhere.endpoint.login_err = c->endpoint.login_err;
    }
    if (!hosts_left(&c->seed.hosts)) {
        masters_leave_seed(c);
    }
}

/* ---- questions ---- */
/* Why an answer is no map; NULL: it is. */
static const char *masters_hear(struct masters *c, const struct endpoint *from,
                                const struct redisReply *reply, char text[LOG_VALUE])
{
    struct slot_place asked = place_of(from);
    struct span error;

    if (!reply_error(reply, &error)) {
        return masters_take_map(c, reply, &asked);
    }

    if (redis_error_of(error) == REDIS_ERROR_DENIED && !from->is_spare) {
        c->nowhere.endpoint.login_err = LAPSE_EDENIED;
    }
    if (span_starts(error, "ERR This instance has cluster support disabled")) {
        return "it is no node of a cluster: give redis:// for a single Redis";
    }
    return log_escape(text, LOG_VALUE, error.at, error.len);
}

static void masters_is_known(struct masters *c)
{
    c->nowhere.endpoint.login_err = 0;
    c->endpoint.login_err = 0;
    c->n_silent = 0;
    report_seed_answers(&c->seed.report);
}

static void on_slots(struct call *call, int err, const struct redisReply *reply)
{
    struct master *m = CONTAINER(call, struct master, question);
    struct masters *c = m->masters;
    char text[LOG_VALUE];

    m->is_asked = false;
    if (err || c->closed) {
        return; /* down() asks another */
    }

    const char *why = masters_hear(c, &m->node.endpoint, reply, text);
    if (why) {
        report_no_map(&m->node.commands.report, why);
    } else {
        masters_is_known(c);
    }
}

static void on_seed_slots(struct call *call, int err, const struct redisReply *reply)
{
    struct masters *c = CONTAINER(call, struct masters, question);
    char text[LOG_VALUE];

    c->seed_is_asked = false;
    if (err || c->closed) {
        return;
    }

    const char *why = masters_hear(c, &c->endpoint, reply, text);
    if (why) {
        masters_refuse_seed(c, why);
        return;
    }

    masters_is_known(c);
    c->endpoint.is_asked = false;
    conn_drop(&c->seed);
    masters_seed_to(c, c->at + 1);
}

/* The next one that is up, behind those that were asked before. */
static bool masters_ask_node(struct masters *c)
{
    const char *argv[] = {"CLUSTER", "SLOTS"};

    LIST_EACH (i, &c->topo->nodes) {
        struct node *n = topo_node_at(i);
        if (!masters_may_ask(c, n) || master_of(n)->is_asked) {
            continue;
        }

        struct master *m = master_of(n);
        m->is_asked = conn_send(&n->commands, &m->question, 2, argv, NULL);
        if (m->is_asked) {
            list_remove(i);
            list_insert(&c->topo->nodes, i);
            conn_flush(&n->commands);
            return true;
        }
    }
    return false;
}

static void on_ask(void *arg)
{
    struct masters *c = arg;

    c->asked_us = clock_us();
    if (!masters_ask_node(c)) {
        masters_ask_seed(c);
    }
}

static void masters_want_map(struct masters *c)
{
    int64_t left_ms = APART_MS - (clock_us() - c->asked_us) / 1000;

    if (!c->closed && !timer_on(&c->ask)) {
        timer_set(&c->ask, left_ms > 0 ? left_ms : 0);
    }
}

/* Is a node held, so that it is to be known at once that a slot has another? */
static bool masters_are_held(const struct masters *c)
{
    LIST_EACH (i, &c->topo->nodes) {
        struct node *n = topo_node_at(i);
        if (!is_nowhere(c, n) && n->n_holders > 0) {
            return true;
        }
    }
    return false;
}

/* Since the last tick a slot was used that nobody has, or whose master is away. */
static bool masters_lack_one(const struct masters *c)
{
    LIST_EACH (i, &c->topo->nodes) {
        struct node *n = topo_node_at(i);
        if (!is_nowhere(c, n) && master_of(n)->is_used && node_is_away(n)) {
            return true;
        }
    }
    return c->lacks_owner;
}

/* Is there a node that may have to be freed? */
static bool masters_are_there(const struct masters *c)
{
    const struct list *behind_nowhere = c->nowhere.of_topo.next; /* which is the first */

    return behind_nowhere != &c->topo->nodes;
}

static void on_tick(void *arg)
{
    struct masters *c = arg;

    if (c->is_used || masters_are_held(c)) {
        masters_want_map(c);
    }
    if (masters_lack_one(c)) {
        masters_ask_spare(c);
    }
    c->is_used = false;
    c->lacks_owner = false;
    masters_reap(c);
    if (masters_are_there(c)) {
        timer_set(&c->tick, TICK_MS);
    }
}

/* ---- errors ---- */
static void masters_moved(struct masters *c, const struct slot_redirect *r)
{
    const struct slot_place *owner = slot_map_owner(&c->map, r->slot);

    if (owner && slot_place_eq(owner, &r->place)) {
        return;
    }
    if (slot_map_set(&c->map, r->slot, &r->place)) {
        masters_changed(c);
        c->gained_us[r->slot] = clock_us();
    }
}

static void on_error(void *arg, struct node *n, struct span error)
{
    struct masters *c = arg;
    struct slot_place asked = place_of(&n->endpoint);
    struct slot_redirect redirect;

    if (slot_redirect_read(&redirect, error, &asked) && !redirect.asks) {
        masters_moved(c, &redirect);
        masters_want_map(c);
    }
}

static void masters_wake_at(struct masters *c, int64_t at_us)
{
    if (!timer_on(&c->pause) || at_us < c->pause_us) {
        c->pause_us = at_us;
        timer_set(&c->pause, (at_us - clock_us()) / 1000 + 1);
    }
}

static void slot_pause(struct masters *c, struct slot_pause *p, unsigned min_ms, unsigned max_ms)
{
    unsigned wait_ms = p->wait_ms < min_ms ? min_ms : 2U * p->wait_ms;

    if (p->until_us > clock_us()) {
        return; /* another request was answered before */
    }

    p->wait_ms = (uint16_t)(wait_ms < max_ms ? wait_ms : max_ms);
    p->until_us = clock_us() + p->wait_ms * INT64_C(1000);
    masters_wake_at(c, p->until_us);
}

/* Where several calls were on their way, each hears it, and that is one move. A node that names
 * itself does so each time. */
static void slot_moved(struct masters *c, unsigned slot, struct node *by)
{
    struct slot_pause *p = &c->pauses[slot];
    const struct master *m = master_of(by);
    const struct slot_place *owner = slot_map_owner(&c->map, slot);
    bool is_same = p->n_moved > 0 && p->said_by == m->number;

    c->context->stats.moved++;
    if (is_same && owner && !slot_place_eq(owner, &m->place)) {
        return;
    }

    p->said_by = m->number;
    if (p->n_moved < MOVED_MAX) {
        p->n_moved++;
    } else {
        slot_pause(c, p, DOWN_MIN_MS, DOWN_MAX_MS);
    }
}

bool masters_refused(struct masters *c, unsigned slot, struct node *by, enum redis_error kind)
{
    struct slot_pause *p = &c->pauses[slot];

    switch (kind) {
    case REDIS_ERROR_MOVED: slot_moved(c, slot, by); break;
    case REDIS_ERROR_MOVING: slot_pause(c, p, MOVING_MIN_MS, MOVING_MAX_MS); break;
    case REDIS_ERROR_CLUSTER_DOWN:
    case REDIS_ERROR_LOADING:
    case REDIS_ERROR_MASTER_DOWN:
    case REDIS_ERROR_READ_ONLY:
        slot_pause(c, p, DOWN_MIN_MS, DOWN_MAX_MS);
        masters_want_map(c);
        break;
    default: return false;
    }
    return true;
}

void masters_answered(struct masters *c, unsigned slot)
{
    struct slot_pause *p = &c->pauses[slot];

    if (p->wait_ms || p->n_moved) {
        *p = (struct slot_pause){.until_us = 0};
        c->n_changes++;
    }
}

/* Some slot may pause for longer. */
static void on_pause_over(void *arg)
{
    struct masters *c = arg;
    int64_t now_us = clock_us();
    int64_t first_us = INT64_MAX;

    for (unsigned slot = 0; slot < SLOT_COUNT; slot++) {
        int64_t until_us = c->pauses[slot].until_us;
        if (until_us > now_us && until_us < first_us) {
            first_us = until_us;
        }
    }
    if (first_us < INT64_MAX) {
        masters_wake_at(c, first_us);
    }
}

/* ---- life ---- */
int masters_init(struct masters *c, struct topo *t, struct context *context,
                 const struct address *address, const struct masters_events *events, void *arg)
{
    static const struct node_events of_nowhere = {.up = NULL};
    static const struct conn_events of_seed = {
        .up = on_seed_up, .down = on_seed_down, .failed = on_seed_failed};

    *c = (struct masters){
        .topo = t, .context = context, .address = address, .events = events, .arg = arg};
    c->pauses = mem_new(SLOT_COUNT * sizeof *c->pauses, 0);
    c->gained_us = mem_new(SLOT_COUNT * sizeof *c->gained_us, 0);
    if (!c->pauses || !c->gained_us) {
        mem_free(c->pauses);
        mem_free(c->gained_us);
        return LAPSE_ENOMEM;
    }

    int err = node_init(&c->nowhere, context, address, &of_nowhere, c);
    ASSERT(!err);
    topo_init(t, &c->nowhere);
    t->find = masters_find;
    t->masters = c;

    timer_init(&c->ask, context->loop, on_ask, c);
    timer_init(&c->tick, context->loop, on_tick, c);
    timer_init(&c->pause, context->loop, on_pause_over, c);
    endpoint_init(&c->endpoint, context, address);
    conn_init(&c->seed, &c->endpoint, CONN_SEED, &of_seed, c);
    c->question.end = on_seed_slots;
    if (context->options.reply_ms > PATIENCE_MS) {
        conn_set_reply_ms(&c->seed, PATIENCE_MS);
    }
    masters_seed_to(c, 0);
    return 0;
}

void masters_start(struct masters *c)
{
    on_ask(c);
    masters_use(c);
}

void masters_close(struct masters *c)
{
    c->closed = true;
    timer_stop(&c->ask);
    timer_stop(&c->tick);
    timer_stop(&c->pause);
    conn_close(&c->seed, LAPSE_ELOST);
    LIST_EACH (i, &c->topo->nodes) {
        node_close(topo_node_at(i));
    }
}

void masters_free(struct masters *c)
{
    LIST_EACH (i, &c->topo->nodes) {
        struct node *n = topo_node_at(i);
        list_remove(i);
        if (!is_nowhere(c, n)) {
            mem_free(master_of(n));
        }
    }
    mem_free(c->nodes);
    mem_free(c->pauses);
    mem_free(c->gained_us);
    slot_map_free(&c->map);
}
