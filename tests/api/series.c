/* SPDX-License-Identifier: MIT */
/* Series: one id with several moments, of each of which a job is made. */
#include "handler.h"
#include "listener.h"
#include <inttypes.h>
#include <signal.h>

enum { HOUR = 3600000, EVERY = 100 };
#define TEN_YEARS INT64_C(315576000000)

static struct lapse_series every(int64_t ms, unsigned times)
{
    struct lapse_series s = lapse_series_init();

    s.every_ms = ms;
    s.times = times;
    return s;
}

static const int64_t delayq_ms[] = {50, 60, 70};

static struct lapse_series stages(void)
{
    struct lapse_series s = lapse_series_init();

    s.stages_ms = delayq_ms;
    s.n_stages = 3;
    return s;
}

static int schedule(struct flow *f, const char *id, int64_t delay_ms, const struct lapse_series *s,
                    struct flow_job *out)
{
    struct lapse_spec spec = flow_job_spec("q", id, delay_ms);

    spec.series = s;
    spec.body = "body";
    spec.body_len = 4;
    return flow_spec(f, &spec, out);
}

/* ---- what runs ---- */
/* The jobs as they came: each of which moment, and due when. */
struct moments {
    struct flow_handler w; /* first: flow_on_job() gets it */
    unsigned stage[64];
    char series[64];
};

static void on_moment(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct moments *m = arg;

    cr_assert_lt(m->w.n_runs, 64);
    m->stage[m->w.n_runs] = lapse_job_stage(job);
    snprintf(m->series, sizeof m->series, "%s", lapse_job_series(job));
    flow_on_job(l, job, &m->w);
}

static void listen(struct flow *f, struct moments *m)
{
    m->w.f = f;
    cr_assert_eq(lapse_listen(f->l, "q", NULL, on_moment, m), 0);
}

FLOW_ALL_MODES(series, runs_once_at_each_of_its_moments_and_ends)
{
    struct flow *f = flow_start(mode);
    struct moments m = {.w.f = f};
    struct lapse_series s = every(EVERY, 5);
    struct flow_job made;

    s.catch_up = LAPSE_CATCH_UP_ALL;
    listen(f, &m);
    cr_assert_eq(schedule(f, "a", EVERY, &s, &made), 0);
    cr_assert_eq(made.state, LAPSE_SERIES);
    cr_assert(made.created);
    flow_until(f, m.w.settled == 5);
    flow_each_once(&m.w, 5);

    for (unsigned i = 0; i < 5; i++) {
        const struct flow_job *job = &m.w.runs[i].job;
        char id[64];
        snprintf(id, sizeof id, "a~%" PRIu64, job->token);
        cr_assert_str_eq(job->id, id);
        cr_assert_eq(m.stage[i], i + 1);
        cr_assert_eq(job->due_ms, made.due_ms + i * EVERY);
        cr_assert_eq(job->body_len, 4);
    }
    cr_assert_str_eq(m.series, "a");
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_end(f, "q");
}

/* A stage that fails forever delays none of the later ones. */
Test(series, runs_each_stage_at_its_distance_though_one_fails)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct moments m = {.w = {.f = f, .way = FLOW_RETRY, .delay_ms = HOUR, .reason = "no"}};
    struct lapse_series s = stages();
    struct flow_job made;

    listen(f, &m);
    cr_assert_eq(schedule(f, "a", 20, &s, &made), 0);
    flow_until(f, m.w.settled == 4);
    flow_each_once(&m.w, 4);
    for (unsigned i = 0; i < 4; i++) {
        cr_assert_eq(m.stage[i], i + 1);
        cr_assert_eq(m.w.runs[i].job.due_ms, made.due_ms + (i ? delayq_ms[i - 1] : 0));
    }
    cr_assert_eq(flow_count(f, "q", "due"), 4);
    flow_end(f, "q");
}

struct stages_run {
    struct flow_handler w;
    int64_t due_ms[5]; /* of the first try */
    unsigned tries[5];
};

