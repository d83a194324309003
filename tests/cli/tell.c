/* SPDX-License-Identifier: MIT */
/* lapse quiet, lapse stop, and the listeners that are told. */
#include "tool.h"
#include <signal.h>

static void schedule_now(const char *id)
{
    expect(lapse("schedule", "q", "--id", id, "--in", "0s", "x"), 0, NULL, NULL);
}

Test(tell, a_listener_to_be_quiet_to_go_on_and_to_stop)
{
    struct server *s = tool_redis();
    struct proc *p = lapse_start("listen", "q", "-o", "name=worker");

    until_depth(s, "q", "listeners", 1);
    schedule_now("first");
    until_out(p, "\"first\"");
    expect(lapse("listeners", "q"), 0, "\"told\":\"go on\"}", "");

    expect(lapse("quiet", "worker"), 0, "{\"name\":\"worker/", "");
    until_err(p, "told to be quiet");
    expect(lapse("listeners", "q"), 0, "\"told\":\"quiet\"}", "");
    expect(lapse("listeners", "q", "--format", "text"), 0, " quiet  worker/", "");
    schedule_now("second");
    expect(lapse("depth", "q"), 0, "\"waiting\":1", NULL);

    expect(lapse("quiet", "worker", "--undo", "--format", "text"), 0, ": go on\n", "");
    until_out(p, "\"second\"");
    until_err(p, "told to go on");
    expect(lapse("stop", "worker"), 0, "\"told\":\"stop\"}\n", "");
    expect(p, 0, NULL, "told to stop");
    cr_assert_eq(redis_int(s, "EXISTS lapse:{}:alive"), 0);
    no_jobs(s, "q");
    server_stop(s);
}

/* As at TERM: what runs goes on to its end, and nothing is begun. It has left the queue by then, as
 * it can take no job. */
Test(tell, a_listener_to_stop_waits_for_its_command)
{
    struct busy_listener busy = busy_listener_start();

    until_depth(busy.server, "q", "listeners", 0);
    expect(lapse("stop", "worker"), 0, "\"told\":\"stop\"}\n", "");
    until_err(busy.proc, "waiting for 1 running job; send SIGTERM twice to quit now");
    proc_signal(busy.proc, SIGTERM); /* a service manager may know nothing of it */
    busy_listener_ends(&busy);
}

Test(tell, a_listener_to_stop_quits_at_the_second_signal)
{
    struct busy_listener busy = busy_listener_start();

    until_depth(busy.server, "q", "listeners", 0);
    expect(lapse("stop", "worker"), 0, "\"told\":\"stop\"}\n", "");
    until_err(busy.proc, "send SIGTERM twice to quit now");
    proc_signal(busy.proc, SIGTERM);
    proc_signal(busy.proc, SIGUSR1);
    until_err(busy.proc, "claimed 1"); /* so it has heard the first one, too */
    proc_signal(busy.proc, SIGTERM);
    expect(busy.proc, 128 + SIGTERM, NULL, "quitting now; returning 1 running job to the queue");
    cr_assert_eq(redis_int(busy.server, "ZCARD lapse:{q}:due"), 2);
    server_stop(busy.server);
}

Test(tell, lapse_forward_to_stop)
{
    struct server *s = tool_redis();
    struct proc *p = lapse_start("forward", "q", "--to-list", "-o", "name=mover");

    until_depth(s, "q", "listeners", 1);
    expect(lapse("stop", "mover"), 0, "\"told\":\"stop\"}\n", "");
    expect(p, 0, NULL, "told to stop");
    server_stop(s);
}

Test(tell, nobody_is_1_and_no_name_is_2)
{
    struct server *s = tool_redis();

    expect(lapse("quiet", "worker"), 1, "", "worker: no listener of this name is alive");
    expect(lapse("stop", "worker/0123456789abcdef"), 1, "", "no listener of this name is alive");
    expect(lapse("quiet", "a b"), 2, "", "name 'a b': must be as lapse listeners shows it");
    expect(lapse("stop", ""), 2, "", "must be as lapse listeners shows it");
    expect(lapse("stop"), 2, "", "missing argument NAME");
    expect(lapse("stop", "a", "--undo"), 2, "", "--undo");
    server_stop(s);
}
