/* SPDX-License-Identifier: MIT */
/* Every public call from every callback: what(calls) x from(callbacks), each pair on a handle of
 * its own. */
#include "allocations.h"
#include "ask.h"
#include "listening.h"
#include <criterion/parameterized.h>
#include <signal.h>

enum { HOUR = 3600000, SPARES = 3 };
enum from {
    SCHEDULED,
    ALONE,
    CANCELLED,
    RESCHEDULED,
    GOT,
    REFUSED,
    LISTED,
    DEPTH,
    QUEUES,
    LISTENERS,
    REMOVED,
    SELECTED,
    CONFIGURED,
    CLAIMED,
    TOLD,
    TOLD_SKIPPED,
    TOLD_DEAD,
    TOLD_TO_STOP,
    BEFORE,
    HANDLER,
    AFTER,
    DONE,
    RETRIED,
    FAILED,
    ENDED,
    CLOSED
};

struct scene {
    struct flow *f;
    struct lapse *l; /* NULL: abandoned, or closed */
    enum from from;
    const struct call *call;
    struct lapse_job *jobs[SPARES + 1]; /* in our hands; a handler's own is the last */
    size_t n_jobs;
    unsigned owed, got; /* callbacks of what was asked in the callback */
    bool called, closing, closed, other_closed;
};
struct call {
    const char *name;
    void (*make)(struct scene *x);
};

/* ---- calls ---- */
static void answered(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)err;
    (void)job;
    ((struct scene *)arg)->got++;
}

static void depth_answered(struct lapse *l, int err, const struct lapse_depth *d, void *arg)
{
    (void)d;
    answered(l, err, NULL, arg);
}

static void text_answered(struct lapse *l, int err, const char *text, void *arg)
{
    (void)text;
    answered(l, err, NULL, arg);
}

static void list_answered(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                          void *arg)
{
    (void)jobs;
    (void)n;
    answered(l, err, NULL, arg);
}

static void claim_answered(struct lapse *l, int err, struct lapse_job *const *jobs, size_t n,
                           void *arg)
{
    for (size_t i = 0; i < n; i++) {
        lapse_done(jobs[i], NULL, NULL);
    }
    answered(l, err, NULL, arg);
}

static void on_closed(void *arg)
{
    ((struct scene *)arg)->closed = true;
}

static void on_other_closed(void *arg)
{
    ((struct scene *)arg)->other_closed = true;
}

static void keep_job(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct scene *x = arg;
    (void)l;
    cr_assert_leq(x->n_jobs, SPARES);
    x->jobs[x->n_jobs++] = job;
}

/* An accepted call is answered; a closing handle accepts nothing. */
static void accepted(struct scene *x, int err)
{
    cr_assert_eq(err, x->closing ? LAPSE_ECLOSED : 0, "%s: %s", x->call->name, lapse_strerror(err));
    if (err == 0) {
        x->owed++;
    }
}

static void schedule(struct scene *x)
{
    struct lapse_spec s = flow_job_spec("q", "new", HOUR);
    s.on_conflict = LAPSE_REPLACE;
    accepted(x, lapse_schedule(x->l, &s, answered, x));
}

static void cancel(struct scene *x)
{
    accepted(x, lapse_cancel(x->l, "q", "job", 0, answered, x));
}

static void reschedule(struct scene *x)
{
    accepted(x, lapse_reschedule(x->l, "q", "job", lapse_in(2 * HOUR), 0, answered, x));
}

static void count_answered(struct lapse *l, int err, uint64_t n, uint64_t n_running, void *arg)
{
    (void)n;
    (void)n_running;
    answered(l, err, NULL, arg);
}

static const struct lapse_where waiting = {.size = sizeof waiting, .state = LAPSE_WAITING};

static void cancel_all(struct scene *x)
{
    accepted(x, lapse_cancel_all(x->l, "q", &waiting, 0, count_answered, x));
}

static void kill_all(struct scene *x)
{
    accepted(x, lapse_kill_all(x->l, "q", &waiting, "why", count_answered, x));
}

