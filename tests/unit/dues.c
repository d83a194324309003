/* SPDX-License-Identifier: MIT */
/* What a listener knows of the moments to come. */
#include "listen/dues.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* As scripts write it: "5 +9", in order. */
static const char *shown(const struct dues *d)
{
    static char text[DUES_MAX * 24];
    size_t len = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < d->n; i++) {
        const struct due *due = &d->at[i];
        const char *own = due->own ? "+" : "";
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s%" PRId64, i ? " " : "", own,
                                due->ms);
    }
    return text;
}

static void add(struct dues *d, int64_t ms, int64_t heard_us, bool own)
{
    dues_add(d, (struct due){.ms = ms, .heard_us = heard_us, .own = own});
}

/* Those that a script of that time named. */
static void learn(struct dues *d, const char *coming, int64_t known_ms, int64_t taken_ms,
                  int64_t sent_us)
{
    struct dues_seen seen = {span_of(coming), known_ms, taken_ms, sent_us};
    dues_learn(d, &seen);
}

/* 1 to DUES_MAX, of others. */
static void fill(struct dues *d)
{
    *d = (struct dues){.known_ms = DUES_ALL};
    for (int64_t ms = 1; ms <= DUES_MAX; ms++) {
        add(d, ms, 0, true);
    }
}

/* ---- dues_add ---- */
Test(dues, are_kept_in_order)
{
    struct dues d = {.known_ms = 100};

    add(&d, 20, 1, false);
    add(&d, 30, 2, true);
    add(&d, 10, 3, true);
    add(&d, 25, 4, false);

    cr_expect_str_eq(shown(&d), "+10 20 25 +30");
    cr_expect_eq(d.at[0].heard_us, 3);
    cr_expect_eq(d.at[3].heard_us, 2);
    cr_expect_eq(d.known_ms, 100);
}

