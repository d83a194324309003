/* SPDX-License-Identifier: MIT */
/* lapse doctor: each check, fine and not. */
#include "findings.h"
#include "audit.h"
#include "cluster.h"
#include "proxy.h"
#include "sentinels.h"
#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>

Test(doctor, of_a_redis_that_is_fit_says_ok_to_everything)
{
    static const char *const checks[] = {"server",   "role",   "rights",  "events",
                                         "eviction", "memory", "buffers", "persistence",
                                         "replicas", "clock",  "jobs",    "expiry"};
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--in", "1h"), 0, NULL, NULL);

    struct proc *p = doctor();
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        says(p, checks[i], "OK", "");
    }

    cr_assert_eq(count_of(p->out, "\n"), sizeof checks / sizeof *checks);
    cr_assert_eq(p->err_len, 0, "%s", p->err);
    expect(p, 0, "\"queue\":\"q\",\"verdict\":\"OK\",\"text\":\"1, each in one state\"", NULL);
    p = lapse("doctor");
    cr_assert_eq(count_of(p->out, "\nOK  "), sizeof checks / sizeof *checks - 1, "%s", p->out);
    expect(p, 0, "OK    jobs         q: 1, each in one state\n", NULL);
    redis_do(s, "PING");
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0, "it left something behind");
    server_stop(s);
}

Test(doctor, of_a_replica_fails_and_names_its_master)
{
    struct server *master = server_start_tcp(NULL);
    char port[16];
    char fix[100];

    snprintf(port, sizeof port, "%d", master->port);

    const char *args[] = {"--replicaof", "127.0.0.1", port, NULL};
    struct server *s = server_start_opts(args);
    setenv("LAPSE_URL", s->url, 1);
    snprintf(fix, sizeof fix, "lapse -u redis://127.0.0.1:%s", port);

    struct proc *p = doctor();
    says(p, "events", NULL, NULL);
    finds(p, 1, "role", "FAIL", fix);
    finds(doctor("--repair"), 1, "jobs", "FAIL", "a replica");
    redis_do(s, "ACL SETUSER default -info");
    finds(doctor(), 1, "role", "FAIL", "lapse -u URL, with the URL of its master");
    server_stop(s);
    server_stop(master);
}

/* What it says is to be pasted into a shell. */
Test(doctor, shows_no_command_with_words_of_others_that_a_shell_would_obey)
{
    static const struct {
        const char *host, *fix;
    } table[] = {
        {"h;id", "lapse -u URL, with the URL of its master"},
        {"$(id)", "lapse -u URL, with the URL of its master"},
        {"`id`", "lapse -u URL, with the URL of its master"},
        {"a@b", "lapse -u URL, with the URL of its master"},
        {"h&id", "lapse -u URL, with the URL of its master"},
        {"h|id", "lapse -u URL, with the URL of its master"},
        {"::1", "lapse -u 'redis://[::1]:1'\""},
        {"no_such-host.test", "lapse -u redis://no_such-host.test:1\""},
    };
    struct server *s = tool_redis();

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        redis_do(s, "REPLICAOF %s 1", table[i].host);
        finds(doctor(), 1, "role", "FAIL", table[i].fix);
    }

    redis_do(s, "REPLICAOF NO ONE");
    redis_do(s, "ACL SETUSER %s on >p +@all -zadd allkeys allchannels", "x';id;'");

    char url[300];
    snprintf(url, sizeof url, "unix://x%%27;id;%%27:p@%s", s->socket);
    setenv("LAPSE_URL", url, 1);
    finds(doctor(), 1, "rights", "FAIL", "redis-cli ACL SETUSER 'NAME' +zadd");
    server_stop(s);
}

Test(doctor, of_eviction_fails_where_any_key_may_go)
{
    static const struct {
        const char *policy, *verdict;
    } rows[] = {{"allkeys-lru", "FAIL"},  {"allkeys-lfu", "FAIL"},  {"allkeys-random", "FAIL"},
                {"volatile-ttl", "WARN"}, {"volatile-lru", "WARN"}, {"volatile-random", "WARN"},
                {"noeviction", "OK"}};
    struct server *s = tool_redis();

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        redis_do(s, "CONFIG SET maxmemory-policy %s", rows[i].policy);
        struct proc *p = doctor();
        cr_assert_eq(has(p, "CONFIG SET maxmemory-policy noeviction"),
                     strcmp(rows[i].verdict, "OK") != 0);
        finds(p, *rows[i].verdict == 'F', "eviction", rows[i].verdict, rows[i].policy);
    }

    server_stop(s);
}

Test(doctor, of_a_muted_server_warns_and_keeps_the_flags_of_others)
{
    struct server *s = tool_redis();

    redis_do(s, "CONFIG SET notify-keyspace-events %s", "");
    finds(doctor(), 0, "events", "WARN", "CONFIG SET notify-keyspace-events Ex");
    redis_do(s, "CONFIG SET notify-keyspace-events Kg");
    finds(doctor(), 0, "events", "WARN", "notify-keyspace-events gKEx");
    finds(doctor("-o", "notify=keyspace"), 0, "events", "WARN", "notify-keyspace-events gKx");
    redis_do(s, "CONFIG SET notify-keyspace-events KA");
    finds(doctor("-o", "notify=keyspace"), 0, "events", "OK", "its event arrived");
    redis_do(s, "ACL SETUSER default -config");
    finds(doctor(), 0, "events", "WARN", "this user may not run CONFIG GET");
    redis_do(s, "ACL SETUSER default +config");
    redis_do(s, "CONFIG SET notify-keyspace-events Ex");
    redis_do(s, "ACL SETUSER default -config");
    finds(doctor(), 0, "events", "OK", "its event arrived");
    server_stop(s);
}

Test(doctor, hears_its_event_amid_those_of_others)
{
    struct server *s = tool_redis();

    for (int i = 0; i < 2000; i++) {
        redis_do(s, "SET other:%d x PX %d", i, 1 + i / 10);
    }
    finds(doctor(), 0, "events", "OK", "its event arrived");
    server_stop(s);
}

Test(doctor, says_what_persistence_may_lose)
{
    struct server *s = tool_redis();

    finds(doctor(), 0, "persistence", "OK", "everysec");
    redis_do(s, "CONFIG SET appendfsync always");
    finds(doctor(), 0, "persistence", "OK", "no acknowledged write is lost");
    redis_do(s, "CONFIG SET appendfsync no");
    finds(doctor(), 0, "persistence", "WARN", "CONFIG SET appendfsync everysec");
    redis_do(s, "ACL SETUSER default -config");
    finds(doctor(), 0, "persistence", "OK", "unless it is always");
    redis_do(s, "ACL SETUSER default +config");
    redis_do(s, "CONFIG SET appendonly no");
    finds(doctor(), 1, "persistence", "FAIL", "CONFIG SET appendonly yes");
    redis_do(s, "CONFIG SET save %s", "3600 1");
    finds(doctor(), 0, "persistence", "WARN", "since the last one");
    server_stop(s);
}

