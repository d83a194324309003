/* SPDX-License-Identifier: MIT */
/* Why the last runs of a job failed: the hash errors, of jobs whose record asks for it. */
#include "script.h"

SCRIPTS(errors);

#define ASKS "\\02\\00\\03e\\015"        /* and all is default */
#define ONE_TRY "\\02\\01\\01\\03e\\015" /* one try */
#define NOT_READ "stored data is in a format this version cannot read"

/* r runs, by U+1; its attempt says r=0. */
static void running(const char *record)
{
    ask("FLUSHALL");
    now_at(0);
    given("schedule", text("0 r +0 0 %sx", record));
    given("claim", "0 me 1000 1");
}

/* The same, and its first run has failed: U+n is the token of the second. */
static void running_again(void)
{
    running(ASKS);
    given("retry", "0 me r U+1 0 'one two'");
    given("claim", "0 me 1000 1");
    KEYS("run r:T+1000 | jobs r=" ASKS "x | attempts r=2 U+2 me 2 10 U T r=1 one two | errors "
         "r=T 1 7 one two | seq U+2");
}

static const char *errors_of(const char *id)
{
    return show(ask("HGET s:{q}:errors %s", id));
}

#define ERRORS(expected) same(__FILE__, __LINE__, "errors", errors_of("r"), expected)

Test(errors, a_claim_notes_that_the_job_asks)
{
    running(ASKS);
    KEYS("run r:T+1000 | jobs r=" ASKS "x | attempts r=2 U+1 me 1 10 U T r=0  | seq U+1");
    given("done", "0 me r U+1");
    KEYS("seq U+1");
}

Test(errors, each_run_that_fails_leaves_its_reason)
{
    running_again();
    now_at(5);
    RUN("retry", "0 me r U+2 5 three", "[U+5000 T+10]");
    ERRORS("'T 1 7 one twoT+5 2 5 three'");
    now_at(10);
    given("claim", "0 me 1000 1");
    RUN("fail", "0 me r U+10001 ''", "[U+10000 1]");
    ERRORS("'T 1 7 one twoT+5 2 5 threeT+10 3 0 '");
}

Test(errors, the_end_of_a_lease_is_a_failure_at_that_moment)
{
    running_again();
    now_at(1500);
    given("sweep", "0");
    ERRORS("'T 1 7 one twoT+1000 2 15 the lease ended'");

    running(ONE_TRY);
    now_at(1500);
    RUN("sweep", "0 1",
        "[U+1500000 1 1 0 0 ['r' 3 T+1000 '2 U+1 me 1 1 U T+1000 r=1 the lease ended' '" ONE_TRY
        "x']]");
    ERRORS("'T+1000 1 15 the lease ended'");
}

/* What is no failure: a put-back that does not count, a run that did not begin, a kill. */
Test(errors, nothing_else_leaves_one)
{
    running_again();
    given("retry", "0 me r U+2 ~0 snoozed");
    given("claim", "0 me 1000 1");
    given("release", "0 me r U+3");
    given("kill", "0 r killed");
    ERRORS("'T 1 7 one two'");
    RUN("get", "0 r", "[U ['r' 3 T '2 U+3 me 1 10 U T r=1 killed' '" ASKS "x' 'T 1 7 one two']]");
}

Test(errors, a_death_at_the_claim_leaves_its_reason)
{
    static const char late[] = "\\02\\00\\07L\\02d5e\\015";

    given("schedule", text("0 r +0 0 %sx", late));
    now_at(6);
    given("claim", "0 me 1000 1");
    ERRORS("'T+6 0 48 too late: more than max_late_ms after it was due'");
    RUN("get", "0 r",
        text("[U+6000 ['r' 3 T+6 '2 0 me 0 10 U+6000 T r=1 too late: more than max_late_ms after "
             "it was due' '%sx' 'T+6 0 48 too late: more than max_late_ms after it was due']]",
             late));

    given("reschedule", "0 r +0 0");
    given("configure", "0 forward=list:s:{q}:list");
    now_at(12);
    given("claim", "0 - 1000 100");
    ERRORS("'T+12 0 48 too late: more than max_late_ms after it was due'");
    given("configure", "0 forward=");
}

Test(errors, the_last_five_are_kept)
{
    running(ASKS);
    for (int i = 1; i <= 7; i++) {
        given("retry", text("0 me r U+%d 0 %c", i, 'a' + i));
        given("claim", "0 me 1000 1");
    }
    ERRORS("'T 3 1 dT 4 1 eT 5 1 fT 6 1 gT 7 1 h'");
}

