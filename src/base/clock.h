/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_CLOCK_H
#define LAPSE_CLOCK_H
#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

int64_t clock_us(void); /* monotonic; goes on while the machine sleeps, as leases do */
/* this machine's idea of Unix time: to sort by, and for nothing else */
int64_t clock_wall_us(void);
uint64_t clock_random(void); /* for jitter and names, not for secrets */

/* What is known of Redis's clock: server = monotonic + offset. */
struct server_clock {
    int64_t offset_us;
    bool known;
};
/* A reply said server_us; its request was made at sent_us and it came at heard_us, both monotonic.
 * Returns by how much the offset changed; the first is no change. */
int64_t clock_heard(struct server_clock *c, int64_t sent_us, int64_t heard_us, int64_t server_us);
int64_t clock_server_us(const struct server_clock *c, int64_t mono_us);
int64_t clock_mono_us(const struct server_clock *c, int64_t server_us);

/* A one-shot timer in whole milliseconds, for deadlines. */
struct timer {
    ev_timer ev;
    struct ev_loop *loop;
    void (*fn)(void *arg);
    void *arg;
};
void timer_init(struct timer *t, struct ev_loop *loop, void (*fn)(void *), void *arg);
void timer_set(struct timer *t, int64_t for_ms); /* anew, from now */
void timer_stop(struct timer *t);
static inline bool timer_on(const struct timer *t)
{
    return ev_is_active(&t->ev);
}

/* Rings at a moment, to the microsecond where there is a timerfd: libev's epoll waits whole
 * milliseconds. */
struct alarm {
    ev_io io;
    struct timer coarse; /* where there is no timerfd, or libev cannot watch it */
    struct ev_loop *loop;
    void (*fn)(void *arg);
    void *arg;
    int64_t at_us; /* monotonic; 0: off */
    int fd;        /* -1: none */
};
void alarm_init(struct alarm *a, struct ev_loop *loop, void (*fn)(void *), void *arg);
void alarm_set(struct alarm *a, int64_t at_us); /* 0: off */
void alarm_close(struct alarm *a);

#endif
