/* SPDX-License-Identifier: MIT */
/* Unique keys: which job a call is about, and who holds a key when. */
#include "script.h"

SCRIPTS(unique);
SCRIPTS(debounce);

/* Until its end, or its start, the key k; the key l. */
#define UNIQUE "\\02\\00\\04U\\02ek"
#define UNTIL_START "\\02\\00\\04U\\02sk"
#define UNIQUE_L "\\02\\00\\04U\\02el"
#define TAGGED "\\02\\00\\07T\\01aU\\02ek"

static void index_is(const char *expected)
{
    same(__FILE__, __LINE__, "index", show(ask("ZRANGE s:{q}:index 0 -1")), expected);
}

/* ---- which job ---- */
Test(unique, a_call_whose_key_is_held_is_about_the_job_that_holds_it)
{
    given("schedule", "0 a +50 0 " UNIQUE "old");
    RUN("schedule", "0 b +5 0 " UNIQUE "new", "[U 'EEXIST']");
    RUN("schedule", "0 b +5 1 " UNIQUE "new", "[U ['a' 1 T+50 '' '" UNIQUE "']]");
    KEYS("due a:T+50 | jobs a=" UNIQUE "old | index 'u k a' | t a:T+49");
    RUN("schedule", "0 b +5 2 " UNIQUE "new", "[U ['a' 1 T+5 '' '" UNIQUE "' 1]]");
    KEYS("due a:T+5 | jobs a=" UNIQUE "new | index 'u k a' | t a:T+4");
    RUN("schedule", "0 b +7 4 " UNIQUE "b", "[U ['a' 1 T+7 '' '" UNIQUE "' 2]]");
    RUN("schedule", "0 b +6 3 " UNIQUE "b", "[U ['a' 1 T+6 '' '" UNIQUE "' 2]]");
    RUN("schedule", "0 b +9 5 " UNIQUE "b", "[U ['a' 1 T+9 '' '" UNIQUE "' 2]]");
    KEYS("due a:T+9 | jobs a=" UNIQUE "b | index 'u k a' | t a:T+8");
    given("claim", "0 me 1000 0 a");
    given("cancel", "0 a 0");
}

/* The id of the call does not count, even if a job has it. */
Test(unique, leaves_the_job_of_the_id_alone)
{
    given("schedule", "0 a +50 0 " UNIQUE " b +60 0 " REC "b");
    RUN("schedule", "0 b +5 2 " UNIQUE "new", "[U ['a' 1 T+5 '' '" UNIQUE "' 1]]");
    KEYS("due a:T+5 b:T+60 | jobs a=" UNIQUE "new b=" REC "b | index 'u k a' | t a:T+4 b:T+59");
    given("cancel", "0 a 0 b 0");
    KEYS("");
}

Test(unique, of_a_key_that_is_free_the_id_counts)
{
    given("schedule", "0 a +50 0 " REC "a");
    RUN("schedule", "0 a +5 0 " UNIQUE, "[U 'EEXIST']");
    RUN("schedule", "0 a +5 1 " UNIQUE, "[U ['a' 1 T+50 '' '" REC "']]");
    RUN("schedule", "0 a +5 3 " UNIQUE, "[U ['a' 1 T+5 '' '" REC "' 2]]");
    index_is("[]");
    RUN("schedule", "0 a +5 2 " UNIQUE, "[U T+5]");
    index_is("['u k a']");
    RUN("schedule", "0 a +5 2 " UNIQUE_L, "[U T+5]");
    index_is("['u l a']");
    RUN("schedule", "0 b +5 0 " UNIQUE, "[U T+5]");
    RUN("schedule", "0 b +5 2 " UNIQUE_L, "[U ['a' 1 T+5 '' '" UNIQUE_L "' 1]]");
    index_is("['u k b' 'u l a']");
    given("cancel", "0 a 0 b 0");
}

Test(unique, is_no_key_that_begins_with_it)
{
    given("schedule", "0 a +5 0 \\02\\00\\05U\\03ekk b +5 0 \\02\\00\\05U\\03ek! c +5 0 " UNIQUE);
    index_is("['u k c' 'u k! b' 'u kk a']");
    RUN("schedule", "0 d +5 1 " UNIQUE, "[U ['c' 1 T+5 '' '" UNIQUE "']]");
    given("cancel", "0 a 0 b 0 c 0");
}

