/* SPDX-License-Identifier: MIT */
/* The jobs in our hands: their handlers' turn, the renewal of their leases, their settling.
 *
 *   QUEUED --its turn--> RUNNING --settle--> SETTLING --answer--> SETTLED --callback--> freed
 *      '---------release (unbegun)---------------^  '--lost: again--^
 *
 * Leases are measured from when we asked for them, so ours ends no later than Redis's. A settle is
 * repeated (by script.c) until it is answered or the lease is over, for reply_ms at least: its
 * token makes that safe. A repeat that hears EGONE cannot know whether the first attempt did it:
 * ELOST. */
#include "listen/lease.h"
#include "base/error.h"
#include "base/mem.h"

enum {
    TICKS = 12 /* looks at the leases, in one lease */,
    LOOK_US = 1000 /* at the least between two */
};

static void free_if_over(struct held *h)
{
    if (h->over && !h->in_handler && !h->renewing.ask.asked) {
        mem_free(h);
    }
}

static void dispose(struct held *h)
{
    list_remove(&h->node);
    if (h->holder) {
        script_unask(h->holder->script, &h->renewing.ask);
    }
    h->over = true;
    free_if_over(h);
}

/* Its handler still has it, and may read it until it settles it, which then only frees it. */
static void cut_loose(struct held *h)
{
    script_unask(h->holder->script, &h->renewing.ask);
    list_remove(&h->node);
    h->state = HELD_RUNNING;
    h->holder = NULL;
    h->job.handle = NULL;
}

/* ---- settling ---- */
static void finish(struct held *h, int err)
{
    struct holder *hs = h->holder;

    h->state = HELD_SETTLED;
    script_unask(hs->script, &h->renewing.ask);
    hs->events->freed(hs->arg, h->owner);
    if (h->given_back && !h->let_go) {
        cut_loose(h);
    } else if (h->settled_fn) {
        h->settled_err = err;
        task_queue_push(hs->tasks, &h->settled);
    } else {
        dispose(h);
    }
}

static void count(struct held *h, int64_t value)
{
    struct lapse_stats *stats = &h->holder->context->stats;

    stats->done += h->settle == SETTLE_DONE;
    stats->retried += h->settle == SETTLE_RETRY && value;
    stats->failed += h->settle == SETTLE_FAIL || (h->settle == SETTLE_RETRY && !value);
    if (h->settle == SETTLE_RETRY && value) {
        h->holder->events->put_back(h->holder->arg, h->owner, value);
    }
}

/* A run that began and could not be settled counts: its token must not be taken for that of a lost
 * claim. */
static void give_up(struct holder *hs, uint64_t token)
{
    uint64_t *place = &hs->given_up[hs->n_given_up++ % GIVEN_UP_MAX];
    if (*place > hs->given_up_before) {
        hs->given_up_before = *place;
    }
    *place = token;
}

static void on_settling(struct settle_ask *a, int err, int64_t value)
{
    struct held *h = CONTAINER(a, struct held, settling);
    struct holder *hs = h->holder;

    if (!err) {
        count(h, value);
    }

    if (err && err != LAPSE_EGONE && h->settle != SETTLE_RELEASE) {
        give_up(hs, h->job.token);
    }

    if (err && a->ask.maybe) {
        err = LAPSE_ELOST;
    } else if (err && err != LAPSE_ECLOSED) {
        err = LAPSE_EGONE;
        hs->context->stats.gone += h->settle != SETTLE_RELEASE;
    }

    finish(h, err);
}

/* How long to try: while the lease lasts, and for reply_ms at least, since Redis takes it also
 * later if nobody else has the job. What was not begun goes back however late: then it has not used
 * a try. */
static int64_t settle_until_us(const struct held *h)
{
    const struct lapse_options *set = &h->holder->context->settings;
    int64_t least_us = clock_us() + set->reply_ms * 1000;

    if (h->settle == SETTLE_RELEASE) {
        return least_us + set->lease_ms * 1000;
    }
    return h->lease_end_us > least_us ? h->lease_end_us : least_us;
}

