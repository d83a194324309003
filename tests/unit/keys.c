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

static struct span span(const char *s, size_t len)
{
    return (struct span){s, len};
}

/* ---- alphabets ---- */
Test(keys, a_word_has_letters_digits_dot_underscore_and_dash)
{
    for (int c = 1; c < 256; c++) {
        const char in[] = {'a', (char)c, 'b', 0};
        const char alone[] = {(char)c, 0};
        const char last[] = {'a', (char)c, 0};
        cr_expect_eq(keys_space_ok(span_of(in)), word_byte(c), "byte %d", c);
        cr_expect_eq(keys_space_ok(span_of(alone)), word_byte(c), "byte %d", c);
        cr_expect_eq(keys_space_ok(span_of(last)), word_byte(c), "byte %d", c);
        cr_expect_eq(keys_queue_ok(span_of(in)), word_byte(c), "byte %d", c);
    }
}

Test(keys, a_word_has_a_length)
{
    static bool (*const rules[])(struct span) = {keys_space_ok, keys_queue_ok};

    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        cr_expect_not(rules[i](span_of("")));
        cr_expect(rules[i](span_of(of_length(1))));
        cr_expect(rules[i](span_of(of_length(64))));
        cr_expect_not(rules[i](span_of(of_length(65))));
        cr_expect_not(rules[i](span_of(of_length(500))));
    }
    cr_expect_not(keys_queue_ok((struct span){"a\0b", 3}), "a NUL is a byte too");
}

Test(keys, an_id_is_printable_ascii_without_space_and_braces)
{
    for (int c = 0; c < 256; c++) {
        char in[] = {'a', (char)c, 'b'};
        char alone = (char)c;
        bool good = c > ' ' && c <= '~' && c != '{' && c != '}';
        cr_expect_eq(keys_id_ok(span(in, 3)), good, "byte %d", c);
        cr_expect_eq(keys_id_ok(span(&alone, 1)), good, "byte %d", c);
        cr_expect_eq(keys_id_ok(span(in, 2)), good, "byte %d", c);
        cr_expect_eq(keys_name_ok(span(in, 3)), good, "byte %d", c);
    }
}

Test(keys, an_id_has_a_length)
{
    cr_expect_not(keys_id_ok(span("a", 0)));
    cr_expect(keys_id_ok(span("a", 1)));
    cr_expect(keys_id_ok(span(long_text, 255)));
    cr_expect_not(keys_id_ok(span(long_text, 256)));
    cr_expect_not(keys_name_ok(span("a", 0)));
    cr_expect(keys_name_ok(span(long_text, 64)));
    cr_expect_not(keys_name_ok(span(long_text, 65)));
}

/* ---- spelling ---- */
Test(keys, are_spelled_as_the_scripts_spell_them)
{
    char out[KEYS_MAX];

    cr_expect_eq(keys_of(out, "lapse", "mail", KEYS_DUE), 16);
    cr_expect_str_eq(out, "lapse:{mail}:due");
    cr_expect_eq(keys_none(out, span_of("lapse:{mail}:due")), 17);
    cr_expect_str_eq(out, "lapse:{mail}:none");
    cr_expect_eq(keys_notice(out, "lapse", "mail", 0), 21);
    cr_expect_str_eq(out, "lapse:{mail}:notice:0");
    cr_expect_eq(keys_notice(out, "s", "q", 15), 15);
    cr_expect_str_eq(out, "s:{q}:notice:15");
    cr_expect_eq(keys_pattern(out, "lapse", "mail", 0), 31);
    cr_expect_str_eq(out, "__keyspace@0__:lapse:{mail}:t:*");
    cr_expect_eq(keys_pattern_of_parts(out, "s"), 11);
    cr_expect_str_eq(out, "s:{*}:[^t]*");
    cr_expect_eq(keys_pattern_of_groups(out, "s"), 9);
    cr_expect_str_eq(out, "s:{*}:p:*");
    cr_expect_eq(keys_pattern_of_notices(out, "s"), 14);
    cr_expect_str_eq(out, "s:{*}:notice:*");

    char trigger[KEYS_TRIGGER_MAX];
    cr_expect_eq(keys_trigger(trigger, "s", "q", "id"), 10);
    cr_expect_str_eq(trigger, "s:{q}:t:id");
    cr_expect_eq(keys_group(trigger, "s", "q", "id"), 10);
    cr_expect_str_eq(trigger, "s:{q}:p:id");
    cr_expect_eq(keys_canary(trigger, "s", "q", "me"), 12);
    cr_expect_str_eq(trigger, "s:{q}:t:{me}");
}

