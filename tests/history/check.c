/* SPDX-License-Identifier: MIT */
/* history-check [--late-ms N] FILE...: were the promises kept? Knows nothing of the library:
 * README.md says what it reads. Exit status: 0 yes, 1 no (the invariant and the job are named), 2
 * the history cannot be read. */
#include "history.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double ms_at(const struct tally *t, long of_1000)
{
    return t->starts ? (double)t->late_us[(t->starts - 1) * of_1000 / 1000] / 1000 : 0;
}

static void print(const struct tally *t)
{
    static const int bound_ms[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000};
    long i = 0;
    long n_bounds = (long)(sizeof bound_ms / sizeof *bound_ms);

    qsort(t->late_us, (size_t)t->starts, sizeof *t->late_us, by_size);

    for (long b = 0; b <= n_bounds && i < t->starts; b++) {
        long before = i;
        while (i < t->starts && (b == n_bounds || t->late_us[i] < bound_ms[b] * 1000)) {
            i++;
        }
        if (b == n_bounds) {
            printf("late from %6d ms: %9ld\n", bound_ms[b - 1], i - before);
        } else if (i > before) {
            printf("late under %5d ms: %9ld\n", bound_ms[b], i - before);
        }
    }

    printf("jobs=%ld ok=%ld info=%ld asked=%ld starts=%ld done=%ld dead=%ld stale=%ld twice=%ld "
           "expired=%ld "
           "lost_in_window=%ld window_ms=%.3f searched=%ld unsearched=%ld late_p50_ms=%.3f "
           "late_p99_ms=%.3f late_max_ms=%.3f broken=%ld\n",
           t->jobs, t->ok, t->info, t->asked, t->starts, t->done, t->dead, t->stale, t->twice,
           t->expired, t->lost_in_window, (double)t->window_ns / 1e6, t->searched, t->unsearched,
           ms_at(t, 500), ms_at(t, 990), ms_at(t, 1000), t->broken);
}

/* No order was found. Does one exist that breaks the order in which a process asked? Then names the
 * two calls that are to blame, if two are. */
static void blame(struct life *l)
{
    const struct event *end = l->event + l->n;

    if (search(l, (struct leave){.any = true}) <= 0) {
        broken(l, "I12", NULL, NULL, "no order of what was asked and answered makes sense");
        return;
    }

    for (const struct event *b = l->event; b < end; b++) {
        for (const struct event *a = l->event; a < b; a++) {
            if (asked_in_turn(a, b) && search(l, (struct leave){.first = a, .second = b}) > 0) {
                broken(l, "I13", a, b,
                       "the second took place before the first, which its process had asked before "
                       "it");
                return;
            }
        }
    }

    broken(l, "I13", NULL, NULL, "not in the order in which a process asked");
}

static void check_job(struct life *l, int64_t late_ms)
{
    long before = l->t->broken;

    rules_of_job(l, late_ms);
    if (l->t->broken > before || l->rolled_back) {
        return; /* it has a better name already, or its past is not one */
    }

    int found = search(l, (struct leave){.any = false});
    if (found < 0) {
        l->t->unsearched++;
        return;
    }

    l->t->searched++;
    if (found == 0) {
        blame(l);
    }
}

/* They are sorted by job; those of no job come first. */
static void check_jobs(const struct history *h, struct tally *t, int64_t late_ms)
{
    size_t next;

    for (size_t i = 0; i < h->n; i = next) {
        const char *job = h->event[i].job;
        next = i + 1;
        while (next < h->n && h->event[next].job == job) {
            next++;
        }
        struct life l = {.h = h, .event = &h->event[i], .n = next - i, .job = job, .t = t};
        if (job) {
            check_job(&l, late_ms);
        }
    }
}

int main(int argc, char **argv)
{
    struct history h = {.n = 0};
    struct tally t = {.jobs = 0};
    int64_t late_ms = 0;
    int files = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--late-ms") == 0 && i + 1 < argc) {
            late_ms = strtoll(argv[++i], NULL, 10);
        } else if (!history_read(&h, argv[i])) {
            return 2;
        } else {
            files++;
        }
    }

    if (files == 0) {
        fputs("usage: history-check [--late-ms N] FILE...\n", stderr);
        return 2;
    }

    history_sort(&h);
    if (!h.final) {
        fputs("history-check: no final line: the history is cut off\n", stderr);
        return 2;
    }

    t.late_us = calloc(h.n + 1, sizeof *t.late_us);
    if (!t.late_us) {
        return 2;
    }

    rules_of_all(&h, &t);
    check_jobs(&h, &t, late_ms);
    print(&t);
    free(t.late_us);

    return t.broken ? 1 : 0;
}
