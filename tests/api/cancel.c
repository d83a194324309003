/* SPDX-License-Identifier: MIT */
#include "handler.h"
#include "states.h"

static const int answer_of[FLOW_STATES] = {[FLOW_RUNS] = LAPSE_EBUSY};

Test(cancel, shows_the_job_as_it_was_and_it_is_gone_unless_it_runs)
{
    struct flow *f = flow_start(FLOW_FULL);

    for (enum flow_state state = 0; state < FLOW_STATES; state++) {
        struct flow_job old;
        struct flow_job told;
        struct flow_job now;
        flow_put(f, "q", "a", state, &old);
        char *before = flow_dump(f);
        cr_assert_eq(flow_cancel(f, "q", "a", &told), answer_of[state], "%s",
                     flow_state_names[state]);
        if (answer_of[state]) {
            char *after = flow_dump(f);
            cr_assert_str_eq(before, after);
            free(after);
            cr_assert_eq(flow_get(f, "q", "a", &now), 0);
            cr_assert(flow_same(&old, &now));
            redis_do(f->server, "FLUSHALL"); /* no sweep runs that could end it */
        } else {
            cr_assert_eq(told.body_len, 0, "its body is not given");
            told.body = old.body;
            told.body_len = old.body_len;
            cr_assert(flow_same(&old, &told), "%s", flow_state_names[state]);
            cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
        }
        free(before);
    }

    flow_end(f, "q");
}

Test(cancel, of_a_job_that_is_not_there_is_enoent)
{
    struct flow *f = flow_start(FLOW_FULL);

    cr_assert_eq(flow_cancel(f, "q", "a", NULL), LAPSE_ENOENT);
    cr_assert_eq(flow_schedule(f, "q", "a", 3600000, NULL), 0);
    cr_assert_eq(flow_cancel(f, "q", "b", NULL), LAPSE_ENOENT);
    cr_assert_eq(flow_cancel(f, "q2", "a", NULL), LAPSE_ENOENT);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), LAPSE_ENOENT, "it is gone for good");
    flow_end(f, "q", "q2");
}

FLOW_ALL_MODES(cancel, of_a_running_job_is_ebusy_and_it_is_settled_all_the_same)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 20, NULL), 0);
    flow_until(f, w.n_held == 1);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), LAPSE_EBUSY);
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(w.errors, 0);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_end(f, "q");
}

FLOW_ALL_MODES(cancel, what_is_cancelled_does_not_run)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_job job[20];
    unsigned cancelled = 0;

    flow_listen(f, "q", &w);
    for (int i = 0; i < 20; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        cr_assert_eq(flow_schedule(f, "q", id, 150, &job[i]), 0);
    }

    /* only a job whose moment has come may run instead */
    for (int i = 0; i < 20; i += 2) {
        int err = flow_cancel(f, "q", job[i].id, NULL);
        cr_assert(err == 0 || redis_now_ms(f->server) >= job[i].due_ms, "%s", lapse_strerror(err));
        job[i].cancelled = err == 0;
        cancelled += err == 0;
    }

    flow_until(f, w.settled == 20 - cancelled);
    for (int i = 0; i < 20; i++) {
        bool runs = i % 2 == 1 || !job[i].cancelled;
        cr_assert_eq(flow_runs_of(&w, job[i].id), runs ? 1u : 0u, "%s", job[i].id);
    }

    cr_assert_eq(w.n_runs, 20 - cancelled);
    flow_end(f, "q");
}

FLOW_ALL_MODES(cancel, of_a_job_put_back_by_its_handler_works_until_its_next_run)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_RETRY, .delay_ms = 3600000, .reason = "later"};
    struct flow_job told;

    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, w.settled == 1);
    cr_assert_eq(flow_cancel(f, "q", "a", &told), 0);
    cr_assert(told.state == LAPSE_WAITING && told.try_no == 1 && strcmp(told.reason, "later") == 0);
    flow_end(f, "q");
}
