/* SPDX-License-Identifier: MIT */
/* Sends requests to run scripts, and gives each its answer.
 *
 * Requests wait in a list until script_flush(), which the handle calls before the loop sleeps. It
 * sends the first one with those that may travel with it (batch.c), then the next one. A script
 * goes by its hash, or by its text while Redis may not know it. What cannot go now is set aside
 * until more can be sent, or elsewhere.
 *
 * Requests of one id take effect in the order in which they were submitted. Any answer can bring a
 * request back: the script had read enough for one call, Redis had forgotten the script, or it
 * refused a settle, which is repeated. What was sent behind that request would then be ahead of it.
 * So at most one request of an id is on its way, and the others wait for its answer. To recall
 * those that were sent behind it is no alternative, for Redis may have run them; to sort by age
 * when one comes back would help only those that were not sent. */
#include "script/script.h"
#include "base/error.h"
#include "base/mem.h"
#include "job/keys.h"
#include "redis/redis_error.h"
#include "script/refusal.h"
#include <stdio.h>

_Static_assert(SCRIPTS_N <= 64, "a node has a bit for each script");

enum {
    CALL_ARGS = 7, /* besides those of requests: EVALSHA, the hash, 2, the keys, ARGV[1], ARGV[2] */
    SHA_LEN = 40,
    CHECK_MS = 50,
    BACKOFF_MS = 150,
    BACKOFF_MAX_MS = 1200
};

/* ---- the arguments of a call ---- */
static bool argv_reserve(struct script_argv *argv, size_t cap)
{
    argv->n = 0;
    if (cap <= argv->cap) {
        return true;
    }

    const char **texts = mem_grow(argv->texts, cap, sizeof *texts);
    if (!texts) {
        return false;
    }
    argv->texts = texts;

    size_t *lens = mem_grow(argv->lens, cap, sizeof *lens);
    if (!lens) {
        return false;
    }
    argv->lens = lens;

    argv->cap = cap;
    return true;
}

static void argv_free(struct script_argv *argv)
{
    mem_free(argv->texts);
    mem_free(argv->lens);
}

static void argv_add(struct script_argv *argv, struct span s)
{
    argv->texts[argv->n] = s.at;
    argv->lens[argv->n] = s.len;
    argv->n++;
}

static void argv_add_text(struct script_argv *argv, const char *text)
{
    argv_add(argv, span_of(text));
}

/* ---- requests that wait ---- */
/* Where it is to go. */
static struct node *request_node(const struct script *s, const struct script_request *r)
{
    return s->topo->masters ? masters_node(s->topo->masters, r->slot) : node_of(s, r->key);
}

static void schedule_check(struct script *s)
{
    if (s->n_unsent > 0 && !timer_on(&s->check)) {
        timer_set(&s->check, CHECK_MS);
    }
}

static void request_put(struct list *at, struct script_request *r)
{
    r->sent_us = 0;
    r->backs_off = false;
    list_insert(at, &r->node);
}

/* Was a submitted before b, or does it wait for no other? */
static bool request_comes_before(const struct script_request *a, const struct script_request *b)
{
    bool a_urgent = script_request_is_urgent(a);

    if (a_urgent != script_request_is_urgent(b)) {
        return a_urgent;
    }
    return a->number < b->number;
}

/* The next request of the same id may go, unless it went along with this one. */
static void request_unblock_next(struct script *s, struct script_request *r)
{
    if (!script_request_is_ordered(r)) {
        return;
    }

    struct place *place = order_leave(&s->order, &r->place);
    if (!place) {
        return;
    }

    struct script_request *next = CONTAINER(place, struct script_request, place);
    if (next->sent_us == 0 && !next->withheld) {
        list_remove(&next->node);
        request_put(&s->unsent, next);
    }
}

static void request_end(struct script *s, struct script_request *r, int err,
                        const struct redisReply *answer)
{
    ASSERT(r->pending);
    r->pending = false;
    request_unblock_next(s, r);
    r->end(r, err, answer);
}

