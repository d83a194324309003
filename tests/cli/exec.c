/* SPDX-License-Identifier: MIT */
/* lapse listen --exec: what a command gets, what its end means. */
#include "tool.h"
#include "audit.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static void schedule(const char *id, const char *body)
{
    expect(lapse("schedule", "--in", "0s", "--backoff", "1h", "--id", id, "--", "q", body), 0, NULL,
           NULL);
}

#define run_one(...) lapse("listen", "q", "--count", "1", "--exec", "--", __VA_ARGS__)

Test(exec, gets_body_on_stdin_and_the_rest_in_its_environment)
{
    struct server *s = tool_redis();

    schedule("$(x)", "the body");

    struct proc *g = lapse("get", "--", "q", "$(x)");
    char due[60];
    snprintf(due, sizeof due, "LAPSE_DUE_MS=%lld\n", member(g->out, "due_ms"));
    proc_free(g);
    setenv("LAPSE_TRY", "forged", 1);

    struct proc *p = run_one("sh", "-c", "cat; echo; env", "lapse");
    cr_assert(has(p, "the body\n") && has(p, "LAPSE_QUEUE=q\n") && has(p, "LAPSE_ID=$(x)\n"), "%s",
              p->out);
    cr_assert(has(p, "LAPSE_TRY=1\n") && has(p, "\nLAPSE_TOKEN=1") &&
                  !has(p, "\nLAPSE_TOKEN=1\n") && has(p, due) && has(p, "LAPSE_LATE_MS="),
              "%s", p->out);
    cr_assert(!has(p, "forged") && !has(p, "LAPSE_URL"), "%s", p->out);
    expect(p, 0, NULL, NULL);
    no_jobs(s, "q");
    server_stop(s);
}

Test(exec, of_odd_ids_and_bodies_is_byte_for_byte)
{
    static const char *const odd[] = {"-rf", "$(x)", ";ls", "%s", "*", "`id`", "\"'\\", "|&>"};
    struct server *s = tool_redis();

    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        char expected[64];
        schedule(odd[i], odd[i]);
        snprintf(expected, sizeof expected, "%s %s.", odd[i], odd[i]);
        struct proc *p = run_one("sh", "-c", "printf '%s %s.' \"$LAPSE_ID\" \"$(cat)\"");
        cr_assert_str_eq(p->out, expected);
        expect(p, 0, NULL, NULL);
    }

    no_jobs(s, "q");
    server_stop(s);
}

static const struct {
    const char *command, *state, *why;
} ends[] = {
    {"exit 75", "waiting", "exit status 75"},
    {"exit 3", "waiting", "exit status 3"},
    {"exit 127", "waiting", "exit status 127"},
    {"exit 65", "dead", "exit status 65"},
    {"kill -9 $$", "waiting", "killed by signal 9"},
    {"kill -11 $$", "waiting", "killed by signal 11"},
};

Test(exec, status_is_the_verdict)
{
    struct server *s = tool_redis();

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char id[8];
        char state[40];
        snprintf(id, sizeof id, "i%zu", i);
        snprintf(state, sizeof state, "\"state\":\"%s\"", ends[i].state);
        schedule(id, "");
        expect(run_one("sh", "-c", ends[i].command), 0, "", NULL);
        struct proc *p = lapse("get", "q", id);
        cr_expect(has(p, state) && has(p, ends[i].why) && member(p->out, "try") == 1, "%s: %s",
                  ends[i].command, p->out);
        proc_free(p);
    }

    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    server_stop(s);
}

Test(exec, that_fails_waits_no_longer_than_backoff_max)
{
    struct server *s = tool_redis();

    expect(
        lapse("schedule", "q", "--id", "i", "--in", "0s", "--backoff", "1h", "--backoff-max", "2m"),
        0, NULL, NULL);

    int64_t before = redis_now_ms(s);
    expect(run_one("false"), 0, NULL, NULL);

    struct proc *p = lapse("get", "q", "i");
    long long due = member(p->out, "due_ms");
    /* jittered */
    cr_assert(due >= before + 90000 && due <= redis_now_ms(s) + 120000, "%s", p->out);
    expect(p, 0, "\"state\":\"waiting\"", NULL);
    server_stop(s);
}

