/* SPDX-License-Identifier: MIT */
/* lapse listen without a command: a line per job, and when it stops. */
#include "tool.h"
#include "audit.h"
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

static void schedule(const char *id, const char *in, const char *body)
{
    expect(lapse("schedule", "--in", in, "--id", id, "--", "q", body), 0, NULL, NULL);
}

Test(listen, prints_one_json_line_for_each_job_and_it_is_done)
{
    struct server *s = tool_redis();
    /* without a sweep, which might be first */
    struct proc *p = lapse_start("listen", "q", "-v", "-o", "sweep_ms=1h");
    char expected[400];
    char via[16];

    until_err(p, "listening on");
    schedule("first", "300ms", "caf\xc3\xa9");
    until_out(p, "\n");

    double late;
    char *late_at = strstr(p->out, "\"late_ms\":");
    cr_assert(late_at && sscanf(late_at, "\"late_ms\":%lf", &late) == 1 && late >= 0, "%s", p->out);
    cr_assert_eq(strspn(strchr(late_at, '.') + 1, "0123456789"), 3, "%s", p->out);
    cr_assert_eq(sscanf(strstr(p->out, "\"via\":"), "\"via\":\"%15[a-z]", via), 1);
    cr_assert(strstr("touch event notice alarm sweep", via), "%s", via);
    snprintf(expected, sizeof expected,
             "{\"queue\":\"q\",\"id\":\"first\",\"body\":\"caf\xc3\xa9\",\"due_ms\":%lld,\"late_"
             "ms\":%.3f,\"try\":1,\"token\":%lld,\"via\":\"%s\"}\n",
             member(p->out, "due_ms"), late, member(p->out, "token"), via);
    cr_assert_str_eq(p->out, expected);
    until_depth(s, "q", "run", 0);
    schedule("second", "0s", "\xff");
    until_out(p, "\"body_base64\":\"/w==\"");
    until_out(p, "\"via\":\"notice\"");
    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, "claimed 2, done 2");
    no_jobs(s, "q");
    server_stop(s);
}

Test(listen, hears_several_queues_and_ids_byte_for_byte)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "--in", "0s", "--id", "-rf", "--", "a", "$(x)"), 0, NULL, NULL);
    expect(lapse("schedule", "--in", "0s", "--id", ";ls", "--", "b", "%s"), 0, NULL, NULL);
    expect(lapse("schedule", "--in", "0s", "--id", "*", "--", "b", "`x`"), 0, NULL, NULL);

    struct proc *p = lapse("listen", "a", "b", "--drain");
    cr_assert(has(p, "{\"queue\":\"a\",\"id\":\"-rf\",\"body\":\"$(x)\",") &&
                  has(p, "{\"queue\":\"b\",\"id\":\";ls\",\"body\":\"%s\",") &&
                  has(p, "{\"queue\":\"b\",\"id\":\"*\",\"body\":\"`x`\","),
              "%s", p->out);
    cr_assert_eq(count_of(p->out, "\n"), 3);
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

/* ---- several queues ---- */
enum { SHARED = 40 };

static void schedule_shared(void)
{
    expect(shell("for i in 1 2 3 4; do for queue in log sms sms sms mail mail mail mail mail mail; "
                 "do $lapse schedule $queue --in 0s || exit; done > /dev/null; done"),
           0, "", NULL);
}

/* How many of the first n lines are of the queue. */
static int lines_of(const char *text, const char *queue, int n)
{
    char start[40];
    int found = 0;

    snprintf(start, sizeof start, "{\"queue\":\"%s\"", queue);
    for (; n > 0 && *text; n--) {
        found += strncmp(text, start, strlen(start)) == 0;
        text = strchr(text, '\n') + 1;
    }
    return found;
}

