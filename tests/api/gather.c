/* SPDX-License-Identifier: MIT */
/* Groups: bodies that are gathered under an id, until one job is made of them. */
#include "handler.h"
#include "listener.h"
#include "listening.h"
#include <inttypes.h>
#include <signal.h>

enum { HOUR = 3600000, QUIET = 30, PARTS = 2000, PART_BYTES = 16 };
#define TEN_YEARS INT64_C(315576000000)

static struct lapse_gather limits(int64_t quiet_ms, unsigned most, int64_t age_ms)
{
    struct lapse_gather g = lapse_gather_init();

    g.quiet_ms = quiet_ms;
    g.most = most;
    g.age_ms = age_ms;
    return g;
}

static struct lapse_spec part_spec(const char *id, const struct lapse_gather *g, const char *part)
{
    struct lapse_spec s = flow_job_spec("q", id, 0);

    s.on_conflict = LAPSE_GATHER;
    s.gather = g;
    s.body = part;
    s.body_len = strlen(part);
    return s;
}

static int gather(struct flow *f, const char *id, const struct lapse_gather *g, const char *part,
                  struct flow_job *out)
{
    struct lapse_spec s = part_spec(id, g, part);

    return flow_spec(f, &s, out);
}

/* Parts 0, 1, 2... of a group, in as many requests as that; waits for all answers. */
static void gather_many(struct flow *f, const char *id, const struct lapse_gather *g, unsigned n)
{
    struct flow_answer *a = flow_keep(f, NULL, 0, n * sizeof *a);

    for (unsigned i = 0; i < n; i++) {
        char part[PART_BYTES];
        snprintf(part, sizeof part, "%u", i);
        struct lapse_spec s = part_spec(id, g, part);
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[i]), 0);
    }
    for (unsigned i = 0; i < n; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), 0);
    }
}

/* ---- what runs ---- */
/* All parts as they came, of up to some jobs. */
struct parts {
    struct flow_handler w; /* first: flow_on_job() gets it */
    char series[64];
    unsigned of_job[64];
    unsigned n;
    char part[PARTS][PART_BYTES];
};

static void keep_parts(struct parts *p, const struct lapse_job *job)
{
    size_t len;
    const char *part;

    for (unsigned i = 0; (part = lapse_job_part(job, i, &len)); i++) {
        cr_assert_lt(p->n, PARTS);
        cr_assert_lt(len, PART_BYTES);
        snprintf(p->part[p->n++], PART_BYTES, "%.*s", (int)len, part);
    }
}

static void on_group(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct parts *p = arg;
    unsigned before = p->n;

    keep_parts(p, job);
    cr_assert_lt(p->w.n_runs, 64);
    p->of_job[p->w.n_runs] = lapse_job_parts(job);
    cr_assert_eq(p->n - before, lapse_job_parts(job));
    snprintf(p->series, sizeof p->series, "%s", lapse_job_series(job));
    flow_on_job(l, job, &p->w);
}

static struct parts *parts_new(struct flow *f)
{
    struct parts *p = flow_keep(f, NULL, 0, sizeof *p);

    p->w.f = f;
    return p;
}

static void listen(struct flow *f, struct parts *p)
{
    cr_assert_eq(lapse_listen(f->l, "q", NULL, on_group, p), 0);
}

/* They are the parts 0 to n - 1, each once, in order. */
static void are_in_order(const struct parts *p, unsigned n)
{
    cr_assert_eq(p->n, n);
    for (unsigned i = 0; i < n; i++) {
        cr_assert_eq((unsigned)atoi(p->part[i]), i);
    }
}

FLOW_ALL_MODES(gather, runs_once_with_all_parts_when_they_have_ceased)
{
    struct flow *f = flow_start(mode);
    struct parts *p = parts_new(f);
    struct lapse_gather g = limits(QUIET, 100, 0);
    struct flow_job made;

    listen(f, p);
    cr_assert_eq(gather(f, "a", &g, "0", &made), 0);
    cr_assert(made.created && made.state == LAPSE_WAITING);
    flow_until(f, p->w.settled == 1);
    are_in_order(p, 1);

    struct lapse_gather slow = limits(500, 100, 0);
    p->n = 0;
    gather_many(f, "a", &slow, 7);
    cr_assert_eq(gather(f, "a", &slow, "7", &made), 0);
    cr_assert_not(made.created);
    flow_until(f, p->w.settled == 2);
    are_in_order(p, 8);
    cr_assert_eq(p->of_job[1], 8);
    cr_assert_str_eq(p->series, "a");
    const struct flow_job *job = &p->w.runs[1].job;
    char id[64];
    snprintf(id, sizeof id, "a~%" PRIu64, job->token);
    cr_assert_str_eq(job->id, id);
    cr_assert_geq(job->due_ms, made.due_ms);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_end(f, "q");
}

