/* SPDX-License-Identifier: MIT */
/* Groups: bodies that are gathered under an id, until one job is made of them. */
#include "script.h"

SCRIPTS(gather);

#define SAME(what, got, expected) same(__FILE__, __LINE__, what, got, expected)

/* The header of a group with these limits, quiet_ms, most and age_ms, and what stands in attributes
 * behind them. */
static const char *group_with(const char *limits, const char *attributes, size_t len)
{
    return text("'\\02\\00\\%02xP\\%02x%s%s'", (unsigned)(strlen(limits) + 2 + len),
                (unsigned)strlen(limits), limits, attributes);
}

static const char *group(const char *limits)
{
    return group_with(limits, "", 0);
}

/* That of its Nth job, of so many parts; both have one digit. */
static const char *job_of(const char *id, int n, int parts)
{
    size_t own = strlen(id) + 2;

    return text("\\02\\00\\%02xO\\%02x%s %dp\\01%d", (unsigned)(own + 5), (unsigned)own, id, n,
                parts);
}

static void gathers(const char *id, const char *header, const char *part)
{
    given("gather", text("0 %s %s '%s'", id, header, part));
}

static const char *due_of(const char *id)
{
    return show(ask("ZSCORE s:{q}:due %s", id));
}

/* What became of a part: the last element of its row, or a refusal. */
static const char *answered(const redisReply *r, size_t i)
{
    const redisReply *one = r->element[1 + i];

    return show(one->type == REDIS_REPLY_ARRAY ? one->element[5] : one);
}

/* The one row of a claim. */
static const redisReply *claimed(int64_t after_ms)
{
    now_at(after_ms);
    redisReply *r = run("claim", "0 me 100000 100");
    cr_assert_eq(r->elements, 8u, "%s", show(r));
    return r->element[7];
}

static const char *made(const char *id, int64_t after_us)
{
    return text("%s~%s", id, moments(text("U+%lld", (long long)after_us)));
}

static void end(void)
{
    ask("FLUSHALL");
}

/* ---- a group, and its job ---- */
Test(gather, waits_for_a_part_to_be_the_last_and_is_one_job_then)
{
    const char *header = group("5 3 0");
    const char *bare = text("%.*s", (int)strlen(header) - 2, header + 1);

    RUN("gather", text("0 a %s one", header),
        text("[U ['a' 1 T+5 '2 0 - 0 10 0 T+5 n=0,g=1:4 ' '%s' 1]]", bare));
    HEARD("0 'T+5 a'");
    now_at(3);
    RUN("gather", text("0 a %s two", header),
        text("[U+3000 ['a' 1 T+8 '2 0 - 0 10 0 T+8 n=0,g=2:8 ' '%s' 2]]", bare));
    KEYS(
        text("due a:T+8 | jobs a=%s | attempts a=2 0 - 0 10 0 T+8 n=0,g=2:8  | p a=\\03one,\\03two "
             "| t a:T+7",
             bare));
    now_at(8);
    const char *record = text("%s\\03one\\03two", job_of("a", 1, 2));
    RUN("claim", "0 me 1000 1",
        text("[U+8000 0 0 0 0 0 0 ['a~U+8001' 2 T+1008 '2 U+8001 me 1 10 U+8000 T+8 x=1 ' '%s' 0]]",
             record));
    KEYS(text("run a~U+8001:T+1008 | jobs a~U+8001=%s | attempts a~U+8001=2 U+8001 me 1 10 U+8000 "
              "T+8 x=1  | index 's a %s' | seq U+8001",
              record, made("a", 8001)));
    given("done", text("0 me %s U+8001", made("a", 8001)));
    KEYS("seq U+8001");
    end();
}

Test(gather, is_made_a_job_once_by_claims_of_any_kind)
{
    static const char *const claims[][2] = {{"claim", "0 me 1000 9"},
                                            {"claim", "0 me 1000 0 x a"},
                                            {"claim", "0 me 1000 -1 a x"},
                                            {"touch", "0 me 1000 9 0 0 1 1 9"}};

    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        now_at(0);
        gathers("a", group("0 1 5"), "x");
        redisReply *r = run(claims[i][0], claims[i][1]);
        redisReply *row = r->element[r->elements - 1];
        SAME(claims[i][1], show(row->element[0]), "'a~U+1'");
        given(claims[i][0], claims[i][1]);
        SAME("run", show(ask("ZRANGE s:{q}:run 0 -1")), "['a~U+1']");
        SAME("group", show(ask("HMGET s:{q}:jobs a")), "[nil]");
        end();
    }
}

