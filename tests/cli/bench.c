/* SPDX-License-Identifier: MIT */
/* lapse bench: its counts are exact, bad input never reaches Redis, and whatever its end, Redis is
 * as it was. */
#include "tool.h"
#include "audit.h"
#include "cluster.h"
#include "sentinels.h"
#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>

static char *text_member(const char *json, const char *name, char out[64])
{
    char key[40];

    snprintf(key, sizeof key, "\"%s\":\"", name);
    const char *at = strstr(json, key);
    cr_assert(at && sscanf(at + strlen(key), "%63[^\"]", out) == 1, "no text '%s' in %s", name,
              json);
    return out;
}

/* One flat object on one line, its names all different. */
static void is_one_object(const char *json)
{
    char seen[300][48];
    int n = 0;
    const char *at = json;

    cr_assert_eq(*at++, '{', "%s", json);

    for (;; at++) {
        size_t len;
        cr_assert_eq(*at, '"', "%s", at);
        len = strcspn(++at, "\"");
        cr_assert(n < 300 && len < 48);
        snprintf(seen[n], sizeof *seen, "%.*s", (int)len, at);
        for (int i = 0; i < n; i++) {
            cr_assert_str_neq(seen[i], seen[n], "twice");
        }
        n++;
        at += len + 1;
        cr_assert_eq(*at++, ':', "%s", at);
        len = *at == '"' ? 2 + strcspn(at + 1, "\"") : strspn(at, "-0123456789.");
        cr_assert(len > 0 && at[len], "%s", at);
        at += len;
        if (*at != ',') {
            break;
        }
    }

    cr_assert_str_eq(at, "}\n");
}

/* Each job once: asked, stored and settled are n. */
static void all_ran_once(const char *json, const char *part, long long n)
{
    static const struct {
        const char *name;
        int is_n;
    } counts[] = {{"asked", 1},         {"stored", 1},  {"settled", 1},   {"stats_done", 1},
                  {"stats_claimed", 1}, {"failed", 0},  {"lost", 0},      {"twice", 0},
                  {"early", 0},         {"foreign", 0}, {"stats_gone", 0}};

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        char name[40];
        snprintf(name, sizeof name, "%s_%s", part, counts[i].name);
        cr_assert_eq(member(json, name), counts[i].is_n ? n : 0, "%s in %s", name, json);
    }
}

/* Of a number with three decimals. */
static long long thousandths(const char *json, const char *name)
{
    char key[48];
    long long whole;
    long long part;

    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(json, key);
    cr_assert(at && sscanf(at + strlen(key), "%lld.%3lld", &whole, &part) == 2, "no '%s' in %s",
              name, json);
    return whole * 1000 + part;
}

/* What has expired goes when Redis comes by. */
static void until_keys(struct server *s, long long n)
{
    int64_t end = test_now_ms() + 10000;
    while (test_now_ms() < end && redis_int(s, "DBSIZE") != n) {
        poll(NULL, 0, 5);
    }
    cr_assert_eq(redis_int(s, "DBSIZE"), n, "%lld keys are left", redis_int(s, "DBSIZE"));
}

/* No key of the space, and what was there before is untouched. */
static void left_nothing(struct server *s)
{
    until_keys(s, 1);
    char *mine = redis_str(s, "GET mine");
    cr_assert_str_eq(mine, "untouched");
    free(mine);
}

static struct server *redis_with_a_key(void)
{
    struct server *s = tool_redis();
    redis_do(s, "SET mine untouched");
    return s;
}

