/* SPDX-License-Identifier: MIT */
/* lapse_sync_calendar(): series by a calendar, for threads. */
#include "waiting.h"

/* Of the rule N each multiple of N ms; of all else it is wrong. It writes down where it runs. */
struct ticks {
    struct lapse_sync *s;
    pthread_t thread; /* of the test */
    atomic_uint n;
    atomic_int call_err; /* of a call that it made */
    atomic_bool in_this_thread;
};

static int64_t multiples(const char *rule, int64_t after_ms, void *arg)
{
    struct ticks *t = arg;
    int64_t ms = strtoll(rule, NULL, 10);

    if (t) {
        t->call_err = schedule(t->s, "x", HOUR);
        t->in_this_thread = pthread_equal(t->thread, pthread_self()) != 0;
        t->n++;
    }
    return ms > 0 ? (after_ms / ms + 1) * ms : -1;
}

static int schedule_by(struct lapse_sync *s, const char *calendar, const char *rule, unsigned times)
{
    struct lapse_spec spec = lapse_spec_init();
    struct lapse_series by = lapse_series_init();

    by.calendar = calendar;
    by.rule = rule;
    by.times = times;
    by.catch_up = LAPSE_CATCH_UP_ALL;
    spec.queue = "q";
    spec.id = "a";
    spec.series = &by;
    return lapse_sync_schedule(s, &spec, 0, NULL);
}

static bool is_there(struct lapse_sync *s)
{
    return lapse_sync_get(s, "q", "a", 0, NULL) == 0;
}

/* More than the 16 that were put in at first. */
Test(calendar, has_a_job_at_each_of_its_moments_while_handlers_block)
{
    struct waiting w;
    struct worker k;
    struct ticks t = {.thread = pthread_self()};

    waiting_start(&w);
    worker_init(&k, DONE);
    t.s = w.s;
    cr_assert_eq(lapse_sync_calendar(w.s, "ticks", multiples, &t), 0);
    cr_assert_eq(listen_with(w.s, &k, 2, 40), 0);
    k.blocks = true;
    cr_assert_eq(schedule_by(w.s, "ticks", "20", 40), 0);
    wait_until(!is_there(w.s));
    cr_assert_eq(k.began, 2, "%u", k.began);
    k.blocks = false;
    wait_until(k.ended == 40);
    cr_assert_eq(k.settled, 40);
    cr_assert(t.n >= 40 && !t.in_this_thread);
    cr_assert_eq(t.call_err, LAPSE_EINVAL);
    waiting_end(&w, "q");
}

Test(calendar, that_is_not_known_or_known_already_is_refused)
{
    struct waiting w;

    waiting_start(&w);
    cr_assert_eq(lapse_sync_calendar(NULL, "ticks", multiples, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_calendar(w.s, NULL, multiples, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_calendar(w.s, "ticks", NULL, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_calendar(w.s, "Ticks", multiples, NULL), LAPSE_EINVAL);
    cr_assert_eq(schedule_by(w.s, "ticks", "3600000", 0), LAPSE_EINVAL);

    char name[] = "ticks"; /* the caller's again when the call returns */
    cr_assert_eq(lapse_sync_calendar(w.s, name, multiples, NULL), 0);
    name[0] = 'x';
    cr_assert_eq(lapse_sync_calendar(w.s, "ticks", multiples, NULL), LAPSE_EEXIST);
    cr_assert_eq(schedule_by(w.s, "ticks", "wrong", 0), LAPSE_EINVAL);
    cr_assert_eq(schedule_by(w.s, "ticks", "3600000", 0), 0);
    waiting_end(&w, "q");
}

Test(calendar, by_which_a_series_goes_is_paused_by_the_id_of_the_series)
{
    struct waiting w;
    struct lapse_job *job = NULL;

    waiting_start(&w);
    cr_assert_eq(lapse_sync_calendar(w.s, "ticks", multiples, NULL), 0);
    cr_assert_eq(schedule_by(w.s, "ticks", "3600000", 0), 0);
    cr_assert_eq(lapse_sync_pause(w.s, "q", "a", 0, 0, NULL), 0);
    cr_assert_eq(lapse_sync_get(w.s, "q", "a", 0, &job), 0);
    cr_assert_eq(lapse_job_paused(job), 1);
    lapse_sync_free(job);
    cr_assert_eq(lapse_sync_unpause(w.s, "q", "a", 0, NULL), 0);
    waiting_end(&w, "q");
}
