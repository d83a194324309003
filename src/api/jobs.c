/* SPDX-License-Identifier: MIT */
/* lapse_schedule(), lapse_cancel(), lapse_reschedule(), lapse_kill(), lapse_get(). */
#include "api/job_call.h"
#include "api/spec.h"
#include "job/made_id.h"
#include "base/error.h"
#include "base/mem.h"

/* ---- answers ---- */
static struct job_call *job_call_of(struct job_request *r)
{
    return CONTAINER(r, struct job_call, script.job);
}

/* A series by a calendar was made, due then. If all of its moments have passed, it gets others; if
 * our clock, by which they were worked out, is ahead of Redis's, it begins earlier: Redis has told
 * us the time by now. Returns when the series is due. */
static int64_t moments_check(struct job_call *c, struct span id, int64_t due_ms)
{
    struct lapse *l = c->request.handle;
    struct record record;

    if (!c->last_moment_ms || !record_decode(&record, c->script.schedule.args[3])) {
        return due_ms;
    }

    struct calendar_series s = {.queue = c->request.queue,
                                .key = c->request.key,
                                .id = id,
                                .attributes = record.attributes,
                                .next_ms = due_ms,
                                .after_ms =
                                    node_time_us(node_of(&l->script, c->request.key)) / 1000,
                                .is_dry = due_ms > c->last_moment_ms};
    if (s.is_dry) {
        calendars_refill(&l->calendars, &s);
        return due_ms;
    }
    return c->is_guess ? calendars_correct(&l->calendars, &s, c->from) : due_ms;
}

static void on_made(struct job_call *c, int64_t due_ms)
{
    struct lapse *l = c->request.handle;

    due_ms = moments_check(c, span_of(c->job.id), due_ms);
    l->context.stats.scheduled++;
    tally_count(&l->tallies, c->request.queue, PAST_SCHEDULED, 1);
    c->job.state = c->is_series ? LAPSE_SERIES : LAPSE_WAITING;
    c->job.due_ms = due_ms;
    c->job.score_ms = due_ms;
    c->job.created = 1;
    listener_scheduled(&l->listener, c->request.queue, span_of(c->job.id), due_ms);
}

/* The job was there, or has another id. */
static int on_met(struct job_call *c, const struct job_row *row)
{
    struct lapse *l = c->request.handle;
    int err = job_call_read(c, row);

    if (err || row->place == SCHEDULE_KEPT) {
        return err;
    }

    if (row->place == SCHEDULE_MADE) {
        l->context.stats.scheduled++;
        tally_count(&l->tallies, c->request.queue, PAST_SCHEDULED, 1);
        c->job.created = 1;
    }
    if (row->state == LAPSE_WAITING) {
        c->job.due_ms = c->job.score_ms = moments_check(c, row->id, row->score_ms);
        listener_scheduled(&l->listener, c->request.queue, row->id, c->job.due_ms);
    }
    return 0;
}

static void on_scheduled(struct schedule_request *r, int err, const struct schedule_answer *answer)
{
    struct job_call *c = CONTAINER(r, struct job_call, script.schedule);

    if (!err) {
        registry_use(&c->request.handle->registry, c->request.queue);
    }
    if (!err && answer->made) {
        on_made(c, answer->due_ms);
    } else if (!err) {
        err = on_met(c, &answer->row);
    }

    request_wrote(&c->request, r->request.sent_us);
    job_call_end(c, err);
}

static void on_job(struct job_request *r, int err, const struct job_row *row)
{
    struct job_call *c = job_call_of(r);

    request_wrote(&c->request, r->request.sent_us);
    job_call_end(c, err ? err : job_call_read(c, row));
}

/* One that runs is only asked, and one that is kept was cancelled before. */
static void on_cancelled(struct job_request *r, int err, const struct job_row *row)
{
    struct job_call *c = job_call_of(r);

    if (!err && row->state != LAPSE_RUNNING && row->state != LAPSE_KEPT) {
        tally_count(&c->request.handle->tallies, c->request.queue, PAST_CANCELLED, 1);
    }
    on_job(r, err, row);
}

static void on_rescheduled(struct job_request *r, int err, const struct job_row *row)
{
    struct job_call *c = job_call_of(r);

    if (!err && row->state == LAPSE_WAITING) {
        listener_scheduled(&c->request.handle->listener, c->request.queue, row->id, row->score_ms);
    }

    on_job(r, err, row);
}

