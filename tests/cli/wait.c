/* SPDX-License-Identifier: MIT */
/* lapse wait. */
#include "tool.h"

Test(wait, prints_what_became_of_the_job)
{
    struct server *s = tool_redis();
    expect(lapse("schedule", "q", "--id", "a", "--in", "1h", "--keep", "1h", "x"), 0, NULL, NULL);
    struct proc *p = lapse_start("wait", "q", "a");
    expect(lapse("cancel", "q", "a"), 0, NULL, NULL);
    expect(p, 0, "\"end\":\"cancelled\"", "");
    expect(lapse("wait", "q", "a", "--format", "text"), 0, "cancelled", "");
    server_stop(s);
}

Test(wait, says_no_of_one_that_is_dead_or_not_there_or_has_not_ended)
{
    struct server *s = tool_redis();
    expect(lapse("wait", "q", "a"), 1, NULL, "q/a");
    expect(lapse("schedule", "q", "--id", "a", "--in", "1h", "x"), 0, NULL, NULL);
    expect(lapse("wait", "q", "a", "--timeout", "0s"), 1, NULL, "q/a: it has not ended");
    expect(lapse("wait", "q", "a", "--timeout", "20ms"), 1, NULL, "q/a: it has not ended");
    expect(lapse("kill", "q", "a", "--reason", "why"), 0, NULL, NULL);
    expect(lapse("wait", "q", "a"), 1, "\"reason\":\"why\"", "");
    server_stop(s);
}

Test(wait, without_redis_exits_69)
{
    struct server *s = tool_redis();
    expect(lapse("wait", "q", "a", "--url", "unix:///nowhere"), 69, NULL, "unix:///nowhere");
    server_stop(s);
}

Test(wait, of_no_queue_or_id_or_for_no_time_exits_2)
{
    struct server *s = tool_redis();
    expect(lapse("wait", "q q", "a"), 2, NULL, "q q");
    expect(lapse("wait", "q", "a a"), 2, NULL, "a a");
    expect(lapse("wait", "q", "a", "--timeout", "soon"), 2, NULL, "soon");
    expect(lapse("wait", "q"), 2, NULL, "usage");
    server_stop(s);
}
