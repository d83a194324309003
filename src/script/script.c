/* SPDX-License-Identifier: MIT */
/* Runs scripts by their SHA, by their text when Redis may not know them, and turns errors into
 * codes.
 *
 * Requests wait in one list until script_flush(), which the handle calls before the loop sleeps. It
 * sends the first, and with it those behind it for the same script and queue.
 *
 * Requests of one id take effect in the order in which they were asked. Any answer can bring a
 * request back: the script read enough for one call, Redis had forgotten the script, or it refused
 * a settle, which is repeated. What was sent behind it would then be ahead of it. So at most one
 * request of an id is on its way, and the others wait for its answer. Only requests of one script
 * whose answers do not depend on each other's writes travel in one call. (Tried in thought and
 * rejected: to recall what was sent behind; Redis may have run it. To put back by age; it helps
 * only what was not sent yet.) */
#include "script/script.h"
#include "base/error.h"
#include "base/mem.h"
#include "redis/redis_error.h"
#include "script/refusal.h"
#include "scripts.h"
#include <stdio.h>

enum { FIXED_ARGS = 6 /* of a call: EVALSHA, its hash, 1, the key, ARGV[1], ARGV[2] of settles */ };
enum { RETRY_MS = 50, REST_MS = 150, REST_MAX_MS = 1200, LOOK_AHEAD = 512, SPARE_MAX = 16 };

_Static_assert(SCRIPT_COUNT <= 64, "a node has a bit for each");

struct batch {
    struct call call;
    struct list node;
    struct script *s;
    enum script_id script;
    struct list asks;
    unsigned n;
    bool by_text; /* not by its hash */
};

static void on_answer(struct call *call, int err, const struct redisReply *reply);

static struct batch *batch_new(struct script *s)
{
    struct list *spare = list_pop(&s->spare);
    struct batch *b = spare ? CONTAINER(spare, struct batch, node) : mem_new(sizeof *b, 0);

    s->n_spare -= spare != NULL;
    if (b) {
        *b = (struct batch){.s = s, .call.end = on_answer};
        list_init(&b->node);
        list_init(&b->asks);
    }

    return b;
}

static void batch_free(struct batch *b)
{
    if (b->s->n_spare == SPARE_MAX) {
        mem_free(b);
    } else {
        b->s->n_spare++;
        list_insert(&b->s->spare, &b->node);
    }
}

/* Requests of one id keep their order. */
static bool ordered(enum script_id id)
{
    return script_facts[id].batch && !script_facts[id].urgent;
}

static bool grow(struct script *s, size_t room)
{
    if (room <= s->room) {
        return true;
    }

    const char **argv = mem_grow(s->argv, room, sizeof *argv);
    s->argv = argv ? argv : s->argv;
    size_t *lens = mem_grow(s->lens, room, sizeof *lens);
    s->lens = lens ? lens : s->lens;
    s->room = argv && lens ? room : s->room;
    return argv && lens;
}

/* ---- what is asked, until it ends ---- */
static void unsent(struct list *at, struct ask *a)
{
    a->sent_us = 0;
    a->rests = false;
    list_insert(at, &a->node);
}

/* Who stood behind an ended request of the same id may go now, unless it went along with it. */
static void leave(struct script *s, struct ask *a)
{
    struct place *next = ordered(a->script) ? order_leave(&s->order, &a->place) : NULL;
    struct ask *first = next ? CONTAINER(next, struct ask, place) : NULL;

    if (first && !first->sent_us) {
        list_remove(&first->node);
        unsent(&s->asks, first);
    }
}

static void ask_end(struct script *s, struct ask *a, int err, const struct redisReply *answer)
{
    ASSERT(a->asked);
    a->asked = false;
    leave(s, a);
    a->end(a, err, answer);
}

static bool is_lost(int err)
{
    return err == LAPSE_ELOST || err == LAPSE_ETIMEOUT;
}

/* For longer than the last time, if that was just now. */
static void rest(struct script *s)
{
    bool just_now = clock_us() - s->rested_us < 2000 * s->rest_ms;

    if (timer_on(&s->rest)) {
        return;
    }

    if (!just_now) {
        s->rest_ms = REST_MS;
    } else if (s->rest_ms < REST_MAX_MS) {
        s->rest_ms *= 2;
    }

    timer_set(&s->rest, s->rest_ms);
}

