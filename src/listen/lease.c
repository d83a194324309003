/* SPDX-License-Identifier: MIT */
/* A claimed job: its handler's turn, the renewal of its lease, its settling.
 *
 *   QUEUED ---handler begins---> RUNNING ---settle---> SETTLING ---answer---> SETTLED ---> freed
 *      |                          |                       ^                      ^
 *      |                          '--settled by token--> OVER ----settle---------'
 *      '--------- released: its handler had not begun ----'
 *
 * A lease is measured from the moment at which it was asked for, so ours ends no later than
 * Redis's.
 *
 * Where the option replicas wants copies, a handler begins when there are some of its claim;
 * without them the job is given back, unbegun. A renewal counts when there are copies of it: a
 * master that is cut off renews a lease that is over elsewhere. One that makes the lease shorter
 * counts at once.
 *
 * script.c repeats a settle until it is answered or the lease is over, and for reply_ms at least:
 * its token makes that safe. A repeat that is answered with EGONE ends with ELOST, as the first
 * attempt may have succeeded. */
#include "listen/lease.h"
#include "listen/told.h"
#include "base/error.h"
#include "base/mem.h"
#include "script/tally.h"

enum {
    TICKS_PER_LEASE = 12,
    TICK_MIN_MS = 10,
    CHECK_APART_US = 1000,
};

/* ---- copies ---- */
static bool lease_wants_copies(const struct lease *l)
{
    struct fence_copies own = fences_own_copies(l->leases->fences);
    return fence_is_wanted(&own);
}

/* Of what was written by a request that was sent then. */
static void lease_wait_for_copies(struct lease *l, struct fence_wait *w, int64_t sent_us,
                                  void (*end)(struct fence_wait *w, int err))
{
    struct fences *fences = l->leases->fences;

    w->key = l->key;
    w->wanted = fences_own_copies(fences);
    w->sent_us = sent_us;
    w->end = end;
    fences_add(fences, w);
}

static void lease_forget_copies(struct lease *l)
{
    fence_forget(&l->copies);
    fence_forget(&l->renewal_copies);
}

/* ---- its memory ---- */
static void lease_free_if_unused(struct lease *l)
{
    bool is_lent = l->in_handler || l->in_told || l->in_settled;

    if (l->disposed && !is_lent && !l->renewing.request.pending) {
        mem_free(l);
    }
}

static void lease_dispose(struct lease *l)
{
    list_remove(&l->node);
    list_remove(&l->told.node);
    lease_forget_copies(l);
    if (l->leases) {
        script_withdraw(l->leases->script, &l->renewing.request);
    }

    l->disposed = true;
    lease_free_if_unused(l);
}

/* The handler still has the job, and may read it until it settles it. */
static void lease_detach(struct lease *l)
{
    script_withdraw(l->leases->script, &l->renewing.request);
    lease_forget_copies(l);
    list_remove(&l->node);
    list_remove(&l->told.node);
    l->state = LEASE_RUNNING;
    l->leases = NULL;
    l->job.handle = NULL;
}

/* ---- settling ---- */
static bool lease_end_is_heard(struct lease *l)
{
    return l->settled_fn || passage_comes_back(&l->passage);
}

/* Tells who is to hear of it, and is not needed any more; but a handler still has a job that was
 * given back. */
static void lease_end(struct lease *l, int err)
{
    struct leases *ls = l->leases;
    bool is_kept = l->given_back && !l->was_settled_late;

    l->settled_err = err;
    if (is_kept) {
        lease_detach(l);
    }
    if (lease_end_is_heard(l)) {
        l->in_settled = true;
        task_queue_push(ls->tasks, &l->settled);
    } else if (!is_kept) {
        lease_dispose(l);
    }
}

static void on_settle_copied(struct fence_wait *w, int err)
{
    lease_end(CONTAINER(w, struct lease, copies), err);
}

/* Nobody needs copies of what nobody hears of. */
static void lease_settled(struct lease *l, int err)
{
    struct leases *ls = l->leases;
    bool needs_copies = !err && !l->given_back && lease_end_is_heard(l) && lease_wants_copies(l);

    l->state = LEASE_SETTLED;
    script_withdraw(ls->script, &l->renewing.request);
    ls->events->ended(ls->arg, l->owner);
    if (needs_copies) {
        lease_wait_for_copies(l, &l->copies, l->settling.request.sent_us, on_settle_copied);
    } else {
        lease_end(l, err);
    }
}

