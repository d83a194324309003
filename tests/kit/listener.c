/* SPDX-License-Identifier: MIT */
#include "listener.h"
#include "child.h"
#include "server.h"
#include "test.h"
#include <criterion/criterion.h>
#include <ev.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GRACE_MS = 5000, END_MS = 20000 };
enum { NO_MEMORY = 122, NOT_STARTED = 125, LOOP_ENDED = 126 };

struct listener_ctl { /* shared by the process and the test */
    atomic_long claimed;
};

/* ---- in the process ---- */
struct life {
    const struct listener_plan *plan;
    struct listener_ctl *ctl;
    struct ev_loop *loop;
    struct lapse *l;
    int status;
};

struct settling { /* one job that is to be settled, or is being */
    struct life *life;
    struct lapse_job *job;
    ev_timer timer;
    void *note; /* the recorder's */
};

static long listener_random(long n)
{
    return n > 0 ? random() % n : 0;
}

static void on_settled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct settling *s = arg;
    const struct listener_plan *plan = s->life->plan;

    (void)l;
    (void)job;

    if (plan->recorder.settled) {
        plan->recorder.settled(plan->recorder.arg, s->note, err);
    }
    if (err && !plan->may_be_refused) {
        s->life->status = 1;
    }

    free(s);
}

static struct settle any_settle(const struct listener_plan *plan)
{
    long dice = listener_random(1000);
    bool back_off = listener_random(2) != 0;
    int64_t delay_ms = back_off ? LAPSE_BACKOFF : listener_random(plan->backoff_ms + 1);
    struct settle how = {.how = SETTLE_DONE, .delay_ms = delay_ms, .least_ms = delay_ms};

    if (dice < plan->retry) {
        how.how = SETTLE_RETRY;
    } else if (dice < plan->retry + plan->fail) {
        how.how = SETTLE_FAIL;
    }
    if (back_off) {
        how.least_ms = plan->backoff_ms * 3 / 4; /* a quarter of it at most is jitter */
    }

    return how;
}

static void listener_settle(struct settling *s)
{
    const struct listener_plan *plan = s->life->plan;
    struct settle how = any_settle(plan);
    char id[256];

    snprintf(id, sizeof id, "%s", lapse_job_id(s->job));
    if (plan->recorder.settling) {
        s->note = plan->recorder.settling(plan->recorder.arg, s->job, &how);
    }

    switch (how.how) {
    case SETTLE_RETRY: lapse_retry(s->job, how.delay_ms, "said so", on_settled, s); break;
    case SETTLE_FAIL: lapse_fail(s->job, "said so", on_settled, s); break;
    case SETTLE_DONE:
        lapse_done(s->job, on_settled, s);
        if (plan->done) {
            plan->done(plan->arg, s->life->l, id);
        }
    }
}

static void on_held(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    listener_settle(timer->data);
}

/* on_settled() frees it, which the analyzer of gcc does not see. */
#if defined __GNUC__ && !defined __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
static void settle_in_time(struct life *life, struct lapse_job *job)
{
    const struct listener_plan *plan = life->plan;
    struct settling *s = calloc(1, sizeof *s);

    if (!s) {
        _exit(NO_MEMORY);
    }

    s->life = life;
    s->job = job;

    if (plan->hold_most_ms == 0) {
        listener_settle(s);
        return;
    }

    int64_t range_ms = plan->hold_most_ms - plan->hold_least_ms;
    int64_t hold_ms = plan->hold_least_ms + listener_random(range_ms + 1);
    ev_timer_init(&s->timer, on_held, (double)hold_ms / 1000, 0.);
    s->timer.data = s;
    ev_timer_start(life->loop, &s->timer);
}
#if defined __GNUC__ && !defined __clang__
#pragma GCC diagnostic pop
#endif

static void on_job(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct life *life = arg;
    const struct listener_plan *plan = life->plan;

    (void)l;

    if (plan->recorder.started) {
        plan->recorder.started(plan->recorder.arg, job);
    }
    if (plan->way == LISTENER_DIES) {
        kill(getpid(), SIGKILL);
    }
    while (plan->way == LISTENER_BLOCKS) {
        pause();
    }
    if (plan->block_ms) {
        poll(NULL, 0, (int)plan->block_ms);
    }
    if (plan->way == LISTENER_SETTLES) {
        settle_in_time(life, job);
    }
}

