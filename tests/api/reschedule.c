/* SPDX-License-Identifier: MIT */
#include "handler.h"
#include "states.h"

enum { HOUR = 3600000 };

Test(reschedule, moves_a_job_in_every_state_but_running)
{
    struct flow *f = flow_start(FLOW_FULL);

    for (enum flow_state state = 0; state < FLOW_STATES; state++) {
        struct flow_job old;
        struct flow_job told;
        struct flow_job now;
        flow_put(f, "q", "a", state, &old);
        int64_t at = redis_now_ms(f->server) + 5 * HOUR;
        char *before = flow_dump(f);
        int err = flow_reschedule(f, "q", "a", lapse_at(at), &told);
        const char *name = flow_state_names[state];
        cr_assert_eq(err, state == FLOW_RUNS ? LAPSE_EBUSY : 0, "%s", name);
        if (err) {
            char *after = flow_dump(f);
            cr_assert_str_eq(before, after);
            free(after);
        } else {
            cr_assert_eq(flow_get(f, "q", "a", &now), 0);
            cr_assert(now.state == LAPSE_WAITING && now.due_ms == at && now.until_ms == 0, "%s",
                      name);
            cr_assert(now.tries == old.tries && strcmp(now.body, "old") == 0, "%s", name);
            /* a dead job's tries begin again at 0; those of other jobs go on */
            bool starts_over = state == FLOW_DEAD || state == FLOW_ENDED_LAST;
            cr_assert_eq(now.try_no, starts_over ? 0 : old.try_no, "%s", name);
            cr_assert_eq(told.body_len, 0, "its body is not given");
            told.body = now.body;
            told.body_len = now.body_len;
            cr_assert(flow_same(&told, &now), "%s: told what it is not", name);
        }
        free(before);
        redis_do(f->server, "FLUSHALL");
    }

    flow_end(f, "q");
}

Test(reschedule, of_a_job_that_is_not_there_is_enoent)
{
    struct flow *f = flow_start(FLOW_FULL);

    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(1), NULL), LAPSE_ENOENT);
    cr_assert_eq(flow_schedule(f, "q", "a", 30000, NULL), 0);
    cr_assert_eq(flow_reschedule(f, "q", "A", lapse_in(1), NULL), LAPSE_ENOENT);
    cr_assert_eq(flow_keys(f, "lapse:{q}:*"), 3, "due, jobs and one trigger");
    flow_end(f, "q");
}

Test(reschedule, a_delay_counts_from_now_and_the_past_means_now)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_job job;

    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), 0);

    int64_t before = redis_now_ms(f->server);
    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(2 * HOUR), &job), 0);
    cr_assert(job.due_ms >= before + 2 * HOUR && job.due_ms <= redis_now_ms(f->server) + 2 * HOUR);

    static const struct lapse_due now[] = {{0, 0}, {0, 1}, {0, 1700000000000}};
    for (size_t i = 0; i < sizeof now / sizeof *now; i++) {
        before = redis_now_ms(f->server);
        cr_assert_eq(flow_reschedule(f, "q", "a", now[i], &job), 0);
        cr_assert(job.due_ms >= before && job.due_ms <= redis_now_ms(f->server));
    }

    flow_end(f, "q");
}

FLOW_ALL_MODES(reschedule, earlier_or_later_it_runs_once_at_the_new_time)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_job earlier;
    struct flow_job later;
    struct flow_job now;

    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "earlier", HOUR, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "later", 5000, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "now", HOUR, NULL), 0);
    cr_assert_eq(flow_reschedule(f, "q", "later", lapse_in(5300), &later), 0);
    cr_assert_eq(flow_reschedule(f, "q", "earlier", lapse_in(100), &earlier), 0);
    cr_assert_eq(flow_reschedule(f, "q", "now", lapse_in(0), &now), 0);
    flow_until(f, w.settled >= 2);
    flow_until(f, w.settled == 3);

    for (size_t i = 0; i < 3; i++) {
        const struct flow_job *job = &w.runs[i].job;
        int64_t due = now.due_ms;

        if (strcmp(job->id, "earlier") == 0) {
            due = earlier.due_ms;
        } else if (strcmp(job->id, "later") == 0) {
            due = later.due_ms;
        }
        cr_assert_eq(job->due_ms, due, "%s", job->id);
        cr_assert_geq(job->claimed_us, due * 1000, "%s", job->id);
        cr_assert_eq(flow_runs_of(&w, job->id), 1);
    }

    flow_end(f, "q");
}

FLOW_ALL_MODES(reschedule, each_touch_of_a_session_puts_off_its_end)
{
    enum { TOUCHES = 60 };
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_job made;
    struct flow_answer touched[TOUCHES];

    flow_listen(f, "sessions", &w);
    cr_assert_eq(flow_schedule(f, "sessions", "u1", 5000, &made), 0);
    for (int i = 0; i < TOUCHES; i++) { /* in one turn, so none comes too late */
        touched[i] = (struct flow_answer){.f = f};
        cr_assert_eq(lapse_reschedule(f->l, "sessions", "u1", lapse_in(5000 + i), 0, flow_answered,
                                      &touched[i]),
                     0);
    }
    for (int i = 0; i < TOUCHES; i++) {
        cr_assert_eq(flow_wait(f, &touched[i]), 0);
    }

    flow_until(f, w.settled == 1);
    cr_assert_geq(touched[TOUCHES - 1].job.due_ms, made.due_ms + TOUCHES - 1);
    cr_assert_eq(w.runs[0].job.due_ms, touched[TOUCHES - 1].job.due_ms);
    cr_assert_eq(w.n_runs, 1);
    flow_end(f, "sessions");
}

FLOW_ALL_MODES(reschedule, a_dead_job_runs_again_with_all_its_tries)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_RETRY, .delay_ms = 0, .reason = "no"};
    struct lapse_spec s = flow_job_spec("q", "a", 0);
    struct flow_job job;

    s.tries = 2;
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    flow_until(f, w.settled == 2);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(job.state, LAPSE_DEAD);
    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(0), NULL), 0);
    flow_until(f, w.settled == 4);

    static const unsigned tries[] = {1, 2, 1, 2};
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(w.runs[i].job.try_no, tries[i]);
        cr_assert(i == 0 || w.runs[i].job.token > w.runs[i - 1].job.token);
    }

    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(job.state, LAPSE_DEAD);
    flow_end(f, "q");
}
