/* SPDX-License-Identifier: MIT */
/* Queues that share a listener: by weight, and by level. Its slots are taken by the jobs of another
 * queue at first, so that all of them have a backlog from the start. */
#include "handler.h"
#include "listening.h"

enum { QUEUES = 3, STARTS = 16384, SWEEP_MS = 60000 };

static const char *const names[QUEUES] = {"mail", "sms", "log"};
static const struct lapse_listen_options levels[QUEUES] = {
    {sizeof *levels, .level = 0}, {sizeof *levels, .level = 7}, {sizeof *levels, .level = 4000000}};

struct sharing {
    struct flow *f;
    struct flow_handler block; /* has all slots */
    struct sharer {
        struct sharing *in;
        unsigned i;
        double length_s; /* of its jobs; 0: they are done at once */
        bool keeps;      /* its jobs, in held */
        struct lapse_job *held;
    } queues[QUEUES];
    unsigned char starts[STARTS]; /* of which queue, in order */
    size_t n_starts;
    unsigned n_settled;
};

/* ---- the handlers ---- */
struct long_run {
    ev_timer timer;
    struct lapse_job *job;
    struct sharing *in;
};

static void on_done(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct sharing *s = arg;

    cr_assert(l && !job);
    cr_assert_eq(err, 0);
    s->n_settled++;
}

static void on_run_over(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct long_run *r = timer->data;

    (void)loop;
    (void)events;
    lapse_done(r->job, on_done, r->in);
    free(r);
}

static void on_job(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct sharer *q = arg;
    struct sharing *s = q->in;

    cr_assert(l && s->n_starts < STARTS);
    s->starts[s->n_starts++] = (unsigned char)q->i;
    if (q->keeps) {
        cr_assert(!q->held);
        q->held = job;
    } else if (q->length_s == 0) {
        lapse_done(job, on_done, s);
    } else {
        struct long_run *r = calloc(1, sizeof *r);
        *r = (struct long_run){.job = job, .in = s};
        ev_timer_init(&r->timer, on_run_over, q->length_s, 0);
        r->timer.data = r;
        ev_timer_start(s->f->loop, &r->timer);
    }
}

static void settle(struct sharer *q)
{
    unsigned want = q->in->n_settled + 1;

    lapse_done(q->held, on_done, q->in);
    q->held = NULL;
    flow_until(q->in->f, q->in->n_settled == want);
}

/* ---- what is shared ---- */
/* All slots are taken. */
static void start(struct sharing *s, unsigned max_running)
{
    struct lapse_options opts;

    *s = (struct sharing){.block = {.way = FLOW_KEEP}};
    s->f = flow_bare(FLOW_FULL, NULL);
    for (unsigned i = 0; i < QUEUES; i++) {
        s->queues[i] = (struct sharer){.in = s, .i = i};
    }

    opts = flow_options(s->f);
    opts.max_running = max_running;
    opts.sweep_ms = SWEEP_MS;
    opts.flags |= LAPSE_MAY_EVICT; /* a queue whose master has not said has no backlog yet */
    s->f->l = flow_open(s->f, &opts);

    flow_listen(s->f, "block", &s->block);
    for (unsigned i = 0; i < max_running; i++) {
        cr_assert_eq(flow_schedule(s->f, "block", NULL, 0, NULL), 0);
    }
    flow_until(s->f, s->block.n_held == max_running);
}

static void release(struct sharing *s)
{
    flow_settle(&s->block, FLOW_DONE);
}

static void end(struct sharing *s)
{
    cr_assert_eq(s->block.errors, 0);
    flow_end(s->f, "mail", "sms", "log", "block");
}

static void schedule(struct sharing *s, unsigned queue, unsigned n)
{
    enum { TOGETHER = 100 };

    for (unsigned i = 1; i <= n; i++) {
        struct lapse_spec spec = flow_job_spec(names[queue], NULL, 0);
        if (i % TOGETHER == 0 || i == n) {
            cr_assert_eq(flow_spec(s->f, &spec, NULL), 0);
        } else {
            cr_assert_eq(lapse_schedule(s->f->l, &spec, NULL, NULL), 0);
        }
    }
}

static void listen_to(struct sharing *s, unsigned i, const struct lapse_listen_options *o)
{
    cr_assert_eq(lapse_listen(s->f->l, names[i], o, on_job, &s->queues[i]), 0);
}

/* How many of the starts from one to another are of a queue. */
static unsigned count(const struct sharing *s, unsigned queue, size_t from, size_t to)
{
    unsigned n = 0;

    for (size_t i = from; i < to; i++) {
        n += s->starts[i] == queue;
    }
    return n;
}

/* ---- weights ---- */
/* n jobs by weight, and then those that are left. Each queue has a backlog for all of them: so none
 * is further from its part than by one filling of the slots, another that is on its way, and a
 * job. */