static void until_replication_says(struct server *master, const char *what)
{
    int64_t deadline = test_now_ms() + PROC_WAIT_MS;
    bool says_so = false;

    while (!says_so) {
        char *info = redis_str(master, "INFO replication");
        says_so = strstr(info, what) != NULL;
        cr_assert(says_so || test_now_ms() < deadline, "no %s: %s", what, info);
        free(info);
        poll(NULL, 0, 10);
    }
}

/* Nothing that is stored says it: the doctor gets the option as its listeners do. */
Test(doctor, with_the_option_replicas_fails_where_fewer_are_in_step)
{
    struct server *master = server_start_tcp(NULL);
    char port[16];
    char url[64];

    setenv("LAPSE_URL", master->url, 1);
    redis_do(master, "CONFIG SET repl-diskless-sync-delay 3600");
    finds(doctor("-o", "replicas=1"), 1, "replicas", "FAIL",
          "0 in step, and the option replicas asks for 1: what is written is answered EALONE, and "
          "no handler begins");

    snprintf(port, sizeof port, "%d", master->port);
    struct server *s = server_start_opts((const char *[]){"--replicaof", "127.0.0.1", port, NULL});
    until_replication_says(master, "state=wait_bgsave");
    finds(doctor("-o", "replicas=1"), 1, "replicas", "FAIL", "0 in step");
    redis_do(master, "CONFIG SET repl-diskless-sync-delay 0");
    cr_assert_eq(redis_int(master, "WAIT 1 20000"), 1);
    finds(doctor("-o", "replicas=1"), 0, "replicas", "WARN",
          "1 in step, and the option replicas asks for 1: while one of them is away, or has become "
          "the master, what is written is answered EALONE, and no handler begins");
    finds(doctor("-o", "replicas=2"), 1, "replicas", "FAIL", "1 in step");
    redis_do(master, "CONFIG SET min-replicas-to-write 2");
    finds(doctor("-o", "replicas=1"), 1, "replicas", "FAIL", "every write is refused");
    redis_do(master, "CONFIG SET min-replicas-to-write 0");
    as_user(master, "~lapse:* &* +@all -info");
    snprintf(url, sizeof url, "redis://u:p@127.0.0.1:%d", master->port);
    setenv("LAPSE_URL", url, 1);
    finds(doctor("-o", "replicas=2"), 0, "replicas", "WARN", "unknown");
    server_stop(s);
    server_stop(master);
}

/* How long ago its only replica has last said what it has, s. */
static long long replica_lag(struct server *master)
{
    char *info = redis_str(master, "INFO replication");
    const char *lag = strstr(info, ",lag=");

    cr_assert(lag && strstr(info, "state=online"), "%s", info);
    long long s = strtoll(lag + strlen(",lag="), NULL, 10);
    free(info);
    return s;
}

/* Redis calls it online until repl-timeout is over. */
Test(doctor, with_the_option_replicas_does_not_count_one_that_is_silent)
{
    struct server *master = server_start_tcp(NULL);
    int64_t deadline = test_now_ms() + PROC_WAIT_MS;
    char port[16];

    setenv("LAPSE_URL", master->url, 1);
    redis_do(master, "CONFIG SET repl-diskless-sync-delay 0");
    snprintf(port, sizeof port, "%d", master->port);
    const char *args[] = {"--replicaof", "127.0.0.1", port, NULL};
    struct server *one = server_start_opts(args);
    cr_assert_eq(redis_int(master, "WAIT 1 20000"), 1);
    server_signal(one, SIGSTOP);
    while (replica_lag(master) <= 5) {
        cr_assert_lt(test_now_ms(), deadline, "it does not become silent");
        poll(NULL, 0, 10);
    }
    finds(doctor("-o", "replicas=1"), 1, "replicas", "FAIL", "0 in step");

    struct server *other = server_start_opts(args);
    redis_do(master, "SET written 1"); /* what the silent one cannot have */
    cr_assert_eq(redis_int(master, "WAIT 1 20000"), 1);
    finds(doctor("-o", "replicas=1"), 0, "replicas", "WARN", "1 in step");
    server_signal(one, SIGCONT);
    cr_assert_eq(redis_int(master, "WAIT 2 20000"), 2);
    finds(doctor("-o", "replicas=1"), 0, "replicas", "OK",
          "2 in step, and the option replicas asks for 1");
    server_stop(other);
    server_stop(one);
    server_stop(master);
}

Test(doctor, knows_what_replicas_are_good_for)
{
    struct server *master = server_start_tcp(NULL);
    char port[16];

    setenv("LAPSE_URL", master->url, 1);
    redis_do(master, "CONFIG SET min-replicas-to-write 1");
    finds(doctor(), 1, "replicas", "FAIL", "every write is refused");
    redis_do(master, "CONFIG SET min-replicas-to-write 0 repl-diskless-sync-delay 0");
    finds(doctor(), 0, "replicas", "OK", "none");
    snprintf(port, sizeof port, "%d", master->port);

    const char *args[] = {"--replicaof", "127.0.0.1", port, NULL};
    struct server *s = server_start_opts(args);
    cr_assert_eq(redis_int(master, "WAIT 1 10000"), 1);
    finds(doctor(), 0, "replicas", "WARN", "a second replica, and then redis-cli CONFIG SET");
    redis_do(master, "CONFIG SET min-replicas-to-write 1");
    finds(doctor(), 0, "replicas", "WARN", "after a failover the new master has one fewer");

    struct server *second = server_start_opts(args);
    cr_assert_eq(redis_int(master, "WAIT 2 10000"), 2);
    finds(doctor(), 0, "replicas", "OK", "2 connected");
    finds(doctor("-o", "replicas=1"), 0, "replicas", "OK",
          "2 in step, and the option replicas asks for 1");
    redis_do(master, "CONFIG SET min-replicas-to-write 2");
    finds(doctor("-o", "replicas=1"), 0, "replicas", "WARN", "and refuses every write");
    finds(doctor("-o", "replicas=3"), 1, "replicas", "FAIL", "2 in step");
    redis_do(master, "CONFIG SET min-replicas-to-write 0");
    finds(doctor(), 0, "replicas", "WARN", "fix\":\"redis-cli CONFIG SET min-replicas-to-write 1");
    server_stop(second);
    server_stop(s);
    server_stop(master);
}

static void says_of_replica(struct sentinels *s, struct proc *p, const char *check,
                            const char *verdict, const char *text)
{
    says_of(p, s->redis[1]->port, check, verdict, text);
}

