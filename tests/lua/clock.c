/* SPDX-License-Identifier: MIT */
/* The scripts by Redis's own clock. */
#include "script.h"

static void by_redis(void)
{
    script_init();
    now_real();
}

TestSuite(clock, .init = by_redis, .fini = script_fini);

static int64_t redis_now_us(void)
{
    redisReply *r = ask("TIME");
    return atoll(r->element[0]->str) * 1000000 + atoll(r->element[1]->str);
}

Test(clock, is_asked_once_in_each_script)
{
    static const char *const call[][2] = {
        {"schedule", "0 a +0 0 " REC " b +5 0 " REC},
        {"claim", "0 me 1000 10"},
        {"renew", "0 me a 1 5"},
        {"retry", "0 me a 1 5 x"},
        {"reschedule", "0 a +0 0 b +0 0"},
        {"claim", "0 me 1000 0 a b"},
        {"release", "0 me a 2"},
        {"sweep", "0"},
        {"reclaim", "0 me 0"},
        {"get", "0 a b"},
        {"list", "0 1 10 '' ''"},
        {"depth", "0"},
        {"eviction", "0"},
        {"fence", "0"},
        {"check", "0 jobs 0 10"},
        {"mend", "0 a"},
        {"arm", "'0 9' 0"},
        {"touch", "0 me 1000 0 0 0 1 1 24"},
        {"fail", "0 me b 3 x"},
        {"cancel", "0 a 0"},
        {"done", "0 me b 3"},
        {"heartbeat", "0 me 100 0 0"},
        {"join", "0 me 1"},
    };

    for (size_t i = 0; i < sizeof call / sizeof *call; i++) {
        int64_t before = redis_now_us();
        ask("CONFIG RESETSTAT");
        redisReply *r = run(call[i][0], call[i][1]);
        cr_assert_eq(calls("time"), 1, "%s", call[i][0]);
        cr_assert(r->type == REDIS_REPLY_ARRAY && r->element[0]->integer >= before &&
                      r->element[0]->integer <= redis_now_us(),
                  "%s: %s", call[i][0], show(r));
    }

    given("cancel", "0 a 0 b 0");
}

Test(clock, lets_no_job_be_claimed_early)
{
    for (int i = 0; i < 20; i++) {
        int64_t due = run("schedule", text("0 a +%d 0 " REC, i % 4))->element[1]->integer;
        redisReply *r;
        int64_t deadline = test_now_ms() + 10000;
        while ((r = run("claim", i % 2 ? "0 me 1000 0 a" : "0 me 1000 1"))->elements == 7) {
            cr_assert(r->element[0]->integer / 1000 < due || i % 4 == 0, "%s", show(r));
            cr_assert_lt(test_now_ms(), deadline);
        }
        cr_assert_geq(r->element[0]->integer / 1000, due);
        redisReply *held = r->element[7]->element[3];
        cr_assert_str_eq(held->str, text("1 %lld me 1 10 %lld %" PRId64 " ",
                                         r->element[0]->integer + 1, r->element[0]->integer, due));
        given("done", text("0 me a %lld", r->element[0]->integer + 1));
        ask("DEL s:{q}:t:a");
    }
}