Test(exec, that_fails_is_logged_with_its_try_and_what_becomes_of_it)
{
    struct server *s = tool_redis();

    expect(
        lapse("schedule", "mail", "--id", "tmp", "--in", "0s", "--tries", "2", "--backoff", "1ms"),
        0, NULL, NULL);

    struct proc *p = lapse("listen", "mail", "--count", "2", "--exec", "--", "sh", "-c", "exit 75");
    cr_expect(strstr(p->err, "lapse: mail/tmp: try 1 of 2: exit status 75: will run again\n"), "%s",
              p->err);
    expect(p, 0, "", "lapse: mail/tmp: try 2 of 2: exit status 75: dead\n");
    expect(lapse("get", "mail", "tmp"), 0, "\"reason\":\"exit status 75\"", NULL);

    /* it is not due again before the next job */
    expect(lapse("schedule", "mail", "--id", "once", "--in", "0s", "--tries", "forever",
                 "--backoff", "1h"),
           0, NULL, NULL);
    p = lapse("listen", "mail", "--count", "1", "--exec", "--", "sh", "-c", "kill -9 $$");
    expect(p, 0, "", "lapse: mail/once: try 1: killed by signal 9: will run again\n");
    expect(lapse("schedule", "mail", "--id", "bad", "--in", "0s"), 0, NULL, NULL);
    p = lapse("listen", "mail", "--count", "1", "--exec", "--", "sh", "-c", "exit 65");
    expect(p, 0, "", "lapse: mail/bad: try 1 of 10: exit status 65: dead\n");
    expect(lapse("schedule", "mail", "--id", "good", "--in", "0s"), 0, NULL, NULL);
    p = lapse("listen", "mail", "--count", "1", "--exec", "--", "true");
    cr_expect(!strstr(p->err, "mail/"), "%s", p->err);
    expect(p, 0, "", NULL);
    server_stop(s);
}

