/* SPDX-License-Identifier: MIT */
/* Rules that are wrong: why, and at which column. */
#include "test.h"
#include <criterion/criterion.h>
#include <lapse_cron.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *rule, *reason;
} wrong[] = {
    {"", "column 1: minute is missing"},
    {"  ", "column 3: minute is missing"},
    {"*", "column 2: hour is missing"},
    {"* *", "column 4: day of month is missing"},
    {"* * * ", "column 7: month is missing"},
    {"* * * *", "column 8: day of week is missing"},
    {"60 * * * *", "column 1: minute must be 0 to 59"},
    {"* 24 * * *", "column 3: hour must be 0 to 23"},
    {"* * 0 * *", "column 5: day of month must be 1 to 31"},
    {"* * 32 * *", "column 5: day of month must be 1 to 31"},
    {"* * * 0 *", "column 7: month must be 1 to 12 or jan to dec"},
    {"* * * 13 *", "column 7: month must be 1 to 12 or jan to dec"},
    {"* * * january *", "column 7: month must be 1 to 12 or jan to dec"},
    {"* * * mon *", "column 7: month must be 1 to 12 or jan to dec"},
    {"* * * * 8", "column 9: day of week must be 0 to 7 or sun to sat"},
    {"* * * * jan", "column 9: day of week must be 0 to 7 or sun to sat"},
    {"* jan * * *", "column 3: hour must be 0 to 23"},
    {"1,2,,3 * * * *", "column 5: minute must be 0 to 59"},
    {"1, * * * *", "column 3: minute must be 0 to 59"},
    {",1 * * * *", "column 1: minute must be 0 to 59"},
    {"-1 * * * *", "column 1: minute must be 0 to 59"},
    {"1- * * * *", "column 3: minute must be 0 to 59"},
    {"1-60 * * * *", "column 3: minute must be 0 to 59"},
    {"1-2-3 * * * *", "column 4: unexpected character in minute"},
    {"99999999999999999999 * * * *", "column 1: minute must be 0 to 59"},
    {"30-20 * * * *", "column 1: the range ends before it begins"},
    {"5,30-20 * * * *", "column 3: the range ends before it begins"},
    {"* * * * fri-sun", "column 9: the range ends before it begins; a Sunday at its end is 7"},
    {"*/0 * * * *", "column 3: the step of minute must be 1 to 60"},
    {"*/61 * * * *", "column 3: the step of minute must be 1 to 60"},
    {"*/ * * * *", "column 3: the step of minute must be 1 to 60"},
    {"*/-5 * * * *", "column 3: the step of minute must be 1 to 60"},
    {"* 0-5/25 * * *", "column 7: the step of hour must be 1 to 24"},
    {"* * * * */8", "column 11: the step of day of week must be 1 to 7"},
    {"5/10 * * * *", "column 2: a step needs * or a range before it"},
    {"*/5/2 * * * *", "column 4: unexpected character in minute"},
    {"*5 * * * *", "column 2: unexpected character in minute"},
    {"** * * * *", "column 2: unexpected character in minute"},
    {"*-5 * * * *", "column 2: unexpected character in minute"},
    {"? * * * *", "column 1: minute must be 0 to 59"},
    {"* * L * *", "column 5: day of month must be 1 to 31"},
    {"* * 15W * *", "column 5: day of month must be 1 to 31"},
    {"* * * * 5#2", "column 10: unexpected character in day of week"},
    {"H * * * *", "column 1: minute must be 0 to 59"},
    {"1.5 * * * *", "column 2: unexpected character in minute"},
    {"* * * *\n*", "column 8: unexpected character in month"},
    {"\xc3\xa4 * * * *", "column 1: minute must be 0 to 59"},
    {"@reboot",
     "column 1: must be @hourly, @daily, @midnight, @weekly, @monthly, @yearly or @annually"},
    {" @", "column 2: must be @hourly, @daily, @midnight, @weekly, @monthly, @yearly or @annually"},
    {"@Daily",
     "column 1: must be @hourly, @daily, @midnight, @weekly, @monthly, @yearly or @annually"},
    {"0 0 9 * * 1-5", "column 11: a zone is a letter and up to 63 letters, digits, _ + - /"},
    {"* * * * * ../../etc/passwd",
     "column 11: a zone is a letter and up to 63 letters, digits, _ + - /"},
    {"* * * * * Europe/../Europe/Berlin",
     "column 11: a zone is a letter and up to 63 letters, digits, _ + - /"},
    {"* * * * * /etc/localtime",
     "column 11: a zone is a letter and up to 63 letters, digits, _ + - /"},
    {"* * * * * :UTC", "column 11: a zone is a letter and up to 63 letters, digits, _ + - /"},
    {"* * * * * zone.tab", "column 11: a zone is a letter and up to 63 letters, digits, _ + - /"},
    {"* * * * * +02:00", "column 11: a zone is a letter and up to 63 letters, digits, _ + - /"},
    {"* * * * * 05", "column 11: a zone is a letter and up to 63 letters, digits, _ + - /"},
    {"* * * * * \x01", "column 11: a zone is a letter and up to 63 letters, digits, _ + - /"},
    {"@hourly CET-1CEST,M3.5.0,M10.5.0/3",
     "column 9: a zone is a letter and up to 63 letters, digits, _ + - /"},
    {"@daily Europe/Berln", "column 8: this machine knows no such zone"},
    {"@daily Europe", "column 8: this machine knows no such zone"},
    {"@daily europe/berlin", "column 8: this machine knows no such zone"},
    {"@daily leapseconds", "column 8: this machine knows no such zone"},
    {"@daily UTC+2", "column 8: this machine knows no such zone"},
    {"@daily EST5XXX", "column 8: this machine knows no such zone"},
    {"@daily Z", "column 8: this machine knows no such zone"},
    {"@daily UTC UTC", "column 12: nothing may follow the zone"},
    {"0 9 * * * Not/There x", "column 21: nothing may follow the zone"},
};