Test(unique, refuses_a_time_that_is_too_far_and_changes_nothing)
{
    given("schedule", "0 a +5 0 " UNIQUE);
    RUN("schedule", "0 b +400000000000 2 " UNIQUE, "[U 'EINVAL']");
    KEYS("due a:T+5 | jobs a=" UNIQUE " | index 'u k a' | t a:T+4");
    given("cancel", "0 a 0");
}

/* ---- in one batch ---- */
Test(unique, of_two_of_one_key_in_a_batch_answers_the_first)
{
    RUN("schedule", "0 a +5 0 " UNIQUE " b +6 0 " UNIQUE " c +7 0 " REC, "[U T+5]");
    KEYS("due a:T+5 | jobs a=" UNIQUE " | index 'u k a' | t a:T+4");
    RUN("schedule", "0 b +6 2 " UNIQUE " a +7 2 " REC, "[U ['a' 1 T+6 '' '" UNIQUE "' 1]]");
    RUN("schedule", "0 a +7 2 " REC " b +6 2 " UNIQUE, "[U T+7]");
    KEYS("due a:T+7 | jobs a=" REC " | t a:T+6");
    RUN("schedule", "0 b +6 2 " UNIQUE " a +7 2 " REC, "[U T+6 T+7]");
    given("cancel", "0 a 0 b 0");
}

Test(unique, of_a_hundred_keys_is_answered_in_one_call)
{
    char *args = text("0");
    char *ids = text("0");

    for (int i = 0; i < 100; i++) {
        args = text("%s j%03d +5 0 \\02\\00\\07U\\05ek%03d", args, i, i);
        ids = text("%s j%03d 0", ids, i);
    }
    cr_assert_eq(run("schedule", args)->elements, 101);
    cr_assert_eq(ask("ZCARD s:{q}:index")->integer, 100);
    heard();
    cr_assert_eq(run("schedule", args)->elements, 101);
    given("cancel", ids);
    KEYS("");
}

/* As long as no more than 256 KiB were read to find who holds them; who asked asks again. */
Test(unique, no_key_more_is_looked_for_after_256_KiB)
{
    static char k[131072] = "\2\0\4U\2ek";
    static char l[131073] = "\2\0\4U\2el";
    const char *argv[] = {"0", "a", "+5", "0", k, "b", "+5", "0", l, "c", "+5", "0", "\2\0\4U\2em"};
    size_t len[] = {1, 1, 2, 1, sizeof k, 1, 2, 1, sizeof l - 1, 1, 2, 1, 7};
    const char *kept = "0 x +9 1 " UNIQUE " y +9 1 " UNIQUE_L " z +9 1 \\02\\00\\04U\\02em";

    run_bytes("schedule", 13, argv, len);
    cr_assert_eq(run("schedule", kept)->elements, 1 + 3);
    given("cancel", "0 a 0 b 0 c 0");
    len[8] = sizeof l;
    run_bytes("schedule", 13, argv, len);
    RUN("schedule", kept, "[U ['a' 1 T+5 '' '" UNIQUE "'] ['b' 1 T+5 '' '" UNIQUE_L "']]");
    given("cancel", "0 a 0 b 0 c 0");
}

/* ---- until when ---- */
Test(unique, a_key_is_held_until_the_end_of_its_job)
{
    given("schedule", "0 a +0 0 " UNIQUE);
    given("claim", "0 me 1000 1");
    KEYS("run a:T+1000 | jobs a=" UNIQUE " | attempts a=2 U+1 me 1 10 U T x=1  | index 'u k a' | "
         "seq U+1");
    RUN("schedule", "0 b +5 0 " UNIQUE, "[U 'EEXIST']");
    RUN("schedule", "0 b +5 1 " UNIQUE, "[U ['a' 2 T+1000 '2 U+1 me 1 10 U T x=1 ' '" UNIQUE "']]");
    RUN("schedule", "0 b +5 2 " UNIQUE, "[U 'EBUSY']");
    given("retry", "0 me a U+1 5 later");
    RUN("schedule", "0 b +5 0 " UNIQUE, "[U 'EEXIST']");
    given("claim", "0 me 1000 0 a");
    now_at(5);
    given("claim", "0 me 1000 1");
    given("done", "0 me a U+5001");
    KEYS("seq U+5001");
    RUN("schedule", "0 b +5 0 " UNIQUE, "[U+5000 T+10]");
    given("cancel", "0 b 0");
}

