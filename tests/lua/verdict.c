/* SPDX-License-Identifier: MIT */
/* What a claim makes of a due job that may be too late, or has a guard, before a try is counted. */
#include "script.h"

SCRIPTS(verdict);
SCRIPTS(retry_for);

/* ---- records ---- */
/* One that has this attribute, and what stands in attributes behind it; 40 ms. */
#define LATE_SKIP "\\02\\00\\05L\\03s40"
#define LATE_DEAD "\\02\\00\\05L\\03d40"
#define RETRY_FOR "\\02\\00\\04R\\0240"
#define WITH_TAG "\\02\\00\\08L\\03s40T\\01a"
#define SKIP_UNIQUE "\\02\\00\\09L\\03s40U\\02ek"
#define DEAD_UNIQUE "\\02\\00\\09L\\03d40U\\02el"

#define TOO_LATE "too late: more than max_late_ms after it was due"
#define TOO_OFTEN "too late: more than retry_for_ms after it was first due"

static const char *guarded(const char *guard)
{
    return text("'\\02\\00\\%02xG\\%02x%s'", (unsigned)strlen(guard) + 2, (unsigned)strlen(guard),
                guard);
}

static void end(void)
{
    ask("FLUSHALL");
}

#define SAME(what, got, expected) same(__FILE__, __LINE__, what, got, expected)

/* ---- too late ---- */
Test(verdict, of_a_job_that_is_not_later_than_it_may_be_is_that_it_runs)
{
    given("schedule", "0 a +0 0 " LATE_SKIP " b +0 0 " LATE_DEAD);
    now_at(40);
    RUN("claim", "0 me 1000 2",
        "[U+40000 0 0 0 0 0 0 ['a' 2 T+1040 '1 U+40001 me 1 10 U+40000 T ' '" LATE_SKIP
        "' 0] ['b' 2 T+1040 '1 U+40002 me 1 10 U+40000 T ' '" LATE_DEAD "' 0]]");
    end();
}

Test(verdict, of_a_job_that_is_too_late_is_that_it_is_gone)
{
    given("schedule", "0 a +0 0 " LATE_SKIP "body b +0 0 " REC);
    now_at(41);
    RUN("claim", "0 me 1000 9",
        "[U+41000 0 0 0 0 0 0 ['a' 0 T '' '" LATE_SKIP "body' 0] "
        "['b' 2 T+1041 '1 U+41001 me 1 10 U+41000 T ' '" REC "' 0]]");
    KEYS("run b:T+1041 | jobs b=" REC " | attempts b=1 U+41001 me 1 10 U+41000 T  | seq U+41001");
    HEARD("");
    end();
}

Test(verdict, of_a_job_that_is_too_late_is_death_if_it_asked_for_that)
{
    given("schedule", "0 a +0 0 " LATE_DEAD "body");
    now_at(41);
    RUN("claim", "0 me 1000 0 x a",
        "[U+41000 0 0 0 0 0 0 ['a' 3 T+41 '1 0 me 0 10 U+41000 T " TOO_LATE "' '" LATE_DEAD
        "body' 2]]");
    KEYS("dead a:T+41 | jobs a=" LATE_DEAD "body | attempts a=1 0 me 0 10 U+41000 T " TOO_LATE);
    end();
}

static void keys_are_free_after(const char *settings)
{
    now_at(0);
    if (settings) {
        given("configure", settings);
    }
    given("schedule", "0 a +0 0 " SKIP_UNIQUE " b +0 0 " DEAD_UNIQUE);
    SAME("index", show(ask("ZRANGE s:{q}:index 0 -1")), "['u k a' 'u l b']");
    now_at(41);
    given("claim", "0 me 1000 9");
    SAME("index", show(ask("ZRANGE s:{q}:index 0 -1")), "[]");
    SAME("dead", show(ask("ZRANGE s:{q}:dead 0 -1")), "['b']");
    end();
}

Test(verdict, of_a_job_that_does_not_run_frees_its_unique_key)
{
    keys_are_free_after(NULL);
    keys_are_free_after("0 forward=list forward_element=id");
}

