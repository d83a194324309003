/* SPDX-License-Identifier: MIT */
/* F57 to F60: a series while listeners and Redis are killed, clocks are wrong, and nobody listens.
 * Its jobs are kept when they have ended, so Redis itself tells at the end which moments had one,
 * and how each of these ended. */
#include "ask.h"
#include "child.h"
#include "fault.h"
#include "listener.h"
#include "listening.h"
#include "process.h"
#include "set_clock.h"
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

enum { CREW = 3, KILL_EACH = 5, MOMENTS_MAX = 64, RUNS_MAX = 1000, HOUR = 3600000 };
enum { LEASE_MS = 3000, SWEEP_MS = 500 };
#define DAY_US (INT64_C(24) * HOUR * 1000)

/* ---- the scene ---- */
struct scene {
    struct flow *f;
    struct runs *runs;
    struct listener_plan plan;
    struct listener *crew[CREW];
    pid_t killed[2 * MOMENTS_MAX];
    size_t n_killed;
    atomic_int *died; /* F57, shared with the listeners: by the moment, who died with its job */

    unsigned n_moments;
    int64_t every_ms, first_ms;
    enum lapse_catch_up catch_up;
    int64_t max_late_ms; /* 0: no limit */

    /* what is kept at the end, by the number of the moment; id "": that had no job */
    struct kept_job {
        char id[40];
        enum lapse_end end;
    } kept[MOMENTS_MAX + 1];
    unsigned n_kept;
    enum lapse_end end; /* of the series itself; 0: it is not kept */
};

static void scene_open(struct scene *x)
{
    x->f->l = flow_open(x->f, NULL);
}

static void scene_close(struct scene *x)
{
    flow_close(x->f, x->f->l, 0);
    x->f->l = NULL;
}

static int64_t moment_ms(const struct scene *x, unsigned moment)
{
    return x->first_ms + (moment - 1) * x->every_ms;
}

static void scene_schedule(struct scene *x)
{
    struct lapse_series every = lapse_series_init();
    struct lapse_spec s = flow_job_spec("q", "a", x->every_ms);
    struct flow_job made;

    every.every_ms = x->every_ms;
    every.times = x->n_moments;
    every.catch_up = x->catch_up;
    s.series = &every;
    s.keep_ms = HOUR;
    s.max_late_ms = x->max_late_ms;
    cr_assert_eq(flow_spec(x->f, &s, &made), 0);
    x->first_ms = made.due_ms;
}

/* Without a handle, since Redis and its connections are killed. The jobs of a moment are held for
 * half of a period at most. */
static void scene_begin(struct scene *x, const char *const *server_args)
{
    x->f = flow_bare(FLOW_FULL, server_args);
    x->runs = runs_new(RUNS_MAX);
    x->n_moments = (unsigned)fault_n(20, 60);
    x->every_ms = fault_n(200, 1000);
    x->plan = (struct listener_plan){.queues = "q", .recorder = runs_recorder(x->runs)};
    x->plan.lapse = flow_options(x->f);
    x->plan.lapse.log = NULL;
    x->plan.lapse.lease_ms = LEASE_MS;
    x->plan.lapse.sweep_ms = SWEEP_MS;
    x->plan.hold_most_ms = x->every_ms / 2;
    scene_open(x);
}

/* ---- its listeners ---- */
static void crew_come(struct scene *x)
{
    for (int i = 0; i < CREW; i++) {
        x->plan.seed++;
        x->crew[i] = listener_start_plan(&x->plan);
    }
}

static void crew_start(struct scene *x)
{
    crew_come(x);
    flow_until_listeners(x->f, "q", CREW);
}

static void crew_kill(struct scene *x, int i)
{
    cr_assert_lt(x->n_killed, sizeof x->killed / sizeof *x->killed);
    x->killed[x->n_killed++] = x->crew[i]->pid;
    listener_signal(x->crew[i], SIGKILL);
    listener_free(x->crew[i]);
}

