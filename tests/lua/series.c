/* SPDX-License-Identifier: MIT */
/* Series: an id with several moments, of each of which a claim makes a job. */
#include "script.h"

SCRIPTS(series);

#define SAME(what, got, expected) same(__FILE__, __LINE__, what, got, expected)

/* ---- records ---- */
/* A series that says this, and what stands in attributes behind it; then the body. */
static const char *series(const char *says, const char *attributes, size_t len)
{
    return text("\\02\\00\\%02xS\\%02x%s%s", (unsigned)(strlen(says) + 2 + len),
                (unsigned)strlen(says), says, attributes);
}

#define EVERY_10 series("l 0 0 e 10", "", 0)
#define STAGES series("l 0 0 s 5,6,7", "", 0)

/* That of its Nth job; N has one digit. */
static const char *job_of(const char *id, int n, const char *attributes, size_t len)
{
    size_t own = strlen(id) + 2;

    return text("\\02\\00\\%02xO\\%02x%s %d%s", (unsigned)(own + 2 + len), (unsigned)own, id, n,
                attributes);
}

static void schedule(const char *id, const char *due, const char *record)
{
    given("schedule", text("0 %s %s 0 '%s'", id, due, record));
}

static void index_is(const char *expected)
{
    SAME("index", show(ask("ZRANGE s:{q}:index 0 -1")), expected);
}

static void attempt_is(const char *id, const char *expected)
{
    SAME(id, show(ask("HGET s:{q}:attempts %s", id)), expected);
}

static void score_is(const char *set, const char *id, const char *expected)
{
    SAME(id, show(ask("ZSCORE s:{q}:%s %s", set, id)), expected);
}

/* The id of the job that a claim at this moment has made: as Redis has it, and as it is shown. */
static char *child(const char *id, int64_t after_us)
{
    return text("%s~%s", id, moments(text("U+%lld", (long long)after_us)));
}

static char *shown(const char *id, int64_t after_us)
{
    return text("%s~U+%lld", id, (long long)after_us);
}

/* The jobs that are made by a claim at this moment, each with the number of its moment. */
static const char *made_at(int64_t after_ms)
{
    const char *out = "";

    now_at(after_ms);
    redisReply *r = run("claim", "0 me 100000 100");
    for (size_t i = 7; i < r->elements; i++) {
        const redisReply *record = r->element[i]->element[4];
        const char *n = strchr(memchr(record->str, 'O', (size_t)record->len), ' ') + 1;
        out = text("%s%s%.*s", out, *out ? " " : "", (int)strspn(n, "0123456789"), n);
    }
    return out;
}

static void end(void)
{
    ask("FLUSHALL");
}

/* ---- a moment ---- */
Test(series, waits_like_a_job_and_makes_one_at_its_moment)
{
    schedule("a", "+5", text("%sbody", EVERY_10));
    KEYS(text("due a:T+5 | jobs a=%sbody | index 'r a' | t a:T+4", EVERY_10));
    now_at(5);
    const char *id = shown("a", 5001);
    const char *record = text("%sbody", job_of("a", 1, "", 0));
    RUN("claim", "0 me 1000 1",
        text("[U+5000 0 T+15 0 0 0 0 ['%s' 2 T+1005 '2 U+5001 me 1 10 U+5000 T+5 x=1 ' '%s' 0]]",
             id, record));
    KEYS(text("due a:T+15 | run %s:T+1005 | jobs a=%sbody %s=%s | attempts a=2 U+5001 - 1 10 "
              "U+5000 T+5 n=1  %s=2 U+5001 me 1 10 U+5000 T+5 x=1  | index 'r a' 's a %s' | seq "
              "U+5001 | t a:T+14",
              id, EVERY_10, id, record, id, child("a", 5001)));
    HEARD("0 'T+15 a'");
    RUN("done", text("0 me %s U+5001", child("a", 5001)), "[U+5000 1]");
    KEYS(text("due a:T+15 | jobs a=%sbody | attempts a=2 U+5001 - 1 10 U+5000 T+5 n=1  | index 'r "
              "a' | seq U+5001 | t a:T+14",
              EVERY_10));
    end();
}

