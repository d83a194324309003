/* SPDX-License-Identifier: MIT */
/* lapse quiet, lapse stop, and the listeners that are told. */
#include "tool.h"

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
    struct server *s = tool_redis();
    char fifo[100];
    char command[400];

    snprintf(fifo, sizeof fifo, "%s/fifo", s->dir);
    snprintf(command, sizeof command, "mkfifo %s; echo begun; read x < %s; echo $x", fifo, fifo);
    schedule_now("a");
    struct proc *p = lapse_start("listen", "q", "-o", "name=worker", "-j", "1", "--exec", "--",
                                 "sh", "-c", command);
    until_out(p, "begun");
    schedule_now("b");
    until_depth(s, "q", "listeners", 0);
    expect(lapse("stop", "worker"), 0, "\"told\":\"stop\"}\n", "");
    until_err(p, "waiting for 1 running job;");

    FILE *f = fopen(fifo, "w");
    cr_assert(f);
    fputs("ended\n", f);
    fclose(f);
    expect(p, 0, "begun\nended\n", NULL);
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:due"), 1);
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:run"), 0);
    server_stop(s);
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
