/* SPDX-License-Identifier: MIT */
/* Several listeners of one queue: handles of one process, and processes. */
#include "listener.h"
#include "listening.h"
#include "process.h"
#include "wire.h"
#include <hiredis/hiredis.h>
#include <signal.h>

enum { LISTENERS = 3 };
static const char *const crowd_names[LISTENERS] = {"a-first", "b-second", "c-third"};

struct crowd {
    struct flow *f;
    struct lapse *l[LISTENERS];
    struct flow_handler w[LISTENERS];
    unsigned rank[LISTENERS];
    struct lapse *producer;
    size_t n_named; /* jobs that were asked for by their ids */
};

static void quiet(struct lapse_options *o)
{
    o->sweep_ms = 60000;
}

/* All are in the registry, and each has heard of the others. */
static void crowd_start(struct crowd *c, enum flow_mode mode)
{
    *c = (struct crowd){.f = flow_bare(mode, NULL)};

    for (int i = LISTENERS - 1; i >= 0; i--) {
        struct lapse_options opts = flow_options(c->f);
        quiet(&opts);
        opts.name = crowd_names[i];
        c->f->l = c->l[i] = flow_open(c->f, &opts);
        c->w[i].way = FLOW_DONE;
        flow_listen(c->f, "q", &c->w[i]);
    }

    c->producer = c->f->l = flow_open(c->f, NULL);
    flow_until_listeners(c->f, "q", LISTENERS);
    flow_spin(c->f, 1500); /* their first heartbeats */
    for (int i = 0; i < LISTENERS; i++) {
        c->rank[i] = flow_rank(c->f, "q", crowd_names[i]);
    }
}

static size_t crowd_runs(const struct crowd *c)
{
    size_t n = 0;
    for (int i = 0; i < LISTENERS; i++) {
        n += c->w[i].settled;
    }
    return n;
}

/* As src/lua/README.md has it. */
static uint64_t owner(const char *id)
{
    const uint64_t prime = 4294967291;
    const uint64_t factor = 1664525;
    uint64_t hash = 0;
    size_t len = strlen(id);

    for (size_t at = 0; at < len; at += 4) {
        uint64_t word = 0;
        for (size_t i = at; i < at + 4; i++) {
            word = word * 256 + (i < len ? (unsigned char)id[i] : 0);
        }
        hash = (hash * factor + word) % prime;
    }
    hash = hash * factor % prime * factor % prime;
    return hash * LISTENERS / prime;
}

Test(listeners, enter_the_registry_under_their_names_and_leave_it_at_the_end)
{
    struct crowd c;

    crowd_start(&c, FLOW_FULL);

    char *names = redis_str(c.f->server, "EVAL %s 0",
                            "local names = redis.call('ZRANGE', 'lapse:{q}:listeners', 0, -1) "
                            "table.sort(names) return table.concat(names, ' ')");
    char a[64];
    char b[64];
    char d[64];
    cr_assert_eq(
        sscanf(names, "a-first/%16[0-9a-f] b-second/%16[0-9a-f] c-third/%16[0-9a-f]", a, b, d), 3,
        "%s", names);
    cr_assert(strlen(a) == 16 && strlen(b) == 16 && strlen(d) == 16 && strcmp(a, b) != 0 &&
              strcmp(b, d) != 0);
    free(names);

    int64_t good_ms = redis_int(c.f->server, "EVAL %s 1 lapse:{}:alive",
                                "return redis.call('ZRANGE', KEYS[1], 1, 1, 'WITHSCORES')[2]") -
                      redis_now_ms(c.f->server);
    cr_assert(good_ms > 0 && good_ms <= 15000, "%lld", (long long)good_ms);
    flow_close(c.f, c.l[1], 5000);
    cr_assert_eq(redis_int(c.f->server, "ZCARD lapse:{q}:listeners"), 2);
    flow_close(c.f, c.l[0], 5000);
    flow_close(c.f, c.l[2], 5000);
    cr_assert_eq(redis_int(c.f->server, "EXISTS lapse:{q}:listeners"), 0);
    cr_assert_eq(redis_int(c.f->server, "EXISTS lapse:{}:alive"), 0);
    flow_end(c.f, "q");
}

