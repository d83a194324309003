/* SPDX-License-Identifier: MIT */
#include "base/span.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct span span(const char *s, size_t len)
{
    return (struct span){s, len};
}

Test(span, is_compares_length_and_bytes)
{
    cr_expect(span_is(span("abc", 3), "abc"));
    cr_expect(span_is(span("abcd", 3), "abc"));
    cr_expect(span_is(span("abc", 0), ""));
    cr_expect(span_is(span(NULL, 0), ""));
    cr_expect_not(span_is(span("abc", 2), "abc"));
    cr_expect_not(span_is(span("abc", 3), "ab"));
    cr_expect_not(span_is(span("abd", 3), "abc"));
    cr_expect_not(span_is(span("abc\0", 4), "abc"), "a NUL is a byte too");
}

Test(span, eq_compares_every_byte)
{
    cr_expect(span_eq(span("a\0b", 3), span("a\0b", 3)));
    cr_expect_not(span_eq(span("a\0b", 3), span("a\0c", 3)));
    cr_expect(span_eq(span(NULL, 0), span("x", 0)));
    cr_expect(span_eq(span_of("abc"), span("abcd", 3)));
}

Test(span, skip_drops_only_what_is_there)
{
    struct span s = span("key:{q}", 7);

    cr_expect_not(span_skip(&s, "kez"));
    cr_expect_not(span_skip(&s, "key:{q}x"), "longer than the span");
    cr_expect(span_is(s, "key:{q}"));
    cr_expect(span_starts(s, "key:") && span_skip(&s, "key:"));
    cr_expect(span_is(s, "{q}"));
    cr_expect(span_skip(&s, "") && span_skip(&s, "{q}"));
    cr_expect_eq(s.len, 0);
    cr_expect_not(span_starts(s, "x"));
}

Test(span, cut_splits_at_the_first_mark)
{
    struct span s = span("a:b:c", 3);
    struct span before = span("untouched", 9);

    cr_expect(span_cut(&s, ':', &before));
    cr_expect(span_is(before, "a") && span_is(s, "b"));
    cr_expect_not(span_cut(&s, ':', &before), "the rest of the text is not in the span");
    cr_expect(span_is(before, "a") && span_is(s, "b"));

    s = span(":", 1);
    cr_expect(span_cut(&s, ':', &before));
    cr_expect(before.len == 0 && s.len == 0);
}

Test(span, decimal_reads_digits_alone)
{
    static const struct {
        const char *text;
        int64_t max, number; /* -1: none */
    } rows[] = {
        {"0", 0, 0},
        {"1", 0, -1},
        {"7", 5, -1},
        {"5", 5, 5},
        {"10", 10, 10},
        {"11", 10, -1},
        {"007", 9, 7},
        {"00000000000000000000000000000001", 1, 1},
        {"9007199254740992", (int64_t)1 << 53, (int64_t)1 << 53},
        {"9007199254740993", (int64_t)1 << 53, -1},
        {"9223372036854775807", INT64_MAX, INT64_MAX},
        {"9223372036854775808", INT64_MAX, -1},
        {"18446744073709551617", INT64_MAX, -1},
        {"99999999999999999999999", INT64_MAX, -1},
        {"", 9, -1},
        {"-1", 9, -1},
        {"+1", 9, -1},
        {" 1", 9, -1},
        {"1 ", 9, -1},
        {"1.0", 9, -1},
        {"1e3", 9999, -1},
        {"/", 99, -1},
        {":", 99, -1},
        {"\xb1", 99, -1},
        {"0x1", 99, -1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t len = strlen(rows[i].text);
        char *text = unit_copy(rows[i].text, len); /* not terminated */
        int64_t n = -99;
        cr_expect_eq(span_decimal(span(text, len), rows[i].max, &n), rows[i].number >= 0, "\"%s\"",
                     rows[i].text);
        cr_expect_eq(n, rows[i].number >= 0 ? rows[i].number : -99, "\"%s\" is %ld", rows[i].text,
                     (long)n);
        free(text);
    }

    int64_t n = 0;
    cr_expect_not(span_decimal(span("1\0", 2), 99, &n), "a NUL is no digit");
}

Test(span, hash_is_fnv_1a)
{
    static const struct {
        const char *id;
        uint32_t hash;
    } rows[] = {{"", 0x811c9dc5},
                {"a", 0xe40c292c},
                {"b", 0xe70c2de5},
                {"foobar", 0xbf9cf968},
                {"\xff", 0x7a0b824e}};

    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        uint32_t h = span_hash(span_of(rows[n].id));
        cr_expect_eq(h, rows[n].hash, "%s: %08x", rows[n].id, h);
    }

    cr_expect_eq(span_hash(span("foobarx", 6)), 0xbf9cf968, "len bytes and no more");
}
