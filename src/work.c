/* SPDX-License-Identifier: MIT */
/* Claims. Four hints, one action: whatever woke us, a claim asks Redis, and Redis decides on the ZSET by its clock.
 *
 * Slots: jobs held and jobs asked for together stay within max_running. A hint that finds no slot makes the queue owe;
 * when slots are free the queues that owe are served in turn, oldest jobs first, until a claim comes back short.
 *
 * After a reconnect a claim may have been made whose answer was lost. The queue is resumed first: what we hold is
 * renewed, what carries our name and is not in our hands goes back, and nothing is claimed meanwhile, or a new claim
 * could be taken for a lost one. */
#include "work.h"
#include "err.h"
#include "mem.h"
#include <stdio.h>

enum { POOL_MAX = 8, PAUSE_MS = 200 };

struct queue {
    struct watch watch;
    struct list node, owes;
    struct work *work;
    lapse_handler *fn;
    void *arg;
    unsigned max, n_held, n_asked;
    bool stopped, resuming, again; /* again: resume once more, Redis may hold more for us */
    bool oldest_asked;             /* a claim by age is on its way: one is enough */
    enum lapse_via owes_via;
    struct claim *gathering; /* ids of this turn */
    struct resume_ask resume;
    struct span *tokens; /* for resume: spans, then their texts */
    size_t key_len;
    char key[KEYS_MAX], name[KEYS_QUEUE_MAX + 1];
};

struct claim {
    struct claim_ask ask;
    struct list node;
    struct queue *queue;
    unsigned n; /* slots set aside */
    int64_t lease_ms;
};

/* ---- slots ---- */
static unsigned room(const struct queue *q)
{
    const struct work *w = q->work;
    unsigned all = w->n_held + w->n_asked, max = w->core->options.set.max_running, mine = q->n_held + q->n_asked;
    unsigned left = all < max ? max - all : 0, own = mine < q->max ? q->max - mine : 0;
    return q->max && own < left ? own : left;
}

static bool closed_for(const struct queue *q)
{
    return q->stopped || q->work->closing;
}

static void owe(struct queue *q, enum lapse_via via)
{
    q->owes_via = via;
    if (list_empty(&q->owes)) {
        list_insert(&q->work->owing, &q->owes);
    }
}

static void slots(struct queue *q, int held, int asked)
{
    q->n_held += (unsigned)held;
    q->n_asked += (unsigned)asked;
    q->work->n_held += (unsigned)held;
    q->work->n_asked += (unsigned)asked;
    q->work->leaving = q->work->leaving || q->stopped;
    if (!list_empty(&q->work->owing)) {
        script_stir(q->work->script);
    }
}

static void on_freed(void *arg, void *owner)
{
    (void)arg;
    slots(owner, -1, 0);
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
    const struct lapse_options *set = &q->work->core->options.set;
    struct span holder = {q->work->wake.name, strlen(q->work->wake.name)};
    c->lease_ms = set->lease_ms < set->run_ms ? set->lease_ms : set->run_ms;
    c->ask.ask.until_us = clock_us() + set->reply_ms * 1000;
    store_claim(q->work->script, &c->ask, q->watch.key, holder, c->lease_ms, c->n);
}

static void claim_oldest(struct queue *q, enum lapse_via via)
{
    unsigned left = room(q);
    struct claim *c = closed_for(q) || q->resuming || q->oldest_asked || !left ? NULL : claim_new(q);
    if (!c) {
        if (!q->oldest_asked && !closed_for(q)) {
            owe(q, via);
            wake_room(&q->watch, left > 0);
        }
        return;
    }
    c->n = left < SCRIPT_BATCH ? left : SCRIPT_BATCH;
    c->ask.via_oldest = (uint8_t)via;
    q->oldest_asked = true;
    slots(q, 0, (int)c->n);
    claim_send(c);
}

