/* SPDX-License-Identifier: MIT */
/* Calls of lapse.h, their answers, and waiting for them. */
#ifndef ASK_H
#define ASK_H
#include "flow.h"

enum { FLOW_TEXT = 300 };

/* A copy of a job. */
struct flow_job {
    char queue[65], id[256], reason[201];
    const char *body; /* the flow's to free */
    size_t body_len;
    enum lapse_state state;
    int64_t due_ms, until_ms, claimed_us, created_ms;
    unsigned try_no, tries;
    uint64_t token;
    int created;
    int cancelled;
    unsigned replicas;
    enum lapse_via via;
};
void flow_copy(struct flow *f, struct flow_job *out, const struct lapse_job *job);

/* ---- asking and waiting: each call returns its error, or that of its callback ---- */
/* out: the job that the callback was given, all 0 where it was given none; may be NULL. */
/* id NULL: lapse makes one up */
int flow_schedule(struct flow *f, const char *queue, const char *id, int64_t delay_ms,
                  struct flow_job *out);
int flow_spec(struct flow *f, const struct lapse_spec *spec, struct flow_job *out);
int flow_cancel(struct flow *f, const char *queue, const char *id, struct flow_job *out);
int flow_reschedule(struct flow *f, const char *queue, const char *id, struct lapse_due due,
                    struct flow_job *out);
int flow_kill(struct flow *f, const char *queue, const char *id, const char *reason,
              struct flow_job *out);
int flow_get(struct flow *f, const char *queue, const char *id, struct flow_job *out);
/* Schedules to the queue and cancels it again: the queue is in the registry since then. */
void flow_enter(struct flow *f, const char *queue);
int flow_depth(struct flow *f, const char *queue, struct lapse_depth *out);
/* out: "NAME WAITING+RUNNING+DEAD 'SETTINGS'", with a comma between; may be NULL. */
int flow_queues(struct flow *f, const char *pattern, char out[FLOW_TEXT]);
/* out: as flow_listeners_answered() puts it. */
int flow_listeners(struct flow *f, const char *queue, char out[FLOW_TEXT]);
/* out: the text of the answer; may be NULL. */
int flow_configure(struct flow *f, const char *queue, const char *changes, char out[FLOW_TEXT]);
/* All pages of n, at most max jobs. Returns how many jobs there were, or an error. */
int flow_list(struct flow *f, const char *queue, enum lapse_state state, unsigned n,
              struct flow_job *out, size_t max);
/* A spec with these three fields. */
struct lapse_spec flow_job_spec(const char *queue, const char *id, int64_t delay_ms);

/* What a call of lapse_claim() brought. */
struct flow_claim {
    struct flow *f;
    unsigned calls;
    int err;
    struct lapse_job *jobs[100]; /* the test's to settle */
    size_t n;
};
lapse_claim_fn flow_claimed; /* arg: a flow_claim that is all 0 but for f */
/* Each waits for the answer, and returns its error. */
int flow_claim(struct flow *f, const char *queue, unsigned n, int64_t wait_ms,
               struct flow_claim *out);
int flow_claim_id(struct flow *f, const char *queue, const char *id, struct flow_claim *out);
/* All jobs of a claim are done; waits for the answers. */
void flow_claim_done(struct flow *f, struct flow_claim *c);
/* By the token; how->size need not be set. */
int flow_settle_by(struct flow *f, const char *queue, const char *id, uint64_t token,
                   struct lapse_settlement how);

/* What a selection came to. */
struct flow_counts {
    unsigned calls;
    int err;
    uint64_t n, n_running;
};
lapse_count_fn flow_counted; /* arg: a flow_counts that is all 0 */
/* Each waits for the answer, and returns its error; where.size need not be set. out may be NULL. */
int flow_cancel_all(struct flow *f, const char *queue, struct lapse_where where,
                    struct flow_counts *out);
int flow_kill_all(struct flow *f, const char *queue, struct lapse_where where, const char *reason,
                  struct flow_counts *out);
int flow_reschedule_all(struct flow *f, const char *queue, struct lapse_where where,
                        struct lapse_due due, int64_t spread_ms, struct flow_counts *out);

/* ---- asking without waiting ----
 *     struct flow_answer a = {.f = f};
 *     lapse_get(l, queue, id, flow_answered, &a);
 *     ...
 *     flow_wait(f, &a); */
struct flow_answer {
    struct flow *f;                      /* NULL: the copy of the job has no body */
    void (*then)(struct flow_answer *a); /* called with the answer; or NULL */
    unsigned calls;                      /* of the callback */
    unsigned nth;                        /* of all answers of f, from 1 */
    int err;
    bool has_job;
    struct flow_job job; /* of a list: the first */
    struct lapse_depth depth;
    size_t n; /* of a list */
    char text[FLOW_TEXT];
};
lapse_cb flow_answered;
lapse_depth_fn flow_depth_answered;
/* n is how many, text "NAME HELD" of each, with a comma between, the name up to its digits; a
 * member has a plus behind that */
lapse_listeners_fn flow_listeners_answered;
lapse_queues_fn flow_queues_answered; /* n is how many, text as flow_queues() gives it, or cut */
lapse_list_fn flow_list_answered;
lapse_text_fn flow_text_answered;
int flow_wait(struct flow *f, struct flow_answer *a); /* its err */
#endif
