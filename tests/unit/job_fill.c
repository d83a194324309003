/* SPDX-License-Identifier: MIT */
/* Jobs that are made of a row of a reply. */
#include "job/job.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct lapse_job *job;
static char *room;

/* What the row has of errors; NULL: nothing. */
static const char *errors_text;
static size_t errors_len;

/* Makes job from a row whose texts are gone when it returns; room is exactly as long as was
 * said. */
static void fill(enum lapse_state state, int64_t score_ms, const char *held, const char *record,
                 size_t record_len, bool body)
{
    void *id = unit_copy("id-7", 4);
    void *h = unit_copy(held, strlen(held));
    void *rec = unit_copy(record, record_len);
    void *errors = errors_text ? unit_copy(errors_text, errors_len) : NULL;
    char *queue = unit_copy("queue", 6);
    struct job_row row = {.id = {id, 4},
                          .attempt = {h, strlen(held)},
                          .record = {rec, record_len},
                          .errors = {errors, errors ? errors_len : 0},
                          .state = state,
                          .score_ms = score_ms};
    size_t size = job_texts_len(queue, &row, body);

    cr_assert_eq(size, 6 + 5 + (body ? record_len + row.errors.len : 0));
    free(room);
    room = malloc(size);
    free(job);
    job = calloc(1, sizeof *job);
    job_fill(job, queue, &row, room, body);
    free(id);
    free(h);
    free(rec);
    free(errors);
    free(queue);
}

static void end(void)
{
    free(room);
    free(job);
}

TestSuite(job_fill, .fini = end);

static void expect_body(const char *want, size_t want_len)
{
    size_t len = 99;
    const void *body = lapse_job_body(job, &len);

    cr_assert_eq(len, want_len);
    cr_assert_not_null(body);
    cr_expect(memcmp(body, want, len) == 0);
    if (len == 0) {
        cr_expect_eq(*(const char *)body, '\0', "it lives as long as its job");
    }
}

Test(job_fill, copies_queue_id_and_body)
{
    fill(LAPSE_WAITING, 77, "",
         "\x01\x07\x03\x04\x05"
         "bo\0dy",
         10, true);
    cr_expect_str_eq(lapse_job_queue(job), "queue");
    cr_expect_str_eq(lapse_job_id(job), "id-7");
    expect_body("bo\0dy", 5);
    cr_expect_eq(job->tries, 3);
    cr_expect_eq(job->score_ms, 77);
    cr_expect_eq(job->state, LAPSE_WAITING);
    cr_expect_null(job->handle);
}

Test(job_fill, leaves_the_body_out_where_it_is_not_asked_for)
{
    fill(LAPSE_WAITING, 77, "",
         "\x01\x01\x03"
         "body",
         7, false);
    expect_body("", 0);
    cr_expect_eq(job->tries, 3, "the header counts all the same");
}

Test(job_fill, an_empty_body_is_empty)
{
    fill(LAPSE_WAITING, 77, "", "\x01\x00", 2, true);
    expect_body("", 0);
    cr_expect_eq(job->tries, 10);
    fill(LAPSE_WAITING, 77, "", "\x01\x00", 2, false);
    expect_body("", 0);
}

Test(job_fill, of_a_record_from_the_future_has_neither_tries_nor_body)
{
    fill(LAPSE_DEAD, 77, "1 5 w:1 2 10 1790000000000001 66 late",
         "\x02\x00"
         "body",
         6, true);
    expect_body("", 0);
    cr_expect_eq(job->tries, 0);
    cr_expect_eq(job->try_no, 2, "but what is held of it");
    cr_expect_str_eq(lapse_job_reason(job), "late");
    fill(LAPSE_WAITING, 77, "", "", 0, true);
    expect_body("", 0);
}

Test(job_fill, due_and_until_are_by_state)
{
    const char *held = "1 5 w:1 2 10 1790000000000001 66 late";
    static const struct {
        enum lapse_state state;
        bool held;
        int64_t due_ms, until_ms;
    } rows[] = {
        {LAPSE_WAITING, false, 77, 0}, {LAPSE_WAITING, true, 77, 0}, /* what is held has the due
                                                                        time of its last run */
        {LAPSE_RUNNING, true, 66, 77}, {LAPSE_DEAD, true, 66, 0},    {LAPSE_DEAD, false, 77, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fill(rows[i].state, 77, rows[i].held ? held : "", "\x01\x00", 2, true);
        cr_expect_eq(lapse_job_state(job), rows[i].state, "row %zu", i);
        cr_expect_eq(lapse_job_due_ms(job), rows[i].due_ms, "row %zu", i);
        cr_expect_eq(lapse_job_until_ms(job), rows[i].until_ms, "row %zu", i);
        cr_expect_eq(job->score_ms, 77, "row %zu", i);
    }
}

/* ---- the last attempt ---- */
Test(job_fill, reads_the_last_attempt)
{
    static const struct {
        const char *held;
        unsigned try_no;
        uint64_t token;
        int64_t claimed_us, due_ms;
        const char *reason;
    } good[] = {
        {"1 5 w:1 2 10 1790000000000001 66 late", 2, 5, 1790000000000001, 66, "late"},
        {"1 5 w:1 2 10 1790000000000001 66 ", 2, 5, 1790000000000001, 66, ""},
        {"1 5 w:1 0 10 1790000000000001 66 no wonder, really ", 0, 5, 1790000000000001, 66,
         "no wonder, really "},
        {"1 9007199254740992 w:1 4294967295 4294967295 1790000000000001 1790000000000  x",
         4294967295u, 9007199254740992, 1790000000000001, 1790000000000, " x"},
        {"1 5 w 02 10 7 066 x", 2, 5, 7, 66, "x"},
    };

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        fill(LAPSE_DEAD, 77, good[i].held, "\x01\x00", 2, true);
        cr_expect_eq(lapse_job_try(job), good[i].try_no, "%s", good[i].held);
        cr_expect_eq(lapse_job_token(job), good[i].token, "%s", good[i].held);
        cr_expect_eq(lapse_job_claimed_us(job), good[i].claimed_us, "%s", good[i].held);
        cr_expect_eq(lapse_job_due_ms(job), good[i].due_ms, "%s", good[i].held);
        cr_expect_str_eq(lapse_job_reason(job), good[i].reason, "%s", good[i].held);
    }
}

