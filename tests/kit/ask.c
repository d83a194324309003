/* SPDX-License-Identifier: MIT */
#include "ask.h"

void flow_copy(struct flow *f, struct flow_job *out, const struct lapse_job *job)
{
    const void *body = lapse_job_body(job, &out->body_len);

    TEST_CHECK(body);
    TEST_CHECK(strlen(lapse_job_queue(job)) < sizeof out->queue);
    TEST_CHECK(strlen(lapse_job_id(job)) < sizeof out->id);
    TEST_CHECK(strlen(lapse_job_reason(job)) < sizeof out->reason);
    strcpy(out->queue, lapse_job_queue(job));
    strcpy(out->id, lapse_job_id(job));
    strcpy(out->reason, lapse_job_reason(job));

    out->body = f ? flow_keep(f, body, out->body_len, out->body_len + 1) : NULL;
    out->state = lapse_job_state(job);
    out->due_ms = lapse_job_due_ms(job);
    out->until_ms = lapse_job_until_ms(job);
    out->claimed_us = lapse_job_claimed_us(job);
    out->try_no = lapse_job_try(job);
    out->tries = lapse_job_tries(job);
    out->token = lapse_job_token(job);
    out->created = lapse_job_created(job);
    out->cancelled = lapse_job_cancelled(job);
    out->created_ms = lapse_job_created_ms(job);
    out->replicas = lapse_job_replicas(job);
    out->via = lapse_job_via(job);
}

/* ---- callbacks ---- */
static void answer_begin(struct flow_answer *a, int err, const struct lapse_job *job)
{
    TEST_CHECK(a->calls == 0); /* one call has one callback */
    a->calls = 1;
    a->err = err;
    a->has_job = job != NULL;
    if (a->f) {
        a->nth = ++a->f->n_answers;
    }
    if (job) {
        flow_copy(a->f, &a->job, job);
    }
}

static void answer_end(struct flow_answer *a)
{
    if (a->then) {
        a->then(a);
    }
}

void flow_answered(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct flow_answer *a = arg;

    TEST_CHECK(l && (!job || !err || err == LAPSE_EALONE));
    answer_begin(a, err, job);
    answer_end(a);
}

void flow_depth_answered(struct lapse *l, int err, const struct lapse_depth *d, void *arg)
{
    struct flow_answer *a = arg;

    TEST_CHECK(l && !err == (d != NULL));
    answer_begin(a, err, NULL);
    if (d) {
        a->depth = *d;
    }
    answer_end(a);
}

void flow_queues_answered(struct lapse *l, int err, const struct lapse_queue *const *queues,
                          size_t n, void *arg)
{
    struct flow_answer *a = arg;
    size_t len = 0;

    TEST_CHECK(l && (!err || (!n && !queues)));
    answer_begin(a, err, NULL);
    a->n = n;
    for (size_t i = 0; i < n && len < sizeof a->text; i++) {
        const struct lapse_depth *d = queues[i]->depth;
        len += (size_t)snprintf(a->text + len, sizeof a->text - len, "%s%s %d+%d+%d '%s'",
                                i > 0 ? ", " : "", queues[i]->name, (int)d->waiting,
                                (int)d->running, (int)d->dead, queues[i]->settings);
    }
    answer_end(a);
}

void flow_listeners_answered(struct lapse *l, int err,
                             const struct lapse_listener *const *listeners, size_t n, void *arg)
{
    struct flow_answer *a = arg;
    size_t len = 0;

    TEST_CHECK(l && (!err || (!n && !listeners)));
    answer_begin(a, err, NULL);
    a->n = n;
    for (size_t i = 0; i < n && len < sizeof a->text; i++) {
        const char *name = listeners[i]->name;
        const char *between = i > 0 ? ", " : "";
        const char *plus = listeners[i]->since_ms ? "+" : "";
        len += (size_t)snprintf(a->text + len, sizeof a->text - len, "%s%.*s %d%s", between,
                                (int)strcspn(name, "/"), name, (int)listeners[i]->n_held, plus);
    }
    answer_end(a);
}

void flow_list_answered(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                        void *arg)
{
    struct flow_answer *a = arg;

    TEST_CHECK(l && (!err || !n));
    answer_begin(a, err, n ? jobs[0] : NULL);
    a->n = n;
    answer_end(a);
}

