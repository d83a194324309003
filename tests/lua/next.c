/* SPDX-License-Identifier: MIT */
/* Earlier, later and debounce of a job that runs: it waits again after its run, with the new
 * record. */
#include "script.h"

SCRIPTS(next);

/* The new record: two tries, the body new. */
#define OLD "\\01\\01\\01old"
#define NEW "\\01\\01\\02new"
#define NEWER "\\01\\01\\03newer"
#define PLAIN "1 U+1 me 1 1 U T "
#define AGAIN(more) "2 U+1 me 1 1 U T " more " "
#define RUNS(more, record) \
    "run r:T+1000 | jobs r=" OLD " | attempts r=" AGAIN(more) " | next r=" record " | seq U+1"
#define WAITS "due r:T+70 | jobs r=" NEW " | seq U+1 | t r:T+69"
#define GONE "seq U+1"
#define ROW(more, place) "[U ['r' 2 T+1000 '" AGAIN(more) "' '\\01\\01\\01' " place "]]"

/* r runs, by U+1; it has one try. */
static void running(void)
{
    ask("FLUSHALL");
    now_at(0);
    given("schedule", "0 r +0 0 " OLD);
    given("claim", "0 me 1000 0 r");
}

static void running_and(const char *schedule)
{
    running();
    given("schedule", schedule);
}

/* Each way in which a run ends. */
static const struct ending {
    const char *script, *args;
} endings[] = {
    {"done", "0 me r U+1"},        {"done", "0 * r U+1"},          {"retry", "0 me r U+1 5 why"},
    {"retry", "0 * r U+1 '' why"}, {"retry", "0 me r U+1 ~5 why"}, {"fail", "0 me r U+1 why"},
    {"fail", "0 * r U+1 why"},     {"release", "0 me r U+1"},      {"release", "0 * r U+1"},
};
enum { ENDINGS = sizeof endings / sizeof *endings };

static const char *const kinds[] = {"3", "4", "5", "5:100"};
enum { KINDS = sizeof kinds / sizeof *kinds };

Test(next, the_record_after_the_run_lies_apart_and_the_run_stays_as_it_is)
{
    for (size_t k = 0; k < 3; k++) {
        running();
        RUN("schedule", text("0 r +70 %s " NEW, kinds[k]), ROW("d=T+70,j=1", "1"));
        KEYS(RUNS("d=T+70,j=1", NEW));
        HEARD("");
        RUN("get", "0 r", "[U ['r' 2 T+1000 '" AGAIN("d=T+70,j=1") "' '" OLD "']]");
        RUN("renew", "0 me r U+1 1000", "[U T+1000]");
    }
}

/* asynq#1124: who has new data for a task cannot say so in each of its states. */
Test(next, an_upsert_takes_effect_in_any_state)
{
    for (size_t k = 0; k < KINDS; k++) {
        for (size_t i = 0; i < ENDINGS; i++) {
            running_and(text("0 r +70 %s " NEW, kinds[k]));
            RUN(endings[i].script, endings[i].args, "[U T+70]");
            HEARD("0 'T+70 r'");
            KEYS(k == 3 ? "due r:T+70 | jobs r=" NEW " | attempts r=2 0 - 0 2 0 T+70 w=T+100  | "
                          "seq U+1 | t r:T+69"
                        : WAITS);
            RUN(endings[i].script, endings[i].args, "[U 'EGONE']");
            now_at(70);
            RUN("claim", "0 me 1000 0 r",
                "[U+70000 0 0 0 0 0 0 ['r' 2 T+1070 '1 U+70001 me 1 2 U+70000 T+70 ' '" NEW
                "' 1]]");
        }
    }
    ask("FLUSHALL");
}

Test(next, the_end_of_the_lease_is_an_end_of_the_run)
{
    running_and("0 r +1070 3 " NEW);
    now_at(1000);
    RUN("sweep", "0", "[U+1000000 1 0 0 0]");
    KEYS("due r:T+1070 | jobs r=" NEW " | seq U+1 | t r:T+1069");
    HEARD("0 'T+1070 r'");
}

