/* SPDX-License-Identifier: MIT */
/* lapse schedule with several moments, and what other commands show of it. */
#include "tool.h"

Test(series, of_stages_is_shown_by_schedule_get_and_list)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "trial-1", "--in", "23d", "--stage", "5d,6d,7d", "x"), 0,
           "\"created\":true,\"stage\":0}\n", NULL);
    expect(lapse("schedule", "q", "--id", "plain", "--in", "1h"), 0, "\"state\":\"waiting\"", NULL);
    expect(lapse("get", "q", "trial-1"), 0,
           "\"stage\":0,\"stages_ms\":[432000000,518400000,604800000]}\n", NULL);
    expect(lapse("get", "q", "trial-1"), 0, "\"state\":\"series\"", NULL);
    expect(lapse("get", "q", "trial-1", "--format", "text"), 0,
           "moments 0 so far\nstages  432000000 ms 518400000 ms 604800000 ms\n", NULL);

    struct proc *p = lapse("list", "q", "--series");
    cr_assert_eq(count_of(p->out, "\n"), 1);
    expect(p, 0, "\"id\":\"trial-1\",\"state\":\"series\"", NULL);
    p = lapse("list", "q");
    cr_assert_eq(count_of(p->out, "\n"), 2);
    expect(p, 0, NULL, NULL);
    expect(lapse("list", "q", "--series", "--format", "text"), 0, "series   ", NULL);
    expect(lapse("doctor", "q"), 0, "jobs         q: 2, each in one state", NULL);
    expect(lapse("cancel", "q", "trial-1", "plain"), 0, NULL, NULL);
    no_jobs(s, "q");
    server_stop(s);
}

Test(series, of_a_period_shows_all_that_was_said_of_it)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--in", "1h", "--every", "90s", "--until",
                 "2030-01-01T00:00Z", "--times", "7", "--catch-up", "none", "--no-overlap"),
           0, "\"state\":\"series\"", NULL);
    expect(lapse("get", "q", "a"), 0,
           "\"stage\":0,\"every_ms\":90000,\"catch_up\":\"none\",\"last_ms\":1893456000000,"
           "\"times\":7,\"no_overlap\":true}\n",
           NULL);
    expect(lapse("get", "q", "a", "--format", "text"), 0,
           "moments 0 so far of 7, none after 2030-01-01T00:00:00.000Z\n"
           "every   90000 ms, catch up none, no overlap\n",
           NULL);
    server_stop(s);
}

/* ---- its jobs ---- */
Test(series, gives_a_listener_a_job_at_each_moment)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--in", "0s", "--every", "100ms", "--times", "3",
                 "--catch-up", "all", "x"),
           0, NULL, NULL);
    struct proc *p = lapse("listen", "q", "--count", "3");
    for (int i = 1; i <= 3; i++) {
        char of[60];
        snprintf(of, sizeof of, "\"series\":\"a\",\"stage\":%d}\n", i);
        cr_assert(has(p, of), "%s", p->out);
    }
    cr_assert_eq(count_of(p->out, "\"id\":\"a~"), 3);
    expect(p, 0, NULL, NULL);
    no_jobs(s, "q");
    server_stop(s);
}

Test(series, tells_a_command_of_which_moment_it_runs)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--in", "0s", "--stage", "1h"), 0, NULL, NULL);
    expect(lapse("listen", "q", "--count", "1", "--exec", "--", "env"), 0,
           "LAPSE_SERIES=a\nLAPSE_STAGE=1\n", NULL);
    expect(lapse("get", "q", "a"), 0, "\"stage\":1,", NULL);
    expect(lapse("cancel", "q", "a"), 0, NULL, NULL);
    expect(lapse("schedule", "q", "--in", "0s"), 0, NULL, NULL);
    struct proc *p = lapse("listen", "q", "--count", "1", "--exec", "--", "env");
    cr_assert(!has(p, "LAPSE_SERIES") && !has(p, "LAPSE_STAGE"), "%s", p->out);
    expect(p, 0, NULL, NULL);
    no_jobs(s, "q");
    server_stop(s);
}