static void settle(struct held *h)
{
    struct script *s = h->holder->script;
    struct span id = {h->job.id, strlen(h->job.id)};
    struct span reason = {h->reason, strlen(h->reason)};

    h->settling.end = on_settling;
    h->settling.ask.repeats = true;
    h->settling.ask.until_us = settle_until_us(h);

    switch (h->settle) {
    case SETTLE_DONE: store_done(s, &h->settling, h->key, id, h->job.token); break;
    case SETTLE_RETRY:
        store_retry(s, &h->settling, h->key, id, h->job.token, h->delay_ms, reason);
        break;
    case SETTLE_FAIL: store_fail(s, &h->settling, h->key, id, h->job.token, reason); break;
    case SETTLE_RELEASE: store_release(s, &h->settling, h->key, id, h->job.token); break;
    }
}

static void run_settled(struct task *t)
{
    struct held *h = CONTAINER(t, struct held, settled);
    h->settled_fn(h->handle, h->settled_err, NULL, h->settled_arg);
}

static void settled_done(struct task *t, bool alive)
{
    (void)alive;
    dispose(CONTAINER(t, struct held, settled));
}

static void begin_settle(struct held *h, enum settle how)
{
    h->settle = how;
    h->state = HELD_SETTLING;
    settle(h);
}

struct held *held_of(struct lapse_job *job)
{
    return CONTAINER(job, struct held, job);
}

/* Of a text that is too long: not in the midst of a UTF-8 character. */
static size_t reason_len(const char *reason)
{
    size_t len = reason ? strnlen(reason, JOB_REASON_MAX + 1) : 0;

    if (len <= JOB_REASON_MAX) {
        return len;
    }

    for (len = JOB_REASON_MAX; len > JOB_REASON_MAX - 4; len--) {
        if (((unsigned char)reason[len] & 0xc0) != 0x80) {
            return len;
        }
    }

    return JOB_REASON_MAX; /* it is not UTF-8 */
}

void held_settle(struct held *h, enum settle how, int64_t delay_ms, const char *reason,
                 lapse_cb *fn, void *arg)
{
    if (h->given_back && h->holder) {
        ASSERT(!h->let_go);
        h->let_go = true;
        return;
    }

    ASSERT(h->state == HELD_RUNNING); /* once, and by its handler */

    if (!h->holder) {
        h->state = HELD_SETTLED;
        dispose(h);
        return;
    }

    size_t len = reason_len(reason);
    memcpy(h->reason, reason ? reason : "", len);
    h->reason[len] = '\0';
    h->delay_ms = delay_ms;
    h->settled_fn = fn;
    h->settled_arg = arg;
    begin_settle(h, how);
}

/* ---- leases ---- */
static void on_renewed(struct settle_ask *a, int err, int64_t until_ms)
{
    struct held *h = CONTAINER(a, struct held, renewing);

    if (!err) {
        h->job.until_ms = until_ms;
        h->lease_end_us = a->ask.sent_us + h->lease_ms * 1000;
        h->renew_at_us = a->ask.sent_us + h->lease_ms * 1000 / 3;
    } else if (err == LAPSE_EGONE) {
        h->lease_end_us = 0;
    } else if (err_is_refusal(err)) {
        h->renew_at_us = clock_us() + h->lease_ms * 1000 / 6; /* not at each tick */
    }

    free_if_over(h); /* settled while this was on its way */
}

/* For as long as the handler may run; one that has not begun waits its turn for as long as it
 * takes. */