static void reschedule_all(struct scene *x)
{
    struct lapse_due due = lapse_in(2 * HOUR);
    accepted(x, lapse_reschedule_all(x->l, "q", &waiting, due, 0, 0, count_answered, x));
}

static void kill_job(struct scene *x)
{
    accepted(x, lapse_kill(x->l, "q", "job", "no", answered, x));
}

static void batch_close(struct scene *x)
{
    accepted(x, lapse_batch_close(x->l, "q", "job", answered, x));
}

static void batch_answered(struct lapse *l, int err, const struct lapse_batch *batch, void *arg)
{
    (void)batch;
    answered(l, err, NULL, arg);
}

static void batch_get(struct scene *x)
{
    accepted(x, lapse_batch_get(x->l, "q", "job", batch_answered, x));
}

static void get(struct scene *x)
{
    accepted(x, lapse_get(x->l, "q", "job", answered, x));
}

static void wait(struct scene *x)
{
    accepted(x, lapse_wait(x->l, "q", "job", 1, answered, x));
}

static void list(struct scene *x)
{
    accepted(x, lapse_list(x->l, "spare", LAPSE_RUNNING, NULL, 100, list_answered, x));
}

static void listeners_answered(struct lapse *l, int err,
                               const struct lapse_listener *const *listeners, size_t n, void *arg)
{
    (void)listeners;
    (void)n;
    answered(l, err, NULL, arg);
}

static void quiet(struct scene *x)
{
    accepted(x, lapse_quiet(x->l, "nobody", 1, listeners_answered, x));
}

static void depth(struct scene *x)
{
    accepted(x, lapse_depth(x->l, "q", depth_answered, x));
}

static void history_answered(struct lapse *l, int err, const struct lapse_past *const *rows,
                             size_t n, void *arg)
{
    (void)rows;
    (void)n;
    answered(l, err, NULL, arg);
}

static void history(struct scene *x)
{
    accepted(x, lapse_history(x->l, "q", 0, 0, 0, history_answered, x));
}

static void configure(struct scene *x)
{
    accepted(x, lapse_configure(x->l, "q", "paused=", text_answered, x));
}

static void pause_queue(struct scene *x)
{
    accepted(x, lapse_pause(x->l, "other", NULL, 1, text_answered, x));
    accepted(x, lapse_unpause(x->l, "other", NULL, text_answered, x));
}

static void forward(struct scene *x)
{
    accepted(x, lapse_forward(x->l, "sent", "list", text_answered, x));
}

static void adopt(struct scene *x)
{
    static const struct lapse_adoption what = {
        .size = sizeof what, .group = "g", .consumer = "me", .n = 1};
    accepted(x, lapse_adopt(x->l, "other", &what, list_answered, x));
}

static void claim(struct scene *x)
{
    accepted(x, lapse_claim(x->l, "other", 3, 0, claim_answered, x));
}

static void claim_and_wait(struct scene *x)
{
    accepted(x, lapse_claim(x->l, "other", 1, 20, claim_answered, x));
}

static void claim_by_id(struct scene *x)
{
    accepted(x, lapse_claim_id(x->l, "other", "job", claim_answered, x));
}

static void settle_by_token(struct scene *x)
{
    static const struct lapse_settlement done = {.size = sizeof done, .how = LAPSE_HOW_DONE};
    accepted(x, lapse_settle(x->l, "spare", "job", 7, &done, answered, x));
}

static void forget(struct scene *x)
{
    lapse_forget(x->jobs[--x->n_jobs]);
}

static void handle(struct scene *x)
{
    accepted(x, lapse_listen(x->l, "new", NULL, keep_job, x));
    x->owed -= !x->closing; /* no callback */
}

static void handle_no_more(struct scene *x)
{
    accepted(x, lapse_unlisten(x->l, "spare"));
    x->owed -= !x->closing;
}

static void handle_again(struct scene *x)
{
    handle_no_more(x);
    accepted(x, lapse_listen(x->l, "spare", NULL, keep_job, x));
    x->owed -= !x->closing;
}