Test(series, that_is_cancelled_takes_along_its_jobs_that_wait)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--in", "0s", "--stage", "1h"), 0, NULL, NULL);
    struct proc *p = lapse("claim", "q");
    long long token = member(p->out, "token");
    expect(p, 0, "\"id\":\"a~", NULL);
    char id[60];
    char by[40];
    snprintf(id, sizeof id, "a~%lld", token);
    snprintf(by, sizeof by, "%lld", token);
    expect(lapse("get", "q", id), 0, "\"series\":\"a\",\"stage\":1}\n", NULL);
    expect(lapse("get", "q", id, "--format", "text"), 0, "series  a, moment 1\n", NULL);
    expect(lapse("retry", "q", id, by, "--in", "1h"), 0, NULL, NULL);
    expect(lapse("cancel", "q", "a"), 0, NULL, NULL);
    no_jobs(s, "q");
    server_stop(s);
}

/* ---- what is refused ---- */
Test(series, refuses_what_breaks_a_rule_and_says_which)
{
    static const struct {
        const char *words[6];
        const char *why;
    } c[] = {
        {{"--every", "99ms"}, "--every '99ms': must be at least 100ms"},
        {{"--every", "often"}, "--every 'often'"},
        {{"--stage", "5s,5s"}, "--stage '5s': must be later than the one before"},
        {{"--stage", "0s"}, "--stage '0s': must be later than the one before, and than the due"},
        {{"--stage", "5s,"}, "--stage ''"},
        {{"--stage",
          "1s,2s,3s,4s,5s,6s,7s,8s,9s,10s,11s,12s,13s,14s,15s,16s,17s,18s,19s,20s,21s,22s,"
          "23s,24s,25s,26s,27s,28s,29s,30s,31s,32s,33s"},
         "--stage '33s': is one too many: at most 32 are allowed"},
        {{"--stage", "5s", "--every", "5s"},
         "--stage, --every and --cron: a series has only one of them"},
        {{"--times", "3"}, "--no-overlap are of a series: give --stage, --every or --cron, too"},
        {{"--no-overlap"}, "--no-overlap are of a series: give --stage, --every or --cron, too"},
        {{"--every", "5s", "--times", "0"}, "--times '0'"},
        {{"--every", "5s", "--catch-up", "some"}, "--catch-up 'some': must be latest, all or none"},
        {{"--every", "5s", "--until", "soon"}, "--until 'soon'"},
        {{"--every", "5s", "--until", "@0"}, "--until '@0': must be after 1970"},
        {{"--every", "5s", "--on-conflict", "earlier"}, "a series has several: use replace"},
    };
    struct server *s = tool_redis();

    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        const char *const *w = c[i].words;
        expect(proc_run(NULL, "lapse", "schedule", "q", "--id", "a", "--in", "1h", w[0], w[1], w[2],
                        w[3], NULL),
               2, "", c[i].why);
    }
    expect(lapse("schedule", "q", "--at", "2028-01-01T00:00Z", "--every", "1h", "--until",
                 "2027-12-31T00:00Z"),
           2, "", "--until 2027-12-31T00:00Z is before the first moment, --at");
    char id[240];
    memset(id, 'x', sizeof id);
    id[239] = '\0';
    expect(lapse("schedule", "q", "--id", id, "--in", "1h", "--every", "1h"), 2, "",
           "the id of a series may have at most 238 characters, and this one has 239");
    expect(lapse("list", "q", "--series", "--state", "dead"), 2, "",
           "--state, --tag, --batch and --series: use only one of them");
    no_jobs(s, "q");
    server_stop(s);
}

static void needs_cron(void)
{
    struct proc *p = lapse("--version");
    bool with = has(p, "(with cron)");

    expect(p, 0, "lapse 0.", "");
    if (!with) {
        expect(lapse("schedule", "q", "--cron", "* * * * *"), 2, "", "was built");
        cr_skip_test("lapse was built without cron");
    }
}

