/* SPDX-License-Identifier: MIT */
/* lapse report, done --report: what its holder says of a job, by its token; where it is shown. */
#include "tool.h"
#include "audit.h"

enum { REPORT_MAX = 65536 };

/* The token of a job that runs from now on, as a word of the next command line. */
static const char *put_running(const char *id)
{
    static char word[24];

    expect(lapse("schedule", "q", "--id", id, "--in", "0s", "x"), 0, NULL, NULL);
    struct proc *p = lapse("claim", "q", "--id", id);
    snprintf(word, sizeof word, "%lld", member(p->out, "token"));
    expect(p, 0, NULL, NULL);
    return word;
}

/* A file of so many bytes; it is removed with the folder. */
static const char *file_of(const char *dir, size_t size)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/report", dir);
    FILE *f = fopen(path, "w");
    cr_assert(f);
    for (size_t i = 0; i < size; i++) {
        fputc('x', f);
    }
    cr_assert_eq(fclose(f), 0);
    return path;
}

Test(report, comes_from_stdin_or_a_file_and_is_shown_by_get)
{
    struct server *s = tool_redis();
    const char *token = put_running("a");
    char dir[64];

    expect(lapse("get", "q", "a"), 0, "\"body\":\"x\"}\n", NULL);
    struct proc *p =
        proc_run("40 of \"100\"\n", "lapse", "report", "q", "a", token, "--report", "-", NULL);
    expect(p, 0, "\"settled\":\"report\"}\n", "");
    expect(lapse("get", "q", "a"), 0, "\"body\":\"x\",\"report\":\"40 of \\\"100\\\"\\n\"}\n",
           NULL);
    expect(lapse("get", "q", "a", "--format", "text"), 0, "body    x\nreport  40 of \"100\"", NULL);
    expect(lapse("list", "q", "--state", "running"), 0, "\"body\":\"x\"}\n", NULL);

    test_dir(dir, sizeof dir);
    expect(lapse("report", "q", "a", token, "--report", file_of(dir, 3)), 0, NULL, NULL);
    expect(lapse("get", "q", "a"), 0, "\"report\":\"xxx\"}\n", NULL);
    expect(lapse("report", "q", "a", token, "--report", file_of(dir, REPORT_MAX)), 0, NULL, NULL);
    cr_assert_eq(redis_int(s, "HSTRLEN lapse:{q}:report a"), REPORT_MAX);
    expect(lapse("report", "q", "a", token, "--report", "/dev/null", "--format", "text"), 0,
           " report\n", NULL);
    expect(lapse("get", "q", "a"), 0, "\"report\":\"\"}\n", NULL);
    test_dir_remove(dir);

    expect(lapse("done", "q", "a", token), 0, NULL, NULL);
    no_jobs(s, "q");
    server_stop(s);
}

Test(report, of_other_bytes_than_utf8_is_base64)
{
    struct server *s = tool_redis();
    const char *token = put_running("a");

    expect(proc_run("\xff", "lapse", "report", "q", "a", token, "--report", "-", NULL), 0, NULL,
           NULL);
    expect(lapse("get", "q", "a"), 0, "\"report_base64\":\"/w==\"}\n", NULL);
    expect(lapse("get", "q", "a", "--format", "text"), 0, "report  (1 bytes that are not text)",
           NULL);
    expect(lapse("fail", "q", "a", token), 0, NULL, NULL);
    expect(lapse("get", "q", "a"), 0, "\"report_base64\"", NULL);
    expect(lapse("cancel", "q", "a"), 0, NULL, NULL);
    no_jobs(s, "q");
    server_stop(s);
}

Test(report, by_a_stale_token_is_refused_and_changes_nothing)
{
    struct server *s = tool_redis();
    const char *token = put_running("a");

    expect(lapse("report", "q", "a", "7", "--report", "/dev/null"), 1, "", "the lease ended");
    expect(lapse("done", "q", "a", "7", "--report", "/dev/null"), 1, "", "the lease ended");
    expect(lapse("get", "q", "a"), 0, "\"body\":\"x\"}\n", NULL);
    expect(lapse("done", "q", "a", token), 0, NULL, NULL);
    expect(lapse("report", "q", "a", token, "--report", "/dev/null"), 1, "", "the lease ended");
    server_stop(s);
}

Test(report, that_comes_with_done_is_taken)
{
    struct server *s = tool_redis();
    const char *token = put_running("a");

    struct proc *p = proc_run("all", "lapse", "done", "q", "a", token, "--report", "-", NULL);
    expect(p, 0, "\"settled\":\"done\"", "");
    expect(lapse("get", "q", "a"), 1, "", NULL);
    no_jobs(s, "q");
    server_stop(s);
}

/* The value and the rule; Redis is not asked. */
Test(report, that_cannot_be_read_or_is_too_long_is_refused)
{
    char dir[64];

    test_dir(dir, sizeof dir);
    setenv("LAPSE_URL", "unix:///nowhere/redis", 1);
    const char *path = file_of(dir, REPORT_MAX + 1);
    char what[256];
    snprintf(what, sizeof what, "--report '%s': has more than 65536 bytes (64 KiB)", path);
    expect(lapse("report", "q", "a", "1", "--report", path), 2, "", what);
    expect(lapse("done", "q", "a", "1", "--report", path), 2, "", "65536 bytes");
    expect(lapse("report", "q", "a", "1", "--report", "/nowhere/file"), 2, "",
           "--report '/nowhere/file': No such file");
    expect(lapse("report", "q", "a", "1", "--report", dir), 2, "", "Is a directory");
    expect(lapse("report", "q", "a", "1"), 2, "", "missing option --report");
    expect(lapse("retry", "q", "a", "1", "--report", path), 2, "", "unknown option '--report'");
    expect(lapse("report", "q", "a", "1", "--report", "-", "--password-file", "-"), 2, "",
           "the report is read from stdin already");
    test_dir_remove(dir);
}

/* It has the token; where Redis is it has to be told. Its output is that of the listener. */
Test(report, of_a_command_of_listen_is_its_own_to_make)
{
    struct server *s = tool_redis();
    char script[512];

    snprintf(script, sizeof script,
             "echo half | '%s/lapse' --url '%s' report \"$LAPSE_QUEUE\" \"$LAPSE_ID\" "
             "\"$LAPSE_TOKEN\" --report - --format text; exit 1",
             test_build(), getenv("LAPSE_URL"));
    expect(lapse("schedule", "q", "--id", "a", "--in", "0s", "--backoff", "1h", "x"), 0, NULL,
           NULL);
    expect(lapse("listen", "q", "--count", "1", "--exec", "--", "sh", "-c", script), 0, " report",
           NULL);
    expect(lapse("get", "q", "a"), 0, "\"report\":\"half\\n\"}\n", NULL);
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    server_stop(s);
}
