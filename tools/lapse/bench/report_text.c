/* SPDX-License-Identifier: MIT */
#include "bench/report.h"
#include "cli/message.h"
#include <stdio.h>
#include <unistd.h>

const struct percentile percentiles[N_PERCENTILES] = {
    {"p50", "p50", MEDIAN},   {"p90", "p90", 9000},  {"p99", "p99", 9900},
    {"p99_9", "p99.9", 9990}, {"max", "max", 10000},
};

/* 1,234,567; valid until the eighth call after. */
static const char *grouped(uint64_t n)
{
    static char slots[8][32];
    static unsigned turn;
    char *at = slots[turn++ % 8] + 31;

    *at = '\0';
    for (int digits = 0; digits == 0 || n > 0; digits++) {
        if (digits > 0 && digits % 3 == 0) {
            *--at = ',';
        }
        *--at = (char)('0' + n % 10);
        n /= 10;
    }

    return at;
}

/* From thousandths. */
static double decimal(int64_t thousandths)
{
    return (double)thousandths / 1000;
}

static void print_percentiles(const char *what, const struct histogram *h, const char *note)
{
    printf("  %-13s", what);
    for (int i = 0; i < N_PERCENTILES; i++) {
        int64_t us = histogram_percentile(h, percentiles[i].per_myriad);
        printf("%s %.3f  ", percentiles[i].text, decimal(us));
    }
    printf("ms%s\n", note);
}

/* A phase without listeners. */
static void print_stored(const char *what, const struct phase *p)
{
    struct costs c = phase_costs(p, p->load.stored);

    printf("%-14s %s of %s jobs stored, %s/s", what, grouped(p->load.stored), grouped(p->load.n),
           grouped((uint64_t)load_rate(&p->load)));
    if (c.server_known) {
        printf("; each %.1f us of server CPU, %.2f scripts, %.0f bytes", decimal(c.server_us),
               decimal(c.scripts), decimal(phase_bytes_per_job(p)));
    }
    if (c.others_known) {
        printf("; other masters %.1f us", decimal(c.others_us));
    }
    printf("; producer %.1f us\n", decimal(c.producer_us));
}

static void print_jobs(const struct phase *p)
{
    char note[64];

    printf("  %-13s%s asked, %s stored, %s settled; %s lost, %s twice, %s early\n", "jobs",
           grouped(p->load.n), grouped(p->load.stored), grouped(p->settled), grouped(p->lost),
           grouped(p->twice), grouped(p->early));
    if (p->foreign > 0) {
        printf("  %-13s%s jobs that are not of this bench ran here\n", "foreign",
               grouped(p->foreign));
    }

    print_percentiles("claimed late", &p->claimed, "");
    snprintf(note, sizeof note, " (+-%.3f)", decimal(p->clock_error_us));
    print_percentiles("started late", &p->started, note);
}

static void print_triggers(const struct phase *p)
{
    const struct lapse_stats *before = &p->before.stats;
    const struct lapse_stats *after = &p->after.stats;

    printf("  %-13s%s by touch, %s by event, %s by notice, %s by alarm, %s by sweep\n", "claimed",
           grouped(after->via_touch - before->via_touch),
           grouped(after->via_event - before->via_event),
           grouped(after->via_notice - before->via_notice),
           grouped(after->via_alarm - before->via_alarm),
           grouped(after->via_sweep - before->via_sweep));
}

/* A phase that runs jobs. */
static void print_ran(const struct phase *p)
{
    struct costs c = phase_costs(p, p->settled);

    print_jobs(p);
    if (c.server_known) {
        printf("  %-13s%.1f us CPU, %.2f scripts, %.1f commands a job (with those in scripts)\n",
               "server", decimal(c.server_us), decimal(c.scripts), decimal(c.commands));
    }

    if (c.others_known) {
        printf("  %-13s%.1f us CPU a job of the other masters\n", "others", decimal(c.others_us));
    }
    printf("  %-13s%.1f us CPU, %.2f allocations, %.3f empty claims, %.3f touches a job; ",
           "listeners", decimal(c.listeners_us), decimal(c.allocs), decimal(c.empty),
           decimal(c.touches));
    printf("peak RSS %.1f MiB\n", (double)p->rss_kib / 1024);
    printf("  %-13s%.1f us CPU a job\n", "producer", decimal(c.producer_us));
    print_triggers(p);
}

