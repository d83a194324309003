/* SPDX-License-Identifier: MIT */
/* Counts what happens in each queue, and adds it to the history in Redis, EVERY_MS after the first
 * of it: so a process has one script in that time for a queue in which something happens, and none
 * for others. The scripts that move jobs know nothing of it.
 *
 * Where jobs are spread over thousands of queues, each has few in that time, and there would be a
 * script for nearly each job. So with more queues they are sent more rarely, up to MOST_MS.
 *
 * What was sent keeps its number until Redis has answered, and Redis adds no number of a sender
 * twice: so a call whose answer was lost is sent again, and counts once. Meanwhile more may be
 * counted; that has its turn, and its number, afterwards. A process that lives for less than
 * EVERY_MS sends what it has counted once, without a name that Redis would have to remember. */
#include "script/tally.h"
#include "base/context.h"
#include "base/mem.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { EVERY_MS = 10000, MOST_MS = 60000, SENT_A_SECOND = 100, OFF_MS = 60000 };

struct tally {
    struct table_node by_name;
    struct heap_node due; /* when it is sent */
    struct tallies *tallies;
    struct lapse_past counts;
    bool any; /* was counted since it was sent */
    bool off; /* the queue keeps no history: nothing is counted until it is due */
    struct count_request request;
    char *sent; /* what Redis has not answered for; NULL: nothing */
    size_t sent_len;
    uint64_t number; /* of that */
    char name[KEYS_QUEUE_MAX + 1];
    char key[KEYS_MAX];
};

static void tallies_set_timer(struct tallies *ts)
{
    int64_t at_us = ts->heap.first ? ts->heap.first->at : 0;

    if (at_us == ts->timer_us) {
        return;
    }

    ts->timer_us = at_us;
    if (at_us) {
        int64_t left_us = at_us - clock_us();
        timer_set(&ts->timer, left_us > 0 ? left_us / 1000 + 1 : 0);
    } else {
        timer_stop(&ts->timer);
    }
}

int64_t tally_every_ms(size_t n_queues)
{
    int64_t ms = (int64_t)n_queues * 1000 / SENT_A_SECOND;

    if (ms < EVERY_MS) {
        return EVERY_MS;
    }

    return ms < MOST_MS ? ms : MOST_MS;
}

static void tally_put_off(struct tally *t, int64_t for_ms)
{
    heap_set(&t->tallies->heap, &t->due, clock_us() + for_ms * 1000);
    tallies_set_timer(t->tallies);
}

static void tally_free(struct tally *t)
{
    heap_set(&t->tallies->heap, &t->due, 0);
    table_remove(&t->tallies->queues, &t->by_name);
    mem_free(t->sent);
    mem_free(t);
}

/* ---- sending ---- */
static void tally_ask(struct tally *t)
{
    struct tallies *ts = t->tallies;
    bool is_named = t->number > 0;
    struct counted counted = {.sender = span_of(is_named ? ts->sender : ""),
                              .number = (int64_t)t->number,
                              .counts = {t->sent, t->sent_len}};

    t->request.request.repeats = is_named;
    t->request.request.yields = true;
    t->request.request.until_us = clock_us() + ts->context->options.reply_ms * 1000;
    ts->n_pending++;
    script_count(ts->script, &t->request, span_of(t->key), &counted);
}

/* false: there is no memory. */
static bool tally_pack(struct tally *t)
{
    struct tallies *ts = t->tallies;
    char text[PAST_TEXT_MAX];
    size_t len = past_text(text, &t->counts);

    t->sent = mem_new(0, len + 1);
    if (!t->sent) {
        return false;
    }

    memcpy(t->sent, text, len + 1);
    t->sent_len = len;
    t->number = ts->closing && ts->number == 0 ? 0 : ++ts->number;
    t->counts = (struct lapse_past){0};
    t->any = false;
    return true;
}

/* What was not answered for goes first. */
static void tally_send(struct tally *t)
{
    struct tallies *ts = t->tallies;

    if (t->request.request.pending) {
        return;
    }

    tally_put_off(t, tally_every_ms(ts->queues.n));
    if (ts->denied || !node_up(node_of(ts->script, span_of(t->key)))) {
        return;
    }
    if (t->sent || tally_pack(t)) {
        tally_ask(t);
    }
}

static void tally_answered(struct tally *t, bool is_off)
{
    mem_free(t->sent);
    t->sent = NULL;

    if (is_off) {
        t->off = true;
        t->any = false;
        tally_put_off(t, OFF_MS);
    } else if (t->any && t->tallies->closing) {
        tally_send(t);
    } else if (!t->any) {
        tally_free(t);
    }
}

