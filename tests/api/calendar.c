/* SPDX-License-Identifier: MIT */
/* Series whose moments a calendar gives, and the pause of series. */
#include "handler.h"
#include "listening.h"
#include "listener.h"
#include "redis.h"
#include <inttypes.h>
#include <signal.h>
#include <time.h>

enum { HOUR = 3600000, TICK = 20 };

/* ---- calendars ---- */
/* Of the rule N each multiple of N ms; of "never" none, and of all else it is wrong. */
static int64_t multiples(const char *rule, int64_t after_ms, void *arg)
{
    int64_t ms = strtoll(rule, NULL, 10);

    (void)arg;
    if (strcmp(rule, "never") == 0) {
        return 0;
    }
    return ms > 0 ? (after_ms / ms + 1) * ms : -1;
}

/* The same, and none after this one. */
static int64_t until(const char *rule, int64_t after_ms, void *arg)
{
    const int64_t *last_ms = arg;
    int64_t ms = multiples(rule, after_ms, NULL);

    return ms > *last_ms ? 0 : ms;
}

/* A function that breaks its promise. */
static int64_t stands_still(const char *rule, int64_t after_ms, void *arg)
{
    (void)rule;
    (void)arg;
    return after_ms;
}

static int schedule(struct flow *f, const char *calendar, const char *rule,
                    struct lapse_series *policy)
{
    struct lapse_spec spec = flow_job_spec("q", "a", 0);
    struct lapse_series s = lapse_series_init();

    if (policy) {
        s = *policy;
    }
    s.calendar = calendar;
    s.rule = rule;
    spec.series = &s;
    return flow_spec(f, &spec, NULL);
}

/* ---- what is got ---- */
struct seen {
    bool is_there, answered;
    int paused;
    unsigned stage;
    char rule[64];
};

static void on_got(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct seen *seen = arg;
    struct lapse_series s = lapse_series_init();
    struct lapse_job *dup = job ? lapse_job_dup(job) : NULL;

    (void)l;
    seen->answered = true;
    seen->is_there = err == 0;
    if (dup && lapse_job_rule(dup, &s, NULL)) {
        seen->paused = lapse_job_paused(dup);
        seen->stage = lapse_job_stage(dup);
        snprintf(seen->rule, sizeof seen->rule, "%s:%s", s.calendar, s.rule);
    }
    lapse_job_free(dup);
}

static struct seen see(struct flow *f)
{
    struct seen seen = {.answered = false};

    cr_assert_eq(lapse_get(f->l, "q", "a", on_got, &seen), 0);
    flow_until(f, seen.answered);
    return seen;
}

static void look_now(struct flow *f)
{
    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(0), NULL), 0);
}

/* ---- moments ---- */
struct run_of {
    struct flow_handler w; /* first: flow_on_job() gets it */
    uint64_t stages;       /* bit N: that of moment N ran */
    bool twice;
};

static void on_moment(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct run_of *m = arg;
    uint64_t bit = UINT64_C(1) << lapse_job_stage(job) % 64;

    m->twice = m->twice || m->stages & bit;
    m->stages |= bit;
    flow_on_job(l, job, &m->w);
}

/* More than were put in at first: the listener puts in the others. */
FLOW_ALL_MODES(calendar, has_a_job_at_each_of_its_moments)
{
    struct flow *f = flow_start(mode);
    struct run_of m = {.w.f = f};
    struct lapse_series s = lapse_series_init();

    s.catch_up = LAPSE_CATCH_UP_ALL;
    s.times = 40;
    cr_assert_eq(lapse_calendar(f->l, "ticks", multiples, NULL), 0);
    cr_assert_eq(lapse_listen(f->l, "q", NULL, on_moment, &m), 0);
    cr_assert_eq(schedule(f, "ticks", "20", &s), 0);
    cr_assert_str_eq(see(f).rule, "ticks:20");
    flow_until(f, m.w.settled == 40);
    cr_assert(!m.twice);
    cr_assert_eq(m.stages, (UINT64_C(1) << 41) - 2);
    flow_until(f, !see(f).is_there);
    cr_assert_eq(m.w.runs[0].job.due_ms % TICK, 0);
    flow_end(f, "q");
}

Test(calendar, ends_when_it_has_no_moment_more)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse_series s = lapse_series_init();
    int64_t last_ms = ((int64_t)time(NULL) + 2) * 1000;

    s.catch_up = LAPSE_CATCH_UP_ALL;
    cr_assert_eq(lapse_calendar(f->l, "until", until, &last_ms), 0);
    flow_listen(f, "q", &w);
    cr_assert_eq(schedule(f, "until", "20", &s), 0);
    flow_until(f, !see(f).is_there && w.settled == w.n_runs);
    cr_assert_gt(w.n_runs, 16);
    flow_each_once(&w, w.n_runs);
    cr_assert_eq(w.runs[w.n_runs - 1].job.due_ms, last_ms);
    flow_end(f, "q");
}

