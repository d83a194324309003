/* SPDX-License-Identifier: MIT */
/* One key holds the names of all listeners of a space, each until its heartbeat ends; the answer to
 * ours says which there are. A queue names its listeners too, but only who enters or leaves it
 * writes there. So a queue costs nothing for as long as its listeners stay the same, and a listener
 * that dies is dead in all its queues at once: 15 s after its last heartbeat, when we ask for that
 * reason.
 *
 * The names have a version. Each heartbeat brings the one that we know, and is answered with names
 * only where they have changed since, or what they were told: so a heartbeat costs Redis the same
 * among a thousand listeners as among two.
 *
 * A name that a queue brings and that we do not know is most likely new. It counts as alive until
 * Redis has been asked, which happens soon.
 *
 * Redis may forget us while we live: this process was stopped, Redis's clock was set forward, or
 * its data are gone. We learn of it by the next heartbeat. Then all queues are to be read, as
 * others may have taken us for dead, or Redis lost the queues too. */
#include "listen/peers.h"
#include "base/mem.h"

enum {
    LIFE_MS = 15000,
    BEAT_MS = LIFE_MS / 3,
    JITTER_MS = 500,
    RETRY_MS = 300,
    APART_MS = 200,
    GONE_MS = 60000,
    DIGITS = 16 /* at the end of a name */
};

static int64_t in_ms(int64_t ms)
{
    return clock_us() + ms * 1000;
}

static int64_t earlier(int64_t a_us, int64_t b_us)
{
    return a_us < b_us ? a_us : b_us;
}

/* ---- the peers ---- */
static void peer_free(struct peers *ps, struct peer *p)
{
    list_remove(&p->node);
    table_remove(&ps->names, &p->named);
    mem_free(p);
}

static struct peer *peer_new(struct peers *ps, struct span name)
{
    struct peer *p = mem_new(sizeof *p, name.len);

    if (!p) {
        return NULL;
    }

    memcpy(p->name, name.at, name.len);
    p->alive = true;
    p->since_us = clock_us();
    list_insert(&ps->all, &p->node);
    table_add(&ps->names, &p->named, (struct span){p->name, name.len});

    return p;
}

static struct peer *peers_find(const struct peers *ps, struct span name)
{
    struct table_node *found = table_find(&ps->names, name);

    return found ? CONTAINER(found, struct peer, named) : NULL;
}

static struct span name_digits(struct span name)
{
    if (name.len > DIGITS) {
        return (struct span){name.at + name.len - DIGITS, DIGITS};
    }

    return name;
}

static int bytes_order(struct span a, struct span b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = memcmp(a.at, b.at, len);

    if (order != 0) {
        return order;
    }

    return (a.len > b.len) - (a.len < b.len);
}

int peer_order(struct span a, struct span b)
{
    int order = bytes_order(name_digits(a), name_digits(b));

    return order != 0 ? order : bytes_order(a, b);
}

bool peer_is_gone(const struct peer *p)
{
    bool long_ago = clock_us() - p->since_us >= GONE_MS * INT64_C(1000);

    return !p->alive && (!p->ever_listed || long_ago);
}

/* ---- when to ask ---- */
static void peers_set_timer(struct peers *ps)
{
    int64_t apart_us = ps->asked_us + APART_MS * INT64_C(1000);
    int64_t at_us = ps->next_us > apart_us ? ps->next_us : apart_us;
    int64_t left_us = at_us - clock_us();

    if (ps->n_entered > 0 && !ps->heartbeat.request.pending && !ps->ended) {
        timer_set(&ps->timer, left_us > 0 ? left_us / 1000 + 1 : 0);
    }
}

static void peers_ask(struct peers *ps, bool lives)
{
    struct heartbeat heartbeat = {
        .name = ps->name, .life_ms = lives ? LIFE_MS : 0, .told = ps->told, .known = ps->version};

    timer_stop(&ps->timer);
    ps->lives = lives;
    ps->asked_us = clock_us();
    ps->heartbeat.request.until_us = in_ms(ps->context->options.reply_ms);
    script_heartbeat(ps->script, &ps->heartbeat, span_of(ps->key), &heartbeat);
}

static bool peers_can_ask(const struct peers *ps)
{
    return !ps->ended && !ps->heartbeat.request.pending &&
           node_up(node_of(ps->script, span_of(ps->key)));
}

static void on_time(void *arg)
{
    struct peers *ps = arg;

    if (ps->n_entered > 0 && peers_can_ask(ps)) {
        peers_ask(ps, true);
    }
}

void peers_enter(struct peers *ps)
{
    ps->n_entered++;
    if (ps->n_entered == 1 && peers_can_ask(ps)) {
        peers_ask(ps, true);
    }
}

void peers_leave(struct peers *ps)
{
    ps->n_entered--;
    if (ps->n_entered == 0 && ps->lives && peers_can_ask(ps)) {
        peers_ask(ps, false);
    }
}

void peers_up(struct peers *ps)
{
    ps->was_told = false; /* on each connection we enter all queues again anyway */
    if (ps->n_entered > 0 && peers_can_ask(ps)) {
        peers_ask(ps, true);
    }
}

/* What others were told decides which jobs are ours. Of many listeners, each asks a little later
 * than the others. */
void peers_look(struct peers *ps, struct span name)
{
    bool is_ours = span_eq(name, ps->name);
    int64_t spread_ms = 0;

    if (!is_ours && !peers_find(ps, name)) {
        return;
    }

    if (!is_ours) {
        spread_ms = (int64_t)(clock_random() % (ps->names.n + 1));
    }
    ps->next_us = earlier(ps->next_us, in_ms(spread_ms));
    peers_set_timer(ps);
}

