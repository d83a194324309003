/* SPDX-License-Identifier: MIT */
#include "redis/slot_map.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct slot_place asked = {"10.0.0.9", 7009};

/* ---- keys ---- */
/* As Redis 7.0 answers CLUSTER KEYSLOT. */
Test(slot_map, of_a_key_says_what_redis_says)
{
    static const struct {
        const char *key;
        unsigned slot;
    } rows[] = {
        {"", 0},
        {"123456789", 12739},
        {"foo", 12182},
        {"foo{hash_tag}", 2515},
        {"bar{hash_tag}", 2515},
        {"hash_tag", 2515},
        {"lapse:{orders}:due", 105},
        {"lapse:{orders}:none", 105},
        {"foo{}bar", 14292},
        {"foo{{bar}}zap", 4015},
        {"{bar", 4015},
        {"foo{bar}{zap}", 5061},
        {"foo{bar", 15278},
        {"}{", 12793},
        {"\xff\xfe", 3374},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *key = unit_copy(rows[i].key, strlen(rows[i].key) + !*rows[i].key);
        struct span s = {key, strlen(rows[i].key)};
        cr_expect_eq(slot_of_key(s), rows[i].slot, "%s: %u", rows[i].key, slot_of_key(s));
        free(key);
    }
}

/* ---- CLUSTER SLOTS ---- */
static const char *read_map(struct slot_map *m, const char *resp)
{
    redisReply *r = unit_reply(resp, strlen(resp));
    const char *why = slot_map_read(m, r, &asked);

    freeReplyObject(r);
    return why;
}

static void owns(const struct slot_map *m, unsigned slot, const char *place)
{
    const struct slot_place *p = slot_map_owner(m, slot);
    char text[SLOT_HOST + 16] = "nobody";

    if (p) {
        snprintf(text, sizeof text, "%s %d", p->host, p->port);
    }
    cr_expect_str_eq(text, place, "%u", slot);
}

#define NODE(host, port) "*3\r\n" host ":" #port "\r\n$2\r\nid\r\n"
#define A "$8\r\n10.0.0.1\r\n"
#define B "$8\r\n10.0.0.2\r\n"
#define NIL "$-1\r\n"
#define EMPTY "$0\r\n\r\n"
#define ROW(first, last, node) "*3\r\n:" #first "\r\n:" #last "\r\n" node
#define TWO \
    "*2\r\n" ROW(0, 8191, NODE(A, 7001)) "*4\r\n:8192\r\n:16383\r\n" NODE(B, 7002) NODE(A, 7003)

Test(slot_map, knows_the_master_of_each_slot)
{
    struct slot_map *m = calloc(1, sizeof *m);

    owns(m, 0, "nobody");
    cr_assert_null(read_map(m, TWO));
    owns(m, 0, "10.0.0.1 7001");
    owns(m, 8191, "10.0.0.1 7001");
    owns(m, 8192, "10.0.0.2 7002");
    owns(m, 16383, "10.0.0.2 7002");
    cr_assert_eq(m->n_places, 2);

    cr_assert_null(read_map(m, "*1\r\n" ROW(5, 5, NODE(B, 7002))));
    owns(m, 0, "nobody");
    owns(m, 5, "10.0.0.2 7002");
    slot_map_free(m);
    owns(m, 5, "nobody");
    free(m);
}

Test(slot_map, of_a_node_without_a_host_takes_that_of_the_one_asked)
{
    struct slot_map *m = calloc(1, sizeof *m);

    cr_assert_null(read_map(m, "*2\r\n" ROW(1, 1, NODE(NIL, 7001)) ROW(2, 2, NODE(EMPTY, 7002))));
    owns(m, 1, "10.0.0.9 7001");
    owns(m, 2, "10.0.0.9 7002");
    slot_map_free(m);
    free(m);
}

/* 300 bytes */
#define TEN "aaaaaaaaaa"
#define FIFTY TEN TEN TEN TEN TEN
#define LONG "$300\r\n" FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY "\r\n"

Test(slot_map, takes_nothing_of_a_reply_that_makes_no_sense)
{
    static const char *const rows[] = {
        ":1\r\n",
        "+OK\r\n",
        "$-1\r\n",
        "-ERR This instance has cluster support disabled\r\n",
        "*0\r\n",
        "*1\r\n:1\r\n",
        "*1\r\n*0\r\n",
        "*1\r\n*2\r\n:0\r\n:5\r\n",
        "*1\r\n*3\r\n+x\r\n:5\r\n" NODE(A, 7001),
        "*1\r\n*3\r\n:0\r\n:5\r\n:7\r\n",
        "*1\r\n*3\r\n:0\r\n:5\r\n*0\r\n",
        "*1\r\n*3\r\n:0\r\n:5\r\n*1\r\n" A,
        "*1\r\n*3\r\n:0\r\n:5\r\n*2\r\n" A "+x\r\n",
        "*1\r\n" ROW(-1, 5, NODE(A, 7001)),
        "*1\r\n" ROW(0, 16384, NODE(A, 7001)),
        "*1\r\n" ROW(6, 5, NODE(A, 7001)),
        "*1\r\n" ROW(0, 9007199254740993, NODE(A, 7001)),
        "*1\r\n" ROW(0, 5, NODE(A, 0)),
        "*1\r\n" ROW(0, 5, NODE(A, 65536)),
        "*1\r\n" ROW(0, 5, NODE(A, -7001)),
        "*1\r\n" ROW(0, 5, NODE("$1\r\n?\r\n", 7001)),
        "*1\r\n" ROW(0, 5, NODE("$3\r\na b\r\n", 7001)),
        "*1\r\n" ROW(0, 5, NODE("$2\r\n\xc3\xa4\r\n", 7001)),
        "*1\r\n" ROW(0, 5, NODE(LONG, 7001)),
        "*2\r\n" ROW(0, 5, NODE(A, 7001)) ROW(5, 9, NODE(B, 7002)),
        "*2\r\n" ROW(0, 5, NODE(A, 7001)) ROW(0, 5, NODE(A, 7001)),
        "*2\r\n" ROW(0, 5, NODE(A, 7001)) ":1\r\n",
    };
    struct slot_map *m = calloc(1, sizeof *m);

    cr_assert_null(read_map(m, TWO));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect_not_null(read_map(m, rows[i]), "%s", rows[i]);
        owns(m, 8191, "10.0.0.1 7001");
        owns(m, 8192, "10.0.0.2 7002");
    }
    slot_map_free(m);
    free(m);
}

