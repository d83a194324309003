/* SPDX-License-Identifier: MIT */
/* lapse_sync_report(): what a thread says of the job that it has. */
#include "waiting.h"

static bool shows(struct lapse_sync *s, const char *id, const char *report)
{
    struct lapse_job *job = NULL;
    size_t len;

    cr_assert_eq(lapse_sync_get(s, "q", id, 0, &job), 0);
    const void *bytes = lapse_job_report(job, &len);
    bool same = report ? bytes && len == strlen(report) && memcmp(bytes, report, len) == 0 : !bytes;
    lapse_sync_free(job);
    return same;
}

Test(report, of_a_job_in_a_thread_is_read_by_others)
{
    struct waiting w;
    struct worker k;

    waiting_start(&w);
    worker_keep_one(&k, w.s);
    cr_assert(shows(w.s, "a", NULL));
    cr_assert_eq(lapse_sync_report(w.s, k.kept[0], "half", 4, 0), 0);
    cr_assert(shows(w.s, "a", "half"));
    cr_assert_eq(lapse_sync_report(w.s, k.kept[0], NULL, 0, 0), 0);
    cr_assert(shows(w.s, "a", ""));
    worker_settle(&k, w.s, k.kept[0], DONE);
    cr_assert_eq(k.settled, 1);
    waiting_end(&w, "q");
}

Test(report, that_is_wrong_or_too_late_says_so)
{
    struct waiting w;
    struct worker k;
    struct lapse_settlement done = {.size = sizeof done, .how = LAPSE_HOW_DONE};

    waiting_start(&w);
    worker_keep_one(&k, w.s);
    struct lapse_job *job = k.kept[0];
    cr_assert_eq(lapse_sync_report(NULL, job, "", 0, 0), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_report(w.s, NULL, "", 0, 0), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_report(w.s, job, NULL, 1, 0), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_report(w.s, job, "", LAPSE_REPORT_MAX + 1, 0), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_report(w.s, job, "", 0, -1), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_settle(w.s, "q", "a", lapse_job_token(job), &done, 0), 0);
    cr_assert_eq(lapse_sync_report(w.s, job, "late", 4, 0), LAPSE_EGONE);
    cr_assert_eq(lapse_sync_done(w.s, job, 0), LAPSE_EGONE);
    waiting_end(&w, "q");
}

Test(report, by_the_token_comes_from_another_handle)
{
    struct waiting w;
    struct worker k;
    struct lapse_settlement how = {
        .size = sizeof how, .how = LAPSE_HOW_REPORT, .report = "half", .report_len = 4};

    waiting_start(&w);
    worker_keep_one(&k, w.s);
    uint64_t token = lapse_job_token(k.kept[0]);
    struct lapse_sync *other = waiting_open(&w);
    cr_assert_eq(lapse_sync_settle(other, "q", "a", token, &how, 0), 0);
    cr_assert(shows(w.s, "a", "half"));
    how.how = LAPSE_HOW_DONE;
    cr_assert_eq(lapse_sync_settle(other, "q", "a", token, &how, 0), 0);
    lapse_sync_close(other, 0);
    worker_settle(&k, w.s, k.kept[0], DONE);
    waiting_end(&w, "q");
}

struct last_words {
    atomic_int report_err, done_err;
    atomic_bool began;
};

/* Reports when the handle is closing. */
static void report_at_the_end(struct lapse_sync *s, struct lapse_job *job, void *arg)
{
    struct last_words *last = arg;
    struct lapse_depth depth;

    last->began = true;
    wait_until(lapse_sync_depth(s, "q", 0, &depth) == LAPSE_ECLOSED);
    last->report_err = lapse_sync_report(s, job, "all", 3, 0);
    last->done_err = lapse_sync_done(s, job, 0);
}

Test(report, comes_while_the_handle_closes_as_a_settle_does)
{
    struct waiting w;
    struct last_words last = {.report_err = 1, .done_err = 1};

    waiting_start(&w);
    cr_assert_eq(lapse_sync_listen(w.s, "q", NULL, report_at_the_end, &last), 0);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    wait_until(last.began);
    lapse_sync_close(w.s, HOUR);
    cr_assert_eq(last.report_err, 0, "%s", lapse_strerror(last.report_err));
    cr_assert_eq(last.done_err, 0, "%s", lapse_strerror(last.done_err));
    w.s = waiting_open(&w);
    waiting_end(&w, "q");
}