/* delayq puts a task that runs in its queue a second time: two runs at once, or the new data are
 * lost with the end of the first. */
Test(next, delayqs_reenqueue_while_running_is_one_run_after_the_other)
{
    running_and("0 r +0 5 " NEW);
    RUN("claim", "0 you 1000 100", "[U 0 0 0 0 0 0]");
    RUN("done", "0 me r U+1", "[U T]");
    HEARD("0 '0 r'");
    RUN("claim", "0 you 1000 100",
        "[U 0 0 0 0 0 0 ['r' 2 T+1000 '1 U+2 you 1 2 U T ' '" NEW "' 0]]");
    RUN("done", "0 you r U+2", "[U 1]");
    KEYS("seq U+2");
}

Test(next, replace_reject_and_keep_are_as_before)
{
    running_and("0 r +70 3 " NEW);
    RUN("schedule", "0 r +60 2 " NEWER, "[U 'EBUSY']");
    RUN("schedule", "0 r +60 0 " NEWER, "[U 'EEXIST']");
    RUN("schedule", "0 r +60 1 " NEWER,
        "[U ['r' 2 T+1000 '" AGAIN("d=T+70,j=1") "' '\\01\\01\\01']]");
    KEYS(RUNS("d=T+70,j=1", NEW));
}

/* ---- more than one ---- */
Test(next, what_follows_the_run_is_like_a_job_that_waits)
{
    running_and("0 r +70 3 " NEW);
    RUN("schedule", "0 r +80 3 " NEWER, ROW("d=T+70,j=1", "0"));
    RUN("schedule", "0 r +60 4 " NEWER, ROW("d=T+70,j=1", "0"));
    KEYS(RUNS("d=T+70,j=1", NEW));
    RUN("schedule", "0 r +60 3 " NEWER, ROW("j=1,d=T+60", "2"));
    RUN("schedule", "0 r +90 4 " NEWER, ROW("j=1,d=T+90", "2"));
    KEYS(RUNS("j=1,d=T+90", NEW));
    RUN("schedule", "0 r +80 5 " NEWER, ROW("j=1,d=T+80", "2"));
    KEYS(RUNS("j=1,d=T+80", NEWER));
    given("done", "0 me r U+1");
    KEYS("due r:T+80 | jobs r=" NEWER " | seq U+1 | t r:T+79");
}

/* bullmq#2767, across the end of a run. */
Test(next, a_debounce_that_began_in_a_run_ends_when_its_first_call_said)
{
    running_and("0 r +5 5:8 " NEW);
    KEYS(RUNS("d=T+5,j=1,w=T+8", NEW));
    now_at(4);
    given("schedule", "0 r +5 5:100 " NEWER);
    KEYS(RUNS("j=1,w=T+8,d=T+8", NEWER));
    given("done", "0 me r U+1");
    KEYS("due r:T+8 | jobs r=" NEWER " | attempts r=2 0 - 0 3 0 T+8 w=T+8  | seq U+1 | t r:T+7");
    now_at(6);
    RUN("schedule", "0 r +5 5:100 " NEW,
        "[U+6000 ['r' 1 T+8 '2 0 - 0 2 0 T+8 w=T+8 ' '\\01\\01\\02' 2]]");
    now_at(8);
    RUN("claim", "0 me 1000 0 r",
        "[U+8000 0 0 0 0 0 0 ['r' 2 T+1008 '1 U+8001 me 1 2 U+8000 T+8 ' '" NEW "' 1]]");
    given("schedule", "0 r +5 5:100 " NEWER);
    RUN("done", "0 me r U+8001", "[U+8000 T+13]");
}