Test(exec, command_sees_fds_0_1_2_only)
{
    struct server *s = tool_redis();
    int fd = open("/dev/null", O_RDONLY); /* of the parent, and not O_CLOEXEC */

    cr_assert(fd > 2 && dup2(fd, 77) == 77);
    schedule("a", "");
    schedule("b", "");
    struct proc *p = lapse("listen", "q", "--count", "2", "-j", "2", "--exec", "--", "sh", "-c",
                           "ls /proc/$$/fd; true");
    cr_assert_str_eq(p->out, "0\n1\n2\n0\n1\n2\n");
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

Test(exec, command_has_ordinary_signals_and_a_group_of_its_own)
{
    struct server *s = tool_redis();

    schedule("a", "");

    struct proc *p = run_one("sh", "-c",
                             "echo group $(cut -d ' ' -f 5 /proc/$$/stat) is $$; exec grep -E "
                             "'Sig(Ign|Blk)' /proc/self/status");
    long group;
    long self;
    cr_assert_eq(sscanf(p->out, "group %ld is %ld", &group, &self), 2, "%s", p->out);
    cr_assert_eq(group, self);

    unsigned long long ignored = strtoull(strstr(p->out, "SigIgn:") + 7, NULL, 16);
    cr_assert(strstr(p->out, "SigBlk:\t0000000000000000") && !(ignored & 1u << (SIGPIPE - 1)), "%s",
              p->out);
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

Test(exec, body_of_1_mib_arrives_and_one_that_is_not_read_does_no_harm)
{
    struct server *s = tool_redis();

    expect(shell("head -c 1048576 /dev/zero | $lapse schedule q --in 0s -"), 0, NULL, NULL);
    expect(run_one("wc", "-c"), 0, "1048576\n", NULL);
    expect(shell("head -c 1048576 /dev/zero | $lapse schedule q --in 0s -"), 0, NULL, NULL);
    expect(run_one("true"), 0, "", NULL);
    expect(shell("head -c 1048576 /dev/zero | $lapse schedule q --in 0s -"), 0, NULL, NULL);
    expect(run_one("sh", "-c", "exec <&-; exit 0"), 0, "", NULL);
    no_jobs(s, "q");
    server_stop(s);
}

Test(exec, at_run_ms_the_group_gets_term)
{
    struct server *s = tool_redis();

    schedule("i", "");
    struct proc *p =
        lapse("listen", "q", "--count", "1", "-o", "run_ms=300", "--exec", "--", "sleep", "60");
    expect(p, 0, "", "run_ms");
    p = lapse("get", "q", "i");
    cr_assert(has(p, "killed by signal 15") && has(p, "run_ms"), "%s", p->out);
    expect(p, 0, "\"state\":\"waiting\"", NULL);
    server_stop(s);
}

Test(exec, command_of_a_job_that_is_cancelled_is_ended_and_the_job_is_gone)
{
    struct server *s = tool_redis();

    schedule("i", "");
    struct proc *p = lapse_start("listen", "q", "--count", "1", "-o", "lease_ms=9s", "--exec", "--",
                                 "sh", "-c", "echo $$; exec sleep 60");
    until_out(p, "\n");
    expect(lapse("cancel", "q", "i"), 1, "", "q/i: the job is running");
    expect(lapse("cancel", "q", "i", "--running"), 0, "\"state\":\"running\"", NULL);
    expect(p, 0, NULL, "q/i: was cancelled; stopping the command");
    expect(lapse("get", "q", "i"), 1, "", "no such job");
    no_jobs(s, "q");
    server_stop(s);
}

Test(exec, command_of_a_cancelled_job_that_exits_with_0_is_done)
{
    struct server *s = tool_redis();

    schedule("i", "");
    struct proc *p =
        lapse_start("listen", "q", "--count", "1", "-o", "lease_ms=9s", "--exec", "--", "sh", "-c",
                    "trap 'exit 0' TERM; echo $$; sleep 61 & while :; do wait; done");
    until_out(p, "\n");
    expect(lapse("--format", "text", "cancel", "q", "i", "--running"), 0, "q/i asked to stop",
           NULL);
    expect(p, 0, NULL, "was cancelled");
    no_jobs(s, "q");
    server_stop(s);
}

Test(exec, command_of_a_job_that_is_rescheduled_runs_on_and_the_job_waits_again)
{
    struct server *s = tool_redis();
    char line[200];

    schedule("i", "");
    snprintf(line, sizeof line, "echo go; while ! test -e %s/end; do sleep 0.05; done; exit 3",
             s->dir);
    struct proc *p = lapse_start("listen", "q", "--count", "1", "--exec", "--", "sh", "-c", line);
    until_out(p, "\n");
    expect(lapse("reschedule", "q", "i", "--in", "1h"), 1, "", "q/i: the job is running");
    expect(lapse("reschedule", "q", "i", "--in", "1h", "--running"), 0, "\"state\":\"running\"",
           NULL);
    snprintf(line, sizeof line, "touch %s/end", s->dir);
    expect(shell(line), 0, NULL, NULL);
    expect(p, 0, NULL, NULL);
    expect(lapse("get", "q", "i"), 0, "\"state\":\"waiting\"", NULL);
    expect(lapse("cancel", "q", "i"), 0, "\"state\":\"cancelled\"", NULL);
    server_stop(s);
}

Test(exec, that_does_not_obey_term_gets_kill_with_its_group)
{
    struct server *s = tool_redis();

    schedule("i", "");

    /* the shell has begun by then */
    struct proc *p =
        lapse_start("listen", "q", "--count", "1", "-o", "run_ms=6s", "--exec", "--", "sh", "-c",
                    "trap '' TERM; sleep 61 & echo $! $$; while :; do wait; done");
    until_out(p, "\n");

    int inner;
    int outer;
    cr_assert_eq(sscanf(p->out, "%d %d", &inner, &outer), 2);
    until_err(p, "run_ms");
    expect(p, 0, NULL, NULL);
    until_no_process(inner);
    until_no_process(outer);

    /* it was held until the end, so that the verdict counts */
    expect(lapse("get", "q", "i"), 0, "killed by signal 9", NULL);
    server_stop(s);
}

/* A job that could not begin has not used a try, and no more are claimed than --jobs says. */
Test(exec, that_cannot_start_for_lack_of_descriptors_keeps_its_jobs_and_starts_them_later)
{
    enum { N = 30 };
    struct server *s = tool_redis();
    char fifo[100];
    char line[500];

    snprintf(fifo, sizeof fifo, "%s/fifo", s->dir);
    expect(shell("head -c 100000 /dev/zero | $lapse schedule q --id j0 --tries 1 --in 0s -"), 0,
           NULL, NULL);
    redis_do(s, "EVAL %s 2 lapse:{q}:due lapse:{q}:jobs %d",
             "local due = redis.call('ZSCORE', KEYS[1], 'j0') "
             "local record = redis.call('HGET', KEYS[2], 'j0') "
             "for i = 1, ARGV[1] - 1 do redis.call('ZADD', KEYS[1], due, 'j' .. i) "
             "redis.call('HSET', KEYS[2], 'j' .. i, record) end",
             N);

    /* each holds the end of a pipe: its body does not fit, and nobody reads it */
    snprintf(line, sizeof line,
             "mkfifo %s; ulimit -n 32; exec $lapse listen q -j 30 -o lease_ms=9000 --exec -- sh -c "
             "'read x < %s'",
             fifo, fifo);

    struct proc *p = proc_start((const char *const[]){"/bin/sh", "-c", line, NULL});
    until_err(p, "Too many open files");
    until_depth(s, "q", "run", N);
    redis_do(s, "CLIENT KILL TYPE normal SKIPME yes"); /* it finds room to connect again */

    until_renewed(s, "q", 2);

    int fd = open(fifo, O_RDWR);
    cr_assert(fd >= 0);
    for (int i = 0; i < 2 * N; i++) {
        cr_assert_eq(write(fd, "\n", 1), 1);
    }

    until_depth(s, "q", "run", 0);
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:dead") + redis_int(s, "ZCARD lapse:{q}:due"), 0);
    close(fd);
    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, NULL);
    no_jobs(s, "q");
    server_stop(s);
}

Test(exec, that_the_system_cannot_run_puts_its_job_back_and_says_why)
{
    struct server *s = tool_redis();
    char path[128];

    snprintf(path, sizeof path, "%s/program", s->dir);
    FILE *f = fopen(path, "we");
    cr_assert(f && fputs("#!/nonexistent/interpreter\n", f) >= 0 && !fchmod(fileno(f), 0755));
    fclose(f);
    schedule("a", "");
    expect(lapse("listen", "q", "--count", "1", "--exec", "--", path), 0, "",
           "No such file or directory");
    expect(lapse("get", "q", "a"), 0, "program: No such file or directory", NULL);
    server_stop(s);
}

Test(exec, leaves_no_zombie)
{
    struct server *s = tool_redis();
    struct proc *p =
        lapse_start("listen", "q", "-j", "4", "--exec", "--", "sh", "-c", "true & exit 0");

    for (int i = 0; i < 8; i++) {
        char id[8];
        snprintf(id, sizeof id, "i%d", i);
        schedule(id, "");
    }

    until_depth(s, "q", "due", 0);
    until_depth(s, "q", "run", 0);

    char path[64];
    size_t len;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)p->pid, (int)p->pid);

    char *children = test_read_file(path, &len);
    cr_assert_eq(len, 0, "%s", children);
    free(children);
    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, NULL);
    no_jobs(s, "q");
    server_stop(s);
}