/* Its due time is from when on. */
Test(calendar, has_its_first_moment_at_or_after_its_due_time)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec spec = flow_job_spec("q", "a", 0);
    struct lapse_series s = lapse_series_init();
    struct flow_job made;
    int64_t hours = (int64_t)time(NULL) / 3600 + 24;

    cr_assert_eq(lapse_calendar(f->l, "ticks", multiples, NULL), 0);
    s.calendar = "ticks";
    s.rule = "3600000";
    spec.series = &s;
    spec.due = lapse_at(hours * HOUR);
    cr_assert_eq(flow_spec(f, &spec, &made), 0);
    cr_assert_eq(made.state, LAPSE_SERIES);
    cr_assert_eq(made.due_ms, hours * HOUR);

    spec.due = lapse_at(hours * HOUR + 1);
    spec.on_conflict = LAPSE_REPLACE;
    cr_assert_eq(flow_spec(f, &spec, &made), 0);
    cr_assert_eq(made.due_ms, (hours + 1) * HOUR);
    flow_end(f, "q");
}

/* All of its first moments have passed when Redis gets them: as if our clock were behind. */
Test(calendar, that_comes_too_late_for_its_first_moments_gets_others)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_answer made = {.f = f};
    struct lapse_spec spec = flow_job_spec("q", "a", 0);
    struct lapse_series s = lapse_series_init();

    cr_assert_eq(lapse_calendar(f->l, "ticks", multiples, NULL), 0);
    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    s.calendar = "ticks";
    s.rule = "1";
    spec.series = &s;
    server_signal(f->server, SIGSTOP);
    cr_assert_eq(lapse_schedule(f->l, &spec, flow_answered, &made), 0);
    flow_spin(f, 50);
    server_signal(f->server, SIGCONT);
    cr_assert_eq(flow_wait(f, &made), 0);
    flow_until(f, w.settled > 0);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    flow_end(f, "q");
}

/* ---- nobody knows it ---- */
/* A listener that does not know the calendar has used up its moments; knows is the handle that
 * has scheduled it, and f->l the listener. */
static struct lapse *use_up(struct flow *f, struct flow_handler *w, struct lapse_series *policy)
{
    struct lapse *knows = f->l;

    flow_allow_log(f, "waits for its next moments");
    cr_assert_eq(lapse_calendar(knows, "ticks", multiples, NULL), 0);
    int err = schedule(f, "ticks", "20", policy);
    cr_assert_eq(err, 0, "%s", lapse_strerror(err));
    f->l = flow_open(f, NULL);
    flow_listen(f, "q", w);
    flow_until(f, flow_logged(f, "knows the calendar ticks") > 0);
    flow_until(f, w->settled > 0 && w->settled == w->n_runs);
    return knows;
}

static void goes_on(enum lapse_catch_up catch_up)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse_series s = lapse_series_init();

    s.catch_up = catch_up;
    struct lapse *knows = use_up(f, &w, &s);
    unsigned had = see(f).stage;
    cr_assert_leq(had, 16);
    cr_assert_eq(lapse_calendar(f->l, "ticks", multiples, NULL), 0);
    look_now(f);
    flow_until(f, see(f).stage >= had + 4);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    flow_close(f, knows, 0);
    flow_end(f, "q");
}

Test(calendar, without_moments_waits_for_who_knows_it_and_makes_up_for_each)
{
    goes_on(LAPSE_CATCH_UP_ALL);
}

Test(calendar, without_moments_waits_for_who_knows_it_and_goes_on_with_the_last_that_passed)
{
    goes_on(LAPSE_CATCH_UP_LATEST);
}

/* Its end passed, too: of the moments that it missed the last one before that is made a job of. */
Test(calendar, whose_end_passed_while_it_was_without_moments_has_its_last_one)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse_series s = lapse_series_init();

    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT); /* it is connected */
    s.until_ms = ((int64_t)time(NULL) + 3) * 1000 + 7;
    struct lapse *knows = use_up(f, &w, &s);
    flow_poll(f, (int64_t)time(NULL) * 1000 > s.until_ms + 1000);
    flow_close(f, f->l, 0);
    f->l = knows;
    redis_do(f->server, "ZADD lapse:{q}:due 1 a"); /* a minute is over */
    flow_listen(f, "q", &w);
    flow_until(f, !see(f).is_there && w.settled == w.n_runs);
    cr_assert_eq(w.runs[w.n_runs - 1].job.due_ms, s.until_ms - 7);
    flow_each_once(&w, w.n_runs);
    flow_end(f, "q");
}