static void jobs_are_shared(unsigned max_running, unsigned n, const double lengths_s[QUEUES])
{
    static const unsigned weights[QUEUES] = {6, 3, 1};
    static struct sharing s;
    unsigned total = 0;

    start(&s, max_running);
    for (unsigned i = 0; i < QUEUES; i++) {
        struct lapse_listen_options o = {.size = sizeof o, .weight = weights[i]};
        unsigned jobs = weights[i] * n / 10 + 2 * max_running + weights[i];

        s.queues[i].length_s = lengths_s[i];
        schedule(&s, i, jobs);
        total += jobs;
        listen_to(&s, i, &o);
    }

    release(&s);
    flow_until(s.f, s.n_settled == total);
    for (unsigned i = 0; i < QUEUES; i++) {
        unsigned part = weights[i] * n / 10;
        unsigned most = weights[i] * (2 * max_running / 10 + 1);
        unsigned got = count(&s, i, 0, n);
        cr_assert(got + most >= part && got <= part + most, "%s: %u of %u, not %u", names[i], got,
                  n, part);
    }
    end(&s);
}

Test(sharing, by_weights_of_6_3_and_1_is_60_30_and_10_of_100_with_256_slots)
{
    jobs_are_shared(256, 10000, (double[]){0, 0, 0});
}

Test(sharing, by_weights_of_6_3_and_1_is_60_30_and_10_of_100_with_10_slots)
{
    jobs_are_shared(10, 3000, (double[]){0, 0, 0});
}

Test(sharing, by_weights_is_by_jobs_and_not_by_the_time_they_take_with_256_slots)
{
    jobs_are_shared(256, 5000, (double[]){0.004, 0.001, 0.02});
}

Test(sharing, by_weights_is_by_jobs_and_not_by_the_time_they_take_with_10_slots)
{
    jobs_are_shared(10, 1000, (double[]){0.002, 0, 0.009});
}

/* One after the other: so each ten of them are as the weights say. */
Test(sharing, by_weights_of_6_3_and_1_is_exact_in_each_ten_with_one_slot)
{
    static const unsigned weights[QUEUES] = {6, 3, 1};
    static struct sharing s;
    enum { TENS = 40 };

    start(&s, 1);
    for (unsigned i = 0; i < QUEUES; i++) {
        struct lapse_listen_options o = {.size = sizeof o, .weight = weights[i]};
        s.queues[i].length_s = i * 0.001;
        schedule(&s, i, weights[i] * TENS);
        listen_to(&s, i, &o);
    }

    release(&s);
    flow_until(s.f, s.n_settled == 10 * TENS);
    for (size_t ten = 0; ten < TENS; ten++) {
        for (unsigned i = 0; i < QUEUES; i++) {
            cr_assert_eq(count(&s, i, 10 * ten, 10 * ten + 10), weights[i], "ten %zu", ten);
        }
    }
    end(&s);
}

/* Of equal weights, when one has run a hundred alone. */
Test(sharing, gives_a_queue_that_was_idle_no_credit)
{
    enum { ALONE = 100, BOTH = 60 };
    struct lapse_listen_options five = {.size = sizeof five, .weight = 5};
    static struct sharing s;

    start(&s, 1);
    s.queues[0].keeps = s.queues[1].keeps = true;
    listen_to(&s, 0, &five);
    listen_to(&s, 1, &five);
    schedule(&s, 0, ALONE + BOTH);
    release(&s);

    for (unsigned i = 0; i < ALONE; i++) {
        flow_until(s.f, s.queues[0].held);
        if (i + 1 == ALONE) {
            schedule(&s, 1, BOTH);
            flow_heard(s.f);
        }
        settle(&s.queues[0]);
    }

    for (unsigned i = 0; i < 2 * BOTH; i++) {
        flow_until(s.f, s.queues[0].held || s.queues[1].held);
        settle(&s.queues[s.queues[0].held ? 0 : 1]);
    }

    cr_assert_eq(count(&s, 1, 0, ALONE), 0);
    for (size_t i = ALONE; i < s.n_starts; i += 2) {
        cr_assert_eq(count(&s, 1, i, i + 2), 1, "start %zu", i);
    }
    end(&s);
}

/* ---- levels ---- */
static void no_level_is_overtaken(unsigned max_running, unsigned n)
{
    static struct sharing s;

    start(&s, max_running);
    for (unsigned i = QUEUES; i-- > 0;) { /* the last is heard of first */
        s.queues[i].length_s = i == 0 ? 0.001 : 0;
        schedule(&s, i, n);
        listen_to(&s, i, &levels[i]);
    }

    release(&s);
    flow_until(s.f, s.n_settled == n * QUEUES);
    for (unsigned i = 0; i < QUEUES; i++) {
        size_t from = (size_t)i * n;
        cr_assert_eq(count(&s, i, from, from + n), n, "%s was overtaken", names[i]);
    }
    end(&s);
}

