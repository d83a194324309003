/* SPDX-License-Identifier: MIT */
#include "shown.h"
#include <criterion/criterion.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static bool wrong;

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void spread(double out[3], int64_t *late_us, size_t n)
{
    if (n == 0) {
        return;
    }
    qsort(late_us, n, sizeof *late_us, by_size);
    out[0] = (double)late_us[n / 2] / 1000;
    out[1] = (double)late_us[n * 99 / 100] / 1000;
    out[2] = (double)late_us[n - 1] / 1000;
}

struct tally tally_of(const struct board *b, long jobs, unsigned runs)
{
    struct tally t = {.jobs = jobs};
    size_t n = (size_t)b->n;
    unsigned *times = calloc((size_t)jobs, sizeof *times);
    int64_t *claimed = calloc(n + 1, sizeof *claimed);
    int64_t *started = calloc(n + 1, sizeof *started);

    cr_assert(times && claimed && started);

    for (size_t i = 0; i < n; i++) {
        const struct run *r = &b->run[i];
        long id = strtol(r->id, NULL, 10);
        cr_assert(id >= 0 && id < jobs, "a job that was not scheduled ran: %s", r->id);
        times[id]++;
        claimed[i] = r->claimed_us - r->due_ms * 1000;
        started[i] = r->started_us - r->due_ms * 1000;
        t.early += claimed[i] < 0;
    }

    for (long i = 0; i < jobs; i++) {
        t.lost += times[i] == 0;
        t.twice += times[i] > runs;
    }

    spread(t.claimed, claimed, n);
    spread(t.started, started, n);
    free(times);
    free(claimed);
    free(started);

    return t;
}

void table_head(void)
{
    printf("%-44s %7s %5s %6s %6s   %s\n", "", "jobs", "lost", "twice", "early", "reached");
}

void table_row(const char *what, const struct tally *t, const char *format, ...)
{
    va_list ap;

    wrong = wrong || t->lost || t->twice || t->early;
    printf("%-44s %7ld %5ld %6ld %6ld   ", what, t->jobs, t->lost, t->twice, t->early);
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    putchar('\n');
    fflush(stdout);
}

bool table_ok(void)
{
    return !wrong;
}

void until_runs(const struct board *b, long n, int timeout_ms)
{
    int64_t deadline = test_now_ms() + timeout_ms;
    while (b->n < n && test_now_ms() < deadline) {
        poll(NULL, 0, 1);
    }
}

void until_listeners(struct server *s, long n)
{
    int64_t deadline = test_now_ms() + 10000;
    while (redis_int(s, "ZCARD lapse:{" QUEUE "}:listeners") != n) {
        cr_assert(test_now_ms() < deadline, "the listeners did not come");
        poll(NULL, 0, 5);
    }
}
