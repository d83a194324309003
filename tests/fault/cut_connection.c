/* SPDX-License-Identifier: MIT */
/* The connection is cut after each byte, of each direction, of what each call of the API says to
 * Redis: a schedule that is repeated makes one job, a settle happens once, a job runs once. */
#include "fault.h"
#include "listening.h"
#include "tls.h"
#include "wire.h"

enum { HOUR = 3600000, ROUNDS_MAX = 20000, HANDSHAKE = 1500 };

/* How far the next cut is. The scripts' texts are long and dull. */
static long step(long bytes)
{
    return bytes < fault_n(10, 100000) ? 1 : 7;
}

static void quiet_wire(struct lapse_options *o)
{
    o->reply_ms = o->sweep_ms = 60000; /* nothing on it that the test did not cause */
}

/* ---- those that ask ---- */
struct asker {
    struct flow *f; /* f->l goes to Redis directly */
    struct proxy *proxy;
    const char *url; /* by the proxy */
    const char *tls_ca;
    struct lapse *l;
    int64_t due_ms;
    long cuts, maybes;
    int whole; /* requests that Redis had got whole when the connection was cut */
};

static int ask_schedule(struct flow *f, const char *id)
{
    struct lapse_spec s = flow_job_spec("q", id, HOUR);
    s.body = "the body";
    s.body_len = 8;
    return flow_spec(f, &s, NULL);
}

static int ask_cancel(struct flow *f, const char *id)
{
    return flow_cancel(f, "q", id, NULL);
}

static int ask_reschedule(struct flow *f, const char *id)
{
    return flow_reschedule(f, "q", id, lapse_in(2 * HOUR), NULL);
}

static int ask_get(struct flow *f, const char *id)
{
    return flow_get(f, "q", id, NULL);
}

static int ask_list(struct flow *f, const char *id)
{
    struct flow_job jobs[4];
    (void)id;
    int n = flow_list(f, "q", LAPSE_WAITING, 4, jobs, 4);
    return n == 1 ? 0 : n;
}

static int ask_depth(struct flow *f, const char *id)
{
    struct lapse_depth d;
    (void)id;
    int err = flow_depth(f, "q", &d);
    cr_assert(err || d.waiting <= 1);
    return err;
}

static const struct verb {
    const char *name;
    int (*ask)(struct flow *f, const char *id);
    bool there;  /* the job, before */
    int again;   /* what it hears when it is repeated and the first had happened */
    bool leaves; /* the job */
} verbs[] = {
    {"schedule", ask_schedule, false, LAPSE_EEXIST, true},
    {"cancel", ask_cancel, true, LAPSE_ENOENT, false},
    {"reschedule", ask_reschedule, true, 0, true},
    {"get", ask_get, true, 0, true},
    {"list", ask_list, true, 0, true},
    {"depth", ask_depth, true, 0, true},
};
enum { VERBS = sizeof verbs / sizeof *verbs };

static int by_wire(struct asker *a, const struct verb *v, const char *id)
{
    struct lapse *direct = a->f->l;
    a->f->l = a->l;
    int err = v->ask(a->f, id);
    a->f->l = direct;
    return err;
}

/* A new handle for each cut: one that has just lost a connection waits longer with each further
 * loss. */
static void open_again(struct asker *a, const struct verb *v)
{
    struct lapse_options opts = flow_options(a->f);
    const struct verb other = {.ask = v->ask == ask_get ? ask_depth : ask_get};

    quiet_wire(&opts);
    opts.url = a->url;
    opts.tls_ca = a->tls_ca;
    if (a->l) {
        flow_close(a->f, a->l, 0);
    }

    a->l = flow_open(a->f, &opts);
    by_wire(a, &other, "nothing"); /* it is connected */
}

