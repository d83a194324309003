/* SPDX-License-Identifier: MIT */
#include "worker.h"
#include <criterion/criterion.h>
#include <ev.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct worker_ctl {
    atomic_int way;
    atomic_long claimed;
};

static void *shared(size_t size)
{
    void *p =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cr_assert(p != MAP_FAILED, "mmap: %m");
    return p;
}

static size_t board_size(long max)
{
    return sizeof(struct board) + (size_t)max * sizeof(struct run);
}

struct board *board_new(long max)
{
    struct board *b = shared(board_size(max));
    b->max = max;
    return b;
}

void board_free(struct board *b)
{
    if (b) {
        munmap(b, board_size(b->max));
    }
}

void board_note(struct board *b, const struct lapse_job *job)
{
    long at = atomic_fetch_add(&b->taken, 1);
    struct timespec now;

    if (at >= b->max) {
        return;
    }

    struct run *r = &b->run[at];
    clock_gettime(CLOCK_REALTIME, &now);
    r->started_us = now.tv_sec * 1000000 + now.tv_nsec / 1000;
    snprintf(r->queue, sizeof r->queue, "%s", lapse_job_queue(job));
    snprintf(r->id, sizeof r->id, "%s", lapse_job_id(job));
    r->due_ms = lapse_job_due_ms(job);
    r->claimed_us = lapse_job_claimed_us(job);
    r->token = lapse_job_token(job);
    r->try_no = lapse_job_try(job);
    r->via = lapse_job_via(job);
    r->pid = getpid();
    atomic_fetch_add(&b->n, 1);
}

long board_of(const struct board *b, pid_t pid)
{
    long n = 0;
    for (long i = 0; i < b->n; i++) {
        n += b->run[i].pid == pid;
    }
    return n;
}

/* ---- in the child ---- */
struct life {
    struct board *board;
    struct worker_ctl *ctl;
    struct lapse *l;
    int status;
};

static void on_settled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)job;
    ((struct life *)arg)->status |= err != 0;
}

static void on_job(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct life *life = arg;

    (void)l;
    board_note(life->board, job);
    if (life->ctl->way == WORKER_DIES) {
        kill(getpid(), SIGKILL);
    }

    while (life->ctl->way == WORKER_BLOCKS) {
        pause();
    }

    if (life->ctl->way == WORKER_DONE) {
        lapse_done(job, on_settled, life);
    }
}

static void on_closed(void *arg)
{
    _exit(((struct life *)arg)->status);
}

static void on_term(struct ev_loop *loop, ev_signal *w, int events)
{
    struct life *life = w->data;
    struct lapse_stats stats;

    (void)loop;
    (void)events;
    lapse_stats(life->l, &stats, sizeof stats);
    life->ctl->claimed = (long)stats.claimed;
    lapse_close(life->l, 5000, on_closed, life);
}

static void block_sigterm(int how)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(how, &set, NULL);
}

static void listen_to(struct life *life, const char *queues, const struct lapse_options *opts)
{
    struct ev_loop *loop = ev_loop_new(0);
    ev_signal term;

    if (!loop || lapse_open(&life->l, loop, opts)) {
        _exit(125);
    }

    char names[256];
    snprintf(names, sizeof names, "%s", queues);

    for (char *rest = names, *name; (name = strtok_r(rest, " ", &rest));) {
        if (lapse_listen(life->l, name, NULL, on_job, life)) {
            _exit(125);
        }
    }

    ev_signal_init(&term, on_term, SIGTERM);
    term.data = life;
    ev_signal_start(loop, &term);
    block_sigterm(SIG_UNBLOCK);
    ev_run(loop, 0);
    _exit(126);
}

/* ---- in the test ---- */
struct worker *worker_start(struct board *b, const char *queues, const struct lapse_options *opts,
                            enum worker_way way)
{
    server_listens();

    struct worker *w = calloc(1, sizeof *w);
    cr_assert(w);
    w->ctl = shared(sizeof *w->ctl);
    w->ctl->way = way;

    pid_t parent = getpid();
    block_sigterm(SIG_BLOCK); /* until the child can close in order */
    w->pid = fork();
    cr_assert(w->pid >= 0);

    if (w->pid == 0) {
        struct life life = {.board = b, .ctl = w->ctl};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* a copy of the test's sockets would keep them open after the test closed them */
        for (int i = 3; i < 1024; i++) {
            close(i);
        }
        if (getppid() == parent) {
            listen_to(&life, queues, opts);
        }
        _exit(125);
    }

    block_sigterm(SIG_UNBLOCK);
    return w;
}

void worker_way(struct worker *w, enum worker_way way)
{
    w->ctl->way = way;
}

static int reap(struct worker *w)
{
    int status = 0;

    if (w->pid) {
        waitpid(w->pid, &status, 0);
    }
    w->pid = 0;
    return status;
}

void worker_signal(struct worker *w, int sig)
{
    cr_assert(w->pid && !kill(w->pid, sig));
    if (sig == SIGKILL) {
        reap(w);
    }
}

int worker_end(struct worker *w)
{
    kill(w->pid, SIGTERM);
    int status = reap(w);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

long worker_claimed(const struct worker *w)
{
    return w->ctl->claimed;
}

void worker_free(struct worker *w)
{
    if (!w) {
        return;
    }

    if (w->pid) {
        kill(w->pid, SIGKILL);
        reap(w);
    }

    munmap(w->ctl, sizeof *w->ctl);
    free(w);
}