Test(bench, counts_each_job_once_and_leaves_redis_as_it_was, .timeout = 60)
{
    struct server *s = redis_with_a_key();
    char redis[64];
    struct proc *p = lapse_start("bench", "--rate", "200/s", "--duration", "1s", "--delay", "100ms",
                                 "--waiting", "1000", "--listeners", "2", "--burst", "500",
                                 "--schedule", "200", "--idle", "100ms", "--json");

    proc_wait(p, PROC_WAIT_MS);
    cr_assert_eq(p->status, 0, "%s", p->err);
    is_one_object(p->out);
    all_ran_once(p->out, "rate", 200);
    all_ran_once(p->out, "burst", 500);
    cr_assert_eq(member(p->out, "waiting_asked"), 1000);
    cr_assert_eq(member(p->out, "waiting_stored"), 1000);
    cr_assert_eq(member(p->out, "schedule_stored"), 200);
    cr_assert_eq(member(p->out, "single_stored"), 20);
    cr_assert_eq(member(p->out, "listeners"), 2);
    cr_assert_eq(member(p->out, "rate_asked_per_s"), 200);
    cr_assert(member(p->out, "rate_stored_per_s") > 0 && member(p->out, "burst_settled_per_s") > 0);
    cr_assert(member(p->out, "waiting_bytes_per_job") > 100);

    /* a hundred jobs a script, and one by one; at a rate a busy machine makes that any number */
    cr_assert_eq(thousandths(p->out, "schedule_scripts_per_job"), 10, "%s", p->out);
    cr_assert_eq(thousandths(p->out, "single_scripts_per_job"), 1000, "%s", p->out);
    cr_assert(thousandths(p->out, "rate_scripts_per_job") > 0, "%s", p->out);
    cr_assert(thousandths(p->out, "rate_commands_per_job") >
              thousandths(p->out, "rate_scripts_per_job"));
    cr_assert(member(p->out, "rate_listener_rss_kib") > 0);
    cr_assert(strstr(text_member(p->out, "redis", redis), "."), "%s", redis);

    /* percentiles grow, and a handler starts after its claim, as exactly as the two clocks could be
     * compared */
    long long p50_us = thousandths(p->out, "rate_claimed_late_p50_ms");
    cr_assert(p50_us <= thousandths(p->out, "rate_claimed_late_p99_ms"));
    cr_assert(thousandths(p->out, "rate_claimed_late_p99_ms") <=
              thousandths(p->out, "rate_claimed_late_max_ms"));

    long long error_us = thousandths(p->out, "rate_started_error_ms");
    error_us += p50_us / 512; /* a bucket of each */
    cr_assert(p50_us - error_us <= thousandths(p->out, "rate_started_late_p50_ms"), "%s", p->out);
    proc_free(p);
    left_nothing(s);
    server_stop(s);
}

Test(bench, with_delay_0_runs_what_is_due_at_once)
{
    struct server *s = redis_with_a_key();
    struct proc *p = lapse_start("bench", "named", "--rate", "500", "--duration", "300ms",
                                 "--delay", "0s", "--listeners", "3", "--body", "0", "--json");

    proc_wait(p, PROC_WAIT_MS);
    cr_assert_eq(p->status, 0, "%s", p->err);
    all_ran_once(p->out, "rate", 150);
    cr_assert(has(p, "\"queue\":\"named\"") && !has(p, "burst_") && !has(p, "waiting_") &&
                  !has(p, "idle_"),
              "%s", p->out);
    proc_free(p);
    left_nothing(s);
    server_stop(s);
}

Test(bench, cancels_jobs_that_run_and_says_how_soon_each_was_heard, .timeout = 60)
{
    struct server *s = redis_with_a_key();
    struct proc *p =
        lapse_start("bench", "--cancel", "30", "--listeners", "2", "--rtt", "10ms", "--json");

    proc_wait(p, PROC_WAIT_MS);
    cr_assert_eq(p->status, 0, "%s", p->err);
    is_one_object(p->out);
    cr_assert_eq(member(p->out, "cancel_asked"), 30);
    cr_assert_eq(member(p->out, "cancel_stored"), 30);
    cr_assert_eq(member(p->out, "cancel_settled"), 30);
    cr_assert_eq(member(p->out, "cancel_heard"), 30);
    cr_assert_eq(member(p->out, "cancel_lost"), 0);
    cr_assert_eq(member(p->out, "cancel_twice"), 0);
    cr_assert(!has(p, "rate_"), "%s", p->out);

    /* the notice, a renewal and its answer have half of the way each */
    long long p50_us = thousandths(p->out, "cancel_heard_p50_ms");
    cr_assert_geq(p50_us, 15000, "%s", p->out);
    cr_assert_leq(p50_us, thousandths(p->out, "cancel_heard_p99_ms"));
    proc_free(p);
    left_nothing(s);
    server_stop(s);
}

Test(bench, tells_people_the_same)
{
    struct server *s = redis_with_a_key();
    struct proc *p = lapse("bench", "--burst", "300", "--listeners", "2", "-o", "flags=no_events");

    cr_assert(has(p, "300 due in one millisecond") &&
                  has(p, "300 asked, 300 stored, 300 settled; 0 lost, 0 twice, 0 early"),
              "%s", p->out);
    expect(p, 0, "claimed late p50 ", "");

    p = lapse("bench", "--cancel", "20");
    cr_assert(has(p, "20 jobs were asked to stop while they ran") &&
                  has(p, "20 asked, 20 stored, 20 settled; 0 lost, 0 twice, 0 early"),
              "%s", p->out);
    expect(p, 0, "cancel heard p50 ", "");
    left_nothing(s);
    server_stop(s);
}

