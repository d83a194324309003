/* SPDX-License-Identifier: MIT */
/* check and mend: jobs that are not whole, as a script that broke off or another program leaves
 * them. */
#include "script.h"
#include "audit.h"

SCRIPTS(check);
SCRIPTS(mend);

/* Why a job died. */
#define IN_NO_SET "lapse doctor: the record was in none of the sets due, run, dead, kept"
#define NO_RECORD "lapse doctor: the job was in a set, and its record was missing"
#define ONLY_AN_ATTEMPT "lapse doctor: only the attempt of the job was left"

Test(check, of_whole_jobs_says_nothing)
{
    five();
    RUN("check", "0 jobs 0 100", "[U+20000 0 5 21 0]");

    static const struct {
        const char *end;
        long long n;
    } rows[] = {{"due", 1}, {"run", 3}, {"dead", 1}, {"attempts", 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        redisReply *r = run("check", text("0 %s 0 100", rows[i].end));
        cr_assert(r->type == REDIS_REPLY_ARRAY && r->elements == 5, "%s: %s", rows[i].end, show(r));
        cr_assert_eq(r->element[2]->integer, rows[i].n, "%s: %s", rows[i].end, show(r));
    }

    char *before = dumps();
    ask("CONFIG RESETSTAT");
    RUN("mend", "0 w r e u d nobody", "[U+20000 '' '' '' '' '' '']");
    cr_assert_eq(calls("del"), 0); /* of their triggers */
    same(__FILE__, __LINE__, "keys", dumps(), before);
    HEARD("");
}

Test(check, looks_closer_only_at_jobs_that_run_or_are_not_in_one_set)
{
    five();
    ask("CONFIG RESETSTAT");
    RUN("check", "0 jobs 0 100", "[U+20000 0 5 21 0]");

    /* of e, r and u, which run, each set, the record and the attempt */
    cr_assert_eq(calls("zscore"), 3 * 4, "%lld", calls("zscore"));
    cr_assert_eq(calls("hexists"), 3 * 2, "%lld", calls("hexists"));
}

#define TWICE                                                                                      \
    "local once = redis.call local redis = setmetatable({call = function(command, ...) local r = " \
    "once(command, ...) if command == 'HSCAN' then for i = 1, #r[2] do r[2][#r[2] + 1] = r[2][i] " \
    "end end return r end}, {__index = redis})"

/* HSCAN may return an element several times, as Redis's documentation says. */
Test(check, of_a_job_that_redis_shows_twice_speaks_once)
{
    given("schedule", "0 none +5 0 " REC " other +6 0 \\02");
    ask("ZREM s:{q}:due none");

    char *said = show(run("check", "0 jobs 0 100"));
    same(__FILE__, __LINE__, "check", said, "[U 0 2 12 1 ['none' 'none']]");
    redis_differs(TWICE);
    RUN("check", "0 jobs 0 100", said);
    ask("FLUSHALL");
}

Test(check, of_an_empty_queue_says_nothing)
{
    RUN("check", "0 attempts 0 100", "[U 0 0 0 0]");
    RUN("check", "0 jobs 0 100", "[U 0 0 0 0]");
    RUN("check", "0 due 0 100", "[U 0 0 0 0]");
    RUN("mend", "0", "[U]");
}

Test(check, says_what_each_job_lacks_and_that_once)
{
    given("schedule", "0 none +5 0 " REC " many +6 0 " REC " holder +0 0 " REC " record +8 0 " REC
                      " both +9 0 " REC);
    given("claim", "0 me 100 0 holder");
    ask("ZREM s:{q}:due none");
    ask("ZADD s:{q}:dead 5 many 5 both");
    ask("HDEL s:{q}:attempts holder");
    ask("HDEL s:{q}:jobs record both");
    ask("HSET s:{q}:attempts left %s both %s", "1 1 me 1 10 5 5 ", "1 1 me 1 10 5 5 ");

    redisReply *r = run("check", "0 jobs 0 100");
    char *said = show(r);
    cr_assert_eq(r->elements, 8, "%s", said);
    cr_assert(strstr(said, "['none' 'none']") && strstr(said, "['many' 'many']") &&
              strstr(said, "['holder' 'holder']"));
    said = show(run("check", "0 due 0 100"));
    cr_assert(strstr(said, "['record' 'record']") && strstr(said, "['both' 'record']") &&
                  !strstr(said, "many"),
              "%s", said);
    RUN("check", "0 run 0 100", text("[U 0 1 %zu 0]", strlen("holder") + 13));
    cr_assert_eq(run("check", "0 dead 0 100")->elements, 5);
    said = show(run("check", "0 attempts 0 100"));
    cr_assert(strstr(said, "['left' 'attempt']") && !strstr(said, "'both'"), "%s", said);
    ask("FLUSHALL");
}

Test(check, says_of_each_pair_of_sets_that_it_is_one_too_many)
{
    given("schedule", "0 a +5 0 " REC " b +5 0 " REC " c +0 0 " REC " d +5 0 " REC);
    given("claim", "0 me 100 0 c");
    ask("ZADD s:{q}:run 5 a");
    ask("ZADD s:{q}:dead 5 b 5 c");
    char *said = show(run("check", "0 jobs 0 100"));
    cr_assert(strstr(said, "['a' 'many']") && strstr(said, "['b' 'many']") &&
                  strstr(said, "['c' 'many']") && !strstr(said, "'d'"),
              "%s", said);
    ask("FLUSHALL");
}

Test(check, counts_records_that_it_cannot_read)
{
    given("schedule", "0 a +5 0 " REC " b +5 0 \\02 c +5 0 \\01\\08");
    RUN("check", "0 jobs 0 100", "[U 0 3 8 2]");
}

Test(check, goes_through_all_in_pages)
{
    many(0, 900, "+50");
    for (int i = 0; i < 900; i += 100) {
        ask("ZREM s:{q}:due j%03d", i);
    }

    long long page = 0;
    long long looked = 0;
    long long broken = 0;
    long long pages = 0;
    do {
        redisReply *r = run("check", text("0 jobs %lld 100", page));
        page = r->element[1]->integer;
        looked += r->element[2]->integer;
        broken += (long long)r->elements - 5;
        cr_assert_lt(r->element[2]->integer, 300);
        pages++;
    } while (page);

    cr_assert(looked >= 900 && broken == 9 && pages > 3, "%lld %lld %lld", looked, broken, pages);
    ask("FLUSHALL");
}

Test(check, of_a_key_that_another_program_wrote_is_an_error)
{
    ask("SET s:{q}:jobs x");
    redisReply *r = run("check", "0 jobs 0 100");
    cr_assert(r->type == REDIS_REPLY_ERROR && strstr(r->str, "WRONGTYPE"), "%s", show(r));
    ask("FLUSHALL");
}

Test(mend, lets_die_what_is_in_no_set_and_keeps_what_is_known_of_it)
{
    given("schedule", "0 a +0 0 \\01\\01\\03body b +5 0 " REC " c +5 0 \\01\\01\\07");
    given("claim", "0 me 100 0 a");
    given("retry", "0 me a U+1 5 oops");
    ask("ZREM s:{q}:due a b c");
    RUN("mend", "0 a b c", "[U 'none' 'none' 'none']");
    KEYS("dead a:T b:T c:T | jobs a=\\01\\01\\03body b=" REC
         " c=\\01\\01\\07 | attempts a=1 U+1 me 1 3 U T+5 " IN_NO_SET "; before: oops "
         "b=1 0 - 0 10 U T " IN_NO_SET " c=1 0 - 0 7 U T " IN_NO_SET " | seq U+1");
    HEARD("");
    RUN("mend", "0 a b c", "[U '' '' '']");
    RUN("reschedule", "0 a +0 0", "[U ['a' 1 T '' '\\01\\01\\03']]");
    RUN("claim", "0 me 10 1",
        "[U 0 0 0 0 0 0 ['a' 2 T+10 '1 U+2 me 1 3 U T ' '\\01\\01\\03body' 0]]");
}

Test(mend, lets_die_what_has_no_record)
{
    ask("ZADD s:{q}:due %lld a", (long long)T + 5);
    ask("ZADD s:{q}:run %lld a 5 b", (long long)T + 500);
    ask("ZADD s:{q}:dead 5 c");
    ask("HSET s:{q}:attempts b %s left %s", "1 4 me 2 3 5 6 was", "1 1 you 1 10 5 5 ");
    RUN("mend", "0 a b c left", "[U 'record' 'record' 'record' 'attempt']");
    KEYS("dead a:T b:T c:T left:T | jobs a=" REC " b=" REC " c=" REC " left=" REC
         " | attempts a=1 0 - 0 10 U T " NO_RECORD " b=1 4 me 2 3 5 6 " NO_RECORD "; before: was "
         "c=1 0 - 0 10 U T " NO_RECORD " left=1 1 you 1 10 5 5 " ONLY_AN_ATTEMPT);
}

/* Whatever the sets: the live lease, else the one that runs again. */
Test(mend, of_several_sets_keeps_the_one_that_loses_nothing)
{
    given("schedule", "0 live +50 0 " REC " ended +50 0 " REC " dead +50 0 " REC " old +0 0 " REC
                      " all +50 0 " REC);
    given("claim", "0 me 10 0 old");
    ask("ZADD s:{q}:run %lld live 5 ended 5 all", (long long)T + 1);
    ask("ZADD s:{q}:run 5 old");
    ask("ZADD s:{q}:dead 5 dead 5 old 5 all");
    RUN("mend", "0 live ended dead old all", "[U 'many' 'many' 'many' 'many' 'many']");
    KEYS("due all:T+50 dead:T+50 ended:T+50 | run old:5 live:T+1 | jobs all=" REC " dead=" REC
         " ended=" REC " live=" REC " old=" REC
         " | attempts old=1 U+1 me 1 10 U T  | seq U+1 | t all:T+49 dead:T+49 ended:T+49");
    ask("HSET s:{q}:attempts live %s", "1 1 me 1 10 5 5 ");
    HEARD("");
}

Test(mend, gives_back_a_running_job_without_a_holder)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC);
    given("claim", "0 me 100 0 a b");
    ask("HDEL s:{q}:attempts a");
    ask("HSET s:{q}:attempts b %s", "2 of a newer version");
    RUN("mend", "0 a b", "[U 'holder' '']");
    KEYS("due a:T | run b:T+100 | jobs a=" REC " b=" REC
         " | attempts b=2 of a newer version | seq U+2");
    HEARD("0 '0 a'");
}