Test(series, is_made_a_job_once_by_claims_of_any_kind)
{
    static const char *const claims[][2] = {{"claim", "0 me 1000 9"},
                                            {"claim", "0 me 1000 0 x a"},
                                            {"claim", "0 me 1000 -1 a x"},
                                            {"touch", "0 me 1000 9 0 0 1 1 9"}};

    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        now_at(0);
        schedule("a", "+0", EVERY_10);
        redisReply *r = run(claims[i][0], claims[i][1]);
        redisReply *row = r->element[r->elements - 1];
        SAME(claims[i][1], show(row->element[0]), text("'%s'", shown("a", 1)));
        given(claims[i][0], claims[i][1]);
        SAME("run", show(ask("ZRANGE s:{q}:run 0 -1")), text("['%s']", shown("a", 1)));
        score_is("due", "a", "'T+10'");
        cr_assert_eq(ask("PEXPIRETIME s:{q}:t:a")->integer, T + 9);
        end();
    }
}

/* The place of an id among those asked for is that of its series. */
Test(series, answers_the_place_that_it_was_asked_at)
{
    schedule("a", "+0", EVERY_10);
    redisReply *row = run("claim", "0 me 1000 0 x a")->element[7];
    cr_assert_eq(row->element[5]->integer, 2);
    end();
}

Test(series, gives_its_jobs_all_that_it_asks_for_but_its_moments_and_its_key)
{
    const char *all = text("\\02\\01\\02\\19Q\\01\\07S\\0al 0 0 e 10T\\01aU\\02ekb\\01f");
    schedule("a", "+0", text("%sbody", all));
    index_is("['r a' 't a a' 'u k a']");
    given("claim", "0 me 1000 1");
    const char *id = child("a", 1);
    SAME("record", show(ask("HGET s:{q}:jobs %s", id)),
         "'\\02\\01\\02\\0eO\\03a 1Q\\01\\07T\\01ab\\01fbody'");
    attempt_is(id, "'2 U+1 me 1 2 U T x=1,q=7 '");
    index_is("['r a' 's a a~U+1' 't a a' 't a a~U+1' 'u k a']");
    given("done", text("0 me %s U+1", id));
    index_is("['r a' 't a a' 'u k a']");
    end();
}

/* Of two moments in the same millisecond. */
Test(series, keeps_its_priority_from_one_moment_to_the_next)
{
    schedule("a", "+0", EVERY_10);
    schedule("z", "+0", "\\02\\00\\0fQ\\01\\07S\\0al 0 0 e 10");
    SAME("first", show(ask("ZRANGE s:{q}:due 0 -1")), "['z' 'a']");
    given("claim", "0 me 1000 2");
    SAME("next", show(ask("ZRANGE s:{q}:due 0 -1")), "['z' 'a']");
    end();
}

/* ---- which moments ---- */
Test(series, of_a_period_has_a_moment_at_each_multiple_of_it)
{
    schedule("a", "+5", EVERY_10);
    SAME("first", made_at(7), "1");
    score_is("due", "a", "'T+15'");
    SAME("second", made_at(15), "2");
    SAME("third", made_at(34), "3");
    score_is("due", "a", "'T+35'");
    end();
}

Test(series, of_stages_has_a_moment_at_each_of_them_and_ends_with_the_last)
{
    schedule("a", "+23", STAGES);
    SAME("first", made_at(23), "1");
    score_is("due", "a", "'T+28'");
    SAME("second", made_at(28), "2");
    score_is("due", "a", "'T+29'");
    SAME("third", made_at(40), "3");
    SAME("fourth", made_at(40), "4");
    SAME("none", made_at(1000), "");
    SAME("due", show(ask("ZRANGE s:{q}:due 0 -1")), "[]");
    SAME("series", show(ask("HMGET s:{q}:jobs a")), "[nil]");
    SAME("attempt", show(ask("HMGET s:{q}:attempts a")), "[nil]");
    SAME("entries", show(ask("ZRANGEBYLEX s:{q}:index [r (s")), "[]");
    end();
}

