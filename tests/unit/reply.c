/* SPDX-License-Identifier: MIT */
#include "redis/reply.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <hiredis/hiredis.h>

/* One of each type that RESP2 has, and what each reader must make of it. */
static const struct {
    const char *what, *resp;
    int64_t number; /* -1: not one */
    const char *text, *error;
    size_t len;
} rows[] = {
    {"a string", "$3\r\nabc\r\n", -1, "abc", NULL, 0},
    {"an empty string", "$0\r\n\r\n", -1, "", NULL, 0},
    {"a string of digits", "$4\r\n0042\r\n", 42, "0042", NULL, 0},
    {"a status", "+OK\r\n", -1, "OK", NULL, 0},
    {"a status of digits", "+7\r\n", 7, "7", NULL, 0},
    {"an integer", ":7\r\n", 7, NULL, NULL, 0},
    {"zero", ":0\r\n", 0, NULL, NULL, 0},
    {"the largest integer of Lua", ":9007199254740992\r\n", 9007199254740992, NULL, NULL, 0},
    {"a larger one", ":9007199254740993\r\n", -1, NULL, NULL, 0},
    {"the largest integer", ":9223372036854775807\r\n", -1, NULL, NULL, 0},
    {"nil", "$-1\r\n", -1, NULL, NULL, 0},
    {"a nil array", "*-1\r\n", -1, NULL, NULL, 0},
    {"an error", "-LAPSE ENOENT\r\n", -1, NULL, "LAPSE ENOENT", 0},
    {"an error of digits", "-7\r\n", -1, NULL, "7", 0},
    {"an empty array", "*0\r\n", -1, NULL, NULL, 0},
    {"an array", "*2\r\n:1\r\n+b\r\n", -1, NULL, NULL, 2},
    {"an array of one integer", "*1\r\n:5\r\n", -1, NULL, NULL, 1},
};

Test(reply, of_each_type_is_read_by_its_readers_alone)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct redisReply *r = unit_reply(rows[i].resp, strlen(rows[i].resp));
        int64_t number = -99;
        struct span text = {"untouched", 9};
        struct span error = {"untouched", 9};
        cr_expect_eq(reply_int(r, &number), rows[i].number >= 0, "%s", rows[i].what);
        cr_expect_eq(number, rows[i].number >= 0 ? rows[i].number : -99, "%s is %ld", rows[i].what,
                     (long)number);
        const char *want = rows[i].text ? rows[i].text : "untouched";
        cr_expect_eq(reply_text(r, &text), rows[i].text != NULL, "%s", rows[i].what);
        cr_expect(span_is(text, want), "%s", rows[i].what);
        want = rows[i].error ? rows[i].error : "untouched";
        cr_expect_eq(reply_error(r, &error), rows[i].error != NULL, "%s", rows[i].what);
        cr_expect(span_is(error, want), "%s", rows[i].what);
        cr_expect_eq(reply_len(r), rows[i].len, "%s", rows[i].what);
        for (size_t at = 0; at < 4; at++) {
            cr_expect_eq(reply_at(r, at) != NULL, at < rows[i].len, "%s, element %zu", rows[i].what,
                         at);
        }
        cr_expect_null(reply_at(r, SIZE_MAX));
        freeReplyObject(r);
    }
}

Test(reply, that_is_not_there_is_nothing)
{
    int64_t number = -99;
    struct span text = {"untouched", 9};

    cr_expect_eq(reply_len(NULL), 0);
    cr_expect_null(reply_at(NULL, 0));
    cr_expect_not(reply_int(NULL, &number));
    cr_expect_not(reply_text(NULL, &text));
    cr_expect_not(reply_error(NULL, &text));
    cr_expect_eq(number, -99);
    cr_expect(span_is(text, "untouched"));
}

Test(reply, elements_are_found_by_their_place)
{
    struct redisReply *r = UNIT_REPLY("*3\r\n:10\r\n*2\r\n:20\r\n:21\r\n$1\r\nx\r\n");
    int64_t n = 0;
    struct span text;

    cr_expect(reply_int(reply_at(r, 0), &n) && n == 10);
    cr_expect_eq(reply_len(reply_at(r, 1)), 2);
    cr_expect(reply_int(reply_at(reply_at(r, 1), 1), &n) && n == 21);
    cr_expect(reply_text(reply_at(r, 2), &text) && span_is(text, "x"));
    cr_expect_null(reply_at(reply_at(r, 0), 0), "an integer has no elements");
    cr_expect_null(reply_at(reply_at(r, 3), 0), "and what is not there has none");
    freeReplyObject(r);
}

Test(reply, an_integer_may_be_text)
{
    static const struct {
        const char *text;
        int64_t number; /* -1: not one */
    } texts[] = {
        {"0", 0},
        {"9", 9},
        {"10", 10},
        {"007", 7},
        {"999999999999999", 999999999999999},
        {"9007199254740992", 9007199254740992},
        {"9007199254740993", -1}, /* more than Lua counts exactly */
        {"10000000000000000", -1},
        {"9223372036854775808", -1},
        {"", -1},
        {"-1", -1},
        {"+1", -1},
        {" 1", -1},
        {"1 ", -1},
        {"1.0", -1},
        {"1e3", -1},
        {"/", -1},
        {":", -1},
        {"1/", -1},
        {"1:", -1},
        {"x", -1},
        {"nan", -1},
        {"1x", -1},
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char resp[64];
        int len =
            snprintf(resp, sizeof resp, "$%zu\r\n%s\r\n", strlen(texts[i].text), texts[i].text);
        struct redisReply *r = unit_reply(resp, (size_t)len);
        int64_t n = -99;
        cr_expect_eq(reply_int(r, &n), texts[i].number >= 0, "\"%s\"", texts[i].text);
        cr_expect_eq(n, texts[i].number >= 0 ? texts[i].number : -99, "\"%s\" is %ld",
                     texts[i].text, (long)n);
        freeReplyObject(r);
    }

    struct redisReply *r = UNIT_REPLY(":-5\r\n");
    int64_t n = 0;
    cr_expect(reply_int(r, &n) && n == -5, "a real integer has its sign");
    freeReplyObject(r);
}

Test(reply, texts_have_every_byte)
{
    struct redisReply *r = UNIT_REPLY("$4\r\na\0\r\n\r\n");
    struct span text;
    int64_t n;

    cr_expect(reply_text(r, &text) && span_eq(text, (struct span){"a\0\r\n", 4}));
    freeReplyObject(r);
    r = UNIT_REPLY("$2\r\n1\0\r\n");
    cr_expect_not(reply_int(r, &n), "a NUL is no digit");
    freeReplyObject(r);
}
