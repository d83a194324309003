/* SPDX-License-Identifier: MIT */
/* Everything at once, at random moments: afterwards each job was done, and no two held one at the
 * same time. */
#include "listener.h"
#include "wire.h"
#include <signal.h>

enum { N = 700, WORKERS = 3, LEASE_MS = 400, MOST_MS = 2000 };

struct chaos {
    struct flow *f;
    struct runs *runs;
    struct lapse_options opts;
    struct listener *w[WORKERS];
};

static void start(struct chaos *c, int i)
{
    listener_free(c->w[i]);
    c->w[i] = listener_start(c->runs, "q", &c->opts, LISTENER_SETTLES);
}

static void kill_a_worker(struct chaos *c)
{
    int i = (int)(random() % WORKERS);
    listener_signal(c->w[i], SIGKILL);
    start(c, i);
}

static void pause_a_worker(struct chaos *c)
{
    int i = (int)(random() % WORKERS);
    listener_signal(c->w[i], SIGSTOP);
    flow_spin(c->f, LEASE_MS / 2 + random() % LEASE_MS); /* shorter or longer than its leases */
    listener_signal(c->w[i], SIGCONT);
}

static void end_a_worker(struct chaos *c)
{
    int i = (int)(random() % WORKERS);
    listener_end(c->w[i]);
    start(c, i);
}

static void cut_connections(struct chaos *c)
{
    redis_do(c->f->server, "CLIENT KILL TYPE pubsub");
    redis_do(c->f->server, "CLIENT KILL TYPE normal SKIPME yes");
}

static void restart_redis(struct chaos *c)
{
    server_restart(c->f->server);
}

static void flush_scripts(struct chaos *c)
{
    redis_do(c->f->server, "SCRIPT FLUSH");
}

static void delete_triggers(struct chaos *c)
{
    redis_do(c->f->server, "EVAL %s 0",
             "for _, k in ipairs(redis.call('KEYS', 'lapse:{q}:t:*')) do redis.call('DEL', k) end");
}

static int by_id_and_token(const void *a, const void *b)
{
    const struct run *x = a;
    const struct run *y = b;
    int order = strcmp(x->id, y->id);
    return order ? order : (x->token > y->token) - (x->token < y->token);
}

/* A job runs again only when a lease of it is over: its holder was killed, paused, or could not be
 * heard in time. */
static void check(const struct chaos *c)
{
    struct runs *b = c->runs;
    size_t n = 0;
    size_t jobs = 0;

    cr_assert_leq(b->taken, b->max);

    for (long i = 0; i < b->taken; i++) { /* who is killed as it takes a note leaves half of one */
        if (b->run[i].pid) {
            b->run[n++] = b->run[i];
        }
    }

    qsort(b->run, n, sizeof *b->run, by_id_and_token);

    for (size_t i = 0; i < n; i++) {
        const struct run *r = &b->run[i];
        const struct run *before = i && strcmp(r[-1].id, r->id) == 0 ? r - 1 : NULL;
        jobs += !before;
        cr_assert_geq(r->claimed_us, r->due_ms * 1000, "%s ran early", r->id);
        if (before) {
            cr_assert_gt(r->token, before->token);
            cr_assert_gt(r->try_no, before->try_no);
            cr_assert_geq(r->claimed_us / 1000, before->claimed_us / 1000 + LEASE_MS,
                          "%s was claimed by %d %lld us after %d had claimed it", r->id,
                          (int)r->pid, (long long)(r->claimed_us - before->claimed_us),
                          (int)before->pid);
        }
    }

    cr_assert_eq(jobs, N, "%zu of %d jobs ran", jobs, N);
}

static void run(void (*const *strikes)(struct chaos *), int n_strikes, unsigned seed)
{
    /* "everysec" writes later while an fsync is under way, and kill -9 then loses what was
     * acknowledged */
    static const char *const args[] = {"--appendfsync", "always", NULL};
    struct chaos c = {.f = flow_bare(FLOW_FULL, args), .runs = runs_new(20 * N)};
    struct flow *f = c.f;

    flow_fine(f, "onnect");
    flow_fine(f, "is loading its data");
    c.opts = flow_options(f);
    c.opts.log = NULL;
    c.opts.lease_ms = LEASE_MS;
    c.opts.sweep_ms = 100;
    srandom(seed);
    for (int i = 0; i < WORKERS; i++) {
        start(&c, i);
    }

    f->l = flow_open(f, NULL);

    for (int i = 0; i < N; i++) {
        struct lapse_spec s = flow_job_spec("q", NULL, random() % MOST_MS);
        s.tries = LAPSE_FOREVER;
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }

    for (int64_t end_ms = test_now_ms() + MOST_MS; test_now_ms() < end_ms;) {
        strikes[random() % n_strikes](&c);
        flow_spin(f, 20 + random() % 150);
    }

    flow_poll(f, redis_left(f->server, f->space, "q") == 0);
    for (int i = 0; i < WORKERS; i++) {
        listener_end(c.w[i]); /* some of its settles may have heard EGONE, and should have */
        listener_free(c.w[i]);
    }

    cr_assert_eq(flow_count(f, "q", "dead"), 0);
    check(&c);
    runs_free(c.runs);
    flow_end(f, "q");
}

Test(chaos, of_processes)
{
    static void (*const strikes[])(struct chaos *) = {kill_a_worker, pause_a_worker, end_a_worker};
    run(strikes, 3, 1);
}

Test(chaos, of_the_wire)
{
    static void (*const strikes[])(struct chaos *) = {cut_connections, flush_scripts,
                                                      delete_triggers};
    run(strikes, 3, 2);
}

Test(chaos, of_redis)
{
    static void (*const strikes[])(struct chaos *) = {restart_redis, cut_connections,
                                                      restart_redis};
    run(strikes, 3, 3);
}

Test(chaos, of_all)
{
    static void (*const strikes[])(struct chaos *) = {
        kill_a_worker, pause_a_worker, end_a_worker,   cut_connections,
        restart_redis, flush_scripts,  delete_triggers};
    run(strikes, 7, 4);
}