static uint32_t request_hash(const struct script_request *r)
{
    struct span by = r->order_by.at ? r->order_by : r->args[0];

    return span_hash(by) ^ span_hash(r->key);
}

void script_submit(struct script *s, struct script_request *r)
{
    ASSERT(!r->pending);

    bool first = true;
    if (script_request_is_ordered(r)) {
        first = order_enter(&s->order, &r->place, request_hash(r));
    }

    r->pending = true;
    r->may_have_run = false;
    r->number = ++s->n_submitted;
    r->slot = s->topo->masters ? slot_of_key(r->key) : 0;
    if (list_empty(&s->unsent)) {
        s->oldest_us = clock_us();
    }

    if (r->withheld) {
        request_put(&s->withheld, r);
    } else if (script_request_is_urgent(r)) {
        request_put(s->unsent.next, r);
    } else if (first) {
        request_put(&s->unsent, r);
    } else {
        request_put(&s->blocked, r);
    }

    s->n_unsent++;
    s->n_gathered++;
    schedule_check(s);
}

bool script_withhold(struct script *s, struct script_request *r)
{
    if (!script_is_unsent(r)) {
        return false;
    }

    list_remove(&r->node);
    r->withheld = true;
    request_put(&s->withheld, r);
    return true;
}

void script_let_go(struct script *s, struct script_request *r)
{
    ASSERT(script_is_unsent(r) && r->withheld);

    if (list_empty(&s->unsent)) {
        s->oldest_us = clock_us();
    }

    bool blocked = script_request_is_ordered(r) && !r->place.first;
    r->withheld = false;
    list_remove(&r->node);
    request_put(blocked ? &s->blocked : &s->unsent, r);
}

bool script_withdraw(struct script *s, struct script_request *r)
{
    if (!script_is_unsent(r)) {
        return false;
    }

    r->pending = false;
    list_remove(&r->node);
    s->n_unsent--;
    request_unblock_next(s, r);

    return true;
}

/* ---- requests that cannot be sent now ---- */
/* They are set aside while their Redis is away or takes nothing, so that those for another Redis
 * are not looked for among them, and do not seem as old as they are. They come back when the state
 * of the servers has changed or a pause of a slot is over, and at each check. */

/* May something be sent there? Requests for which the socket has no space wait here, where they
 * take no more memory; they go on when the socket has taken some. */
static bool node_takes(const struct node *n)
{
    return node_up(n) && !conn_full(&n->commands);
}

static bool any_node_takes(const struct script *s)
{
    LIST_EACH (i, &s->topo->nodes) {
        if (node_takes(topo_node_at(i))) {
            return true;
        }
    }
    return false;
}

/* Another value when more can be sent, or elsewhere. */
static uint64_t state_of_redis(const struct script *s)
{
    const struct masters *masters = s->topo->masters;
    uint64_t state = masters ? masters->n_changes : 0;

    LIST_EACH (i, &s->topo->nodes) {
        const struct node *n = topo_node_at(i);
        state = (state * 31 + node_takes(n)) * 31 + node_may_write(n) + 1;
    }
    return state;
}

/* Among the others by age: one that was refused comes behind younger ones. */
static void set_aside(struct script *s, struct script_request *r, int64_t now_us)
{
    const struct masters *masters = s->topo->masters;
    int64_t ends_us = masters ? masters_pause_ends_us(masters, r->slot) : 0;
    struct list *last = s->aside.prev;

    while (last != &s->aside && request_comes_before(r, script_request_of(last))) {
        last = last->prev;
    }
    list_remove(&r->node);
    list_insert(last->next, &r->node);
    if (ends_us > now_us && ends_us < s->aside_until_us) {
        s->aside_until_us = ends_us;
    }
}

/* To where they were. */
static void fetch_all(struct script *s)
{
    struct list *at = s->unsent.next;

    if (!list_empty(&s->aside)) {
        s->oldest_us = 0;
    }
    for (struct list *i; (i = list_pop(&s->aside));) {
        struct script_request *r = script_request_of(i);
        while (at != &s->unsent && request_comes_before(script_request_of(at), r)) {
            at = at->next;
        }
        request_put(at, r);
    }
    s->aside_until_us = INT64_MAX;
}

