/* SPDX-License-Identifier: MIT */
/* Batches: lapse_spec.batch, lapse_batch_close(), lapse_batch_get(). */
#include "handler.h"
#include "listener.h"
#include "listening.h"
#include <hiredis/hiredis.h>

enum { HOUR = 3600000 };

static int join(struct flow *f, const char *id, const char *batch, int64_t in_ms)
{
    struct lapse_spec s = flow_job_spec("q", id, in_ms);

    s.batch = batch;
    return flow_spec(f, &s, NULL);
}

static int close_batch(struct flow *f, const char *name, struct flow_job *out)
{
    struct flow_answer a = {.f = f};
    int err = lapse_batch_close(f->l, "q", name, flow_answered, &a);

    if (!err) {
        err = flow_wait(f, &a);
    }
    if (out) {
        *out = a.job;
    }
    return err;
}

struct batch_answer {
    unsigned calls;
    int err;
    struct lapse_batch batch;
};

static void on_batch(struct lapse *l, int err, const struct lapse_batch *batch, void *arg)
{
    struct batch_answer *a = arg;

    (void)l;
    cr_assert_eq(batch == NULL, err != 0);
    a->calls++;
    a->err = err;
    if (batch) {
        a->batch = *batch;
    }
}

static struct lapse_batch get_batch(struct flow *f, const char *name)
{
    struct batch_answer a = {0};

    cr_assert_eq(lapse_batch_get(f->l, "q", name, on_batch, &a), 0);
    flow_until(f, a.calls);
    cr_assert_eq(a.err, 0);
    return a.batch;
}

static void is_so_far(struct flow *f, unsigned left, unsigned dead, unsigned ended, int closed)
{
    struct lapse_batch b = get_batch(f, "n");

    cr_assert_eq(b.left, left);
    cr_assert_eq(b.dead, dead);
    cr_assert_eq(b.ended, ended);
    cr_assert_eq(b.closed, closed);
}

/* Its place among the runs. */
static size_t place_of(const struct flow_handler *w, const char *id)
{
    size_t i = 0;

    while (i < w->n_runs && strcmp(w->runs[i].job.id, id) != 0) {
        i++;
    }
    return i;
}

FLOW_ALL_MODES(batches, its_own_job_runs_once_and_after_all_others)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};

    for (int i = 0; i < 20; i++) {
        char id[8];
        snprintf(id, sizeof id, "j%d", i);
        cr_assert_eq(join(f, id, "n", i % 7 * 10), 0);
    }
    cr_assert_eq(flow_schedule(f, "q", "n", HOUR, NULL), 0);
    cr_assert_eq(close_batch(f, "n", NULL), 0);
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == 21);
    cr_assert_eq(place_of(&w, "n"), 20);
    flow_each_once(&w, 21);
    cr_assert_eq(get_batch(f, "n").closed, 0);
    flow_end(f, "q");
}

Test(batches, an_end_in_whatever_way_is_one_and_a_death_is_none)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct lapse_guard missing = lapse_guard_init();
    struct lapse_spec s = flow_job_spec("q", "skipped", 0);
    struct flow_job own;

    server_allow(f->server, "%%R~*{q}*"); /* the key of the guard */
    missing.op = LAPSE_EXISTS;
    missing.key = "{q}nothing";
    s.guard = &missing;
    s.batch = "n";
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(join(f, "done", "n", 0), 0);
    cr_assert_eq(join(f, "cancelled", "n", HOUR), 0);
    cr_assert_eq(join(f, "replaced", "n", HOUR), 0);
    cr_assert_eq(join(f, "dead", "n", HOUR), 0);
    cr_assert_eq(flow_schedule(f, "q", "n", HOUR, NULL), 0);
    cr_assert_eq(close_batch(f, "n", &own), 0);
    cr_assert_eq(own.state, LAPSE_WAITING);
    is_so_far(f, 5, 0, 0, 1);

    flow_listen(f, "q", &w);
    flow_until(f, w.n_held == 1);
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(flow_cancel(f, "q", "cancelled", NULL), 0);
    cr_assert_eq(flow_kill(f, "q", "dead", "no", NULL), 0);
    s = flow_job_spec("q", "replaced", HOUR);
    s.on_conflict = LAPSE_REPLACE;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    flow_until(f, get_batch(f, "n").ended == 4);
    is_so_far(f, 0, 1, 4, 1);

    cr_assert_eq(flow_cancel(f, "q", "dead", NULL), 0);
    flow_until(f, w.n_held == 1);
    cr_assert_eq(flow_runs_of(&w, "n"), 1);
    is_so_far(f, 0, 0, 0, 0);
    flow_settle(&w, FLOW_DONE);
    flow_end(f, "q");
}