/* A run that began and could not be settled counts as a try, and one that was forgotten goes on
 * elsewhere: its token must not be taken for that of a claim whose answer was lost. */
static void leases_note_unsettled(struct leases *ls, uint64_t token)
{
    uint64_t *place = &ls->unsettled[ls->n_unsettled % UNSETTLED_MAX];

    if (*place > ls->forgotten) {
        ls->forgotten = *place;
    }

    *place = token;
    ls->n_unsettled++;
}

/* Its tries are used up, or its handler said so. */
static void lease_tell_dead(struct lease *l)
{
    job_die(&l->job, span_of(l->reason));
    told_of_job(l->leases->tasks, l->leases->context, LAPSE_EVENT_DIED, &l->job);
}

/* A run that was given back did not happen. */
static void lease_count_run(const struct lease *l)
{
    if (l->settle != SETTLE_RELEASE) {
        tally_run(l->leases->context->tallies, l->job.queue, l->ran_us);
    }
}

static void on_settled(struct settle_request *r, int err, const struct settled_job *job)
{
    struct lease *l = CONTAINER(r, struct lease, settling);
    struct leases *ls = l->leases;
    bool released = l->settle == SETTLE_RELEASE;

    if (!err) {
        script_count_settled(r, job, ls->context, l->job.queue);
        lease_count_run(l);
        if (job->as == SETTLED_WAITS) {
            ls->events->retried(ls->arg, l->owner, span_of(l->job.id), job->due_ms);
        } else if (job->as == SETTLED_DEAD) {
            lease_tell_dead(l);
        }
    } else if (err != LAPSE_EGONE && !released) {
        leases_note_unsettled(ls, l->job.token);
    }

    if (err && r->request.may_have_run) {
        err = LAPSE_ELOST;
    } else if (err && err != LAPSE_ECLOSED) {
        err = LAPSE_EGONE;
        if (!released) {
            ls->context->stats.gone++;
            tally_count(ls->context->tallies, l->job.queue, PAST_GONE, 1);
        }
    }

    lease_settled(l, err);
}

/* A settle is repeated while the lease lasts, and for reply_ms at least: Redis accepts it later
 * too, if the job is still unclaimed. A job whose handler has not begun is returned however late it
 * is, because that saves it a try. */
static int64_t lease_settle_until_us(const struct lease *l)
{
    const struct lapse_options *options = &l->leases->context->options;
    int64_t least_us = clock_us() + options->reply_ms * 1000;

    if (l->settle == SETTLE_RELEASE) {
        return least_us + options->lease_ms * 1000;
    }

    return l->end_us > least_us ? l->end_us : least_us;
}

static struct leased_job lease_job(const struct lease *l)
{
    return (struct leased_job){.key = l->key, .id = span_of(l->job.id), .token = l->job.token};
}

static void lease_ask_settle(struct lease *l, enum settle how)
{
    struct script *s = l->leases->script;
    struct settle_request *r = &l->settling;
    struct leased_job job = lease_job(l);
    struct span reason = span_of(l->reason);

    l->settle = how;
    l->state = LEASE_SETTLING;
    lease_forget_copies(l);
    list_remove(&l->told.node);
    r->end = on_settled;
    r->request.repeats = true;
    r->request.until_us = lease_settle_until_us(l);

    switch (how) {
    case SETTLE_DONE: script_done(s, r, &job); break;
    case SETTLE_RETRY: script_retry(s, r, &job, l->delay_ms, reason); break;
    case SETTLE_SNOOZE: script_snooze(s, r, &job, l->delay_ms, reason); break;
    case SETTLE_FAIL: script_fail(s, r, &job, reason); break;
    case SETTLE_RELEASE: script_release(s, r, &job); break;
    }
}

static void settled_run(struct task *t)
{
    struct lease *l = CONTAINER(t, struct lease, settled);
    lapse_cb *fn = l->settled_fn;

    if (fn) {
        l->settled_fn = NULL;
        fn(l->handle, l->settled_err, NULL, l->settled_arg);
    } else {
        passage_leave(&l->passage, l->handle, &l->job, l->settled_err);
    }
}