static void on_stage(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct stages_run *run = arg;
    unsigned stage = lapse_job_stage(job);

    (void)l;
    run->tries[stage] = lapse_job_try(job);
    if (lapse_job_try(job) == 1) {
        run->due_ms[stage] = lapse_job_due_ms(job);
    }
    if (stage == 2) {
        lapse_retry(job, 20, "no", flow_on_settled, &run->w);
    } else {
        lapse_done(job, flow_on_settled, &run->w);
    }
}

Test(series, has_its_third_and_fourth_stage_while_the_second_fails_again_and_again)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct stages_run run = {.w.f = f};
    struct lapse_series s = stages();
    struct flow_job made;
    struct flow_job left;

    cr_assert_eq(lapse_listen(f->l, "q", NULL, on_stage, &run), 0);
    cr_assert_eq(schedule(f, "a", 20, &s, &made), 0);
    flow_until(f, run.tries[4] == 1 && run.tries[2] >= 3);
    for (unsigned i = 1; i <= 4; i++) {
        cr_assert_eq(run.due_ms[i], made.due_ms + (i > 1 ? delayq_ms[i - 2] : 0));
    }
    cr_assert(run.tries[1] == 1 && run.tries[3] == 1);

    cr_assert_eq(lapse_unlisten(f->l, "q"), 0);
    flow_poll(f, flow_count(f, "q", "due") == 1 && flow_count(f, "q", "run") == 0);
    cr_assert_eq(flow_list(f, "q", LAPSE_WAITING, 9, &left, 1), 1);
    cr_assert_eq(strncmp(left.id, "a~", 2), 0);
    cr_assert_eq(flow_cancel(f, "q", left.id, NULL), 0);
    flow_end(f, "q");
}

/* It is a job like any other, under its own id. */
Test(series, of_a_run_that_is_given_back_runs_the_same_job_again)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_series s = every(HOUR, 0);
    struct flow_claim c = {.f = f};

    cr_assert_eq(schedule(f, "a", 0, &s, NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 9, 0, &c), 0);
    cr_assert_eq(c.n, 1);
    lapse_release(c.jobs[0], NULL, NULL);
    struct flow_claim again = {.f = f};
    flow_poll(f, (again = (struct flow_claim){.f = f}, flow_claim(f, "q", 9, 0, &again) == 0) &&
                     again.n == 1);
    cr_assert_str_eq(lapse_job_series(again.jobs[0]), "a");
    cr_assert_eq(lapse_job_stage(again.jobs[0]), 1);
    flow_claim_done(f, &again);
    flow_end(f, "q");
}

Test(series, is_one_job_a_moment_of_several_listeners)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct moments m = {.w.f = f};
    struct lapse_series s = every(EVERY, 8);

    s.catch_up = LAPSE_CATCH_UP_ALL;
    for (int i = 0; i < 3; i++) {
        struct lapse *l = flow_open(f, NULL);
        cr_assert_eq(lapse_listen(l, "q", NULL, on_moment, &m), 0);
    }
    cr_assert_eq(schedule(f, "a", 0, &s, NULL), 0);
    flow_until(f, m.w.settled == 8);
    flow_each_once(&m.w, 8);
    flow_end(f, "q");
}

static size_t ids_of(const struct runs *r)
{
    const struct run *run;
    size_t n = 0;

    for (long at = 0; (run = runs_next(r, &at));) {
        bool is_first = runs_is_first_of_job(r, run);
        n += is_first;
        cr_assert(is_first || run->try_no > 1, "%s ran twice in one try", run->id);
    }
    return n;
}

