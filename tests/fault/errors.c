/* SPDX-License-Identifier: MIT */
/* Each error that Redis knows, in answer to each step of what a handle does: the greeting, the
 * subscription, every script. While it lasts a request hears the class that lapse.h promises; when
 * it is over all jobs are done. */
#include "fault.h"
#include "scripted_server.h"
#include "ask.h"
#include "audit.h"

enum { HOUR = 3600000, ASKS = 12, TRIES = 10 /* a second */ };

static const struct error {
    const char *name, *answer;
    int heard; /* by a request whose script gets it */
} errors[] = {
    {"READONLY", "-READONLY You can't write against a read only replica.\r\n", LAPSE_EREFUSED},
    {"LOADING", "-LOADING Redis is loading the dataset in memory\r\n", LAPSE_EREFUSED},
    {"MASTERDOWN",
     "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
     LAPSE_EREFUSED},
    {"BUSY",
     "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n",
     LAPSE_EREFUSED},
    {"OOM", "-OOM command not allowed when used memory > 'maxmemory'.\r\n", LAPSE_EREFUSED},
    {"NOPERM", "-NOPERM this user has no permissions to run this command\r\n", LAPSE_EDENIED},
    {"NOAUTH", "-NOAUTH Authentication required.\r\n", LAPSE_EREFUSED},
    {"MISCONF",
     "-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist\r\n",
     LAPSE_EREFUSED},
    {"NOREPLICAS", "-NOREPLICAS Not enough good replicas to write.\r\n", LAPSE_EREFUSED},
    {"UNKILLABLE",
     "-UNKILLABLE Sorry the script already executed write commands against the dataset.\r\n",
     LAPSE_EREFUSED},
    {"NOSCRIPT", "-NOSCRIPT No matching script. Please use EVAL.\r\n", LAPSE_EREFUSED},
    {"garbage", "\x01?garbage \xff\xfe\r\n", LAPSE_ELOST},
};
enum { ERRORS = sizeof errors / sizeof *errors };

/* One error in answer to one step. */
struct cell {
    struct flow *f; /* f->l goes to Redis directly */
    struct scripted_server *between;
    const struct error *error;
    int step;
    const char *name; /* of the step */
    struct lapse *l;  /* asks and listens through the scripted server */
    struct flow_answer asks[ASKS];
    struct lapse_job *kept;
    bool stopped, begun_again; /* listening to queue z */
    unsigned settled;
    long hits; /* steps that were answered so */
};

static void on_settled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)job;
    cr_assert(err == 0 || err == LAPSE_EGONE || err == LAPSE_ELOST, "%s", lapse_strerror(err));
    ((struct cell *)arg)->settled++;
}

/* What is done to a job is the first letter of its id. */
static void on_job(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct cell *c = arg;
    char what = *lapse_job_id(job);

    if (what == 'z' && !c->stopped) {
        c->stopped = true;
        lapse_unlisten(l, "z"); /* the others, claimed with it, are released */
    }

    if (what == 'k' && !c->kept) {
        c->kept = job;
    } else if (what == 'r' && lapse_job_try(job) == 1) {
        lapse_retry(job, 10, "again", on_settled, c);
    } else if (what == 'f') {
        lapse_fail(job, "broken", on_settled, c);
    } else {
        lapse_done(job, on_settled, c);
    }
}

static const char *const scheduled[] = {"d", "d2", "r", "f", "k", "g"};
enum { SCHEDULED = sizeof scheduled / sizeof *scheduled };

static struct lapse_spec spec(int i)
{
    static const int64_t delay_ms[SCHEDULED] = {0, 30, 0, 0, 0, HOUR};
    struct lapse_spec s = flow_job_spec("q", scheduled[i], delay_ms[i]);

    s.backoff_ms = 10;
    return s;
}

static const char *script_of(int ask)
{
    static const char *const others[] = {"cancel", "reschedule", "get", "list", "depth", "get"};
    return ask < SCHEDULED ? "schedule" : others[ask - SCHEDULED];
}

