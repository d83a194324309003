/* SPDX-License-Identifier: MIT */
/* F29, F48: simulation.h says what this is. */
#include "simulation.h"
#include "audit.h"
#include "fault.h"
#include "redis.h"
#include "test.h"

static const int64_t DAY_MS = 86400000;
/* The same in each run, and so far ahead that no trigger expires by the true clock. */
static const int64_t START_US = INT64_C(6000000000000000);

static void look(struct sim *s)
{
    int n_used = s->model->n_jobs;

    while (n_used > s->model->n_ids && s->model->made[n_used - 1].token == 0) {
        n_used--;
    }
    for (int first = 0, n; first < n_used; first += n) {
        n = n_used - first < PAGE ? n_used - first : PAGE;
        sim_begin(s);
        for (int i = 0; i < n; i++) {
            sim_arg_id(s, first + i);
        }

        sim_ask(s, GET);
        n = s->size.fills ? (int)s->reply->elements - 1 : n; /* these are enough for one call */
        HOLDS(n > 0, "no answer\n");
        for (int i = 0; i < n; i++) {
            s->about = first + i;
            if (!model_is_known(s->model, sim_job(s, first + i))) {
                sim_is_text(s, (size_t)i + 1, "ENOENT");
            } else {
                struct shown want = sim_shown(s, first + i);
                want.has_body = true;
                sim_row_is(s, (size_t)i + 1, want);
                sim_row_tells_past(s, (size_t)i + 1, first + i);
            }
        }
    }
}

static void look_at_batches(struct sim *s)
{
    for (int batch = 1; batch <= s->size.n_batches; batch++) {
        int64_t n_left;
        int64_t n_dead;
        model_batch_count(s->model, batch, &n_left, &n_dead);

        s->about = batch - 1;
        sim_begin(s);
        sim_arg_id(s, batch - 1);
        sim_arg(s, "%s", "");
        sim_ask(s, BATCH_GET);
        if (n_left + n_dead < PAGE * 10) {
            sim_is_number(s, 1, n_left);
            sim_is_number(s, 2, n_dead);
            sim_is_text(s, 5, "");
        }
        sim_is_number(s, 3, s->model->batch[batch].n_left);
        sim_is_number(s, 4, s->model->batch[batch].is_closed);
    }
}

static void pause_queue(struct sim *s)
{
    int64_t ms = sim_below(s, 2) ? 0 : 1 + sim_below(s, 500);
    bool is_bounded = sim_below(s, 2);

    sim_begin(s);
    if (ms) {
        sim_arg(s, "paused=+%" PRId64 " dead_max=%s", ms, is_bounded ? "150" : "");
    } else {
        sim_arg(s, "paused= dead_max=%s", is_bounded ? "150" : "");
    }
    sim_ask(s, CONFIGURE);
    sim_is_text(s, 1, "");
    s->model->paused_ms = ms ? sim_now_ms(s) + ms : 0;
    s->model->dead_max = is_bounded ? 150 : 0;
}

/* The key that guards look at. */
static void guard(struct sim *s)
{
    s->model->guard_value = (int)sim_below(s, 3);
    sim_trace(s, "%3ld guard %d\n", s->step, s->model->guard_value);
    if (s->model->guard_value) {
        redis_do(s->server, "SET {q}g %d", s->model->guard_value);
    } else {
        redis_do(s->server, "DEL {q}g");
    }
}

static void pass_time(struct sim *s)
{
    static const int64_t jump_us[] = {0, 1, 999, 1000, 5000, 20000, 100000, 999000, 1001000};
    bool is_long = sim_below(s, 100) == 0;
    bool is_a_day = is_long && sim_below(s, 20) == 0;

    s->model->now_us += is_long ? 7000000 : jump_us[sim_below(s, sizeof jump_us / sizeof *jump_us)];
    s->model->now_us += is_a_day ? DAY_MS * 1000 : 0;
    s->model->now_us += s->size.makes && sim_below(s, 12) == 0 ? LOOK_MS * 500 : 0;
}