static void settled_done(struct task *t, bool alive)
{
    struct lease *l = CONTAINER(t, struct lease, settled);

    if (alive && passage_comes_back(&l->passage)) {
        task_queue_repeat(l->tasks, t);
        return;
    }

    l->in_settled = false;
    if (l->state == LEASE_SETTLED) {
        lease_dispose(l);
    } else {
        lease_free_if_unused(l);
    }
}

struct lease *lease_of(struct lapse_job *job)
{
    ASSERT(!job->is_dup); /* that is only read */
    return CONTAINER(job, struct lease, job);
}

/* Of one that was settled by its token. */
static void lease_tell_over(struct lease *l, lapse_cb *fn, void *arg)
{
    l->state = LEASE_SETTLED;
    l->leases->context->stats.gone++;
    tally_count(l->leases->context->tallies, l->job.queue, PAST_GONE, 1);
    l->settled_fn = fn;
    l->settled_arg = arg;
    lease_end(l, LAPSE_EGONE);
}

static enum lapse_how how_of(enum settle settle)
{
    static const enum lapse_how hows[] = {[SETTLE_DONE] = LAPSE_HOW_DONE,
                                          [SETTLE_RETRY] = LAPSE_HOW_RETRY,
                                          [SETTLE_SNOOZE] = LAPSE_HOW_SNOOZE,
                                          [SETTLE_FAIL] = LAPSE_HOW_FAIL,
                                          [SETTLE_RELEASE] = LAPSE_HOW_RELEASE};
    return hows[settle];
}

void lease_settle(struct lease *l, enum settle how, int64_t delay_ms, const char *reason,
                  lapse_cb *fn, void *arg)
{
    if (l->given_back && l->leases) {
        ASSERT(!l->was_settled_late);
        l->was_settled_late = true;
        return;
    }

    ASSERT(l->state == LEASE_RUNNING || l->state == LEASE_OVER); /* settled once, by its handler */

    if (!l->leases) {
        l->state = LEASE_SETTLED;
        lease_dispose(l);
        return;
    }

    passage_turn(&l->passage, how_of(how));
    if (l->state == LEASE_OVER) {
        lease_tell_over(l, fn, arg);
        return;
    }

    size_t len = job_reason_len(reason);
    memcpy(l->reason, reason ? reason : "", len);
    l->reason[len] = '\0';
    l->delay_ms = delay_ms;
    l->ran_us = clock_us() - l->began_us;
    l->settled_fn = fn;
    l->settled_arg = arg;
    lease_ask_settle(l, how);
}

/* After a reconnect its token is not to be taken for that of a claim whose answer was lost. */
void lease_forget(struct lease *l)
{
    if (l->given_back && l->leases) {
        ASSERT(!l->was_settled_late);
        l->was_settled_late = true;
        return;
    }

    ASSERT(l->state == LEASE_RUNNING || l->state == LEASE_OVER);

    if (l->leases && l->state == LEASE_RUNNING) {
        leases_note_unsettled(l->leases, l->job.token);
        l->leases->events->ended(l->leases->arg, l->owner);
    }

    l->state = LEASE_SETTLED;
    lease_forget_copies(l);
    if (l->leases) {
        passage_turn(&l->passage, 0);
        lease_end(l, 0);
    } else {
        lease_dispose(l);
    }
}

bool lease_is_ours(const struct lease *l)
{
    return l->leases && l->state == LEASE_RUNNING && !l->given_back;
}

/* ---- renewal ---- */
static bool lease_is_held(const struct lease *l)
{
    return l->state == LEASE_QUEUED || l->state == LEASE_RUNNING;
}

/* A run that reaches run_ms ends with its lease: there is nothing to renew. */
static bool lease_lasts_for_run(const struct lease *l)
{
    return l->run_end_us && l->run_end_us <= l->end_us;
}

static void lease_take_renewal(struct lease *l, const struct lease_span *span)
{
    job_set_until_ms(&l->job, span->lease.until_ms);
    l->end_us = span->sent_us + span->length_ms * 1000;
    l->renew_at_us = span->sent_us + span->length_ms * 1000 / 3;
    if (lease_lasts_for_run(l)) {
        l->renew_at_us = INT64_MAX;
    }
}