static int ask(struct lapse *l, int i, struct flow_answer *a)
{
    struct lapse_spec s = spec(i < SCHEDULED ? i : 0);

    switch (i - SCHEDULED) {
    case 0: return lapse_cancel(l, "q", "c", 0, flow_answered, a);
    case 1: return lapse_reschedule(l, "q", "m", lapse_in(2 * HOUR), 0, flow_answered, a);
    case 2: return lapse_get(l, "q", "m", flow_answered, a);
    case 3: return lapse_list(l, "dead", LAPSE_DEAD, NULL, 5, flow_list_answered, a);
    case 4: return lapse_depth(l, "q", flow_depth_answered, a);
    case 5: return lapse_get(l, "q", "m", flow_answered, a);
    default: return lapse_schedule(l, &s, flow_answered, a);
    }
}

/* By now Redis does what it is asked. */
static void ask_again(struct flow *f, int i)
{
    struct flow_answer a = {.f = f};

    cr_assert_eq(ask(f->l, i, &a), 0);

    int err = flow_wait(f, &a);
    cr_assert(err == 0 || err == LAPSE_EEXIST || err == LAPSE_ENOENT || err == LAPSE_EBUSY,
              "%s again: %s", script_of(i), lapse_strerror(err));
}

static bool gone(struct flow *f, const char *id)
{
    return flow_get(f, "q", id, NULL) == LAPSE_ENOENT;
}

static bool all_done(struct flow *f)
{
    return gone(f, "d") && gone(f, "d2") && gone(f, "r") && gone(f, "k") && gone(f, "c") &&
           flow_count(f, "q", "run") == 0 && flow_count(f, "q", "dead") == 1 &&
           redis_left(f->server, f->space, "z") == 0;
}

static bool is_reclaim(const struct cell *c)
{
    return strcmp(c->name, "reclaim") == 0;
}

static void schedule_before(struct flow *f)
{
    char id[] = "z0";

    for (int i = 0; i < 6; i++) {
        id[1] = (char)('0' + i);
        cr_assert_eq(flow_schedule(f, "z", id, 0, NULL), 0);
    }

    cr_assert_eq(flow_schedule(f, "q", "c", HOUR, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "m", HOUR, NULL), 0);
}

/* Opens a handle that meets the error, asks all there is to ask, and listens. */
static void begin(struct cell *c)
{
    struct lapse_options opts = flow_options(c->f);
    char url[160];

    scripted_server_answer(c->between, c->step, c->error->answer);
    snprintf(url, sizeof url, "unix://u:p@%s?db=1", c->between->path);
    opts.url = url;
    opts.reply_ms = 5000;
    opts.lease_ms = 900; /* one that ends within the second makes its job a new request */
    opts.sweep_ms = 200;
    opts.arm_ahead_ms = 20;
    c->l = flow_open(c->f, &opts);

    for (int i = 0; i < ASKS; i++) {
        c->asks[i].f = c->f;
        cr_assert_eq(ask(c->l, i, &c->asks[i]), 0);
    }

    cr_assert_eq(lapse_listen(c->l, "q", NULL, on_job, c), 0);
    cr_assert_eq(lapse_listen(c->l, "z", NULL, on_job, c), 0);
}

/* Lets the error last for a while. Returns how often a second the step was tried. */
static double last(struct cell *c)
{
    int64_t from_ms = test_now_ms();
    int64_t for_ms = fault_n(80, 1000);
    bool is_noscript = strncmp(c->error->answer, "-NOSCRIPT", 9) == 0;

    while (test_now_ms() < from_ms + for_ms ||
           (scripted_server_answered(c->between) == 0 && test_now_ms() < from_ms + 400)) {
        flow_turn(c->f, test_now_ms() + 5);
    }

    if (is_reclaim(c)) { /* which it asks when it is connected again */
        redis_do(c->f->server, "CLIENT KILL USER u");
        flow_spin(c->f, 100);
    }

    double seconds = (double)(test_now_ms() - from_ms) / 1000;
    c->hits = scripted_server_answered(c->between);
    scripted_server_answer(c->between, SCRIPTED_NONE, "");

    long tries = c->hits;
    if (is_noscript && scripted_step_is_script(c->step)) {
        tries = (tries + 1) / 2; /* each by its hash, then by its text */
    }
    return (double)tries / (seconds > 1 ? seconds : 1);
}