Test(bench, prints_how_far_it_is_when_it_takes_more_than_a_second)
{
    struct server *s = redis_with_a_key();
    struct proc *p =
        lapse("bench", "--rate", "100/s", "--duration", "1500ms", "--idle", "1100ms", "--json");

    cr_assert(strstr(p->err, "lapse: idle for "), "%s", p->err);
    cr_assert(strstr(p->err, " of 150 jobs are stored, "), "%s", p->err);
    expect(p, 0, NULL, NULL);
    left_nothing(s);
    server_stop(s);
}

Test(bench, reports_a_rate_that_cannot_be_reached_as_asked_and_reached)
{
    struct server *s = redis_with_a_key();
    struct proc *p =
        lapse_start("bench", "--rate", "1000000/s", "--duration", "5ms", "--delay", "0s", "--json");

    proc_wait(p, PROC_WAIT_MS);
    cr_assert_eq(p->status, 0, "%s", p->err);
    all_ran_once(p->out, "rate", 5000);
    cr_assert_eq(member(p->out, "rate_asked_per_s"), 1000000);
    cr_assert(member(p->out, "rate_stored_per_s") < 1000000 &&
              member(p->out, "rate_settled_per_s") < 1000000);
    proc_free(p);
    left_nothing(s);
    server_stop(s);
}

Test(bench, counts_what_redis_refused_as_not_stored, .timeout = 60)
{
    static const char *const args[] = {"--maxmemory", "6mb", NULL};
    struct server *s = server_start_opts(args);

    setenv("LAPSE_URL", s->url, 1);

    struct proc *p = lapse_start("bench", "--rate", "10000/s", "--duration", "1s", "--delay", "2s",
                                 "--body", "2000", "--json");
    proc_wait(p, PROC_WAIT_MS);
    cr_assert_eq(p->status, 0, "%s", p->err);

    long long stored = member(p->out, "rate_stored");
    cr_assert(stored > 0 && stored < 10000 && member(p->out, "rate_failed") > 0, "%s", p->out);
    cr_assert_eq(member(p->out, "rate_settled"), stored);
    cr_assert_eq(member(p->out, "rate_lost") + member(p->out, "rate_twice") +
                     member(p->out, "rate_early"),
                 0);
    cr_assert(strstr(p->err, "OOM"), "%s", p->err);
    proc_free(p);
    until_keys(s, 0);
    expect(lapse("bench", "--waiting", "100000"), 2, "", "this Redis has");
    server_stop(s);
}

Test(bench, refuses_a_queue_that_is_not_its_own)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "mine", "--in", "1h", "body"), 0, NULL, NULL);

    /* so like one of ours */
    expect(lapse("schedule", "r", "--id", "bench-0000000000000", "--in", "1h"), 0, NULL, NULL);

    long long keys = redis_int(s, "DBSIZE");
    expect(lapse("bench", "q", "--burst", "10"), 2, "",
           "'q': it holds jobs that are not of lapse bench");
    expect(lapse("bench", "r", "--burst", "10"), 2, "",
           "'r': it holds jobs that are not of lapse bench");
    cr_assert_eq(redis_int(s, "DBSIZE"), keys);
    cr_assert_eq(audit(s, "lapse", "q", "r", NULL), 0);

    /* another's listener would run its jobs */
    struct proc *p = lapse_start("listen", "used");
    int64_t end = test_now_ms() + 10000;
    while (test_now_ms() < end && !redis_int(s, "ZCARD lapse:{used}:listeners")) {
        poll(NULL, 0, 5);
    }

    expect(lapse("bench", "used", "--burst", "10"), 2, "", "it has listeners");
    proc_signal(p, SIGTERM);
    expect(p, 0, "", NULL);
    server_stop(s);
}

static void until_waiting(struct server *s, const char *queue, long long n)
{
    int64_t end = test_now_ms() + 10000;
    while (redis_int(s, "ZCARD lapse:{%s}:due", queue) < n) {
        cr_assert_lt(test_now_ms(), end, "never were %lld jobs waiting", n);
        poll(NULL, 0, 2);
    }
}

