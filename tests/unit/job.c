/* SPDX-License-Identifier: MIT */
/* The record's codec, the back-off and the accessors; rows of replies are in job_row.c. */
#include "job/job.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <stdlib.h>

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

static bool decode(struct lapse_job *job, const void *bytes, size_t len)
{
    return job_decode(job, (struct span){bytes, len});
}

/* ---- the record ---- */
Test(job, a_record_comes_back_as_it_was)
{
    for (size_t t = 0; t < TRIES; t++) {
        for (size_t b = 0; b < WAITS * WAITS; b++) {
            int64_t backoff = waits[b % WAITS];
            int64_t max = waits[b / WAITS];
            unsigned char *header = malloc(JOB_HEADER_MAX); /* exactly: ASan sees a byte more */
            size_t len = job_encode(header, tries[t], backoff, max);
            cr_assert_leq(len, JOB_HEADER_MAX);
            struct lapse_job job = {0};
            char *record = malloc(len + 4);
            memcpy(record, header, len);
            memcpy(record + len, "\x01\0\xffz", 4);
            cr_assert(decode(&job, record, len + 4), "%u %ld %ld", tries[t], (long)backoff,
                      (long)max);
            cr_assert_eq(job.tries, tries[t]);
            cr_assert_eq(job.backoff_ms, backoff, "%ld", (long)job.backoff_ms);
            cr_assert_eq(job.backoff_max_ms, max, "%ld", (long)job.backoff_max_ms);
            cr_assert_eq(job.body, record + len);
            cr_assert_eq(job.body_len, 4);
            free(record);
            free(header);
        }
    }
}

/* The bytes are what other versions, and the scripts, read. */
Test(job, a_record_is_these_bytes)
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
        unsigned char out[JOB_HEADER_MAX];
        size_t len = job_encode(out, rows[i].tries, rows[i].backoff_ms, rows[i].max_ms);
        cr_assert_eq(len, rows[i].len, "row %zu: %zu bytes", i, len);
        cr_expect_arr_eq(out, rows[i].bytes, len, "row %zu", i);
    }
}

Test(job, a_record_cut_in_its_header_is_refused)
{
    for (size_t t = 0; t < TRIES; t++) {
        for (size_t b = 0; b < WAITS * WAITS; b++) {
            unsigned char header[JOB_HEADER_MAX];
            size_t len = job_encode(header, tries[t], waits[b % WAITS], waits[b / WAITS]);
            for (size_t cut = 0; cut <= len; cut++) {
                struct lapse_job job;
                struct lapse_job was;
                memset(&job, 0x5a, sizeof job);
                memcpy(&was, &job, sizeof job);
                void *part = unit_copy(header, cut);
                bool good = decode(&job, part, cut);
                free(part);
                cr_assert_eq(good, cut == len, "%zu of %zu", cut, len);
                cr_assert(good || memcmp(&job, &was, sizeof job) == 0,
                          "a record that is refused fills nothing");
            }
        }
    }
}

Test(job, a_record_of_another_version_is_refused)
{
    for (int c = 0; c < 256; c++) {
        struct lapse_job job = {0};
        char version[] = {(char)c, 0, 'b'};
        char flags[] = {1, (char)c, 1, 2, 3, 'b'};
        cr_expect_eq(decode(&job, version, sizeof version), c == 1, "version %d", c);
        cr_expect_eq(decode(&job, flags, sizeof flags), c < 8, "flags %d", c);
        size_t fields = (size_t)__builtin_popcount((unsigned)c);
        cr_expect(c >= 8 || job.body_len == 4 - fields, "flags %d", c);
    }
}

Test(job, a_flag_is_for_one_field)
{
    static const struct {
        char flags;
        unsigned tries;
        int64_t backoff_ms, max_ms;
    } rows[] = {{0, 10, 1000, 3600000}, {1, 5, 1000, 3600000}, {2, 10, 5, 3600000},
                {3, 5, 6, 3600000},     {4, 10, 1000, 5},      {5, 5, 1000, 6},
                {6, 10, 5, 6},          {7, 5, 6, 7}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lapse_job job = {0};
        char record[] = {1, rows[i].flags, 5, 6, 7};
        cr_assert(decode(&job, record, sizeof record));
        cr_expect_eq(job.tries, rows[i].tries, "flags %d", rows[i].flags);
        cr_expect_eq(job.backoff_ms, rows[i].backoff_ms, "flags %d", rows[i].flags);
        cr_expect_eq(job.backoff_max_ms, rows[i].max_ms, "flags %d", rows[i].flags);
    }
}

Test(job, a_number_too_large_for_its_field_is_refused)
{
    struct lapse_job job = {0};

    cr_expect(decode(&job, "\x01\x01\xff\xff\xff\xff\x0f", 7));
    cr_expect_eq(job.tries, LAPSE_FOREVER);
    cr_expect_not(decode(&job, "\x01\x01\x80\x80\x80\x80\x10", 7), "2^32 tries");
    cr_expect(decode(&job, "\x01\x02\xff\xff\xff\xff\xff\xff\x7f", 9));
    cr_expect_eq(job.backoff_ms, ((int64_t)1 << 49) - 1);
    cr_expect_not(decode(&job, "\x01\x02\xff\xff\xff\xff\xff\xff\xff\x01", 10), "2^50 ms");
    cr_expect_not(decode(&job, "\x01\x04\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01zzzz", 18));
}