/* It keeps its place among the requests of its id. */
static bool repeat(struct script *s, struct ask *a, int err)
{
    bool refused = err_is_refusal(err) || err == LAPSE_EBROKEN;

    if (!a->repeats || !(is_lost(err) || refused)) {
        return false;
    }

    a->maybe = a->maybe || !err_is_refusal(err);
    if (clock_us() >= a->until_us) {
        return false;
    }

    s->n_asks++;

    if (is_lost(err)) {
        unsent(s->asks.next, a);
    } else {
        unsent(&s->resting, a);
        a->rests = true;
        rest(s);
    }

    if (!timer_on(&s->retry)) {
        timer_set(&s->retry, RETRY_MS);
    }

    return true;
}

static void on_rested(void *arg)
{
    struct script *s = arg;
    s->rested_us = clock_us();
    for (struct list *i; (i = list_pop(&s->resting));) {
        unsent(&s->asks, CONTAINER(i, struct ask, node));
    }
}

static void move_overdue(struct list *to, struct list *from, int64_t now_us)
{
    LIST_EACH (i, from) {
        if (CONTAINER(i, struct ask, node)->until_us <= now_us) {
            list_remove(i);
            list_insert(to, i);
        }
    }
}

/* Those that wait for no answer: there is no connection, or Redis refuses the request before them.
 */
static void move_overdue_waiting(struct script *s, struct list *to, int64_t now_us)
{
    LIST_EACH (i, &s->waiting) {
        struct ask *a = CONTAINER(i, struct ask, node);
        struct ask *first = CONTAINER(order_first(&s->order, &a->place), struct ask, place);
        if (a->until_us <= now_us && (first->rests || !node_up(s->node))) {
            list_remove(i);
            list_insert(to, i);
        }
    }
}

/* What was not sent in time ends here; what could not be sent for want of memory is tried again.
 * What waits behind bodies that a slow connection takes little by little has time for as long as it
 * takes any, and what waits for the answer to another request of its id for as long as Redis
 * answers that. */
/* Why a request was never sent. */
static int unsent_error(const struct endpoint *endpoint)
{
    return endpoint->login_err ? endpoint->login_err : LAPSE_EDOWN;
}

static void on_retry(void *arg)
{
    struct script *s = arg;
    int64_t now_us = clock_us();
    struct list over;

    script_flush(s);
    list_init(&over);
    if (!conn_moving(&s->node->commands)) {
        move_overdue(&over, &s->asks, now_us);
        move_overdue(&over, &s->resting, now_us);
    }

    move_overdue_waiting(s, &over, now_us);

    /* they count till they end: the end of one may take another back */
    for (struct list *i; (i = list_pop(&over));) {
        s->n_asks--;
        ask_end(s, CONTAINER(i, struct ask, node), unsent_error(&s->node->endpoint), NULL);
    }

    if (s->n_asks) {
        timer_set(&s->retry, RETRY_MS);
    }
}

int script_init(struct script *s, struct node *node)
{
    struct context *context = node->context;
    int64_t arm_ahead_ms = context->settings.arm_ahead_ms;

    *s = (struct script){.context = context, .node = node};
    list_init(&s->asks);
    list_init(&s->waiting);
    list_init(&s->resting);
    list_init(&s->batches);
    list_init(&s->spare);

    snprintf(s->fixed, sizeof s->fixed, arm_ahead_ms ? "%d %lld" : "%d", node->endpoint.address.db,
             (long long)arm_ahead_ms);
    timer_init(&s->retry, context->loop, on_retry, s);
    timer_init(&s->rest, context->loop, on_rested, s);

    if (order_init(&s->order) || !grow(s, FIXED_ARGS + 4 * SCRIPT_BATCH)) {
        order_free(&s->order);
        mem_free(s->argv);
        mem_free(s->lens);
        return LAPSE_ENOMEM;
    }

    return 0;
}

static uint32_t hash_of(const struct ask *a)
{
    return span_hash(a->args[0]) ^ span_hash(a->key);
}