/* A job was claimed. */
static void until_running(struct server *s, const char *queue)
{
    int64_t end = test_now_ms() + 10000;
    while (!redis_int(s, "EXISTS lapse:{%s}:seq", queue)) {
        cr_assert_lt(test_now_ms(), end, "no job was claimed");
        poll(NULL, 0, 2);
    }
}

Test(bench, cleans_up_when_it_is_interrupted, .timeout = 60)
{
    static const struct {
        const char *args[8];
        int signum;
    } table[] = {
        {{"--waiting", "3000000"}, SIGINT},                 /* while it fills */
        {{"--waiting", "1000", "--idle", "1h"}, SIGTERM},   /* while listeners wait */
        {{"--rate", "2000/s", "--duration", "1h"}, SIGINT}, /* while jobs run */
        {{"--rate", "2000/s", "--duration", "1h", "--delay", "0s"}, SIGTERM},
    };
    struct server *s = redis_with_a_key();

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *argv[12] = {"lapse", "bench", "q", "--listeners", "2"};
        memcpy(argv + 4 + 1, table[i].args, 6 * sizeof *argv);
        struct proc *p = proc_start(argv);
        if (i < 2) {
            until_waiting(s, "q", 1000);
        } else {
            until_running(s, "q");
        }
        proc_signal(p, table[i].signum);
        expect(p, 128 + table[i].signum, "", "interrupted");
        left_nothing(s);
    }

    server_stop(s);
}

Test(bench, that_was_killed_is_cleared_by_the_next_of_that_queue, .timeout = 60)
{
    struct server *s = redis_with_a_key();
    struct proc *p = lapse_start("bench", "q", "--waiting", "3000000");

    until_waiting(s, "q", 1000);
    proc_signal(p, SIGKILL);
    expect(p, 128 + SIGKILL, "", NULL);
    cr_assert(redis_int(s, "ZCARD lapse:{q}:due") >= 1000);
    expect(lapse("bench", "q", "--schedule", "1"), 0, NULL, "jobs of a bench that was killed");
    left_nothing(s);
    server_stop(s);
}

/* ---- a network between listeners and Redis ---- */
/* Programs that are started from now on make their folders in it. */
static void make_folders_in(char path[48])
{
    test_dir(path, 48);
    setenv("XDG_RUNTIME_DIR", path, 1);
}

Test(bench, makes_the_way_of_its_listeners_as_long_as_asked, .timeout = 60)
{
    const long long rtt_us = 20000;
    struct server *s = redis_with_a_key();
    char folder[48];

    make_folders_in(folder);

    struct proc *p = lapse_start("bench", "--rate", "200/s", "--duration", "1s", "--listeners", "2",
                                 "--burst", "500", "--idle", "100ms", "--rtt", "20ms", "--json");
    proc_wait(p, PROC_WAIT_MS);
    cr_assert_eq(p->status, 0, "%s", p->err);
    is_one_object(p->out);
    all_ran_once(p->out, "rate", 200);
    all_ran_once(p->out, "burst", 500);

    cr_assert_eq(thousandths(p->out, "rtt_ms"), rtt_us);
    cr_assert_geq(thousandths(p->out, "rtt_ping_through_ms"), rtt_us, "%s", p->out);
    cr_assert(has(p, "\"rtt_ping_direct_ms\":") && has(p, "\"rtt_own_ms\":"), "%s", p->out);

    /* what Redis says at the claim is half a round trip on its way to the handler; the producer is
     * beside Redis */
    long long claimed_us = thousandths(p->out, "rate_claimed_late_p50_ms");
    long long error_us = thousandths(p->out, "rate_started_error_ms") + claimed_us / 512;
    cr_assert_geq(thousandths(p->out, "rate_started_late_p50_ms"),
                  claimed_us + rtt_us / 2 - error_us, "%s", p->out);
    proc_free(p);
    left_nothing(s);
    until_empty(folder); /* the proxy ends after the program that started it */
    server_stop(s);
}

Test(bench, says_how_long_the_way_of_its_listeners_is)
{
    struct server *s = redis_with_a_key();
    struct proc *p = lapse("bench", "--burst", "100", "--rtt", "200us");

    cr_assert(has(p, "network        0.200 ms a round trip between listeners and Redis; a PING "),
              "%s", p->out);
    expect(p, 0, "100 asked, 100 stored, 100 settled; 0 lost, 0 twice, 0 early", "");
    expect(lapse("bench", "--schedule", "10", "--rtt", "0us"), 0, "network        0.000 ms", "");
    left_nothing(s);
    server_stop(s);
}

