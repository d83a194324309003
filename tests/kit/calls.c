/* SPDX-License-Identifier: MIT */
#include "calls.h"
#include <string.h>

static int call_schedule(struct lapse *l, struct flow_answer *a)
{
    struct lapse_spec spec = flow_job_spec("q", "a", 3600000);
    return lapse_schedule(l, &spec, flow_answered, a);
}

static int call_gather(struct lapse *l, struct flow_answer *a)
{
    struct lapse_spec spec = flow_job_spec("q", "group", 0);
    struct lapse_gather gather = lapse_gather_init();

    gather.quiet_ms = 3600000;
    gather.most = 100;
    spec.body = "part";
    spec.body_len = strlen(spec.body);
    spec.gather = &gather;
    spec.on_conflict = LAPSE_GATHER;
    return lapse_schedule(l, &spec, flow_answered, a);
}

static int call_get(struct lapse *l, struct flow_answer *a)
{
    return lapse_get(l, "q", "a", flow_answered, a);
}

static int call_wait(struct lapse *l, struct flow_answer *a)
{
    return lapse_wait(l, "q", "a", 60000, flow_answered, a);
}

static int call_depth(struct lapse *l, struct flow_answer *a)
{
    return lapse_depth(l, "q", flow_depth_answered, a);
}

static int call_queues(struct lapse *l, struct flow_answer *a)
{
    return lapse_queues(l, NULL, flow_queues_answered, a);
}

static void on_history(struct lapse *l, int err, const struct lapse_past *const *rows, size_t n,
                       void *arg)
{
    (void)rows;
    (void)n;
    flow_answered(l, err, NULL, arg);
}

static int call_history(struct lapse *l, struct flow_answer *a)
{
    return lapse_history(l, "q", 60000, 120000, 60000, on_history, a);
}

static int call_list(struct lapse *l, struct flow_answer *a)
{
    return lapse_list(l, "q", LAPSE_WAITING, NULL, 10, flow_list_answered, a);
}

static int call_reschedule(struct lapse *l, struct flow_answer *a)
{
    return lapse_reschedule(l, "q", "a", lapse_in(7200000), 0, flow_answered, a);
}

static int call_kill(struct lapse *l, struct flow_answer *a)
{
    return lapse_kill(l, "q", "a", "no customer", flow_answered, a);
}

/* A selection tells counts, and no job. */
static void on_count(struct lapse *l, int err, uint64_t n, uint64_t n_running, void *arg)
{
    (void)n;
    (void)n_running;
    flow_answered(l, err, NULL, arg);
}

static const struct lapse_where waiting = {.size = sizeof waiting, .state = LAPSE_WAITING};

static int call_reschedule_all(struct lapse *l, struct flow_answer *a)
{
    return lapse_reschedule_all(l, "q", &waiting, lapse_in(3600000), 1000, 0, on_count, a);
}

static int call_cancel_all(struct lapse *l, struct flow_answer *a)
{
    return lapse_cancel_all(l, "q", &waiting, 0, on_count, a);
}

static int call_kill_all(struct lapse *l, struct flow_answer *a)
{
    return lapse_kill_all(l, "q", &waiting, "no customer", on_count, a);
}

static int call_batch_close(struct lapse *l, struct flow_answer *a)
{
    return lapse_batch_close(l, "q", "a", flow_answered, a);
}

static void on_batch(struct lapse *l, int err, const struct lapse_batch *batch, void *arg)
{
    (void)batch;
    flow_answered(l, err, NULL, arg);
}

static int call_batch_get(struct lapse *l, struct flow_answer *a)
{
    return lapse_batch_get(l, "q", "a", on_batch, a);
}

static int call_cancel(struct lapse *l, struct flow_answer *a)
{
    return lapse_cancel(l, "q", "a", 0, flow_answered, a);
}

static int call_listeners(struct lapse *l, struct flow_answer *a)
{
    return lapse_listeners(l, "q", flow_listeners_answered, a);
}

static int call_remove(struct lapse *l, struct flow_answer *a)
{
    return lapse_remove(l, "q", 0, on_count, a);
}

static int call_configure(struct lapse *l, struct flow_answer *a)
{
    return lapse_configure(l, "q", "max_running=1000", flow_text_answered, a);
}

static int call_pause(struct lapse *l, struct flow_answer *a)
{
    return lapse_pause(l, "q", NULL, 0, flow_text_answered, a);
}

static int call_unpause(struct lapse *l, struct flow_answer *a)
{
    return lapse_unpause(l, "q", NULL, flow_text_answered, a);
}

static int call_quiet(struct lapse *l, struct flow_answer *a)
{
    return lapse_quiet(l, "nobody", 1, flow_listeners_answered, a);
}

static int call_list_tag(struct lapse *l, struct flow_answer *a)
{
    return lapse_list_tag(l, "q", "red", NULL, 10, flow_list_answered, a);
}

static int call_settle(struct lapse *l, struct flow_answer *a)
{
    struct lapse_settlement how = {.size = sizeof how, .how = LAPSE_HOW_DONE};
    return lapse_settle(l, "q", "nothing", 1, &how, flow_answered, a);
}

const struct api_call api_calls[] = {
    {"schedule", call_schedule, 0, CALL_MAKES},
    {"gather", call_gather, 0, CALL_MAKES},
    {"get", call_get, 0, CALL_READS},
    {"depth", call_depth, 0, CALL_READS},
    {"queues", call_queues, 0, CALL_READS},
    {"history", call_history, 0, CALL_READS},
    {"list", call_list, 0, CALL_READS},
    {"reschedule", call_reschedule, 0, CALL_CHANGES},
    {"batch_close", call_batch_close, 0, CALL_CHANGES},
    {"batch_get", call_batch_get, 0, CALL_READS},
    {"kill", call_kill, 0, CALL_CHANGES},
    {"wait", call_wait, 0, CALL_READS},
    {"cancel", call_cancel, 0, CALL_CHANGES},
    {"reschedule_all", call_reschedule_all, 0, CALL_CHANGES},
    {"cancel_all", call_cancel_all, 0, CALL_CHANGES},
    {"kill_all", call_kill_all, 0, CALL_CHANGES},
    {"listeners", call_listeners, 0, CALL_READS},
    {"list_tag", call_list_tag, 0, CALL_READS},
    {"configure", call_configure, 0, CALL_CHANGES},
    {"pause", call_pause, 0, CALL_CHANGES},
    {"unpause", call_unpause, 0, CALL_READS}, /* for there is no pause */
    {"remove", call_remove, 0, CALL_CHANGES},
    {"quiet", call_quiet, LAPSE_ENOENT, CALL_READS},
    {"settle", call_settle, LAPSE_EGONE, CALL_READS},
};
const size_t n_api_calls = sizeof api_calls / sizeof *api_calls;
