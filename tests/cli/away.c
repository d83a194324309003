/* SPDX-License-Identifier: MIT */
/* A Redis that is not there, or not yet, or does not let us: what it says, and how soon. A reply_ms
 * of an hour makes each test hang that waits for it. */
#include "tool.h"
#include <signal.h>

static const char NOWHERE[] = "unix:///nonexistent/redis.sock";

static void is_reported_in_one_line(struct proc *p, const char *what)
{
    proc_wait(p, PROC_WAIT_MS);
    cr_assert_eq(count_of(p->err, "\n"), 1, "%s", p->err);
    expect(p, 69, "", what);
}

Test(redis, that_is_not_there_exits_69_and_says_where_it_was_looked_for)
{
    setenv("LAPSE_URL", NOWHERE, 1);
    expect(lapse("get", "q", "i", "-o", "reply_ms=200"), 69, "", NOWHERE);
    expect(lapse("depth", "a", "b", "-o", "reply_ms=200"), 69, "", "could not be reached");
    expect(
        lapse("schedule", "q", "--in", "1s", "-o", "reply_ms=200", "-u", "redis://127.0.0.1:1/0"),
        69, "", "redis://127.0.0.1:1/0");
}

Test(redis, that_is_not_there_is_reported_in_one_line_and_not_waited_for)
{
    setenv("LAPSE_URL", NOWHERE, 1);
    is_reported_in_one_line(lapse("get", "q", "i", "-o", "reply_ms=1h"), "No such file");
    is_reported_in_one_line(lapse("depth", "a", "b", "-o", "reply_ms=1h"), NOWHERE);
    is_reported_in_one_line(lapse("list", "q", "-o", "reply_ms=1h"), NOWHERE);
    is_reported_in_one_line(lapse("doctor", "-o", "reply_ms=1h"), NOWHERE);
    is_reported_in_one_line(lapse("bench", "-o", "reply_ms=1h"), NOWHERE);
    setenv("LAPSE_URL", "redis://127.0.0.1:1", 1);
    is_reported_in_one_line(lapse("cancel", "q", "i", "-o", "reply_ms=1h"), "Connection refused");
    setenv("LAPSE_URL", "redis://no-such-host.invalid", 1);
    is_reported_in_one_line(lapse("schedule", "q", "--in", "1s", "-o", "reply_ms=1h"),
                            "redis://no-such-host.invalid: ");
}

/* Those that ask each node by themselves say which was the last. */
Test(redis, of_a_cluster_of_which_no_node_is_there_is_named_by_its_url)
{
    static const char asked[] = "the cluster could not be reached: "
                                "redis+cluster://127.0.0.1:1,127.0.0.1:2: 127.0.0.1:2: Connection "
                                "refused; set its URL with -u or LAPSE_URL";

    setenv("LAPSE_URL", "redis+cluster://127.0.0.1:1,127.0.0.1:2", 1);
    is_reported_in_one_line(lapse("depth", "q", "-o", "reply_ms=1h"),
                            "redis+cluster://127.0.0.1:1,127.0.0.1:2: Connection refused");
    is_reported_in_one_line(lapse("doctor", "-o", "reply_ms=1h"), asked);
    is_reported_in_one_line(lapse("bench", "-o", "reply_ms=1h"), asked);
    is_reported_in_one_line(lapse("functions", "--load", "-o", "reply_ms=1h"), asked);
}

Test(redis, that_is_not_there_ends_a_listener_that_may_not_wait)
{
    setenv("LAPSE_URL", NOWHERE, 1);
    expect(lapse("listen", "q", "--connect-wait", "0s", "-o", "reply_ms=1h"), 69, "", NOWHERE);
    expect(lapse("listen", "q", "--connect-wait", "300ms", "-o", "reply_ms=1h"), 69, "", NOWHERE);
    expect(lapse("listen", "q", "--no-wait", "-o", "reply_ms=1h"), 69, "", NOWHERE);
}

Test(redis, that_is_loading_is_not_there_yet)
{
    struct scripted_server *f = fake_redis("-LOADING Redis is loading the dataset in memory\r\n");
    is_reported_in_one_line(lapse("get", "q", "i", "-o", "reply_ms=1h"), "loading");
    is_reported_in_one_line(lapse("doctor", "-o", "reply_ms=1h"), "loading");
    scripted_server_stop(f);
}

/* Until this is n times in what it says. */
static void until_err_times(struct proc *p, const char *text, int n)
{
    int64_t end_ms = test_now_ms() + PROC_WAIT_MS;

    while (count_of(p->err, text) < n) {
        cr_assert_lt(test_now_ms(), end_ms, "%s", p->err);
        proc_until_err(p, "no such text", 20);
    }
}

/* After reply_ms, and what was asked has ended: it is asked again. */
Test(redis, that_is_not_there_is_waited_for_with_patience)
{
    struct server *s = tool_redis();

    redis_do(s, "CONFIG SET appendfsync always");
    expect(lapse("schedule", "q", "--id", "i", "--in", "1h"), 0, NULL, NULL);
    server_kill9(s);

    const char *const argv[][12] = {
        {"lapse", "get", "q", "i", "--connect-wait", "1h", "-v", "-o", "reply_ms=3500ms"},
        {"lapse", "depth", "q", "r", "--connect-wait", "1h", "-v", "-o", "reply_ms=3500ms"},
        {"lapse", "list", "q", "--connect-wait", "1h", "-v", "-o", "reply_ms=3500ms"},
        {"lapse", "schedule", "q", "--in", "1h", "--connect-wait", "1h", "-v", "-o",
         "reply_ms=3500ms"},
    };
    struct proc *p[4];
    struct proc *doctor = lapse_start("doctor", "--connect-wait", "1h");
    for (int i = 0; i < 4; i++) {
        p[i] = proc_start(argv[i]);
    }

    for (int i = 0; i < 4; i++) {
        until_err_times(p[i], "trying again", 5); /* once a second: four are over */
    }

    server_restart(s);
    for (int i = 0; i < 4; i++) {
        expect(p[i], 0, "\"queue\":\"q\"", NULL);
    }

    expect(doctor, 0, "each in one state", NULL);
    server_stop(s);
}

/* It took the connection and says nothing: that, too, is asked again, for nothing was sent. */
Test(redis, that_is_silent_is_waited_for_with_patience)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "i", "--in", "1h"), 0, NULL, NULL);
    server_signal(s, SIGSTOP);
    expect(lapse("get", "q", "i", "-o", "reply_ms=100ms"), 69, "", NULL);
    struct proc *p =
        lapse_start("get", "q", "i", "--connect-wait", "1h", "-v", "-o", "reply_ms=100ms");
    until_err(p, "more like it"); /* a second is over */
    server_signal(s, SIGCONT);
    expect(p, 0, "\"queue\":\"q\"", NULL);
    server_stop(s);
}

Test(redis, that_stays_away_ends_a_command_when_its_patience_is_over)
{
    setenv("LAPSE_URL", NOWHERE, 1);
    is_reported_in_one_line(lapse("get", "q", "i", "--connect-wait", "300ms", "-o", "reply_ms=1h"),
                            NOWHERE);
    is_reported_in_one_line(
        lapse("get", "q", "i", "--connect-wait", "300ms", "-o", "reply_ms=50ms"), NOWHERE);
    is_reported_in_one_line(lapse("doctor", "--connect-wait", "300ms"), NOWHERE);
}