static void on_renewal_copied(struct fence_wait *w, int err)
{
    struct lease *l = CONTAINER(w, struct lease, renewal_copies);

    if (!err) {
        lease_take_renewal(l, &l->renewal);
    } else {
        l->renew_at_us = clock_us() + l->renewal.length_ms * 1000 / 6; /* not at each tick */
    }
}

/* Where copies are wanted it counts when they are there. */
static void lease_renewed(struct lease *l, const struct lease_span *span)
{
    int64_t end_us = span->sent_us + span->length_ms * 1000;
    bool is_held = l->leases && lease_is_held(l);

    fence_forget(&l->renewal_copies);
    if (!is_held || end_us <= l->end_us || !lease_wants_copies(l)) {
        lease_take_renewal(l, span);
        return;
    }

    l->renewal = *span;
    lease_wait_for_copies(l, &l->renewal_copies, span->sent_us, on_renewal_copied);
}

static void on_renewed(struct renew_request *r, int err, const struct renewed_lease *lease);

/* One that is over is asked for as well, and its request needs time: in a cluster Redis may be
 * connected and refuse all of a queue for a while. */
static int64_t lease_renew_until_us(const struct lease *l, int64_t now_us)
{
    int64_t least_us = now_us + l->leases->context->options.reply_ms * 1000;

    return l->end_us > least_us ? l->end_us : least_us;
}

/* A lease is renewed for as long as its handler may run, and ends no earlier: what is left of that
 * is rounded up. A job that waits for its turn is kept for as long as that takes. */
static void lease_renew(struct lease *l, int64_t now_us)
{
    const struct lapse_options *options = &l->leases->context->options;
    int64_t left_ms = l->run_end_us ? (l->run_end_us - now_us + 999) / 1000 : options->run_ms;

    if (l->renewing.request.pending || left_ms <= 0) {
        return;
    }

    l->length_ms = left_ms < options->lease_ms ? left_ms : options->lease_ms;
    l->renewing.end = on_renewed;
    l->renewing.request.until_us = lease_renew_until_us(l, now_us);

    struct leased_job job = lease_job(l);
    script_renew(l->leases->script, &l->renewing, &job, l->length_ms);
}

/* From now on it may be held for run_ms. Its lease is made to fit if it lasts longer, or was not to
 * be renewed any more; one that is being renewed goes by the end of before. */
static void lease_limit(struct lease *l, int64_t now_us, int64_t run_ms)
{
    bool was_last = l->renew_at_us == INT64_MAX;

    l->run_end_us = now_us + run_ms * 1000;
    if (l->renewing.request.pending) {
        l->renews_again = true;
    } else if (was_last || l->end_us > l->run_end_us) {
        l->renew_at_us = now_us;
        lease_renew(l, now_us);
    }
}

int lease_extend(struct lease *l, int64_t run_ms)
{
    int64_t now_us = clock_us();

    if (!l->leases || l->given_back || l->state == LEASE_OVER || now_us >= l->end_us) {
        return LAPSE_EGONE;
    }

    ASSERT(l->state == LEASE_RUNNING); /* it is not settled, and its handler has it */
    lease_limit(l, now_us, run_ms);

    return 0;
}

/* ---- asked to stop ---- */
static void lease_told_run(struct task *t)
{
    struct lease *l = CONTAINER(t, struct lease, told);
    struct context *c = l->leases->context;

    l->in_told = true;
    if (c->on_event) {
        c->on_event(l->handle, LAPSE_EVENT_CANCEL, &l->job, c->on_event_arg);
    }
}

static void lease_told_done(struct task *t, bool alive)
{
    struct lease *l = CONTAINER(t, struct lease, told);
    (void)alive;

    l->in_told = false;
    l->told.queued = false;
    lease_free_if_unused(l);
}

/* Redis said whether the job is asked to stop. A handler that has not begun does not begin. */
static void lease_hear_mark(struct lease *l, bool cancelled)
{
    bool is_news = cancelled && !job_cancelled(&l->job);

    job_set_cancelled(&l->job, cancelled);
    if (!is_news) {
        return;
    }

    if (l->state == LEASE_QUEUED && !l->in_handler) {
        list_remove(&l->run.node);
        lease_ask_settle(l, SETTLE_RELEASE);
    } else if (l->state == LEASE_RUNNING && !l->told.queued) {
        task_queue_push(l->leases->tasks, &l->told);
    }
}

