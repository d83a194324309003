/* SPDX-License-Identifier: MIT */
/* Handlers that block: four threads write reports, which takes two seconds each, while a thousand
 * orders time out at their moments. There is no event loop in this program; lapse_sync.h has one,
 * in a thread of its own.
 *
 *     lapse dev                                 prints the URL of a Redis to try things on
 *     LAPSE_URL=unix://... blocking             in another terminal
 *
 * A thread that blocks keeps no other from its job, and its lease is renewed meanwhile. */
#include <lapse_sync.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { REPORTS = 4, REPORT_S = 2, ORDERS = 1000, ORDERS_WITHIN_MS = 2000 };

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int n_reports, n_orders;
    int64_t late_us[ORDERS];
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void check(int err, const char *what)
{
    if (err) {
        fprintf(stderr, "blocking: %s: %s\n", what, lapse_strerror(err));
        exit(1);
    }
}

static void on_log(int level, const char *line, void *arg)
{
    (void)level;
    (void)arg;
    fprintf(stderr, "blocking: %s\n", line);
}

/* ---- handlers: each runs in a thread of its queue ---- */
static void on_report(struct lapse_sync *s, struct lapse_job *job, void *arg)
{
    (void)arg;
    sleep(REPORT_S); /* a query, a call of another service, ... */
    printf("%s is written\n", lapse_job_id(job));
    check(lapse_sync_done(s, job, 0), "settling a report");

    pthread_mutex_lock(&all.mutex);
    all.n_reports++;
    pthread_cond_signal(&all.changed);
    pthread_mutex_unlock(&all.mutex);
}

static void on_order(struct lapse_sync *s, struct lapse_job *job, void *arg)
{
    int64_t late_us = lapse_job_claimed_us(job) - lapse_job_due_ms(job) * 1000;

    (void)arg;
    check(lapse_sync_done(s, job, 0), "settling an order");

    pthread_mutex_lock(&all.mutex);
    if (all.n_orders < ORDERS) {
        all.late_us[all.n_orders] = late_us;
    }
    all.n_orders++;
    pthread_cond_signal(&all.changed);
    pthread_mutex_unlock(&all.mutex);
}

/* ---- the program ---- */
static void schedule(struct lapse_sync *s, const char *queue, int number, int64_t delay_ms)
{
    struct lapse_spec spec = lapse_spec_init();
    char id[32];

    snprintf(id, sizeof id, "%s-%d", queue, number);
    spec.queue = queue;
    spec.id = id;
    spec.due = lapse_in(delay_ms);
    spec.on_conflict = LAPSE_KEEP; /* so that it can be repeated when the outcome is unknown */
    check(lapse_sync_schedule(s, &spec, 0, NULL), "scheduling");
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    struct lapse_options options = lapse_options_init();
    struct lapse_sync_listen_options four = {.size = sizeof four, .threads = REPORTS};
    struct lapse_sync_listen_options two = {.size = sizeof two, .threads = 2, .max_running = 64};
    struct lapse_sync *s;

    setvbuf(stdout, NULL, _IOLBF, 0);
    options.url = argc > 1 ? argv[1] : getenv("LAPSE_URL");
    options.log = on_log;
    check(lapse_sync_open(&s, &options), "opening");
    check(lapse_sync_listen(s, "report", &four, on_report, NULL), "listening");
    check(lapse_sync_listen(s, "order", &two, on_order, NULL), "listening");

    for (int i = 0; i < ORDERS; i++) {
        schedule(s, "order", i, 500 + i * ORDERS_WITHIN_MS / ORDERS);
    }
    for (int i = 0; i < REPORTS; i++) {
        schedule(s, "report", i, 0);
    }

    pthread_mutex_lock(&all.mutex);
    while (all.n_reports < REPORTS || all.n_orders < ORDERS) {
        pthread_cond_wait(&all.changed, &all.mutex);
    }
    pthread_mutex_unlock(&all.mutex);

    lapse_sync_close(s, 1000);

    size_t half = ORDERS / 2;
    qsort(all.late_us, ORDERS, sizeof *all.late_us, by_size);
    printf(
        "%d orders timed out meanwhile: half of them within %.3f ms, the last one after %.3f ms\n",
        ORDERS, (double)all.late_us[half] / 1000, (double)all.late_us[ORDERS - 1] / 1000);

    return all.late_us[0] < 0; /* none is early */
}
