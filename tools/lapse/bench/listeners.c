/* SPDX-License-Identifier: MIT */
/* The listeners: forked before the first connection is made, so that each is a clean process and no
 * URL with its password goes through argv. They wait at the gate, and stop when their leash ends,
 * also by our death. What they measure they write to memory that is shared, so a job costs no
 * system call more than the library's own. */
#include "bench/bench.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READY_MS = 10000, HEARD_MS = 3000, LOOK_MS = 5, GRACE_MS = 2000, END_MS = 4000 };

/* ---- in the listener ---- */
struct listener {
    struct client c; /* first: on_refused gets this */
    struct bench *b;
    struct shared *shared;
    struct slot *slot;
    uint64_t *ran, jobs;
    ev_io leash;
    ev_prepare publish;
};
static struct slot *counted; /* an allocator has no argument */

static void *counting(void *old, size_t size)
{
    if (!size) {
        free(old);
        return NULL;
    }
    counted->allocs++;
    return realloc(old, size);
}

/* Its place among those of this part; jobs or more: it is none of them. */
static uint64_t number_of(const struct listener *w, const char *id)
{
    uint64_t n = 0;
    for (const char *at = id + BENCH_ID_START; *at; at++) {
        n = n * 10 + (uint64_t)(*at - '0');
    }
    return strlen(id) == BENCH_ID_BYTES ? n - w->shared->first : UINT64_MAX;
}

static void on_job(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct listener *w = arg;
    struct slot *s = w->slot;
    int64_t now = monotonic_us() - w->shared->offset_us;
    int64_t due = lapse_job_due_ms(job) * 1000;
    uint64_t i = number_of(w, lapse_job_id(job));
    uint64_t bit = UINT64_C(1) << i % 64;

    (void)l;
    spread_add(&s->claimed, lapse_job_claimed_us(job) - due);
    spread_add(&s->started, now - due);
    s->early += lapse_job_claimed_us(job) < due;

    if (i >= w->jobs) {
        s->foreign++;
    } else if (__atomic_fetch_or(&w->ran[i / 64], bit, __ATOMIC_RELAXED) & bit) {
        s->twice++;
    }

    lapse_done(job, NULL, NULL);
}

static void on_prepare(struct ev_loop *loop, ev_prepare *p, int events)
{
    struct listener *w = p->data;
    struct lapse_stats now;

    (void)loop;
    (void)events;
    if (w->c.l) {
        lapse_stats(w->c.l, &now, sizeof now);
        w->slot->settled_us = now.done > w->slot->stats.done ? monotonic_us() : w->slot->settled_us;
        __atomic_thread_fence(__ATOMIC_RELEASE);
        w->slot->stats = now;
    }
}

static void on_leash(struct ev_loop *loop, ev_io *io, int events)
{
    struct listener *w = io->data;
    (void)events;
    ev_io_stop(loop, io);
    client_close(&w->c, GRACE_MS);
}

static void on_refused(struct client *c)
{
    if (client_is_denied(c)) {
        client_close(c, 0);
    }
}

static void on_there(struct lapse *l, int err, const struct lapse_depth *d, void *arg)
{
    struct listener *w = arg;

    (void)l;
    (void)d;
    if (err) {
        client_set_exit_code(&w->c, client_report(&w->c, err, w->b->queue));
        client_close(&w->c, 0);
    } else {
        __atomic_store_n(&w->slot->ready, 1, __ATOMIC_RELEASE);
    }
}

static int listen_until(struct listener *w, int leash)
{
    struct globals *g = w->b->g;
    int code;

    counted = w->slot;
    lapse_set_allocator(counting);
    g->url = w->b->secret;
    code = client_open(&w->c, g, on_refused);
    if (code) {
        return code;
    }

    ev_io_init(&w->leash, on_leash, leash, EV_READ);
    ev_prepare_init(&w->publish, on_prepare);
    w->leash.data = w->publish.data = w;
    ev_io_start(w->c.loop, &w->leash);
    ev_prepare_start(w->c.loop, &w->publish);
    code = lapse_listen(w->c.l, w->b->queue, NULL, on_job, w);
    if (!code) {
        code = lapse_depth(w->c.l, w->b->queue, on_there, w);
    }

    if (code) {
        client_set_exit_code(&w->c, client_report(&w->c, code, w->b->queue));
        client_close(&w->c, 0);
    }

    return client_run(&w->c);
}

static uint64_t *bits_of(const struct crew *c)
{
    return (uint64_t *)(void *)&c->shared->slot[c->n];
}

static _Noreturn void be_listener(struct bench *b, struct crew *c, unsigned i, int gate, int leash)
{
    struct part *parts[] = {&b->idle, &b->steady, &b->salvo};
    static struct listener w;
    char byte;

    w = (struct listener){.b = b,
                          .shared = c->shared,
                          .slot = &c->shared->slot[i],
                          .ran = bits_of(c),
                          .jobs = c->jobs};
    signal(SIGINT, SIG_IGN); /* a terminal tells all of us, and we stop after the producer */
    signal(SIGTERM, SIG_IGN);

    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        close(parts[k]->crew.gate);
        close(parts[k]->crew.leash);
        close(parts[k]->crew.alive);
    }

    if (i && !b->g->verbose) { /* all of them say the same */
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 2);
    }

    while (read(gate, &byte, 1) < 0) {}

    /* not through exit(): what stdout holds is the producer's */
    _exit(poll(&(struct pollfd){.fd = leash, .events = POLLIN}, 1, 0) ? DONE
                                                                      : listen_until(&w, leash));
}