/* A line of MONITOR; who claims named jobs has a place in crowd_names:
 *     ... "lapse:{q}:none" "0" "a-first/1f..." "30000" "-1" "ID" "ID"
 * The -1 is where how many of the oldest would be. */
static void see_claim(void *arg, char *line)
{
    static const char before[] = "\"lapse:{q}:none\" \"";
    struct crowd *c = arg;
    const char *at = strstr(line, before);
    char name[32];
    char id[64];
    int limit;
    int n;

    at = at ? at + strlen(before) : "";
    if (sscanf(at, "%*[^\"]\" \"%31[^/]/%*16[0-9a-f]\" \"%*d\" \"%d\"%n", name, &limit, &n) != 2 ||
        limit != -1) {
        return;
    }

    int who = 0;
    while (strcmp(crowd_names[who], name) != 0) {
        who++;
        cr_assert_lt(who, LISTENERS, "%s", line);
    }

    for (at += n; sscanf(at, " \"%63[^\"]\"%n", id, &n) == 1; at += n) {
        cr_assert_eq(owner(id), c->rank[who], "%s was asked for by %s", id, name);
        c->n_named++;
    }
}

/* How often a heartbeat was answered with all names, in a queue without jobs: it looks for lives
 * that are too long, for the first that ends, and then for all. */
static long long lists(struct flow *f)
{
    long long beats;
    long long n;

    do {
        beats = flow_heartbeats(f);
        n = flow_calls(f, "zrangebyscore") - 2 * beats;
    } while (flow_heartbeats(f) != beats);

    return n;
}

static long long lists_within(struct flow *f, long long beats)
{
    long long before = lists(f);
    long long start = flow_heartbeats(f);

    flow_poll(f, flow_heartbeats(f) >= start + beats);
    return lists(f) - before;
}

/* Each knows all others, and has been answered so. */
static void until_names_are_known(struct flow *f, long long n_listeners)
{
    enum { ROUNDS = 5 };
    int round = 0;

    while (lists_within(f, n_listeners) > 0) {
        cr_assert_lt(++round, ROUNDS, "the names are sent although they stay the same");
    }
}

/* Among 200 of them the names took 2 % of Redis when each heartbeat was answered with all. */
Test(listeners, are_told_the_names_of_all_only_when_they_have_changed, .timeout = 60)
{
    struct crowd c;

    crowd_start(&c, FLOW_FULL);
    until_names_are_known(c.f, LISTENERS);

    long long before = lists(c.f);
    struct flow_handler w = {.way = FLOW_DONE};
    c.f->l = flow_open(c.f, NULL);
    flow_listen(c.f, "q", &w);
    flow_poll(c.f, lists(c.f) >= before + LISTENERS + 1);
    flow_end(c.f, "q");
}

/* Each hears of each job, and only its owner asks for it. A claim of overdue jobs is of the oldest,
 * and names none; costs counts the claims. */
static void crowd_shares(struct crowd *c)
{
    enum { N = 300 };

    struct server *server = flow_server_of(c->f, "lapse:{q}:due");
    redisContext *monitor = redis_monitor(server);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(c->f, "q", NULL, i % 2 ? 100 : 0, NULL), 0);
    }

    flow_until(c->f, crowd_runs(c) == N);
    redis_monitor_read(monitor, server, see_claim, c);
    redisFree(monitor);
    cr_assert_gt(c->n_named, 0);

    uint64_t claimed = 0;
    for (unsigned i = 0; i < LISTENERS; i++) {
        struct lapse_stats s = flow_stats(c->l[i]);
        claimed += s.claimed;
        cr_assert_gt(s.claimed, 0);
        cr_assert_geq(s.events, 1);
        for (size_t k = 0; k < c->w[i].n_runs; k++) {
            const struct flow_job *job = &c->w[i].runs[k].job;
            cr_assert(job->via == LAPSE_VIA_ALARM || owner(job->id) == c->rank[i],
                      "%s via %d ran at %u", job->id, (int)job->via, c->rank[i]);
            cr_assert_geq(job->claimed_us, job->due_ms * 1000);
        }
    }

    cr_assert_eq(claimed, N);
}

