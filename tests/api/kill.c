/* SPDX-License-Identifier: MIT */
#include "handler.h"
#include "states.h"

enum { HOUR = 3600000 };

Test(kill, makes_a_job_dead_in_every_state_but_running)
{
    struct flow *f = flow_start(FLOW_FULL);

    for (enum flow_state state = 0; state < FLOW_STATES; state++) {
        struct flow_job old;
        struct flow_job told;
        struct flow_job now;
        const char *name = flow_state_names[state];
        flow_put(f, "q", "a", state, &old);
        char *before = flow_dump(f);
        int err = flow_kill(f, "q", "a", "no customer", &told);
        char *after = flow_dump(f);

        cr_assert_eq(err, state == FLOW_RUNS ? LAPSE_EBUSY : 0, "%s", name);
        if (err || state == FLOW_DEAD) {
            cr_assert_str_eq(before, after, "%s", name);
        }
        if (!err) {
            const char *reason = state == FLOW_DEAD ? old.reason : "no customer";
            cr_assert_eq(flow_get(f, "q", "a", &now), 0);
            cr_assert(now.state == LAPSE_DEAD && now.until_ms == 0, "%s", name);
            cr_assert_str_eq(now.reason, reason, "%s", name);
            cr_assert(now.try_no == old.try_no && now.token == old.token, "%s", name);
            cr_assert(now.tries == old.tries && strcmp(now.body, "old") == 0, "%s", name);
            cr_assert_eq(told.body_len, 0, "its body is not given");
            told.body = now.body;
            told.body_len = now.body_len;
            cr_assert(flow_same(&told, &now), "%s: told what it is not", name);
        }
        free(before);
        free(after);
        redis_do(f->server, "FLUSHALL");
    }

    flow_end(f, "q");
}

Test(kill, of_a_job_that_is_not_there_is_enoent)
{
    struct flow *f = flow_start(FLOW_FULL);

    cr_assert_eq(flow_kill(f, "q", "a", NULL, NULL), LAPSE_ENOENT);
    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), 0);
    cr_assert_eq(flow_kill(f, "q", "b", NULL, NULL), LAPSE_ENOENT);
    cr_assert_eq(flow_kill(f, "q2", "a", NULL, NULL), LAPSE_ENOENT);
    flow_end(f, "q", "q2");
}

Test(kill, keeps_a_reason_of_200_bytes_cut_at_the_end_of_a_character)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_job job;
    char reason[300];

    memset(reason, 'x', sizeof reason);
    memcpy(reason + 198, "\xe6\x97\xa5", 3);
    reason[299] = 0;
    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), 0);
    cr_assert_eq(flow_kill(f, "q", "a", reason, &job), 0);
    cr_assert_eq(strlen(job.reason), 198);
    cr_assert_eq(flow_schedule(f, "q", "b", HOUR, NULL), 0);
    cr_assert_eq(flow_kill(f, "q", "b", NULL, &job), 0);
    cr_assert_str_eq(job.reason, "");
    flow_end(f, "q");
}

FLOW_ALL_MODES(kill, what_is_killed_does_not_run_before_it_is_rescheduled)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_job job[20];
    bool killed[20] = {false};
    unsigned n_killed = 0;

    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "far", HOUR, NULL), 0);
    cr_assert_eq(flow_kill(f, "q", "far", "not now", NULL), 0);
    for (int i = 0; i < 20; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        cr_assert_eq(flow_schedule(f, "q", id, 150, &job[i]), 0);
    }

    /* only a job whose moment has come may run instead */
    for (int i = 0; i < 20; i += 2) {
        int err = flow_kill(f, "q", job[i].id, "not now", NULL);
        cr_assert(err == 0 || redis_now_ms(f->server) >= job[i].due_ms, "%s", lapse_strerror(err));
        killed[i] = err == 0;
        n_killed += err == 0;
    }

    unsigned n_run = 20 - n_killed;
    flow_until(f, w.settled == n_run);
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(flow_runs_of(&w, job[i].id), killed[i] ? 0u : 1u, "%s", job[i].id);
    }

    cr_assert_eq(flow_reschedule(f, "q", "far", lapse_in(0), NULL), 0);
    flow_until(f, w.settled == n_run + 1);
    cr_assert_str_eq(w.runs[n_run].job.id, "far");
    cr_assert_eq(w.runs[n_run].job.try_no, 1);
    flow_end(f, "q");
}

/* Only then is the line of its id free for what was asked next. */
Test(kill, takes_its_turn_among_the_calls_of_its_id)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec spec = flow_job_spec("q", "a", HOUR);
    struct flow_answer a[4] = {{.f = f}, {.f = f}, {.f = f}, {.f = f}};

    cr_assert_eq(lapse_schedule(f->l, &spec, flow_answered, &a[0]), 0);
    cr_assert_eq(lapse_kill(f->l, "q", "a", "one", flow_answered, &a[1]), 0);
    cr_assert_eq(lapse_kill(f->l, "q", "a", "two", flow_answered, &a[2]), 0);
    cr_assert_eq(lapse_cancel(f->l, "q", "a", 0, flow_answered, &a[3]), 0);
    cr_assert_eq(flow_wait(f, &a[3]), 0);
    for (int i = 0; i < 3; i++) {
        cr_assert(a[i].calls == 1 && a[i].err == 0);
    }
    for (int i = 1; i < 4; i++) {
        cr_assert(a[i].job.state == LAPSE_DEAD && strcmp(a[i].job.reason, "one") == 0);
    }
    flow_end(f, "q");
}
