/* SPDX-License-Identifier: MIT */
#include "job/attributes.h"
#include "job/keys.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct span bytes_of(const struct attributes *a)
{
    return (struct span){(const char *)a->bytes, a->len};
}

static bool is_ok(const void *bytes, size_t len)
{
    void *copy = unit_copy(bytes, len); /* ASan sees a byte more */
    bool ok = attributes_ok((struct span){copy, len});

    free(copy);
    return ok;
}
#define IS_OK(text) is_ok(text, sizeof(text) - 1)

Test(attributes, are_these_bytes)
{
    static const char expected[] = "b\x00h\x03x=yh\x82\x01";
    struct attributes a = {.len = 0};
    char value[130];

    memset(value, 'v', sizeof value);
    cr_assert(attributes_add(&a, 'b', span_of("")));
    cr_assert(attributes_add(&a, 'h', span_of("x=y")));
    cr_assert(attributes_add(&a, 'h', (struct span){value, sizeof value}));
    cr_assert_eq(a.len, sizeof expected - 1 + sizeof value);
    cr_assert(memcmp(a.bytes, expected, sizeof expected - 1) == 0);
    cr_assert(memcmp(a.bytes + sizeof expected - 1, value, sizeof value) == 0);
    cr_assert(attributes_ok(bytes_of(&a)));
}

Test(attributes, come_back_as_they_were)
{
    static char value[ATTRIBUTES_MAX];

    memset(value, 'v', sizeof value);
    for (size_t len = 0; len <= ATTRIBUTES_MAX - 3; len++) {
        struct attributes a = {.len = 0};
        struct attribute one;

        cr_assert(attributes_add(&a, 'z', (struct span){value, len}), "%zu", len);
        struct span rest = bytes_of(&a);
        cr_assert(attributes_ok(rest), "%zu", len);
        cr_assert(attributes_take(&rest, &one), "%zu", len);
        cr_assert_eq(one.letter, 'z');
        cr_assert_eq(one.value.len, len);
        cr_assert(memcmp(one.value.at, value, len) == 0);
        cr_assert_eq(rest.len, 0);
        cr_assert_not(attributes_take(&rest, &one));
    }
}

Test(attributes, have_4_KiB_in_all)
{
    static char value[ATTRIBUTES_MAX + 1];
    struct attributes a = {.len = 0};

    cr_assert_not(attributes_add(&a, 'h', (struct span){value, ATTRIBUTES_MAX}));
    cr_assert_not(attributes_add(&a, 'h', (struct span){value, ATTRIBUTES_MAX - 2}));
    cr_assert_eq(a.len, 0, "nothing is added");
    cr_assert(attributes_add(&a, 'h', (struct span){value, ATTRIBUTES_MAX - 6}));
    cr_assert_not(attributes_add(&a, 'h', (struct span){value, 2}));
    cr_assert(attributes_add(&a, 'h', (struct span){value, 1}));
    cr_assert_eq(a.len, ATTRIBUTES_MAX);
    cr_assert_not(attributes_add(&a, 'h', (struct span){value, 0}));
    cr_assert(attributes_ok(bytes_of(&a)));

    static char more[ATTRIBUTES_MAX + 2];
    for (size_t i = 0; i < sizeof more; i += 2) {
        more[i] = 'x';
    }
    cr_assert(is_ok(more, ATTRIBUTES_MAX));
    cr_assert_not(is_ok(more, ATTRIBUTES_MAX + 2));
}

Test(attributes, that_lie_about_a_length_are_refused)
{
    cr_expect(IS_OK(""));
    cr_expect(IS_OK("h\x01"
                    "a"));
    cr_expect_not(IS_OK("h"));
    cr_expect_not(IS_OK("h\x01"));
    cr_expect_not(IS_OK("h\x02"
                        "a"));
    cr_expect_not(IS_OK("h\x80"));
    cr_expect(IS_OK("h\x80\x00"), "a number may be longer than it need be");
    cr_expect_not(IS_OK("h\x81\x00"));
    cr_expect_not(IS_OK("h\x80\x80\x00"));
    cr_expect_not(IS_OK("h\xff\xff"));
    cr_expect_not(IS_OK("h\x00h"));
}

Test(attributes, are_in_the_order_of_their_letters)
{
    cr_expect(IS_OK("a\0b\0b\0z\0"));
    cr_expect_not(IS_OK("b\0a\0"));
    cr_expect_not(IS_OK("a\0z\0y\0"));
}

