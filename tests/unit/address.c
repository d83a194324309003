/* SPDX-License-Identifier: MIT */
#include "redis/address.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define S10 "0123456789"
#define PATH_107 "/" S10 S10 S10 S10 S10 S10 S10 S10 S10 S10 "012345"

static const struct {
    const char *text, *user, *password, *host; /* host NULL: no such URL */
    int port, db;
} rows[] = {
    /* rediss:// */
    {"rediss://h", NULL, NULL, "h", 6379, 0},
    {"rediss://u:p@h:7/3", "u", "p", "h", 7, 3},
    {"rediss:/h", .host = NULL},
    {"redisss://h", .host = NULL},
    {"rediss+unix:///h", .host = NULL},
    {"rediss:///h", .host = NULL},
    {"rediss://", .host = NULL},
    {"rediss://h:", .host = NULL},
    {"rediss://h?db=1", .host = NULL},

    /* redis:// */
    {"redis://h", NULL, NULL, "h", 6379, 0},
    {"redis://localhost:6380", NULL, NULL, "localhost", 6380, 0},
    {"redis://127.0.0.1:1/0", NULL, NULL, "127.0.0.1", 1, 0},
    {"redis://h/", NULL, NULL, "h", 6379, 0},
    {"redis://h:7/", NULL, NULL, "h", 7, 0},
    {"redis://h/15", NULL, NULL, "h", 6379, 15},
    {"redis://h/015", NULL, NULL, "h", 6379, 15},
    {"redis://h:65535/1048576", NULL, NULL, "h", 65535, 1048576},
    {"redis://h:00080", NULL, NULL, "h", 80, 0},
    {"redis://a%2db:7", NULL, NULL, "a-b", 7, 0},
    {"redis://\xc3\xa9.example", NULL, NULL, "\xc3\xa9.example", 6379, 0},
    {"redis://h:65536", .host = NULL},
    {"redis://h:0", .host = NULL},
    {"redis://h:000", .host = NULL},
    {"redis://h:", .host = NULL},
    {"redis://h:/1", .host = NULL},
    {"redis://h:-1", .host = NULL},
    {"redis://h:+1", .host = NULL},
    {"redis://h: 1", .host = NULL},
    {"redis://h:1 ", .host = NULL},
    {"redis://h:1a", .host = NULL},
    {"redis://h:1:2", .host = NULL},
    {"redis://h:99999999999999999999", .host = NULL},
    {"redis://h:18446744073709557995", .host = NULL}, /* 2^64 + 6379 */
    {"redis://h/1048577", .host = NULL},
    {"redis://h/-1", .host = NULL},
    {"redis://h/a", .host = NULL},
    {"redis://h/1/", .host = NULL},
    {"redis://h//1", .host = NULL},
    {"redis://h/1?x=2", .host = NULL},
    {"redis://h/1#x", .host = NULL},
    {"redis://h?db=1", .host = NULL},
    {"redis://h:1?db=1", .host = NULL},
    {"redis://h/18446744073709551616", .host = NULL},
    {"redis://", .host = NULL},
    {"redis:///1", .host = NULL},
    {"redis://:6379", .host = NULL},
    {"redis://:6379/1", .host = NULL},
    {"redis://h\n", .host = NULL},
    {"redis://h\x7f", .host = NULL},
    {"redis://h%", .host = NULL},
    {"redis://h%4", .host = NULL},
    {"redis://h%4g", .host = NULL},
    {"redis://h%g4", .host = NULL},
    {"redis://h%4:1", .host = NULL}, /* the escape would take the colon */
    {"redis://h%00", .host = NULL},
    {"redis://h%1f", .host = NULL},
    {"redis://h%7F", .host = NULL},
    {"redis://h%0a", .host = NULL},
    {"redis://secret%40h", .host = NULL}, /* meant for :secret@h; its host would be logged */
    {"redis://%zz", .host = NULL},
    /* IPv6 */
    {"redis://[::1]", NULL, NULL, "::1", 6379, 0},
    {"redis://[::1]:6380", NULL, NULL, "::1", 6380, 0},
    {"redis://[::1]/3", NULL, NULL, "::1", 6379, 3},
    {"redis://[fe80::1%25eth0]:6380/3", NULL, NULL, "fe80::1%eth0", 6380, 3},
    {"redis://u:p@[::1]:6380", "u", "p", "::1", 6380, 0},
    {"redis://[::1]:", .host = NULL},
    {"redis://[::1]:/1", .host = NULL},
    {"redis://[::1]6380", .host = NULL},
    {"redis://[::1]:0", .host = NULL},
    {"redis://[::1]:x", .host = NULL},
    {"redis://[::1]]:1", .host = NULL},
    {"redis://[::1", .host = NULL},
    {"redis://[::1:6380", .host = NULL},
    {"redis://[]", .host = NULL},
    {"redis://[]:1", .host = NULL},
    {"redis://[", .host = NULL},
    {"redis://[?]", .host = NULL},
    {"redis://[::1?]", .host = NULL},
    {"redis://::1", .host = NULL},
    {"redis://fe80::1", .host = NULL},
    /* logins */
    {"redis://u:p@h", "u", "p", "h", 6379, 0},
    {"redis://:p@h:7/2", NULL, "p", "h", 7, 2},
    {"redis://u:p:q@h", "u", "p:q", "h", 6379, 0},
    {"redis://us%65r:p%40%2f%3A%3f@h", "user", "p@/:?", "h", 6379, 0},
    {"redis://u:%25%20@h", "u", "% ", "h", 6379, 0},
    {"redis://u: @h", "u", " ", "h", 6379, 0},
    {"redis://u:%fF@h", "u", "\xff", "h", 6379, 0},
    {"redis://u:p@q@h",
     .host = NULL}, /* an @ of a password is %40: else its end would be taken for a host's name */
    {"redis://u:p@h@", .host = NULL},
    {"redis://u@h", .host = NULL},
    {"redis://@h", .host = NULL},
    {"redis://:@h", .host = NULL},
    {"redis://u:@h", .host = NULL},
    {"redis://u:p@", .host = NULL},
    {"redis://u:p@/1", .host = NULL},
    {"redis://u:p/q@h", .host = NULL},
    {"redis://u:p?q@h", .host = NULL},
    {"redis://h/1@x", .host = NULL},
    {"redis://h?a:b@x", .host = NULL},
    {"redis://u:%4@h", .host = NULL},
    {"redis://%4:p@h", .host = NULL},
    {"redis://u:%0a@h", .host = NULL},
    {"redis://u%00:p@h", .host = NULL},
    {"redis://u:p\n@h", .host = NULL},
    {"redis://u\x1b:p@h", .host = NULL},
    /* unix:// */
    {"unix:///s", NULL, NULL, "/s", 0, 0},
    {"unix:///run/redis/redis.sock", NULL, NULL, "/run/redis/redis.sock", 0, 0},
    {"unix:///s?db=7", NULL, NULL, "/s", 0, 7},
    {"unix:///s?db=1048576", NULL, NULL, "/s", 0, 1048576},
    {"unix:///a%20b%3Fc?db=1", NULL, NULL, "/a b?c", 0, 1},
    {"unix:///a:b@c", NULL, NULL, "/a:b@c", 0, 0},
    {"unix://u:p@/s", "u", "p", "/s", 0, 0},
    {"unix://u:p@/s@t?db=2", "u", "p", "/s@t", 0, 2},
    {"unix://:p%2fq@/s?db=2", NULL, "p/q", "/s", 0, 2},
    {"unix://u:p?q@/s", "u", "p?q", "/s", 0, 0},
    {"unix://" PATH_107, NULL, NULL, PATH_107, 0, 0},
    {"unix://" PATH_107 "?db=9", NULL, NULL, PATH_107, 0, 9},
    {"unix://" PATH_107 "7", .host = NULL},
    {"unix://", .host = NULL},
    {"unix:///", .host = NULL},
    {"unix://s", .host = NULL},
    {"unix://host/s", .host = NULL},
    {"unix:///s?", .host = NULL},
    {"unix:///s?db", .host = NULL},
    {"unix:///s?db=", .host = NULL},
    {"unix:///s?db=x", .host = NULL},
    {"unix:///s?db=-1", .host = NULL},
    {"unix:///s?db=1048577", .host = NULL},
    {"unix:///s?db=1&x=2", .host = NULL},
    {"unix:///s?xb=1", .host = NULL},
    {"unix:///s?dx=1", .host = NULL},
    {"unix:///s?db:1", .host = NULL},
    {"unix:///s?DB=1", .host = NULL},
    {"unix:///s?timeout=1", .host = NULL},
    {"unix:///s?db=1?db=2", .host = NULL},
    {"unix://?db=1", .host = NULL},
    {"unix:///?db=1", .host = NULL},
    {"unix:///s%", .host = NULL},
    {"unix:///s%00", .host = NULL},
    {"unix:///s%4@", .host = NULL},
    {"unix:///s%@4", .host = NULL},
    {"unix:///s%4/", .host = NULL},
    {"unix:///s%/4", .host = NULL},
    {"unix:///s\t", .host = NULL},
    {"unix://u@/s", .host = NULL},
    {"unix://u:@/s", .host = NULL},
    {"unix://:@/s", .host = NULL},
    {"unix://@/s", .host = NULL},
    {"unix://u:p@s", .host = NULL},
    {"unix://u:p@", .host = NULL},
    {"unix://u:p/q@/s", .host = NULL},
    {"unix://u%:p@/s", .host = NULL},
    {"redis+sentinel:/h/m", .host = NULL},
    {"redis-sentinel://h/m", .host = NULL},
    {"unix+sentinel:///s/m", .host = NULL},
    {"rediss+unix:///s", .host = NULL},
    /* what is neither */
    {"", .host = NULL},
    {"h", .host = NULL},
    {"localhost:6379", .host = NULL},
    {"redis", .host = NULL},
    {"redis:", .host = NULL},
    {"redis:/", .host = NULL},
    {"redis:h", .host = NULL},
    {"unix:", .host = NULL},
    {"unix:/s", .host = NULL},
    {"/s", .host = NULL},
    {" redis://h", .host = NULL},
    {"redis ://h", .host = NULL},
    {"REDIS://h", .host = NULL},
    {"redis:///s?db=1", .host = NULL},
    {"http://h", .host = NULL},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void expect_text(const char *got, const char *want, const char *what, const char *url)
{
    if (want) {
        cr_expect(got && strcmp(got, want) == 0, "%s: %s is \"%s\"", url, what,
                  got ? got : "(none)");
    } else {
        cr_expect_null(got, "%s: %s is \"%s\"", url, what, got);
    }
}

static size_t room(const char *s)
{
    return s ? strlen(s) + 1 : 0;
}

/* Both blocks are just as long as they need to be: what is beyond is ASan's to see. */
Test(address, is_taken_apart)
{
    for (size_t i = 0; i < ROWS; i++) {
        struct address u;
        char *text = unit_copy(rows[i].text, strlen(rows[i].text) + 1);
        size_t size = room(rows[i].user) + room(rows[i].password) + room(rows[i].host);
        cr_assert_leq(size, 2 * strlen(text), "%s: url.h promises that twice is enough", text);
        char *out = malloc(rows[i].host ? size : 2 * strlen(text) + 1);
        cr_assert_eq(address_parse(&u, text, NULL), rows[i].host != NULL, "%s, checked", text);
        cr_assert_eq(address_parse(&u, text, out), rows[i].host != NULL, "%s", text);
        if (rows[i].host) {
            expect_text(u.user, rows[i].user, "user", text);
            expect_text(u.password, rows[i].password, "password", text);
            expect_text(u.host, rows[i].host, "host", text);
            cr_expect_eq(u.port, rows[i].port, "%s: port %d", text, u.port);
            cr_expect_eq(u.db, rows[i].db, "%s: db %d", text, u.db);
            cr_expect_eq(u.tls, strncmp(text, "rediss", 6) == 0, "%s", text);
            cr_expect_eq(u.unix_socket, *text == 'u', "%s", text);
        }
        free(out);
        free(text);
    }
}

/* ---- of Sentinels ---- */
static const struct {
    const char *text;
    unsigned n_seeds;
    struct {
        const char *host;
        int port;
    } seeds[3]; /* the first, at most */
    const char *master, *user, *password, *sentinel_user, *sentinel_password;
    int db;
} sentinel_rows[] = {
    {"redis+sentinel://h/m", 1, {{"h", 26379}}, .master = "m"},
    {"rediss+sentinel://h/m", 1, {{"h", 26379}}, .master = "m"},
    {"redis+sentinel://a,b:7,c/m", 3, {{"a", 26379}, {"b", 7}, {"c", 26379}}, .master = "m"},
    {"redis+sentinel://[::1]:26379,[fe80::1%25eth0]/m",
     2,
     {{"::1", 26379}, {"fe80::1%eth0", 26379}},
     .master = "m"},
    {"redis+sentinel://u:p%2c%40@h/my%20master",
     1,
     {{"h", 26379}},
     .master = "my master",
     .user = "u",
     .password = "p,@"},
    {"redis+sentinel://:p@h/m", 1, {{"h", 26379}}, .master = "m", .password = "p"},
    {"redis+sentinel://h/m?db=3", 1, {{"h", 26379}}, .master = "m", .db = 3},
    {"redis+sentinel://h/m?sentinel_password=q%26",
     1,
     {{"h", 26379}},
     .master = "m",
     .sentinel_password = "q&"},
    {"redis+sentinel://u:p@h:1,i:2/m?sentinel_user=v&db=1&sentinel_password=a@b",
     2,
     {{"h", 1}, {"i", 2}},
     .master = "m",
     .user = "u",
     .password = "p",
     .sentinel_user = "v",
     .sentinel_password = "a@b",
     .db = 1},
    {"redis+sentinel://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16/m",
     16,
     {{"1", 26379}, {"2", 26379}, {"3", 26379}},
     .master = "m"},
};

Test(address, of_sentinels_is_taken_apart)
{
    for (size_t i = 0; i < sizeof sentinel_rows / sizeof *sentinel_rows; i++) {
        const char *text = sentinel_rows[i].text;
        struct address u;
        char *copy = unit_copy(text, strlen(text) + 1);
        char *out = malloc(2 * strlen(text));

        cr_expect(address_parse(&u, copy, NULL), "%s, checked", text);
        cr_assert(address_parse(&u, copy, out), "%s", text);
        cr_expect_eq(u.kind, ADDRESS_SENTINEL);
        cr_expect_null(u.host);
        cr_assert_eq(u.n_seeds, sentinel_rows[i].n_seeds, "%s", text);
        for (unsigned k = 0; k < u.n_seeds && k < 3; k++) {
            expect_text(u.seeds[k].host, sentinel_rows[i].seeds[k].host, "host", text);
            cr_expect_eq(u.seeds[k].port, sentinel_rows[i].seeds[k].port, "%s", text);
        }
        expect_text(u.master, sentinel_rows[i].master, "master", text);
        expect_text(u.user, sentinel_rows[i].user, "user", text);
        expect_text(u.password, sentinel_rows[i].password, "password", text);
        expect_text(u.sentinel_user, sentinel_rows[i].sentinel_user, "sentinel_user", text);
        expect_text(u.sentinel_password, sentinel_rows[i].sentinel_password, "sentinel_password",
                    text);
        cr_expect_eq(u.db, sentinel_rows[i].db, "%s", text);
        cr_expect_eq(u.tls, strncmp(text, "rediss", 6) == 0, "%s", text);
        free(copy);
        free(out);
    }
}

#define H64 "hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh"

struct refused {
    const char *text, *rule;
};

static void expect_refused(const struct refused *these, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct address u;
        char *text = unit_copy(these[i].text, strlen(these[i].text) + 1);
        char *out = malloc(2 * strlen(text));

        cr_expect_not(address_parse(&u, text, NULL), "%s", text);
        cr_expect_not(address_parse(&u, text, out), "%s", text);
        cr_expect(strstr(address_rule(text), these[i].rule), "%s: %s", text, address_rule(text));
        free(text);
        free(out);
    }
}