static struct lapse_job *take(struct scene *x)
{
    /* from then on jobs are cut loose, and no callback runs */
    if (x->from < ENDED) {
        x->owed++;
    }
    return x->jobs[--x->n_jobs];
}

static void done(struct scene *x)
{
    lapse_done(take(x), answered, x);
}

static void retry(struct scene *x)
{
    lapse_retry(take(x), HOUR, "later", answered, x);
}

static void snooze(struct scene *x)
{
    lapse_snooze(take(x), HOUR, "later", answered, x);
}

static void extend(struct scene *x)
{
    int err = lapse_extend(x->jobs[0], HOUR);
    cr_assert(err == 0 || err == LAPSE_EGONE);
}

static void report(struct scene *x)
{
    int err = lapse_report(x->jobs[0], "half", 4, answered, x);
    cr_assert(err == 0 || err == LAPSE_EGONE);
    x->owed += err == 0;
}

static void fail(struct scene *x)
{
    lapse_fail(take(x), "never", answered, x);
}

/* It is due at once: nobody here may claim it again. */
static void release(struct scene *x)
{
    handle_no_more(x);
    lapse_release(take(x), answered, x);
}

static void dup_job(struct scene *x)
{
    struct lapse_job *c = lapse_job_dup(x->jobs[0]);
    cr_assert_str_eq(lapse_job_id(c), lapse_job_id(x->jobs[0]));
    lapse_job_free(c);
}

static void done_untold(struct scene *x)
{
    lapse_done(x->jobs[--x->n_jobs], NULL, NULL);
}

static void stats(struct scene *x)
{
    struct lapse_stats s;
    lapse_stats(x->l, &s, sizeof s);
}

static void lateness(struct scene *x)
{
    struct lapse_histogram h;
    cr_assert_eq(lapse_lateness(x->l, 0, &h), 0);
}

static void options(struct scene *x)
{
    struct lapse_options o = lapse_options_init();
    (void)x;
    cr_assert_eq(lapse_options_set(&o, "lease_ms", "1s"), 0);
    cr_assert(lapse_strerror(LAPSE_EDOWN) && lapse_outcome_unknown(LAPSE_ELOST));
}

static void open_another(struct scene *x)
{
    struct lapse_options o = flow_options(x->f);
    struct lapse *l;

    cr_assert_eq(lapse_open(&l, x->f->loop, &o), 0);
    cr_assert_eq(lapse_get(l, "q", "job", answered, x), 0);
    x->owed++;
    lapse_close(l, 5000, on_other_closed, x);
    while (!x->other_closed) {
        ev_run(x->f->loop, EVRUN_ONCE);
    }
}

static void close_at_once(struct scene *x)
{
    x->closing = true;
    lapse_close(x->l, 0, on_closed, x);
}

static void close_slowly(struct scene *x)
{
    x->closing = true;
    lapse_close(x->l, 20, on_closed, x);
}

static void abandon(struct scene *x)
{
    lapse_abandon(x->l);
    x->l = NULL;
}

static void run_nowait(struct scene *x)
{
    for (int i = 0; i < 5; i++) {
        ev_run(x->f->loop, EVRUN_NOWAIT);
    }
}

static void run_until_answered(struct scene *x)
{
    get(x);
    while (x->got < x->owed) {
        ev_run(x->f->loop, EVRUN_ONCE);
    }
}

static void run_until_closed(struct scene *x)
{
    close_at_once(x);
    while (!x->closed) {
        ev_run(x->f->loop, EVRUN_ONCE);
    }
}

static void ask_all(struct scene *x)
{
    schedule(x), cancel(x), reschedule(x), get(x), list(x), depth(x), configure(x), retry(x),
        handle_no_more(x);
}

static void ask_all_and_close(struct scene *x)
{
    ask_all(x);
    close_at_once(x);
}

static void ask_all_and_run_until_closed(struct scene *x)
{
    ask_all(x);
    run_until_closed(x);
}

static void ask_all_and_abandon(struct scene *x)
{
    ask_all(x);
    abandon(x);
}