/* It could not be sent, and no reconnect will ask for it: Redis is there. */
static bool lease_waits_for_redis(const struct lease *l, int err)
{
    return err == LAPSE_EDOWN && l->leases && node_up(node_of(l->leases->script, l->key));
}

static void on_renewed(struct renew_request *r, int err, const struct renewed_lease *lease)
{
    struct lease *l = CONTAINER(r, struct lease, renewing);
    bool renews_again = l->renews_again || lease_waits_for_redis(l, err);

    l->renews_again = false;
    if (!err) {
        lease_renewed(l, &(struct lease_span){r->request.sent_us, l->length_ms, *lease});
    } else if (err == LAPSE_EGONE) {
        l->end_us = 0;
    } else if (err_is_refusal(err)) {
        l->renew_at_us = clock_us() + l->length_ms * 1000 / 6; /* not at each tick */
    }

    if (l->leases && lease_is_held(l) && !err) {
        lease_hear_mark(l, lease->cancelled);
    }
    if (l->leases && lease_is_held(l) && renews_again && err != LAPSE_EGONE) {
        lease_renew(l, clock_us());
    }
    lease_free_if_unused(l); /* it may have been settled meanwhile */
}

/* ---- its end ---- */
/* The handler goes on. When it settles, it hears EGONE if another process has the job by then. */
static void lease_lose(struct lease *l, int64_t now_us)
{
    bool ran_too_long = l->run_end_us && now_us >= l->run_end_us;
    const char *cause = ran_too_long ? "it was held for run_ms" : "it could not be renewed in time";

    job_set_until_ms(&l->job, 0);
    log_line(&l->leases->context->log, LOG_LEASE, LOG_WARNING,
             "the lease of job %s in queue %s ended (%s); it may run again", l->job.id,
             l->job.queue, cause);
}

/* The handler has not begun, and must not: the lease is over. */
static void lease_release_late(struct lease *l)
{
    log_line(&l->leases->context->log, LOG_LEASE, LOG_WARNING,
             "the lease of job %s in queue %s ended before its handler began; it is returned",
             l->job.id, l->job.queue);
    job_set_until_ms(&l->job, 0);
    list_remove(&l->run.node);
    lease_ask_settle(l, SETTLE_RELEASE);
}

static void lease_check(struct lease *l, int64_t now_us)
{
    bool awaits_copies = !list_empty(&l->renewal_copies.node); /* a renewal would restart that */

    if (now_us < l->end_us) {
        if (now_us >= l->renew_at_us && !awaits_copies) {
            lease_renew(l, now_us);
        }
    } else if (l->state == LEASE_QUEUED && !l->in_handler) {
        lease_release_late(l);
    } else if (job_until_ms(&l->job)) {
        lease_lose(l, now_us);
    }
}

void leases_check(struct leases *ls)
{
    int64_t now_us = clock_us();

    if (now_us - ls->checked_us < CHECK_APART_US) {
        return; /* each of many queues may ask for it */
    }

    ls->checked_us = now_us;
    LIST_EACH (i, &ls->all) {
        struct lease *l = CONTAINER(i, struct lease, node);
        if (lease_is_held(l)) {
            lease_check(l, now_us);
        }
    }
}

/* No lease is longer than a run may be. */
static int64_t leases_longest_ms(const struct leases *ls)
{
    const struct lapse_options *options = &ls->context->options;

    return options->lease_ms < options->run_ms ? options->lease_ms : options->run_ms;
}

/* While the loop stands still, no lease is renewed. */
static void leases_check_loop(struct leases *ls)
{
    int64_t now_us = clock_us();
    int64_t blocked_ms = (now_us - ls->ticked_us) / 1000;
    int64_t lease_ms = leases_longest_ms(ls);

    ls->ticked_us = now_us;
    if (blocked_ms <= lease_ms / 3) {
        return;
    }

    log_line(&ls->context->log, LOG_BLOCKED, LOG_WARNING,
             "the event loop was blocked for %lld ms (does a handler block, or did the machine "
             "sleep?); leases of %lld ms are not renewed meanwhile",
             (long long)blocked_ms, (long long)lease_ms);
    health_report(&ls->context->health,
                  (struct lapse_health){.kind = LAPSE_HEALTH_LOOP_BLOCKED, .ms = blocked_ms});
}