static void crew_replace(struct scene *x, int i)
{
    crew_kill(x, i);
    x->plan.seed++;
    x->crew[i] = listener_start_plan(&x->plan);
}

static void crew_end(struct scene *x)
{
    for (int i = 0; i < CREW; i++) {
        cr_assert_eq(listener_exit(x->crew[i]), 0, "a settle was refused");
        listener_free(x->crew[i]);
    }
}

static bool was_killed(const struct scene *x, pid_t pid)
{
    for (size_t i = 0; i < x->n_killed; i++) {
        if (x->killed[i] == pid) {
            return true;
        }
    }
    return false;
}

/* ---- while it plays ---- */
/* The first try of the job of a moment; NULL: it has not begun, or its holder was killed before. */
static const struct run *first_run(const struct scene *x, unsigned moment)
{
    const struct run *run;

    for (long at = 0; (run = runs_next(x->runs, &at));) {
        if (run->try_no == 1 && run->due_ms == moment_ms(x, moment)) {
            return run;
        }
    }
    return NULL;
}

/* Has the job of this moment begun, or that of a later one? On a slow machine one that may not be
 * late does not begin at all. */
static bool has_run_from(const struct scene *x, unsigned moment)
{
    while (moment <= x->n_moments && !first_run(x, moment)) {
        moment++;
    }
    return moment <= x->n_moments;
}

/* The number of its last moment. */
static unsigned moments_had(struct scene *x)
{
    char *attempt = redis_str(x->f->server, "HGET lapse:{q}:attempts a");
    const char *n = attempt ? strstr(attempt, " n=") : NULL;
    unsigned had = n ? (unsigned)strtoul(n + 3, NULL, 10) : 0;

    free(attempt);
    return had;
}

static void until_over(struct scene *x)
{
    flow_poll(x->f, redis_left(x->f->server, "lapse", "q") == 0);
}

/* ---- what is kept ---- */
struct page {
    struct scene *x;
    unsigned calls;
};

static void on_kept(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                    void *arg)
{
    struct page *page = arg;
    struct scene *x = page->x;

    (void)l;
    cr_assert_eq(err, 0);
    page->calls++;
    for (size_t i = 0; i < n; i++) {
        unsigned moment = lapse_job_stage(jobs[i]);
        if (strcmp(lapse_job_id(jobs[i]), "a") == 0) {
            x->end = lapse_job_end(jobs[i]);
            continue;
        }
        cr_assert_str_eq(lapse_job_series(jobs[i]), "a");
        cr_assert(moment >= 1 && moment <= x->n_moments, "%u", moment);
        cr_assert_str_eq(x->kept[moment].id, "", "moment %u has two jobs", moment);
        snprintf(x->kept[moment].id, sizeof x->kept[moment].id, "%s", lapse_job_id(jobs[i]));
        x->kept[moment].end = lapse_job_end(jobs[i]);
        x->n_kept++;
    }
}

/* Was it done? One that went with its holder, and may not be late, is skipped the second time. */
static bool ended_well(const struct scene *x, unsigned moment)
{
    const struct run *run = first_run(x, moment);

    if (x->kept[moment].end == LAPSE_ENDED_DONE) {
        return true;
    }
    return x->max_late_ms && x->kept[moment].end == LAPSE_ENDED_SKIPPED &&
           (!run || was_killed(x, run->pid));
}

/* The series has ended, each of its jobs was done, and none is left in another state. */
static void kept_read(struct scene *x)
{
    struct page page = {.x = x};

    cr_assert_eq(lapse_list(x->f->l, "q", LAPSE_KEPT, NULL, 100, on_kept, &page), 0);
    flow_until(x->f, page.calls == 1);
    cr_assert_eq(x->end, LAPSE_ENDED_DONE);
    cr_assert_eq(flow_count(x->f, "q", "dead"), 0);
    for (unsigned i = 1; i <= x->n_moments; i++) {
        cr_assert(!*x->kept[i].id || ended_well(x, i), "moment %u ended as %d", i, x->kept[i].end);
    }
}

