/* SPDX-License-Identifier: MIT */
/* What a job costs, in things that can be counted: scripts, claims that find nothing, touches,
 * allocations. */
#include "allocations.h"
#include "handler.h"
#include "listening.h"
#include "proxy.h"
#include <time.h>

enum { FEW = 200, MANY = 1000, TOGETHER = 500, AHEAD_MS = 300, LONE = 20 };
/* Who is late costs more: from LAG_MS on other listeners look whether its owner has the job, and
 * when GRACE_MS have passed, all do again. So a job that began later than that may have cost more,
 * and none that began before. */
enum { LAG_MS = 2, GRACE_MS = 50 };

struct listener {
    struct flow_handler w; /* first: flow_on_job() gets it */
    struct lapse *l;
    unsigned n_lagged;
    int64_t way_ms;  /* from Redis to it */
    int64_t late_ms; /* of its last job */
};

static void on_job(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct listener *x = arg;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now); /* Redis's is the same */
    x->late_ms = now.tv_sec * 1000 + now.tv_nsec / 1000000 - lapse_job_due_ms(job);
    x->n_lagged += x->late_ms >= x->way_ms + LAG_MS;
    flow_on_job(l, job, &x->w);
}

static void listen_to_q(struct flow *f, struct listener *x)
{
    *x = (struct listener){.w = {.f = f, .way = FLOW_DONE}, .l = f->l};
    cr_assert_eq(lapse_listen(f->l, "q", NULL, on_job, x), 0);
}

/* All scripts that write; touches and claims among them, which alone check three sets; and
 * heartbeats, which no job causes. */
static long long scripts(struct flow *f)
{
    return flow_calls(f, "evalsha") + flow_calls(f, "eval");
}

static long long looks(struct flow *f)
{
    place_not_in_cluster("every script counts the parts of its queue, by which looks are told");
    return flow_calls(f, "zcard") / 3;
}

static void each_of(struct flow *f, struct lapse *const *l, unsigned n,
                    void (*step)(struct flow *f))
{
    for (unsigned i = 0; i < n; i++) {
        f->l = l[i];
        step(f);
    }
}

/* They know each other, and nothing is on its way. Each reads the names within 200 ms after it
 * heard that the last one has joined; before that, two may take the same job for theirs, or none
 * does. */
static void settle_down(struct flow *f, struct lapse *const *l, unsigned n)
{
    enum { KNOWN_MS = 400 };

    flow_until_listeners(f, "q", n);
    each_of(f, l, n, flow_heard);
    flow_spin(f, KNOWN_MS);
    each_of(f, l, n, flow_calm);
}

static void no_sweep(struct lapse_options *opts)
{
    opts->sweep_ms = 60000;
}

static void room_for_all(struct lapse_options *opts)
{
    no_sweep(opts);
    opts->max_running = TOGETHER;
}

static void on_scheduled(struct lapse *l, int err, const struct lapse_job *job, void *left)
{
    (void)l;
    (void)job;
    cr_assert_eq(err, 0);
    --*(int *)left;
}

/* n jobs in one turn, due in so many ms, one every step_us. */
static void schedule_many(struct flow *f, int n, int64_t delay_ms, int step_us)
{
    static int made;
    int left = n;

    for (int i = 0; i < n; i++) {
        char id[32];
        snprintf(id, sizeof id, "job-%d", made++);
        struct lapse_spec spec = flow_job_spec("q", id, delay_ms + (int64_t)i * step_us / 1000);
        cr_assert_eq(lapse_schedule(f->l, &spec, on_scheduled, &left), 0);
    }

    flow_until(f, left == 0);
}

/* Schedule, touch and done. A touch that came a moment too early, by Redis's clock, is repeated.
 * Where Redis expires the trigger by itself just before the touch, its event asks for the job. */