void flow_text_answered(struct lapse *l, int err, const char *text, void *arg)
{
    struct flow_answer *a = arg;

    TEST_CHECK(l && (text != NULL) == (!err || err == LAPSE_EINVAL));
    answer_begin(a, err, NULL);
    if (text) {
        TEST_CHECK(strlen(text) < sizeof a->text);
        strcpy(a->text, text);
    }
    answer_end(a);
}

int flow_wait(struct flow *f, struct flow_answer *a)
{
    flow_until(f, a->calls);
    return a->err;
}

static int answer_of(struct flow *f, int err, struct flow_answer *a, struct flow_job *out)
{
    if (!err) {
        err = flow_wait(f, a);
    }
    if (out) {
        *out = a->job;
    }
    return err;
}

struct lapse_spec flow_job_spec(const char *queue, const char *id, int64_t delay_ms)
{
    struct lapse_spec s = lapse_spec_init();
    s.queue = queue;
    s.id = id;
    s.due = lapse_in(delay_ms);
    return s;
}

int flow_spec(struct flow *f, const struct lapse_spec *spec, struct flow_job *out)
{
    struct flow_answer a = {.f = f};
    return answer_of(f, lapse_schedule(f->l, spec, flow_answered, &a), &a, out);
}

int flow_schedule(struct flow *f, const char *queue, const char *id, int64_t delay_ms,
                  struct flow_job *out)
{
    struct lapse_spec s = flow_job_spec(queue, id, delay_ms);
    return flow_spec(f, &s, out);
}

int flow_cancel(struct flow *f, const char *queue, const char *id, struct flow_job *out)
{
    struct flow_answer a = {.f = f};
    return answer_of(f, lapse_cancel(f->l, queue, id, 0, flow_answered, &a), &a, out);
}

int flow_reschedule(struct flow *f, const char *queue, const char *id, struct lapse_due due,
                    struct flow_job *out)
{
    struct flow_answer a = {.f = f};
    return answer_of(f, lapse_reschedule(f->l, queue, id, due, 0, flow_answered, &a), &a, out);
}

int flow_kill(struct flow *f, const char *queue, const char *id, const char *reason,
              struct flow_job *out)
{
    struct flow_answer a = {.f = f};
    return answer_of(f, lapse_kill(f->l, queue, id, reason, flow_answered, &a), &a, out);
}

int flow_get(struct flow *f, const char *queue, const char *id, struct flow_job *out)
{
    struct flow_answer a = {.f = f};
    return answer_of(f, lapse_get(f->l, queue, id, flow_answered, &a), &a, out);
}

static bool is_in_registry(struct flow *f, const char *queue)
{
    char *score = redis_str(f->server, "ZSCORE lapse:{}:queues %s", queue);
    bool yes = score != NULL;

    free(score);
    return yes;
}

void flow_enter(struct flow *f, const char *queue)
{
    cr_assert_eq(flow_schedule(f, queue, "first", 3600000, NULL), 0);
    cr_assert_eq(flow_cancel(f, queue, "first", NULL), 0);
    flow_poll(f, is_in_registry(f, queue));
    f->n_answers = 0;
}

int flow_depth(struct flow *f, const char *queue, struct lapse_depth *out)
{
    struct flow_answer a = {.f = f};
    int err = answer_of(f, lapse_depth(f->l, queue, flow_depth_answered, &a), &a, NULL);
    *out = a.depth;
    return err;
}

int flow_queues(struct flow *f, const char *pattern, char out[FLOW_TEXT])
{
    struct flow_answer a = {.f = f};
    int err = answer_of(f, lapse_queues(f->l, pattern, flow_queues_answered, &a), &a, NULL);

    if (out) {
        strcpy(out, a.text);
    }
    return err;
}

int flow_listeners(struct flow *f, const char *queue, char out[FLOW_TEXT])
{
    struct flow_answer a = {.f = f};
    int err = lapse_listeners(f->l, queue, flow_listeners_answered, &a);

    err = answer_of(f, err, &a, NULL);
    strcpy(out, a.text);
    return err;
}

int flow_configure(struct flow *f, const char *queue, const char *changes, char out[FLOW_TEXT])
{
    struct flow_answer a = {.f = f};
    int err = lapse_configure(f->l, queue, changes, flow_text_answered, &a);

    err = answer_of(f, err, &a, NULL);
    if (out) {
        strcpy(out, a.text);
    }
    return err;
}

struct pages {
    struct flow *f;
    const char *queue;
    enum lapse_state state;
    unsigned n;
    struct flow_job *out;
    size_t max, got;
    int err;
    bool over;
};