Test(listeners, claim_a_job_only_when_it_is_theirs)
{
    struct crowd c;

    crowd_start(&c, FLOW_FULL);
    crowd_shares(&c);
    flow_end(c.f, "q");
}

Test(listeners, share_the_jobs_after_heartbeats_that_brought_no_names, .timeout = 60)
{
    struct crowd c;

    crowd_start(&c, FLOW_FULL);
    until_names_are_known(c.f, LISTENERS);
    crowd_shares(&c);
    flow_end(c.f, "q");
}

FLOW_ALL_MODES(listeners, share_what_is_due_and_nothing_runs_twice)
{
    enum { N = 400 };
    struct crowd c = {.f = flow_bare(mode, NULL)};

    for (int i = 0; i < LISTENERS; i++) {
        c.f->l = c.l[i] = flow_open(c.f, NULL);
        c.w[i].way = FLOW_DONE;
        flow_listen(c.f, "q", &c.w[i]);
    }

    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(c.f, "q", NULL, i % 200, NULL), 0);
    }

    flow_until(c.f, crowd_runs(&c) == N);

    size_t runs = 0;
    for (int i = 0; i < LISTENERS; i++) {
        runs += c.w[i].n_runs;
        cr_assert_eq(c.w[i].errors, 0);
        for (size_t k = 0; k < c.w[i].n_runs; k++) {
            const struct flow_job *job = &c.w[i].runs[k].job;
            size_t times = 0;
            for (int j = 0; j < LISTENERS; j++) {
                times += flow_runs_of(&c.w[j], job->id);
            }
            cr_assert_eq(times, 1, "%s ran %zu times", job->id, times);
            cr_assert_geq(job->claimed_us, job->due_ms * 1000);
        }
    }

    cr_assert_eq(runs, N);
    flow_end(c.f, "q");
}

/* It is in the registry and owns a third of the events, and does nothing. */
static void stopped(unsigned rank)
{
    enum { N = 120 };
    static const char *const names[] = {"a", "m", "z"};
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct runs *runs = runs_new(4 * N);
    struct listener *w[LISTENERS];
    unsigned victim = 0;

    for (unsigned i = 0; i < LISTENERS; i++) {
        struct lapse_options opts = flow_options(f);
        opts.log = NULL;
        quiet(&opts);
        opts.name = names[i];
        w[i] = listener_start(runs, "q", &opts, LISTENER_SETTLES);
    }

    f->l = flow_open(f, NULL);
    flow_until_listeners(f, "q", LISTENERS);
    flow_spin(f, 500);
    while (flow_rank(f, "q", names[victim]) != rank) {
        victim++;
    }

    listener_signal(w[victim], SIGSTOP);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, i % 3 * 50, NULL), 0);
    }

    flow_poll(f, runs->n == N);
    cr_assert_eq(runs_of(runs, w[victim]->pid), 0);
    listener_signal(w[victim], SIGCONT);
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    flow_poll(f, runs->n == N + 1 && flow_count(f, "q", "run") == 0);
    for (unsigned i = 0; i < LISTENERS; i++) {
        cr_assert_eq(listener_exit(w[i]), 0);
        listener_free(w[i]);
    }

    flow_runs_each_once(runs, N + 1);
    runs_free(runs);
    flow_end(f, "q");
}

Test(listeners, take_over_what_a_stopped_one_owns)
{
    stopped(1);
}

Test(listeners, take_over_from_a_stopped_one_that_had_the_alarm)
{
    stopped(0);
}

/* The first touches the triggers of due jobs, for all. */
Test(listeners, that_have_no_alarm_are_ranked_behind_those_that_have_one)
{
    enum { N = 6 };
    static const char *const names[N] = {"a", "b", "c", "d", "e", "f"};
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct flow_handler w = {.way = FLOW_DONE};

    for (int i = 0; i < N; i++) {
        struct lapse_options opts = flow_options(f);
        opts.name = names[i];
        opts.flags = i % 3 ? LAPSE_NO_ALARM : 0;
        f->l = flow_open(f, &opts);
        flow_listen(f, "q", &w);
    }

    flow_until_listeners(f, "q", N);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_rank(f, "q", names[i]) < 2, i % 3 == 0, "%s", names[i]);
    }

    flow_end(f, "q");
}