Test(next, a_time_that_is_too_far_changes_nothing)
{
    running_and("0 r +70 3 " NEW);
    for (size_t k = 0; k < KINDS; k++) {
        RUN("schedule", text("0 r +315576000001 %s " NEWER, kinds[k]), "[U 'EINVAL']");
    }
    KEYS(RUNS("d=T+70,j=1", NEW));
}

Test(next, of_an_attempt_that_cannot_be_read_is_busy)
{
    static const char *const attempt[] = {"3 1 me 1 1 5 5 x=1 ", "2 1 me 1 1 5 5 ", "1 1 me"};

    running();
    for (size_t i = 0; i < sizeof attempt / sizeof *attempt; i++) {
        ask("HSET s:{q}:attempts r %s", attempt[i]);
        RUN("schedule", "0 r +70 3 " NEW, "[U 'EBUSY']");
        cr_assert_eq(redis_int(redis, "EXISTS s:{q}:next"), 0);
    }
}

/* ---- with cancel and reschedule ---- */
Test(next, the_later_of_it_and_a_cancel_counts)
{
    for (size_t i = 0; i < ENDINGS; i++) {
        running_and("0 r +70 5:100 " NEW);
        given("cancel", "0 r 1");
        KEYS("run r:T+1000 | jobs r=" OLD " | attempts r=" AGAIN("c=1") " | seq U+1");
        given(endings[i].script, endings[i].args);
        KEYS(GONE);

        running();
        given("cancel", "0 r 1");
        RUN("schedule", "0 r +70 3 " NEW, ROW("d=T+70,j=1", "1"));
        RUN("renew", "0 me r U+1 1000", "[U T+1000]");
        given(endings[i].script, endings[i].args);
        KEYS(WAITS);
    }
    ask("FLUSHALL");
}

Test(next, a_reschedule_moves_it_and_leaves_its_record)
{
    for (size_t i = 0; i < ENDINGS; i++) {
        running_and("0 r +90 3 " NEW);
        given("reschedule", "0 r +70 1");
        KEYS(RUNS("j=1,d=T+70", NEW));
        given(endings[i].script, endings[i].args);
        KEYS(WAITS);
    }
    ask("FLUSHALL");
}

/* The reschedule has made what follows: earlier and later move it, and nothing else of it. */
Test(next, a_job_that_is_to_wait_again_as_it_is_is_moved_and_debounced)
{
    running();
    given("reschedule", "0 r +70 1");
    RUN("schedule", "0 r +60 4 " NEW, ROW("d=T+70", "0"));
    RUN("schedule", "0 r +60 3 " NEW, ROW("d=T+60", "2"));
    cr_assert_eq(redis_int(redis, "EXISTS s:{q}:next"), 0);
    RUN("schedule", "0 r +70 5 " NEW, ROW("d=T+70,j=1", "2"));
    given("done", "0 me r U+1");
    KEYS(WAITS);
}

Test(next, selections_ask_it_too)
{
    running_and("0 r +70 3 " NEW);
    given("reschedule_all", "0 2 '' '' 0 100 '' 1 +60 0");
    KEYS(RUNS("j=1,d=T+60", NEW));
    given("cancel_all", "0 2 '' '' 0 100 '' 1");
    KEYS("run r:T+1000 | jobs r=" OLD " | attempts r=" AGAIN("c=1") " | seq U+1");
}

/* Who asks for all with a tag means those, too, that will have it. */
Test(next, a_selection_by_a_tag_finds_it_by_both_records)
{
    running_and("0 r +70 3 " TAG_A);
    RUN("cancel_all", "0 0 b '' 0 100 '' 1", "[U 0 0 '']");
    RUN("cancel_all", "0 0 a '' 0 100 '' 0", "[U 0 1 '']");
    RUN("cancel_all", "0 0 a '' 0 100 '' 1", "[U 0 1 '']");
    KEYS("run r:T+1000 | jobs r=" OLD " | attempts r=" AGAIN("c=1") " | seq U+1");

    ask("FLUSHALL");
    given("schedule", "0 r +0 0 " TAG_A);
    given("claim", "0 me 1000 0 r");
    given("schedule", "0 r +70 3 " NEW);
    RUN("reschedule_all", "0 0 a '' 0 100 '' 1 +60 0", "[U 0 1 '' T+60]");
    given("done", "0 me r U+1");
    KEYS("due r:T+60 | jobs r=" NEW " | seq U+1 | t r:T+59");
}

