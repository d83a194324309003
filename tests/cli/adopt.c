/* SPDX-License-Identifier: MIT */
/* lapse adopt: what it prints and exits with. */
#include "tool.h"

#define STREAM "lapse:{q}:stream"

/* Entries 1 to n, given to a consumer that is gone, an hour ago. */
static struct server *with_a_stream(int n)
{
    static const char script[] =
        "for i = 1, ARGV[1] do redis.call('XADD', KEYS[1], i .. '-1', 'id', 'j' .. i, "
        "'due_ms', '1790000000000', 'try', '1', 'token', '7', 'body', 'b' .. i) end "
        "redis.call('XREADGROUP', 'GROUP', 'g', 'gone', 'STREAMS', KEYS[1], '>') "
        "for i = 1, ARGV[1] do redis.call('XCLAIM', KEYS[1], 'g', 'gone', 0, i .. '-1', "
        "'IDLE', 3600000, 'RETRYCOUNT', 3, 'JUSTID') end";
    struct server *s = tool_redis();
    char number[16];

    snprintf(number, sizeof number, "%d", n);
    expect(lapse("configure", "q", "forward=stream", "forward_groups=g"), 0, NULL, NULL);
    redis_do(s, "EVAL %s 1 " STREAM " %s", script, number);
    return s;
}

static long long pending_of(struct server *s, const char *consumer)
{
    static const char script[] =
        "for _, c in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], 'g')) do "
        "if c[2] == ARGV[1] then return c[4] end end return -1";

    return redis_int(s, "EVAL %s 1 " STREAM " %s", script, consumer);
}

