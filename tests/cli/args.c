/* SPDX-License-Identifier: MIT */
/* A wrong argument is reported with its value and the rule; the exit status is 2, and Redis stays
 * as it was. */
#include "tool.h"
#include <time.h>

static struct proc *run_line(const char *line) /* words are divided by | */
{
    static char words[1024];
    const char *argv[32] = {"lapse"};
    size_t n = 1;

    snprintf(words, sizeof words, "%s", line);
    for (char *at = words, *word; (word = strsep(&at, "|")) && n < 31;) {
        argv[n++] = word;
    }

    argv[n] = NULL;
    struct proc *p = proc_start(argv);
    proc_close_in(p);
    return p;
}

static const char LONG_QUEUE[] =
    "get|12345678901234567890123456789012345678901234567890123456789012345|i";

static const struct {
    const char *line, *value, *rule;
} wrong[] = {
    {"schedule||--in|1s", "queue ''", "1 to 64 of"},
    {"schedule|a b|--in|1s", "queue 'a b'", "1 to 64 of"},
    {"schedule|a{b}|--in|1s", "queue 'a{b}'", "1 to 64 of"},
    {LONG_QUEUE, "queue '1234", "1 to 64 of"},
    {"schedule|q|--in|1s|--id|", "id ''", "1 to 255 printable"},
    {"schedule|q|--in|1s|--id|a b", "id 'a b'", "1 to 255 printable"},
    {"schedule|q|--in|1s|--id|a{b", "id 'a{b'", "without space, { and }"},
    {"get|q|\033[2J", "id '\\x1b[2J'", "1 to 255 printable"},
    {"cancel|q|\xc3\xa9", "id '\\xc3\\xa9'", "1 to 255 printable"},
    {"schedule|q", "missing option --in or --at", "--in"},
    {"reschedule|q|i", "missing option --in or --at", "--at"},
    {"schedule|q|--in|1s|--at|@4000000000000", "--at '@4000000000000'", "ten years"},
    {"schedule|q|--in|1s|--at|2030-01-01T00:00Z", "--in '1s' and --at '2030", "one of them"},
    {"schedule|q|--in|", "--in ''", "must be a duration"},
    {"schedule|q|--in|5", "--in '5'", "must be a duration"},
    {"schedule|q|--in|-5s", "--in '-5s'", "must be a duration"},
    {"schedule|q|--in|1s1h", "--in '1s1h'", "the largest unit first"},
    {"schedule|q|--in|1.5s", "--in '1.5s'", "must be a duration"},
    {"schedule|q|--in| 5s", "--in ' 5s'", "must be a duration"},
    {"schedule|q|--in|3653d", "--in '3653d'", "ten years"},
    {"schedule|q|--in|99999999999999999999s", "--in '99999", "ten years"},
    {"reschedule|q|i|--in|11y", "--in '11y'", "must be a duration"},
    {"schedule|q|--at|tomorrow", "--at 'tomorrow'", "must be a time"},
    {"schedule|q|--at|2027-02-29T00:00Z", "--at '2027-02-29T00:00Z'", "must be a time"},
    {"schedule|q|--at|2028-02-28T24:00Z", "--at '2028-02-28T24:00Z'", "must be a time"},
    {"schedule|q|--at|2028-01-01T00:00", "--at '2028-01-01T00:00'", "an offset"},
    {"schedule|q|--at|2028-01-01", "--at '2028-01-01'", "must be a time"},
    {"schedule|q|--at|@-1", "--at '@-1'", "@MS"},
    {"schedule|q|--at|@1735000000", "--at '@1735000000'", "milliseconds"},
    {"schedule|q|--in|1s|--tries|0", "--tries '0'", "from 1"},
    {"schedule|q|--in|1s|--tries|-1", "--tries '-1'", "from 1"},
    {"schedule|q|--in|1s|--tries|4294967296", "--tries '4294967296'", "from 1"},
    {"schedule|q|--in|1s|--backoff|0s", "--backoff '0s'", "at least"},
    {"schedule|q|--in|1s|--backoff|-1s", "--backoff '-1s'", "must be"},
    {"schedule|q|--in|1s|--backoff|", "--backoff ''", "must be"},
    {"schedule|q|--in|1s|--backoff|3653d", "--backoff '3653d'", "at most ten years"},
    {"schedule|q|--in|1s|--backoff|fixed:", "--backoff ''", "must be"},
    {"schedule|q|--in|1s|--backoff|fixed:0s", "--backoff '0s'", "at least"},
    {"schedule|q|--in|1s|--backoff|1s,", "--backoff ''", "must be"},
    {"schedule|q|--in|1s|--backoff|1s,0s", "--backoff '0s'", "at least"},
    {"schedule|q|--in|1s|--backoff|1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,17s",
     "--backoff '17s'", "at most 16"},
    {"schedule|q|--in|1s|--backoff|celery", "--backoff 'celery'", "must be"},
    {"schedule|q|--in|1s|--retry-for|0s", "--retry-for '0s'", "at least"},
    {"schedule|q|--in|1s|--retry-for|-1s", "--retry-for '-1s'", "must be"},
    {"schedule|q|--in|1s|--retry-for|3653d", "--retry-for '3653d'", "at most ten years"},
    {"schedule|q|--in|1s|--keep|0s", "--keep '0s'", "at least"},
    {"schedule|q|--in|1s|--keep|-1d", "--keep '-1d'", "must be"},
    {"schedule|q|--in|1s|--keep|3653d", "--keep '3653d'", "at most ten years"},
    {"schedule|q|--in|1s|--keep|1d:", "--keep '1d:'", "DURATION:body"},
    {"schedule|q|--in|1s|--keep|1d:all", "--keep '1d:all'", "DURATION:body"},
    {"reschedule|q|--state|kept|--in|1s", "--state 'kept'", "have ended"},
    {"schedule|q|--in|1s|--max-late|0s", "--max-late '0s'", "at least"},
    {"schedule|q|--in|1s|--max-late|-5s", "--max-late '-5s'", "must be"},
    {"schedule|q|--in|1s|--max-late|3653d", "--max-late '3653d'", "at most ten years"},
    {"schedule|q|--in|1s|--max-late|5s:", "--max-late '5s:'", "DURATION:dead"},
    {"schedule|q|--in|1s|--max-late|5s:skip", "--max-late '5s:skip'", "DURATION:dead"},
    {"schedule|q|--in|1s|--max-late|:dead", "--max-late ''", "must be"},
    {"schedule|q|--in|1s|--if|", "--if ''", "must be"},
    {"schedule|q|--in|1s|--if|=x", "--if '=x'", "must be"},
    {"schedule|q|--in|1s|--if|!=x", "--if '!=x'", "must be"},
    {"schedule|q|--in|1s|--if|?", "--if '?'", "must be"},
    {"schedule|q|--in|1s|--if|k{q}", "--if 'k{q}'", "must be"},
    {"schedule|q|--in|1s|--if|k{q} =x", "--if 'k{q} =x'", "must be"},
    {"schedule|q|--in|1s|--if| f=x", "--if ' f=x'", "must be"},
    {"schedule|q|--in|1s|--if|k{q} f g=x", "--if 'k{q} f g=x'", "must be"},
    {"schedule|q|--in|1s|--if|k=x", "--if k", "the name of the queue, q"},
    {"schedule|q|--in|1s|--if|k{p}?", "--if k{p}", "the name of the queue, q"},
    {"schedule|q|--in|1s|--max-run|99ms", "--max-run '99ms'", "100ms to 366d"},
    {"schedule|q|--in|1s|--max-run|367d", "--max-run '367d'", "100ms to 366d"},
    {"schedule|q|--in|1s|--backoff-max|0s", "--backoff-max '0s'", "at least"},
    {"schedule|q|--in|1s|--backof-max|1s", "unknown option '--backof-max'",
     "did you mean '--backoff-max'"},
    {"schedule|q|--in|1s|--on-conflict|maybe", "--on-conflict 'maybe'",
     "reject, keep, replace, earlier, later or debounce"},
    {"schedule|q|--in|1s|--replicas|0", "--replicas '0'", "from 1"},
    {"schedule|q|--in|1s|--replicas|-1", "--replicas '-1'", "from 1"},
    {"schedule|q|--in|1s|--replicas|one", "--replicas 'one'", "from 1"},
    {"schedule|q|--in|1s|--replicas", "option --replicas needs a value: N", ""},
    {"schedule|q|--in|1s|--fsync=1", "option --fsync takes no value", ""},
    {"schedule|q|--in|1s|body|more", "'more'", "unexpected argument"},
    {"claim", "missing argument QUEUE;", "lapse claim QUEUE"},
    {"claim|a b", "queue 'a b'", "1 to 64 of"},
    {"claim|q|-n|0", "--limit '0'", "1 to 100"},
    {"claim|q|--limit|101", "--limit '101'", "1 to 100"},
    {"claim|q|--id|a b", "id 'a b'", "1 to 255 printable"},
    {"claim|q|--id|a|-n|2", "--id 'a'", "without --limit and --wait"},
    {"claim|q|--id|a|--wait|1s", "--id 'a'", "without --limit and --wait"},
    {"claim|q|--wait|25h", "--wait '25h'", "at most 1d"},
    {"claim|q|--wait|soon", "--wait 'soon'", "must be a duration"},
    {"claim|q|--lease|99ms", "--lease '99ms'", "100ms to 1d"},
    {"claim|q|--lease|25h", "--lease '25h'", "100ms to 1d"},
    {"done|q|i", "missing argument TOKEN", "usage: lapse done QUEUE ID TOKEN"},
    {"done|q|i|0", "token '0'", "must be a whole number from 1"},
    {"done|q|i|abc", "token 'abc'", "must be a whole number from 1"},
    {"fail|q|i|-1", "unknown option '-1'", "write --"},
    {"release|q|i|1.5", "token '1.5'", "must be a whole number from 1"},
    {"renew|q|i|9007199254740993", "token '9007199254740993'", "to 9007199254740992"},
    {"retry|q|i|", "token ''", "must be a whole number from 1"},
    {"retry|a b|i|1", "queue 'a b'", "1 to 64 of"},
    {"retry|q|a b|1", "id 'a b'", "1 to 255 printable"},
    {"retry|q|i|1|--in|11y", "--in '11y'", "must be a duration"},
    {"retry|q|i|1|--for|1s", "unknown option '--for'", ""},
    {"done|q|i|1|--reason|x", "unknown option '--reason'", ""},
    {"report|q|i", "missing argument TOKEN", "usage: lapse report QUEUE ID TOKEN --report FILE|-"},
    {"report|q|i|0|--report|-", "token '0'", "must be a whole number from 1"},
    {"renew|q|i|1|--for|99ms", "--for '99ms'", "100ms to 1d"},
    {"renew|q|i|1|--for|25h", "--for '25h'", "100ms to 1d"},
    {"schedule|q|--in", "option --in needs a value: DURATION", ""},
    {"get|q", "lapse get: missing argument ID", "usage: lapse get QUEUE ID"},
    {"cancel|q", "missing argument ID, or option --state", "usage: lapse cancel QUEUE"},
    {"cancel|q|--reason|x", "missing argument ID, or option --state", ""},
    {"cancel|q|i|--state|dead", "id 'i'", "use only one of them"},
    {"cancel|q|i|--limit|3", "id 'i'", "use only one of them"},
    {"cancel|q|--tag|a b", "--tag 'a b'", "1 to 64 printable"},
    {"cancel|q|--tag|", "--tag ''", "1 to 64 printable"},
    {"cancel|q|i|--tag|t", "id 'i'", "use only one of them"},
    {"reschedule|q|--tag|{t}|--in|1s", "--tag '{t}'", "1 to 64 printable"},
    {"requeue|q|i|--tag|t", "id 'i'", "use only one of them"},
    {"requeue|q|--tag|a b", "--tag 'a b'", "1 to 64 printable"},
    {"run|q|i|--tag|t", "unknown option '--tag'", ""},
    {"cancel|q|i|j|a b", "id 'a b'", "1 to 255 printable"},
    {"cancel|q|--state|gone", "--state 'gone'", "waiting, running, dead or kept"},
    {"cancel|q|--state|dead|--limit|0", "--limit '0'", "from 1"},
    {"cancel|q|--state|dead|--before|yesterday", "--before 'yesterday'", "must be a time"},
    {"cancel|q|--state|dead|--before|@0", "--before '@0'", "ten years"},
    {"cancel|q|--state|dead|--spread|1m", "unknown option '--spread'", ""},
    {"reschedule|q|--in|1s", "missing argument ID, or option --state", "lapse reschedule QUEUE"},
    {"reschedule|q|i|--in|1s|--spread|1m", "id 'i'", "use only one of them"},
    {"reschedule|q|--state|dead|--in|1s|--spread|1", "--spread '1'", "must be a duration"},
    {"reschedule|q|--state|dead|--in|2000d|--spread|2000d", "--in and --spread", "ten years"},
    {"requeue", "missing argument QUEUE", "usage: lapse requeue QUEUE"},
    {"requeue|q|i|--reason|x", "id 'i'", "use only one of them"},
    {"requeue|q|--state|dead", "unknown option '--state'", ""},
    {"requeue|a b", "queue 'a b'", "1 to 64 of"},
    {"run|q", "missing argument ID", "usage: lapse run QUEUE ID"},
    {"run|q|i|--in|1s", "unknown option '--in'", ""},
    {"kill|q", "missing argument ID", "usage: lapse kill QUEUE (ID"},
    {"kill|q|a b", "id 'a b'", "1 to 255 printable"},
    {"kill|q|i|--reason", "option --reason needs a value: TEXT", ""},
    {"cancel", "missing argument QUEUE;", "lapse cancel QUEUE (ID"},
    {"get|q|-rf", "unknown option '-r'", "write --"},
    {"-psecret|depth|q", "unknown option '-p'", "lapse help options"},
    {"depth|q|-psecret", "unknown option '-p'", "write --"},
    {"depth|q|-vsecret", "option -v takes no value", "separately"},
    {"get|q|i|-vu|redis://localhost", "option -v takes no value", "separately"},
    {"get|q|--frobnicate", "unknown option '--frobnicate'", "lapse help get"},
    {"-x|depth|q", "unknown option '-x'", "lapse help options"},
    {"list|q|--state|gone", "--state 'gone'", "waiting, running, dead or kept"},
    {"list|q|--limit|0", "--limit '0'", "from 1"},
    {"listen", "lapse listen: missing argument QUEUE[:WEIGHT];", "usage: lapse listen"},
    {"listen|q|q", "queue 'q'", "twice"},
    {"listen|mail:6|sms|mail:3", "queue 'mail'", "twice"},
    {"listen|mail:0", "queue 'mail:0'", "1 to 1000"},
    {"listen|sms|mail:1001", "queue 'mail:1001'", "1 to 1000"},
    {"listen|mail:x", "queue 'mail:x'", "1 to 1000"},
    {"listen|mail:", "queue 'mail:'", "1 to 1000"},
    {"listen|mail:6:3", "queue 'mail:6:3'", "1 to 1000"},
    {"listen|mail:-1", "queue 'mail:-1'", "1 to 1000"},
    {"listen|:6", "queue ''", "1 to 64"},
    {"listen|em*ail", "queue 'em*ail'", "a star, which is the last"},
    {"listen|mail|email.**", "queue 'email.**'", "a star, which is the last"},
    {"listen|*mail*", "queue '*mail*'", "a star, which is the last"},
    {"listen|email.*|email.*:3", "queue 'email.*'", "twice"},
    {"listen|--strict|mail|sms:1", "queue 'sms:1'", "--strict"},
    {"listen|q|--count|0", "--count '0'", "from 1"},
    {"listen|q|-j|100001", "--jobs '100001'", "1 to 100000"},
    {"listen|q|--exec", "missing argument CMD", "--exec -- CMD"},
    {"listen|--exec|--|true", "missing argument QUEUE", "lapse listen"},
    {"listen|q|--exec|--|no-such-program", "--exec 'no-such-program'", "PATH"},
    {"listen|q|--exec|--|/etc/passwd", "--exec '/etc/passwd'", "executable"},
    {"--format|xml|get|q|i", "--format 'xml'", "json or text"},
    {"get|q|i|-o|lease_ms", "-o 'lease_ms'", "NAME=VALUE"},
    {"get|q|i|-o|lease=10s", "-o 'lease'", "did you mean 'lease_ms'"},
    {"get|q|i|-o|lease_ms=1ms", "-o lease_ms '1ms'", "out of range"},
    {"get|q|i|-o|lease_ms=1s1h", "-o lease_ms '1s1h'", "invalid"}, /* as --in does */
    {"get|q|i|-o|max_running=many", "-o max_running 'many'", "invalid"},
    {"get|q|i|-u|http://localhost", "url 'http://localhost'", "redis://"},
    {"get|q|i|-u|redis://ann@localhost", "url 'redis://***@localhost'", "needs a password"},
    {"get|q|i|-u|redis://:secret@localhost:99999", "url 'redis://***@localhost:99999'", "redis://"},
    {"get|q|i|--password-file|/nonexistent", "--password-file '/nonexistent'", "No such file"},
    {"shedule|q|--in|1s", "unknown command 'shedule'", "did you mean 'schedule'"},
    {"frobnicate", "unknown command 'frobnicate'", "lapse help"},
    {"schedule|q|--inn|1s", "unknown option '--inn'", "did you mean '--in'"},
    {"list|q|--staet=dead", "unknown option '--staet'", "did you mean '--state'"},
    {"get|q|i|--verbose=secret", "lapse get: option --verbose takes no value", ""},
    {"functions|--replace", "--replace", "needs --load"},
    {"functions|orders", "'orders'", "unexpected argument"},
    {"functions|--laod", "unknown option '--laod'", "did you mean '--load'"},
    {"dev|-u|redis://localhost", "option --url", "of its own"},
    {"help|nothing", "unknown command 'nothing'", "lapse help"},
};

