/* SPDX-License-Identifier: MIT */
/* The asking half of the public API: check the arguments, copy them into one allocation together
 * with all that the answer will need, ask. An answer can then not fail for want of memory, except
 * for bodies, which are only read. */
#include "base/error.h"
#include "api/handle.h"
#include "base/mem.h"

#define YEAR_2200_MS ((int64_t)7258118400000)

struct request {
    struct req req;
    struct lapse *l;
    union {
        struct job_ask job;
        struct queue_ask depth;
        struct list_ask list;
    } ask;
    size_t body_len;
    struct span key, id;
    char *queue, *room; /* room: for a job's texts */
    struct lapse_job job;
    char *body; /* get: the job's texts */
    struct lapse_depth depth;
    enum lapse_state state; /* list */
    unsigned limit, n;
    struct lapse_job *jobs[SCRIPT_BATCH];
};

static void after(struct req *r, bool alive)
{
    struct request *q = CONTAINER(r, struct request, req);

    (void)alive;
    mem_free(q->body);
    for (unsigned i = 0; q->req.kind == REQ_LIST && i < q->n; i++) {
        mem_free(q->jobs[i]);
    }
    mem_free(q);
}

static void end(struct request *q, int err)
{
    q->l->n_pending--;
    q->l->n_bytes -= q->body_len;
    deliver_push(&q->l->deliver, &q->req, err);
}

/* One allocation: the request, queue, key, id, a job's texts, and extra bytes, where *extra is set
 * to. */
static int request_new(struct request **out, struct lapse *l, enum req_kind kind, const char *queue,
                       const char *id, size_t extra_len, size_t body_len, void *arg)
{
    if (l->closing) {
        return LAPSE_ECLOSED;
    }

    const struct lapse_options *set = &l->core.options.set;
    if (l->n_pending >= set->max_pending || body_len > set->max_bytes - l->n_bytes) {
        return LAPSE_EFULL;
    }

    size_t queue_len = strlen(queue) + 1;
    size_t id_len = strlen(id) + 1;
    size_t head = kind == REQ_LIST ? sizeof(struct request) : offsetof(struct request, jobs);
    struct request *q = mem_new(head, 2 * (queue_len + id_len) + KEYS_MAX + extra_len);
    if (!q) {
        return LAPSE_ENOMEM;
    }

    char *tail = (char *)q + head;
    q->l = l;
    q->req = (struct req){.kind = kind, .arg = arg, .after = after};
    q->queue = memcpy(tail, queue, queue_len);
    q->id = (struct span){memcpy(tail + queue_len, id, id_len), id_len - 1};
    q->room = tail + queue_len + id_len;
    tail = q->room + queue_len + id_len;
    q->key = (struct span){tail, keys_due(tail, set->space, queue)};
    q->body_len = body_len;
    l->n_pending++;
    l->n_bytes += body_len;
    *out = q;

    return 0;
}

static int64_t until_us(const struct lapse *l)
{
    return clock_us() + l->core.options.set.reply_ms * 1000;
}

/* ---- jobs ---- */
static bool fill(struct request *q, const struct job_row *row)
{
    if (!span_is(row->id, q->id.at, q->id.len)) {
        return false;
    }
    job_fill(&q->job, q->queue, row, q->room, false);
    q->req.job = &q->job;
    return true;
}

static void on_scheduled(struct job_ask *a, int err, const struct job_row *row, int64_t due_ms)
{
    struct request *q = CONTAINER(a, struct request, ask.job);

    if (!err && row) { /* KEEP found one */
        err = fill(q, row) ? 0 : LAPSE_EBROKEN;
    } else if (!err) {
        q->l->core.stats.scheduled++;
        q->job.state = LAPSE_WAITING;
        q->job.due_ms = q->job.score_ms = due_ms;
        q->job.created = 1;
        q->req.job = &q->job;
        work_told(&q->l->work, q->queue, due_ms);
    }

    end(q, err);
}

static void on_job(struct job_ask *a, int err, const struct job_row *row, int64_t due_ms)
{
    struct request *q = CONTAINER(a, struct request, ask.job);
    (void)due_ms;
    end(q, err ? err : row && fill(q, row) ? 0 : LAPSE_EBROKEN);
}

static void on_rescheduled(struct job_ask *a, int err, const struct job_row *row, int64_t due_ms)
{
    struct request *q = CONTAINER(a, struct request, ask.job);
    if (!err && row) {
        work_told(&q->l->work, q->queue, row->score_ms);
    }
    on_job(a, err, row, due_ms);
}