Test(batches, its_own_job_runs_when_it_is_due_whatever_is_left)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};

    cr_assert_eq(join(f, "a", "n", HOUR), 0);
    cr_assert_eq(flow_schedule(f, "q", "n", 50, NULL), 0);
    cr_assert_eq(close_batch(f, "n", NULL), 0);
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == 1);
    cr_assert_eq(flow_runs_of(&w, "n"), 1);
    is_so_far(f, 1, 0, 0, 1);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    is_so_far(f, 0, 0, 0, 0);
    flow_end(f, "q");
}

Test(batches, a_close_says_what_keeps_it_from_waiting)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct lapse_spec s = flow_job_spec("q", "n", 0);

    s.keep_ms = HOUR;
    cr_assert_eq(join(f, "a", "n", HOUR), 0);
    cr_assert_eq(close_batch(f, "n", NULL), LAPSE_ENOENT);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    flow_listen(f, "q", &w);
    flow_until(f, w.n_held == 1);
    cr_assert_eq(close_batch(f, "n", NULL), LAPSE_EBUSY);
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(close_batch(f, "n", NULL), LAPSE_EENDED);
    is_so_far(f, 1, 0, 0, 0);
    flow_end(f, "q");
}

Test(batches, of_no_jobs_ends_when_it_is_closed_and_a_second_close_changes_nothing)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_job own;

    cr_assert_eq(flow_schedule(f, "q", "n", HOUR, NULL), 0);
    cr_assert_eq(close_batch(f, "n", &own), 0);
    cr_assert_leq(own.due_ms, redis_now_ms(f->server));
    cr_assert_eq(close_batch(f, "n", NULL), 0);
    cr_assert_eq(flow_cancel(f, "q", "n", NULL), 0);

    cr_assert_eq(join(f, "a", "n", HOUR), 0);
    cr_assert_eq(flow_schedule(f, "q", "n", HOUR, &own), 0);
    int64_t due_ms = own.due_ms;
    cr_assert_eq(close_batch(f, "n", NULL), 0);
    char *before = flow_dump(f);
    cr_assert_eq(close_batch(f, "n", &own), 0);
    cr_assert_eq(own.due_ms, due_ms);
    char *after = flow_dump(f);
    cr_assert_str_eq(before, after);
    free(before);
    free(after);
    flow_end(f, "q");
}

static void is_shown(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    bool *shown = arg;
    bool is_own = strcmp(lapse_job_id(job), "n") == 0;
    struct lapse_job *dup = lapse_job_dup(job);

    (void)l;
    cr_assert_eq(err, 0);
    cr_assert_eq(lapse_job_awaits(job), is_own);
    cr_assert_eq(lapse_job_awaits(dup), is_own);
    if (is_own) {
        cr_assert_null(lapse_job_batch(job));
    } else {
        cr_assert_str_eq(lapse_job_batch(job), "n");
        cr_assert_str_eq(lapse_job_batch(dup), "n");
        cr_assert_str_eq(lapse_job_tag(dup, 0), "t");
    }
    lapse_job_free(dup);
    *shown = true;
}