static void a_lone_job(enum flow_mode mode, long long most_looks)
{
    struct flow *f = flow_start_opts(mode, NULL, no_sweep);
    struct listener x;

    listen_to_q(f, &x);
    settle_down(f, &f->l, 1);

    for (unsigned i = 1; i <= LONE; i++) {
        long long all = scripts(f);
        long long looked = looks(f);
        long long beats = flow_heartbeats(f);
        cr_assert_eq(flow_schedule(f, "q", NULL, 20, NULL), 0);
        flow_until(f, x.w.settled == i);
        flow_calm(f);
        looked = looks(f) - looked;
        long long others = scripts(f) - all - looked - (flow_heartbeats(f) - beats);
        cr_assert(looked >= 1 && looked <= most_looks + x.late_ms / GRACE_MS && others == 2,
                  "%lld touches and claims, %lld other scripts for a job that began %lld ms late",
                  looked, others, (long long)x.late_ms);
    }

    flow_end(f, "q");
}

Test(costs, a_lone_job_takes_three_scripts)
{
    a_lone_job(FLOW_STILL, 2);
}

Test(costs, a_lone_job_takes_four_scripts_where_redis_was_faster)
{
    a_lone_job(FLOW_FULL, 3);
}

Test(costs, jobs_due_together_share_their_scripts)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, room_for_all);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_listen(f, "q", &w);
    schedule_many(f, TOGETHER, AHEAD_MS, 0);
    long long before = scripts(f);
    flow_until(f, w.n_held == TOGETHER);
    flow_settle(&w, FLOW_DONE);

    /* a touch claims 16 at most, a claim what their events name, a done 100; settled one by one
     * they would share as many scripts as there are turns of the loop */
    cr_assert_leq(scripts(f) - before, TOGETHER / 10, "%lld scripts", scripts(f) - before);
    flow_end(f, "q");
}

/* Of the listener: the schedules are made before. */
static void allocations(int step_us)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    schedule_many(f, MANY, AHEAD_MS, step_us);
    long made = alloc_made();
    flow_until(f, w.settled == MANY);
    made = alloc_made() - made;
    cr_assert_leq(made, MANY + MANY / 10, "%ld allocations for %d jobs", made, MANY);
    flow_end(f, "q");
}

Test(costs, one_allocation_a_job_in_a_burst)
{
    allocations(0);
}

Test(costs, one_allocation_a_job_when_they_come_one_by_one)
{
    allocations(1000);
}

struct costs {
    uint64_t claimed, empty, touches;
    uint64_t events; /* as one of them heard it */
};

static struct costs costs_of(struct lapse *const *l, unsigned n)
{
    struct costs c = {0};

    for (unsigned i = 0; i < n; i++) {
        struct lapse_stats s = flow_stats(l[i]);
        c.claimed += s.claimed;
        c.empty += s.empty_claims;
        c.touches += s.touches;
        c.events = s.events;
    }
    return c;
}

static unsigned settled(const struct listener *x, unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++) {
        sum += x[i].w.settled;
    }
    return sum;
}

/* Without the alarm only a listener that got an event or a notice looks, so ownership alone
 * decides. With it others look too where the owner is late: once each for the jobs that lag. */
static void shared_by(enum flow_mode mode, unsigned n, int64_t delay_ms)
{
    enum { MOST = 8 };
    struct flow *f = flow_bare(mode, NULL);
    struct listener x[MOST];
    struct lapse *l[MOST];
    struct lapse_options opts = flow_options(f);

    no_sweep(&opts);
    for (unsigned i = 0; i < n; i++) {
        f->l = l[i] = flow_open(f, &opts);
        listen_to_q(f, &x[i]);
    }

    settle_down(f, l, n);

    struct costs from = costs_of(l, n);
    schedule_many(f, FEW, delay_ms, 1000);
    flow_until(f, settled(x, n) == FEW);
    flow_heard(f);

    struct costs to = costs_of(l, n);
    unsigned lagged = 0;
    unsigned empty = (unsigned)(to.empty - from.empty);
    unsigned touched = (unsigned)(to.touches - from.touches);
    int events = (int)(to.events - from.events);
    int triggers = delay_ms > 0 ? FEW : FEW - 1; /* a job that is due at once has none */
    for (unsigned i = 0; i < n; i++) {
        lagged += x[i].n_lagged;
    }

    cr_assert_eq(to.claimed - from.claimed, FEW);

    if (mode == FLOW_NO_ALARM) { /* each event that came too early has another one after it */
        cr_assert((int)empty <= events - triggers && touched == 0,
                  "%u claims found nothing, %u touches, %d events", empty, touched, events);
    } else {
        cr_assert_leq(empty, FEW / 10 + lagged, "%u claims found nothing, %u jobs lagged", empty,
                      lagged);
        cr_assert_leq(touched, FEW + FEW / 5 + lagged * (n - 1), "%u touches, %u jobs lagged",
                      touched, lagged);
    }

    flow_end(f, "q");
}

