/* SPDX-License-Identifier: MIT */
/* Jobs that Redis forwards, while those who read them, those who forward them or Redis itself are
 * killed, while it is full, and while the connection is cut. */
#include "ask.h"
#include "fault.h"
#include "listening.h"
#include "process.h"
#include "proxy.h"
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
enum fate { UNANSWERED, STORED, NOT_STORED, MAYBE_STORED };

struct jobs {
    struct flow *f;
    long all, per_s, asked, answered;
    int64_t from_ms;
    bool may_fail;
    struct job_asked {
        struct jobs *jobs;
        enum fate fate;
    } * of;
};

static enum fate fate_of(int err)
{
    if (err) {
        return lapse_outcome_unknown(err) ? MAYBE_STORED : NOT_STORED;
    }
    return STORED;
}

static void on_scheduled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct job_asked *asked = arg;
    struct jobs *j = asked->jobs;

    (void)l;
    (void)job;
    cr_assert(err == 0 || j->may_fail, "schedule: %s", lapse_strerror(err));
    asked->fate = fate_of(err);
    j->answered++;
}

static void jobs_ask(struct jobs *j)
{
    long due = (long)((test_now_ms() - j->from_ms) * j->per_s / 1000);

    while (j->asked < j->all && j->asked < due && j->asked < j->answered + IN_FLIGHT) {
        char id[24];
        struct job_asked *asked = &j->of[j->asked];
        snprintf(id, sizeof id, "%ld", j->asked++);
        struct lapse_spec s = flow_job_spec("q", id, random() % MOST_DELAY_MS);
        asked->jobs = j;
        cr_assert_eq(lapse_schedule(j->f->l, &s, on_scheduled, asked), 0);
    }
    flow_turn(j->f, test_now_ms() + FLOW_POLL_MS);
}

