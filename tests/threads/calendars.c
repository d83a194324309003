/* SPDX-License-Identifier: MIT */
/* calendars URL N: 8 threads each make two calendars known, and schedule series by them, which
 * have N moments together, more than are put in at first. Handlers run in 4 more, while the thread
 * of the handle works moments out. */
#include "programs.h"

enum { THREADS = 8, CALENDARS = 2 * THREADS };

struct calendars {
    struct lapse_sync *s;
    unsigned n_times; /* moments of a series */
    atomic_uint next;
    atomic_uint n_asked[CALENDARS]; /* calls of each function */
    atomic_uint n_run;
};

/* One of a thread: what its calendar and its series are known by. */
struct one {
    struct calendars *all;
    unsigned number;
};

static int64_t on_next(const char *rule, int64_t after_ms, void *arg)
{
    struct one *one = arg;
    int64_t ms = strtoll(rule, NULL, 10);

    one->all->n_asked[one->number]++;
    return (after_ms / ms + 1) * ms;
}

static void schedule_series(struct one *one)
{
    struct lapse_sync *s = one->all->s;
    struct lapse_spec spec = lapse_spec_init();
    struct lapse_series series = lapse_series_init();
    char name[16];

    snprintf(name, sizeof name, "c%u", one->number);
    CHECK(lapse_sync_calendar(s, "C", on_next, one) == LAPSE_EINVAL);
    CHECK_OK(lapse_sync_calendar(s, name, on_next, one));
    CHECK(lapse_sync_calendar(s, name, on_next, one) == LAPSE_EEXIST);

    series.calendar = name;
    series.rule = "10";
    series.times = one->all->n_times;
    series.catch_up = LAPSE_CATCH_UP_ALL;
    spec.queue = "q";
    spec.id = name;
    spec.series = &series;
    CHECK_OK(lapse_sync_schedule(s, &spec, 0, NULL));
}

static void *schedule_some(void *arg)
{
    struct one *ones = arg;

    schedule_series(&ones[0]);
    schedule_series(&ones[1]);
    return NULL;
}

static void on_job(struct lapse_sync *s, struct lapse_job *job, void *arg)
{
    struct calendars *x = arg;

    CHECK_OK(lapse_sync_done(s, job, 0));
    x->n_run++;
}

int main(int argc, char **argv)
{
    struct lapse_sync_listen_options four = {.size = sizeof four, .threads = 4};
    struct calendars x = {.n_run = 0};
    struct one ones[CALENDARS];
    pthread_t threads[THREADS];

    CHECK(argc == 3);
    x.n_times = 1 + (unsigned)strtoul(argv[2], NULL, 10) / CALENDARS;
    x.s = open_sync(argv[1], 0);
    CHECK_OK(lapse_sync_listen(x.s, "q", &four, on_job, &x));

    for (unsigned i = 0; i < CALENDARS; i++) {
        ones[i] = (struct one){.all = &x, .number = i};
    }
    for (int i = 0; i < THREADS; i++) {
        threads[i] = start(schedule_some, &ones[2 * i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }

    UNTIL(x.n_run == CALENDARS * x.n_times);
    for (int i = 0; i < CALENDARS; i++) {
        CHECK(x.n_asked[i] > 0);
    }
    UNTIL(depth_of(x.s, "q").waiting == 0);
    printf("calendars: %u jobs of %d series\n", x.n_run, CALENDARS);
    lapse_sync_close(x.s, 1000);

    return 0;
}