void script_fetch(struct script *s)
{
    if (list_empty(&s->aside)) {
        return;
    }
    if (s->aside_until_us <= clock_us() || s->aside_state != state_of_redis(s)) {
        fetch_all(s);
    }
}

/* ---- requests that repeat ---- */
static bool answer_is_lost(int err)
{
    return err == LAPSE_ELOST || err == LAPSE_ETIMEOUT;
}

/* Twice as long as the last time, if that has just ended. */
static void start_backoff(struct script *s)
{
    if (timer_on(&s->backoff)) {
        return;
    }

    bool just_ended = clock_us() - s->backoff_ended_us < 2000 * s->backoff_ms;
    if (!just_ended) {
        s->backoff_ms = BACKOFF_MS;
    } else if (s->backoff_ms < BACKOFF_MAX_MS) {
        s->backoff_ms *= 2;
    }

    timer_set(&s->backoff, s->backoff_ms);
}

static void on_backoff_end(void *arg)
{
    struct script *s = arg;

    s->backoff_ended_us = clock_us();
    for (struct list *i; (i = list_pop(&s->refused));) {
        request_put(&s->unsent, script_request_of(i));
    }
}

/* false: it is not to be repeated. It keeps its place among the requests of its id. */
static bool request_repeat(struct script *s, struct script_request *r, int err)
{
    bool lost = answer_is_lost(err);
    bool refused = err_is_refusal(err) || err == LAPSE_EBROKEN;

    if (!r->repeats || !(lost || refused)) {
        return false;
    }

    r->may_have_run = r->may_have_run || !err_is_refusal(err);
    if (clock_us() >= r->until_us || (refused && r->yields)) {
        return false;
    }

    if (lost) {
        request_put(s->unsent.next, r);
    } else {
        request_put(&s->refused, r);
        r->backs_off = true;
        start_backoff(s);
    }

    s->n_unsent++;
    schedule_check(s);
    return true;
}

/* ---- requests that were not sent in time ---- */
static void move_overdue(struct list *to, struct list *from, int64_t now_us)
{
    LIST_EACH (i, from) {
        if (script_request_of(i)->until_us <= now_us) {
            list_remove(i);
            list_insert(to, i);
        }
    }
}

/* While a slow connection takes the bodies of others little by little, those behind them have
 * time. */
static void move_overdue_unless_moving(struct script *s, struct list *to, struct list *from,
                                       int64_t now_us)
{
    LIST_EACH (i, from) {
        const struct script_request *r = script_request_of(i);
        if (r->until_us <= now_us && !conn_moving(&request_node(s, r)->commands)) {
            list_remove(i);
            list_insert(to, i);
        }
    }
}

/* Is the Redis there that it needs? What only reads needs no copies. */
static bool request_has_redis(const struct script *s, const struct script_request *r)
{
    const struct node *n = request_node(s, r);

    return script_facts[r->script].read_only ? node_up(n) : node_may_write(n);
}

/* Of those behind another request of their id: if that one is not with Redis. While Redis answers
 * it, they have time. */
static void move_overdue_blocked(struct script *s, struct list *to, int64_t now_us)
{
    LIST_EACH (i, &s->blocked) {
        struct script_request *r = script_request_of(i);
        struct place *place = order_first(&s->order, &r->place);
        struct script_request *first = CONTAINER(place, struct script_request, place);

        bool waits = first->sent_us == 0 && !request_has_redis(s, first);
        if (r->until_us <= now_us && (first->backs_off || waits)) {
            list_remove(i);
            list_insert(to, i);
        }
    }
}

/* Why a request was never sent. */
static int unsent_error(const struct script *s, const struct script_request *r)
{
    const struct node *n = request_node(s, r);
    int login_err = node_login_err(n);

    if (login_err) {
        return login_err;
    }
    return n->copies_err && !request_has_redis(s, r) ? n->copies_err : LAPSE_EDOWN;
}