Test(sharing, by_levels_overtakes_none_that_has_a_backlog_with_256_slots)
{
    no_level_is_overtaken(256, 2000);
}

Test(sharing, by_levels_overtakes_none_that_has_a_backlog_with_10_slots)
{
    no_level_is_overtaken(10, 500);
}

Test(sharing, by_levels_overtakes_none_that_has_a_backlog_with_one_slot)
{
    no_level_is_overtaken(1, 100);
}

Test(sharing, by_levels_gives_the_next_slot_to_a_job_that_comes_later_and_is_of_the_first)
{
    enum { ROUNDS = 20 };
    static struct sharing s;

    start(&s, 1);
    s.queues[0].keeps = s.queues[1].keeps = true;
    schedule(&s, 1, 2 * ROUNDS);
    listen_to(&s, 0, &levels[0]);
    listen_to(&s, 1, &levels[1]);
    release(&s);

    for (unsigned i = 0; i < ROUNDS; i++) {
        flow_until(s.f, s.queues[1].held);
        schedule(&s, 0, 1);
        flow_heard(s.f);
        settle(&s.queues[1]);
        flow_until(s.f, s.queues[0].held || s.queues[1].held);
        cr_assert(s.queues[0].held, "round %u", i);
        settle(&s.queues[0]);
    }

    flow_until(s.f, s.queues[1].held);
    s.queues[1].keeps = false;
    settle(&s.queues[1]);
    flow_until(s.f, s.n_settled == 3 * ROUNDS);
    end(&s);
}

/* ---- nobody is blocked ---- */
enum { EACH = 60 };

/* The first goes before the last by weight, or by level. */
static void listen_to_two(struct sharing *s, bool by_level, unsigned max_of_first)
{
    struct lapse_listen_options first = {.size = sizeof first, .max_running = max_of_first};
    struct lapse_listen_options last = {.size = sizeof last};

    if (by_level) {
        last.level = 1;
    } else {
        first.weight = LAPSE_WEIGHT_MAX;
    }

    schedule(s, 0, EACH);
    schedule(s, 2, EACH);
    listen_to(s, 0, &first);
    listen_to(s, 2, &last);
}

static void passes_a_paused_queue(bool by_level)
{
    static struct sharing s;
    struct flow_answer paused;

    start(&s, 4);
    paused = (struct flow_answer){.f = s.f};
    listen_to_two(&s, by_level, 0);
    cr_assert_eq(lapse_pause(s.f->l, "mail", NULL, 0, flow_text_answered, &paused), 0);
    cr_assert_eq(flow_wait(s.f, &paused), 0);

    release(&s);
    flow_until(s.f, s.n_settled == EACH);
    cr_assert_eq(count(&s, 0, 0, s.n_starts), 0);

    cr_assert_eq(flow_configure(s.f, "mail", "paused=", NULL), 0);
    flow_until(s.f, s.n_settled == 2 * EACH);
    end(&s);
}

Test(sharing, by_weights_passes_a_paused_queue)
{
    passes_a_paused_queue(false);
}

Test(sharing, by_levels_passes_a_paused_queue)
{
    passes_a_paused_queue(true);
}

static void passes_a_full_queue(bool by_level)
{
    static struct sharing s;

    start(&s, 4);
    s.queues[0].keeps = true;
    listen_to_two(&s, by_level, 1);
    release(&s);
    flow_until(s.f, s.queues[0].held && s.n_settled == EACH);
    cr_assert_eq(count(&s, 0, 0, s.n_starts), 1);

    s.queues[0].keeps = false;
    settle(&s.queues[0]);
    flow_until(s.f, s.n_settled == 2 * EACH);
    end(&s);
}

Test(sharing, by_weights_passes_a_queue_that_is_full)
{
    passes_a_full_queue(false);
}

Test(sharing, by_levels_passes_a_queue_that_is_full)
{
    passes_a_full_queue(true);
}

/* While it waits for a slot, and while a claim of it is on its way. */
static void passes_a_queue_without_handler(bool by_level, unsigned n_turns)
{
    static struct sharing s;

    start(&s, 4);
    listen_to_two(&s, by_level, 0);
    for (size_t i = s.block.n_held; n_turns > 0 && i-- > 0;) {
        lapse_done(s.block.held[i], flow_on_settled, &s.block);
        s.block.n_held = i;
    }
    for (unsigned i = 0; i < n_turns; i++) {
        ev_run(s.f->loop, EVRUN_NOWAIT);
    }
    cr_assert_eq(lapse_unlisten(s.f->l, "mail"), 0);
    release(&s);

    flow_until(s.f, count(&s, 2, 0, s.n_starts) == EACH && s.n_settled == s.n_starts);
    flow_until(s.f, flow_count(s.f, "mail", "run") == 0);
    cr_assert_eq(flow_count(s.f, "mail", "due") + count(&s, 0, 0, s.n_starts), EACH);
    end(&s);
}

