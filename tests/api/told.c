/* SPDX-License-Identifier: MIT */
/* lapse_quiet(), lapse_stop(), and what a listener that was told does. */
#include "handler.h"
#include "listening.h"

enum { HOUR = 3600000 };

static void quiet(struct lapse_options *o)
{
    o->sweep_ms = 60000;
}

/* ---- asking ---- */
struct told_answer {
    unsigned calls;
    int err;
    size_t n;
    char name[100]; /* of the first */
    enum lapse_told told;
};

static void on_answer(struct lapse *l, int err, const struct lapse_listener *const *listeners,
                      size_t n, void *arg)
{
    struct told_answer *a = arg;

    cr_assert(l && (n > 0 || !listeners || !err));
    a->calls++;
    a->err = err;
    a->n = n;
    if (n > 0) {
        snprintf(a->name, sizeof a->name, "%s", listeners[0]->name);
        a->told = listeners[0]->told;
    }
}

static struct told_answer tell(struct flow *f, const char *name, enum lapse_told what)
{
    struct told_answer a = {.calls = 0};
    int err = what == LAPSE_TOLD_STOP
                  ? lapse_stop(f->l, name, on_answer, &a)
                  : lapse_quiet(f->l, name, what == LAPSE_TOLD_QUIET, on_answer, &a);

    cr_assert_eq(err, 0);
    flow_until(f, a.calls == 1);
    cr_assert(a.err || a.told == what);
    return a;
}

static struct told_answer listeners_of(struct flow *f, const char *queue)
{
    struct told_answer a = {.calls = 0};

    cr_assert_eq(lapse_listeners(f->l, queue, on_answer, &a), 0);
    flow_until(f, a.calls == 1);
    cr_assert_eq(a.err, 0);
    return a;
}

/* ---- a listener ---- */
struct told_listener {
    struct lapse *l;
    struct flow_handler w;
    unsigned n_told;
    enum lapse_told told; /* the last */
    bool closed;
};

static void on_told(struct lapse *l, enum lapse_told what, void *arg)
{
    struct told_listener *t = arg;

    cr_assert_eq(l, t->l);
    t->n_told++;
    t->told = what;
}

/* f->l, which asks, stays as it is. */
static void listen_with(struct flow *f, struct told_listener *t, struct lapse_options o,
                        enum flow_way way)
{
    struct lapse *asks = f->l;

    quiet(&o);
    *t = (struct told_listener){.w = {.way = way}};
    t->l = f->l = flow_open(f, &o);
    lapse_on_told(t->l, on_told, t);
    flow_listen(f, "q", &t->w);
    f->l = asks;
}

static void listen_as(struct flow *f, struct told_listener *t, const char *name, enum flow_way way)
{
    struct lapse_options o = flow_options(f);

    o.name = name;
    listen_with(f, t, o, way);
}

/* It has heard all that was published, and done what that led to. */
static void heard_by(struct flow *f, struct lapse *l)
{
    struct lapse *asks = f->l;

    f->l = l;
    flow_heard(f);
    flow_calm(f);
    f->l = asks;
}

static void tell_and_hear(struct flow *f, struct told_listener *t, const char *name,
                          enum lapse_told what)
{
    unsigned n = t->n_told;

    cr_assert_eq(tell(f, name, what).err, 0);
    flow_until(f, t->n_told > n);
    cr_assert(t->n_told == n + 1 && t->told == what);
}

Test(quiet, takes_no_more_jobs_ends_those_that_it_has_and_goes_on_when_told)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct told_listener a;

    listen_as(f, &a, "a", FLOW_KEEP);
    flow_until_listeners(f, "q", 1);
    cr_assert_eq(flow_schedule(f, "q", "had", 0, NULL), 0);
    flow_until(f, a.w.n_held == 1);
    cr_assert_eq(listeners_of(f, "q").told, LAPSE_TOLD_GO_ON);

    tell_and_hear(f, &a, "a", LAPSE_TOLD_QUIET);
    struct told_answer shown = listeners_of(f, "q");
    cr_assert(shown.n == 1 && shown.told == LAPSE_TOLD_QUIET);
    cr_assert_eq(flow_schedule(f, "q", "now", 0, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "soon", 20, NULL), 0);
    flow_settle(&a.w, FLOW_DONE);
    cr_assert_eq(a.w.errors, 0);

    long long before = flow_scripts(f);
    flow_spin(f, 600);
    cr_assert_eq(a.w.n_runs, 1);
    cr_assert_eq(flow_count(f, "q", "due"), 2);
    cr_assert_leq(flow_scripts(f) - before, 3, "%lld scripts", flow_scripts(f) - before);

    a.w.way = FLOW_DONE;
    tell_and_hear(f, &a, "a", LAPSE_TOLD_GO_ON);
    flow_until(f, a.w.settled == 3);
    cr_assert_eq(listeners_of(f, "q").told, LAPSE_TOLD_GO_ON);
    flow_end(f, "q");
}