/* What neither Redis nor Sentinel replicates. */
Test(doctor, under_sentinel_looks_at_each_replica_and_each_sentinel, .timeout = 120)
{
    struct sentinels *s = sentinels_start(2, 1, NULL, 30000);
    char url[300];

    setenv("LAPSE_URL", s->url, 1);
    struct proc *p = doctor();
    says(p, "sentinel", "WARN", "1, quorum 1: when one is gone, no replica is promoted");
    says_of_replica(s, p, "replica", "OK", "fit to become the master");
    expect(p, 0, NULL, "");

    finds(doctor("-o", "replicas=1"), 0, "replicas", "WARN", "1 in step");
    p = doctor("-o", "replicas=2");
    says_of_replica(s, p, "replica", "OK", "fit to become the master");
    finds(p, 1, "replicas", "FAIL", "1 in step, and the option replicas asks for 2");

    redis_do(s->redis[1], "CONFIG SET notify-keyspace-events %s", "");
    redis_do(s->redis[1], "CONFIG SET maxmemory-policy allkeys-lru");
    redis_do(s->redis[0], "ACL SETUSER u on >p ~* &* +@all");
    redis_do(s->redis[1], "ACL SETUSER u on >p ~* &* +@all -zadd");
    snprintf(url, sizeof url, "redis+sentinel://u:p@127.0.0.1:%d,127.0.0.1:%d/m",
             s->sentinel[0]->port, server_free_port());
    setenv("LAPSE_URL", url, 1);
    p = doctor();
    says_of_replica(s, p, "events", "WARN", "CONFIG SET notify-keyspace-events Ex");
    says_of_replica(s, p, "eviction", "FAIL", "\"fix\":\"redis-cli -h 127.0.0.1 -p ");
    says_of_replica(s, p, "rights", "FAIL", "user u lacks +zadd");
    says(p, "rights", "OK", "user u has the rights of a listener");
    cr_assert(strstr(p->out, "cannot be asked: Connection refused"), "%s", p->out);
    expect(p, 1, NULL, "");

    redis_do(s->redis[1], "ACL DELUSER u");
    p = doctor();
    says_of_replica(s, p, "replica", "FAIL", "it does not let this user in: AUTH: WRONGPASS");
    expect(p, 1, NULL, "");
    server_kill9(s->redis[1]);
    p = doctor();
    says_of_replica(s, p, "replica", "WARN", "cannot be reached: Connection refused");
    expect(p, 0, NULL, "");
    sentinels_stop(s);
}

Test(doctor, warns_of_buffers_without_limit_and_of_small_ones)
{
    struct server *s = tool_redis();

    finds(doctor(), 0, "buffers", "OK", "pubsub 16 MiB");
    redis_do(s, "CONFIG SET client-output-buffer-limit %s", "pubsub 0 0 0");
    finds(doctor(), 0, "buffers", "WARN", "no limit for pubsub");
    redis_do(s, "CONFIG SET client-output-buffer-limit %s", "pubsub 100kb 0 0");
    finds(doctor(), 0, "buffers", "WARN", "a burst of 853 events");
    server_stop(s);
}

Test(doctor, warns_when_memory_is_nearly_used_up)
{
    struct server *s = tool_redis();

    redis_do(s, "CONFIG SET maxmemory 100mb");
    finds(doctor(), 0, "memory", "OK", "of 100.0 MiB");
    for (int i = 0; i < 20; i++) {
        redis_do(s, "EVAL %s 1 other:%d", "redis.call('SET', KEYS[1], string.rep('x', 1000000))",
                 i);
    }

    redis_do(s, "CONFIG SET maxmemory 21mb");
    finds(doctor(), 0, "memory", "WARN", "new jobs will soon be refused");
    server_stop(s);
}

Test(doctor, of_foreign_expiring_keys_says_how_late_redis_would_be)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--in", "1h"), 0, NULL, NULL);
    redis_do(s, "EVAL %s 0",
             "for i = 1, 4000 do redis.call('SET', 'other:' .. i, 1, 'EX', 1000) end");
    finds(doctor(), 0, "expiry", "OK",
          "4001 expiring keys (4000 not lapse's), hz 10: without listeners, expiry events could "
          "be up to 20.0 s late");
    finds(doctor("-o", "flags=no_alarm"), 0, "expiry", "WARN", "20.0 s late");
    redis_do(s, "EVAL %s 0",
             "for i = 1, 7000 do redis.call('SET', 'more:' .. i, 1, 'EX', 1000) end");
    finds(doctor(), 0, "expiry", "WARN", "11000 expiring keys are not lapse's");
    finds(doctor("-o", "notify=keyspace"), 0, "expiry", "OK", "");
    redis_do(s, "FLUSHALL");
    redis_do(s, "CONFIG SET hz 200");
    finds(doctor(), 0, "expiry", "WARN", "CONFIG SET hz 10");
    server_stop(s);
}

/* ---- a peer that says what no server here can ---- */
static void finds_of_fake(const char *reply, int status, const char *check, const char *verdict,
                          const char *text)
{
    struct scripted_server *f = fake_redis(reply);
    finds(doctor("q"), status, check, verdict, text);
    scripted_server_stop(f);
}

static void finds_of_info(const char *info, int status, const char *verdict, const char *text)
{
    char reply[400];
    snprintf(reply, sizeof reply, "$%zu\r\n%s\r\n", strlen(info), info);
    finds_of_fake(reply, status, "server", verdict, text);
}

Test(doctor, knows_servers_by_kind_and_version)
{
    finds_of_info("redis_version:6.0.16\r\nredis_mode:standalone\r\n", 1, "FAIL",
                  "Redis 6.0.16 is too old");
    finds_of_info("redis_version:5.0.3\r\n", 1, "FAIL", "upgrade to Redis 7.0 or later");
    finds_of_info("redis_version:6.2.14\r\n", 1, "FAIL", "too old");
    finds_of_info("redis_version:7.0.0\r\n", 1, "OK", "Redis 7.0.0"); /* 1: of jobs */
    finds_of_info("redis_version:8.0.2\r\n", 1, "OK", "Redis 8.0.2");
    finds_of_info("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\n", 1, "OK",
                  "Valkey 8.1.1, compatible with Redis 7.2.4");
    finds_of_info("redis_version:6.3.4\r\nexecutable:/usr/bin/keydb-server\r\n", 1, "FAIL",
                  "KeyDB 6.3.4");
    finds_of_info("redis_version:7.4.0\r\ndragonfly_version:df-v1.25\r\n", 1, "WARN",
                  "Dragonfly df-v1.25");
    finds_of_info("redis_version:7.0.15\r\nredis_mode:cluster\r\n", 1, "WARN", "a cluster");
}

Test(doctor, says_how_far_clocks_are_apart)
{
    finds_of_fake("*2\r\n$10\r\n1000000000\r\n$1\r\n0\r\n", -1, "clock", "WARN", "behind");
    finds_of_fake("*2\r\n$11\r\n90000000000\r\n$1\r\n0\r\n", -1, "clock", "WARN", "ahead of");
    finds_of_fake("-NOPERM no\r\n", -1, "clock", "WARN", "unknown");
}