/* Sends what could not be sent before, maybe for lack of memory, and ends what is overdue. */
static void on_check(void *arg)
{
    struct script *s = arg;
    int64_t now_us = clock_us();
    struct list overdue;

    fetch_all(s);
    script_flush(s);

    list_init(&overdue);
    move_overdue(&overdue, &s->withheld, now_us);
    move_overdue_unless_moving(s, &overdue, &s->unsent, now_us);
    move_overdue_unless_moving(s, &overdue, &s->aside, now_us);
    move_overdue_unless_moving(s, &overdue, &s->refused, now_us);
    move_overdue_blocked(s, &overdue, now_us);

    /* counted one by one, because an end() may withdraw another request of this list */
    for (struct list *i; (i = list_pop(&overdue));) {
        struct script_request *r = script_request_of(i);
        s->n_unsent--;
        request_end(s, r, unsent_error(s, r), NULL);
    }

    schedule_check(s);
}

/* ---- answers ---- */
/* Redis did not run them: to where they were among those that were not sent, as others may have
 * come back before. In a cluster all that goes to a node may be refused for a while, and a sweep
 * that went before a renewal then would end a lease. */
static void batch_put_back(struct batch *b)
{
    struct script *s = b->owner;
    struct list *at = s->unsent.next;

    for (struct list *i; (i = list_pop(&b->requests));) {
        struct script_request *r = script_request_of(i);
        bool blocked = script_request_is_ordered(r) && !r->place.first;

        while (at != &s->unsent && request_comes_before(script_request_of(at), r)) {
            at = at->next;
        }
        request_put(blocked ? &s->blocked : at, r);
        s->n_unsent++;
    }

    s->oldest_us = 0;
    schedule_check(s);
}

static void batch_fail(struct batch *b, int err)
{
    for (struct list *i; (i = list_pop(&b->requests));) {
        struct script_request *r = script_request_of(i);
        if (!request_repeat(b->owner, r, err)) {
            request_end(b->owner, r, err, NULL);
        }
    }
}

/* An element per request; a script that stopped at its limit of bytes answered fewer. */
static void batch_answer_each(struct batch *b, const struct redisReply *reply)
{
    struct list *node;

    for (size_t i = 1; i < reply_len(reply) && (node = list_pop(&b->requests)); i++) {
        const struct redisReply *answer = reply_at(reply, i);
        struct span text;
        int code = reply_text(answer, &text) ? err_code(text.at, text.len) : 0;
        request_end(b->owner, script_request_of(node), code, code ? NULL : answer);
    }

    batch_put_back(b);
}

static void batch_answer(struct batch *b, const struct redisReply *reply)
{
    bool per_request = script_facts[b->script].batch;
    int64_t now_us;

    if (!reply_int(reply_at(reply, 0), &now_us) || (per_request && reply_len(reply) < 2)) {
        batch_fail(b, LAPSE_EBROKEN);
        return;
    }

    node_heard_clock(b->to, b->call.sent_us, now_us);

    if (per_request) {
        batch_answer_each(b, reply);
        return;
    }

    struct list *only = list_pop(&b->requests);

    ASSERT(only);
    request_end(b->owner, script_request_of(only), 0, reply);
}

static int batch_refusal(const struct batch *b, struct span error)
{
    const struct script_facts *facts = &script_facts[b->script];
    struct context *context = b->owner->context;

    if (facts->unasked) {
        return refusal_unasked_code(context, facts->name, error);
    }
    return refusal_code(context, facts->name, error);
}

/* Has nothing happened, and is the same to be asked again: in a cluster maybe of another node? */
static bool batch_goes_again(const struct batch *b, struct span error)
{
    struct masters *masters = b->owner->topo->masters;
    enum redis_error kind = redis_error_of(error);

    if (masters &&
        masters_refused(masters, script_request_of(b->requests.next)->slot, b->to, kind)) {
        if (b->by_text) {
            node_forgets_script(b->to, b->script); /* it was not looked at */
        }
        return true;
    }
    if (kind == REDIS_ERROR_NO_SCRIPT && !b->by_text) {
        node_forgets_script(b->to, b->script);
        return true;
    }
    /* nothing was written; they go to the master, when it is found */
    return kind == REDIS_ERROR_READ_ONLY && node_is_replica(b->to);
}

