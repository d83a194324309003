/* SPDX-License-Identifier: MIT */
#include "bench/report.h"
#include "cli/json.h"
#include <stdio.h>
#include <unistd.h>

/* PHASE_WHAT; valid until the fourth call after. */
static const char *member_name(const char *phase, const char *what)
{
    static char slots[4][64];
    static unsigned turn;
    char *slot = slots[turn++ % 4];

    snprintf(slot, sizeof slots[0], "%s_%s", phase, what);
    return slot;
}

static void write_percentiles(struct json *j, const char *name, const struct histogram *h)
{
    for (int i = 0; i < N_PERCENTILES; i++) {
        char what[24];
        snprintf(what, sizeof what, "%s_ms", percentiles[i].json);
        json_ms(j, member_name(name, what), histogram_percentile(h, percentiles[i].per_myriad));
    }
}

static void write_costs(struct json *j, const char *phase, const struct costs *c)
{
    if (c->server_known) {
        json_ms(j, member_name(phase, "server_us_per_job"), c->server_us);
        json_ms(j, member_name(phase, "scripts_per_job"), c->scripts);
        json_ms(j, member_name(phase, "commands_per_job"), c->commands);
    }
    json_ms(j, member_name(phase, "producer_us_per_job"), c->producer_us);
    if (c->others_known) {
        json_ms(j, member_name(phase, "others_us_per_job"), c->others_us);
    }
}

/* A phase without listeners. */
static void write_stored(struct json *j, const struct phase *p)
{
    struct costs c = phase_costs(p, p->load.stored);

    json_int(j, member_name(p->name, "asked"), (int64_t)p->load.n);
    json_int(j, member_name(p->name, "stored"), (int64_t)p->load.stored);
    json_int(j, member_name(p->name, "stored_per_s"), load_rate(&p->load));
    write_costs(j, p->name, &c);
    if (c.server_known) {
        json_ms(j, member_name(p->name, "bytes_per_job"), phase_bytes_per_job(p));
    }
}