Test(doctor, of_answers_of_any_shape_does_not_fall_over)
{
    static const char *const replies[] = {"+OK\r\n",
                                          ":1\r\n",
                                          "$-1\r\n",
                                          "*-1\r\n",
                                          "*0\r\n",
                                          "*1\r\n:1\r\n",
                                          "*2\r\n:1\r\n:0\r\n",
                                          "*6\r\n:1\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n",
                                          "-ERR \x1b[2J\r\n"};

    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        finds_of_fake(replies[i], -1, "server", "WARN", "");
    }
}

Test(doctor, over_tcp_is_the_same)
{
    struct server *s = server_start_tcp(NULL);
    setenv("LAPSE_URL", s->tcp_url, 1);
    finds(doctor(), 0, "clock", "OK", "ms from this machine's");
    server_stop(s);
}

/* ---- rights ---- */
#define KEYS "~lapse:* &lapse:* &__keyevent@*__:expired -@all "
Test(doctor, finds_no_fault_with_the_least_that_a_listener_needs)
{
    struct server *s = tool_redis();

    as_user(s, KEYS "+@read +@write +@pubsub +@scripting +time +wait -@dangerous");
    struct proc *p = doctor();
    says(p, "server", "OK", "");
    says(p, "rights", "OK", "user u has the rights of a listener");
    says(p, "events", "OK", "its event arrived");
    says(p, "eviction", "WARN", "unknown");
    says(p, "jobs", "OK", "");
    cr_assert(!has(p, "FAIL"), "%s", p->out);
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

Test(doctor, fails_for_each_right_that_a_script_lacks_and_names_both)
{
    static const char *const words[] = {"mget", "get",  "hdel",    "zadd",   "zrem",
                                        "set",  "time", "evalsha", "eval_ro"};
    struct server *s = tool_redis();

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char rules[200];
        char fix[60];
        snprintf(rules, sizeof rules, KEYS "+@all -%s", words[i]);
        snprintf(fix, sizeof fix, "ACL SETUSER 'u' +%s\"", words[i]);
        as_user(s, rules);
        struct proc *p = doctor();
        cr_assert_eq(has(p, "or stop half-way: claim sweep touch\""), i == 0, "%s", p->out);
        finds(p, 1, "rights", "FAIL", fix);
    }

    as_user(s, "&* +@all ~other:*");
    finds(doctor(), 1, "rights", "FAIL", "ACL SETUSER 'u' '~lapse:*'");
    as_user(s, "~* &* +@all -eval");
    finds(doctor(), 1, "rights", "FAIL", "+eval");
    cr_assert_eq(redis_int(s, "DBSIZE"), 0);
    server_stop(s);
}

/* Of a command that Redis does not know it does not say whether this user may run it. */
Test(doctor, does_not_vouch_for_rights_of_which_redis_does_not_say)
{
    static const char *const old[] = {"--rename-command", "XTRIM", "", NULL};
    struct server *s = server_start_opts(old);

    setenv("LAPSE_URL", s->url, 1);
    finds(doctor(), 0, "rights", "WARN", "cannot be checked for XTRIM: ERR Invalid command");
    finds(doctor("--for", "producer"), 0, "rights", "OK", "of a producer");
    server_stop(s);
}

Test(doctor, warns_of_what_only_makes_jobs_late)
{
    struct server *s = tool_redis();

    as_user(s, "~lapse:* &lapse:* +@all");
    struct proc *p = doctor();
    says(p, "events", "WARN", "PSUBSCRIBE: NOPERM");
    finds(p, 0, "rights", "WARN", "ACL SETUSER 'u' +psubscribe '&__keyevent@*__:expired'");
    finds(doctor("q", "-o", "notify=keyspace"), 0, "rights", "WARN",
          "'&__keyspace@0__:lapse:{q}:t:*'");
    as_user(s, "~lapse:* &__keyevent@*__:expired +@all");
    finds(doctor("q"), 0, "rights", "WARN", "&lapse:{q}:notice:0");
    server_stop(s);
}

Test(doctor, warns_of_what_only_schedules_for_replicas_need)
{
    struct server *s = tool_redis();

    as_user(s, "~lapse:* &* +@all -wait");
    finds(doctor(), 0, "rights", "WARN", "ACL SETUSER 'u' +wait\"");
    finds(doctor("--for", "producer"), 0, "rights", "WARN", "+wait");
    finds(doctor("--for", "monitor"), 0, "rights", "OK", "monitor");
    as_user(s, "~lapse:* &* +@all -wait -zadd");
    finds(doctor(), 1, "rights", "FAIL", "ACL SETUSER 'u' +zadd +wait\"");
    server_stop(s);
}

Test(doctor, without_a_queue_names_the_channels_of_all)
{
    struct server *s = tool_redis();

    as_user(s, "~lapse:* &__keyevent@*__:expired +@all -scan");
    struct proc *p = doctor();
    cr_assert(!has(p, "lapse-doctor"), "%s", p->out);
    finds(p, 0, "rights", "WARN",
          "+publish '&lapse:{*}:notice:*' '&lapse:{*}:ends:*' +subscribe\"");
    as_user(s, "~lapse:* &lapse:* +@all");
    finds(doctor("-o", "notify=keyspace"), 0, "rights", "WARN",
          "'&__keyspace@0__:lapse:{QUEUE}:t:*'");
    server_stop(s);
}

Test(doctor, ends_with_how_many_there_were_of_each_verdict)
{
    struct server *s = tool_redis();

    expect(lapse("doctor", "q"), 0, "\n0 FAIL, 0 WARN, 12 OK\n", NULL);
    redis_do(s, "CONFIG SET maxmemory-policy allkeys-lru");
    redis_do(s, "CONFIG SET appendfsync no");
    struct proc *p = lapse("doctor", "q");
    cr_expect_str_eq(strstr(p->out, "1 FAIL"), "1 FAIL, 1 WARN, 10 OK\n");
    expect(p, 1, NULL, NULL);
    p = doctor("q");
    cr_expect(!has(p, " WARN,"), "%s", p->out); /* an object a check, and nothing else */
    expect(p, 1, NULL, NULL);
    server_stop(s);
}

/* Each job has a record and a place in a set, both of which it walks. It tells once a second, and
 * Redis is so far away that it takes longer than that. */
Test(doctor, never_tells_of_more_than_there_are)
{
    enum { N = 3000 };
    struct server *s = tool_redis();
    struct proxy *wire = proxy_start(s);

    redis_do(s, "EVAL %s 0 %d",
             "for i = 1, ARGV[1] do redis.call('ZADD', 'lapse:{q}:due', 9e12, i) "
             "redis.call('HSET', 'lapse:{q}:jobs', i, '\\1\\0x') end",
             N);

    proxy_network(wire, 10000, 10000, 0);
    setenv("LAPSE_URL", wire->url, 1);
    struct proc *p = lapse("doctor", "q", "--for", "monitor"); /* the fewest rights */
    cr_expect_gt(count_of(p->err, "queue q: "), 0, "%s", p->err);
    for (char *at = p->err; (at = strstr(at, "queue q: ")); at++) {
        long long checked = 0;
        long long all = 0;
        char key[16] = "";
        cr_expect(sscanf(at, "queue q: %lld of %lld checked in %15[a-z]", &checked, &all, key) == 3,
                  "%s", p->err);
        bool is_full = strcmp(key, "due") == 0 || strcmp(key, "jobs") == 0;
        cr_expect(checked <= all && all == (is_full ? N : 0), "%s", p->err);
    }

    expect(p, 0, "3000, each in one state", NULL);
    proxy_stop(wire);
    server_stop(s);
}