/* By our clock: a job that is due later has its trigger, and what else is there has expired. */
static void look_at_triggers(struct sim *s)
{
    for (int i = 0; i < s->model->n_jobs; i++) {
        const struct job *j = sim_job(s, i);
        if (i >= s->model->n_ids && !s->model->made[i].token) {
            continue;
        }
        bool waits = j->kind == WAITING && j->ms > sim_now_ms(s);
        char key[64];
        char name[NAME];
        snprintf(key, sizeof key, "lapse:{q}:t:%s", sim_name(s, i, name));
        int64_t at_ms = redis_int(s->server, "PEXPIRETIME %s", key);
        s->about = i;
        if (waits) {
            HOLDS(at_ms == j->ms - 1 || at_ms == j->ms, "trigger at %" PRId64 "\n", at_ms);
        } else {
            HOLDS(at_ms <= sim_now_ms(s), "a trigger, and it does not wait\n");
            redis_do(s->server, "DEL %s", key);
        }
    }
}

/* Also as it lies in Redis: each entry of the index has its job, each job has its entries, and each
 * record in next is of a job that runs. */
static void look_at_all(struct sim *s)
{
    look(s);
    look_at_batches(s);
    look_at_triggers(s);
    model_forgets_made(s->model);
    HOLDS(audit(s->server, "lapse", "q", NULL) == 0, "the audit says so\n");
}

static struct sim *sim_new(struct server *server, const struct size *size, unsigned long seed)
{
    struct sim *s = calloc(1, sizeof *s);

    cr_assert(s);
    s->model = calloc(1, sizeof *s->model);
    s->tracing = open_memstream(&s->trace, &s->traced);
    cr_assert(s->model && s->tracing);
    redis_do(server, "FLUSHALL");
    s->server = server;
    s->size = *size;
    s->seed = s->dice = seed;
    s->model->n_ids = size->n_ids;
    s->model->n_jobs = size->n_ids + MODEL_MADE;
    s->model->now_us = START_US;
    for (int i = 0; i < s->model->n_jobs; i++) {
        s->model->job[i].kind = NONE;
    }
    return s;
}

static void simulate(struct server *server, const struct size *size, unsigned long seed)
{
    static sim_step *const step[] = {
        sim_schedule,   sim_schedule, sim_schedule,       sim_schedule,   sim_schedule,
        sim_schedule,   sim_claim,    sim_claim,          sim_claim,      sim_touch,
        sim_touch,      sim_settle,   sim_settle,         sim_settle,     sim_settle,
        sim_settle,     sim_settle,   sim_settle,         sim_sweep,      sim_sweep,
        sim_reclaim,    sim_cancel,   sim_kill,           sim_reschedule, sim_reschedule,
        sim_cancel_all, sim_kill_all, sim_reschedule_all, guard,          pause_queue,
        sim_pause,      sim_gather,   sim_gather,         sim_gather,     sim_close,
        sim_close,      sim_close,    sim_refill};
    static sim_step *const failing_step[] = {sim_schedule, sim_claim,  sim_claim,  sim_claim,
                                             sim_claim,    sim_claim,  sim_claim,  sim_settle,
                                             sim_settle,   sim_settle, sim_settle, sim_sweep};
    static sim_step *const making_step[] = {sim_schedule, sim_schedule, sim_claim,  sim_claim,
                                            sim_claim,    sim_claim,    sim_touch,  sim_touch,
                                            sim_gather,   sim_gather,   sim_settle, sim_settle,
                                            sim_refill,   sim_refill,   sim_pause,  sim_close};
    /* each about one job, so that what is enough for one call plays no part */
    static sim_step *const filling_step[] = {
        sim_gather, sim_gather, sim_gather, sim_gather, sim_gather, sim_gather,    sim_claim,
        sim_claim,  sim_settle, sim_settle, sim_cancel, sim_kill,   sim_reschedule};
    struct sim *s = sim_new(server, size, seed);

    for (s->step = 0; s->step < size->steps; s->step++) {
        if (size->fills) {
            filling_step[sim_below(s, sizeof filling_step / sizeof *filling_step)](s);
        } else if (size->fails && sim_below(s, 20)) {
            failing_step[sim_below(s, sizeof failing_step / sizeof *failing_step)](s);
        } else if (size->makes && sim_below(s, 8)) {
            making_step[sim_below(s, sizeof making_step / sizeof *making_step)](s);
        } else {
            step[sim_below(s, sizeof step / sizeof *step)](s);
        }
        model_batches_end(s->model);
        if (sim_below(s, 1000) == 0) {
            sim_forget(s);
        }
        if (s->step % size->audit_every == 0) {
            look_at_all(s);
        } else if (s->step % size->look_every == 0) {
            look(s);
        }
        pass_time(s);
    }

    look_at_all(s);
    freeReplyObject(s->reply);
    fclose(s->tracing);
    free(s->trace);
    free(s->model);
    free(s);
}
/* By seed: the one that is named, or 1 to n. Returns how many. */
static unsigned long simulate_all(const struct size *size, unsigned long n)
{
    static const char *const args[] = {"--appendonly", "no", NULL};
    const char *one = getenv("LAPSE_SEED");
    unsigned long first = one ? strtoul(one, NULL, 10) : 1;
    unsigned long last = one ? first : n;

    struct server *server = server_start_opts(args);
    sim_load_scripts(server);
    for (unsigned long seed = first; seed <= last; seed++) {
        simulate(server, size, seed);
    }
    server_stop(server);
    return last - first + 1;
}

