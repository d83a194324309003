/* SPDX-License-Identifier: MIT */
#include "script.h"

SCRIPTS(retry);

Test(retry, puts_a_job_back_for_later_and_keeps_why)
{
    five();
    RUN("retry", "0 me r U+3 50 'so it\\0ago%s'", "[U+20000 T+70]");
    KEYS("due r:T+70 w:T+500 | run e:T+10 u:T+10 | dead d:T | " FIVE_JOBS " | attempts " ATTEMPT_D
         " " ATTEMPT_E " r=1 U+3 me 1 10 U T+70 so it\\0ago%s " ATTEMPT_U
         " | seq U+4 | t r:T+69 w:T+499");
    HEARD("0 'T+70 r'");
    /* its token is the one held still, but it waits */
    RUN("retry", "0 me r U+3 50 again", "[U+20000 'EGONE']");
}

Test(retry, at_once_has_no_trigger_and_its_id_is_in_the_notice)
{
    five();
    ask("CONFIG RESETSTAT");
    RUN("retry", "9 me r U+3 0 ''", "[U+20000 T+20]");
    cr_assert_eq(calls("del"), 0);
    KEYS("due r:T+20 w:T+500 | run e:T+10 u:T+10 | dead d:T | " FIVE_JOBS " | attempts " ATTEMPT_D
         " " ATTEMPT_E " r=1 U+3 me 1 10 U T+20  " ATTEMPT_U " | seq U+4 | t w:T+499");
    HEARD("9 '0 r'");
    given("claim", "0 me 1000 0 r");
    RUN("retry", "0 me r U+20001 1 ''", "[U+20000 T+21]");
    cr_assert_eq(redis_int(redis, "PEXPIRETIME s:{q}:t:r"), T + 21);
}

Test(retry, with_its_tries_used_up_is_death)
{
    given("schedule", "0 a +0 0 \\01\\01\\02 b +0 0 " REC);
    given("claim", "0 me 1000 0 a b");
    RUN("retry", "0 me a U+1 0 one", "[U T]");
    HEARD("0 '0 a'");
    given("claim", "0 me 1000 0 a");
    now_at(7);
    RUN("retry", "0 me a U+3 50 two", "[U+7000 0]");
    KEYS("run b:T+1000 | dead a:T+7 | jobs a=\\01\\01\\02 b=" REC
         " | attempts a=1 U+3 me 2 2 U T two b=1 U+2 me 1 10 U T  | seq U+3");
    HEARD("");
    RUN("retry", "0 me a U+3 50 three", "[U+7000 'EGONE']");
    /* tries may have been more in another version's time */
    ask("HSET s:{q}:attempts b %s", "1 2 me 11 10 5 5 ");
    RUN("retry", "0 me b 2 0 ''", "[U+7000 0]");
}

Test(retry, with_unlimited_tries_never_dies)
{
    given("schedule", "0 a +0 0 \\01\\01\\ff\\ff\\ff\\ff\\0f b +0 0 \\01\\01\\fe\\ff\\ff\\ff\\0f");
    given("claim", "0 me 1000 0 a b");
    ask("HSET s:{q}:attempts a %s b %s", "1 1 me 4294967295 4294967295 5 5 ",
        "1 2 me 4294967294 4294967294 5 5 ");
    RUN("retry", "0 me a 1 0 '' b 2 0 ''", "[U T 0]");
}

Test(retry, of_many_answers_each_and_notifies_once)
{
    five();
    RUN("retry", "0 me none U+1 5 x r U+3 60 later u U+2 5 over e U+1 0 now w U+1 5 x d U+4 5 x",
        "[U+20000 'EGONE' T+80 0 T+20 'EGONE' 'EGONE']");
    KEYS("due e:T+20 r:T+80 w:T+500 | dead d:T u:T+20 | " FIVE_JOBS " | attempts " ATTEMPT_D
         " e=1 U+1 me 1 10 U T+20 now r=1 U+3 me 1 10 U T+80 later u=1 U+2 me 1 1 U T over | seq "
         "U+4 | t r:T+79 w:T+499");
    HEARD("0 'T+80 r 0 e'");
}

Test(retry, tells_of_a_job_due_later_than_in_a_second_only_if_it_is_the_new_head)
{
    five();
    given("reschedule", "0 w T+2000 0");
    RUN("retry", "0 me r U+3 1980 ''", "[U+20000 T+2000]");
    HEARD("");
    RUN("retry", "0 me e U+1 1979 ''", "[U+20000 T+1999]");
    HEARD("0 'T+1999 e'");
}

