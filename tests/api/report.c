/* SPDX-License-Identifier: MIT */
/* lapse_report(), lapse_job_report(): what the holder of a job says of it, for others to read. */
#include "handler.h"
#include "listening.h"
#include "wire.h"

enum { HOUR = 3600000 };

/* What lapse_get() shows. */
struct shown {
    unsigned calls;
    int err;
    bool has_report;
    size_t len;
    char *report; /* the test's to free, with a zero behind it */
};

static void on_shown(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct shown *s = arg;
    (void)l;

    s->calls++;
    s->err = err;
    if (!job) {
        return;
    }

    const void *report = lapse_job_report(job, &s->len);
    s->has_report = report != NULL;
    s->report = malloc(s->len + 1);
    if (s->len) {
        memcpy(s->report, report, s->len);
    }
    s->report[s->len] = '\0';
}

/* Has the job just this report? NULL: it has none. */
static bool shows(struct flow *f, const char *id, const char *report)
{
    struct shown s = {.calls = 0};

    cr_assert_eq(lapse_get(f->l, "q", id, on_shown, &s), 0);
    flow_until(f, s.calls == 1);
    cr_assert_eq(s.err, 0, "%s", lapse_strerror(s.err));
    bool same = s.has_report == (report != NULL) && strcmp(s.report, report ? report : "") == 0;
    free(s.report);
    return same;
}

static int report(struct flow *f, struct lapse_job *job, const char *text)
{
    struct flow_answer a = {.f = f};
    int err = lapse_report(job, text, strlen(text), flow_answered, &a);

    return err ? err : flow_wait(f, &a);
}

static int report_by(struct flow *f, const char *id, uint64_t token, const char *text)
{
    struct lapse_settlement how = {
        .how = LAPSE_HOW_REPORT, .report = text, .report_len = strlen(text)};

    return flow_settle_by(f, "q", id, token, how);
}

Test(report, of_a_held_job_is_shown_and_the_next_takes_its_place)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_hold(f, &w, "a");
    cr_assert(shows(f, "a", NULL));
    cr_assert_eq(report(f, w.held[0], "half"), 0);
    cr_assert(shows(f, "a", "half"));
    cr_assert_null(lapse_job_report(w.held[0], NULL), "it is shown by lapse_get() alone");
    cr_assert_eq(report(f, w.held[0], ""), 0);
    cr_assert(shows(f, "a", ""));
    cr_assert_eq(report(f, w.held[0], "all of it"), 0);
    cr_assert(shows(f, "a", "all of it"));
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(w.errors, 0);
    flow_end(f, "q");
}

Test(report, may_have_any_bytes_up_to_64_kib)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow_answer a = {.f = f};
    struct shown s = {.calls = 0};
    unsigned char *bytes = malloc(LAPSE_REPORT_MAX + 1);

    for (size_t i = 0; i <= LAPSE_REPORT_MAX; i++) {
        bytes[i] = (unsigned char)(i ^ i >> 8);
    }

    flow_hold(f, &w, "a");
    cr_assert_eq(lapse_report(w.held[0], bytes, LAPSE_REPORT_MAX + 1, flow_answered, &a),
                 LAPSE_EINVAL);
    cr_assert_eq(lapse_report(w.held[0], NULL, 1, flow_answered, &a), LAPSE_EINVAL);
    cr_assert_eq(lapse_report(NULL, bytes, 1, flow_answered, &a), LAPSE_EINVAL);
    cr_assert_eq(lapse_report(w.held[0], bytes, LAPSE_REPORT_MAX, flow_answered, &a), 0);
    cr_assert_eq(flow_wait(f, &a), 0);
    cr_assert_eq(a.calls, 1);

    cr_assert_eq(lapse_get(f->l, "q", "a", on_shown, &s), 0);
    flow_until(f, s.calls == 1);
    cr_assert_eq(s.len, LAPSE_REPORT_MAX);
    cr_assert_eq(memcmp(s.report, bytes, s.len), 0);
    free(s.report);
    free(bytes);
    flow_settle(&w, FLOW_DONE);
    flow_end(f, "q");
}