/* The other one has no alarm, so it takes no job that it does not own before it sweeps. */
Test(quiet, leaves_its_jobs_to_the_other_listeners)
{
    enum { N = 60 };
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_options o = flow_options(f);
    struct told_listener a;
    struct told_listener b;

    listen_as(f, &a, "a", FLOW_DONE);
    o.name = "b";
    o.flags = LAPSE_NO_ALARM;
    listen_with(f, &b, o, FLOW_DONE);
    flow_until_listeners(f, "q", 2);
    long long before = flow_heartbeats(f);
    tell_and_hear(f, &a, "a", LAPSE_TOLD_QUIET);
    flow_poll(f, flow_heartbeats(f) >= before + 2); /* b has asked who takes jobs */
    heard_by(f, b.l);

    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }
    flow_until(f, b.w.settled == N);
    cr_assert_eq(a.w.n_runs, 0);

    tell_and_hear(f, &a, "a", LAPSE_TOLD_GO_ON);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }
    flow_until(f, a.w.settled + b.w.settled == 2 * N);
    cr_assert_gt(a.w.settled, 0);
    flow_end(f, "q");
}

Test(quiet, reaches_each_listener_of_a_name_or_one_with_its_digits)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct told_listener a[2];
    struct told_listener other;

    listen_as(f, &a[0], "worker", FLOW_DONE);
    listen_as(f, &a[1], "worker", FLOW_DONE);
    listen_as(f, &other, "worker-2", FLOW_DONE);
    flow_until_listeners(f, "q", 3);

    struct told_answer both = tell(f, "worker", LAPSE_TOLD_QUIET);
    cr_assert_eq(both.n, 2);
    flow_until(f, a[0].n_told == 1 && a[1].n_told == 1);
    cr_assert_eq(tell(f, both.name, LAPSE_TOLD_GO_ON).n, 1);
    flow_until(f, a[0].n_told + a[1].n_told == 3);
    cr_assert_neq(a[0].told, a[1].told);
    cr_assert_eq(other.n_told, 0);
    flow_end(f, "q");
}

Test(quiet, of_nobody_is_enoent_and_of_no_name_einval)
{
    static const char *const wrong[] = {
        NULL,
        "",
        "a b",
        "a\n",
        "{a}",
        "a b/0123456789abcdef",
        "0123456789012345678901234567890123456789012345678901234567890123456789"};
    struct flow *f = flow_start(FLOW_FULL);
    struct told_listener a;

    listen_as(f, &a, "a", FLOW_DONE);
    flow_until_listeners(f, "q", 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_assert_eq(lapse_quiet(f->l, wrong[i], 1, on_answer, NULL), LAPSE_EINVAL, "%zu", i);
        cr_assert_eq(lapse_stop(f->l, wrong[i], on_answer, NULL), LAPSE_EINVAL, "%zu", i);
    }
    cr_assert_eq(lapse_stop(NULL, "a", on_answer, NULL), LAPSE_EINVAL);
    cr_assert_eq(tell(f, "b", LAPSE_TOLD_QUIET).err, LAPSE_ENOENT);
    cr_assert_eq(tell(f, "a/0123456789abcdef", LAPSE_TOLD_STOP).err, LAPSE_ENOENT);
    cr_assert_eq(lapse_quiet(f->l, "b", 1, NULL, NULL), 0);

    flow_close(f, a.l, 5000);
    cr_assert_eq(tell(f, "a", LAPSE_TOLD_QUIET).err, LAPSE_ENOENT);
    cr_assert_eq(a.n_told, 0);
    flow_end(f, "q");
}