Test(gather, gives_its_job_all_that_its_first_part_asked_for)
{
    const char *header = "'\\02\\01\\02\\12P\\055 9 0Q\\01\\07T\\01ar\\03100'";

    gathers("a", header, "x");
    SAME("index", show(ask("ZRANGE s:{q}:index 0 -1")), "['t a a']");
    gathers("a", group("5 9 0"), "y");
    const redisReply *row = claimed(5);
    SAME("record", show(row->element[4]),
         "'\\02\\01\\02\\13O\\03a 1Q\\01\\07T\\01ap\\012r\\03100\\01x\\01y'");
    SAME("attempt", show(row->element[3]), "'2 U+5001 me 1 2 U+5000 T+5 x=1,q=7 '");
    SAME("index", show(ask("ZRANGE s:{q}:index 0 -1")), "['s a a~U+5001' 't a a~U+5001']");
    end();
}

/* ---- when it is due ---- */
Test(gather, is_due_by_the_first_of_its_limits)
{
    static const struct {
        const char *limits, *first, *second; /* due after a part at T, and one at T+3 */
    } c[] = {{"5 3 0", "'T+5'", "'T+8'"},
             {"0 3 5", "'T+5'", "'T+5'"},
             {"5 3 7", "'T+5'", "'T+7'"},
             {"5 2 0", "'T+5'", "'T+3'"},
             {"0 2 100", "'T+100'", "'T+3'"}};

    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        now_at(0);
        gathers("a", group(c[i].limits), "x");
        SAME(c[i].limits, due_of("a"), c[i].first);
        now_at(3);
        gathers("a", group(c[i].limits), "x");
        SAME(c[i].limits, due_of("a"), c[i].second);
        end();
    }
}

/* Else it would never be claimed where claims are late and parts are many. */
Test(gather, whose_due_time_a_part_leaves_is_put_nowhere_and_not_told_of)
{
    const char *header = group("0 9 500");

    gathers("a", header, "one");
    ask("CONFIG RESETSTAT");
    gathers("a", header, "two");
    cr_assert_eq(calls("zadd") + calls("set") + calls("publish"), 0);
    SAME("due", due_of("a"), "'T+500'");
    end();
}

Test(gather, stays_due_once_it_is)
{
    gathers("a", group("5 9 0"), "x");
    now_at(7);
    gathers("a", group("5 9 0"), "y");
    SAME("due", due_of("a"), "'T+5'");
    HEARD("");
    SAME("both", show(claimed(7)->element[4]), text("'%s\\01x\\01y'", job_of("a", 1, 2)));
    end();
}

Test(gather, begins_again_when_its_job_is_made)
{
    gathers("a", group("0 9 5"), "x");
    claimed(5);
    now_at(6);
    gathers("a", group("1 8 0"), "y");
    SAME("due", due_of("a"), "'T+7'");
    SAME("other limits", show(claimed(7)->element[4]), text("'%s\\01y'", job_of("a", 1, 1)));
    end();
}

/* Where a claim is late the job is made by the part that has no room. */
Test(gather, that_is_full_is_a_job_that_waits_and_begins_again)
{
    const char *header = group("5 2 9");

    gathers("a", header, "x");
    gathers("a", header, "y");
    now_at(2);
    RUN("gather", text("0 a %s z", header),
        text("[U+2000 ['a' 1 T+7 '2 U+2001 - 1 10 U+2000 T+7 n=1,g=1:2,w=T+11 ' '%.*s' 2]]",
             (int)strlen(header) - 2, header + 1));
    HEARD("0 '0 a~U+2001 T+7 a'");
    SAME("the job", show(ask("HGET s:{q}:jobs %s", made("a", 2001))),
         text("'%s\\01x\\01y'", job_of("a", 1, 2)));
    SAME("due with its group", due_of(made("a", 2001)), "'T'");
    SAME("the job runs", show(claimed(2)->element[0]), "'a~U+2001'");
    SAME("the second one", show(claimed(7)->element[4]), text("'%s\\01z'", job_of("a", 2, 1)));
    end();
}