Test(job_fill, takes_nothing_of_an_attempt_in_another_form)
{
    static const char *const bad[] = {
        "",
        " ",
        "1",
        "1 ",
        "1 5",
        "1 5 w",
        "1 5 w 2 10 7",
        "1 5 w 2 10 7 66",    /* no space after it */
        "1 5  2 10 7 66 why", /* no holder */
        "1 5 2 10 7 66 why",
        "1 5 w\tw 2 10 7 66 why",
        "1 5 w\nw 2 10 7 66 why",
        "1 5 w 4294967296 10 7 66 x",
        " 1 5 w 2 10 7 66 x",
        "0 5 w 2 10 7 66 x",
        "2 5 w 2 10 7 66 x",
        "11 5 w 2 10 7 66 x",
        "-1 5 w 2 10 7 66 x",
        "x 5 w 2 10 7 66 x",
        "1  5 w 2 10 7 66 x",
        "1\t5 w 2 10 7 66 x",
        "1,5 w 2 10 7 66 x",
        "1 5 w -2 10 7 66 x",
        "1 5 w 2x 10 7 66 x",
        "1 5 w x 10 7 66 x",
        "1 5 w 2 x 7 66 x",
        "1 5 w 2 -1 7 66 x",
        "1 x w 2 10 7 66 x",
        "1 5.0 w 2 10 7 66 x",
        "1 5w 2 10 7 66 x",
        "1 5 w 2 10 x 66 x",
        "1 5 w 2 10 1.79e+15 66 x",
        "1 5 w 2 10 7 x x",
        "1 5 w 2 10 7 66x x",
        "1 5 w 2 10 7 /6 x",
        "1 5 w 2 10 7 :6 x",
        "1 999999999999999999 w 2 10 7 66 x",
        "1 1000000000000000000 w 2 10 7 66 x", /* 19 digits */
        "1 99999999999999999999999 w 2 10 7 66 x",
        "1 5 w 2 10 7 9007199254740993 x", /* over 2^53: Lua did not count that */
        "1 5 w 2 10 9007199254740993 66 x",
        "1 5 w 4294967296 10 7 66 x", /* no such try */
        "\xff\xff\xff",
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fill(LAPSE_DEAD, 77, bad[i], "\x01\x00", 2, true);
        cr_expect_eq(job->try_no, 0, "\"%s\"", bad[i]);
        cr_expect_eq(job->token, 0, "\"%s\"", bad[i]);
        cr_expect_eq(job->claimed_us, 0, "\"%s\"", bad[i]);
        cr_expect_eq(job->due_ms, 77, "\"%s\"", bad[i]);
        cr_expect_str_eq(job->reason, "", "\"%s\"", bad[i]);
    }
}

Test(job_fill, cuts_a_reason_at_200_bytes)
{
    for (size_t len = 0; len < 300; len++) {
        char held[400] = "1 5 w 2 10 7 66 ";
        memset(held + 16, 'y', len);
        fill(LAPSE_DEAD, 77, held, "\x01\x00", 2, true);
        cr_assert_eq(strlen(lapse_job_reason(job)), len < 200 ? len : 200);
        cr_assert_eq(strspn(lapse_job_reason(job), "y"), len < 200 ? len : 200);
    }
}

Test(job_fill, may_read_any_bytes)
{
    static const char alphabet[] = "0123456789   \xffx";
    uint64_t r = 6;

    for (int round = 0; round < 50000; round++) {
        char held[] = "1 5 w:1 2 10 1790000000000001 66 late";
        char record[24];
        for (uint64_t change = unit_random(&r) % 6; change; change--) {
            held[unit_random(&r) % (sizeof held - 1)] =
                alphabet[unit_random(&r) % (sizeof alphabet - 1)];
        }
        held[unit_random(&r) % sizeof held] = '\0';
        size_t len = unit_random(&r) % sizeof record;
        for (size_t i = 0; i < len; i++) {
            record[i] = (char)(i ? unit_random(&r) % 12 : 1);
        }
        fill((enum lapse_state)(1 + unit_random(&r) % 3), 77, held, record, len,
             unit_random(&r) % 2);
        cr_assert(job->due_ms >= 0 && strlen(job->reason) <= 200 && job->body &&
                  job->body_len <= len);
    }
}