static void run_and_abandon(struct scene *x)
{
    run_nowait(x);
    if (!x->closed ||
        x->from ==
            CLOSED) { /* closed() has not run meanwhile: that would have been the end of it */
        abandon(x);
    }
    run_nowait(x);
}

/* clang-format off */
#define ROW(call) {#call, call}
/* clang-format on */
static const struct call calls[] = {
    ROW(schedule),
    ROW(cancel),
    ROW(reschedule),
    ROW(kill_job),
    ROW(batch_close),
    ROW(batch_get),
    ROW(cancel_all),
    ROW(kill_all),
    ROW(reschedule_all),
    ROW(get),
    ROW(wait),
    ROW(list),
    ROW(depth),
    ROW(history),
    ROW(configure),
    ROW(pause_queue),
    ROW(forward),
    ROW(claim),
    ROW(claim_and_wait),
    ROW(claim_by_id),
    ROW(adopt),
    ROW(quiet),
    ROW(settle_by_token),
    ROW(forget),
    ROW(handle),
    ROW(handle_no_more),
    ROW(handle_again),
    ROW(done),
    ROW(retry),
    ROW(snooze),
    ROW(extend),
    ROW(report),
    ROW(fail),
    ROW(release),
    ROW(dup_job),
    ROW(done_untold),
    ROW(stats),
    ROW(lateness),
    ROW(options),
    ROW(open_another),
    ROW(close_at_once),
    ROW(close_slowly),
    ROW(abandon),
    ROW(run_nowait),
    ROW(run_until_answered),
    ROW(run_until_closed),
    ROW(ask_all),
    ROW(ask_all_and_close),
    ROW(ask_all_and_run_until_closed),
    ROW(ask_all_and_abandon),
    ROW(run_and_abandon),
};

/* ---- callbacks to call from ---- */
static void make_call(struct scene *x)
{
    cr_assert(!x->called, "called back twice");
    x->called = true;
    x->call->make(x);
}

static void from_callback(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct scene *x = arg;

    if (x->from == ENDED) {
        server_signal(x->f->server, SIGCONT);
    }

    bool is_error = x->from == ALONE || x->from == REFUSED || x->from == ENDED;
    cr_assert(l == x->l && !err == !is_error);
    cr_assert(!job == (x->from == REFUSED || x->from >= DONE));
    make_call(x);
    if (job) { /* it is lent until here, whatever was called */
        cr_assert_str_eq(lapse_job_id(job), "job");
    }
}

static void from_depth(struct lapse *l, int err, const struct lapse_depth *d, void *arg)
{
    cr_assert(l && !err);
    make_call(arg);
    cr_assert_leq(d->waiting, 1);
}

static void from_queues(struct lapse *l, int err, const struct lapse_queue *const *queues, size_t n,
                        void *arg)
{
    cr_assert(l && !err);
    make_call(arg);
    for (size_t i = 0; i < n; i++) { /* they are lent until here */
        cr_assert(strlen(queues[i]->name) > 0 && strlen(queues[i]->settings) == 0);
        cr_assert_leq(queues[i]->depth->dead, 1);
    }
}

static void from_listeners(struct lapse *l, int err, const struct lapse_listener *const *listeners,
                           size_t n, void *arg)
{
    cr_assert(l && !err);
    make_call(arg);
    for (size_t i = 0; i < n; i++) {
        cr_assert(strchr(listeners[i]->name, '/'));
    }
}

static void from_removal(struct lapse *l, int err, uint64_t n, uint64_t n_running, void *arg)
{
    (void)n_running;
    cr_assert(l && (err ? err == LAPSE_EBUSY && !n : n > 0));
    make_call(arg);
}

static void from_selection(struct lapse *l, int err, uint64_t n, uint64_t n_running, void *arg)
{
    cr_assert(l && !err && n == 1 && n_running == 0);
    make_call(arg);
}

static void from_configure(struct lapse *l, int err, const char *text, void *arg)
{
    cr_assert(l && !err);
    make_call(arg);
    cr_assert_str_eq(text, "paused=9007199254740992");
}

