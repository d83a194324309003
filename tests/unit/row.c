/* SPDX-License-Identifier: MIT */
#include "script/row.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *resp;
    bool good;
} shapes[] = {
    {"*5\r\n$1\r\ni\r\n:1\r\n:7\r\n$0\r\n\r\n$1\r\nr\r\n", true},
    {"*5\r\n$1\r\ni\r\n:2\r\n:7\r\n$0\r\n\r\n$1\r\nr\r\n", true},
    {"*5\r\n$1\r\ni\r\n:3\r\n:7\r\n$0\r\n\r\n$1\r\nr\r\n", true},
    {"*6\r\n$1\r\ni\r\n:3\r\n:7\r\n$0\r\n\r\n$1\r\nr\r\n:9\r\n", true},
    {"*6\r\n$1\r\ni\r\n:3\r\n:7\r\n$0\r\n\r\n$1\r\nr\r\n$1\r\nx\r\n", true},
    {"*7\r\n$1\r\ni\r\n:3\r\n:7\r\n$0\r\n\r\n$1\r\nr\r\n:9\r\n:9\r\n", true},
    {"*5\r\n$1\r\ni\r\n$1\r\n1\r\n$1\r\n7\r\n$0\r\n\r\n$1\r\nr\r\n", true},
    {"*5\r\n$1\r\ni\r\n:1\r\n:7\r\n$0\r\n\r\n$0\r\n\r\n", true},
    {"*5\r\n$0\r\n\r\n:1\r\n:7\r\n$0\r\n\r\n$0\r\n\r\n", false},
    {"*5\r\n$1\r\ni\r\n:0\r\n:7\r\n$0\r\n\r\n$1\r\nr\r\n", false},
    {"*5\r\n$1\r\ni\r\n:4\r\n:7\r\n$0\r\n\r\n$1\r\nr\r\n", true},
    {"*5\r\n$1\r\ni\r\n:5\r\n:7\r\n$0\r\n\r\n$1\r\nr\r\n", false},
    {"*5\r\n$1\r\ni\r\n:-1\r\n:7\r\n$0\r\n\r\n$1\r\nr\r\n", false},
    {"*5\r\n$1\r\ni\r\n:4294967297\r\n:7\r\n$0\r\n\r\n$1\r\nr\r\n", false},
    {"*5\r\n:1\r\n:1\r\n:7\r\n$0\r\n\r\n$1\r\nr\r\n", false},
    {"*5\r\n$-1\r\n:1\r\n:7\r\n$0\r\n\r\n$1\r\nr\r\n", false},
    {"*5\r\n$1\r\ni\r\n$-1\r\n:7\r\n$0\r\n\r\n$1\r\nr\r\n", false},
    {"*5\r\n$1\r\ni\r\n:1\r\n$-1\r\n$0\r\n\r\n$1\r\nr\r\n", false},
    {"*5\r\n$1\r\ni\r\n:1\r\n$1\r\nx\r\n$0\r\n\r\n$1\r\nr\r\n", false},
    {"*5\r\n$1\r\ni\r\n:1\r\n:7\r\n$-1\r\n$1\r\nr\r\n", false},
    {"*5\r\n$1\r\ni\r\n:1\r\n:7\r\n$0\r\n\r\n$-1\r\n", false},
    {"*5\r\n$1\r\ni\r\n:1\r\n:7\r\n$0\r\n\r\n:5\r\n", false},
    {"*4\r\n$1\r\ni\r\n:1\r\n:7\r\n$0\r\n\r\n", false},
    {"*0\r\n", false},
    {"*-1\r\n", false},
    {"$-1\r\n", false},
    {":1\r\n", false},
    {"$5\r\nEGONE\r\n", false},
    {"-ERR x\r\n", false},
};

Test(row, has_five_places_of_their_types)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct redisReply *r = unit_reply(shapes[i].resp, strlen(shapes[i].resp));
        struct job_row row;
        cr_expect_eq(row_read(&row, r), shapes[i].good, "%s", shapes[i].resp);
        freeReplyObject(r);
    }
    struct job_row row;
    cr_expect_not(row_read(&row, NULL));
}

Test(row, of_a_claim_is_of_no_job_that_is_kept)
{
    static const char kept[] = "*5\r\n$1\r\ni\r\n:4\r\n:7\r\n$0\r\n\r\n$1\r\nr\r\n";
    struct redisReply *r = unit_reply(kept, sizeof kept - 1);
    struct job_row row;

    cr_expect(row_read(&row, r));
    cr_expect_not(row_read_claimed(&row, r));
    freeReplyObject(r);
}

Test(row, says_what_is_in_its_places)
{
    struct job_row row;
    struct redisReply *r =
        UNIT_REPLY("*6\r\n$2\r\nid\r\n:3\r\n:70\r\n$4\r\nheld\r\n$3\r\nr\0c\r\n:9\r\n");

    memset(&row, 0x5a, sizeof row);
    cr_assert(row_read(&row, r));
    cr_expect(span_is(row.id, "id") && span_is(row.attempt, "held") &&
              span_eq(row.record, (struct span){"r\0c", 3}));
    cr_expect_eq(row.state, LAPSE_DEAD);
    cr_expect_eq(row.score_ms, 70);
    cr_expect_eq(row.place, 9);
    cr_expect_eq(row.errors.len, 0);
    freeReplyObject(r);
    r = UNIT_REPLY("*5\r\n$2\r\nid\r\n:1\r\n:-70\r\n$0\r\n\r\n$0\r\n\r\n");
    memset(&row, 0x5a, sizeof row);
    cr_assert(row_read(&row, r));
    cr_expect_eq(row.place, 0, "there is none");
    cr_expect_eq(row.errors.len, 0);
    freeReplyObject(r);
    r = UNIT_REPLY("*6\r\n$2\r\nid\r\n:1\r\n:-70\r\n$0\r\n\r\n$0\r\n\r\n$7\r\n5 1 1 x\r\n");
    memset(&row, 0x5a, sizeof row);
    cr_assert(row_read(&row, r));
    cr_expect(row.place == 0 && span_is(row.errors, "5 1 1 x"));
    cr_expect_eq(row.score_ms, -70);
    freeReplyObject(r);
}

Test(row, has_an_id_of_at_most_255_bytes)
{
    for (int len = 254; len < 258; len++) {
        char resp[400];
        char id[300];
        memset(id, 'a', sizeof id);
        int n = snprintf(resp, sizeof resp, "*5\r\n$%d\r\n%.*s\r\n:1\r\n:7\r\n$0\r\n\r\n$0\r\n\r\n",
                         len, len, id);
        struct redisReply *r = unit_reply(resp, (size_t)n);
        struct job_row row;
        cr_expect_eq(row_read(&row, r), len <= 255, "%d", len);
        freeReplyObject(r);
    }
}

Test(row, has_an_id_that_could_have_been_scheduled)
{
    for (int byte = 0; byte < 256; byte++) {
        char resp[] = "*5\r\n$3\r\na.b\r\n:1\r\n:7\r\n$0\r\n\r\n$0\r\n\r\n";
        resp[9] = (char)byte;
        struct redisReply *r = unit_reply(resp, sizeof resp - 1);
        struct job_row row;
        cr_expect_eq(row_read(&row, r), byte > ' ' && byte <= '~' && byte != '{' && byte != '}',
                     "byte %d", byte);
        freeReplyObject(r);
    }
}