Test(report, and_the_settle_behind_it_take_effect_in_their_order)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow_answer first = {.f = f};
    struct flow_answer second = {.f = f};

    flow_hold(f, &w, "a");
    cr_assert_eq(lapse_report(w.held[0], "half", 4, flow_answered, &first), 0);
    cr_assert_eq(lapse_report(w.held[0], "all", 3, flow_answered, &second), 0);
    lapse_fail(w.held[0], "it is of no use", flow_on_settled, &w);
    flow_until(f, w.settled == 1);
    cr_assert(first.calls == 1 && first.err == 0 && second.calls == 1 && second.err == 0);
    cr_assert(first.nth < second.nth);
    cr_assert_eq(w.errors, 0);
    cr_assert(shows(f, "a", "all"));
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    flow_end(f, "q");
}

Test(report, stays_while_a_job_is_tried_again_and_when_it_is_dead)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP, .delay_ms = 0};

    flow_hold(f, &w, "a");
    cr_assert_eq(report(f, w.held[0], "10 of 100"), 0);
    flow_settle(&w, FLOW_RETRY);
    w.n_held = 0;
    flow_until(f, w.n_held == 1);
    cr_assert(shows(f, "a", "10 of 100"));
    flow_settle(&w, FLOW_FAIL);
    cr_assert(shows(f, "a", "10 of 100"));
    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(HOUR), NULL), 0);
    cr_assert(shows(f, "a", NULL));
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    flow_end(f, "q");
}

Test(report, of_a_lost_lease_is_egone_and_changes_nothing)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct lapse_settlement retry = {.how = LAPSE_HOW_RETRY, .ms = HOUR};
    struct lapse *own;

    flow_hold(f, &w, "a");
    cr_assert_eq(report(f, w.held[0], "half"), 0);
    own = f->l;
    f->l = flow_open(f, NULL); /* another process, of which this one does not hear */
    cr_assert_eq(flow_settle_by(f, "q", "a", lapse_job_token(w.held[0]), retry), 0);
    cr_assert_eq(report(f, w.held[0], "all"), LAPSE_EGONE);
    cr_assert(shows(f, "a", "half"));
    flow_close(f, f->l, 0);
    f->l = own;
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(w.err, LAPSE_EGONE);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    flow_end(f, "q");
}

Test(report, of_a_job_that_this_handle_settled_by_its_token_is_egone_at_once)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct lapse_settlement done = {.how = LAPSE_HOW_DONE};

    flow_hold(f, &w, "a");
    cr_assert_eq(flow_settle_by(f, "q", "a", lapse_job_token(w.held[0]), done), 0);
    cr_assert_eq(lapse_report(w.held[0], "all", 3, flow_answered, NULL), LAPSE_EGONE);
    flow_settle(&w, FLOW_DONE);
    flow_end(f, "q");
}

Test(report, is_left_out_by_all_but_get)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct shown s = {.calls = 0};

    flow_hold(f, &w, "a");
    cr_assert_eq(report(f, w.held[0], "half"), 0);
    flow_settle(&w, FLOW_FAIL);
    cr_assert_eq(lapse_cancel(f->l, "q", "a", 0, on_shown, &s), 0);
    flow_until(f, s.calls == 1);
    cr_assert(!s.has_report && s.len == 0);
    free(s.report);
    flow_end(f, "q");
}

struct kept_dup {
    struct lapse_job *job;
};

static void keep_dup(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    cr_assert_eq(err, 0);
    ((struct kept_dup *)arg)->job = lapse_job_dup(job);
}

Test(report, is_duplicated_with_its_job)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct kept_dup kept = {NULL};
    size_t len;

    flow_hold(f, &w, "a");
    cr_assert_eq(report(f, w.held[0], "half"), 0);
    cr_assert_eq(lapse_get(f->l, "q", "a", keep_dup, &kept), 0);
    flow_until(f, kept.job);
    flow_settle(&w, FLOW_DONE);
    const char *half = lapse_job_report(kept.job, &len);
    cr_assert(len == 4 && memcmp(half, "half", 4) == 0);
    struct lapse_job *again = lapse_job_dup(kept.job);
    lapse_job_free(kept.job);
    cr_assert_eq(memcmp(lapse_job_report(again, NULL), "half", 4), 0);
    lapse_job_free(again);
    flow_end(f, "q");
}