static void write_stats(struct json *j, const struct phase *p)
{
    const struct lapse_stats *before = &p->before.stats;
    const struct lapse_stats *after = &p->after.stats;

#define LAPSE_X(stat, text) \
    json_int(j, member_name(p->name, "stats_" #stat), (int64_t)(after->stat - before->stat));
    LAPSE_STATS(LAPSE_X)
#undef LAPSE_X
}

/* A phase that runs jobs. */
static void write_ran(struct json *j, const struct phase *p)
{
    struct costs c = phase_costs(p, p->settled);
    char late[32];

    json_int(j, member_name(p->name, "asked"), (int64_t)p->load.n);
    json_int(j, member_name(p->name, "stored"), (int64_t)p->load.stored);
    json_int(j, member_name(p->name, "failed"), (int64_t)p->load.failed);
    json_int(j, member_name(p->name, "settled"), (int64_t)p->settled);
    json_int(j, member_name(p->name, "lost"), (int64_t)p->lost);
    json_int(j, member_name(p->name, "twice"), (int64_t)p->twice);
    json_int(j, member_name(p->name, "early"), (int64_t)p->early);
    json_int(j, member_name(p->name, "foreign"), (int64_t)p->foreign);
    json_int(j, member_name(p->name, "stored_per_s"), load_rate(&p->load));
    json_int(j, member_name(p->name, "settled_per_s"), phase_settled_per_s(p));

    snprintf(late, sizeof late, "%s_claimed_late", p->name);
    write_percentiles(j, late, &p->claimed);
    snprintf(late, sizeof late, "%s_started_late", p->name);
    write_percentiles(j, late, &p->started);
    json_ms(j, member_name(p->name, "started_error_ms"), p->clock_error_us);

    write_costs(j, p->name, &c);
    json_ms(j, member_name(p->name, "listeners_us_per_job"), c.listeners_us);
    json_ms(j, member_name(p->name, "allocs_per_job"), c.allocs);
    json_ms(j, member_name(p->name, "empty_claims_per_job"), c.empty);
    json_ms(j, member_name(p->name, "touches_per_job"), c.touches);
    json_int(j, member_name(p->name, "listener_rss_kib"), p->rss_kib);
    write_stats(j, p);
}

static void write_idle(struct json *j, const struct bench *b)
{
    struct costs c = phase_costs(&b->idle, 0);

    json_int(j, "idle_ms", b->plan.idle_ms);
    if (c.server_known) {
        json_ms(j, "idle_scripts_per_s", c.scripts_per_s);
        json_ms(j, "idle_commands_per_s", c.commands_per_s);
        json_ms(j, "idle_server_percent", c.server_percent);
    }
    json_ms(j, "idle_listeners_percent", c.listeners_percent);
    if (c.others_known) {
        json_ms(j, "idle_others_percent", c.others_percent);
    }
}

static void write_cancel(struct json *j, const struct phase *p)
{
    json_int(j, "cancel_asked", (int64_t)p->load.n);
    json_int(j, "cancel_stored", (int64_t)p->load.stored);
    json_int(j, "cancel_settled", (int64_t)p->settled);
    json_int(j, "cancel_lost", (int64_t)p->lost);
    json_int(j, "cancel_twice", (int64_t)p->twice);
    json_int(j, "cancel_heard", (int64_t)p->heard.n);
    write_percentiles(j, "cancel_heard", &p->heard);
}

static void write_network(struct json *j, const struct bench *b)
{
    int64_t direct_us = histogram_percentile(&b->proxy.direct, MEDIAN);
    int64_t through_us = histogram_percentile(&b->proxy.through, MEDIAN);

    json_ms(j, "rtt_ms", b->plan.rtt_us);
    json_ms(j, "rtt_ping_direct_ms", direct_us);
    json_ms(j, "rtt_ping_through_ms", through_us);
    json_ms(j, "rtt_own_ms", through_us - direct_us - b->plan.rtt_us);
}

void report_json(const struct bench *b)
{
    struct json j;

    json_begin(&j, stdout);
    json_text(&j, "lapse", LAPSE_VERSION);
    json_text(&j, "redis", b->redis_at_start.version);
    json_int(&j, "redis_hz", b->redis_at_start.hz);
    json_int(&j, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
    json_text(&j, "queue", b->plan.queue);
    json_int(&j, "listeners", b->plan.listeners);
    json_int(&j, "body_bytes", b->plan.body_len);

    if (b->waiting.on) {
        write_stored(&j, &b->waiting);
    }
    if (b->idle.on) {
        write_idle(&j, b);
    }
    if (b->schedule.on) {
        write_stored(&j, &b->schedule);
        write_stored(&j, &b->single);
        write_percentiles(&j, "single", &b->answers);
        write_percentiles(&j, "ping", &b->pings);
    }
    if (b->rate.on) {
        json_int(&j, "rate_asked_per_s", b->plan.rate);
        json_int(&j, "rate_duration_ms", b->plan.duration_ms);
        json_int(&j, "rate_delay_ms", b->plan.delay_ms);
        write_ran(&j, &b->rate);
    }
    if (b->burst.on) {
        write_ran(&j, &b->burst);
        json_int(&j, "burst_stored_after_due", (int64_t)b->burst.load.late);
        json_ms(&j, "burst_ms", b->burst.settling_us);
        json_ms(&j, "burst_ping_max_ms", b->burst.longest_ping_us);
    }
    if (b->plan.rtt_us >= 0) {
        write_network(&j, b);
    }
    if (b->cancel.on) {
        write_cancel(&j, &b->cancel);
    }
    if (*b->place) {
        json_text(&j, "server", b->place);
        json_int(&j, "masters", b->n_masters);
    }

    json_end(&j);
}