/* The job as the verb needs it, and the script known to Redis or not. */
static void prepare(struct asker *a, const struct verb *v, const char *id, bool warm)
{
    struct flow *f = a->f;

    open_again(a, v);
    if (warm) { /* its hash will do */
        by_wire(a, v, "nothing");
    }
    if (flow_get(f, "q", "nothing", NULL) == 0) {
        cr_assert_eq(flow_cancel(f, "q", "nothing", NULL), 0);
    }
    if (v->there) {
        cr_assert_eq(ask_schedule(f, id), 0);
    }
}

/* However often it was asked, it has happened once. */
static void has_happened_once(struct flow *f, const struct verb *v, const char *id)
{
    struct flow_job job;

    cr_assert_eq(flow_count(f, "q", "due"), v->leaves, "%s", id);
    cr_assert_eq(flow_get(f, "q", id, &job), v->leaves ? 0 : LAPSE_ENOENT);
    if (v->leaves) {
        cr_assert(job.body_len == 8 && memcmp(job.body, "the body", 8) == 0);
        cr_assert_eq(flow_cancel(f, "q", id, NULL), 0);
    }
}

/* One cut; false: it was beyond the end. */
static bool cut_once(struct asker *a, const struct verb *v, enum proxy_way way, long bytes,
                     bool warm)
{
    struct flow *f = a->f;
    char id[32];

    snprintf(id, sizeof id, "%s-%d-%05ld", v->name, way, bytes);
    prepare(a, v, id, warm);

    long conns = proxy_conns(a->proxy);
    proxy_cut_after(a->proxy, way, bytes);

    int first = by_wire(a, v, id);
    cr_assert(first == 0 || first == LAPSE_ELOST, "%s cut after %ld: %s", v->name, bytes,
              lapse_strerror(first));
    if (first && way == PROXY_UP && (flow_get(f, "q", id, NULL) == 0) != v->there) {
        a->whole++;
    }

    int err = first;
    for (; lapse_outcome_unknown(err); err = by_wire(a, v, id)) {
        a->maybes++;
    }
    cr_assert(err == 0 || (first && err == v->again), "%s again: %s", v->name, lapse_strerror(err));

    flow_spin(f, 0);
    proxy_cut_after(a->proxy, way, -1);
    has_happened_once(f, v, id);
    if (first != 0 || proxy_conns(a->proxy) > conns) {
        a->cuts++;
    }

    return first != 0;
}

static void each_byte(struct asker *a, const struct verb *v, enum proxy_way way, bool warm)
{
    long bytes = 0;

    a->whole = 0;
    while (cut_once(a, v, way, bytes, warm)) {
        bytes += warm ? step(bytes) : fault_n(400, 40);
    }
    cr_assert_gt(bytes, 3, "%s was not cut", v->name);
    /* by the cut behind its last byte */
    cr_assert_leq(a->whole, 1, "%s happened, cut in the midst of it", v->name);
}

Test(f10, a_request_cut_after_any_byte_happens_once_when_it_is_repeated, .timeout = 300)
{
    struct asker a = {.f = flow_start(FLOW_FULL)};

    a.proxy = proxy_start(a.f->server);
    a.url = a.proxy->url;
    flow_allow_log(a.f, "lost the connection");

    for (int v = 0; v < VERBS; v++) {
        for (int warm = 0; warm < 2; warm++) {
            each_byte(&a, &verbs[v], PROXY_UP, warm);
            each_byte(&a, &verbs[v], PROXY_DOWN, warm);
        }
    }

    fault_row("F10", "cut after any byte: schedule, cancel, reschedule, get, list, depth",
              "exactly one job, each k", "%ld cuts, %ld answers lost: each happened once", a.cuts,
              a.maybes);
    flow_close(a.f, a.l, 0);
    proxy_stop(a.proxy);
    flow_end(a.f, "q");
}

