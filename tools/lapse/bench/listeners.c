/* SPDX-License-Identifier: MIT */
/* Listeners are forked before the first connection is made: so each is a clean process, and no URL
 * with its password goes through argv. They wait at the gate, and stop when their leash ends, which
 * it also does when this process dies. */
#include "bench/listeners.h"
#include "cli/message.h"
#include "cli/values.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READY_MS = 10000, EVENTS_MS = 3000, LOOK_MS = 5, END_MS = 4000, BITS = 64 };
enum { ROUND_TRIPS = 10 }; /* more than a listener needs to start, or to end */

/* Memory of this process and its listeners; behind the figures a bit for each job: it ran. */
struct listeners_shared {
    int64_t clock_offset_us; /* our monotonic clock less Redis's */
    int64_t asked_us;        /* when the last job was asked to stop; monotonic */
    uint64_t first_job;
    struct listener_figures figures[];
};

static size_t bits_words(uint64_t n_jobs)
{
    return (n_jobs + BITS - 1) / BITS;
}

static uint64_t *bits_of(const struct listeners *l)
{
    return (uint64_t *)(void *)&l->shared->figures[l->n];
}

static void close_end(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

/* ---- in a listener ---- */
static void close_inherited(const struct listeners *l)
{
    for (; l; l = l->forked_before) {
        close(l->gate);
        close(l->leash);
        close(l->alive);
    }
}

static bool is_at_end(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) != 0;
}

static _Noreturn void become_listener(const struct listeners *l, const struct listeners_spec *spec,
                                      unsigned nth, int gate, int leash)
{
    char byte;

    /* a terminal signals all processes, and listeners stop after the producer */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    close_inherited(l);
    if (nth > 0 && !spec->g->verbose) { /* all of them would log the same */
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    }

    while (read(gate, &byte, 1) < 0) {}

    struct listener_task task = {
        .g = spec->g,
        .url = spec->url,
        .queue = spec->queue,
        .leash = leash,
        .clock_offset_us = l->shared->clock_offset_us,
        .first_job = l->shared->first_job,
        .n_jobs = l->n_jobs,
        .asked_us = spec->holds ? &l->shared->asked_us : NULL,
        .ran = bits_of(l),
        .figures = &l->shared->figures[nth],
    };
    int code = is_at_end(leash) ? DONE : listener_run(&task);

    /* not by exit(): what stdout has buffered is the producer's */
    _exit(code);
}

/* ---- in the producer ---- */
static bool allocate(struct listeners *l)
{
    size_t figures = l->n * sizeof(struct listener_figures);

    l->shared_bytes = sizeof *l->shared + figures + bits_words(l->n_jobs) * sizeof(uint64_t);
    l->pids = calloc(l->n, sizeof *l->pids);
    void *memory =
        mmap(NULL, l->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return false;
    }

    l->shared = memory;
    return l->pids != NULL;
}

static bool fork_all(struct listeners *l, const struct listeners_spec *spec, int gate, int leash)
{
    for (unsigned i = 0; i < l->n; i++) {
        l->pids[i] = fork();
        if (l->pids[i] == 0) {
            become_listener(l, spec, i, gate, leash);
        }
        if (l->pids[i] < 0) {
            return false;
        }
    }

    return true;
}

int listeners_fork(struct listeners *l, const struct listeners_spec *spec)
{
    int gate[2] = {-1, -1};
    int leash[2] = {-1, -1};
    int alive[2] = {-1, -1};

    l->n = spec->n;
    l->n_jobs = spec->n_jobs;
    l->far_ms = spec->rtt_ms * ROUND_TRIPS;
    l->forked_before = spec->forked_before;

    bool ok = allocate(l) && !pipe2(gate, O_CLOEXEC) && !pipe2(leash, O_CLOEXEC) &&
              !pipe2(alive, O_CLOEXEC);
    l->gate = gate[1];
    l->leash = leash[1];
    l->alive = alive[0];
    ok = ok && fork_all(l, spec, gate[0], leash[0]);
    if (!ok) {
        message_print("cannot start %u listeners: %m", l->n);
    }

    close_end(&gate[0]);
    close_end(&leash[0]);
    close_end(&alive[1]);

    return ok ? DONE : INTERNAL;
}

struct start {
    const struct listeners *l;
    const struct bench_queue *queue;
    int64_t start_ms;
    int64_t n_with_events;
    int code;
};

static bool all_ready(void *arg)
{
    const struct start *start = arg;

    for (unsigned i = 0; i < start->l->n; i++) {
        if (!__atomic_load_n(&start->l->shared->figures[i].ready, __ATOMIC_ACQUIRE)) {
            return monotonic_ms() - start->start_ms > READY_MS + start->l->far_ms;
        }
    }

    return true;
}