/* Of the names of a queue. */
static long long reads(struct flow *f)
{
    return flow_calls(f, "zrange");
}

/* Each of these questions once took Redis half a second with a thousand listeners, and anybody may
 * have them asked. */
Test(listeners, ask_once_in_200_ms_however_often_others_say_that_the_names_changed)
{
    enum { FORGED = 300, EVERY_MS = 2 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quiet);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    flow_spin(f, 600); /* its first heartbeats */
    flow_calm(f);

    long long before = reads(f);
    int64_t start_ms = test_now_ms();
    for (int i = 0; i < FORGED; i++) {
        redis_do(f->server, "PUBLISH lapse:{q}:notice:0 members");
        flow_spin(f, EVERY_MS);
    }

    flow_spin(f, 300);
    flow_poll(f, reads(f) > before);
    flow_calm(f);

    long long asked = reads(f) - before;
    int64_t took_ms = test_now_ms() - start_ms;
    cr_assert_leq(asked, took_ms / 200 + 1, "%lld times in %lld ms", asked, (long long)took_ms);
    flow_end(f, "q");
}

Test(listeners, run_again_what_a_killed_one_held_and_nothing_else)
{
    enum { HELD = 50, OTHERS = 50 };
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct runs *runs = runs_new(1000);
    struct lapse_options opts = flow_options(f);

    opts.log = NULL;
    opts.lease_ms = 60000;
    opts.sweep_ms = 200;

    struct listener *victim = listener_start(runs, "q", &opts, LISTENER_KEEPS);
    f->l = flow_open(f, NULL);
    for (int i = 0; i < HELD; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    flow_poll(f, runs->n == HELD);

    struct listener *other = listener_start(runs, "q", &opts, LISTENER_SETTLES);
    flow_until_listeners(f, "q", 2);
    listener_signal(victim, SIGKILL);
    int64_t until_ms = redis_now_ms(f->server) + 1000; /* when its leases end, not in a minute */
    redis_do(f->server, "EVAL %s 0 %lld",
             "for _, id in ipairs(redis.call('ZRANGE', 'lapse:{q}:run', 0, -1)) do "
             "redis.call('ZADD', 'lapse:{q}:run', ARGV[1], id) end",
             (long long)until_ms);
    for (int i = 0; i < OTHERS; i++) { /* half of them the dead one's, by the registry */
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    flow_poll(f, runs->n == 2 * HELD + OTHERS && flow_count(f, "q", "run") == 0);
    cr_assert_eq(listener_exit(other), 0);

    for (int i = 0; i < HELD; i++) {
        unsigned again = 0;
        for (int k = HELD; k < 2 * HELD + OTHERS; k++) {
            if (strcmp(runs->run[i].id, runs->run[k].id) == 0) {
                again++;
                cr_assert_eq(runs->run[k].try_no, 2);
                cr_assert_gt(runs->run[k].token, runs->run[i].token);
                cr_assert_geq(runs->run[k].claimed_us / 1000, until_ms);
            }
        }
        cr_assert_eq(again, 1, "%s ran again %u times", runs->run[i].id, again);
    }

    cr_assert_eq(runs->n, 2 * HELD + OTHERS);
    listener_free(victim);
    listener_free(other);
    runs_free(runs);
    flow_end(f, "q");
}

/* Without a fault each job runs once, even if listeners start and close meanwhile. */
Test(listeners, one_that_is_asked_to_end_while_it_starts_ends_by_itself)
{
    enum { TIMES = 20 };
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct runs *runs = runs_new(1);
    struct lapse_options opts = flow_options(f);

    opts.log = NULL;
    for (int i = 0; i < TIMES; i++) {
        struct listener *w = listener_start(runs, "q", &opts, LISTENER_SETTLES);
        cr_assert_eq(listener_exit(w), 0);
        listener_free(w);
    }

    runs_free(runs);
    flow_end(f, "q");
}

Test(listeners, that_come_and_go_in_mid_stream_run_each_job_once)
{
    enum { N = 1200, AT_ONCE = 3, EACH_TURN = 60 };
    struct flow *f = flow_start(FLOW_FULL);
    struct runs *runs = runs_new(2 * N);
    struct lapse_options opts = flow_options(f);
    struct listener *w[AT_ONCE] = {NULL};

    opts.log = NULL;
    for (int turn = 0; turn < N / EACH_TURN; turn++) {
        for (int i = 0; i < EACH_TURN; i++) {
            cr_assert_eq(flow_schedule(f, "q", NULL, 2 * i, NULL), 0);
        }

        struct listener **next = &w[turn % AT_ONCE];
        if (*next) {
            cr_assert_eq(listener_exit(*next), 0);
        }
        listener_free(*next);
        *next = listener_start(runs, "q", &opts, LISTENER_SETTLES);
        flow_spin(f, 40 + random() % 60);
    }

    flow_poll(f, runs->n >= N);

    for (int i = 0; i < AT_ONCE; i++) {
        if (w[i]) {
            cr_assert_eq(listener_exit(w[i]), 0);
        }
        listener_free(w[i]);
    }

    flow_runs_each_once(runs, N);
    runs_free(runs);
    flow_end(f, "q");
}

/* build/lapse is a listener like any other. */
Test(listeners, the_program_and_a_handle_share_a_queue)
{
    enum { N = 60 };
    unsigned n = 0;
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    const char *const argv[] = {"lapse", "-u", f->server->url, "listen", "q", NULL};
    struct proc *p = proc_start(argv);

    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 2);
    /* or until each had one: while one has no CPU, the other takes its jobs, too */
    for (; n < N || w.n_runs == 0 || !proc_until_out(p, "\n", 1); n++) {
        cr_assert_lt(n, 100 * N, "one of them runs nothing");
        cr_assert_eq(flow_schedule(f, "q", NULL, n % 2 * 20, NULL), 0);
    }

    flow_poll(f, redis_left(f->server, f->space, "q") == 0);
    proc_signal(p, SIGTERM);
    cr_assert_eq(proc_wait(p, PROC_WAIT_MS), 0);

    size_t lines = 0;
    for (const char *at = p->out; (at = strchr(at, '\n')); at++) {
        lines++;
    }

    flow_until(f, w.settled == w.n_runs);
    cr_assert_eq(lines + w.n_runs, n, "%zu and %zu", lines, w.n_runs);
    proc_free(p);
    flow_end(f, "q");
}

/* delayq, sidekiq#6379: a second server that starts, or one that stops, put the running jobs of all
 * others back. */
Test(listeners, that_start_close_or_reconnect_leave_the_jobs_of_others_alone)
{
    place_not_with_masters("the proxy is before one of the masters");

    enum { N = 30 };
    struct wire x;
    struct flow_handler other = {.way = FLOW_KEEP};

    wire_start(&x, FLOW_KEEP, NULL);

    struct flow *f = x.f;
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    flow_until(f, x.w.n_held == N);
    flow_listen(f, "q", &other);
    flow_until_listeners(f, "q", 2);
    wire_lose(&x);
    flow_until(f, flow_stats(x.l).reconnects == 1);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    flow_until(f, x.w.n_runs + other.n_runs == 2 * N);
    flow_settle(&other, FLOW_DONE);
    flow_close(f, f->l, 5000);
    f->l = flow_open(f, NULL);
    cr_assert_eq(flow_count(f, "q", "run"), (long long)x.w.n_held);
    cr_assert_eq(flow_count(f, "q", "due"), 0);
    flow_settle(&x.w, FLOW_DONE);
    cr_assert_eq(x.w.errors + other.errors, 0);
    flow_each_once(&x.w, x.w.n_runs);
    flow_each_once(&other, 2 * N - x.w.n_runs);
    wire_end(&x);
}
