/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SERVER_CLOCK_H
#define LAPSE_SERVER_CLOCK_H
#include <stdbool.h>
#include <stdint.h>

/* What is known of the clock of one Redis: its Unix time is clock_us() + offset_us. */
struct server_clock {
    int64_t offset_us;
    bool known;
};

/* A reply said server_us; its request was sent at sent_us and it came at heard_us, by clock_us().
 * Returns by how much the offset changed; the first is no change. */
int64_t server_clock_heard(struct server_clock *c, int64_t sent_us, int64_t heard_us,
                           int64_t server_us);

/* From clock_us() to Redis's time, and back. */
int64_t server_clock_us(const struct server_clock *c, int64_t mono_us);
int64_t server_clock_mono_us(const struct server_clock *c, int64_t server_us);

#endif