Test(unique, until_start_a_key_is_free_from_the_first_claim_on)
{
    given("schedule", "0 a +0 0 " UNTIL_START);
    RUN("schedule", "0 b +5 0 " UNTIL_START, "[U 'EEXIST']");
    given("claim", "0 me 1000 1");
    index_is("[]");
    RUN("schedule", "0 b +5 0 " UNTIL_START, "[U T+5]");
    given("release", "0 me a U+1");
    index_is("['u k b']");
    RUN("schedule", "0 c +5 1 " UNIQUE, "[U ['b' 1 T+5 '' '" UNTIL_START "']]");
    given("cancel", "0 b 0");
    RUN("schedule", "0 c +5 0 " UNIQUE, "[U T+5]");
    given("cancel", "0 a 0 c 0");
    KEYS("seq U+1");
}

Test(unique, a_touch_that_claims_frees_it_too)
{
    given("schedule", "0 a +1 0 " UNTIL_START);
    now_at(1);
    given("touch", "0 me 1000 100 0 0 1 1 24");
    index_is("[]");
    given("cancel", "0 a 0");
    ask("FLUSHALL");
}

/* Each way to die, and the way back. */
static void dies(const char *how, const char *args)
{
    given("schedule", "0 a +0 0 \\02\\01\\01\\04U\\02ek");
    if (strcmp(how, "kill") != 0) {
        given("claim", "0 me 10 1");
    }
    if (strcmp(how, "sweep") == 0) {
        now_at(10);
    }
    index_is("['u k a']");
    given(how, args);
    index_is("[]");
    cr_assert_eq(ask("ZCARD s:{q}:dead")->integer, 1, "%s", how);

    given("schedule", "0 b +5 0 " UNIQUE);
    same(__FILE__, __LINE__, how, show(run("reschedule", "0 a +5 0")->element[1]), "'EEXIST'");
    redisReply *r = run("reschedule_all", "0 3 '' '' 0 100 '' 0 +0 0");
    cr_assert_eq(r->element[1]->integer, 0, "%s", how);
    index_is("['u k b']");
    given("cancel", "0 b 0");
    given("reschedule", "0 a +5 0");
    index_is("['u k a']");
    given("cancel", "0 a 0");
    ask("DEL s:{q}:seq");
    KEYS("");
    now_at(0);
}

Test(unique, a_key_is_free_when_its_job_dies_and_taken_again_when_it_waits_again)
{
    dies("fail", "0 me a U+1 bad");
    dies("retry", "0 me a U+1 5 bad");
    dies("kill", "0 a bad");
    dies("sweep", "0");
}

/* Nobody has swept: it is dead all the same. */
Test(unique, of_a_job_whose_last_lease_ended_a_key_is_free)
{
    given("schedule", "0 a +0 0 \\02\\01\\01\\04U\\02ek");
    given("claim", "0 me 10 1");
    RUN("schedule", "0 b +5 0 " UNIQUE, "[U 'EEXIST']");
    now_at(10);
    RUN("schedule", "0 b +5 0 " UNIQUE, "[U+10000 T+15]");
    index_is("['u k b']");
    RUN("reschedule", "0 a +5 0", "[U+10000 'EEXIST']");
    given("sweep", "0");
    given("cancel", "0 a 0 b 0");
}

/* Its holder comes late: it may say how the run ended, and not go on beside the one that has the
 * key now. */
Test(unique, a_claim_whose_key_was_taken_when_its_lease_was_over_does_not_go_on)
{
    static const char *const late[] = {"renew 500", "release", "retry '' why", "retry ~5 why"};

    for (size_t i = 0; i < sizeof late / sizeof *late; i++) {
        const char *more = strchr(late[i], ' ');
        int len = more ? (int)(more - late[i]) : (int)strlen(late[i]);
        now_at(0);
        given("schedule", "0 a +0 0 \\02\\01\\01\\04U\\02ek");
        given("claim", "0 me 10 1");
        now_at(10);
        given("schedule", "0 b +5 0 " UNIQUE);
        RUN(text("%.*s", len, late[i]), text("0 me a U+1%s", more ? more : ""),
            "[U+10000 'EGONE']");
        index_is("['u k b']");
        given("sweep", "0");
        given("cancel", "0 a 0 b 0");
        ask("DEL s:{q}:seq");
    }
}