static void on_call_end(struct call *call, int err, const struct redisReply *reply)
{
    struct batch *b = CONTAINER(call, struct batch, call);
    struct script *s = b->owner;
    struct span error;

    list_remove(&b->node);

    if (err) {
        batch_fail(b, err);
    } else if (!reply_error(reply, &error)) {
        if (s->topo->masters) {
            masters_answered(s->topo->masters, script_request_of(b->requests.next)->slot);
        }
        batch_answer(b, reply);
    } else if (batch_goes_again(b, error)) {
        batch_put_back(b);
    } else {
        batch_fail(b, batch_refusal(b, error));
    }

    batch_free(&s->pool, b);
}

/* ---- sending ---- */
/* The command, and the script by its hash or by its text. */
static void argv_add_script(struct script_argv *argv, const struct script_facts *facts,
                            bool by_text)
{
    if (by_text) {
        argv_add_text(argv, facts->read_only ? "EVAL_RO" : "EVAL");
        argv_add(argv, (struct span){facts->text, facts->len});
    } else {
        argv_add_text(argv, facts->read_only ? "EVALSHA_RO" : "EVALSHA");
        argv_add(argv, (struct span){facts->sha, SHA_LEN});
    }
}

/* How many keys, and these; none is the space for the second. A script of no queue has one. */
static void argv_add_keys(struct script_argv *argv, const struct script_facts *facts,
                          struct span key, char none[KEYS_MAX])
{
    argv_add_text(argv, facts->of_queue ? "2" : "1");
    argv_add(argv, key);
    if (facts->of_queue) {
        argv_add(argv, (struct span){none, keys_none(none, key)});
    }
}

/* What all calls begin with; none: as above. In a cluster half a queue is refused. */
static void argv_add_head(struct script *s, const struct node *to, const struct script_facts *facts,
                          bool by_text, struct span key, char none[KEYS_MAX])
{
    argv_add_script(&s->argv, facts, by_text);
    argv_add_keys(&s->argv, facts, key, none);
    argv_add_text(&s->argv, node_is_in_cluster(to) ? s->in_cluster : s->database);
}

static void argv_add_requests(struct script_argv *argv, const struct batch *b)
{
    LIST_EACH (i, &b->requests) {
        const struct script_request *r = script_request_of(i);
        for (unsigned k = 0; k < r->n_args; k++) {
            argv_add(argv, r->args[k]);
        }
    }
}

static bool batch_send(struct batch *b)
{
    struct script *s = b->owner;
    const struct script_facts *facts = &script_facts[b->script];
    char none[KEYS_MAX];

    if (!argv_reserve(&s->argv, CALL_ARGS + b->n_args)) {
        return false;
    }

    b->by_text = !node_knows_script(b->to, b->script);
    argv_add_head(s, b->to, facts, b->by_text, script_request_of(b->requests.next)->key, none);
    if (facts->has_holder) {
        argv_add(&s->argv, b->any_holder ? span_of("*") : s->holder);
    }
    argv_add_requests(&s->argv, b);

    b->call.end = on_call_end;
    if (!conn_send(&b->to->commands, &b->call, (int)s->argv.n, s->argv.texts, s->argv.lens)) {
        return false;
    }

    node_learns_script(b->to, b->script); /* before it runs the next call */
    LIST_EACH (i, &b->requests) {
        script_request_of(i)->sent_us = b->call.sent_us;
    }
    list_insert(&s->sent, &b->node);

    return true;
}

bool script_send_fence(struct script *s, struct node *to, struct call *call, struct span key)
{
    char none[KEYS_MAX];

    if (!argv_reserve(&s->argv, CALL_ARGS)) {
        return false;
    }

    argv_add_head(s, to, &script_facts[SCRIPT_FENCE], true, key, none);
    return conn_send(&to->fence, call, (int)s->argv.n, s->argv.texts, s->argv.lens);
}

