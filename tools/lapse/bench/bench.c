/* SPDX-License-Identifier: MIT */
/* lapse bench: what lapse does on the user's own Redis, in a queue of its own, which is gone
 * afterwards however the run ended (but by kill -9: then the next run with that queue clears it).
 * The order of things is the whole safety: the queue is looked at before anything is asked;
 * listeners are forked before a connection is made; at the end they stop, then our own requests are
 * answered or given up, and only then the queue is erased. */
#include "bench/bench.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_JOBS = 100000000,
    MOST_LISTENERS = 256,
    MOST_BODY = 1 << 20,
    REPLY_MS = 5000,
    GRACE_MS = 5000,
    MOST_MS = 24 * 3600000,
    MANY = 100000, /* worth a word */
};

/* ---- the loop ---- */
static void on_every(struct ev_loop *loop, ev_timer *w, int events)
{
    (void)loop;
    (void)w;
    (void)events;
}

int bench_until(struct bench *b, int every_ms, int (*over)(void *), void *arg)
{
    ev_timer every;

    ev_timer_init(&every, on_every, every_ms / 1000., every_ms / 1000.);
    if (every_ms) {
        ev_now_update(b->c.loop);
        ev_timer_start(b->c.loop, &every);
    }

    while (b->c.l && !b->signum && !over(arg)) {
        ev_run(b->c.loop, EVRUN_ONCE);
    }

    ev_timer_stop(b->c.loop, &every);
    return b->signum ? 128 + b->signum : b->c.l ? DONE : b->c.code ? b->c.code : DOWN;
}

static void on_signal(struct ev_loop *loop, ev_signal *w, int events)
{
    struct bench *b = w->data;
    (void)loop;
    (void)events;
    b->signum = w->signum;
}

static void on_refused(struct client *c)
{
    struct bench *b = (struct bench *)c;
    if (client_is_denied(c)) { /* all else may pass: the library tries again */
        client_set_exit_code(c, client_report(c, LAPSE_EREFUSED, b->queue));
        client_close(c, 0);
    }
}

/* ---- start and end ---- */
static int prepare(struct bench *b)
{
    const struct lapse_options *o = &b->g->opts;
    int code;

    if (!b->queue) {
        /* short: each trigger's key has it, and its length shows in the bytes that a job takes */
        snprintf(b->name, sizeof b->name, "bench-%d", (int)getpid());
        b->queue = b->name;
    }

    b->g->opts.flags |= LAPSE_MAY_EVICT; /* they are nobody's jobs */
    snprintf(b->key, sizeof b->key, "%s:{%s}:due", o->space ? o->space : "lapse", b->queue);
    b->bytes = malloc((size_t)b->body + 1);
    if ((code = url_make(b->g))) {
        return code;
    }

    b->secret = strdup(b->g->secret_url);
    url_wipe(b->g);
    if (!b->bytes || !b->secret) {
        message_print("out of memory");
        return INTERNAL;
    }

    for (int i = 0; i < b->body; i++) {
        b->bytes[i] = (char)('a' + i % 26);
    }

    code = redis_sync_open(&b->redis, b->secret, b->g->shown_url,
                           o->reply_ms ? o->reply_ms : REPLY_MS, b->g->connect_wait_ms);

    return code ? code : keys_check(&b->redis, b->key, b->queue);
}

static int crews(struct bench *b)
{
    struct part *parts[] = {&b->idle, &b->steady, &b->salvo};
    int code = DONE;
    uint64_t jobs[] = {0, (uint64_t)b->rate * (uint64_t)b->duration_ms / 1000, b->burst};

    for (int i = 0; i < 3; i++) {
        parts[i]->crew = (struct crew){.gate = -1, .leash = -1, .alive = -1};
    }

    for (int i = 0; i < 3 && !code; i++) {
        if (i ? jobs[i] : (uint64_t)b->idle_ms) {
            code = crew_fork(b, &parts[i]->crew, jobs[i]);
        }
    }

    return code;
}