struct peer *peers_use(struct peers *ps, struct span name)
{
    struct peer *p = peers_find(ps, name);

    if (!p) {
        p = peer_new(ps, name);
        ps->next_us = 0;
        peers_set_timer(ps);
    }
    if (p) {
        p->n_queues++;
    }

    return p;
}

void peers_release(struct peers *ps, struct peer *p)
{
    p->n_queues--;
    if (p->n_queues == 0 && !p->alive) {
        peer_free(ps, p);
    }
}

/* ---- answers ---- */
static bool peers_reply(const struct heartbeat_reply *reply, size_t i, struct live_listener *out)
{
    return script_live_listener(heartbeat_reply_name(reply, i), heartbeat_reply_end_ms(reply, i),
                                out) &&
           out->name.len < PEER_NAME_MAX;
}

/* Who dies next is to be dead when its heartbeat ends: live ones will have sent another by then. */
static int64_t peers_next_us(const struct peers *ps, const struct heartbeat_reply *reply)
{
    const struct node *node = node_of(ps->script, span_of(ps->key));
    int64_t next_us = in_ms(BEAT_MS - (int64_t)(clock_random() % (JITTER_MS + 1)));

    if (reply->next_end_ms > 0) {
        next_us = earlier(next_us, node_mono_us(node, (reply->next_end_ms + 1) * 1000));
    }

    return next_us;
}

static bool peers_list(struct peers *ps, const struct live_listener *one)
{
    struct peer *p = peers_find(ps, one->name);

    if (!p) {
        p = peer_new(ps, one->name);
    }
    if (!p) {
        ps->version = 0;
        return false;
    }

    bool was_alive = p->alive && p->quiet == (one->told != LAPSE_TOLD_GO_ON);

    p->quiet = one->told != LAPSE_TOLD_GO_ON;
    p->listed = true;
    p->ever_listed = true;
    p->alive = true;

    return !was_alive;
}

/* Those that are not listed are dead, unless we heard of them after we asked. */
static bool peers_bury(struct peers *ps)
{
    bool changed = false;

    LIST_EACH (i, &ps->all) {
        struct peer *p = CONTAINER(i, struct peer, node);
        bool is_newer = !p->ever_listed && p->since_us >= ps->heartbeat.request.sent_us;

        if (p->alive && !p->listed && !is_newer) {
            p->alive = false;
            p->since_us = clock_us();
            changed = true;
        }
        if (is_newer) {
            ps->next_us = 0;
        }

        if (!p->alive && p->n_queues == 0) {
            peer_free(ps, p);
        }
    }

    return changed;
}

/* true: others are alive than before. */
static bool peers_read_names(struct peers *ps, const struct heartbeat_reply *reply)
{
    enum lapse_told told = ps->told;
    bool changed = false;

    LIST_EACH (i, &ps->all) {
        CONTAINER(i, struct peer, node)->listed = false;
    }

    ps->version = reply->version;
    for (size_t i = 0; i < reply->n_jobs; i++) {
        struct live_listener one;
        if (peers_reply(reply, i, &one)) {
            changed = peers_list(ps, &one) || changed;
            told = span_eq(one.name, ps->name) ? one.told : told;
        }
    }

    if (told != ps->told) {
        ps->told = told;
        ps->events->told(ps->arg, told);
    }

    return changed;
}

static void peers_read(struct peers *ps, const struct heartbeat_reply *reply)
{
    bool changed = reply->version != ps->version && peers_read_names(ps, reply);

    changed = peers_bury(ps) || changed;
    if (changed) {
        ps->events->changed(ps->arg);
    }
}

static void on_answer(struct heartbeat_request *r, int err, const struct heartbeat_reply *reply)
{
    struct peers *ps = CONTAINER(r, struct peers, heartbeat);
    bool forgotten = false;

    if (ps->ended) {
        return;
    }

    if (err) {
        ps->next_us = in_ms(RETRY_MS);
    } else if (ps->lives) {
        forgotten = ps->was_told && !reply->was_alive;
        ps->was_told = true;
        ps->next_us = peers_next_us(ps, reply);
        peers_read(ps, reply);
    } else {
        ps->was_told = false;
        ps->next_us = 0;
    }

    if (forgotten) {
        ps->events->forgotten(ps->arg);
    }

    /* what was asked for while the answer was on its way */
    if (ps->n_entered == 0 && ps->lives && !err && peers_can_ask(ps)) {
        peers_ask(ps, false);
    }
    peers_set_timer(ps);
}

/* ---- life ---- */
void peers_stop(struct peers *ps)
{
    ps->ended = true;
    timer_stop(&ps->timer);
}

void peers_init(struct peers *ps, struct script *script, struct span name,
                const struct peers_events *events, void *arg)
{
    *ps = (struct peers){
        .context = script->context, .script = script, .name = name, .events = events, .arg = arg};
    keys_alive(ps->key, ps->context->options.space);
    list_init(&ps->all);
    table_init(&ps->names);
    ps->heartbeat.end = on_answer;
    timer_init(&ps->timer, ps->context->loop, on_time, ps);
}

void peers_close(struct peers *ps)
{
    LIST_EACH (i, &ps->all) {
        mem_free(CONTAINER(i, struct peer, node));
    }
    table_free(&ps->names);
}
