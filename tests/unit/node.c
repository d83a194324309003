/* SPDX-License-Identifier: MIT */
#include "redis/node.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <stdio.h>

#define SECOND_US INT64_C(1000000)
#define SERVER_US (INT64_C(1790000000) * SECOND_US)

static char said[200];
static struct context context;
static struct node node = {.context = &context};

static void on_log(int level, const char *line, void *arg)
{
    (void)arg;
    cr_expect_eq(level, LOG_WARNING);
    snprintf(said, sizeof said, "%s", line);
}

/* Redis's clock shows so much more than ours has moved; the answer comes 1 ms after the request,
 * two seconds after the one before. */
static void hear(int64_t ahead_us)
{
    *said = '\0';
    unit_clock.mono_at_us += 2 * SECOND_US;
    node_heard_clock(&node, unit_clock.mono_at_us - 1000,
                     SERVER_US + ahead_us + unit_clock.mono_at_us);
}

Test(node, tells_of_a_clock_that_was_set_by_a_second_or_more)
{
    context.log.fn = on_log;
    unit_clock.mono_at_us = 50 * SECOND_US;

    hear(0);
    cr_expect_str_eq(said, "", "the first time says where it stands");
    hear(SECOND_US - 5000);
    cr_expect_str_eq(said, "");
    hear(3 * SECOND_US - 5000);
    cr_expect_str_eq(said, "the clock of Redis was set forward by 2.000 s; what is due goes by it");
    hear(2 * SECOND_US);
    cr_expect_str_eq(said, "");
    hear(-SECOND_US);
    cr_expect_str_eq(said, "the clock of Redis was set back by 3.000 s; what is due goes by it");
}
