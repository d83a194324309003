/* SPDX-License-Identifier: MIT */
/* Claims. Four hints, one action: whatever woke us, a claim asks Redis, and Redis decides on the
 * ZSET by its clock.
 *
 * Slots: jobs held and jobs asked for together stay within max_running. A hint that finds no slot
 * makes the queue owe; when slots are free the queues that owe are served in turn, oldest jobs
 * first, until a claim comes back short.
 *
 * After a reconnect lost jobs are reclaimed first, then the queue is swept: see reclaim.h. */
#include "listen/queue.h"
#include "base/error.h"
#include "base/mem.h"

enum { POOL_MAX = 8, PAUSE_MS = 300 };

struct claim {
    struct claim_ask ask;
    struct list node;
    struct queue *queue;
    unsigned n; /* slots set aside */
    int64_t lease_ms;
};

void work_want_turn(struct work *w)
{
    if (!w->turn_due_us) {
        w->turn_due_us = clock_us();
    }
}

/* ---- slots ---- */
static unsigned room(const struct queue *q)
{
    const struct work *w = q->work;
    unsigned all = w->n_held + w->n_asked;
    unsigned max = w->context->settings.max_running;
    unsigned mine = q->n_held + q->n_asked;
    unsigned left = all < max ? max - all : 0;
    unsigned own = mine < q->max ? q->max - mine : 0;

    return q->max && own < left ? own : left;
}

static bool closed_for(const struct queue *q)
{
    return q->stopped || q->work->closing;
}

/* Hints are owed meanwhile: they may come by the thousand, and Redis would refuse each claim. */
static bool waits(const struct queue *q)
{
    return reclaim_on(&q->reclaim) || q->reclaim_next ||
           eviction_forbids_claims(&q->work->eviction) || clock_us() < q->paused_us;
}

/* By its own max_running, however many slots there are. */
static bool is_full(const struct queue *q)
{
    return q->max && q->n_held + q->n_asked >= q->max;
}

/* One that is full takes no part in the sharing of slots: it would only make the shares of the
 * others smaller. */
static void owe(struct queue *q, enum lapse_via via)
{
    q->owes_via = via;
    if (is_full(q)) {
        q->owes_when_free = true;
    } else if (list_empty(&q->owes)) {
        list_insert(&q->work->owing, &q->owes);
        q->work->n_owing++;
    }
}

void queue_forgive(struct queue *q)
{
    q->owes_when_free = false;
    if (!list_empty(&q->owes)) {
        list_remove(&q->owes);
        q->work->n_owing--;
    }
}

static bool others_owe(const struct queue *q)
{
    const struct list *owing = &q->work->owing;
    return owing->next != owing && (owing->next != &q->owes || owing->prev != &q->owes);
}

/* Behind those that owe already: a slot that is free this moment is theirs. */
static void owe_in_turn(struct queue *q, enum lapse_via via)
{
    owe(q, via);
    work_want_turn(q->work);
}

static void slots(struct queue *q, int held, int asked)
{
    q->n_held += (unsigned)held;
    q->n_asked += (unsigned)asked;
    q->work->n_held += (unsigned)held;
    q->work->n_asked += (unsigned)asked;
    if (q->owes_when_free && !is_full(q)) {
        q->owes_when_free = false;
        owe(q, q->owes_via);
    }

    if (!list_empty(&q->work->owing) || q->stopped) {
        work_want_turn(q->work);
    }
}

void queue_freed(void *arg, void *queue)
{
    (void)arg;
    slots(queue, -1, 0);
}

/* Our own word is the fastest, and the only one where no wake can come. Of a job due now a wake
 * tells by itself. */
void queue_told(void *arg, void *queue, int64_t due_ms)
{
    const struct work *w = arg;
    struct queue *q = queue;

    if (!q->watch.ear.channel.confirmed || due_ms * 1000 > node_time_us(w->script->node)) {
        wake_told(&q->watch, due_ms);
    }
}

/* ---- claims ---- */
static void on_claimed(struct claim_ask *a, int err, const struct claimed *got);

static struct claim *claim_new(struct queue *q)
{
    struct work *w = q->work;
    struct list *old = list_pop(&w->pool);
    struct claim *c = old ? CONTAINER(old, struct claim, node) : mem_new(sizeof *c, 0);

    if (c) {
        w->n_pool -= old != NULL;
        list_init(&c->node);
        c->queue = q;
        c->n = c->ask.n_ids = 0;
        c->ask.end = on_claimed;
    }

    return c;
}

static void claim_free(struct work *w, struct claim *c)
{
    if (w->n_pool < POOL_MAX) {
        w->n_pool++;
        list_insert(&w->pool, &c->node);
    } else {
        mem_free(c);
    }
}

static void claim_send(struct claim *c)
{
    struct queue *q = c->queue;
    const struct lapse_options *set = &q->work->context->settings;
    struct span holder = {q->work->wake.name, strlen(q->work->wake.name)};

    c->lease_ms = set->lease_ms < set->run_ms ? set->lease_ms : set->run_ms;
    c->ask.ask.until_us = clock_us() + set->reply_ms * 1000;
    store_claim(q->work->script, &c->ask, q->watch.key, holder, c->lease_ms, c->n);
}