static int start(struct bench *b)
{
    char *url = strdup(b->secret);
    char *shown = b->g->shown_url;
    int code;

    if (!url) {
        message_print("out of memory");
        return INTERNAL;
    }

    b->g->url = url; /* which url_make() takes apart, and blots */
    b->g->password_file = NULL;
    code = client_open(&b->c, b->g, on_refused);
    b->redis.shown = b->g->shown_url;
    free(shown);
    free(url);

    if (!code) {
        signal(SIGCHLD, SIG_DFL); /* libev would reap the listeners, and a pid that was reaped may
                                     be another's */
        ev_signal_init(&b->term, on_signal, SIGTERM);
        ev_signal_init(&b->interrupt, on_signal, SIGINT);
        b->term.data = b->interrupt.data = b;
        ev_signal_start(b->c.loop, &b->term);
        ev_signal_start(b->c.loop, &b->interrupt);
    }

    return code;
}

static int measure(struct bench *b)
{
    int code = run_fill(b);
    code = !code && b->idle_ms ? run_idle(b) : code;
    code = !code && b->schedule ? run_schedule(b) : code;
    code = !code && b->rate ? run_rate(b) : code;
    return !code && b->burst ? run_burst(b) : code;
}

/* From here on a signal ends us at once. */
static void leave_the_loop(struct bench *b)
{
    if (!b->c.loop) {
        return;
    }

    if (b->c.l) {
        client_close(&b->c, GRACE_MS);
    }

    client_run(&b->c);
    ev_signal_stop(b->c.loop, &b->term);
    ev_signal_stop(b->c.loop, &b->interrupt);
}

static int erase(struct bench *b)
{
    if (b->next > MANY) {
        message_print("removing what is left of %llu jobs", (unsigned long long)b->next);
    }

    int code = b->redis.c ? keys_erase(&b->redis, b->key, b->queue) : DOWN;
    if (code == DOWN && !b->redis.c) { /* Redis may be back */
        code = redis_sync_open(&b->redis, b->secret, b->g->shown_url, REPLY_MS, 0);
        code = code ? code : keys_erase(&b->redis, b->key, b->queue);
    }

    if (code) {
        message_print("jobs may be left in queue %s: lapse bench %s clears it", printable(b->queue),
                      printable(b->queue));
    }

    return code;
}

static int conclude(struct bench *b, int code)
{
    int broken = 0;
    int left;
    const struct part *parts[] = {&b->steady, &b->salvo};

    crew_stop(b, &b->idle.crew);
    crew_stop(b, &b->steady.crew);
    crew_stop(b, &b->salvo.crew);
    if (b->signum) {
        message_print("interrupted; removing what was made, once more to leave it");
    }

    leave_the_loop(b);
    left = erase(b);
    if (!code) {
        (b->g->json ? print_bench_json : print_bench)(b);
    }

    for (int i = 0; i < 2 && !code; i++) {
        broken |= parts[i]->lost || parts[i]->twice || parts[i]->early || parts[i]->foreign;
    }

    return code ? code : left ? left : broken ? ANSWER_NO : DONE;
}

/* ---- the command line ---- */
static int set_rate(const struct opt *o, char *value, void *field)
{
    size_t len = strlen(value);

    (void)o;
    if (len > 2 && strcmp(value + len - 2, "/s") == 0) {
        value[len - 2] = '\0';
    }
    return parse_count(value, 1000000, field)
               ? usage_error("--rate", value, "jobs a second, 1 to 1000000, such as 1000/s")
               : 0;
}

static int set_body(const struct opt *o, char *value, void *field)
{
    unsigned n = 0;

    (void)o;
    if (strcmp(value, "0") && parse_count(value, MOST_BODY, &n)) {
        return usage_error("--body", value, "bytes, 0 to 1048576");
    }
    *(int *)field = (int)n;
    return 0;
}

static int set_jobs(const struct opt *o, char *value, void *field)
{
    char what[24];
    snprintf(what, sizeof what, "--%s", o->name);
    return parse_count(value, MOST_JOBS, field) ? usage_error(what, value, "jobs, 1 to 100000000")
                                                : 0;
}

static int set_listeners(const struct opt *o, char *value, void *field)
{
    (void)o;
    return parse_count(value, MOST_LISTENERS, field)
               ? usage_error("--listeners", value, "processes, 1 to 256")
               : 0;
}