/* A retry has a due time of its own. */
Test(verdict, goes_by_when_the_retry_was_due)
{
    given("schedule", "0 a +0 0 " LATE_SKIP);
    given("claim", "0 me 1000 1");
    given("retry", "0 me a U+1 100 why");
    now_at(140);
    given("claim", "0 me 1000 1");
    given("retry", "0 me a U+140001 100 again");
    KEYS("due a:T+240 | jobs a=" LATE_SKIP
         " | attempts a=1 U+140001 me 2 10 U+140000 T+240 again | seq U+140001 | t a:T+239");
    now_at(281);
    RUN("claim", "0 me 1000 1",
        "[U+281000 0 0 0 0 0 0 ['a' 0 T+240 '1 U+140001 me 2 10 U+140000 T+240 again' '" LATE_SKIP
        "' 0]]");
    KEYS("seq U+140001");
    end();
}

Test(verdict, of_a_job_with_a_tag_takes_its_entry_of_the_index_away)
{
    given("schedule", "0 a +0 0 " WITH_TAG " b +0 0 " TAG_A);
    now_at(41);
    RUN("claim", "0 me 1000 1", "[U+41000 T 0 0 0 0 0 ['a' 0 T '' '" WITH_TAG "' 0]]");
    KEYS("due b:T | jobs b=" TAG_A " | index 't a b'");
    end();
}

Test(verdict, by_touch_is_that_of_a_claim)
{
    given("schedule", "0 a +0 0 " LATE_SKIP " b +0 0 " LATE_DEAD " c +0 0 " REC);
    now_at(41);
    RUN("touch", "0 me 1000 9 0 0 1 0 0",
        "[U+41000 0 0 0 0 0 0 3 0 0 T 0 0 '' ['a' 0 T '' '" LATE_SKIP
        "' 0] ['b' 3 T+41 '1 0 me 0 10 U+41000 T " TOO_LATE "' '" LATE_DEAD
        "' 0] ['c' 2 T+1041 '1 U+41001 me 1 10 U+41000 T ' '" REC "' 0]]");
    KEYS("run c:T+1041 | dead b:T+41 | jobs b=" LATE_DEAD " c=" REC
         " | attempts b=1 0 me 0 10 U+41000 T " TOO_LATE
         " c=1 U+41001 me 1 10 U+41000 T  | seq U+41001");
    end();
}

/* Who takes jobs from the list gets none that must not run. */
Test(verdict, comes_before_a_job_is_forwarded)
{
    given("configure", "0 forward=list");
    given("configure", "0 forward_element=id");
    given("schedule",
          "0 a +0 0 " LATE_SKIP " b +0 0 " LATE_DEAD " c +0 0 " REC " d +0 0 x e +0 0 " WITH_TAG);
    now_at(41);
    RUN("claim", "0 me 1000 1",
        "[U+41000 0 0 1 0 0 1 ['a' 0 T '' '" LATE_SKIP
        "' 0] ['b' 3 T+41 '1 0 me 0 10 U+41000 T " TOO_LATE "' '" LATE_DEAD
        "' 0] ['d' 3 T+41 '1 0 me 0 0 U+41000 T stored data is in a format this version cannot "
        "read' "
        "'' 0] ['e' 0 T '' '" WITH_TAG "' 0]]");
    SAME("list", show(ask("LRANGE s:{q}:list 0 -1")), "['c']");
    ask("DEL s:{q}:list");
    KEYS("dead b:T+41 d:T+41 | jobs b=" LATE_DEAD
         " d=x | attempts b=1 0 me 0 10 U+41000 T " TOO_LATE
         " d=1 0 me 0 0 U+41000 T stored data is in a format this version cannot read | seq "
         "U+41001 | conf 1 forward=list:s:{q}:list forward_element=id ");
    end();
}

Test(verdict, of_a_hundred_jobs_has_a_row_of_each)
{
    for (int i = 0; i < 100; i++) {
        given("schedule", text("0 a%02d +0 0 " LATE_SKIP, i));
    }
    now_at(41);
    redisReply *r = run("claim", "0 me 1000 100");
    cr_assert_eq(r->elements, 107);
    KEYS("");
}

/* ---- guards ---- */
/* What a claim makes of a job with this guard: "runs", "gone", or the reason of its death. */
static const char *judged(const char *guard)
{
    given("schedule", text("0 a +0 0 %s", guarded(guard)));
    redisReply *r = run("claim", "0 me 1000 1");
    cr_assert(r->type == REDIS_REPLY_ARRAY && r->elements == 8, "%s: %s", guard, show(r));

    long long state = r->element[7]->element[1]->integer;
    const char *reason = strstr(r->element[7]->element[3]->str, "the key");
    cr_assert_eq(ask("HEXISTS s:{q}:jobs a")->integer, state != 0);
    cr_assert_eq(ask("HEXISTS s:{q}:attempts a")->integer, state != 0);
    cr_assert_eq(ask("EXISTS s:{q}:run")->integer, state == 2);
    cr_assert_eq(ask("EXISTS s:{q}:dead")->integer, state == 3);
    cr_assert_eq(reason != NULL, state == 3, "%s", r->element[7]->element[3]->str);

    ask("DEL s:{q}:run s:{q}:dead s:{q}:jobs s:{q}:attempts");
    if (state == 3) {
        return reason;
    }
    return state == 2 ? "runs" : "gone";
}

