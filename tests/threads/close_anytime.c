/* SPDX-License-Identifier: MIT */
/* close_anytime URL N: a handle is opened and closed N times, each time when a little more has
 * happened, while its handlers schedule, settle late, stop their queue, or leave a job to another
 * thread. No job is lost, none is left running, and no try is counted that did not run. */
#include "programs.h"

enum { THREADS = 3, HELD = 6, JOBS = 200, LEASE_MS = 3000 };

static struct {
    atomic_uint began, n_done, n_gone;
    struct lapse_job *left;
} x;

static void settle(struct lapse_sync *s, struct lapse_job *job)
{
    int err = lapse_sync_done(s, job, 0);

    CHECK(err == 0 || err == LAPSE_EGONE || err == LAPSE_ECLOSED || err == LAPSE_ELOST);
    if (err == 0) {
        x.n_done++;
    } else {
        x.n_gone++;
    }
}

static void on_job(struct lapse_sync *s, struct lapse_job *job, void *arg)
{
    unsigned n = ++x.began;
    (void)arg;

    if (n % 4 == 0) {
        job = swap_job(&x.left, job);
    } else if (n % 4 == 1) {
        poll(NULL, 0, 2);
    } else if (n % 8 == 2) {
        lapse_sync_unlisten(s, "q");
    }
    if (job) {
        settle(s, job);
    }
}

/* Waits until so much has happened, or a while. */
static void let_it_run(unsigned moment)
{
    unsigned began = x.began;
    int64_t end_ms = now_ms() + 20;

    if (moment % 3 == 0) {
        poll(NULL, 0, (int)moment % 7);
    } else {
        while (x.began < began + moment % 16 && now_ms() < end_ms) {
            poll(NULL, 0, 0);
        }
    }
}

static void open_and_close(const char *url, unsigned moment)
{
    struct lapse_sync_listen_options o = {
        .size = sizeof o, .threads = THREADS, .max_running = moment % 2 ? HELD : 0};
    struct lapse_sync *s = open_sync(url, LEASE_MS);

    CHECK_OK(lapse_sync_listen(s, "q", &o, on_job, NULL));
    let_it_run(moment);
    lapse_sync_close(s, moment % 4 ? 100 : 0);
    lapse_sync_free(swap_job(&x.left, NULL));
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    unsigned n = (unsigned)strtoul(argv[2], NULL, 10);

    struct lapse_sync *s = open_sync(argv[1], 0);
    for (unsigned i = 0; i < JOBS; i++) {
        schedule_in(s, "q", 0);
    }
    for (unsigned i = 0; i < n; i++) {
        open_and_close(argv[1], i);
        /* at once, unless a second was too short for Redis to answer: then when the leases end */
        UNTIL(depth_of(s, "q").running == 0);
        struct lapse_depth d = depth_of(s, "q");
        CHECK(d.dead == 0);
        if (d.waiting < JOBS / 2) {
            for (unsigned k = 0; k < JOBS / 2; k++) {
                schedule_in(s, "q", 0);
            }
        }
    }

    printf("close_anytime: %u handles, %u runs, %u done, %u not settled in time\n", n, x.began,
           x.n_done, x.n_gone);
    lapse_sync_close(s, 0);

    return 0;
}