#define AT(field) offsetof(struct bench, field)
static const struct opt opts[] = {
    {"rate", 0, "N/s", set_rate, AT(rate), "jobs that fall due in a second; 1000/s"},
    {"duration", 0, "DURATION", set_duration, AT(duration_ms), "for so long; 10s"},
    {"delay", 0, "DURATION", set_duration, AT(delay_ms),
     "due so long after each is scheduled; 1s, may be 0s"},
    {"listeners", 0, "N", set_listeners, AT(listeners), "processes that run the jobs; 1"},
    {"waiting", 0, "N", set_jobs, AT(waiting),
     "fill the queue with N jobs that are far from due, first"},
    {"body", 0, "BYTES", set_body, AT(body), "of each job; 100"},
    {"burst", 0, "N", set_jobs, AT(burst), "N jobs that are due in the same millisecond"},
    {"schedule", 0, "N", set_jobs, AT(schedule),
     "only store N jobs, many in flight; then N/10 one at a time,\neach after the answer to the "
     "one before"},
    {"idle", 0, "DURATION", set_duration, AT(idle_ms),
     "what is asked of Redis while nothing is due"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

static int check(struct bench *b, int steady)
{
    b->rate = b->rate ? b->rate : steady ? 1000 : 0;
    b->duration_ms = b->duration_ms ? b->duration_ms : 10000;
    if (b->duration_ms > MOST_MS || b->delay_ms > MOST_MS || b->idle_ms > MOST_MS) {
        message_print("--duration, --delay and --idle are at most a day each");
        return USAGE;
    }

    uint64_t jobs = (uint64_t)b->rate * (uint64_t)b->duration_ms / 1000;
    if (b->rate && (!jobs || jobs > MOST_JOBS)) {
        message_print("%u jobs a second for %lld ms are %llu jobs: 1 to %d can be counted", b->rate,
                      (long long)b->duration_ms, (unsigned long long)jobs, MOST_JOBS);
        return USAGE;
    }

    return b->queue ? check_queue(b->queue) : 0;
}

static int run(const struct command *cmd, struct globals *g, struct arguments *w)
{
    struct bench *b = calloc(1, sizeof *b);
    int code;

    if (!b) {
        message_print("out of memory");
        return INTERNAL;
    }

    b->g = g;
    b->listeners = 1;
    b->body = 100;
    b->delay_ms = 1000;
    code = arguments_read(cmd, g, b, w);
    b->queue = w->n ? w->v[0] : NULL;
    if (!code) {
        code = check(b, b->duration_ms || !(b->burst || b->schedule || b->idle_ms));
    }

    if (!code && !(code = prepare(b))) {
        code = crews(b);
        code = code ? code : start(b);
        code = code ? code : measure(b);
        code = conclude(b, code);
    }

    redis_sync_close(&b->redis);
    if (b->secret) {
        explicit_bzero(b->secret, strlen(b->secret));
    }

    free(b->secret);
    free(b->bytes);
    free(b);

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
    "they were and what they cost. QUEUE is one that nobody uses (else a new one), and is gone\n"
    "afterwards, also after INT or TERM. No other key is touched, but Redis is as busy as you ask\n"
    "for: do not do this to one that others need.\n"
    "\n"
    "What was asked for is done in this order: --waiting, --idle, --schedule, --rate, --burst.\n"
    "claimed late: from due to the claim, both by Redis's clock. started late: from due to the\n"
    "handler's start, by this machine's clock set to Redis's (how exactly, is printed). Both are\n"
    "exact to 1 us below 2 ms, to 0.1 % above. A rate that cannot be reached shows in stored/s\n"
    "and settled/s. Server CPU, scripts and commands are INFO's, so other clients' are in them.\n"
    "\nexamples:\n"
    "  lapse bench --rate 1000/s --waiting 100000\n"
    "  lapse bench --listeners 4 --rate 5000/s --duration 30s --delay 0s\n"
    "  lapse bench --burst 100000 --schedule 100000 --idle 10s --json | jq .burst_per_s\n",
    "  1   a job was lost, early, or ran twice\n"
    "  128 and more: ended by a signal of that number less 128; the queue is gone\n",
    run,
};