/* ---- the message, and the entry ---- */
static void mark(struct flow *f, const char *less)
{
    redis_do(f->server, "EVAL %s 1 lapse:{}:alive %s",
             "local a = redis.call('ZRANGE', KEYS[1], 1, 1, 'WITHSCORES') "
             "redis.call('ZREM', KEYS[1], '') "
             "redis.call('ZADD', KEYS[1], string.format('%.2f', math.ceil(a[2]) - ARGV[1]), a[1])",
             less);
}

/* It is heard with the next heartbeat where the message is lost. */
Test(quiet, is_decided_by_the_entry_and_not_by_the_message)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct told_listener a;
    char name[120];

    listen_as(f, &a, "a", FLOW_DONE);
    flow_until_listeners(f, "q", 1);
    snprintf(name, sizeof name, "told %s", listeners_of(f, "q").name);
    for (int i = 0; i < 3; i++) {
        redis_do(f->server, "PUBLISH lapse:{}:wake:0 %s", name);
        redis_do(f->server, "PUBLISH lapse:{}:wake:0 %s", "told b");
        redis_do(f->server, "PUBLISH lapse:{}:wake:0 %s", "told ");
        flow_spin(f, 250);
    }
    cr_assert_eq(a.n_told, 0);

    mark(f, "0.25");
    flow_until(f, a.n_told == 1 && a.told == LAPSE_TOLD_QUIET);
    mark(f, "0");
    flow_until(f, a.n_told == 2 && a.told == LAPSE_TOLD_GO_ON);
    flow_end(f, "q");
}

/* As by a restart without a disk. */
Test(quiet, outlives_what_redis_knew_of_it)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct told_listener a;

    listen_as(f, &a, "a", FLOW_DONE);
    flow_until_listeners(f, "q", 1);
    tell_and_hear(f, &a, "a", LAPSE_TOLD_QUIET);
    redis_do(f->server, "DEL lapse:{}:alive");
    redis_do(f->server, "PUBLISH lapse:{}:wake:0 told");
    flow_until_alive(f, 1);
    flow_poll(f, listeners_of(f, "q").told == LAPSE_TOLD_QUIET);
    cr_assert_eq(flow_schedule(f, "q", "waits", 0, NULL), 0);
    heard_by(f, a.l);
    cr_assert_eq(a.n_told, 1);
    cr_assert_eq(flow_count(f, "q", "due"), 1);
    flow_end(f, "q");
}

/* It has left its queues, as it has no free slot. */
Test(quiet, is_heard_by_a_listener_with_its_hands_full)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct told_listener a = {.w = {.f = f, .way = FLOW_KEEP}};
    struct lapse_options o = flow_options(f);

    quiet(&o);
    o.name = "a";
    o.max_running = 1;
    a.l = flow_open(f, &o);
    lapse_on_told(a.l, on_told, &a);
    cr_assert_eq(lapse_listen(a.l, "q", NULL, flow_on_job, &a.w), 0);
    flow_until_listeners(f, "q", 1); /* it hears of the job for which there is no room */
    cr_assert_eq(flow_schedule(f, "q", "first", 0, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "second", 0, NULL), 0);
    flow_until(f, a.w.n_held == 1);
    flow_until_alive(f, 1);
    flow_poll(f, redis_int(f->server, "ZCARD lapse:{q}:listeners") == 0);

    tell_and_hear(f, &a, "a", LAPSE_TOLD_QUIET);
    struct told_answer shown = listeners_of(f, "q");
    cr_assert(shown.n == 1 && shown.told == LAPSE_TOLD_QUIET, "as it holds a job");
    flow_settle(&a.w, FLOW_DONE);
    flow_calm(f);
    cr_assert_eq(a.w.n_runs, 1);
    tell_and_hear(f, &a, "a", LAPSE_TOLD_GO_ON);
    flow_until(f, a.w.n_held == 1);
    flow_settle(&a.w, FLOW_DONE);
    flow_end(f, "q");
}