Test(gather, that_makes_two_jobs_in_a_call_has_each_part_in_one)
{
    const char *header = group("5 2 0");

    gathers("a", header, "v");
    given("gather", text("0 a %s w a %s x a %s y a %s z", header, header, header, header));
    SAME("first", show(ask("HGET s:{q}:jobs %s", made("a", 1))),
         text("'%s\\01v\\01w'", job_of("a", 1, 2)));
    SAME("second", show(ask("HGET s:{q}:jobs %s", made("a", 2))),
         text("'%s\\01x\\01y'", job_of("a", 2, 2)));
    end();
}

Test(gather, that_has_made_a_job_says_with_each_part_when_it_did)
{
    const char *header = group("5 3 0");

    for (const char *part = "vwxy"; *part; part++) {
        gathers("a", header, text("%c", *part));
    }
    now_at(3);
    gathers("a", header, "z");
    SAME("attempt", show(ask("HGET s:{q}:attempts a")), "'2 U+1 - 1 10 U T+8 n=1,g=2:4 '");
    end();
}

Test(gather, takes_as_many_parts_of_one_group_in_a_call_as_jobs_have_room_for)
{
    const char *header = group("5 2 0");
    redisReply *r = run("gather", text("0 a %s 1 a %s 2 b %s 3 a %s 4 a %s 5 a %s 6", header,
                                       header, header, header, header, header));

    SAME("answers",
         text("%s %s %s %s %s %s", answered(r, 0), answered(r, 1), answered(r, 2), answered(r, 3),
              answered(r, 4), answered(r, 5)),
         "1 2 1 2 2 2");
    SAME("waiting", show(ask("ZRANGE s:{q}:due 0 -1 WITHSCORES")),
         "['a~U+1' 'T' 'a~U+2' 'T' 'a' 'T+5' 'b' 'T+5']");
    SAME("first", show(ask("HGET s:{q}:jobs %s", made("a", 1))),
         text("'%s\\011\\012'", job_of("a", 1, 2)));
    SAME("second", show(ask("HGET s:{q}:jobs %s", made("a", 2))),
         text("'%s\\014\\015'", job_of("a", 2, 2)));
    SAME("left", show(ask("LRANGE s:{q}:p:a 0 -1")), "['\\016']");
    end();
}

/* ---- how much ---- */
/* With limits "5 9 0"; no byte of it is 0 but the second. */
static redisReply *gather_large(size_t len)
{
    static char part[1 << 20];
    const char *argv[] = {"0", "a", "\2\0\7P\0055 9 0", part};
    size_t lens[] = {1, 1, 10, len};

    return run_bytes("gather", 4, argv, lens);
}

Test(gather, takes_a_part_of_a_mebibyte_less_eight_and_none_that_is_larger)
{
    enum { MOST = (1 << 20) - 8 };

    SAME("too large", answered(gather_large(MOST + 1), 0), "'EINVAL'");
    KEYS("");
    SAME("as large as can be", answered(gather_large(MOST), 0), "1");
    const redisReply *record = claimed(5)->element[4];
    enum { HEADER = 3 + 5 + 3, LENGTH = 3 };
    cr_assert_eq((size_t)record->len, (size_t)HEADER + LENGTH + MOST);
    end();
}

/* Each part but the first makes a job of the one before it: two of them are enough. */
Test(gather, answers_no_more_parts_when_it_has_made_jobs_of_256_KiB)
{
    enum { PARTS = 5, LEN = 200000 };
    static char part[LEN];
    const char *argv[1 + 3 * PARTS] = {"0"};
    size_t lens[1 + 3 * PARTS] = {1};

    memset(part, 'x', LEN);
    for (size_t i = 1; i < 1 + 3 * PARTS; i += 3) {
        argv[i] = "a", lens[i] = 1;
        argv[i + 1] = "\2\0\7P\0055 1 0", lens[i + 1] = 10;
        argv[i + 2] = part, lens[i + 2] = LEN;
    }
    redisReply *r = run_bytes("gather", 1 + 3 * PARTS, argv, lens);
    cr_assert_eq(r->elements, 1 + 3, "%s", show(r));
    SAME("waiting", show(ask("ZRANGE s:{q}:due 0 -1")), "['a' 'a~U+1' 'a~U+2']");
    end();
}