Test(unique, a_claim_whose_key_was_taken_when_its_lease_was_over_may_be_ended)
{
    given("schedule", "0 a +0 0 \\02\\01\\01\\04U\\02ek c +0 0 \\02\\01\\01\\04U\\02el");
    given("claim", "0 me 10 2");
    now_at(10);
    given("schedule", "0 b +5 0 " UNIQUE " d +5 0 " UNIQUE_L);
    RUN("done", "0 me a U+1", "[U+10000 1]");
    RUN("fail", "0 me c U+2 why", "[U+10000 1]");
    index_is("['u k b' 'u l d']");
    given("cancel", "0 b 0 c 0 d 0");
}

/* One that has tags, or held its key until it began; and one whose lease is not over, whatever the
 * index says. */
Test(unique, a_claim_that_has_lost_no_key_goes_on_when_its_lease_is_over)
{
    given("schedule", "0 a +0 0 " TAG_A " b +0 0 " UNTIL_START " c +0 0 " UNIQUE_L);
    given("claim", "0 me 10 3");
    now_at(10);
    RUN("renew", "0 me a U+1 5 b U+2 5 c U+3 5", "[U+10000 T+15 T+15 T+15]");
    ask("ZREM s:{q}:index %s", "u l c");
    RUN("renew", "0 me c U+3 9", "[U+10000 T+19]");
    ask("ZADD s:{q}:index 0 %s", "u l c");
    now_at(30);
    RUN("release", "0 me a U+1 b U+2", "[U+30000 1 1]");
    RUN("retry", "0 me c U+3 5 x", "[U+30000 T+35]");
    given("cancel", "0 a 0 b 0 c 0");
}

Test(unique, no_record_is_read_for_a_plain_job_whose_lease_is_over)
{
    given("schedule", "0 a +0 0 " REC);
    given("claim", "0 me 10 1");
    now_at(10);
    ask("CONFIG RESETSTAT");
    RUN("renew", "0 me a U+1 0", "[U+10000 T+10]");
    RUN("retry", "0 me a U+1 5 x", "[U+10000 T+15]");
    cr_assert_eq(calls("hget"), 0);
    given("cancel", "0 a 0");
}

/* It is dead, though nobody has swept: a renewal that comes late takes no key away. */
Test(unique, a_dead_job_that_waits_again_takes_the_key_of_one_whose_last_lease_ended)
{
    given("schedule", "0 a +0 0 \\02\\01\\01\\04U\\02ek");
    given("schedule", "0 b +0 0 \\02\\01\\01\\04U\\02el");
    given("claim", "0 me 10 2");
    now_at(10);
    given("schedule", "0 c +5 0 " UNIQUE);
    given("kill", "0 c x");
    ask("ZADD s:{q}:index 0 %s", "u k a"); /* as it was before that schedule */
    given("reschedule", "0 c +5 0");
    index_is("['u k c' 'u l b']");
    RUN("renew", "0 me a U+1 500 b U+2 500", "[U+10000 'EGONE' T+510]");
    index_is("['u k c' 'u l b']");
    given("sweep", "0");
    given("cancel", "0 a 0 b 1 c 0");
    given("done", "0 me b U+2");
}

Test(unique, of_two_dead_jobs_with_one_key_one_lives_again)
{
    given("schedule", "0 a +5 0 " UNIQUE);
    given("kill", "0 a x");
    given("schedule", "0 b +5 0 " UNIQUE);
    given("kill", "0 b x");
    redisReply *r = run("reschedule", "0 a +5 0 b +5 0 a +6 0");
    cr_assert_eq(r->elements, 4);
    same(__FILE__, __LINE__, "b", show(r->element[2]), "'EEXIST'");
    cr_assert_eq(r->element[1]->type, REDIS_REPLY_ARRAY);
    cr_assert_eq(r->element[3]->type, REDIS_REPLY_ARRAY);
    index_is("['u k a']");
    given("kill", "0 a x");
    r = run("reschedule_all", "0 3 '' '' 0 100 '' 0 +0 0");
    cr_assert_eq(r->element[1]->integer, 1);
    cr_assert_eq(ask("ZCARD s:{q}:dead")->integer, 1);
    given("cancel", "0 a 0 b 0");
    KEYS("");
}