Test(quiet, gives_a_claim_no_job_until_it_goes_on)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct told_listener a;
    struct flow_claim none = {.f = f};
    struct flow_claim id = {.f = f};
    struct flow_claim waits = {.f = f};

    listen_as(f, &a, "a", FLOW_DONE);
    flow_until_listeners(f, "q", 1);
    tell_and_hear(f, &a, "a", LAPSE_TOLD_QUIET);
    cr_assert_eq(flow_schedule(f, "p", "x", 0, NULL), 0);
    cr_assert_eq(lapse_claim(a.l, "p", 1, 0, flow_claimed, &none), 0);
    cr_assert_eq(lapse_claim_id(a.l, "p", "x", flow_claimed, &id), 0);
    flow_until(f, none.calls == 1 && id.calls == 1);
    cr_assert(none.err == 0 && none.n == 0 && id.err == 0 && id.n == 0);

    cr_assert_eq(lapse_claim(a.l, "p", 1, HOUR, flow_claimed, &waits), 0);
    heard_by(f, a.l);
    cr_assert_eq(waits.calls, 0);
    tell_and_hear(f, &a, "a", LAPSE_TOLD_GO_ON);
    flow_until(f, waits.n == 1);
    flow_claim_done(f, &waits);
    flow_end(f, "p", "q");
}

/* ---- stop ---- */
static void on_closed(void *arg)
{
    ((struct told_listener *)arg)->closed = true;
}

static void on_stop(struct lapse *l, enum lapse_told what, void *arg)
{
    struct told_listener *t = arg;

    on_told(l, what, arg);
    cr_assert_eq(what, LAPSE_TOLD_STOP);
    t->l = NULL;
    lapse_close(l, 10000, on_closed, t);
}

Test(stop, reaches_the_program_which_closes_its_handle)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct told_listener a;

    listen_as(f, &a, "a", FLOW_KEEP);
    lapse_on_told(a.l, on_stop, &a);
    flow_until_listeners(f, "q", 1);
    cr_assert_eq(flow_schedule(f, "q", "had", 0, NULL), 0);
    flow_until(f, a.w.n_held == 1);

    struct lapse *l = a.l;
    cr_assert_eq(tell(f, "a", LAPSE_TOLD_STOP).n, 1);
    flow_until(f, a.n_told == 1);
    cr_assert_eq(flow_schedule(f, "q", "left", 0, NULL), 0);
    flow_settle(&a.w, FLOW_DONE);
    flow_until(f, a.closed);
    cr_assert_eq(redis_int(f->server, "EXISTS lapse:{}:alive"), 0);
    flow_forget(f, l);
    cr_assert_eq(a.w.n_runs, 1);
    cr_assert_eq(flow_count(f, "q", "due"), 1);
    flow_end(f, "q");
}

Test(stop, of_a_program_that_does_not_listen_to_it_makes_it_quiet)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct told_listener a;

    listen_as(f, &a, "a", FLOW_DONE);
    lapse_on_told(a.l, NULL, NULL);
    flow_until_listeners(f, "q", 1);
    cr_assert_eq(tell(f, "a", LAPSE_TOLD_STOP).n, 1);
    flow_until(f, flow_logged(f, "told to stop") == 1);
    cr_assert_eq(flow_schedule(f, "q", "waits", 0, NULL), 0);
    heard_by(f, a.l);
    cr_assert_eq(flow_count(f, "q", "due"), 1);
    cr_assert_eq(listeners_of(f, "q").told, LAPSE_TOLD_STOP);
    lapse_on_told(a.l, on_told, &a);
    tell_and_hear(f, &a, "a", LAPSE_TOLD_GO_ON);
    flow_until(f, a.w.settled == 1);
    flow_end(f, "q");
}

/* What has not been told yet is not told any more. */
Test(stop, that_comes_as_the_handle_closes_is_not_told)
{
    struct flow *f = flow_start(FLOW_FULL);

    for (int turns = 0; turns < 12; turns++) {
        struct told_listener a;
        struct told_answer asked = {.calls = 0};

        listen_as(f, &a, "a", FLOW_DONE);
        flow_until_listeners(f, "q", 1);
        cr_assert_eq(lapse_stop(f->l, "a", on_answer, &asked), 0);
        for (int i = 0; i < turns; i++) {
            ev_run(f->loop, EVRUN_NOWAIT);
        }
        flow_close(f, a.l, 5000);
        flow_until(f, asked.calls == 1);
        cr_assert_leq(a.n_told, 1);
    }
    flow_end(f, "q");
}