Test(retry, tells_of_each_job_that_is_due_within_a_second)
{
    five();
    RUN("retry", "0 me r U+3 1000 ''", "[U+20000 T+1020]");
    HEARD("");
    RUN("retry", "0 me e U+1 999 ''", "[U+20000 T+1019]");
    HEARD("0 'T+1019 e'");
}

Test(retry, by_another_token_changes_nothing)
{
    five();
    RUN("retry", "0 me r U+4 5 x r '' 5 x w U+3 5 x", "[U+20000 'EGONE' 'EGONE' 'EGONE']");
    KEYS(FIVE);
    HEARD("");
}

/* ---- snoozed ---- */
Test(retry, of_a_snooze_puts_a_job_back_and_counts_no_try)
{
    five();
    RUN("retry", "0 me r U+3 ~50 'not paid'", "[U+20000 T+70]");
    KEYS("due r:T+70 w:T+500 | run e:T+10 u:T+10 | dead d:T | " FIVE_JOBS " | attempts " ATTEMPT_D
         " " ATTEMPT_E " r=1 U+3 me 0 10 U T+70 not paid " ATTEMPT_U
         " | seq U+4 | t r:T+69 w:T+499");
    HEARD("0 'T+70 r'");
    RUN("retry", "0 me r U+3 ~50 again", "[U+20000 'EGONE']");
}

Test(retry, of_a_snooze_never_ends_in_death)
{
    given("schedule", "0 a +0 0 \\01\\01\\01");
    for (int token = 1; token <= 30; token++) {
        given("claim", "0 me 1000 1");
        RUN("retry", text("0 me a U+%d ~0 ''", token), "[U T]");
        KEYS(text("due a:T | jobs a=\\01\\01\\01 | attempts a=1 U+%d me 0 1 U T  | seq U+%d", token,
                  token));
    }

    given("claim", "0 me 1000 1");
    /* tries may have been more in another version's time */
    ask("HSET s:{q}:attempts a %s", "1 31 me 5 1 5 5 ");
    RUN("retry", "0 me a 31 ~0 ''", "[U T]");
    given("claim", "0 me 1000 1");
    RUN("retry", "0 me a U+32 0 ''", "[U 0]");
}

Test(retry, of_a_snooze_leaves_the_tries_of_other_runs_counted)
{
    given("schedule", "0 a +0 0 \\01\\01\\02");
    given("claim", "0 me 1000 1");
    given("retry", "0 me a U+1 0 first");
    for (int token = 2; token < 5; token++) {
        given("claim", "0 me 1000 1");
        RUN("retry", text("0 me a U+%d ~0 later", token), "[U T]");
        KEYS(text("due a:T | jobs a=\\01\\01\\02 | attempts a=1 U+%d me 1 2 U T later | seq U+%d",
                  token, token));
    }

    given("claim", "0 me 1000 1");
    RUN("retry", "0 me a U+5 0 second", "[U 0]");
}

/* The next run has the number of the one that was taken back. */
Test(retry, of_a_snooze_leaves_its_token_good_for_nothing)
{
    static const struct {
        const char *name, *args;
    } late[] = {
        {"retry", "0 me a U+1 ~5 x"}, {"retry", "0 me a U+1 5 x"}, {"done", "0 me a U+1"},
        {"fail", "0 me a U+1 x"},     {"release", "0 me a U+1"},   {"renew", "0 me a U+1 9"},
    };

    given("schedule", "0 a +0 0 " REC);
    given("claim", "0 me 1000 1");
    given("retry", "0 me a U+1 ~0 ''");
    given("claim", "0 me 1000 1");

    char *before = dumps();
    for (size_t i = 0; i < sizeof late / sizeof *late; i++) {
        RUN(late[i].name, late[i].args, "[U 'EGONE']");
    }
    same(__FILE__, __LINE__, "keys", dumps(), before);
}

Test(retry, of_many_snoozes_some_of_them)
{
    five();
    RUN("retry", "0 me r U+3 ~60 later u U+2 ~5 '' e U+1 0 now", "[U+20000 T+80 T+25 T+20]");
    KEYS("due e:T+20 u:T+25 r:T+80 w:T+500 | dead d:T | " FIVE_JOBS " | attempts " ATTEMPT_D
         " e=1 U+1 me 1 10 U T+20 now r=1 U+3 me 0 10 U T+80 later u=1 U+2 me 0 1 U T+25  | seq "
         "U+4 | t r:T+79 u:T+24 w:T+499");
}