static void on_got(struct job_ask *a, int err, const struct job_row *row, int64_t due_ms)
{
    struct request *q = CONTAINER(a, struct request, ask.job);

    (void)due_ms;
    if (!err && !(row && span_is(row->id, q->id.at, q->id.len))) {
        err = LAPSE_EBROKEN;
    }

    if (!err) {
        q->body = mem_new(0, job_room(q->queue, row, true));
        err = q->body ? 0 : LAPSE_ENOMEM;
    }

    if (!err) {
        job_fill(&q->job, q->queue, row, q->body, true);
        q->req.job = &q->job;
    }

    end(q, err);
}

static bool due_ok(const struct lapse *l, struct lapse_due due)
{
    /* The exact rule, ten years from Redis's now, is the script's; before the first reply we know
     * no better. */
    int64_t latest = l->core.clock.known
                         ? clock_server_us(&l->core.clock, clock_us()) / 1000 + JOB_TEN_YEARS_MS
                         : YEAR_2200_MS;

    return !(due.delay_ms && due.at_ms) && due.delay_ms >= 0 && due.delay_ms <= JOB_TEN_YEARS_MS &&
           due.at_ms >= 0 && due.at_ms <= latest;
}

static bool id_ok(const char *id)
{
    return id && keys_id_ok(id, strnlen(id, KEYS_ID_MAX + 1));
}

enum { ID_DIGITS = 11 /* 55 bits: a time in us for the next thousand years */ };

static char *put_digits(char *out, uint64_t bits)
{
    static const char digits[] =
        "0123456789abcdefghijklmnopqrstuv"; /* in the order of their bytes */

    for (int i = ID_DIGITS; i-- > 0; bits >>= 5) {
        out[i] = digits[bits & 31];
    }
    return out + ID_DIGITS;
}

/* The time and 55 random bits. Redis sorts jobs due in the same millisecond by their ids, so those
 * of one handle run in the order in which they were scheduled. The time is this machine's, and
 * never the same or less than in the id before.
 */
static void make_id(struct lapse *l, char out[2 * ID_DIGITS + 1])
{
    int64_t now_us = clock_wall_us();

    l->last_id_us = now_us > l->last_id_us ? now_us : l->last_id_us + 1;
    out = put_digits(out, (uint64_t)l->last_id_us);
    out = put_digits(out, clock_random());
    *out = '\0';
}

static bool spec_read(struct lapse_spec *out, const struct lapse_spec *in)
{
    if (!in || in->size < offsetof(struct lapse_spec, tries) ||
        !mem_read_sized(out, sizeof *out, in)) {
        return false;
    }

    out->tries = out->tries ? out->tries : JOB_TRIES;
    out->backoff_ms = out->backoff_ms ? out->backoff_ms : JOB_BACKOFF_MS;
    out->backoff_max_ms = out->backoff_max_ms ? out->backoff_max_ms : JOB_BACKOFF_MAX_MS;
    return out->queue && keys_queue_ok(out->queue) && (!out->id || id_ok(out->id)) &&
           out->body_len <= JOB_BODY_MAX && (out->body || !out->body_len) && out->backoff_ms > 0 &&
           out->backoff_ms <= JOB_TEN_YEARS_MS && out->backoff_max_ms > 0 &&
           out->backoff_max_ms <= JOB_TEN_YEARS_MS && (unsigned)out->on_conflict <= LAPSE_REPLACE;
}

int lapse_schedule(struct lapse *l, const struct lapse_spec *spec, lapse_cb *fn, void *arg)
{
    struct lapse_spec s;
    struct request *q;
    char made[2 * ID_DIGITS + 1];
    unsigned char header[JOB_HEADER_MAX];

    if (!l || !spec_read(&s, spec) || !due_ok(l, s.due)) {
        return LAPSE_EINVAL;
    }

    if (!s.id) {
        make_id(l, made);
        s.id = made;
    }

    size_t len = job_encode(header, s.tries, s.backoff_ms, s.backoff_max_ms);
    int err = request_new(&q, l, REQ_CALLBACK, s.queue, s.id, len + s.body_len, s.body_len, arg);
    if (err) {
        return err;
    }

    char *record = (char *)(uintptr_t)q->key.at + KEYS_MAX;
    memcpy(record, header, len);
    if (s.body_len) {
        memcpy(record + len, s.body, s.body_len);
    }

    q->req.fn.callback = fn;
    q->job.queue = q->queue;
    q->job.id = q->id.at;
    q->job.body = "";
    q->job.tries = s.tries;
    q->ask.job.end = on_scheduled;
    q->ask.job.ask.until_us = until_us(l);
    store_schedule(&l->script, &q->ask.job, q->key, q->id, s.due, s.on_conflict,
                   (struct span){record, len + s.body_len});

    return 0;
}

