/* SPDX-License-Identifier: MIT */
/* Each counter of LAPSE_STATS is moved by what its text says, and by nothing else. */
#include "handler.h"
#include "listening.h"
#include "states.h"

enum { HOUR = 3600000, DAY = 24 * HOUR };

static void no_sweep(struct lapse_options *opts)
{
    opts->sweep_ms = DAY;
}

static void bare_and_no_sweep(struct lapse_options *opts)
{
    opts->sweep_ms = DAY;
    opts->flags = LAPSE_NO_ALARM;
}

/* In the registry: it hears all from here on. It ran one job, and no claim is under way. */
static struct flow *listening(enum flow_mode mode, flow_tweak *tweak, struct flow_handler *w)
{
    struct flow *f = flow_start_opts(mode, NULL, tweak);

    flow_listen(f, "q", w);
    if (mode != FLOW_NO_EVENTS) {
        flow_until_listeners(f, "q", 1);
    }

    cr_assert_eq(flow_schedule(f, "q", "first", 0, NULL), 0);
    flow_until(f, w->settled == 1);
    if (mode != FLOW_NO_EVENTS) {
        flow_heard(f);
    }

    flow_calm(f);

    return f;
}

Test(stats, begin_at_0)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_stats s = flow_stats(f->l);
#define LAPSE_X(name, text) cr_assert_eq(s.name, 0, "%s: " text, #name);
    LAPSE_STATS(LAPSE_X)
#undef LAPSE_X
    flow_end(f);
}

Test(stats, scheduled_are_those_that_redis_accepted)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = flow_job_spec("q", "a", HOUR);

    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(flow_spec(f, &s, NULL), LAPSE_EEXIST);
    s.on_conflict = LAPSE_KEEP;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(flow_stats(f->l).scheduled, 1, "the one that KEEP found is no new one");
    s.on_conflict = LAPSE_REPLACE;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(flow_stats(f->l).scheduled, 2);
    flow_end(f, "q");
}

FLOW_ALL_MODES(stats, claimed_done_retried_and_failed)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct lapse_spec s = flow_job_spec("q", NULL, 0);

    for (int i = 0; i < 7; i++) {
        s.tries = i == 6 ? 1 : 10;
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }

    flow_listen(f, "q", &w);
    flow_until(f, w.n_held == 7);
    cr_assert(flow_stats(f->l).claimed == 7 && flow_stats(f->l).done == 0);

    unsigned n = 0;
    for (size_t i = 0; i < 7; i++) {
        if (lapse_job_tries(w.held[i]) == 1 || n++ >= 3) {
            /* of the last try: that is dead */
            lapse_retry(w.held[i], HOUR, "", flow_on_settled, &w);
        } else if (n <= 2) {
            lapse_done(w.held[i], flow_on_settled, &w);
        } else {
            lapse_fail(w.held[i], "", flow_on_settled, &w);
        }
    }

    flow_until(f, w.settled == 7);

    struct lapse_stats got = flow_stats(f->l);
    cr_assert(got.claimed == 7 && got.done == 2 && got.failed == 2 && got.retried == 3 &&
                  got.gone == 0,
              "%d done, %d failed, %d retried", (int)got.done, (int)got.failed, (int)got.retried);
    cr_assert_eq(got.via_event + got.via_notice + got.via_alarm + got.via_sweep, got.claimed);
    flow_end(f, "q");
}

Test(stats, gone_are_settles_that_came_too_late)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_allow_log(f, "the lease of job a in queue q ended");
    flow_hold(f, &w, "a");
    redis_do(f->server, "ZADD lapse:{q}:run XX 1 a"); /* its lease is over */
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    flow_settle(&w, FLOW_DONE);
    cr_assert(w.errors == 1 && w.err == LAPSE_EGONE);
    cr_assert(flow_stats(f->l).gone == 1 && flow_stats(f->l).done == 0);
    flow_end(f, "q");
}