Test(unique, loses_what_is_forwarded_or_cancelled_in_a_selection)
{
    given("schedule", "0 a +0 0 " UNIQUE);
    given("configure", "0 forward=list");
    given("claim", "0 me 1000 9");
    index_is("[]");
    given("configure", "0 forward=");
    given("schedule", "0 a +0 0 " TAGGED);
    index_is("['t a a' 'u k a']");
    given("cancel_all", "0 1 '' '' 0 100 '' 0");
    index_is("[]");
    ask("FLUSHALL");
}

/* What was asked of a run whose lease ended is over: the later of the two counts. */
Test(unique, a_job_that_was_asked_to_stop_and_lost_its_lease_waits_if_it_is_asked_to)
{
    given("schedule", "0 a +0 0 " UNIQUE);
    given("claim", "0 me 10 1");
    given("cancel", "0 a 1");
    now_at(10);
    RUN("schedule", "0 b +5 3 " UNIQUE, "[U+10000 ['a' 1 T+10 '' '" UNIQUE "' 2]]");
    KEYS("due a:T+10 | jobs a=" UNIQUE " | index 'u k a' | seq U+1");
    given("cancel", "0 a 0");
}

/* It waits again after its run, and does not take the key that it had until its start. */
Test(unique, until_start_a_key_is_not_taken_again_after_a_run)
{
    given("schedule", "0 a +0 0 " UNTIL_START);
    given("claim", "0 me 1000 1");
    given("reschedule", "0 a +5 1");
    given("schedule", "0 b +5 0 " UNTIL_START);
    given("done", "0 me a U+1");
    index_is("['u k b']");
    RUN("schedule", "0 c +5 1 " UNTIL_START, "[U ['b' 1 T+5 '' '" UNTIL_START "']]");
    RUN("check", "0 jobs 0 100", "[U 0 2 16 0]");
    given("cancel", "0 a 0 b 0");
}

/* ---- leaks ---- */
/* asynq's lock stays where the id is a task's already, and blocks what comes later. */
Test(unique, an_entry_that_was_left_behind_blocks_nothing)
{
    static const char *const leaked[] = {"gone", "p", "l", "dead", "u", "{x}", ""};

    given("schedule", "0 p +5 0 " REC " l +5 0 " UNIQUE_L " dead +5 0 " UNIQUE
                      " u +5 0 \\02\\00\\08U\\02ekV\\01b");
    given("kill", "0 dead x");
    for (size_t i = 0; i < sizeof leaked / sizeof *leaked; i++) {
        ask("ZADD s:{q}:index 0 %s", text("u k %s", leaked[i]));
    }
    RUN("schedule", "0 b +5 0 " UNIQUE, "[U T+5]");
    index_is("['u k b' 'u l l']");
    given("cancel", "0 p 0 l 0 dead 0 u 0 b 0");
    KEYS("");
}

Test(unique, an_entry_of_a_job_that_is_kept_blocks_nothing)
{
    given("schedule", "0 a +5 0 \\02\\00\\0bK\\0560000U\\02ek");
    given("cancel", "0 a 0");
    ask("ZADD s:{q}:index 0 %s", "u k a");
    RUN("schedule", "0 b +5 0 " UNIQUE, "[U T+5]");
    index_is("['u k b']");
    given("cancel", "0 a 0 b 0");
    ask("FLUSHALL");
}

/* Only a job that runs has a mark, or a record that follows. */
Test(unique, a_key_is_held_whatever_was_left_of_a_run)
{
    given("schedule", "0 a +0 0 " UNIQUE);
    ask("HSET s:{q}:attempts a %s", "2 7 me 1 10 5 5 d=9,j=1 ");
    RUN("schedule", "0 b +5 0 " UNIQUE, "[U 'EEXIST']");
    ask("HSET s:{q}:next a %b", "\2\0\4U\2el", (size_t)7);
    ask("ZADD s:{q}:index 0 %s", "u l a");
    RUN("schedule", "0 b +5 0 " UNIQUE_L, "[U T+5]");
    ask("FLUSHALL");
}

