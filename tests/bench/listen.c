/* SPDX-License-Identifier: MIT */
/* A listener's records lie in memory that it shares with run.py, which reads them when the listener
 * has ended, also if it was killed. */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

struct record {     /* as lateness.py reads it */
    int64_t number; /* -1: not used; below that: the end of a job that lasts, -2 less its number */
    int64_t start_us, claimed_us, due_ms;
};

static struct {
    struct record *records;
    int64_t n, max;
    int64_t n_expected, until_us;
    int64_t n_settled, last_settled_us;
    char kind[KIND_LEN + 1];
    long rss_early_kib;
} listener;

bool listening(void)
{
    bool all_settled = listener.n_expected > 0 && listener.n_settled >= listener.n_expected;
    return !all_settled && now_us() < listener.until_us;
}

int64_t listen_until_us(void)
{
    return listener.until_us;
}

/* Less the records, which have been written to once before anything is measured. */
static long listener_rss_kib(void)
{
    long own_kib = (long)((size_t)listener.max * sizeof *listener.records / 1024);
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (!f || fscanf(f, "%*d %ld", &pages) != 1) {
        pages = 0;
    }
    if (f) {
        fclose(f);
    }

    return pages * (sysconf(_SC_PAGESIZE) / 1024) - own_kib;
}

static bool is_recorded(const char *id, size_t len)
{
    return len == ID_LEN && memcmp(id, listener.kind, KIND_LEN) == 0 && listener.n < listener.max;
}

void job_ends(const char *id, size_t len)
{
    if (is_recorded(id, len)) {
        int64_t number = strtoll(id + KIND_LEN, NULL, 10);
        listener.records[listener.n++] = (struct record){-2 - number, now_us(), 0, 0};
    }
}

void job_started(const char *id, size_t len, int64_t claimed_us, int64_t due_ms)
{
    int64_t now = now_us();

    if (!is_recorded(id, len)) {
        return;
    }

    listener.records[listener.n++] =
        (struct record){strtoll(id + KIND_LEN, NULL, 10), now, claimed_us, due_ms};
    if (listener.n == listener.n_expected / 10) {
        listener.rss_early_kib = listener_rss_kib();
    }
}

void job_settled(void)
{
    listener.n_settled++;
    listener.last_settled_us = now_us();
}

static double cpu_us(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static void listener_open(const char *kind)
{
    int fd = (int)argument_required("record");

    snprintf(listener.kind, sizeof listener.kind, "%s", kind);
    listener.n_expected = argument_required("n");
    listener.until_us = argument_required("until") * 1000;
    listener.max = listener.n_expected * 2 + 1000;

    size_t size = (size_t)listener.max * sizeof *listener.records;
    if (ftruncate(fd, (off_t)size)) {
        die("record=%d: %m", fd);
    }

    listener.records = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (listener.records == MAP_FAILED) {
        die("record=%d: %m", fd);
    }

    memset(listener.records, 0xff, size);
}

int listen_and_record(const struct system *system, const char *kind)
{
    listener_open(kind);

    double before_us = cpu_us();
    system->listen();
    double used_us = cpu_us() - before_us;

    figure("heard", (double)listener.n);
    figure("rss_kib", (double)listener_rss_kib());
    if (listener.n > 0) {
        figure("cpu_us_job", used_us / (double)listener.n);
        figure("settled_ms",
               (double)listener.last_settled_us / 1000 - (double)argument_int("t0", 0));
        figure("rss_early_kib", (double)listener.rss_early_kib);
    }

    return 0;
}