/* A run that a listener took to its grave runs again, as try 2 of the same job. */
Test(series, of_listeners_that_are_killed_has_one_job_a_moment)
{
    enum { CREW = 3, MOMENTS = 40, KILLS = 6 };
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct runs *r = runs_new(10 * MOMENTS);
    struct lapse_options o = flow_options(f);
    struct listener *crew[CREW];
    struct lapse_series s = every(EVERY, MOMENTS);

    server_listens();
    o.lease_ms = 1000;
    o.sweep_ms = 1000;
    s.catch_up = LAPSE_CATCH_UP_ALL;
    crew[0] = listener_start(r, "q", &o, LISTENER_DIES);
    f->l = flow_open(f, NULL);
    cr_assert_eq(schedule(f, "a", EVERY, &s, NULL), 0);
    flow_poll(f, r->n == 1);
    for (int i = 1; i < CREW; i++) {
        crew[i] = listener_start(r, "q", &o, LISTENER_SETTLES);
    }
    for (int i = 0; i < KILLS; i++) {
        long n = r->n;
        flow_poll(f, r->n > n + 2);
        listener_signal(crew[i % CREW], SIGKILL);
        listener_free(crew[i % CREW]);
        crew[i % CREW] = listener_start(r, "q", &o, i < 2 ? LISTENER_DIES : LISTENER_SETTLES);
    }
    flow_poll(f, redis_left(f->server, f->space, "q") == 0);
    cr_assert_eq(ids_of(r), MOMENTS);
    cr_assert_gt(r->n, MOMENTS, "a listener died with a job");
    cr_assert_eq(flow_count(f, "q", "dead"), 0);

    for (int i = 0; i < CREW; i++) {
        listener_free(crew[i]);
    }
    runs_free(r);
    flow_end(f, "q");
}

/* ---- what is shown ---- */
struct shown {
    unsigned calls;
    size_t n;
    enum lapse_state state;
    unsigned stage, tries;
    struct lapse_series rule;
    int64_t stages[32];
    int has_rule;
    char series[300];
};

static void show(struct shown *out, const struct lapse_job *job)
{
    struct lapse_job *dup = lapse_job_dup(job);

    cr_assert(dup);
    out->rule = lapse_series_init();
    out->state = lapse_job_state(dup);
    out->stage = lapse_job_stage(dup);
    out->tries = lapse_job_try(dup);
    out->has_rule = lapse_job_rule(dup, &out->rule, out->stages);
    snprintf(out->series, sizeof out->series, "%s", lapse_job_series(dup));
    lapse_job_free(dup);
}

static void on_got(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct shown *out = arg;

    (void)l;
    cr_assert_eq(err, 0);
    show(out, job);
    out->calls++;
}

static struct shown get(struct flow *f, const char *id)
{
    struct shown out = {.calls = 0};

    cr_assert_eq(lapse_get(f->l, "q", id, on_got, &out), 0);
    flow_until(f, out.calls == 1);
    return out;
}

Test(series, shows_what_its_schedule_said_and_how_many_moments_have_been)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_series s = every(HOUR, 7);
    struct flow_claim c = {.f = f};

    s.until_ms = INT64_C(4102444800000);
    s.catch_up = LAPSE_CATCH_UP_NONE;
    s.no_overlap = 1;
    cr_assert_eq(schedule(f, "a", 0, &s, NULL), 0);
    struct lapse_series t = stages();
    cr_assert_eq(schedule(f, "b", HOUR, &t, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "p", HOUR, NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 9, 0, &c), 0);

    struct shown a = get(f, "a");
    cr_assert(a.state == LAPSE_SERIES && a.stage == 1 && a.tries == 1 && a.has_rule);
    cr_assert(a.rule.every_ms == HOUR && a.rule.times == 7 && a.rule.until_ms == s.until_ms);
    cr_assert(a.rule.catch_up == LAPSE_CATCH_UP_NONE && a.rule.no_overlap && !a.rule.n_stages);
    cr_assert_str_eq(a.series, "");
    struct shown b = get(f, "b");
    cr_assert(b.state == LAPSE_SERIES && b.stage == 0 && b.tries == 0 && b.rule.n_stages == 3);
    cr_assert_arr_eq(b.stages, delayq_ms, sizeof delayq_ms);
    cr_assert(b.rule.stages_ms && b.rule.every_ms == 0);
    struct shown run = get(f, lapse_job_id(c.jobs[0]));
    cr_assert(run.state == LAPSE_RUNNING && run.stage == 1 && !run.has_rule);
    cr_assert_str_eq(run.series, "a");
    struct shown p = get(f, "p");
    cr_assert(p.state == LAPSE_WAITING && p.stage == 0 && !p.has_rule && !*p.series);
    flow_claim_done(f, &c);
    flow_end(f, "q");
}

