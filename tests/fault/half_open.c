/* SPDX-License-Identifier: MIT */
/* Connections that look alive and are dead: packets dropped both ways, and a proxy that
 * acknowledges and forwards nothing. */
#include "fault.h"
#include "own_network.h"
#include "handler.h"
#include "listening.h"
#include "proxy.h"

enum { LEASE_MS = 2000 };
static const char AWAY[] = "127.0.0.2"; /* the way of the one that is cut off */

static void short_lease(struct lapse_options *o)
{
    o->lease_ms = LEASE_MS;
    o->sweep_ms = 500;
}

struct cut_off {
    struct flow *f;
    struct lapse *away, *other;
    struct flow_handler w_away, w_other;
    int64_t detect_ms, ran_ms, rejoin_ms; /* the worst */
};

static int64_t worst(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A way away, and one for the other. */
static void start(struct cut_off *c, const char *url)
{
    struct flow *f = c->f;
    struct lapse_options opts = flow_options(f);

    short_lease(&opts);
    flow_allow_log(f, "onnect"); /* cannot, lost, connecting again */
    flow_allow_log(f, "the lease of job");
    opts.url = f->server->url;
    c->other = flow_open(f, &opts);
    opts.url = url;
    c->away = flow_open(f, &opts);
    c->w_away = c->w_other = (struct flow_handler){.way = FLOW_DONE};
}

/* The one that will be cut off holds a job, both listen, and then nothing happens for a while. */
static void hold_and_idle(struct cut_off *c, const char *queue)
{
    struct flow *f = c->f;
    struct lapse *direct = f->l;

    c->w_away.way = FLOW_KEEP;
    f->l = c->away;
    flow_listen(f, queue, &c->w_away);
    flow_until_listeners(f, queue, 1);
    cr_assert_eq(flow_schedule(f, queue, "job", 0, NULL), 0);
    flow_until(f, c->w_away.n_held == 1);

    f->l = c->other;
    flow_listen(f, queue, &c->w_other);
    flow_until_listeners(f, queue, 2);
    f->l = direct;
    flow_spin(f, 3000);
}

/* How a connection is broken, and whether that was noticed. */
struct breach {
    void (*drop)(void *arg, bool on);
    int (*is_noticed)(void *arg);
    void *arg;
    int64_t for_ms;
};

/* Both are noticed: that the connection is dead, and that the other runs the job. How soon is for
 * the table to say; it is broken until then, and for so long at least. */
static void breach_is_noticed(struct cut_off *c, const struct breach *b)
{
    size_t ran_before = c->w_other.n_runs;
    int64_t from_ms = test_now_ms();
    int64_t end_ms = from_ms + b->for_ms + FLOW_WAIT_MS;
    bool noticed = false;
    bool ran = false;

    b->drop(b->arg, true);
    while (!noticed || !ran || test_now_ms() < from_ms + b->for_ms) {
        if (!noticed && b->is_noticed(b->arg)) {
            noticed = true;
            c->detect_ms = worst(c->detect_ms, test_now_ms() - from_ms);
        }
        if (!ran && c->w_other.n_runs > ran_before) {
            ran = true;
            c->ran_ms = worst(c->ran_ms, test_now_ms() - from_ms);
        }
        cr_assert(test_now_ms() < end_ms, "the dead connection was found: %d; the job was run: %d",
                  noticed, ran);
        flow_turn(c->f, test_now_ms() + FLOW_POLL_MS);
    }

    b->drop(b->arg, false);
}

/* One of them holds a job and is cut off: the other runs it. */
static void cut_off(struct cut_off *c, const char *queue, struct breach b)
{
    struct flow *f = c->f;
    uint64_t reconnects = flow_stats(c->away).reconnects;

    hold_and_idle(c, queue);
    breach_is_noticed(c, &b);

    int64_t from_ms = test_now_ms();
    flow_poll(f, flow_stats(c->away).reconnects == reconnects + 2);
    c->rejoin_ms = worst(c->rejoin_ms, test_now_ms() - from_ms);

    lapse_done(c->w_away.held[--c->w_away.n_held], flow_on_settled, &c->w_away);
    c->w_away.way = FLOW_DONE;
    flow_until(f, c->w_away.err == LAPSE_EGONE);

    /* the one that was away works again */
    lapse_unlisten(c->other, queue);
    size_t before = c->w_away.n_runs;
    cr_assert_eq(flow_schedule(f, queue, "after", 0, NULL), 0);
    flow_until(f, c->w_away.n_runs == before + 1);
    lapse_unlisten(c->away, queue);
}

/* ---- packets dropped ---- */
static void drop_packets(void *arg, bool on)
{
    (void)arg;
    if (on) {
        net_do("iptables -A INPUT -d %s -j DROP && iptables -A INPUT -s %s -j DROP", AWAY, AWAY);
    } else {
        net_do("iptables -F INPUT");
    }
}

static int none_established(void *arg)
{
    return net_established(AWAY, ((struct cut_off *)arg)->f->server->port) == 0;
}

Test(f11, packets_dropped_both_ways_are_found_and_the_job_runs_elsewhere, .timeout = 300)
{
    static const char *const args[] = {"--bind", "0.0.0.0", "--protected-mode", "no", NULL};
    static const char *const queues[] = {"a", "b", "c"};
    long rounds = fault_n(1, 3);
    long for_ms = fault_n(7000, 30000);
    char url[64];

    net_own();

    struct cut_off c = {.f = flow_start_tcp(FLOW_FULL, args, NULL)};
    snprintf(url, sizeof url, "redis://%s:%d", AWAY, c.f->server->port);
    start(&c, url);

    for (long i = 0; i < rounds; i++) {
        cut_off(&c, queues[i], (struct breach){drop_packets, none_established, &c, for_ms});
        fault_say(
            "f11: found after %lld ms, run elsewhere after %lld, back %lld ms after it healed",
            (long long)c.detect_ms, (long long)c.ran_ms, (long long)c.rejoin_ms);
    }

    fault_row("F11", "half-open: packets dropped both ways for 30 s, own network namespace",
              "found <= 5 s; run elsewhere <= lease + 1 s; back <= 0.5 s after it heals",
              "%ld of %ld s, worst: found %.2f s, run elsewhere %.2f s (lease 2 s, sweep_ms 500), "
              "back %.2f s",
              rounds, for_ms / 1000, (double)c.detect_ms / 1e3, (double)c.ran_ms / 1e3,
              (double)c.rejoin_ms / 1e3);
    flow_end(c.f, "a", "b", "c");
}

/* ---- a proxy that swallows ---- */
struct swallowing {
    struct cut_off c;
    struct proxy *proxy;
    long conns;
};

static void swallow(void *arg, bool on)
{
    struct swallowing *s = arg;
    s->conns = proxy_conns(s->proxy);
    proxy_swallow(s->proxy, on);
}

/* The connection for commands is being tried again, and only the other listener's subscription is
 * left: the one that was given up comes back when commands are answered again. */
static int both_given_up(void *arg)
{
    struct swallowing *s = arg;
    char *clients = redis_str(s->c.f->server, "CLIENT LIST TYPE pubsub");
    bool one = strstr(clients, "id=") && !strstr(strchr(clients, '\n') + 1, "id=");
    free(clients);
    return one && proxy_conns(s->proxy) > s->conns;
}

Test(f11, a_proxy_that_acknowledges_and_swallows_is_found_and_the_job_runs_elsewhere,
     .timeout = 300)
{
    static const char *const queues[] = {"a", "b", "c"};
    long rounds = fault_n(1, 3);
    long for_ms = fault_n(7000, 30000);
    struct swallowing s = {.c.f = flow_start(FLOW_FULL)};

    s.proxy = proxy_start(s.c.f->server);
    start(&s.c, s.proxy->url);
    for (long i = 0; i < rounds; i++) {
        cut_off(&s.c, queues[i], (struct breach){swallow, both_given_up, &s, for_ms});
    }

    fault_row("F11", "a proxy that acknowledges and swallows for 30 s",
              "the same; back <= reply_ms after it heals",
              "%ld of %ld s, worst: found %.2f s, run elsewhere %.2f s, back %.2f s", rounds,
              for_ms / 1000, (double)s.c.detect_ms / 1e3, (double)s.c.ran_ms / 1e3,
              (double)s.c.rejoin_ms / 1e3);
    flow_close(s.c.f, s.c.away, 1000);
    proxy_stop(s.proxy);
    flow_end(s.c.f, "a", "b", "c");
}

/* ---- what it costs ---- */
Test(f11, an_idle_listener_asks_less_than_twice_a_second, .timeout = 120)
{
    static const char *const commands[] = {"eval", "evalsha", "ping", "subscribe", "psubscribe"};
    enum { COMMANDS = sizeof commands / sizeof *commands };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    long long n = 0;
    long for_ms = fault_n(10000, 60000);

    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    flow_spin(f, 500);
    for (size_t i = 0; i < COMMANDS; i++) {
        n -= flow_calls(f, commands[i]);
    }

    flow_spin(f, for_ms);
    for (size_t i = 0; i < COMMANDS; i++) {
        n += flow_calls(f, commands[i]);
    }

    double per_s = (double)n * 1000 / (double)for_ms;
    cr_assert_gt(n, 0);
    cr_assert_lt(per_s, 2.0, "%.2f a second", per_s);
    fault_row("F11", "none: what the watch costs", "<= 2 commands a second, idle", "%.2f a second",
              per_s);
    flow_end(f, "q");
}