Test(gather, makes_its_job_before_that_has_over_a_mebibyte)
{
    enum { HALF = 1 << 19 };

    gather_large(HALF);
    SAME("no room", answered(gather_large(HALF), 0), "2");
    SAME("waiting", show(ask("ZRANGE s:{q}:due 0 -1 WITHSCORES")), "['a~U+1' 'T' 'a' 'T+5']");
    cr_assert_eq(ask("LLEN s:{q}:p:a")->integer, 1);
    end();
    gather_large(HALF);
    SAME("room to the last byte", answered(gather_large(HALF - 6), 0), "2");
    cr_assert_eq(ask("LLEN s:{q}:p:a")->integer, 2);
    SAME("its job can be read", show(claimed(5)->element[1]), "2");
    end();
}

/* A listpack has a byte or two for each length, and the frame one. */
Test(gather, has_110_bytes_at_most_for_a_part_of_100)
{
    const char *part = text("%0100d", 0);
    const char *header = group("5 1000 0");
    const char *args = "0";

    gathers("a", header, part);
    long long one = redis_int(redis, "MEMORY USAGE s:{q}:p:a SAMPLES 0");
    for (int i = 0; i < 100; i++) {
        args = text("%s a %s %s", args, header, part);
    }
    for (int i = 0; i < 9; i++) {
        given("gather", args);
    }
    long long all = redis_int(redis, "MEMORY USAGE s:{q}:p:a SAMPLES 0");
    cr_assert_leq(all - one, 110 * 900, "%lld", all - one);
    end();
}

/* ---- what is there ---- */
Test(gather, of_other_limits_or_an_id_that_a_job_has_is_refused)
{
    const char *header = group("5 9 0");

    given("schedule", "0 w +5 0 " REC " r +0 0 " REC " d +0 0 " REC);
    given("claim", "0 me 1000 0 r d");
    given("fail", "0 me d U+2 bad");
    gathers("a", header, "x");
    gathers("k", header, "x");
    given("kill", "0 k bad");
    const char *before = keys();
    redisReply *r = run("gather", text("0 a %s y w %s y r %s y d %s y k %s y", group("5 8 0"),
                                       header, header, header, header));
    SAME("answers", show(r), "[U 'EEXIST' 'EEXIST' 'EEXIST' 'EEXIST' 'EEXIST']");
    KEYS(before);
    HEARD("");
    end();
}

Test(gather, without_limits_or_with_wrong_ones_is_refused)
{
    static const char *const limits[] = {"0 1 0", "5 0 0",  "5 1001 0", "5 1",
                                         "x 1 0", "5 1 0 ", "-5 1 0",   "315576000001 1 0"};

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        RUN("gather", text("0 a %s x", group(limits[i])), "[U 'EINVAL']");
    }
    RUN("gather", text("0 a %s x", REC), "[U 'EINVAL']");
    RUN("gather", text("0 a %s x", TAG_A), "[U 'EINVAL']");
    RUN("gather", text("0 a %s x", group_with("5 1 0", "S\\0al 0 0 e 90", 12)), "[U 'EINVAL']");
    RUN("gather", text("0 a %s x", group_with("5 1 0", "U\\02ek", 4)), "[U 'EINVAL']");
    RUN("gather", text("0 a '\\02\\00\\07P\\055 1 0body' x"), "[U 'EINVAL']");
    RUN("gather", text("0 %0239d %s x", 0, group("5 1 0")), "[U 'EINVAL']");
    KEYS("");
    SAME("an id of 238", answered(run("gather", text("0 %0238d %s x", 0, group("5 1 0"))), 0), "1");
    end();
}

/* Nobody has lost anything: it has ended. */
Test(gather, takes_the_id_of_a_job_that_is_kept)
{
    given("schedule", "0 a +0 0 " KEEP);
    given("claim", "0 me 1000 1");
    given("done", "0 me a U+1");
    gathers("a", group("5 9 0"), "x");
    SAME("kept", show(ask("EXISTS s:{q}:kept")), "0");
    SAME("its job", show(claimed(5)->element[4]), text("'%s\\01x'", job_of("a", 1, 1)));
    end();
}

Test(gather, is_not_what_other_schedules_make_and_they_replace_it_only)
{
    const char *header = group("5 9 0");

    RUN("schedule", text("0 a +5 0 %s", header), "[U 'EINVAL']");
    gathers("a", header, "x");
    RUN("schedule", "0 a +5 0 " REC, "[U 'EEXIST']");
    RUN("schedule", "0 a +5 3 " REC, "[U 'EINVAL']");
    RUN("schedule", "0 a +5 4 " REC, "[U 'EINVAL']");
    RUN("schedule", "0 a +5 5 " REC, "[U 'EINVAL']");
    SAME("kept as it is", show(run("schedule", "0 a +5 1 " REC)->element[1]->element[1]), "1");
    SAME("parts", show(ask("LRANGE s:{q}:p:a 0 -1")), "['\\01x']");
    RUN("schedule", "0 a +5 2 " REC, "[U T+5]");
    KEYS("due a:T+5 | jobs a=" REC " | t a:T+4");
    end();
}

