/* SPDX-License-Identifier: MIT */
/* lapse history. */
#include "tool.h"

Test(history, is_a_line_for_each_step)
{
    struct server *s = tool_redis();
    struct proc *p;

    expect(lapse("schedule", "q", "--id", "a", "--in", "1h"), 0, NULL, NULL);
    expect(lapse("schedule", "q", "--id", "b", "--in", "1h"), 0, NULL, NULL);
    expect(lapse("cancel", "q", "a"), 0, NULL, NULL);
    p = lapse("history", "q", "--all");
    expect(p, 0,
           "\"scheduled\":2,\"claimed\":0,\"done\":0,\"retried\":0,\"dead\":0,\"cancelled\":1,",
           "");
    p = shell("$lapse history q | wc -l; $lapse history q --days 30 | wc -l; "
              "$lapse history q --step 10m | wc -l");
    expect(p, 0, "24\n30\n144\n", "");
    p = shell("$lapse history q | jq -s 'map(.scheduled) | add'; "
              "$lapse history q --days 7 | jq -s 'map(.cancelled) | add'");
    expect(p, 0, "2\n1\n", "");
    server_stop(s);
}

Test(history, shows_each_hint_with_its_lateness)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--in", "0s"), 0, NULL, NULL);
    expect(lapse("claim", "q"), 0, NULL, NULL);
    expect(lapse("history", "q", "--all"), 0,
           "\"late\":[{\"via\":\"asked\",\"claimed\":1,\"p50_ms\":", "");
    expect(lapse("history", "q", "--all", "--format", "text"), 0, "  asked ", "");
    server_stop(s);
}

Test(history, of_a_wrong_step_is_refused)
{
    struct server *s = tool_redis();

    expect(lapse("history", "q", "--step", "7m"), 2, "", "--step is a part of a day");
    expect(lapse("history", "q", "--step", "30s"), 2, "", "--step is a part of a day");
    expect(lapse("history", "q", "--days", "367"), 2, "", "--days is at most 366");
    expect(lapse("history", "q", "--days", "20", "--step", "1m"), 2, "",
           "these are over 2500 steps");
    expect(lapse("history", "q", "--days", "0"), 2, "", "--days");
    expect(lapse("history", "q", "--step", "0s"), 2, "", "--step is a part of a day");
    expect(lapse("history", "q", "--all", "--days", "1"), 2, "", "--all is used without --days");
    expect(lapse("history", "q", "--step", "1h", "--all"), 2, "", "--all is used without --days");
    server_stop(s);
}