Test(series, is_listed_by_its_id_page_by_page)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_series s = every(HOUR, 0);
    struct flow_job jobs[8];

    for (int i = 0; i < 5; i++) {
        char id[] = {(char)('e' - i), '\0'};
        cr_assert_eq(schedule(f, id, HOUR + i, &s, NULL), 0);
    }
    cr_assert_eq(flow_schedule(f, "q", "p", HOUR, NULL), 0);
    cr_assert_eq(flow_list(f, "q", LAPSE_SERIES, 2, jobs, 8), 5);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(jobs[i].id[0], 'a' + i);
        cr_assert_eq(jobs[i].state, LAPSE_SERIES);
    }
    cr_assert_eq(flow_list(f, "q", LAPSE_WAITING, 4, jobs, 8), 6);
    flow_end(f, "q");
}

/* ---- what changes it ---- */
Test(series, is_cancelled_with_its_jobs_that_wait)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct moments m = {.w = {.f = f, .way = FLOW_RETRY, .delay_ms = HOUR, .reason = "no"}};
    static const int64_t after_ms[] = {1, HOUR};
    struct lapse_series s = {.size = sizeof s, .stages_ms = after_ms, .n_stages = 2};
    struct flow_job told;

    listen(f, &m);
    cr_assert_eq(schedule(f, "a", 0, &s, NULL), 0);
    flow_until(f, m.w.settled == 2);
    cr_assert_eq(flow_cancel(f, "q", "a", &told), 0);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_poll(f, flow_count(f, "q", "run") == 0);
    cr_assert_eq(flow_count(f, "q", "due"), 0);
    flow_end(f, "q");
}

/* Four stages, of which so many are 10 ms apart, and the others an hour later. */
static void schedule_apart(struct flow *f, unsigned n)
{
    int64_t after_ms[3];
    struct lapse_series s = {.size = sizeof s, .stages_ms = after_ms, .n_stages = 3};

    for (unsigned i = 0; i < 3; i++) {
        after_ms[i] = 10 * (i + 1) + (i + 1 < n ? 0 : HOUR);
    }
    cr_assert_eq(schedule(f, "a", 0, &s, NULL), 0);
}

Test(series, is_cancelled_between_any_two_stages)
{
    for (unsigned n = 1; n < 4; n++) {
        struct flow *f = flow_start(FLOW_FULL);
        struct moments m = {.w.f = f};

        listen(f, &m);
        schedule_apart(f, n);
        flow_until(f, m.w.settled == n);
        cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
        cr_assert_eq(redis_int(f->server, "EXISTS lapse:{q}:due lapse:{q}:jobs lapse:{q}:index"),
                     0);
        flow_each_once(&m.w, n);
        flow_end(f, "q");
    }
}

Test(series, keeps_its_distances_where_it_is_rescheduled_between_any_two_stages)
{
    for (unsigned n = 1; n < 4; n++) {
        struct flow *f = flow_start(FLOW_FULL);
        struct moments m = {.w.f = f};
        struct flow_job moved;

        listen(f, &m);
        schedule_apart(f, n);
        flow_until(f, m.w.settled == n);
        cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(20), &moved), 0);
        flow_until(f, m.w.settled == 4);
        for (unsigned i = n; i < 4; i++) {
            cr_assert_eq(m.stage[i], i + 1);
            cr_assert_eq(m.w.runs[i].job.due_ms, moved.due_ms + 10 * (i - n));
        }
        flow_each_once(&m.w, 4);
        flow_end(f, "q");
    }
}