/* ---- bad input ---- */
Test(calendar, that_is_not_known_or_has_no_moment_is_refused)
{
    static const char *const bad[][2] = {{"tocks", "20"},   {"ticks", ""},      {"ticks", NULL},
                                         {NULL, "20"},      {"ticks", "wrong"}, {"ticks", "never"},
                                         {"ticks", "20\n"}, {"still", "20"},    {"Ticks", "20"}};
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_series s = lapse_series_init();
    char rule[202] = "20";

    cr_assert_eq(lapse_calendar(f->l, "ticks", multiples, NULL), 0);
    cr_assert_eq(lapse_calendar(f->l, "still", stands_still, NULL), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_expect_eq(schedule(f, bad[i][0], bad[i][1], NULL), LAPSE_EINVAL, "%zu", i);
    }

    s.every_ms = 1000;
    cr_expect_eq(schedule(f, "ticks", "20", &s), LAPSE_EINVAL, "and a period");
    s.every_ms = 0;
    s.until_ms = (int64_t)time(NULL) * 1000;
    cr_expect_eq(schedule(f, "ticks", "3600000", &s), LAPSE_EINVAL, "until before the first");
    memset(rule + 2, ' ', 199);
    cr_expect_eq(schedule(f, "ticks", rule, NULL), LAPSE_EINVAL, "201 bytes");
    rule[200] = '\0';
    cr_expect_eq(schedule(f, "ticks", rule, NULL), 0, "200 bytes");
    flow_end(f, "q");
}

Test(calendar, is_known_by_one_name_once)
{
    static const char *const bad[] = {"", "1st", "Tick", "ti ck",
                                      "a23456789012345678901234567890123"};
    struct flow *f = flow_start(FLOW_FULL);
    char name[8];

    cr_expect_eq(lapse_calendar(NULL, "ticks", multiples, NULL), LAPSE_EINVAL);
    cr_expect_eq(lapse_calendar(f->l, NULL, multiples, NULL), LAPSE_EINVAL);
    cr_expect_eq(lapse_calendar(f->l, "ticks", NULL, NULL), LAPSE_EINVAL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_expect_eq(lapse_calendar(f->l, bad[i], multiples, NULL), LAPSE_EINVAL, "%s", bad[i]);
    }

    cr_expect_eq(lapse_calendar(f->l, "a2345678901234567890123456789-_2", multiples, NULL), 0);
    cr_expect_eq(lapse_calendar(f->l, "ticks", multiples, NULL), 0);
    cr_expect_eq(lapse_calendar(f->l, "ticks", stands_still, NULL), LAPSE_EEXIST);
    for (int i = 0; i < 14; i++) {
        snprintf(name, sizeof name, "t%d", i);
        cr_expect_eq(lapse_calendar(f->l, name, multiples, NULL), 0);
    }
    cr_expect_eq(lapse_calendar(f->l, "one_more", multiples, NULL), LAPSE_EFULL);
    flow_end(f, "q");
}

/* ---- pause ---- */
static int pause_series(struct flow *f, const char *id, bool is_paused)
{
    struct flow_answer a = {.f = f};
    int err = is_paused ? lapse_pause(f->l, "q", id, 0, flow_text_answered, &a)
                        : lapse_unpause(f->l, "q", id, flow_text_answered, &a);

    err = err ? err : flow_wait(f, &a);
    cr_assert_str_eq(a.text, a.err == LAPSE_EINVAL ? "it is no series" : "");
    return err;
}

Test(calendar, series_that_is_paused_makes_no_job_until_it_is_unpaused)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};

    cr_assert_eq(lapse_calendar(f->l, "ticks", multiples, NULL), 0);
    flow_listen(f, "q", &w);
    cr_assert_eq(schedule(f, "ticks", "31536000000", NULL), 0);
    cr_assert_eq(pause_series(f, "a", true), 0);
    cr_assert_eq(see(f).paused, 1);
    look_now(f);
    flow_poll(f, see(f).stage == 1);
    cr_assert_eq(w.n_runs, 0);
    cr_assert_eq(pause_series(f, "a", false), 0);
    cr_assert_eq(see(f).paused, 0);
    look_now(f);
    flow_until(f, w.settled == 1);
    flow_end(f, "q");
}

Test(calendar, pause_of_what_is_no_series_says_so)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_answer a = {.f = f};

    cr_assert_eq(flow_schedule(f, "q", "job", HOUR, NULL), 0);
    cr_expect_eq(pause_series(f, "job", true), LAPSE_EINVAL);
    cr_expect_eq(pause_series(f, "none", true), LAPSE_ENOENT);
    cr_expect_eq(pause_series(f, "none", false), LAPSE_ENOENT);
    cr_expect_eq(pause_series(f, "no id", true), LAPSE_EINVAL);
    cr_expect_eq(lapse_pause(f->l, "q", "job", 1000, flow_text_answered, &a), LAPSE_EINVAL);
    cr_expect_eq(lapse_pause(f->l, "q q", "job", 0, flow_text_answered, &a), LAPSE_EINVAL);
    cr_expect_eq(lapse_pause(NULL, "q", "job", 0, flow_text_answered, &a), LAPSE_EINVAL);
    flow_end(f, "q");
}
