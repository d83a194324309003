/* SPDX-License-Identifier: MIT */
#include "bench/snapshot.h"
#include <time.h>

static int64_t own_cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void snapshot_add_listener(struct snapshot *s, const struct listener_figures *figures)
{
#define LAPSE_X(name, text) s->stats.name += figures->stats.name;
    LAPSE_STATS(LAPSE_X)
#undef LAPSE_X
    s->allocs += figures->allocs;
}

int snapshot_take(struct snapshot *s, const struct bench_queue *queue,
                  const struct listeners *listeners)
{
    struct redis_sync *server = bench_queue_server(queue);

    *s = (struct snapshot){.us = monotonic_us(), .producer_cpu_us = own_cpu_us()};

    if (listeners) {
        s->listeners_cpu_us = listeners_cpu_us(listeners);
        for (unsigned i = 0; i < listeners->n; i++) {
            snapshot_add_listener(s, listeners_figures(listeners, i));
        }
    }

    int err = redis_sync_info(server, &s->info);
    s->others_known = servers_cpu_of_others(queue->servers, server, &s->others_cpu_us);
    return err;
}

int64_t thousandths(int64_t value, uint64_t of)
{
    return of ? value * 1000 / (int64_t)of : 0;
}

struct costs costs_of(const struct snapshot *before, const struct snapshot *after, uint64_t jobs)
{
    uint64_t us = (uint64_t)(after->us - before->us);
    int64_t server_us = after->info.cpu_us - before->info.cpu_us;
    int64_t others_us = after->others_cpu_us - before->others_cpu_us;
    int64_t scripts = after->info.scripts - before->info.scripts;
    int64_t commands = after->info.commands - before->info.commands;
    int64_t listeners_us = after->listeners_cpu_us - before->listeners_cpu_us;
    int64_t producer_us = after->producer_cpu_us - before->producer_cpu_us;
    int64_t allocs = (int64_t)(after->allocs - before->allocs);
    int64_t empty = (int64_t)(after->stats.empty_claims - before->stats.empty_claims);
    int64_t touches = (int64_t)(after->stats.touches - before->stats.touches);

    return (struct costs){
        .server_known = before->info.known && after->info.known,
        .others_known = before->others_known && after->others_known,
        .server_us = thousandths(server_us, jobs),
        .others_us = thousandths(others_us, jobs),
        .scripts = thousandths(scripts, jobs),
        .commands = thousandths(commands, jobs),
        .listeners_us = thousandths(listeners_us, jobs),
        .producer_us = thousandths(producer_us, jobs),
        .allocs = thousandths(allocs, jobs),
        .empty = thousandths(empty, jobs),
        .touches = thousandths(touches, jobs),
        .scripts_per_s = thousandths(scripts * 1000000, us),
        .commands_per_s = thousandths(commands * 1000000, us),
        .server_percent = thousandths(server_us * 100, us),
        .others_percent = thousandths(others_us * 100, us),
        .listeners_percent = thousandths(listeners_us * 100, us),
    };
}
