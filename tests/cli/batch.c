/* SPDX-License-Identifier: MIT */
/* lapse batch, and lapse schedule --batch. */
#include "tool.h"
#include "audit.h"
#include <hiredis/hiredis.h>

#define SCHEDULE(id) lapse("schedule", "q", "--id", id, "--in", "1h", "--batch", "n")

Test(batch, is_shown_closed_and_ended)
{
    struct server *s = tool_redis();

    expect(SCHEDULE("a"), 0, "\"created\":true}\n", NULL);
    expect(SCHEDULE("b"), 0, "\"created\":true}\n", NULL);
    expect(lapse("get", "q", "a"), 0, "\"body\":\"\",\"batch\":\"n\"}\n", NULL);
    expect(lapse("get", "q", "a", "--format", "text"), 0, "batch   n\nbody    \n", NULL);
    expect(lapse("batch", "q", "n"), 0,
           "{\"queue\":\"q\",\"batch\":\"n\",\"left\":2,\"dead\":0,\"ended\":0,\"closed\":false}\n",
           NULL);

    expect(lapse("schedule", "q", "--id", "n", "--in", "7d", "all have ended"), 0, NULL, NULL);
    expect(lapse("batch", "q", "n", "--close"), 0, "\"id\":\"n\",\"state\":\"waiting\"", NULL);
    expect(lapse("get", "q", "n"), 0, "\"body\":\"all have ended\",\"awaits\":true}\n", NULL);
    expect(lapse("get", "q", "n", "--format", "text"), 0, "awaits  the other jobs of its batch\n",
           NULL);

    expect(lapse("kill", "q", "a"), 0, NULL, NULL);
    expect(lapse("cancel", "q", "b"), 0, NULL, NULL);
    expect(lapse("batch", "q", "n", "--format", "text"), 0,
           "q n: 0 wait or run, 1 dead, 1 ended, closed\n", NULL);
    expect(lapse("cancel", "q", "a"), 0, NULL, NULL);
    expect(lapse("listen", "q", "--count", "1"), 0, "\"id\":\"n\",\"body\":\"all have ended\"",
           NULL);
    expect(lapse("batch", "q", "n"), 0, "\"left\":0,\"dead\":0,\"ended\":0,\"closed\":false}\n",
           NULL);
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    server_stop(s);
}

Test(batch, that_cannot_be_closed_says_why)
{
    struct server *s = tool_redis();

    expect(SCHEDULE("a"), 0, NULL, NULL);
    expect(lapse("batch", "q", "n", "--close"), 1, "",
           "q/n: the batch has no job of its own: schedule one whose --id is its name");
    expect(lapse("schedule", "q", "--id", "n", "--in", "1h", "--keep", "1h"), 0, NULL, NULL);
    expect(lapse("kill", "q", "n"), 0, NULL, NULL);
    expect(lapse("batch", "q", "n", "--close"), 1, "",
           "q/n: the batch's own job has begun, or is dead");
    expect(lapse("cancel", "q", "n"), 0, NULL, NULL);
    expect(lapse("batch", "q", "n", "--close"), 1, "", "q/n: the batch's own job has ended");
    expect(lapse("schedule", "q", "--id", "daily", "--in", "1h", "--every", "1d"), 0, NULL, NULL);
    expect(lapse("batch", "q", "daily", "--close"), 1, "",
           "q/daily: the batch's own job is a series or a group");
    server_stop(s);
}

Test(batch, is_listed_and_its_jobs_are_changed_together)
{
    struct server *s = tool_redis();

    expect(SCHEDULE("a"), 0, NULL, NULL);
    expect(SCHEDULE("b"), 0, NULL, NULL);
    expect(lapse("schedule", "q", "--id", "other", "--in", "1h"), 0, NULL, NULL);
    struct proc *p = lapse("list", "q", "--batch", "n");
    cr_assert(has(p, "\"id\":\"a\"") && has(p, "\"id\":\"b\"") && count_of(p->out, "\n") == 2);
    expect(p, 0, NULL, "");

    expect(lapse("kill", "q", "--batch", "n", "--reason", "no customer"), 0,
           "{\"queue\":\"q\",\"killed\":2,\"running\":0}", "");
    expect(lapse("list", "q", "--batch", "n", "--limit", "1"), 0, "\"reason\":\"no customer\"", "");
    expect(lapse("requeue", "q", "--batch", "n"), 0, "\"requeued\":2", "");
    expect(lapse("reschedule", "q", "--batch", "n", "--in", "2h"), 0, "\"rescheduled\":2", "");
    expect(lapse("cancel", "q", "--batch", "n"), 0, "\"cancelled\":2", "");
    expect(lapse("cancel", "q", "--batch", "n", "--tag", "x"), 2, "",
           "--tag and --batch: use only one of them");
    expect(lapse("cancel", "q", "--batch", "a b"), 2, "", "--batch 'a b'");
    expect(lapse("list", "q", "--batch", "a b"), 2, "", "--batch 'a b'");
    expect(lapse("list", "q", "--batch", "n", "--tag", "x"), 2, "",
           "--state, --tag, --batch and --series: use only one of them");
    expect(lapse("cancel", "q", "other"), 0, NULL, NULL);
    no_jobs(s, "q");
    server_stop(s);
}

Test(batch, of_a_wrong_name_is_refused_before_redis_is_asked)
{
    expect(lapse("schedule", "q", "--in", "1h", "--batch", "a b"), 2, "",
           "--batch 'a b': must be 1 to 255 printable ASCII characters");
    expect(lapse("schedule", "q", "--id", "n", "--in", "1h", "--batch", "n"), 2, "",
           "a job whose id is n is that batch's own job");
    expect(lapse("batch", "q", "a b"), 2, "", "a b");
    expect(lapse("batch", "q{", "n"), 2, "", "q{");
    expect(lapse("batch", "q"), 2, "", "NAME");
}

Test(batch, that_has_ended_unseen_is_found_by_doctor_and_ended)
{
    struct server *s = tool_redis();

    expect(SCHEDULE("a"), 0, NULL, NULL);
    expect(lapse("schedule", "q", "--id", "n", "--in", "1h"), 0, NULL, NULL);
    expect(lapse("batch", "q", "n", "--close"), 0, NULL, NULL);
    redis_do(s, "HDEL lapse:{q}:jobs a");
    redis_do(s, "ZREM lapse:{q}:due a");
    redis_do(s, "ZREM lapse:{q}:index %s", "b n a");
    redis_do(s, "DEL lapse:{q}:t:a");
    expect(lapse("doctor"), 1, "the name of a batch that is closed and has ended unseen", NULL);
    expect(lapse("doctor", "--repair"), 0, "1 of them repaired", NULL);
    expect(lapse("listen", "q", "--count", "1"), 0, "\"id\":\"n\"", NULL);
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    server_stop(s);
}