static void on_counted(struct count_request *r, int err, const struct count_reply *reply)
{
    struct tally *t = CONTAINER(r, struct tally, request);
    struct tallies *ts = t->tallies;

    ts->n_pending--;
    if (ts->closed) {
        return;
    }

    if (!err) {
        tally_answered(t, reply->days == 0);
        tallies_set_timer(ts);
    } else if (err == LAPSE_EDENIED) {
        ts->denied = true;
    }
}

static void on_time(void *arg)
{
    struct tallies *ts = arg;
    int64_t now_us = clock_us();

    ts->timer_us = 0;
    while (ts->heap.first && ts->heap.first->at <= now_us) {
        struct tally *t = CONTAINER(ts->heap.first, struct tally, due);
        bool has_any = t->any || t->sent;

        if (has_any) {
            tally_put_off(t, tally_every_ms(ts->queues.n));
            tally_send(t);
        } else {
            tally_free(t);
        }
    }
    tallies_set_timer(ts);
}

/* ---- counting ---- */
static struct tally *tally_new(struct tallies *ts, const char *queue)
{
    struct tally *t = mem_new(sizeof *t, 0);

    if (!t) {
        return NULL;
    }

    t->tallies = ts;
    t->request.end = on_counted;
    snprintf(t->name, sizeof t->name, "%s", queue);
    keys_of(t->key, ts->context->options.space, queue, KEYS_DUE);
    table_add(&ts->queues, &t->by_name, span_of(t->name));
    tally_put_off(t, tally_every_ms(ts->queues.n));

    return t;
}

static struct tally *tally_find(const struct tallies *ts, const char *queue)
{
    struct table_node *found = table_find(&ts->queues, span_of(queue));

    return found ? CONTAINER(found, struct tally, by_name) : NULL;
}

/* NULL: it is not counted. */
static struct lapse_past *tally_of(struct tallies *ts, const char *queue)
{
    if (!ts || ts->closed || ts->denied) {
        return NULL;
    }

    struct tally *t = tally_find(ts, queue);

    t = t ? t : tally_new(ts, queue);
    if (!t || t->off) {
        return NULL;
    }

    t->any = true;
    return &t->counts;
}

void tally_count(struct tallies *ts, const char *queue, enum past_count what, uint64_t n)
{
    struct lapse_past *p = n ? tally_of(ts, queue) : NULL;

    if (p) {
        past_count(p, what, n);
    }
}

void tally_late(struct tallies *ts, const char *queue, enum lapse_via via, int64_t late_us)
{
    struct lapse_past *p = tally_of(ts, queue);

    if (p) {
        histogram_add_us(&p->late[via], late_us);
    }
}

void tally_run(struct tallies *ts, const char *queue, int64_t run_us)
{
    struct lapse_past *p = tally_of(ts, queue);

    if (p) {
        histogram_add_us(&p->run, run_us);
    }
}

void tally_forget(struct tallies *ts, const char *queue)
{
    struct tally *t = tally_find(ts, queue);

    if (t && !t->request.request.pending) {
        tally_free(t);
        tallies_set_timer(ts);
    } else if (t) {
        t->counts = (struct lapse_past){0};
        t->any = false;
    }
}

/* ---- life ---- */
void tallies_init(struct tallies *ts, struct script *script)
{
    *ts = (struct tallies){.context = script->context, .script = script};
    snprintf(ts->sender, sizeof ts->sender, "%016" PRIx64, clock_random());
    table_init(&ts->queues);
    timer_init(&ts->timer, script->context->loop, on_time, ts);
}

void tallies_up(struct tallies *ts)
{
    ts->denied = false;
}

/* Sent are those that were there: each is put off behind them. */
void tallies_flush(struct tallies *ts)
{
    int64_t last_us = clock_us() + INT64_C(2) * OFF_MS * 1000;

    ts->closing = true;
    for (struct heap_node *n; (n = ts->heap.first) && n->at < last_us;) {
        struct tally *t = CONTAINER(n, struct tally, due);
        if (t->any || t->sent) {
            tally_send(t);
        }
        heap_set(&ts->heap, &t->due, last_us);
    }
    tallies_set_timer(ts);
}

bool tallies_have_any(const struct tallies *ts)
{
    return ts->heap.first != NULL;
}

bool tallies_are_idle(const struct tallies *ts)
{
    return ts->n_pending == 0;
}

void tallies_stop(struct tallies *ts)
{
    ts->closed = true;
    timer_stop(&ts->timer);
}

void tallies_close(struct tallies *ts)
{
    while (ts->heap.first) {
        tally_free(CONTAINER(ts->heap.first, struct tally, due));
    }
    table_free(&ts->queues);
}