/* ---- by the token ---- */
Test(report, by_the_token_comes_from_anywhere_and_ends_no_hold)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    uint64_t token;

    flow_hold(f, &w, "a");
    token = lapse_job_token(w.held[0]);
    cr_assert_eq(report_by(f, "a", token, "half"), 0);
    cr_assert(shows(f, "a", "half"));
    cr_assert_neq(lapse_job_until_ms(w.held[0]), 0, "it is held");
    cr_assert_eq(report_by(f, "a", token + 1, "all"), LAPSE_EGONE);
    cr_assert_eq(report(f, w.held[0], "most"), 0);
    cr_assert(shows(f, "a", "most"));
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(w.errors, 0);
    cr_assert_eq(report_by(f, "a", token, "late"), LAPSE_EGONE);
    flow_end(f, "q");
}

Test(report, that_comes_with_done_goes_with_a_job_that_does_not_stay)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    char *large = malloc(LAPSE_REPORT_MAX);
    struct lapse_settlement how = {
        .how = LAPSE_HOW_DONE, .report = large, .report_len = LAPSE_REPORT_MAX};

    memset(large, 'x', LAPSE_REPORT_MAX);
    flow_hold(f, &w, "a");
    uint64_t token = lapse_job_token(w.held[0]);
    cr_assert_eq(flow_settle_by(f, "q", "a", token + 1, how), LAPSE_EGONE);
    cr_assert_eq(flow_settle_by(f, "q", "a", token, how), 0);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    cr_assert_eq(flow_stats(f->l).done, 1);
    flow_settle(&w, FLOW_DONE);
    free(large);
    flow_end(f, "q");
}

Test(report, comes_with_no_settle_but_done_and_is_not_too_long)
{
    static const char bytes[1] = "x";
    static const struct lapse_settlement wrong[] = {
        {.how = LAPSE_HOW_RETRY, .report = bytes, .report_len = 1},
        {.how = LAPSE_HOW_SNOOZE, .report = bytes, .report_len = 1},
        {.how = LAPSE_HOW_FAIL, .report = bytes, .report_len = 1},
        {.how = LAPSE_HOW_RELEASE, .report = bytes, .report_len = 1},
        {.how = LAPSE_HOW_RENEW, .report = bytes, .report_len = 1},
        {.how = LAPSE_HOW_RENEW, .report_len = 1},
        {.how = LAPSE_HOW_DONE, .report_len = 1},
        {.how = LAPSE_HOW_DONE, .report = bytes, .report_len = LAPSE_REPORT_MAX + 1},
        {.how = LAPSE_HOW_REPORT, .report = bytes, .report_len = LAPSE_REPORT_MAX + 1},
        {.how = LAPSE_HOW_REPORT, .report = bytes, .report_len = 1, .ms = 1},
        {.how = LAPSE_HOW_REPORT, .report = bytes, .report_len = 1, .reason = "why"},
    };
    struct flow *f = flow_start(FLOW_FULL);

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_assert_eq(flow_settle_by(f, "q", "a", 7, wrong[i]), LAPSE_EINVAL, "row %zu", i);
    }
    flow_end(f, "q");
}

Test(report, is_not_read_of_an_older_callers_settlement)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow_answer a = {.f = f};
    struct lapse_settlement how = {.how = LAPSE_HOW_DONE};

    memset(&how.report, 0xff, sizeof how - offsetof(struct lapse_settlement, report));
    how.size = offsetof(struct lapse_settlement, report);
    flow_hold(f, &w, "a");
    cr_assert_eq(lapse_settle(f->l, "q", "a", lapse_job_token(w.held[0]), &how, flow_answered, &a),
                 0);
    cr_assert_eq(flow_wait(f, &a), 0);
    flow_settle(&w, FLOW_DONE);
    flow_end(f, "q");
}