static void from_list(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                      void *arg)
{
    cr_assert(l && !err && n == 1);
    make_call(arg);
    cr_assert_str_eq(lapse_job_id(jobs[0]), "job");
}

static void from_claim(struct lapse *l, int err, struct lapse_job *const *jobs, size_t n, void *arg)
{
    cr_assert(!err && n == 1);
    keep_job(l, jobs[0], arg);
    make_call(arg);
}

static void from_event(struct lapse *l, enum lapse_event what, const struct lapse_job *job,
                       void *arg)
{
    struct scene *x = arg;

    if (x->called) {
        return; /* what was called lets another job die */
    }
    switch (x->from) {
    case TOLD_SKIPPED: cr_assert_eq(what, LAPSE_EVENT_SKIPPED); break;
    case TOLD_DEAD: cr_assert_eq(what, LAPSE_EVENT_DIED); break;
    default: cr_assert(what == LAPSE_EVENT_CANCEL && job == x->jobs[SPARES - 1]);
    }
    cr_assert_eq(l, x->l);
    char *id = strdup(lapse_job_id(job));
    make_call(x);
    cr_assert_str_eq(lapse_job_id(job), id);
    free(id);
}

static void from_handler(struct lapse *l, struct lapse_job *job, void *arg)
{
    keep_job(l, job, arg);
    make_call(arg);
}

/* It takes the job along if the call has settled it. */
static int from_before(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct scene *x = arg;

    if (x->called) {
        return 0; /* what was called lets another job run */
    }
    keep_job(l, job, x);
    make_call(x);
    for (size_t i = 0; i < x->n_jobs; i++) {
        if (x->jobs[i] == job) {
            x->jobs[i] = x->jobs[--x->n_jobs];
            return 0;
        }
    }
    return 1;
}

static void from_after(struct lapse *l, const struct lapse_job *job, enum lapse_how how, int err,
                       int64_t ran_us, void *arg)
{
    struct scene *x = arg;

    if (x->called) {
        return; /* what was called settles another job */
    }
    cr_assert(l == x->l && how == LAPSE_HOW_DONE && err == 0 && ran_us >= 0);
    make_call(x);
    cr_assert_str_eq(lapse_job_queue(job), "spare");
}

static void from_closed(void *arg)
{
    struct scene *x = arg;
    x->closed = true;
    make_call(x);
}

static void on_none_claimed(struct lapse *l, int err, struct lapse_job *const *jobs, size_t n,
                            void *arg)
{
    (void)l;
    (void)err;
    (void)jobs;
    (void)arg;
    cr_assert_eq(n, 0);
}

static void from_told(struct lapse *l, enum lapse_told what, void *arg)
{
    cr_assert(l && what == LAPSE_TOLD_STOP);
    make_call(arg);
}

static int cause_told(struct scene *x)
{
    lapse_on_told(x->l, from_told, x);
    return lapse_stop(x->l, "told", NULL, NULL);
}

static int cause_event(struct scene *x)
{
    lapse_on_event(x->l, from_event, x);
    switch (x->from) {
    case TOLD_SKIPPED: return lapse_claim_id(x->l, "q", "job", on_none_claimed, x);
    case TOLD_DEAD: lapse_fail(x->jobs[--x->n_jobs], NULL, NULL, NULL); return 0;
    default:
        return lapse_cancel(x->l, "spare", lapse_job_id(x->jobs[SPARES - 1]), LAPSE_RUNNING_TOO,
                            NULL, NULL);
    }
}