/* ---- those that handle ---- */
static long settles(enum flow_way how, enum proxy_way way, long *lost)
{
    struct wire x;
    long bytes = 0;
    long n = 0;

    wire_start(&x, FLOW_KEEP, quiet_wire);
    x.w.delay_ms = HOUR;
    x.w.reason = "the reason";

    for (uint64_t before = UINT64_MAX; before != flow_stats(x.l).reconnects;
         bytes += step(bytes), n++) {
        char id[24];
        struct flow_job job;
        snprintf(id, sizeof id, "%ld", bytes);
        cr_assert_eq(flow_schedule(x.f, "q", id, 0, NULL), 0);
        flow_until(x.f, x.w.n_held == 1);
        before = flow_stats(x.l).reconnects;
        wire_cut(&x, way, bytes);
        x.w.err = 0;
        flow_settle(&x.w, how);
        cr_assert(x.w.err == 0 || x.w.err == LAPSE_ELOST, "cut after %ld: %s", bytes,
                  lapse_strerror(x.w.err));
        if (x.w.err != 0) {
            ++*lost;
        }
        flow_spin(x.f, 1);
        proxy_cut_after(x.proxy, way, -1);
        cr_assert_eq(flow_get(x.f, "q", id, &job), how == FLOW_DONE ? LAPSE_ENOENT : 0);
        if (how != FLOW_DONE) {
            cr_assert_eq(job.try_no, how == FLOW_SNOOZE ? 0 : 1);
            cr_assert_eq(job.state, how == FLOW_FAIL ? LAPSE_DEAD : LAPSE_WAITING);
            cr_assert_eq(flow_cancel(x.f, "q", id, NULL), 0);
        }
    }

    cr_assert_eq(x.w.n_runs, (size_t)n, "%zu runs of %ld jobs", x.w.n_runs, n); /* none ran again */
    cr_assert_gt(n, 8);
    wire_end(&x);

    return n;
}

Test(f10, a_settle_cut_after_any_byte_happens_once, .timeout = 300)
{
    long lost = 0;
    long n = 0;

    for (enum flow_way how = FLOW_DONE; how <= FLOW_FAIL; how++) {
        n += settles(how, PROXY_UP, &lost) + settles(how, PROXY_DOWN, &lost);
    }
    fault_row("F10", "cut after any byte: done, retry, snooze, fail", "exactly once, each k",
              "%ld cuts: each settled once, none ran again; %ld heard ELOST", n, lost);
}

/* A whole life: touched, claimed, done; the byte is anywhere in it. */
static long lives(enum proxy_way way, bool subscription)
{
    struct wire x;
    long bytes = 0;
    long n = 0;
    long conn = 2;
    long most = subscription ? fault_n(250, 600) : fault_n(700, 2500);

    wire_start(&x, FLOW_DONE, quiet_wire);

    for (; bytes < most; bytes += fault_n(subscription ? 5 : 11, 1), n++) {
        char id[24];
        snprintf(id, sizeof id, "%ld", bytes);
        flow_until_listeners(x.f, "q", 1);
        if (subscription) {
            proxy_cut_conn(x.proxy, conn);
            proxy_cut_after(x.proxy, way, bytes);
        } else {
            wire_cut(&x, way, bytes);
        }
        uint64_t before = flow_stats(x.l).reconnects;
        cr_assert_eq(flow_schedule(x.f, "q", id, n % 2 * 5, NULL), 0);
        flow_until(x.f, x.w.settled == (unsigned)n + 1);
        flow_spin(x.f, 2);
        proxy_cut_after(x.proxy, way, -1);
        flow_until(x.f, flow_stats(x.l).reconnects == before || proxy_conns(x.proxy) > 2);
        conn = flow_stats(x.l).reconnects > 0 || proxy_conns(x.proxy) > 2 ? proxy_conns(x.proxy)
                                                                          : conn;
    }

    flow_each_once(&x.w, (size_t)n);
    cr_assert_gt(flow_stats(x.l).reconnects, 0);
    fault_say("f10: %ld lives, %llu connections lost", n,
              (unsigned long long)flow_stats(x.l).reconnects);
    n = (long)flow_stats(x.l).reconnects;
    wire_end(&x);

    return n;
}

