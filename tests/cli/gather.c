/* SPDX-License-Identifier: MIT */
/* lapse schedule --gather, and what other commands show of groups and of their jobs. */
#include "tool.h"

#define LIMITS "quiet=1h,most=3,age=2h"

static struct proc *gather(const char *limits, const char *part)
{
    return lapse("schedule", "q", "--id", "a", "--gather", limits, part);
}

Test(gather, adds_parts_to_a_group_that_get_and_list_show)
{
    struct server *s = tool_redis();

    expect(gather(LIMITS, "one"), 0,
           "\"created\":true,\"gathered\":1,\"quiet_ms\":3600000,\"most\":3,\"age_ms\":7200000}\n",
           NULL);
    expect(gather(LIMITS, "two"), 0, "\"created\":false,\"gathered\":2,", NULL);
    expect(lapse("get", "q", "a"), 0, "\"state\":\"waiting\"", NULL);
    expect(lapse("get", "q", "a"), 0, "\"gathered\":2,\"quiet_ms\":3600000,", NULL);
    expect(lapse("get", "q", "a", "--format", "text"), 0,
           "group   2 parts, due with 3, 3600000 ms after the last, 7200000 ms after the first\n",
           NULL);
    expect(lapse("list", "q"), 0, "\"gathered\":2,", NULL);
    expect(lapse("doctor", "q"), 0, "jobs         q: 1, each in one state", NULL);
    expect(gather("quiet=1h,most=4", "three"), 1, "",
           "q/a: it is a job, or a group that is dead or has other limits; `lapse get` shows it");
    expect(lapse("cancel", "q", "a"), 0, NULL, NULL);
    no_jobs(s, "q");
    server_stop(s);
}

Test(gather, gives_a_listener_one_job_with_all_parts)
{
    struct server *s = tool_redis();

    gather(LIMITS, "one");
    gather(LIMITS, "two words");
    gather(LIMITS, "");
    struct proc *p = lapse("listen", "q", "--count", "1");
    cr_assert(!has(p, "\"body"), "%s", p->out);
    expect(p, 0, "\"series\":\"a\",\"stage\":1,\"parts\":[\"one\",\"two words\",\"\"]}\n", NULL);
    gather(LIMITS, "x");
    gather(LIMITS, "\xff");
    gather(LIMITS, "yz");
    expect(lapse("listen", "q", "--count", "1"), 0,
           "\"parts_base64\":[\"eA==\",\"/w==\",\"eXo=\"]}\n", NULL);
    gather("quiet=1h,most=2", "x");
    gather("quiet=1h,most=2", "y");
    expect(lapse("listen", "q", "--count", "1", "--format", "text"), 0, "try 1: 2 parts: x, y\n",
           NULL);
    no_jobs(s, "q");
    server_stop(s);
}

Test(gather, gives_a_command_the_parts_each_behind_its_length)
{
    struct server *s = tool_redis();

    gather("quiet=1h,most=2", "one");
    gather("quiet=1h,most=2", "four");
    expect(lapse("listen", "q", "--count", "1", "--exec", "--", "sh", "-c",
                 "echo $LAPSE_SERIES $LAPSE_PARTS; od -An -c"),
           0, "a 2\n 003   o   n   e 004   f   o   u   r\n", NULL);
    expect(lapse("schedule", "q", "--in", "0s"), 0, NULL, NULL);
    struct proc *p = lapse("listen", "q", "--count", "1", "--exec", "--", "env");
    cr_assert(!has(p, "LAPSE_PARTS"), "%s", p->out);
    no_jobs(s, "q");
    server_stop(s);
}

Test(gather, that_breaks_a_rule_is_refused_with_the_rule)
{
    static const char *const wrong[] = {
        "",
        "quiet=5s",
        "most=5",
        "quiet=5s,most=0",
        "most=1001,age=1s",
        "quiet=5s,most=5,",
        "quiet=0s,most=5",
        "quiet=5s,quiet=6s,most=5",
        "quiet,most=5",
        "quiet=soon,most=5",
        "most=5,late=1s",
        "quiet=5s most=5",
    };
    struct server *s = tool_redis();
    char long_id[240];

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        expect(gather(wrong[i], "x"), 2, NULL, "N is from 1 to 1000, as in");
    }
    expect(lapse("schedule", "q", "--gather", LIMITS, "x"), 2, NULL, "give --id, too");
    expect(lapse("schedule", "q", "--id", "a", "--in", "1s", "--gather", LIMITS), 2, NULL,
           "leave out --in and --at");
    expect(lapse("schedule", "q", "--id", "a", "--gather", LIMITS, "--on-conflict", "keep"), 2,
           NULL, "without --on-conflict");
    expect(lapse("schedule", "q", "--id", "a", "--gather", LIMITS, "--unique", "k"), 2, NULL,
           "--unique");
    expect(lapse("schedule", "q", "--id", "a", "--gather", LIMITS, "--every", "1h"), 2, NULL,
           "--every");
    memset(long_id, 'x', 239);
    long_id[239] = '\0';
    expect(lapse("schedule", "q", "--id", long_id, "--gather", LIMITS), 2, NULL,
           "at most 238 characters, and this one has 239");
    no_jobs(s, "q");
    server_stop(s);
}