Test(stats, events_and_via_event)
{
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow *f = listening(FLOW_FULL, bare_and_no_sweep, &w);
    struct lapse_stats before = flow_stats(f->l);

    for (int i = 0; i < 3; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 30, NULL), 0);
    }

    flow_until(f, w.settled == 4);
    struct lapse_stats now = flow_stats(f->l);
    cr_assert(now.via_event - before.via_event == 3 && now.events - before.events == 3);
    cr_assert(now.touches == 0 && now.via_alarm == 0 && now.via_notice == before.via_notice);
    flow_end(f, "q");
}

Test(stats, via_notice)
{
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow *f = listening(FLOW_FULL, bare_and_no_sweep, &w);
    struct lapse_stats before = flow_stats(f->l);

    for (unsigned i = 0; i < 3; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
        flow_until(f, w.settled == i + 2);
    }

    cr_assert_eq(flow_stats(f->l).via_notice - before.via_notice, 3);
    cr_assert_eq(flow_stats(f->l).claimed - before.claimed, 3);
    flow_end(f, "q");
}

Test(stats, via_alarm)
{
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow *f = listening(FLOW_NO_EVENTS, no_sweep, &w);
    struct lapse_stats before = flow_stats(f->l);

    /* those that are due now have no trigger to touch */
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    flow_until(f, w.settled == 4);
    cr_assert_eq(flow_stats(f->l).via_alarm - before.via_alarm, 3);
    cr_assert(flow_stats(f->l).events == 0 && flow_stats(f->l).foreign_events == 0);
    flow_end(f, "q");
}

/* They are due while Redis is stopped. Else its script may begin a moment before a job is due, and
 * read the time a moment later: the trigger is still there, and the touch deletes it, unexpired. */
static void run_three_by_touch(struct flow *f, struct flow_handler *w)
{
    enum { AHEAD_MS = 200 };
    struct lapse_spec s = flow_job_spec("q", NULL, 0);
    unsigned settled = w->settled;

    s.due = lapse_at(redis_now_ms(f->server) + AHEAD_MS);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }

    server_signal(f->server, SIGSTOP);
    flow_spin(f, AHEAD_MS + 10);
    server_signal(f->server, SIGCONT);
    flow_until(f, w->settled == settled + 3);
}

Test(stats, via_touch)
{
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow *f = listening(FLOW_STILL, no_sweep, &w);
    struct lapse_stats before = flow_stats(f->l);

    run_three_by_touch(f, &w);
    cr_assert_eq(flow_stats(f->l).via_touch - before.via_touch, 3);
    flow_end(f, "q");
}

Test(stats, via_sweep)
{
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow *f = listening(FLOW_SWEEP, NULL, &w);
    struct lapse_stats before = flow_stats(f->l);

    for (int i = 0; i < 3; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 20 + 20 * i, NULL), 0);
    }

    flow_until(f, w.settled == 4);
    cr_assert_eq(flow_stats(f->l).via_sweep - before.via_sweep, 3);
    flow_end(f, "q");
}

Test(stats, touches)
{
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow *f = listening(FLOW_STILL, no_sweep, &w); /* nothing else expires the triggers */

    run_three_by_touch(f, &w);
    cr_assert_eq(flow_stats(f->l).touches, 3);
    flow_end(f, "q");
}

/* A touch that finds triggers still there is followed by another, which reads the rest again. */
Test(stats, touches_do_not_count_what_had_expired_before)
{
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow *f = listening(FLOW_STILL, no_sweep, &w);

    cr_assert_eq(flow_schedule(f, "q", "gone", HOUR, NULL), 0);
    redis_do(f->server, "DEL lapse:{q}:t:gone");
    redis_do(f->server, "ZADD lapse:{q}:due XX %lld gone", (long long)redis_now_ms(f->server));
    cr_assert_eq(flow_schedule(f, "q", NULL, 40, NULL), 0); /* the alarm is for this one */
    flow_until(f, w.settled == 3);
    cr_assert_leq(flow_stats(f->l).touches, 1);
    flow_end(f, "q");
}

Test(stats, recovered_are_taken_back_from_ended_leases)
{
    struct flow *f = flow_start(FLOW_SWEEP);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_put(f, "q", "a", FLOW_ENDED, NULL);
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == 1);
    cr_assert_eq(flow_stats(f->l).recovered, 1);
    cr_assert_eq(flow_stats(f->l).failed, 0);
    flow_put(f, "last", "b", FLOW_ENDED_LAST, NULL);
    flow_listen(f, "last", &w);
    flow_until(f, flow_count(f, "last", "dead") == 1 && flow_stats(f->l).failed == 1);
    cr_assert_eq(w.n_runs, 1);
    flow_end(f, "q", "last");
}

