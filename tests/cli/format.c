/* SPDX-License-Identifier: MIT */
/* --format, --json: every command that prints obeys them, or refuses. */
#include "tool.h"
#include <signal.h>

static void is_in_form(struct proc *p, const char *what, bool json)
{
    proc_wait(p, PROC_WAIT_MS);
    cr_expect_eq(p->status, 0, "%s: status %d: %s", what, p->status, p->err);
    cr_expect(p->out_len > 0, "%s prints nothing", what);
    for (char *line = p->out, *end; (end = strchr(line, '\n')); line = end + 1) {
        cr_expect_eq(*line == '{' && end[-1] == '}', json, "%s: %.*s", what, (int)(end - line),
                     line);
    }
    proc_free(p);
}

/* On a queue with one job that waits, "i", and one that is due. */
static const char *const lines[] = {
    "schedule other --in 1h",
    "get q i",
    "list q",
    "depth q",
    "configure q paused=+1000",
    "configure other",
    "pause q --for 1s",
    "unpause q",
    "reschedule q i --in 2h",
    "reschedule q --state waiting --in 1h",
    "run q i",
    "requeue q",
    "cancel q --state dead",
    "kill q i --reason x",
    "cancel q i",
    "listen q --count 1",
    "doctor q",
    "bench --schedule 10",
    "functions --load",
};
enum { LINES = sizeof lines / sizeof *lines };

/* By one script: two programs for each line would cost more than what is proved. */
static void put_both(struct server *s)
{
    static const char script[] =
        "redis.call('FLUSHALL') redis.call('ZADD', KEYS[1], ARGV[1] + 3600000, 'i', ARGV[1], 'due')"
        "redis.call('HSET', KEYS[2], 'i', '\\1\\0', 'due', '\\1\\0')";

    redis_do(s, "EVAL %s 2 lapse:{q}:due lapse:{q}:jobs %lld", script, (long long)redis_now_ms(s));
}

static void each_in_form(const char *option, bool json)
{
    char line[200];
    struct server *s = tool_redis();

    for (int i = 0; i < 2 * LINES; i++) {
        const char *words = lines[i / 2];
        bool after = i % 2;
        put_both(s);
        if (after) {
            snprintf(line, sizeof line, "$lapse %s %s", words, option);
        } else {
            snprintf(line, sizeof line, "$lapse %s %s", option, words);
        }
        is_in_form(shell(line), line, json);
    }

    server_stop(s);
}

Test(format, json_is_obeyed_by_every_command_that_prints)
{
    each_in_form("--format json", true);
}

Test(format, json_has_a_short_form_on_every_command)
{
    each_in_form("--json", true);
}

Test(format, text_is_obeyed_by_every_command_that_prints)
{
    each_in_form("--format text", false);
}

Test(format, json_of_help_which_has_none_exits_2)
{
    expect(lapse("help", "--format", "json"), 2, "", "--format 'json'");
    expect(lapse("help", "get", "--json"), 2, "", "as text only");
}

Test(format, json_of_the_functions_which_are_lua_exits_2)
{
    expect(lapse("functions", "--json"), 2, "", "--format 'json'");
    expect(lapse("functions", "--format", "json"), 2, "", "as text only");
}

Test(format, json_of_dev_has_the_url_in_an_object)
{
    struct proc *p = lapse_start("dev", "--json");
    until_out(p, "{\"url\":\"unix:///");
    until_out(p, "redis.sock\"}\n");
    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, NULL);
}

Test(format, json_of_a_job_without_end_says_forever_and_created_is_a_boolean)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "i", "--in", "1h", "--tries", "forever"), 0,
           "\"try\":0,\"tries\":\"forever\",\"token\":0,\"until_ms\":0,\"reason\":\"\",\"created\":"
           "true}\n",
           NULL);
    expect(lapse("schedule", "q", "--id", "i", "--in", "1h", "--on-conflict", "keep"), 0,
           "\"created\":false}\n", NULL);
    expect(lapse("get", "q", "i"), 0, "\"tries\":\"forever\"", NULL);
    server_stop(s);
}