Test(address, of_sentinels_that_is_refused_says_which_rule_it_breaks)
{
    static const struct refused rows[] = {
        {"redis+sentinel://", "a host is missing"},
        {"redis+sentinel:///m", "a host is missing"},
        {"redis+sentinel://a,,b/m", "a host is missing"},
        {"redis+sentinel://a,/m", "a host is missing"},
        {"redis+sentinel://,a/m", "a host is missing"},
        {"redis+sentinel://:26379/m", "a host is missing"},
        {"redis+sentinel://[]/m", "a host is missing"},
        {"redis+sentinel://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17/m", "at most 16 hosts"},
        {"redis+sentinel://" H64 H64 H64 H64 "/m", "a host has at most 253 bytes"},
        {"redis+sentinel://h:0/m", "a port is a number from 1 to 65535"},
        {"redis+sentinel://h:65536/m", "a port is a number from 1 to 65535"},
        {"redis+sentinel://h:/m", "a port is a number from 1 to 65535"},
        {"redis+sentinel://h:1,i:x/m", "a port is a number from 1 to 65535"},
        {"redis+sentinel://::1/m", "a host is missing"},
        {"redis+sentinel://[::1]x/m", "a port is a number from 1 to 65535"},
        {"redis+sentinel://[::1/m", "a [ needs its ]"},
        {"redis+sentinel://h", "behind the hosts comes the name of the master"},
        {"redis+sentinel://h/", "behind the hosts comes the name of the master"},
        {"redis+sentinel://h?db=1", "behind the hosts comes the name of the master"},
        {"redis+sentinel://h/m/1", "behind the hosts comes the name of the master"},
        {"redis+sentinel://h/m%", "a % begins an escape"},
        {"redis+sentinel://h/m%0a", "control characters"},
        {"redis+sentinel://u:p,q@h/m", "a comma in a user or a password is written %2C"},
        {"redis+sentinel://u,v:p@h/m", "a comma in a user or a password is written %2C"},
        {"redis+sentinel://u:p@q@h/m", "an @ in a user or a password is written %40"},
        {"redis+sentinel://h,u:p@i/m", "a comma in a user or a password is written %2C"},
        {"redis+sentinel://u@h/m", "a user needs a password"},
        {"redis+sentinel://h/m?", "behind the ? are db, sentinel_user and sentinel_password"},
        {"redis+sentinel://h/m?x=1", "behind the ? are db, sentinel_user and sentinel_password"},
        {"redis+sentinel://h/m?db", "behind the ? are db, sentinel_user and sentinel_password"},
        {"redis+sentinel://h/m?db=", "behind the ? are db, sentinel_user and sentinel_password"},
        {"redis+sentinel://h/m?db=1&", "behind the ? are db, sentinel_user and"},
        {"redis+sentinel://h/m?db=1&db=2", "behind the ? are db, sentinel_user and"},
        {"redis+sentinel://h/m?db=x", "a database is a number"},
        {"redis+sentinel://h/m?sentinel_user=u", "a user needs a password"},
        {"redis+sentinel://h/m?sentinel_password=%zz", "a % begins an escape"},
    };

    expect_refused(rows, sizeof rows / sizeof *rows);
}