static bool all_receive_events(void *arg)
{
    struct start *start = arg;

    start->code = bench_queue_count_listeners(start->queue, &start->n_with_events);
    return start->code || start->n_with_events >= start->l->n ||
           monotonic_ms() - start->start_ms > EVENTS_MS + start->l->far_ms;
}

static int wait_for_events(struct start *start, struct bench_loop *loop)
{
    start->start_ms = monotonic_ms();
    int code = loop_until(loop, LOOK_MS, all_receive_events, start);
    if (code) {
        return code;
    }

    if (!start->code && start->n_with_events < start->l->n) {
        message_print("only %lld of %u listeners receive expiry events",
                      (long long)start->n_with_events, start->l->n);
    }

    return start->code;
}

int listeners_start(struct listeners *l, struct bench_loop *loop, const struct bench_queue *queue,
                    int64_t clock_offset_us, uint64_t first_job)
{
    struct start start = {.l = l, .queue = queue, .start_ms = monotonic_ms()};
    const struct globals *g = loop->client.g;

    l->shared->clock_offset_us = clock_offset_us;
    l->shared->first_job = first_job;
    close_end(&l->gate);
    for (unsigned i = 0; i < l->n && g->verbose; i++) {
        message_print("listener %d", (int)l->pids[i]);
    }

    int code = loop_until(loop, LOOK_MS, all_ready, &start);
    if (code) {
        return code;
    }
    if (monotonic_ms() - start.start_ms > READY_MS + l->far_ms) {
        message_print("the listeners did not start");
        return DOWN;
    }

    return g->opts.flags & LAPSE_NO_EVENTS ? DONE : wait_for_events(&start, loop);
}

static void reap_listener(pid_t pid, bool has_ended)
{
    int status;

    if (!has_ended) {
        kill(pid, SIGKILL);
    }
    if (waitpid(pid, &status, 0) == pid && WIFSIGNALED(status)) {
        message_print("listener %d was ended by signal %d", (int)pid, WTERMSIG(status));
    }
}

void listeners_stop(struct listeners *l, const struct bench_queue *queue)
{
    struct pollfd alive = {.fd = l->alive, .events = POLLIN};
    int ended;

    if (!l->pids) {
        return;
    }

    bool were_started = l->gate < 0;
    if (bench_queue_server(queue)->c && were_started) {
        bench_queue_expire_canaries(queue);
    }

    close_end(&l->leash);
    close_end(&l->gate);
    while ((ended = poll(&alive, 1, END_MS + (int)l->far_ms)) < 0) {}
    close_end(&l->alive);

    for (unsigned i = 0; i < l->n && l->pids[i] > 0; i++) {
        reap_listener(l->pids[i], ended > 0);
    }

    free(l->pids);
    l->pids = NULL;
}

void listeners_free(struct listeners *l)
{
    if (l->shared) {
        munmap(l->shared, l->shared_bytes);
    }
}

/* ---- what they do ---- */
void listeners_are_asked(struct listeners *l, int64_t now_us)
{
    __atomic_store_n(&l->shared->asked_us, now_us, __ATOMIC_RELEASE);
}

const struct listener_figures *listeners_figures(const struct listeners *l, unsigned nth)
{
    return &l->shared->figures[nth];
}

int64_t listeners_clock_offset_us(const struct listeners *l)
{
    return l->shared->clock_offset_us;
}

uint64_t listeners_settled(const struct listeners *l)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < l->n; i++) {
        n += __atomic_load_n(&l->shared->figures[i].stats.done, __ATOMIC_ACQUIRE);
    }

    return n;
}

uint64_t listeners_ran(const struct listeners *l)
{
    uint64_t n = 0;

    for (size_t i = 0; i < bits_words(l->n_jobs); i++) {
        n += (uint64_t)__builtin_popcountll(bits_of(l)[i]);
    }

    return n;
}

int64_t listeners_cpu_us(const struct listeners *l)
{
    int64_t sum = 0;

    for (unsigned i = 0; l->pids && i < l->n; i++) {
        clockid_t clock;
        struct timespec t;
        if (!clock_getcpuclockid(l->pids[i], &clock) && !clock_gettime(clock, &t)) {
            sum += (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
        }
    }

    return sum;
}

/* 0: it has ended. */
static int64_t peak_rss_kib(pid_t pid)
{
    char path[40];
    char line[128];
    long long peak = 0;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f) {
        return 0;
    }

    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "VmHWM: %lld", &peak) == 1) {
            break;
        }
    }

    fclose(f);
    return peak;
}

int64_t listeners_rss_kib(const struct listeners *l)
{
    int64_t highest = 0;

    for (unsigned i = 0; l->pids && i < l->n; i++) {
        int64_t peak = peak_rss_kib(l->pids[i]);
        if (peak > highest) {
            highest = peak;
        }
    }

    return highest;
}
