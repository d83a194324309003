/* SPDX-License-Identifier: MIT */
#include "wire.h"

void flow_spin(struct flow *f, int64_t for_ms)
{
    for (int64_t end_ms = test_now_ms() + for_ms; flow_turn(f, end_ms);) {}
}

struct lapse_stats flow_stats(struct lapse *l)
{
    struct lapse_stats s;
    lapse_stats(l, &s, sizeof s);
    return s;
}

bool flow_via_ok(enum flow_mode mode, enum lapse_via via)
{
    static const unsigned can[] = {
        [FLOW_FULL] = 1u << LAPSE_VIA_EVENT | 1u << LAPSE_VIA_NOTICE | 1u << LAPSE_VIA_ALARM |
                      1u << LAPSE_VIA_SWEEP,
        [FLOW_STILL] = 1u << LAPSE_VIA_EVENT | 1u << LAPSE_VIA_NOTICE | 1u << LAPSE_VIA_ALARM |
                       1u << LAPSE_VIA_SWEEP,
        [FLOW_NO_ALARM] = 1u << LAPSE_VIA_EVENT | 1u << LAPSE_VIA_NOTICE | 1u << LAPSE_VIA_SWEEP,
        [FLOW_NO_EVENTS] = 1u << LAPSE_VIA_ALARM | 1u << LAPSE_VIA_SWEEP,
        [FLOW_MUTE] = 1u << LAPSE_VIA_NOTICE | 1u << LAPSE_VIA_ALARM | 1u << LAPSE_VIA_SWEEP,
        [FLOW_SWEEP] = 1u << LAPSE_VIA_NOTICE | 1u << LAPSE_VIA_SWEEP,
    };

    return can[mode] & 1u << via;
}

void flow_until_listeners(struct flow *f, const char *queue, long long n)
{
    flow_poll(f, redis_int(f->server, "ZCARD %s:{%s}:listeners", f->space, queue) == n);
}

/* As src/lua/README.md has it. */
unsigned flow_rank(struct flow *f, const char *queue, const char *name)
{
    long long rank = redis_int(
        f->server, "EVAL %s 0 %s:{%s}:listeners %s/",
        "local names, bits = redis.call('ZRANGE', ARGV[1], 0, -1), {} for i, n in ipairs(names) do "
        "bits[i] = string.sub(n, -16) end table.sort(bits) for _, n in ipairs(names) do for i, b "
        "in ipairs(bits) do if n == ARGV[2] .. b then return i - 1 end end end return -1",
        f->space, queue, name);

    cr_assert_geq(rank, 0, "no listener %s", name);
    return (unsigned)rank;
}

/* A subscription hears in the order in which Redis publishes, so the last message comes last. */
void flow_heard(struct flow *f)
{
    uint64_t before = flow_stats(f->l).foreign_events;
    redis_do(f->server, "SET nobodys 1 PX 1");
    flow_poll(f, redis_int(f->server, "EXISTS nobodys") ==
                     0); /* to be looked at makes it expire, too */
    flow_until(f, flow_stats(f->l).foreign_events > before);
}

/* What Redis ran before the first of two questions is answered before it; what that answer led to
 * goes out with the second at the latest, and Redis would have run three scripts or more. */
void flow_calm(struct flow *f)
{
    int64_t end_ms = test_now_ms() + FLOW_WAIT_MS;

    for (long long before = -1, now = flow_scripts(f); now != before + 2; now = flow_scripts(f)) {
        cr_assert(test_now_ms() < end_ms, "somebody always asks something");
        before = now;
        for (int i = 0; i < 2; i++) {
            cr_assert_eq(flow_get(f, "q", "nobody", NULL), LAPSE_ENOENT);
        }
    }
}

int64_t flow_score(struct flow *f, const char *queue, const char *set, const char *id)
{
    return redis_int(f->server, "ZSCORE %s:{%s}:%s %s", f->space, queue, set, id);
}

void flow_each_once(const struct flow_worker *w, size_t n)
{
    cr_assert_eq(w->n_runs, n, "%zu runs of %zu jobs", w->n_runs, n);
    for (size_t i = 0; i < w->n_runs; i++) {
        const struct flow_job *job = &w->runs[i].job;
        cr_assert_eq(flow_runs_of(w, job->id), 1, "%s ran more than once", job->id);
        cr_assert_geq(job->claimed_us, job->due_ms * 1000, "%s ran early", job->id);
        cr_assert_eq(job->try_no, 1);
    }
}

static int by_id(const void *a, const void *b)
{
    const struct run *x = a;
    const struct run *y = b;
    int c = strcmp(x->queue, y->queue);
    return c ? c : strcmp(x->id, y->id);
}

void flow_runs_each_once(const struct runs *runs, long n)
{
    cr_assert_eq(runs->n, n, "%ld runs of %ld jobs", (long)runs->n, n);

    struct run *sorted = malloc((size_t)n * sizeof *sorted);
    cr_assert(sorted);
    memcpy(sorted, runs->run, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_id);

    for (long i = 0; i < n; i++) {
        const struct run *r = &sorted[i];
        cr_assert(!i || by_id(r - 1, r), "%s ran more than once", r->id);
        cr_assert_geq(r->claimed_us, r->due_ms * 1000, "%s ran early", r->id);
    }

    free(sorted);
}

/* ---- a bad wire ---- */
void wire_start(struct wire *x, enum flow_policy policy, flow_tweak *tweak)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse *direct = f->l;

    *x = (struct wire){.f = f, .proxy = proxy_start(f->server), .w = {.policy = policy}};

    struct lapse_options opts = flow_options(f);
    opts.url = x->proxy->url;
    opts.sweep_ms = 60000; /* nothing on the wire that the test did not cause */
    if (tweak) {
        tweak(&opts);
    }

    x->l = flow_open(f, &opts);
    f->l = x->l;
    x->subscribes = !(opts.flags & LAPSE_NO_EVENTS);
    cr_assert_eq(flow_get(f, "q", "nothing", NULL),
                 LAPSE_ENOENT); /* so its connection is the first one */
    flow_handle(f, "q", &x->w);

    if (x->subscribes) {
        flow_until_listeners(f, "q", 1);
        flow_poll(f, flow_calls(f, "set") >=
                         3); /* it entered, heard of itself, and had its first heartbeat: */
        flow_heard(f);       /* the next one comes five seconds later */
    }

    flow_calm(f);
    f->l = direct;
    flow_fine(f, "lost the connection");
}

/* Its subscription is the second connection; each one after that is again for commands. */
void wire_cut(struct wire *x, enum proxy_way way, long bytes)
{
    long n = proxy_conns(x->proxy);
    proxy_cut_conn(x->proxy, x->subscribes && n == 2 ? 1 : n);
    proxy_cut_after(x->proxy, way, bytes);
}

void wire_lose(struct wire *x)
{
    struct flow_answer a = {.f = x->f};
    wire_cut(x, PROXY_UP, 0);
    cr_assert_eq(lapse_get(x->l, "q", "nothing", flow_answered, &a), 0);
    cr_assert_eq(flow_wait(x->f, &a), LAPSE_ELOST);
}

void wire_end(struct wire *x)
{
    flow_close(x->f, x->l, 5000);
    proxy_stop(x->proxy);
    flow_end(x->f, "q");
}