/* At the end of a character: \c3\a9 is one, and so is \f0\9f\98\80; \80 alone is none. */
Test(errors, a_reason_is_cut_at_200_bytes)
{
    static const struct {
        const char *tail;
        int n_before, kept;
    } reason[] = {
        {"", 199, 199},
        {"", 200, 200},
        {"b", 200, 200},
        {"\\c3\\a9", 198, 200},
        {"\\c3\\a9b", 198, 200},
        {"\\c3\\a9", 199, 199},
        {"\\c3\\a9", 200, 200},
        {"\\f0\\9f\\98\\80", 196, 200},
        {"\\f0\\9f\\98\\80", 197, 197},
        {"\\f0\\9f\\98\\80", 199, 199},
        {"\\80\\80\\80\\80\\80", 196, 200},
    };
    char a[201];

    for (size_t i = 0; i < sizeof reason / sizeof *reason; i++) {
        memset(a, 'a', (size_t)reason[i].n_before);
        a[reason[i].n_before] = '\0';
        running(ASKS);
        given("fail", text("0 me r U+1 '%s%s'", a, reason[i].tail));
        int numbers = (int)strlen(moments("T 1 200")) + 1;
        int kept = (int)redis_int(redis, "HSTRLEN s:{q}:errors r") - numbers;
        cr_expect_eq(kept, reason[i].kept, "%d and %s: %d", reason[i].n_before, reason[i].tail,
                     kept);
    }
}

/* As that may be of a newer version. */
Test(errors, of_a_job_that_dies_as_its_record_cannot_be_read_stay)
{
    static const char *const settings[] = {"paused=", "forward=list"};

    for (size_t i = 0; i < 2; i++) {
        running_again();
        given("retry", "0 me r U+2 0 x");
        ask("HSET s:{q}:jobs r %b", "\3", (size_t)1);
        given("configure", text("0 %s", settings[i]));
        given("claim", "0 me 1000 100");
        cr_assert_eq(redis_int(redis, "ZCARD s:{q}:dead"), 1);
        ERRORS(text("'T 1 7 one twoT 2 1 xT 2 %zu " NOT_READ "'", strlen(NOT_READ)));
        cr_assert_eq(run("check", "0 errors 0 10")->elements, 5);
        given("cancel", "0 r 0");
        cr_assert_eq(redis_int(redis, "EXISTS s:{q}:errors"), 0, "%s", settings[i]);
    }
    ask("FLUSHALL");
}

/* Its attempt says that it has tags. */
Test(errors, of_a_job_that_does_not_ask_are_not_kept_as_its_record_cannot_be_read)
{
    running("\\02\\00\\03T\\01t");
    given("retry", "0 me r U+1 0 x");
    ask("HSET s:{q}:jobs r %b", "\3", (size_t)1);
    given("claim", "0 me 1000 100");
    cr_assert_eq(redis_int(redis, "ZCARD s:{q}:dead"), 1);
    cr_assert(!strstr(show(ask("HGET s:{q}:attempts r")), "r="), "%s", keys());
    cr_assert_eq(redis_int(redis, "EXISTS s:{q}:errors"), 0);
    ask("FLUSHALL");
}

/* Whatever other programs have put there. */
Test(errors, what_is_no_list_of_them_is_replaced_from_where_it_is_none)
{
    static const struct {
        const char *before, *after;
    } list[] = {
        {"", ""},
        {"x", ""},
        {"1 2 3", ""},
        {"1 2 3 ab", ""},
        {"1 2 2 ab", "1 2 2 ab"},
        {"1 2 2 ab1 2 9 x", "1 2 2 ab"},
        {"1 2 99999999999999999999 x", ""},
        {"1 2 0 -1 2 0 ", "1 2 0 "},
    };

    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        running_again();
        ask("HSET s:{q}:errors r %s", list[i].before);
        given("retry", "0 me r U+2 5 x");
        ERRORS(text("'%sT 2 1 x'", list[i].after));
    }
}

/* ---- the end of a life ---- */
static const struct ending {
    const char *script, *args;
} lives[] = {
    {"done", "0 me r U+2"},
    {"done", "0 * r U+2"},
};

