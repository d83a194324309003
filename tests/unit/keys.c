/* SPDX-License-Identifier: MIT */
#include "job/keys.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

static char long_text[512]; /* all 'a' */

static void start(void)
{
    memset(long_text, 'a', sizeof long_text - 1);
}

TestSuite(keys, .init = start);

static const char *of_length(size_t len)
{
    return long_text + sizeof long_text - 1 - len;
}

static bool word_byte(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

/* ---- alphabets ---- */
Test(keys, a_word_has_letters_digits_dot_underscore_and_dash)
{
    for (int c = 1; c < 256; c++) {
        const char in[] = {'a', (char)c, 'b', 0};
        const char alone[] = {(char)c, 0};
        const char last[] = {'a', (char)c, 0};
        cr_expect_eq(keys_word(in, 3), word_byte(c), "byte %d", c);
        cr_expect_eq(keys_word(alone, 1), word_byte(c), "byte %d", c);
        cr_expect_eq(keys_word(last, 2), word_byte(c), "byte %d", c);
        cr_expect_eq(keys_queue_ok(in), word_byte(c), "byte %d", c);
    }
}

Test(keys, a_word_has_a_length)
{
    cr_expect_not(keys_word("", 64));
    cr_expect(keys_word("a", 1));
    cr_expect_not(keys_word("ab", 1));
    cr_expect(keys_word("ab", 2));
    cr_expect_not(keys_queue_ok(""));
    cr_expect(keys_queue_ok(of_length(1)));
    cr_expect(keys_queue_ok(of_length(64)));
    cr_expect_not(keys_queue_ok(of_length(65)));
    cr_expect_not(keys_queue_ok(of_length(500)));
}

Test(keys, an_id_is_printable_ascii_without_space_and_braces)
{
    for (int c = 0; c < 256; c++) {
        char in[] = {'a', (char)c, 'b'};
        char alone = (char)c;
        bool good = c > ' ' && c <= '~' && c != '{' && c != '}';
        cr_expect_eq(keys_id_ok(in, 3), good, "byte %d", c);
        cr_expect_eq(keys_id_ok(&alone, 1), good, "byte %d", c);
        cr_expect_eq(keys_id_ok(in, 2), good, "byte %d", c);
    }
}

Test(keys, an_id_has_a_length)
{
    cr_expect_not(keys_id_ok("a", 0));
    cr_expect(keys_id_ok("a", 1));
    cr_expect(keys_id_ok(long_text, 255));
    cr_expect_not(keys_id_ok(long_text, 256));
}

/* ---- spelling ---- */
Test(keys, are_spelled_as_the_scripts_spell_them)
{
    char out[KEYS_MAX];

    cr_expect_eq(keys_due(out, "lapse", "mail"), 16);
    cr_expect_str_eq(out, "lapse:{mail}:due");
    cr_expect_eq(keys_wake(out, "lapse", "mail", 0), 21);
    cr_expect_str_eq(out, "lapse:{mail}:notice:0");
    cr_expect_eq(keys_wake(out, "s", "q", 15), 15);
    cr_expect_str_eq(out, "s:{q}:notice:15");
    cr_expect_eq(keys_pattern(out, "lapse", "mail", 0), 31);
    cr_expect_str_eq(out, "__keyspace@0__:lapse:{mail}:t:*");
}

Test(keys, of_the_longest_names_fit)
{
    char *out = malloc(KEYS_MAX);
    char want[512];

    snprintf(want, sizeof want, "%s:{%s}:due", of_length(64), of_length(64));
    cr_expect_eq(keys_due(out, of_length(64), of_length(64)), strlen(want));
    cr_expect_str_eq(out, want);
    snprintf(want, sizeof want, "%s:{%s}:notice:1048576", of_length(64), of_length(64));
    cr_expect_eq(keys_wake(out, of_length(64), of_length(64), 1 << 20), strlen(want));
    cr_expect_str_eq(out, want);
    snprintf(want, sizeof want, "__keyspace@1048576__:%s:{%s}:t:*", of_length(64), of_length(64));
    cr_expect_eq(keys_pattern(out, of_length(64), of_length(64), 1 << 20), strlen(want));
    cr_expect_str_eq(out, want);
    free(out);
}

/* ---- events ---- */
static struct span span(const char *s, size_t len)
{
    return (struct span){s, len};
}

/* In blocks of exactly their size, of which a copy is kept until the next call. */
static enum keys_event event(const char *channel, size_t channel_len, const char *key,
                             size_t key_len, int db, struct span *q, struct span *i)
{
    static char kept[1024];
    char *c = unit_copy(channel, channel_len);
    char *k = unit_copy(key, key_len);
    enum keys_event what = keys_event(span(c, channel_len), span(k, key_len), "lapse", db, q, i);

    if (what != KEYS_FOREIGN) {
        bool by_space = channel_len > 10 &&
                        memcmp(channel, "__keyspace", 10) == 0; /* then the channel has the key */
        const char *in = by_space ? c : k;
        size_t len = by_space ? channel_len : key_len;
        cr_assert(q->at >= in && q->at + q->len <= in + len && i->at >= in &&
                  i->at + i->len <= in + len);
        memcpy(kept, in, len);
        q->at = kept + (q->at - in);
        i->at = kept + (i->at - in);
    }

    free(c);
    free(k);

    return what;
}

Test(keys, an_event_of_ours_has_queue_and_id)
{
    static const struct {
        const char *channel, *key;
        int db;
        const char *queue, *id; /* queue NULL: not ours */
    } rows[] = {
        {"__keyevent@0__:expired", "lapse:{q}:t:i", 0, "q", "i"},
        {"__keyevent@0__:expired", "lapse:{mail.out_9-Z}:t:order-7", 0, "mail.out_9-Z", "order-7"},
        {"__keyevent@15__:expired", "lapse:{q}:t:i", 15, "q", "i"},
        {"__keyevent@1048576__:expired", "lapse:{q}:t:i", 1048576, "q", "i"},
        {"__keyspace@0__:lapse:{q}:t:i", "expired", 0, "q", "i"},
        {"__keyspace@15__:lapse:{q}:t::t:", "expired", 15, "q", ":t:"},
        {"__keyspace@0__:lapse:{q}:t:i", "set", 0, .queue = NULL},
        {"__keyspace@0__:lapse:{q}:t:i", "expire", 0, .queue = NULL},
        {"__keyspace@0__:lapse:{q}:t:i", "", 0, .queue = NULL},
        {"__keyspace@1__:lapse:{q}:t:i", "expired", 0, .queue = NULL},
        {"__keyspace@0__:lapse:{q}:t:i", "expiredx", 0, .queue = NULL},
        {"__keyspace@0__:lapse:{q}:t:i", "expire\n", 0, .queue = NULL},
        {"__keyspace@0__:", "expired", 0, .queue = NULL},
        {"__keyspace@0__lapse:{q}:t:i", "expired", 0, .queue = NULL},
        {"__keyspace@1048576__:lapse:{q}:t:i", "expired", 1048576, "q", "i"},
        {"__keyspace@10__:lapse:{q}:t:i", "expired", 1, .queue = NULL},
        {"lapse:{q}:t:i", "expired", 0, .queue = NULL},
        {"__keyevent@0__:lapse:{q}:t:i", "expired", 0, .queue = NULL},
        {"__keyspace@0__:other:{q}:t:i", "expired", 0, .queue = NULL},
        {"__keyspace@0__:lapse:{q}:due", "expired", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{q}:t::t:", 0, "q", ":t:"},
        {"__keyevent@0__:expired", "lapse:{q}:t:lapse:q:t:i", 0, "q", "lapse:q:t:i"},
        /* another database, or something like it */
        {"__keyevent@1__:expired", "lapse:{q}:t:i", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{q}:t:i", 1, .queue = NULL},
        {"__keyevent@10__:expired", "lapse:{q}:t:i", 1, .queue = NULL},
        {"__keyevent@1__:expired", "lapse:{q}:t:i", 10, .queue = NULL},
        {"__keyevent@00__:expired", "lapse:{q}:t:i", 0, .queue = NULL},
        {"__keyevent@*__:expired", "lapse:{q}:t:i", 0, .queue = NULL},
        {"__keyevent@__:expired", "lapse:{q}:t:i", 0, .queue = NULL},
        /* another event, or none */
        {"__keyevent@0__:del", "lapse:{q}:t:i", 0, .queue = NULL},
        {"__keyevent@0__:expire", "lapse:{q}:t:i", 0, .queue = NULL},
        {"__keyevent@0__:expiredx", "lapse:{q}:t:i", 0, .queue = NULL},
        {"__keyevent@0__:evicted", "lapse:{q}:t:i", 0, .queue = NULL},
        {"__keyspace@0__:expired", "lapse:{q}:t:i", 0, .queue = NULL},
        {"x__keyevent@0__:expired", "lapse:{q}:t:i", 0, .queue = NULL},
        {"lapse:{q}:notice:0", "lapse:{q}:t:i", 0, .queue = NULL},
        {"", "lapse:{q}:t:i", 0, .queue = NULL},
        /* another program's key */
        {"__keyevent@0__:expired", "", 0, .queue = NULL},
        {"__keyevent@0__:expired", "l", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse", 0, .queue = NULL},
        {"__keyevent@0__:expired", "session:123", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse2:{q}:t:i", 0, .queue = NULL},
        {"__keyevent@0__:expired", "laps:{q}:t:i", 0, .queue = NULL},
        {"__keyevent@0__:expired", "xlapse:{q}:t:i", 0, .queue = NULL},
        {"__keyevent@0__:expired", "LAPSE:{q}:t:i", 0, .queue = NULL},
        {"__keyevent@0__:expired", "{q}:t:i", 0, .queue = NULL},
        /* a part missing */
        {"__keyevent@0__:expired", "lapse:", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{q", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{q}", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{q}:", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{q}:t", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{q}:t:", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{}:t:i", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:}:t:i", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:q:t:i", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse{q}:t:i", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{q}t:i", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{q}:ti", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{q:t:i", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{q}:due", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{q}:x:i", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{q}:T:i", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{q} :t:i", 0, .queue = NULL},
        /* forged: no schedule takes such names */
        {"__keyevent@0__:expired", "lapse:{q}:t:i j", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{q}:t:i\n", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{q}:t:i}", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{q}:t:\xff", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{q}:t:i\x7f", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{a b}:t:i", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{a\n}:t:i", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{\x1b[31m}:t:i", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{a:b}:t:i", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{{q}:t:i", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{q}}:t:i", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{q}{r}:t:i", 0, .queue = NULL},
        {"__keyevent@0__:expired", "lapse:{\xc3\xa9}:t:i", 0, .queue = NULL},
    };

    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        struct span q;
        struct span i;
        bool ours = event(rows[n].channel, strlen(rows[n].channel), rows[n].key,
                          strlen(rows[n].key), rows[n].db, &q, &i);
        cr_assert_eq(ours, rows[n].queue ? KEYS_TRIGGER : KEYS_FOREIGN, "%s %s, db %d",
                     rows[n].channel, rows[n].key, rows[n].db);
        if (ours) {
            cr_expect(span_is(q, rows[n].queue), "%s: %.*s", rows[n].key, (int)q.len, q.at);
            cr_expect(span_is(i, rows[n].id), "%s: %.*s", rows[n].key, (int)i.len, i.at);
        }
    }
}

#define EXPIRED "__keyevent@0__:expired"

/* No id has a brace, so a name in braces is nobody's job. */
Test(keys, an_event_of_a_canary_has_queue_and_name)
{
    static const struct {
        const char *key, *name; /* NULL: not ours */
    } rows[] = {
        {"lapse:{q}:t:{i}", "i"},
        {"lapse:{q}:t:{box:1:0123456789abcdef}", "box:1:0123456789abcdef"},
        {"lapse:{q}:t:{}", NULL},
        {"lapse:{q}:t:{", NULL},
        {"lapse:{q}:t:}", NULL},
        {"lapse:{q}:t:{i", NULL},
        {"lapse:{q}:t:i}", NULL},
        {"lapse:{q}:t:{i}x", NULL},
        {"lapse:{q}:t:x{i}", NULL},
        {"lapse:{q}:t:{{i}}", NULL},
        {"lapse:{q}:t:{i}}", NULL},
        {"lapse:{q}:t:{i j}", NULL},
        {"lapse:{q}:t:{i\n}", NULL},
        {"lapse:{}:t:{i}", NULL},
        {"lapse:{q }:t:{i}", NULL},
        {"lapse:{q}:{i}", NULL},
    };

    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        struct span q;
        struct span i;
        enum keys_event what =
            event(EXPIRED, sizeof EXPIRED - 1, rows[n].key, strlen(rows[n].key), 0, &q, &i);
        cr_assert_eq(what, rows[n].name ? KEYS_CANARY : KEYS_FOREIGN, "%s", rows[n].key);
        if (rows[n].name) {
            cr_expect(span_is(q, "q") && span_is(i, rows[n].name), "%s", rows[n].key);
        }
    }
}

Test(keys, an_event_with_a_nul_in_it_is_not_ours)
{
    static const char whole[] = "lapse:{queue}:t:id";
    struct span q;
    struct span i;

    for (size_t at = 0; at < sizeof whole - 1; at++) {
        char key[sizeof whole];
        memcpy(key, whole, sizeof whole);
        key[at] = '\0';
        cr_expect_not(event(EXPIRED, sizeof EXPIRED - 1, key, sizeof whole - 1, 0, &q, &i),
                      "NUL at %zu", at);
    }

    cr_expect_not(event(EXPIRED, sizeof EXPIRED, whole, sizeof whole - 1, 0, &q, &i),
                  "a NUL ends the channel");
    cr_expect_not(event(EXPIRED, sizeof EXPIRED - 1, whole, sizeof whole, 0, &q, &i),
                  "a NUL ends the key");
    cr_expect(event(EXPIRED, sizeof EXPIRED - 1, whole, sizeof whole - 1, 0, &q, &i));
}

Test(keys, an_event_has_names_of_all_lengths_that_there_are)
{
    static const struct {
        size_t queue, id;
        bool ours;
    } rows[] = {{1, 1, true},    {64, 1, true},   {65, 1, false},   {200, 1, false}, {1, 255, true},
                {1, 256, false}, {64, 255, true}, {64, 256, false}, {65, 256, false}};

    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        char key[1024];
        struct span q;
        struct span i;
        int len = snprintf(key, sizeof key, "lapse:{%s}:t:%s", of_length(rows[n].queue),
                           of_length(rows[n].id));
        cr_assert_eq(event(EXPIRED, sizeof EXPIRED - 1, key, (size_t)len, 0, &q, &i), rows[n].ours,
                     "row %zu", n);
        if (rows[n].ours) {
            cr_expect_eq(q.len, rows[n].queue);
            cr_expect_eq(i.len, rows[n].id);
        }
    }
}

Test(keys, an_event_may_end_anywhere)
{
    static const char key[] = "lapse:{queue}:t:id";
    static const char space[] = "__keyspace@0__:lapse:{queue}:t:id";
    struct span q;
    struct span i;

    for (size_t c = 0; c < sizeof space; c++) {
        for (size_t k = 0; k < sizeof "expired"; k++) {
            bool whole = c > sizeof "__keyspace@0__:lapse:{queue}:t:" - 1 && k == 7;
            cr_assert_eq(event(space, c, "expired", k, 0, &q, &i), whole,
                         "%zu of the channel, %zu of the text", c, k);
        }
    }

    for (size_t c = 0; c < sizeof EXPIRED; c++) {
        for (size_t k = 0; k < sizeof key; k++) {
            bool whole =
                c == sizeof EXPIRED - 1 && k >= sizeof "lapse:{queue}:t:" && k < sizeof key;
            cr_assert_eq(event(EXPIRED, c, key, k, 0, &q, &i), whole,
                         "%zu of the channel, %zu of the key", c, k);
        }
    }
}

/* Whatever the bytes: what is taken for ours is spelled like ours. */
Test(keys, an_event_of_random_bytes_is_refused_or_well_formed)
{
    static const char alphabet[] = "lapse:{}tqi09.\n\0 \x80~";
    uint64_t r = 4;
    int n_ours = 0;

    for (int round = 0; round < 200000; round++) {
        char key[96] = "lapse:{q}:t:i";
        char name[96];
        size_t len = unit_random(&r) % 2 ? 13 : unit_random(&r) % 40;
        for (uint64_t change = unit_random(&r) % (len > 13 ? 40 : 4); change && len; change--) {
            key[unit_random(&r) % len] = unit_random(&r) % 4
                                             ? alphabet[unit_random(&r) % (sizeof alphabet - 1)]
                                             : (char)unit_random(&r);
        }
        struct span q;
        struct span i;
        enum keys_event what = event(EXPIRED, sizeof EXPIRED - 1, key, len, 0, &q, &i);
        if (what != KEYS_FOREIGN) {
            n_ours++;
            memcpy(name, q.at, q.len);
            name[q.len] = '\0';
            cr_assert(strlen(name) == q.len && keys_queue_ok(name), "queue of %.*s", (int)len, key);
            cr_assert(keys_id_ok(i.at, i.len), "id of %.*s", (int)len, key);
            char again[128];
            const char *open = what == KEYS_CANARY ? "{" : "";
            const char *close = what == KEYS_CANARY ? "}" : "";
            int again_len = snprintf(again, sizeof again, "lapse:{%s}:t:%s%.*s%s", name, open,
                                     (int)i.len, i.at, close);
            cr_assert(span_eq(span(key, len), span(again, (size_t)again_len)), "%.*s is not %s",
                      (int)len, key, again);
        }
    }

    cr_assert_gt(n_ours, 1000, "the loop tries too few good ones: %d", n_ours);
}
