/* SPDX-License-Identifier: MIT */
#include "base/past.h"
#include <criterion/criterion.h>
#include <string.h>

static struct lapse_past read_text(const char *text)
{
    struct lapse_past p = {0};

    cr_assert(past_add(&p, span_of(text)), "%s", text);
    return p;
}

Test(past, as_text_has_all_that_is_not_0)
{
    struct lapse_past p = {0};
    char text[PAST_TEXT_MAX];

    cr_assert_eq(past_text(text, &p), 0);
    cr_assert_str_eq(text, "");
    for (unsigned i = 0; i < PAST_COUNTS; i++) {
        past_count(&p, (enum past_count)i, i + 1);
    }
    histogram_add_us(&p.late[LAPSE_VIA_TOUCH], 150);
    histogram_add_us(&p.late[LAPSE_VIA_TOUCH], 20);
    histogram_add_us(&p.run, 3000000000);
    cr_assert_eq(past_text(text, &p), strlen(text));
    cr_assert_str_eq(text, "s1d2r3x4c5p6f7g8v9Rw1Ry3000000000Rz3000000000Ta1Tb1Ty170Tz150");
}

Test(past, reads_what_it_has_written)
{
    struct lapse_past p = {.scheduled = 9007199254740992, .recovered = 3};
    char text[PAST_TEXT_MAX];
    char again[PAST_TEXT_MAX];

    for (unsigned via = 1; via < VIAS; via++) {
        histogram_add_us(&p.late[via], (int64_t)via * 999);
    }
    past_text(text, &p);
    struct lapse_past q = read_text(text);
    past_text(again, &q);
    cr_assert_str_eq(again, text);
    cr_assert(q.late[0].n == VIAS - 1 && q.late[0].max_us == (VIAS - 1) * 999);
    cr_assert_eq(q.late[0].sum_us, 999 * 21);
}

Test(past, the_longest_text_has_room)
{
    struct lapse_past p;
    char text[PAST_TEXT_MAX];

    memset(&p, 0xff, sizeof p);
    cr_assert_lt(past_text(text, &p), PAST_TEXT_MAX);
}

Test(past, adds_and_keeps_the_longest_time)
{
    struct lapse_past p = {0};

    cr_assert(past_add(&p, span_of("s5Ta3Ty10Tz7")) && past_add(&p, span_of("s6Ta1Tb2Ty1Tz5Ez9")));
    cr_assert(p.scheduled == 11 && p.late[LAPSE_VIA_TOUCH].n == 6);
    cr_assert(p.late[LAPSE_VIA_TOUCH].sum_us == 11 && p.late[LAPSE_VIA_TOUCH].max_us == 7);
    cr_assert(p.late[0].n == 6 && p.late[0].max_us == 9);
}

Test(past, letters_of_a_newer_version_count_for_nothing)
{
    struct lapse_past p = read_text("b7s5Za9Tx8");

    cr_assert(p.scheduled == 5 && p.late[LAPSE_VIA_TOUCH].n == 0);
}

Test(past, of_another_form_is_refused)
{
    static const char *const bad[] = {
        "s", "5", "S5", "sx", "s5 d3", "T5", "Ta", "TT5", "s-5", "s5.0", "s99999999999999999999"};
    struct lapse_past p = {0};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_expect(!past_add(&p, span_of(bad[i])), "%s", bad[i]);
    }
}