static void on_page(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                    void *arg)
{
    struct pages *p = arg;

    cr_assert(n <= p->n && p->got + n <= p->max && (!err || !n));
    for (size_t i = 0; i < n; i++) {
        flow_copy(p->f, &p->out[p->got++], jobs[i]);
    }

    if (!err && n == p->n) { /* a short page is the last */
        err = lapse_list(l, p->queue, p->state, jobs[n - 1], p->n, on_page, p);
    } else {
        p->over = true;
    }

    p->err = err;
    p->over = p->over || err;
}

int flow_list(struct flow *f, const char *queue, enum lapse_state state, unsigned n,
              struct flow_job *out, size_t max)
{
    struct pages p = {.f = f, .queue = queue, .state = state, .n = n, .out = out, .max = max};
    int err = lapse_list(f->l, queue, state, NULL, n, on_page, &p);

    if (err) {
        return err;
    }
    flow_until(f, p.over);
    return p.err ? p.err : (int)p.got;
}

/* ---- claims ---- */
void flow_claimed(struct lapse *l, int err, struct lapse_job *const *jobs, size_t n, void *arg)
{
    struct flow_claim *c = arg;

    TEST_CHECK(l && c->calls == 0 && n <= sizeof c->jobs / sizeof *c->jobs && (!err || !n));
    c->calls = 1;
    c->err = err;
    c->n = n;
    memcpy(c->jobs, jobs, n * sizeof *jobs);
}

int flow_claim(struct flow *f, const char *queue, unsigned n, int64_t wait_ms,
               struct flow_claim *out)
{
    *out = (struct flow_claim){.f = f};
    int err = lapse_claim(f->l, queue, n, wait_ms, flow_claimed, out);

    if (err) {
        return err;
    }
    flow_until(f, out->calls);
    return out->err;
}

int flow_claim_id(struct flow *f, const char *queue, const char *id, struct flow_claim *out)
{
    *out = (struct flow_claim){.f = f};
    int err = lapse_claim_id(f->l, queue, id, flow_claimed, out);

    if (err) {
        return err;
    }
    flow_until(f, out->calls);
    return out->err;
}

static void claim_done_answered(struct lapse *l, int err, const struct lapse_job *job, void *left)
{
    (void)l;
    (void)job;
    TEST_CHECK(!err);
    --*(size_t *)left;
}

void flow_claim_done(struct flow *f, struct flow_claim *c)
{
    size_t left = c->n;

    for (size_t i = 0; i < c->n; i++) {
        lapse_done(c->jobs[i], claim_done_answered, &left);
    }
    c->n = 0;
    flow_until(f, left == 0);
}

int flow_settle_by(struct flow *f, const char *queue, const char *id, uint64_t token,
                   struct lapse_settlement how)
{
    struct flow_answer a = {.f = f};

    how.size = sizeof how;
    int err = lapse_settle(f->l, queue, id, token, &how, flow_answered, &a);
    return answer_of(f, err, &a, NULL);
}

/* ---- selections ---- */
void flow_counted(struct lapse *l, int err, uint64_t n, uint64_t n_running, void *arg)
{
    struct flow_counts *c = arg;

    TEST_CHECK(l && c->calls == 0);
    c->calls = 1;
    c->err = err;
    c->n = n;
    c->n_running = n_running;
}

static int count_of(struct flow *f, int err, const struct flow_counts *c, struct flow_counts *out)
{
    if (!err) {
        flow_until(f, c->calls);
        err = c->err;
    }
    if (out) {
        *out = *c;
    }
    return err;
}

int flow_cancel_all(struct flow *f, const char *queue, struct lapse_where where,
                    struct flow_counts *out)
{
    struct flow_counts c = {0};

    where.size = sizeof where;
    return count_of(f, lapse_cancel_all(f->l, queue, &where, 0, flow_counted, &c), &c, out);
}

int flow_kill_all(struct flow *f, const char *queue, struct lapse_where where, const char *reason,
                  struct flow_counts *out)
{
    struct flow_counts c = {0};

    where.size = sizeof where;
    return count_of(f, lapse_kill_all(f->l, queue, &where, reason, flow_counted, &c), &c, out);
}

int flow_reschedule_all(struct flow *f, const char *queue, struct lapse_where where,
                        struct lapse_due due, int64_t spread_ms, struct flow_counts *out)
{
    struct flow_counts c = {0};

    where.size = sizeof where;
    int err = lapse_reschedule_all(f->l, queue, &where, due, spread_ms, 0, flow_counted, &c);
    return count_of(f, err, &c, out);
}