Test(args, that_are_wrong_exit_2_with_value_and_rule_and_change_nothing)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "i", "--in", "1h", "body"), 0, NULL, NULL);

    char *before = redis_str(s, "DEBUG DIGEST");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct proc *p = run_line(wrong[i].line);
        proc_wait(p, PROC_WAIT_MS);
        cr_expect_eq(p->status, 2, "%s: status %d", wrong[i].line, p->status);
        cr_expect(strstr(p->err, wrong[i].value), "%s: no '%s' in: %s", wrong[i].line,
                  wrong[i].value, p->err);
        cr_expect(strstr(p->err, wrong[i].rule), "%s: no '%s' in: %s", wrong[i].line, wrong[i].rule,
                  p->err);
        cr_expect_eq(p->out_len, 0, "%s: stdout: %s", wrong[i].line, p->out);
        cr_expect(!strstr(p->err, "secret"), "%s", p->err);
        proc_free(p);
    }

    char *after = redis_str(s, "DEBUG DIGEST");
    cr_assert_str_eq(before, after);
    free(before);
    free(after);
    server_stop(s);
}

Test(args, a_body_over_1_mib_exits_2_and_one_of_1_mib_is_taken)
{
    struct server *s = tool_redis();

    expect(shell("head -c 1048577 /dev/zero | $lapse schedule q --id i --in 1h -"), 2, "",
           "1048576");
    cr_assert_eq(redis_int(s, "DBSIZE"), 0);
    expect(shell("head -c 1048576 /dev/zero | $lapse schedule q --id i --in 1h -"), 0,
           "\"id\":\"i\"", NULL);
    server_stop(s);
}