FLOW_ALL_MODES(gather, runs_at_its_age_though_parts_keep_coming)
{
    struct flow *f = flow_start(mode);
    struct parts *p = parts_new(f);
    struct lapse_gather g = limits(HOUR, 100, 100);
    struct flow_job first;
    struct flow_job later;

    cr_assert_eq(gather(f, "a", &g, "0", &first), 0);
    cr_assert_eq(gather(f, "a", &g, "1", &later), 0);
    cr_assert_eq(later.due_ms, first.due_ms);
    listen(f, p);
    flow_until(f, p->w.settled == 1);
    are_in_order(p, 2);
    cr_assert_eq(p->w.runs[0].job.due_ms, first.due_ms);
    flow_end(f, "q");
}

/* Ten calls, all of which are about the same id. */
Test(gather, takes_a_thousand_parts_at_once)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct parts *p = parts_new(f);
    struct lapse_gather g = limits(HOUR, 1000, 0);

    listen(f, p);
    flow_calm(f);
    long long before = flow_scripts(f);
    gather_many(f, "a", &g, 1000);
    cr_assert_leq(flow_scripts(f) - before, 15);
    flow_until(f, p->w.settled == 1);
    are_in_order(p, 1000);
    cr_assert_eq(p->of_job[0], 1000);
    flow_end(f, "q");
}

Test(gather, of_more_parts_than_most_makes_as_many_jobs_as_it_takes)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct parts *p = parts_new(f);
    struct lapse_gather g = limits(HOUR, 7, 50);

    gather_many(f, "a", &g, 100);
    cr_assert_eq(flow_count(f, "q", "due"), 15);
    listen(f, p);
    flow_until(f, p->w.settled == 15);
    unsigned n = 0;
    for (unsigned i = 0; i < 15; i++) {
        cr_assert_leq(p->of_job[i], 7);
        n += p->of_job[i];
    }
    cr_assert_eq(n, 100);
    flow_end(f, "q");
}

/* ---- how large ---- */
struct large {
    unsigned n_jobs, n_parts;
    size_t bytes;
    unsigned settled;
};

static void on_large_settled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct large *large = arg;

    (void)l;
    (void)job;
    cr_assert_eq(err, 0);
    large->settled++;
}

static void on_large(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct large *large = arg;
    size_t len;

    (void)l;
    large->n_jobs++;
    for (unsigned i = 0; lapse_job_part(job, i, &len); i++) {
        large->n_parts++;
        large->bytes += len;
    }
    lapse_done(job, on_large_settled, large);
}

Test(gather, takes_parts_of_a_mebibyte_less_eight_each_of_which_is_a_job_then)
{
    enum { MOST = (1 << 20) - 8 };
    struct flow *f = flow_start(FLOW_FULL);
    struct large large = {.n_jobs = 0};
    struct lapse_gather g = limits(QUIET, 9, 0);
    struct lapse_spec s = part_spec("a", &g, "");

    s.body = flow_keep(f, "x", 1, MOST + 1);
    s.body_len = MOST + 1;
    cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL);
    s.body_len = MOST;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(lapse_listen(f->l, "q", NULL, on_large, &large), 0);
    flow_until(f, large.settled == 2);
    cr_assert(large.n_parts == 2 && large.bytes == 2 * (size_t)MOST);
    flow_end(f, "q");
}

/* ---- who is refused ---- */
Test(gather, of_an_id_that_is_a_job_or_has_other_limits_is_eexist)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_gather g = limits(HOUR, 9, 0);
    const struct lapse_gather others[] = {limits(HOUR + 1, 9, 0), limits(HOUR, 8, 0),
                                          limits(HOUR, 9, HOUR)};

    cr_assert_eq(gather(f, "a", &g, "x", NULL), 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        cr_assert_eq(gather(f, "a", &others[i], "y", NULL), LAPSE_EEXIST);
    }
    cr_assert_eq(flow_schedule(f, "q", "w", HOUR, NULL), 0);
    cr_assert_eq(gather(f, "w", &g, "y", NULL), LAPSE_EEXIST);
    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), LAPSE_EEXIST);
    for (int how = LAPSE_EARLIER; how <= LAPSE_DEBOUNCE; how++) {
        struct lapse_spec s = flow_job_spec("q", "a", HOUR);
        s.on_conflict = (enum lapse_conflict)how;
        cr_assert_eq(flow_spec(f, &s, NULL), LAPSE_EINVAL);
    }
    flow_end(f, "q");
}

