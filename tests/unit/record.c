/* SPDX-License-Identifier: MIT */
#include "job/record.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <lapse.h>
#include <stdlib.h>
#include <string.h>

static const unsigned tries[] = {1,     9,     10,         11,         127,          128,
                                 16383, 16384, 0x7fffffff, 0x80000000, LAPSE_FOREVER};
static const int64_t waits[] = {
    0,
    1,
    127,
    128,
    999,
    1000,
    1001,
    16383,
    16384,
    3599999,
    3600000,
    3600001,
    JOB_TEN_YEARS_MS,
    ((int64_t)1 << 49) - 1,
};
enum { TRIES = sizeof tries / sizeof *tries, WAITS = sizeof waits / sizeof *waits };

static size_t encode(unsigned char *out, unsigned tries, int64_t backoff_ms, int64_t max_ms)
{
    struct record r = {.tries = tries, .backoff_ms = backoff_ms, .backoff_max_ms = max_ms};
    return record_encode(out, &r);
}

static bool decode(struct record *r, const void *bytes, size_t len)
{
    return record_decode(r, (struct span){bytes, len});
}

Test(record, comes_back_as_it_was)
{
    for (size_t t = 0; t < TRIES; t++) {
        for (size_t b = 0; b < WAITS * WAITS; b++) {
            int64_t backoff = waits[b % WAITS];
            int64_t max = waits[b / WAITS];
            unsigned char *header = malloc(RECORD_HEADER_MAX); /* exactly: ASan sees a byte more */
            size_t len = encode(header, tries[t], backoff, max);
            cr_assert_leq(len, RECORD_HEADER_MAX);
            struct record r = {0};
            char *record = malloc(len + 4);
            memcpy(record, header, len);
            memcpy(record + len, "\x01\0\xffz", 4);
            cr_assert(decode(&r, record, len + 4), "%u %ld %ld", tries[t], (long)backoff,
                      (long)max);
            cr_assert_eq(r.tries, tries[t]);
            cr_assert_eq(r.backoff_ms, backoff, "%ld", (long)r.backoff_ms);
            cr_assert_eq(r.backoff_max_ms, max, "%ld", (long)r.backoff_max_ms);
            cr_assert_eq(r.body.at, record + len);
            cr_assert_eq(r.body.len, 4);
            free(record);
            free(header);
        }
    }
}

/* The bytes are what other versions, and the scripts, read. */
Test(record, is_these_bytes)
{
    static const struct {
        unsigned tries;
        int64_t backoff_ms, max_ms;
        const char *bytes;
        size_t len;
    } rows[] = {
        {10, 1000, 3600000, "\x01\x00", 2},
        {1, 1000, 3600000, "\x01\x01\x01", 3},
        {128, 1000, 3600000, "\x01\x01\x80\x01", 4},
        {LAPSE_FOREVER, 1000, 3600000, "\x01\x01\xff\xff\xff\xff\x0f", 7},
        {10, 0, 3600000, "\x01\x02\x00", 3},
        {10, 300, 3600000, "\x01\x02\xac\x02", 4},
        {10, 1000, 127, "\x01\x04\x7f", 3},
        {3, 127, 16384, "\x01\x07\x03\x7f\x80\x80\x01", 7},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned char out[RECORD_HEADER_MAX];
        size_t len = encode(out, rows[i].tries, rows[i].backoff_ms, rows[i].max_ms);
        cr_assert_eq(len, rows[i].len, "row %zu: %zu bytes", i, len);
        cr_expect_arr_eq(out, rows[i].bytes, len, "row %zu", i);
    }
}

Test(record, cut_in_its_header_is_refused)
{
    for (size_t t = 0; t < TRIES; t++) {
        for (size_t b = 0; b < WAITS * WAITS; b++) {
            unsigned char header[RECORD_HEADER_MAX];
            size_t len = encode(header, tries[t], waits[b % WAITS], waits[b / WAITS]);
            for (size_t cut = 0; cut <= len; cut++) {
                struct record r;
                struct record was;
                memset(&r, 0x5a, sizeof r);
                memcpy(&was, &r, sizeof r);
                void *part = unit_copy(header, cut);
                bool good = decode(&r, part, cut);
                free(part);
                cr_assert_eq(good, cut == len, "%zu of %zu", cut, len);
                cr_assert(good || memcmp(&r, &was, sizeof r) == 0,
                          "a record that is refused fills nothing");
            }
        }
    }
}