/* ---- of a cluster ---- */
Test(address, of_a_cluster_is_taken_apart)
{
    static const char text[] = "rediss+cluster://u:p%2c@a,b:7,[::1]:7000";
    struct address u;
    char *copy = unit_copy(text, sizeof text);
    char *out = malloc(2 * strlen(text));

    cr_assert(address_parse(&u, copy, out));
    cr_expect_eq(u.kind, ADDRESS_CLUSTER);
    cr_expect(u.tls);
    cr_expect_null(u.host);
    cr_expect_eq(u.db, 0);
    cr_assert_eq(u.n_seeds, 3);
    expect_text(u.seeds[0].host, "a", "host", text);
    cr_expect_eq(u.seeds[0].port, 6379);
    expect_text(u.seeds[1].host, "b", "host", text);
    cr_expect_eq(u.seeds[1].port, 7);
    expect_text(u.seeds[2].host, "::1", "host", text);
    cr_expect_eq(u.seeds[2].port, 7000);
    expect_text(u.user, "u", "user", text);
    expect_text(u.password, "p,", "password", text);
    free(copy);
    free(out);
}

Test(address, of_a_cluster_that_is_refused_says_which_rule_it_breaks)
{
    static const struct refused rows[] = {
        {"redis+cluster://", "a host is missing"},
        {"redis+cluster://a,,b", "a host is missing"},
        {"redis+cluster://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "at most 16 hosts"},
        {"redis+cluster://" H64 H64 H64 H64, "a host has at most 253 bytes"},
        {"redis+cluster://h:0", "a port is a number from 1 to 65535"},
        {"redis+cluster://h:65536", "a port is a number from 1 to 65535"},
        {"redis+cluster://h:", "a port is a number from 1 to 65535"},
        {"redis+cluster://[::1", "a [ needs its ]"},
        {"redis+cluster://h/1", "a cluster has one database"},
        {"redis+cluster://h/", "a cluster has one database"},
        {"redis+cluster://h?db=1", "a cluster has one database"},
        {"redis+cluster://u:p,q@h", "a comma in a user or a password is written %2C"},
        {"redis+cluster://u:p@q@h", "an @ in a user or a password is written %40"},
        {"redis+cluster://u@h", "a user needs a password"},
    };

    expect_refused(rows, sizeof rows / sizeof *rows);
}

Test(address, that_is_only_checked_fills_no_texts)
{
    struct address u;

    memset(&u, 0x5a, sizeof u);
    cr_expect_eq(address_parse(&u, "redis://u:p@h:7/3", NULL), 1);
    cr_expect(!u.user && !u.password && !u.host);
    cr_expect_eq(u.port, 7);
    cr_expect_eq(u.db, 3);
}

/* Every start of a good one is a URL or is none, and no byte beyond it is read. */
Test(address, may_end_anywhere)
{
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t len = 0; len < strlen(rows[i].text); len++) {
            struct address u;
            char *text = unit_copy(rows[i].text, len + 1);
            char *out = malloc(2 * len + 1);
            text[len] = '\0';
            int good = address_parse(&u, text, NULL);
            cr_assert_eq(address_parse(&u, text, out), good, "%s", text);
            free(text);
            free(out);
        }
    }
}