Test(batches, a_job_shows_its_batch_and_that_it_waits_for_it)
{
    static const char *const ids[] = {"a", "n"};
    static const char *const tags[] = {"t"};
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = flow_job_spec("q", "a", HOUR);

    s.batch = "n";
    s.tags = tags;
    s.n_tags = 1;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "n", HOUR, NULL), 0);
    cr_assert_eq(close_batch(f, "n", NULL), 0);
    for (size_t i = 0; i < 2; i++) {
        bool shown = false;
        cr_assert_eq(lapse_get(f->l, "q", ids[i], is_shown, &shown), 0);
        flow_until(f, shown);
    }
    flow_end(f, "q");
}

Test(batches, jobs_of_a_batch_may_add_others_to_it)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};

    cr_assert_eq(join(f, "a", "n", 0), 0);
    cr_assert_eq(flow_schedule(f, "q", "n", HOUR, NULL), 0);
    cr_assert_eq(close_batch(f, "n", NULL), 0);
    flow_listen(f, "q", &w);
    flow_until(f, w.n_held == 1);
    cr_assert_eq(join(f, "b", "n", 0), 0);
    flow_settle(&w, FLOW_DONE);
    flow_until(f, w.n_held == 1);
    cr_assert_eq(flow_runs_of(&w, "b"), 1);
    cr_assert_eq(flow_runs_of(&w, "n"), 0);
    flow_settle(&w, FLOW_DONE);
    flow_until(f, w.n_held == 1);
    cr_assert_eq(flow_runs_of(&w, "n"), 1);
    flow_settle(&w, FLOW_DONE);
    flow_end(f, "q");
}

/* More than a call counts. */
Test(batches, of_2500_jobs_is_counted_and_goes_by_a_selection)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_where all = {.state = LAPSE_WAITING, .before_ms = 6};
    struct flow_counts c;
    struct flow_job own;

    redis_do(f->server, "EVAL %s 0",
             "for i = 1, 2500 do redis.call('ZADD', 'lapse:{q}:due', 5, i) "
             "redis.call('HSET', 'lapse:{q}:jobs', i, '\\2\\0\\3B\\1n') "
             "redis.call('ZADD', 'lapse:{q}:index', 0, 'b n ' .. i) end");
    cr_assert_eq(flow_kill(f, "q", "7", "no", NULL), 0);
    is_so_far(f, 2499, 1, 0, 0);

    cr_assert_eq(flow_schedule(f, "q", "n", HOUR, NULL), 0);
    cr_assert_eq(close_batch(f, "n", NULL), 0);
    cr_assert_eq(flow_cancel_all(f, "q", all, &c), 0);
    cr_assert_eq(c.n, 2499);
    is_so_far(f, 0, 1, 2499, 1);
    cr_assert_eq(flow_cancel(f, "q", "7", NULL), 0);
    cr_assert_eq(flow_get(f, "q", "n", &own), 0);
    cr_assert_leq(own.due_ms, redis_now_ms(f->server));
    flow_end(f, "q");
}

/* Those that are listed, as text. */
struct listed {
    bool done;
    char ids[200];
    struct lapse_job *last;
};

static void on_list(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                    void *arg)
{
    struct listed *x = arg;

    (void)l;
    cr_assert_eq(err, 0);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(x->ids);
        cr_assert_str_eq(lapse_job_batch(jobs[i]), "n");
        snprintf(x->ids + len, sizeof x->ids - len, "%s ", lapse_job_id(jobs[i]));
    }
    lapse_job_free(x->last);
    x->last = n ? lapse_job_dup(jobs[n - 1]) : NULL;
    x->done = true;
}