/* A reply of n rows of one slot each, of as many nodes. */
static redisReply *many_nodes(int n)
{
    char *text;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    fprintf(f, "*%d\r\n", n);
    for (int i = 0; i < n; i++) {
        fprintf(f, "*3\r\n:%d\r\n:%d\r\n*3\r\n" A ":%d\r\n$40\r\n%040d\r\n", i, i, 7000 + i % 2000,
                i);
    }
    fclose(f);
    redisReply *r = unit_reply(text, len);
    free(text);
    return r;
}

Test(slot_map, has_room_for_a_thousand_masters)
{
    struct slot_map *m = calloc(1, sizeof *m);
    redisReply *thousand = many_nodes(1000);
    redisReply *more = many_nodes(2000);
    redisReply *mib = many_nodes(SLOT_COUNT); /* over 1 MiB */
    struct slot_place next = {"10.0.0.2", 7001};

    cr_assert_null(slot_map_read(m, thousand, &asked));
    cr_expect_str_eq(slot_map_read(m, more, &asked), "it has over 1000 masters");
    cr_expect_not_null(slot_map_read(m, mib, &asked));
    owns(m, 999, "10.0.0.1 7999");
    cr_expect(!slot_map_set(m, 5, &next));
    owns(m, 5, "10.0.0.1 7005");
    freeReplyObject(thousand);
    freeReplyObject(more);
    freeReplyObject(mib);
    slot_map_free(m);
    free(m);
}

/* ---- MOVED, ASK ---- */
static bool redirect(struct slot_redirect *r, const char *text)
{
    char *copy = unit_copy(text, strlen(text) + !*text); /* without its NUL */
    struct span error = {copy, strlen(text)};
    bool is = slot_redirect_read(r, error, &asked);

    free(copy);
    return is;
}

Test(slot_map, reads_where_a_slot_is)
{
    static const struct {
        const char *text, *host;
        bool asks;
        unsigned slot;
        int port;
    } rows[] = {
        {"MOVED 3999 127.0.0.1:6381", "127.0.0.1", false, 3999, 6381},
        {"ASK 0 redis-7.example:65535", "redis-7.example", true, 0, 65535},
        {"MOVED 16383 ::1:7000", "::1", false, 16383, 7000},
        {"MOVED 5 :13102", "10.0.0.9", false, 5, 13102},
        {"MOVED 5 10.0.0.9:7009", "10.0.0.9", false, 5, 7009}, /* to itself */
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct slot_redirect r;
        cr_assert(redirect(&r, rows[i].text), "%s", rows[i].text);
        cr_expect_str_eq(r.place.host, rows[i].host);
        cr_expect_eq(r.place.port, rows[i].port);
        cr_expect_eq(r.slot, rows[i].slot);
        cr_expect_eq(r.asks, rows[i].asks);
    }
}

Test(slot_map, takes_no_redirect_to_nowhere)
{
    static const char *const rows[] = {
        "",
        "MOVED",
        "MOVED ",
        "MOVED 5",
        "MOVED 5 ",
        "MOVED 99999 x",
        "MOVED 16384 a:1",
        "MOVED -1 a:1",
        "MOVED x a:1",
        "MOVED 5 a",
        "MOVED 5 a:",
        "MOVED 5 a:0",
        "MOVED 5 a:65536",
        "MOVED 5 a:1 ",
        "MOVED 5 a b:1",
        "MOVED 5 ?:1",
        "MOVED 5 " FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY ":1",
        "moved 5 a:1",
        "ASKING",
        "TRYAGAIN Multiple keys request during rehashing of slot",
        "CLUSTERDOWN The cluster is down",
    };
    struct slot_redirect r;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect(!redirect(&r, rows[i]), "%s", rows[i]);
    }
}

Test(slot_map, follows_a_slot_that_has_moved)
{
    struct slot_map *m = calloc(1, sizeof *m);
    struct slot_place known = {"10.0.0.2", 7002};
    struct slot_place new = {"10.0.0.3", 7003};

    cr_assert_null(read_map(m, TWO));
    cr_assert(slot_map_set(m, 0, &known));
    cr_assert(slot_map_set(m, 1, &new));
    owns(m, 0, "10.0.0.2 7002");
    owns(m, 1, "10.0.0.3 7003");
    owns(m, 2, "10.0.0.1 7001");
    cr_assert_eq(m->n_places, 3);
    slot_map_free(m);
    free(m);
}
