/* SPDX-License-Identifier: MIT */
#include "job/group.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <string.h>

#define TEN_YEARS INT64_C(315576000000)

static bool reads(const char *text)
{
    struct lapse_gather g;

    return group_read(span_of(text), &g);
}

Test(group, is_read_as_it_was_put)
{
    struct lapse_gather g = lapse_gather_init();
    struct lapse_gather read;
    char text[GROUP_TEXT_MAX];

    g.quiet_ms = TEN_YEARS;
    g.most = 1000;
    g.age_ms = TEN_YEARS;
    size_t len = group_put(text, &g);
    cr_assert_str_eq(text, "315576000000 1000 315576000000");
    cr_assert(group_read((struct span){text, len}, &read));
    cr_assert(read.quiet_ms == g.quiet_ms && read.most == g.most && read.age_ms == g.age_ms);
}

Test(group, of_another_form_cannot_be_read)
{
    static const char *const wrong[] = {
        "",         "5",      "5 1",     "5 1 ",   " 1 5",  "0 1 0",           "5 0 0",
        "5 1001 0", "-5 1 0", "5 1 0 0", "5  1 0", "x 1 0", "5 1 315576000001"};

    cr_assert(reads("5 1 0") && reads("0 1 5") && reads("5 1000 5"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_assert_not(reads(wrong[i]), "%s", wrong[i]);
    }
}

Test(group, gives_its_parts_one_after_another)
{
    static char body[3 + 300 + 1 + 2];
    struct span rest = {body, sizeof body};
    struct span part;

    memcpy(body, "\254\2", 2); /* 300 */
    memset(body + 2, 'x', 300);
    memcpy(body + 302, "\0\2yz", 4);
    cr_assert(group_take_part(&rest, &part));
    cr_assert(part.len == 300 && part.at == body + 2);
    cr_assert(group_take_part(&rest, &part));
    cr_assert_eq(part.len, 0);
    cr_assert(group_take_part(&rest, &part));
    cr_assert(part.len == 2 && memcmp(part.at, "yz", 2) == 0);
    cr_assert_not(group_take_part(&rest, &part));
}

/* What is no body of parts is not read beyond its end. */
Test(group, of_a_part_that_ends_behind_its_body_has_none)
{
    static const struct {
        const char *bytes;
        size_t len;
    } wrong[] = {{"", 0}, {"\1", 1}, {"\5abcd", 5}, {"\200", 1}, {"\377\377\377\377\1x", 6}};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct span rest = {wrong[i].bytes, wrong[i].len};
        struct span part;
        cr_assert_not(group_take_part(&rest, &part), "row %zu", i);
        cr_assert_eq(rest.len, wrong[i].len);
    }
}