/* ---- a lease that is over, and no sweep has passed ---- */
static void ended(void)
{
    running_and("0 r +1070 5:1100 " NEW);
    now_at(1000);
}

Test(next, of_a_job_whose_lease_is_over_the_record_that_follows_is_shown)
{
    ended();
    const char *shown = "'" AGAIN("d=T+1070,j=1,w=T+1100") "' '" NEW "'";
    RUN("get", "0 r", text("[U+1000000 ['r' 1 T+1070 %s]]", shown));
    RUN("list", "0 2 10 '' ''", text("[U+1000000 0 ['r' 1 T+1070 %s]]", shown));
    RUN("schedule", "0 r +5 1 " NEWER,
        "[U+1000000 ['r' 1 T+1070 '" AGAIN("d=T+1070,j=1,w=T+1100") "' '\\01\\01\\02']]");
    given("sweep", "0");
    KEYS("due r:T+1070 | jobs r=" NEW " | attempts r=2 0 - 0 2 0 T+1070 w=T+1100  | seq U+1 | "
         "t r:T+1069");
}

Test(next, of_a_job_whose_lease_is_over_is_cancelled_killed_and_rescheduled_with_it)
{
    ended();
    given("cancel", "0 r 0");
    KEYS(GONE);

    ended();
    given("cancel_all", "0 1 '' '' 0 100 '' 0");
    KEYS(GONE);

    ended();
    given("kill", "0 r why");
    KEYS("dead r:T+1000 | jobs r=" NEW " | attempts r=1 U+1 me 1 1 U T why | seq U+1");

    ended();
    RUN("reschedule", "0 r +50 0",
        "[U+1000000 ['r' 1 T+1050 '2 0 - 0 2 0 T+1050 w=T+1100 ' '\\01\\01\\02']]");
    KEYS("due r:T+1050 | jobs r=" NEW " | attempts r=2 0 - 0 2 0 T+1050 w=T+1100  | seq U+1 | "
         "t r:T+1049");

    ended();
    given("reschedule_all", "0 1 '' '' 0 100 '' 0 +50 0");
    KEYS("due r:T+1050 | jobs r=" NEW " | attempts r=2 0 - 0 2 0 T+1050 w=T+1100  | seq U+1 | "
         "t r:T+1049");
}

Test(next, of_a_job_whose_lease_is_over_is_scheduled_like_one_that_waits)
{
    ended();
    given("schedule", "0 r +50 2 " NEWER);
    KEYS("due r:T+1050 | jobs r=" NEWER " | seq U+1 | t r:T+1049");

    ended();
    given("schedule", "0 r +50 3 " NEWER);
    KEYS("due r:T+1050 | jobs r=" NEW " | attempts r=2 0 - 0 2 0 T+1050 w=T+1100  | seq U+1 | "
         "t r:T+1049");

    ended();
    given("schedule", "0 r +50 4 " NEWER);
    KEYS("due r:T+1070 | jobs r=" NEW " | attempts r=2 0 - 0 2 0 T+1070 w=T+1100  | seq U+1 | "
         "t r:T+1069");

    ended();
    given("schedule", "0 r +500 5 " NEWER);
    KEYS("due r:T+1100 | jobs r=" NEWER " | attempts r=2 0 - 0 3 0 T+1100 w=T+1100  | seq U+1 | "
         "t r:T+1099");
}

/* ---- with a key, tags and a priority ---- */
#define KEY_K "\\02\\00\\04U\\02ek"
#define KEY_L "\\02\\00\\04U\\02el"
#define START_K "\\02\\00\\04U\\02sk"
#define TAG_B_Q5 "\\02\\00\\06Q\\01\\05T\\01b"