Test(series, of_stages_ends_with_the_last_also_where_it_has_an_until)
{
    schedule("a", "+0", series(text("l %" PRId64 " 0 s 5", T + 100), "", 0));
    SAME("first", made_at(0), "1");
    SAME("last", made_at(5), "2");
    SAME("it is over", show(ask("EXISTS s:{q}:due")), "0");
    end();
}

Test(series, of_moments_that_passed_unseen_makes_the_last_each_or_none)
{
    static const struct {
        const char *says, *attributes;
        size_t len;
        const char *made;  /* at T+35, of moments at T+5, T+15... */
        const char *again; /* at once again */
        int64_t next;
    } c[] = {{"l 0 0 e 10", "", 0, "4", "", 45},
             {"a 0 0 e 10", "", 0, "1", "2", 25},
             {"n 0 0 e 10", "", 0, "4", "", 45},
             {"l 0 3 e 10", "", 0, "3", "", 0},
             {"l 0 4 e 10", "", 0, "4", "", 0}};

    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        now_at(0);
        schedule("a", "+5", series(c[i].says, c[i].attributes, c[i].len));
        SAME(c[i].says, made_at(39), c[i].made);
        SAME(c[i].says, made_at(39), c[i].again);
        if (c[i].next) {
            score_is("due", "a", text("'T+%d'", (int)c[i].next));
        } else {
            SAME(c[i].says, show(ask("EXISTS s:{q}:due")), "0");
        }
        end();
    }
}

/* By max_late_ms, or after a minute. */
Test(series, passes_over_a_moment_that_is_too_old)
{
    schedule("a", "+0", series("n 0 0 e 100000", "", 0));
    SAME("in time", made_at(60000), "1");
    SAME("too old", made_at(160001), "");
    attempt_is("a", "'2 U+60000001 - 1 10 U+60000000 T+100000 n=2 '");
    score_is("due", "a", "'T+200000'");
    end();
    now_at(0);
    schedule("b", "+0", "\\02\\00\\15L\\03s40S\\0en 0 0 e 100000");
    SAME("too old by its own bound", made_at(41), "");
    SAME("in time by its own bound", made_at(100040), "2");
    end();
}

Test(series, that_leaves_out_no_moment_makes_a_job_of_it_however_late)
{
    static const char *const all[] = {"l 0 0 e 100000", "a 0 0 e 100000", "n 0 0 s 5,6,7"};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        now_at(0);
        schedule("a", "+0", series(all[i], "", 0));
        SAME(all[i], made_at(60001), "1");
        end();
    }
}

Test(series, ends_before_until_and_after_so_many_moments)
{
    const char *until = text("l %lld 0 e 10", (long long)T + 25);

    schedule("a", "+5", series(until, "", 0));
    SAME("first", made_at(5), "1");
    SAME("second", made_at(15), "2");
    SAME("last", made_at(25), "3");
    SAME("none", show(ask("EXISTS s:{q}:due")), "0");
    end();
    now_at(0);
    schedule("a", "+5", series(until, "", 0));
    SAME("the last of those that passed", made_at(100), "3");
    SAME("none is left", show(ask("EXISTS s:{q}:due")), "0");
    end();
    now_at(0);
    schedule("a", "+5", series("a 0 2 s 5,6,7", "", 0));
    SAME("first of two", made_at(5), "1");
    SAME("second of two", made_at(10), "2");
    SAME("no third", show(ask("EXISTS s:{q}:due")), "0");
    end();
}

Test(series, has_no_moment_after_until)
{
    const char *record = series(text("l %lld 0 e 10", (long long)T + 25), "", 0);

    RUN("schedule", text("0 a +26 0 '%s'", record), "[U 'EINVAL']");
    KEYS("");
    schedule("a", "+25", record);
    RUN("schedule", text("0 a +26 2 '%s'", record), "[U 'EINVAL']");
    RUN("reschedule", "0 a +26 0", "[U 'EINVAL']");
    score_is("due", "a", "'T+25'");
    given("reschedule_all", "0 1 '' '' 0 100 '' 0 +26 0");
    SAME("moved behind its end", made_at(26), "");
    KEYS("seq U+26001");
    end();
}

