/* SPDX-License-Identifier: MIT */
/* F64: parts of many groups, while one of the listeners is killed each second. Each listener notes
 * in shared memory which job has each part that it sees, and which jobs it settles; so the test
 * knows at the end whether a part was in two jobs, or in none that was done. */
#include "ask.h"
#include "child.h"
#include "fault.h"
#include "listener.h"
#include "listening.h"
#include <signal.h>

enum { CREW = 3, GROUPS = 50, AT_ONCE = 1000, AHEAD = 5000, KILL_MS = 1000 };

/* By the number of the part. */
struct noted {
    atomic_ullong job;   /* a hash of the id of the job that had it first; 0: none */
    atomic_uint n_begun; /* runs of that job */
    atomic_uint n_settled;
};

struct scene {
    struct flow *f;
    struct listener_plan plan;
    struct listener *crew[CREW];
    struct noted *parts; /* shared with the listeners */
    struct shared_counts {
        atomic_long n_seen; /* parts that a job has had */
        atomic_long n_two;  /* that were in two jobs */
    } * counts;
    long n, n_asked;
    long n_kills;
    int64_t killed_at_ms;
};

/* ---- in the processes of the listeners ---- */
static uint64_t hash_of(const char *id)
{
    uint64_t h = 14695981039346656037u;

    for (; *id; id++) {
        h = (h ^ (unsigned char)*id) * 1099511628211u;
    }
    return h;
}

static long part_number(const struct scene *x, const struct lapse_job *job, unsigned i)
{
    char text[24];
    size_t len;
    const char *part = lapse_job_part(job, i, &len);

    if (!part) {
        return -1;
    }
    snprintf(text, sizeof text, "%.*s", (int)len, part);
    long number = atol(text);
    cr_assert(number >= 0 && number < x->n);
    return number;
}

static void on_started(void *arg, const struct lapse_job *job)
{
    struct scene *x = arg;
    uint64_t hash = hash_of(lapse_job_id(job));

    for (long number, i = 0; (number = part_number(x, job, (unsigned)i)) >= 0; i++) {
        struct noted *p = &x->parts[number];
        unsigned long long none = 0;

        if (atomic_compare_exchange_strong(&p->job, &none, hash)) {
            atomic_fetch_add(&x->counts->n_seen, 1);
        } else if (none != hash) {
            atomic_fetch_add(&x->counts->n_two, 1);
        }
        atomic_fetch_add(&p->n_begun, 1);
    }
}

static void *on_settling(void *arg, const struct lapse_job *job, const struct settle *s)
{
    struct scene *x = arg;

    (void)s;
    for (long number, i = 0; (number = part_number(x, job, (unsigned)i)) >= 0; i++) {
        atomic_fetch_add(&x->parts[number].n_settled, 1);
    }
    return NULL;
}

/* ---- the scene ---- */
static void scene_begin(struct scene *x)
{
    x->f = flow_bare(FLOW_FULL, NULL);
    x->parts = shared_new((size_t)x->n * sizeof *x->parts);
    x->counts = shared_new(sizeof *x->counts);
    x->plan = (struct listener_plan){
        .queues = "q",
        .lapse = flow_options(x->f),
        .recorder = {.arg = x, .started = on_started, .settling = on_settling},
        .hold_least_ms = 1,
        .hold_most_ms = 40,
    };
    x->plan.lapse.log = NULL;
    x->plan.lapse.lease_ms = 2000;
    x->plan.lapse.sweep_ms = 500;
    x->plan.lapse.max_running = 8;
    for (int i = 0; i < CREW; i++) {
        x->plan.seed = (unsigned)i + 1;
        x->crew[i] = listener_start_plan(&x->plan);
    }
    x->f->l = flow_open(x->f, NULL);
    x->killed_at_ms = test_now_ms();
}

/* As many parts as one turn of the loop sends, of all groups. */
static void scene_gather(struct scene *x)
{
    struct flow_answer *a = calloc(AT_ONCE, sizeof *a);
    struct lapse_gather limits = lapse_gather_init();

    cr_assert(a);
    limits.quiet_ms = 50;
    limits.most = 100;
    limits.age_ms = 500;
    for (int i = 0; i < AT_ONCE; i++) {
        char id[24];
        char part[24];
        snprintf(id, sizeof id, "g%ld", (x->n_asked + i) % GROUPS);
        snprintf(part, sizeof part, "%ld", x->n_asked + i);
        struct lapse_spec s = flow_job_spec("q", id, 0);
        s.on_conflict = LAPSE_GATHER;
        s.gather = &limits;
        s.body = part;
        s.body_len = strlen(part);
        cr_assert_eq(lapse_schedule(x->f->l, &s, flow_answered, &a[i]), 0);
    }
    for (int i = 0; i < AT_ONCE; i++) {
        cr_assert_eq(flow_wait(x->f, &a[i]), 0);
    }
    x->n_asked += AT_ONCE;
    free(a);
}

/* In the short form after each thousand parts: it does not last long enough for seconds. */
static bool scene_kills(const struct scene *x)
{
    if (!fault_full()) {
        return x->counts->n_seen >= (x->n_kills + 1) * AT_ONCE;
    }
    return test_now_ms() - x->killed_at_ms >= KILL_MS;
}

static void scene_kill(struct scene *x)
{
    struct listener **victim = &x->crew[x->n_kills % CREW];

    listener_signal(*victim, SIGKILL);
    listener_free(*victim);
    x->plan.seed++;
    *victim = listener_start_plan(&x->plan);
    x->n_kills++;
    x->killed_at_ms = test_now_ms();
}

static void scene_run(struct scene *x)
{
    bool has_ended = false;

    while (!has_ended) {
        if (x->n_asked < x->n && x->n_asked - x->counts->n_seen < AHEAD) {
            scene_gather(x);
        }
        if (scene_kills(x)) {
            scene_kill(x);
        }
        flow_turn(x->f, test_now_ms() + FLOW_POLL_MS);
        has_ended = x->n_asked == x->n && x->counts->n_seen == x->n &&
                    redis_left(x->f->server, x->f->space, "q") == 0;
    }
}

/* Returns how many parts ran again. */
static long scene_judge(struct scene *x)
{
    long n_again = 0;

    cr_assert_eq(x->counts->n_two, 0, "%ld parts were in two jobs", (long)x->counts->n_two);
    cr_assert_eq(flow_count(x->f, "q", "dead"), 0);
    for (long i = 0; i < x->n; i++) {
        cr_assert_neq(x->parts[i].job, 0u, "part %ld was in no job", i);
        cr_assert_gt(x->parts[i].n_settled, 0u, "the job of part %ld was not done", i);
        n_again += x->parts[i].n_begun > 1;
    }
    return n_again;
}

static void scene_end(struct scene *x)
{
    for (int i = 0; i < CREW; i++) {
        listener_free(x->crew[i]);
    }
    shared_free(x->parts, (size_t)x->n * sizeof *x->parts);
    shared_free(x->counts, sizeof *x->counts);
    flow_end(x->f, "q");
}

Test(f64, parts_of_many_groups_are_in_one_job_each_while_listeners_are_killed, .timeout = 3600)
{
    struct scene x = {.n = fault_n(6000, 100000)};

    server_listens();
    scene_begin(&x);
    scene_run(&x);
    long n_again = scene_judge(&x);

    fault_row(
        "F64", "one of three listeners is killed with SIGKILL each second",
        "100,000 parts in 50 groups: each in one job, which is done; again only what a killed "
        "one had",
        "%ld kills amid %ld parts: each in one job, %ld of them ran again", x.n_kills, x.n,
        n_again);
    scene_end(&x);
}