static void index_is(const char *expected)
{
    same(__FILE__, __LINE__, "index", show(ask("ZRANGE s:{q}:index 0 -1")), expected);
}

/* r runs with this record, and this one is to follow. */
static void running_with(const char *record, const char *next)
{
    ask("FLUSHALL");
    now_at(0);
    given("schedule", text("0 r +0 0 %s", record));
    given("claim", "0 me 1000 0 r");
    given("schedule", text("0 r +70 3 %s", next));
}

Test(next, a_key_is_held_over_to_the_next_life)
{
    for (size_t i = 0; i < ENDINGS; i++) {
        ask("FLUSHALL");
        now_at(0);
        given("schedule", "0 r +0 0 " KEY_K);
        given("claim", "0 me 1000 0 r");
        RUN("schedule", "0 b +70 3 " KEY_K "new",
            "[U ['r' 2 T+1000 '2 U+1 me 1 10 U T x=1,d=T+70,j=1 ' '" KEY_K "' 1]]");
        RUN("schedule", "0 b +5 0 " KEY_K, "[U 'EEXIST']");
        given(endings[i].script, endings[i].args);
        KEYS("due r:T+70 | jobs r=" KEY_K "new | index 'u k r' | seq U+1 | t r:T+69");
        RUN("schedule", "0 b +5 0 " KEY_K, "[U 'EEXIST']");
    }
    ask("FLUSHALL");
}

Test(next, another_key_is_held_from_the_call_on_and_the_old_one_until_the_end_of_the_run)
{
    for (size_t i = 0; i < ENDINGS; i++) {
        running_with(KEY_K, KEY_L);
        index_is("['u k r' 'u l r']");
        RUN("schedule", "0 b +5 0 " KEY_K, "[U 'EEXIST']");
        RUN("schedule", "0 c +5 0 " KEY_L, "[U 'EEXIST']");
        given(endings[i].script, endings[i].args);
        index_is("['u l r']");
        RUN("schedule", "0 b +5 0 " KEY_K " c +5 0 " KEY_L, "[U T+5 'EEXIST']");
    }

    running_with(KEY_K, KEY_L);
    given("cancel", "0 r 1");
    index_is("['u k r']");
    RUN("schedule", "0 c +5 0 " KEY_L, "[U T+5]");

    running_with(KEY_K, KEY_L);
    given("schedule", "0 r +70 5 " REC);
    index_is("['u k r']");
    given("schedule", "0 r +70 5 " KEY_K);
    given("done", "0 me r U+1");
    index_is("['u k r']");
    ask("FLUSHALL");
}

/* The lease is over: the run has its key no more, and what follows has. */
Test(next, of_a_lease_that_is_over_a_key_is_that_of_the_next_life)
{
    running_with(KEY_K, KEY_L);
    now_at(1000);
    RUN("schedule", "0 b +5 0 " KEY_K " c +5 0 " KEY_L, "[U+1000000 T+1005 'EEXIST']");
    given("sweep", "0");
    index_is("['u k b' 'u l r']");
    ask("FLUSHALL");
}

Test(next, until_start_a_key_is_held_by_the_life_after_the_run_until_it_begins)
{
    ask("FLUSHALL");
    given("schedule", "0 r +0 0 " START_K);
    given("claim", "0 me 1000 0 r");
    index_is("[]");
    given("schedule", "0 r +0 3 " START_K "new");
    index_is("['u k r']");
    RUN("schedule", "0 b +5 0 " START_K, "[U 'EEXIST']");
    given("done", "0 me r U+1");
    RUN("schedule", "0 b +5 0 " START_K, "[U 'EEXIST']");
    given("claim", "0 me 1000 0 r");
    index_is("[]");
    RUN("schedule", "0 b +5 0 " START_K, "[U T+5]");
    given("cancel", "0 b 0");

    given("schedule", "0 r +0 3 " START_K);
    given("cancel", "0 r 1");
    index_is("[]");
    ask("FLUSHALL");
}