Test(gather, a_schedule_of_a_group_is_refused_and_the_job_that_it_meets_stays_as_it_is)
{
    const char *header = group("5 9 0");

    given("schedule", "0 a +500 0 " REC);
    for (int how = 0; how < 6; how++) {
        RUN("schedule", text("0 a +5 %d %s", how, header), "[U 'EINVAL']");
        RUN("schedule", text("0 a +900 %d %s", how, header), "[U 'EINVAL']");
        KEYS("due a:T+500 | jobs a=" REC " | t a:T+499");
    }
    end();
}

Test(gather, by_another_version_that_lost_its_counts_goes_on_with_its_parts)
{
    gathers("a", group("5 9 7"), "x");
    ask("HDEL s:{q}:attempts a");
    now_at(1);
    gathers("a", group("5 9 7"), "yy");
    SAME("attempt", show(ask("HGET s:{q}:attempts a")), "'2 0 - 0 10 0 T+6 n=0,g=2:5,w=T+8 '");
    end();
}

/* They may be on another node of a cluster, whose half of the queue is missing here. */
Test(gather, whose_parts_are_missing_dies_and_waits_again_when_they_are_back)
{
    gathers("a", group("5 9 0"), "x");
    ask("RENAME s:{q}:p:a elsewhere{q}");
    SAME("state", show(claimed(5)->element[1]), "3");
    ask("RENAME elsewhere{q} s:{q}:p:a");
    given("reschedule", "0 a +0 0");
    SAME("its job", show(claimed(6)->element[4]), text("'%s\\01x'", job_of("a", 1, 1)));
    end();
}

Test(gather, begins_without_parts_that_another_program_left)
{
    ask("RPUSH s:{q}:p:a stray");
    gathers("a", group("5 9 0"), "x");
    SAME("parts", show(ask("LRANGE s:{q}:p:a 0 -1")), "['\\01x']");
    end();
}

Test(gather, whose_parts_are_of_another_type_dies)
{
    gathers("a", group("5 9 0"), "x");
    ask("SET s:{q}:p:a text");
    const redisReply *row = claimed(5);
    SAME("id", show(row->element[0]), "'a'");
    SAME("state", show(row->element[1]), "3");
    end();
}

Test(gather, whose_parts_are_more_than_a_mebibyte_makes_a_job_that_is_dead)
{
    gathers("a", group("5 9 0"), "x");
    ask("EVAL %s 1 s:{q}:p:a", "redis.call('RPUSH', KEYS[1], string.rep('x', 1048576))");
    const redisReply *row = claimed(5);
    SAME("state", show(row->element[1]), "3");
    SAME("dead", show(ask("ZRANGE s:{q}:dead 0 -1")), "['a~U+5001']");
    cr_assert_eq(ask("EXISTS s:{q}:run")->integer, 0);
    end();
}

/* ---- other verbs ---- */
Test(gather, is_cancelled_with_its_parts_and_the_jobs_that_it_has_made)
{
    const char *header = group("5 1 0");

    gathers("a", header, "x");
    gathers("a", header, "y");
    gathers("a", header, "z");
    given("claim", text("0 me 1000 0 %s", made("a", 1)));
    RUN("cancel", "0 a 1",
        text("[U ['a' 1 T '2 U+2 - 2 10 U T n=2,g=1:2 ' '%.*s']]", (int)strlen(header) - 2,
             header + 1));
    SAME("waiting", show(ask("EXISTS s:{q}:due s:{q}:p:a")), "0");
    SAME("asked to stop", show(ask("HGET s:{q}:attempts %s", made("a", 1))),
         "'2 U+3 me 1 10 U T x=1,c=1 '");
    end();
}

Test(gather, goes_with_its_selection)
{
    gathers("a", group_with("5 9 0", "T\\01a", 3), "x");
    given("cancel_all", "0 0 a '' 0 100 '' 0");
    KEYS("");
    gathers("a", group("5 9 0"), "x");
    given("cancel_all", "0 1 '' '' 0 100 '' 0");
    KEYS("");
    end();
}