Test(job, a_record_of_random_bytes_is_refused_or_sound)
{
    uint64_t r = 5;

    for (int round = 0; round < 200000; round++) {
        char bytes[32];
        size_t len = unit_random(&r) % sizeof bytes;
        for (size_t i = 0; i < len; i++) {
            bytes[i] = (char)unit_random(&r);
        }
        if (round % 4 && len > 1) {
            bytes[0] = 1;
            bytes[1] &= 7;
        }
        struct lapse_job job = {0};
        char *copy = unit_copy(bytes, len);
        if (decode(&job, copy, len)) {
            const char *body = job.body;
            cr_assert(bytes[0] == 1 && bytes[1] < 8);
            cr_assert(body >= copy + 2 && body + job.body_len == copy + len);
            cr_assert(job.backoff_ms >= 0 && job.backoff_ms < (int64_t)1 << 49);
            cr_assert(job.backoff_max_ms >= 0 && job.backoff_max_ms < (int64_t)1 << 49);
        }
        free(copy);
    }
}

/* ---- back-off ---- */
static void expect_backoff(struct lapse_job *job, int64_t whole)
{
    int64_t least = INT64_MAX;
    int64_t most = -1;

    for (int i = 0; i < 200; i++) {
        int64_t wait = job_backoff_ms(job);
        cr_assert(wait >= whole - whole / 4 && wait <= whole,
                  "try %u of %ld to %ld: %ld is not %ld", job->try_no, (long)job->backoff_ms,
                  (long)job->backoff_max_ms, (long)wait, (long)whole);
        least = wait < least ? wait : least;
        most = wait > most ? wait : most;
    }

    if (whole >= 4) {
        cr_expect_lt(least, most, "it is jittered");
    }
}

Test(job, backoff_doubles_from_try_to_try_up_to_its_maximum)
{
    struct lapse_job job = {.backoff_ms = 1000, .backoff_max_ms = 3600000};
    int64_t whole = 1000;

    for (job.try_no = 1; job.try_no <= 40; job.try_no++) {
        expect_backoff(&job, whole < 3600000 ? whole : 3600000);
        whole = whole < 3600000 ? whole * 2 : whole;
    }

    job.backoff_max_ms = JOB_TEN_YEARS_MS;
    for (job.try_no = 1, whole = 1000; job.try_no <= 40; job.try_no++) {
        expect_backoff(&job, whole < JOB_TEN_YEARS_MS ? whole : JOB_TEN_YEARS_MS);
        whole = whole < JOB_TEN_YEARS_MS ? whole * 2 : whole;
    }
}

Test(job, backoff_of_any_numbers_a_record_can_hold_is_within_its_bounds)
{
    static const unsigned nth[] = {0, 1, 2, 3, 100, 0x80000000, LAPSE_FOREVER};

    for (size_t b = 0; b < WAITS * WAITS; b++) {
        for (size_t t = 0; t < sizeof nth / sizeof *nth; t++) {
            struct lapse_job job = {.try_no = nth[t],
                                    .backoff_ms = waits[b % WAITS],
                                    .backoff_max_ms = waits[b / WAITS]};
            int64_t whole = job.backoff_ms;
            for (unsigned i = 1; i < nth[t] && i < 64 && whole < job.backoff_max_ms; i++) {
                whole *= 2;
            }
            expect_backoff(&job, whole < job.backoff_max_ms ? whole : job.backoff_max_ms);
        }
    }
}

Test(job, backoff_has_all_its_quarter)
{
    struct lapse_job job = {.try_no = 1, .backoff_ms = 8, .backoff_max_ms = 8};
    bool seen[9] = {0};

    for (int i = 0; i < 2000; i++) {
        seen[job_backoff_ms(&job)] = true;
    }
    cr_expect(seen[6] && seen[7] && seen[8] && !seen[5]);
}

/* ---- accessors ---- */
Test(job, accessors_say_what_is_in_it)
{
    struct lapse_job job = {.queue = "q",
                            .id = "i",
                            .body = "body",
                            .body_len = 3,
                            .reason = "because",
                            .state = LAPSE_DEAD,
                            .via = LAPSE_VIA_SWEEP,
                            .created = 1,
                            .tries = 2,
                            .try_no = 3,
                            .token = 4,
                            .due_ms = 5,
                            .until_ms = 6,
                            .claimed_us = 7,
                            .backoff_ms = 8,
                            .backoff_max_ms = 9,
                            .score_ms = 11};
    size_t len = 0;

    cr_expect_eq(lapse_job_queue(&job), job.queue);
    cr_expect_eq(lapse_job_id(&job), job.id);
    cr_expect_eq(lapse_job_body(&job, &len), job.body);
    cr_expect_eq(len, 3);
    cr_expect_eq(lapse_job_body(&job, NULL), job.body);
    cr_expect_eq(lapse_job_state(&job), LAPSE_DEAD);
    cr_expect_eq(lapse_job_due_ms(&job), 5);
    cr_expect_eq(lapse_job_until_ms(&job), 6);
    cr_expect_eq(lapse_job_claimed_us(&job), 7);
    cr_expect_eq(lapse_job_try(&job), 3);
    cr_expect_eq(lapse_job_tries(&job), 2);
    cr_expect_eq(lapse_job_token(&job), 4);
    cr_expect_eq(lapse_job_created(&job), 1);
    cr_expect_eq(lapse_job_via(&job), LAPSE_VIA_SWEEP);
    cr_expect_str_eq(lapse_job_reason(&job), "because");
    job.created = 0;
    cr_expect_eq(lapse_job_created(&job), 0);
}

Test(job_decode, of_no_tries_or_a_body_over_1_mib_is_none)
{
    static char record[2 + JOB_BODY_MAX + 1] = {1, 0};
    struct lapse_job job;

    cr_expect(decode(&job, record, sizeof record - 1));
    cr_expect_eq(job.body_len, JOB_BODY_MAX);
    cr_expect_not(decode(&job, record, sizeof record));
    cr_expect_not(decode(&job, "\x01\x01\x00", 3));
    cr_expect(decode(&job, "\x01\x01\x01", 3));
}
