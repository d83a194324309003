/* SPDX-License-Identifier: MIT */
#include "redis/node.h"
#include "base/error.h"
#include "base/mem.h"

enum { CLOCK_STEP_US = 1000000 };

static void on_up(void *arg)
{
    struct node *n = arg;

    if (n->sentinel) {
        n->sentinel->endpoint.commands_up = true;
        sentinel_trust(n->sentinel);
    }
    n->events->up(n->arg, n);
    if (n->fence_begun) {
        conn_start(&n->fence);
    }
}

static void node_is_down(struct node *n)
{
    if (n->events->down) {
        n->events->down(n->arg, n);
    }
}

static void on_down(void *arg)
{
    struct node *n = arg;

    n->scripts = 0;
    if (n->fence_begun) {
        conn_drop(&n->fence);
    }
    if (n->sentinel) {
        n->sentinel->endpoint.commands_up = false;
        sentinel_doubt(n->sentinel);
    }
    node_is_down(n);
}

static void on_failed(void *arg)
{
    struct node *n = arg;

    if (n->sentinel) {
        sentinel_doubt(n->sentinel);
    }
    node_is_down(n);
}

static void on_error(void *arg, struct span error)
{
    struct node *n = arg;

    if (n->events->error) {
        n->events->error(n->arg, n, error);
    }
}

/* All connections to the old master end at once, for it may take writes for a while that are lost
 * later. */
static void node_move(struct node *n)
{
    const struct report *of_sentinel = &n->sentinel->conn.report;
    char place[REPORT_PLACE];

    n->context->stats.failovers++;
    n->clock_is_old = true;
    report_moved(&n->commands.report, report_place(of_sentinel, place));
    LIST_EACH (i, &n->endpoint.conns) {
        conn_move(CONTAINER(i, struct conn, of_endpoint));
    }
}

static void on_found(void *arg, const char *host, int port)
{
    struct node *n = arg;
    bool is_first = n->endpoint.address.host == NULL;

    endpoint_set_place(&n->endpoint, host, port);
    if (is_first) {
        conn_start(&n->commands);
    } else {
        node_move(n);
    }
}

int node_init(struct node *n, struct context *context, const struct address *address,
              const struct node_events *events, void *arg)
{
    static const struct conn_events conn_events = {
        .up = on_up, .down = on_down, .failed = on_failed, .error = on_error};

    *n = (struct node){.context = context, .events = events, .arg = arg};
    n->wants_copies = context->options.replicas > 0;
    endpoint_init(&n->endpoint, context, address);
    conn_init(&n->commands, &n->endpoint, CONN_COMMANDS, &conn_events, n);
    if (address->kind != ADDRESS_SENTINEL) {
        return 0;
    }

    n->sentinel = mem_new(sizeof *n->sentinel, 0);
    if (!n->sentinel) {
        return LAPSE_ENOMEM;
    }
    sentinel_init(n->sentinel, context, address, on_found, n);
    return 0;
}

void node_start(struct node *n)
{
    if (n->sentinel) {
        sentinel_start(n->sentinel);
    } else {
        conn_start(&n->commands);
    }
}

int node_login_err(const struct node *n)
{
    const struct sentinel *s = n->sentinel;

    if (s && s->endpoint.login_err && !node_up(n)) {
        return s->endpoint.login_err;
    }
    return n->endpoint.login_err;
}

bool node_is_replica(struct node *n)
{
    if (n->sentinel) {
        conn_retire(&n->commands);
    }
    return n->sentinel != NULL;
}

void node_close(struct node *n)
{
    if (n->sentinel) {
        sentinel_close(n->sentinel);
        mem_free(n->sentinel);
        n->sentinel = NULL;
    }
    conn_close(&n->commands, LAPSE_ELOST);
    node_end_fence(n);
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

void node_end_fence(struct node *n)
{
    if (n->fence_begun) {
        conn_close(&n->fence, LAPSE_ELOST);
        n->fence_begun = false;
        n->copies_waited = false;
        n->copies_in_vain = false;
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

/* The clock of another server is not that of the last one, which was set. */
static void node_begin_clock(struct node *n, int64_t sent_us, int64_t server_us)
{
    struct server_clock before = n->clock;
    int64_t ahead_us;

    n->clock = (struct server_clock){.known = false};
    server_clock_heard(&n->clock, sent_us, clock_us(), server_us);
    n->clock_is_old = false;

    ahead_us = n->clock.offset_us - before.offset_us;
    if (before.known && (ahead_us >= CLOCK_STEP_US || ahead_us <= -CLOCK_STEP_US)) {
        log_line(&n->context->log, LOG_CLOCK, LOG_WARNING,
                 "the clock of the new master is %.3f s ahead of that of the old one (less than 0: "
                 "behind it); what is due goes by it",
                 (double)ahead_us / 1e6);
    }
}

/* What is due, and when a lease ends, goes by Redis's clock: people will ask why all jobs ran at
 * once, or none did. */
void node_heard_clock(struct node *n, int64_t sent_us, int64_t server_us)
{
    if (n->clock_is_old) {
        node_begin_clock(n, sent_us, server_us);
        return;
    }

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
    return node_knows_time(n) ? server_clock_us(&n->clock, clock_us()) : clock_wall_us();
}

int64_t node_mono_us(const struct node *n, int64_t server_us)
{
    if (!node_knows_time(n)) {
        return clock_us() + server_us - clock_wall_us();
    }
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
