/* SPDX-License-Identifier: MIT */
/* A priority is a part of a millisecond of the score in due, and of nothing else. */
#include "script.h"

SCRIPTS(priority);

#define HIGH "\\02\\00\\03Q\\01\\ff"
#define LOW "\\02\\00\\03Q\\01\\01"

static void scores_are(const char *expected)
{
    redisReply *r = ask("ZRANGE s:{q}:due 0 -1 WITHSCORES");
    const char *out = "";

    for (size_t i = 0; i < r->elements; i += 2) {
        double after = strtod(r->element[i + 1]->str, NULL) - (double)T;
        out = text("%s%s%s:%.10g", out, i ? " " : "", r->element[i]->str, after);
    }
    same(__FILE__, __LINE__, "due", out, expected);
}

Test(priority, orders_jobs_of_the_same_millisecond_and_no_others)
{
    given("schedule",
          "0 p +5 0 " REC " l +5 0 " LOW " h +5 0 " HIGH " q +4 0 " REC " r +6 0 " HIGH);
    scores_are("q:4 h:4.750976562 l:4.999023438 p:5 r:5.750976562");
    now_at(4);
    RUN("claim", "0 me 1000 9",
        "[U+4000 0 T+5 0 0 0 0 ['q' 2 T+1004 '1 U+4001 me 1 10 U+4000 T+4 ' "
        "'" REC "' 0]]");
    RUN("depth", "0", "[U+4000 4 1 0 0 0 '']");
    now_at(5);
    RUN("depth", "0", "[U+5000 4 1 0 0 0 '']");
    RUN("claim", "0 me 1000 2",
        "[U+5000 T+5 T+6 0 0 0 0 ['h' 2 T+1005 '2 U+5001 me 1 10 U+5000 T+5 q=255 ' '" HIGH
        "' 0] ['l' 2 T+1005 '2 U+5002 me 1 10 U+5000 T+5 q=1 ' '" LOW "' 0]]");
    ask("FLUSHALL");
}

Test(priority, is_kept_by_all_that_put_a_job_back)
{
    given("schedule", "0 h +0 0 " HIGH " l +0 0 " LOW);
    given("claim", "0 me 10 2");
    given("release", "0 me l U+2");
    scores_are("l:-0.0009765625");
    given("retry", "0 me h U+1 7 why");
    scores_are("l:-0.0009765625 h:6.750976562");
    HEARD("");
    RUN("get", "0 h l",
        "[U ['h' 1 T+7 '2 U+1 me 1 10 U T+7 q=255 why' '" HIGH
        "'] ['l' 1 T '2 U+2 me 0 10 U T q=1 ' '" LOW "']]");
    given("reschedule", "0 h +9 0");
    scores_are("l:-0.0009765625 h:8.750976562");
    given("reschedule_all", "0 1 '' '' 0 100 '' 0 +9 0");
    scores_are("h:8.750976562 l:8.999023438");
    given("reschedule", "0 l +0 0");
    given("claim", "0 me 10 0 l");
    now_at(10);
    given("sweep", "0");
    scores_are("h:8.750976562 l:9.999023438");
    ask("HDEL s:{q}:attempts l h");
    given("claim", "0 me 10 2");
    ask("HDEL s:{q}:attempts l h");
    given("mend", "0 l h");
    scores_are("h:9.750976562 l:9.999023438");
    ask("FLUSHALL");
}

/* Events come in any order. A job that is asked for by its id is claimed all the same. */
Test(priority, goes_before_what_an_event_names)
{
    given("schedule", "0 p +0 0 " REC " l +0 0 " LOW " h +0 0 " HIGH);
    RUN("claim", "0 me 1000 -1 l x",
        "[U T 0 0 0 0 0 ['h' 2 T+1000 '2 U+1 me 1 10 U T q=255 ' '" HIGH "' 0]]");
    RUN("claim", "0 me 1000 -1 p",
        "[U T 0 0 0 0 0 ['p' 2 T+1000 '1 U+2 me 1 10 U T ' '" REC "' 1]]");
    given("release", "0 me h U+1 p U+2");
    RUN("claim", "0 me 1000 0 l",
        "[U T 0 0 0 0 0 ['l' 2 T+1000 '2 U+3 me 1 10 U T q=1 ' '" LOW "' 1]]");
    RUN("claim", "0 me 1000 -1 l x", "[U T 0 0 0 0 0]");
    RUN("claim", "0 me 1000 -1", "[U T 0 0 0 0 0]");
    ask("FLUSHALL");
}

Test(priority, of_a_tagged_job_stands_beside_its_mark)
{
    given("schedule", "0 a +0 0 \\02\\00\\06Q\\01\\07T\\01a");
    RUN("claim", "0 me 1000 1",
        "[U 0 0 0 0 0 0 ['a' 2 T+1000 '2 U+1 me 1 10 U T x=1,q=7 ' '\\02\\00\\06Q\\01\\07T\\01a' "
        "0]]");
    given("done", "0 me a U+1");
    KEYS("seq U+1");
}

Test(priority, of_another_form_cannot_be_read)
{
    static const char *const bad[] = {"\\02\\00\\02Q\\00", "\\02\\00\\03Q\\01\\00",
                                      "\\02\\00\\04Q\\02\\01\\01",
                                      "\\02\\00\\06Q\\01\\01Q\\01\\01"};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        given("schedule", text("0 a +5 2 %s", bad[i]));
        RUN("get", "0 a", "[U 'EDATA']");
        scores_are("a:5");
    }
    given("cancel", "0 a 0");
}

Test(priority, is_seen_by_touch_and_arm_as_its_millisecond)
{
    given("schedule", "0 h +5 0 " HIGH " p +5 0 " REC);
    RUN("touch", "0 me 1000 9 0 0 1 1 9", "[U 0 T+5 0 0 0 0 0 0 0 0 0 T+999 '+T+5']");
    ask("DEL s:{q}:t:h");
    RUN("arm", "'0 600' 0", "[U T+600 0]");
    cr_assert_eq(ask("PEXPIRETIME s:{q}:t:h")->integer, T + 4);
    ask("FLUSHALL");
}

Test(priority, is_shown_by_a_list_in_its_order)
{
    given("schedule", "0 p +5 0 " REC " l +5 0 " LOW " h +5 0 " HIGH);
    RUN("list", "0 1 1 '' ''", "[U 1 ['h' 1 T+5 '' '" HIGH "']]");
    RUN("list", text("0 1 1 %lld.7509765625 h", (long long)T + 4),
        "[U 1 ['l' 1 T+5 '' '" LOW "']]");
    given("cancel", "0 h 0");
    RUN("list", text("0 1 1 %lld.7509765625 h", (long long)T + 4),
        "[U 1 ['l' 1 T+5 '' '" LOW "']]");
    RUN("list", text("0 1 1 %lld.9990234375 l", (long long)T + 4),
        "[U 0 ['p' 1 T+5 '' '" REC "']]");
    given("cancel", "0 l 0");
    RUN("list", text("0 1 1 %lld.9990234375 l", (long long)T + 4),
        "[U 0 ['p' 1 T+5 '' '" REC "']]");
    given("cancel", "0 p 0");
}
