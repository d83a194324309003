/* SPDX-License-Identifier: MIT */
/* The tables of lines and of their next five moments: tests/cron/README.md says where they are
 * from. */
#include "test.h"
#include <criterion/criterion.h>
#include <lapse_cron.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOMENTS = 5 };

struct row {
    char line[80], zone[40];
    int64_t after_ms;
    int64_t next_ms[MOMENTS]; /* the last one is 0 where there is no further one */
    unsigned n;
};

/* 2026-03-29T03:00:00+02:00, or with Z */
static int64_t moment_of(const char *text)
{
    struct tm tm = {0};
    int hours = 0;
    int minutes = 0;
    const char *zone = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);

    cr_assert(zone, "%s", text);
    if (*zone != 'Z') {
        cr_assert_eq(sscanf(zone + 1, "%2d:%2d", &hours, &minutes), 2, "%s", text);
    }

    int64_t offset_s = (hours * 60 + minutes) * 60;
    return (timegm(&tm) - (*zone == '-' ? -offset_s : offset_s)) * 1000;
}

static char *trimmed(char *text)
{
    text += strspn(text, " ");
    for (size_t n = strlen(text); n && text[n - 1] == ' '; n--) {
        text[n - 1] = '\0';
    }
    return text;
}

static void row_read(struct row *row, char *text)
{
    char *rest = text;
    const char *line = trimmed(strsep(&rest, "|"));
    const char *zone = trimmed(strsep(&rest, "|"));
    const char *after = trimmed(strsep(&rest, "|"));

    cr_assert(rest, "%s", text);
    *row = (struct row){.after_ms = moment_of(after)};
    snprintf(row->line, sizeof row->line, "%s", line);
    snprintf(row->zone, sizeof row->zone, "%s", strcmp(zone, "-") == 0 ? "" : zone);

    for (char *word = strtok(rest, " "); word; word = strtok(NULL, " ")) {
        cr_assert_lt(row->n, MOMENTS, "%s", line);
        row->next_ms[row->n++] = strcmp(word, "never") == 0 ? 0 : moment_of(word);
    }
    cr_assert(row->n == MOMENTS || (row->n && row->next_ms[row->n - 1] == 0), "%s", line);
}

static void row_check(const struct row *row)
{
    char rule[sizeof row->line + sizeof row->zone + 1];
    int64_t ms = row->after_ms;

    snprintf(rule, sizeof rule, "%s %s", row->line, row->zone);
    cr_expect_eq(lapse_cron_check(rule, NULL, 0), 0, "%s", rule);

    for (unsigned i = 0; i < row->n; i++) {
        int64_t next_ms = lapse_cron_next(rule, ms);
        cr_expect_eq(next_ms, row->next_ms[i], "%s: moment %u is %lld, and not %lld", rule, i + 1,
                     (long long)next_ms, (long long)row->next_ms[i]);
        ms = row->next_ms[i];
    }
}

/* How many rows the table has. */
static unsigned table_check(const char *name)
{
    char path[4096];
    unsigned n = 0;

    snprintf(path, sizeof path, "%s/tests/cron/%s", test_root(), name);

    char *text = test_read_file(path, NULL);
    char *rest = text;

    for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
        struct row row;
        if (*line && *line != '#') {
            row_read(&row, line);
            row_check(&row);
            n++;
        }
    }
    free(text);
    return n;
}

Test(table, of_croner_is_ours)
{
    cr_assert_eq(table_check("croner.txt"), 206);
}

Test(table, by_hand_is_ours)
{
    cr_assert_eq(table_check("by_hand.txt"), 69);
}