/* Of the slots that are left. With thousands of queues, most of them empty, a few claims would have
 * them all. */
static unsigned fair_share(const struct queue *q, unsigned left)
{
    unsigned share = left / (q->work->n_owing + 1);
    if (share < 1) {
        return 1;
    }
    return share < SCRIPT_BATCH ? share : SCRIPT_BATCH;
}

void queue_claim(struct queue *q, enum lapse_via via)
{
    unsigned left = room(q);
    struct claim *c = closed_for(q) || waits(q) || q->oldest_asked || !left ? NULL : claim_new(q);

    if (!c) {
        if (!closed_for(q)) {
            owe(q, via); /* also while one is on its way: Redis may have run it before what this
                            hint is about */
        }
        if (!closed_for(q) && !q->oldest_asked) {
            wake_room(&q->watch, left > 0 && !eviction_possible(&q->work->eviction));
        }
        return;
    }

    c->n = fair_share(q, left);
    c->ask.via_oldest = (uint8_t)via;
    q->oldest_asked = true;
    slots(q, 0, (int)c->n);
    claim_send(c);
}

/* Each that owes now, once. Those behind the last slot keep their place. */
void queue_owing(struct work *w)
{
    struct list turn;

    list_init(&turn);
    list_move(&turn, &w->owing);
    while (!list_empty(&turn) && w->n_held + w->n_asked < w->context->settings.max_running) {
        struct queue *q = CONTAINER(turn.next, struct queue, owes);
        queue_forgive(q);
        queue_claim(q, q->owes_via);
    }

    list_move(&turn, &w->owing);
    list_move(&w->owing, &turn);
}

void queue_withdraw(struct queue *q)
{
    struct claim *c = q->open;

    if (c && script_unask(q->work->script, &c->ask.ask)) {
        slots(q, 0, -(int)c->n);
        q->open = NULL;
        claim_free(q->work, c);
    }
}

/* The claim that takes one more id, or NULL: ids that are heard before it is sent travel together.
 */
static struct claim *open_claim(const struct queue *q)
{
    struct claim *c = q->open;
    return c && script_unsent(&c->ask.ask) && c->ask.n_ids < SCRIPT_BATCH ? c : NULL;
}

void queue_named(void *arg, struct watch *watch, struct span id, enum lapse_via via)
{
    struct work *w = arg;
    struct queue *q = CONTAINER(watch, struct queue, watch);
    unsigned left = room(q);
    struct claim *c = open_claim(q);

    if (closed_for(q)) {
        return;
    }

    if (!c && left && !waits(q) && !others_owe(q)) {
        c = claim_new(q);
    }

    if (!left || !c) {
        owe_in_turn(q, via);
        wake_room(watch, left > 0 && !eviction_possible(&w->eviction));
        return;
    }

    store_claim_add(&c->ask, id, via);
    c->n++;
    slots(q, 0, 1);
    if (c != q->open) {
        q->open = c;
        claim_send(c);
    }
}

void queue_oldest(void *arg, struct watch *watch, enum lapse_via via)
{
    struct queue *q = CONTAINER(watch, struct queue, watch);

    (void)arg;
    if (!others_owe(q)) {
        queue_claim(q, via);
    } else if (!closed_for(q)) {
        owe_in_turn(q, via);
        if (!room(q)) {
            wake_room(watch, false);
        }
    }
}

static void count(struct lapse_stats *stats, enum lapse_via via)
{
    stats->claimed++;
    stats->via_event += via == LAPSE_VIA_EVENT;
    stats->via_notice += via == LAPSE_VIA_NOTICE;
    stats->via_alarm += via == LAPSE_VIA_ALARM;
    stats->via_sweep += via == LAPSE_VIA_SWEEP;
}

static void take(struct queue *q, const struct claim *c, const struct claimed *got)
{
    struct work *w = q->work;

    for (size_t i = 0; i < got->n; i++) {
        struct job_row row;
        if (!store_claimed_row(got, i, &row)) {
            continue;
        }
        bool named = row.place >= 1 && row.place <= c->ask.n_ids;
        enum lapse_via via =
            (enum lapse_via)(named ? c->ask.via[row.place - 1] : c->ask.via_oldest);
        struct lease_spec spec = {.owner = q,
                                  .queue = q->name,
                                  .key = q->watch.key,
                                  .row = &row,
                                  .via = via,
                                  .claimed_us = c->ask.ask.sent_us,
                                  .length_ms = c->lease_ms,
                                  .handler = q->fn,
                                  .handler_arg = q->arg};
        if (leases_add(&w->leases, &spec)) {
            log_line(&w->context->log, LOG_MEMORY, LOG_ERR,
                     "out of memory: job of queue %s goes back unbegun", q->name);
            q->again = true;
            continue;
        }
        slots(q, 1, 0);
        count(&w->context->stats, via);
    }

    w->context->stats.empty_claims += got->n == 0;

    if (got->n_unreadable || got->n_lost) {
        log_line(&w->context->log, LOG_DATA, LOG_ERR,
                 "queue %s: %lld jobs in a format this version cannot read are dead now, %lld "
                 "without a record are gone",
                 q->name, (long long)got->n_unreadable, (long long)got->n_lost);
    }
}