Test(series, skips_a_moment_while_an_earlier_run_waits_or_runs)
{
    schedule("a", "+0", series("lo 0 0 e 10", "", 0));
    SAME("first", made_at(0), "1");
    SAME("it runs", made_at(10), "");
    given("retry", text("0 me %s U+1 15 why", child("a", 1)));
    SAME("it waits", made_at(20), "");
    given("kill", text("0 %s bad", child("a", 1)));
    SAME("it is dead", made_at(30), "4");
    given("done", text("0 me %s U+30001", child("a", 30001)));
    SAME("it is done", made_at(40), "5");
    end();
}

/* A job that fails is tried by itself, and delays no later one. */
Test(series, goes_on_while_a_job_of_it_is_retried)
{
    schedule("a", "+0", STAGES);
    SAME("first", made_at(0), "1");
    given("fail", text("0 me %s U+1 bad", child("a", 1)));
    SAME("second", made_at(5), "2");
    given("retry", text("0 me %s U+5001 1000 bad", child("a", 5001)));
    SAME("third", made_at(6), "3");
    score_is("dead", child("a", 1), "'T'");
    score_is("due", child("a", 5001), "'T+1005'");
    end();
}

/* A lease that ends is that of any job: the same job runs again, as try 2. */
Test(series, of_a_job_whose_holder_died_makes_no_second_one)
{
    schedule("a", "+0", EVERY_10);
    given("claim", "0 gone 5 1");
    now_at(5);
    given("sweep", "0");
    given("claim", "0 me 1000 1");
    attempt_is(child("a", 1), "'2 U+5001 me 2 10 U+5000 T+5 x=1 the lease ended'");
    end();
}

/* ---- a job that does not run ---- */
Test(series, makes_a_job_that_is_skipped_or_dies_as_its_attributes_say)
{
    schedule("a", "+0", "\\02\\00\\13L\\03s40S\\0cl 0 0 e 1000");
    schedule("b", "+0", "\\02\\00\\13L\\03d40S\\0cl 0 0 e 1000");
    schedule("c", "+0", "\\02\\00\\1aK\\0560000L\\03s40S\\0cl 0 0 e 1000");
    now_at(41);
    redisReply *r = run("claim", "0 me 1000 9");
    cr_assert_eq(r->elements, 10);
    SAME("skipped", show(r->element[7]),
         text("['%s' 0 T '' '\\02\\00\\0aL\\03s40O\\03a 1' 0]", shown("a", 41001)));
    SAME("dead", show(ask("ZRANGE s:{q}:dead 0 -1")), text("['%s']", shown("b", 41002)));
    SAME("kept", show(ask("ZRANGE s:{q}:kept 0 -1")), text("['%s']", shown("c", 41003)));
    SAME("on they go", show(ask("ZRANGE s:{q}:due 0 -1")), "['a' 'b' 'c']");
    index_is("['r a' 'r b' 'r c' 's b b~U+41002']");
    cr_assert_eq(ask("HLEN s:{q}:jobs")->integer, 5);
    end();
}

Test(series, that_cannot_be_read_dies)
{
    static const char *const bad[] = {"x 0 0 e 10",  "l 0 0 e 0", "l 0 0 e x", "l 0 0 c n rule",
                                      "l 0 0 e 5,6", "l 0 0 z 1", "l 0 e 10",  "l x 0 e 1"};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        now_at(0);
        schedule("a", "+0", series(bad[i], "", 0));
        RUN("claim", "0 me 1000 9",
            "[U 0 0 1 0 0 0 ['a' 3 T '1 0 me 0 0 U T stored data is in a format this version "
            "cannot read' '' 0]]");
        score_is("dead", "a", "'T'");
        end();
    }
}

/* ---- forwarding ---- */
Test(series, is_forwarded_as_the_job_of_its_moment)
{
    given("configure", "0 'forward=list forward_element=job'");
    schedule("a", "+0", text("%sbody", EVERY_10));
    RUN("claim", "0 me 1000 1", "[U 0 T+10 0 0 0 1]");
    SAME("list", show(ask("LRANGE s:{q}:list 0 -1")), "['a~U+1 T 1 U+1 body']");
    KEYS(text("due a:T+10 | jobs a=%sbody | attempts a=2 U+1 - 1 10 U T n=1  | index 'r a' | seq "
              "U+1 | conf 1 forward=list:s:{q}:list forward_element=job  | t a:T+9",
              EVERY_10));
    end();
}

