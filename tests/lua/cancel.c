/* SPDX-License-Identifier: MIT */
#include "script.h"

SCRIPTS(cancel);

Test(cancel, of_a_waiting_job_takes_all_of_it_away)
{
    given("schedule", "0 a +5 0 " REC "x b +6 0 " REC);
    RUN("cancel", "0 a 0", "[U ['a' 1 T+5 '' '" REC "']]");
    KEYS("due b:T+6 | jobs b=" REC " | t b:T+5");
    HEARD("");
}

Test(cancel, of_any_state_but_running_shows_the_job_as_it_was)
{
    five();
    RUN("cancel", "0 w 0 r 0 e 0 u 0 d 0 none 0",
        "[U+20000 ['w' 1 T+500 '' '" REC "'] 'EBUSY' ['e' 1 T+10 '1 U+1 me 1 10 U T ' '" REC
        "'] ['u' 3 T+10 '1 U+2 me 1 1 U T ' '\\01\\01\\01'] ['d' 3 T '1 U+4 me 1 10 U T bad' '" REC
        "'] 'ENOENT']");
    KEYS("run r:T+1000 | jobs r=" REC "r | attempts " ATTEMPT_R " | seq U+4");
    HEARD("");
}

Test(cancel, is_ebusy_until_the_very_end_of_the_lease)
{
    five();
    now_at(999);
    RUN("cancel", "0 r 0", "[U+999000 'EBUSY']");
    KEYS(FIVE);
    now_at(1000);
    RUN("cancel", "0 r 0", "[U+1000000 ['r' 1 T+1000 '1 U+3 me 1 10 U T ' '" REC "']]");
}

Test(cancel, of_nothing_there_is_enoent_and_writes_nothing)
{
    ask("CONFIG RESETSTAT");
    RUN("cancel", "0 a 0 b 0", "[U 'ENOENT' 'ENOENT']");
    cr_assert_eq(calls("zrem") + calls("hdel") + calls("del"), 0);
}

Test(cancel, of_a_job_put_back_forgets_what_was_held)
{
    given("schedule", "0 a +0 0 " REC);
    given("claim", "0 me 1000 1");
    given("retry", "0 me a U+1 50 later");
    RUN("cancel", "0 a 0", "[U ['a' 1 T+50 '1 U+1 me 1 10 U T+50 later' '" REC "']]");
    KEYS("seq U+1");
}

Test(cancel, of_what_it_cannot_read_works)
{
    given("schedule", "0 a +5 0 \\02\\00x");
    RUN("cancel", "0 a 0", "[U ['a' 1 T+5 '' '']]");
    KEYS("");
}

Test(cancel, cleans_up_half_a_job)
{
    ask("HSET s:{q}:jobs half %b", "\1\0x", (size_t)3);
    ask("HSET s:{q}:attempts half x");
    ask("ZADD s:{q}:due 5 member");
    ask("ZADD s:{q}:dead 6 corpse");
    RUN("cancel", "0 half 0 member 0 corpse 0",
        "[U ['half' 3 T 'x' '" REC "'] ['member' 1 5 '' ''] ['corpse' 3 6 '' '']]");
    KEYS("");
}

/* The header alone is in the answer, so here it shows how far a header goes. */
Test(cancel, shows_every_form_of_header)
{
    static const char *const header[] = {
        "\\01\\00",
        "\\01\\01\\05",
        "\\01\\02\\05",
        "\\01\\03\\05\\05",
        "\\01\\04\\05",
        "\\01\\05\\05\\05",
        "\\01\\06\\05\\05",
        "\\01\\07\\05\\05\\05",
        "\\01\\01\\80\\01",
        "\\01\\01\\ff\\7f",
        "\\01\\01\\ff\\ff\\ff\\ff\\0f",
        "\\01\\02\\ff\\ff\\ff\\ff\\ff\\ff\\7f",
        "\\01\\07\\81\\00\\82\\83\\00\\84\\85\\86\\00",
    };

    for (size_t i = 0; i < sizeof header / sizeof *header; i++) {
        given("schedule", text("0 a +5 0 %sbody", header[i]));
        RUN("cancel", "0 a 0", text("[U ['a' 1 T+5 '' '%s']]", header[i]));
    }
}

Test(cancel, of_a_job_that_no_record_follows_asks_nothing_of_next)
{
    given("schedule", "0 a +5 0 " REC);
    ask("CONFIG RESETSTAT");
    given("cancel", "0 a 0");
    cr_assert_eq(calls("hdel"), 2, "of jobs and of attempts");
}

Test(cancel, stops_after_256_KiB_of_records)
{
    static char body[131073] = {1, 0};
    const char *argv[] = {"0", "a", "+5", "0", body, "b", "+5", "0", body, "c", "+5", "0", body};
    size_t len[] = {1, 1, 2, 1, 131072, 1, 2, 1, 131072, 1, 2, 1, 2};

    run_bytes("schedule", 13, argv, len);
    heard();
    RUN("cancel", "0 a 0 b 0 c 0",
        "[U ['a' 1 T+5 '' '" REC "'] ['b' 1 T+5 '' '" REC "'] ['c' 1 T+5 '' '" REC "']]");
    KEYS("");
    len[8]++;
    run_bytes("schedule", 13, argv, len);
    RUN("cancel", "0 a 0 b 0 c 0", "[U ['a' 1 T+5 '' '" REC "'] ['b' 1 T+5 '' '" REC "']]");
    KEYS("due c:T+5 | jobs c=" REC " | t c:T+4");
}

/* An empty one too: nothing else would ever find it. */
Test(cancel, of_a_record_in_no_set_removes_it_whatever_it_is)
{
    ask("HSET s:{q}:jobs a %b b %b", "", (size_t)0, "\2x", (size_t)2);
    RUN("cancel", "0 a 0 b 0 c 0", "[U ['a' 3 T '' ''] ['b' 3 T '' ''] 'ENOENT']");
    KEYS("");
}
