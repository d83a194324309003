/* SPDX-License-Identifier: MIT */
/* Two things are learnt from the replies.
 *
 * The offset between Redis's clock and ours: Redis read its clock after we asked and before we
 * heard, so server - heard <= offset <= server - sent. We keep the latest value that fits all: a
 * reply that was delayed has wide bounds and moves nothing, and a step of the server's clock leaves
 * the bounds and is followed at once. Leaning to the lower bound makes us late by the way back of
 * the fastest reply, and never early. It tells what time it is there.
 *
 * The reach: the smallest server - sent of the replies of late. It is the offset and the way there
 * of the fastest request, which need not be told apart: what is sent at m is read at m + reach, or
 * later. So something can be sent ahead, to arrive at its moment; no symmetry of the two ways is
 * assumed. The replies are kept in two halves, each of REACH_US and REACH_REPLIES at least, and the
 * older half is forgotten when the newer one is full. So the reach follows a clock that drifts and
 * a way that becomes longer within two halves, and one that becomes shorter at once. A step forward
 * of Redis's clock contradicts it, and begins it again. */
#include "redis/server_clock.h"

enum { REACH_US = 250000, REACH_REPLIES = 4 };

/* ---- the reach ---- */
static int64_t server_clock_reach_us(const struct server_clock *c)
{
    if (c->before.n > 0 && c->before.least_us < c->now.least_us) {
        return c->before.least_us;
    }

    return c->now.least_us;
}

static void server_reach_add(struct server_reach *r, int64_t heard_us, int64_t reach_us)
{
    if (r->n == 0) {
        *r = (struct server_reach){.least_us = reach_us, .since_us = heard_us};
    } else if (reach_us < r->least_us) {
        r->least_us = reach_us;
    }

    r->n++;
}

/* Whether Redis's clock was set forward. */
static bool server_clock_learn_reach(struct server_clock *c, int64_t sent_us, int64_t heard_us,
                                     int64_t server_us)
{
    static const struct server_reach none;
    struct server_reach *now = &c->now;
    bool set_forward = now->n > 0 && server_us - heard_us > server_clock_reach_us(c);

    if (set_forward) {
        c->before = none;
        *now = none;
    } else if (now->n >= REACH_REPLIES && heard_us - now->since_us >= REACH_US) {
        c->before = *now;
        *now = none;
    }

    server_reach_add(now, heard_us, server_us - sent_us);

    return set_forward;
}

/* ---- the clock ---- */
int64_t server_clock_heard(struct server_clock *c, int64_t sent_us, int64_t heard_us,
                           int64_t server_us)
{
    int64_t least_us = server_us - heard_us;
    int64_t most_us = server_us - sent_us;
    int64_t before_us = c->known ? c->offset_us : least_us;

    if (!c->known || c->offset_us < least_us || c->offset_us > most_us) {
        c->offset_us = least_us;
    }

    bool set_forward = server_clock_learn_reach(c, sent_us, heard_us, server_us);
    int64_t moved_us = c->offset_us - before_us;

    c->known = true;
    return moved_us > 0 && !set_forward ? 0 : moved_us;
}

int64_t server_clock_us(const struct server_clock *c, int64_t mono_us)
{
    return mono_us + c->offset_us;
}

int64_t server_clock_mono_us(const struct server_clock *c, int64_t server_us)
{
    return server_us - c->offset_us;
}

int64_t server_clock_arrival_us(const struct server_clock *c, int64_t mono_us)
{
    return mono_us + server_clock_reach_us(c);
}

int64_t server_clock_send_us(const struct server_clock *c, int64_t server_us)
{
    return server_us - server_clock_reach_us(c);
}

int64_t server_clock_round_trip_us(const struct server_clock *c)
{
    int64_t us = server_clock_reach_us(c) - c->offset_us;

    return us > 0 ? us : 0;
}