/* ---- in the producer ---- */
static void close_end(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

int crew_fork(struct bench *b, struct crew *c, uint64_t jobs)
{
    int gate[2] = {-1, -1};
    int leash[2] = {-1, -1};
    int alive[2] = {-1, -1};
    size_t slots = sizeof *c->shared + b->listeners * sizeof(struct slot);

    c->jobs = jobs;
    c->bytes = slots + (jobs + 63) / 64 * sizeof(uint64_t);
    c->pids = calloc(b->listeners, sizeof *c->pids);
    c->shared = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (!c->pids || c->shared == MAP_FAILED || pipe2(gate, O_CLOEXEC) || pipe2(leash, O_CLOEXEC) ||
        pipe2(alive, O_CLOEXEC)) {
        message_print("cannot start %u listeners: %m", b->listeners);
        return INTERNAL;
    }

    c->gate = gate[1], c->leash = leash[1], c->alive = alive[0];
    c->n = b->listeners;

    for (unsigned i = 0; i < c->n; i++) {
        c->pids[i] = fork();
        if (c->pids[i] == 0) {
            be_listener(b, c, i, gate[0], leash[0]);
        }
        if (c->pids[i] < 0) {
            message_print("cannot start %u listeners: %m", b->listeners);
            break;
        }
    }

    close(gate[0]), close(leash[0]), close(alive[1]);

    return c->pids[c->n - 1] > 0 ? DONE : INTERNAL;
}

struct start {
    struct bench *b;
    const struct crew *c;
    int64_t began_ms, heard;
    int code;
};

static int all_ready(void *arg)
{
    struct start *s = arg;
    unsigned n = 0;

    for (unsigned i = 0; i < s->c->n; i++) {
        n += __atomic_load_n(&s->c->shared->slot[i].ready, __ATOMIC_ACQUIRE) != 0;
    }
    return n == s->c->n || monotonic_ms() - s->began_ms > READY_MS;
}

static int all_heard(void *arg)
{
    struct start *s = arg;
    s->code = keys_listeners(&s->b->redis, s->b->key, &s->heard);
    return s->code || s->heard >= s->c->n || monotonic_ms() - s->began_ms > HEARD_MS;
}

int crew_start(struct bench *b, struct crew *c, uint64_t first)
{
    struct start s = {.b = b, .c = c, .began_ms = monotonic_ms()};
    int code;

    c->shared->first = first;
    close_end(&c->gate);
    for (unsigned i = 0; i < c->n && b->g->verbose; i++) {
        message_print("listener %d", (int)c->pids[i]);
    }

    code = bench_until(b, LOOK_MS, all_ready, &s);
    if (!code && monotonic_ms() - s.began_ms > READY_MS) {
        message_print("the listeners did not start");
        code = DOWN;
    }

    s.began_ms = monotonic_ms();

    if (!code && !(b->g->opts.flags & LAPSE_NO_EVENTS)) {
        code = bench_until(b, LOOK_MS, all_heard, &s);
        code = code ? code : s.code;
        if (!code && s.heard < c->n) {
            message_print("%lld of %u listeners hear expiry events", (long long)s.heard, c->n);
        }
    }

    return code;
}

void crew_stop(struct bench *b, struct crew *c)
{
    struct pollfd alive = {.fd = c->alive, .events = POLLIN};
    int status;
    int over;

    if (!c->pids) {
        return;
    }

    if (b->redis.c && c->gate < 0) {
        keys_canaries(&b->redis, b->key);
    }

    close_end(&c->leash);
    close_end(&c->gate);
    while ((over = poll(&alive, 1, END_MS)) < 0) {}
    close_end(&c->alive);

    for (unsigned i = 0; i < c->n && c->pids[i] > 0; i++) {
        if (!over) {
            kill(c->pids[i], SIGKILL);
        }
        if (waitpid(c->pids[i], &status, 0) == c->pids[i] && WIFSIGNALED(status)) {
            message_print("listener %d was ended by signal %d", (int)c->pids[i], WTERMSIG(status));
        }
    }

    free(c->pids);
    c->pids = NULL;
}

uint64_t crew_done(const struct crew *c)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < c->n; i++) {
        n += __atomic_load_n(&c->shared->slot[i].stats.done, __ATOMIC_ACQUIRE);
    }
    return n;
}

uint64_t crew_ran(const struct crew *c)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < (c->jobs + 63) / 64; i++) {
        n += (uint64_t)__builtin_popcountll(bits_of(c)[i]);
    }
    return n;
}

int64_t crew_cpu_us(const struct crew *c)
{
    int64_t sum = 0;

    for (unsigned i = 0; c->pids && i < c->n; i++) {
        clockid_t clock;
        struct timespec t;
        if (!clock_getcpuclockid(c->pids[i], &clock) && !clock_gettime(clock, &t)) {
            sum += (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
        }
    }

    return sum;
}

int64_t crew_rss_kb(const struct crew *c)
{
    int64_t most = 0;

    for (unsigned i = 0; c->pids && i < c->n; i++) {
        char path[40];
        char line[128];
        long long kb;
        snprintf(path, sizeof path, "/proc/%d/status", (int)c->pids[i]);
        FILE *f = fopen(path, "re");
        while (f && fgets(line, sizeof line, f)) {
            most = sscanf(line, "VmHWM: %lld", &kb) == 1 && kb > most ? kb : most;
        }
        if (f) {
            fclose(f);
        }
    }

    return most;
}
