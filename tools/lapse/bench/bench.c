/* SPDX-License-Identifier: MIT */
/* lapse bench: measures lapse on the user's own Redis, in a queue of its own, which is removed
 * afterwards however the run ends (after kill -9 by the next run with that queue). The order of
 * things is what makes it safe: the queue is checked before anything is scheduled; listeners are
 * forked before the library connects; at the end they stop first, then our own requests are
 * answered or given up, and only then the queue is erased.
 *
 * Files: bench.h has what a run is, run.c its phases; phase.c, load.c, stops.c and listeners.c are
 * one phase, its jobs and its processes, listener.c is one such process; servers.c is whom we ask
 * beside the library, bench_queue.c the queue there; proxy.c is the network between listeners and
 * Redis, relay.c its process, delay_line.c one way of a connection; report_*.c is what is printed.
 */
#include "bench/bench.h"
#include "bench/report.h"
#include "base/span.h"
#include "bench/run.h"
#include "cli/arguments.h"
#include "cli/message.h"
#include "cli/url_mask.h"
#include "cli/values.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_JOBS = 100000000,
    MOST_LISTENERS = 256,
    MOST_BODY = 1 << 20,
    MOST_MS = 24 * 3600000,
    MOST_RTT_US = 1000000,
    MANY_JOBS = 100000, /* their removal takes so long that a message says so */
    N_LISTENING = 4,    /* phases with listeners */
};

static int out_of_memory(void)
{
    message_print("out of memory");
    return INTERNAL;
}

/* ---- start ---- */
/* From the password and the URL, wherever they came from. */
static int take_url(struct bench *b)
{
    int code = url_make(b->g);
    if (code) {
        return code;
    }

    b->url = strdup(b->g->secret_url);
    url_wipe(b->g);

    return b->url ? DONE : out_of_memory();
}

static int prepare_queue(struct bench *b)
{
    if (!b->plan.queue) {
        /* short: its length shows in the bytes of a job, for each trigger key has it */
        snprintf(b->queue_name, sizeof b->queue_name, "bench-%d", (int)getpid());
        b->plan.queue = b->queue_name;
    }

    b->g->opts.flags |= LAPSE_MAY_EVICT; /* nobody needs these jobs */
    bench_queue_init(&b->queue, &b->servers, b->g->opts.space, b->plan.queue);
    if (!producer_init(&b->producer, &b->loop, b->plan.queue, (size_t)b->plan.body_len)) {
        return out_of_memory();
    }

    int code = bench_queue_connect(&b->queue, b->g, b->url, b->g->connect_wait_ms);
    if (code) {
        return code;
    }

    snprintf(b->place, sizeof b->place, "%s", bench_queue_place(&b->queue));
    b->n_masters = servers_count(&b->servers);
    return bench_queue_check(&b->queue);
}

static int fork_listeners(struct bench *b)
{
    const struct {
        struct phase *phase;
        uint64_t n_jobs;
        bool on;
    } rows[N_LISTENING] = {
        {&b->idle, 0, b->plan.idle_ms > 0},
        {&b->rate, (uint64_t)b->plan.rate * (uint64_t)b->plan.duration_ms / 1000, b->plan.rate > 0},
        {&b->burst, b->plan.burst, b->plan.burst > 0},
        {&b->cancel, b->plan.cancel, b->plan.cancel > 0},
    };
    struct listeners_spec spec = {
        .g = b->g, .url = b->url, .queue = b->plan.queue, .n = b->plan.listeners};

    if (b->plan.rtt_us >= 0) {
        int code = proxy_start(&b->proxy, b->url, b->plan.rtt_us);
        if (code) {
            return code;
        }
        spec.url = b->proxy.url;
        spec.rtt_ms = b->plan.rtt_us / 1000;
    }

    for (int i = 0; i < N_LISTENING; i++) {
        if (!rows[i].on) {
            continue;
        }
        spec.n_jobs = rows[i].n_jobs;
        spec.holds = rows[i].phase == &b->cancel;
        int code = listeners_fork(&rows[i].phase->listeners, &spec);
        if (code) {
            return code;
        }
        spec.forked_before = &rows[i].phase->listeners;
    }

    return DONE;
}

static int open_loop(struct bench *b)
{
    char *shown = b->g->shown_url;
    char *url = strdup(b->url);

    if (!url) {
        return out_of_memory();
    }

    b->g->url = url; /* which url_make() takes apart and masks */
    b->g->password_file = NULL;
    int code = loop_open(&b->loop, b->g, b->plan.queue);

    servers_show(&b->servers, b->g->shown_url);
    free(shown);
    free(url);

    return code;
}

/* ---- end ---- */
/* Redis may be back, and in a cluster another master may have the queue. */
static int find_queue(struct bench *b)
{
    servers_close(&b->servers);
    int code = bench_queue_connect(&b->queue, b->g, b->url, 0);
    if (code) {
        return code;
    }

    const char *place = bench_queue_place(&b->queue);
    if (strcmp(place, b->place) != 0) {
        message_print("queue %s is on %s now; what is printed of its server is of %s",
                      printable(b->plan.queue), place, b->place);
    }
    return DONE;
}

