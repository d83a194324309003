/* SPDX-License-Identifier: MIT */
#include "handler.h"
#include "states.h"

Test(get, shows_every_field_in_every_state)
{
    static const enum lapse_state state_of[FLOW_STATES] = {LAPSE_WAITING, LAPSE_RUNNING, LAPSE_DEAD,
                                                           LAPSE_WAITING, LAPSE_DEAD};
    struct flow *f = flow_start(FLOW_FULL);

    for (enum flow_state state = 0; state < FLOW_STATES; state++) {
        struct flow_job job;
        const char *name = flow_state_names[state];
        int64_t before = redis_now_ms(f->server);
        flow_put(f, "q", "a", state, &job);
        cr_assert(strcmp(job.queue, "q") == 0 && strcmp(job.id, "a") == 0, "%s", name);
        cr_assert(job.body_len == 3 && strcmp(job.body, "old") == 0, "%s", name);
        cr_assert_eq(job.state, state_of[state], "%s", name);
        cr_assert_eq(job.tries, state == FLOW_ENDED_LAST ? 1 : 3, "%s", name);
        cr_assert_eq(job.created, 0, "%s", name);
        cr_assert_str_eq(job.reason, state == FLOW_DEAD ? "broken" : "", "%s", name);
        if (state == FLOW_RUNS) {
            cr_assert(job.until_ms >= before + 60000 &&
                      job.until_ms <= redis_now_ms(f->server) + 60000);
        } else {
            cr_assert_eq(job.until_ms, 0, "%s: nobody holds it", name);
        }
        if (state == FLOW_WAITS) {
            cr_assert(!job.try_no && !job.token && !job.claimed_us);
            cr_assert_geq(job.due_ms, before + 3600000);
        } else {
            cr_assert(job.try_no == 1 && job.token > 0 && job.claimed_us >= before * 1000, "%s",
                      name);
            /* one whose lease is over is due again since then */
            int64_t due = state == FLOW_ENDED ? FLOW_LEASE_MS : 0;
            cr_assert(job.due_ms >= before + due && job.due_ms <= job.claimed_us / 1000 + due, "%s",
                      name);
        }
        redis_do(f->server, "FLUSHALL");
    }

    flow_end(f, "q");
}

Test(get, of_a_job_that_is_not_there_is_enoent)
{
    struct flow *f = flow_start(FLOW_FULL);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    cr_assert_eq(redis_int(f->server, "DBSIZE"), 0, "asking leaves nothing");
    flow_end(f, "q");
}

Test(get, of_a_job_in_our_hands_shows_our_lease)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow_job job;

    flow_hold(f, &w, "a");
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert(flow_same(&job, &w.runs[0].job), "a handler and lapse_get() see the same job");
    w.delay_ms = 3600000;
    flow_settle(&w, FLOW_RETRY);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(job.until_ms, 0);
    flow_end(f, "q");
}

Test(get, gives_any_body_up_to_a_mebibyte)
{
    enum { MAX = 1 << 20, N = 6 };
    static const size_t lens[N] = {0, 1, 1000, 262144, MAX - 1, MAX};
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_answer a[N];
    unsigned char *body = malloc(MAX);
    char id[8];

    for (size_t i = 0; i < MAX; i++) {
        body[i] = (unsigned char)(i ^ i >> 8);
    }

    for (size_t i = 0; i < N; i++) {
        snprintf(id, sizeof id, "%zu", i);
        struct lapse_spec s = flow_job_spec("q", id, 3600000);
        s.body = body;
        s.body_len = lens[i];
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }

    for (size_t i = 0; i < N; i++) { /* in one turn: more than one script may give at once */
        snprintf(id, sizeof id, "%zu", i);
        a[i] = (struct flow_answer){.f = f};
        cr_assert_eq(lapse_get(f->l, "q", id, flow_answered, &a[i]), 0);
    }

    for (size_t i = 0; i < N; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), 0);
        cr_assert_eq(a[i].job.body_len, lens[i]);
        cr_assert_eq(memcmp(a[i].job.body, body, lens[i]), 0);
    }

    free(body);
    flow_end(f, "q");
}

Test(get, of_a_record_of_another_version_is_edata_and_it_can_be_moved_and_cancelled)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_job job;

    cr_assert_eq(flow_schedule(f, "q", "a", 3600000, NULL), 0);
    redis_do(f->server, "HSET lapse:{q}:jobs a %b", "\x02xyz", (size_t)4);
    cr_assert_eq(flow_get(f, "q", "a", &job), LAPSE_EDATA);
    struct lapse_spec s = flow_job_spec("q", "a", 0);
    s.on_conflict = LAPSE_KEEP;
    cr_assert_eq(flow_spec(f, &s, NULL), LAPSE_EDATA, "KEEP cannot show it");
    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(1800000), NULL), 0);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    flow_end(f, "q");
}

FLOW_ALL_MODES(get, a_record_that_cannot_be_read_dies_with_its_reason_and_the_others_go_on)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse_depth depth;
    char id[8];

    for (int i = 0; i < 9; i++) {
        snprintf(id, sizeof id, "%d", i);
        cr_assert_eq(flow_schedule(f, "q", id, 150, NULL), 0);
    }

    redis_do(f->server, "HSET lapse:{q}:jobs 4 %b 5 %s", "\xff\x00", (size_t)2, "");
    flow_allow_log(f, "in a format this version cannot read");
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == 7);
    flow_until(f, flow_depth(f, "q", &depth) == 0 && depth.dead == 2);
    cr_assert_eq(flow_runs_of(&w, "4") + flow_runs_of(&w, "5"), 0);

    char *held = redis_str(f->server, "HGET lapse:{q}:attempts 4");
    cr_assert(strstr(held, "cannot read"));
    free(held);
    flow_end(f, "q");
}
