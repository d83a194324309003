/* SPDX-License-Identifier: MIT */
#include "script/refusal.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#define DENIED_7_0 "ERR The user executing the script can't run this command or subcommand"
#define DENIED_7_2 "ERR ACL failure in script: User u has no permissions to run the '"
#define RIGHTS "`lapse doctor` lists the rights"

static char said[1024];

static void on_log(int level, const char *line, void *arg)
{
    (void)arg;
    cr_expect_eq(level, LOG_ERR);
    snprintf(said, sizeof said, "%s", line);
}

/* The texts are those of Redis 7.0 to 8, with what lua/lib/answer.lua adds. */
static const struct {
    const char *error;
    int code;
    enum lapse_health_kind health;
    const char *line;
} rows[] = {
    {DENIED_7_0 ": ZREM", LAPSE_EDENIED, LAPSE_HEALTH_DENIED,
     "Redis denied ZREM, which `claim` needs, to this user; " RIGHTS},
    {DENIED_7_0, LAPSE_EDENIED, LAPSE_HEALTH_DENIED,
     "Redis denied a command, which `claim` needs, to this user; " RIGHTS},
    {DENIED_7_2 "zrem' command", LAPSE_EDENIED, LAPSE_HEALTH_DENIED,
     "Redis denied ZREM, which `claim` needs, to this user; " RIGHTS},
    {DENIED_7_2 "xgroup|create' command", LAPSE_EDENIED, LAPSE_HEALTH_DENIED,
     "Redis denied XGROUP|CREATE, which `claim` needs, to this user; " RIGHTS},
    {DENIED_7_2 "zrem", LAPSE_EDENIED, LAPSE_HEALTH_DENIED,
     "Redis denied a command, which `claim` needs, to this user; " RIGHTS},
    {"LAPSE EBROKEN " DENIED_7_0 ": HSET", LAPSE_EBROKEN, LAPSE_HEALTH_DENIED,
     "Redis broke off in the middle of claim: it denied HSET to this user (some of it may have "
     "happened; " RIGHTS ")"},
    {"NOPERM User u has no permissions to run the 'evalsha' command", LAPSE_EDENIED,
     LAPSE_HEALTH_DENIED,
     "Redis refused claim: NOPERM User u has no permissions to run the 'evalsha' command (denied "
     "to this user; " RIGHTS ")"},
    {"ERR unknown command 'EVAL_RO', with args beginning with: 'return 1'", LAPSE_EREFUSED,
     LAPSE_HEALTH_REFUSED,
     "Redis refused claim: it does not know EVAL_RO; Redis 7.0 or later is needed"},
    {"ERR unknown command 'EVAL'", LAPSE_EREFUSED, LAPSE_HEALTH_REFUSED,
     "Redis refused claim: ERR unknown command 'EVAL' (see its documentation)"},
    {"LAPSE EBROKEN OOM command not allowed", LAPSE_EBROKEN, LAPSE_HEALTH_REFUSED,
     "Redis broke off in the middle of claim: LAPSE EBROKEN OOM command not allowed (some of it "
     "may have happened)"},
    {"OOM command not allowed", LAPSE_EREFUSED, LAPSE_HEALTH_REFUSED,
     "Redis refused claim: OOM command not allowed (it is out of memory: raise maxmemory; due jobs "
     "still run)"},
    {"LAPSE EHALF lapse:{q}:jobs lapse:{q}:dead", LAPSE_EHALF, LAPSE_HEALTH_REFUSED,
     "claim was refused: a part of the queue is missing here: lapse:{q}:jobs lapse:{q}:dead; the "
     "move of its slot or a script broke off, and `lapse doctor`, with the URL of the cluster, "
     "says what to do"},
    {"", LAPSE_EREFUSED, LAPSE_HEALTH_REFUSED, "Redis refused claim:  (see its documentation)"},
};

Test(refusal, has_a_code_a_health_report_and_a_line_that_says_what_to_do)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct context c = {.log = {.fn = on_log}};
        char *error = unit_copy(rows[i].error, strlen(rows[i].error) + 1);

        int code = refusal_code(&c, "claim", span_of(error));
        cr_expect_eq(code, rows[i].code, "%s: %d", rows[i].error, code);
        cr_expect_eq(c.health.reports[rows[i].health].in_a_row, 1, "%s", rows[i].error);
        cr_expect_str_eq(said, rows[i].line);
        free(error);
    }
}
