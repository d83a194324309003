/* SPDX-License-Identifier: MIT */
/* What the bench found, for people and for programs. JSON members keep their names and order for
 * ever, new ones go to the end; a part that was not asked for has none, and what this user may not
 * know (INFO) is left out. */
#include "bench/bench.h"
#include "cli/json.h"
#include <inttypes.h>
#include <unistd.h>

static const struct {
    const char *name;
    unsigned at;
} percentiles[] = {{"p50", 5000}, {"p90", 9000}, {"p99", 9900}, {"p99_9", 9990}, {"max", 10000}};
enum { N_PERCENTILES = sizeof percentiles / sizeof *percentiles };

static const char *grouped(uint64_t n)
{
    static char slots[8][32];
    static unsigned turn;
    char *at = slots[turn++ % 8] + 31;
    int digits = 0;

    for (*at = '\0'; !digits || n; n /= 10) {
        if (digits && digits % 3 == 0) {
            *--at = ',';
        }
        digits++;
        *--at = (char)('0' + n % 10);
    }

    return at;
}

/* ---- what follows from two marks; in thousandths, so that both forms show three decimals ---- */
struct costs {
    int known;
    int64_t server_us, scripts, commands; /* a job */
    int64_t listeners_us, producer_us, allocs, empty, touches;
    int64_t per_s_scripts, per_s_commands, server_percent, listeners_percent;
};

static int64_t thousandths(int64_t value, uint64_t of)
{
    return of ? value * 1000 / (int64_t)of : 0;
}

static struct costs costs_of(const struct part *p, uint64_t jobs)
{
    const struct mark *a = &p->from;
    const struct mark *b = &p->to;
    uint64_t us = (uint64_t)(b->us - a->us);
    struct costs c = {.known = a->info.known && b->info.known};
    int64_t server_us = b->info.cpu_us - a->info.cpu_us;
    int64_t listeners_us = b->listeners_us - a->listeners_us;

    c.server_us = thousandths(server_us, jobs);
    c.scripts = thousandths(b->info.scripts - a->info.scripts, jobs);
    c.commands = thousandths(b->info.commands - a->info.commands, jobs);
    c.listeners_us = thousandths(listeners_us, jobs);
    c.producer_us = thousandths(b->producer_us - a->producer_us, jobs);
    c.allocs = thousandths((int64_t)(b->allocs - a->allocs), jobs);
    c.empty = thousandths((int64_t)(b->stats.empty_claims - a->stats.empty_claims), jobs);
    c.touches = thousandths((int64_t)(b->stats.touches - a->stats.touches), jobs);
    c.per_s_scripts = thousandths((b->info.scripts - a->info.scripts) * 1000000, us);
    c.per_s_commands = thousandths((b->info.commands - a->info.commands) * 1000000, us);
    c.server_percent = thousandths(server_us * 100, us);
    c.listeners_percent = thousandths(listeners_us * 100, us);

    return c;
}

static int64_t bytes_each(const struct part *p)
{
    return thousandths(p->to.info.memory - p->from.info.memory, p->ask.stored);
}

static int64_t settled_per_s(const struct part *p)
{
    int64_t took = p->settle_us > p->ask.at_least_us ? p->settle_us : p->ask.at_least_us;
    return took > 0 ? (int64_t)p->settled * 1000000 / took : 0;
}

/* ---- JSON ---- */
static const char *named(const char *part, const char *what)
{
    static char slots[4][64];
    static unsigned turn;
    char *at = slots[turn++ % 4];
    snprintf(at, sizeof slots[0], "%s_%s", part, what);
    return at;
}

static void json_spread(struct json *j, const char *name, const struct spread *s)
{
    for (int i = 0; i < N_PERCENTILES; i++) {
        char what[24];
        snprintf(what, sizeof what, "%s_ms", percentiles[i].name);
        json_ms(j, named(name, what), spread_at(s, percentiles[i].at));
    }
}

static void json_server(struct json *j, const char *part, const struct costs *c)
{
    if (c->known) {
        json_ms(j, named(part, "server_us_per_job"), c->server_us);
        json_ms(j, named(part, "scripts_per_job"), c->scripts);
        json_ms(j, named(part, "commands_per_job"), c->commands);
    }
    json_ms(j, named(part, "producer_us_per_job"), c->producer_us);
}