Test(bench, carries_login_and_database_through_its_proxy_to_a_port)
{
    static const char *const args[] = {"--requirepass", "s3 cret", NULL};
    struct server *s = server_start_tcp(args);
    char url[200];
    char folder[48];

    make_folders_in(folder);
    snprintf(url, sizeof url, "redis://:s3%%20cret@127.0.0.1:%d/3", s->port);

    struct proc *p = lapse("bench", "-u", url, "--burst", "200", "--rtt", "1ms", "--json");
    cr_assert_eq(p->status, 0, "%s", p->err);
    all_ran_once(p->out, "burst", 200);
    cr_assert(!has(p, "cret"));
    proc_free(p);
    until_empty(folder);
    server_stop(s);
}

Test(bench, removes_its_proxy_however_it_ends, .timeout = 60)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGKILL};
    struct server *s = redis_with_a_key();

    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        char folder[48];
        make_folders_in(folder);
        /* those that only wait are there whenever it dies */
        struct proc *p = lapse_start("bench", "q", "--rtt", "5ms", "--waiting", "10", "--rate",
                                     "500/s", "--duration", "1h", "--delay", "100ms");
        until_running(s, "q");
        proc_signal(p, signals[i]);
        expect(p, 128 + signals[i], "", NULL);
        until_empty(folder);
    }

    expect(lapse("bench", "q", "--schedule", "1"), 0, NULL, "jobs of a bench that was killed");
    left_nothing(s);
    server_stop(s);
}

Test(bench, checks_its_arguments_before_anything_else)
{
    static const struct {
        const char *args[5], *says;
    } table[] = {
        {{"--rate", "0"}, "--rate '0'"},
        {{"--rate", "1000001/s"}, "1 to 1000000"},
        {{"--rate", "10/m"}, "--rate '10/m'"},
        {{"--rate", "1/s", "--duration", "10ms"}, "0 jobs"},
        {{"--rate", "1000000", "--duration", "1h"}, "at most 100000000"},
        {{"--duration", "2d"}, "at most a day"},
        {{"--delay", "soon"}, "--delay 'soon'"},
        {{"--body", "1048577"}, "0 to 1048576"},
        {{"--body", "-1"}, "--body '-1'"},
        {{"--burst", "0"}, "--burst '0'"},
        {{"--waiting", "100000001"}, "1 to 100000000"},
        {{"--listeners", "257"}, "1 to 256"},
        {{"--listeners", "none"}, "--listeners 'none'"},
        {{"--idle", "1h30"}, "--idle '1h30'"},
        {{"--cancel", "0"}, "--cancel '0'"},
        {{"--rtt", "soon"}, "--rtt 'soon'"},
        {{"--rtt", "1001ms"}, "0us to 1s"},
        {{"--rtt", "1000001us"}, "0us to 1s"},
        {{"--rtt", "0.2ms"}, "--rtt '0.2ms'"},
        {{"--rtt", "us"}, "--rtt 'us'"},
        {{"a b"}, "queue 'a b'"},
        {{"a", "b"}, "unexpected argument"},
        {{"--brust", "1"}, "did you mean '--burst'"},
    };

    setenv("LAPSE_URL", "unix:///nonexistent/redis.sock", 1);

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *argv[8] = {"lapse", "bench"};
        memcpy(argv + 2, table[i].args, sizeof table[i].args);
        struct proc *p = proc_start(argv);
        expect(p, 2, "", table[i].says);
    }

    expect(lapse("bench", "--burst", "10"), 69, "", "could not be reached");
}

Test(bench, gets_in_with_a_password_in_another_database)
{
    static const char *const args[] = {"--requirepass", "s3 cret", NULL};
    struct server *s = server_start_opts(args);
    char url[200];

    snprintf(url, sizeof url, "unix://:s3%%20cret@%s?db=3", s->socket);

    struct proc *p = lapse("bench", "-u", url, "--burst", "200", "--listeners", "2", "--json");
    cr_assert_eq(p->status, 0, "%s", p->err);
    all_ran_once(p->out, "burst", 200);
    cr_assert(!has(p, "cret"));
    proc_free(p);
    setenv("LAPSE_PASSWORD", "s3 cret", 1);
    expect(lapse("bench", "-u", s->url, "--schedule", "10"), 0, NULL, "");
    setenv("LAPSE_PASSWORD", "wrong", 1);
    expect(lapse("bench", "-u", s->url, "--schedule", "10"), 77, "", "WRONGPASS");

    redisReply *r = redis_cmd(s, "AUTH %s", "s3 cret");
    freeReplyObject(r);
    until_keys(s, 0);
    redis_do(s, "SELECT 3");
    until_keys(s, 0);
    server_stop(s);
}

