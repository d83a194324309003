/* SPDX-License-Identifier: MIT */
/* lapse_depth(), lapse_list(), lapse_list_tag(), and the settings: lapse_configure(),
 * lapse_pause(), lapse_unpause(), lapse_forward(). */
#include "api/series.h"
#include "script/queue_verbs.h"
#include "base/mem.h"
#include <inttypes.h>
#include <stdio.h>

enum {
    CHANGES_MAX = 4096,
    SETTINGS_MAX = 8192 /* bytes of an answer, with its end */,
    FORWARD_MAX = 1024
};

/* ---- depth ---- */
struct depth_call {
    struct request request;
    lapse_depth_fn *fn;
    struct depth_request script;
    struct lapse_depth depth;
};

static void depth_call_run(struct task *t)
{
    struct depth_call *r = CONTAINER(t, struct depth_call, request.task);
    const struct lapse_depth *answer = r->request.err ? NULL : &r->depth;

    if (r->fn) {
        r->fn(r->request.handle, r->request.err, answer, r->request.arg);
    }
}

static void depth_call_done(struct task *t, bool alive)
{
    (void)alive;
    mem_free(CONTAINER(t, struct depth_call, request.task));
}

static void on_depth(struct depth_request *r, int err, const struct depth_reply *reply)
{
    struct depth_call *c = CONTAINER(r, struct depth_call, script);

    if (!err) {
        script_depth_read(reply, &c->depth);
    }
    request_end(&c->request, err);
}

int lapse_depth(struct lapse *l, const char *queue, lapse_depth_fn *fn, void *arg)
{
    struct request_spec spec = {
        .size = sizeof(struct depth_call),
        .queue = queue,
        .id = "",
        .arg = arg,
        .run = depth_call_run,
        .done = depth_call_done,
    };
    void *made;

    if (!l || !queue || !keys_queue_ok(span_of(queue))) {
        return LAPSE_EINVAL;
    }
    int err = request_new(&made, l, &spec);
    if (err) {
        return err;
    }

    struct depth_call *r = made;
    r->fn = fn;
    r->script.end = on_depth;
    r->script.request.until_us = request_until_us(l);
    script_depth(&l->script, &r->script, r->request.key);

    return 0;
}

/* ---- list ---- */
struct list_call {
    struct request request;
    lapse_list_fn *fn;
    struct list_request script;
    enum lapse_state state; /* of a list by state */
    struct span tag;        /* of a list by tag; "b NAME": by batch; empty: it is one by state */
    unsigned limit;
    unsigned n;
    struct lapse_job *jobs[SCRIPT_BATCH];
};

static void list_call_run(struct task *t)
{
    struct list_call *r = CONTAINER(t, struct list_call, request.task);
    bool failed = r->request.err != 0;
    const struct lapse_job *const *jobs = (const struct lapse_job *const *)r->jobs;

    if (!r->fn) {
        return;
    }
    if (failed) {
        r->fn(r->request.handle, r->request.err, NULL, 0, r->request.arg);
    } else {
        r->fn(r->request.handle, 0, jobs, r->n, r->request.arg);
    }
}

static void list_call_done(struct task *t, bool alive)
{
    struct list_call *r = CONTAINER(t, struct list_call, request.task);
    (void)alive;

    for (unsigned i = 0; i < r->n; i++) {
        mem_free(r->jobs[i]);
    }
    mem_free(r);
}

static int add_row(struct list_call *r, const struct list_reply *reply, size_t i)
{
    struct job_row row;

    if (!script_listed_job(reply, i, &row) || r->n >= r->limit) {
        return LAPSE_EBROKEN;
    }

    struct lapse_job *job = mem_new(sizeof *job, job_texts_len(r->request.queue, &row, true));
    if (!job) {
        return LAPSE_ENOMEM;
    }

    job_fill(job, r->request.queue, &row, (char *)(job + 1), true);
    r->jobs[r->n++] = job;

    return 0;
}

/* What is missing of the page, behind a job, or from the start. */
static void list_ask(struct list_call *r, const struct lapse_job *after, struct span after_id)
{
    struct script *script = &r->request.handle->script;
    struct list_page page = {
        .state = r->state,
        .limit = r->limit - r->n,
        .after_id = after_id,
    };

    if (after) {
        page.after_score_ms = after->score_ms;
        page.after_priority = r->state == LAPSE_WAITING ? after->priority : 0;
    }
    if (r->tag.len) {
        script_list_tag(script, &r->script, r->request.key, r->tag, page.limit, after_id);
    } else {
        script_list(script, &r->script, r->request.key, &page);
    }
}

