/* SPDX-License-Identifier: MIT */
/* spread t0=MS rate=R n=N [measured=N] end=MS FILE...: how late the (first) jobs of one run were,
 * heard by one or more listeners. A job that did not come until end= was later than that: where
 * such a one decides a figure, its bound is printed with a > before it. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct job {
    int64_t late_us, claimed_late_us;
    unsigned times;
} * job;
static int64_t n, n_claimed, n_early, n_twice, n_lost;

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* us: the missing ones are negative, as minus the least they can be. */
static void tell(const char *prefix, int64_t *us, int64_t count)
{
    static const struct {
        const char *name;
        int64_t per_mille;
    } part[] = {{"p50", 500}, {"p90", 900}, {"p99", 990}, {"p999", 999}, {"max", 1000}};
    bool bound = false;
    int64_t least = INT64_MAX;

    for (int64_t i = 0; i < count; i++) {
        if (us[i] < 0) {
            us[i] = -us[i];
            least = us[i] < least ? us[i] : least;
        }
    }

    qsort(us, (size_t)count, sizeof *us, by_size);

    for (size_t i = 0; count && i < sizeof part / sizeof *part; i++) {
        int64_t at = count * part[i].per_mille / 1000;
        int64_t v = us[at < count ? at : count - 1];
        bound = v >= least;
        printf("%s%s_ms %s%.3f\n", prefix, part[i].name, bound ? ">" : "", (double)v / 1000);
    }
}

static void read_file(const char *path, int64_t t0_ms, int64_t rate)
{
    FILE *f = fopen(path, "r");
    int64_t seq;
    int64_t start_us;
    int64_t claimed_us;
    int64_t due_ms;

    while (f && fscanf(f, "%" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64, &seq, &start_us,
                       &claimed_us, &due_ms) == 4) {
        if (seq < 0 || seq >= n) {
            continue;
        }
        struct job *j = &job[seq];
        /* planned dues are whole milliseconds for every system */
        int64_t due_us = due_ms ? due_ms * 1000 : (rate ? t0_ms + seq * 1000 / rate : t0_ms) * 1000;
        if (j->times++ == 1) {
            n_twice++;
        }
        if (j->times > 1) {
            continue;
        }
        n_early += (claimed_us ? claimed_us : start_us) < due_us;
        j->late_us = start_us > due_us ? start_us - due_us : 0;
        j->claimed_late_us = claimed_us > due_us ? claimed_us - due_us : 0;
        n_claimed += claimed_us != 0;
    }

    if (f) {
        fclose(f);
    }
}

int main(int argc, char **argv)
{
    int64_t t0_ms = 0;
    int64_t rate = 0;
    int64_t end_ms = 0;
    int64_t measured = INT64_MAX;
    int i = 1;

    for (; i < argc && strchr(argv[i], '='); i++) {
        int64_t v = strtoll(strchr(argv[i], '=') + 1, NULL, 10);
        t0_ms = strncmp(argv[i], "t0=", 3) ? t0_ms : v;
        rate = strncmp(argv[i], "rate=", 5) ? rate : v;
        end_ms = strncmp(argv[i], "end=", 4) ? end_ms : v;
        n = strncmp(argv[i], "n=", 2) ? n : v;
        measured = strncmp(argv[i], "measured=", 9) ? measured : v;
    }

    job = calloc((size_t)n + 1, sizeof *job);

    int64_t *us = calloc((size_t)n + 1, sizeof *us);
    if (!job || !us) {
        return 1;
    }

    for (; i < argc; i++) {
        read_file(argv[i], t0_ms, rate);
    }

    for (int64_t k = 0; k < n; k++) {
        int64_t least = (end_ms - (rate ? t0_ms + k * 1000 / rate : t0_ms)) * 1000;
        us[k] = job[k].times ? job[k].late_us : -(least > 0 ? least : 1);
        n_lost += !job[k].times;
    }

    printf("n %" PRId64 "\nlost %" PRId64 "\ntwice %" PRId64 "\nearly %" PRId64 "\n", n, n_lost,
           n_twice, n_early);
    measured = measured < n ? measured : n;
    tell("", us, measured);

    int64_t m = 0;
    for (int64_t k = 0; k < measured && n_claimed; k++) {
        if (job[k].times) {
            us[m++] = job[k].claimed_late_us;
        }
    }

    tell("claimed_", us, m);
    free(us);
    free(job);

    return 0;
}