Test(errors, are_gone_with_the_job)
{
    static const struct ending waiting[] = {
        {"cancel", "0 r 0"},
        {"cancel_all", "0 1 '' '' 0 100 '' 0"},
        {"schedule", "0 r +5 2 " REC "y"},
        {"schedule", "0 r +5 5 " REC "y"},
    };
    static const struct ending dead[] = {
        {"cancel", "0 r 0"},
        {"cancel_all", "0 3 '' '' 0 100 '' 0"},
        {"reschedule", "0 r +5 0"},
        {"reschedule_all", "0 3 '' '' 0 100 '' 0 +5 0"},
        {"schedule", "0 r +5 2 " REC "y"},
        {"schedule", "0 r +5 3 " REC "y"},
        {"schedule", "0 r +5 5 " REC "y"},
    };

    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
        running_again();
        given(lives[i].script, lives[i].args);
        KEYS("seq U+2");
    }
    for (size_t i = 0; i < sizeof waiting / sizeof *waiting; i++) {
        running_again();
        given("retry", "0 me r U+2 50 x");
        given(waiting[i].script, waiting[i].args);
        cr_assert_eq(redis_int(redis, "EXISTS s:{q}:errors"), 0, "waiting: %s %s",
                     waiting[i].script, waiting[i].args);
    }
    for (size_t i = 0; i < sizeof dead / sizeof *dead; i++) {
        running_again();
        given("fail", "0 me r U+2 x");
        given(dead[i].script, dead[i].args);
        cr_assert_eq(redis_int(redis, "EXISTS s:{q}:errors"), 0, "dead: %s %s", dead[i].script,
                     dead[i].args);
    }
}

Test(errors, stay_where_the_life_goes_on)
{
    static const struct ending calls_[] = {
        {"reschedule", "0 r +5 0"},    {"reschedule_all", "0 1 '' '' 0 100 '' 0 +5 0"},
        {"schedule", "0 r +5 3 " REC}, {"schedule", "0 r +90 4 " REC},
        {"schedule", "0 r +5 1 " REC}, {"kill", "0 r x"},
    };

    for (size_t i = 0; i < sizeof calls_ / sizeof *calls_; i++) {
        running_again();
        given("retry", "0 me r U+2 50 x");
        given(calls_[i].script, calls_[i].args);
        ERRORS("'T 1 7 one twoT 2 1 x'");
    }
}

Test(errors, a_run_that_was_asked_to_be_the_last_of_its_life_leaves_none)
{
    static const struct ending ends[] = {
        {"retry", "0 me r U+2 5 x"}, {"fail", "0 me r U+2 x"}, {"release", "0 me r U+2"},
        {"done", "0 me r U+2"},      {"sweep", "0"},
    };
    static const struct ending asked[] = {
        {"cancel", "0 r 1"}, {"reschedule", "0 r +5000 1"}, {"schedule", "0 r +5000 5 " ASKS "y"}};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
            running_again();
            given(asked[k].script, asked[k].args);
            ERRORS("'T 1 7 one two'");
            now_at(i == 4 ? 1000 : 0);
            given(ends[i].script, ends[i].args);
            ERRORS("nil");
        }
    }
}

/* Their lease is over, and no sweep has passed: what follows is asked of first. */
Test(errors, what_follows_a_run_begins_without_however_the_run_ends)
{
    static const struct ending calls_[] = {
        {"cancel", "0 r 0"},
        {"kill", "0 r x"},
        {"reschedule", "0 r +5 0"},
        {"schedule", "0 r +5 2 " ASKS "z"},
        {"schedule", "0 r +9 3 " ASKS},
        {"schedule", "0 r +9 5 " ASKS "z"},
        {"cancel_all", "0 1 '' '' 0 100 '' 0"},
        {"reschedule_all", "0 1 '' '' 0 100 '' 0 +5 0"},
    };

    for (size_t i = 0; i < sizeof calls_ / sizeof *calls_; i++) {
        running_again();
        given("schedule", "0 r +5000 5 " REC "y");
        now_at(1000);
        given(calls_[i].script, calls_[i].args);
        cr_assert_eq(redis_int(redis, "EXISTS s:{q}:errors"), 0, "%s %s", calls_[i].script,
                     calls_[i].args);
    }
}

Test(errors, dead_jobs_that_are_freed_leave_none)
{
    running_again();
    given("fail", "0 me r U+2 x");
    given("configure", "0 dead_max=0");
    RUN("sweep", "0", "[U 0 0 0 1]");
    KEYS("seq U+2 | conf 1 dead_max=0 ");
}

Test(errors, a_job_that_is_forwarded_or_skipped_leaves_none)
{
    running_again();
    given("retry", "0 me r U+2 0 x");
    given("configure", "0 forward=list:s:{q}:list");
    given("claim", "0 - 1000 100");
    ERRORS("nil");
    given("configure", "0 forward=");

    ask("FLUSHALL");
    given("schedule", "0 r +0 0 \\02\\00\\07L\\02s5e\\015x");
    given("claim", "0 me 1000 1");
    given("retry", "0 me r U+1 0 x");
    ERRORS("'T 1 1 x'");
    now_at(6);
    given("claim", "0 me 1000 1");
    KEYS("seq U+1");
}