Test(series, that_is_cancelled_asks_its_runs_to_stop_if_that_is_wanted)
{
    for (unsigned flags = 0; flags <= LAPSE_RUNNING_TOO; flags++) {
        struct flow *f = flow_start(FLOW_FULL);
        struct flow_handler w = {.way = FLOW_KEEP};
        struct lapse_series s = every(HOUR, 0);
        struct flow_answer a = {.f = f};

        flow_listen(f, "q", &w);
        cr_assert_eq(schedule(f, "a", 0, &s, NULL), 0);
        flow_until(f, w.n_held == 1);
        cr_assert_eq(lapse_cancel(f->l, "q", "a", flags, flow_answered, &a), 0);
        cr_assert_eq(flow_wait(f, &a), 0);
        if (flags) {
            flow_until(f, lapse_job_cancelled(w.held[0]));
        }
        cr_assert_eq(lapse_job_cancelled(w.held[0]), (int)flags);
        flow_settle(&w, FLOW_RETRY);
        cr_assert_eq(flow_count(f, "q", "due"), 0);
        flow_end(f, "q");
    }
}

Test(series, that_is_rescheduled_moves_all_later_moments)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct moments m = {.w.f = f};
    struct lapse_series s = stages();
    struct flow_job moved;

    cr_assert_eq(schedule(f, "a", HOUR, &s, NULL), 0);
    listen(f, &m);
    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(30), &moved), 0);
    cr_assert_eq(moved.state, LAPSE_SERIES);
    flow_until(f, m.w.settled == 4);
    for (unsigned i = 0; i < 4; i++) {
        cr_assert_eq(m.w.runs[i].job.due_ms, moved.due_ms + (i ? delayq_ms[i - 1] : 0));
    }
    flow_end(f, "q");
}

Test(series, that_replaces_one_goes_on_counting)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_series s = every(HOUR, 0);
    struct lapse_spec spec = flow_job_spec("q", "a", HOUR);
    struct flow_claim c = {.f = f};

    cr_assert_eq(schedule(f, "a", 0, &s, NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 9, 0, &c), 0);
    s.every_ms = 2 * HOUR;
    spec.series = &s;
    cr_assert_eq(flow_spec(f, &spec, NULL), LAPSE_EEXIST);
    spec.on_conflict = LAPSE_REPLACE;
    cr_assert_eq(flow_spec(f, &spec, NULL), 0);
    struct shown a = get(f, "a");
    cr_assert(a.stage == 1 && a.tries == 1 && a.rule.every_ms == 2 * HOUR);
    flow_claim_done(f, &c);
    flow_end(f, "q");
}

Test(series, is_not_moved_by_earlier_later_and_debounce)
{
    static const enum lapse_conflict moves[] = {LAPSE_EARLIER, LAPSE_LATER, LAPSE_DEBOUNCE};
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_series s = every(HOUR, 0);

    cr_assert_eq(schedule(f, "a", HOUR, &s, NULL), 0);
    for (size_t i = 0; i < 3; i++) {
        struct lapse_spec spec = flow_job_spec("q", "a", 5);
        spec.on_conflict = moves[i];
        cr_assert_eq(flow_spec(f, &spec, NULL), LAPSE_EINVAL);
    }
    flow_end(f, "q");
}

Test(series, that_is_to_end_before_its_first_moment_is_einval)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_series s = every(HOUR, 0);

    s.until_ms = test_now_ms() + HOUR / 2;
    cr_assert_eq(schedule(f, "a", HOUR, &s, NULL), LAPSE_EINVAL);
    cr_assert_eq(flow_count(f, "q", "due"), 0);
    flow_end(f, "q");
}

/* ---- what is refused at once ---- */
static int refused(struct flow *f, struct lapse_spec *spec, const struct lapse_series *s)
{
    spec->series = s;
    return lapse_schedule(f->l, spec, NULL, NULL);
}