static void on_got(struct job_request *r, int err, const struct job_row *row)
{
    struct job_call *c = job_call_of(r);

    job_call_end(c, err ? err : job_call_read_with_body(c, row));
}

/* ---- generated ids ---- */
/* The time and 55 random bits. Redis sorts jobs that are due in the same millisecond by their ids,
 * so those of one handle run in the order in which they were scheduled. The time is that of this
 * machine, and always later than the one in the id before. */
static void generate_id(struct lapse *l, char out[2 * MADE_ID_DIGITS + 1])
{
    int64_t now_us = clock_wall_us();

    l->last_id_us = now_us > l->last_id_us ? now_us : l->last_id_us + 1;
    made_id_put(out, l->last_id_us, clock_random());
}

/* ---- the calls ---- */
/* The text that Redis gets, in the extra bytes of the request. */
static struct span put_record(struct job_call *c, const struct lapse_spec *s,
                              const struct attributes *attributes)
{
    char *text = c->request.extra;
    struct record head = {
        .tries = s->tries,
        .backoff_ms = s->backoff_ms,
        .backoff_max_ms = s->backoff_max_ms,
        .attributes = {(const char *)attributes->bytes, attributes->len},
    };
    size_t len = record_encode((unsigned char *)text, &head);

    memcpy(text + len, attributes->bytes, attributes->len);
    len += attributes->len;
    if (s->body_len) {
        memcpy(text + len, s->body, s->body_len);
    }

    return (struct span){text, len + s->body_len};
}

/* The request is submitted next. */
static void wait_for_copies(struct job_call *c, const struct lapse_spec *s)
{
    struct fence_wait *copies = &c->request.copies;
    struct fence_copies *wanted = &copies->wanted;
    bool asks_for_more = s->replicas > wanted->replicas;

    wanted->fsync = (s->flags & LAPSE_FSYNC) != 0;
    if (asks_for_more) {
        wanted->replicas = s->replicas;
    }

    if (asks_for_more || wanted->fsync) {
        copies->request = &c->script.schedule.request;
        fences_prepare(&c->request.handle->fences, copies); /* it may never be sent */
    } else {
        registry_use(&c->request.handle->registry, c->request.queue);
    }
}

/* Nobody knows a generated id before the answer: then the schedules of one key take effect in their
 * order. The key stands behind the record. */
static void order_by_key(struct job_call *c, const char *unique, size_t record_max)
{
    struct span key = span_of(unique);

    c->script.schedule.request.order_by =
        (struct span){memcpy(c->request.extra + record_max, key.at, key.len), key.len};
}

/* false: it breaks a rule, or its calendar has no moment. */
static bool read_series(struct spec_series *out, const struct lapse *l, const struct lapse_spec *s)
{
    return spec_series_read(out, s) &&
           (!out->says.calendar ||
            calendars_first(&l->calendars, &out->says, s->due, &out->moments));
}

/* The job of the answer, as far as the spec says it. */
static void fill_in(struct job_call *r, const struct lapse_spec *s)
{
    r->job.queue = r->request.queue;
    r->job.id = r->request.id.at;
    r->job.body = "";
    r->job.tries = s->tries;
    r->job.priority = s->priority;
    r->job.max_late_ms = s->max_late_ms;
    r->job.late = s->late;
}

static void submit(struct job_call *c, const struct lapse_spec *s, const struct schedule_job *job)
{
    struct script *script = &c->request.handle->script;

    if (s->gather) {
        size_t header_len = job->record.len - s->body_len;
        script_gather(script, &c->script.schedule, c->request.key, job, header_len);
    } else {
        script_schedule(script, &c->script.schedule, c->request.key, job);
    }
}

static bool spec_is_valid(struct lapse_spec *s, const struct lapse *l,
                          const struct lapse_spec *spec)
{
    return spec_read(s, spec) && request_due_is_valid(l, s->due);
}