Test(record, of_another_version_is_refused)
{
    for (int c = 0; c < 256; c++) {
        struct record r = {0};
        char version[] = {(char)c, 0, 'b'};
        char flags[] = {1, (char)c, 1, 2, 3, 'b'};
        cr_expect_eq(decode(&r, version, sizeof version), c == 1, "version %d", c);
        cr_expect_eq(decode(&r, flags, sizeof flags), c < 8, "flags %d", c);
        size_t fields = (size_t)__builtin_popcount((unsigned)c);
        cr_expect(c >= 8 || r.body.len == 4 - fields, "flags %d", c);
    }
}

Test(record, a_flag_is_for_one_field)
{
    static const struct {
        char flags;
        unsigned tries;
        int64_t backoff_ms, max_ms;
    } rows[] = {{0, 10, 1000, 3600000}, {1, 5, 1000, 3600000}, {2, 10, 5, 3600000},
                {3, 5, 6, 3600000},     {4, 10, 1000, 5},      {5, 5, 1000, 6},
                {6, 10, 5, 6},          {7, 5, 6, 7}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct record r = {0};
        char record[] = {1, rows[i].flags, 5, 6, 7};
        cr_assert(decode(&r, record, sizeof record));
        cr_expect_eq(r.tries, rows[i].tries, "flags %d", rows[i].flags);
        cr_expect_eq(r.backoff_ms, rows[i].backoff_ms, "flags %d", rows[i].flags);
        cr_expect_eq(r.backoff_max_ms, rows[i].max_ms, "flags %d", rows[i].flags);
    }
}

Test(record, a_number_too_large_for_its_field_is_refused)
{
    struct record r = {0};

    cr_expect(decode(&r, "\x01\x01\xff\xff\xff\xff\x0f", 7));
    cr_expect_eq(r.tries, LAPSE_FOREVER);
    cr_expect_not(decode(&r, "\x01\x01\x80\x80\x80\x80\x10", 7), "2^32 tries");
    cr_expect(decode(&r, "\x01\x02\xff\xff\xff\xff\xff\xff\x7f", 9));
    cr_expect_eq(r.backoff_ms, ((int64_t)1 << 49) - 1);
    cr_expect_not(decode(&r, "\x01\x02\xff\xff\xff\xff\xff\xff\xff\x01", 10), "2^50 ms");
    cr_expect_not(decode(&r, "\x01\x04\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01zzzz", 18));
}

Test(record, of_random_bytes_is_refused_or_sound)
{
    uint64_t seed = 5;

    for (int round = 0; round < 200000; round++) {
        char bytes[32];
        size_t len = unit_random(&seed) % sizeof bytes;
        for (size_t i = 0; i < len; i++) {
            bytes[i] = (char)unit_random(&seed);
        }
        if (round % 4 && len > 1) {
            bytes[0] = 1;
            bytes[1] &= 7;
        }
        struct record r = {0};
        char *copy = unit_copy(bytes, len);
        if (decode(&r, copy, len)) {
            const char *body = r.body.at;
            cr_assert(bytes[0] == 1 && bytes[1] < 8);
            cr_assert(body >= copy + 2 && body + r.body.len == copy + len);
            cr_assert(r.backoff_ms >= 0 && r.backoff_ms < (int64_t)1 << 49);
            cr_assert(r.backoff_max_ms >= 0 && r.backoff_max_ms < (int64_t)1 << 49);
        }
        free(copy);
    }
}

Test(record, of_no_tries_or_a_body_over_1_mib_is_none)
{
    static char record[2 + JOB_BODY_MAX + 1] = {1, 0};
    struct record r;

    cr_expect(decode(&r, record, sizeof record - 1));
    cr_expect_eq(r.body.len, JOB_BODY_MAX);
    cr_expect_not(decode(&r, record, sizeof record));
    cr_expect_not(decode(&r, "\x01\x01\x00", 3));
    cr_expect(decode(&r, "\x01\x01\x01", 3));
}