Test(series, of_a_cron_line_is_shown_with_its_rule)
{
    needs_cron();
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "daily", "--cron", "30 9 * * mon-fri", "--tz",
                 "Europe/Berlin", "--until", "2036-01-01T00:00Z", "x"),
           0, "\"created\":true,\"stage\":0}\n", NULL);
    expect(lapse("get", "q", "daily"), 0,
           "\"calendar\":\"cron\",\"rule\":\"30 9 * * mon-fri Europe/Berlin\",\"catch_up\":"
           "\"latest\",\"last_ms\":2082758400000}\n",
           NULL);
    expect(lapse("get", "q", "daily", "--format", "text"), 0,
           "rule    30 9 * * mon-fri Europe/Berlin, by cron, catch up latest\n", NULL);
    expect(lapse("doctor", "q"), 0, "jobs         q: 1, each in one state", NULL);
    expect(
        lapse("schedule", "q", "--id", "next", "--at", "2035-12-31T23:30Z", "--cron", "0 * * * *"),
        0, "\"due_ms\":2082758400000,", NULL);
    server_stop(s);
}

Test(series, of_a_wrong_cron_line_says_where_it_is_wrong)
{
    static const char *const wrong[][3] = {
        {"61 * * * *", "UTC", "--cron '61 * * * * UTC': column 1: minute must be 0 to 59"},
        {"0 9 * * * UTC", "UTC", "nothing may follow the zone"},
        {"0 9 * * *", "Mars/Base", "this machine knows no such zone"},
        {"0 0 31 2 *", "UTC", "has no moment that is to come"},
    };
    char line[220] = "0 9 ";

    needs_cron();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        expect(lapse("schedule", "q", "--cron", wrong[i][0], "--tz", wrong[i][1]), 2, "",
               wrong[i][2]);
    }
    memset(line + 4, '*', 200);
    expect(lapse("schedule", "q", "--cron", line), 2, "", "is too long");
    expect(lapse("schedule", "q", "--in", "1h", "--tz", "UTC"), 2, "", "give --cron, too");
    expect(lapse("schedule", "q", "--at", "2035-06-01T00:00Z", "--cron", "@yearly", "--until",
                 "2035-12-31T23:59Z"),
           2, "", "--until '2035-12-31T23:59Z': is before the first moment of --cron");
    expect(lapse("schedule", "q", "--in", "1h", "--every", "1h", "--cron", "@daily"), 2, "",
           "--stage, --every and --cron: a series has only one of them");
}

Test(series, is_paused_and_unpaused_by_its_id)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--in", "1h", "--every", "1h"), 0, NULL, NULL);
    expect(lapse("schedule", "q", "--id", "job", "--in", "1h"), 0, NULL, NULL);
    expect(lapse("pause", "q", "a"), 0, "{\"queue\":\"q\",\"id\":\"a\",\"paused\":true}\n", NULL);
    expect(lapse("get", "q", "a"), 0, "\"paused\":true}\n", NULL);
    expect(lapse("get", "q", "a", "--format", "text"), 0, "moments 0 so far, paused\n", NULL);
    expect(lapse("unpause", "q", "a", "--format", "text"), 0, "not paused\n", NULL);
    expect(lapse("pause", "q", "a", "--format", "text"), 0, "paused\n", NULL);
    expect(lapse("unpause", "q", "a"), 0, "\"paused\":false}\n", NULL);
    expect(lapse("pause", "q", "job"), 2, "", "job is no series; without an id the whole queue");
    expect(lapse("pause", "q", "none"), 1, "", NULL);
    expect(lapse("pause", "q", "a", "--for", "1h"), 2, "", "--for is of a queue");
    expect(lapse("unpause", "q", "a b"), 2, "", NULL);
    server_stop(s);
}