Test(attributes, that_are_a_key_say_until_when_it_is_held)
{
    static const char *const good[] = {"U\2ek", "U\2sk", "U\3e~!"};
    static const char *const bad[] = {"U\1e", "U\2xk", "U\2e ", "U\2e{", "U\2ekU\2ek"};

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cr_assert(attributes_ok(span_of(good[i])), "%s", good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert(!attributes_ok(span_of(bad[i])), "%s", bad[i]);
    }
    cr_assert(!attributes_ok((struct span){"U\0", 2}));
}

Test(attributes, that_are_small_need_not_be_known_and_capital_ones_must)
{
    for (int c = 0; c < 256; c++) {
        char bytes[] = {(char)c, 0};
        cr_expect_eq(is_ok(bytes, sizeof bytes), c >= 'a' && c <= 'z', "%d", c);
    }
}

Test(attributes, that_are_tags_are_letters_of_an_id_and_at_most_eight)
{
    char bytes[66] = {'T', 64};

    cr_expect(IS_OK("T\x01"
                    "aT\x02"
                    "a!h\x00"));
    cr_expect_not(IS_OK("T\x00"));
    cr_expect_not(IS_OK("T\x01 "));
    cr_expect_not(IS_OK("T\x01{"));
    cr_expect(IS_OK("T\1aT\1bT\1cT\1dT\1eT\1fT\1gT\1h"));
    cr_expect_not(IS_OK("T\1aT\1bT\1cT\1dT\1eT\1fT\1gT\1hT\1i"));

    memset(bytes + 2, 'x', 64);
    cr_expect(is_ok(bytes, 66));
    char longer[67] = {'T', 65};
    memset(longer + 2, 'x', 65);
    cr_expect_not(is_ok(longer, 67));
}

Test(attributes, that_are_a_batch_are_one_id)
{
    char bytes[259] = {'B', (char)255, 1}; /* the length 255 */

    cr_expect(IS_OK("B\1n"));
    cr_expect(IS_OK("B\1nC\3n r"));
    cr_expect_not(IS_OK("B\0"));
    cr_expect_not(IS_OK("B\1 "));
    cr_expect_not(IS_OK("B\1nB\1m"));

    memset(bytes + 3, 'x', 255);
    cr_expect(is_ok(bytes, 258));
    memset(bytes + 3, 'x', 256);
    bytes[1] = (char)128;
    bytes[2] = 2;
    cr_expect_not(is_ok(bytes, 259), "256");
}

Test(attributes, that_are_a_priority_are_one_byte_and_not_0)
{
    cr_expect(IS_OK("Q\x01\x01"));
    cr_expect(IS_OK("Q\x01\xff"));
    cr_expect_not(IS_OK("Q\x01\x00"));
    cr_expect_not(IS_OK("Q\x00"));
    cr_expect_not(IS_OK("Q\x02\x01\x01"));
    cr_expect_not(IS_OK("Q\x01\x01Q\x01\x01"));
}

Test(attributes, that_say_how_late_and_for_how_long_are_numbers_of_ms)
{
    cr_expect(IS_OK("L\2s1"));
    cr_expect(IS_OK("L\15d999999999999"));
    cr_expect_not(IS_OK("L\16d1000000000000"));
    cr_expect_not(IS_OK("L\0"));
    cr_expect_not(IS_OK("L\1s"));
    cr_expect_not(IS_OK("L\2s0"));
    cr_expect_not(IS_OK("L\3s01"));
    cr_expect_not(IS_OK("L\2x1"));
    cr_expect_not(IS_OK("L\3s-1"));
    cr_expect_not(IS_OK("L\2s1L\2s1"));
    cr_expect(IS_OK("R\1"
                    "1"));
    cr_expect(IS_OK("R\14999999999999"));
    cr_expect_not(IS_OK("R\0"));
    cr_expect_not(IS_OK("R\1"
                        "0"));
    cr_expect_not(IS_OK("R\15"
                        "1000000000000"));
    cr_expect_not(IS_OK("R\2s1"));
    cr_expect_not(IS_OK("R\1"
                        "1R\1"
                        "1"));
}