Test(dues, of_one_moment_are_one_which_is_ours_if_either_is_and_was_heard_when_the_later_was)
{
    static const struct {
        struct due first, second;
        bool own;
    } rows[] = {
        {{5, 1, false}, {5, 2, false}, false},
        {{5, 2, false}, {5, 1, true}, true},
        {{5, 1, true}, {5, 2, false}, true},
        {{5, 2, true}, {5, 0, true}, true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dues d = {.known_ms = 100};
        add(&d, 4, 0, false);
        add(&d, 6, 0, false);
        dues_add(&d, rows[i].first);
        dues_add(&d, rows[i].second);

        cr_expect_eq(d.n, 3u, "%zu", i);
        cr_expect_eq(d.at[1].ms, 5, "%zu", i);
        cr_expect_eq(d.at[1].heard_us, 2, "%zu", i);
        cr_expect_eq(d.at[1].own, rows[i].own, "%zu", i);
        cr_expect(!d.at[0].own && !d.at[2].own, "%zu", i);
    }
}

Test(dues, that_are_too_many_lose_the_last_and_what_is_known_ends_before_it)
{
    struct dues d;

    fill(&d);
    add(&d, 0, 0, true);
    cr_expect_eq(d.n, (unsigned)DUES_MAX);
    cr_expect_eq(d.at[0].ms, 0);
    cr_expect_eq(d.at[DUES_MAX - 1].ms, DUES_MAX - 1);
    cr_expect_eq(d.known_ms, DUES_MAX - 1);
}

Test(dues, that_are_full_take_none_behind_the_last)
{
    struct dues d;

    fill(&d);
    add(&d, DUES_MAX + 5, 0, true);
    cr_expect_eq(d.n, (unsigned)DUES_MAX);
    cr_expect_eq(d.at[DUES_MAX - 1].ms, DUES_MAX);
    cr_expect_eq(d.known_ms, DUES_MAX + 4);

    add(&d, DUES_MAX + 9, 0, true);
    cr_expect_eq(d.known_ms, DUES_MAX + 4, "what was not known is not known now");
}

Test(dues, that_are_too_many_lose_the_last_of_others_first)
{
    struct dues d;

    fill(&d);
    d.at[3].own = false;
    d.at[5].own = false;
    add(&d, 2 * DUES_MAX, 0, true);
    cr_expect_eq(d.n, (unsigned)DUES_MAX);
    cr_expect_eq(d.at[5].ms, 7, "that of 6 is gone");
    cr_expect(!d.at[3].own);
    cr_expect_eq(d.at[DUES_MAX - 1].ms, 2 * DUES_MAX);
    cr_expect_eq(d.known_ms, DUES_ALL, "all of ours are known still");
}

Test(dues, that_are_full_still_learn_whose_a_moment_is)
{
    struct dues d;

    fill(&d);
    d.at[DUES_MAX - 1].own = false;
    add(&d, DUES_MAX, 0, true);
    cr_expect_eq(d.n, (unsigned)DUES_MAX);
    cr_expect(d.at[DUES_MAX - 1].own);
    cr_expect_eq(d.known_ms, DUES_ALL);
}

Test(dues, that_lose_one_that_was_not_known_know_as_much_as_before)
{
    struct dues d;

    fill(&d);
    d.known_ms = DUES_MAX - 1;
    add(&d, 0, 0, true);
    cr_expect_eq(d.at[DUES_MAX - 1].ms, DUES_MAX - 1);
    cr_expect_eq(d.known_ms, DUES_MAX - 1);
}

/* ---- dues_first, dues_remove ---- */
Test(dues, first_is_the_earliest_that_is_ours_or_is_not)
{
    struct dues d = {0};

    cr_expect_null(dues_first(&d, true));
    cr_expect_null(dues_first(&d, false));

    learn(&d, "5 +6 7 +8", 100, 0, 1);
    cr_expect_eq(dues_first(&d, true)->ms, 6);
    cr_expect_eq(dues_first(&d, false)->ms, 5);
}

Test(dues, removed_are_ours_or_the_others_up_to_a_moment)
{
    struct dues d = {0};

    learn(&d, "+4 5 +6 7 +8", 100, 0, 1);
    dues_remove(&d, true, 6);
    cr_expect_str_eq(shown(&d), "5 7 +8");
    dues_remove(&d, false, 6);
    cr_expect_str_eq(shown(&d), "7 +8");
    dues_remove(&d, false, 100);
    dues_remove(&d, true, 7);
    cr_expect_str_eq(shown(&d), "+8");
    cr_expect_eq(d.known_ms, 100);
}

/* ---- dues_learn ---- */
Test(dues, learned_of_a_script_are_those_that_it_named)
{
    struct dues d = {0};

    learn(&d, "5 +6", 100, 0, 1);
    cr_expect_str_eq(shown(&d), "5 +6");
    cr_expect_eq(d.known_ms, 100);
    cr_expect_eq(d.at[0].heard_us, 0);

    learn(&d, "+6 9", 50, 0, 2);
    cr_expect_str_eq(shown(&d), "+6 9", "5 is not to come any more");
    cr_expect_eq(d.known_ms, 50);

    learn(&d, "", 70, 0, 3);
    cr_expect_str_eq(shown(&d), "");
    cr_expect_eq(d.known_ms, 70);
}

Test(dues, whose_owner_has_changed_are_learned_as_they_are_now)
{
    struct dues d = {0};

    learn(&d, "+5 6", 100, 0, 1);
    learn(&d, "5 +6", 100, 0, 2);
    cr_expect_str_eq(shown(&d), "5 +6");
}

Test(dues, of_which_a_notice_told_since_the_script_was_sent_are_kept)
{
    struct dues d = {0};

    add(&d, 5, 9, true);   /* before */
    add(&d, 6, 10, true);  /* at the same time */
    add(&d, 7, 11, false); /* after */
    learn(&d, "8", 100, 0, 10);
    cr_expect_str_eq(shown(&d), "+6 7 8");
}

Test(dues, behind_what_a_script_knows_are_kept)
{
    struct dues d = {0};

    learn(&d, "5 +6 7", 100, 0, 1);
    learn(&d, "5", 5, 0, 2);
    cr_expect_str_eq(shown(&d), "5 +6 7");
    cr_expect_eq(d.known_ms, 5);
}

Test(dues, that_are_taken_care_of_are_not_learned)
{
    struct dues d = {0};

    learn(&d, "5 +6 +7", 100, 6, 1);
    cr_expect_str_eq(shown(&d), "+7");
    cr_expect_eq(d.known_ms, 100);
}

Test(dues, learned_of_a_text_that_is_none_are_none)
{
    static const char *const texts[] = {"", " ", "+", "++5", "-5", "5.5", "x", "9007199254740993"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct dues d = {0};
        learn(&d, texts[i], 100, 0, 1);
        cr_expect_str_eq(shown(&d), "", "%s", texts[i]);
    }

    struct dues d = {0};
    learn(&d, "4 x  +5 ", 100, 0, 1);
    cr_expect_str_eq(shown(&d), "4 +5", "what can be read is");
}

Test(dues, learned_of_more_than_there_is_room_for_are_the_first)
{
    struct dues d = {0};
    char coming[DUES_MAX * 8] = "";
    size_t len = 0;

    for (int ms = 1; ms <= DUES_MAX + 2; ms++) {
        len += (size_t)snprintf(coming + len, sizeof coming - len, "%s+%d", ms > 1 ? " " : "", ms);
    }
    learn(&d, coming, 100, 0, 1);

    cr_expect_eq(d.n, (unsigned)DUES_MAX);
    cr_expect_eq(d.at[DUES_MAX - 1].ms, DUES_MAX);
    cr_expect_eq(d.known_ms, DUES_MAX);
}

/* ---- dues_learn_next ---- */
Test(dues, with_no_next_are_all_known)
{
    struct dues d = {0};

    dues_learn_next(&d, 0, 0, false);
    cr_expect_eq(d.n, 0u);
    cr_expect_eq(d.known_ms, DUES_ALL);
}

Test(dues, with_a_next_that_is_ours_have_it)
{
    struct dues d = {.known_ms = 3};

    dues_learn_next(&d, 5, 4, true);
    cr_expect_str_eq(shown(&d), "+5");
    cr_expect_eq(d.at[0].heard_us, 0);
}

Test(dues, with_a_next_are_known_up_to_it)
{
    static const struct {
        int64_t known_ms, next_ms, taken_ms;
        bool all_own;
        int64_t then_ms;
    } rows[] = {
        /* the moment 50 is known, of another */
        {10, 60, 0, false, 59},              /* later than what is known: nothing is between them */
        {100, 60, 0, false, 59},             /* we did not know that */
        {DUES_ALL, 60, 0, false, 59},        /* likewise */
        {100, 50, 0, false, 100},            /* we knew that */
        {10, 50, 0, false, 49},              /* likewise, and that nothing is before it */
        {100, 60, 60, false, 100},           /* taken care of: our touch is on its way */
        {DUES_ALL, 60, 70, false, DUES_ALL}, /* likewise */
        {10, 60, 60, true, 59},              /* likewise, though ours */
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dues d = {.known_ms = rows[i].known_ms};
        add(&d, 50, 0, false);
        dues_learn_next(&d, rows[i].next_ms, rows[i].taken_ms, rows[i].all_own);
        cr_expect_str_eq(shown(&d), "50", "%zu", i);
        cr_expect_eq(d.known_ms, rows[i].then_ms, "%zu: %" PRId64, i, d.known_ms);
    }
}

Test(dues, of_others_that_were_forgotten_are_no_news)
{
    struct dues d;

    fill(&d);
    d.at[5].own = false;
    add(&d, 2 * DUES_MAX, 0, true);
    dues_remove(&d, true, 2);
    add(&d, DUES_MAX + 1, 0, true);
    add(&d, DUES_MAX + 2, 0, false);
    add(&d, DUES_MAX + 3, 0, true);
    dues_learn_next(&d, 6, 0, false);
    cr_expect_eq(d.known_ms, DUES_ALL, "that of 6 was forgotten: %" PRId64, d.known_ms);

    learn(&d, "5 +60", 100, 0, 1);
    dues_learn_next(&d, 6, 0, false);
    cr_expect_eq(d.known_ms, 5, "a script did not name it: %" PRId64, d.known_ms);
}

/* ---- dues_forget ---- */
Test(dues, forgotten_are_not_known_unless_there_are_none)
{
    struct dues d = {.known_ms = 100};

    add(&d, 5, 1, true);
    dues_forget(&d);
    cr_expect_eq(d.n, 0u);
    cr_expect_eq(d.known_ms, 0);

    d.known_ms = 100;
    dues_forget(&d);
    cr_expect_eq(d.known_ms, 0, "none is known, and there may be some");

    d.known_ms = DUES_ALL;
    dues_forget(&d);
    cr_expect_eq(d.known_ms, DUES_ALL, "an empty queue has no owners");

    add(&d, 5, 1, true);
    dues_forget(&d);
    cr_expect_eq(d.n, 0u);
    cr_expect_eq(d.known_ms, 0);
}