int lapse_schedule(struct lapse *l, const struct lapse_spec *spec, lapse_cb *fn, void *arg)
{
    struct lapse_spec s;
    struct spec_series series;
    struct attributes attributes;
    struct job_call *r;
    char generated[2 * MADE_ID_DIGITS + 1];

    attributes.len = 0;
    if (!l || !spec_is_valid(&s, l, spec) || !read_series(&series, l, &s) ||
        !spec_attributes(&attributes, &s, &series)) {
        return LAPSE_EINVAL;
    }
    if (!s.id) {
        generate_id(l, generated);
        s.id = generated;
    }

    bool by_key = s.unique && s.id == generated;
    size_t body_len = attributes.len + s.body_len;
    size_t record_max = RECORD_HEADER_MAX + body_len;
    size_t key_len = by_key ? strlen(s.unique) : 0;
    struct request_spec how = {
        .queue = s.queue,
        .id = s.id,
        .body_len = body_len,
        .extra_len = record_max + key_len,
        .answer_id_len = s.unique ? KEYS_ID_MAX : 0,
        .arg = arg,
    };
    int err = job_call_new(&r, l, &how, fn);
    if (err) {
        return err;
    }

    r->by_key = s.unique != NULL;
    r->is_series = series.is_one;
    r->last_moment_ms = series.moments.n ? series.moments.ms[series.moments.n - 1] : 0;
    r->is_guess = !calendars_know_time(&l->calendars);
    r->from = s.due;
    fill_in(r, &s);

    struct schedule_job job = {
        .id = r->request.id,
        .due = s.due,
        .is_calendar = series.moments.n > 0,
        .on_conflict = s.on_conflict,
        .max_wait_ms = s.max_wait_ms,
        .record = put_record(r, &s, &attributes),
    };
    r->script.schedule.end = on_scheduled;
    r->script.schedule.request.until_us = request_until_us(l);
    if (by_key) {
        order_by_key(r, s.unique, record_max);
    }
    wait_for_copies(r, &s);
    submit(r, &s, &job);

    return 0;
}

int lapse_cancel(struct lapse *l, const char *queue, const char *id, unsigned flags, lapse_cb *fn,
                 void *arg)
{
    struct request_spec spec = {.queue = queue, .id = id, .arg = arg};
    struct job_call *r;
    bool known = flags <= LAPSE_RUNNING_TOO;
    int err = known ? job_call_about(&r, l, &spec, fn) : LAPSE_EINVAL;

    if (!err) {
        r->script.job.end = on_cancelled;
        script_cancel(&l->script, &r->script.job, r->request.key, r->request.id,
                      flags & LAPSE_RUNNING_TOO);
    }
    return err;
}

int lapse_reschedule(struct lapse *l, const char *queue, const char *id, struct lapse_due due,
                     unsigned flags, lapse_cb *fn, void *arg)
{
    struct request_spec spec = {.queue = queue, .id = id, .arg = arg};
    struct reschedule_how how = {.due = due, .running = flags & LAPSE_RUNNING_TOO};
    struct job_call *r;

    if (flags > LAPSE_RUNNING_TOO || !l || !request_due_is_valid(l, due)) {
        return LAPSE_EINVAL;
    }

    int err = job_call_about(&r, l, &spec, fn);
    if (!err) {
        r->script.job.end = on_rescheduled;
        script_reschedule(&l->script, &r->script.job, r->request.key, r->request.id, &how);
    }
    return err;
}

int lapse_kill(struct lapse *l, const char *queue, const char *id, const char *reason, lapse_cb *fn,
               void *arg)
{
    struct span text = {reason ? reason : "", job_reason_len(reason)};
    struct request_spec spec = {.queue = queue, .id = id, .extra_len = text.len, .arg = arg};
    struct job_call *r;
    int err = job_call_about(&r, l, &spec, fn);

    if (!err) {
        text.at = memcpy(r->request.extra, text.at, text.len);
        r->script.job.end = on_job;
        script_kill(&l->script, &r->script.job, r->request.key, r->request.id, text);
    }
    return err;
}

int lapse_get(struct lapse *l, const char *queue, const char *id, lapse_cb *fn, void *arg)
{
    struct request_spec spec = {.queue = queue, .id = id, .arg = arg};
    struct job_call *r;
    int err = job_call_about(&r, l, &spec, fn);

    if (!err) {
        r->script.job.end = on_got;
        script_get(&l->script, &r->script.job, r->request.key, r->request.id);
    }
    return err;
}
