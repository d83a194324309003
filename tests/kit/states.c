/* SPDX-License-Identifier: MIT */
#include "handler.h"
#include "states.h"
#include <poll.h>

enum { RUNS_MS = 60000 };

const char *const flow_state_names[FLOW_STATES] = {"waiting", "running", "dead", "ended",
                                                   "ended, tries used up"};

/* Takes the one due job of a queue and leaves like a killed process, whose lease lasts for
 * lease_ms. It is claimed with a long one, which ends in no handler that is slow to begin. */
static void take_and_vanish(struct flow *f, const char *queue, int64_t lease_ms)
{
    struct lapse_options opts = flow_options(f);
    struct lapse *before = f->l;
    struct flow_handler w = {.way = FLOW_KEEP};

    opts.lease_ms = RUNS_MS;
    f->l = flow_open(f, &opts);
    flow_listen(f, queue, &w);
    flow_until(f, w.n_held == 1);

    struct lapse *own = f->l;
    lapse_abandon(own);
    flow_forget(f, own);
    redis_do(f->server, "ZADD %s:{%s}:run XX %lld %s", f->space, queue,
             (long long)lapse_job_claimed_us(w.held[0]) / 1000 + lease_ms, lapse_job_id(w.held[0]));
    lapse_done(w.held[0], NULL, NULL); /* cut loose: only frees it */
    f->l = before;
}

static void fail_one(struct flow *f, const char *queue)
{
    struct lapse *before = f->l;
    struct flow_handler w = {.way = FLOW_FAIL, .reason = "broken"};

    f->l = flow_open(f, NULL);
    flow_listen(f, queue, &w);
    flow_until(f, w.settled == 1);
    flow_close(f, f->l, 1000);
    f->l = before;
}

void flow_put(struct flow *f, const char *queue, const char *id, enum flow_state state,
              struct flow_job *out)
{
    struct lapse_spec s = flow_job_spec(queue, id, state == FLOW_WAITS ? 3600000 : 0);
    struct flow_job job;

    s.body = "old";
    s.body_len = 3;
    s.tries = state == FLOW_ENDED_LAST ? 1 : 3;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);

    if (state == FLOW_DEAD) {
        fail_one(f, queue);
    } else if (state != FLOW_WAITS) {
        take_and_vanish(f, queue, state == FLOW_RUNS ? RUNS_MS : FLOW_LEASE_MS);
    }

    while (state == FLOW_ENDED || state == FLOW_ENDED_LAST) {
        cr_assert_eq(flow_get(f, queue, id, &job), 0);
        if (!job.until_ms) {
            break;
        }
        poll(NULL, 0, 5);
    }

    if (out) {
        cr_assert_eq(flow_get(f, queue, id, out), 0);
    }
}

bool flow_same(const struct flow_job *a, const struct flow_job *b)
{
    return strcmp(a->queue, b->queue) == 0 && strcmp(a->id, b->id) == 0 &&
           strcmp(a->reason, b->reason) == 0 && a->body_len == b->body_len &&
           memcmp(a->body, b->body, a->body_len) == 0 && a->state == b->state &&
           a->due_ms == b->due_ms && a->until_ms == b->until_ms && a->claimed_us == b->claimed_us &&
           a->try_no == b->try_no && a->tries == b->tries && a->token == b->token;
}