static void fill_with(const char *attributes, size_t len)
{
    char record[64] = {2, 0, (char)len};

    cr_assert_lt(len, 60);
    memcpy(record + 3, attributes, len);
    fill(LAPSE_RUNNING, 9, "", record, 3 + len, true);
}

/* A small letter whose value has another form counts as missing. */
Test(job_fill, knows_how_long_a_run_may_take_if_the_record_says_it_as_it_should)
{
    static const struct {
        const char *value;
        int64_t run_ms;
    } rows[] = {{"100", 100},
                {"31622400000", 31622400000},
                {"99", 0},
                {"31622400001", 0},
                {"", 0},
                {"-100", 0},
                {"1e3", 0},
                {"100 ", 0},
                {"99999999999999999999999", 0},
                {"0x100", 0}};
    char attributes[40];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int len = snprintf(attributes, sizeof attributes, "b%cfr%c%s", 1,
                           (int)strlen(rows[i].value), rows[i].value);
        fill_with(attributes, (size_t)len);
        cr_expect_eq(job->run_ms, rows[i].run_ms, "%s", rows[i].value);
        cr_expect_eq(job->tries, 10);
    }

    fill_with("", 0);
    cr_expect_eq(job->run_ms, 0);
    fill_with("r\003200r\003300", 10);
    cr_expect_eq(job->run_ms, 200, "of a letter that may come once the first counts");
}

/* m, in a record of form 2. */
static void fill_created(const char *digits)
{
    char record[64] = {2, 0, (char)(2 + strlen(digits)), 'm', (char)strlen(digits)};

    strcpy(record + 5, digits);
    fill(LAPSE_WAITING, 1790000000500, "", record, 5 + strlen(digits), false);
}

Test(job_fill, tells_when_the_job_was_created_where_that_is_known)
{
    static const char *const others[] = {"0000000000000", "", "179000000000", "17900000000000",
                                         "179000000000x"};

    fill_created("1790000000000");
    cr_expect_eq(lapse_job_created_ms(job), 1790000000000);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        fill_created(others[i]);
        cr_expect_eq(lapse_job_created_ms(job), 0, "%s", others[i]);
    }
    fill(LAPSE_WAITING, 1790000000500, "", "\x01\x00", 2, true);
    cr_expect_eq(lapse_job_created_ms(job), 0);
}

static void fill_errors(const char *text, size_t len, bool body)
{
    errors_text = text;
    errors_len = len;
    fill(LAPSE_DEAD, 77, "", "\x01\x00xyz", 5, body);
    errors_text = NULL;
}
#define ERRORS(text) fill_errors(text, sizeof(text) - 1, true)

static void expect_error(unsigned i, const char *reason, int64_t at_ms, unsigned try_no)
{
    int64_t at = -1;
    unsigned n = 99;
    struct lapse_job *dup = lapse_job_dup(job);

    cr_assert_str_eq(lapse_job_error(job, i, &at, &n), reason);
    cr_assert(at == at_ms && n == try_no);
    cr_assert_str_eq(lapse_job_error(job, i, NULL, NULL), reason);
    at = -1;
    cr_assert_str_eq(lapse_job_error(dup, i, &at, &n), reason);
    cr_assert(at == at_ms && n == try_no);
    lapse_job_free(dup);
}

Test(job_fill, tells_why_the_last_runs_failed_the_newest_first)
{
    ERRORS("1790000000000 1 3 a b1790000000005 4294967295 0 1790000000007 3 2 1 ");
    expect_error(0, "1 ", 1790000000007, 3);
    expect_error(1, "", 1790000000005, UINT32_MAX);
    expect_error(2, "a b", 1790000000000, 1);
    cr_expect_null(lapse_job_error(job, 3, NULL, NULL));
    cr_expect_null(lapse_job_error(job, UINT32_MAX, NULL, NULL));
    expect_body("xyz", 3);
}

Test(job_fill, of_errors_that_cannot_be_read_shows_those_before)
{
    ERRORS("5 1 3 a\0b6 2 4 abc");
    expect_error(0, "a", 5, 1);
    cr_expect_null(lapse_job_error(job, 1, NULL, NULL));

    static const char *const none[] = {
        "",         " ",     "5", "5 1", "5 1 ", "5 1 1", "5 1 1 ", "x 1 1 x", "5 4294967296 1 x",
        "5 1 -1 x", "5  1 x"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        fill_errors(none[i], strlen(none[i]), true);
        cr_expect_null(lapse_job_error(job, 0, NULL, NULL), "%s", none[i]);
        expect_body("xyz", 3);
    }
    fill_errors("5 1 1 x", 7, false);
    cr_expect_null(lapse_job_error(job, 0, NULL, NULL), "as the body is left out");
}