static void json_store(struct json *j, const char *part, const struct part *p)
{
    struct costs c = costs_of(p, p->ask.stored);

    json_int(j, named(part, "asked"), (int64_t)p->ask.n);
    json_int(j, named(part, "stored"), (int64_t)p->ask.stored);
    json_int(j, named(part, "stored_per_s"), ask_per_second(&p->ask));
    json_server(j, part, &c);
    if (c.known) {
        json_ms(j, named(part, "bytes_per_job"), bytes_each(p));
    }
}

static void json_run(struct json *j, const char *part, const struct part *p)
{
    struct costs c = costs_of(p, p->settled);
    char name[32];

    json_int(j, named(part, "asked"), (int64_t)p->ask.n);
    json_int(j, named(part, "stored"), (int64_t)p->ask.stored);
    json_int(j, named(part, "failed"), (int64_t)p->ask.failed);
    json_int(j, named(part, "settled"), (int64_t)p->settled);
    json_int(j, named(part, "lost"), (int64_t)p->lost);
    json_int(j, named(part, "twice"), (int64_t)p->twice);
    json_int(j, named(part, "early"), (int64_t)p->early);
    json_int(j, named(part, "foreign"), (int64_t)p->foreign);
    json_int(j, named(part, "stored_per_s"), ask_per_second(&p->ask));
    json_int(j, named(part, "settled_per_s"), settled_per_s(p));
    snprintf(name, sizeof name, "%s_claimed_late", part);
    json_spread(j, name, &p->claimed);
    snprintf(name, sizeof name, "%s_started_late", part);
    json_spread(j, name, &p->started);
    json_ms(j, named(part, "started_error_ms"), p->clock_error_us);
    json_server(j, part, &c);
    json_ms(j, named(part, "listeners_us_per_job"), c.listeners_us);
    json_ms(j, named(part, "allocs_per_job"), c.allocs);
    json_ms(j, named(part, "empty_claims_per_job"), c.empty);
    json_ms(j, named(part, "touches_per_job"), c.touches);
    json_int(j, named(part, "listener_rss_kib"), p->rss_kb);
#define LAPSE_X(stat, text)                         \
    snprintf(name, sizeof name, "stats_%s", #stat); \
    json_int(j, named(part, name), (int64_t)(p->to.stats.stat - p->from.stats.stat));
    LAPSE_STATS(LAPSE_X)
#undef LAPSE_X
}

void print_bench_json(const struct bench *b)
{
    struct json j;

    json_begin(&j, stdout);
    json_text(&j, "lapse", LAPSE_VERSION);
    json_text(&j, "redis", b->now.version);
    json_int(&j, "redis_hz", b->now.hz);
    json_int(&j, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
    json_text(&j, "queue", b->queue);
    json_int(&j, "listeners", b->listeners);
    json_int(&j, "body_bytes", b->body);
    if (b->fill.on) {
        json_store(&j, "waiting", &b->fill);
    }

    if (b->idle.on) {
        struct costs c = costs_of(&b->idle, 0);
        json_int(&j, "idle_ms", b->idle_ms);
        if (c.known) {
            json_ms(&j, "idle_scripts_per_s", c.per_s_scripts);
            json_ms(&j, "idle_commands_per_s", c.per_s_commands);
            json_ms(&j, "idle_server_percent", c.server_percent);
        }
        json_ms(&j, "idle_listeners_percent", c.listeners_percent);
    }

    if (b->many.on) {
        json_store(&j, "schedule", &b->many);
        json_store(&j, "single", &b->single);
        json_spread(&j, "single", &b->answers);
        json_spread(&j, "ping", &b->pings);
    }

    if (b->steady.on) {
        json_int(&j, "rate_asked_per_s", b->rate);
        json_int(&j, "rate_duration_ms", b->duration_ms);
        json_int(&j, "rate_delay_ms", b->delay_ms);
        json_run(&j, "rate", &b->steady);
    }

    if (b->salvo.on) {
        json_run(&j, "burst", &b->salvo);
        json_int(&j, "burst_stored_after_due", (int64_t)b->salvo.ask.late);
        json_ms(&j, "burst_ms", b->salvo.settle_us);
        json_ms(&j, "burst_ping_max_ms", b->salvo.ping_us);
    }

    json_end(&j);
}

/* ---- for people ---- */
static void print_spread(const char *what, const struct spread *s, const char *note)
{
    printf("  %-13s", what);
    for (int i = 0; i < N_PERCENTILES; i++) {
        printf("%s %.3f  ", i == 3 ? "p99.9" : percentiles[i].name,
               (double)spread_at(s, percentiles[i].at) / 1000);
    }
    printf("ms%s\n", note);
}

#define D(value) ((double)(value) / 1000)

static void print_store(const char *what, const struct part *p)
{
    struct costs c = costs_of(p, p->ask.stored);

    printf("%-14s %s of %s jobs stored, %s/s", what, grouped(p->ask.stored), grouped(p->ask.n),
           grouped((uint64_t)ask_per_second(&p->ask)));
    if (c.known) {
        printf("; each %.1f us of server CPU, %.2f scripts, %.0f bytes", D(c.server_us),
               D(c.scripts), D(bytes_each(p)));
    }
    printf("; producer %.1f us\n", D(c.producer_us));
}

static void print_run(const struct part *p)
{
    struct costs c = costs_of(p, p->settled);
    char note[64];

    printf("  %-13s%s asked, %s stored, %s settled; %s lost, %s twice, %s early\n", "jobs",
           grouped(p->ask.n), grouped(p->ask.stored), grouped(p->settled), grouped(p->lost),
           grouped(p->twice), grouped(p->early));
    if (p->foreign) {
        printf("  %-13s%s jobs that are not of this bench ran here\n", "foreign",
               grouped(p->foreign));
    }

    print_spread("claimed late", &p->claimed, "");
    snprintf(note, sizeof note, " (+-%.3f)", D(p->clock_error_us));
    print_spread("started late", &p->started, note);

    if (c.known) {
        printf(
            "  %-13s%.1f us CPU, %.2f scripts, %.1f commands a job (those in scripts included)\n",
            "server", D(c.server_us), D(c.scripts), D(c.commands));
    }

    printf("  %-13s%.1f us CPU, %.2f allocations, %.3f empty claims, %.3f touches a job; peak RSS "
           "%.1f MiB\n",
           "listeners", D(c.listeners_us), D(c.allocs), D(c.empty), D(c.touches),
           (double)p->rss_kb / 1024);
    printf("  %-13s%.1f us CPU a job\n", "producer", D(c.producer_us));
    printf("  %-13s%s by event, %s by notice, %s by alarm, %s by sweep\n", "claimed",
           grouped(p->to.stats.via_event - p->from.stats.via_event),
           grouped(p->to.stats.via_notice - p->from.stats.via_notice),
           grouped(p->to.stats.via_alarm - p->from.stats.via_alarm),
           grouped(p->to.stats.via_sweep - p->from.stats.via_sweep));
}

void print_bench(const struct bench *b)
{
    printf("lapse %s on Redis %s (hz %d) at %s, %ld CPUs; %u listeners, bodies of %d bytes\n",
           LAPSE_VERSION, *b->now.version ? b->now.version : "?", (int)b->now.hz,
           printable(b->g->shown_url), sysconf(_SC_NPROCESSORS_ONLN), b->listeners, b->body);
    if (b->fill.on) {
        print_store("waiting", &b->fill);
    }

    if (b->idle.on) {
        struct costs c = costs_of(&b->idle, 0);
        printf("%-14s ", "idle");
        if (c.known) {
            printf("%.2f scripts/s, %.2f commands/s, %.3f %% of a CPU in the server, ",
                   D(c.per_s_scripts), D(c.per_s_commands), D(c.server_percent));
        }
        printf("%.3f %% in the listeners; for %.1f s\n", D(c.listeners_percent), D(b->idle_ms));
    }

    if (b->many.on) {
        print_store("in flight", &b->many);
        print_store("one at a time", &b->single);
        print_spread("answered in", &b->answers, "");
        print_spread("a PING's", &b->pings, "");
    }

    if (b->steady.on) {
        printf("%-14s %s/s asked for %.1f s, %s/s stored, %s/s settled; due %.3f s ahead\n", "rate",
               grouped(b->rate), D(b->duration_ms),
               grouped((uint64_t)ask_per_second(&b->steady.ask)),
               grouped((uint64_t)settled_per_s(&b->steady)), D(b->delay_ms));
        print_run(&b->steady);
    }

    if (b->salvo.on) {
        printf("%-14s %s due in one millisecond: settled in %.1f ms, %s/s; another client's PING "
               "at most %.3f ms\n",
               "burst", grouped(b->salvo.ask.stored), D(b->salvo.settle_us),
               grouped((uint64_t)settled_per_s(&b->salvo)), D(b->salvo.ping_us));
        if (b->salvo.ask.late) {
            printf("  %-13s%s were stored after they were due: that is in the time, too\n",
                   "not in time", grouped(b->salvo.ask.late));
        }
        print_run(&b->salvo);
    }
}
