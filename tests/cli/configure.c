/* SPDX-License-Identifier: MIT */
/* configure, pause, unpause: what they print and exit with. */
#include "tool.h"
#include "audit.h"
#include <signal.h>

Test(configure, shows_and_changes_the_settings)
{
    struct server *s = tool_redis();
    char expected[100];

    expect(lapse("configure", "q"), 0, "{\"queue\":\"q\"}\n", NULL);
    expect(lapse("configure", "q", "--format", "text"), 0, "q: all settings have their defaults\n",
           NULL);

    struct proc *p = lapse("configure", "q", "paused=+3600000");
    snprintf(expected, sizeof expected, "{\"queue\":\"q\",\"paused\":%lld}\n",
             member(p->out, "paused"));
    cr_assert_str_eq(p->out, expected);
    cr_assert_eq(p->err_len, 0, "%s", p->err);
    expect(p, 0, NULL, NULL);

    p = lapse("configure", "q", "--format", "text");
    cr_assert(has(p, "q: paused=") && count_of(p->out, "\n") == 1, "%s", p->out);
    expect(p, 0, NULL, NULL);
    expect(lapse("configure", "q", "paused=", "dead_max=5", "dead_keep=7d"), 0,
           "{\"queue\":\"q\",\"dead_max\":5,\"dead_keep\":\"7d\"}\n", NULL);
    expect(lapse("configure", "q", "dead_max=", "dead_keep="), 0, "{\"queue\":\"q\"}\n", NULL);
    expect(lapse("configure", "q", "rate=100/1s", "max_running=8"), 0,
           "{\"queue\":\"q\",\"rate\":\"100/1s\",\"max_running\":8}\n", NULL);
    expect(lapse("configure", "q", "--format", "text"), 0, "q: rate=100/1s\nq: max_running=8\n",
           NULL);
    expect(lapse("configure", "q", "rate=", "max_running="), 0, "{\"queue\":\"q\"}\n", NULL);
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    server_stop(s);
}

Test(configure, of_a_wrong_setting_exits_2_and_says_why)
{
    struct server *s = tool_redis();

    expect(lapse("configure"), 2, "", "missing argument QUEUE");
    expect(lapse("configure", "{q}"), 2, "", "queue '{q}': must be");
    expect(lapse("configure", "q", "paused"), 2, "", "setting 'paused': must be NAME=VALUE");
    expect(lapse("configure", "q", "a=b c=d"), 2, "", "must be NAME=VALUE, without spaces");
    expect(lapse("configure", "q", "paused=+5", "colour=red"), 2, "",
           "lapse configure: q: colour=red: there is no such setting");
    expect(lapse("configure", "q", "paused=soon"), 2, "",
           "lapse configure: q: paused=soon: must be a time in ms");
    expect(lapse("configure", "q", "paused=\x1b[2J"), 2, "", "paused=\\x1b[2J: must be");
    expect(lapse("configure", "q", "rate=0/1s"), 2, "",
           "lapse configure: q: rate=0/1s: must be N/D: 1 to 10000 starts in 1ms to 1d, as 100/1s");
    expect(lapse("configure", "q", "rate=5/0s"), 2, "", "rate=5/0s: must be N/D: 1 to 10000");
    expect(lapse("configure", "q", "rate=10001/1s"), 2, "", "rate=10001/1s: must be N/D: 1 to");
    expect(lapse("configure", "q", "max_running=0"), 2, "",
           "max_running=0: must be a number from 1 to 1000000000");
    cr_assert_eq(redis_int(s, "DBSIZE"), 0);
    server_stop(s);
}

Test(configure, of_limits_holds_for_a_program_that_listens)
{
    struct server *s = tool_redis();

    expect(lapse("configure", "q", "rate=2/1h"), 0, NULL, NULL);
    expect(lapse("schedule", "q", "--id", "a", "--in", "0s"), 0, NULL, NULL);
    expect(lapse("schedule", "q", "--id", "b", "--in", "0s"), 0, NULL, NULL);
    expect(lapse("schedule", "q", "--id", "c", "--in", "0s"), 0, NULL, NULL);
    struct proc *l = lapse_start("listen", "q");
    until_out(l, "\"id\":\"a\"");
    until_out(l, "\"id\":\"b\"");
    until_depth(s, "q", "run", 0);
    expect(lapse("depth", "q"), 0, "\"waiting\":1,\"running\":0", NULL);
    expect(lapse("configure", "q", "rate="), 0, NULL, NULL);
    until_out(l, "\"id\":\"c\"");
    proc_signal(l, SIGTERM);
    proc_wait(l, PROC_WAIT_MS);
    cr_assert_eq(count_of(l->out, "\n"), 3);
    proc_free(l);
    no_jobs(s, "q");
    server_stop(s);
}

Test(pause, and_unpause_say_what_they_did)
{
    struct server *s = tool_redis();

    expect(lapse("pause", "q"), 0, "{\"queue\":\"q\",\"paused\":9007199254740992}\n", NULL);
    expect(lapse("pause", "q", "--format", "text"), 0, "q: paused\n", NULL);
    expect(lapse("unpause", "q"), 0, "{\"queue\":\"q\"}\n", NULL);
    expect(lapse("unpause", "q", "--format", "text"), 0, "q: not paused\n", NULL);
    expect(lapse("pause", "q", "--for", "1h", "--format", "text"), 0, "q: paused until 2", NULL);

    struct proc *p = lapse("pause", "q", "--for", "1h");
    long long left = member(p->out, "paused") - redis_now_ms(s);
    cr_assert(left > 3500000 && left <= 3600000, "%lld", left);
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

Test(pause, for_a_wrong_time_exits_2)
{
    struct server *s = tool_redis();

    expect(lapse("pause", "q", "--for", "0s"), 2, "", "--for '0s': must be");
    expect(lapse("pause", "q", "--for", "soon"), 2, "", "--for 'soon': must be");
    expect(lapse("pause", "q", "--for", "4000d"), 2, "", "at most ten years");
    expect(lapse("pause"), 2, "", "missing argument QUEUE");
    expect(lapse("unpause", "q", "r", "s"), 2, "", "unexpected argument 's'");
    cr_assert_eq(redis_int(s, "DBSIZE"), 0);
    server_stop(s);
}

Test(pause, keeps_jobs_from_a_listener_until_unpause)
{
    struct server *s = tool_redis();

    expect(lapse("pause", "q"), 0, NULL, NULL);
    struct proc *l = lapse_start("listen", "q");
    until_depth(s, "q", "listeners", 1);
    expect(lapse("schedule", "q", "--id", "i", "--in", "0s"), 0, NULL, NULL);
    expect(lapse("depth", "q"), 0, "\"waiting\":1,\"running\":0", NULL);
    expect(lapse("unpause", "q"), 0, NULL, NULL);
    until_out(l, "\"id\":\"i\"");
    proc_signal(l, SIGTERM);
    proc_wait(l, PROC_WAIT_MS);
    cr_assert_eq(count_of(l->out, "\n"), 1);
    proc_free(l);
    no_jobs(s, "q");
    server_stop(s);
}