Test(unique, a_key_is_held_by_a_run_whose_attempt_cannot_be_read)
{
    given("schedule", "0 a +0 0 " UNIQUE);
    given("claim", "0 me 10 1");
    ask("HSET s:{q}:attempts a rubbish");
    ask("HSET s:{q}:next a %b", "\2\0\4U\2el", (size_t)7);
    ask("ZADD s:{q}:index 0 %s", "u l a");
    RUN("schedule", "0 b +5 0 " UNIQUE_L, "[U T+5]");
    now_at(20);
    RUN("schedule", "0 c +5 0 " UNIQUE, "[U+20000 'EEXIST']");
    ask("FLUSHALL");
}

/* Nobody can tell that it has not been claimed. */
Test(unique, until_start_a_key_is_free_if_the_attempt_cannot_be_read)
{
    given("schedule", "0 a +5 0 " UNTIL_START);
    ask("HSET s:{q}:attempts a rubbish");
    RUN("schedule", "0 b +5 0 " UNIQUE, "[U T+5]");
    index_is("['u k b']");
    given("cancel", "0 a 0 b 0");
}

/* ---- looking and mending ---- */
Test(unique, keys_are_checked_against_the_jobs_and_mended_by_them)
{
    given("schedule", "0 a +5 0 " UNIQUE " b +0 0 \\02\\00\\04U\\02sl d +5 0 \\02\\00\\04U\\02em");
    given("claim", "0 me 1000 1");
    given("kill", "0 d x");
    RUN("check", "0 jobs 0 100", "[U 0 3 24 0]");
    RUN("check", "0 index 0 100", "[U 0 1 6 0]");

    ask("ZREM s:{q}:index %s", "u k a");
    ask("ZADD s:{q}:index 0 %s 0 %s 0 %s", "u l b", "u m d", "u k");
    RUN("check", "0 jobs 0 100", "[U 0 3 24 0 ['a' 'tag']]");
    RUN("check", "0 index 0 100",
        "[U 0 3 16 0 ['u k' 'entry'] ['u l b' 'entry'] ['u m d' 'entry']]");
    RUN("mend", "0 a 'u k' 'u l b' 'u m d' 'u k a'", "[U 'tag' 'entry' 'entry' 'entry' '']");
    index_is("['u k a']");

    ask("ZREM s:{q}:due a");
    RUN("mend", "0 a", "[U 'none']");
    index_is("[]");
    ask("FLUSHALL");
}

/* ---- earlier, later ---- */
Test(schedule, with_earlier_or_later_moves_only_the_time_of_one_that_waits)
{
    five();
    RUN("schedule", "0 w +480 3 " REC "new", "[U+20000 ['w' 1 T+500 '' '" REC "' 0]]");
    RUN("schedule", "0 w +479 3 " REC "new", "[U+20000 ['w' 1 T+499 '' '" REC "' 2]]");
    RUN("schedule", "0 w +479 4 " REC "new", "[U+20000 ['w' 1 T+499 '' '" REC "' 0]]");
    RUN("schedule", "0 w +480 4 " REC "new", "[U+20000 ['w' 1 T+500 '' '" REC "' 2]]");
    RUN("schedule", "0 w +400000000000 4 " REC "new", "[U+20000 'EINVAL']");
    KEYS(FIVE);
    RUN("schedule", "0 r +1 2 " REC " d +1 3 " REC "5", "[U+20000 'EBUSY' T+21]");
    RUN("schedule", "0 e +0 3 " REC " u +4 4 " REC "4",
        "[U+20000 ['e' 1 T+10 '1 U+1 me 1 10 U T ' '" REC "' 0] T+24]");
    RUN("schedule", "0 e +2 4 " REC, "[U+20000 ['e' 1 T+22 '1 U+1 me 1 10 U T ' '" REC "' 2]]");
    KEYS("due d:T+21 e:T+22 u:T+24 w:T+500 | run r:T+1000 | jobs d=" REC "5 e=" REC "e r=" REC
         "r u=" REC "4 w=" REC "w | attempts " ATTEMPT_E " " ATTEMPT_R
         " | seq U+4 | t d:T+21 e:T+21 u:T+23 w:T+499");
}