/* Harm is done every second until all jobs are scheduled; it may say that it could not be done. */
static long jobs_schedule(struct jobs *j, bool (*harm)(void *arg), void *arg)
{
    int64_t next_ms = test_now_ms() + KILL_EVERY_MS;
    long times = 0;

    j->of = calloc((size_t)j->all, sizeof *j->of);
    cr_assert(j->of);
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
        /* before that it may not hear signals yet */
        cr_assert(proc_until_out(w->p[i], "\"forward\":", 10000), "%s", w->p[i]->err);
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
    free(j.of);

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
    free(j.of);

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

/* ---- Redis is killed, or full ---- */
static bool kill_redis(void *arg)
{
    struct flow *f = arg;

    server_kill9(f->server);
    flow_spin(f, 50 + random() % 200);
    server_restart(f->server);
    redis_rewrite_log(f->server);
    return true;
}

/* It is full until the next time. */
static bool fill_or_empty_redis(void *arg)
{
    static bool full;
    struct flow *f = arg;

    full = !full;
    redis_do(f->server, "CONFIG SET maxmemory %d", full);
    return true;
}

struct harmed {
    long jobs, times, stored, maybe;
};

/* What is in the stream: each job that was stored, once; one of which that is not known, once at
 * most; and no other. */
static void each_stored_is_there_once(struct jobs *j, struct harmed *got)
{
    redisReply *all = redis_cmd(j->f->server, "XRANGE " STREAM " - +");
    unsigned char *there = calloc((size_t)j->all, 1);

    cr_assert(all && all->type == REDIS_REPLY_ARRAY && there);
    for (size_t i = 0; i < all->elements; i++) {
        long id = strtol(all->element[i]->element[1]->element[1]->str, NULL, 10);
        cr_assert(id >= 0 && id < j->all && there[id] == 0, "job %ld is there twice", id);
        there[id] = 1;
    }

    for (long id = 0; id < j->all; id++) {
        enum fate fate = j->of[id].fate;
        cr_assert(fate != STORED || there[id], "job %ld was stored and is lost", id);
        cr_assert(fate != NOT_STORED || !there[id], "job %ld was refused and is there", id);
        got->stored += fate == STORED;
        got->maybe += fate == MAYBE_STORED;
    }
    free(there);
    freeReplyObject(all);
}

static struct harmed forwarded_amid(bool (*harm)(void *arg))
{
    static const char *const args[] = {"--appendfsync", "always", NULL};
    struct flow *f = flow_start_opts(FLOW_FULL, args, NULL);
    struct forwarders w = {.argv = {"lapse", "forward", "q", "--to-stream", "-o", "sweep_ms=200"}};
    struct jobs j = {
        .f = f, .all = fault_n(4000, 50000), .per_s = fault_n(1000, 2000), .may_fail = true};
    struct harmed got = {.jobs = j.all};

    flow_allow_log(f, ""); /* each of these is logged */
    forwarders_start(&w, f, FORWARDERS);
    got.times = jobs_schedule(&j, harm, f);
    redis_do(f->server, "CONFIG SET maxmemory 0");
    flow_poll(f, flow_count(f, "q", "due") == 0);
    each_stored_is_there_once(&j, &got);
    forwarders_stop(&w);
    flow_end(f, "q");
    free(j.of);

    return got;
}

Test(f44, while_redis_is_killed_each_job_that_was_stored_is_forwarded_once, .timeout = 600)
{
    struct harmed got = forwarded_amid(kill_redis);

    cr_assert_gt(got.times, 0);
    fault_row("F44", "kill -9 of Redis, appendfsync always, each second, while three forward",
              "50,000 jobs: each that was stored is in the stream once",
              "%ld kills amid %ld jobs: each of %ld is there once; of %ld it was not known",
              got.times, got.jobs, got.stored, got.maybe);
}

Test(f45, of_a_full_redis_each_job_that_was_stored_is_forwarded_once, .timeout = 600)
{
    struct harmed got = forwarded_amid(fill_or_empty_redis);

    cr_assert_gt(got.times, 0);
    cr_assert_lt(got.stored, got.jobs);
    fault_row("F45", "Redis is full every other second, while three forward",
              "50,000 jobs: each that was stored is in the stream once, and none that was refused",
              "%ld times amid %ld jobs: each of %ld is there once, none that was refused",
              (got.times + 1) / 2, got.jobs, got.stored);
}

/* ---- the connection is cut ---- */
static void quiet(struct lapse_options *o)
{
    o->reply_ms = o->sweep_ms = 60000; /* nothing on the wire that the test did not cause */
}

static void on_forwards(struct lapse *l, int err, const char *text, void *arg)
{
    (void)l;
    (void)text;
    cr_assert_eq(err, 0, "forward: %s", lapse_strerror(err));
    *(bool *)arg = true;
}

/* A handle that forwards behind a proxy; f->l goes to Redis directly. */
static struct lapse *forward_behind(struct flow *f, struct proxy *p)
{
    struct lapse_options o = flow_options(f);
    bool forwards = false;

    quiet(&o);
    o.url = p->url;
    struct lapse *l = flow_open(f, &o);
    cr_assert_eq(lapse_forward(l, "q", "stream", on_forwards, &forwards), 0);
    flow_until(f, forwards);
    flow_until_listeners(f, "q", 1);

    return l;
}

/* One that has just lost a connection waits longer with each further loss: each cut has a handle of
 * its own. Returns how many of them were cut. */
static long cuts(enum proxy_way way)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quiet);
    struct proxy *p = proxy_start(f->server);
    long most = fault_n(700, 2500);
    long n_cut = 0;
    long n = 0;

    flow_allow_log(f, "connect");
    for (long bytes = 0; bytes < most; bytes += fault_n(23, 1), n++) {
        struct lapse *l = forward_behind(f, p);
        proxy_cut_after(p, way, bytes);
        cr_assert_eq(flow_schedule(f, "q", NULL, n % 2 * 5, NULL), 0);
        flow_poll(f, redis_int(f->server, "XLEN " STREAM) == n + 1);
        n_cut += proxy_cut_left(p, way) == -1;
        proxy_cut_after(p, way, -1);
        cr_assert_eq(flow_count(f, "q", "due"), 0);
        flow_close(f, l, 5000);
        redis_do(f->server, "DEL lapse:{q}:listeners"); /* who was cut off could not leave */
    }

    cr_assert_gt(n_cut, 0);
    proxy_stop(p);
    flow_end(f, "q");
    return n_cut;
}

Test(f46, a_forwarder_cut_after_any_byte_moves_each_job_once, .timeout = 900)
{
    long n = cuts(PROXY_UP) + cuts(PROXY_DOWN);

    fault_row("F46", "cut after any byte: a forwarder's touch and claim",
              "each job is in the stream once, each k", "%ld cuts: each job is there once", n);
}