Test(gather, that_breaks_a_rule_is_einval)
{
    struct flow *f = flow_start(FLOW_FULL);
    char *before = flow_dump(f);
    struct lapse_series series = lapse_series_init();
    const struct lapse_gather wrong[] = {
        limits(0, 9, 0),
        limits(5, 0, 0),
        limits(5, 1001, 0),
        limits(-1, 9, 5),
        limits(5, 9, -1),
        limits(TEN_YEARS + 1, 9, 0),
        limits(0, 9, TEN_YEARS + 1),
    };
    static char long_id[240];

    series.every_ms = HOUR;
    memset(long_id, 'x', 239);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct lapse_spec s = part_spec("a", &wrong[i], "x");
        cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL, "row %zu", i);
    }
#define BAD(change)                                                                                \
    do {                                                                                           \
        struct lapse_gather g = limits(5, 9, 0);                                                   \
        struct lapse_spec s = part_spec("a", &g, "x");                                             \
        change;                                                                                    \
        cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL, "not refused: " #change); \
    } while (0)
    BAD(s.gather = NULL);
    BAD(s.on_conflict = LAPSE_REPLACE);
    BAD(s.on_conflict = LAPSE_GATHER + 1);
    BAD(g.size = 0);
    BAD(s.id = NULL);
    BAD(s.id = long_id);
    BAD(s.unique = "k");
    BAD(s.series = &series);
    BAD(s.due = lapse_in(1));
    BAD(s.due = lapse_at(1));
    BAD(s.max_wait_ms = 1);
#undef BAD
    long_id[238] = '\0';
    struct lapse_gather g = limits(HOUR, 9, 0);
    cr_assert_eq(gather(f, long_id, &g, "x", NULL), 0);
    cr_assert_eq(flow_cancel(f, "q", long_id, NULL), 0);
    free(before);
    flow_end(f, "q");
}

/* ---- other calls ---- */
struct shown {
    unsigned calls, parts;
    int has_limits;
    bool has_part;
    struct lapse_gather g;
    enum lapse_state state;
};

static void on_got(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct shown *out = arg;
    struct lapse_job *dup = lapse_job_dup(job);

    (void)l;
    cr_assert(err == 0 && dup);
    out->calls++;
    out->g = lapse_gather_init();
    out->parts = lapse_job_parts(dup);
    out->has_part = lapse_job_part(dup, 0, NULL) != NULL;
    out->has_limits = lapse_job_gather(dup, &out->g);
    out->state = lapse_job_state(dup);
    lapse_job_free(dup);
}

static struct shown get(struct flow *f, const char *id)
{
    struct shown out = {.calls = 0};

    cr_assert_eq(lapse_get(f->l, "q", id, on_got, &out), 0);
    flow_until(f, out.calls == 1);
    return out;
}

Test(gather, shows_its_limits_and_how_many_parts_it_has_and_its_job_shows_these)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_gather g = limits(HOUR, 3, HOUR + 1);
    struct flow_claim c = {.f = f};

    gather_many(f, "a", &g, 2);
    struct shown group = get(f, "a");
    cr_assert(group.state == LAPSE_WAITING && group.parts == 2 && !group.has_part);
    cr_assert(group.has_limits && group.g.quiet_ms == HOUR && group.g.most == 3);
    cr_assert_eq(group.g.age_ms, HOUR + 1);

    cr_assert_eq(gather(f, "a", &g, "2", NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 9, 0, &c), 0);
    cr_assert_eq(c.n, 1);
    struct shown job = get(f, lapse_job_id(c.jobs[0]));
    cr_assert(job.state == LAPSE_RUNNING && job.parts == 3 && job.has_part && !job.has_limits);
    cr_assert_null(lapse_job_part(c.jobs[0], 3, NULL));
    flow_claim_done(f, &c);

    cr_assert_eq(flow_schedule(f, "q", "p", HOUR, NULL), 0);
    struct shown plain = get(f, "p");
    cr_assert(plain.parts == 0 && !plain.has_part && !plain.has_limits);
    flow_end(f, "q");
}