Test(stats, foreign_events_and_empty_claims)
{
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow *f = listening(FLOW_FULL, bare_and_no_sweep, &w);
    struct lapse_stats before = flow_stats(f->l);

    redis_do(f->server, "SET somebodys-cache 1 PX 1");
    redis_do(f->server, "SET lapse:{other}:t:a 1 PX 1");
    flow_until(f, flow_stats(f->l).foreign_events - before.foreign_events == 2);
    cr_assert_eq(flow_stats(f->l).empty_claims, before.empty_claims);
    redis_do(f->server, "SET lapse:{q}:t:forged 1 PX 1");
    flow_until(f, flow_stats(f->l).empty_claims - before.empty_claims == 1);
    cr_assert_eq(flow_stats(f->l).events - before.events, 1);
    redis_do(f->server, "PUBLISH lapse:{q}:notice:0 %s", "0 nobody");
    flow_until(f, flow_stats(f->l).empty_claims - before.empty_claims == 2);
    cr_assert_eq(flow_stats(f->l).claimed, before.claimed);
    flow_end(f, "q");
}

Test(stats, reconnects_of_either_connection)
{
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow *f = listening(FLOW_FULL, NULL, &w);

    flow_allow_log(f, "lost the connection");
    cr_assert_eq(flow_stats(f->l).reconnects, 0);
    redis_do(f->server, "CLIENT KILL TYPE pubsub");
    flow_until(f, flow_stats(f->l).reconnects == 1);
    flow_heard(f); /* it is subscribed again, and no normal one */
    redis_do(f->server, "CLIENT KILL TYPE normal SKIPME yes");
    flow_until(f, flow_stats(f->l).reconnects == 2);
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    flow_until(f, w.settled == 2);
    flow_end(f, "q");
}

/* ---- lateness ---- */
Test(stats, lateness_is_that_of_each_claim_by_its_hint)
{
    struct flow *f = flow_start(FLOW_NO_EVENTS);
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse_histogram late[LAPSE_VIA_ASKED + 1];
    struct lapse_histogram want = {0};

    for (int i = 0; i < 9; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, i % 3 ? 20 : 0, NULL), 0);
    }
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == 9);

    for (unsigned via = 0; via <= LAPSE_VIA_ASKED; via++) {
        cr_assert_eq(lapse_lateness(f->l, (enum lapse_via)via, &late[via]), 0);
    }
    for (size_t i = 0; i < w.n_runs; i++) {
        const struct flow_job *j = &w.runs[i].job;
        want.sum_us += (uint64_t)(j->claimed_us - j->due_ms * 1000);
        want.n++;
    }
    cr_assert(late[0].n == want.n && late[0].sum_us == want.sum_us);

    struct lapse_stats s = flow_stats(f->l);
    cr_assert_eq(late[LAPSE_VIA_ALARM].n, s.via_alarm);
    cr_assert_eq(late[LAPSE_VIA_SWEEP].n, s.via_sweep);
    cr_assert_eq(late[LAPSE_VIA_TOUCH].n, s.via_touch);
    cr_assert_eq(late[LAPSE_VIA_ALARM].n + late[LAPSE_VIA_SWEEP].n + late[LAPSE_VIA_TOUCH].n, 9);
    flow_end(f, "q");
}

Test(stats, lateness_of_no_hint_that_there_is_is_einval)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_histogram h = {.n = 7};

    cr_assert_eq(lapse_lateness(f->l, (enum lapse_via)(LAPSE_VIA_ASKED + 1), &h), LAPSE_EINVAL);
    cr_assert_eq(lapse_lateness(f->l, (enum lapse_via) - 1, &h), LAPSE_EINVAL);
    cr_assert_eq(lapse_lateness(f->l, 0, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_lateness(NULL, 0, &h), LAPSE_EINVAL);
    cr_assert_eq(h.n, 7, "nothing has changed");
    flow_end(f);
}
