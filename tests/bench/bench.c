/* SPDX-License-Identifier: MIT */
/* The verbs:
 *
 *   fill     at=PATH n=N [from=K]              jobs K to K+N-1, due in an hour or two, as many in
 *                                              flight as the peer takes
 *   one      at=PATH n=N                       the same, but each waits for the answer before it
 *   produce  at=PATH run=R t0=MS rate=R n=N    job i is due at t0 + i / rate, and is scheduled
 *                                              lead= to lead= + jitter= ms before
 *   burst    at=PATH run=R t0=MS n=N           all are due at t0
 *   listen   at=PATH run=R t0=MS n=N until=MS out=FILE
 *                                              until all have come or it is late; n=0: until then
 *
 * The id of a timed job is its run and its number, so jobs that an earlier run left behind are not
 * counted. */
#include "bench.h"
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static char **words; /* NULL ends */

static struct {
    struct record {
        int64_t seq, start_us, claimed_us, due_ms;
    } * record;
    int64_t n, max, n_expected, until_us, settled_us, n_settled;
    char run[8];
    long rss_early_kib;
} ear;

const char *arg(const char *name, const char *otherwise)
{
    size_t len = strlen(name);

    for (char **w = words; *w; w++) {
        if (strncmp(*w, name, len) == 0 && (*w)[len] == '=') {
            return *w + len + 1;
        }
    }

    if (!otherwise) {
        die("%s= is missing", name);
    }

    return otherwise;
}

int64_t arg_n(const char *name, int64_t otherwise)
{
    char text[24];
    char *end;

    snprintf(text, sizeof text, "%" PRId64, otherwise);
    const char *value = arg(name, otherwise == INT64_MIN ? NULL : text);
    int64_t n = strtoll(value, &end, 10);
    if (end == value || *end) {
        die("%s=%s: not a number", name, value);
    }

    return n;
}

const char *arg_option(size_t nth, const char **value)
{
    for (char **w = words; *w; w++) {
        char *is = strchr(*w, '=');
        if (strncmp(*w, "o.", 2) == 0 && is && nth-- == 0) {
            static char name[64];
            snprintf(name, sizeof name, "%.*s", (int)(is - *w - 2), *w + 2);
            *value = is + 1;
            return name;
        }
    }

    return NULL;
}

void die(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    fputs("bench: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    exit(1);
}

int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

void until_us(int64_t at_us)
{
    struct timespec t = {at_us / 1000000, (long)(at_us % 1000000) * 1000};
    while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL) == EINTR) {
        ;
    }
}