Test(doctor, of_a_user_who_may_not_look_at_jobs_warns_unless_asked_to_repair_them)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--in", "1h"), 0, NULL, NULL);
    as_user(s, KEYS "+@all -hscan");
    finds(doctor("q"), 0, "jobs", "WARN", "cannot be checked");
    finds(doctor("q", "--repair"), 1, "jobs", "FAIL", "cannot be checked");
    expect(lapse("doctor", "--for", "boss"), 2, "", "listener, producer or monitor");
    server_stop(s);
}

static void as_documented(struct server *s, const char *role)
{
    char path[300];
    char start[40];

    snprintf(path, sizeof path, "%s/users.acl", test_build());
    snprintf(start, sizeof start, "user lapse_%s ", role);
    char *all = test_read_file(path, NULL);
    char *rules = strstr(all, start);
    cr_assert(rules, "%s", all);
    rules += strlen(start);
    rules[strcspn(rules, "\n")] = '\0';
    as_user(s, rules);
    free(all);
}

Test(doctor, finds_no_fault_with_the_users_of_the_readme)
{
    static const char *const roles[] = {"listener", "producer", "monitor"};
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--in", "1h"), 0, NULL, NULL);

    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        as_documented(s, roles[i]);
        struct proc *p = doctor("q", "--for", roles[i]);
        says(p, "rights", "OK", roles[i]);
        if (i == 0) {
            says(p, "jobs", "OK", "1, each in one state");
            says(p, "events", "OK", "its event arrived");
            says(p, "eviction", "OK", "noeviction");
        } else {
            says(p, "jobs", "WARN", "cannot be checked");
        }
        expect(p, 0, NULL, NULL);
        finds(doctor("q"), i > 0, "rights", i ? "FAIL" : "OK", "");
    }

    as_documented(s, "listener");
    redis_do(s, "ZREM lapse:{q}:due x");
    redis_do(s, "HSET lapse:{q}:jobs x %s", "\x01");
    redis_do(s, "CONFIG SET maxmemory-policy allkeys-lru");

    struct proc *p = doctor("q", "--repair");
    says(p, "jobs", "WARN", "1 of them repaired");
    finds(p, 1, "eviction", "FAIL", "allkeys-lru");
    server_stop(s);
}

/* ---- jobs ---- */
static void put(struct server *s, const char *id)
{
    (void)s;
    expect(lapse("schedule", "q", "--id", id, "--in", "1h", "body"), 0, NULL, NULL);
}

Test(doctor, finds_and_repairs_what_a_script_that_stopped_half_way_left)
{
    struct server *s = tool_redis();
    char *url = strdup(getenv("LAPSE_URL"));

    expect(lapse("schedule", "q", "--id", "a", "--in", "0s", "body"), 0, NULL, NULL);
    as_user(s, "~lapse:* &* +@all -set");

    struct proc *l = lapse_start("listen", "q");
    until_err(l, "broke off in the middle of claim");
    proc_signal(l, SIGTERM);
    proc_wait(l, PROC_WAIT_MS);
    proc_free(l);
    setenv("LAPSE_URL", url, 1);
    finds(doctor(), 1, "jobs", "FAIL",
          "1 in none of the sets due, run, dead, kept (a)\",\"fix\":\"lapse doctor q --repair\"");
    finds(doctor(), 1, "jobs", "FAIL",
          "1 in none of the sets due, run, dead, kept (a)"); /* it only looked */
    finds(doctor("--repair"), 0, "jobs", "WARN",
          "1 in none of the sets due, run, dead, kept (a): 1 of them repaired");
    finds(doctor("--repair"), 0, "jobs", "OK", "1, each in one state");
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    expect(
        lapse("list", "q", "--state", "dead"), 0,
        "lapse doctor: the record was in none of the sets due, run, dead, kept\",\"body\":\"body\"",
        NULL);
    expect(lapse("reschedule", "q", "a", "--in", "0s"), 0, NULL, NULL);
    expect(lapse("listen", "q", "--count", "1"), 0, "\"body\":\"body\"", NULL);
    no_jobs(s, "q");
    free(url);
    server_stop(s);
}

Test(doctor, finds_and_repairs_whatever_is_wrong_and_deletes_nothing)
{
    struct server *s = tool_redis();

    for (int i = 0; i < 10; i++) {
        char id[8];
        snprintf(id, sizeof id, "j%d", i);
        put(s, id);
    }

    redis_do(s, "ZREM lapse:{q}:due j0 j1 j2 j3 j4");
    redis_do(s, "ZADD lapse:{q}:dead 5 j5");
    redis_do(s, "HDEL lapse:{q}:jobs j6");
    redis_do(s, "HSET lapse:{q}:attempts left %s", "1 1 me 1 10 5 5 ");
    redis_do(s, "ZREM lapse:{q}:due j7");
    redis_do(s, "ZADD lapse:{q}:run 9e15 j7");
    redis_do(s, "ZADD lapse:{q}:due 5 %b", "odd\0\x1b id", (size_t)8);

    struct proc *p = lapse("doctor", "q");
    cr_assert(has(p, "5 in none of the sets due, run, dead, kept (") && has(p, " ...)") &&
                  has(p, "1 in more than one of the sets due, run, dead, kept (j5)") &&
                  has(p, "2 in a set but without a record (") &&
                  has(p, "1 of which only an attempt is left (left)") &&
                  has(p, "1 running without a holder (j7)") && !has(p, "\x1b"),
              "%s", p->out);
    expect(p, 1, "FAIL  jobs ", NULL);
    finds(doctor("q", "--repair"), 0, "jobs", "WARN", "10 of them repaired");
    finds(doctor("q"), 0, "jobs", "OK", "12, each in one state");
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    server_stop(s);
}

