/* SPDX-License-Identifier: MIT */
/* Each allocation fails once, in a life with every call. No answer is a lie, nothing is left. */
#include "waiting.h"

static bool may_be(int err, int expected)
{
    return err == expected || (alloc_has_failed() && (err == LAPSE_ENOMEM || err == LAPSE_ELOST));
}

static void see_rows(struct lapse_sync *s)
{
    struct lapse_sync_queue_rows queues = {0, NULL};
    struct lapse_sync_listener_rows listeners = {0, NULL};
    struct lapse_sync_past_rows past = {0, NULL};
    int err;

    err = lapse_sync_queues(s, NULL, 0, &queues);
    cr_assert(may_be(err, 0), "queues: %s", lapse_strerror(err));
    lapse_sync_free_rows(queues.rows);

    err = lapse_sync_listeners(s, "q", 0, &listeners);
    cr_assert(may_be(err, 0), "listeners: %s", lapse_strerror(err));
    lapse_sync_free_rows(listeners.rows);

    err = lapse_sync_history(s, "q", 0, 0, 0, 0, &past);
    cr_assert(may_be(err, 0), "history: %s", lapse_strerror(err));
    lapse_sync_free_rows(past.rows);
}

/* Once its listener can be told: memory may have been short for its first heartbeat. */
static void tell_all(struct lapse_sync *s, const char *name)
{
    struct lapse_sync_listener_rows told = {0, NULL};
    int err;

    wait_until((err = lapse_sync_quiet(s, name, 0, 0, &told)) != LAPSE_ENOENT);
    cr_assert(may_be(err, 0), "quiet: %s", lapse_strerror(err));
    lapse_sync_free_rows(told.rows);
}

static int before(struct lapse_sync *s, struct lapse_job *job, void *arg)
{
    (void)s;
    (void)job;
    (void)arg;
    return 0;
}

static void start_listening(struct lapse_sync *s, struct worker *k)
{
    int err = lapse_sync_around(s, before, NULL, NULL);

    cr_assert(may_be(err, 0), "around: %s", lapse_strerror(err));
    err = listen_with(s, k, 2, 4);
    cr_assert(may_be(err, 0), "listen: %s", lapse_strerror(err));
    if (err == LAPSE_ENOMEM) {
        cr_assert_eq(listen_with(s, k, 2, 4), 0);
    }
}

/* A life; false: it could not begin. */
static bool live(struct waiting *w, const char *id)
{
    struct lapse_spec spec = lapse_spec_init();
    struct lapse_sync_jobs page = {.n = 0};
    struct lapse_job *job = NULL;
    struct lapse_sync *s = NULL;
    struct worker k;
    int err;

    worker_init(&k, DONE);
    err = lapse_sync_open(&s, &w->options);
    if (err) {
        cr_assert_eq(err, LAPSE_ENOMEM);
        return false;
    }

    spec.queue = "q";
    spec.id = id;
    spec.due = lapse_in(HOUR);
    err = lapse_sync_schedule(s, &spec, 0, &job);
    cr_assert(may_be(err, 0), "schedule: %s", lapse_strerror(err));
    lapse_sync_free(job);
    if (err == LAPSE_ENOMEM) { /* a NO: Redis was not changed */
        cr_assert_eq(lapse_sync_get(s, "q", id, 0, NULL), LAPSE_ENOENT);
        cr_assert_eq(schedule(s, id, HOUR), 0);
    }

    job = NULL;
    err = lapse_sync_get(s, "q", id, 0, &job);
    cr_assert(may_be(err, 0), "get: %s", lapse_strerror(err));
    lapse_sync_free(job);

    struct lapse_where later = {.size = sizeof later, .state = LAPSE_WAITING};
    err = lapse_sync_reschedule_all(s, "q", &later, lapse_in(HOUR), 0, 0, 0, NULL);
    cr_assert(may_be(err, 0), "reschedule_all: %s", lapse_strerror(err));

    err = lapse_sync_list(s, "q", LAPSE_WAITING, NULL, 5, 0, &page);
    cr_assert(may_be(err, 0), "list: %s", lapse_strerror(err));
    lapse_sync_free_jobs(&page);
    see_rows(s);

    start_listening(s, &k);

    err = lapse_sync_reschedule(s, "q", id, lapse_in(0), 0, 0, NULL);
    cr_assert(may_be(err, 0), "reschedule: %s", lapse_strerror(err));
    if (err == LAPSE_ENOMEM) {
        cr_assert_eq(lapse_sync_reschedule(s, "q", id, lapse_in(0), 0, 0, NULL), 0);
    }
    wait_until(k.ended == 1);
    tell_all(s, "web");
    cr_assert(may_be(k.settled == 1 ? 0 : k.err, 0), "%s", lapse_strerror(k.err));
    lapse_sync_close(s, 1000);

    return true;
}

Test(memory, each_allocation_that_fails_is_an_error_that_is_true)
{
    struct waiting w;
    char id[24];
    long n = 0;

    waiting_bare(&w);
    w.options.name = "web";
    w.options.lease_ms = 2500; /* of a claimed job for which there is no memory */
    w.options.sweep_ms = 100;
    do {
        snprintf(id, sizeof id, "%ld", ++n);
        alloc_fail(n);
        live(&w, id);
    } while (alloc_has_failed());
    alloc_fail(0);
    cr_assert_gt(n, 20);

    w.s = waiting_open(&w);
    waiting_end(&w, "q");
}
