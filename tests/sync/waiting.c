/* SPDX-License-Identifier: MIT */
#include "waiting.h"
#include <poll.h>

void wait_a_little(void)
{
    poll(NULL, 0, 3);
}

void waiting_bare(struct waiting *w)
{
    *w = (struct waiting){.options = lapse_options_init(), .n_fds = fds_open()};
    alloc_install();
    w->n_live = alloc_live();
    w->server = server_start();
    w->options.url = w->server->url;
}

struct lapse_sync *waiting_open(struct waiting *w)
{
    struct lapse_sync *s = NULL;

    cr_assert_eq(lapse_sync_open(&s, &w->options), 0);
    return s;
}

void waiting_start(struct waiting *w)
{
    waiting_bare(w);
    w->s = waiting_open(w);
}

void waiting_end(struct waiting *w, const char *queue)
{
    lapse_sync_close(w->s, 10000);
    cr_assert_eq(audit(w->server, "lapse", queue, NULL), 0);
    server_stop(w->server);
    cr_assert_eq(alloc_live(), w->n_live, "%ld blocks are left", alloc_live() - w->n_live);
    cr_assert_eq(fds_open(), w->n_fds);
}

int schedule(struct lapse_sync *s, const char *id, int64_t delay_ms)
{
    struct lapse_spec spec = lapse_spec_init();

    spec.queue = "q";
    spec.id = id;
    spec.due = lapse_in(delay_ms);
    return lapse_sync_schedule(s, &spec, 0, NULL);
}

struct lapse_depth depth_of(struct lapse_sync *s, const char *queue)
{
    struct lapse_depth d = {0};

    cr_assert_eq(lapse_sync_depth(s, queue, 0, &d), 0);
    return d;
}

struct lapse_stats stats_of(struct lapse_sync *s)
{
    struct lapse_stats stats;

    cr_assert_eq(lapse_sync_stats(s, &stats, sizeof stats), 0);
    return stats;
}

/* ---- the handler ---- */
void worker_init(struct worker *k, enum way way)
{
    memset(k, 0, sizeof *k);
    k->way = way;
    pthread_mutex_init(&k->mutex, NULL);
}

void worker_settle(struct worker *k, struct lapse_sync *s, struct lapse_job *job, enum way way)
{
    int err = 0;

    switch (way) {
    case DONE: err = lapse_sync_done(s, job, 0); break;
    case RETRY: err = lapse_sync_retry(s, job, HOUR, "again", 0); break;
    case SNOOZE: err = lapse_sync_snooze(s, job, HOUR, "too early", 0); break;
    case FAIL: err = lapse_sync_fail(s, job, "broken", 0); break;
    case RELEASE: err = lapse_sync_release(s, job, 0); break;
    case KEEP: return;
    }

    if (err) {
        k->err = err;
    } else {
        k->settled++;
    }
}

void worker_on_job(struct lapse_sync *s, struct lapse_job *job, void *arg)
{
    struct worker *k = arg;

    unsigned inside = ++k->inside;
    for (unsigned most = k->most; inside > most;) {
        if (atomic_compare_exchange_weak(&k->most, &most, inside)) {
            break;
        }
    }
    k->last_try = lapse_job_try(job);
    k->began++;

    while (k->blocks) {
        wait_a_little();
    }

    if (k->way == KEEP) {
        pthread_mutex_lock(&k->mutex);
        k->kept[k->n_kept++ % KEPT] = job;
        pthread_mutex_unlock(&k->mutex);
    }
    worker_settle(k, s, job, k->way);
    k->inside--;
    k->ended++;
}

int listen_with(struct lapse_sync *s, struct worker *k, unsigned threads, unsigned max_running)
{
    struct lapse_sync_listen_options o = {
        .size = sizeof o, .threads = threads, .max_running = max_running};

    return lapse_sync_listen(s, "q", &o, worker_on_job, k);
}

void worker_keep_one(struct worker *k, struct lapse_sync *s)
{
    worker_init(k, KEEP);
    cr_assert_eq(listen_with(s, k, 1, 0), 0);
    cr_assert_eq(schedule(s, "a", 0), 0);
    wait_until(k->ended == 1);
}
