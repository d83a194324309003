/* SPDX-License-Identifier: MIT */
/* The verbs that every program of the bench knows, with their arguments:
 *
 *     fill     at= n= [from=0]
 *              jobs FROM to FROM + N - 1, due in an hour or two, with as many in flight as the
 *              system takes
 *     one      at= n=
 *              the same, but each waits for the answer to the one before
 *     produce  at= run= t0= rate= n= [lead=1000] [jitter=1000]
 *              job i is due at T0 + i / RATE, and is put LEAD to LEAD + JITTER ms before
 *     burst    at= run= t0= n= [step=0]
 *              jobs that are all due at T0, or each STEP ms after the one before; T0 0: now
 *     listen   at= run= n= until= record= [t0=0]
 *              runs jobs until N are settled or it is later than UNTIL (n=0: until then), and
 *              writes what it sees to the open file of that number
 *
 * Times are in ms since 1970. The id of a timed job is its run and its number, so that jobs left by
 * an earlier run are not counted. */
#include "bench.h"
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { AN_HOUR_MS = 3600000, MOST_S = 600 };

void die(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    fputs("bench: ", stderr);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

void sleep_until_us(int64_t at_us)
{
    struct timespec t = {at_us / 1000000, (long)(at_us % 1000000) * 1000};
    while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL) == EINTR) {}
}

void figure(const char *name, double value)
{
    printf("%s %.15g\n", name, value);
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void figure_times(int64_t *us, size_t n)
{
    if (n == 0) {
        return;
    }

    qsort(us, n, sizeof *us, compare_times);
    figure("p50_us", (double)us[n / 2]);
    figure("p99_us", (double)us[n * 99 / 100]);
    figure("max_us", (double)us[n - 1]);
}

void *alloc_touched(int64_t n, size_t size)
{
    void *p = calloc((size_t)n + 1, size);

    if (!p) {
        die("out of memory");
    }

    return memset(p, 0xff, ((size_t)n + 1) * size);
}

int bench_main(int argc, char **argv, const struct system *system)
{
    if (argc < 2) {
        die("missing verb; bench.c lists them");
    }

    const char *verb = argv[1];
    char kind[KIND_LEN + 1];

    arguments_set(argv + 2);
    snprintf(kind, sizeof kind, "j%03u", (unsigned)argument_int("run", 0) % 1000);
    alarm(MOST_S); /* whatever it waits for, it does not wait for longer */
    system->open(argument("at", NULL));

    if (strcmp(verb, "fill") == 0) {
        return produce_bulk(system, "wait", 1000, now_us() / 1000 + AN_HOUR_MS);
    }
    if (strcmp(verb, "one") == 0) {
        return produce_singly(system);
    }
    if (strcmp(verb, "produce") == 0) {
        return produce_at_rate(system, kind);
    }
    if (strcmp(verb, "burst") == 0) {
        return produce_bulk(system, kind, argument_int("step", 0) * 1000, argument_required("t0"));
    }
    if (strcmp(verb, "listen") == 0) {
        return listen_and_record(system, kind);
    }

    int status = system->verb ? system->verb(verb) : -1;
    if (status < 0) {
        die("no such verb: %s", verb);
    }

    return status;
}