static void cause(struct scene *x)
{
    struct lapse_guard guard = lapse_guard_init();
    struct lapse_spec s = flow_job_spec("q", "job", HOUR);

    if (x->from == BEFORE || x->from == HANDLER || x->from == CLAIMED) {
        s.due = lapse_in(0);
    }

    s.replicas = x->from == ALONE ? 1 : 0;
    if (x->from == TOLD_SKIPPED) {
        s.due = lapse_in(0);
        guard.key = "order:{q}:17";
        guard.op = LAPSE_EXISTS;
        s.guard = &guard;
    }

    bool from_here = x->from == SCHEDULED || x->from == ALONE;
    int err = lapse_schedule(x->l, &s, from_here ? from_callback : NULL, x);
    switch (x->from) {
    case SCHEDULED:
    case ALONE: break;
    case CANCELLED: err = lapse_cancel(x->l, "q", "job", 0, from_callback, x); break;
    case RESCHEDULED:
        err = lapse_reschedule(x->l, "q", "job", lapse_in(HOUR), 0, from_callback, x);
        break;
    case GOT: err = lapse_get(x->l, "q", "job", from_callback, x); break;
    case REFUSED: err = lapse_get(x->l, "q", "nobody", from_callback, x); break;
    case LISTED: err = lapse_list(x->l, "q", LAPSE_WAITING, NULL, 9, from_list, x); break;
    case DEPTH: err = lapse_depth(x->l, "q", from_depth, x); break;
    case QUEUES: err = lapse_queues(x->l, NULL, from_queues, x); break;
    case LISTENERS: err = lapse_listeners(x->l, "q", from_listeners, x); break;
    case REMOVED: err = lapse_remove(x->l, "q", 0, from_removal, x); break;
    case SELECTED: err = lapse_cancel_all(x->l, "q", &waiting, 0, from_selection, x); break;
    case CONFIGURED: err = lapse_pause(x->l, "q", NULL, 0, from_configure, x); break;
    case CLAIMED: err = lapse_claim_id(x->l, "q", "job", from_claim, x); break;
    case TOLD:
    case TOLD_SKIPPED:
    case TOLD_DEAD: err = cause_event(x); break;
    case TOLD_TO_STOP: err = cause_told(x); break;
    case BEFORE:
        cr_assert_eq(lapse_around(x->l, from_before, NULL, x), 0);
        err = lapse_listen(x->l, "q", NULL, keep_job, x);
        break;
    case HANDLER: err = lapse_listen(x->l, "q", NULL, from_handler, x); break;
    case AFTER: lapse_done(x->jobs[--x->n_jobs], NULL, NULL); break;
    case DONE: lapse_done(x->jobs[--x->n_jobs], from_callback, x); break;
    case RETRIED: lapse_retry(x->jobs[--x->n_jobs], HOUR, "", from_callback, x); break;
    case FAILED: lapse_fail(x->jobs[--x->n_jobs], NULL, from_callback, x); break;
    case ENDED: /* with its grace, for Redis does not answer */
        server_signal(x->f->server, SIGSTOP);
        err = lapse_get(x->l, "q", "job", from_callback, x);
        x->closing = true;
        lapse_close(x->l, 0, on_closed, x);
        break;
    case CLOSED: x->closing = true; lapse_close(x->l, 0, from_closed, x);
    }

    cr_assert_eq(err, 0);
}

static void run_row(struct flow *f, enum from from, const struct call *call)
{
    struct scene x = {.f = f, .from = from, .call = call};
    struct lapse_options o = flow_options(f);
    long live = alloc_live();

    o.replicas_ms = 1; /* of none */
    o.name = "told";
    cr_assert_eq(lapse_open(&x.l, f->loop, &o), 0);
    if (from == AFTER) {
        cr_assert_eq(lapse_around(x.l, NULL, from_after, &x), 0);
    }
    cr_assert_eq(lapse_listen(x.l, "spare", NULL, keep_job, &x), 0);
    for (int i = 0; i < SPARES; i++) {
        struct lapse_spec s = flow_job_spec("spare", NULL, 0);
        cr_assert_eq(lapse_schedule(x.l, &s, NULL, NULL), 0);
    }

    flow_until(f, x.n_jobs == SPARES);
    if (from == TOLD || from == TOLD_TO_STOP) {
        flow_until_listeners(f, "spare", 1); /* it would not hear before */
        flow_until_alive(f, 1);              /* nor be found */
    }
    cause(&x);
    flow_until(f, x.called);

    bool abandoned = !x.l;
    if (x.closing && !abandoned) {
        flow_until(f, x.closed);
    } else if (!abandoned) {
        flow_until(f, x.got == x.owed);
    }

    if (x.closing || abandoned) {
        x.l = NULL;
    }

    unsigned got = x.got;
    while (x.n_jobs) { /* without a handle this only frees them */
        lapse_done(x.jobs[--x.n_jobs], x.l ? NULL : answered, &x);
    }

    if (x.l) {
        lapse_close(x.l, 5000, on_closed, &x);
        flow_until(f, x.closed);
    }

    ev_run(f->loop, EVRUN_NOWAIT);
    cr_assert_eq(x.got, got, "%s: called back by a handle that is no more", call->name);
    cr_assert(abandoned || x.got == x.owed, "%s: %u callbacks of %u", call->name, x.got, x.owed);
    cr_assert_eq(alloc_live(), live, "%s: %ld blocks lost", call->name, alloc_live() - live);
    flow_poll(f, flow_is_alone(f));
    flow_do(f, "FLUSHALL");
}