Test(args, a_moment_is_read_to_the_millisecond)
{
    static const struct {
        const char *rest;
        long long ms; /* after midnight UTC of 24 December */
    } table[] = {
        {"T18:00Z", 64800000},
        {"T18:00:30Z", 64830000},
        {"T18:00:30.5Z", 64830500},
        {"T18:00:00.001Z", 64800001},
        {"T18:00+02:00", 57600000},
        {"T18:00-05:30", 84600000},
        {"T00:00+14:00", -50400000},
        {"T18:00:00.0001Z", 64800001},
        {"T18:00:00.25+00:00", 64800250},
    };
    struct server *s = tool_redis();
    time_t now = time(NULL);
    struct tm tm = {.tm_year = gmtime(&now)->tm_year + 1, .tm_mon = 11, .tm_mday = 24};
    int year = tm.tm_year + 1900;
    long long midnight = (long long)timegm(&tm) * 1000;

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[64];
        snprintf(text, sizeof text, "%d-12-24%s", year, table[i].rest);
        struct proc *p = lapse("schedule", "q", "--at", text);
        cr_assert_eq(p->status, 0, "%s: %s", text, p->err);
        cr_assert_eq(member(p->out, "due_ms"), midnight + table[i].ms, "%s: %s", text, p->out);
        proc_free(p);
    }

    server_stop(s);
}