Test(adopt, prints_each_entry_with_its_job_and_its_deliveries)
{
    struct server *s = with_a_stream(2);
    struct proc *p = lapse("adopt", "q", "--group", "g", "--to", "me");

    cr_assert_str_eq(p->out,
                     "{\"queue\":\"q\",\"id\":\"j1\",\"body\":\"b1\",\"due_ms\":1790000000000,"
                     "\"try\":1,\"token\":7,\"entry\":\"1-1\",\"deliveries\":4}\n"
                     "{\"queue\":\"q\",\"id\":\"j2\",\"body\":\"b2\",\"due_ms\":1790000000000,"
                     "\"try\":1,\"token\":7,\"entry\":\"2-1\",\"deliveries\":4}\n");
    expect(p, 0, NULL, NULL);
    expect(lapse("adopt", "q", "--group", "g", "--to", "me"), 0, "", "");
    cr_assert_eq(pending_of(s, "me"), 2);

    redis_do(s, "XADD " STREAM " 4-1 id j4 due_ms 5 try 1 token 7 body x header:trace %s", "4bf9");
    redis_do(s, "XREADGROUP GROUP g gone STREAMS " STREAM " >");
    redis_do(s, "XCLAIM " STREAM " g gone 0 4-1 IDLE 61000 JUSTID");
    expect(lapse("adopt", "q", "--group", "g", "--to", "me"), 0,
           "\"deliveries\":2,\"headers\":{\"trace\":\"4bf9\"}}\n", NULL);

    redis_do(s, "XADD " STREAM " 5-1 a %s", "b");
    redis_do(s, "XREADGROUP GROUP g gone STREAMS " STREAM " >");
    redis_do(s, "XCLAIM " STREAM " g gone 0 2-1 5-1 IDLE 61000 RETRYCOUNT 5 JUSTID");
    p = lapse("adopt", "q", "--group", "g", "--to", "you", "--format", "text");
    cr_assert_str_eq(p->out,
                     "q/j2 entry 2-1 deliveries 6 due 2026-09-21T14:13:20.000Z try 1: b2\n"
                     "q: entry 5-1 deliveries 6: stored data is in a format this version cannot "
                     "read\n");
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

Test(adopt, of_an_entry_of_another_program_has_an_error)
{
    struct server *s = with_a_stream(0);

    redis_do(s, "XADD " STREAM " 3-1 a %s", "b");
    redis_do(s, "XREADGROUP GROUP g gone STREAMS " STREAM " >");
    redis_do(s, "XCLAIM " STREAM " g gone 0 3-1 IDLE 61000 JUSTID");
    expect(lapse("adopt", "q", "--group", "g", "--to", "me"), 0,
           "\"id\":\"\",\"body\":\"\",\"due_ms\":0,\"try\":0,\"token\":0,\"entry\":\"3-1\","
           "\"deliveries\":2,\"error\":\"stored data",
           NULL);
    server_stop(s);
}

Test(adopt, moves_all_or_as_many_as_were_asked_for)
{
    struct server *s = with_a_stream(450);
    struct proc *p = lapse("adopt", "q", "--group", "g", "--to", "me", "-n", "201");

    cr_assert_eq(count_of(p->out, "\"entry\":"), 201);
    cr_assert(has(p, "\"entry\":\"201-1\""), "%s", p->out);
    expect(p, 0, NULL, "");
    p = lapse("adopt", "q", "--group", "g", "--to", "me", "--idle", "1h");
    cr_assert_eq(count_of(p->out, "\"entry\":"), 249);
    expect(p, 0, NULL, "");
    cr_assert_eq(pending_of(s, "me"), 450);

    /* one that was moved a moment ago is not moved twice, however short the time */
    p = lapse("adopt", "q", "--group", "g", "--to", "me", "--idle", "1ms");
    cr_assert_eq(count_of(p->out, "\"entry\":"), 450);
    expect(p, 0, NULL, "");
    server_stop(s);
}

Test(adopt, whose_reader_goes_away_moves_no_more_pages)
{
    struct server *s = with_a_stream(3000);

    expect(shell("$lapse adopt q --group g --to me | head -n 1"), 0, "\"entry\":\"1-1\"", NULL);
    cr_assert_lt(pending_of(s, "me"), 3000);
    server_stop(s);
}

Test(adopt, without_a_stream_or_such_a_group_exits_1)
{
    static const char message[] = "q: is not forwarded to a stream that has a group h";
    struct server *s = tool_redis();

    expect(lapse("adopt", "q", "--group", "h", "--to", "me"), 1, "", message);
    expect(lapse("configure", "q", "forward=list"), 0, NULL, NULL);
    expect(lapse("adopt", "q", "--group", "h", "--to", "me"), 1, "", message);
    expect(lapse("configure", "q", "forward=stream", "forward_groups=g"), 0, NULL, NULL);
    expect(lapse("adopt", "q", "--group", "h", "--to", "me"), 1, "", message);
    redis_do(s, "DEL " STREAM);
    redis_do(s, "SET " STREAM " x");
    expect(lapse("adopt", "q", "--group", "g", "--to", "me"), 69, "", "WRONGTYPE");
    server_stop(s);
}

Test(adopt, with_wrong_options_exits_2_and_changes_nothing)
{
    static const char *const bad[][2] = {
        {"", "missing option --group"},
        {"--group g", "missing option --to"},
        {"--to me", "missing option --group"},
        {"--group '' --to me", "--group '': must be 1 to 1024 bytes"},
        {"--group g --to ''", "--to '': must be 1 to 1024 bytes"},
        {"--group g --to $(printf %01025d 0)", "must be 1 to 1024 bytes"},
        {"--group g --to me --idle -1s", "--idle '-1s': must be"},
        {"--group g --to me --idle 0s", "--idle '0s': must be at least 1ms"},
        {"--group g --to me -n 0", "--limit '0': must be a whole number"},
        {"--group g --to me x", "unexpected argument 'x'"},
    };
    struct server *s = with_a_stream(2);

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char line[200];
        snprintf(line, sizeof line, "$lapse adopt q %s", bad[i][0]);
        expect(shell(line), 2, "", bad[i][1]);
    }
    expect(lapse("adopt"), 2, "", "missing argument QUEUE");
    expect(lapse("adopt", "q q", "--group", "g", "--to", "me"), 2, "", "queue");
    cr_assert_eq(pending_of(s, "gone"), 2);

    struct proc *p = shell("$lapse adopt q --group g --to $(printf %01024d 0)");
    cr_assert_eq(count_of(p->out, "\"entry\":"), 2);
    expect(p, 0, NULL, "");
    server_stop(s);
}