static void on_tick(void *arg)
{
    struct leases *ls = arg;
    int64_t every_ms = leases_longest_ms(ls) / TICKS_PER_LEASE;

    leases_check_loop(ls);
    leases_check(ls);
    if (!list_empty(&ls->all)) {
        timer_set(&ls->tick, every_ms > TICK_MIN_MS ? every_ms : TICK_MIN_MS);
    }
}

/* Redis may have been away for as long as a lease. So what is not fresh is renewed before anything
 * else is asked, even if the lease is over, as the job may still be unclaimed. Redis may also have
 * lost the last renewals, so the fresh leases follow at the next tick. */
void leases_renew(struct leases *ls, const struct node *node)
{
    int64_t now_us = clock_us();

    LIST_EACH (i, &ls->all) {
        struct lease *l = CONTAINER(i, struct lease, node);
        if (!lease_is_held(l) || !l->end_us || node_of(ls->script, l->key) != node) {
            continue;
        }

        if (now_us >= l->renew_at_us) {
            lease_renew(l, now_us);
        } else {
            l->renew_at_us = now_us;
        }
    }
}

/* ---- handlers ---- */
static void lease_begin(struct lease *l, int64_t now_us)
{
    int64_t run_ms = l->leases->context->options.run_ms;

    l->in_handler = true;
    l->state = LEASE_RUNNING;
    l->began_us = now_us;
    if (l->job.run_ms && l->job.run_ms < run_ms) {
        lease_limit(l, now_us, l->job.run_ms);
    } else {
        l->run_end_us = now_us + run_ms * 1000;
    }
}

/* What came before the handler has left the job to it; but the handle may have closed meanwhile:
 * then nobody has the job. */
static bool lease_goes_on(struct lease *l)
{
    if (lease_is_ours(l) || (l->leases && l->state == LEASE_OVER)) {
        return true;
    }

    lease_settle(l, SETTLE_RELEASE, 0, NULL, NULL, NULL);
    return false;
}

/* A handler whose lease is over does not begin. */
static void handler_run(struct task *t)
{
    struct lease *l = CONTAINER(t, struct lease, run);
    int64_t now_us = clock_us();

    if (now_us >= l->end_us) {
        return;
    }

    lease_begin(l, now_us);
    passage_begin(&l->passage, &l->leases->arounds, now_us);
    for (const struct around *a; passage_enter(&l->passage, &a);) {
        bool is_taken = a->before(l->handle, &l->job, a->arg) != 0;
        if (is_taken || !lease_goes_on(l)) {
            return;
        }
    }
    l->handler(l->handle, &l->job, l->handler_arg);
}

static void handler_done(struct task *t, bool alive)
{
    struct lease *l = CONTAINER(t, struct lease, run);
    bool began = l->in_handler;

    l->in_handler = false;
    if (began) {
        lease_free_if_unused(l);
    } else if (alive) {
        lease_release_late(l);
    } else {
        lease_dispose(l);
    }
}

/* ---- jobs that were asked for ---- */
unsigned leases_give(struct list *from, struct lapse_job **out)
{
    int64_t now_us = clock_us();
    unsigned n = 0;

    for (struct list *i; (i = list_pop(from));) {
        struct lease *l = CONTAINER(i, struct lease, run.node);
        if (now_us < l->end_us) {
            lease_begin(l, now_us);
            out[n++] = &l->job;
        } else {
            lease_release_late(l);
        }
    }

    return n;
}

void leases_given(struct lapse_job *const *jobs, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct lease *l = lease_of(jobs[i]);
        l->in_handler = false;
        lease_free_if_unused(l);
    }
}

void leases_release(struct list *from)
{
    for (struct list *i; (i = list_pop(from));) {
        lease_ask_settle(CONTAINER(i, struct lease, run.node), SETTLE_RELEASE);
    }
}