Test(series, that_is_forwarded_ends_and_keeps_what_is_kept)
{
    given("configure", "0 'forward=list forward_element=id'");
    schedule("a", "+0", "\\02\\00\\13K\\0560000S\\0al 0 1 e 10");
    schedule("b", "+0", "\\02\\00\\13L\\03d40S\\0cl 0 0 e 1000");
    now_at(41);
    given("touch", "0 me 1000 9 0 0 1 1 9");
    SAME("kept", show(ask("ZRANGE s:{q}:kept 0 -1")), "['a' 'a~U+41001']");
    SAME("dead", show(ask("ZRANGE s:{q}:dead 0 -1")), text("['%s']", shown("b", 41002)));
    SAME("due", show(ask("ZRANGE s:{q}:due 0 -1")), "['b']");
    end();
}

/* Nobody has looked yet what is due next. */
Test(series, that_is_forwarded_tells_of_its_next_moment_if_it_is_the_first_of_all)
{
    given("configure", "0 'forward=list forward_element=id'");
    for (int is_first = 0; is_first < 2; is_first++) {
        schedule("a", "+0", series("l 0 0 e 5000", "", 0));
        if (!is_first) {
            schedule("b", "+4000", REC);
        }
        RUN("claim", "0 me 1000 1", is_first ? "[U 0 T+5000 0 0 0 1]" : "[U 0 T+4000 0 0 0 1]");
        HEARD(is_first ? "0 'T+5000 a'" : "");
        given("cancel", "0 a 0 b 0");
    }
    end();
}

/* ---- cancel ---- */
Test(series, is_cancelled_with_its_jobs_that_wait)
{
    schedule("a", "+0", STAGES);
    made_at(0);
    given("retry", text("0 me %s U+1 1000 bad", child("a", 1)));
    made_at(5);
    given("fail", text("0 me %s U+5001 bad", child("a", 5001)));
    RUN("cancel", "0 a 0",
        text("[U+5000 ['a' 1 T+6 '2 U+5001 - 2 10 U+5000 T+5 n=2 ' '%s']]", STAGES));
    SAME("due", show(ask("ZRANGE s:{q}:due 0 -1")), "[]");
    SAME("dead", show(ask("ZRANGE s:{q}:dead 0 -1")), text("['%s']", shown("a", 5001)));
    index_is("['s a a~U+5001']");
    SAME("triggers", show(ask("KEYS s:{q}:t:*")), "[]");
    RUN("cancel", "0 a 0", "[U+5000 'ENOENT']");
    end();
}

Test(series, that_is_cancelled_beside_a_job_of_it_ends_that_once)
{
    schedule("a", "+0", "\\02\\00\\13K\\0560000S\\0al 0 0 e 10");
    made_at(0);
    given("release", text("0 me %s U+1", child("a", 1)));
    heard_ends();
    given("cancel", text("0 %s 0 a 0", child("a", 1)));
    HEARD_ENDS(text("0 '%s a'", shown("a", 1)));
    SAME("kept", show(ask("ZRANGE s:{q}:kept 0 -1")), text("['a' '%s']", shown("a", 1)));
    end();
}

/* Its only moment has passed, and the job of that is tried again. */
Test(series, that_has_ended_and_is_kept_is_deleted_without_its_jobs)
{
    schedule("a", "+0", "\\02\\00\\13K\\0560000S\\0al 0 1 e 10");
    made_at(0);
    given("retry", text("0 me %s U+1 1000 bad", child("a", 1)));
    SAME("kept", show(ask("ZRANGE s:{q}:kept 0 -1")), "['a']");
    RUN("cancel_all", "0 4 '' '' 0 100 '' 0", "[U 1 0 '']");
    SAME("kept", show(ask("ZRANGE s:{q}:kept 0 -1")), "[]");
    SAME("due", show(ask("ZRANGE s:{q}:due 0 -1")), text("['%s']", shown("a", 1)));
    end();
}

