/* SPDX-License-Identifier: MIT */
#include "redis/server_clock.h"
#include "unit.h"
#include <criterion/criterion.h>

#define HOUR_US ((int64_t)3600000000)

Test(server_clock, server_time_and_ours_convert_both_ways)
{
    struct server_clock c = {.offset_us = -500};

    cr_expect_eq(server_clock_us(&c, 1000), 500);
    cr_expect_eq(server_clock_mono_us(&c, 500), 1000);
    c.offset_us = 1790000000000000;
    cr_expect_eq(server_clock_us(&c, 7), 1790000000000007);
    cr_expect_eq(server_clock_mono_us(&c, 1790000000000007), 7);
    cr_expect_eq(server_clock_mono_us(&c, 1), -1789999999999999, "before we were up");
}

/* Rows are replies to one client, in order: what was asked and heard when, what Redis said, and
 * what we then hold. */
Test(server_clock, keeps_the_latest_offset_that_fits_every_reply)
{
    static const struct {
        int64_t sent, heard, server, offset;
        const char *why;
    } rows[] = {
        {100, 110, 1005, 895, "the first is taken at its lower bound"},
        {120, 130, 1025, 895, "the same again"},
        {200, 5200, 1150, 895, "a stalled one has wide bounds and moves nothing"},
        {300, 305, 1204, 899, "a tighter lower bound is better"},
        {400, 420, 1310, 899, "a slow one between: within its bounds"},
        {500, 510, 1399, 899, "offset equal to the upper bound still fits"},
        {600, 610, 1509, 899, "offset equal to the lower bound too"},
        {700, 710, 1598, 888, "one over the upper bound: Redis's clock went back, by a little"},
        {800, 810, 1699, 889, "one below the lower bound: it went on"},
        {900, 910, 901805, 900895, "a step forward"},
        {1000, 9000, 905000, 900895, "stalled after it"},
        {9100, 9110, 4005, -5105, "a step back"},
        {9200, 9200, 4095, -5105, "no time at all on the way"},
    };
    struct server_clock c = {0};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        server_clock_heard(&c, rows[i].sent, rows[i].heard, rows[i].server);
        cr_expect(c.known);
        cr_expect_eq(c.offset_us, rows[i].offset, "row %zu: %s; it is %ld", i, rows[i].why,
                     (long)c.offset_us);
    }
}

Test(server_clock, says_how_far_it_moved)
{
    static const struct {
        int64_t sent, heard, server, moved;
    } rows[] = {
        {100, 110, 1005, 0},                             /* the first: from nowhere */
        {200, 5200, 1150, 0},       {300, 305, 1204, 0}, /* no more than a tighter bound */
        {900, 910, 901805, 899996}, {9100, 9110, 4005, -906000},
    };
    struct server_clock c = {0};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect_eq(server_clock_heard(&c, rows[i].sent, rows[i].heard, rows[i].server),
                     rows[i].moved, "row %zu", i);
    }
}

/* Until the second reply all is late by as much as the first. */
Test(server_clock, is_not_taken_to_be_set_forward_where_the_first_reply_came_late)
{
    struct server_clock c = {0};

    cr_expect_eq(server_clock_heard(&c, 100, 2000100, 1005), 0);
    cr_expect_eq(server_clock_heard(&c, 2000200, 2000210, 2001105), 0);
    cr_expect_eq(c.offset_us, 895);
    cr_expect_eq(server_clock_heard(&c, 2000300, 2000310, 4001205), 2000000, "but now it is");
}

Test(server_clock, an_offset_of_zero_is_not_one_that_is_known)
{
    struct server_clock c = {0};
    server_clock_heard(&c, 100, 300, 200); /* 0 would fit */
    cr_expect_eq(c.offset_us, -100);
}

