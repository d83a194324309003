/* SPDX-License-Identifier: MIT */
#include "redis/report.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <stdio.h>

enum { START_US = 50000000, SECOND_US = 1000000 };

static char said[1024];
static int level;

static void on_log(int at_level, const char *line, void *arg)
{
    (void)arg;
    level = at_level;
    snprintf(said, sizeof said, "%s", line);
}

/* Two connections to one Redis. */
static struct reports {
    struct context context;
    struct endpoint endpoint;
    struct hosts hosts;
    struct report commands;
    struct report subscription;
} r;

static void start(void)
{
    unit_clock.mono_at_us = START_US;
    r.context.log.fn = on_log;
    r.context.options.reply_ms = 5000;
    r.endpoint.context = &r.context;
    r.endpoint.address = (struct address){.host = "h", .port = 6379};
    r.commands = (struct report){&r.endpoint, CONN_COMMANDS, &r.hosts};
    r.subscription = (struct report){&r.endpoint, CONN_SUBSCRIPTION, &r.hosts};
}

TestSuite(report, .init = start);

static unsigned n_reported(enum lapse_health_kind kind)
{
    return r.context.health.reports[kind].in_a_row;
}

/* The next line is not one of those that come too soon after another. */
static void a_second_passes(void)
{
    unit_clock.mono_at_us += SECOND_US;
    *said = '\0';
}

Test(report, names_the_place_as_a_url_would_and_the_address_that_was_tried)
{
    static const struct {
        struct address address;
        struct hosts hosts;
        const char *place;
    } rows[] = {
        {{.host = "h", .port = 6379}, {.n = 0}, "h:6379"},
        {{.host = "h", .port = 1}, {.n = 1, .next = 1, .at = {"10.0.0.1"}}, "h:1"},
        {{.host = "h", .port = 1}, {.n = 2, .next = 0, .at = {"10.0.0.1", "10.0.0.2"}}, "h:1"},
        {{.host = "h", .port = 1},
         {.n = 2, .next = 2, .at = {"10.0.0.1", "10.0.0.2"}},
         "h:1 (10.0.0.2)"},
        {{.host = "::1", .port = 6379}, {.n = 1, .next = 1, .at = {"::1"}}, "[::1]:6379"},
        {{.host = "/run/r.sock", .unix_socket = true}, {.n = 0}, "/run/r.sock"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char expected[200];
        a_second_passes();
        r.endpoint.address = rows[i].address;
        r.hosts = rows[i].hosts;
        report_cannot_connect(&r.commands, "because");
        snprintf(expected, sizeof expected, "cannot connect to Redis at %s: because; trying again",
                 rows[i].place);
        cr_expect_str_eq(said, expected);
    }
}

/* Without events jobs are a little late, no more: that is reported when it is known. */
Test(report, of_a_lost_subscription_is_a_line_and_no_disconnect)
{
    report_lost(&r.subscription, "gone");
    cr_expect_str_eq(said, "lost the connection to Redis at h:6379: gone; connecting again");
    report_silent(&r.subscription);
    cr_expect_str_eq(said, "no answer from Redis at h:6379 in 5000 ms (reply_ms) to the "
                           "subscription; connecting again");
    cr_expect_eq(n_reported(LAPSE_HEALTH_DISCONNECTED), 0);

    a_second_passes();
    report_lost(&r.commands, "gone");
    cr_expect_eq(n_reported(LAPSE_HEALTH_DISCONNECTED), 1);
    report_silent(&r.commands);
    cr_expect_eq(n_reported(LAPSE_HEALTH_DISCONNECTED), 2);
}

Test(report, of_a_login_that_was_refused_says_whether_it_is_a_matter_of_the_user)
{
    static const struct {
        const char *error;
        int login_err;
        int level;
    } rows[] = {
        {"NOAUTH Authentication required.", LAPSE_EAUTH, LOG_ERR},
        {"WRONGPASS invalid username-password pair", LAPSE_EAUTH, LOG_ERR},
        {"NOPERM User u has no permissions to run the 'select'", LAPSE_EDENIED, LOG_ERR},
        {"LOADING Redis is loading the dataset in memory", 0, LOG_WARNING},
        {"MASTERDOWN Link with MASTER is down", 0, LOG_ERR},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned n_failed = n_reported(LAPSE_HEALTH_AUTH_FAILED);
        unsigned n_down = n_reported(LAPSE_HEALTH_DISCONNECTED);
        bool is_of_user = rows[i].login_err != 0;

        a_second_passes();
        r.endpoint.login_err = 0;
        report_not_let_in(&r.subscription, span_of(rows[i].error));
        cr_expect_eq(r.endpoint.login_err, 0, "that of commands counts");
        cr_expect_eq(level, rows[i].level, "%s", said);

        report_not_let_in(&r.commands, span_of(rows[i].error));
        cr_expect_eq(r.endpoint.login_err, rows[i].login_err, "%s", rows[i].error);
        cr_expect_eq(n_reported(LAPSE_HEALTH_AUTH_FAILED), n_failed + is_of_user);
        cr_expect_eq(n_reported(LAPSE_HEALTH_DISCONNECTED), n_down + !is_of_user);
    }
}

Test(report, of_the_end_of_an_outage_comes_once_and_with_the_connection_for_commands)
{
    report_up(&r.commands, false);
    cr_expect_str_eq(said, "", "nothing was said of an outage");

    report_lost(&r.commands, "gone");
    a_second_passes();
    report_up(&r.subscription, true);
    cr_expect_str_eq(said, "", "commands cannot be sent yet");
    r.endpoint.commands_up = true;
    report_up(&r.commands, true);
    cr_expect_str_eq(said, "connected again to Redis at h:6379 after 1.0 s");

    a_second_passes();
    report_up(&r.subscription, true);
    cr_expect_str_eq(said, "");
    report_lost(&r.subscription, "gone");
    a_second_passes();
    report_up(&r.subscription, true);
    cr_expect_str_eq(said, "connected again to Redis at h:6379 for expiry events after 1.0 s");
}

Test(report, that_was_written_nowhere_begins_no_outage)
{
    r.context.log.fn = NULL;
    report_lost(&r.commands, "gone");
    cr_expect_eq(r.endpoint.outage_us, 0);
    r.endpoint.commands_up = true;
    report_up(&r.commands, true);
    cr_expect_eq(n_reported(LAPSE_HEALTH_CONNECTED), 1);
}
