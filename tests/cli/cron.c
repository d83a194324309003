/* SPDX-License-Identifier: MIT */
/* lapse cron, which needs no Redis. A lapse that was built without GLib refuses it. */
#include "tool.h"
#include <time.h>

static void needs_cron(void)
{
    struct proc *p = lapse("--version");

    if (!has(p, "(with cron)")) {
        expect(p, 0, " (without cron) (", "");
        expect(lapse("cron", "* * * * *"), 2, "", "was built without GLib");
        cr_skip_test("lapse was built without cron");
    }
    expect(p, 0, "lapse 0.", "");
}

Test(cron, prints_the_next_moments_of_a_line)
{
    needs_cron();
    struct proc *p = lapse("cron", "30 2 * * *", "--tz", "Europe/Berlin", "--from",
                           "2026-03-28T02:30+01:00", "-n", "2", "-u", "redis://127.0.0.1:1");

    cr_expect_str_eq(p->out,
                     "{\"due_ms\":1774746000000,\"local\":\"2026-03-29T03:00:00+02:00\"}\n"
                     "{\"due_ms\":1774830600000,\"local\":\"2026-03-30T02:30:00+02:00\"}\n");
    expect(p, 0, NULL, "");
}

Test(cron, prints_five_from_now_on_if_not_told_otherwise)
{
    needs_cron();
    struct proc *p = lapse("cron", "@hourly");
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);

    long long first_ms = member(p->out, "due_ms");
    cr_expect_eq(count_of(p->out, "\n"), 5, "%s", p->out);
    cr_expect_eq(first_ms % 3600000, 0);
    cr_expect(first_ms > (now.tv_sec - 60) * 1000LL && first_ms <= (now.tv_sec + 3600) * 1000LL);
    expect(p, 0, "+00:00\"}\n", "");
}

Test(cron, as_text_shows_the_day_of_the_week)
{
    needs_cron();
    struct proc *p = lapse("cron", " 0 9 * * mon-fri  America/St_Johns ", "--format", "text", "-n2",
                           "--from", "2026-11-20T09:00-03:30");

    cr_expect_str_eq(p->out, "2026-11-23T09:00:00-03:30 Mon\n2026-11-24T09:00:00-03:30 Tue\n");
    expect(p, 0, NULL, "");
    expect(lapse("cron", "@daily Asia/Kathmandu", "--format", "text", "--from", "2026-01-01T00:00Z",
                 "-n1"),
           0, "2026-01-02T00:00:00+05:45 Fri\n", "");
}

Test(cron, does_not_show_the_zone_of_the_machine)
{
    needs_cron();
    cr_assert_eq(setenv("TZ", "Asia/Tokyo", 1), 0);
    expect(lapse("cron", "0 0 * * *", "-n1", "--from", "2026-01-01T00:00Z"), 0,
           "{\"due_ms\":1767312000000,\"local\":\"2026-01-02T00:00:00+00:00\"}\n", "");
    expect(lapse("cron", "0 0 * * * UTC", "-n1", "--from", "2026-01-01T00:00Z"), 0,
           "\"local\":\"2026-01-02T00:00:00+00:00\"", "");
}

Test(cron, ends_where_a_line_does)
{
    needs_cron();
    expect(lapse("cron", "0 0 31 2 *"), 1, "", "this line has no moment after that");

    struct proc *p = lapse("cron", "@yearly", "--from", "2898-06-01T00:00Z");
    cr_expect_eq(count_of(p->out, "\n"), 1, "%s", p->out);
    expect(p, 0, "\"local\":\"2899-01-01T00:00:00+00:00\"", "");
}

Test(cron, of_a_wrong_line_says_why_and_where)
{
    needs_cron();
    expect(lapse("cron", "0 24 * * *"), 2, "",
           "lapse cron: line '0 24 * * *': column 3: hour must be 0 to 23\n");
    expect(lapse("cron", "0 9 * * *", "--tz", "Europe/Berln"), 2, "",
           "line '0 9 * * * Europe/Berln': column 11: this machine knows no such zone");
    expect(lapse("cron", "0 9 * * *", "--tz", "../../etc/passwd"), 2, "", "column 11: a zone is");
    expect(lapse("cron", "0 9 * * * UTC", "--tz", "Asia/Tokyo"), 2, "",
           "column 15: nothing may follow the zone");
    expect(lapse("cron", "0 9 * *\033[2J"), 2, "", "line '0 9 * *\\x1b[2J': column 8");
    expect(lapse("cron", ""), 2, "", "line '': column 1: minute is missing");
    expect(lapse("cron"), 2, "", "missing argument LINE");
    expect(lapse("cron", "0", "9", "*"), 2, "", "unexpected argument '9'");
    expect(lapse("cron", "@daily", "--from", "tomorrow"), 2, "",
           "--from 'tomorrow': must be a time");
    expect(lapse("cron", "@daily", "-n", "0"), 2, "", "--limit '0': must be a whole number");
}
