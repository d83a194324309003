/* SPDX-License-Identifier: MIT */
/* What a schedule does to a job that is there: every cell of the table of enum lapse_conflict. */
#include "handler.h"
#include "states.h"

enum { SAME, NEW_LIFE }; /* what becomes of the old one */
static const struct {
    enum lapse_conflict how;
    enum flow_state state;
    int err, then;
} rows[] = {
    {LAPSE_REJECT, FLOW_WAITS, LAPSE_EEXIST, SAME},
    {LAPSE_REJECT, FLOW_RUNS, LAPSE_EEXIST, SAME},
    {LAPSE_REJECT, FLOW_DEAD, LAPSE_EEXIST, SAME},
    {LAPSE_REJECT, FLOW_ENDED, LAPSE_EEXIST, SAME},
    {LAPSE_REJECT, FLOW_ENDED_LAST, LAPSE_EEXIST, SAME},
    {LAPSE_KEEP, FLOW_WAITS, 0, SAME},
    {LAPSE_KEEP, FLOW_RUNS, 0, SAME},
    {LAPSE_KEEP, FLOW_DEAD, 0, SAME},
    {LAPSE_KEEP, FLOW_ENDED, 0, SAME},
    {LAPSE_KEEP, FLOW_ENDED_LAST, 0, SAME},
    {LAPSE_REPLACE, FLOW_WAITS, 0, NEW_LIFE},
    {LAPSE_REPLACE, FLOW_RUNS, LAPSE_EBUSY, SAME},
    {LAPSE_REPLACE, FLOW_DEAD, 0, NEW_LIFE},
    {LAPSE_REPLACE, FLOW_ENDED, 0, NEW_LIFE},
    {LAPSE_REPLACE, FLOW_ENDED_LAST, 0, NEW_LIFE},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void run_row(struct flow *f, size_t i)
{
    struct lapse_spec s = flow_job_spec("q", NULL, 7200000);
    struct flow_job old;
    struct flow_job told;
    struct flow_job now;
    char id[16];

    snprintf(id, sizeof id, "row-%zu", i);
    flow_put(f, "q", id, rows[i].state, &old);

    char *before = flow_dump(f);
    s.id = id;
    s.body = "new";
    s.body_len = 3;
    s.tries = 7;
    s.on_conflict = rows[i].how;

    const char *at = flow_state_names[rows[i].state];
    cr_assert_eq(flow_spec(f, &s, &told), rows[i].err, "row %zu, %s", i, at);
    cr_assert_eq(flow_get(f, "q", id, &now), 0);

    if (rows[i].then == SAME) {
        char *after = flow_dump(f);
        cr_assert_str_eq(before, after, "row %zu, %s: something changed", i, at);
        cr_assert(flow_same(&old, &now), "row %zu, %s", i, at);
        free(after);
    } else {
        cr_assert(now.state == LAPSE_WAITING && now.tries == 7 && now.try_no == 0 && !*now.reason &&
                      now.token == 0 && now.claimed_us == 0 && now.until_ms == 0 &&
                      now.due_ms > old.due_ms + 3500000 && strcmp(now.body, "new") == 0,
                  "row %zu, %s", i, at);
    }

    free(before);
    if (rows[i].err) {
        return;
    }

    cr_assert_eq(told.created, rows[i].then == NEW_LIFE, "row %zu, %s", i, at);
    cr_assert_eq(told.body_len, 0);
    told.body = now.body;
    told.body_len = now.body_len;
    cr_assert(flow_same(&told, &now), "row %zu, %s: not the job that is there", i, at);
}

Test(conflict, reject_changes_nothing_in_any_state)
{
    struct flow *f = flow_start(FLOW_FULL);

    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].how == LAPSE_REJECT) {
            run_row(f, i);
        }
    }
    flow_end(f, "q");
}

Test(conflict, keep_shows_the_one_there_in_any_state)
{
    struct flow *f = flow_start(FLOW_FULL);

    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].how == LAPSE_KEEP) {
            run_row(f, i);
        }
    }
    flow_end(f, "q");
}

Test(conflict, replace_begins_a_new_life_of_all_but_a_running_job)
{
    struct flow *f = flow_start(FLOW_FULL);

    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].how == LAPSE_REPLACE) {
            run_row(f, i);
        }
    }
    flow_end(f, "q");
}

FLOW_ALL_MODES(conflict, a_token_grows_over_all_lives_of_an_id)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_FAIL, .reason = "first life"};
    struct lapse_spec s = flow_job_spec("q", "a", 0);

    s.on_conflict = LAPSE_REPLACE;
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    flow_until(f, w.settled == 1);
    w.way = FLOW_DONE;
    cr_assert_eq(flow_spec(f, &s, NULL), 0); /* replaces the dead one */
    flow_until(f, w.settled == 2);
    cr_assert_eq(flow_spec(f, &s, NULL), 0); /* it was gone */
    flow_until(f, w.settled == 3);

    for (int i = 0; i < 3; i++) {
        cr_assert_eq(w.runs[i].job.try_no, 1);
        cr_assert_str_eq(w.runs[i].job.reason, "");
        cr_assert(i == 0 || w.runs[i].job.token > w.runs[i - 1].job.token);
    }

    flow_end(f, "q");
}

FLOW_ALL_MODES(conflict, what_was_replaced_by_later_does_not_run_at_its_old_time)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse_spec s = flow_job_spec("q", "a", 5000); /* it is replaced before that */
    struct flow_job job;

    flow_listen(f, "q", &w);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    s.on_conflict = LAPSE_REPLACE;
    s.due = lapse_in(5300);
    cr_assert_eq(flow_spec(f, &s, &job), 0);
    flow_until(f, w.settled == 1);
    cr_assert_eq(w.runs[0].job.due_ms, job.due_ms);
    cr_assert_geq(w.runs[0].job.claimed_us, job.due_ms * 1000);
    flow_end(f, "q");
}

Test(conflict, the_second_of_one_turn_meets_the_first)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_answer a[4];
    struct lapse_spec s = flow_job_spec("q", "a", 3600000);

    for (int i = 0; i < 4; i++) {
        static const enum lapse_conflict how[] = {LAPSE_REJECT, LAPSE_REJECT, LAPSE_KEEP,
                                                  LAPSE_REPLACE};
        a[i] = (struct flow_answer){.f = f};
        s.on_conflict = how[i];
        s.tries = (unsigned)i + 1;
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[i]), 0);
    }

    cr_assert_eq(flow_wait(f, &a[0]), 0);
    cr_assert_eq(flow_wait(f, &a[1]), LAPSE_EEXIST);
    cr_assert(!a[1].has_job);
    cr_assert_eq(flow_wait(f, &a[2]), 0);
    cr_assert(a[2].job.tries == 1 && !a[2].job.created);
    cr_assert_eq(flow_wait(f, &a[3]), 0);
    cr_assert(a[3].job.tries == 4 && a[3].job.created);
    flow_end(f, "q");
}
