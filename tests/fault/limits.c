/* SPDX-License-Identifier: MIT */
/* F52 and F53: the limits of a queue that four listeners share, of which one is killed. Judged is
 * what Redis was told, command by command: each claim writes when it was, by Redis's clock, and
 * until when its leases last. */
#include "ask.h"
#include "fault.h"
#include "listener.h"
#include "listening.h"
#include <hiredis/hiredis.h>
#include <signal.h>

enum { LISTENERS = 4, ID_BYTES = 24, WORDS_MAX = 420, RUNNING_MAX = 4096, END_MS = 120000 };

/* ---- what Redis was told ---- */
struct seen {
    struct {
        char id[ID_BYTES];
        int64_t until_ms;
    } run[RUNNING_MAX]; /* the members of run */
    long n_run;
    int64_t *starts; /* us, in their order */
    uint64_t *tokens;
    long n_starts, max;
    long most_live;
};

static void run_remove(struct seen *seen, const char *id)
{
    for (long i = 0; i < seen->n_run; i++) {
        if (strcmp(seen->run[i].id, id) == 0) {
            seen->run[i] = seen->run[--seen->n_run];
            return;
        }
    }
}

static void run_add(struct seen *seen, const char *id, int64_t until_ms)
{
    run_remove(seen, id);
    cr_assert_lt(seen->n_run, RUNNING_MAX);
    snprintf(seen->run[seen->n_run].id, ID_BYTES, "%s", id);
    seen->run[seen->n_run++].until_ms = until_ms;
}

static void run_count(struct seen *seen, int64_t now_ms)
{
    long n = 0;

    for (long i = 0; i < seen->n_run; i++) {
        n += seen->run[i].until_ms > now_ms;
    }
    if (n > seen->most_live) {
        seen->most_live = n;
    }
}

static bool is_new(const struct seen *seen, uint64_t token)
{
    for (long i = seen->n_starts; i-- > 0;) {
        if (seen->tokens[i] == token) {
            return false;
        }
    }
    return true;
}

/* An attempt was written: that of a claim, or that of the end of its run. */
static void attempt_see(struct seen *seen, const char *text)
{
    unsigned long long token;
    long long claimed_us;

    if (sscanf(text, "1 %llu %*s %*d %*d %lld ", &token, &claimed_us) != 2 ||
        !is_new(seen, token)) {
        return;
    }

    cr_assert_lt(seen->n_starts, seen->max);
    seen->tokens[seen->n_starts] = token;
    seen->starts[seen->n_starts++] = claimed_us;
    run_count(seen, claimed_us / 1000);
}