/* How many ids are left: a claim by name takes no more than SCRIPT_BATCH_BYTES: those behind the
 * last that it took are still to be asked for.
 */
static unsigned not_reached(const struct claim *c, const struct claimed *got)
{
    size_t bytes = 0;
    int64_t last = 0;

    for (size_t i = 0; i < got->n; i++) {
        struct job_row row;
        if (store_claimed_row(got, i, &row) && row.place >= 1 && row.place <= c->ask.n_ids) {
            bytes += row.record.len;
            last = row.place > last ? row.place : last;
        }
    }

    return last && bytes > SCRIPT_BATCH_BYTES ? c->ask.n_ids - (unsigned)last : 0;
}

static void go_on(struct claim *c, unsigned n)
{
    unsigned first = c->ask.n_ids - n;
    memmove(c->ask.ids, c->ask.ids + first, n * sizeof *c->ask.ids);
    memmove(c->ask.via, c->ask.via + first, n * sizeof *c->ask.via);
    c->ask.n_ids = c->n = n;
    claim_send(c);
}

/* What else is due: by what the answer to a claim says. */
static void look_further(struct queue *q, const struct claim *c, const struct claimed *got)
{
    bool by_age = c->ask.n_ids == 0,
         progress = got->n + (size_t)got->n_unreadable + (size_t)got->n_lost > 0;
    bool overdue = wake_outlook(&q->watch, &got->outlook, c->ask.ask.sent_us);

    if (closed_for(q)) {
        return;
    }

    if (by_age && got->outlook.oldest_ms && progress) {
        owe_in_turn(q, (enum lapse_via)c->ask.via_oldest);
    } else if (by_age) {
        wake_room(&q->watch, true);
    } else if (overdue) {
        queue_oldest(q->work, &q->watch, LAPSE_VIA_ALARM);
    }
}

static void on_claimed(struct claim_ask *a, int err, const struct claimed *got)
{
    struct claim *c = CONTAINER(a, struct claim, ask);
    struct queue *q = c->queue;
    struct work *w = q->work;
    bool by_age = a->n_ids == 0;
    unsigned rest = err ? 0 : not_reached(c, got);

    q->oldest_asked = q->oldest_asked && !by_age;
    q->open = q->open == c ? NULL : q->open;
    slots(q, 0, (int)rest - (int)c->n); /* the rest keeps its slots */

    if (!err) {
        take(q, c, got);
        look_further(q, c, got);
    } else if ((err_is_refusal(err) || err == LAPSE_EBROKEN) && !closed_for(q)) {
        q->again = q->again || err == LAPSE_EBROKEN;
        owe(q, by_age ? (enum lapse_via)a->via_oldest : LAPSE_VIA_SWEEP);
        q->paused_us = clock_us() + PAUSE_MS * INT64_C(1000);
        timer_set(&w->pause, PAUSE_MS + 1);
    }

    if (rest && !closed_for(q) && !waits(q)) {
        go_on(c, rest);
        return;
    }

    if (rest) {
        slots(q, 0, -(int)rest);
    }

    if (rest && !closed_for(q)) {
        owe(q, LAPSE_VIA_SWEEP);
    }

    claim_free(w, c);

    if (closed_for(q)) {
        leases_release_queued(&w->leases, q);
    } else if (q->again || (q->reclaim_next && !q->n_asked)) {
        queue_reclaim(q);
    }
}

/* ---- reclaim ---- */
void queue_reclaimed(void *arg, int err, int64_t n_returned)
{
    struct queue *q = arg;
    struct work *w = q->work;

    if (n_returned) {
        log_line(&w->context->log, LOG_RESUMED, LOG_NOTICE,
                 "queue %s: %lld jobs went back, claimed without our knowing", q->name,
                 (long long)n_returned);
    }

    if (q->stopped) {
        work_want_turn(w); /* it may go now */
    } else if (!err) {
        queue_claim(q, LAPSE_VIA_SWEEP);
    } else if (err_is_refusal(err) || err == LAPSE_EBROKEN || err == LAPSE_ENOMEM) {
        q->again = true;
        timer_set(&w->pause, PAUSE_MS + 1);
    }
}

void queue_reclaim(struct queue *q)
{
    bool can = !reclaim_on(&q->reclaim) && !closed_for(q) && node_up(q->work->script->node);

    q->again = false;
    q->reclaim_next =
        can &&
        q->n_asked; /* what these claims take is in no hands yet: it would go back, and run twice */
    if (can && !q->reclaim_next) {
        reclaim_start(&q->reclaim);
    }
}

void queue_close(struct work *w)
{
    for (struct list *i; (i = list_pop(&w->pool));) {
        mem_free(CONTAINER(i, struct claim, node));
    }
}