Test(next, tags_are_those_of_both_lives_until_the_run_ends)
{
    for (size_t i = 0; i < ENDINGS; i++) {
        running_with(TAG_A, TAG_B_Q5);
        index_is("['t a r' 't b r']");
        cr_assert_eq(run("list_tag", "0 a 10 ''")->elements, 3);
        cr_assert_eq(run("list_tag", "0 b 10 ''")->elements, 2, "not yet");
        given(endings[i].script, endings[i].args);
        index_is("['t b r']");
        cr_assert_eq(
            redis_int(redis, "ZCOUNT s:{q}:due (%lld (%lld", (long long)T + 69, (long long)T + 70),
            1, "%s", endings[i].script);
    }

    running_with(TAG_A, TAG_B_Q5);
    now_at(1000);
    cr_assert_eq(run("list_tag", "0 a 10 ''")->elements, 2);
    cr_assert_eq(run("list_tag", "0 b 10 ''")->elements, 3);
    given("cancel", "0 r 0");
    KEYS(GONE);
}

/* ---- in one call ---- */
Test(next, of_large_records_an_end_answers_as_many_as_one_call_may_move)
{
    char *large = calloc(100001, 1);
    static const struct ending one[] = {
        {"done", ""}, {"retry", " 5 why"}, {"fail", " why"}, {"release", ""}};

    memset(large, 'x', 100000);
    for (size_t i = 0; i < sizeof one / sizeof *one; i++) {
        char *args = text("0 me");
        ask("FLUSHALL");
        now_at(0);
        given("schedule", "0 a +0 0 " REC " b +0 0 " REC " c +0 0 " REC " d +0 0 " REC);
        given("claim", "0 me 1000 0 a b c d");
        for (int j = 0; j < 4; j++) {
            given("schedule", text("0 %c +70 3 " REC "%s", 'a' + j, large));
            args = text("%s %c U+%d%s", args, 'a' + j, j + 1, one[i].args);
        }
        RUN(one[i].script, args, "[U T+70 T+70 T+70]");
        cr_assert_eq(redis_int(redis, "HLEN s:{q}:next"), 1);
        cr_assert_eq(redis_int(redis, "ZCARD s:{q}:due"), 3);
    }

    now_at(1000);
    RUN("sweep", "0", "[U+1000000 1 0 0 0]");
    cr_assert_eq(redis_int(redis, "EXISTS s:{q}:next"), 0);
    ask("FLUSHALL");
    free(large);
}

/* A record is read to free the key and the tags of a job that dies. */
Test(next, of_large_records_as_many_die_as_one_call_may_read)
{
    static const struct ending one[] = {{"fail", " why"}, {"retry", " '' why"}};
    static const char record[] = "\\02\\01\\01\\04T\\02aa"; /* one try, a tag */
    char *large = calloc(100001, 1);

    memset(large, 'x', 100000);
    for (size_t i = 0; i < sizeof one / sizeof *one; i++) {
        char *args = text("0 me");
        ask("FLUSHALL");
        now_at(0);
        for (int j = 0; j < 4; j++) {
            given("schedule", text("0 %c +0 0 %s%s", 'a' + j, record, large));
        }
        for (int j = 0; j < 4; j++) {
            given("claim", text("0 me 1000 0 %c", 'a' + j));
            args = text("%s %c U+%d%s", args, 'a' + j, j + 1, one[i].args);
        }
        redisReply *r = run(one[i].script, args);
        cr_assert_eq(r->elements, 1 + 3, "%s: %s", one[i].script, show(r));
        cr_assert_eq(redis_int(redis, "ZCARD s:{q}:dead"), 3);

        now_at(1000);
        RUN("sweep", "0", "[U+1000000 1 1 0 0]");
    }

    ask("FLUSHALL");
    for (int j = 0; j < 4; j++) {
        given("schedule", text("0 %c +0 0 %s%s", 'a' + j, record, large));
        given("claim", text("0 me 1000 0 %c", 'a' + j));
    }
    now_at(2000);
    RUN("sweep", "0", "[U+2000000 3 3 1 0]");
    RUN("sweep", "0", "[U+2000000 1 1 0 0]");
    ask("FLUSHALL");
    free(large);
}