Test(args, a_duration_adds_up_its_parts)
{
    static const struct {
        const char *text;
        long long ms;
    } table[] = {
        {"250ms", 250},         {"90s", 90000},   {"30m", 1800000},          {"1h30m", 5400000},
        {"7d", 604800000},      {"1m5ms", 60005}, {"1d1h1m1s1ms", 90061001}, {"0s", 0},
        {"3652d", 315532800000}};
    struct server *s = tool_redis();

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int64_t before = redis_now_ms(s);
        struct proc *p = lapse("schedule", "q", "--in", table[i].text);
        int64_t after = redis_now_ms(s);
        cr_assert_eq(p->status, 0, "%s: %s", table[i].text, p->err);
        long long due = member(p->out, "due_ms");
        cr_assert(due >= before + table[i].ms && due <= after + table[i].ms, "%s: %s",
                  table[i].text, p->out);
        proc_free(p);
    }

    server_stop(s);
}

Test(args, options_and_words_mix_and_two_hyphens_end_them)
{
    struct server *s = tool_redis();

    expect(
        lapse("--format=json", "schedule", "--in=1h", "q", "--id=x", "body", "-o", "reply_ms=3s"),
        0, "\"x\"", NULL);
    expect(lapse("get", "--", "q", "x"), 0, "\"body\":\"body\"", NULL);
    expect(lapse("schedule", "--in", "1h", "--id", "-rf", "--", "q", "--help"), 0, "\"-rf\"", NULL);
    expect(lapse("get", "q", "--", "-rf"), 0, "\"body\":\"--help\"", NULL);
    server_stop(s);
}

