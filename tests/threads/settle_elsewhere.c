/* SPDX-License-Identifier: MIT */
/* settle_elsewhere URL N: handlers hand their jobs to two other threads, which settle them in each
 * way. */
#include "programs.h"

enum { THREADS = 4, HELD = 32 };

static struct {
    struct lapse_sync *s;
    pthread_mutex_t mutex;
    pthread_cond_t more;
    struct lapse_job *jobs[HELD];
    unsigned n_jobs;
    bool over;
    atomic_uint n_done, n_failed, n_retried;
} x = {.mutex = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static void on_job(struct lapse_sync *s, struct lapse_job *job, void *arg)
{
    (void)s;
    (void)arg;
    pthread_mutex_lock(&x.mutex);
    CHECK(x.n_jobs < HELD);
    x.jobs[x.n_jobs++] = job;
    pthread_cond_signal(&x.more);
    pthread_mutex_unlock(&x.mutex);
}

static struct lapse_job *next_job(void)
{
    struct lapse_job *job = NULL;

    pthread_mutex_lock(&x.mutex);
    while (x.n_jobs == 0 && !x.over) {
        pthread_cond_wait(&x.more, &x.mutex);
    }
    if (x.n_jobs > 0) {
        job = x.jobs[--x.n_jobs];
    }
    pthread_mutex_unlock(&x.mutex);

    return job;
}

static void *settle_some(void *arg)
{
    unsigned n = 0;
    (void)arg;

    for (struct lapse_job *job; (job = next_job());) {
        CHECK(lapse_job_until_ms(job) != 0);
        if (lapse_job_try(job) > 1 || ++n % 3 == 0) {
            CHECK_OK(lapse_sync_done(x.s, job, 0));
            x.n_done++;
        } else if (n % 3 == 1) {
            CHECK_OK(lapse_sync_retry(x.s, job, 0, "again", 0));
            x.n_retried++;
        } else {
            CHECK_OK(lapse_sync_fail(x.s, job, "broken", 0));
            x.n_failed++;
        }
    }

    return NULL;
}

int main(int argc, char **argv)
{
    struct lapse_sync_listen_options o = {
        .size = sizeof o, .threads = THREADS, .max_running = HELD};
    pthread_t settlers[2];

    CHECK(argc == 3);
    unsigned n = (unsigned)strtoul(argv[2], NULL, 10);
    x.s = open_sync(argv[1], 0);
    for (int i = 0; i < 2; i++) {
        settlers[i] = start(settle_some, NULL);
    }

    CHECK_OK(lapse_sync_listen(x.s, "q", &o, on_job, NULL));
    for (unsigned i = 0; i < n; i++) {
        schedule_in(x.s, "q", 0);
    }
    UNTIL(x.n_done + x.n_failed == n);

    struct lapse_depth d = depth_of(x.s, "q");
    CHECK(d.waiting == 0 && d.running == 0 && d.dead == x.n_failed);
    printf("settle_elsewhere: %u done, %u failed, %u retried\n", x.n_done, x.n_failed, x.n_retried);

    pthread_mutex_lock(&x.mutex);
    x.over = true;
    pthread_cond_broadcast(&x.more);
    pthread_mutex_unlock(&x.mutex);
    for (int i = 0; i < 2; i++) {
        pthread_join(settlers[i], NULL);
    }
    lapse_sync_close(x.s, 1000);

    return 0;
}