Test(keys, of_the_parts_of_a_queue_name_it)
{
    static const char *const parts[] = {
        "due",       "run",   "dead", "jobs",   "attempts", "seq",    "conf",    "stream", "list",
        "listeners", "index", "next", "report", "kept",     "errors", "batches", "past"};
    char out[KEYS_MAX];

    cr_assert_eq(sizeof parts / sizeof *parts, KEYS_PARTS);
    for (enum keys_part part = 0; part < KEYS_PARTS; part++) {
        struct span queue = {NULL, 0};
        cr_expect_str_eq(keys_part_name(part), parts[part]);
        keys_of(out, "lapse", "mail", part);
        cr_expect(keys_queue_of(span_of(out), "lapse", &queue) && span_is(queue, "mail"), "%s",
                  out);
    }

    static const char *const others[] = {
        "lapse:{mail}:t:i",
        "lapse:{mail}:notice:0",
        "lapse:{mail}:du",
        "lapse:{mail}:due1",
        "lapse:{mail}:",
        "lapse:{mail}",
        "lapse:{}:due",
        "lapse:{a b}:due",
        "lapse:{mail:due",
        "lapse:mail:due",
        "laps:{mail}:due",
        "xlapse:{mail}:due",
        "",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct span queue = {NULL, 0};
        cr_expect_not(keys_queue_of(span_of(others[i]), "lapse", &queue), "%s", others[i]);
        cr_expect_null(queue.at);
    }
}

Test(keys, of_the_parts_of_a_group_name_queue_and_group)
{
    static const char *const others[] = {"s:{q}:due",   "s:{q}:t:p:a", "s:{q}:px", "s:{}:p:a",
                                         "s:{a b}:p:a", "x:{q}:p:a",   "s:{q}p:a", "s:q:p:a"};
    struct span queue = {NULL, 0};
    struct span id = {NULL, 0};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        cr_expect_not(keys_group_of(span_of(others[i]), "s", &queue, &id), "%s", others[i]);
        cr_expect_null(queue.at);
    }
    cr_expect(keys_group_of(span_of("s:{q}:p:a}:p:b"), "s", &queue, &id));
    cr_expect(span_is(queue, "q") && span_is(id, "a}:p:b"));
}

Test(keys, of_the_longest_names_fit)
{
    char *out = malloc(KEYS_MAX);
    char want[512];

    snprintf(want, sizeof want, "%s:{%s}:due", of_length(64), of_length(64));
    cr_expect_eq(keys_of(out, of_length(64), of_length(64), KEYS_DUE), strlen(want));
    cr_expect_str_eq(out, want);
    snprintf(want, sizeof want, "%s:{%s}:notice:1048576", of_length(64), of_length(64));
    cr_expect_eq(keys_notice(out, of_length(64), of_length(64), 1 << 20), strlen(want));
    cr_expect_str_eq(out, want);
    snprintf(want, sizeof want, "__keyspace@1048576__:%s:{%s}:t:*", of_length(64), of_length(64));
    cr_expect_eq(keys_pattern(out, of_length(64), of_length(64), 1 << 20), strlen(want));
    cr_expect_str_eq(out, want);
    snprintf(want, sizeof want, "%s:{%s}:listeners", of_length(64), of_length(64));
    cr_expect_eq(keys_of(out, of_length(64), of_length(64), KEYS_LISTENERS), strlen(want));
    cr_expect_str_eq(out, want);
    free(out);

    char *trigger = malloc(KEYS_TRIGGER_MAX);
    snprintf(want, sizeof want, "%s:{%s}:t:%s", of_length(64), of_length(64), of_length(255));
    cr_expect_eq(keys_trigger(trigger, of_length(64), of_length(64), of_length(255)), strlen(want));
    cr_expect_str_eq(trigger, want);
    free(trigger);
}

/* ---- events ---- */
/* In blocks of exactly their size, of which a copy is kept until the next call. */
static struct keys_event event(struct span channel, struct span key, int db)
{
    static char kept[1024];
    struct span c = {unit_copy(channel.at, channel.len), channel.len};
    struct span k = {unit_copy(key.at, key.len), key.len};
    struct keys_event e = keys_event(c, k, "lapse", db);