Test(doctor, looks_into_the_queues_that_are_named_or_finds_them)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "a", "--in", "1h"), 0, NULL, NULL);
    expect(lapse("schedule", "b", "--in", "1h"), 0, NULL, NULL);
    redis_do(s, "SET %s x", "lapse:{no queue}:due");
    redis_do(s, "SET lapse:{c}:other x");
    redis_do(s, "HSET lapse:{d}:jobs i x");

    struct proc *p = doctor();
    cr_assert_eq(count_of(p->out, "\"check\":\"jobs\""), 3, "%s", p->out);
    cr_assert(has(p, "\"queue\":\"a\"") && has(p, "\"queue\":\"b\""));
    expect(p, 1, "\"queue\":\"d\",\"verdict\":\"FAIL\"", NULL);
    p = doctor("b");
    cr_assert_eq(count_of(p->out, "\"check\":\"jobs\""), 1, "%s", p->out);
    expect(p, 0, "\"queue\":\"b\",\"verdict\":\"OK\"", NULL);
    redis_do(s, "ACL SETUSER default -scan");
    p = doctor();
    says(p, "jobs", "OK", "no queue");
    finds(p, 0, "queues", "WARN", "lapse doctor QUEUE");
    finds(doctor("-o", "space=other", "b"), 0, "jobs", "OK", "0, each");
    expect(lapse("doctor", "two words"), 2, "", "must be 1 to 64");
    server_stop(s);
}

Test(doctor, of_a_key_that_another_program_wrote_fails_and_repairs_nothing)
{
    struct server *s = tool_redis();

    put(s, "a");
    redis_do(s, "SET lapse:{q}:run x");
    finds(doctor("--repair"), 1, "jobs", "FAIL", "WRONGTYPE");
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:due"), 1);
    server_stop(s);
}

Test(doctor, of_records_of_a_newer_version_warns_and_leaves_them)
{
    struct server *s = tool_redis();
    put(s, "a");
    redis_do(s, "HSET lapse:{q}:jobs a %s", "\x02what");
    finds(doctor("--repair"), 0, "jobs", "WARN", "1 of 1 have a format");
    server_stop(s);
}

Test(doctor, looks_in_small_pages_also_at_large_bodies)
{
    struct server *s = tool_redis();

    redis_do(s, "EVAL %s 0",
             "for i = 1, 20000 do redis.call('ZADD', 'lapse:{q}:due', 9e12, i) redis.call('HSET', "
             "'lapse:{q}:jobs', i, '\\1\\0x') end local large = '\\1\\0' .. string.rep('x', "
             "250000) for i = 1, 50 do redis.call('ZADD', 'lapse:{r}:due', 9e12, i) "
             "redis.call('HSET', 'lapse:{r}:jobs', i, large) end");
    redis_do(s, "ZREM lapse:{q}:due 17");
    redis_do(s, "CONFIG RESETSTAT");
    finds(doctor("q"), 1, "jobs", "FAIL", "1 in none of the sets due, run, dead, kept (17)");

    char *stats = redis_str(s, "INFO commandstats");
    cr_assert_gt(atoi(strstr(stats, "cmdstat_hscan:calls=") + 20), 150, "%s", stats);
    free(stats);
    redis_do(s, "CONFIG RESETSTAT");
    finds(doctor("r"), 0, "jobs", "OK", "50, each");
    stats = redis_str(s, "INFO commandstats");

    char *info = redis_str(s, "INFO server");
    /* Valkey's buckets hold up to seven */
    int least = strstr(info, "valkey_version") ? 50 / 8 : 25;
    free(info);
    cr_assert_gt(atoi(strstr(stats, "cmdstat_hscan:calls=") + 20), least, "%s", stats);
    free(stats);
    server_stop(s);
}

Test(doctor, finds_and_repairs_an_index_that_says_other_than_the_records)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--in", "1h", "--tag", "x", "--tag", "y"), 0, NULL,
           NULL);
    finds(doctor("q"), 0, "jobs", "OK", "1, each in one state");
    redis_do(s, "ZREM lapse:{q}:index %s", "t y a");
    redis_do(s, "ZADD lapse:{q}:index 0 %s 0 %s", "t x gone", "t z a");
    finds(doctor("q"), 1, "jobs", "FAIL",
          "1 with a tag that is not in the index (a); 2 in the index alone (t x gone t z a)");
    finds(doctor("q", "--repair"), 0, "jobs", "WARN", "3 of them repaired");
    finds(doctor("q"), 0, "jobs", "OK", "1, each in one state");
    expect(lapse("list", "q", "--tag", "y"), 0, "\"id\":\"a\"", NULL);
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    server_stop(s);
}

Test(doctor, finds_and_repairs_records_that_follow_no_run)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--in", "1h", "x"), 0, NULL, NULL);
    redis_do(s, "HSET lapse:{q}:next a %b gone x", "\1\0y", (size_t)3);
    finds(doctor("q"), 1, "jobs", "FAIL",
          "2 not running, with a record for after the run (a gone)");
    finds(doctor("q", "--repair"), 0, "jobs", "WARN", "2 of them repaired");
    finds(doctor("q"), 0, "jobs", "OK", "1, each in one state");
    expect(lapse("get", "q", "a"), 0, "\"body\":\"y\"}\n", NULL);
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    server_stop(s);
}

Test(doctor, finds_and_removes_reports_of_no_job)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--in", "1h", "x"), 0, NULL, NULL);
    redis_do(s, "HSET lapse:{q}:report a half gone all");
    finds(doctor("q"), 1, "jobs", "FAIL", "2 with a report that is of no job (");
    finds(doctor("q", "--repair"), 0, "jobs", "WARN", "2 of them repaired");
    finds(doctor("q"), 0, "jobs", "OK", "1, each in one state");
    cr_assert_eq(redis_int(s, "EXISTS lapse:{q}:report"), 0);
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    server_stop(s);
}

Test(doctor, finds_and_removes_errors_of_jobs_that_have_none)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--in", "1h", "--errors", "x"), 0, NULL, NULL);
    redis_do(s, "HSET lapse:{q}:errors a %s gone x", "1 1 1 x");
    finds(doctor("q"), 1, "jobs", "FAIL", "2 in errors, without having any (");
    finds(doctor("q", "--repair"), 0, "jobs", "WARN", "2 of them repaired");
    finds(doctor("q"), 0, "jobs", "OK", "1, each in one state");
    expect(lapse("get", "q", "a"), 0, "\"body\":\"x\"}\n", NULL);
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    server_stop(s);
}

/* Its first moments have been used up by listeners that do not know the calendar. */
static void put_dry(struct server *s, const char *id)
{
    static const char script[] =
        "local key, id, says = KEYS[1], ARGV[1], 'C\\007ticks 5S\\013l 0 0 c ' .. ARGV[2] "
        "redis.call('ZADD', key .. ':due', 9e12, id) "
        "redis.call('HSET', key .. ':jobs', id, '\\2\\0\\024' .. says) "
        "redis.call('HSET', key .. ':attempts', id, '2 0 - 0 10 0 5 n=0,a=0 ') "
        "redis.call('ZADD', key .. ':index', 0, 'r ' .. id)";

    redis_do(s, "EVAL %s 1 lapse:{q} %s 1,2,3", script, id);
}

