/* SPDX-License-Identifier: MIT */
/* blocked_pool URL N: 64 threads block in handlers for two leases. No more is claimed, no lease
 * ends, and the jobs of another queue run meanwhile; then N jobs are worked off. */
#include "programs.h"

enum { THREADS = 64, LEASE_MS = 4500 };

static struct {
    atomic_uint inside, ended, others;
    atomic_bool blocks;
} x = {.blocks = true};

static void on_job(struct lapse_sync *s, struct lapse_job *job, void *arg)
{
    (void)arg;
    x.inside++;
    while (x.blocks) {
        CHECK(lapse_job_until_ms(job) != 0); /* the loop renews it meanwhile */
        poll(NULL, 0, 10);
    }

    CHECK(lapse_job_try(job) == 1);
    CHECK_OK(lapse_sync_done(s, job, 0));
    x.ended++;
}

static void on_other(struct lapse_sync *s, struct lapse_job *job, void *arg)
{
    (void)arg;
    CHECK_OK(lapse_sync_done(s, job, 0));
    x.others++;
}

int main(int argc, char **argv)
{
    struct lapse_sync_listen_options o = {.size = sizeof o, .threads = THREADS};

    CHECK(argc == 3);
    unsigned n = (unsigned)strtoul(argv[2], NULL, 10);
    struct lapse_sync *s = open_sync(argv[1], LEASE_MS);

    for (unsigned i = 0; i < n; i++) {
        schedule_in(s, "q", 0);
    }
    CHECK_OK(lapse_sync_listen(s, "q", &o, on_job, NULL));
    CHECK_OK(lapse_sync_listen(s, "other", NULL, on_other, NULL));
    UNTIL(x.inside == THREADS);

    for (int64_t end_ms = now_ms() + 2 * LEASE_MS; now_ms() < end_ms;) {
        schedule_in(s, "other", 0);
        CHECK(depth_of(s, "q").running == THREADS);
    }
    UNTIL(depth_of(s, "other").waiting + depth_of(s, "other").running == 0);
    CHECK(x.others > 0 && x.inside == THREADS);

    x.blocks = false;
    UNTIL(x.ended == n);
    printf("blocked_pool: %u jobs of %u threads, %u others meanwhile\n", n, THREADS, x.others);
    lapse_sync_close(s, 10000);

    return 0;
}