    if (e.kind != KEYS_FOREIGN) {
        /* the key is the text, or is in the channel */
        struct span in = span_starts(channel, "__keyspace") ? c : k;
        cr_assert(e.queue.at >= in.at && e.queue.at + e.queue.len <= in.at + in.len &&
                  e.id.at >= in.at && e.id.at + e.id.len <= in.at + in.len);
        memcpy(kept, in.at, in.len);
        e.queue.at = kept + (e.queue.at - in.at);
        e.id.at = kept + (e.id.at - in.at);
    }

    free((void *)(uintptr_t)c.at);
    free((void *)(uintptr_t)k.at);

    return e;
}

static const struct {
    const char *channel, *key;
    int db;
    const char *queue, *id;
} events_of_ours[] = {
    {"__keyevent@0__:expired", "lapse:{q}:t:i", 0, "q", "i"},
    {"__keyevent@0__:expired", "lapse:{mail.out_9-Z}:t:order-7", 0, "mail.out_9-Z", "order-7"},
    {"__keyevent@15__:expired", "lapse:{q}:t:i", 15, "q", "i"},
    {"__keyevent@1048576__:expired", "lapse:{q}:t:i", 1048576, "q", "i"},
    {"__keyspace@0__:lapse:{q}:t:i", "expired", 0, "q", "i"},
    {"__keyspace@15__:lapse:{q}:t::t:", "expired", 15, "q", ":t:"},
    {"__keyspace@1048576__:lapse:{q}:t:i", "expired", 1048576, "q", "i"},
    {"__keyevent@0__:expired", "lapse:{q}:t::t:", 0, "q", ":t:"},
    {"__keyevent@0__:expired", "lapse:{q}:t:lapse:q:t:i", 0, "q", "lapse:q:t:i"},
};