void script_ask(struct script *s, struct ask *a)
{
    ASSERT(!a->asked);

    bool first = !ordered(a->script) || order_enter(&s->order, &a->place, hash_of(a));

    a->asked = true;
    a->maybe = false;
    s->n_asks++;
    if (list_empty(&s->asks)) {
        s->oldest_us = clock_us();
    }

    if (script_facts[a->script].urgent) {
        unsent(s->asks.next, a);
    } else {
        unsent(first ? &s->asks : &s->waiting, a);
    }

    if (!timer_on(&s->retry)) {
        timer_set(&s->retry, RETRY_MS);
    }
}

bool script_unask(struct script *s, struct ask *a)
{
    if (!a->asked || a->sent_us) {
        return false;
    }

    a->asked = false;
    list_remove(&a->node);
    s->n_asks--;
    leave(s, a);
    return true;
}

/* Back to the front, in order: Redis did not do it. */
static void put_back(struct script *s, struct batch *b)
{
    struct list *front = s->asks.next;

    for (struct list *i; (i = list_pop(&b->asks));) {
        struct ask *a = CONTAINER(i, struct ask, node);
        bool first = !ordered(a->script) || a->place.first;
        unsent(first ? front : &s->waiting, a);
        s->n_asks++;
    }

    s->oldest_us = 0;
    if (s->n_asks && !timer_on(&s->retry)) {
        timer_set(&s->retry, RETRY_MS);
    }
}

static void end_all(struct batch *b, int err)
{
    for (struct list *i; (i = list_pop(&b->asks));) {
        struct ask *a = CONTAINER(i, struct ask, node);
        if (!repeat(b->s, a, err)) {
            ask_end(b->s, a, err, NULL);
        }
    }
}

static void answer_all(struct batch *b, const struct redisReply *reply)
{
    struct list *i;
    int64_t now_us;

    if (!reply_int(reply_at(reply, 0), &now_us) ||
        (script_facts[b->script].batch && reply_len(reply) < 2)) {
        end_all(b, LAPSE_EBROKEN);
        return;
    }

    node_heard_clock(b->s->node, b->call.sent_us, now_us);

    if (!script_facts[b->script].batch) {
        while ((i = list_pop(&b->asks))) { /* one */
            ask_end(b->s, CONTAINER(i, struct ask, node), 0, reply);
        }
        return;
    }

    for (size_t n = 1; n < reply_len(reply) && (i = list_pop(&b->asks)); n++) {
        const struct redisReply *answer = reply_at(reply, n);
        struct span text;
        int code = reply_text(answer, &text) ? err_code(text.at, text.len) : 0;
        ask_end(b->s, CONTAINER(i, struct ask, node), code, code ? NULL : answer);
    }

    put_back(b->s, b);
}

static void on_answer(struct call *call, int err, const struct redisReply *reply)
{
    struct batch *b = CONTAINER(call, struct batch, call);
    struct span error;

    list_remove(&b->node);

    if (err) {
        end_all(b, err);
    } else if (!reply_error(reply, &error)) {
        answer_all(b, reply);
    } else if (redis_error_of(error) == REDIS_ERROR_NO_SCRIPT && !b->by_text) {
        node_forgets_script(b->s->node, b->script);
        put_back(b->s, b);
    } else {
        end_all(b, refusal_code(b->s->context, script_facts[b->script].name, error));
    }

    batch_free(b);
}

/* How much a batch holds so far. */
struct fill {
    size_t bytes;
    size_t n_args;
};

static bool is_full(const struct batch *b, const struct fill *fill)
{
    return b->n == SCRIPT_BATCH || fill->bytes >= SCRIPT_BATCH_BYTES ||
           !script_facts[b->script].batch;
}

static void add(struct batch *b, struct ask *a, struct fill *fill)
{
    list_remove(&a->node);
    list_insert(&b->asks, &a->node);
    b->n++;
    fill->n_args += a->n_args;
    for (unsigned k = 0; k < a->n_args; k++) {
        fill->bytes += a->args[k].len;
    }
}

/* A request, and those behind it of its id that may travel with it. */
static void add_line(struct batch *b, struct ask *a, struct fill *fill)
{
    add(b, a, fill);
    if (!script_facts[b->script].ids_may_repeat) {
        return;
    }

    for (struct place *p = a->place.behind; p && !is_full(b, fill); p = p->behind) {
        struct ask *next = CONTAINER(p, struct ask, place);
        if (next->script != b->script || !span_eq(next->key, a->key)) {
            break;
        }
        add(b, next, fill);
    }
}