Test(f10, a_listener_cut_after_any_byte_runs_each_job_once, .timeout = 300)
{
    long n = lives(PROXY_UP, false) + lives(PROXY_DOWN, false);
    fault_row("F10", "cut after any byte: a listener's touch, claim, done",
              "each job runs once, first try, each k",
              "%ld cuts: each job ran once, in its first try", n);
}

Test(f10, a_subscription_cut_after_any_byte_runs_each_job_once, .timeout = 300)
{
    long n = lives(PROXY_DOWN, true);
    fault_row("F10", "cut after any byte: a listener's subscription", "each job runs once, each k",
              "%ld cuts: each job ran once", n);
}

/* ---- TLS: in the handshake, and in the records of a request and of its answer ---- */
struct secured {
    struct keys keys;
    struct flow *f;
    struct proxy *proxy;
    char url[120]; /* by the proxy */
};

static void secured_start(struct secured *s)
{
    tls_needed();
    keys_make(&s->keys);
    int port = server_free_port();
    s->f = flow_start_opts(FLOW_FULL, tls_server_args(&s->keys, "good", port, NULL), NULL);
    s->f->server->tls_port = port;
    s->proxy = proxy_start(s->f->server);
    snprintf(s->url, sizeof s->url, "rediss://%s127.0.0.1:%s", server_login(),
             strrchr(s->proxy->tcp_url, ':') + 1);
    flow_allow_log(s->f, "the connection to Redis at ");
    flow_allow_log(s->f, "cannot connect to Redis at ");
}

static void secured_end(struct secured *s)
{
    proxy_stop(s->proxy);
    flow_end(s->f, "q");
    keys_remove(&s->keys);
}

/* Opens a handle and asks once, for each cut. A handshake has some 600 bytes up, and 1,200 down. */
static long handshakes_cut(struct secured *s, enum proxy_way way)
{
    struct lapse_options opts = flow_options(s->f);
    struct lapse *direct = s->f->l;
    long n = 0;

    quiet_wire(&opts);
    opts.url = s->url;
    opts.tls_ca = s->keys.ca;

    for (long bytes = 0; bytes < HANDSHAKE; bytes += fault_n(7, 1)) {
        proxy_cut_after(s->proxy, way, bytes);
        s->f->l = flow_open(s->f, &opts);
        int err = flow_get(s->f, "q", "a", NULL);
        bool cut = proxy_cut_left(s->proxy, way) == -1;
        cr_assert(err == LAPSE_ENOENT || (cut && err == LAPSE_ELOST), "cut after %ld: %s", bytes,
                  lapse_strerror(err));
        cr_assert_eq(flow_get(s->f, "q", "a", NULL), LAPSE_ENOENT, "cut after %ld", bytes);
        n += cut;
        proxy_cut_after(s->proxy, way, -1);
        flow_close(s->f, s->f->l, 0);
    }

    s->f->l = direct;
    return n;
}

Test(f10, a_handshake_of_tls_cut_after_any_byte_is_made_again, .timeout = 300)
{
    struct secured s;

    secured_start(&s);
    long n = handshakes_cut(&s, PROXY_UP) + handshakes_cut(&s, PROXY_DOWN);
    cr_assert_gt(n, 2 * 100);
    fault_row("F10", "cut after any byte: TLS, from its handshake to a first call",
              "connected again, each k", "%ld cuts: connected again each time", n);
    secured_end(&s);
}

Test(f10, a_request_by_tls_cut_after_any_byte_happens_once_when_it_is_repeated, .timeout = 300)
{
    struct secured s;

    secured_start(&s);
    struct asker a = {.f = s.f, .proxy = s.proxy, .url = s.url, .tls_ca = s.keys.ca};

    for (int v = 0; v < VERBS; v++) {
        each_byte(&a, &verbs[v], PROXY_UP, true);
        each_byte(&a, &verbs[v], PROXY_DOWN, true);
    }

    fault_row("F10", "cut after any byte: the same requests by TLS", "exactly one job, each k",
              "%ld cuts, %ld answers lost: each happened once", a.cuts, a.maybes);
    flow_close(a.f, a.l, 0);
    secured_end(&s);
}