/* A script stops at so many bytes: then the rest of the page is asked for from there on. */
static void ask_for_the_rest(struct list_call *r)
{
    const struct lapse_job *last = r->jobs[r->n - 1];

    list_ask(r, last, span_of(last->id));
}

static void on_list(struct list_request *r, int err, const struct list_reply *reply)
{
    struct list_call *c = CONTAINER(r, struct list_call, script);
    unsigned n_before = c->n;

    for (size_t i = 0; !err && i < reply->n_jobs; i++) {
        err = add_row(c, reply, i);
    }

    bool progress = c->n > n_before;
    if (!err && reply->more && progress && c->n < c->limit && !request_is_cut_off(&c->request)) {
        ask_for_the_rest(c);
    } else {
        request_end(&c->request, err);
    }
}

/* what: its fn, its limit, and its state or its tag. */
static int list_start(struct lapse *l, const char *queue, const struct list_call *what,
                      const struct lapse_job *after, void *arg)
{
    struct request_spec spec = {
        .size = sizeof(struct list_call),
        .queue = queue,
        .id = after ? after->id : "",
        .extra_len = what->tag.len,
        .arg = arg,
        .run = list_call_run,
        .done = list_call_done,
    };
    void *made;

    if (!l || !queue || !keys_queue_ok(span_of(queue)) || what->limit < 1 ||
        what->limit > SCRIPT_BATCH) {
        return LAPSE_EINVAL;
    }
    int err = request_new(&made, l, &spec);
    if (err) {
        return err;
    }

    struct list_call *r = made;
    r->fn = what->fn;
    r->state = what->state;
    r->limit = what->limit;
    if (what->tag.len) {
        r->tag =
            (struct span){memcpy(r->request.extra, what->tag.at, what->tag.len), what->tag.len};
    }
    r->script.end = on_list;
    r->script.request.until_us = request_until_us(l);
    list_ask(r, after, r->request.id);

    return 0;
}

int lapse_list(struct lapse *l, const char *queue, enum lapse_state state,
               const struct lapse_job *after, unsigned n, lapse_list_fn *fn, void *arg)
{
    struct list_call what = {.fn = fn, .state = state, .limit = n};
    bool is_state = state >= LAPSE_WAITING && state <= LAPSE_SERIES;

    return is_state ? list_start(l, queue, &what, after, arg) : LAPSE_EINVAL;
}

int lapse_list_tag(struct lapse *l, const char *queue, const char *tag,
                   const struct lapse_job *after, unsigned n, lapse_list_fn *fn, void *arg)
{
    if (!tag || !keys_tag_ok(span_of(tag))) {
        return LAPSE_EINVAL;
    }

    struct list_call what = {.fn = fn, .tag = span_of(tag), .limit = n};
    return list_start(l, queue, &what, after, arg);
}

int lapse_list_batch(struct lapse *l, const char *queue, const char *batch,
                     const struct lapse_job *after, unsigned n, lapse_list_fn *fn, void *arg)
{
    char text[sizeof "b " + KEYS_ID_MAX];

    if (!batch || !keys_id_ok(span_of(batch))) {
        return LAPSE_EINVAL;
    }

    snprintf(text, sizeof text, "b %s", batch);
    struct list_call what = {.fn = fn, .tag = span_of(text), .limit = n};
    return list_start(l, queue, &what, after, arg);
}

/* ---- settings ---- */
struct configure_call {
    struct request request;
    lapse_text_fn *fn;
    struct configure_request script;
    size_t changes_len;
    char *text;         /* of the answer */
    uint64_t forwarded; /* the number of the queue that it forwards, until it fails; 0: of none */
};

static void configure_call_run(struct task *t)
{
    struct configure_call *r = CONTAINER(t, struct configure_call, request.task);
    int err = r->request.err;
    const char *text = !err || err == LAPSE_EINVAL ? r->text : NULL;

    if (r->fn) {
        r->fn(r->request.handle, err, text, r->request.arg);
    }
}

static void configure_call_done(struct task *t, bool alive)
{
    (void)alive;
    mem_free(CONTAINER(t, struct configure_call, request.task));
}