/* A line of MONITOR: 1700000000.000001 [0 lua] "ZADD" "lapse:{q}:run" "5" "id" */
static void line_see(void *arg, char *line)
{
    struct seen *seen = arg;
    char *words[WORDS_MAX];
    int n = 0;
    char *at = strstr(line, " lua] \"");

    while (at && n < WORDS_MAX && (at = strchr(at, '"'))) {
        words[n++] = ++at;
        at = strchr(at, '"');
        *at++ = '\0';
    }
    if (n < 3) {
        return;
    }

    bool of_run = strcmp(words[1], "lapse:{q}:run") == 0;
    bool of_attempts = strcmp(words[1], "lapse:{q}:attempts") == 0;
    for (int i = 2; of_run && strcmp(words[0], "ZADD") == 0 && i + 1 < n; i += 2) {
        run_add(seen, words[i + 1], atoll(words[i]));
    }
    for (int i = 2; of_run && strcmp(words[0], "ZREM") == 0 && i < n; i++) {
        run_remove(seen, words[i]);
    }
    for (int i = 2; of_attempts && strcmp(words[0], "HSET") == 0 && i + 1 < n; i += 2) {
        attempt_see(seen, words[i + 1]);
    }
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* How many starts the fullest window has. */
static long fullest_window(struct seen *seen, int64_t window_us)
{
    long most = 0;

    qsort(seen->starts, (size_t)seen->n_starts, sizeof *seen->starts, by_number);
    for (long first = 0, last = 0; last < seen->n_starts; last++) {
        while (seen->starts[last] - seen->starts[first] >= window_us) {
            first++;
        }
        most = last - first + 1 > most ? last - first + 1 : most;
    }
    return most;
}

/* ---- the scene ---- */
struct scene {
    struct flow *f;
    struct runs *runs;
    struct listener *w[LISTENERS];
    redisContext *monitor;
    struct seen seen;
    long jobs;
    int64_t spread_ms; /* due within so long */
    int64_t hold_ms;
    const char *settings;
};

static void scene_listen(struct scene *x)
{
    struct listener_plan plan = {.queues = "q", .recorder = runs_recorder(x->runs)};

    plan.lapse = flow_options(x->f);
    plan.lapse.log = NULL;
    plan.lapse.lease_ms = 5000;
    plan.lapse.sweep_ms = 500;
    plan.hold_least_ms = x->hold_ms / 2;
    plan.hold_most_ms = x->hold_ms;
    for (unsigned i = 0; i < LISTENERS; i++) {
        plan.seed = i + 1;
        plan.lapse.name = i == 0 ? "victim" : NULL;
        x->w[i] = listener_start_plan(&plan);
    }
    flow_until_listeners(x->f, "q", LISTENERS);
}

static void scene_schedule(struct scene *x)
{
    struct flow_answer *a = calloc((size_t)x->jobs, sizeof *a);

    cr_assert(a);
    for (long i = 0; i < x->jobs; i++) {
        char id[ID_BYTES];
        snprintf(id, sizeof id, "j%ld", i);
        struct lapse_spec s = flow_job_spec("q", id, random() % x->spread_ms);
        a[i].f = x->f;
        cr_assert_eq(lapse_schedule(x->f->l, &s, flow_answered, &a[i]), 0);
    }
    for (long i = 0; i < x->jobs; i++) {
        cr_assert_eq(flow_wait(x->f, &a[i]), 0);
    }
    free(a);
}

static long long scene_left(const struct scene *x)
{
    return redis_left(x->f->server, x->f->space, "q");
}

/* Does the one that is to be killed hold jobs? */
static bool scene_victim_holds(const struct scene *x)
{
    static const char script[] =
        "for _, id in ipairs(redis.call('ZRANGE', KEYS[1] .. 'run', 0, -1)) do if string.find("
        "redis.call('HGET', KEYS[1] .. 'attempts', id) or '', ' victim', 1, true) then return 1 "
        "end end return 0";

    return redis_int(x->f->server, "EVAL %s 1 lapse:{q}:", script);
}

/* Plays it. One listener is killed when half of the jobs are done. */
static void scene_play(struct scene *x)
{
    int64_t end_ms = test_now_ms() + END_MS;
    long max = 2 * x->jobs;

    x->f = flow_start(FLOW_FULL);
    x->runs = runs_new(max);
    x->seen.max = max;
    x->seen.starts = calloc((size_t)max, sizeof *x->seen.starts);
    x->seen.tokens = calloc((size_t)max, sizeof *x->seen.tokens);
    cr_assert(x->seen.starts && x->seen.tokens);

    cr_assert_eq(flow_configure(x->f, "q", x->settings, NULL), 0);
    x->monitor = redis_monitor(x->f->server);
    scene_listen(x);
    scene_schedule(x);
    for (bool killed = false; scene_left(x) > 0; flow_turn(x->f, test_now_ms() + FLOW_POLL_MS)) {
        cr_assert_lt(test_now_ms(), end_ms, "%lld are left", scene_left(x));
        if (!killed && scene_left(x) < x->jobs / 2 && scene_victim_holds(x)) {
            listener_signal(x->w[0], SIGKILL);
            killed = true;
        }
    }

    for (int i = 1; i < LISTENERS; i++) {
        cr_assert_eq(listener_exit(x->w[i]), 0, "a settle was refused");
    }
    for (int i = 0; i < LISTENERS; i++) {
        listener_free(x->w[i]);
    }
    redis_monitor_read(x->monitor, x->f->server, line_see, &x->seen);
    redisFree(x->monitor);
    cr_assert_geq(x->seen.n_starts, x->jobs);
    cr_assert_eq(flow_count(x->f, "q", "dead"), 0);
}

static void scene_end(struct scene *x)
{
    runs_free(x->runs);
    free(x->seen.starts);
    free(x->seen.tokens);
    flow_end(x->f, "q");
}

Test(f52, no_window_has_more_starts_than_the_rate_allows, .timeout = 600)
{
    enum { MOST = 5, WINDOW_MS = 100 };
    struct scene x = {.settings = "rate=5/100ms",
                      .jobs = fault_n(150, 2000),
                      .spread_ms = fault_n(1000, 20000),
                      .hold_ms = 30};

    scene_play(&x);
    long most = fullest_window(&x.seen, WINDOW_MS * INT64_C(1000));
    cr_assert_eq(most, MOST);
    fault_row("F52", "one of four listeners of a queue with `rate=5/100ms` is killed with SIGKILL",
              "no window of 100 ms has more than 5 starts, every window tried; none lost",
              "%ld jobs, %ld starts: 5 in the fullest window; none lost", x.jobs, x.seen.n_starts);
    scene_end(&x);
}

Test(f53, never_more_jobs_run_than_max_running, .timeout = 600)
{
    struct scene x = {.settings = "max_running=3",
                      .jobs = fault_n(150, 5000),
                      .spread_ms = fault_n(1000, 20000),
                      .hold_ms = 20};

    scene_play(&x);
    cr_assert_eq(x.seen.most_live, 3);
    fault_row("F53", "one of four listeners of a queue with `max_running=3` is killed with SIGKILL",
              "never a fourth live lease, at each of all claims; none lost",
              "%ld jobs, %ld starts: never a fourth; none lost", x.jobs, x.seen.n_starts);
    scene_end(&x);
}
