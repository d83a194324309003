/* SPDX-License-Identifier: MIT */
#include "redis/node.h"
#include "base/error.h"

enum { CLOCK_STEP_US = 1000000 };

static void on_up(void *arg)
{
    struct node *n = arg;

    n->up(n->arg);
    if (n->fence_begun) {
        conn_start(&n->fence);
    }
}

static void on_down(void *arg)
{
    struct node *n = arg;

    n->scripts = 0;
    if (n->fence_begun) {
        conn_drop(&n->fence);
    }
}

void node_init(struct node *n, struct context *context, const struct address *address,
               void (*up)(void *arg), void *arg)
{
    static const struct conn_events events = {.up = on_up, .down = on_down};

    *n = (struct node){.context = context, .up = up, .arg = arg};
    n->endpoint = (struct endpoint){.context = context, .address = *address};
    conn_init(&n->commands, &n->endpoint, CONN_COMMANDS, &events, n);
}

void node_close(struct node *n)
{
    conn_close(&n->commands, LAPSE_ELOST);
    if (n->fence_begun) {
        conn_close(&n->fence, LAPSE_ELOST);
    }
}

void node_begin_fence(struct node *n, const struct conn_events *events, void *arg)
{
    ASSERT(!n->fence_begun);
    conn_init(&n->fence, &n->endpoint, CONN_FENCE, events, arg);
    n->fence_begun = true;
    if (node_up(n)) {
        conn_start(&n->fence);
    }
}

void node_learns_script(struct node *n, unsigned script)
{
    n->scripts |= UINT64_C(1) << script;
}

void node_forgets_script(struct node *n, unsigned script)
{
    n->scripts &= ~(UINT64_C(1) << script);
}

/* What is due, and when a lease ends, goes by Redis's clock: people will ask why all jobs ran at
 * once, or none did. */
void node_heard_clock(struct node *n, int64_t sent_us, int64_t server_us)
{
    int64_t moved_us = server_clock_heard(&n->clock, sent_us, clock_us(), server_us);

    if (moved_us >= CLOCK_STEP_US) {
        log_line(&n->context->log, LOG_CLOCK, LOG_WARNING,
                 "the clock of Redis was set forward by %.3f s; what is due goes by it",
                 (double)moved_us / 1e6);
    } else if (moved_us <= -CLOCK_STEP_US) {
        log_line(&n->context->log, LOG_CLOCK, LOG_WARNING,
                 "the clock of Redis was set back by %.3f s; what is due goes by it",
                 (double)-moved_us / 1e6);
    }
}

int64_t node_time_us(const struct node *n)
{
    return server_clock_us(&n->clock, clock_us());
}

int64_t node_mono_us(const struct node *n, int64_t server_us)
{
    return server_clock_mono_us(&n->clock, server_us);
}

int64_t node_arrival_us(const struct node *n)
{
    return server_clock_arrival_us(&n->clock, clock_us());
}

int64_t node_send_us(const struct node *n, int64_t server_us)
{
    return server_clock_send_us(&n->clock, server_us);
}

int64_t node_round_trip_us(const struct node *n)
{
    return server_clock_round_trip_us(&n->clock);
}
