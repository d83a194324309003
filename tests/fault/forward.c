/* SPDX-License-Identifier: MIT */
/* Jobs that Redis forwards, while those who read them or those who forward them are killed. */
#include "ask.h"
#include "fault.h"
#include "listening.h"
#include "process.h"
#include <hiredis/hiredis.h>
#include <signal.h>
#include <unistd.h>

#define STREAM "lapse:{q}:stream"
#define LIST "lapse:{q}:list"

enum {
    FORWARDERS = 3,
    KILL_EVERY_MS = 1000,
    MOST_DELAY_MS = 500,
    IN_FLIGHT = 2000,
    END_MS = 90000
};

/* ---- jobs at a rate; their ids are the numbers from 0 ---- */
struct jobs {
    struct flow *f;
    long all, per_s, asked, answered;
    int64_t from_ms;
};

static void on_scheduled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct jobs *j = arg;

    (void)l;
    (void)job;
    cr_assert_eq(err, 0, "schedule: %s", lapse_strerror(err));
    j->answered++;
}

static void jobs_ask(struct jobs *j)
{
    long due = (long)((test_now_ms() - j->from_ms) * j->per_s / 1000);

    while (j->asked < j->all && j->asked < due && j->asked < j->answered + IN_FLIGHT) {
        char id[24];
        snprintf(id, sizeof id, "%ld", j->asked++);
        struct lapse_spec s = flow_job_spec("q", id, random() % MOST_DELAY_MS);
        cr_assert_eq(lapse_schedule(j->f->l, &s, on_scheduled, j), 0);
    }
    flow_turn(j->f, test_now_ms() + FLOW_POLL_MS);
}

/* Harm is done every second until all jobs are scheduled; it may say that it could not be done. */
static long jobs_schedule(struct jobs *j, bool (*harm)(void *arg), void *arg)
{
    int64_t next_ms = test_now_ms() + KILL_EVERY_MS;
    long times = 0;

    j->from_ms = test_now_ms();
    while (j->answered < j->all) {
        jobs_ask(j);
        if (harm && test_now_ms() >= next_ms && harm(arg)) {
            next_ms = test_now_ms() + KILL_EVERY_MS;
            times++;
        }
    }

    return times;
}

/* Until nothing waits in the queue, and so many entries are in the target. */
static void until_moved(struct flow *f, const char *length, long long n)
{
    int64_t end_ms = test_now_ms() + END_MS;

    while (flow_count(f, "q", "due") > 0 || redis_int(f->server, length) != n) {
        cr_assert_lt(test_now_ms(), end_ms, "%lld wait, %s is %lld", flow_count(f, "q", "due"),
                     length, redis_int(f->server, length));
        flow_turn(f, test_now_ms() + FLOW_POLL_MS);
    }
}

/* ---- forwarders ---- */
struct forwarders {
    const char *argv[12]; /* NULL ends them */
    struct proc *p[FORWARDERS];
};

static void forwarders_start(struct forwarders *w, struct flow *f, int n)
{
    setenv("LAPSE_URL", f->server->url, 1);
    for (int i = 0; i < n; i++) {
        w->p[i] = proc_start(w->argv);
    }
    flow_until_listeners(f, "q", n);
}

static void forwarders_stop(struct forwarders *w)
{
    for (int i = 0; i < FORWARDERS && w->p[i]; i++) {
        proc_signal(w->p[i], SIGTERM);
        cr_assert_eq(proc_wait(w->p[i], 10000), 0, "%d: %s", w->p[i]->status, w->p[i]->err);
        proc_free(w->p[i]);
    }
}

static void kill_and_wait(struct proc *p)
{
    proc_signal(p, SIGKILL);
    cr_assert_eq(proc_wait(p, 10000), 128 + SIGKILL, "it had ended with %d: %s", p->status, p->err);
    proc_free(p);
}

static bool kill_a_forwarder(void *arg)
{
    struct forwarders *w = arg;
    long k = random() % FORWARDERS;

    kill_and_wait(w->p[k]);
    w->p[k] = proc_start(w->argv);
    return true;
}