Test(gather, is_due_when_it_is_rescheduled_to_until_the_next_part)
{
    gathers("a", group("5 9 0"), "x");
    given("reschedule", "0 a +100 0");
    SAME("moved", due_of("a"), "'T+100'");
    now_at(2);
    gathers("a", group("5 9 0"), "y");
    SAME("next part", due_of("a"), "'T+7'");
    given("reschedule", "0 a +0 0");
    SAME("at once", show(claimed(2)->element[4]), text("'%s\\01x\\01y'", job_of("a", 1, 2)));
    end();
}

Test(gather, that_was_killed_keeps_its_parts_and_waits_again)
{
    gathers("a", group("5 9 0"), "x");
    given("kill", "0 a bad");
    SAME("not due", due_of("a"), "nil");
    given("reschedule", "0 a +5 0");
    gathers("a", group("5 9 0"), "y");
    SAME("both", show(claimed(5)->element[4]), text("'%s\\01x\\01y'", job_of("a", 1, 2)));
    end();
}

Test(gather, that_is_dead_is_freed_with_its_parts)
{
    gathers("a", group("5 9 0"), "x");
    given("kill", "0 a bad");
    ask("SET s:{q}:conf %s", "1 dead_max=0 ");
    given("sweep", "0");
    SAME("keys", show(ask("KEYS s:{q}:*")), "['s:{q}:conf']");
    end();
}

Test(gather, is_removed_with_its_queue)
{
    gathers("a", group("5 9 0"), "x");
    given("remove", "0 1");
    SAME("keys", show(ask("KEYS *")), "[]");
}

Test(gather, is_no_series_that_could_be_paused)
{
    gathers("a", group("5 9 0"), "x");
    RUN("pause", "0 a 1", "[U 'EINVAL']");
    end();
}

/* ---- doctor ---- */
Test(gather, that_says_another_number_of_parts_than_it_has_is_mended)
{
    gathers("a", group("5 9 7"), "x");
    gathers("b", group("5 9 0"), "y");
    RUN("check", "0 jobs 0 100", "[U 0 2 22 0]");
    ask("RPUSH s:{q}:p:a %b", "\2zz", (size_t)3);
    ask("HDEL s:{q}:attempts b");
    redisReply *r = run("check", "0 jobs 0 100");
    cr_assert_eq(r->elements, 7, "%s", show(r));
    SAME("what", show(r->element[5]->element[1]), "'parts'");
    RUN("mend", "0 a b", "[U 'parts' 'parts']");
    SAME("a", show(ask("HGET s:{q}:attempts a")), "'2 0 - 0 10 0 T+5 n=0,w=T+7,g=2:5 '");
    SAME("b", show(ask("HGET s:{q}:attempts b")), "'2 0 - 0 10 0 T n=0,g=1:2 '");
    RUN("check", "0 jobs 0 100", "[U 0 2 22 0]");
    RUN("mend", "0 a b", "[U '' '']");
    end();
}

Test(gather, whose_parts_are_of_another_type_does_not_keep_others_from_being_checked)
{
    gathers("a", group("5 9 0"), "x");
    ask("SET s:{q}:p:a text");
    RUN("check", "0 jobs 0 100", "[U 0 1 11 0]");
    RUN("mend", "0 a", "[U '']");
    end();
}