static void each_moment_is_done(const struct scene *x)
{
    for (unsigned i = 1; i <= x->n_moments; i++) {
        cr_assert(*x->kept[i].id, "moment %u had no job", i);
    }
}

/* None began early, and a job whose holder was not killed ran once; one that went with its holder
 * ran again as the next try. Who was killed after its claim and before its handler began has left
 * no run of that try, and none at all of a job that may not be late: no more than were killed.
 * Returns how many ran again. */
static long run_again(const struct scene *x)
{
    size_t unbegun = 0;
    long n = 0;

    for (unsigned moment = 1; moment <= x->n_moments; moment++) {
        const struct run *before = NULL;
        const struct run *run;
        for (long at = 0; (run = runs_next(x->runs, &at));) {
            if (strcmp(run->id, x->kept[moment].id) != 0) {
                continue;
            }
            unsigned tries = before ? before->try_no : 0;
            cr_assert_gt(run->try_no, tries, "%s", run->id);
            cr_assert(run->try_no > 1 || run->due_ms == moment_ms(x, moment), "%s", run->id);
            cr_assert_geq(run->claimed_us, run->due_ms * 1000);
            cr_assert(!before || was_killed(x, before->pid), "%s ran twice", run->id);
            unbegun += run->try_no - tries - 1;
            n += before != NULL;
            before = run;
        }
        cr_assert(before || !*x->kept[moment].id || x->kept[moment].end == LAPSE_ENDED_SKIPPED,
                  "moment %u did not run", moment);
        unbegun += *x->kept[moment].id && !before;
    }
    cr_assert_leq(unbegun, x->n_killed);
    return n;
}

static void scene_end(struct scene *x)
{
    crew_end(x);
    runs_free(x->runs);
    flow_end(x->f, "q");
}

/* ---- F57 ---- */
/* Of each tenth moment, from the fifth on, who begins the job first dies with it in hand. */
static void on_started(void *arg, const struct lapse_job *job)
{
    struct scene *x = arg;
    unsigned moment = lapse_job_stage(job);
    int none = 0;

    runs_add(x->runs, job);
    if (moment % 10 == KILL_EACH &&
        atomic_compare_exchange_strong(&x->died[moment], &none, getpid())) {
        raise(SIGKILL);
    }
}

/* Replaces who has died with the job of this moment; unless that is done, since it was to be killed
 * at the same time. */
static void replace_who_died(struct scene *x, unsigned moment)
{
    flow_poll(x->f, x->died[moment]);
    for (int i = 0; i < CREW; i++) {
        if (x->crew[i]->pid == x->died[moment]) {
            crew_replace(x, i);
            return;
        }
    }
    cr_assert(was_killed(x, x->died[moment]), "moment %u ran elsewhere", moment);
}

/* Kills one of the crew at any time in the period of this moment; it may have a job in hand. */
static void replace_any(struct scene *x, unsigned moment)
{
    flow_poll(x->f, moments_had(x) >= moment);
    flow_spin(x->f, random() % x->every_ms);
    crew_replace(x, (int)(random() % CREW));
}

Test(f57, a_series_whose_listeners_are_killed_has_one_job_a_moment, .timeout = 300)
{
    struct scene x = {.catch_up = LAPSE_CATCH_UP_ALL};
    long in_hand = 0;

    scene_begin(&x, NULL);
    x.died = shared_new((MOMENTS_MAX + 1) * sizeof *x.died);
    x.plan.recorder.arg = &x;
    x.plan.recorder.started = on_started;
    crew_start(&x);
    scene_schedule(&x);
    for (unsigned moment = KILL_EACH; moment <= x.n_moments; moment += KILL_EACH) {
        if (moment % 10 == KILL_EACH) {
            replace_who_died(&x, moment);
            in_hand++;
        } else {
            replace_any(&x, moment);
        }
    }

    until_over(&x);
    kept_read(&x);
    each_moment_is_done(&x);
    long again = run_again(&x);
    cr_assert_geq(again, in_hand);
    fault_row("F57", "a series, one of whose three listeners is killed each fifth moment",
              "60 moments: each has one job, done once; one whose holder died runs again as try 2",
              "%u moments, %zu kills: one job each, %ld ran again", x.n_kept, x.n_killed, again);
    scene_end(&x);
    shared_free(x.died, (MOMENTS_MAX + 1) * sizeof *x.died);
}