/* ---- consumers: two groups, three in each ---- */
enum { GROUPS = 2, CREW = 3, MOST_LIVES = 200, IDLE_MS = 5000 };

static const char *const group_names[GROUPS] = {"one", "two"};

struct consumers {
    struct flow *f;
    struct {
        struct proc *p;
        int life; /* its name, which no other has */
    } of[GROUPS][CREW];
    int n_lives;
    bool killed[MOST_LIVES];
    long left; /* entries that those who were killed had not acknowledged */
    char dir[64];
};

static const char *seen_path(struct consumers *c, int group, char out[128])
{
    snprintf(out, 128, "%s/%s", c->dir, group_names[group]);
    return out;
}

static void consumer_start(struct consumers *c, int group, int nth)
{
    char script[4200];
    char file[128];
    char name[16];
    char idle[16];

    cr_assert_lt(c->n_lives, MOST_LIVES);
    c->of[group][nth].life = c->n_lives++;
    snprintf(script, sizeof script, "%s/tests/fault/consumer.js", test_root());
    snprintf(name, sizeof name, "%d", c->of[group][nth].life);
    snprintf(idle, sizeof idle, "%d", IDLE_MS);
    c->of[group][nth].p = proc_start((const char *const[]){"node", script, c->f->server->socket,
                                                           STREAM, group_names[group], name, idle,
                                                           seen_path(c, group, file), NULL});
}

/* The groups are there. */
static void consumers_start(struct consumers *c)
{
    char modules[4200];

    snprintf(modules, sizeof modules, "%s/node/node_modules", test_build());
    setenv("NODE_PATH", modules, 1);
    test_dir(c->dir, sizeof c->dir);
    for (int i = 0; i < GROUPS * CREW; i++) {
        consumer_start(c, i / CREW, i % CREW);
    }
    for (int group = 0; group < GROUPS; group++) {
        flow_poll(c->f, redis_int(c->f->server, "EVAL %s 1 " STREAM " %s",
                                  "return #redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])",
                                  group_names[group]) == CREW);
    }
}

/* Entries that it has been given and has not acknowledged. */
static long long pending(struct consumers *c, int group, int life)
{
    return redis_int(c->f->server, "EVAL %s 1 " STREAM " %s %d",
                     "return #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1000, ARGV[2])",
                     group_names[group], life);
}

/* One that holds entries: it is stopped before they are counted, or it would acknowledge them. */
static bool kill_a_consumer(void *arg)
{
    struct consumers *c = arg;
    long first = random();

    for (long i = 0; i < GROUPS * CREW; i++) {
        int k = (int)((first + i) % (GROUPS * CREW));
        int group = k / CREW;
        int life = c->of[group][k % CREW].life;
        struct proc *p = c->of[group][k % CREW].p;

        proc_signal(p, SIGSTOP);
        if (pending(c, group, life) == 0) {
            proc_signal(p, SIGCONT);
            continue;
        }

        kill_and_wait(p);
        c->killed[life] = true;
        c->left += pending(c, group, life);
        consumer_start(c, group, k % CREW);
        return true;
    }

    return false;
}

/* A line of the file is a job that a consumer saw, in this order. Returns how often one was seen
 * again, which is right only after a consumer that was killed. */
static long judge(struct consumers *c, int group, long all)
{
    char path[128];
    char *text = test_read_file(seen_path(c, group, path), NULL);
    int *last = malloc((size_t)all * sizeof *last);
    long seen = 0;
    long again = 0;

    cr_assert(last);
    memset(last, 0xff, (size_t)all * sizeof *last);
    for (char *at = text; *at; at++) {
        int life = (int)strtol(at, &at, 10);
        long job = strtol(at, &at, 10);
        cr_assert(*at == '\n' && life >= 0 && life < c->n_lives && job >= 0 && job < all,
                  "group %s: consumer %d, job %ld", group_names[group], life, job);
        cr_assert(last[job] < 0 || c->killed[last[job]],
                  "group %s: consumer %d saw job %ld, though %d had seen it and was not killed",
                  group_names[group], life, job, last[job]);
        seen += last[job] < 0;
        again += last[job] >= 0;
        last[job] = life;
    }

    cr_assert_eq(seen, all, "group %s has seen %ld of %ld jobs", group_names[group], seen, all);
    free(last);
    free(text);
    return again;
}

