/* SPDX-License-Identifier: MIT */
#include "runs.h"
#include "child.h"
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static size_t runs_size(long max)
{
    return sizeof(struct runs) + (size_t)max * sizeof(struct run);
}

struct runs *runs_new(long max)
{
    struct runs *r = shared_new(runs_size(max));

    r->max = max;
    return r;
}

void runs_free(struct runs *r)
{
    if (r) {
        shared_free(r, runs_size(r->max));
    }
}

void runs_add(struct runs *r, const struct lapse_job *job)
{
    long at = atomic_fetch_add(&r->taken, 1);
    struct timespec now;

    if (at >= r->max) {
        return;
    }

    struct run *run = &r->run[at];
    clock_gettime(CLOCK_REALTIME, &now);
    run->started_us = now.tv_sec * 1000000 + now.tv_nsec / 1000;
    snprintf(run->queue, sizeof run->queue, "%s", lapse_job_queue(job));
    snprintf(run->id, sizeof run->id, "%s", lapse_job_id(job));
    run->due_ms = lapse_job_due_ms(job);
    run->claimed_us = lapse_job_claimed_us(job);
    run->token = lapse_job_token(job);
    run->try_no = lapse_job_try(job);
    run->via = lapse_job_via(job);
    run->pid = getpid();

    atomic_fetch_add(&r->n, 1);
}

const struct run *runs_next(const struct runs *r, long *at)
{
    while (*at < r->taken && *at < r->max) {
        const struct run *run = &r->run[(*at)++];
        if (run->pid) {
            return run;
        }
    }
    return NULL;
}

long runs_of(const struct runs *r, pid_t pid)
{
    const struct run *run;
    long n = 0;

    for (long at = 0; (run = runs_next(r, &at));) {
        n += run->pid == pid;
    }
    return n;
}

bool runs_is_first_of_job(const struct runs *r, const struct run *run)
{
    const struct run *first;

    for (long at = 0; (first = runs_next(r, &at)) && strcmp(first->id, run->id) != 0;) {}
    return first == run;
}

static void on_started(void *arg, const struct lapse_job *job)
{
    runs_add(arg, job);
}

struct recorder runs_recorder(struct runs *r)
{
    return (struct recorder){.arg = r, .started = on_started};
}