Test(mend, does_not_write_over_what_a_newer_version_holds)
{
    given("schedule", "0 a +5 0 \\02newer");
    ask("ZREM s:{q}:due a");
    ask("HSET s:{q}:attempts a %s", "2 of a newer version");
    RUN("mend", "0 a", "[U 'none']");
    KEYS("dead a:T | jobs a=\\02newer | attempts a=2 of a newer version");
}

Test(mend, cuts_its_reason_at_200_bytes)
{
    given("schedule", "0 a +0 0 " REC);
    ask("ZREM s:{q}:due a");
    ask("HSET s:{q}:attempts a %s", text("1 1 me 1 10 5 5 %0200d", 7));
    given("mend", "0 a");
    const char *held = ask("HGET s:{q}:attempts a")->str;
    cr_assert_eq(strlen(held), strlen("1 1 me 1 10 5 5 ") + 200, "%s", held);
}

Test(mend, takes_a_hundred_at_once)
{
    char *args = text("0");

    many(0, 100, "+5");
    ask("DEL s:{q}:due");
    for (int i = 0; i < 100; i++) {
        args = text("%s j%03d", args, i);
    }
    cr_assert_eq(run("mend", args)->elements, 101);
    cr_assert_eq(redis_int(redis, "ZCARD s:{q}:dead"), 100);
}

/* Every right but one: what breaks off leaves nothing in no set, and a second look mends the
 * rest. */
Test(mend, that_breaks_off_loses_nothing)
{
    static const char *const words[] = {"hset", "zadd", "zrem", "del"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        ask("FLUSHALL");
        given("schedule", "0 none +5 0 " REC " many +5 0 " REC " lost +5 0 " REC);
        ask("ZREM s:{q}:due none");
        ask("ZADD s:{q}:dead 5 many");
        ask("HDEL s:{q}:jobs lost");
        ask("ACL SETUSER default -%s", words[i]);
        redisReply *r = run("mend", "0 none many lost");
        cr_assert_eq(r->type, REDIS_REPLY_ERROR, "%s: %s", words[i], show(r));
        ask("ACL SETUSER default +%s", words[i]);
        run("mend", "0 none many lost");
        cr_assert_eq(audit(redis, "s", "q", NULL), 0, "%s", words[i]);
        cr_assert_eq(redis_int(redis, "HLEN s:{q}:jobs"), 3);
    }
}
