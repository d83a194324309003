/* SPDX-License-Identifier: MIT */
#include "redis/handshake.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <hiredis/hiredis.h>
#include <stdio.h>

#define VERSION "$7\r\nversion\r\n"

static struct redisReply *hello_of(const char *version)
{
    char text[200];
    int len = snprintf(text, sizeof text,
                       "*6\r\n$6\r\nserver\r\n$5\r\nredis\r\n" VERSION "$%zu\r\n%s\r\n"
                       "$5\r\nproto\r\n:2\r\n",
                       strlen(version), version);

    return unit_reply(text, (size_t)len);
}

Test(handshake, knows_a_redis_before_7_by_its_version)
{
    static const struct {
        const char *version;
        bool too_old;
    } rows[] = {
        {"6.2.14", true},  {"1.0", true},   {"7.0.0", false}, {"7.4.1", false},   {"8.0.2", false},
        {"10.0.0", false}, {"60.1", false}, {"0.9", false},   {"255.255", false}, {"6", false},
        {"6-rc1", false},  {"v6.2", false}, {"", false},      {"unknown", false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct redisReply *hello = hello_of(rows[i].version);
        struct span version;
        cr_expect_eq(handshake_is_too_old(hello, &version), rows[i].too_old, "%s", rows[i].version);
        cr_expect(span_is(version, rows[i].version), "%s", rows[i].version);
        freeReplyObject(hello);
    }
}

Test(handshake, of_an_answer_that_tells_no_version_says_nothing)
{
    struct redisReply *answers[] = {
        UNIT_REPLY("-ERR unknown command 'HELLO'\r\n"),
        UNIT_REPLY("+OK\r\n"),
        UNIT_REPLY("*0\r\n"),
        UNIT_REPLY("*1\r\n" VERSION),
        UNIT_REPLY("*3\r\n$6\r\nserver\r\n$5\r\nredis\r\n" VERSION),
        UNIT_REPLY("*2\r\n" VERSION ":6\r\n"),
        UNIT_REPLY("*2\r\n:1\r\n$3\r\n6.2\r\n"),
        UNIT_REPLY("*2\r\n$5\r\nproto\r\n$3\r\n6.2\r\n"),
    };
    struct span version;

    cr_expect_not(handshake_is_too_old(NULL, &version));
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        cr_expect_not(handshake_is_too_old(answers[i], &version), "answer %zu", i);
        cr_expect_eq(version.len, 0, "answer %zu", i);
        freeReplyObject(answers[i]);
    }
}

Test(handshake, is_done_though_the_user_may_not_ping)
{
    static const char may_not_ping[] = "-NOPERM User u has no permissions to run the 'ping'\r\n";
    struct redisReply *ok = UNIT_REPLY("+OK\r\n");
    struct redisReply *noperm = UNIT_REPLY(may_not_ping);
    struct redisReply *loading = UNIT_REPLY("-LOADING Redis is loading the dataset\r\n");
    struct handshake h = {.left = 2};
    struct span error;

    cr_expect_eq(handshake_take(&h, noperm, &error), HANDSHAKE_REFUSED, "it is that of SELECT");
    cr_expect(span_starts(error, "NOPERM"));
    cr_expect_eq(handshake_take(&h, ok, &error), HANDSHAKE_GOES_ON);
    cr_expect_eq(handshake_take(&h, loading, &error), HANDSHAKE_REFUSED);
    cr_expect_eq(handshake_take(&h, noperm, &error), HANDSHAKE_DONE);

    freeReplyObject(ok);
    freeReplyObject(noperm);
    freeReplyObject(loading);
}