Test(f29, any_order_of_scripts_leaves_a_job_what_the_model_says, .timeout = 1800)
{
    static const struct size size = {
        .n_ids = 5,
        .n_keys = 2,
        .n_tags = 2,
        .n_batches = 2,
        .most = 3,
        .steps = 60,
        .look_every = 6,
        .audit_every = 60,
    };
    int64_t start_ms = test_now_ms();

    unsigned long n = simulate_all(&size, (unsigned long)fault_n(1000, 10000));
    fault_row("F29",
              "any order of scripts, holders that forget, a clock that jumps: the scripts "
              "beside a model",
              "10,000 seeds, each to be replayed", "%lu seeds of %ld steps in %lld s: 0 differ", n,
              size.steps, (long long)(test_now_ms() - start_ms) / 1000);
}

Test(f29, jobs_whose_runs_fail_again_and_again_are_what_the_model_says, .timeout = 1800)
{
    static const struct size size = {
        .n_ids = 2,
        .n_keys = 2,
        .n_tags = 2,
        .n_batches = 2,
        .most = 2,
        .steps = 600,
        .look_every = 6,
        .audit_every = 60,
        .fails = true,
    };

    simulate_all(&size, (unsigned long)fault_n(100, 1000));
}

Test(f29, jobs_that_series_and_groups_make_are_what_the_model_says, .timeout = 1800)
{
    static const struct size size = {
        .n_ids = 4,
        .n_keys = 2,
        .n_tags = 2,
        .n_batches = 2,
        .most = 4,
        .steps = 300,
        .look_every = 6,
        .audit_every = 60,
        .makes = true,
    };

    simulate_all(&size, (unsigned long)fault_n(100, 1000));
}

/* 1 MiB is the most that a body may have. */
Test(f29, groups_whose_parts_have_no_room_are_what_the_model_says, .timeout = 1800)
{
    static const struct size size = {
        .n_ids = 3,
        .n_keys = 2,
        .n_tags = 2,
        .n_batches = 2,
        .most = 1,
        .steps = 60,
        .look_every = 10,
        .audit_every = 60,
        .fills = true,
    };

    simulate_all(&size, (unsigned long)fault_n(20, 200));
}

Test(f48, a_thousand_jobs_are_what_the_model_says_after_any_history, .timeout = 7200)
{
    const struct size size = {
        .n_ids = MODEL_IDS,
        .n_keys = MODEL_KEYS - 1,
        .n_tags = MODEL_TAGS,
        .n_batches = MODEL_BATCHES,
        .most = MOST,
        .steps = fault_n(3000, 100000),
        .look_every = 250,
        .audit_every = 1000,
    };
    int64_t start_ms = test_now_ms();

    unsigned long n = simulate_all(&size, (unsigned long)fault_n(1, 3));
    fault_row("F48", "any history of all verbs on 1,000 jobs, several in a call",
              "3 seeds of 100,000 steps", "%lu seeds of %ld steps in %lld s: 0 differ", n,
              size.steps, (long long)(test_now_ms() - start_ms) / 1000);
}