static const struct {
    const char *channel, *key;
    int db;
} events_of_others[] = {
    {"__keyspace@0__:lapse:{q}:t:i", "set", 0},
    {"__keyspace@0__:lapse:{q}:t:i", "expire", 0},
    {"__keyspace@0__:lapse:{q}:t:i", "", 0},
    {"__keyspace@1__:lapse:{q}:t:i", "expired", 0},
    {"__keyspace@0__:lapse:{q}:t:i", "expiredx", 0},
    {"__keyspace@0__:lapse:{q}:t:i", "expire\n", 0},
    {"__keyspace@0__:", "expired", 0},
    {"__keyspace@0__lapse:{q}:t:i", "expired", 0},
    {"__keyspace@10__:lapse:{q}:t:i", "expired", 1},
    {"lapse:{q}:t:i", "expired", 0},
    {"__keyevent@0__:lapse:{q}:t:i", "expired", 0},
    {"__keyspace@0__:other:{q}:t:i", "expired", 0},
    {"__keyspace@0__:lapse:{q}:due", "expired", 0},
    /* another database, or something like it */
    {"__keyevent@1__:expired", "lapse:{q}:t:i", 0},
    {"__keyevent@0__:expired", "lapse:{q}:t:i", 1},
    {"__keyevent@10__:expired", "lapse:{q}:t:i", 1},
    {"__keyevent@1__:expired", "lapse:{q}:t:i", 10},
    {"__keyevent@00__:expired", "lapse:{q}:t:i", 0},
    {"__keyevent@*__:expired", "lapse:{q}:t:i", 0},
    {"__keyevent@__:expired", "lapse:{q}:t:i", 0},
    /* another event, or none */
    {"__keyevent@0__:del", "lapse:{q}:t:i", 0},
    {"__keyevent@0__:expire", "lapse:{q}:t:i", 0},
    {"__keyevent@0__:expiredx", "lapse:{q}:t:i", 0},
    {"__keyevent@0__:evicted", "lapse:{q}:t:i", 0},
    {"__keyspace@0__:expired", "lapse:{q}:t:i", 0},
    {"x__keyevent@0__:expired", "lapse:{q}:t:i", 0},
    {"lapse:{q}:notice:0", "lapse:{q}:t:i", 0},
    {"", "lapse:{q}:t:i", 0},
    /* another program's key */
    {"__keyevent@0__:expired", "", 0},
    {"__keyevent@0__:expired", "l", 0},
    {"__keyevent@0__:expired", "lapse", 0},
    {"__keyevent@0__:expired", "session:123", 0},
    {"__keyevent@0__:expired", "lapse2:{q}:t:i", 0},
    {"__keyevent@0__:expired", "laps:{q}:t:i", 0},
    {"__keyevent@0__:expired", "xlapse:{q}:t:i", 0},
    {"__keyevent@0__:expired", "LAPSE:{q}:t:i", 0},
    {"__keyevent@0__:expired", "{q}:t:i", 0},
    /* a part missing */
    {"__keyevent@0__:expired", "lapse:", 0},
    {"__keyevent@0__:expired", "lapse:{", 0},
    {"__keyevent@0__:expired", "lapse:{q", 0},
    {"__keyevent@0__:expired", "lapse:{q}", 0},
    {"__keyevent@0__:expired", "lapse:{q}:", 0},
    {"__keyevent@0__:expired", "lapse:{q}:t", 0},
    {"__keyevent@0__:expired", "lapse:{q}:t:", 0},
    {"__keyevent@0__:expired", "lapse:{}:t:i", 0},
    {"__keyevent@0__:expired", "lapse:}:t:i", 0},
    {"__keyevent@0__:expired", "lapse:q:t:i", 0},
    {"__keyevent@0__:expired", "lapse{q}:t:i", 0},
    {"__keyevent@0__:expired", "lapse:{q}t:i", 0},
    {"__keyevent@0__:expired", "lapse:{q}:ti", 0},
    {"__keyevent@0__:expired", "lapse:{q:t:i", 0},
    {"__keyevent@0__:expired", "lapse:{q}:due", 0},
    {"__keyevent@0__:expired", "lapse:{q}:x:i", 0},
    {"__keyevent@0__:expired", "lapse:{q}:T:i", 0},
    {"__keyevent@0__:expired", "lapse:{q} :t:i", 0},
    /* forged: no schedule takes such names */
    {"__keyevent@0__:expired", "lapse:{q}:t:i j", 0},
    {"__keyevent@0__:expired", "lapse:{q}:t:i\n", 0},
    {"__keyevent@0__:expired", "lapse:{q}:t:i}", 0},
    {"__keyevent@0__:expired", "lapse:{q}:t:\xff", 0},
    {"__keyevent@0__:expired", "lapse:{q}:t:i\x7f", 0},
    {"__keyevent@0__:expired", "lapse:{a b}:t:i", 0},
    {"__keyevent@0__:expired", "lapse:{a\n}:t:i", 0},
    {"__keyevent@0__:expired", "lapse:{\x1b[31m}:t:i", 0},
    {"__keyevent@0__:expired", "lapse:{a:b}:t:i", 0},
    {"__keyevent@0__:expired", "lapse:{{q}:t:i", 0},
    {"__keyevent@0__:expired", "lapse:{q}}:t:i", 0},
    {"__keyevent@0__:expired", "lapse:{q}{r}:t:i", 0},
    {"__keyevent@0__:expired", "lapse:{\xc3\xa9}:t:i", 0},
};

Test(keys, an_event_of_ours_has_queue_and_id)
{
    for (size_t i = 0; i < sizeof events_of_ours / sizeof *events_of_ours; i++) {
        const char *channel = events_of_ours[i].channel;
        const char *key = events_of_ours[i].key;
        struct keys_event e = event(span_of(channel), span_of(key), events_of_ours[i].db);

        cr_assert_eq(e.kind, KEYS_TRIGGER, "%s %s", channel, key);
        cr_expect(span_is(e.queue, events_of_ours[i].queue), "%s %s: %.*s", channel, key,
                  (int)e.queue.len, e.queue.at);
        cr_expect(span_is(e.id, events_of_ours[i].id), "%s %s: %.*s", channel, key, (int)e.id.len,
                  e.id.at);
    }
}

Test(keys, an_event_of_others_is_not_ours)
{
    for (size_t i = 0; i < sizeof events_of_others / sizeof *events_of_others; i++) {
        const char *channel = events_of_others[i].channel;
        const char *key = events_of_others[i].key;
        int db = events_of_others[i].db;

        cr_assert_eq(event(span_of(channel), span_of(key), db).kind, KEYS_FOREIGN, "%s %s, db %d",
                     channel, key, db);
    }
}

