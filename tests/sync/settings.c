/* SPDX-License-Identifier: MIT */
/* Settings of a queue, and pause, by calls that wait. */
#include "waiting.h"

Test(settings, are_shown_set_and_taken_away)
{
    struct waiting w;
    char *text = NULL;

    waiting_start(&w);
    cr_assert_eq(lapse_sync_configure(w.s, "q", NULL, 0, &text), 0);
    cr_assert_str_eq(text, "");
    lapse_sync_free_text(text);

    text = NULL;
    cr_assert_eq(lapse_sync_configure(w.s, "q", "paused=9007199254740992", 0, &text), 0);
    cr_assert_str_eq(text, "paused=9007199254740992");
    lapse_sync_free_text(text);

    text = NULL;
    cr_assert_eq(lapse_sync_configure(w.s, "q", "paused=", 0, &text), 0);
    cr_assert_str_eq(text, "");
    lapse_sync_free_text(text);
    lapse_sync_free_text(NULL);
    cr_assert_eq(lapse_sync_configure(w.s, "q", NULL, 0, NULL), 0);
    redis_do(w.server, "DEL lapse:{q}:conf");
    waiting_end(&w, "q");
}

Test(settings, a_change_that_is_refused_is_einval_with_the_reason)
{
    struct waiting w;
    char *text = NULL;

    waiting_start(&w);
    cr_assert_eq(lapse_sync_configure(w.s, "q", "colour=red", 0, &text), LAPSE_EINVAL);
    cr_assert(text && strstr(text, "colour"), "%s", text);
    lapse_sync_free_text(text);

    text = NULL;
    cr_assert_eq(lapse_sync_configure(w.s, "q q", NULL, 0, &text), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_pause(w.s, "q", "an id", 0, 0, &text), LAPSE_EINVAL);
    cr_assert_null(text);
    waiting_end(&w, "q");
}

Test(settings, a_paused_queue_runs_nothing_until_it_is_unpaused)
{
    struct waiting w;
    struct worker k;

    waiting_start(&w);
    worker_init(&k, DONE);
    cr_assert_eq(lapse_sync_pause(w.s, "q", NULL, 0, 0, NULL), 0);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    cr_assert_eq(listen_with(w.s, &k, 2, 0), 0);
    cr_assert_eq(schedule(w.s, "b", 0), 0);
    wait_until(stats_of(w.s).empty_claims > 0);
    cr_assert(k.began == 0 && depth_of(w.s, "q").waiting == 2);

    cr_assert_eq(lapse_sync_unpause(w.s, "q", NULL, 0, NULL), 0);
    wait_until(k.ended == 2);
    cr_assert_eq(k.settled, 2);
    redis_do(w.server, "DEL lapse:{q}:conf");
    waiting_end(&w, "q");
}

Test(settings, entries_of_a_dead_consumer_are_adopted_with_their_bodies)
{
    struct waiting w;
    struct lapse_sync_jobs jobs;
    struct lapse_adoption what = {
        .size = sizeof what, .group = "g", .consumer = "me", .idle_ms = 1, .n = 100};
    size_t len;

    waiting_start(&w);
    cr_assert_eq(lapse_sync_adopt(w.s, "q", &what, 0, NULL), LAPSE_EINVAL);
    jobs.n = 7;
    cr_assert_eq(lapse_sync_adopt(w.s, "q", NULL, 0, &jobs), LAPSE_EINVAL);
    cr_assert_eq(jobs.n, 0);
    cr_assert_eq(lapse_sync_adopt(w.s, "q", &what, 0, &jobs), LAPSE_ENOENT);

    cr_assert_eq(lapse_sync_configure(w.s, "q", "forward=stream forward_groups=g", 0, NULL), 0);
    for (int i = 0; i < 150; i++) {
        redis_do(w.server, "XADD lapse:{q}:stream %d-1 id j%d due_ms 5 try 1 token 7 body text",
                 i + 1, i);
    }
    redis_do(w.server, "XREADGROUP GROUP g gone STREAMS lapse:{q}:stream >");
    wait_a_little();
    cr_assert_eq(lapse_sync_adopt(w.s, "q", &what, 0, &jobs), 0);
    cr_assert_eq(jobs.n, 100);
    cr_assert_str_eq(lapse_job_id(jobs.jobs[99]), "j99");
    cr_assert_str_eq(lapse_job_entry(jobs.jobs[99]), "100-1");
    cr_assert_eq(lapse_job_deliveries(jobs.jobs[99]), 2);
    cr_assert_arr_eq(lapse_job_body(jobs.jobs[99], &len), "text", 4);

    struct lapse_sync_jobs rest;
    what.after = jobs.jobs[99];
    cr_assert_eq(lapse_sync_adopt(w.s, "q", &what, 0, &rest), 0);
    cr_assert_eq(rest.n, 50);
    lapse_sync_free_jobs(&jobs);
    lapse_sync_free_jobs(&rest);
    redis_do(w.server, "DEL lapse:{q}:conf lapse:{q}:stream");
    waiting_end(&w, "q");
}

Test(settings, a_forwarded_queue_has_no_handler_until_it_is_unlistened)
{
    struct waiting w;
    struct worker k;
    char *text = NULL;

    waiting_start(&w);
    worker_init(&k, DONE);
    cr_assert_eq(lapse_sync_forward(w.s, "q", "list", 0, &text), 0);
    cr_assert(text && strstr(text, "forward=list"), "%s", text);
    lapse_sync_free_text(text);
    cr_assert_eq(listen_with(w.s, &k, 1, 0), LAPSE_EEXIST);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    wait_until(redis_int(w.server, "LLEN lapse:{q}:list") == 1);

    cr_assert_eq(lapse_sync_unlisten(w.s, "q"), 0);
    cr_assert_eq(lapse_sync_configure(w.s, "q", "forward=", 0, NULL), 0);
    cr_assert_eq(listen_with(w.s, &k, 1, 0), 0);
    cr_assert_eq(schedule(w.s, "b", 0), 0);
    wait_until(k.ended == 1);
    redis_do(w.server, "DEL lapse:{q}:conf lapse:{q}:list");
    waiting_end(&w, "q");
}