Test(exec, term_waits_for_what_runs_and_begins_nothing)
{
    struct busy_listener busy = busy_listener_start();

    proc_signal(busy.proc, SIGTERM);
    until_err(busy.proc, "waiting for 1 running job; send the signal again to quit now");
    busy_listener_ends(&busy);
}

static const char BACK[] = "\"state\":\"waiting\"";

static void is_back_uncounted(const char *id)
{
    struct proc *p = lapse("get", "q", id);
    cr_expect_eq(member(p->out, "try"), 0, "%s", p->out);
    expect(p, 0, BACK, NULL);
}

Test(exec, after_the_grace_what_runs_is_ended_and_goes_back_uncounted)
{
    struct server *s = tool_redis();

    schedule("a", "");
    struct proc *p = lapse_start("listen", "q", "--grace", "200ms", "--exec", "--", "sh", "-c",
                                 "echo begun; exec sleep 60");
    until_out(p, "begun");
    proc_signal(p, SIGTERM);
    proc_wait(p, PROC_WAIT_MS);
    cr_expect(!strstr(p->err, "q/a: try"), "%s", p->err);
    expect(p, 0, NULL, "stopped 1 unfinished command;");
    is_back_uncounted("a");
    server_stop(s);
}

Test(exec, a_second_term_leaves_at_once_and_what_ran_goes_back_uncounted)
{
    struct server *s = tool_redis();

    schedule("a", "");

    struct proc *p = lapse_start("listen", "q", "--exec", "--", "sh", "-c",
                                 "trap '' TERM; echo $$; sleep 60; sleep 60");
    until_out(p, "\n");

    int command = atoi(p->out);
    proc_signal(p, SIGTERM);
    until_err(p, "waiting for");
    proc_signal(p, SIGTERM);
    expect(p, 128 + SIGTERM, NULL, "quitting now");
    until_no_process(command);
    is_back_uncounted("a");
    server_stop(s);
}