/* ---- without a delay ---- */
static size_t put_varint(char *out, uint64_t value)
{
    size_t n = 0;

    for (; value >= 128; value >>= 7) {
        out[n++] = (char)(value | 128);
    }
    out[n++] = (char)value;
    return n;
}

/* n jobs, a0 and so on, run in this try, by tokens that follow each other. */
static void hold(int n, unsigned try_no, uint64_t token, const char *record, size_t len)
{
    static const char script[] =
        "for i = 0, ARGV[1] - 1 do local id = 'a' .. i "
        "local attempt = string.format('1 %.0f me %s 4294967295 5 5 ', ARGV[2] + i, ARGV[3]) "
        "redis.call('HSET', 's:{q}:jobs', id, ARGV[4]) "
        "redis.call('HSET', 's:{q}:attempts', id, attempt) "
        "redis.call('ZREM', 's:{q}:due', id) "
        "redis.call('ZADD', 's:{q}:run', 99999999999999, id) end";

    ask("EVAL %s 0 %d %llu %u %b", script, n, (unsigned long long)token, try_no, record, len);
}

static void hold_with(int n, unsigned try_no, uint64_t token, int64_t first_ms, int64_t most_ms)
{
    char record[2 + 2 * 10] = {1, 6};
    size_t len = 2;

    len += put_varint(record + len, (uint64_t)first_ms);
    len += put_varint(record + len, (uint64_t)most_ms);
    hold(n, try_no, token, record, len);
}

/* They are put back; how long each of them waits then. */
static void waits_of(int n, uint64_t token, int64_t *waits)
{
    char *args = text("0 me");
    char *scores = text("ZMSCORE s:{q}:due");

    for (int i = 0; i < n; i++) {
        args = text("%s a%d %" PRIu64 " '' x", args, i, token + (uint64_t)i);
        scores = text("%s a%d", scores, i);
    }

    redisReply *r = run("retry", args);
    cr_assert(r->type == REDIS_REPLY_ARRAY && r->elements == 1 + (size_t)n, "%s", show(r));
    redisReply *due = ask(scores);
    for (int i = 0; i < n; i++) {
        redisReply *at = r->element[1 + i];
        cr_assert_eq(at->type, REDIS_REPLY_INTEGER, "%s", show(r));
        cr_assert_eq(atoll(due->element[i]->str), at->integer);
        waits[i] = at->integer - T;
    }
}

static int64_t wait_of(uint64_t token)
{
    int64_t wait;

    waits_of(1, token, &wait);
    return wait;
}

static void expect_wait(unsigned try_no, int64_t first_ms, int64_t most_ms, int64_t whole)
{
    enum { N = 20 };
    static const uint64_t token = 1790000000000000;
    int64_t least = INT64_MAX;
    int64_t most = -1;
    int64_t waits[N];

    hold_with(N, try_no, token, first_ms, most_ms);
    waits_of(N, token, waits);
    for (int i = 0; i < N; i++) {
        int64_t wait = waits[i];
        cr_assert(wait >= whole - whole / 4 && wait <= whole,
                  "try %u of %" PRId64 " to %" PRId64 ": %" PRId64 " is not %" PRId64, try_no,
                  first_ms, most_ms, wait, whole);
        least = wait < least ? wait : least;
        most = wait > most ? wait : most;
    }

    if (whole >= 4) {
        cr_expect_lt(least, most, "it is spread");
    }
}

Test(retry, without_a_delay_doubles_the_first_wait_with_each_try_up_to_the_longest)
{
    static const int64_t longest[] = {3600000, 315576000000};

    for (size_t i = 0; i < sizeof longest / sizeof *longest; i++) {
        int64_t whole = 1000;
        for (unsigned try_no = 1; try_no <= 40; try_no++) {
            expect_wait(try_no, 1000, longest[i], whole < longest[i] ? whole : longest[i]);
            whole = whole < longest[i] ? whole * 2 : whole;
        }
    }

    ask("FLUSHALL");
}