Test(gather, is_cancelled_with_its_parts_and_its_jobs_that_wait)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct parts *p = parts_new(f);
    struct lapse_gather g = limits(HOUR, 2, 0);

    p->w.way = FLOW_RETRY;
    p->w.delay_ms = HOUR;
    listen(f, p);
    gather_many(f, "a", &g, 2);
    flow_until(f, p->w.settled == 1);
    gather_many(f, "a", &g, 1);
    cr_assert_eq(flow_count(f, "q", "due"), 2);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    cr_assert_eq(flow_count(f, "q", "due"), 0);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_end(f, "q");
}

Test(gather, is_killed_and_rescheduled_with_its_parts)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct parts *p = parts_new(f);
    struct lapse_gather g = limits(HOUR, 9, 0);

    listen(f, p);
    gather_many(f, "a", &g, 3);
    cr_assert_eq(flow_kill(f, "q", "a", "no", NULL), 0);
    struct shown dead = get(f, "a");
    cr_assert(dead.state == LAPSE_DEAD && dead.parts == 3);
    cr_assert_eq(gather(f, "a", &g, "3", NULL), LAPSE_EEXIST);
    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(HOUR), NULL), 0);
    cr_assert_eq(gather(f, "a", &g, "3", NULL), 0);
    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(0), NULL), 0);
    flow_until(f, p->w.settled == 1);
    are_in_order(p, 4);
    flow_end(f, "q");
}

/* It is a job like any other. */
Test(gather, of_a_job_that_is_given_back_runs_the_same_parts_again)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_gather g = limits(HOUR, 2, 0);
    struct flow_claim c = {.f = f};
    struct flow_claim again = {.f = f};
    char id[256];

    gather_many(f, "a", &g, 2);
    cr_assert_eq(flow_claim(f, "q", 9, 0, &c), 0);
    cr_assert_eq(c.n, 1);
    snprintf(id, sizeof id, "%s", lapse_job_id(c.jobs[0]));
    lapse_retry(c.jobs[0], 0, "no", NULL, NULL);
    gather_many(f, "a", &g, 1);
    flow_poll(f, (again = (struct flow_claim){.f = f}, flow_claim(f, "q", 9, 0, &again) == 0) &&
                     again.n == 1);
    cr_assert_str_eq(lapse_job_id(again.jobs[0]), id);
    cr_assert_eq(lapse_job_try(again.jobs[0]), 2);
    cr_assert_eq(lapse_job_parts(again.jobs[0]), 2);
    flow_claim_done(f, &again);
    flow_end(f, "q");
}

/* ---- listeners that die ---- */
/* The parts that are in Redis, in groups and in jobs. */
static long long parts_left(struct flow *f)
{
    static const char script[] =
        "local n = 0 for _, key in ipairs(redis.call('KEYS', 'lapse:{q}:p:*')) do n = n + "
        "redis.call('LLEN', key) end return n + redis.call('ZCARD', 'lapse:{q}:due') + "
        "redis.call('ZCARD', 'lapse:{q}:run')";

    return redis_int(f->server, "EVAL %s 0", script);
}

Test(gather, of_listeners_that_are_killed_has_each_part_in_one_job)
{
    enum { GROUPS = 5, KILLS = 3 };
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct runs *r = runs_new(PARTS);
    struct lapse_options o = flow_options(f);
    struct lapse_gather g = limits(HOUR, 10, 0);
    const struct run *run;
    long n_jobs = 0;

    server_listens();
    o.lease_ms = 1000;
    o.sweep_ms = 1000;
    f->l = flow_open(f, NULL);
    for (int i = 0; i < GROUPS; i++) {
        char id[8];
        snprintf(id, sizeof id, "g%d", i);
        gather_many(f, id, &g, 100);
    }
    for (int i = 0; i < KILLS; i++) {
        struct listener *dies = listener_start(r, "q", &o, LISTENER_DIES);
        long n = r->n;
        flow_poll(f, r->n > n);
        listener_free(dies);
    }
    struct listener *x = listener_start(r, "q", &o, LISTENER_SETTLES);
    flow_poll(f, parts_left(f) == 0);
    cr_assert_eq(flow_count(f, "q", "dead"), 0);
    for (long at = 0; (run = runs_next(r, &at));) {
        n_jobs += runs_is_first_of_job(r, run);
    }
    cr_assert_eq(n_jobs, GROUPS * 10);
    cr_assert_gt(r->n, n_jobs, "a listener died with a job");
    listener_free(x);
    runs_free(r);
    flow_end(f, "q");
}