/* ---- all leases ---- */
void leases_init(struct leases *ls, struct fences *fences, struct task_queue *tasks,
                 const struct lease_events *events, void *arg)
{
    *ls = (struct leases){.context = fences->context,
                          .script = fences->script,
                          .fences = fences,
                          .tasks = tasks,
                          .events = events,
                          .arg = arg};
    list_init(&ls->all);
    timer_init(&ls->tick, fences->context->loop, on_tick, ls);
}

int leases_around(struct leases *ls, const struct around *a)
{
    if (ls->arounds.n == LAPSE_AROUND_MAX) {
        return LAPSE_EFULL;
    }

    ls->arounds.of[ls->arounds.n++] = *a;
    return 0;
}

static struct lease *lease_new(struct leases *ls, const struct lease_spec *spec)
{
    size_t texts_len = job_texts_len(spec->queue, spec->row, true);
    struct lease *l = mem_new(sizeof *l, texts_len + spec->key.len);

    if (!l) {
        return NULL;
    }

    char *texts = (char *)(l + 1);
    char *key = texts + texts_len;

    job_fill(&l->job, spec->queue, spec->row, texts, true);
    memcpy(key, spec->key.at, spec->key.len);
    l->key = (struct span){key, spec->key.len};

    l->leases = ls;
    l->owner = spec->owner;
    l->tasks = ls->tasks;
    l->handle = ls->context->handle;
    l->job.handle = l->handle;
    l->job.via = spec->via;

    return l;
}

static void on_claim_copied(struct fence_wait *w, int err)
{
    struct lease *l = CONTAINER(w, struct lease, copies);

    if (err) {
        lease_ask_settle(l, SETTLE_RELEASE);
    } else {
        task_queue_push(l->leases->tasks, &l->run);
    }
}

int leases_add(struct leases *ls, const struct lease_spec *spec)
{
    struct lease *l = lease_new(ls, spec);

    if (!l) {
        return LAPSE_ENOMEM;
    }

    l->length_ms = spec->length_ms;
    l->end_us = spec->claimed_us + spec->length_ms * 1000;
    l->renew_at_us = spec->claimed_us + spec->length_ms * 1000 / 3;
    l->handler = spec->handler;
    l->handler_arg = spec->handler_arg;
    l->run = (struct task){.run = handler_run, .done = handler_done};
    list_init(&l->run.node);
    list_init(&l->copies.node);
    list_init(&l->renewal_copies.node);
    l->settled = (struct task){.run = settled_run, .done = settled_done};
    list_init(&l->settled.node);
    l->told = (struct task){.run = lease_told_run, .done = lease_told_done};
    list_init(&l->told.node);

    list_insert(&ls->all, &l->node);
    if (spec->to) {
        list_insert(spec->to, &l->run.node);
    } else if (lease_wants_copies(l)) {
        lease_wait_for_copies(l, &l->copies, spec->claimed_us, on_claim_copied);
    } else {
        task_queue_push(ls->tasks, &l->run);
    }
    if (!timer_on(&ls->tick)) {
        ls->ticked_us = clock_us();
        on_tick(ls);
    }

    return 0;
}

void leases_release_queued(struct leases *ls, const void *owner)
{
    LIST_EACH (i, &ls->all) {
        struct lease *l = CONTAINER(i, struct lease, node);
        if (l->state == LEASE_QUEUED && l->owner == owner && !l->in_handler) {
            list_remove(&l->run.node);
            lease_ask_settle(l, SETTLE_RELEASE);
        }
    }
}

void leases_give_back(struct leases *ls)
{
    LIST_EACH (i, &ls->all) {
        struct lease *l = CONTAINER(i, struct lease, node);
        if (l->state == LEASE_RUNNING) {
            l->given_back = true;
            passage_turn(&l->passage, LAPSE_HOW_RELEASE);
            lease_ask_settle(l, SETTLE_RELEASE);
        }
    }
}

/* Leases of a queue that was stopped and is handled again count too. The key of a settled one is
 * not needed any more. */
static bool lease_holds_token(const struct lease *l, struct span key)
{
    bool is_ours = lease_is_held(l) || l->state == LEASE_SETTLING;

    return is_ours && span_eq(l->key, key);
}

static size_t leases_n_unsettled(const struct leases *ls)
{
    return ls->n_unsettled < UNSETTLED_MAX ? ls->n_unsettled : UNSETTLED_MAX;
}