static bool request_may_go(const struct script *s, const struct script_request *r, int64_t now_us)
{
    const struct masters *masters = s->topo->masters;

    if (masters && masters_pauses(masters, r->slot, now_us)) {
        return false;
    }
    return node_takes(request_node(s, r)) && request_has_redis(s, r);
}

/* The first request that may be sent; NULL: none. */
static struct script_request *next_to_send(struct script *s)
{
    int64_t now_us = s->topo->masters ? clock_us() : 0;

    if (!s->topo->masters && !any_node_takes(s)) { /* of a cluster a node may have to be begun */
        return NULL;
    }

    LIST_EACH (i, &s->unsent) {
        struct script_request *r = script_request_of(i);
        if (request_may_go(s, r, now_us)) {
            return r;
        }
        set_aside(s, r, now_us);
    }
    return NULL;
}

/* With those that may travel with it. false: there is no memory. */
static bool send_batch(struct script *s, struct script_request *first)
{
    struct batch *b = batch_new(&s->pool);

    if (!b) {
        return false;
    }

    b->owner = s;
    b->to = request_node(s, first);
    batch_fill(b, &s->unsent, first);
    s->n_unsent -= b->n_requests;

    if (!batch_send(b)) {
        batch_put_back(b);
        batch_free(&s->pool, b);
        return false;
    }
    if (conn_full(&b->to->commands)) {
        conn_flush(&b->to->commands);
    }
    return true;
}

void script_flush(struct script *s)
{
    struct script_request *r;

    script_fetch(s);
    uint64_t before = state_of_redis(s);
    while ((r = next_to_send(s))) {
        if (!send_batch(s, r)) {
            break;
        }
    }
    uint64_t after = state_of_redis(s);
    s->n_gathered = 0;
    s->aside_state = after == before ? after : after + 1; /* it changed on the way: look again */

    if (s->n_unsent == 0) {
        timer_stop(&s->check);
    }

    LIST_EACH (i, &s->topo->nodes) {
        conn_flush(&topo_node_at(i)->commands);
    }
}

/* ---- a script's life ---- */
int script_init(struct script *s, struct topo *topo)
{
    struct ev_loop *loop = topo->context->loop;
    int64_t arm_ahead_ms = topo->context->options.arm_ahead_ms;
    int db = topo->db;

    *s = (struct script){.context = topo->context, .topo = topo};
    list_init(&s->unsent);
    list_init(&s->aside);
    s->aside_until_us = INT64_MAX;
    list_init(&s->withheld);
    list_init(&s->blocked);
    list_init(&s->refused);
    list_init(&s->sent);
    batch_pool_init(&s->pool);
    timer_init(&s->check, loop, on_check, s);
    timer_init(&s->backoff, loop, on_backoff_end, s);

    if (arm_ahead_ms) {
        snprintf(s->database, sizeof s->database, "%d %lld", db, (long long)arm_ahead_ms);
    } else {
        snprintf(s->database, sizeof s->database, "%d", db);
    }
    snprintf(s->in_cluster, sizeof s->in_cluster, "%s cluster", s->database);

    if (order_init(&s->order) || !argv_reserve(&s->argv, CALL_ARGS + 4 * SCRIPT_BATCH)) {
        order_free(&s->order);
        argv_free(&s->argv);
        return LAPSE_ENOMEM;
    }

    return 0;
}

void script_close(struct script *s)
{
    ASSERT(list_empty(&s->sent));
    list_move(&s->unsent, &s->aside);
    list_move(&s->unsent, &s->withheld);
    list_move(&s->unsent, &s->refused);

    /* each end() moves the next request of its id from blocked to unsent */
    for (struct list *i; (i = list_pop(&s->unsent));) {
        s->n_unsent--;
        request_end(s, script_request_of(i), LAPSE_ECLOSED, NULL);
    }
    ASSERT(list_empty(&s->blocked));

    timer_stop(&s->backoff);
    timer_stop(&s->check); /* an end() may have submitted once more */
    batch_pool_free(&s->pool);
    order_free(&s->order);
    argv_free(&s->argv);
}