Test(schedule, with_earlier_makes_due_at_once_and_tells_of_it)
{
    given("schedule", "0 a +50 0 \\02\\00\\03Q\\01\\05old");
    RUN("schedule", "0 a +0 3 " REC "new", "[U ['a' 1 T '' '\\02\\00\\03Q\\01\\05' 2]]");
    HEARD("0 '0 a'");
    same(__FILE__, __LINE__, "record", show(ask("HGET s:{q}:jobs a")),
         "'\\02\\00\\03Q\\01\\05old'");
    cr_assert_eq(ask("ZCOUNT s:{q}:due %s %s", moments("T-1"), moments("T"))->integer, 1);
    given("cancel", "0 a 0");
}

/* ---- debounce ---- */
Test(debounce, puts_a_job_off_with_a_new_record)
{
    RUN("schedule", "0 a +5 5 " REC "1", "[U T+5]");
    now_at(3);
    RUN("schedule", "0 a +5 5 " REC "2", "[U+3000 ['a' 1 T+8 '' '" REC "' 2]]");
    now_at(6);
    RUN("schedule",
        "0 a +5 5 \\01\\01\\02"
        "3",
        "[U+6000 ['a' 1 T+11 '' '\\01\\01\\02' 2]]");
    KEYS("due a:T+11 | jobs a=\\01\\01\\02"
         "3 | t a:T+10");
    given("cancel", "0 a 0");
}

/* bullmq#2767: nothing limits for how long a job is put off. */
Test(debounce, puts_a_job_off_no_further_than_its_first_call_allows)
{
    RUN("schedule", "0 a +5 5:8 " REC "1", "[U T+5]");
    KEYS("due a:T+5 | jobs a=" REC "1 | attempts a=2 0 - 0 10 0 T+5 w=T+8  | t a:T+4");
    now_at(4);
    RUN("schedule", "0 a +5 5:100 " REC "2",
        "[U+4000 ['a' 1 T+8 '2 0 - 0 10 0 T+8 w=T+8 ' '" REC "' 2]]");
    now_at(5);
    RUN("schedule", "0 a +5 5 " REC "3",
        "[U+5000 ['a' 1 T+8 '2 0 - 0 10 0 T+8 w=T+8 ' '" REC "' 2]]");
    now_at(9);
    RUN("schedule", "0 a +5 5:8 " REC "4",
        "[U+9000 ['a' 1 T+9 '2 0 - 0 10 0 T+9 w=T+8 ' '" REC "' 2]]");
    RUN("claim", "0 me 1000 1",
        "[U+9000 0 0 0 0 0 0 ['a' 2 T+1009 '1 U+9001 me 1 10 U+9000 T+9 ' '" REC "4' 0]]");
    given("retry", "0 me a U+9001 50 later");
    RUN("schedule", "0 a +5 5:8 " REC "5",
        "[U+9000 ['a' 1 T+14 '2 0 - 0 10 0 T+14 w=T+17 ' '" REC "' 2]]");
    given("cancel", "0 a 0");
    KEYS("seq U+9001");
}

Test(debounce, of_a_dead_job_is_a_new_life_with_a_limit_of_its_own)
{
    given("schedule", "0 a +5 5:8 " REC "1");
    given("kill", "0 a x");
    now_at(20);
    RUN("schedule", "0 a +5 5:8 " REC "2", "[U+20000 T+25]");
    KEYS("due a:T+25 | jobs a=" REC "2 | attempts a=2 0 - 0 10 0 T+25 w=T+28  | t a:T+24");
    given("cancel", "0 a 0");
}

Test(debounce, of_a_key_limits_the_job_that_holds_it)
{
    RUN("schedule", "0 a +5 5:8 " UNTIL_START "1", "[U T+5]");
    now_at(4);
    RUN("schedule", "0 b +5 5:8 " UNTIL_START "2",
        "[U+4000 ['a' 1 T+8 '2 0 - 0 10 0 T+8 w=T+8 ' '" UNTIL_START "' 2]]");
    index_is("['u k a']");
    now_at(8);
    given("claim", "0 me 1000 1");
    RUN("schedule", "0 b +5 5:8 " UNTIL_START "3", "[U+8000 T+13]");
    given("cancel", "0 b 0");
    given("done", "0 me a U+8001");
}

/* A delay that is longer than what is allowed from now on cannot be asked for; a moment can. */
Test(debounce, of_a_first_call_is_limited_too)
{
    RUN("schedule", "0 a T+50 5:8 " REC " b T+50 5 " REC, "[U T+8 T+50]");
    given("cancel", "0 a 0 b 0");
}
