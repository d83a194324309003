/* SPDX-License-Identifier: MIT */
/* F20, F21: wall clocks that are set. Redis's decides what is due, so a step of it moves
 * everything, is warned of, and costs nothing once it is taken back; that of a producer or listener
 * means nothing. */
#include "listener.h"
#include "set_clock.h"
#include "audit.h"
#include "handler.h"
#include "process.h"
#include "fault.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { HOUR = 3600000, SWEEP_MS = 500 };
#define DAY_US (INT64_C(24) * HOUR * 1000)

/* ---- F20 ---- */
static void sweep_often(struct lapse_options *o)
{
    o->sweep_ms = SWEEP_MS;
    o->lease_ms = 30000;
}

static double cpu_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* Half a second of nothing to do: neither we nor Redis may be busy. */
static void is_quiet(struct flow *f, const char *when)
{
    long long calls = flow_calls(f, "evalsha") + flow_calls(f, "eval");
    double cpu = cpu_s();

    flow_spin(f, 500);
    calls = flow_calls(f, "evalsha") + flow_calls(f, "eval") - calls;
    cr_assert_leq(calls, 60, "%s: %lld scripts in half a second", when, calls);
    cr_assert_lt(cpu_s() - cpu, 0.3, "%s: %.2f s of CPU in half a second", when, cpu_s() - cpu);
}

struct steps {
    struct flow *f;
    struct wall_clock *clock;
    int64_t warned_at_ms;
    int64_t warned_ms, back_ms; /* the longest: until it was warned of; until all went on after it
                                   was taken back */
};

/* There is one line a second of such a warning. */
static void a_second_later(struct steps *s)
{
    flow_spin(s->f, s->warned_at_ms + 1100 - test_now_ms());
}

static void step(struct steps *s, int64_t by_ms, const char *warning)
{
    a_second_later(s);
    unsigned before = flow_logged(s->f, warning);
    int64_t at = test_now_ms();
    s->clock->step_us += by_ms * 1000;
    flow_until(s->f, flow_logged(s->f, warning) > before);
    s->warned_at_ms = test_now_ms();
    int64_t ms = s->warned_at_ms - at;
    s->warned_ms = ms > s->warned_ms ? ms : s->warned_ms;
}

static void schedule_some(struct flow *f, const char *queue, int n, int64_t delay_ms)
{
    for (int i = 0; i < n; i++) {
        cr_assert_eq(flow_schedule(f, queue, NULL, delay_ms + i, NULL), 0);
    }
}

/* All that is due by the new clock runs, and nothing else; each once but those whose lease is over
 * by it. */
static void two_hours_on(struct steps *s)
{
    enum { N = 20 };
    struct flow_handler soon = {.way = FLOW_DONE};
    struct flow_handler late = {.way = FLOW_DONE};
    struct flow_handler kept = {.way = FLOW_KEEP};
    struct flow *f = s->f;

    flow_listen(f, "soon", &soon);
    flow_listen(f, "late", &late);
    flow_listen(f, "kept", &kept);
    schedule_some(f, "soon", N, HOUR);
    schedule_some(f, "late", N, 3 * HOUR);
    schedule_some(f, "kept", 1, 0);
    flow_until(f, kept.n_held == 1);
    step(s, 2 * HOUR, "set forward");
    flow_until(f, soon.settled == N);
    flow_each_once(&soon, N);
    flow_until(f, kept.n_held == 2); /* its lease ended an hour and more ago */
    cr_assert(kept.runs[1].job.try_no == 2 && kept.runs[1].job.token > kept.runs[0].job.token);
    flow_settle(&kept, FLOW_DONE);
    cr_assert_eq(kept.errors, 1, "the first holder's settle is EGONE");
    is_quiet(f, "2 h on");
    schedule_some(f, "soon", N, 50);
    flow_until(f, soon.settled == 2 * N);
    flow_each_once(&soon, 2 * N);
    cr_assert_eq(late.n_runs, 0);
    step(s, -2 * HOUR, "set back");
    cr_assert(!lapse_unlisten(f->l, "soon") && !lapse_unlisten(f->l, "late") &&
              !lapse_unlisten(f->l, "kept"));
}

/* What was to be done in a moment, and what a dead process holds, waits for an hour, and no longer
 * than a sweep once the clock is right again. */