Test(listen, to_queues_with_weights_runs_jobs_of_each_by_its_weight)
{
    enum { FIRST = SHARED / 2, OFF = 1 };
    struct server *s = tool_redis();

    schedule_shared();
    struct proc *p = lapse("listen", "log:1", "sms:3", "mail:6", "-j", "1", "--drain");
    cr_assert_eq(count_of(p->out, "\n"), SHARED, "%s", p->out);
    cr_assert_leq(abs(lines_of(p->out, "mail", FIRST) - 12), OFF, "%s", p->out);
    cr_assert_leq(abs(lines_of(p->out, "sms", FIRST) - 6), OFF, "%s", p->out);
    cr_assert_leq(abs(lines_of(p->out, "log", FIRST) - 2), OFF, "%s", p->out);
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

Test(listen, with_strict_runs_all_jobs_of_a_queue_before_those_of_the_next)
{
    struct server *s = tool_redis();

    schedule_shared();
    struct proc *p = lapse("listen", "--strict", "sms", "log", "mail", "-j", "1", "--drain");
    cr_assert_eq(count_of(p->out, "\n"), SHARED, "%s", p->out);
    cr_assert_eq(lines_of(p->out, "sms", 12), 12, "%s", p->out);
    cr_assert_eq(lines_of(p->out, "log", 16), 4, "%s", p->out);
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

Test(listen, with_count_runs_so_many_and_not_one_more)
{
    struct server *s = tool_redis();

    for (int i = 0; i < 9; i++) {
        char id[8];
        snprintf(id, sizeof id, "i%d", i);
        schedule(id, "0s", "");
    }

    struct proc *p = lapse("listen", "q", "--count", "4");
    cr_assert_eq(count_of(p->out, "\n"), 4, "%s", p->out);
    expect(p, 0, NULL, NULL);
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:due"), 5);
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:run"), 0);
    p = lapse("listen", "q", "--count", "5", "-j", "1");
    cr_assert_eq(count_of(p->out, "\"try\":1,"), 5, "%s", p->out);
    expect(p, 0, NULL, NULL);
    no_jobs(s, "q");
    server_stop(s);
}

Test(listen, with_drain_runs_what_is_due_and_leaves_the_rest)
{
    struct server *s = tool_redis();

    expect(lapse("listen", "q", "r", "--drain"), 0, "", NULL);
    schedule("now", "0s", "");
    schedule("later", "1h", "");
    struct proc *p = lapse("listen", "q", "r", "--drain", "-j", "1");
    cr_assert_eq(count_of(p->out, "\n"), 1, "%s", p->out);
    expect(p, 0, "\"now\"", NULL);
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:due"), 1);
    server_stop(s);
}

Test(listen, to_a_pattern_runs_the_jobs_of_its_queues_that_are_there_and_that_come)
{
    struct server *s = tool_redis();

    expect(lapse("listen", "email.*", "--drain"), 0, "", NULL);
    expect(lapse("schedule", "email.a", "--id", "now", "--in", "0s", "x"), 0, NULL, NULL);
    expect(lapse("schedule", "email.a", "--id", "later", "--in", "1h", "x"), 0, NULL, NULL);
    expect(lapse("schedule", "sms", "--id", "other", "--in", "0s", "x"), 0, NULL, NULL);
    struct proc *p = lapse("listen", "email.*", "--drain");
    cr_assert_eq(count_of(p->out, "\n"), 1, "%s", p->out);
    expect(p, 0, "{\"queue\":\"email.a\",\"id\":\"now\"", NULL);

    p = lapse_start("listen", "email.*:3", "sms", "--count", "3");
    until_out(p, "\"other\"");
    expect(lapse("schedule", "email.new", "--id", "new", "--in", "0s", "x"), 0, NULL, NULL);
    until_out(p, "{\"queue\":\"email.new\",\"id\":\"new\"");
    expect(lapse("schedule", "email.a", "--id", "last", "--in", "0s", "x"), 0, NULL, NULL);
    expect(p, 0, "\"last\"", "");
    cr_assert_eq(redis_int(s, "ZCARD lapse:{email.a}:due"), 1);
    server_stop(s);
}

/* Reads what the server runs up to the next look at a depth. true: it is that of this queue. */
static bool next_look_is_at(redisContext *monitor, const char *queue)
{
    char wanted[80];

    snprintf(wanted, sizeof wanted, "\"ZCOUNT\" \"lapse:{%s}:run\"", queue);
    for (;;) {
        redisReply *r = NULL;
        cr_assert_eq(redisGetReply(monitor, (void **)&r), REDIS_OK, "%s", monitor->errstr);
        bool is_look = strstr(r->str, "\"ZCOUNT\"") && strstr(r->str, ":run\"");
        bool is_wanted = strstr(r->str, wanted) != NULL;
        freeReplyObject(r);
        if (is_look) {
            return is_wanted;
        }
    }
}

/* Of thousands of queues only one would be asked for, 20 times a second. */
Test(listen, with_drain_looks_at_one_queue_of_a_pattern_while_that_has_jobs)
{
    struct server *s = tool_redis();
    redisContext *monitor = redisConnectUnix(s->socket);
    char path[120];
    int row = 0;

    for (int i = 0; i < 3; i++) {
        expect(lapse("schedule", "email.busy", "--in", "0s", "x"), 0, NULL, NULL);
    }
    expect(lapse("schedule", "email.a", "--in", "1h", "x"), 0, NULL, NULL);
    expect(lapse("schedule", "email.z", "--in", "1h", "x"), 0, NULL, NULL);
    freeReplyObject(redisCommand(monitor, "MONITOR"));
    snprintf(path, sizeof path, "%s/go", s->dir);
    struct proc *p = lapse_start("listen", "email.*", "--drain", "-j", "1", "--exec", "--", "sh",
                                 "-c", "until test -e \"$0\"; do sleep 0.05; done", path);
    for (int looks = 0; looks < 100 && row < 20; looks++) {
        row = next_look_is_at(monitor, "email.busy") ? row + 1 : 0;
    }
    redisFree(monitor);
    cr_expect_eq(row, 20);
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    expect(p, 0, NULL, "");
    cr_assert_eq(redis_int(s, "EXISTS lapse:{email.busy}:due"), 0);
    server_stop(s);
}

Test(listen, with_drain_ends_although_new_jobs_never_do)
{
    struct server *s = tool_redis();

    for (int i = 0; i < 20; i++) {
        char id[8];
        snprintf(id, sizeof id, "i%d", i);
        schedule(id, "0s", "");
    }

    /* each run leaves a new one that is due at once */
    setenv("MY_URL", s->url, 1);

    struct proc *p = shell("$lapse listen q --drain -j 2 --exec -- sh -c 'LAPSE_URL=$MY_URL $lapse "
                           "schedule q --in 0s > /dev/null'");
    expect(p, 0, "", NULL);
    cr_assert(redis_int(s, "ZCARD lapse:{q}:due") >= 10);
    server_stop(s);
}

Test(listen, waits_for_a_redis_that_is_not_there_yet)
{
    struct server *s = tool_redis();

    redis_do(s, "CONFIG SET appendfsync always");
    schedule("i", "0s", "");
    server_kill9(s);
    struct proc *p = lapse_start("listen", "q", "-o", "reply_ms=200");
    until_err(p, "lapse: ");
    server_restart(s);
    until_out(p, "\"id\":\"i\"");
    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

Test(listen, with_no_wait_exits_69_if_redis_is_not_there)
{
    setenv("LAPSE_URL", "unix:///nonexistent/redis.sock", 1);
    expect(lapse("listen", "q", "--no-wait", "-o", "reply_ms=200"), 69, "",
           "unix:///nonexistent/redis.sock");
    expect(lapse("listen", "q", "--no-wait", "--drain", "-o", "reply_ms=200"), 69, "",
           "could not be reached");
}

Test(listen, that_waited_for_redis_says_when_it_is_there)
{
    struct server *s = tool_redis();

    server_kill9(s);
    struct proc *p = lapse_start("listen", "q", "-o", "reply_ms=200");
    until_err(p, "cannot connect");
    server_restart(s);
    until_err(p, "connected to Redis at");
    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

Test(listen, takes_back_without_being_asked_that_redis_is_away)
{
    struct server *s = tool_redis();
    struct proc *p = lapse_start("listen", "q");

    until_depth(s, "q", "listeners", 1);
    server_kill9(s);
    until_err(p, "cannot connect");
    server_restart(s);
    until_err(p, "connected again to Redis");
    cr_expect_eq(count_of(p->err, "cannot connect"), 1, "%s", p->err);
    server_kill9(s);
    server_restart(s);
    schedule("i", "0s", "");
    until_out(p, "\"id\":\"i\"");
    proc_signal(p, SIGTERM);
    proc_wait(p, PROC_WAIT_MS);

    char *last = p->err;
    for (char *at = p->err; (at = strstr(at, "to Redis at")); at++) {
        last = at;
    }

    cr_expect(last - p->err > 16 && strncmp(last - 16, "connected again ", 16) == 0, "%s", p->err);
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

static void as(struct server *s, const char *user)
{
    char url[200];
    snprintf(url, sizeof url, "unix://%s:secret@%s", user, s->socket);
    setenv("LAPSE_URL", url, 1);
}

Test(listen, without_the_rights_of_a_listener_exits_77_at_the_start)
{
    struct server *s = tool_redis();

    as(s, "lapse_producer");
    expect(lapse("listen", "q"), 77, "", "permission denied: this user lacks a permission");
    as(s, "lapse_monitor");
    expect(lapse("listen", "q"), 77, "", "lapse doctor");
    as(s, "lapse_listener");
    /* of the ring of listeners alone */
    redis_do(s, "ACL SETUSER lapse_listener -zremrangebyscore");
    expect(lapse("listen", "q"), 77, "", "lapse doctor");
    server_stop(s);
}

Test(listen, to_a_pattern_exits_77_where_the_registry_may_not_be_read)
{
    struct server *s = tool_redis();

    as(s, "lapse_listener");
    redis_do(s, "ACL SETUSER lapse_listener resetkeys ~lapse:{email.*}:* ~lapse:{}:alive");
    expect(lapse("listen", "email.*"), 77, "", "email.*: permission denied");
    server_stop(s);
}

Test(listen, on_a_replica_exits_69_at_the_start)
{
    struct server *s = tool_redis();

    redis_do(s, "REPLICAOF 127.0.0.1 1");
    redis_do(s, "CONFIG SET replica-serve-stale-data yes");
    expect(lapse("listen", "q"), 69, "",
           "is a replica, which takes no writes; use the URL of its master");
    server_stop(s);
}

Test(listen, to_several_queues_blames_none_of_them_where_one_is_refused)
{
    struct server *s = tool_redis();

    as(s, "lapse_listener");
    redis_do(s, "ACL SETUSER lapse_listener resetkeys ~lapse:{orders}:* resetchannels allchannels");
    struct proc *p = lapse_start("listen", "orders", "mail");
    proc_wait(p, PROC_WAIT_MS);
    cr_expect(!strstr(p->err, "orders: permission denied"), "%s", p->err);
    expect(p, 77, "", "listen: permission denied");
    server_stop(s);
}

/* Only what comes later is a refusal that matters: here none does. */
Test(listen, without_the_right_to_subscribe_is_late_and_not_shut_out)
{
    struct server *s = tool_redis();

    as(s, "lapse_listener");
    redis_do(s, "ACL SETUSER lapse_listener -psubscribe -subscribe");

    struct proc *p = lapse_start("listen", "q", "--connect-wait", "1h", "-o", "reply_ms=200ms");
    until_err(p, "refuses the subscription");
    server_kill9(s);
    until_err(p, "cannot connect");
    server_restart(s);
    redis_do(s, "ACL SETUSER lapse_listener on >secret ~* &* +@all -psubscribe -subscribe");
    schedule("i", "0s", "");
    until_out(p, "\"id\":\"i\"");
    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

/* Of a part of INFO: the number behind this text. */
static long long told(struct server *s, const char *part, const char *text)
{
    char *info = redis_str(s, "INFO %s", part);
    char *at = strstr(info, text);
    long long n = at ? atoll(at + strlen(text)) : 0;
    free(info);
    return n;
}

static void until_told(struct server *s, const char *part, const char *text, long long n)
{
    int64_t end = test_now_ms() + 10000;
    while (told(s, part, text) < n && test_now_ms() < end) {
        poll(NULL, 0, 5);
    }
    cr_assert(told(s, part, text) >= n, "%s%lld", text, told(s, part, text));
}

/* A failover: what it asks is refused, five times a second. */
Test(listen, says_once_that_its_claims_are_refused_and_once_that_they_are_answered_again)
{
    struct server *s = tool_redis();
    struct proc *p = lapse_start("listen", "q", "-o", "sweep_ms=100ms");

    schedule("later", "1h", ""); /* a queue that has jobs is looked at each sweep_ms */
    until_told(s, "commandstats", "cmdstat_exists:calls=", 30); /* it has worked for a while */
    proc_signal(p, SIGSTOP); /* it does not claim the job before that is refused */
    schedule("i", "0s", "");
    redis_do(s, "REPLICAOF 127.0.0.1 1");
    proc_signal(p, SIGCONT);
    until_told(s, "errorstats", "errorstat_READONLY:count=", 20);
    until_err(p, "READONLY");
    redis_do(s, "REPLICAOF NO ONE");
    until_err(p, "accepts claims again");
    until_out(p, "\"id\":\"i\"");
    cr_expect_leq(count_of(p->err, "refused claim"), 1, "%s", p->err);
    cr_expect_leq(count_of(p->err, "refused touch"), 1, "%s", p->err);
    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

/* It has claimed nothing yet, and has not looked for jobs often. */
Test(listen, to_an_empty_queue_outlives_a_failover)
{
    struct server *s = tool_redis();
    struct proc *p = lapse_start("listen", "q", "-o", "sweep_ms=100ms");

    until_told(s, "commandstats", "cmdstat_exists:calls=", 6);
    redis_do(s, "REPLICAOF 127.0.0.1 1");
    until_err(p, "READONLY"); /* its heartbeat */
    redis_do(s, "REPLICAOF NO ONE");
    schedule("i", "0s", "");
    until_out(p, "\"id\":\"i\"");
    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

Test(listen, ends_on_int_and_term_while_redis_is_away)
{
    setenv("LAPSE_URL", "unix:///nonexistent/redis.sock", 1);
    struct proc *p = lapse_start("listen", "q");
    until_err(p, "lapse: ");
    proc_signal(p, SIGINT);
    expect(p, 0, "", NULL);
}

Test(listen, ends_on_hup_as_on_term)
{
    struct server *s = tool_redis();
    struct proc *p = lapse_start("listen", "q", "-v");

    until_err(p, "listening on");
    proc_signal(p, SIGHUP);
    expect(p, 0, "", "claimed 0");
    server_stop(s);
}

Test(listen, prints_its_statistics_on_usr1)
{
    struct server *s = tool_redis();
    struct proc *p = lapse_start("listen", "q");

    schedule("i", "0s", "");
    until_out(p, "\n");
    until_depth(s, "q", "run", 0);
    proc_signal(p, SIGUSR1);
    until_err(p, ": 1 job, p50 ");
    cr_assert(strstr(p->err, "claimed 1") && strstr(p->err, "late by "), "%s", p->err);
    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, "running here ");
    server_stop(s);
}

Test(listen, ends_as_ever_when_usr1_comes_at_its_end)
{
    struct server *s = tool_redis();

    for (int i = 0; i < 10; i++) {
        struct proc *p = lapse_start("listen", "q");

        schedule("i", "0s", "");
        until_out(p, "\n");
        proc_signal(p, SIGTERM);
        for (; p->pid; proc_wait(p, 0)) {
            for (int k = 0; k < 1000; k++) {
                proc_signal(p, SIGUSR1);
            }
        }
        expect(p, 0, NULL, NULL);
    }
    server_stop(s);
}

Test(listen, puts_back_what_a_closed_stdout_did_not_take)
{
    struct server *s = tool_redis();

    schedule("i", "0s", "body");

    /* its reader is gone before it starts */
    expect(shell("d=$(mktemp -d); mkfifo $d/gone; trap 'rm -r $d' EXIT; { read -r _ < $d/gone; "
                 "$lapse listen q; } | { exec 0<&-; echo > $d/gone; }"),
           0, "", NULL);

    struct proc *p = shell("$lapse listen q > /dev/full");
    expect(p, 74, "",
           "stdout: No space left on device; returning 1 job to the queue without using a try");
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    p = lapse("get", "q", "i");
    cr_assert(has(p, "\"state\":\"waiting\"") && has(p, "\"try\":0"), "%s", p->out);
    expect(p, 0, NULL, NULL);
    p = lapse("listen", "q", "--count", "1");
    expect(p, 0, "\"body\":\"body\"", NULL);
    no_jobs(s, "q");
    server_stop(s);
}

/* As with head: the first line is read, and the next two nobody can have seen. */
Test(listen, whose_reader_goes_away_uses_no_try_of_what_it_did_not_print)
{
    struct server *s = tool_redis();
    struct proc *p = lapse_start("listen", "q");

    schedule("one", "0s", "");
    until_out(p, "\"one\"");
    until_depth(s, "q", "run", 0);
    close(p->out_fd);
    p->out_fd = -1;
    expect(lapse("schedule", "q", "--id", "two", "--in", "0s", "--tries", "1"), 0, NULL, NULL);
    expect(lapse("schedule", "q", "--id", "three", "--in", "0s", "--tries", "1"), 0, NULL, NULL);
    expect(p, 141, NULL, "");
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:due"), 2);
    p = lapse("get", "q", "two");
    cr_assert(has(p, "\"state\":\"waiting\"") && has(p, "\"try\":0"), "%s", p->out);
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

Test(listen, exits_141_in_silence_when_its_reader_goes_away)
{
    struct server *s = tool_redis();
    struct proc *p = lapse_start("listen", "q");

    schedule("one", "0s", "");
    until_out(p, "\"one\"");
    until_depth(s, "q", "run", 0);
    close(p->out_fd);
    p->out_fd = -1;
    schedule("two", "0s", "");
    cr_assert_eq(proc_wait(p, PROC_WAIT_MS), 141, "%s", p->err);
    cr_assert_eq(p->err_len, 0, "%s", p->err);
    proc_free(p);
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:due"), 1);
    server_stop(s);
}

/* A pipe holds 64 KiB; the rest waits in the listener, whose loop goes on and renews. */
Test(listen, keeps_its_leases_while_its_reader_is_slow)
{
    struct server *s = tool_redis();
    char *body = calloc(1, 50001);

    memset(body, 'x', 50000);

    for (int i = 0; i < 6; i++) {
        char id[8];
        snprintf(id, sizeof id, "i%d", i);
        schedule(id, "0s", body);
    }

    free(body);

    struct proc *p = lapse_start("listen", "q", "-o", "lease_ms=9000", "-o", "sweep_ms=100");
    until_depth(s, "q", "due", 0);
    until_depth(s, "q", "run", 5); /* the pipe has room for one */
    until_renewed(s, "q", 2);
    until_depth(s, "q", "run", 5);

    for (int i = 0; i < 6; i++) {
        char id[16];
        snprintf(id, sizeof id, "\"id\":\"i%d\"", i);
        until_out(p, id);
    }

    until_depth(s, "q", "run", 0);
    proc_signal(p, SIGTERM);
    proc_wait(p, PROC_WAIT_MS);
    cr_assert_eq(count_of(p->out, "\"try\":1,"), 6);
    expect(p, 0, NULL, NULL);
    no_jobs(s, "q");
    server_stop(s);
}

Test(policy, that_evicts_any_key_keeps_a_listener_from_starting_unless_forced)
{
    struct server *s = tool_redis();

    redis_do(s, "CONFIG SET maxmemory-policy allkeys-lru");
    expect(lapse("schedule", "q", "--id", "i", "--in", "0s"), 0, NULL, NULL);
    expect(lapse("listen", "q"), 78, "", "maxmemory-policy noeviction");
    expect(lapse("listen", "q", "--drain"), 78, "", "or use --force");
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:due"), 1);
    expect(lapse("listen", "q", "--count", "1", "--force"), 0, "\"id\":\"i\"", NULL);
    expect(lapse("schedule", "q", "--id", "j", "--in", "0s"), 0, NULL, NULL);
    expect(lapse("listen", "q", "--count", "1", "-o", "flags=may_evict"), 0, "\"id\":\"j\"", NULL);
    redis_do(s, "CONFIG SET maxmemory-policy noeviction");
    no_jobs(s, "q");
    server_stop(s);
}

Test(policy, that_gets_bad_does_not_stop_a_listener_that_has_begun)
{
    struct server *s = tool_redis();
    struct proc *l = lapse_start("listen", "q");

    expect(lapse("schedule", "q", "--id", "i", "--in", "0s"), 0, NULL, NULL);
    until_out(l, "\"id\":\"i\"");
    redis_do(s, "CONFIG SET maxmemory-policy allkeys-random");
    redis_do(s, "CLIENT KILL TYPE normal SKIPME yes");
    until_err(l, "takes no jobs");
    expect(lapse("schedule", "q", "--id", "j", "--in", "0s"), 0, NULL, NULL);
    redis_do(s, "CONFIG SET maxmemory-policy noeviction");
    until_out(l, "\"id\":\"j\"");
    proc_signal(l, SIGTERM);
    expect(l, 0, NULL, NULL);
    server_stop(s);
}