Test(exec, job_of_one_try_survives_a_deploy)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "i", "--in", "0s", "--tries", "1"), 0, NULL, NULL);

    for (int deploy = 0; deploy < 3; deploy++) {
        struct proc *p =
            lapse_start("listen", "q", "--exec", "--", "sh", "-c", "echo begun; exec sleep 60");
        until_out(p, "begun");
        proc_signal(p, SIGTERM);
        until_err(p, "waiting for");
        proc_signal(p, SIGTERM);
        expect(p, 128 + SIGTERM, NULL, NULL);
        is_back_uncounted("i");
    }

    expect(run_one("cat"), 0, NULL, NULL);
    no_jobs(s, "q");
    server_stop(s);
}

/* As a supervisor that waits for signals itself may start it. */
Test(exec, ends_and_stops_although_its_listener_was_started_with_all_signals_blocked)
{
    struct server *s = tool_redis();
    sigset_t all;
    sigset_t before;

    schedule("a", "");
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);

    struct proc *p = lapse_start("listen", "q", "--exec", "--", "echo", "run");
    sigprocmask(SIG_SETMASK, &before, NULL);
    until_out(p, "run");
    until_depth(s, "q", "run", 0);

    /* Redis may have done it a moment before the listener hears of it */
    for (int64_t end_ms = test_now_ms() + 10000; !proc_until_err(p, "done 1", 20);
         proc_signal(p, SIGUSR1)) {
        cr_assert_lt(test_now_ms(), end_ms, "USR1 is not heard: %s", p->err);
    }

    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

/* The default is 30 s, and expect() waits for ten. */
Test(exec, without_a_grace_is_ended_at_once)
{
    struct server *s = tool_redis();

    schedule("a", "");
    struct proc *p = lapse_start("listen", "q", "--grace", "0s", "--exec", "--", "sh", "-c",
                                 "echo begun; exec sleep 60");
    until_out(p, "begun");
    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, "stopped 1 unfinished command;");
    is_back_uncounted("a");
    server_stop(s);
}

Test(exec, that_we_end_is_done_if_it_says_so_and_else_goes_back_whatever_it_says)
{
    static const struct {
        const char *id, *status;
    } ends[] = {{"done", "0"}, {"again", "75"}, {"never", "65"}, {"other", "3"}};
    struct server *s = tool_redis();

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char command[120];
        snprintf(command, sizeof command,
                 "trap 'exit %s' TERM; echo begun; while :; do sleep 0.01; done", ends[i].status);
        schedule(ends[i].id, "");
        struct proc *p =
            lapse_start("listen", "q", "--grace", "1ms", "--exec", "--", "sh", "-c", command);
        until_out(p, "begun");
        proc_signal(p, SIGTERM);
        expect(p, 0, NULL, NULL);
        if (i) {
            is_back_uncounted(ends[i].id);
            expect(lapse("cancel", "q", ends[i].id), 0, NULL, NULL);
        }
        no_jobs(s, "q");
    }

    server_stop(s);
}

static void no_group(pid_t group)
{
    int64_t end = test_now_ms() + 10000;
    while (test_now_ms() < end && !kill(-group, 0)) {
        poll(NULL, 0, 5);
    }
    cr_assert(kill(-group, 0) && errno == ESRCH, "of group %d something is left", (int)group);
}

