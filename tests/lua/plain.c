/* SPDX-License-Identifier: MIT */
/* A job that asks for nothing: what is stored of it, and what that costs, whatever others ask
 * for. */
#include "script.h"

SCRIPTS(plain);

/* The commands that n jobs take in each step of their life, in one call. */
static void costs(const char *script, const char *args, long long most, long long expected)
{
    ask("CONFIG RESETSTAT");
    given(script, args);
    cr_assert_eq(commands(), expected, "%s of %lld: %lld commands, not %lld", script, most,
                 commands(), expected);
}

/* So many words of each job: its id, the token that its claim gives it, and more. */
static const char *each(int n, int first_token, const char *more)
{
    char *out = text("0 me");

    for (int i = 0; i < n; i++) {
        out = text("%s j%03d U+%d%s", out, i, first_token + i, more);
    }
    return out;
}

static void schedules(int n, long long expected)
{
    char *args = text("0");

    for (int i = 0; i < n; i++) {
        args = text("%s j%03d +50 0 " REC, args, i);
    }
    costs("schedule", args, n, expected);
}

Test(plain, jobs_take_as_many_commands_as_before_there_were_attributes)
{
    static const struct {
        int n;
        long long schedule, claim, retry, done;
    } rows[] = {{1, 7, 14, 9, 7}, {100, 106, 26, 9, 7}};

    given("schedule", "0 first +0 0 " REC);
    given("claim", "0 me 1000 1"); /* from now on there is a last token */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int n = rows[i].n;
        int first = 1000 * (1000 * (int)i + 50) + 1; /* token */
        now_at(1000 * (int)i);
        schedules(n, rows[i].schedule);
        now_at(1000 * (int)i + 50);
        costs("claim", "0 me 1000 100", n, rows[i].claim);
        costs("retry", each(n, first, " 0 why"), n, rows[i].retry);
        costs("claim", "0 me 1000 100", n, rows[i].claim);
        costs("done", each(n, first + n, ""), n, rows[i].done);
        ask("DEL s:{q}:run s:{q}:jobs s:{q}:attempts");
    }
    ask("FLUSHALL");
}

/* All entries of the index are put, and removed, by one command; and done reads the record. */
Test(plain, tags_take_two_commands_of_schedule_and_two_of_done)
{
    const char *tags = "\\02\\00\\24T\\10customer-1234567T\\10region-eu-west-1";

    given("schedule", "0 first +0 0 " REC);
    given("claim", "0 me 1000 1");
    now_at(10);
    costs("schedule", text("0 j +50 0 '%s'", tags), 1, 7 + 2);
    now_at(60);
    costs("claim", "0 me 1000 100", 1, 14);
    costs("done", "0 me j U+60001", 1, 7 + 2);
    given("done", "0 me first U+1");
    KEYS("seq U+60001");
}

/* How many functions a call makes before its work begins, but for main and what is seldom
 * needed. */
static int functions_of(const char *name)
{
    static const char begin[] = "\n  local function ";
    const char *text = script_long(name);
    const char *end = strstr(text, "local function seldom_made()");
    int n = 0;

    cr_assert(end, "%s has nothing that is seldom needed", name);
    for (const char *at = text; (at = strstr(at, begin)) && at < end - strlen(begin); at++) {
        n++;
    }
    return n;
}

/* Redis makes each function of a script again in each call: that is most of what a plain job costs
 * beside its commands. */
Test(plain, calls_make_few_functions)
{
    static const struct {
        const char *script;
        int functions;
    } rows[] = {{"schedule", 5}, {"claim", 9}, {"touch", 9}, {"done", 1}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect_eq(functions_of(rows[i].script), rows[i].functions, "%s: %d functions, not %d",
                     rows[i].script, functions_of(rows[i].script), rows[i].functions);
    }
}

/* n jobs are claimed in one call, by their names if there is one. */
static void claims(int n, const char *script, const char *args)
{
    size_t head = strcmp(script, "touch") == 0 ? 14 : 7;

    run_plain(true);
    struct redisReply *r = run(script, args);
    run_plain(false);
    cr_assert_eq(r->elements, head + (size_t)n, "%s of %d: %s", script, n, show(r));
}

/* Each job with the token that it has now. */
static const char *held(int n)
{
    char *out = text("0 me");

    for (int i = 0; i < n; i++) {
        long long token = atoll(ask("HGET s:{q}:attempts j%03d", i)->str + strlen("1 "));
        out = text("%s j%03d %lld", out, i, token);
    }
    return out;
}

static void settles(const char *script, const char *args)
{
    run_plain(true);
    given(script, args);
    run_plain(false);
}

/* Not schedule, claims of each kind, first runs and later ones, retry, and done: they fail if they
 * make what their heads name behind SELDOM. */
Test(plain, jobs_make_nothing_that_is_seldom_needed)
{
    for (int n = 1; n <= 100; n += 99) {
        int at = 100 * n;
        int first = 1000 * (at + 50) + 1; /* token */
        now_at(at);
        run_plain(true);
        schedules(n, n == 1 ? 7 : 106);
        run_plain(false);

        now_at(at + 50);
        claims(n, "claim", "0 me 1000 100");
        settles("retry", each(n, first, " 0 why"));
        char *names = text("0 me 1000 -1");
        for (int i = 0; i < n; i++) {
            names = text("%s j%03d", names, i);
        }
        claims(n, "claim", names);
        settles("retry", each(n, first + n, " '' why"));
        now_at(at + 2050); /* its backoff is over */
        claims(n, "touch", "0 me 1000 100 0 0 1 1 100");

        run_plain(true);
        given("done", held(n));
        cr_assert(strstr(show(run("done", "0 me gone 1")), "EGONE"));
        run_plain(false);
    }
    ask("DEL s:{q}:seq");
    KEYS("");
}

/* Byte for byte. */
Test(plain, job_is_stored_as_before_there_were_attributes)
{
    given("schedule", "0 a +50 0 " REC "body b +0 0 \\01\\03\\03\\09body");
    KEYS("due b:T a:T+50 | jobs a=" REC "body b=\\01\\03\\03\\09body | t a:T+49");
    given("claim", "0 me 1000 1");
    KEYS("due a:T+50 | run b:T+1000 | jobs a=" REC "body b=\\01\\03\\03\\09body | "
         "attempts b=1 U+1 me 1 3 U T  | seq U+1 | t a:T+49");
    given("retry", "0 me b U+1 60 why");
    KEYS("due a:T+50 b:T+60 | jobs a=" REC "body b=\\01\\03\\03\\09body | "
         "attempts b=1 U+1 me 1 3 U T+60 why | seq U+1 | t a:T+49 b:T+59");
    given("cancel", "0 a 0 b 0");
    KEYS("seq U+1");
}