#define WRONG                                                                                   \
    "the key of its guard cannot be read: WRONGTYPE Operation against a key holding the wrong " \
    "kind "                                                                                     \
    "of value"

Test(verdict, by_a_guard_is_by_each_op_of_a_key)
{
    static const struct {
        const char *guard, *missing, *one, *other, *empty, *list;
    } c[] = {
        {"= k{q}  one", "gone", "runs", "gone", "gone", WRONG},
        {"! k{q}  one", "runs", "gone", "runs", "runs", WRONG},
        {"+ k{q}  ", "gone", "runs", "runs", "runs", "runs"},
        {"- k{q}  ", "runs", "gone", "gone", "gone", "gone"},
        {"= k{q}  ", "gone", "gone", "gone", "runs", WRONG},
        {"! k{q}  ", "runs", "runs", "runs", "gone", WRONG},
    };

    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        SAME(c[i].guard, judged(c[i].guard), c[i].missing);
        ask("SET k{q} one");
        SAME(c[i].guard, judged(c[i].guard), c[i].one);
        ask("SET k{q} onetwo");
        SAME(c[i].guard, judged(c[i].guard), c[i].other);
        ask("SET k{q} %s", "");
        SAME(c[i].guard, judged(c[i].guard), c[i].empty);
        ask("DEL k{q}");
        ask("LPUSH k{q} one");
        SAME(c[i].guard, judged(c[i].guard), c[i].list);
        ask("DEL k{q}");
    }
    end();
}

Test(verdict, by_a_guard_is_by_each_op_of_a_field)
{
    static const struct {
        const char *guard, *missing, *one, *other, *string;
    } c[] = {
        {"= k{q} f one two", "gone", "runs", "gone", WRONG},
        {"! k{q} f one two", "runs", "gone", "runs", WRONG},
        {"+ k{q} f ", "gone", "runs", "runs", WRONG},
        {"- k{q} f ", "runs", "gone", "gone", WRONG},
    };

    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        SAME(c[i].guard, judged(c[i].guard), c[i].missing);
        ask("HSET k{q} g one");
        SAME(c[i].guard, judged(c[i].guard), c[i].missing);
        ask("HSET k{q} f %s", "one two");
        SAME(c[i].guard, judged(c[i].guard), c[i].one);
        ask("HSET k{q} f %s", "");
        SAME(c[i].guard, judged(c[i].guard), c[i].other);
        ask("SET k{q} one");
        SAME(c[i].guard, judged(c[i].guard), c[i].string);
        ask("DEL k{q}");
    }
    end();
}

/* In a cluster the key would be on another node. */
Test(verdict, by_a_guard_out_of_the_slot_of_the_queue_is_death)
{
    static const char *const guards[] = {"= k  one",       "= {p}k  one", "= {}{q}  one",
                                         "= {p}{q} f one", "- k{q  ",     "+ {{q}  "};

    for (size_t i = 0; i < sizeof guards / sizeof *guards; i++) {
        SAME(guards[i], judged(guards[i]),
             "the key of its guard cannot be read: it is not in the slot of the queue");
    }
    SAME("", judged("- k}{q}{p}  "), "runs");
    end();
}

/* The death of that job, and not the refusal of the others. */
Test(verdict, by_a_guard_that_may_not_be_read_is_death_of_that_job_alone)
{
    static const struct {
        const char *keys, *right, *guard;
    } c[] = {{"~*", "-hget", "= k{q} f one"},
             {"~*", "-exists", "+ k{q}  "},
             {"~s:*", "+get", "= k{q}  one"},
             {"~s:*", "+hget", "- k{q} f "}};

    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        given("schedule", text("0 a +0 0 %s b +0 0 " REC, guarded(c[i].guard)));
        redis_do(redis, "ACL SETUSER u reset on nopass %s &* +@all %s", c[i].keys, c[i].right);
        redis_do(redis, "AUTH u x");
        redisReply *r = run("claim", "0 me 1000 2");
        cr_assert(r->type == REDIS_REPLY_ARRAY && r->elements == 9, "%s", show(r));
        redis_do(redis, "AUTH default x");
        cr_assert_eq(r->element[7]->element[1]->integer, 3);
        cr_assert_eq(r->element[8]->element[1]->integer, 2);
        const char *reason = r->element[7]->element[3]->str;
        cr_assert_not_null(strstr(reason, "the key of its guard cannot be read: "), "%s", reason);
        cr_assert(strstr(reason, "ermission") || strstr(reason, "can't"), "%s", reason);
        end();
    }
}