static void check_answer(const struct cell *c, int i, int err)
{
    const struct error *e = c->error;
    bool cuts = e->heard == LAPSE_ELOST; /* the connection */
    bool fits;

    if (c->hits && strcmp(script_of(i), c->name) == 0) {
        fits = err == e->heard || err == 0 || (cuts && err == LAPSE_EDOWN);
    } else {
        fits = err == 0 || err == LAPSE_ENOENT ||
               ((cuts || is_reclaim(c)) && lapse_outcome_unknown(err));
    }
    cr_assert(fits, "%s to %s, %s heard: %s", e->name, c->name, script_of(i), lapse_strerror(err));
}

static void until_all_done(struct cell *c)
{
    int64_t end_ms = test_now_ms() + FLOW_WAIT_MS;

    while (!all_done(c->f)) {
        cr_assert_lt(test_now_ms(), end_ms, "%s to %s: not all was done when it was over",
                     c->error->name, c->name);
        if (c->stopped && !c->begun_again) {
            c->begun_again = true;
            cr_assert_eq(lapse_listen(c->l, "z", NULL, on_job, c), 0);
        }
        if (c->kept) {
            lapse_done(c->kept, on_settled, c);
            c->kept = NULL;
        }
        flow_turn(c->f, test_now_ms() + 5);
    }
}

/* Returns how often the step was answered so; *most: how often a second it was tried, at most. */
static long cell(struct flow *f, struct scripted_server *between, int step, const struct error *e,
                 double *most)
{
    struct cell c = {
        .f = f, .between = between, .error = e, .step = step, .name = scripted_steps[step]};

    schedule_before(f);
    begin(&c);
    double tries = last(&c);

    for (int i = 0; i < ASKS; i++) {
        int err = flow_wait(f, &c.asks[i]);
        check_answer(&c, i, err);
        if (err) {
            ask_again(f, i);
        }
    }

    until_all_done(&c);
    cr_assert_eq(flow_get(f, "q", "m", NULL), 0);
    cr_assert_eq(flow_get(f, "q", "g", NULL), 0);
    flow_close(f, c.l, 2000);
    cr_assert_eq(audit(f->server, "lapse", "q", "z", NULL), 0, "%s to %s", e->name, c.name);
    redis_do(f->server, "FLUSHDB");

    if (fault_full()) {
        fault_say("f17: %s to %s: %ld times, %.1f a second", e->name, c.name, c.hits, tries);
    }
    cr_assert_leq(tries, TRIES, "%s to %s: %.1f times a second", e->name, c.name, tries);
    *most = tries > *most ? tries : *most;

    return c.hits;
}

Test(f17, any_error_at_any_step_loses_nothing, .timeout = 900)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options opts = flow_options(f);
    char url[160];
    long cells = 0;
    long hits[SCRIPTED_STEPS] = {0};
    double most = 0;

    redis_do(f->server, "ACL SETUSER u on >p ~* &* +@all");
    redis_do(f->server, "SELECT 1");
    snprintf(url, sizeof url, "%s?db=1", f->server->url);
    opts.url = url;
    f->l = flow_open(f, &opts);
    flow_allow_log(f, "Redis");
    flow_allow_log(f, "the lease of job");
    flow_allow_log(f, "replies to their claims were lost");
    flow_allow_log(f, "expiry events");

    struct scripted_server *between = scripted_server_before(f->server);
    for (int step = 0; step < SCRIPTED_STEPS; step++) {
        for (int e = 0; e < ERRORS; e++) {
            if (!fault_full() && (step + e) % 3) {
                continue;
            }
            hits[step] += cell(f, between, step, &errors[e], &most);
            cells++;
        }
        cr_assert_gt(hits[step], 0, "%s never came", scripted_steps[step]);
    }

    fault_row("F17", "12 errors, garbage among them, in answer to each of 22 steps",
              "each call's documented class, 0 lost, <= 10 tries a second",
              "%ld of %d cells: 0 lost, 0 wrong classes; at most %.1f tries a second", cells,
              SCRIPTED_STEPS * ERRORS, most);
    scripted_server_stop(between);
    flow_end(f);
}
