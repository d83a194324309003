/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SERVER_CLOCK_H
#define LAPSE_SERVER_CLOCK_H
#include <stdbool.h>
#include <stdint.h>

/* Half of the recent replies: the smallest of what Redis's clock showed when it read a request,
 * less what ours showed when we sent it. */
struct server_reach {
    int64_t least_us;
    int64_t since_us; /* by clock_us() */
    unsigned n;       /* replies; 0: nothing is known */
};

/* What is known of the clock of one Redis: its Unix time is clock_us() + offset_us. */
struct server_clock {
    int64_t offset_us;
    bool known;
    struct server_reach now, before;
};

/* A reply said server_us; its request was sent at sent_us and it came at heard_us, by clock_us().
 * Returns by how much Redis's clock was set; 0 where a reply that came late may be why the offset
 * changed. */
int64_t server_clock_heard(struct server_clock *c, int64_t sent_us, int64_t heard_us,
                           int64_t server_us);

/* From clock_us() to Redis's time, and back. */
int64_t server_clock_us(const struct server_clock *c, int64_t mono_us);
int64_t server_clock_mono_us(const struct server_clock *c, int64_t server_us);

/* When Redis will read, by its clock, what is sent at mono_us: as if it were as fast as the fastest
 * of late. A slower one is read later. */
int64_t server_clock_arrival_us(const struct server_clock *c, int64_t mono_us);
/* When to send what Redis is to read at server_us. */
int64_t server_clock_send_us(const struct server_clock *c, int64_t server_us);
/* How long the fastest request of late and its reply were on their way. */
int64_t server_clock_round_trip_us(const struct server_clock *c);

#endif