static int keep_text(struct configure_call *r, struct span text)
{
    if (text.len >= SETTINGS_MAX) {
        return LAPSE_EBROKEN;
    }

    memcpy(r->text, text.at, text.len);
    r->text[text.len] = '\0';
    return 0;
}

static void on_configured(struct configure_request *r, int err, const struct configure_reply *reply)
{
    struct configure_call *c = CONTAINER(r, struct configure_call, script);
    struct lapse *l = c->request.handle;

    if (!err && reply->wrong.len > 0) {
        err = keep_text(c, reply->wrong);
        err = err ? err : LAPSE_EINVAL;
    } else if (!err) {
        err = keep_text(c, reply->settings);
        if (c->changes_len > 0) {
            request_wrote(&c->request, r->request.sent_us);
            listener_configured(&l->listener, c->request.queue);
        }
    }
    if (err && c->forwarded) {
        listener_remove_numbered(&l->listener, c->request.queue, c->forwarded);
    }

    request_end(&c->request, err);
}

static int configure(struct configure_call **out, struct lapse *l, const char *queue,
                     const char *changes, void *arg)
{
    struct span given = span_of(changes ? changes : "");
    struct request_spec spec = {
        .size = sizeof(struct configure_call),
        .queue = queue,
        .id = "",
        .extra_len = given.len + SETTINGS_MAX,
        .arg = arg,
        .run = configure_call_run,
        .done = configure_call_done,
    };
    void *made;

    if (!l || !queue || !keys_queue_ok(span_of(queue)) || given.len > CHANGES_MAX) {
        return LAPSE_EINVAL;
    }
    int err = request_new(&made, l, &spec);
    if (err) {
        return err;
    }

    struct configure_call *r = made;
    char *copy = r->request.extra;
    if (given.len > 0) {
        memcpy(copy, given.at, given.len);
    }

    r->changes_len = given.len;
    r->text = copy + given.len;
    r->script.end = on_configured;
    r->script.request.until_us = request_until_us(l);
    script_configure(&l->script, &r->script, r->request.key, (struct span){copy, given.len});
    *out = r;

    return 0;
}

int lapse_configure(struct lapse *l, const char *queue, const char *changes, lapse_text_fn *fn,
                    void *arg)
{
    struct configure_call *r;
    int err = configure(&r, l, queue, changes, arg);

    if (!err) {
        r->fn = fn;
    }
    return err;
}

int lapse_pause(struct lapse *l, const char *queue, const char *id, int64_t for_ms,
                lapse_text_fn *fn, void *arg)
{
    char changes[64];

    if (for_ms < 0 || for_ms > JOB_TEN_YEARS_MS || (id && for_ms)) {
        return LAPSE_EINVAL;
    }
    if (id) {
        return series_pause(l, &(struct series_name){queue, id}, true, fn, arg);
    }

    if (for_ms > 0) {
        snprintf(changes, sizeof changes, "paused=+%" PRId64, for_ms);
    } else {
        snprintf(changes, sizeof changes, "paused=%" PRId64, EXACT_MAX);
    }

    return lapse_configure(l, queue, changes, fn, arg);
}

int lapse_unpause(struct lapse *l, const char *queue, const char *id, lapse_text_fn *fn, void *arg)
{
    if (id) {
        return series_pause(l, &(struct series_name){queue, id}, false, fn, arg);
    }
    return lapse_configure(l, queue, "paused=", fn, arg);
}

int lapse_forward(struct lapse *l, const char *queue, const char *to, lapse_text_fn *fn, void *arg)
{
    static const struct share_spec share = {.weight = 1};
    struct configure_call *r;
    char changes[CHANGES_MAX];

    if (!l || !queue || !keys_queue_ok(span_of(queue)) ||
        (to && (strchr(to, ' ') || strlen(to) > FORWARD_MAX))) {
        return LAPSE_EINVAL;
    }
    if (l->closing) {
        return LAPSE_ECLOSED;
    }

    int err = listener_add(&l->listener, queue, &share, NULL, NULL);
    if (err) {
        return err;
    }

    uint64_t number = listener_number(&l->listener, queue);

    snprintf(changes, sizeof changes, "forward=%s", to ? to : "");
    err = configure(&r, l, queue, to ? changes : NULL, arg);
    if (err) {
        listener_remove_numbered(&l->listener, queue, number);
        return err;
    }

    r->fn = fn;
    r->forwarded = number;
    return 0;
}
