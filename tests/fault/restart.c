/* SPDX-License-Identifier: MIT */
/* Redis dies and comes back with all it had, or with less, as its settings and the power allow. */
#include "workload.h"
#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>

enum { CYCLE_MS = 1000, RATE = 200 };

static struct work *begin(struct server *s, struct work_opts *o, long cycles, long down_ms)
{
    o->listeners = 3;
    o->per_s = RATE;
    o->jobs = cycles * (CYCLE_MS + down_ms / 2) * RATE / 1000;
    o->delay_ms = 3000;
    return work_start(s, o);
}

static long down_for(long most_ms)
{
    return 200 + random() % (most_ms - 200);
}

/* How long after its return all that fell due meanwhile was taken, ms. */
static int64_t until_caught_up(struct server *s, int64_t back_ms)
{
    int64_t by_ms = redis_now_ms(s), deadline = test_now_ms() + 20000;
    while (redis_int(s, "ZCOUNT lapse:{" WORK_QUEUE "}:due -inf %lld", (long long)by_ms) > 0) {
        cr_assert_lt(test_now_ms(), deadline, "what fell due while Redis was down does not run");
        poll(NULL, 0, 1);
    }
    return test_now_ms() - back_ms;
}

/* ---- F6 ---- */
Test(f6, a_redis_that_syncs_always_and_is_killed_loses_nothing, .timeout = 900)
{
    static const char *const args[] = {"--appendfsync", "always", NULL};
    struct server *s = server_start_opts(args);
    struct work_opts o = work_opts();
    long cycles = fault_n(4, 30), most_ms = fault_n(1200, 3000);
    int64_t worst_ms = 0;
    struct work *w = begin(s, &o, cycles, most_ms);
    for (long i = 0; i < cycles; i++) {
        work_wait(w, CYCLE_MS);
        work_nemesis(w, "kill -9 of Redis");
        server_kill9(s);
        work_wait(w, (int)down_for(most_ms));
        server_restart(s);
        int64_t took = until_caught_up(s, test_now_ms());
        worst_ms = took > worst_ms ? took : worst_ms;
    }
    struct verdict v = work_end(w, 60000);
    fault_row("F6", "kill -9 of Redis, appendfsync always, down 0.2 to 3 s",
              "30 times: 0 lost; all overdue run within 500 ms of its return",
              "%ld times amid %ld jobs: 0 lost of %ld acknowledged; overdue run within %lld ms; %ld ran again", cycles,
              v.jobs, v.ok, (long long)worst_ms, v.twice);
    server_stop(s);
}