static void renew(struct held *h, int64_t now)
{
    struct holder *hs = h->holder;
    const struct lapse_options *set = &hs->context->settings;
    int64_t left_ms = h->run_end_us ? (h->run_end_us - now) / 1000 : set->run_ms;

    if (h->renewing.ask.asked || left_ms <= 0 ||
        (h->run_end_us && h->run_end_us <= h->lease_end_us)) {
        return;
    }

    h->lease_ms = left_ms < set->lease_ms ? left_ms : set->lease_ms;
    h->renewing.end = on_renewed;
    h->renewing.ask.until_us = h->lease_end_us;
    store_renew(hs->script, &h->renewing, h->key, (struct span){h->job.id, strlen(h->job.id)},
                h->job.token, h->lease_ms);
}

/* Its handler goes on, and hears EGONE when it settles and another has the job by then. */
static void lose(struct held *h, int64_t now)
{
    bool ran_too_long = h->run_end_us && now >= h->run_end_us;

    h->job.until_ms = 0;
    log_line(&h->holder->context->log, LOG_LEASE, LOG_WARNING,
             "the lease of job %s in queue %s ended (%s); it may run again", h->job.id,
             h->job.queue,
             ran_too_long ? "it was held for run_ms" : "it could not be renewed in time");
}

/* Too late to begin it. */
static void release_unbegun(struct held *h)
{
    log_line(&h->holder->context->log, LOG_LEASE, LOG_WARNING,
             "the lease of job %s in queue %s ended before its handler began; it goes back",
             h->job.id, h->job.queue);
    h->job.until_ms = 0;
    list_remove(&h->run.node);
    begin_settle(h, SETTLE_RELEASE);
}

static void look_at_lease(struct held *h, int64_t now)
{
    if (now < h->lease_end_us) {
        if (now >= h->renew_at_us) {
            renew(h, now);
        }
    } else if (h->state == HELD_QUEUED && !h->in_handler) {
        release_unbegun(h);
    } else if (h->job.until_ms) {
        lose(h, now);
    }
}

/* No lease is longer than a run may be. */
static int64_t longest_lease_ms(const struct holder *hs)
{
    const struct lapse_options *set = &hs->context->settings;
    return set->lease_ms < set->run_ms ? set->lease_ms : set->run_ms;
}

/* A loop that does not turn renews nothing. */
static void look_at_loop(struct holder *hs, int64_t now)
{
    int64_t lease_ms = longest_lease_ms(hs);
    int64_t stood_ms = (now - hs->ticked_us) / 1000;

    if (stood_ms > lease_ms / 3) {
        log_line(&hs->context->log, LOG_BLOCKED, LOG_WARNING,
                 "the event loop was blocked for %lld ms (does a handler block, or did the machine "
                 "sleep?); leases of %lld ms are not renewed meanwhile",
                 (long long)stood_ms, (long long)lease_ms);
        health_report(&hs->context->health,
                      (struct lapse_health){.kind = LAPSE_HEALTH_LOOP_BLOCKED, .ms = stood_ms});
    }

    hs->ticked_us = now;
}

void holder_look(struct holder *hs)
{
    int64_t now = clock_us();

    if (now - hs->looked_us < LOOK_US) {
        return; /* each of many queues may ask for it */
    }

    hs->looked_us = now;
    LIST_EACH (i, &hs->all) {
        struct held *h = CONTAINER(i, struct held, node);
        if (h->state <= HELD_RUNNING) {
            look_at_lease(h, now);
        }
    }
}

static void on_tick(void *arg)
{
    struct holder *hs = arg;
    int64_t every_ms = longest_lease_ms(hs) / TICKS;

    look_at_loop(hs, clock_us());
    holder_look(hs);
    if (!list_empty(&hs->all)) {
        timer_set(&hs->tick, every_ms > 10 ? every_ms : 10);
    }
}

/* Redis may have been away for as long as a lease: what is not fresh is renewed before anything
 * else is asked, also where the lease is over, for nobody else may have the job. It may also have
 * lost our last renewals: the fresh ones follow at the next tick. */
void holder_renew(struct holder *hs)
{
    int64_t now = clock_us();

    LIST_EACH (i, &hs->all) {
        struct held *h = CONTAINER(i, struct held, node);
        if (h->state > HELD_RUNNING || !h->lease_end_us) {
            continue;
        }
        if (now >= h->renew_at_us) {
            renew(h, now);
        } else {
            h->renew_at_us = now;
        }
    }
}

