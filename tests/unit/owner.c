/* SPDX-License-Identifier: MIT */
/* Listeners of several versions may share a queue, so the owner of an id stays the same. */
#include "job/owner.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

Test(owner, of_an_id_never_changes)
{
    static char longest[256];
    static const struct {
        const char *id;
        int64_t of[6]; /* of 1, 2, 3, 4, 7 and 64 listeners */
    } rows[] = {
        {"!", {0, 1, 1, 2, 3, 36}},
        {"a", {0, 0, 0, 0, 1, 11}},
        {"ab", {0, 0, 1, 1, 3, 30}},
        {"abc", {0, 0, 0, 1, 2, 18}},
        {"abcd", {0, 0, 1, 1, 2, 23}},
        {"abcde", {0, 1, 2, 3, 5, 52}},
        {"abcdefgh", {0, 1, 2, 3, 6, 57}},
        {"job-1", {0, 0, 0, 1, 2, 20}},
        {"job-2", {0, 1, 1, 2, 4, 37}},
        {"job-10", {0, 0, 0, 0, 0, 3}},
        {"order:00000001", {0, 0, 1, 1, 2, 26}},
        {"order:00000002", {0, 1, 2, 3, 5, 52}},
        {"1:timeout", {0, 0, 1, 1, 3, 28}},
        {"7:timeout", {0, 1, 2, 3, 6, 55}},
        {"550e8400-e29b-41d4-a716-446655440000", {0, 1, 2, 3, 6, 58}},
        {"-", {0, 1, 2, 2, 4, 43}},
        {"0", {0, 0, 1, 1, 3, 29}},
        {longest, {0, 1, 1, 2, 3, 32}},
    };
    static const int64_t n_members[6] = {1, 2, 3, 4, 7, 64};

    memset(longest, '~', sizeof longest - 1);

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct span id = span_of(rows[i].id);
        for (size_t k = 0; k < 6; k++) {
            cr_expect_eq(owner_of(id, n_members[k]), rows[i].of[k], "%s of %" PRId64, id.at,
                         n_members[k]);
        }
    }
}

Test(owner, of_an_id_is_read_from_its_own_bytes_alone)
{
    char text[] = "job-12345";

    int64_t before = owner_of((struct span){text, 6}, INT64_C(1) << 20);
    text[6] = '!';
    cr_expect_eq(owner_of((struct span){text, 6}, INT64_C(1) << 20), before);
    cr_expect_neq(owner_of((struct span){text, 7}, INT64_C(1) << 20), before);
}

/* ---- spread ---- */
enum { IDS = 10000, MEMBERS_MAX = 8 };

static uint32_t next_random(void)
{
    static uint64_t state = 1;

    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 32);
}

static const char *job_id(uint32_t i)
{
    static char id[40];
    snprintf(id, sizeof id, "job-%" PRIu32, i);
    return id;
}

static const char *order_id(uint32_t i)
{
    static char id[40];
    snprintf(id, sizeof id, "order:%08" PRIu32, i);
    return id;
}

static const char *timeout_id(uint32_t i)
{
    static char id[40];
    snprintf(id, sizeof id, "%" PRIu32 ":timeout", i);
    return id;
}

static const char *number_id(uint32_t i)
{
    static char id[40];
    snprintf(id, sizeof id, "%" PRIu32, i);
    return id;
}

static const char *uuid_id(uint32_t i)
{
    static char id[40];
    uint32_t a = next_random();
    uint32_t b = next_random();

    (void)i;
    snprintf(id, sizeof id, "%08" PRIx32 "-%04" PRIx32 "-4%03" PRIx32 "-a%03" PRIx32 "-%012" PRIx64,
             a, b & 0xffff, b >> 20, next_random() & 0xfff,
             ((uint64_t)next_random() << 16) | (next_random() & 0xffff));
    return id;
}

Test(owner, spreads_usual_ids_over_the_listeners_within_ten_percent)
{
    static const char *(*const id_of[])(uint32_t i) = {job_id, order_id, timeout_id, number_id,
                                                       uuid_id};

    for (size_t k = 0; k < sizeof id_of / sizeof *id_of; k++) {
        int64_t count[MEMBERS_MAX + 1][MEMBERS_MAX] = {0};
        for (uint32_t i = 0; i < IDS; i++) {
            struct span id = span_of(id_of[k](i));
            for (int64_t n = 2; n <= MEMBERS_MAX; n++) {
                count[n][owner_of(id, n)]++;
            }
        }

        for (int64_t n = 2; n <= MEMBERS_MAX; n++) {
            for (int64_t rank = 0; rank < n; rank++) {
                int64_t off = count[n][rank] * n - IDS; /* times n */
                cr_expect(off <= IDS / 10 && off >= -IDS / 10,
                          "ids like %s: %" PRId64 " of %d belong to the listener of rank %" PRId64
                          " of %" PRId64,
                          id_of[k](1), count[n][rank], IDS, rank, n);
            }
        }
    }
}