Test(doctor, warns_of_series_whose_calendar_no_listener_knows)
{
    struct server *s = tool_redis();

    put_dry(s, "a");
    finds(doctor("q"), 0, "series", "WARN",
          "1 without a next moment, as no listener knows the calendar: a by ticks\",\"fix\":"
          "\"lapse_calendar(), or lapse_cron() for cron, in a listener of q: ");
    finds(doctor("q", "--repair"), 0, "jobs", "OK", "1, each in one state");
    put_dry(s, "b");
    put_dry(s, "c");
    put_dry(s, "d");
    struct proc *p = doctor("q");
    says(p, "jobs", "OK", "4, each in one state");
    finds(p, 0, "series", "WARN", "4 without a next moment");
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);

    expect(lapse("cancel", "q", "a", "b", "c", "d"), 0, NULL, NULL);
    finds(doctor("q"), 0, "series", NULL, NULL);
    server_stop(s);
}

/* A job that moves is never taken for a broken one, nor repaired. The bench ends: on a busy machine
 * jobs come faster than they run, and doctor has more to look at each time. */
Test(doctor, beside_running_listeners_finds_nothing_wrong)
{
    struct server *s = tool_redis();
    struct proc *l = lapse_start("listen", "q");
    struct proc *bench = lapse_start("bench", "p", "--rate", "500/s", "--duration", "3s", "--delay",
                                     "500ms", "--listeners", "2", "--json");

    until_depth(s, "q", "listeners", 1); /* so it hears signals */
    for (int64_t end_ms = test_now_ms() + PROC_WAIT_MS; !redis_int(s, "EXISTS lapse:{p}:seq");) {
        cr_assert_lt(test_now_ms(), end_ms, "no job was claimed");
        poll(NULL, 0, 2);
    }

    do {
        struct proc *p = doctor("p", "--repair");
        cr_assert(has(p, "each in one state") && !has(p, "repaired"), "%s%s", p->out, p->err);
        proc_free(p);
    } while (proc_wait(bench, 1) == -1);

    expect(bench, 0, "\"rate_settled\":1500,\"rate_lost\":0,", NULL);
    proc_signal(l, SIGTERM);
    expect(l, 0, NULL, NULL);
    server_stop(s);
}

Test(doctor, of_a_user_who_may_not_look_for_parts_of_no_group_says_so)
{
    struct server *s = tool_redis();

    redis_do(s, "RPUSH lapse:{q}:p:lost x");
    as_user(s, KEYS "+@all -scan");
    finds(doctor("q"), 0, "parts", "WARN", "unknown is whether some are of no group: SCAN: NOPERM");
    finds(doctor(), 0, "parts", NULL, NULL); /* there is no queue whose parts they would be */
    as_user(s, KEYS "+@all -type");
    finds(doctor("q"), 1, "parts", "WARN", "cannot be checked: "); /* of rights that is a FAIL */
    finds(doctor("q", "--repair"), 1, "parts", "FAIL", "cannot be checked: ");
    cr_assert_eq(redis_int(s, "EXISTS lapse:{q}:p:lost"), 1);
    server_stop(s);
}

Test(doctor, makes_dead_jobs_of_parts_that_are_of_no_group)
{
    struct server *s = tool_redis();
    struct proc *p;

    expect(lapse("schedule", "q", "--id", "whole", "--gather", "quiet=1h,most=9", "x"), 0, NULL,
           NULL);
    redis_do(s, "RPUSH lapse:{q}:p:lost %b %b", "\3one", (size_t)4, "\3two", (size_t)4);
    redis_do(s, "RPUSH lapse:{q}:p:odd two");
    redis_do(s, "RPUSH lapse:{other}:p:lost x");
    redis_do(s, "EVAL %s 0",
             "for i = 1, 250 do redis.call('RPUSH', 'lapse:{many}:p:' .. i, '\\1x') "
             "end redis.call('ZADD', 'lapse:{many}:listeners', 1, 'l')");
    redis_do(s, "EVAL %s 0",
             "for i = 1, 9 do redis.call('RPUSH', 'lapse:{large}:p:' .. i, '\\128\\160\\6' .. "
             "string.rep('x', 102400)) end redis.call('ZADD', 'lapse:{large}:listeners', 1, 'l')");

    p = doctor("q");
    cr_assert(!has(p, "{\"check\":\"parts\",\"queue\":\"other"), "%s", p->out);
    finds(p, 1, "parts", "FAIL", "2 lists of parts are of no group, and no job is made of them (");
    p = doctor();
    cr_assert(
        has(p, "{\"check\":\"parts\",\"queue\":\"many\",\"verdict\":\"FAIL\",\"text\":\"250 "),
        "%s", p->out);
    expect(p, 1, "lapse doctor many --repair", NULL);

    finds(doctor("q", "--repair"), 1, "parts", "FAIL",
          "1 of 2 lists of parts that are of no group cannot be the body of a job (lost odd)\","
          "\"fix\":\"redis-cli UNLINK 'lapse:{q}:p:ID'\"");
    redis_do(s, "UNLINK lapse:{q}:p:odd");
    finds(doctor("many", "--repair"), 0, "parts", "WARN",
          "250 lists of parts were of no group: each is the body of a dead job now (");
    finds(doctor("large", "--repair"), 0, "parts", "WARN",
          "9 lists of parts were of no group: each is the body of a dead job now (");
    p = doctor("q", "many", "large");
    says(p, "parts", NULL, NULL);
    cr_assert(has(p, "\"text\":\"2, each in one state\"") &&
                  has(p, "\"text\":\"250, each in one state\"") &&
                  has(p, "\"text\":\"9, each in one state\""),
              "%s", p->out);
    expect(p, 0, NULL, NULL);

    expect(lapse("reschedule", "q", "lost", "--in", "0s"), 0, NULL, NULL);
    expect(lapse("listen", "q", "--count", "1"), 0, "\"parts\":[\"one\",\"two\"]", NULL);
    server_stop(s);
}

