/* SPDX-License-Identifier: MIT */
/* Time. Our own clock is monotonic, goes on while the machine sleeps, and only measures waiting;
 * moments are Redis's.
 *
 * The offset between the two is bounded by every reply: Redis read its clock after we asked and
 * before we heard, so server - heard <= offset <= server - sent. We keep the latest value that fits
 * all: a reply that was stalled has wide bounds and moves nothing, and a step of the server's clock
 * leaves the bounds and is followed at once. Leaning to the lower bound makes us late by the way
 * back of the fastest reply, some 20 us, and never early. */
#include "base/clock.h"
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static int64_t read_us(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t clock_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

int64_t clock_wall_us(void)
{
    return read_us(CLOCK_REALTIME);
}

uint64_t clock_random(void)
{
    uint64_t r = 0;
    if (getentropy(&r, sizeof r) != 0) {
        r = (uint64_t)clock_us() * 0x9e3779b97f4a7c15u ^ (uint64_t)getpid() << 32;
    }
    return r;
}

int64_t clock_heard(struct server_clock *c, int64_t sent_us, int64_t heard_us, int64_t server_us)
{
    int64_t before = c->known ? c->offset_us : server_us - heard_us;

    if (!c->known || c->offset_us < server_us - heard_us || c->offset_us > server_us - sent_us) {
        c->offset_us = server_us - heard_us;
    }
    c->known = true;
    return c->offset_us - before;
}

int64_t clock_server_us(const struct server_clock *c, int64_t mono_us)
{
    return mono_us + c->offset_us;
}

int64_t clock_mono_us(const struct server_clock *c, int64_t server_us)
{
    return server_us - c->offset_us;
}

static void on_timer(struct ev_loop *loop, ev_timer *ev, int events)
{
    (void)loop;
    (void)events;
    struct timer *t = ev->data;
    t->fn(t->arg);
}

void timer_init(struct timer *t, struct ev_loop *loop, void (*fn)(void *), void *arg)
{
    ev_timer_init(&t->ev, on_timer, 0., 0.);
    t->ev.data = t;
    t->loop = loop;
    t->fn = fn;
    t->arg = arg;
}

void timer_set(struct timer *t, int64_t for_ms)
{
    /* libev counts from the start of the loop's turn, which may be long ago, or never yet. (Adding
     * ev_time() - ev_now() was tried: both are of the wall clock, whose step would be waited for.)
     */
    ev_now_update(t->loop);
    ev_timer_stop(t->loop, &t->ev);
    ev_timer_set(&t->ev, (double)for_ms / 1000., 0.);
    ev_timer_start(t->loop, &t->ev);
}

void timer_stop(struct timer *t)
{
    ev_timer_stop(t->loop, &t->ev);
}

static void ring(void *arg)
{
    struct alarm *a = arg;
    a->at_us = 0;
    a->fn(a->arg);
}

static void on_alarm(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;

    struct alarm *a = io->data;
    uint64_t times;
    if (events & EV_ERROR) { /* epoll_ctl(2) failed, and libev has stopped to watch it */
        int64_t at_us = a->at_us;
        close(a->fd);
        a->fd = -1;
        a->at_us = 0;
        alarm_set(a, at_us);
    } else if (read(a->fd, &times, sizeof times) == sizeof times && a->at_us) {
        ring(a);
    }
}

void alarm_init(struct alarm *a, struct ev_loop *loop, void (*fn)(void *), void *arg)
{
    a->loop = loop;
    a->fn = fn;
    a->arg = arg;
    a->at_us = 0;
    a->fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    timer_init(&a->coarse, loop, ring, a);
    ev_io_init(&a->io, on_alarm, a->fd, EV_READ);
    a->io.data = a;
    if (a->fd >= 0) {
        ev_io_start(loop, &a->io);
    }
}

void alarm_set(struct alarm *a, int64_t at_us)
{
    if (at_us < 0) {
        at_us = 1; /* before we were up; timerfd_settime(2) knows no such moment */
    }

    if (at_us == a->at_us) {
        return;
    }

    a->at_us = at_us;

    if (a->fd >= 0) {
        struct itimerspec t = {{0, 0}, {at_us / 1000000, at_us % 1000000 * 1000}};
        timerfd_settime(a->fd, TFD_TIMER_ABSTIME, &t, NULL);
    } else if (at_us) {
        int64_t wait_us = at_us - clock_us();
        timer_set(&a->coarse, wait_us > 0 ? wait_us / 1000 + 1 : 0);
    } else {
        timer_stop(&a->coarse);
    }
}

void alarm_close(struct alarm *a)
{
    timer_stop(&a->coarse);
    if (a->fd >= 0) {
        ev_io_stop(a->loop, &a->io);
        close(a->fd);
        a->fd = -1;
    }
}