Test(attributes, that_say_how_long_a_job_is_kept_are_a_number_of_ms_and_maybe_b)
{
    cr_expect(IS_OK("K\1"
                    "1"));
    cr_expect(IS_OK("K\2"
                    "1b"));
    cr_expect(IS_OK("K\15"
                    "999999999999b"));
    cr_expect_not(IS_OK("K\15"
                        "1000000000000"));
    cr_expect_not(IS_OK("K\0"));
    cr_expect_not(IS_OK("K\1b"));
    cr_expect_not(IS_OK("K\2"
                        "0b"));
    cr_expect_not(IS_OK("K\3"
                        "1bb"));
    cr_expect_not(IS_OK("K\1"
                        "1K\1"
                        "1"));
}

Test(attributes, that_are_a_guard_are_four_words)
{
    cr_expect(IS_OK("G\6= k f "));
    cr_expect(IS_OK("G\11! k f a b"));
    cr_expect(IS_OK("G\5+ k  "));
    cr_expect(IS_OK("G\6- k  \0"));
    cr_expect_not(IS_OK("G\0"));
    cr_expect_not(IS_OK("G\5= k f"));
    cr_expect_not(IS_OK("G\3= k"));
    cr_expect_not(IS_OK("G\5=  f "));
    cr_expect_not(IS_OK("G\6? k f "));
    cr_expect_not(IS_OK("G\7== k f "));
    cr_expect_not(IS_OK("G\6=k f  "));
    cr_expect_not(IS_OK("G\5+ k  G\5+ k  "));

    struct guard guard;
    cr_assert(guard_read(span_of("! order:{q} status not paid"), &guard));
    cr_expect(guard.op == '!' && span_is(guard.key, "order:{q}"));
    cr_expect(span_is(guard.field, "status") && span_is(guard.value, "not paid"));
    cr_assert(guard_read(span_of("= k  "), &guard));
    cr_expect(guard.field.len == 0 && guard.value.len == 0);
}

Test(attributes, of_random_bytes_are_refused_or_sound)
{
    uint64_t seed = 7;
    int n_sound = 0;

    for (int round = 0; round < 200000; round++) {
        char bytes[12];
        size_t len = unit_random(&seed) % sizeof bytes;
        for (size_t i = 0; i < len; i++) {
            bytes[i] = "abh\0\1\2\3\x80"[unit_random(&seed) % 8];
        }

        char *copy = unit_copy(bytes, len);
        struct span rest = {copy, len};
        struct attribute one;
        if (attributes_ok(rest)) {
            n_sound++;
            while (rest.len) {
                cr_assert(attributes_take(&rest, &one));
                cr_assert(one.value.at >= copy && one.value.at + one.value.len <= copy + len);
            }
        }
        free(copy);
    }

    cr_assert_gt(n_sound, 1000);
}

Test(attributes, of_a_header_are_a_name_and_a_value)
{
    static const struct {
        const char *text, *name, *value;
    } rows[] = {
        {"a=b", "a", "b"},     {"a=", "a", ""},
        {"a=b=c", "a", "b=c"}, {"tr-1.x=\x80 \n", "tr-1.x", "\x80 \n"},
        {"", NULL, NULL},      {"a", NULL, NULL},
        {"=b", NULL, NULL},    {"a b=c", NULL, NULL},
        {"{=c", NULL, NULL},   {"\x80=c", NULL, NULL},
    };
    struct span name;
    struct span value;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool ok = header_read(span_of(rows[i].text), &name, &value);
        cr_assert_eq(ok, rows[i].name != NULL, "%s", rows[i].text);
        cr_assert(!ok || (span_is(name, rows[i].name) && span_is(value, rows[i].value)), "%s",
                  rows[i].text);
    }
    cr_assert_not(header_read((struct span){"a=\0", 3}, &name, &value));

    char text[400];
    memset(text, 'x', sizeof text);
    text[KEYS_HEADER_MAX] = '=';
    cr_assert(
        header_read((struct span){text, KEYS_HEADER_MAX + 1 + HEADER_VALUE_MAX}, &name, &value));
    cr_assert_not(
        header_read((struct span){text, KEYS_HEADER_MAX + 2 + HEADER_VALUE_MAX}, &name, &value));
    text[KEYS_HEADER_MAX] = 'x', text[KEYS_HEADER_MAX + 1] = '=';
    cr_assert_not(header_read((struct span){text, KEYS_HEADER_MAX + 3}, &name, &value));
}