Test(verdict, by_a_guard_may_change_from_run_to_run)
{
    given("schedule", text("0 a +0 0 %s", guarded("! order:{q}:1 status paid")));
    ask("HSET order:{q}:1 status open");
    given("claim", "0 me 1000 1");
    given("retry", "0 me a U+1 0 'no answer'");
    given("claim", "0 me 1000 1");
    given("release", "0 me a U+2");
    ask("HSET order:{q}:1 status paid");
    redisReply *r = run("claim", "0 me 1000 1");
    cr_assert_eq(r->element[7]->element[1]->integer, 0);
    ask("DEL order:{q}:1");
    KEYS("seq U+2");
    end();
}

Test(verdict, that_is_none_cannot_be_read)
{
    static const char *const attributes[] = {
        "G\\00", "G\\02= ", "G\\04= k ", "G\\05?\x20k  ",     "G\\04=  x", "G\\05=k  x",
        "L\\00", "L\\01s",  "L\\02s0",   "L\\02x1",           "L\\02ss",   "L\\0ed1234567890123",
        "R\\00", "R\\010",  "R\\02-1",   "R\\0d1234567890123"};

    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        const char *a = attributes[i];
        size_t n = 0;
        for (const char *at = a; *at; at++, n++) {
            at += *at == '\\' ? 2 : 0;
        }
        given("schedule", text("0 a +0 0 '\\02\\00\\%02x%s'", (unsigned)n, a));
        RUN("claim", "0 me 1000 1",
            "[U 0 0 1 0 0 0 ['a' 3 T '1 0 me 0 0 U T stored data is in a format this version "
            "cannot "
            "read' '' 0]]");
        end();
    }
}

/* ---- for how long it may be tried ---- */
Test(retry_for, counts_from_the_first_due_time_of_a_life)
{
    given("schedule", "0 a +0 0 " RETRY_FOR);
    now_at(5);
    RUN("claim", "0 me 10 1",
        "[U+5000 0 0 0 0 0 0 ['a' 2 T+15 '2 U+5001 me 1 10 U+5000 T f=T+40 ' '" RETRY_FOR "' 0]]");
    RUN("retry", "0 me a U+5001 30 no", "[U+5000 T+35]");
    now_at(40);
    RUN("claim", "0 me 10 1",
        "[U+40000 0 0 0 0 0 0 ['a' 2 T+50 '2 U+40001 me 2 10 U+40000 T+35 f=T+40 no' '" RETRY_FOR
        "' 0]]");
    end();
}

Test(retry_for, lets_a_retry_that_would_come_later_die_at_once)
{
    static const struct {
        const char *delay, *said, *keys;
    } c[] = {
        {"35", "[U+5000 T+40]",
         "due a:T+40 | jobs a=" RETRY_FOR
         " | attempts a=2 U+5001 me 1 10 U+5000 T+40 f=T+40 why | seq U+5001 "
         "| t a:T+39"},
        {"36", "[U+5000 0]",
         "dead a:T+5 | jobs a=" RETRY_FOR
         " | attempts a=2 U+5001 me 1 10 U+5000 T f=T+40 why | seq U+5001"},
        {"''", "[U+5000 0]",
         "dead a:T+5 | jobs a=" RETRY_FOR
         " | attempts a=2 U+5001 me 1 10 U+5000 T f=T+40 why | seq U+5001"},
        {"~36", "[U+5000 0]",
         "dead a:T+5 | jobs a=" RETRY_FOR
         " | attempts a=2 U+5001 me 0 10 U+5000 T f=T+40 why | seq U+5001"},
        {"~35", "[U+5000 T+40]",
         "due a:T+40 | jobs a=" RETRY_FOR
         " | attempts a=2 U+5001 me 0 10 U+5000 T+40 f=T+40 why | seq "
         "U+5001 | t a:T+39"},
    };

    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        given("schedule", "0 a +0 0 " RETRY_FOR);
        now_at(5);
        given("claim", "0 me 10 1");
        RUN("retry", text("0 me a U+5001 %s why", c[i].delay), c[i].said);
        KEYS(c[i].keys);
        end();
        now_at(0);
    }
}

