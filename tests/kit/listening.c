/* SPDX-License-Identifier: MIT */
#include "ask.h"
#include "listening.h"

struct lapse_stats flow_stats(struct lapse *l)
{
    struct lapse_stats s;
    lapse_stats(l, &s, sizeof s);
    return s;
}

bool flow_via_ok(enum flow_mode mode, enum lapse_via via)
{
    static const unsigned can[] = {
        [FLOW_FULL] = 1u << LAPSE_VIA_TOUCH | 1u << LAPSE_VIA_EVENT | 1u << LAPSE_VIA_NOTICE |
                      1u << LAPSE_VIA_ALARM | 1u << LAPSE_VIA_SWEEP,
        [FLOW_STILL] = 1u << LAPSE_VIA_TOUCH | 1u << LAPSE_VIA_EVENT | 1u << LAPSE_VIA_NOTICE |
                       1u << LAPSE_VIA_ALARM | 1u << LAPSE_VIA_SWEEP,
        [FLOW_NO_ALARM] = 1u << LAPSE_VIA_EVENT | 1u << LAPSE_VIA_NOTICE | 1u << LAPSE_VIA_SWEEP,
        [FLOW_NO_EVENTS] = 1u << LAPSE_VIA_TOUCH | 1u << LAPSE_VIA_ALARM | 1u << LAPSE_VIA_SWEEP,
        [FLOW_MUTE] = 1u << LAPSE_VIA_TOUCH | 1u << LAPSE_VIA_NOTICE | 1u << LAPSE_VIA_ALARM |
                      1u << LAPSE_VIA_SWEEP,
        [FLOW_SWEEP] = 1u << LAPSE_VIA_NOTICE | 1u << LAPSE_VIA_SWEEP,
    };

    return can[mode] & 1u << via;
}

void flow_until_listeners(struct flow *f, const char *queue, long long n)
{
    flow_poll(f, redis_int(f->server, "ZCARD %s:{%s}:listeners", f->space, queue) == n);
}

void flow_until_alive(struct flow *f, long long n)
{
    flow_poll(f, redis_int(f->server, "ZCOUNT %s:{}:alive 0 inf", f->space) == n);
}

long long flow_heartbeats(struct flow *f)
{
    return flow_calls(f, "zremrangebyscore"); /* in no other script */
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

    /* a job may run before that: it is touched, or its notice says that it is due */
    flow_poll(f, redis_int(f->server, "PUBSUB NUMPAT") > 0);
    redis_do(f->server, "SET nobodys 1 PX 1");
    /* to be looked at makes it expire, too */
    flow_poll(f, redis_int(f->server, "EXISTS nobodys") == 0);
    flow_until(f, flow_stats(f->l).foreign_events > before);
}

/* What Redis ran before the first of two questions is answered before it; what that answer led to
 * goes out with the second at the latest, and Redis would have run three scripts or more. */
void flow_calm(struct flow *f)
{
    int64_t end_ms = test_now_ms() + FLOW_WAIT_MS;

    for (long long before = -1, now = flow_scripts(f); now != before + 2; now = flow_scripts(f)) {
        cr_assert(test_now_ms() < end_ms, "requests never cease");
        before = now;
        for (int i = 0; i < 2; i++) {
            cr_assert_eq(flow_get(f, "q", "nobody", NULL), LAPSE_ENOENT);
        }
    }
}