Test(retry, without_a_delay_waits_within_its_bounds_by_any_numbers_that_a_record_can_hold)
{
    static const int64_t waits[] = {0,    1,       127,          128,
                                    1001, 3600000, 315576000000, ((int64_t)1 << 49) - 1};
    static const unsigned nth[] = {0, 1, 2, 33, 64, 4294967295};
    enum { WAITS = sizeof waits / sizeof *waits };

    for (size_t w = 0; w < (size_t)WAITS * WAITS; w++) {
        for (size_t t = 0; t < sizeof nth / sizeof *nth; t++) {
            int64_t whole = waits[w % WAITS];
            int64_t most = waits[w / WAITS];
            for (unsigned i = 1; i < nth[t] && i < 64 && whole < most; i++) {
                whole *= 2;
            }
            expect_wait(nth[t], waits[w % WAITS], most, whole < most ? whole : most);
        }
    }

    ask("FLUSHALL");
}

static int by_size(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;

    return (*x > *y) - (*x < *y);
}

/* The record says how it waits; its first wait is as given. */
static void hold_by(int n, unsigned try_no, uint64_t token, int64_t first_ms, const char *kind)
{
    char record[200] = {2, 2};
    size_t kind_len = strlen(kind);
    size_t len = 2;

    len += put_varint(record + len, (uint64_t)first_ms);
    len += put_varint(record + len, 2 + kind_len);
    record[len++] = 'b';
    len += put_varint(record + len, kind_len);
    memcpy(record + len, kind, kind_len);
    hold(n, try_no, token, record, len + kind_len);
}

static int64_t wait_by(unsigned try_no, int64_t first_ms, const char *kind)
{
    hold_by(1, try_no, 1790000000123456, first_ms, kind);
    return wait_of(1790000000123456);
}

Test(retry, without_a_delay_waits_as_the_record_says)
{
    static const int64_t year_ms = 31557600000;
    static const struct {
        unsigned try_no;
        int64_t first_ms;
        const char *kind;
        int64_t wait_ms;
    } rows[] = {
        {1, 5000, "f", 5000},
        {7, 5000, "f", 5000},
        {4294967295, 2 * 3600000, "f", 2 * 3600000},
        {1, 1000, "l7", 7},
        {30, 1000, "l7", 7},
        {1, 1000, "l1000,5000,60000", 1000},
        {2, 1000, "l1000,5000,60000", 5000},
        {3, 1000, "l1000,5000,60000", 60000},
        {4, 1000, "l1000,5000,60000", 60000},
        {4294967295, 1000, "l1000,5000,7200000", 7200000},
        {1, 1000, "l9999999999999", 10 * year_ms},
        {1, 1000, "2", 2000},
        {2, 1000, "2", 4000},
        {11, 1000, "2", 2048000},
        {12, 1000, "2", 3600000}, /* the most of the default */
        {4294967295, 1000, "2", 3600000},
        {1, 1, "4", 15000}, /* the part of 1 ms is 0 */
        {2, 1, "4", 16000},
        {3, 1, "4", 31000},
        {25, 1, "4", (331776 + 15) * 1000LL},
        {4294967295, 1000, "4", 10 * year_ms},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t wait_ms = wait_by(rows[i].try_no, rows[i].first_ms, rows[i].kind);
        cr_assert_eq(wait_ms, rows[i].wait_ms, "row %zu: %" PRId64, i, wait_ms);
    }

    ask("FLUSHALL");
}

/* As Sidekiq and asynq do it; theirs are whole seconds. */
Test(retry, without_a_delay_by_the_fourth_power_is_spread_by_the_token)
{
    enum { N = 100, FIRST = 30000, TRY = 3, BASE = (16 + 15) * 1000 };
    int64_t waits[N];

    hold_by(N, TRY, 1790000000999950, FIRST, "4");
    waits_of(N, 1790000000999950, waits);
    for (int i = 0; i < N; i++) {
        cr_assert_eq((waits[i] - BASE) % TRY, 0);
    }

    qsort(waits, N, sizeof *waits, by_size);
    cr_assert(waits[0] >= BASE && waits[0] < BASE + TRY * FIRST / 20, "%" PRId64, waits[0]);
    cr_assert(waits[N - 1] < BASE + TRY * FIRST && waits[N - 1] > BASE + TRY * FIRST * 19 / 20);
    for (int i = 1; i < N; i++) {
        cr_assert_lt(waits[i] - waits[i - 1], 3 * TRY * FIRST / N);
    }

    ask("FLUSHALL");
}