Test(retry_for, lets_a_job_die_whose_lease_ended_too_late)
{
    given("schedule", "0 a +0 0 " RETRY_FOR " b +0 0 " RETRY_FOR);
    given("claim", "0 me 40 0 a");
    given("claim", "0 me 41 0 b");
    now_at(41);
    RUN("get", "0 a b",
        "[U+41000 ['a' 1 T+40 '2 U+1 me 1 10 U T f=T+40 ' '" RETRY_FOR
        "'] ['b' 3 T+41 '2 U+2 me 1 10 U T f=T+40 ' '" RETRY_FOR "']]");
    RUN("sweep", "0", "[U+41000 2 1 0 0]");
    KEYS("due a:T+40 | dead b:T+41 | jobs a=" RETRY_FOR " b=" RETRY_FOR
         " | attempts a=2 U+1 me 1 10 U T+40 f=T+40 the lease ended"
         " b=2 U+2 me 1 10 U T+41 f=T+40 the lease ended | seq U+2");

    /* no run begins later */
    RUN("claim", "0 me 10 1",
        "[U+41000 0 0 0 0 0 0 ['a' 3 T+41 '2 U+1 me 1 10 U+41000 T+40 f=T+40 " TOO_OFTEN
        "' '" RETRY_FOR "' 0]]");
    end();
}

Test(retry_for, lets_a_job_die_whose_first_run_would_begin_too_late)
{
    given("schedule", "0 a +0 0 " RETRY_FOR);
    now_at(41);
    RUN("claim", "0 me 10 1",
        "[U+41000 0 0 0 0 0 0 ['a' 3 T+41 '2 0 me 0 10 U+41000 T f=T+40 " TOO_OFTEN "' '" RETRY_FOR
        "' 0]]");
    end();
}

Test(retry_for, counts_as_before_after_a_release)
{
    given("schedule", "0 a +0 0 " RETRY_FOR);
    given("claim", "0 me 10 1");
    given("release", "0 me a U+1");
    KEYS("due a:T | jobs a=" RETRY_FOR " | attempts a=2 U+1 me 0 10 U T f=T+40  | seq U+1");
    now_at(39);
    RUN("claim", "0 me 10 1",
        "[U+39000 0 0 0 0 0 0 ['a' 2 T+49 '2 U+39001 me 1 10 U+39000 T f=T+40 ' '" RETRY_FOR
        "' 0]]");
    end();
}

/* Its attempt tells when it is due, and no run of it has been. */
Test(retry_for, counts_from_the_due_time_of_a_job_that_was_debounced)
{
    given("schedule", "0 a +5 5:8 " RETRY_FOR);
    now_at(5);
    RUN("claim", "0 me 10 1",
        "[U+5000 0 0 0 0 0 0 ['a' 2 T+15 '2 U+5001 me 1 10 U+5000 T+5 f=T+45 ' '" RETRY_FOR
        "' 0]]");
    end();
}

/* Who gives a job another due time wants it to run then. */
Test(retry_for, counts_from_the_due_time_of_a_reschedule)
{
    given("schedule", "0 a +0 0 " RETRY_FOR);
    given("claim", "0 me 10 1");
    given("retry", "0 me a U+1 10 no");
    given("reschedule", "0 a +100");
    now_at(120);
    RUN("claim", "0 me 10 1",
        "[U+120000 0 0 0 0 0 0 ['a' 2 T+130 '2 U+120001 me 2 10 U+120000 T+100 f=T+140 no' "
        "'" RETRY_FOR "' 0]]");
    RUN("retry", "0 me a U+120001 21 no", "[U+120000 0]");
    given("reschedule", "0 a +0");
    RUN("claim", "0 me 10 1",
        "[U+120000 0 0 0 0 0 0 ['a' 2 T+130 '2 U+120002 me 1 10 U+120000 T+120 f=T+160 ' "
        "'" RETRY_FOR "' 0]]");
    end();
}

Test(retry_for, leaves_a_job_that_is_too_late_to_what_it_says_of_that)
{
    given("schedule", "0 a +0 0 \\02\\00\\09L\\03s40R\\0240");
    now_at(41);
    RUN("claim", "0 me 10 1", "[U+41000 0 0 0 0 0 0 ['a' 0 T '' '\\02\\00\\09L\\03s40R\\0240' 0]]");
    KEYS("");
}