Test(bench, works_without_the_right_to_ask_info)
{
    struct server *s = tool_redis();
    char url[200];

    redis_do(s, "ACL SETUSER b on >pw ~* &* +@all -info");
    snprintf(url, sizeof url, "unix://b:pw@%s", s->socket);
    struct proc *p = lapse("bench", "-u", url, "--burst", "100", "--waiting", "100", "--json");
    cr_assert_eq(p->status, 0, "%s", p->err);
    all_ran_once(p->out, "burst", 100);
    cr_assert(!has(p, "server_us") && !has(p, "bytes_per_job"), "%s", p->out);
    proc_free(p);
    until_keys(s, 0);
    server_stop(s);
}

/* ---- a cluster, and Sentinel ---- */
static struct cluster *cluster_with_a_key(int n_masters, int n_replicas)
{
    struct cluster *c = tool_cluster(n_masters, n_replicas);

    redis_do(cluster_of(c, "mine"), "SET mine untouched");
    return c;
}

/* As on one Redis. */
static void left_nothing_in(struct cluster *c)
{
    struct server *mine = cluster_of(c, "mine");

    for (int i = 0; i < c->n_masters; i++) {
        if (c->nodes[i].server != mine) {
            until_keys(c->nodes[i].server, 0);
        }
    }
    left_nothing(mine);
}

static int index_of(const struct cluster *c, const char *key)
{
    struct server *s = cluster_of(c, key);
    int i = 0;

    while (c->nodes[i].server != s) {
        i++;
    }
    return i;
}

Test(bench, in_a_cluster_counts_each_job_once_and_says_what_its_master_and_the_others_did,
     .timeout = 60)
{
    struct cluster *c = cluster_with_a_key(3, 0);
    struct server *master = cluster_of(c, "{q}");
    char place[64];
    char want[64];
    struct proc *p = lapse("bench", "q", "--rate", "200/s", "--duration", "1s", "--waiting", "1000",
                           "--listeners", "2", "--burst", "500", "--schedule", "200", "--idle",
                           "100ms", "--cancel", "10", "--json");

    cr_assert_eq(p->status, 0, "%s", p->err);
    is_one_object(p->out);
    all_ran_once(p->out, "rate", 200);
    all_ran_once(p->out, "burst", 500);
    cr_assert_eq(member(p->out, "waiting_stored"), 1000);
    cr_assert_eq(member(p->out, "cancel_heard"), 10);
    cr_assert_eq(member(p->out, "masters"), 3);
    snprintf(want, sizeof want, "127.0.0.1:%d", master->port);
    cr_assert_str_eq(text_member(p->out, "server", place), want);

    /* all scripts and jobs are on that master */
    cr_assert_eq(thousandths(p->out, "schedule_scripts_per_job"), 10, "%s", p->out);
    cr_assert_eq(thousandths(p->out, "single_scripts_per_job"), 1000, "%s", p->out);
    cr_assert(member(p->out, "waiting_bytes_per_job") > 100);
    cr_assert(has(p, "\"rate_others_us_per_job\":") && has(p, "\"idle_others_percent\":"), "%s",
              p->out);
    cr_assert(!has(p, "listeners receive"), "%s", p->err);
    expect(p, 0, NULL, "");
    left_nothing_in(c);

    p = lapse("bench", "q", "--burst", "100", "--schedule", "100", "--idle", "10ms");
    snprintf(want, sizeof want, "3 masters; the queue is on 127.0.0.1:%d\n", master->port);
    cr_assert(has(p, want) && has(p, " us CPU a job of the other masters\n"), "%s", p->out);
    cr_assert(has(p, "; other masters ") && has(p, " in the other masters, "), "%s", p->out);
    expect(p, 0, "100 asked, 100 stored, 100 settled; 0 lost, 0 twice, 0 early", "");

    expect(lapse("bench", "--rtt", "1ms"), 2, "", "(--rtt) cannot be added in a cluster");
    left_nothing_in(c);
    cluster_stop(c);
}