Test(sharing, by_weights_passes_a_queue_whose_handler_is_taken_away)
{
    for (unsigned turns = 0; turns < 12; turns += 2) {
        passes_a_queue_without_handler(false, turns);
    }
}

Test(sharing, by_levels_passes_a_queue_whose_handler_is_taken_away)
{
    for (unsigned turns = 0; turns < 12; turns += 2) {
        passes_a_queue_without_handler(true, turns);
    }
}

/* ---- nothing is weighed ---- */
/* Each job alone, of one queue and then of another: its schedule, its claim and its end are a
 * script each. Where one took long, others may have looked whether it was forgotten. */
static void jobs_alone_cost_three_scripts(const struct lapse_listen_options o[QUEUES])
{
    enum { ALONE = 30, SLOW_MS = 25, MORE = 4 };
    static struct sharing s;
    unsigned n_slow = 0;

    start(&s, 2);
    release(&s);
    for (unsigned i = 0; i < QUEUES; i++) {
        listen_to(&s, i, &o[i]);
        flow_until_listeners(s.f, names[i], 1);
    }
    flow_heard(s.f);
    flow_calm(s.f);

    long long beats = flow_heartbeats(s.f);
    long long scripts = flow_scripts(s.f);
    uint64_t by_notice = flow_stats(s.f->l).via_notice;
    for (unsigned i = 0; i < ALONE; i++) {
        int64_t from_ms = test_now_ms();
        schedule(&s, i % QUEUES, 1);
        flow_until(s.f, s.n_settled == i + 1);
        n_slow += test_now_ms() - from_ms >= SLOW_MS;
    }
    by_notice = flow_stats(s.f->l).via_notice - by_notice;
    scripts = flow_scripts(s.f) - scripts;
    scripts -= flow_heartbeats(s.f) - beats;

    cr_assert_geq(by_notice + n_slow, ALONE);
    cr_assert_geq(scripts, 3 * ALONE);
    cr_assert_leq(scripts, 3 * ALONE + MORE * n_slow, "%lld scripts, %u were slow", scripts,
                  n_slow);
    end(&s);
}

Test(sharing, costs_nothing_where_a_slot_is_free)
{
    static const struct lapse_listen_options none[QUEUES] = {
        {.size = sizeof *none}, {.size = sizeof *none}, {.size = sizeof *none}};
    struct lapse_listen_options both[QUEUES] = {levels[2], levels[1], levels[0]};

    both[1].weight = 10;
    both[2].weight = LAPSE_WEIGHT_MAX;
    jobs_alone_cost_three_scripts(none);
    jobs_alone_cost_three_scripts(both);
}

/* ---- what may be asked for ---- */
Test(sharing, takes_weights_up_to_1000_and_any_level)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.f = f, .way = FLOW_DONE};
    struct lapse_listen_options o = {.size = sizeof o, .weight = LAPSE_WEIGHT_MAX + 1};

    cr_assert_eq(lapse_listen(f->l, "mail", &o, flow_on_job, &w), LAPSE_EINVAL);
    o.weight = UINT32_MAX;
    cr_assert_eq(lapse_listen(f->l, "mail", &o, flow_on_job, &w), LAPSE_EINVAL);
    o.weight = LAPSE_WEIGHT_MAX;
    cr_assert_eq(lapse_listen(f->l, "mail", &o, flow_on_job, &w), 0);
    o.weight = 0;
    o.level = UINT32_MAX;
    cr_assert_eq(lapse_listen(f->l, "sms", &o, flow_on_job, &w), 0);
    cr_assert_eq(flow_schedule(f, "mail", NULL, 0, NULL), 0);
    cr_assert_eq(flow_schedule(f, "sms", NULL, 0, NULL), 0);
    flow_until(f, w.settled == 2);
    flow_end(f, "mail", "sms");
}

Test(sharing, is_not_asked_of_callers_that_do_not_know_of_it)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.f = f, .way = FLOW_DONE};
    struct lapse_listen_options o = {.max_running = 1, .weight = UINT32_MAX, .level = 3};

    o.size = offsetof(struct lapse_listen_options, weight); /* as in the first lapse.h */
    cr_assert_eq(lapse_listen(f->l, "mail", &o, flow_on_job, &w), 0);
    o.size--;
    cr_assert_eq(lapse_listen(f->l, "sms", &o, flow_on_job, &w), LAPSE_EINVAL);
    cr_assert_eq(flow_schedule(f, "mail", NULL, 0, NULL), 0);
    flow_until(f, w.settled == 1);
    flow_end(f, "mail");
}
