/* SPDX-License-Identifier: MIT */
/* lapse_queues(): a page of names, then the depths of these, until no names are left. */
#include "api/request.h"
#include "base/mem.h"
#include "script/queue_verbs.h"

enum { QUEUES_MAX = 100000 };

struct queues_call {
    struct request request;
    lapse_queues_fn *fn;
    struct names_request script;
    char key[KEYS_MAX];
    struct lapse_queue **queues; /* each is of a row */
    size_t n;
    unsigned n_open; /* depths to come */
    bool is_last;    /* no names are left */
    int err;         /* the first one */
};

struct queue_row {
    struct lapse_queue queue;
    struct lapse_depth depth;
    struct queues_call *call;
    struct depth_request script;
    char *settings;
    char name[KEYS_QUEUE_MAX + 1];
    char key[KEYS_MAX];
};

static void queues_call_run(struct task *t)
{
    struct queues_call *c = CONTAINER(t, struct queues_call, request.task);
    const struct lapse_queue *const *queues = (const struct lapse_queue *const *)c->queues;

    if (!c->fn) {
        return;
    }
    if (c->request.err) {
        c->fn(c->request.handle, c->request.err, NULL, 0, c->request.arg);
    } else {
        c->fn(c->request.handle, 0, queues, c->n, c->request.arg);
    }
}

static void queues_call_done(struct task *t, bool alive)
{
    struct queues_call *c = CONTAINER(t, struct queues_call, request.task);
    (void)alive;

    for (size_t i = 0; i < c->n; i++) {
        struct queue_row *row = CONTAINER(c->queues[i], struct queue_row, queue);
        mem_free(row->settings);
        mem_free(row);
    }
    mem_free(c->queues);
    mem_free(c);
}

static void queues_ask(struct queues_call *c)
{
    struct lapse *l = c->request.handle;

    c->script.request.until_us = request_until_us(l);
    script_names(&l->script, &c->script, span_of(c->key));
}

/* All that was asked for has been answered. */
static void queues_go_on(struct queues_call *c)
{
    if (!c->err && !c->is_last && request_is_cut_off(&c->request)) {
        c->err = LAPSE_ECLOSED;
    }

    if (c->err || c->is_last) {
        request_end(&c->request, c->err);
    } else {
        queues_ask(c);
    }
}

/* ---- a queue ---- */
static int queue_row_read(struct queue_row *row, const struct depth_reply *reply)
{
    row->settings = mem_new(0, reply->settings.len + 1);
    if (!row->settings) {
        return LAPSE_ENOMEM;
    }

    memcpy(row->settings, reply->settings.at, reply->settings.len);
    row->settings[reply->settings.len] = '\0';
    script_depth_read(reply, &row->depth);
    row->queue = (struct lapse_queue){row->name, &row->depth, row->settings};

    return 0;
}

static void on_queue_depth(struct depth_request *r, int err, const struct depth_reply *reply)
{
    struct queue_row *row = CONTAINER(r, struct queue_row, script);
    struct queues_call *c = row->call;

    if (!err) {
        err = queue_row_read(row, reply);
    }
    if (!c->err) {
        c->err = err;
    }

    c->n_open--;
    if (c->n_open == 0) {
        queues_go_on(c);
    }
}

static int queue_row_add(struct queues_call *c, struct span name)
{
    struct lapse *l = c->request.handle;
    struct queue_row *row = mem_new(sizeof *row, 0);

    if (!row) {
        return LAPSE_ENOMEM;
    }

    memcpy(row->name, name.at, name.len);
    row->call = c;
    row->script.end = on_queue_depth;
    row->script.request.until_us = request_until_us(l);
    c->queues[c->n++] = &row->queue;
    c->n_open++;

    size_t len = keys_of(row->key, l->context.options.space, row->name, KEYS_DUE);
    script_depth(&l->script, &row->script, (struct span){row->key, len});

    return 0;
}

/* ---- a page of names ---- */
/* What cannot be the name of a queue another program has written. It is passed over. */
static int queues_take(struct queues_call *c, const struct names_reply *reply)
{
    struct lapse_queue **grown = mem_grow(c->queues, c->n + reply->n_jobs + 1, sizeof *grown);
    struct span name = {"", 0};
    int err = 0;

    if (!grown) {
        return LAPSE_ENOMEM;
    }

    c->queues = grown;
    c->is_last = reply->n_jobs < SCRIPT_BATCH;
    for (size_t i = 0; !err && i < reply->n_jobs; i++) {
        if (!reply_text(names_reply_name(reply, i), &name)) {
            return LAPSE_EBROKEN;
        }
        if (keys_queue_ok(name)) {
            err = c->n < QUEUES_MAX ? queue_row_add(c, name) : LAPSE_EFULL;
        }
    }
    if (!err && !c->is_last && !names_go_behind(&c->script, name)) {
        return LAPSE_EBROKEN;
    }

    return err;
}

static void on_names(struct names_request *r, int err, const struct names_reply *reply)
{
    struct queues_call *c = CONTAINER(r, struct queues_call, script);

    c->err = err ? err : queues_take(c, reply);
    if (c->n_open == 0) {
        queues_go_on(c);
    }
}

/* false: it is no pattern. */
static bool queues_range(struct queues_call *c, const char *pattern)
{
    struct span name = span_of(pattern ? pattern : "*");
    struct span beginning = name;
    bool is_pattern = keys_queues_of(name, &beginning);

    if (!is_pattern && !keys_queue_ok(name)) {
        return false;
    }

    if (is_pattern) {
        names_of(&c->script, beginning);
    } else {
        names_between(&c->script, name, name);
    }
    return true;
}

int lapse_queues(struct lapse *l, const char *pattern, lapse_queues_fn *fn, void *arg)
{
    struct request_spec spec = {
        .size = sizeof(struct queues_call),
        .queue = "",
        .id = "",
        .arg = arg,
        .run = queues_call_run,
        .done = queues_call_done,
    };
    void *made;

    int err = l ? request_new(&made, l, &spec) : LAPSE_EINVAL;
    if (err) {
        return err;
    }

    struct queues_call *c = made;
    if (!queues_range(c, pattern)) {
        request_drop(&c->request);
        return LAPSE_EINVAL;
    }

    c->fn = fn;
    c->script.end = on_names;
    keys_queues(c->key, l->context.options.space);
    queues_ask(c);

    return 0;
}