static void on_closed(void *arg)
{
    _exit(((struct life *)arg)->status);
}

static void on_sigterm(struct ev_loop *loop, ev_signal *w, int events)
{
    struct life *life = w->data;
    struct lapse_stats stats;

    (void)loop;
    (void)events;
    lapse_stats(life->l, &stats, sizeof stats);
    life->ctl->claimed = (long)stats.claimed;
    lapse_close(life->l, GRACE_MS, on_closed, life);
}

/* Of lapse_claim(): what a handler would do with each job, and then the next call. */
static void on_claimed(struct lapse *l, int err, struct lapse_job *const *jobs, size_t n, void *arg)
{
    enum { WAIT_MS = 2000 };
    struct life *life = arg;

    for (size_t i = 0; i < n; i++) {
        on_job(l, jobs[i], life);
    }
    if (err != LAPSE_ECLOSED) {
        lapse_claim(l, life->plan->queues, life->plan->claims, WAIT_MS, on_claimed, life);
    }
}

static void listen_to_all(struct life *life)
{
    char queues[256];

    if (life->plan->claims) {
        on_claimed(life->l, 0, NULL, 0, life);
        return;
    }

    snprintf(queues, sizeof queues, "%s", life->plan->queues);
    for (char *rest = queues, *name; (name = strtok_r(rest, " ", &rest));) {
        if (lapse_listen(life->l, name, NULL, on_job, life)) {
            _exit(NOT_STARTED);
        }
    }
}

static void listener_live(void *arg)
{
    struct life *life = arg;
    const struct listener_plan *plan = life->plan;
    ev_signal sigterm;

    if (plan->recorder.begin) {
        plan->recorder.begin(plan->recorder.arg);
    }

    srandom(plan->seed);
    life->loop = ev_loop_new(0);
    if (!life->loop || lapse_open(&life->l, life->loop, &plan->lapse)) {
        _exit(NOT_STARTED);
    }

    listen_to_all(life);
    ev_signal_init(&sigterm, on_sigterm, SIGTERM);
    sigterm.data = life;
    ev_signal_start(life->loop, &sigterm);
    child_ready_for_sigterm();
    ev_run(life->loop, 0);
    _exit(LOOP_ENDED);
}

/* ---- in the test ---- */
struct listener *listener_start_plan(const struct listener_plan *plan)
{
    struct listener *x = calloc(1, sizeof *x);

    cr_assert(x);
    server_listens();
    x->ctl = shared_new(sizeof *x->ctl);

    struct life life = {.plan = plan, .ctl = x->ctl};
    x->pid = child_start(listener_live, &life, NULL);

    return x;
}

struct listener *listener_start(struct runs *r, const char *queues,
                                const struct lapse_options *opts, enum listener_way way)
{
    struct listener_plan plan = {.queues = queues, .lapse = *opts, .way = way};

    plan.recorder = runs_recorder(r);
    return listener_start_plan(&plan);
}

void listener_signal(struct listener *x, int sig)
{
    cr_assert(x->pid && kill(x->pid, sig) == 0);
    if (sig == SIGKILL) {
        waitpid(x->pid, NULL, 0);
        x->pid = 0;
    }
}

int listener_exit(struct listener *x)
{
    int64_t deadline_ms = test_now_ms() + END_MS;
    int status = 0;

    kill(x->pid, SIGTERM);
    while (waitpid(x->pid, &status, WNOHANG) == 0) {
        if (test_now_ms() > deadline_ms) {
            kill(x->pid, SIGKILL);
        }
        poll(NULL, 0, 1);
    }

    x->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

long listener_claimed(const struct listener *x)
{
    return x->ctl->claimed;
}

void listener_free(struct listener *x)
{
    if (!x) {
        return;
    }

    child_kill(x->pid);
    shared_free(x->ctl, sizeof *x->ctl);
    free(x);
}
