/* SPDX-License-Identifier: MIT */
#include "base/quantity.h"
#include <criterion/criterion.h>

enum { DAY_MS = 24 * 3600 * 1000 };

Test(quantity, of_time_is_numbers_with_units_the_largest_first)
{
    static const struct {
        const char *text;
        int64_t ms; /* -1: none */
    } rows[] = {
        {"250ms", 250},
        {"0ms", 0},
        {"007s", 7000},
        {"1h30m", 5400000},
        {"1d1h1m1s1ms", 90061001},
        {"2d", 2 * DAY_MS},
        {"1s500ms", 1500},
        {"90m", 5400000},
        {"106751991167d", INT64_C(9223372036828800000)},
        {"106751991168d", -1},
        {"9223372036854775807ms", INT64_MAX},
        {"9223372036854775808ms", -1},
        {"1s9223372036854774807ms", INT64_MAX},
        {"1s9223372036854774808ms", -1},
        {"5s1h", -1},
        {"1ms1s", -1},
        {"1s1s", -1},
        {"1m1m", -1},
        {"", -1},
        {"5000", -1},
        {"1h30", -1},
        {"s", -1},
        {"1.5s", -1},
        {"1 s", -1},
        {"1s ", -1},
        {" 1s", -1},
        {"-1s", -1},
        {"+1s", -1},
        {"1S", -1},
        {"1sec", -1},
        {"1w", -1},
        {"1B", -1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t ms = -99;
        cr_expect_eq(quantity_ms(rows[i].text, &ms), rows[i].ms >= 0, "\"%s\"", rows[i].text);
        cr_expect_eq(ms, rows[i].ms >= 0 ? rows[i].ms : -99, "\"%s\" is %ld", rows[i].text,
                     (long)ms);
    }
}

Test(quantity, of_memory_is_likewise)
{
    static const struct {
        const char *text;
        int64_t bytes; /* -1: none */
    } rows[] = {
        {"7B", 7},
        {"2KiB", 2048},
        {"3MiB", 3 << 20},
        {"4GiB", 4LL << 30},
        {"1MiB1KiB", 1049600},
        {"1KiB1MiB", -1},
        {"3M", -1},
        {"3MB", -1},
        {"3mib", -1},
        {"1TiB", -1},
        {"64", -1},
        {"8589934592GiB", -1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t bytes = -99;
        cr_expect_eq(quantity_bytes(rows[i].text, &bytes), rows[i].bytes >= 0, "\"%s\"",
                     rows[i].text);
        cr_expect_eq(bytes, rows[i].bytes >= 0 ? rows[i].bytes : -99, "\"%s\" is %ld", rows[i].text,
                     (long)bytes);
    }
}
