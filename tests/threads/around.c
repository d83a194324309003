/* SPDX-License-Identifier: MIT */
/* around URL N: a handle with functions around its handlers is opened and closed N times, each time
 * when a little more has happened. The functions before settle some jobs, or hand them on; handlers
 * settle, forget or hand on theirs; another pair of functions is added meanwhile. After each close
 * the function after has been called once for each job that was let pass and settled, and never
 * while a thread had the job. */
#include "programs.h"

enum { THREADS = 3, HELD = 6, JOBS = 200, LEASE_MS = 3000, TOKENS = 65536 };

struct pair {
    atomic_uint n_passed, n_left;
};

static struct {
    struct pair pair[2];
    atomic_uint n; /* jobs that have come to the first function */
    atomic_uint n_ok, n_gone, n_forgotten;
    atomic_bool stopped;        /* the queue, by a handler */
    atomic_bool in_use[TOKENS]; /* a thread has the job of that token: an id may be claimed again */
    unsigned n_ids;
    struct lapse_job *kept;
} x;

static atomic_bool *use_of(const struct lapse_job *job)
{
    return &x.in_use[lapse_job_token(job) % TOKENS];
}

static void settle(struct lapse_sync *s, struct lapse_job *job)
{
    *use_of(job) = false;
    int err = lapse_sync_done(s, job, 0);

    CHECK(err == 0 || err == LAPSE_EGONE || err == LAPSE_ECLOSED || err == LAPSE_ELOST);
    *(err == 0 ? &x.n_ok : &x.n_gone) += 1;
}

static void hand_on(struct lapse_sync *s, struct lapse_job *job)
{
    struct lapse_job *kept = swap_job(&x.kept, job);

    if (kept) {
        settle(s, kept);
    }
}

static int before(struct lapse_sync *s, struct lapse_job *job, void *arg)
{
    struct pair *p = arg;
    bool is_first = p == &x.pair[0];
    unsigned n = is_first ? ++x.n : x.n;

    *use_of(job) = true;
    p->n_passed++;
    if (is_first && n % 16 == 3) {
        settle(s, job);
        return 1;
    }
    if (!is_first && n % 8 == 5) {
        hand_on(s, job);
        return 1;
    }
    if (n % 16 == 7) {
        poll(NULL, 0, 2);
    }
    *use_of(job) = false;
    return 0;
}

static void after(struct lapse_sync *s, const struct lapse_job *job, enum lapse_how how, int err,
                  int64_t ran_us, void *arg)
{
    struct pair *p = arg;

    (void)s;
    (void)err;
    CHECK(how == LAPSE_HOW_DONE || how == LAPSE_HOW_RELEASE || how == 0);
    CHECK(ran_us >= 0);
    CHECK(!*use_of(job));
    p->n_left++;
}

static void on_job(struct lapse_sync *s, struct lapse_job *job, void *arg)
{
    unsigned n = x.n;
    (void)arg;

    *use_of(job) = true;
    if (n % 64 == 11) {
        *use_of(job) = false;
        CHECK(lapse_sync_forget(s, job) != LAPSE_EINVAL);
        x.n_forgotten++;
        return;
    }
    if (n % 16 == 9) {
        lapse_sync_unlisten(s, "q");
        x.stopped = true;
    }
    if (n % 4 == 1) {
        poll(NULL, 0, 2);
    }
    if (n % 4 == 2) {
        hand_on(s, job);
    } else {
        settle(s, job);
    }
}

/* Waits until so much has happened, or the queue was stopped. */
static void let_it_run(unsigned moment)
{
    unsigned n = x.n;

    UNTIL(x.n >= n + moment % 16 || x.stopped);
}

static void open_and_close(const char *url, unsigned moment)
{
    struct lapse_sync_listen_options o = {
        .size = sizeof o, .threads = THREADS, .max_running = moment % 2 ? HELD : 0};
    struct lapse_sync *s = open_sync(url, LEASE_MS);
    unsigned n_before[2] = {x.pair[0].n_passed - x.pair[0].n_left,
                            x.pair[1].n_passed - x.pair[1].n_left};

    x.stopped = false;
    CHECK_OK(lapse_sync_around(s, before, after, &x.pair[0]));
    CHECK_OK(lapse_sync_listen(s, "q", &o, on_job, NULL));
    let_it_run(moment);
    CHECK_OK(lapse_sync_around(s, before, after, &x.pair[1]));
    let_it_run(moment / 2);
    lapse_sync_close(s, moment % 4 ? 100 : 0);

    struct lapse_job *kept = swap_job(&x.kept, NULL);
    unsigned n_kept = kept != NULL;
    lapse_sync_free(kept);
    unsigned n_inside = x.pair[0].n_passed - x.pair[0].n_left - n_before[0];
    CHECK(n_inside == n_kept);
    n_inside = x.pair[1].n_passed - x.pair[1].n_left - n_before[1];
    CHECK(n_inside <= n_kept); /* it may have come before there were two pairs */
}

static void schedule_next(struct lapse_sync *s)
{
    struct lapse_spec spec = lapse_spec_init();
    char id[16];

    snprintf(id, sizeof id, "%u", x.n_ids++);
    spec.queue = "q";
    spec.id = id;
    CHECK_OK(lapse_sync_schedule(s, &spec, 0, NULL));
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    unsigned n = (unsigned)strtoul(argv[2], NULL, 10);

    struct lapse_sync *s = open_sync(argv[1], 0);
    for (unsigned i = 0; i < n; i++) {
        while (depth_of(s, "q").waiting < JOBS / 2) {
            schedule_next(s);
        }
        open_and_close(argv[1], i);
    }
    UNTIL(depth_of(s, "q").running == 0);
    CHECK(depth_of(s, "q").dead == 0);

    printf("around: %u handles, %u jobs, %u done, %u not settled in time, %u forgotten\n", n, x.n,
           x.n_ok, x.n_gone, x.n_forgotten);
    lapse_sync_close(s, 0);

    return 0;
}