Test(series, that_is_cancelled_lets_its_runs_end_and_none_is_tried_again)
{
    static const struct {
        const char *script, *args, *answer;
    } c[] = {
        {"done", "", "1"}, {"retry", " 5 x", "-1"}, {"fail", " x", "-1"}, {"release", "", "-1"}};

    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        now_at(0);
        schedule("a", "+0", EVERY_10);
        made_at(0);
        given("cancel", "0 a 0");
        attempt_is(child("a", 1), "'2 U+1 me 1 10 U T x=1,c=2 '");
        RUN("renew", text("0 me %s U+1 5000", child("a", 1)), "[U T+5000]");
        RUN(c[i].script, text("0 me %s U+1%s", child("a", 1), c[i].args),
            text("[U %s]", c[i].answer));
        KEYS("seq U+1");
        end();
    }
    now_at(0);
    schedule("a", "+0", EVERY_10);
    given("claim", "0 me 10 1");
    given("cancel", "0 a 0");
    now_at(10);
    given("sweep", "0");
    KEYS("seq U+1");
}

Test(series, that_is_cancelled_asks_its_runs_to_stop_if_that_is_wanted)
{
    schedule("a", "+0", EVERY_10);
    made_at(0);
    HEARD("0 'T+10 a'");
    run("cancel", "0 a 1");
    HEARD("0 'stop a~U+1 U+1'");
    redisReply *r = run("renew", text("0 me %s U+1 5000", child("a", 1)));
    cr_assert_eq(r->element[1]->integer, -(T + 5000));
    end();
}

Test(series, that_is_cancelled_among_others_takes_its_jobs_with_it)
{
    static const char *const before[] = {"T+7", "0"}; /* without and with the retry */

    for (size_t i = 0; i < 2; i++) {
        now_at(0);
        schedule("a", "+0", STAGES);
        made_at(0);
        given("retry", text("0 me %s U+1 1000 bad", child("a", 1)));
        made_at(5);
        RUN("cancel_all", text("0 1 '' '' %s 100 '' 0", moments(before[i])),
            text("[U+5000 %zu 0 '']", i + 1));
        SAME("due", show(ask("ZRANGE s:{q}:due 0 -1")), "[]");
        attempt_is(child("a", 5001), "'2 U+5001 me 1 10 U+5000 T+5 x=1,c=2 '");
        given("fail", text("0 me %s U+5001 bad", child("a", 5001)));
        KEYS("seq U+5001");
        HEARD("");
        end();
    }
}

Test(series, that_is_cancelled_among_others_asks_its_runs_to_stop_if_that_is_wanted)
{
    schedule("a", "+0", EVERY_10);
    made_at(0);
    HEARD("0 'T+10 a'");
    run("cancel_all", "0 1 '' '' 0 100 '' 1");
    HEARD("0 'stop a~U+1 U+1'");
    end();
}

/* Entries of no job count, too; they come before that of the job here. */
Test(series, that_is_cancelled_looks_at_its_thousand_youngest_jobs)
{
    for (int n = 999; n <= 1000; n++) {
        now_at(0);
        schedule("a", "+0", EVERY_10);
        made_at(0);
        for (int i = 0; i < n; i++) {
            ask("ZADD s:{q}:index 0 %s", text("s a a~9%d", i));
        }
        given("cancel", "0 a 0");
        attempt_is(child("a", 1),
                   n == 999 ? "'2 U+1 me 1 10 U T x=1,c=2 '" : "'2 U+1 me 1 10 U T x=1 '");
        ask("FLUSHALL");
    }
}

/* ---- reschedule ---- */
Test(series, that_is_rescheduled_keeps_the_distances)
{
    schedule("a", "+0", STAGES);
    made_at(0);
    given("reschedule", "0 a +100 0");
    SAME("second", made_at(100), "2");
    score_is("due", "a", "'T+101'");
    given("reschedule_all", "0 1 '' '' 0 100 '' 0 +50 0");
    SAME("third", made_at(150), "3");
    score_is("due", "a", "'T+151'");
    end();
}