static void send_gathered(struct queue *q)
{
    struct claim *c = q->gathering;
    q->gathering = NULL;
    if (c) {
        claim_send(c);
    }
}

static void on_named(void *arg, struct watch *watch, struct span id, enum lapse_via via)
{
    struct work *w = arg;
    struct queue *q = CONTAINER(watch, struct queue, watch);
    unsigned left = room(q);
    if (closed_for(q)) {
        return;
    }
    if (!q->gathering && left && !q->resuming) {
        q->gathering = claim_new(q);
    }
    if (!left || !q->gathering) {
        owe(q, via);
        wake_room(watch, left > 0);
        return;
    }
    struct claim *c = q->gathering;
    memcpy(c->ask.ids[c->n], id.at, id.len);
    c->ask.ids[c->n][id.len] = '\0';
    c->ask.via[c->n] = (uint8_t)via;
    c->ask.n_ids = ++c->n;
    slots(q, 0, 1);
    script_stir(w->script);
    if (c->n == SCRIPT_BATCH) {
        send_gathered(q);
    }
}

static void on_oldest(void *arg, struct watch *watch, enum lapse_via via)
{
    (void)arg;
    claim_oldest(CONTAINER(watch, struct queue, watch), via);
}

static void resume(struct queue *q);

static void count(struct lapse_stats *stats, enum lapse_via via)
{
    stats->claimed++;
    stats->via_event += via == LAPSE_VIA_EVENT;
    stats->via_wake += via == LAPSE_VIA_WAKE;
    stats->via_alarm += via == LAPSE_VIA_ALARM;
    stats->via_sweep += via == LAPSE_VIA_SWEEP;
}

static void take(struct queue *q, const struct claim *c, const struct claimed *got)
{
    struct work *w = q->work;
    unsigned found = 0;
    for (size_t i = 0; i < got->n; i++) {
        struct job_row row;
        if (!store_claimed_row(got, i, &row)) {
            continue;
        }
        bool named = row.place >= 1 && row.place <= c->ask.n_ids;
        enum lapse_via via = (enum lapse_via)(named ? c->ask.via[row.place - 1] : c->ask.via_oldest);
        if (holder_take(&w->holder, q, q->name, q->watch.key, &row, via, c->ask.ask.sent_us, c->lease_ms, q->fn,
                        q->arg)) {
            log_line(&w->core->log, LOG_MEMORY, LOG_ERR, "out of memory: job of queue %s goes back unbegun", q->name);
            q->again = true;
            continue;
        }
        slots(q, 1, 0);
        count(&w->core->stats, via);
        found += via == LAPSE_VIA_ALARM || via == LAPSE_VIA_SWEEP;
    }
    w->core->stats.empty += got->n == 0;
    if (found) {
        wake_found(&w->wake, found);
    }
    if (got->n_unreadable || got->n_lost) {
        log_line(
            &w->core->log, LOG_DATA, LOG_ERR,
            "queue %s: %lld jobs in a format this version cannot read are dead now, %lld without a record are gone",
            q->name, (long long)got->n_unreadable, (long long)got->n_lost);
    }
}

static void on_claimed(struct claim_ask *a, int err, const struct claimed *got)
{
    struct claim *c = CONTAINER(a, struct claim, ask);
    struct queue *q = c->queue;
    struct work *w = q->work;
    bool by_age = a->n_ids == 0, more;
    q->oldest_asked = q->oldest_asked && !by_age;
    slots(q, 0, -(int)c->n);
    if (!err) {
        take(q, c, got);
        wake_outlook(&q->watch, &got->outlook, a->ask.sent_us);
        more = by_age && got->outlook.oldest_ms && got->n + (size_t)got->n_unreadable + (size_t)got->n_lost > 0;
        if (more && !closed_for(q)) {
            owe(q, (enum lapse_via)a->via_oldest);
            script_stir(w->script);
        } else if (by_age && !closed_for(q)) {
            wake_room(&q->watch, true);
        }
    } else if ((err == LAPSE_EREFUSED || err == LAPSE_EBROKEN) && !closed_for(q)) {
        q->again = q->again || err == LAPSE_EBROKEN;
        owe(q, by_age ? (enum lapse_via)a->via_oldest : LAPSE_VIA_SWEEP);
        timer_set(&w->pause, PAUSE_MS);
    }
    claim_free(w, c);
    if (closed_for(q)) {
        holder_release(&w->holder, q);
    } else if (q->again && !q->resuming) {
        resume(q);
    }
}