/* What cancel, reschedule and get have in common. */
static int ask_job(struct request **out, struct lapse *l, const char *queue, const char *id,
                   lapse_cb *fn, void *arg)
{
    if (!l || !queue || !keys_queue_ok(queue) || !id_ok(id)) {
        return LAPSE_EINVAL;
    }

    int err = request_new(out, l, REQ_CALLBACK, queue, id, 0, 0, arg);
    if (!err) {
        (*out)->req.fn.callback = fn;
        (*out)->ask.job.end = on_job;
        (*out)->ask.job.ask.until_us = until_us(l);
    }

    return err;
}

int lapse_cancel(struct lapse *l, const char *queue, const char *id, unsigned flags, lapse_cb *fn,
                 void *arg)
{
    struct request *q;
    int err = flags ? LAPSE_EINVAL : ask_job(&q, l, queue, id, fn, arg);

    if (!err) {
        store_cancel(&l->script, &q->ask.job, q->key, q->id);
    }
    return err;
}

int lapse_reschedule(struct lapse *l, const char *queue, const char *id, struct lapse_due due,
                     unsigned flags, lapse_cb *fn, void *arg)
{
    struct request *q;
    int err = flags || !l || !due_ok(l, due) ? LAPSE_EINVAL : ask_job(&q, l, queue, id, fn, arg);

    if (!err) {
        q->ask.job.end = on_rescheduled;
        store_reschedule(&l->script, &q->ask.job, q->key, q->id, due);
    }
    return err;
}

int lapse_get(struct lapse *l, const char *queue, const char *id, lapse_cb *fn, void *arg)
{
    struct request *q;
    int err = ask_job(&q, l, queue, id, fn, arg);

    if (!err) {
        q->ask.job.end = on_got;
        store_get(&l->script, &q->ask.job, q->key, q->id);
    }
    return err;
}

/* ---- queues ---- */
static void on_depth(struct queue_ask *a, int err)
{
    struct request *q = CONTAINER(a, struct request, ask.depth);
    q->depth =
        (struct lapse_depth){(uint64_t)a->n[0], (uint64_t)a->n[1], (uint64_t)a->n[2], a->n[3]};
    q->req.depth = err ? NULL : &q->depth;
    end(q, err);
}

int lapse_depth(struct lapse *l, const char *queue, lapse_depth_fn *fn, void *arg)
{
    struct request *q;
    int err = l && queue && keys_queue_ok(queue)
                  ? request_new(&q, l, REQ_DEPTH, queue, "", 0, 0, arg)
                  : LAPSE_EINVAL;

    if (!err) {
        q->req.fn.depth = fn;
        q->ask.depth.end = on_depth;
        q->ask.depth.ask.until_us = until_us(l);
        store_depth(&l->script, &q->ask.depth, q->key);
    }

    return err;
}

static int add_row(struct request *q, const struct redisReply *rows, size_t i)
{
    struct job_row row;

    if (!store_list_row(rows, i, &row) || q->n >= q->limit) {
        return LAPSE_EBROKEN;
    }

    struct lapse_job *job = mem_new(sizeof *job, job_room(q->queue, &row, true));
    if (!job) {
        return LAPSE_ENOMEM;
    }

    job_fill(job, q->queue, &row, (char *)(job + 1), true);
    q->jobs[q->n++] = job;
    return 0;
}

static void on_list(struct list_ask *a, int err, const struct redisReply *rows, size_t n, bool more)
{
    struct request *q = CONTAINER(a, struct request, ask.list);

    for (size_t i = 0; i < n && !err; i++) {
        err = add_row(q, rows, i);
    }

    if (!err && more && n && q->n < q->limit && !q->l->ended) {
        /* the script had enough bytes: the page goes on */
        const struct lapse_job *last = q->jobs[q->n - 1];
        store_list(&q->l->script, a, q->key, q->state, q->limit - q->n, last->score_ms,
                   (struct span){last->id, strlen(last->id)});
        return;
    }

    q->req.jobs = err ? NULL : (const struct lapse_job *const *)q->jobs;
    q->req.n_jobs = err ? 0 : q->n;
    end(q, err);
}

int lapse_list(struct lapse *l, const char *queue, enum lapse_state state,
               const struct lapse_job *from, unsigned n, lapse_list_fn *fn, void *arg)
{
    struct request *q;

    if (!l || !queue || !keys_queue_ok(queue) || state < LAPSE_WAITING || state > LAPSE_DEAD ||
        n < 1 || n > SCRIPT_BATCH) {
        return LAPSE_EINVAL;
    }

    int err = request_new(&q, l, REQ_LIST, queue, from ? from->id : "", 0, 0, arg);
    if (!err) {
        q->req.fn.list = fn;
        q->state = state;
        q->limit = n;
        q->ask.list.end = on_list;
        q->ask.list.ask.until_us = until_us(l);
        store_list(&l->script, &q->ask.list, q->key, state, n, from ? from->score_ms : 0, q->id);
    }

    return err;
}