Test(batches, its_jobs_are_listed_page_by_page_whatever_their_state)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct listed x = {.done = false};

    cr_assert_eq(join(f, "dead", "n", HOUR), 0);
    cr_assert_eq(join(f, "gone", "n", HOUR), 0);
    cr_assert_eq(join(f, "waits", "n", HOUR), 0);
    cr_assert_eq(join(f, "other", "m", HOUR), 0);
    cr_assert_eq(flow_schedule(f, "q", "n", HOUR, NULL), 0);
    cr_assert_eq(flow_kill(f, "q", "dead", "why", NULL), 0);
    cr_assert_eq(flow_cancel(f, "q", "gone", NULL), 0);
    do {
        struct lapse_job *after = x.last;
        x.done = false;
        x.last = NULL;
        cr_assert_eq(lapse_list_batch(f->l, "q", "n", after, 1, on_list, &x), 0);
        flow_until(f, x.done);
        lapse_job_free(after);
    } while (x.last);
    cr_assert_str_eq(x.ids, "dead waits ");
    flow_end(f, "q");
}

Test(batches, a_batch_of_other_names_is_refused)
{
    static const char *const bad[] = {"", "a b", "a{", "a}", "\n", "\x80"};
    struct flow *f = flow_start(FLOW_FULL);
    char *before = flow_dump(f);
    char longest[257];

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(join(f, "a", bad[i], 0), LAPSE_EINVAL, "%zu", i);
        cr_assert_eq(lapse_batch_close(f->l, "q", bad[i], NULL, NULL), LAPSE_EINVAL, "%zu", i);
        cr_assert_eq(lapse_batch_get(f->l, "q", bad[i], NULL, NULL), LAPSE_EINVAL, "%zu", i);
        cr_assert_eq(lapse_list_batch(f->l, "q", bad[i], NULL, 1, NULL, NULL), LAPSE_EINVAL);
    }
    cr_assert_eq(lapse_list_batch(f->l, "q", NULL, NULL, 1, NULL, NULL), LAPSE_EINVAL);
    cr_assert_eq(join(f, "a", "a", 0), LAPSE_EINVAL);
    memset(longest, 'n', 256);
    longest[256] = '\0';
    cr_assert_eq(join(f, "a", longest, 0), LAPSE_EINVAL);
    char *after = flow_dump(f);
    cr_assert_str_eq(before, after);
    free(before);
    free(after);

    longest[255] = '\0';
    cr_assert_eq(join(f, "a", longest, 0), 0);
    cr_assert_eq(get_batch(f, longest).left, 1);
    flow_end(f, "q");
}

/* The process of a listener is killed again and again; its jobs run again, and none is lost. */
Test(batches, its_own_job_runs_once_while_listeners_are_killed)
{
    enum { JOBS = 300, KILLS = 3 };
    struct flow *f = flow_start(FLOW_FULL);
    struct runs *runs = runs_new(JOBS * 4);
    struct lapse_options o = flow_options(f);
    struct listener *stays;

    o.lease_ms = 300;
    o.sweep_ms = 100;
    for (int i = 0; i < JOBS; i++) {
        char id[8];
        snprintf(id, sizeof id, "j%d", i);
        cr_assert_eq(join(f, id, "n", i), 0);
    }
    cr_assert_eq(flow_schedule(f, "q", "n", HOUR, NULL), 0);
    cr_assert_eq(close_batch(f, "n", NULL), 0);

    for (int i = 0; i < KILLS; i++) {
        long n = atomic_load(&runs->n);
        struct listener *dies = listener_start(runs, "q", &o, LISTENER_KEEPS);
        flow_poll(f, atomic_load(&runs->n) > n);
        listener_signal(dies, SIGKILL);
        listener_free(dies);
    }
    o.lease_ms = 30000; /* of this one none ends, though the machine stands still */
    stays = listener_start(runs, "q", &o, LISTENER_SETTLES);
    flow_poll(f, redis_left(f->server, f->space, "q") == 0);
    cr_assert_eq(listener_exit(stays), 0);

    const struct run *run;
    long n_own = 0;
    for (long at = 0; (run = runs_next(runs, &at));) {
        n_own += strcmp(run->id, "n") == 0;
    }
    cr_assert_eq(n_own, 1, "%ld", n_own);
    listener_free(stays);
    runs_free(runs);
    flow_end(f, "q");
}