/* ---- not at all ---- */
Test(doctor, that_cannot_reach_redis_or_may_not_exits_as_the_others)
{
    struct server *s = tool_redis();

    expect(lapse("doctor", "-u", "unix:///nonexistent/redis.sock"), 69, "", "could not be reached");
    redis_do(s, "CONFIG SET requirepass secret");
    setenv("LAPSE_PASSWORD", "wrong", 1);
    expect(lapse("doctor"), 77, "", "WRONGPASS");
    setenv("LAPSE_PASSWORD", "secret", 1);
    struct proc *p = lapse("doctor", "-v");
    cr_assert(!has(p, "secret") && !strstr(p->err, "secret"));
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

Test(doctor, warns_of_a_queue_with_ten_thousand_dead_jobs)
{
    static const char script[] = "for i = 2, 10000 do redis.call('ZADD', 'lapse:{q}:dead', i, i) "
                                 "redis.call('HSET', 'lapse:{q}:jobs', i, '\\1\\0body') end";
    struct server *s = tool_redis();

    redis_do(s, "EVAL %s 0", script);
    struct proc *p = doctor("q");
    cr_assert(!has(p, "\"dead\""), "%s", p->out);
    expect(p, 0, NULL, NULL);

    expect(lapse("schedule", "q", "--id", "1", "--in", "1h"), 0, NULL, NULL);
    expect(lapse("kill", "q", "1"), 0, NULL, NULL);
    finds(doctor("q"), 0, "dead", "WARN", "10000 dead jobs, which take memory");
    server_stop(s);
}

Test(doctor, shows_the_settings_of_queues_that_have_any)
{
    struct server *s = tool_redis();

    finds(doctor("q"), 0, "settings", NULL, NULL);
    redis_do(s, "SET lapse:{q}:conf %s", "1 rate=5/1000 paused=5 ");
    finds(doctor(), 0, "settings", "OK",
          "\"queue\":\"q\",\"verdict\":\"OK\",\"text\":\"rate=5/1000 ");

    expect(lapse("pause", "q"), 0, NULL, NULL);
    struct proc *p = doctor();
    says(p, "settings", "WARN", "paused, no job is claimed: rate=5/1000 paused=9007199254740992");
    finds(p, 0, "settings", "WARN", "\"fix\":\"lapse unpause q\"");

    expect(lapse("configure", "q", "paused=", "forward=list"), 0, NULL, NULL);
    finds(doctor(), 0, "settings", "OK", "rate=5/1000 forward=list:lapse:{q}:list ");
    redis_do(s, "SET lapse:{q}:list x");
    finds(doctor(), 1, "settings", "FAIL", "jobs wait, for the type of their target is string");

    redis_do(s, "SET lapse:{q}:conf %s", "2 x");
    finds(doctor(), 1, "settings", "FAIL", "in a format that this version cannot read");
    redis_do(s, "DEL lapse:{q}:conf");
    redis_do(s, "LPUSH lapse:{q}:conf x");
    finds(doctor(), 1, "settings", "FAIL", "redis-cli DEL 'lapse:{q}:conf'");
    server_stop(s);
}

/* ---- a cluster ---- */
Test(doctor, of_half_a_queue_in_a_cluster_names_what_is_missing_and_repairs_nothing)
{
    struct cluster *c = cluster_start(1, 0);
    struct server *s = c->nodes[0].server;

    setenv("LAPSE_URL", s->url, 1);
    put(s, "a");
    put(s, "b");
    finds(doctor("q", "--repair"), 0, "jobs", "OK", "2, each in one state");

    redis_do(s, "RENAME lapse:{q}:due {q}");
    finds(doctor("q"), 1, "jobs", "FAIL",
          "missing here is lapse:{q}:due lapse:{q}:run lapse:{q}:dead lapse:{q}:kept");
    finds(doctor("q", "--repair"), 1, "jobs", "FAIL",
          "lapse doctor q --repair --half"); /* once the move is finished */
    cr_assert_eq(redis_int(s, "EXISTS lapse:{q}:dead"), 0);

    redis_do(s, "RENAME {q} lapse:{q}:due");
    finds(doctor("q"), 0, "jobs", "OK", "2, each in one state");

    redis_do(s, "DEL lapse:{q}:due");
    finds(doctor("q", "--repair", "--half"), 0, "jobs", "WARN", "2 of them repaired");
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:dead"), 2);
    cluster_stop(c);
}

Test(doctor, of_a_cluster_says_whether_each_slot_has_a_node_and_none_is_moving)
{
    struct cluster *c = cluster_start(2, 0);
    struct server *s = c->nodes[0].server;
    int slot = cluster_slot(c, "x");
    int own = cluster_owner(c, s, slot);

    setenv("LAPSE_URL", c->nodes[own].server->url, 1);
    finds(doctor(), 0, "slots", "OK", "none of this node is moving");

    cluster_move_begin(c, slot, !own);
    char open[64];
    snprintf(open, sizeof open, "open at this node: %d;", slot);
    finds(doctor(), 0, "slots", "WARN", open);
    finds(doctor(), 0, "slots", "WARN", "\"fix\":\"lapse doctor with the URL of the cluster\"");
    redis_do(c->nodes[own].server, "CLUSTER SETSLOT %d STABLE", slot);

    redis_do(c->nodes[own].server, "CLUSTER DELSLOTS %d", slot);
    finds(doctor(), 1, "slots", "FAIL", "1 of 16384 have no node");
    redis_do(c->nodes[own].server, "CLUSTER ADDSLOTS %d", slot);

    as_user(c->nodes[own].server, "~* &* +@all -cluster|info");
    finds(doctor(), 0, "slots", "WARN", "may not run CLUSTER INFO");
    as_user(c->nodes[own].server, "~* &* +@all -cluster|nodes");
    finds(doctor(), 0, "slots", "WARN", "unknown is which are moving");

    server_kill9(c->nodes[!own].server);
    int64_t deadline = test_now_ms() + 30000;
    for (bool seen = false; !seen;) {
        char *info = redis_str(c->nodes[own].server, "CLUSTER INFO");
        seen = !strstr(info, "cluster_slots_ok:16384");
        free(info);
        cr_assert(test_now_ms() < deadline);
        poll(NULL, 0, 10);
    }
    finds(doctor(), 1, "slots", "FAIL", "of nodes that do not answer");
    cluster_stop(c);
}

Test(doctor, of_a_cluster_says_what_a_dead_master_would_take_along)
{
    struct cluster *c = cluster_start(1, 0);
    struct server *s = c->nodes[0].server;

    setenv("LAPSE_URL", s->url, 1);
    finds(doctor(), 0, "coverage", "OK", "not required");
    finds(doctor(), 0, "timeout", "OK", "2.0 s");

    redis_do(s, "CONFIG SET cluster-require-full-coverage yes");
    redis_do(s, "CONFIG SET cluster-node-timeout 15000");
    finds(doctor(), 0, "coverage", "WARN", "CONFIG SET cluster-require-full-coverage no");
    finds(doctor(), 0, "timeout", "WARN", "15.0 s: about 22 s after");

    as_user(s, "~* &* +@all -config");
    finds(doctor(), -1, "coverage", "OK", "may not run CONFIG GET");
    finds(doctor(), -1, "timeout", "OK", "may not run CONFIG GET");
    cluster_stop(c);
}

Test(doctor, of_a_cluster_names_queues_that_are_too_large_to_be_moved)
{
    struct cluster *c = cluster_start(1, 0);
    struct server *s = c->nodes[0].server;
    struct proc *p;

    setenv("LAPSE_URL", s->url, 1);
    redis_do(s, "EVAL %s 1 lapse:{q}:due",
             "for first = 1, 250000, 1000 do local row = {} for i = first, first + 999 do "
             "row[#row + 1] = 9e12 row[#row + 1] = i end "
             "redis.call('ZADD', KEYS[1], unpack(row)) end");
    p = doctor("q");
    proc_wait(p, PROC_WAIT_MS);
    says(p, "size", NULL, NULL);
    proc_free(p);
    redis_do(s, "ZADD lapse:{q}:due 9e12 one");
    finds(doctor("q"), 1, "size", "WARN", "250001 jobs wait");
    cluster_stop(c);
}