static int erase_queue(struct bench *b)
{
    if (b->producer.next > MANY_JOBS) {
        message_print("removing what is left of %llu jobs", (unsigned long long)b->producer.next);
    }

    int code = DOWN;
    if (b->servers.one.c) {
        code = bench_queue_erase(&b->queue);
    }
    if (!b->servers.one.c) { /* any more, or there is a cluster */
        code = find_queue(b);
        code = code ? code : bench_queue_erase(&b->queue);
    }

    if (code) {
        message_print("jobs may be left in queue %s; lapse bench %s removes them",
                      printable(b->plan.queue), printable(b->plan.queue));
    }

    return code;
}

/* After the phases, or the first that failed with code. */
static int bench_finish(struct bench *b, int code)
{
    listeners_stop(&b->idle.listeners, &b->queue);
    listeners_stop(&b->rate.listeners, &b->queue);
    listeners_stop(&b->burst.listeners, &b->queue);
    listeners_stop(&b->cancel.listeners, &b->queue);
    proxy_stop(&b->proxy);
    if (b->loop.signum) {
        message_print("interrupted; removing the jobs of this run, "
                      "send the signal again to leave them");
    }

    loop_close(&b->loop);
    int erase_code = erase_queue(b);
    if (code) {
        return code;
    }

    if (b->g->json) {
        report_json(b);
    } else {
        report_text(b);
    }

    if (erase_code) {
        return erase_code;
    }

    bool is_broken =
        phase_is_broken(&b->rate) || phase_is_broken(&b->burst) || phase_is_broken(&b->cancel);
    return is_broken ? ANSWER_NO : DONE;
}

static void bench_free(struct bench *b)
{
    servers_close(&b->servers);
    listeners_free(&b->idle.listeners);
    listeners_free(&b->rate.listeners);
    listeners_free(&b->burst.listeners);
    listeners_free(&b->cancel.listeners);
    producer_free(&b->producer);
    if (b->url) {
        explicit_bzero(b->url, strlen(b->url));
    }
    free(b->url);
    free(b);
}

static struct bench *bench_new(struct globals *g)
{
    static const struct listeners none = {.gate = -1, .leash = -1, .alive = -1};
    struct bench *b = calloc(1, sizeof *b);

    if (!b) {
        return NULL;
    }

    b->g = g;
    b->plan.listeners = 1;
    b->plan.body_len = 100;
    b->plan.delay_ms = 1000;
    b->plan.rtt_us = -1;
    b->waiting.name = "waiting";
    b->idle.name = "idle";
    b->idle.listeners = none;
    b->schedule.name = "schedule";
    b->single.name = "single";
    b->rate.name = "rate";
    b->rate.listeners = none;
    b->burst.name = "burst";
    b->burst.listeners = none;
    b->cancel.name = "cancel";
    b->cancel.listeners = none;

    return b;
}

static int bench_run(struct bench *b)
{
    int code = take_url(b);

    if (!code) {
        code = prepare_queue(b);
    }
    if (code) {
        return code;
    }

    code = fork_listeners(b);
    if (!code) {
        code = open_loop(b);
    }
    if (!code) {
        code = run_phases(b);
    }

    return bench_finish(b, code);
}

/* ---- the command line ---- */
static int set_rate(const struct opt *o, char *value, void *field)
{
    size_t len = strlen(value);

    (void)o;
    if (len > 2 && strcmp(value + len - 2, "/s") == 0) {
        value[len - 2] = '\0';
    }
    if (parse_count(value, 1000000, field)) {
        return usage_error("--rate", value, "jobs a second, 1 to 1000000, such as 1000/s");
    }

    return DONE;
}

static int set_body(const struct opt *o, char *value, void *field)
{
    unsigned n = 0;

    (void)o;
    if (strcmp(value, "0") != 0 && parse_count(value, MOST_BODY, &n)) {
        return usage_error("--body", value, "bytes, 0 to 1048576");
    }

    *(int *)field = (int)n;
    return DONE;
}

static int set_jobs(const struct opt *o, char *value, void *field)
{
    char what[24];

    snprintf(what, sizeof what, "--%s", o->name);
    if (parse_count(value, MOST_JOBS, field)) {
        return usage_error(what, value, "jobs, 1 to 100000000");
    }

    return DONE;
}

static int set_rtt(const struct opt *o, char *value, void *field)
{
    struct span text = span_of(value);
    int64_t us = -1;
    int64_t ms;

    (void)o;
    if (parse_duration(value, &ms) == 0) {
        us = ms <= MOST_RTT_US / 1000 ? ms * 1000 : -1;
    } else if (text.len > 2 && strcmp(value + text.len - 2, "us") == 0) {
        text.len -= 2;
        span_decimal(text, MOST_RTT_US, &us);
    }
    if (us < 0) {
        return usage_error("--rtt", value, "a round trip, 0us to 1s, such as 200us or 5ms");
    }

    *(int64_t *)field = us;
    return DONE;
}

