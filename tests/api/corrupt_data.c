/* SPDX-License-Identifier: MIT */
/* Redis holds data that lapse did not write. */
#include "handler.h"

/* A job as schedule.lua stores it, but for its record; due now. */
static void plant(struct flow *f, const char *id, const char *record, size_t len)
{
    if (record) {
        redis_do(f->server, "HSET lapse:{q}:jobs %s %b", id, record, len);
    }
    redis_do(f->server, "ZADD lapse:{q}:due 1000 %s", id);
}

static const struct {
    const char *id, *record;
    size_t len;
} unreadable[] = {
    {"empty", "", 0},
    {"version-only", "\x01", 1},
    {"version-0", "\0\0body", 6},
    {"version-2", "\2\0", 2},
    {"flags-over-7", "\x01\x08", 2},
    {"text", "a JSON object", 13},
    {"cut-off", "\x01\x01", 2},
    {"endless", "\x01\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12},
    {"too-many-tries", "\x01\x01\xff\xff\xff\xff\x7f", 7},
};
enum { UNREADABLE = sizeof unreadable / sizeof *unreadable };

FLOW_ALL_MODES(corrupt_data,
               a_record_that_cannot_be_read_is_dead_with_its_reason_and_the_others_go_on)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_allow_log(f, "in a format this version cannot read");
    cr_assert_eq(flow_schedule(f, "q", "before", 0, NULL), 0);
    for (size_t i = 0; i < UNREADABLE; i++) {
        plant(f, unreadable[i].id, unreadable[i].record, unreadable[i].len);
    }

    cr_assert_eq(flow_schedule(f, "q", "after", 0, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "later", 50, NULL), 0);
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == 3);
    flow_each_once(&w, 3);
    cr_assert_eq(flow_count(f, "q", "dead"), UNREADABLE);
    cr_assert_eq(flow_logged(f, "in a format this version cannot read"), 1);

    for (size_t i = 0; i < UNREADABLE; i++) {
        cr_assert_geq(flow_score(f, "q", "dead", unreadable[i].id), 1000);
        cr_assert_eq(flow_get(f, "q", unreadable[i].id, NULL), LAPSE_EDATA, "%s", unreadable[i].id);
        cr_assert_eq(redis_int(f->server, "HSTRLEN lapse:{q}:jobs %s", unreadable[i].id),
                     (long long)unreadable[i].len);
    }

    flow_end(f, "q");
}

Test(corrupt_data, an_unreadable_job_that_died_says_why_in_a_list)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_job job;

    flow_allow_log(f, "in a format this version cannot read");
    plant(f, "newer", "\2\0body", 6);
    flow_listen(f, "q", &w);
    flow_poll(f, flow_count(f, "q", "dead") == 1);
    cr_assert_eq(flow_list(f, "q", LAPSE_DEAD, 10, &job, 1), 1);
    cr_assert_str_eq(job.id, "newer");
    cr_assert_str_eq(job.reason, "stored data is in a format this version cannot read");
    cr_assert_eq(job.body_len, 0);
    cr_assert_eq(w.n_runs, 0);
    cr_assert_eq(flow_cancel(f, "q", "newer", NULL), 0);
    flow_end(f, "q");
}

FLOW_ALL_MODES(corrupt_data, a_member_without_a_record_is_removed_and_the_others_go_on)
{
    place_not_in_cluster("of a queue that lacks a part nothing runs");

    enum { LOST = 120 };
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_allow_log(f, "without a record");

    for (int i = 0; i < LOST; i++) {
        char id[16];
        snprintf(id, sizeof id, "lost-%d", i);
        plant(f, id, NULL, 0);
    }

    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "b", 50, NULL), 0);
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == 2);
    flow_each_once(&w, 2);
    cr_assert_eq(flow_count(f, "q", "due") + flow_count(f, "q", "run") + flow_count(f, "q", "dead"),
                 0);
    cr_assert_geq(flow_logged(f, "without a record"), 1);
    flow_end(f, "q");
}

/* asynq#1144: an active job without a lease was stuck for good. */
Test(corrupt_data, a_running_job_without_a_holder_runs_again_when_its_lease_is_over)
{
    struct flow *f = flow_start(FLOW_SWEEP);
    struct flow_handler w = {.way = FLOW_DONE};

    redis_do(f->server, "HSET lapse:{q}:jobs nobody %b garbage %b", "\x01\0x", (size_t)3, "\x01\0x",
             (size_t)3);
    redis_do(f->server, "HSET lapse:{q}:attempts garbage %s", "7 what is this");
    redis_do(f->server, "ZADD lapse:{q}:run 1000 nobody 1000 garbage 1000 no-record");
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == 2);
    flow_each_once(&w, 2);
    cr_assert_eq(flow_count(f, "q", "run"), 0);
    flow_end(f, "q");
}

/* A key of ours written by another program: refused by name, and no more often than every
 * 200 ms. */
Test(corrupt_data,
     a_key_of_the_wrong_type_is_refused_quietly_holds_up_no_other_queue_and_works_when_it_is_gone)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_handler other = {.way = FLOW_DONE};

    flow_allow_log(f, "WRONGTYPE");
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    redis_do(f->server, "SET lapse:{q}:run text");
    flow_listen(f, "q", &w);
    flow_poll(f, flow_logged(f, "WRONGTYPE") >= 1);

    long long before = flow_scripts(f);
    flow_spin(f, 500);
    cr_assert_leq(flow_scripts(f) - before, 20);
    flow_listen(f, "other", &other);
    for (int i = 0; i < 10; i++) {
        cr_assert_eq(flow_schedule(f, "other", NULL, 20 * i, NULL), 0);
    }

    flow_until(f, other.settled == 10);
    flow_each_once(&other, 10);
    cr_assert_eq(w.n_runs, 0);
    redis_do(f->server, "DEL lapse:{q}:run");
    flow_until(f, w.settled == 1);
    flow_each_once(&w, 1);
    flow_end(f, "q", "other");
}