Test(gather, leaves_no_parts_that_are_of_no_group)
{
    gathers("a", group("5 9 0"), "x");
    given("schedule", "0 b +5 0 " REC " full~0 +5 0 " REC " full +5 0 " REC);
    ask("RPUSH s:{q}:p:lost %b %b", "\3one", (size_t)4, "\0", (size_t)1);
    ask("RPUSH s:{q}:p:b %b", "\1y", (size_t)2);
    ask("RPUSH s:{q}:p:full %b", "\1z", (size_t)2);
    ask("RPUSH s:{q}:p:b~0 %b", "\1v", (size_t)2);
    ask("RPUSH s:{q}:p:odd %b short", "\1y", (size_t)2);
    ask("SET s:{q}:p:text x");

    static const char ids[] = "a lost b full odd text none b~0";
    RUN("parts", text("0 0 %s", ids), "[U '' 'stray' 'stray' 'stray' 'stray' 'stray' '' 'stray']");
    ask("RENAME s:{q}:jobs s:{q}:x");
    ask("SET s:{q}:jobs x");
    cr_assert_eq(run("parts", text("0 1 %s", ids))->type, REDIS_REPLY_ERROR);
    ask("RENAME s:{q}:x s:{q}:jobs");

    RUN("parts", text("0 1 %s", ids), "[U '' 'parts' 'parts' 'stray' 'stray' 'stray' '' 'parts']");
    SAME("lost", show(ask("HGET s:{q}:jobs lost")), "'\\02\\00\\03p\\012\\03one\\00'");
    SAME("b", show(ask("HGET s:{q}:jobs b~0")), "'\\02\\00\\03p\\011\\01y'");
    SAME("b~0", show(ask("HGET s:{q}:jobs b~0~0")), "'\\02\\00\\03p\\011\\01v'");
    SAME("attempt", show(ask("HGET s:{q}:attempts lost")),
         "'1 0 - 0 10 U T lapse doctor: the parts were of no group'");
    cr_assert_eq(ask("ZCARD s:{q}:dead")->integer, 3);
    RUN("parts", text("0 1 %s", ids), "[U '' '' '' 'stray' 'stray' 'stray' '' '']");
    RUN("check", "0 dead 0 100", "[U 0 3 51 0]");
    ask("DEL s:{q}:p:full s:{q}:p:odd s:{q}:p:text");
    end();
}

/* Whether it is a group only that version can say. */
Test(gather, whose_record_is_of_a_newer_version_keeps_its_parts)
{
    gathers("a", group("5 9 0"), "x");
    ask("HSET s:{q}:jobs a %s", "\3newer");
    RUN("parts", "0 0 a", "[U '']");
    RUN("parts", "0 1 a", "[U '']");
    KEYS("due a:T+5 | jobs a=\\03newer | attempts a=2 0 - 0 10 0 T+5 n=0,g=1:2  | p a=\\01x | "
         "t a:T+4");
    end();
}

/* A list that is longer than any group's stays what it is. */
Test(gather, leaves_parts_that_no_job_could_have)
{
    ask("EVAL %s 1 s:{q}:p:many", "for i = 1, 1001 do redis.call('RPUSH', KEYS[1], '\\1x') end");
    ask("EVAL %s 1 s:{q}:p:large",
        "redis.call('RPUSH', KEYS[1], '\\128\\128\\64' .. string.rep('x', 1048576))");
    RUN("parts", "0 1 many large", "[U 'stray' 'stray']");
    ask("FLUSHALL");
}

/* 100 KiB each: three pass 256 KiB. What is only looked at is not read. */
Test(gather, leaves_parts_of_no_group_to_the_next_call_when_it_has_read_enough)
{
    for (int i = 0; i < 5; i++) {
        ask("EVAL %s 1 s:{q}:p:%d",
            "redis.call('RPUSH', KEYS[1], '\\128\\160\\6' .. string.rep('x', 102400))", i);
    }
    RUN("parts", "0 0 0 1 2 3 4", "[U 'stray' 'stray' 'stray' 'stray' 'stray']");
    RUN("parts", "0 1 0 1 2 3 4", "[U 'parts' 'parts' 'parts']");
    RUN("parts", "0 1 3 4", "[U 'parts' 'parts']");
    cr_assert_eq(ask("ZCARD s:{q}:dead")->integer, 5);
    SAME("lists", show(ask("KEYS s:{q}:p:*")), "[]");
    end();
}

/* A list with more bytes than a job can have is not read to its end. */
Test(gather, reads_no_more_of_a_list_than_a_job_could_have)
{
    ask("CONFIG SET appendonly no"); /* or a file of 100 MB is written, and written again */
    ask("EVAL %s 1 s:{q}:p:a", "local part = '\\128\\160\\6' .. string.rep('x', 102400) "
                               "for i = 1, 1000 do redis.call('RPUSH', KEYS[1], part) end");
    ask("CONFIG RESETSTAT");
    RUN("parts", "0 1 a b", "[U 'stray']");
    cr_assert_eq(calls("lrange"), 2);
    RUN("parts", "0 1 b", "[U '']");
    end();
}

/* In a cluster all of its jobs may be on another node, where a slot was being moved: a second hash
 * of records would keep them from coming back. */