static int set_listeners(const struct opt *o, char *value, void *field)
{
    (void)o;
    if (parse_count(value, MOST_LISTENERS, field)) {
        return usage_error("--listeners", value, "processes, 1 to 256");
    }

    return DONE;
}

#define AT(field) offsetof(struct bench_plan, field)
static const struct opt opts[] = {
    {"rate", 0, "N/s", set_rate, AT(rate), "jobs that fall due in a second; 1000/s"},
    {"duration", 0, "DURATION", set_duration, AT(duration_ms), "for how long they do; 10s"},
    {"delay", 0, "DURATION", set_duration, AT(delay_ms),
     "from the scheduling of a job until it is due; 1s, may be 0s"},
    {"listeners", 0, "N", set_listeners, AT(listeners), "processes that run the jobs; 1"},
    {"rtt", 0, "DURATION", set_rtt, AT(rtt_us),
     "put a proxy between listeners and Redis that makes each\nround trip so much longer, such as "
     "200us or 5ms"},
    {"waiting", 0, "N", set_jobs, AT(waiting),
     "first fill the queue with N jobs that are far from due"},
    {"body", 0, "BYTES", set_body, AT(body_len), "size of the body of each job; 100"},
    {"burst", 0, "N", set_jobs, AT(burst), "N jobs that are due in the same millisecond"},
    {"schedule", 0, "N", set_jobs, AT(schedule),
     "only store N jobs, many in flight; then N/10, each after the\nanswer to the one before"},
    {"idle", 0, "DURATION", set_duration, AT(idle_ms),
     "how long to measure listeners while no job is due"},
    {"cancel", 0, "N", set_jobs, AT(cancel),
     "N jobs, one after the other, that are asked to stop while they\nrun: how long until their "
     "listener hears of it"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

static int check_plan(struct bench_plan *plan)
{
    bool runs_something_else = plan->burst || plan->schedule || plan->idle_ms || plan->cancel;

    if (!plan->rate && (plan->duration_ms || !runs_something_else)) {
        plan->rate = 1000;
    }
    if (!plan->duration_ms) {
        plan->duration_ms = 10000;
    }

    if (plan->duration_ms > MOST_MS || plan->delay_ms > MOST_MS || plan->idle_ms > MOST_MS) {
        return usage_errorf("--duration, --delay and --idle are at most a day each");
    }

    uint64_t jobs = (uint64_t)plan->rate * (uint64_t)plan->duration_ms / 1000;
    if (plan->rate && (jobs == 0 || jobs > MOST_JOBS)) {
        return usage_errorf("%u jobs a second for %lld ms are %llu jobs: at least 1, at most %d",
                            plan->rate, (long long)plan->duration_ms, (unsigned long long)jobs,
                            MOST_JOBS);
    }

    return plan->queue ? check_queue(plan->queue) : DONE;
}

static int run_bench(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct bench *b = bench_new(g);

    if (!b) {
        return out_of_memory();
    }

    int code = arguments_read(cmd, g, &b->plan, args);
    b->plan.queue = args->n > 0 ? args->v[0] : NULL;
    if (!code) {
        code = check_plan(&b->plan);
    }
    if (!code) {
        code = bench_run(b);
    }

    bench_free(b);

    return code;
}

const struct command cmd_bench = {
    "bench",
    "[QUEUE] [--rate N/s] [--waiting N] [--listeners N] [--burst N] ...",
    "measure lapse on this Redis, in a queue of its own",
    0,
    1,
    opts,
    "Schedules jobs, runs them in listeners that are processes of their own, and prints how late\n"
    "they were and what they cost. QUEUE must not be in use; without it a new one is made. It is\n"
    "removed afterwards, also after INT or TERM. No other key is touched, but Redis is as busy as\n"
    "you ask for: do not run this on a Redis that others need.\n"
    "\n"
    "What was asked for runs in this order: --waiting, --idle, --schedule, --rate, --burst,\n"
    "--cancel.\n"
    "claimed late: from the due moment to the claim, both by Redis's clock. started late: from\n"
    "the due moment to the start of the handler, by this machine's clock set to Redis's; by how\n"
    "much it may be wrong is printed. Both are exact to 1 us below 2 ms, and to 0.1 % above. With\n"
    "--rtt only the listeners are far from Redis; by how much the proxy itself lengthens a round\n"
    "trip is printed. A rate that cannot be reached shows in stored/s and settled/s. CPU of the\n"
    "server, scripts and commands are those of INFO, with those of other clients; in a cluster\n"
    "of the master that has QUEUE, with the CPU of the other masters beside it.\n"
    "\nexamples:\n"
    "  lapse bench --rate 1000/s --waiting 100000\n"
    "  lapse bench --listeners 4 --rate 5000/s --duration 30s --delay 0s\n"
    "  lapse bench --rate 300/s --rtt 1ms\n"
    "  lapse bench --burst 100000 --schedule 100000 --idle 10s --json | jq .burst_per_s\n",
    "  1   a job was lost, early, or ran twice\n"
    "  128 and more: ended by a signal, 128 plus its number; the queue has been removed\n",
    run_bench,
};