Test(exec, ends_with_its_listener_however_that_dies)
{
    struct server *s = tool_redis();

    schedule("a", "");
    struct proc *p = lapse_start("listen", "q", "--exec", "--", "sh", "-c",
                                 "trap '' TERM HUP INT; echo $$; exec sleep 60");
    until_out(p, "\n");
    pid_t command = atoi(p->out);
    proc_signal(p, SIGKILL);
    expect(p, 128 + SIGKILL, NULL, NULL);
    until_no_process(command);
    server_stop(s);
}

Test(exec, hup_drains_like_term_and_does_not_count_as_a_second_signal)
{
    struct busy_listener busy = busy_listener_start();

    proc_signal(busy.proc, SIGHUP);
    until_err(busy.proc, "waiting for 1 running job;");
    proc_signal(busy.proc, SIGHUP);
    proc_signal(busy.proc, SIGTERM);
    proc_signal(busy.proc, SIGHUP);
    busy_listener_ends(&busy);
}

Test(exec, under_nohup_hup_is_not_heard)
{
    struct server *s = tool_redis();
    char line[] =
        "trap '' HUP; exec $lapse listen q -v --exec -- sh -c 'grep SigIgn /proc/self/status'";

    proc_free(shell("true")); /* sets $lapse */

    struct proc *p = proc_start((const char *const[]){"/bin/sh", "-c", line, NULL});
    until_err(p, "listening on");
    proc_signal(p, SIGHUP);
    schedule("a", "");
    until_out(p, "SigIgn:\t");
    until_out(p, "\n");
    cr_expect(strtoull(strstr(p->out, "SigIgn:") + 7, NULL, 16) & 1u << (SIGHUP - 1),
              "nor by the command: %s", p->out);
    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, NULL);
    no_jobs(s, "q");
    server_stop(s);
}

/* Another listener swept it and holds it now. */
static void take_lease(struct server *s, const char *id)
{
    redis_do(s, "ZADD lapse:{q}:run XX %s %s", "99999999999999", id);
    redis_do(s, "HDEL lapse:{q}:attempts %s", id);
}

/* A number that was given back may be another's by then. */
Test(exec, is_not_signalled_once_it_was_reaped)
{
#ifdef __SANITIZE_ADDRESS__
    cr_skip("its library wants to be the first");
#endif
    struct server *s = tool_redis();
    char preload[4300];
    char line[4600];

    snprintf(preload, sizeof preload, "%s/preload/pids.so", test_build());
    cr_assert_eq(access(preload, R_OK), 0, "make %s", preload);
    schedule("a", "");
    proc_free(shell("true")); /* sets $lapse */
    snprintf(line, sizeof line,
             "export LD_PRELOAD='%s'; exec $lapse listen q -o lease_ms=3s -o sweep_ms=1h --exec -- "
             "sh -c 'sleep 61 & trap \"exit 3\" TERM; echo $$; while :; do wait; done'",
             preload);

    struct proc *p = proc_start((const char *const[]){"/bin/sh", "-c", line, NULL});
    until_out(p, "\n");

    pid_t group = atoi(p->out);
    take_lease(s, "a");
    until_err(p, "q/a: the lease was lost");
    until_no_process(group);
    proc_signal(p, SIGTERM);
    proc_wait(p, PROC_WAIT_MS);
    cr_expect(!strstr(p->err, "which was reaped"), "%s", p->err);
    expect(p, 0, NULL, NULL);
    no_group(group);
    server_stop(s);
}

Test(exec, command_whose_lease_is_lost_is_ended)
{
    struct server *s = tool_redis();

    schedule("a", "");

    struct proc *p = lapse_start("listen", "q", "-o", "lease_ms=300", "-o", "sweep_ms=1h", "--exec",
                                 "--", "sh", "-c", "echo $$; exec sleep 60");
    until_out(p, "\n");

    int command = atoi(p->out);

    take_lease(s, "a");
    until_err(p, "q/a: the lease was lost");
    until_no_process(command);
    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

Test(exec, drain_waits_for_the_commands)
{
    struct server *s = tool_redis();

    for (int i = 0; i < 5; i++) {
        char id[8];
        snprintf(id, sizeof id, "i%d", i);
        schedule(id, "x");
    }

    struct proc *p = lapse("listen", "q", "--drain", "-j", "2", "--exec", "--", "cat");
    cr_assert_str_eq(p->out, "xxxxx");
    expect(p, 0, NULL, NULL);
    no_jobs(s, "q");
    server_stop(s);
}