Test(check, says_why_a_rule_is_wrong_and_at_which_column)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char reason[128] = "untouched";
        cr_expect_eq(lapse_cron_check(wrong[i].rule, reason, sizeof reason), LAPSE_EINVAL, "%s",
                     wrong[i].rule);
        cr_expect_str_eq(reason, wrong[i].reason, "%s: %s", wrong[i].rule, reason);
        cr_expect_eq(lapse_cron_next(wrong[i].rule, 0), -1, "%s", wrong[i].rule);
    }
}

Test(check, of_a_right_rule_is_0_and_leaves_the_reason)
{
    static const char *const right[] = {
        "* * * * *",           " \t* * * * * ",
        "0 9 * * 1-5",         "*/60 */24 */31 */12 */7",
        "0-59/60 * * * *",     "@daily",
        " @daily  UTC ",       "@hourly Europe/Berlin",
        "* * * * * EST5EDT",   "* * * * * GMT0",
        "* * * * * Etc/GMT+5", "* * * * * America/Argentina/ComodRivadavia",
        "0 0 31 2 *",
    };

    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        char reason[16] = "untouched";
        cr_expect_eq(lapse_cron_check(right[i], reason, sizeof reason), 0, "%s: %s", right[i],
                     reason);
        cr_expect_str_eq(reason, "untouched");
    }
}

Test(check, cuts_the_reason_to_its_size)
{
    char reason[12] = "0123456789";

    cr_expect_eq(lapse_cron_check("x", NULL, 0), LAPSE_EINVAL);
    cr_expect_eq(lapse_cron_check("x", reason, 0), LAPSE_EINVAL);
    cr_expect_str_eq(reason, "0123456789");
    cr_expect_eq(lapse_cron_check("x", reason, 1), LAPSE_EINVAL);
    cr_expect_str_eq(reason, "");
    cr_expect_eq(lapse_cron_check("x", reason, sizeof reason), LAPSE_EINVAL);
    cr_expect_str_eq(reason, "column 1: m");
    cr_expect_eq(lapse_cron_check(NULL, reason, sizeof reason), LAPSE_EINVAL);
    cr_expect_str_eq(reason, "column 1: t");
}