#define EXPIRED "__keyevent@0__:expired"

/* No id has a brace, so a name in braces is no job. */
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
        struct keys_event e = event(span_of(EXPIRED), span_of(rows[n].key), 0);
        cr_assert_eq(e.kind, rows[n].name ? KEYS_CANARY : KEYS_FOREIGN, "%s", rows[n].key);
        if (rows[n].name) {
            cr_expect(span_is(e.queue, "q") && span_is(e.id, rows[n].name), "%s", rows[n].key);
        }
    }
}

Test(keys, an_event_with_a_nul_in_it_is_not_ours)
{
    static const char whole[] = "lapse:{queue}:t:id";
    size_t len = sizeof whole - 1;

    for (size_t at = 0; at < sizeof whole - 1; at++) {
        char key[sizeof whole];
        memcpy(key, whole, sizeof whole);
        key[at] = '\0';
        cr_expect_eq(event(span_of(EXPIRED), span(key, len), 0).kind, KEYS_FOREIGN, "NUL at %zu",
                     at);
    }

    cr_expect_eq(event(span(EXPIRED, sizeof EXPIRED), span(whole, len), 0).kind, KEYS_FOREIGN,
                 "a NUL ends the channel");
    cr_expect_eq(event(span_of(EXPIRED), span(whole, len + 1), 0).kind, KEYS_FOREIGN,
                 "a NUL ends the key");
    cr_expect_eq(event(span_of(EXPIRED), span(whole, len), 0).kind, KEYS_TRIGGER);
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
        snprintf(key, sizeof key, "lapse:{%s}:t:%s", of_length(rows[n].queue),
                 of_length(rows[n].id));
        struct keys_event e = event(span_of(EXPIRED), span_of(key), 0);
        cr_assert_eq(e.kind, rows[n].ours ? KEYS_TRIGGER : KEYS_FOREIGN, "row %zu", n);
        if (rows[n].ours) {
            cr_expect_eq(e.queue.len, rows[n].queue);
            cr_expect_eq(e.id.len, rows[n].id);
        }
    }
}

Test(keys, an_event_may_end_anywhere)
{
    static const char key[] = "lapse:{queue}:t:id";
    static const char space[] = "__keyspace@0__:lapse:{queue}:t:id";

    for (size_t c = 0; c < sizeof space; c++) {
        for (size_t k = 0; k < sizeof "expired"; k++) {
            bool whole = c > sizeof "__keyspace@0__:lapse:{queue}:t:" - 1 && k == 7;
            struct keys_event e = event(span(space, c), span("expired", k), 0);
            cr_assert_eq(e.kind, whole ? KEYS_TRIGGER : KEYS_FOREIGN,
                         "%zu of the channel, %zu of the text", c, k);
        }
    }

    for (size_t c = 0; c < sizeof EXPIRED; c++) {
        for (size_t k = 0; k < sizeof key; k++) {
            bool whole =
                c == sizeof EXPIRED - 1 && k >= sizeof "lapse:{queue}:t:" && k < sizeof key;
            struct keys_event e = event(span(EXPIRED, c), span(key, k), 0);
            cr_assert_eq(e.kind, whole ? KEYS_TRIGGER : KEYS_FOREIGN,
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
        struct keys_event e = event(span_of(EXPIRED), span(key, len), 0);
        if (e.kind != KEYS_FOREIGN) {
            n_ours++;
            memcpy(name, e.queue.at, e.queue.len);
            name[e.queue.len] = '\0';
            cr_assert(strlen(name) == e.queue.len && keys_queue_ok(span_of(name)), "queue of %.*s",
                      (int)len, key);
            cr_assert(keys_id_ok(e.id), "id of %.*s", (int)len, key);
            char again[128];
            const char *open = e.kind == KEYS_CANARY ? "{" : "";
            const char *close = e.kind == KEYS_CANARY ? "}" : "";
            int again_len = snprintf(again, sizeof again, "lapse:{%s}:t:%s%.*s%s", name, open,
                                     (int)e.id.len, e.id.at, close);
            cr_assert(span_eq(span(key, len), span(again, (size_t)again_len)), "%.*s is not %s",
                      (int)len, key, again);
        }
    }

    cr_assert_gt(n_ours, 1000, "the loop tries too few good ones: %d", n_ours);
}