Test(series, that_was_killed_goes_on_counting_when_it_waits_again)
{
    static const char *const again[][2] = {{"reschedule", "0 a +5 0"},
                                           {"reschedule_all", "0 3 '' '' 0 100 '' 0 +5 0"}};

    for (size_t i = 0; i < 2; i++) {
        now_at(0);
        schedule("a", "+0", STAGES);
        made_at(0);
        given("kill", "0 a why");
        SAME("dead", made_at(5), "");
        given(again[i][0], again[i][1]);
        SAME("second", made_at(10), "2");
        end();
    }
}

/* ---- schedule ---- */
Test(series, that_replaces_one_goes_on_counting)
{
    schedule("a", "+0", EVERY_10);
    made_at(0);
    made_at(10);
    const char *other = series("l 0 0 e 50", "", 0);
    RUN("schedule", text("0 a +7 2 '%s'", other), "[U+10000 T+17]");
    attempt_is("a", "'2 U+10001 - 2 10 U+10000 T+10 n=2 '");
    SAME("third", made_at(17), "3");
    score_is("due", "a", "'T+67'");
    given("schedule", "0 a +5 2 " REC);
    SAME("attempt", show(ask("HMGET s:{q}:attempts a")), "[nil]");
    index_is("['s a a~U+1' 's a a~U+10001' 's a a~U+17001']");
    end();
}

Test(series, is_not_moved_by_earlier_later_and_debounce)
{
    static const char *const how[] = {"3", "4", "5", "5:100"};

    schedule("a", "+5", EVERY_10);
    schedule("p", "+5", REC);
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        RUN("schedule", text("0 a +1 %s " REC, how[i]), "[U 'EINVAL']");
        RUN("schedule", text("0 p +1 %s '%s'", how[i], EVERY_10), "[U 'EINVAL']");
    }
    KEYS(text("due a:T+5 p:T+5 | jobs a=%s p=" REC " | index 'r a' | t a:T+4 p:T+4", EVERY_10));
    end();
}

/* ---- looking and mending ---- */
Test(series, is_listed_by_its_id_whatever_its_state)
{
    schedule("b", "+5", EVERY_10);
    schedule("a", "+9", EVERY_10);
    schedule("c", "+9", EVERY_10);
    given("schedule", "0 p +9 0 " REC);
    given("kill", "0 c why");
    ask("ZADD s:{q}:index 0 %s", "r p");
    RUN("list", "0 5 2 '' ''",
        text("[U 1 ['a' 1 T+9 '' '%s'] ['b' 1 T+5 '' '%s']]", EVERY_10, EVERY_10));
    RUN("list", "0 5 2 '' b", text("[U 0 ['c' 3 T '1 0 - 0 10 0 T+9 why' '%s']]", EVERY_10));
    ask("ZREM s:{q}:index %s", "r p");
    end();
}

Test(series, is_checked_and_mended_with_its_jobs)
{
    schedule("a", "+0", EVERY_10);
    made_at(0);
    RUN("check", "0 index 0 100", text("[U 0 2 %zu 0]", strlen(child("a", 1)) + 9));
    ask("DEL s:{q}:index");
    ask("ZADD s:{q}:index 0 %s 0 %s", "r gone", "s a gone");
    redisReply *r = run("check", "0 jobs 0 100");
    cr_assert_eq(r->elements, 7);
    RUN("mend", text("0 a %s 'r gone' 's a gone'", child("a", 1)),
        "[U 'tag' 'tag' 'entry' 'entry']");
    index_is("['r a' 's a a~U+1']");
    end();
}

/* ---- costs ---- */
/* All that scripts have asked since CONFIG RESETSTAT; the others are of the test. */
static long long calls_of_scripts(void)
{
    static const char *const others[] = {"evalsha", "script|load", "get",
                                         "ping",    "info",        "config|resetstat"};
    const char *stats = ask("INFO commandstats")->str;
    long long n = 0;

    for (const char *at = stats; (at = strstr(at, ":calls=")); at++) {
        n += atoll(at + strlen(":calls="));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const char *at = strstr(stats, text("cmdstat_%s:calls=", others[i]));
        n -= at ? atoll(strchr(at, '=') + 1) : 0;
    }
    return n;
}