static void run_part(enum from from, size_t part, size_t n_parts)
{
    if (from == ALONE) {
        place_not_with_masters("each has the replica that is asked for");
    }

    struct flow *f = flow_bare(FLOW_FULL, NULL);

    server_allow(f->server, "%%R~*{q}*"); /* the key of a guard */
    flow_allow_log(f, "0 of 1 replicas have it");
    for (size_t i = part; i < sizeof calls / sizeof *calls; i += n_parts) {
        run_row(f, from, &calls[i]);
    }
    flow_end(f);
}

#define FROM(name, from)      \
    Test(reenter, name)       \
    {                         \
        run_part(from, 0, 1); \
    }
FROM(any_call_from_a_schedules_callback, SCHEDULED)
FROM(any_call_from_the_callback_of_a_schedule_without_its_replicas, ALONE)
FROM(any_call_from_a_cancels_callback, CANCELLED)
FROM(any_call_from_a_reschedules_callback, RESCHEDULED)
FROM(any_call_from_a_gets_callback, GOT)
FROM(any_call_from_a_callback_with_an_error, REFUSED)
FROM(any_call_from_a_lists_callback, LISTED)
FROM(any_call_from_a_depths_callback, DEPTH)
FROM(any_call_from_a_callback_of_queues, QUEUES)
FROM(any_call_from_a_callback_of_listeners, LISTENERS)
FROM(any_call_from_a_removals_callback, REMOVED)
FROM(any_call_from_a_selections_callback, SELECTED)
FROM(any_call_from_a_configures_callback, CONFIGURED)
FROM(any_call_from_a_claims_callback, CLAIMED)
FROM(any_call_from_an_event, TOLD)
FROM(any_call_from_the_event_of_a_job_that_was_skipped, TOLD_SKIPPED)
FROM(any_call_from_the_event_of_a_job_that_died, TOLD_DEAD)
FROM(any_call_from_what_a_listener_is_asked_from_elsewhere, TOLD_TO_STOP)
FROM(any_call_before_a_handler, BEFORE)
FROM(any_call_from_a_handler, HANDLER)
FROM(any_call_after_a_handler, AFTER)
FROM(any_call_from_a_dones_callback, DONE)
FROM(any_call_from_a_retrys_callback, RETRIED)
FROM(any_call_from_a_fails_callback, FAILED)
FROM(any_call_from_closed, CLOSED)

/* Redis does not answer, so each close takes the second that it gives it: several at a time. */
enum { N_ENDED = 8 };

static void free_parts(struct criterion_test_params *parts)
{
    cr_free(parts->params);
}

ParameterizedTestParameters(reenter, any_call_from_the_callback_of_what_close_ended)
{
    size_t *part = cr_malloc(N_ENDED * sizeof *part);

    for (size_t i = 0; i < N_ENDED; i++) {
        part[i] = i;
    }
    return cr_make_param_array(size_t, part, N_ENDED, free_parts);
}

ParameterizedTest(size_t *part, reenter, any_call_from_the_callback_of_what_close_ended)
{
    run_part(ENDED, *part, N_ENDED);
}