Test(gather, whose_queue_has_no_records_here_may_be_elsewhere_with_them)
{
    ask("RPUSH s:{q}:p:lost %b", "\1x", (size_t)2);
    RUN("parts", "'0 cluster' 0 lost", "-LAPSE EHALF s:{q}:jobs");
    RUN("parts", "'0 cluster' 1 lost", "-LAPSE EHALF s:{q}:jobs");
    SAME("keys", show(ask("KEYS *")), "['s:{q}:p:lost']");
    RUN("parts", "'0 cluster' 1 none", "[U '']");
    given("schedule", "0 b +5 0 " REC);
    RUN("parts", "'0 cluster' 0 lost", "[U 'stray']");
    given("cancel", "0 b");
    RUN("parts", "0 1 lost", "[U 'parts']");
    end();
}

/* ---- its job ---- */
Test(gather, makes_a_job_that_is_retried_and_dies_like_any_other)
{
    gathers("a", group("0 1 5"), "x");
    claimed(0);
    const char *id = made("a", 1);
    given("retry", text("0 me %s U+1 5 later", id));
    now_at(5);
    gathers("a", group("0 1 5"), "y");
    given("claim", "0 me 100000 100");
    SAME("another one", show(ask("HGET s:{q}:jobs %s", made("a", 5001))),
         text("'%s\\01y'", job_of("a", 1, 1)));
    SAME("the one that failed", show(ask("HGET s:{q}:attempts %s", id)),
         "'2 U+5002 me 2 10 U+5000 T+5 x=1 later'");
    end();
}

Test(gather, whose_job_must_not_run_is_skipped_or_dead_with_its_parts)
{
    gathers("b", "'\\02\\00\\0bL\\02s1P\\050 9 5'", "x");
    const redisReply *row = claimed(7);
    SAME("skipped", show(row->element[1]), "0");
    SAME("its parts are shown", show(row->element[4]), "'\\02\\00\\0cL\\02s1O\\03b 1p\\011\\01x'");
    KEYS("seq U+7001");
    end();
    now_at(0);
    gathers("b", "'\\02\\00\\0bL\\02d1P\\050 9 5'", "x");
    SAME("dead", show(claimed(7)->element[1]), "3");
    SAME("dead", show(ask("ZRANGE s:{q}:dead 0 -1")), "['b~U+7001']");
    SAME("with its parts", show(ask("HGET s:{q}:jobs %s", made("b", 7001))),
         "'\\02\\00\\0cL\\02d1O\\03b 1p\\011\\01x'");
    end();
}

Test(gather, is_forwarded_as_one_job_that_says_how_many_parts_it_has)
{
    ask("SET s:{q}:conf %s", "1 forward=stream:s:{q}:stream ");
    gathers("a", group_with("0 2 5", "h\\03n=v", 5), "x");
    gathers("a", group_with("0 2 5", "h\\03n=v", 5), "yz");
    given("claim", "0 me 1000 100");
    SAME("entry", show(ask("XRANGE s:{q}:stream - +")->element[0]->element[1]),
         "['id' 'a~U+1' 'due_ms' 'T' 'try' '1' 'token' 'U+1' 'body' '\\01x\\02yz' 'header:n' 'v' "
         "'parts' '2']");
    ask("DEL s:{q}:stream");
    KEYS("seq U+1 | conf 1 forward=stream:s:{q}:stream ");
    ask("SET s:{q}:conf %s", "1 forward=list:s:{q}:list ");
    gathers("a", group("0 1 5"), "x");
    given("claim", "0 me 1000 100");
    SAME("element", show(ask("LRANGE s:{q}:list 0 -1")), "['a~U+2 T 1 U+2 \\01x']");
    end();
}

/* ---- costs ---- */
/* How many commands the script takes that puts n parts into one group. */
static long long costs(int n)
{
    const char *header = group("100000 1000 0");
    const char *args = "0";

    for (int i = 0; i < n; i++) {
        args = text("%s a %s x", args, header);
    }
    ask("CONFIG RESETSTAT");
    given("gather", args);
    return commands();
}

/* The first part makes the group. */
Test(gather, takes_as_many_commands_for_one_part_as_for_a_hundred)
{
    cr_assert_eq(costs(1), 14, "%lld", commands());
    cr_assert_eq(calls("del"), 0); /* there is nothing to clear */
    now_at(1);
    cr_assert_eq(costs(1), 11, "%lld", commands());
    now_at(2);
    cr_assert_eq(costs(100), 11, "%lld", commands());

    ask("CONFIG RESETSTAT");
    RUN("gather", text("0 a %s x", group("5 9 0")), "[U+2000 'EEXIST']");
    cr_assert_eq(commands(), 6, "%lld", commands());
    end();
}
