/* SPDX-License-Identifier: MIT */
/* schedulers URL N: 16 threads schedule N jobs over one connection, read and cancel some of them,
 * and give up on others. Prints how many jobs a second were scheduled. */
#include "programs.h"

enum { THREADS = 16, HOUR = 3600000 };

struct schedulers {
    struct lapse_sync *s;
    unsigned n;
    atomic_uint next, n_given_up;
};

static void *schedule_some(void *arg)
{
    struct schedulers *x = arg;
    struct lapse_spec spec = lapse_spec_init();
    char id[16];

    spec.queue = "q";
    spec.id = id;
    spec.due = lapse_in(HOUR);
    for (unsigned n; (n = x->next++) < x->n;) {
        struct lapse_job *job = NULL;
        snprintf(id, sizeof id, "%u", n);
        CHECK_OK(lapse_sync_schedule(x->s, &spec, 0, &job));
        CHECK(strcmp(lapse_job_id(job), id) == 0);
        lapse_sync_free(job);
    }

    return NULL;
}

/* A timeout of a millisecond is over before, while or after the loop takes the call. */
static void *read_some(void *arg)
{
    struct schedulers *x = arg;
    char id[16];

    for (unsigned n; (n = x->next++) < x->n;) {
        struct lapse_job *job = NULL;
        snprintf(id, sizeof id, "%u", n);
        int err = lapse_sync_get(x->s, "q", id, n % 2, &job);
        if (err == LAPSE_ETIMEOUT && n % 2) {
            x->n_given_up++;
        } else {
            CHECK_OK(err);
            CHECK(strcmp(lapse_job_id(job), id) == 0);
        }
        lapse_sync_free(job);
        if (n % 3 == 0) {
            CHECK_OK(lapse_sync_cancel(x->s, "q", id, 0, 0, NULL));
        }
    }

    return NULL;
}

static int64_t run(struct schedulers *x, void *(*work)(void *))
{
    pthread_t threads[THREADS];
    int64_t from_ms = now_ms();

    x->next = 0;
    for (int i = 0; i < THREADS; i++) {
        threads[i] = start(work, x);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }

    return now_ms() - from_ms;
}

int main(int argc, char **argv)
{
    struct schedulers x = {.n = 0};

    CHECK(argc == 3);
    x.n = (unsigned)strtoul(argv[2], NULL, 10);
    x.s = open_sync(argv[1], 0);
    depth_of(x.s, "q"); /* it is connected */

    int64_t took_ms = run(&x, schedule_some);
    CHECK(depth_of(x.s, "q").waiting == x.n);
    printf("schedulers: %u threads, one connection: %.0f jobs a second\n", THREADS,
           1000.0 * x.n / (double)(took_ms > 0 ? took_ms : 1));

    run(&x, read_some);
    CHECK(depth_of(x.s, "q").waiting == x.n - (x.n + 2) / 3);
    printf("schedulers: %u calls gave up\n", x.n_given_up);
    lapse_sync_close(x.s, 1000);

    return 0;
}