/* ---- handlers ---- */
/* The handler runs only while the lease is valid; a job whose lease is over goes back unbegun. */
static void run_handler(struct task *t)
{
    struct held *h = CONTAINER(t, struct held, run);
    int64_t now = clock_us();

    if (now >= h->lease_end_us) {
        return;
    }

    h->in_handler = true;
    h->state = HELD_RUNNING;
    h->run_end_us = now + h->holder->context->settings.run_ms * 1000;
    h->handler(h->handle, &h->job, h->handler_arg);
}

static void handler_done(struct task *t, bool alive)
{
    struct held *h = CONTAINER(t, struct held, run);
    bool began = h->in_handler;

    h->in_handler = false;
    if (began) {
        free_if_over(h);
    } else if (alive) {
        release_unbegun(h);
    } else {
        dispose(h);
    }
}

void holder_init(struct holder *hs, struct context *context, struct script *script,
                 struct task_queue *tasks, const struct holder_events *events, void *arg)
{
    *hs = (struct holder){
        .context = context, .script = script, .tasks = tasks, .events = events, .arg = arg};
    list_init(&hs->all);
    timer_init(&hs->tick, context->loop, on_tick, hs);
}

int holder_take(struct holder *hs, void *owner, const char *queue, struct span key,
                const struct job_row *row, enum lapse_via via, int64_t sent_us, int64_t lease_ms,
                lapse_handler *fn, void *arg)
{
    size_t room = job_texts_len(queue, row, true);
    struct held *h = mem_new(sizeof *h, room + key.len);

    if (!h) {
        return LAPSE_ENOMEM;
    }

    job_fill(&h->job, queue, row, (char *)(h + 1), true);
    h->job.handle = hs->context->handle;
    h->job.via = via;
    h->holder = hs;
    h->owner = owner;
    h->key = (struct span){memcpy((char *)(h + 1) + room, key.at, key.len), key.len};
    h->lease_ms = lease_ms;
    h->lease_end_us = sent_us + lease_ms * 1000;
    h->renew_at_us = sent_us + lease_ms * 1000 / 3;
    h->handle = hs->context->handle;
    h->handler = fn;
    h->handler_arg = arg;
    h->run = (struct task){.run = run_handler, .done = handler_done};
    h->settled = (struct task){.run = run_settled, .done = settled_done};
    list_init(&h->settled.node);
    list_insert(&hs->all, &h->node);
    task_queue_push(hs->tasks, &h->run);
    if (!timer_on(&hs->tick)) {
        hs->ticked_us = clock_us();
        on_tick(hs);
    }

    return 0;
}

void holder_release(struct holder *hs, const void *owner)
{
    LIST_EACH (i, &hs->all) {
        struct held *h = CONTAINER(i, struct held, node);
        if (h->state == HELD_QUEUED && (!owner || h->owner == owner) && !h->in_handler) {
            list_remove(&h->run.node);
            begin_settle(h, SETTLE_RELEASE);
        }
    }
}

bool holder_give_back(struct holder *hs)
{
    bool any = false;

    LIST_EACH (i, &hs->all) {
        struct held *h = CONTAINER(i, struct held, node);
        if (h->state == HELD_RUNNING) {
            h->given_back = any = true;
            begin_settle(h, SETTLE_RELEASE);
        }
    }

    return any;
}

void holder_end(struct holder *hs)
{
    timer_stop(&hs->tick);
}

void holder_close(struct holder *hs)
{
    LIST_EACH (i, &hs->all) {
        struct held *h = CONTAINER(i, struct held, node);
        h->holder = NULL;
        h->job.handle = NULL;
        list_remove(i);
        if (h->state == HELD_QUEUED) {
            list_remove(&h->run.node);
            dispose(h);
        }
    }
}
