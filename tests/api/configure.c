/* SPDX-License-Identifier: MIT */
/* The settings of a queue, as they are shown and changed; pause.c shows what one of them does. */
#include "ask.h"
#include "listening.h"

Test(configure, shows_changes_and_takes_away)
{
    struct flow *f = flow_start(FLOW_FULL);
    char text[FLOW_TEXT];

    cr_assert_eq(flow_configure(f, "q", NULL, text), 0);
    cr_assert_str_eq(text, "");
    cr_assert_eq(redis_int(f->server, "DBSIZE"), 0);

    cr_assert_eq(flow_configure(f, "q", "paused=9007199254740992", text), 0);
    cr_assert_str_eq(text, "paused=9007199254740992");
    cr_assert_eq(flow_configure(f, "q", "", text), 0);
    cr_assert_str_eq(text, "paused=9007199254740992");
    cr_assert_eq(flow_configure(f, "other", NULL, text), 0);
    cr_assert_str_eq(text, "");

    cr_assert_eq(flow_configure(f, "q", "paused=", text), 0);
    cr_assert_str_eq(text, "");
    cr_assert_eq(redis_int(f->server, "DBSIZE"), 0);
    flow_end(f, "q");
}

Test(configure, of_a_wrong_change_is_einval_and_says_what_is_wrong)
{
    struct flow *f = flow_start(FLOW_FULL);
    char text[FLOW_TEXT];

    cr_assert_eq(flow_configure(f, "q", "paused=soon", text), LAPSE_EINVAL);
    cr_assert_str_eq(text, "paused=soon: must be a time in ms, or + and a number of ms from now; "
                           "at most 9007199254740992");
    cr_assert_eq(flow_configure(f, "q", "paused=+5 colour=red", text), LAPSE_EINVAL);
    cr_assert_str_eq(text, "colour=red: there is no such setting");
    cr_assert_eq(flow_configure(f, "q", "paused=+5 red", text), LAPSE_EINVAL);
    cr_assert_str_eq(text, "red: must be NAME=VALUE, of printable ASCII characters");
    cr_assert_eq(redis_int(f->server, "DBSIZE"), 0);
    flow_end(f, "q");
}

Test(configure, of_settings_of_a_newer_form_is_refused)
{
    struct flow *f = flow_start(FLOW_FULL);

    flow_allow_log(f, "is in a format that this version cannot read");
    redis_do(f->server, "SET lapse:{q}:conf %s", "2 x");
    cr_assert_eq(flow_configure(f, "q", NULL, NULL), LAPSE_EREFUSED);
    cr_assert_eq(flow_configure(f, "q", "paused=", NULL), LAPSE_EREFUSED);
    flow_end(f, "q");
}

Test(configure, works_when_redis_is_out_of_memory)
{
    struct flow *f = flow_start(FLOW_FULL);
    char text[FLOW_TEXT];

    redis_do(f->server, "CONFIG SET maxmemory 1");
    cr_assert_eq(flow_configure(f, "q", "paused=9007199254740992", text), 0);
    cr_assert_str_eq(text, "paused=9007199254740992");
    redis_do(f->server, "CONFIG SET maxmemory 0");
    flow_end(f, "q");
}