/* ---- what is shown ---- */
Test(errors, are_shown_by_get_and_lists_behind_the_record)
{
    static const char row[] =
        "['r' 1 T+50 '2 U+2 me 2 10 U T+50 r=1 x' '" ASKS "x' 'T 1 7 one twoT 2 1 x']";

    running_again();
    given("retry", "0 me r U+2 50 x");
    given("schedule", "0 w +60 0 " ASKS "w p +70 0 " REC);
    RUN("get", "0 r w p",
        text("[U %s ['w' 1 T+60 '' '" ASKS "w'] ['p' 1 T+70 '' '" REC "']]", row));
    RUN("list", "0 1 1 0 ''", text("[U 1 %s]", row));

    ask("FLUSHALL");
    given("schedule", "0 r +0 0 \\02\\00\\06T\\01ae\\015x");
    given("claim", "0 me 1000 1");
    given("fail", "0 me r U+1 x");
    RUN("list_tag", "0 a 1 ''",
        "[U 0 ['r' 3 T '2 U+1 me 1 10 U T x=1,r=1 x' '\\02\\00\\06T\\01ae\\015x' 'T 1 1 x']]");
}

/* An entry of which the attempt does not say that it is there is of an earlier life. */
Test(errors, one_that_was_left_behind_is_not_shown_and_is_mended)
{
    given("schedule", "0 r +0 0 " ASKS);
    given("claim", "0 me 1000 1");
    ask("HSET s:{q}:errors r %s z %s", "1 1 3 old", "1 1 1 z");
    RUN("get", "0 r", "[U ['r' 2 T+1000 '2 U+1 me 1 10 U T r=0 ' '" ASKS "']]");
    RUN("check", "0 errors 0 10", "[U 0 2 18 0 ['r' 'error'] ['z' 'error']]");
    RUN("mend", "0 r z", "[U 'error' 'error']");
    RUN("check", "0 errors 0 10", "[U 0 0 0 0]");
    given("retry", "0 me r U+1 0 new");
    ERRORS("'T 1 3 new'");
    RUN("check", "0 errors 0 10", "[U 0 1 22 0]");
    RUN("mend", "0 r", "[U '']");
}

Test(errors, of_a_job_that_doctor_finds_without_its_record_stay)
{
    running_again();
    given("fail", "0 me r U+2 x");
    ask("HDEL s:{q}:jobs r");
    RUN("mend", "0 r", "[U 'record']");
    ERRORS("'T 1 7 one twoT 2 1 x'");
    same(__FILE__, __LINE__, "record", show(ask("HGET s:{q}:jobs r")), "'" ASKS "'");
    given("cancel", "0 r 0");
    KEYS("seq U+2");
}

/* An older version puts a job back without knowing r; a newer one keeps more. */
Test(errors, of_an_unknown_form_are_none)
{
    running("\\02\\00\\03e\\01x");
    KEYS("run r:T+1000 | jobs r=\\02\\00\\03e\\01xx | attempts r=1 U+1 me 1 10 U T  | seq U+1");
    given("fail", "0 me r U+1 x");
    ERRORS("nil");
}

Test(errors, of_a_life_that_an_older_version_ended_are_gone_with_the_claim)
{
    running_again();
    given("reschedule", "0 r +0 1");
    ask("ZREM s:{q}:run r");
    ask("ZADD s:{q}:due %s r", moments("T"));
    given("claim", "0 me 1000 1");
    KEYS("run r:T+1000 | jobs r=" ASKS "x | attempts r=2 U+3 me 1 10 U T r=0  | seq U+3");
}

/* ---- costs ---- */
/* Nor of those that ask, as long as they do not fail. */
Test(errors, of_jobs_that_have_none_nothing_is_asked)
{
    static const struct {
        const char *script, *args;
        int plain, asking;
    } call[] = {
        {"done", "0 me r U+1", 7, 7},      {"retry", "0 me r U+1 5 x", 10, 12},
        {"fail", "0 me r U+1 x", 7, 9},    {"release", "0 me r U+1", 10, 10},
        {"renew", "0 me r U+1 500", 5, 5}, {"cancel", "0 r 0", 4, 4},
        {"reschedule", "0 r +5 0", 5, 5},  {"get", "0 r", 5, 5},
        {"list", "0 2 1 0 ''", 4, 4},      {"sweep", "0", 7, 7},
    };

    for (int asks = 0; asks < 2; asks++) {
        for (size_t i = 0; i < sizeof call / sizeof *call; i++) {
            running(asks ? ASKS : REC);
            ask("CONFIG RESETSTAT");
            given(call[i].script, call[i].args);
            long long n = commands();
            int expected = asks ? call[i].asking : call[i].plain;
            cr_expect_eq(n, expected, "%s: %lld, not %d", call[i].script, n, expected);
        }
    }
    running(REC);
    given("done", "0 me r U+1");
    cr_assert_eq(redis_int(redis, "EXISTS s:{q}:errors"), 0);
}
