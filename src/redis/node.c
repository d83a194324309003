/* SPDX-License-Identifier: MIT */
#include "redis/node.h"

enum { CLOCK_STEP_US = 1000000 };

static void on_up(void *arg)
{
    struct node *n = arg;
    n->up(n->arg);
}

static void on_down(void *arg)
{
    struct node *n = arg;
    n->scripts = 0;
}

void node_init(struct node *n, struct context *context, const struct address *address,
               void (*up)(void *arg), void *arg)
{
    static const struct conn_events events = {.up = on_up, .down = on_down};

    *n = (struct node){.context = context, .up = up, .arg = arg};
    n->endpoint = (struct endpoint){.context = context, .address = *address};
    conn_init(&n->commands, &n->endpoint, CONN_COMMANDS, &events, n);
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