Test(bench, in_a_cluster_whose_other_master_is_away_or_silent_measures_its_own, .timeout = 60)
{
    struct cluster *c = cluster_with_a_key(3, 0);
    char queue[16];
    char said[120];
    int away = -1;

    /* one that has neither the keys of all queues nor ours, of which there are enough */
    for (int i = 0; i < c->n_masters; i++) {
        if (i != index_of(c, "lapse:{}:alive") && i != index_of(c, "lapse:{}:queues")) {
            away = i;
        }
    }
    cr_assert_geq(away, 0);
    for (int n = 0, found = 0; !found; n++) {
        snprintf(queue, sizeof queue, "{q%d}", n);
        found = index_of(c, queue) != away;
        snprintf(queue, sizeof queue, "q%d", n);
    }

    for (int i = 0; i < c->n; i++) {
        redis_do(c->nodes[i].server, "ACL SETUSER u on >p ~* &* +@all");
    }
    redis_do(c->nodes[away].server, "ACL SETUSER u -info");
    tool_cluster_url(c, "u:p@");
    struct proc *p = lapse("bench", queue, "--burst", "100", "--json");
    all_ran_once(p->out, "burst", 100);
    cr_assert(has(p, "burst_server_us_per_job") && !has(p, "burst_others_us_per_job"), "%s",
              p->out);
    expect(p, 0, NULL, "");

    server_kill9(c->nodes[away].server);
    p = lapse("bench", queue, "--burst", "100", "--json");
    all_ran_once(p->out, "burst", 100);
    cr_assert(has(p, "burst_server_us_per_job") && !has(p, "burst_others_us_per_job"), "%s",
              p->out);
    expect(p, 0, NULL, NULL);

    /* what it needs is elsewhere */
    int alive = index_of(c, "lapse:{}:alive");
    redis_do(c->nodes[alive].server, "ACL DELUSER u");
    p = lapse("bench", queue, "--burst", "100");
    snprintf(said, sizeof said, "127.0.0.1:%d, which has lapse:{", c->nodes[alive].server->port);
    expect(p, 77, "", said);
    cluster_stop(c);
}

/* What it began on another master is removed all the same. */
Test(bench, whose_queue_moves_to_another_master_says_so_and_removes_it_there, .timeout = 60)
{
    struct cluster *c = cluster_with_a_key(2, 0);
    int slot = cluster_slot_of_queue(c, "q");
    int from = index_of(c, "{q}");
    struct proc *p =
        lapse_start("bench", "q", "--rate", "200/s", "--duration", "1h", "--delay", "0s", "--json");
    char said[120];

    until_running(c->nodes[from].server, "q");
    cluster_move(c, slot, !from);
    until_running(c->nodes[!from].server, "q");
    proc_signal(p, SIGINT);
    snprintf(said, sizeof said, "queue q is on 127.0.0.1:%d now; what is printed of its server is",
             c->nodes[!from].server->port);
    expect(p, 128 + SIGINT, "", said);
    left_nothing_in(c);

    redis_do(c->nodes[0].server, "CLUSTER DELSLOTS %d", slot);
    redis_do(c->nodes[1].server, "CLUSTER DELSLOTS %d", slot);
    expect(lapse("bench", "q", "--schedule", "1"), 69, "", "no master of the cluster has the slot");
    cluster_stop(c);
}

Test(bench, under_sentinel_measures_the_master, .timeout = 60)
{
    struct sentinels *s = sentinels_start(2, 1, NULL, 30000);

    setenv("LAPSE_URL", s->url, 1);
    redis_do(s->redis[0], "SET mine untouched");
    struct proc *p = lapse("bench", "--rate", "200/s", "--duration", "500ms", "--listeners", "2",
                           "--burst", "100", "--schedule", "100", "--json");
    is_one_object(p->out);
    all_ran_once(p->out, "rate", 100);
    all_ran_once(p->out, "burst", 100);
    cr_assert_eq(thousandths(p->out, "single_scripts_per_job"), 1000, "%s", p->out);
    cr_assert(!has(p, "\"masters\"") && !has(p, "others"), "%s", p->out);
    expect(p, 0, NULL, "");
    left_nothing(s->redis[0]);
    sentinels_stop(s);
}