static void an_hour_back(struct steps *s)
{
    enum { N = 10 };
    struct flow *f = s->f;
    struct flow_handler w = {.way = FLOW_DONE};
    struct runs *runs = runs_new(100);
    struct lapse_options opts = flow_options(f);

    opts.lease_ms = 1000;
    opts.log = NULL;
    a_second_later(s);

    struct listener *dead = listener_start(runs, "q", &opts, LISTENER_KEEPS);
    schedule_some(f, "q", N, 0);
    flow_poll(f, runs->n == N);
    listener_signal(dead, SIGKILL);
    listener_free(dead);
    schedule_some(f, "q", N, 700);
    flow_listen(f, "q", &w);
    step(s, -HOUR, "set back");
    is_quiet(f, "1 h back");
    flow_spin(f, 1000);

    /* by Redis's clock nothing is due and no lease is over, unless it was before the step */
    for (size_t i = 0; i < w.n_runs; i++) {
        cr_assert_geq(w.runs[i].job.claimed_us, w.runs[i].job.due_ms * 1000);
    }
    size_t before = w.n_runs;
    schedule_some(f, "q", N, 30); /* new ones go by the clock as it is */
    flow_until(f, w.settled == before + N);

    int64_t at = test_now_ms();
    step(s, HOUR, "set forward");
    flow_until(f, w.settled == 3 * N);

    int64_t ms = test_now_ms() - at;
    s->back_ms = ms > s->back_ms ? ms : s->back_ms;
    for (size_t i = 0; i < w.n_runs; i++) {
        cr_assert_eq(flow_runs_of(&w, w.runs[i].job.id), 1);
    }

    cr_assert_eq(w.errors, 0);
    is_quiet(f, "right again");
    cr_assert_eq(lapse_unlisten(f->l, "q"), 0);
    runs_free(runs);
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* p99 of how late they were, us. */
static int64_t slewed(struct steps *s, long n)
{
    struct flow *f = s->f;
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_answer *a = calloc((size_t)n, sizeof *a);
    unsigned warned = flow_logged(f, "clock of Redis");

    flow_listen(f, "slewed", &w);

    for (int way = 0; way < 2; way++) {
        clock_slew(s->clock, way ? -500 : 500);
        for (long i = 0; i < n / 2; i++) {
            struct flow_answer *mine = &a[way * (n / 2) + i];
            struct lapse_spec spec = flow_job_spec("slewed", NULL, 200 + 2 * i);
            mine->f = f;
            cr_assert_eq(lapse_schedule(f->l, &spec, flow_answered, mine), 0);
            if (i % 100 == 99) {
                cr_assert_eq(flow_wait(f, mine), 0);
            }
        }
        flow_until(f, w.settled == (size_t)(way + 1) * (size_t)(n / 2));
    }

    clock_slew(s->clock, 0);
    free(a);
    flow_each_once(&w, (size_t)n); /* and none early */
    cr_assert_eq(flow_logged(f, "clock of Redis"), warned, "a slew is no step");

    int64_t *late = malloc(w.n_runs * sizeof *late);
    for (size_t i = 0; i < w.n_runs; i++) {
        late[i] = w.runs[i].job.claimed_us - w.runs[i].job.due_ms * 1000;
    }

    qsort(late, w.n_runs, sizeof *late, by_number);

    int64_t p99 = late[w.n_runs * 99 / 100];
    free(late);
    cr_assert_eq(lapse_unlisten(f->l, "slewed"), 0);

    return p99;
}

Test(f20, a_clock_of_redis_that_is_set_is_warned_of_and_all_goes_on_when_it_is_right_again,
     .timeout = 600)
{
    const long rounds = fault_n(1, 20);
    const long n = fault_n(1000, 20000);
    char path[64];
    struct steps s = {.clock = clock_begin(path)};

    s.f = flow_start_opts(FLOW_FULL, NULL, sweep_often);
    clock_not_for_others();
    flow_allow_log(s.f, "clock of Redis was set");
    flow_allow_log(s.f, "lease of job");

    for (long i = 0; i < rounds; i++) {
        two_hours_on(&s);
        redis_do(s.f->server, "FLUSHALL");
        an_hour_back(&s);
    }

    int64_t p99_us = slewed(&s, n);
    flow_end(s.f, "soon", "late", "kept", "q", "slewed");
    clock_end(s.clock, path);
    fault_row("F20", "Redis's clock +2 h, -1 h, slew 500 ppm",
              "warned within a sweep; all goes on within a sweep when it is right again; not busy",
              "sweep_ms %d: warned in %lld ms, went on in %lld ms (%ld rounds); slew, %ld jobs: 0 "
              "early, p99 %.2f ms",
              SWEEP_MS, (long long)s.warned_ms, (long long)s.back_ms, rounds, n,
              (double)p99_us / 1000);
}

/* ---- F21 ---- */
static int64_t number_of(const char *json, const char *name)
{
    char key[40];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(json, key);
    cr_assert(at, "no %s in %s", name, json);
    return atoll(at + strlen(key));
}

/* Delays count from when Redis takes the job, whatever the producer's clock shows. */
static void produce(struct server *s, long i, int64_t delay_ms)
{
    char id[24];
    char in[24];

    snprintf(id, sizeof id, "j%ld", i);
    snprintf(in, sizeof in, "%lldms", (long long)delay_ms);
    int64_t before = redis_now_ms(s);
    struct proc *p = proc_run(NULL, "lapse", "schedule", "q", "--id", id, "--in", in, NULL);
    cr_assert_eq(p->status, 0, "%s", p->err);
    int64_t due = number_of(p->out, "due_ms");
    cr_assert(due >= before + delay_ms && due <= redis_now_ms(s) + delay_ms, "%s", p->out);
    proc_free(p);
}

static long lines_of(const char *text)
{
    long n = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++) {
        n++;
    }
    return n;
}

