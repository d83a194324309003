/* SPDX-License-Identifier: MIT */
#include "redis/handshake.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

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
        struct hello h;
        hello_read(&h, hello);
        cr_expect_eq(hello_is_too_old(&h), rows[i].too_old, "%s", rows[i].version);
        cr_expect_str_eq(h.version, rows[i].version);
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
    struct hello h;

    hello_read(&h, NULL);
    cr_expect_not(hello_is_too_old(&h));
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        hello_read(&h, answers[i]);
        cr_expect_not(hello_is_too_old(&h), "answer %zu", i);
        cr_expect_str_eq(h.version, "", "answer %zu", i);
        freeReplyObject(answers[i]);
    }
}

Test(handshake, reads_mode_and_role_and_cuts_what_is_too_long)
{
    struct redisReply *reply =
        UNIT_REPLY("*8\r\n$4\r\nmode\r\n$8\r\nsentinel\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"
                   "$2\r\nid\r\n:7\r\n" VERSION "$29\r\n7.0.0000000000000000000000000\r\n");
    struct hello h;

    hello_read(&h, reply);
    cr_expect_str_eq(h.mode, "sentinel");
    cr_expect_str_eq(h.role, "master");
    cr_expect_eq(strlen(h.version), sizeof h.version - 1);
    freeReplyObject(reply);
}

static const char MAY_NOT_PING[] = "-NOPERM User u has no permissions to run the 'ping'\r\n";

Test(handshake, lets_in_though_the_user_may_not_ping_and_hello_is_unknown)
{
    struct redisReply *ok = UNIT_REPLY("+OK\r\n");
    struct redisReply *unknown = UNIT_REPLY("-ERR unknown command 'HELLO'\r\n");
    struct redisReply *noperm = UNIT_REPLY(MAY_NOT_PING);
    struct handshake h = {.sent = {HANDSHAKE_AUTH, HANDSHAKE_HELLO, HANDSHAKE_PING}, .n_sent = 3};

    cr_expect_not(handshake_take(&h, ok));
    cr_expect_not(handshake_take(&h, unknown));
    cr_expect(handshake_take(&h, noperm));
    cr_expect_str_eq(h.error, "");

    freeReplyObject(ok);
    freeReplyObject(unknown);
    freeReplyObject(noperm);
}

Test(handshake, keeps_the_first_refusal_until_all_is_answered)
{
    struct redisReply *noperm = UNIT_REPLY(MAY_NOT_PING);
    struct redisReply *noauth = UNIT_REPLY("-NOAUTH Authentication required.\r\n");
    struct redisReply *loading = UNIT_REPLY("-LOADING Redis is loading the dataset\r\n");
    struct handshake h = {.sent = {HANDSHAKE_SELECT, HANDSHAKE_PING}, .n_sent = 2};

    cr_expect_not(handshake_take(&h, noperm), "it is that of SELECT");
    cr_expect(handshake_take(&h, noauth));
    cr_expect(span_starts(span_of(h.error), "NOPERM"), "%s", h.error);

    h = (struct handshake){.sent = {HANDSHAKE_PING}, .n_sent = 1};
    cr_expect(handshake_take(&h, loading));
    cr_expect(span_starts(span_of(h.error), "LOADING"), "%s", h.error);

    freeReplyObject(noperm);
    freeReplyObject(noauth);
    freeReplyObject(loading);
}