/* ---- resume ---- */
static void resume_page(struct queue *q, int64_t page)
{
    struct work *w = q->work;
    unsigned n = 0;
    mem_free(q->tokens);
    q->tokens = mem_new(0, (q->n_held + 2) * (sizeof(struct span) + 24));
    if (!q->tokens) {
        q->again = true;
        q->resuming = false;
        timer_set(&w->pause, PAUSE_MS);
        return;
    }
    char *text = (char *)(q->tokens + q->n_held + 2);
    LIST_EACH (i, &w->holder.all) {
        struct held *h = CONTAINER(i, struct held, node);
        if (h->owner == q && h->state != HELD_SETTLED) {
            int len = snprintf(text, 24, "%llu", (unsigned long long)h->job.token);
            q->tokens[2 + n++] = (struct span){text, (size_t)len};
            text += 24;
        }
    }
    q->resume.ask.until_us = clock_us() + w->core->options.set.reply_ms * 1000;
    store_resume(w->script, &q->resume, q->watch.key, (struct span){w->wake.name, strlen(w->wake.name)}, page,
                 q->tokens, n);
}

static void on_resumed(struct resume_ask *a, int err, int64_t next_page, int64_t n_back)
{
    struct queue *q = CONTAINER(a, struct queue, resume);
    struct work *w = q->work;
    if (n_back) {
        log_line(&w->core->log, LOG_RESUMED, LOG_NOTICE, "queue %s: %lld claims whose answer was lost went back",
                 q->name, (long long)n_back);
    }
    if (!err && next_page && !closed_for(q)) {
        resume_page(q, next_page);
        return;
    }
    q->resuming = false;
    w->leaving = true;
    if (err == LAPSE_EREFUSED || err == LAPSE_EBROKEN) {
        q->again = true;
        timer_set(&w->pause, PAUSE_MS);
    } else if (!err) {
        claim_oldest(q, LAPSE_VIA_SWEEP);
    }
}

static void resume(struct queue *q)
{
    q->again = false;
    if (!q->resuming && !closed_for(q) && conn_up(q->work->script->conn)) {
        q->resuming = true;
        holder_renew(&q->work->holder, q);
        resume_page(q, 0);
    }
}

/* ---- the moment before requests are sent ---- */
static void reap(struct work *w)
{
    w->leaving = false;
    LIST_EACH (i, &w->queues) {
        struct queue *q = CONTAINER(i, struct queue, node);
        if (q->stopped && !q->n_held && !q->n_asked && !q->resuming && wake_free_to_go(&q->watch)) {
            list_remove(i);
            mem_free(q->tokens);
            mem_free(q);
        } else {
            w->leaving = w->leaving || q->stopped;
        }
    }
}

static void gather(void *arg)
{
    struct work *w = arg;
    struct list turn;
    LIST_EACH (i, &w->queues) {
        send_gathered(CONTAINER(i, struct queue, node));
    }
    list_init(&turn);
    if (!timer_on(&w->pause)) {
        list_move(&turn, &w->owing);
    }
    for (struct list *i; (i = list_pop(&turn));) {
        struct queue *q = CONTAINER(i, struct queue, owes);
        claim_oldest(q, q->owes_via);
    }
    if (w->leaving) {
        reap(w);
    }
}