/* Moves the first of the list and those that may go with it to the batch. Returns how many
 * arguments they have. */
static size_t gather(struct script *s, struct batch *b)
{
    struct ask *first = CONTAINER(s->asks.next, struct ask, node);
    struct span key = first->key;
    struct fill fill = {0, 0};
    unsigned n_looked = 0;

    b->script = first->script;

    LIST_EACH (i, &s->asks) {
        struct ask *a = CONTAINER(i, struct ask, node);
        if (a->script == b->script && span_eq(a->key, key)) {
            add_line(b, a, &fill);
        }
        if (is_full(b, &fill) || ++n_looked == LOOK_AHEAD) {
            break;
        }
    }

    s->n_asks -= b->n;

    return fill.n_args;
}

static void push(struct script *s, size_t *n, const char *at, size_t len)
{
    s->argv[*n] = at;
    s->lens[(*n)++] = len;
}

static void push_word(struct script *s, size_t *n, const char *word)
{
    push(s, n, word, strlen(word));
}

static bool send(struct script *s, struct batch *b, size_t n_args)
{
    const struct script_facts *t = &script_facts[b->script];
    struct span key = CONTAINER(b->asks.next, struct ask, node)->key;
    size_t n = 0;

    if (!grow(s, n_args + FIXED_ARGS)) {
        return false;
    }

    bool known = node_knows_script(s->node, b->script);
    bool ro = script_facts[b->script].read_only;
    b->by_text = !known;
    push_word(s, &n, known ? (ro ? "EVALSHA_RO" : "EVALSHA") : (ro ? "EVAL_RO" : "EVAL"));
    push(s, &n, known ? t->sha : (const char *)t->text, known ? 40 : t->len);
    push(s, &n, "1", 1);
    push(s, &n, key.at, key.len);
    push_word(s, &n, s->fixed);
    if (script_facts[b->script].has_holder) {
        push(s, &n, s->holder.at, s->holder.len);
    }

    LIST_EACH (i, &b->asks) {
        struct ask *a = CONTAINER(i, struct ask, node);
        for (unsigned k = 0; k < a->n_args; k++) {
            push(s, &n, a->args[k].at, a->args[k].len);
        }
    }

    if (!conn_send(&s->node->commands, &b->call, (int)n, s->argv, s->lens)) {
        return false;
    }

    node_learns_script(s->node, b->script); /* by the time the next call runs */
    LIST_EACH (i, &b->asks) {
        CONTAINER(i, struct ask, node)->sent_us = b->call.sent_us;
    }

    list_insert(&s->batches, &b->node);

    return true;
}

/* What does not fit into the socket waits here, where it takes no more memory: it goes on when the
 * socket took some. */
void script_flush(struct script *s)
{
    while (!list_empty(&s->asks) && node_up(s->node) && !conn_full(&s->node->commands)) {
        struct batch *b = batch_new(s);
        if (!b) {
            break;
        }
        if (!send(s, b, gather(s, b))) {
            put_back(s, b);
            batch_free(b);
            break;
        }
        if (conn_full(&s->node->commands)) {
            conn_flush(&s->node->commands);
        }
    }

    if (!s->n_asks) {
        timer_stop(&s->retry);
    }

    conn_flush(&s->node->commands);
}

void script_close(struct script *s)
{
    ASSERT(list_empty(&s->batches));
    list_move(&s->asks, &s->resting);

    /* the end of one lets the next of its id go */
    for (struct list *i; (i = list_pop(&s->asks));) {
        s->n_asks--;
        ask_end(s, CONTAINER(i, struct ask, node), LAPSE_ECLOSED, NULL);
    }

    ASSERT(list_empty(&s->waiting));

    timer_stop(&s->rest);
    timer_stop(&s->retry); /* the end of one may ask once more */
    for (struct list *i; (i = list_pop(&s->spare));) {
        mem_free(CONTAINER(i, struct batch, node));
    }

    order_free(&s->order);
    mem_free(s->argv);
    mem_free(s->lens);
}