/* Each ran once, in its first try, and not early by Redis's clock. */
static void each_once(const char *out, long n)
{
    cr_assert_eq(lines_of(out), n, "%s", out);
    bool *ran = calloc((size_t)n, sizeof *ran);
    for (const char *at = out; *at; at = strchr(at, '\n') + 1) {
        const char *id = strstr(at, "\"id\":\"j");
        cr_assert(id);
        long i = atol(id + 7);
        cr_assert(i >= 0 && i < n && !ran[i], "%s", at);
        ran[i] = true;
        cr_assert(number_of(at, "try") == 1 && !strstr(at, "\"late_ms\":-"), "%s", at);
    }

    free(ran);
}

static void with_clocks(int64_t step_us, bool jump, long n)
{
    char path[64];
    struct server *s = server_start();

    setenv("LAPSE_URL", s->url, 1);

    struct wall_clock *c = clock_begin(path);
    c->step_us = step_us;

    struct proc *listener = proc_start((const char *const[]){"lapse", "listen", "q", NULL});
    struct proc *other = proc_start((const char *const[]){"lapse", "listen", "q", NULL});
    int64_t start_ms = test_now_ms();
    while (redis_int(s, "ZCARD lapse:{q}:listeners") < 2) { /* so both hear signals */
        cr_assert_lt(test_now_ms(), start_ms + 10000, "they do not listen");
    }
    for (long i = 0; i < n; i++) {
        if (jump) {
            c->step_us = i % 2 ? DAY_US : -DAY_US;
        }
        produce(s, i, i % 4 * 100);
    }

    clock_not_for_others();

    for (int64_t end_ms = test_now_ms() + 10000;
         lines_of(listener->out) + lines_of(other->out) < n;) {
        cr_assert_lt(test_now_ms(), end_ms, "%ld of %ld",
                     lines_of(listener->out) + lines_of(other->out), n);
        proc_until_out(listener, "no such text", 20);
        proc_until_out(other, "no such text", 20);
        if (jump) {
            c->step_us = -c->step_us;
        }
    }

    proc_signal(listener, SIGTERM);
    proc_signal(other, SIGTERM);
    cr_assert(proc_wait(listener, 10000) == 0 && proc_wait(other, 10000) == 0);

    char *all = malloc(listener->out_len + other->out_len + 1);
    strcat(strcpy(all, listener->out), other->out);
    each_once(all, n);
    free(all);
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    cr_assert_eq(redis_int(s, "HLEN lapse:{q}:jobs"), 0);
    proc_free(listener);
    proc_free(other);
    clock_end(c, path);
    server_stop(s);
}

Test(f21, wall_clocks_of_producers_and_listeners_mean_nothing, .timeout = 600)
{
    const long n = fault_n(50, 2000);

    with_clocks(0, false, n);
    with_clocks(DAY_US, false, n);
    with_clocks(-DAY_US, false, n);
    with_clocks(DAY_US, true, n);
    fault_row("F21", "clocks of producers and listeners +-1 day", "results identical to right ones",
              "right, +1 day, -1 day, jumping by 2 days: %ld jobs each, all once, first try, 0 "
              "early, dues by Redis",
              n);
}