Test(args, help_of_every_command_has_examples_and_its_own_options)
{
    static const char *const commands[] = {
        "schedule", "cancel", "reschedule", "requeue", "run",     "kill",    "get",
        "list",     "depth",  "configure",  "pause",   "unpause", "forward", "adopt",
        "claim",    "done",   "retry",      "snooze",  "fail",    "release", "renew",
        "listen",   "dev",    "functions",  "report"};

    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char usage[40];
        snprintf(usage, sizeof usage, "usage: lapse %s ", commands[i]);
        struct proc *p = lapse(commands[i], "--help");
        struct proc *q = lapse("help", commands[i]);
        cr_assert_str_eq(p->out, q->out);
        cr_assert(has(p, "examples:") && has(p, "lapse help options"), "%s", p->out);
        cr_assert(!has(p, "--url") && !has(p, "out of memory"), "once is enough: %s", p->out);
        expect(p, 0, usage, NULL);
        expect(q, 0, usage, NULL);
        p = lapse("help");
        expect(p, 0, commands[i], NULL);
    }
}

Test(args, help_of_options_has_those_of_every_command)
{
    static const char *const options[] = {"--url",          "--option", "--password-file",
                                          "--connect-wait", "--format", "--json",
                                          "--verbose",      "--help",   "--version"};

    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        expect(lapse("help", "options"), 0, options[i], NULL);
    }
}

Test(args, help_has_the_exit_codes_in_their_order)
{
    struct proc *p = lapse("help");
    char *at = strstr(p->out, "exit codes:\n");
    int last = -1;

    cr_assert(at, "%s", p->out);
    while ((at = strchr(at, '\n')) && at[1]) {
        at++;
        cr_assert_gt(atoi(at), last, "%s", at);
        last = atoi(at);
    }

    cr_assert_eq(last, 141);
    expect(p, 0, NULL, NULL);
}

Test(args, help_goes_to_stdout_when_asked_for_and_else_to_stderr)
{
    struct proc *p = proc_run(NULL, "lapse", NULL);

    cr_assert_eq(p->out_len, 0);
    expect(p, 2, NULL, "commands");
    p = lapse("--help");
    cr_assert_eq(p->err_len, 0);
    expect(p, 0, "commands", NULL);
    expect(lapse("--version"), 0, "lapse 0.", NULL);
}