/* A newer version may know more of them. */
Test(retry, without_a_delay_doubles_the_wait_where_it_does_not_know_how_the_record_says)
{
    static const char *const kinds[] = {"",  "l",  "l,", "l,5", "lx", "l5;6",
                                        "x", "ff", "22", "4 ",  "F"};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int64_t wait_ms = wait_by(3, 1000, kinds[i]);
        cr_assert(wait_ms >= 3000 && wait_ms <= 4000, "'%s': %" PRId64, kinds[i], wait_ms);
    }

    ask("FLUSHALL");
}

/* The tokens of one claim follow each other. */
Test(retry, without_a_delay_spreads_the_jobs_of_one_claim_over_a_quarter_of_the_wait)
{
    enum { N = 100, WAIT = 1000000, EVENLY = WAIT / 4 / N };
    int64_t waits[N];

    hold_with(N, 1, 1790000000999950, WAIT, WAIT);
    waits_of(N, 1790000000999950, waits);

    qsort(waits, N, sizeof *waits, by_size);
    cr_assert_lt(waits[0], WAIT - WAIT / 4 + 3 * EVENLY);
    cr_assert_gt(waits[N - 1], WAIT - 3 * EVENLY);
    for (int i = 1; i < N; i++) {
        cr_assert_lt(waits[i] - waits[i - 1], 3 * EVENLY);
        cr_assert_gt(waits[i], waits[i - 1]);
    }

    ask("FLUSHALL");
}

Test(retry, without_a_delay_uses_all_of_that_quarter)
{
    enum { N = 100 };
    int64_t waits[N];
    bool seen[9] = {0};

    hold_with(N, 1, 1, 8, 8);
    waits_of(N, 1, waits);
    for (int i = 0; i < N; i++) {
        cr_assert(waits[i] >= 6 && waits[i] <= 8, "%" PRId64, waits[i]);
        seen[waits[i]] = true;
    }

    cr_assert(seen[6] && seen[7] && seen[8]);
    ask("FLUSHALL");
}

Test(retry, without_a_delay_takes_the_defaults_where_the_record_says_nothing_else)
{
    static const struct {
        const char *record;
        size_t len;
    } rows[] = {{"\1\0body", 6}, {"\1\1\3", 3}, {"\2\0\3T\1a", 6}, {"\2\0", 2}, {"", 0}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hold(1, 3, 7, rows[i].record, rows[i].len);
        int64_t wait = wait_of(7);
        cr_assert(wait >= 3000 && wait <= 4000, "row %zu: %" PRId64, i, wait);
    }

    hold(1, 3, 7, "x", 1);
    ask("HDEL s:{q}:jobs a0");
    int64_t wait = wait_of(7);
    cr_assert(wait >= 3000 && wait <= 4000, "%" PRId64, wait);
    ask("FLUSHALL");
}

Test(retry, without_a_delay_stops_when_it_has_read_enough_for_one_call)
{
    char *body = calloc(1, 200001);

    memset(body, 'x', 200000);
    for (int i = 0; i < 4; i++) {
        ask("EVAL %s 0 %s %b",
            "redis.call('HSET', 's:{q}:jobs', ARGV[1], '\\1\\0' .. ARGV[2]) redis.call('ZADD', "
            "'s:{q}:due', 1, ARGV[1])",
            text("%c", 'a' + i), body, (size_t)200000);
    }

    given("claim", "0 me 1000 0 a b c");
    redisReply *r = run("retry", "0 me a U+1 '' x b U+2 '' x c U+3 '' x");
    cr_assert_eq(r->elements, 3, "%s", show(r));
    cr_assert_eq(redis_int(redis, "ZCARD s:{q}:run"), 1);
    cr_assert_eq(redis_int(redis, "ZCARD s:{q}:due"), 3);
    r = run("retry", "0 me c U+3 '' x");
    cr_assert_eq(r->elements, 2, "%s", show(r));
    cr_assert_eq(redis_int(redis, "ZCARD s:{q}:run"), 0);
    free(body);
    ask("FLUSHALL");
}

Test(retry, with_a_delay_reads_no_record)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC);
    given("claim", "0 me 1000 0 a b");
    ask("CONFIG RESETSTAT");
    RUN("retry", "0 me a U+1 5 x b U+2 5 x", "[U T+5 T+5]");
    cr_assert_eq(calls("hget"), 0);
}