Test(check, reads_a_rule_of_any_length)
{
    enum { LEN = 1 << 20 };
    char *rule = malloc(LEN + 16);
    size_t n = 0;

    cr_assert(rule);
    while (n < LEN) {
        n += (size_t)sprintf(rule + n, "%s1", n ? "," : "");
    }
    memcpy(rule + n, " 2 * * *", sizeof " 2 * * *");
    cr_expect_eq(lapse_cron_check(rule, NULL, 0), 0);
    cr_expect_eq(lapse_cron_next(rule, 0), (2 * 60 + 1) * INT64_C(60000));

    memset(rule, '9', LEN);
    cr_expect_eq(lapse_cron_check(rule, NULL, 0), LAPSE_EINVAL);
    free(rule);
}

/* GLib would print a complaint about a file that is no zone. */
Test(check, of_a_zone_whose_file_is_none_says_nothing_on_stderr)
{
    int pipe_fds[2];
    char byte;

    cr_assert_eq(pipe(pipe_fds), 0);
    int saved = dup(2);
    dup2(pipe_fds[1], 2);
    close(pipe_fds[1]);
    int got = lapse_cron_check("@daily leapseconds", NULL, 0);
    dup2(saved, 2);
    close(saved);

    cr_expect_eq(got, LAPSE_EINVAL);
    cr_expect_eq(read(pipe_fds[0], &byte, 1), 0);
    close(pipe_fds[0]);
}

/* ---- other folders ---- */
static void copy_zone(const char *name, const char *dir)
{
    char path[4096];
    size_t len;

    snprintf(path, sizeof path, "/usr/share/zoneinfo/%s", name);
    char *zone = test_read_file(path, &len);

    snprintf(path, sizeof path, "%s/Mine", dir);
    FILE *f = fopen(path, "w");
    cr_assert(f && fwrite(zone, 1, len, f) == len && fclose(f) == 0);
    free(zone);
}

Test(check, looks_for_zones_where_glib_does)
{
    char dir[256];
    char fifo[300];

    test_dir(dir, sizeof dir);
    copy_zone("Asia/Tokyo", dir);
    snprintf(fifo, sizeof fifo, "%s/Fifo", dir);
    cr_assert_eq(mkfifo(fifo, 0600), 0);

    cr_expect_eq(lapse_cron_check("@daily Mine", NULL, 0), LAPSE_EINVAL);
    cr_assert_eq(setenv("TZDIR", dir, 1), 0);
    cr_expect_eq(lapse_cron_check("@daily Mine", NULL, 0), 0);
    cr_expect_eq(lapse_cron_next("@daily Mine", 0), 15 * INT64_C(3600000));
    cr_expect_eq(lapse_cron_check("@daily Asia/Tokyo", NULL, 0), LAPSE_EINVAL);
    cr_expect_eq(lapse_cron_check("@daily Fifo", NULL, 0), LAPSE_EINVAL, "and does not wait");
    cr_expect_eq(lapse_cron_check("@daily UTC", NULL, 0), 0, "UTC needs no file");

    char *far = malloc(5000);
    memset(far, 'x', 4999);
    far[4999] = '\0';
    cr_assert_eq(setenv("TZDIR", far, 1), 0);
    cr_expect_eq(lapse_cron_check("@daily Mine", NULL, 0), LAPSE_EINVAL);
    free(far);
    test_dir_remove(dir);
}

Test(check, takes_a_zone_of_64_characters_and_none_of_65)
{
    static const char too_long[] = "column 8: a zone is a letter and up to 63";
    char rule[80] = "@daily ";
    char reason[128];

    memset(rule + 7, 'x', 64);
    cr_expect_eq(lapse_cron_check(rule, reason, sizeof reason), LAPSE_EINVAL);
    cr_expect_str_eq(reason, "column 8: this machine knows no such zone");
    rule[71] = 'x';
    cr_expect_eq(lapse_cron_check(rule, reason, sizeof reason), LAPSE_EINVAL);
    cr_expect(strncmp(reason, too_long, sizeof too_long - 1) == 0, "%s", reason);
}