/* ---- F58 ---- */
Test(f58, a_series_whose_redis_is_killed_has_one_job_a_moment, .timeout = 300)
{
    static const char *const args[] = {"--appendfsync", "always", NULL};
    struct scene x = {.catch_up = LAPSE_CATCH_UP_ALL};
    unsigned kills = 0;

    scene_begin(&x, args);
    x.plan.may_be_refused = true; /* its answer may be lost */
    crew_start(&x);
    scene_schedule(&x);
    scene_close(&x);
    for (unsigned moment = KILL_EACH; moment <= x.n_moments; moment += KILL_EACH, kills++) {
        flow_poll(x.f, moments_had(&x) >= moment);
        flow_spin(x.f, random() % x.every_ms);
        server_kill9(x.f->server);
        flow_spin(x.f, 200 + random() % x.every_ms);
        server_restart(x.f->server);
        redis_rewrite_log(x.f->server);
    }

    until_over(&x);
    scene_open(&x);
    kept_read(&x);
    each_moment_is_done(&x);
    fault_row("F58", "a series, whose Redis (`appendfsync always`) is killed each fifth moment",
              "60 moments: each has one job, done once", "%u moments, %u kills: one job each",
              x.n_kept, kills);
    scene_end(&x);
}

/* ---- F59 ---- */
/* lapse listen, by a clock of its own. */
struct clocked {
    struct proc *listener;
    struct wall_clock *clock;
    char path[CLOCK_PATH];
};

static void clocked_start(struct clocked *c)
{
    setenv("LAPSE_CLOCK", c->path, 1);
    c->listener = proc_start((const char *const[]){"lapse", "listen", "q", "-o", "lease_ms=3000",
                                                   "-o", "sweep_ms=500", NULL});
}

static void clocked_kill(struct clocked *c)
{
    proc_signal(c->listener, SIGKILL);
    proc_wait(c->listener, PROC_WAIT_MS);
    proc_free(c->listener);
}

Test(f59, a_series_whose_listeners_go_by_other_clocks_has_one_job_a_moment, .timeout = 300)
{
    static const int64_t steps_us[CREW] = {DAY_US, -DAY_US, 0};
    struct scene x = {.catch_up = LAPSE_CATCH_UP_ALL};
    struct clocked crew[CREW];
    unsigned kills = 0;

    server_listens();
    scene_begin(&x, NULL);
    setenv("LAPSE_URL", x.f->server->url, 1);
    for (int i = 0; i < CREW; i++) {
        crew[i].clock = clock_begin(crew[i].path);
        crew[i].clock->step_us = steps_us[i];
        clocked_start(&crew[i]);
    }
    flow_until_listeners(x.f, "q", CREW);
    scene_schedule(&x);
    for (unsigned moment = KILL_EACH; moment <= x.n_moments; moment += KILL_EACH, kills++) {
        struct clocked *c = &crew[kills % CREW];
        flow_poll(x.f, moments_had(&x) >= moment);
        clocked_kill(c);
        clocked_start(c);
    }

    until_over(&x);
    clock_not_for_others();
    for (int i = 0; i < CREW; i++) {
        clocked_kill(&crew[i]);
        clock_end(crew[i].clock, crew[i].path);
    }
    kept_read(&x);
    each_moment_is_done(&x);
    fault_row("F59",
              "a series, of whose three listeners one is a day ahead, one a day behind, and one is "
              "killed each fifth moment",
              "60 moments: each has one job, done once", "%u moments, %u kills: one job each",
              x.n_kept, kills);
    runs_free(x.runs);
    flow_end(x.f, "q");
}

