/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "script/refusal.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- log_escape ---- */
Test(log_escape, of_each_byte)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char in = (char)byte;
        char out[8];
        char want[8];
        bool plain = byte >= ' ' && byte <= '~' && byte != '\\';
        snprintf(want, sizeof want, plain ? "%c" : "\\x%02x", byte);
        cr_expect_eq(log_escape(out, sizeof out, &in, 1), out);
        cr_expect_str_eq(out, want);
    }
}

Test(log_escape, is_one_to_one)
{
    char out[64];
    cr_expect_str_eq(log_escape(out, sizeof out, "a\\x0a\n", 6), "a\\x5cx0a\\x0a");
    cr_expect_str_eq(log_escape(out, sizeof out, "a\0b", 3), "a\\x00b");
    cr_expect_str_eq(log_escape(out, sizeof out, "abc", 0), "");
    cr_expect_str_eq(log_escape(out, sizeof out, NULL, 0), "");
}

/* In a block of exactly its size: what is beyond is ASan's to see. */
Test(log_escape, cuts_to_fit_and_never_within_an_escape)
{
    static const char *const texts[] = {
        "", "a", "abcdefghijkl", "\n\n\n\n\n", "ab\ncd\nef\n", "abcde\n", "\\\\\\", "abcdefg\n"};

    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        char whole[64];
        log_escape(whole, sizeof whole, texts[t], strlen(texts[t]));
        void *in = unit_copy(texts[t], strlen(texts[t]));
        for (size_t size = 1; size < 40; size++) {
            char *out = malloc(size);
            log_escape(out, size, in, strlen(texts[t]));
            size_t len = strlen(out);
            cr_assert_lt(len, size);
            cr_expect(strncmp(out, whole, len) == 0, "%s is no start of %s", out, whole);
            cr_expect(len == strlen(whole) || len + 5 >= size, "%zu: %s is cut too soon", size,
                      out);
            const char *last = strrchr(out, '\\');
            cr_expect(!last || strlen(last) >= 4, "%s ends within an escape", out);
            free(out);
        }
        free(in);
    }
}

/* ---- log_line ---- */
static char said[2048];
static int level, lines;
static char arg;

static void note(int at_level, const char *line, void *at_arg)
{
    cr_expect_eq(at_arg, &arg);
    snprintf(said, sizeof said, "%s", line);
    level = at_level;
    lines++;
}

static struct log log_ = {.fn = note, .arg = &arg};

static void start(void)
{
    unit_clock.mono_at_us = 5000000000;
}

TestSuite(log, .init = start);

Test(log, says_a_line_with_its_level)
{
    log_line(&log_, LOG_CONNECT, LOG_WARNING, "no %s in %d ms", "answer", 50);
    cr_expect_str_eq(said, "no answer in 50 ms");
    cr_expect_eq(level, LOG_WARNING);
    log_line(&log_, LOG_DATA, LOG_ERR, "plain");
    cr_expect_str_eq(said, "plain");
    cr_expect_eq(level, LOG_ERR);
    cr_expect_eq(lines, 2);
}

Test(log, escapes_what_is_in_a_line)
{
    log_line(&log_, LOG_REFUSED, LOG_ERR, "Redis said: %s", "ERR a\r\nb\x1b[31m\\\xff");
    cr_expect_str_eq(said, "Redis said: ERR a\\x0d\\x0ab\\x1b[31m\\\\xff");
}

Test(log, escapes_each_byte_and_a_value_that_was_escaped_not_again)
{
    for (unsigned byte = 1; byte < 256; byte++) {
        char in[2] = {(char)byte, 0};
        char value[8];
        char want[8];
        snprintf(want, sizeof want, byte >= ' ' && byte <= '~' ? "%c" : "\\x%02x", byte);
        unit_clock.mono_at_us += 1000000;
        log_line(&log_, LOG_DATA, LOG_ERR, "%s", in);
        cr_expect_str_eq(said, want);
        unit_clock.mono_at_us += 1000000;
        log_line(&log_, LOG_DATA, LOG_ERR, "%s", log_escape(value, sizeof value, in, 1));
        cr_expect_str_eq(said, byte == '\\' ? "\\x5c" : want);
    }
}

