/* SPDX-License-Identifier: MIT */
#include "bench/delay_line.h"
#include "base/clock.h"
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool line_is_full(const struct delay_line *d)
{
    return d->n_bytes == DELAY_LINE_BYTES || d->n_parcels == DELAY_LINE_PARCELS;
}

/* NULL: nothing is on its way. */
static struct parcel *line_first(struct delay_line *d)
{
    return d->n_parcels > 0 ? &d->parcels[d->first_parcel] : NULL;
}

/* As much of the first parcel as the socket takes at once; what it returns is send()'s. */
static ssize_t line_write(struct delay_line *d, struct parcel *p)
{
    size_t len = smaller(p->len, DELAY_LINE_BYTES - d->first_byte);
    ssize_t n = send(d->to, d->bytes + d->first_byte, len, MSG_NOSIGNAL);

    if (n < 0) {
        return n;
    }

    p->len -= (size_t)n;
    d->n_bytes -= (size_t)n;
    d->first_byte = (d->first_byte + (size_t)n) % DELAY_LINE_BYTES;
    if (p->len == 0) {
        d->n_parcels--;
        d->first_parcel = (d->first_parcel + 1) % DELAY_LINE_PARCELS;
    }

    return n;
}

/* Says when to go on. */
static void line_wait(struct delay_line *d, bool is_blocked)
{
    struct parcel *p = line_first(d);

    if (is_blocked) {
        ev_io_start(d->loop, &d->writable);
    } else {
        ev_io_stop(d->loop, &d->writable);
    }

    if (d->at_end || line_is_full(d)) {
        ev_io_stop(d->loop, &d->readable);
    } else {
        ev_io_start(d->loop, &d->readable);
    }

    exact_timer_set(&d->timer, p && !is_blocked ? p->due_us : 0);
}

/* Writes what is due. */
static void line_deliver(struct delay_line *d)
{
    struct parcel *p;
    ssize_t n = 0;

    while (n >= 0 && (p = line_first(d)) && p->due_us <= clock_us()) {
        n = line_write(d, p);
    }

    bool is_blocked = n < 0 && (errno == EAGAIN || errno == EINTR);
    bool has_failed = n < 0 && !is_blocked;
    if (has_failed || (d->at_end && d->n_parcels == 0)) {
        d->ended(d->arg);
    } else {
        line_wait(d, is_blocked);
    }
}

static void on_due(void *arg)
{
    line_deliver(arg);
}

static void on_writable(struct ev_loop *loop, ev_io *w, int events)
{
    (void)loop;
    (void)events;
    line_deliver(w->data);
}

static void on_readable(struct ev_loop *loop, ev_io *w, int events)
{
    struct delay_line *d = w->data;
    size_t at = (d->first_byte + d->n_bytes) % DELAY_LINE_BYTES;
    size_t room = smaller(DELAY_LINE_BYTES - d->n_bytes, DELAY_LINE_BYTES - at);
    ssize_t n = read(d->from, d->bytes + at, room);

    (void)loop;
    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }

    if (n > 0) {
        size_t last = (d->first_parcel + d->n_parcels) % DELAY_LINE_PARCELS;
        d->parcels[last] = (struct parcel){clock_us() + d->delay_us, (size_t)n};
        d->n_parcels++;
        d->n_bytes += (size_t)n;
    } else {
        d->at_end = true;
    }

    line_deliver(d);
}

void delay_line_start(struct delay_line *d)
{
    d->at_end = false;
    d->first_parcel = d->n_parcels = 0;
    d->first_byte = d->n_bytes = 0;

    exact_timer_init(&d->timer, d->loop, on_due, d);
    ev_io_init(&d->readable, on_readable, d->from, EV_READ);
    ev_io_init(&d->writable, on_writable, d->to, EV_WRITE);
    d->readable.data = d;
    d->writable.data = d;
    ev_io_start(d->loop, &d->readable);
}

void delay_line_stop(struct delay_line *d)
{
    ev_io_stop(d->loop, &d->readable);
    ev_io_stop(d->loop, &d->writable);
    exact_timer_close(&d->timer);
}
