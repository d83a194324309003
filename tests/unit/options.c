/* SPDX-License-Identifier: MIT */
#include "api/options.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MIB ((int64_t)1 << 20)
#define DAY_MS ((int64_t)86400000)
/* not made from option_rows: what lapse.h says */
static const struct {
    const char *name, *min_text, *max_text;
    int64_t def, min, max;
} numbers[] = {
    {"lease_ms", "100", "1d", 30000, 100, DAY_MS},
    {"run_ms", "100ms", "366d", 600000, 100, 366 * DAY_MS},
    {"sweep_ms", "10", "24h", 5000, 10, DAY_MS},
    {"reply_ms", "50ms", "60m", 5000, 50, 3600000},
    {"max_running", "1", "100000", 256, 1, 100000},
    {"max_pending", "1", "10000000", 10000, 1, 10000000},
    {"max_bytes", "1MiB", "1024GiB", 64 * MIB, MIB, MIB *MIB},
    {"arm_ahead_ms", "0", "3652d", 0, 0, 3652 * DAY_MS},
    {"replicas", "0", "100", 0, 0, 100},
    {"replicas_ms", "1", "1h", 1000, 1, 3600000},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static const struct option_row *row_of(const char *name)
{
    for (size_t i = 0; i < option_rows_n; i++) {
        if (strcmp(option_rows[i].name, name) == 0) {
            return &option_rows[i];
        }
    }
    cr_assert(false, "there is no row %s", name);
    return NULL;
}

/* By name, as a caller has them: what option_rows says of offsets is not believed. */
static int64_t number(const struct lapse_options *o, const char *name)
{
#define FIELD(field)                 \
    if (strcmp(name, #field) == 0) { \
        return (int64_t)o->field;    \
    }

    FIELD(lease_ms);
    FIELD(run_ms);
    FIELD(sweep_ms);
    FIELD(reply_ms);
    FIELD(max_running);
    FIELD(max_pending);
    FIELD(max_bytes);
    FIELD(arm_ahead_ms);
    FIELD(replicas);
    FIELD(replicas_ms);
#undef FIELD
    cr_assert(false, "there is no field %s", name);

    return 0;
}

static void set_number(struct lapse_options *o, const char *name, int64_t value)
{
#define FIELD(field)                            \
    if (strcmp(name, #field) == 0) {            \
        o->field = (__typeof__(o->field))value; \
    }

    FIELD(lease_ms);
    FIELD(run_ms);
    FIELD(sweep_ms);
    FIELD(reply_ms);
    FIELD(max_running);
    FIELD(max_pending);
    FIELD(max_bytes);
    FIELD(arm_ahead_ms);
    FIELD(replicas);
    FIELD(replicas_ms);
#undef FIELD
}

/* Reads it and gives it back at once; on an error out is not touched. */
static int read_it(const struct lapse_options *in)
{
    struct options out;
    struct options was;

    memset(&out, 0x5a, sizeof out);
    memcpy(&was, &out, sizeof out);
    int err = options_read(&out, in);
    if (err == 0) {
        options_free(&out);
    } else {
        cr_expect_arr_eq((char *)&out, (char *)&was, sizeof out, "what was not filled was touched");
    }

    return err;
}

/* ---- rows ---- */
Test(options, rows_cover_the_struct_but_for_its_size_and_the_log)
{
    char covered[sizeof(struct lapse_options)] = {0};
#define COVER(at, size) memset(covered + (at), covered[at] + 1, size)
    COVER(offsetof(struct lapse_options, size), sizeof(size_t));
    COVER(offsetof(struct lapse_options, log), sizeof(lapse_log_fn *));
    COVER(offsetof(struct lapse_options, log_arg), sizeof(void *));
    for (size_t i = 0; i < option_rows_n; i++) {
        COVER(option_rows[i].at, option_rows[i].size);
    }
#undef COVER
    size_t padding = 0;
    for (size_t i = 0; i < sizeof covered; i++) {
        cr_expect_leq(covered[i], 1, "byte %zu is in two rows", i);
        if (covered[i] == 0) {
            padding++;
        }
    }

    cr_expect_eq(padding, 4, "a field without a row");
}

Test(options, a_row_is_whole)
{
    for (size_t i = 0; i < option_rows_n; i++) {
        const struct option_row *row = &option_rows[i];
        bool may_lack = row->kind == OPTION_FILE || row->kind == OPTION_HOST;
        cr_expect(row->text && *row->text && row->def && (*row->def || may_lack), "%s", row->name);
        cr_expect_eq(*row->least != '\0', *row->most != '\0', "%s", row->name);
        if (*row->most) {
            int64_t def = option_parse(row, row->def);
            int64_t least = option_parse(row, row->least);
            cr_expect(least >= 0 && def >= least && def <= option_parse(row, row->most), "%s",
                      row->name);
        }
        cr_expect(row->size == 4 || row->size == 8, "%s", row->name);
        for (size_t j = 0; j < i; j++) {
            cr_expect_str_neq(row->name, option_rows[j].name);
        }
    }

    cr_expect_eq(option_rows_n, NUMBERS + 9,
                 "seven texts, the flags and notify besides the numbers");
}

Test(options, the_default_as_shown_is_the_default)
{
    for (size_t i = 0; i < option_rows_n; i++) {
        const struct option_row *row = &option_rows[i];
        struct lapse_options o = lapse_options_init();
        cr_expect_eq(lapse_options_set(&o, row->name, row->def), 0, "%s", row->name);
    }

    for (size_t i = 0; i < NUMBERS; i++) {
        struct lapse_options o = lapse_options_init();
        cr_expect_eq(lapse_options_set(&o, numbers[i].name, row_of(numbers[i].name)->def), 0);
        cr_expect_eq(number(&o, numbers[i].name), numbers[i].def, "%s", numbers[i].name);
    }
}

/* ---- numbers ---- */
Test(options, every_number_has_its_default)
{
    struct options o;
    const struct lapse_options init = lapse_options_init();

    for (int given = 0; given < 2; given++) {
        cr_assert_eq(options_read(&o, given ? &init : NULL), 0);
        for (size_t i = 0; i < NUMBERS; i++) {
            cr_expect_eq(number(&o.set, numbers[i].name), numbers[i].def, "%s", numbers[i].name);
        }
        cr_expect_eq(o.set.flags, 0);
        cr_expect_null(o.set.log);
        cr_expect_eq(o.set.size, sizeof o.set);
        options_free(&o);
    }
}

Test(options, every_number_has_its_range_in_the_struct)
{
    for (size_t i = 0; i < NUMBERS; i++) {
        const char *name = numbers[i].name;
        const int64_t good[] = {numbers[i].min, numbers[i].min + 1, numbers[i].def,
                                numbers[i].max - 1, numbers[i].max};
        const int64_t bad[] = {numbers[i].min - 1, numbers[i].max + 1, -1, INT64_MIN, INT64_MAX};
        for (size_t j = 0; j < sizeof good / sizeof *good; j++) {
            struct lapse_options in = lapse_options_init();
            struct options out;
            set_number(&in, name, good[j]);
            cr_assert_eq(options_read(&out, &in), 0, "%s %ld", name, (long)good[j]);
            cr_expect_eq(number(&out.set, name), good[j], "%s %ld", name, (long)good[j]);
            for (size_t k = 0; k < NUMBERS; k++) {
                cr_expect(k == i || number(&out.set, numbers[k].name) == numbers[k].def, "%s moved",
                          numbers[k].name);
            }
            options_free(&out);
        }
        for (size_t j = 0; j < sizeof bad / sizeof *bad; j++) {
            struct lapse_options in = lapse_options_init();
            set_number(&in, name, bad[j]);
            if (number(&in, name) != 0) { /* which is the default */
                cr_expect_eq(read_it(&in), LAPSE_EINVAL, "%s %ld", name, (long)bad[j]);
            }
        }
    }
}

Test(options, every_number_has_the_same_range_as_text)
{
    for (size_t i = 0; i < NUMBERS; i++) {
        const char *name = numbers[i].name;
        const int64_t good[] = {numbers[i].min, numbers[i].min + 1, numbers[i].def,
                                numbers[i].max - 1, numbers[i].max};
        const int64_t bad[] = {numbers[i].min - 1, numbers[i].max + 1, numbers[i].min ? 0 : -1,
                               INT64_MAX};
        char text[32];
        for (size_t j = 0; j < sizeof good / sizeof *good; j++) {
            struct lapse_options o = lapse_options_init();
            struct lapse_options want = o;
            set_number(&want, name, good[j]);
            snprintf(text, sizeof text, "%ld", (long)good[j]);
            cr_expect_eq(lapse_options_set(&o, name, text), 0, "%s=%s", name, text);
            cr_expect_arr_eq((char *)&o, (char *)&want, sizeof o,
                             "%s=%s sets that field and no other", name, text);
        }
        for (size_t j = 0; j < sizeof bad / sizeof *bad; j++) {
            struct lapse_options o = lapse_options_init();
            struct lapse_options want = o;
            snprintf(text, sizeof text, "%ld", (long)bad[j]);
            cr_expect_eq(lapse_options_set(&o, name, text), LAPSE_EINVAL, "%s=%s", name, text);
            cr_expect_arr_eq((char *)&o, (char *)&want, sizeof o, "%s=%s changed something", name,
                             text);
        }
        struct lapse_options o = lapse_options_init();
        cr_expect_eq(lapse_options_set(&o, name, numbers[i].min_text), 0, "%s=%s", name,
                     numbers[i].min_text);
        cr_expect_eq(number(&o, name), numbers[i].min);
        cr_expect_eq(lapse_options_set(&o, name, numbers[i].max_text), 0, "%s=%s", name,
                     numbers[i].max_text);
        cr_expect_eq(number(&o, name), numbers[i].max);
    }
}

static const struct {
    const char *name, *text;
    int64_t value; /* -1: EINVAL */
} number_texts[] = {
    {"run_ms", "250", 250},
    {"run_ms", "250ms", 250},
    {"run_ms", "0250", 250},
    {"run_ms", "3s", 3000},
    {"run_ms", "2m", 120000},
    {"run_ms", "2h", 7200000},
    {"run_ms", "2d", 2 * DAY_MS},
    {"run_ms", "1h30m", 5400000},
    {"run_ms", "1d1h1m1s1ms", 90061001},
    {"run_ms", "1s500ms", 1500},
    {"run_ms", "0h100ms", 100},
    {"run_ms", "1h30", -1},
    {"run_ms", "5s1h", -1}, /* the largest unit comes first */
    {"run_ms", "1s1s", -1},
    {"run_ms", "500 1s", -1},
    {"run_ms", "5001s2", -1},
    {"run_ms", "s", -1},
    {"run_ms", "", -1},
    {"run_ms", " 500", -1},
    {"run_ms", "500 ", -1},
    {"run_ms", "500 ms", -1},
    {"run_ms", "+500", -1},
    {"run_ms", "-500", -1},
    {"run_ms", "1h-1m", -1},
    {"run_ms", "1h+1m", -1},
    {"run_ms", "0x500", -1},
    {"run_ms", "1e3", -1},
    {"run_ms", "1.5s", -1},
    {"run_ms", "1,000", -1},
    {"run_ms", "500MS", -1},
    {"run_ms", "500S", -1},
    {"run_ms", "1w", -1},
    {"run_ms", "1sec", -1},
    {"run_ms", "1min", -1},
    {"run_ms", "500us", -1},
    {"run_ms", "500B", -1},
    {"run_ms", "9223372036854775807", -1},
    {"run_ms", "9223372036854775808", -1},
    {"run_ms", "99999999999999999999999", -1},
    {"run_ms", "106751991168d", -1},              /* times a day: 2^63 and a little */
    {"run_ms", "9223372036854775807ms101ms", -1}, /* wraps round to a small one */
    {"run_ms", "213503982335d", -1},              /* 2^64 and a little: wraps round to 0.4 d */
    {"run_ms", "9223372036854775807ms9223372036854775807ms102ms", -1},
    /* where 0 is a number like others, garbage must not be taken for it */
    {"arm_ahead_ms", "0s", 0},
    {"arm_ahead_ms", "", -1},
    {"arm_ahead_ms", "x", -1},
    {"arm_ahead_ms", "1w", -1},
    {"arm_ahead_ms", "1 ", -1},
    {"arm_ahead_ms", "/", -1},
    {"arm_ahead_ms", ":", -1},
    {"arm_ahead_ms", "99999999999999999999999", -1},
    {"max_running", "7", 7},
    {"max_running", "7s", -1},
    {"max_running", "7B", -1},
    {"max_running", "7k", -1},
    {"max_running", "4294967297", -1},
    {"max_pending", "7", 7},
    {"max_pending", "7ms", -1},
    {"max_bytes", "1048577", MIB + 1},
    {"max_bytes", "1048577B", MIB + 1},
    {"max_bytes", "2048KiB", 2 * MIB},
    {"max_bytes", "3MiB", 3 * MIB},
    {"max_bytes", "4GiB", 4096 * MIB},
    {"max_bytes", "1MiB1KiB", MIB + 1024},
    {"max_bytes", "1KiB1MiB", -1},
    {"max_bytes", "3M", -1},
    {"max_bytes", "3MB", -1},
    {"max_bytes", "3mib", -1},
    {"max_bytes", "1TiB", -1},
    {"max_bytes", "17179869184GiB", -1}, /* 2^64 */
    {"max_bytes", "17179869185GiB", -1},
};
Test(options, a_text_of_a_number_has_units)
{
    for (size_t i = 0; i < sizeof number_texts / sizeof *number_texts; i++) {
        const char *name = number_texts[i].name;
        const char *text = number_texts[i].text;
        int64_t value = number_texts[i].value;
        struct lapse_options o = lapse_options_init();
        int err = lapse_options_set(&o, name, text);

        cr_expect_eq(err, value < 0 ? LAPSE_EINVAL : 0, "%s=%s", name, text);
        cr_expect_eq(number(&o, name), value < 0 ? 0 : value, "%s=%s", name, text);
    }
}

/* ---- flags ---- */
Test(options, flags_are_words)
{
    static const struct {
        const char *text;
        int value; /* -1: EINVAL */
    } rows[] = {
        {"none", 0},
        {"no_events", LAPSE_NO_EVENTS},
        {"no_alarm", LAPSE_NO_ALARM},
        {"no_events,no_alarm", LAPSE_NO_EVENTS | LAPSE_NO_ALARM},
        {"no_alarm,no_events", LAPSE_NO_EVENTS | LAPSE_NO_ALARM},
        {"no_alarm,no_alarm", LAPSE_NO_ALARM},
        {"may_evict", LAPSE_MAY_EVICT},
        {"no_events,may_evict", LAPSE_NO_EVENTS | LAPSE_MAY_EVICT},
        {"may_evicz", -1},
        {"none,no_alarm", LAPSE_NO_ALARM},
        {"", -1},
        {",", -1},
        {",no_alarm", -1},
        {"no_alarm,", -1},
        {"no_alarm,,no_events", -1},
        {"no_alarm, no_events", -1},
        {"no_alarm no_events", -1},
        {"no_alarms", -1},
        {"no_alar", -1},
        {"no_event", -1},
        {"no_eventz", -1},
        {"no_alarn", -1},
        {"nono", -1},
        {"non", -1},
        {"NONE", -1},
        {"1", -1},
        {"0", -1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lapse_options o = lapse_options_init();
        o.flags = 64;
        cr_expect_eq(lapse_options_set(&o, "flags", rows[i].text),
                     rows[i].value < 0 ? LAPSE_EINVAL : 0, "\"%s\"", rows[i].text);
        cr_expect_eq(o.flags, rows[i].value < 0 ? 64u : (unsigned)rows[i].value, "\"%s\"",
                     rows[i].text);
    }
}

Test(options, flags_unknown_here_are_refused)
{
    for (unsigned flags = 0; flags < 8; flags++) {
        struct lapse_options in = lapse_options_init();
        struct options out;
        in.flags = flags;
        cr_assert_eq(options_read(&out, &in), 0);
        cr_expect_eq(out.set.flags, flags);
        options_free(&out);
    }

    for (unsigned bit = 3; bit < 32; bit++) {
        struct lapse_options in = lapse_options_init();
        in.flags = 1u << bit;
        cr_expect_eq(read_it(&in), LAPSE_EINVAL, "bit %u", bit);
        in.flags |= LAPSE_NO_EVENTS;
        cr_expect_eq(read_it(&in), LAPSE_EINVAL, "bit %u", bit);
    }
}

Test(options, notify_is_one_of_two_words)
{
    struct lapse_options o = lapse_options_init();
    struct options read;

    cr_expect_eq(lapse_options_set(&o, "notify", "keyspace"), 0);
    cr_expect_eq(o.notify, LAPSE_KEYSPACE);
    cr_expect_eq(lapse_options_set(&o, "notify", "keyevent"), 0);
    cr_expect_eq(o.notify, LAPSE_KEYEVENT);
    cr_expect_eq(lapse_options_set(&o, "notify", "both"), LAPSE_EINVAL);
    cr_expect_eq(lapse_options_set(&o, "notify", ""), LAPSE_EINVAL);
    o.notify = LAPSE_KEYSPACE + 1;
    cr_expect_eq(options_read(&read, &o), LAPSE_EINVAL);
}

/* ---- lapse_options_set() itself ---- */
Test(options, set_refuses_unknown_names_and_nothing_at_all)
{
    static const char *const names[] = {"",    "lease",   "lease_msx", "LEASE_MS", "size",
                                        "log", "log_arg", " url",      "url "};
    struct lapse_options o = lapse_options_init();
    struct lapse_options was = o;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        cr_expect_eq(lapse_options_set(&o, names[i], "100"), LAPSE_EINVAL, "\"%s\"", names[i]);
    }

    cr_expect_eq(lapse_options_set(NULL, "lease_ms", "100"), LAPSE_EINVAL);
    cr_expect_eq(lapse_options_set(&o, NULL, "100"), LAPSE_EINVAL);
    cr_expect_eq(lapse_options_set(&o, "lease_ms", NULL), LAPSE_EINVAL);
    cr_expect_arr_eq((char *)&o, (char *)&was, sizeof o);
}

Test(options, set_knows_the_fields_that_its_caller_has)
{
    struct lapse_options o = lapse_options_init();

    o.size = offsetof(struct lapse_options, arm_ahead_ms);
    cr_expect_eq(lapse_options_set(&o, "lease_ms", "100"), 0, "of an older caller");
    cr_expect_eq(lapse_options_set(&o, "arm_ahead_ms", "100"), LAPSE_EINVAL);
    o.size = 0;
    cr_expect_eq(lapse_options_set(&o, "lease_ms", "100"), LAPSE_EINVAL,
                 "lapse_options_init() was forgotten");
    o.size = sizeof o + 8;
    cr_expect_eq(lapse_options_set(&o, "lease_ms", "100"), 0, "of a newer caller");
    cr_expect_eq(o.lease_ms, 100);
}