Test(address, escapes_are_two_hexadecimal_digits_of_any_case)
{
    for (int a = 1; a < 256; a++) {
        for (int b = 1; b < 256; b++) {
            char text[32] = "redis://u:x%__y@h";
            char out[64];
            char want[4] = "x";
            char *end;
            char pair[] = {(char)a, (char)b, 0};
            struct address u;
            memcpy(text + 12, pair, 2);
            long value = isxdigit(a) && isxdigit(b) ? strtol(pair, &end, 16) : -1;
            bool good = value >= ' ' && value != 127;
            if (strpbrk(pair, "@/?")) {
                continue; /* the URL has another shape then */
            }
            want[1] = (char)value;
            want[2] = 'y';
            cr_assert_eq(address_parse(&u, text, out), good, "%s", text);
            if (good) {
                cr_assert_str_eq(u.password, want);
            }
        }
    }
}

Test(address, of_random_bytes_is_refused_or_has_a_host)
{
    static const char alphabet[] = "aZ019:/@?%[]=db&., \n\x80\x7f";
    static const char *const starts[] = {
        "redis://",     "unix://", "unix:///",          "redis://[",
        "redis://u:p@", "",        "redis+sentinel://", "redis+sentinel://h/m?db="};
    uint64_t r = 3;

    for (int i = 0; i < 100000; i++) {
        char text[64];
        size_t n = (size_t)snprintf(text, sizeof text, "%s", starts[unit_random(&r) % 8]);
        for (size_t more = unit_random(&r) % 24; more; more--) {
            text[n++] = alphabet[unit_random(&r) % (sizeof alphabet - 1)];
        }
        text[n++] = '\0';
        struct address u;
        char *copy = unit_copy(text, n);
        char *out = malloc(2 * n);
        int good = address_parse(&u, copy, NULL);
        cr_assert_eq(address_parse(&u, copy, out), good, "%s", text);
        if (good) {
            if (u.kind == ADDRESS_SENTINEL) {
                cr_assert(u.n_seeds > 0 && u.master && *u.master, "%s", text);
                u.host = u.seeds[u.n_seeds - 1].host;
                u.port = u.seeds[u.n_seeds - 1].port;
            }
            cr_assert(u.host && *u.host && u.db >= 0 && u.db <= 1 << 20, "%s", text);
            cr_assert(u.unix_socket ? *u.host == '/' : u.port > 0 && u.port < 65536, "%s", text);
            cr_assert(!u.password || *u.password, "%s", text);
            cr_assert(!u.user || u.password, "%s", text);
        }
        free(copy);
        free(out);
    }
}