/* Of one that is a day ahead, too, which has not heard yet what Redis's clock shows. */
Test(f59, a_cron_line_begins_at_its_next_moment_by_the_clock_of_redis, .timeout = 60)
{
    static const int64_t steps_us[] = {0, DAY_US, -DAY_US};
    struct server *s = server_start();

    setenv("LAPSE_URL", s->url, 1);
    for (size_t i = 0; i < sizeof steps_us / sizeof *steps_us; i++) {
        char path[CLOCK_PATH];
        struct wall_clock *c = clock_begin(path);
        c->step_us = steps_us[i];
        struct proc *p = proc_run(NULL, "lapse", "schedule", "q", "--id", "a", "--cron",
                                  "* * * * *", "--on-conflict", "replace", NULL);
        clock_not_for_others();
        clock_end(c, path);
        if (strstr(p->err, "built without")) {
            proc_free(p);
            server_stop(s);
            cr_skip_test("lapse was built without cron");
        }
        cr_assert_eq(p->status, 0, "%s", p->err);
        cr_assert_leq(redis_int(s, "ZSCORE lapse:{q}:due a"), redis_now_ms(s) + 60000, "%s",
                      p->out);
        proc_free(p);
    }
    server_stop(s);
}

/* ---- F60 ---- */
enum { AWAY = 10 }; /* periods */

/* All go with what they have in hand, others come later. Returns how many moments had no job. */
static unsigned away(struct scene *x, enum lapse_catch_up catch_up, int64_t max_late_ms)
{
    *x = (struct scene){.catch_up = catch_up, .max_late_ms = max_late_ms};
    scene_begin(x, NULL);
    crew_start(x);
    scene_schedule(x);
    flow_poll(x->f, has_run_from(x, KILL_EACH));
    for (int i = 0; i < CREW; i++) {
        crew_kill(x, i);
    }
    int64_t until_ms = moment_ms(x, moments_had(x) + AWAY);
    flow_poll(x->f, redis_now_ms(x->f->server) > until_ms);
    crew_come(x); /* the names of those before stay for a minute */

    until_over(x);
    kept_read(x);
    run_again(x);
    return x->n_moments - x->n_kept;
}

/* The last moment before the claim, and no other one of those that had passed. */
static void each_is_the_last_that_passed(const struct scene *x)
{
    for (unsigned i = 1; i <= x->n_moments; i++) {
        const struct run *run = first_run(x, i);
        cr_assert(!run || i == x->n_moments || run->claimed_us / 1000 < moment_ms(x, i + 1),
                  "moment %u was made up for", i);
    }
}

static void none_is_late(const struct scene *x)
{
    for (unsigned i = 1; i <= x->n_moments; i++) {
        const struct run *run = first_run(x, i);
        cr_assert(!run || run->claimed_us / 1000 - run->due_ms <= x->max_late_ms, "moment %u", i);
    }
}

Test(f60, a_series_that_nobody_listens_to_for_a_while_is_made_up_for_as_it_says, .timeout = 300)
{
    struct scene x;

    cr_assert_eq(away(&x, LAPSE_CATCH_UP_ALL, 0), 0);
    scene_end(&x);

    unsigned passed = away(&x, LAPSE_CATCH_UP_LATEST, 0);
    cr_assert(passed >= AWAY - 2 && passed < x.n_moments, "%u", passed);
    each_is_the_last_that_passed(&x);
    scene_end(&x);

    unsigned none = away(&x, LAPSE_CATCH_UP_NONE, fault_n(100, 300));
    cr_assert(none >= AWAY - 2 && none < x.n_moments, "%u", none);
    each_is_the_last_that_passed(&x);
    none_is_late(&x);
    scene_end(&x);
    fault_row("F60",
              "all three listeners of a series are killed, and none is there for ten moments",
              "each moment has its job with `all`, the last one alone with `latest`, none that is "
              "late with `none`; each is done once",
              "%u moments: with `all` each, with `latest` all but %u, with `none` all but %u",
              x.n_moments, passed, none);
}