Test(server_clock, is_never_ahead_of_a_steady_server)
{
    uint64_t r = 1;

    for (int run = 0; run < 200; run++) {
        struct server_clock c = {0};
        int64_t truth = (int64_t)(unit_random(&r) >> 14) - (1ll << 49);
        int64_t now = 1000;
        int64_t tightest = INT64_MAX;
        for (int i = 0; i < 50; i++) {
            int64_t out = (int64_t)(unit_random(&r) % 1000);
            int64_t back = (int64_t)(unit_random(&r) % 1000);
            back *= unit_random(&r) % 8 ? 1 : 5000;
            server_clock_heard(&c, now, now + out + back, now + out + truth);
            tightest = back < tightest ? back : tightest;
            cr_assert_leq(c.offset_us, truth);
            cr_assert_geq(c.offset_us, truth - 5000 * 1000);
            now += out + back + 10;
        }
        server_clock_heard(&c, now, now, now + truth);
        cr_assert_eq(c.offset_us, truth, "a reply without a way has no doubt in it");
    }
}

Test(server_clock, a_step_is_followed_at_once_and_not_overtaken)
{
    uint64_t r = 2;

    for (int run = 0; run < 200; run++) {
        struct server_clock c = {0};
        int64_t now = 1000;
        int64_t truth = 0;
        for (int i = 0; i < 50; i++) {
            truth += (int64_t)(unit_random(&r) % (2 * HOUR_US)) - HOUR_US;
            int64_t out = (int64_t)(unit_random(&r) % 1000);
            int64_t back = (int64_t)(unit_random(&r) % 1000);
            server_clock_heard(&c, now, now + out + back, now + out + truth);
            cr_assert_leq(c.offset_us, truth + out);
            cr_assert_geq(c.offset_us, truth - back);
            now += out + back + 10;
        }
    }
}

/* Rows are replies as above, and how far what we send reaches: Redis's time when it reads it, less
 * ours when we send it. */
Test(server_clock, reaches_as_far_as_the_fastest_request_of_late)
{
    static const struct {
        int64_t sent, heard, server, reach;
        const char *why;
    } rows[] = {
        {1000, 1500, 2300, 1300, "the first"},
        {2000, 2500, 3250, 1250, "a faster way"},
        {3000, 9000, 8000, 1250, "a slower one moves nothing"},
        {100000, 100500, 101290, 1250, "nor does one that was a little slower"},
        {300000, 300500, 301290, 1250, "half of the replies is full: a new half begins"},
        {310000, 310500, 311280, 1250, "the older half still counts"},
        {560000, 560500, 561270, 1250, "time alone does not fill a half"},
        {561000, 561500, 562270, 1250, "the fourth of it"},
        {562000, 562500, 563275, 1270, "the next: the older half is forgotten"},
        {563000, 563200, 563900, 900, "a way that became shorter counts at once"},
        {564000, 564500, 1565290, 1001290, "a step forward"},
        {565000, 565500, 566250, 1250, "a step back"},
    };
    struct server_clock c = {0};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        server_clock_heard(&c, rows[i].sent, rows[i].heard, rows[i].server);
        int64_t reach = server_clock_arrival_us(&c, 7) - 7;
        cr_expect_eq(reach, rows[i].reach, "row %zu: %s; it is %ld", i, rows[i].why, (long)reach);
        cr_expect_eq(server_clock_send_us(&c, 7 + reach), 7);
    }
}

Test(server_clock, round_trip_is_that_of_the_fastest_way_there_and_the_fastest_way_back)
{
    struct server_clock c = {0};

    server_clock_heard(&c, 1000, 2000, 1600);
    cr_expect_eq(server_clock_round_trip_us(&c), 1000);
    server_clock_heard(&c, 3000, 4000, 3400);
    cr_expect_eq(server_clock_round_trip_us(&c), 800, "a way there of 200 us less");
    server_clock_heard(&c, 5000, 5700, 5500);
    cr_expect_eq(server_clock_round_trip_us(&c), 600, "and a way back of 200 us less");
}
