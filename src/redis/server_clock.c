/* SPDX-License-Identifier: MIT */
/* The offset between Redis's clock and ours is bounded by every reply: Redis read its clock after
 * we asked and before we heard, so server - heard <= offset <= server - sent. We keep the latest
 * value that fits all: a reply that was delayed has wide bounds and moves nothing, and a step of
 * the server's clock leaves the bounds and is followed at once. Leaning to the lower bound makes us
 * late by the way back of the fastest reply, some 20 us, and never early. */
#include "redis/server_clock.h"

int64_t server_clock_heard(struct server_clock *c, int64_t sent_us, int64_t heard_us,
                           int64_t server_us)
{
    int64_t least_us = server_us - heard_us;
    int64_t most_us = server_us - sent_us;
    int64_t before_us = c->known ? c->offset_us : least_us;

    if (!c->known || c->offset_us < least_us || c->offset_us > most_us) {
        c->offset_us = least_us;
    }

    c->known = true;
    return c->offset_us - before_us;
}

int64_t server_clock_us(const struct server_clock *c, int64_t mono_us)
{
    return mono_us + c->offset_us;
}

int64_t server_clock_mono_us(const struct server_clock *c, int64_t server_us)
{
    return server_us - c->offset_us;
}