static void print_network(const struct bench *b)
{
    int64_t direct_us = histogram_percentile(&b->proxy.direct, MEDIAN);
    int64_t through_us = histogram_percentile(&b->proxy.through, MEDIAN);

    printf(
        "%-14s %.3f ms a round trip between listeners and Redis; a PING takes %.3f ms, through the "
        "proxy %.3f ms: it adds %.3f ms of its own\n",
        "network", decimal(b->plan.rtt_us), decimal(direct_us), decimal(through_us),
        decimal(through_us - direct_us - b->plan.rtt_us));
}

static void print_idle(const struct bench *b)
{
    struct costs c = phase_costs(&b->idle, 0);

    printf("%-14s ", "idle");
    if (c.server_known) {
        printf("%.2f scripts/s, %.2f commands/s, %.3f %% of a CPU in the server, ",
               decimal(c.scripts_per_s), decimal(c.commands_per_s), decimal(c.server_percent));
    }
    if (c.others_known) {
        printf("%.3f %% in the other masters, ", decimal(c.others_percent));
    }
    printf("%.3f %% in the listeners; for %.1f s\n", decimal(c.listeners_percent),
           decimal(b->plan.idle_ms));
}

static void print_rate(const struct bench *b)
{
    const struct phase *p = &b->rate;

    printf("%-14s %s/s asked for %.1f s, %s/s stored, %s/s settled; due %.3f s ahead\n", "rate",
           grouped(b->plan.rate), decimal(b->plan.duration_ms),
           grouped((uint64_t)load_rate(&p->load)), grouped((uint64_t)phase_settled_per_s(p)),
           decimal(b->plan.delay_ms));
    print_ran(p);
}

static void print_burst(const struct bench *b)
{
    const struct phase *p = &b->burst;

    printf("%-14s %s due in one millisecond: settled in %.1f ms, %s/s; ", "burst",
           grouped(p->load.stored), decimal(p->settling_us),
           grouped((uint64_t)phase_settled_per_s(p)));
    printf("another client's PING at most %.3f ms\n", decimal(p->longest_ping_us));
    if (p->load.late > 0) {
        printf("  %-13s%s were stored after they were due; the time includes that\n", "stored late",
               grouped(p->load.late));
    }
    print_ran(p);
}

static void print_cancel(const struct bench *b)
{
    const struct phase *p = &b->cancel;

    printf("%-14s %s jobs were asked to stop while they ran, one after the other\n", "cancel",
           grouped(p->heard.n));
    printf("  %-13s%s asked, %s stored, %s settled; %s lost, %s twice, %s early\n", "jobs",
           grouped(p->load.n), grouped(p->load.stored), grouped(p->settled), grouped(p->lost),
           grouped(p->twice), grouped(p->early));
    print_percentiles("cancel heard", &p->heard, "");
}

void report_text(const struct bench *b)
{
    const struct redis_info *redis = &b->redis_at_start;

    printf("lapse %s on Redis %s (hz %d) at %s, %ld CPUs; %u listeners, bodies of %d bytes\n",
           LAPSE_VERSION, *redis->version ? redis->version : "?", (int)redis->hz,
           printable(b->g->shown_url), sysconf(_SC_NPROCESSORS_ONLN), b->plan.listeners,
           b->plan.body_len);

    if (*b->place) {
        printf("%-14s %d masters; the queue is on %s\n", "cluster", b->n_masters, b->place);
    }
    if (b->plan.rtt_us >= 0) {
        print_network(b);
    }
    if (b->waiting.on) {
        print_stored("waiting", &b->waiting);
    }
    if (b->idle.on) {
        print_idle(b);
    }
    if (b->schedule.on) {
        print_stored("in flight", &b->schedule);
        print_stored("one at a time", &b->single);
        print_percentiles("answered in", &b->answers, "");
        print_percentiles("a PING's", &b->pings, "");
    }
    if (b->rate.on) {
        print_rate(b);
    }
    if (b->burst.on) {
        print_burst(b);
    }
    if (b->cancel.on) {
        print_cancel(b);
    }
}