static void on_pause(void *arg)
{
    struct work *w = arg;
    LIST_EACH (i, &w->queues) {
        struct queue *q = CONTAINER(i, struct queue, node);
        if (q->again) {
            resume(q);
        }
    }
    script_stir(w->script);
}

/* ---- from above ---- */
static struct queue *find(struct work *w, const char *name)
{
    LIST_EACH (i, &w->queues) {
        struct queue *q = CONTAINER(i, struct queue, node);
        if (!q->stopped && strcmp(q->name, name) == 0) {
            return q;
        }
    }
    return NULL;
}

void work_init(struct work *w, struct core *core, struct script *script, struct deliver *deliver)
{
    static const struct wake_events events = {on_named, on_oldest};
    w->core = core;
    w->script = script;
    list_init(&w->queues);
    list_init(&w->owing);
    list_init(&w->pool);
    timer_init(&w->pause, core->loop, on_pause, w);
    script->gather = gather;
    script->gather_arg = w;
    wake_init(&w->wake, core, script, &events, w);
    holder_init(&w->holder, core, script, deliver, on_freed, w);
}

int work_handle(struct work *w, const char *queue, unsigned max_running, lapse_handler *fn, void *arg)
{
    if (find(w, queue)) {
        return LAPSE_EEXIST;
    }
    struct queue *q = mem_new(sizeof *q, 0);
    if (!q) {
        return LAPSE_ENOMEM;
    }
    q->work = w;
    q->fn = fn;
    q->arg = arg;
    q->max = max_running;
    q->resume.end = on_resumed;
    memcpy(q->name, queue, strlen(queue) + 1);
    q->key_len = keys_due(q->key, w->core->options.set.space, queue);
    list_init(&q->owes);
    list_insert(&w->queues, &q->node);
    wake_watch(&w->wake, &q->watch, q->name, (struct span){q->key, q->key_len});
    return 0;
}

static void stop(struct queue *q)
{
    struct work *w = q->work;
    q->stopped = true;
    w->leaving = true;
    list_remove(&q->owes);
    if (q->gathering) {
        slots(q, 0, -(int)q->gathering->n);
        claim_free(w, q->gathering);
        q->gathering = NULL;
    }
    wake_unwatch(&q->watch);
    holder_release(&w->holder, q);
    script_stir(w->script);
}

int work_stop(struct work *w, const char *queue)
{
    struct queue *q = find(w, queue);
    if (!q) {
        return LAPSE_ENOENT;
    }
    stop(q);
    return 0;
}

void work_told(struct work *w, const char *queue, int64_t due_ms)
{
    struct queue *q = list_empty(&w->queues) ? NULL : find(w, queue);
    if (q) {
        wake_told(&q->watch, due_ms);
    }
}

void work_up(struct work *w)
{
    LIST_EACH (i, &w->queues) {
        struct queue *q = CONTAINER(i, struct queue, node);
        if (w->met) {
            resume(q);
        } else {
            claim_oldest(q, LAPSE_VIA_SWEEP);
        }
    }
    w->met = true;
    wake_up(&w->wake);
}

void work_drain(struct work *w)
{
    w->closing = true;
    LIST_EACH (i, &w->queues) {
        struct queue *q = CONTAINER(i, struct queue, node);
        if (!q->stopped) {
            stop(q);
        }
    }
}

bool work_idle(const struct work *w)
{
    return w->n_held == 0 && w->n_asked == 0;
}

void work_end(struct work *w)
{
    w->closing = true;
    timer_stop(&w->pause);
    holder_end(&w->holder);
    wake_close(&w->wake);
}

void work_close(struct work *w)
{
    struct list *i;
    holder_close(&w->holder);
    while ((i = list_pop(&w->queues))) {
        struct queue *q = CONTAINER(i, struct queue, node);
        mem_free(q->gathering);
        mem_free(q->tokens);
        mem_free(q);
    }
    while ((i = list_pop(&w->pool))) {
        mem_free(CONTAINER(i, struct claim, node));
    }
}