size_t leases_max_tokens(const struct leases *ls, struct span key)
{
    size_t n = leases_n_unsettled(ls);

    LIST_EACH (i, &ls->all) {
        if (lease_holds_token(CONTAINER(i, struct lease, node), key)) {
            n++;
        }
    }

    return n;
}

size_t leases_tokens(const struct leases *ls, struct span key, uint64_t *out)
{
    size_t n = leases_n_unsettled(ls);

    memcpy(out, ls->unsettled, n * sizeof *out);
    LIST_EACH (i, &ls->all) {
        const struct lease *l = CONTAINER(i, struct lease, node);
        if (lease_holds_token(l, key)) {
            out[n++] = l->job.token;
        }
    }

    return n;
}

uint64_t leases_forgotten_token(const struct leases *ls)
{
    return ls->forgotten;
}

/* ---- settled and renewed by a token ---- */
/* NULL: we do not hold it. */
static struct lease *leases_find(struct leases *ls, const struct leased_job *job)
{
    LIST_EACH (i, &ls->all) {
        struct lease *l = CONTAINER(i, struct lease, node);
        if (l->job.token == job->token && lease_is_held(l) && span_eq(l->key, job->key) &&
            span_eq(span_of(l->job.id), job->id)) {
            return l;
        }
    }

    return NULL;
}

void leases_settled(struct leases *ls, const struct leased_job *job)
{
    struct lease *l = leases_find(ls, job);

    if (!l) {
        return;
    }

    ls->events->ended(ls->arg, l->owner);
    if (l->state == LEASE_QUEUED) {
        list_remove(&l->run.node);
        lease_dispose(l);
        return;
    }

    script_withdraw(ls->script, &l->renewing.request);
    lease_forget_copies(l);
    list_remove(&l->told.node);
    l->state = LEASE_OVER;
    job_set_until_ms(&l->job, 0);
}

void leases_tell_dead(struct leases *ls, const char *queue, const struct leased_job *job,
                      struct span reason)
{
    const struct lease *l = leases_find(ls, job);
    struct lapse_job dead = {.queue = queue, .id = job->id.at, .token = job->token, .body = ""};

    if (l) {
        dead = l->job;
    }
    job_die(&dead, reason);
    told_of_job(ls->tasks, ls->context, LAPSE_EVENT_DIED, &dead);
}

/* The mark may have come after Redis ran a renewal that is under way. */
static void lease_look(struct lease *l)
{
    int64_t now_us = clock_us();

    if (now_us >= l->end_us) {
        return;
    }

    if (l->renewing.request.pending && !script_is_unsent(&l->renewing.request)) {
        l->renews_again = true;
    }
    lease_renew(l, now_us);
}

void leases_look(struct leases *ls, const struct leased_job *job)
{
    struct lease *l = leases_find(ls, job);

    if (l) {
        lease_look(l);
    }
}

void leases_renewed(struct leases *ls, const struct leased_job *job, const struct lease_span *span)
{
    struct lease *l = leases_find(ls, job);

    if (l) {
        lease_renewed(l, span);
        lease_hear_mark(l, span->lease.cancelled);
    }
}

void leases_stop(struct leases *ls)
{
    timer_stop(&ls->tick);
}

/* Its handler still has the job: those that the job has passed hear that Redis was not told. */
static void lease_tell_closed(struct lease *l)
{
    if (!passage_comes_back(&l->passage)) {
        return;
    }

    passage_turn(&l->passage, LAPSE_HOW_RELEASE);
    l->settled_err = l->state == LEASE_OVER ? LAPSE_EGONE : LAPSE_ECLOSED;
    l->in_settled = true;
    task_queue_push(l->tasks, &l->settled);
}

void leases_close(struct leases *ls)
{
    LIST_EACH (i, &ls->all) {
        struct lease *l = CONTAINER(i, struct lease, node);

        if (l->state == LEASE_RUNNING || l->state == LEASE_OVER) {
            lease_tell_closed(l);
        }
        l->leases = NULL;
        l->job.handle = NULL;
        list_remove(i);
        list_remove(&l->told.node);
        if (l->state == LEASE_QUEUED) {
            list_remove(&l->run.node);
            lease_dispose(l);
        }
    }
}