void tell(const char *name, double value)
{
    printf("%s %.15g\n", name, value);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void tell_times(int64_t *us, size_t n)
{
    if (n == 0) {
        return;
    }
    qsort(us, n, sizeof *us, by_size);
    tell("p50_us", (double)us[n / 2]);
    tell("p99_us", (double)us[n * 99 / 100]);
    tell("max_us", (double)us[n - 1]);
}

static void *room(int64_t n, size_t size)
{
    void *p = calloc((size_t)n + 1, size);

    if (!p) {
        die("no memory");
    }
    /* written now, so that a growing resident set is not ours */
    return memset(p, 0xff, ((size_t)n + 1) * size);
}

/* ---- putting ---- */
static void put(const struct peer *p, const char *kind, int64_t number, int64_t due_ms)
{
    char id[ID_LEN + 24];
    char body[BODY_LEN + 1];
    snprintf(id, sizeof id, "%.4s%016" PRId64, kind, number);
    snprintf(body, sizeof body, "%-100s", "a hundred bytes, as everybody measures with");
    p->put(id, body, due_ms);
}

static int fill(const struct peer *p, const char *kind, int64_t step_us, int64_t first_ms)
{
    int64_t n = arg_n("n", INT64_MIN);
    int64_t from = arg_n("from", 0);
    int64_t start_us = now_us();

    for (int64_t i = 0; i < n; i++) {
        put(p, kind, from + i, first_ms + i * step_us / 1000);
        if ((i + 1) % 100 == 0) {
            p->until(p->window);
        }
    }

    p->until(0);
    tell("s", (double)(now_us() - start_us) / 1e6);
    tell("jobs_s", (double)n * 1e6 / (double)(now_us() - start_us));

    return 0;
}

static int one(const struct peer *p)
{
    int64_t n = arg_n("n", INT64_MIN);
    int64_t start_us = now_us();
    int64_t *us = room(n, sizeof *us);

    for (int64_t i = 0; i < n; i++) {
        int64_t before = now_us();
        put(p, "one-", i, before / 1000 + 3600000);
        p->until(0);
        us[i] = now_us() - before;
    }

    tell("jobs_s", (double)n * 1e6 / (double)(now_us() - start_us));
    tell_times(us, (size_t)n);

    return 0;
}

struct plan {
    int64_t put_us, due_ms, seq;
};

static int by_put(const void *a, const void *b)
{
    return by_size(&((const struct plan *)a)->put_us, &((const struct plan *)b)->put_us);
}

/* How long before it is due a job is put differs from job to job, as in life: with one length for
 * all, a system that counts in whole seconds would look punctual. And it is no whole number of ms,
 * or each put would meet a due. */
static int produce(const struct peer *p, const char *kind)
{
    int64_t n = arg_n("n", INT64_MIN);
    int64_t t0 = arg_n("t0", INT64_MIN);
    int64_t rate = arg_n("rate", INT64_MIN);
    int64_t behind_us = 0;
    int64_t lead = arg_n("lead", 1000);
    int64_t jitter = arg_n("jitter", 1000);
    struct plan *plan = room(n, sizeof *plan);

    for (int64_t i = 0; i < n; i++) {
        int64_t due_us = t0 * 1000 + i * 1000000 / rate;
        int64_t before_us = lead * 1000;
        if (jitter > 0) {
            before_us += i * 7919 % 1000 * jitter + i * 611953 % 1000;
        }
        plan[i] = (struct plan){due_us - before_us, lead ? due_us / 1000 : 0, i};
    }

    qsort(plan, (size_t)n, sizeof *plan, by_put);

    for (int64_t i = 0; i < n;) {
        until_us(plan[i].put_us);
        int64_t now = now_us();
        for (; i < n && plan[i].put_us <= now; i++) {
            put(p, kind, plan[i].seq, plan[i].due_ms);
        }
        p->until(0);
        behind_us =
            now_us() - plan[i - 1].put_us > behind_us ? now_us() - plan[i - 1].put_us : behind_us;
    }

    tell("behind_ms", (double)behind_us / 1000);
    tell("reached_s",
         (double)n / ((double)n / (double)rate + (double)(now_us() - plan[n - 1].put_us) / 1e6));

    return 0;
}

/* ---- hearing ---- */
bool listening(void)
{
    return (ear.n_expected == 0 || ear.n_settled < ear.n_expected) && now_us() < ear.until_us;
}

int64_t listen_until_us(void)
{
    return ear.until_us;
}

static long rss_kib(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (!f || fscanf(f, "%*d %ld", &pages) != 1) {
        pages = 0;
    }

    if (f) {
        fclose(f);
    }

    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

void heard(const char *id, size_t len, int64_t claimed_us, int64_t due_ms)
{
    int64_t now = now_us();

    if (len != ID_LEN || memcmp(id, ear.run, 4) != 0 || ear.n == ear.max) {
        return;
    }

    ear.record[ear.n++] = (struct record){strtoll(id + 4, NULL, 10), now, claimed_us, due_ms};
    if (ear.n == ear.n_expected / 10) {
        ear.rss_early_kib = rss_kib();
    }
}

void settled(void)
{
    ear.n_settled++;
    ear.settled_us = now_us();
}

static double cpu_us(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static int hear(const struct peer *p)
{
    snprintf(ear.run, sizeof ear.run, "j%03" PRId64, arg_n("run", 0) % 1000);
    ear.n_expected = arg_n("n", INT64_MIN);
    ear.max = ear.n_expected * 2 + 1000;
    ear.until_us = arg_n("until", INT64_MIN) * 1000;
    ear.record = room(ear.max, sizeof *ear.record);

    double before = cpu_us();
    p->listen();

    double cpu = cpu_us() - before;
    tell("heard", (double)ear.n);
    if (ear.n > 0) {
        tell("cpu_us_job", cpu / (double)ear.n);
        tell("settled_ms", (double)ear.settled_us / 1000 - (double)arg_n("t0", 0));
    }

    /* less our own records */
    long own_kib = (long)((size_t)(ear.max + 1) * sizeof *ear.record / 1024);
    tell("rss_early_kib", (double)(ear.rss_early_kib - own_kib));
    tell("rss_kib", (double)(rss_kib() - own_kib));

    FILE *f = fopen(arg("out", NULL), "w");
    if (!f) {
        die("%s: %m", arg("out", NULL));
    }

    for (int64_t i = 0; i < ear.n; i++) {
        struct record *r = &ear.record[i];
        fprintf(f, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", r->seq, r->start_us,
                r->claimed_us, r->due_ms);
    }

    return fclose(f) ? 1 : 0;
}

int bench_main(int argc, char **argv, const struct peer *p)
{
    if (argc < 2) {
        die("a verb is missing; they are listed in bench.c");
    }

    const char *verb = argv[1];
    char kind[8];
    words = argv + 2;
    snprintf(kind, sizeof kind, "j%03" PRId64, arg_n("run", 0) % 1000);
    alarm((unsigned)arg_n("alarm", 600)); /* whatever it waits for, not for ever */
    p->open(arg("at", NULL));

    int own = p->other ? p->other(verb) : -1;
    if (own >= 0) {
        return own;
    }
    if (strcmp(verb, "fill") == 0) {
        return fill(p, "wait", 1000, now_us() / 1000 + 3600000);
    }
    if (strcmp(verb, "one") == 0) {
        return one(p);
    }
    if (strcmp(verb, "produce") == 0) {
        return produce(p, kind);
    }
    if (strcmp(verb, "burst") == 0) {
        return fill(p, kind, 0, arg_n("t0", INT64_MIN));
    }
    if (strcmp(verb, "listen") == 0) {
        return hear(p);
    }

    die("no such verb: %s", verb);
}