Test(costs, four_listeners_ask_for_a_job_once)
{
    shared_by(FLOW_FULL, 4, AHEAD_MS);
}

Test(costs, four_listeners_ask_for_a_job_once_that_is_due_at_once)
{
    shared_by(FLOW_FULL, 4, 0);
}

Test(costs, eight_listeners_ask_for_a_job_once)
{
    shared_by(FLOW_FULL, 8, AHEAD_MS);
}

Test(costs, four_listeners_without_alarm_never_ask_in_vain)
{
    shared_by(FLOW_NO_ALARM, 4, AHEAD_MS);
}

Test(costs, four_listeners_without_alarm_never_ask_in_vain_for_a_job_that_is_due_at_once)
{
    shared_by(FLOW_NO_ALARM, 4, 0);
}

/* A look sees six jobs for each listener: those of the others are more than one can
 * remember. */
Test(costs, eight_listeners_look_once_a_job)
{
    enum { N = FLOW_HANDLES };
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct listener x[N];
    struct lapse *l[N];
    struct lapse_options opts = flow_options(f);

    no_sweep(&opts);
    for (unsigned i = 0; i < N; i++) {
        f->l = l[i] = flow_open(f, &opts);
        listen_to_q(f, &x[i]);
    }
    settle_down(f, l, N);

    long long before = looks(f);
    schedule_many(f, MANY, AHEAD_MS, 1000);
    flow_until(f, settled(x, N) == MANY);

    long long looked = looks(f) - before;
    unsigned lagged = 0;
    for (unsigned i = 0; i < N; i++) {
        lagged += x[i].n_lagged;
    }
    cr_assert_leq(looked, MANY + MANY / 5 + N * lagged, "%lld touches, %u jobs lagged", looked,
                  lagged);

    flow_end(f, "q");
}

/* They watch each other's jobs when the events can have arrived, and not before. */
Test(costs, listeners_far_from_redis_touch_a_job_once)
{
    enum { N = 4, WAY_MS = 10 };
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse *producer = flow_open(f, NULL);
    struct proxy *far_away = proxy_start(f->server);
    struct listener x[N];
    struct lapse *l[N];
    struct lapse_options opts = flow_options(f);

    no_sweep(&opts);
    opts.url = far_away->url;
    proxy_delay(far_away, WAY_MS);
    for (unsigned i = 0; i < N; i++) {
        f->l = l[i] = flow_open(f, &opts);
        listen_to_q(f, &x[i]);
        x[i].way_ms = 2 * WAY_MS; /* one way, and as much for a slow moment */
    }
    settle_down(f, l, N);

    f->l = producer;
    schedule_many(f, FEW, AHEAD_MS, 1000);
    long long before = looks(f);
    flow_until(f, settled(x, N) == FEW);

    long long looked = looks(f) - before;
    unsigned lagged = 0;
    for (unsigned i = 0; i < N; i++) {
        lagged += x[i].n_lagged;
    }
    cr_assert_leq(looked, 2 * FEW + N * lagged, "%lld touches, %u jobs lagged", looked, lagged);

    for (unsigned i = 0; i < N; i++) {
        flow_close(f, l[i], 5000);
    }
    proxy_stop(far_away);
    flow_end(f, "q");
}

Test(costs, eight_listeners_without_alarm_never_ask_in_vain)
{
    shared_by(FLOW_NO_ALARM, 8, AHEAD_MS);
}