Test(series, of_a_rule_that_says_nothing_or_too_much_is_einval)
{
    static int64_t many[33];
    static const int64_t falling[] = {5, 5};
    static const int64_t zero[] = {0};
    static const int64_t huge[] = {TEN_YEARS + 1};
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec spec = flow_job_spec("q", "a", HOUR);
    struct lapse_series s;

    for (int i = 0; i < 33; i++) {
        many[i] = i + 1;
    }
#define BAD(...)                                                                         \
    do {                                                                                 \
        s = lapse_series_init();                                                         \
        __VA_ARGS__;                                                                     \
        cr_assert_eq(refused(f, &spec, &s), LAPSE_EINVAL, "not refused: " #__VA_ARGS__); \
    } while (0)
    BAD((void)0);
    BAD(s.every_ms = 99);
    BAD(s.every_ms = -HOUR);
    BAD(s.every_ms = TEN_YEARS + 1);
    BAD(s.stages_ms = many; s.n_stages = 33);
    BAD(s.stages_ms = many);
    BAD(s.n_stages = 1);
    BAD(s.n_stages = 1; s.every_ms = HOUR);
    BAD(s.stages_ms = many; s.n_stages = 3; s.every_ms = HOUR);
    BAD(s.stages_ms = falling; s.n_stages = 2);
    BAD(s.stages_ms = zero; s.n_stages = 1);
    BAD(s.stages_ms = huge; s.n_stages = 1);
    BAD(s.every_ms = HOUR; s.until_ms = -1);
    BAD(s.every_ms = HOUR; s.until_ms = INT64_MAX);
    BAD(s.every_ms = HOUR; s.catch_up = (enum lapse_catch_up)3);
    BAD(s.every_ms = HOUR; s.no_overlap = 2);
    BAD(s.every_ms = HOUR; s.size = 0);
    BAD(s.every_ms = HOUR; s.size = sizeof s - 1);
#undef BAD
    struct {
        struct lapse_series s;
        int64_t extra;
    } newer = {every(HOUR, 0), 1};
    newer.s.size = sizeof newer;
    cr_assert_eq(refused(f, &spec, &newer.s), LAPSE_EINVAL);
    newer.extra = 0;
    cr_assert_eq(refused(f, &spec, &newer.s), 0);

    s = stages();
    for (spec.on_conflict = LAPSE_EARLIER; spec.on_conflict <= LAPSE_DEBOUNCE; spec.on_conflict++) {
        cr_assert_eq(refused(f, &spec, &s), LAPSE_EINVAL);
    }
    cr_assert_eq(flow_get(f, "q", "a", NULL), 0);
    flow_end(f, "q");
}

/* Each id of a job has room for ~ and a token, and each record for the name of the series. */
Test(series, leaves_room_for_what_its_jobs_have)
{
    char id[240];
    char value[256];
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_series s = every(HOUR, 0);
    struct lapse_header headers[15];
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                        "i", "j", "k", "l", "m", "n", "o"};
    struct flow_claim c = {.f = f};

    memset(id, 'x', sizeof id);
    id[239] = '\0';
    cr_assert_eq(schedule(f, id, 0, &s, NULL), LAPSE_EINVAL);
    id[238] = '\0';
    memset(value, 'v', sizeof value);
    value[251] = '\0';
    for (int i = 0; i < 15; i++) {
        headers[i] = (struct lapse_header){names[i], value};
    }
    struct lapse_spec spec = flow_job_spec("q", id, 0);
    spec.headers = headers;
    spec.n_headers = 15;
    spec.series = &s;
    cr_assert_eq(lapse_schedule(f->l, &spec, NULL, NULL), LAPSE_EINVAL);
    spec.n_headers = 14;
    cr_assert_eq(flow_spec(f, &spec, NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 9, 0, &c), 0);
    cr_assert_eq(c.n, 1);
    cr_assert_str_eq(lapse_job_series(c.jobs[0]), id);
    cr_assert_eq(strlen(lapse_job_id(c.jobs[0])), 255);
    cr_assert_str_eq(lapse_job_header(c.jobs[0], "n"), value);
    flow_claim_done(f, &c);
    flow_end(f, "q");
}
