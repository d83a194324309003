/* SPDX-License-Identifier: MIT */
/* What the settings of a queue keep back: claim and touch alike. */
#include "script.h"

SCRIPTS(gate);

#define TOLD "9007199254740992"
#define ROW(id, token, place) "['" id "' 2 T+1000 '1 " token " me 1 10 U T ' '" REC "' " place "]"

static const char *const claims[] = {"claim", "claim", "touch", "touch"};
static const char *const args[] = {"0 me 1000 10", "0 me 1000 0 a b", "0 me 1000 100 T-5 0 1 1 24",
                                   "0 me 1000 0 T-5 1 2 1 24"};
enum { CLAIMS = sizeof claims / sizeof *claims };

static void closed_until(const char *gate, const char *now)
{
    for (size_t i = 0; i < CLAIMS; i++) {
        char *before = dumps();
        const char *rest = strcmp(claims[i], "touch") == 0 ? " 0 0 0 T-5 0 0 ''" : "";
        same(__FILE__, __LINE__, args[i], show(run(claims[i], args[i])),
             text("[%s 0 0 0 0 %s 0%s]", now, gate, rest));
        same(__FILE__, __LINE__, args[i], dumps(), before);
    }
    cr_assert_str_eq(expired(), "");
    HEARD("");
}

Test(gate, of_a_paused_queue_gives_out_nothing_and_says_until_when)
{
    given("schedule", "0 a +0 0 " REC " b +5 0 " REC);
    given("configure", "0 paused=T+500");
    now_at(10);
    closed_until("T+500", "U+10000");
    now_at(499);
    closed_until("T+500", "U+499000");
    given("configure", "0 paused=" TOLD);
    closed_until(TOLD, "U+499000");
    ask("FLUSHALL");
}

Test(gate, opens_when_the_pause_is_over)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC);
    given("configure", "0 paused=T-1");
    RUN("claim", "0 me 1000 1", "[U T 0 0 0 0 0 " ROW("a", "U+1", "0") "]");
    ask("SET s:{q}:conf %s", text("1 paused=%lld ", (long long)T));
    RUN("touch", "0 me 1000 1 0 0 1 0 0",
        "[U 0 0 0 0 0 0 1 0 0 T 0 0 '' " ROW("b", "U+2", "0") "]");
    ask("DEL s:{q}:conf");
}

Test(gate, opens_when_the_pause_is_taken_away)
{
    given("schedule", "0 a +0 0 " REC);
    given("configure", "0 paused=" TOLD);
    closed_until(TOLD, "U");
    given("configure", "0 paused=");
    RUN("claim", "0 me 1000 1", "[U 0 0 0 0 0 0 " ROW("a", "U+1", "0") "]");
}

Test(gate, lets_schedules_cancels_reschedules_and_settles_pass)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC);
    given("claim", "0 me 1000 0 a");
    given("configure", "0 paused=" TOLD);
    RUN("schedule", "0 c +0 0 " REC, "[U T]");
    HEARD("0 '0 c'");
    RUN("reschedule", "0 b +5 0", "[U ['b' 1 T+5 '' '" REC "']]");
    RUN("cancel", "0 c 0", "[U ['c' 1 T '' '" REC "']]");
    RUN("renew", "0 me a U+1 2000", "[U T+2000]");
    RUN("done", "0 me a U+1", "[U 1]");
    KEYS("due b:T+5 | jobs b=" REC " | seq U+1 | conf 1 paused=" TOLD "  | t b:T+4");
    ask("DEL s:{q}:conf");
}

Test(gate, is_open_where_the_settings_say_nothing_of_it)
{
    static const char *const open[] = {"1 ",
                                       "1 rate=5 ",
                                       "1 rate=0/1s ",
                                       "1 rate=5/1y ",
                                       "1 rate=5/-1s ",
                                       "1 max_running=0 ",
                                       "1 max_running=few ",
                                       "1 paused= ",
                                       "1 paused=soon ",
                                       "1 paused=-5 ",
                                       "1 paused=nan ",
                                       "1 unpaused=" TOLD " "};

    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        given("schedule", "0 a +0 0 " REC);
        ask("SET s:{q}:conf %s", open[i]);
        cr_assert_eq(run("claim", "0 me 1000 1")->elements, 7 + 1, "%s", open[i]);
        ask("FLUSHALL");
    }
}

Test(gate, of_a_moment_beyond_all_is_until_it_is_taken_away)
{
    given("schedule", "0 a +0 0 " REC);
    ask("SET s:{q}:conf %s", "1 paused=99999999999999999999 ");
    closed_until(TOLD, "U");
    ask("DEL s:{q}:conf");
}

Test(gate, of_settings_in_another_format_is_refused_before_the_first_write)
{
    given("schedule", "0 a +0 0 " REC);
    ask("SET s:{q}:conf %s", "2 paused=5 ");

    char *before = dumps();
    for (size_t i = 0; i < CLAIMS; i++) {
        same(__FILE__, __LINE__, args[i], show(run(claims[i], args[i])),
             "-ERR s:{q}:conf is in a format that this version cannot read");
    }
    same(__FILE__, __LINE__, "keys", dumps(), before);
    ask("DEL s:{q}:conf");
}

Test(gate, counts_settings_of_another_type_as_missing)
{
    given("schedule", "0 a +0 0 " REC);
    ask("LPUSH s:{q}:conf x");
    RUN("claim", "0 me 1000 1", "[U 0 0 0 0 0 0 " ROW("a", "U+1", "0") "]");
    ask("DEL s:{q}:conf");
}

Test(gate, costs_a_queue_without_settings_no_command)
{
    given("schedule", "0 a +0 0 " REC);
    given("claim", "0 me 1000 1"); /* from now on there is a last token */

    for (int n = 1; n <= 100; n += 99) {
        many(0, n, "+0");
        ask("CONFIG RESETSTAT");
        given("claim", "0 me 1000 100");
        cr_assert_eq(calls("mget"), 1);
        cr_assert_eq(calls("get"), 0);
        /* records are read 1, 2, 4... at a time */
        cr_assert_eq(commands(), n == 1 ? 14 : 26, "%lld", commands());
        ask("DEL s:{q}:run s:{q}:jobs s:{q}:attempts");
    }
}