/* A claim of a job, and of a series at a moment, where another one waits. */
Test(series, costs_a_claim_so_many_commands)
{
    static const struct {
        const char *command;
        long long of_job, of_series;
    } all[] = {
        {"zrangebyscore", 1, 1}, /* what is due */
        {"zrange", 1, 1},        /* the first of all, for the answer, and for the notice */
        {"zcard", 3, 4},         /* due, run, dead; index */
        {"mget", 1, 1},          {"hmget", 2, 2}, /* records, attempts */
        {"zrem", 1, 1},          {"zadd", 1, 3},  /* run; due, index */
        {"hset", 1, 2},                           /* the attempts; the job's record */
        {"set", 1, 2},                            /* the last token; the trigger */
        {"del", 1, 1},           {"publish", 0, 1},
    };

    for (int of_series = 0; of_series < 2; of_series++) {
        long long n = 0;
        now_at(0);
        schedule("later", "+99", REC);
        schedule("a", "+5", of_series ? EVERY_10 : REC);
        now_at(5);
        ask("CONFIG RESETSTAT");
        given("claim", "0 me 1000 1");
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            long long expected = of_series ? all[i].of_series : all[i].of_job;
            cr_expect_eq(calls(all[i].command), expected, "%d: %s %lld", of_series, all[i].command,
                         calls(all[i].command));
            n += expected;
        }
        cr_expect_eq(calls_of_scripts(), n, "%d: %lld", of_series, calls_of_scripts());
        end();
    }
}

Test(series, that_has_ended_looks_for_no_next_moment)
{
    schedule("a", "+0", series("l 0 1 e 10", "", 0));
    ask("CONFIG RESETSTAT");
    given("claim", "0 me 1000 1");
    cr_assert_eq(calls("zrange"), 1); /* for the answer */
    end();
}

/* ---- jobs that nobody could read ---- */
/* A record has room for 4,096 bytes of attributes. Of the series they are full, and O of its job is
 * longer than S, which that has not. */
Test(series, whose_job_would_have_too_many_attributes_has_one_that_is_dead)
{
    const char *header = text("\\02\\00\\80\\20S\\0al 0 0 e 10h\\f1\\1f%04081d", 0);

    given("schedule", text("0 %0200d +5 0 '%s'", 0, header));
    now_at(5);
    redisReply *r = run("claim", "0 me 1000 100");
    cr_assert_eq(r->elements, 8u, "%s", show(r));
    SAME("unreadable", show(r->element[3]), "1");
    SAME("state", show(r->element[7]->element[1]), "3");
    SAME("dead", show(ask("ZRANGE s:{q}:dead 0 -1")), text("['%0200d~U+5001']", 0));
    cr_assert_eq(ask("EXISTS s:{q}:run")->integer, 0);
}

/* Another program may have written it: of a period, and of stages just before the first one. */
Test(series, whose_number_is_none_has_a_job_that_is_dead)
{
    static const struct {
        bool has_stages;
        const char *number;
    } rows[] = {{false, "n=-7"}, {true, "n=-1"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ask("FLUSHALL");
        now_at(0);
        schedule("a", "+5", rows[i].has_stages ? STAGES : EVERY_10);
        ask("HSET s:{q}:attempts a %s",
            text("2 0 - 0 10 0 %s %s ", moments("T+5"), rows[i].number));
        now_at(5);
        redisReply *r = run("claim", "0 me 1000 100");
        cr_assert_eq(r->elements, 8u, "%s: %s", rows[i].number, show(r));
        SAME(rows[i].number, show(r->element[7]->element[1]), "3");
    }
}

/* An id has at most 255 letters, and its record can be read. */
Test(series, whose_job_would_have_too_long_an_id_has_one_that_is_dead)
{
    given("schedule", text("0 %0239d +5 0 '%s'", 0, EVERY_10));
    now_at(5);
    redisReply *r = run("claim", "0 me 1000 100");
    cr_assert_eq(r->elements, 7u, "%s", show(r));
    SAME("unreadable", show(r->element[3]), "1");
    SAME("dead", show(ask("ZRANGE s:{q}:dead 0 -1")), text("['%0239d~U+5001']", 0));
    index_is(text("['r %0239d' 's %0239d %0239d~U+5001']", 0, 0, 0));
}