/* ---- what goes wrong ---- */
/* A settle waits behind it, and frees what Redis lacks. */
Test(report, that_a_full_redis_refuses_holds_no_settle_up)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow_answer a = {.f = f};

    flow_allow_log(f, "OOM");
    flow_allow_log(f, "maxmemory");
    flow_hold(f, &w, "a");
    redis_do(f->server, "CONFIG SET maxmemory 1");
    cr_assert_eq(lapse_report(w.held[0], "half", 4, flow_answered, &a), 0);
    lapse_done(w.held[0], flow_on_settled, &w);
    w.n_held = 0;
    flow_until(f, w.settled == 1);
    cr_assert_eq(w.err, 0, "%s", lapse_strerror(w.err));
    cr_assert_eq(a.err, LAPSE_EREFUSED);
    redis_do(f->server, "CONFIG SET maxmemory 0");
    flow_end(f, "q");
}

static void little_room(struct lapse_options *o)
{
    o->max_bytes = 1 << 20;
}

Test(report, counts_as_bytes_that_wait)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, little_room);
    struct flow_handler w = {.way = FLOW_KEEP};
    static struct flow_answer a[17];
    char *large = malloc(LAPSE_REPORT_MAX);
    int err = 0;
    unsigned n = 0;

    memset(large, 'x', LAPSE_REPORT_MAX);
    flow_hold(f, &w, "a");
    for (; n < 17 && !err; n += !err) {
        a[n] = (struct flow_answer){.f = f};
        err = lapse_report(w.held[0], large, LAPSE_REPORT_MAX, flow_answered, &a[n]);
    }
    cr_assert_eq(err, LAPSE_EFULL);
    cr_assert_eq(n, 16);
    for (unsigned i = 0; i < n; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), 0);
    }
    free(large);
    flow_settle(&w, FLOW_DONE);
    flow_end(f, "q");
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

Test(report, may_come_while_the_handle_closes_and_not_when_the_job_was_given_back)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow_answer a = {.f = f};
    struct lapse *l = f->l;
    bool closed = false;

    flow_hold(f, &w, "a");
    cr_assert_eq(flow_schedule(f, "q", "b", 0, NULL), 0);
    flow_until(f, w.n_held == 2);
    lapse_close(l, HOUR, on_closed, &closed);
    cr_assert_eq(lapse_report(w.held[0], "half", 4, flow_answered, &a), 0);
    cr_assert_eq(flow_wait(f, &a), 0);
    lapse_done(w.held[0], NULL, NULL);

    lapse_close(l, 0, on_closed, &closed);
    flow_until(f, closed);
    flow_forget(f, l);
    cr_assert_eq(lapse_report(w.held[1], "half", 4, flow_answered, &a), LAPSE_EGONE);
    lapse_done(w.held[1], NULL, NULL);
    f->l = flow_open(f, NULL);
    cr_assert(shows(f, "b", NULL));
    cr_assert_eq(flow_cancel(f, "q", "b", NULL), 0);
    flow_end(f, "q");
}

/* ---- a wire that is cut ---- */
Test(report, is_repeated_when_its_answer_is_lost)
{
    struct wire x;

    wire_start(&x, FLOW_KEEP, NULL);
    cr_assert_eq(flow_schedule(x.f, "q", "a", 0, NULL), 0);
    flow_until(x.f, x.w.n_held == 1);

    for (long bytes = 0; bytes < 30; bytes += 3) {
        char text[24];
        snprintf(text, sizeof text, "%ld", bytes);
        wire_cut(&x, bytes % 2 ? PROXY_UP : PROXY_DOWN, bytes);
        int err = report(x.f, x.w.held[0], text);
        proxy_cut_after(x.proxy, PROXY_UP, -1);
        proxy_cut_after(x.proxy, PROXY_DOWN, -1);
        cr_assert_eq(err, 0, "%s", lapse_strerror(err));
        cr_assert(shows(x.f, "a", text));
    }

    flow_settle(&x.w, FLOW_DONE);
    cr_assert_eq(x.w.errors, 0);
    wire_end(&x);
}