static void consumers_stop(struct consumers *c)
{
    for (int i = 0; i < GROUPS * CREW; i++) {
        kill_and_wait(c->of[i / CREW][i % CREW].p);
    }
    test_dir_remove(c->dir);
}

struct consumed {
    long jobs, kills, left, again;
};

static struct consumed consume(bool kills)
{
    struct flow *f;
    struct forwarders w = {.argv = {"lapse", "forward", "q", "--to-stream", "--group", "one",
                                    "--group", "two", "-o", "sweep_ms=200"}};
    char ioredis[4200];

    snprintf(ioredis, sizeof ioredis, "%s/node/node_modules/ioredis", test_build());
    if (access(ioredis, F_OK)) {
        cr_skip_test("ioredis is not installed: make node");
    }

    f = flow_start(FLOW_FULL);
    struct jobs j = {.f = f, .all = fault_n(4000, 50000), .per_s = fault_n(1000, 2000)};
    struct consumers c = {.f = f};
    struct consumed got = {.jobs = j.all};

    forwarders_start(&w, f, 1);
    consumers_start(&c);
    got.kills = jobs_schedule(&j, kills ? kill_a_consumer : NULL, &c);
    until_moved(f, "XLEN " STREAM, 0);

    for (int group = 0; group < GROUPS; group++) {
        got.again += judge(&c, group, j.all);
    }
    got.left = c.left;
    consumers_stop(&c);
    forwarders_stop(&w);
    flow_end(f, "q");

    return got;
}

Test(f42, of_killed_consumers_each_group_sees_each_job_and_the_stream_is_empty_at_the_end,
     .timeout = 300)
{
    struct consumed got = consume(true);

    cr_assert_gt(got.left, 0);
    fault_row("F42", "kill -9 of one of six consumers in two groups of a stream, each second",
              "50,000 jobs: each group sees each; again only what a killed one had; the stream is "
              "empty at the end",
              "%ld kills amid %ld jobs: 0 lost; %ld entries left behind, %ld seen again; empty",
              got.kills, got.jobs, got.left, got.again);
}

Test(f42, without_a_kill_each_group_sees_each_job_once, .timeout = 300)
{
    struct consumed got = consume(false);
    cr_assert_eq(got.again, 0);
}

/* ---- three forwarders ---- */
static long moved_by_the_killed(const char *option, const char *length, const char *count_ids)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct forwarders w = {.argv = {"lapse", "forward", "q", option, "-o", "sweep_ms=200"}};
    struct jobs j = {.f = f, .all = fault_n(4000, 50000), .per_s = fault_n(1000, 2000)};

    forwarders_start(&w, f, FORWARDERS);
    long kills = jobs_schedule(&j, kill_a_forwarder, &w);
    until_moved(f, length, j.all);
    cr_assert_eq(redis_int(f->server, "EVAL %s 2 " STREAM " " LIST, count_ids), j.all);
    forwarders_stop(&w);
    flow_end(f, "q");

    return kills;
}

Test(f43, of_killed_forwarders_each_job_is_in_the_target_once, .timeout = 600)
{
    static const char in_stream[] =
        "local seen, n = {}, 0 for _, e in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do "
        "if not seen[e[2][2]] then n = n + 1 end seen[e[2][2]] = true end return n";
    static const char in_list[] =
        "local seen, n = {}, 0 for _, e in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do "
        "local id = string.match(e, '^%S+') "
        "if not seen[id] then n = n + 1 end seen[id] = true end return n";
    long kills = moved_by_the_killed("--to-stream", "XLEN " STREAM, in_stream);

    kills += moved_by_the_killed("--to-list", "LLEN " LIST, in_list);
    cr_assert_gt(kills, 0);
    fault_row("F43", "kill -9 of one of three forwarders, each second",
              "50,000 jobs to a stream, and to a list: each is there once",
              "%ld kills amid 2 x %ld jobs: each is there once", kills, fault_n(4000, 50000));
}