Test(next, a_selection_by_a_tag_finds_a_job_whose_lease_is_over_by_its_new_record)
{
    running_and("0 r +1070 3 " TAG_A);
    now_at(1000);
    RUN("cancel_all", "0 0 a '' 0 100 '' 0", "[U+1000000 1 0 '']");
    KEYS(GONE);

    ask("FLUSHALL");
    now_at(0);
    given("schedule", "0 r +0 0 " TAG_A);
    given("claim", "0 me 1000 0 r");
    given("schedule", "0 r +1070 3 " NEW);
    now_at(1000);
    RUN("cancel_all", "0 0 a '' 0 100 '' 0", "[U+1000000 0 0 '']");
    RUN("cancel_all", "0 1 '' '' 0 100 '' 0", "[U+1000000 1 0 '']");
    KEYS(GONE);
}

Test(next, a_call_is_about_jobs_of_all_states)
{
    five();
    RUN("schedule", "0 w +480 3 " NEW " r +480 3 " NEW " d +480 3 " NEW " n +480 3 " NEW,
        "[U+20000 ['w' 1 T+500 '' '" REC "' 0] ['r' 2 T+1000 '2 U+3 me 1 10 U T d=T+500,j=1 ' '" REC
        "' 1] T+500 T+500]");
}

/* ---- looking and mending ---- */
Test(next, a_record_that_follows_nothing_is_found_and_mended)
{
    running_and("0 r +70 3 " NEW);
    given("schedule", "0 w +5 0 " REC " p +0 0 " REC);
    given("claim", "0 me 1000 0 p");
    RUN("check", "0 next 0 100", "[U 0 1 7 0]");

    ask("HSET s:{q}:next gone x p x w %b", "\1\0w", (size_t)3);
    redisReply *r = run("check", "0 next 0 100");
    cr_assert_eq(r->elements, 5 + 3);
    RUN("mend", "0 gone p w r", "[U 'next' 'next' 'next' '']");
    RUN("check", "0 next 0 100", "[U 0 1 7 0]");
    same(__FILE__, __LINE__, "w", show(ask("HGET s:{q}:jobs w")), "'\\01\\00w'");
    same(__FILE__, __LINE__, "p", show(ask("HGET s:{q}:jobs p")), "'\\01\\00'");
    given("done", "0 me r U+1 p U+2");
    given("cancel", "0 w 0 r 0");
}

Test(next, a_job_that_is_mended_gets_the_record_that_was_to_follow)
{
    running_and("0 r +70 3 " NEW);
    ask("ZREM s:{q}:run r");
    RUN("mend", "0 r", "[U 'none']");
    cr_assert_eq(redis_int(redis, "EXISTS s:{q}:next"), 0);
    same(__FILE__, __LINE__, "dead", show(ask("HGET s:{q}:jobs r")), "'" NEW "'");

    running_and("0 r +70 3 " NEW);
    ask("HDEL s:{q}:attempts r");
    RUN("mend", "0 r", "[U 'holder']");
    KEYS("due r:T | jobs r=" NEW " | seq U+1");

    running_with(TAG_A, TAG_B_Q5);
    RUN("check", "0 jobs 0 100", "[U 0 1 7 0]");
    RUN("check", "0 index 0 100", "[U 0 2 12 0]");
    ask("ZREM s:{q}:index %s", "t b r");
    RUN("mend", "0 r", "[U 'tag']");
    index_is("['t a r' 't b r']");
    ask("FLUSHALL");
}