Test(log, what_redis_refused_with_is_escaped_once_and_cut_at_256_bytes)
{
    static struct context context;
    char text[5000] = "ERR a\r\n\0\\\x1b[2J";

    memset(text + 13, 'x', sizeof text - 13);
    context.log = log_;
    cr_expect_eq(refusal_code(&context, "claim", (struct span){text, sizeof text}), LAPSE_EREFUSED);
    cr_expect(strstr(said, "ERR a\\x0d\\x0a\\x00\\x5c\\x1b[2Jxxx"), "%s", said);
    const char *xs = strstr(said, "xxx");
    size_t len = strspn(xs, "x") + (size_t)(xs - strstr(said, "ERR"));
    cr_expect(len > 240 && len <= 256, "%zu", len);
}

Test(log, without_a_function_does_nothing)
{
    struct log none = {0};

    log_line(&none, LOG_DATA, LOG_ERR, "x");
    log_line(&none, LOG_DATA, LOG_ERR, "x");
    cr_expect_eq(none.held_back[LOG_DATA], 0);
    none.fn = note;
    none.arg = &arg;
    log_line(&none, LOG_DATA, LOG_ERR, "now");
    cr_expect_str_eq(said, "now");
}

Test(log, holds_back_within_a_second_and_says_how_many)
{
    log_line(&log_, LOG_DATA, LOG_ERR, "one");
    for (int i = 0; i < 3; i++) {
        log_line(&log_, LOG_DATA, LOG_ERR, "two");
    }

    unit_clock.mono_at_us += 999999;
    log_line(&log_, LOG_DATA, LOG_ERR, "three");
    cr_expect_eq(lines, 1);
    cr_expect_str_eq(said, "one");
    unit_clock.mono_at_us++;
    log_line(&log_, LOG_DATA, LOG_ERR, "four");
    cr_expect_eq(lines, 2);
    cr_expect_str_eq(said, "four (and 4 more like it)");
    log_line(&log_, LOG_DATA, LOG_ERR, "five");
    cr_expect_eq(lines, 2, "the second began again");
    unit_clock.mono_at_us += 1000000;
    log_line(&log_, LOG_DATA, LOG_ERR, "six");
    cr_expect_str_eq(said, "six (and 1 more like it)", "and so did the count");
    unit_clock.mono_at_us += 1000000;
    log_line(&log_, LOG_DATA, LOG_ERR, "seven");
    cr_expect_str_eq(said, "seven");
    cr_expect_eq(lines, 4);
}

Test(log, sites_do_not_hold_each_other_back)
{
    for (int i = 0; i < 2; i++) {
        for (int site = 0; site < LOG_SITES; site++) {
            log_line(&log_, (enum log_site)site, LOG_ERR, "site %d", site);
        }
    }

    cr_expect_eq(lines, LOG_SITES);
    unit_clock.mono_at_us += 1000000;
    log_line(&log_, LOG_MEMORY, LOG_ERR, "x");
    cr_expect_str_eq(said, "x (and 1 more like it)");
}

Test(log, cuts_a_long_line)
{
    char text[3000];

    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    log_line(&log_, LOG_DATA, LOG_ERR, "%s", text);

    size_t len = strlen(said);
    cr_expect(len >= 400 && len <= 512, "%zu", len);
    cr_expect_eq(strspn(said, "a"), len);
    memset(text, '\n', sizeof text - 1);
    log_line(&log_, LOG_LEASE, LOG_ERR, "%s", text);
    len = strlen(said);
    cr_expect(len >= 900 && len < 1024, "%zu", len);
    cr_expect_str_eq(said + len - 4, "\\x0a");
    memset(text, 'a', 600);

    for (size_t n = 460; n < 530; n++) { /* around the length that fits */
        unit_clock.mono_at_us += 1000000;
        log_line(&log_, LOG_NO_EVENTS, LOG_ERR, "%.*s", (int)n, text);
        cr_expect_eq(strlen(said), n < 511 ? n : 511);
    }
}

Test(log, a_long_line_says_how_many_too)
{
    static const char *const pieces[] = {"a", "\n"};

    for (int n = 0; n < 600; n++) {
        const char *piece = pieces[n % 2];
        char text[601];
        memset(text, *piece, sizeof text - 1);
        log_.held_back[LOG_DATA] = UINT_MAX;
        unit_clock.mono_at_us += 1000000;
        log_line(&log_, LOG_DATA, LOG_ERR, "%.*s", n, text);
        const char *tail = " (and 4294967295 more like it)";
        size_t len = strlen(said);
        size_t tail_len = strlen(tail);
        cr_assert(len >= tail_len && len < 1024, "%d: %zu", n, len);
        cr_expect_str_eq(said + len - tail_len, tail, "%d", n);
    }
}
