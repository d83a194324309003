/* SPDX-License-Identifier: MIT */
/* lapse_listeners(), lapse_remove(). Each begins with the question who is alive: that is in one key
 * for all queues, which a script of one queue cannot read. */
#include "api/request.h"
#include "base/mem.h"
#include "script/queue_verbs.h"

struct alive_call {
    struct request request;
    struct alive_request script;
    char key[KEYS_MAX];
    struct span *names; /* of the alive; before them is space for one argument more */
    unsigned n_names;
    void (*then)(struct alive_call *c);
};

static void alive_call_free(struct alive_call *c)
{
    mem_free(c->names);
    mem_free(c);
}

static int alive_read(struct alive_call *c, const struct alive_reply *reply)
{
    size_t size = (reply->n_jobs + 1) * sizeof *c->names;
    size_t len = 0;
    struct span name;

    for (size_t i = 0; i < reply->n_jobs; i++) {
        if (!reply_text(alive_reply_name(reply, i), &name)) {
            return LAPSE_EBROKEN;
        }
        len += name.len;
    }

    c->names = mem_new(size, len);
    if (!c->names) {
        return LAPSE_ENOMEM;
    }

    char *text = (char *)c->names + size;
    for (size_t i = 0; i < reply->n_jobs; i++) {
        reply_text(alive_reply_name(reply, i), &name);
        c->names[1 + i] = (struct span){memcpy(text, name.at, name.len), name.len};
        text += name.len;
    }
    c->n_names = (unsigned)reply->n_jobs;

    return 0;
}

static void on_alive(struct alive_request *r, int err, const struct alive_reply *reply)
{
    struct alive_call *c = CONTAINER(r, struct alive_call, script);

    if (!err) {
        err = alive_read(c, reply);
    }
    if (!err && c->request.handle->ended) {
        err = LAPSE_ECLOSED;
    }

    if (err) {
        request_end(&c->request, err);
    } else {
        c->then(c);
    }
}

/* spec: without the queue. */
static int alive_ask(struct alive_call **out, struct lapse *l, const char *queue,
                     struct request_spec spec)
{
    void *made;

    if (!l || !queue || !keys_queue_ok(span_of(queue))) {
        return LAPSE_EINVAL;
    }

    spec.queue = queue;
    spec.id = "";
    int err = request_new(&made, l, &spec);
    if (err) {
        return err;
    }

    struct alive_call *c = made;
    c->script.end = on_alive;
    c->script.request.until_us = request_until_us(l);
    keys_alive(c->key, l->context.options.space);
    script_alive(&l->script, &c->script, span_of(c->key));
    *out = c;

    return 0;
}

/* ---- listeners ---- */
struct listeners_call {
    struct alive_call alive;
    lapse_listeners_fn *fn;
    struct listeners_request script;
    struct lapse_listener *rows; /* and behind them their texts */
    const struct lapse_listener **listeners;
    size_t n;
};

static void listeners_call_run(struct task *t)
{
    struct listeners_call *c = CONTAINER(t, struct listeners_call, alive.request.task);
    const struct request *r = &c->alive.request;

    if (!c->fn) {
        return;
    }
    if (r->err) {
        c->fn(r->handle, r->err, NULL, 0, r->arg);
    } else {
        c->fn(r->handle, 0, c->listeners, c->n, r->arg);
    }
}

static void listeners_call_done(struct task *t, bool alive)
{
    struct listeners_call *c = CONTAINER(t, struct listeners_call, alive.request.task);
    (void)alive;

    mem_free(c->listeners);
    mem_free(c->rows);
    alive_call_free(&c->alive);
}

static bool listener_read(struct lapse_listener *out, const struct listeners_reply *reply, size_t i,
                          struct span *name)
{
    int64_t n_held;

    if (!reply_text(listeners_reply_name(reply, i), name) ||
        !reply_int(listeners_reply_since_ms(reply, i), &out->since_ms) ||
        !reply_int(listeners_reply_n_held(reply, i), &n_held)) {
        return false;
    }

    out->n_held = (uint64_t)n_held;
    return true;
}

static int listeners_read(struct listeners_call *c, const struct listeners_reply *reply)
{
    enum { NAME_MAX_SIZE = KEYS_NAME_MAX + 33 };
    size_t n = reply->n_jobs;
    size_t size = n * sizeof *c->rows;
    struct span name;

    c->rows = mem_new(size + 1, n * NAME_MAX_SIZE);
    c->listeners = mem_new((n + 1) * sizeof *c->listeners, 0);
    if (!c->rows || !c->listeners) {
        return LAPSE_ENOMEM;
    }

    char *text = (char *)c->rows + size;
    for (size_t i = 0; i < n; i++, text += NAME_MAX_SIZE) {
        if (!listener_read(&c->rows[i], reply, i, &name)) {
            return LAPSE_EBROKEN;
        }
        snprintf(text, NAME_MAX_SIZE, "%.*s", (int)name.len, name.at);
        c->rows[i].name = text;
        c->listeners[i] = &c->rows[i];
    }
    c->n = n;

    return 0;
}

static void on_listeners(struct listeners_request *r, int err, const struct listeners_reply *reply)
{
    struct listeners_call *c = CONTAINER(r, struct listeners_call, script);

    request_end(&c->alive.request, err ? err : listeners_read(c, reply));
}

static void listeners_ask(struct alive_call *alive)
{
    struct listeners_call *c = CONTAINER(alive, struct listeners_call, alive);
    struct lapse *l = alive->request.handle;

    c->script.end = on_listeners;
    c->script.request.until_us = request_until_us(l);
    script_listeners(&l->script, &c->script, alive->request.key, alive->names + 1, alive->n_names);
}

int lapse_listeners(struct lapse *l, const char *queue, lapse_listeners_fn *fn, void *arg)
{
    struct request_spec spec = {
        .size = sizeof(struct listeners_call),
        .arg = arg,
        .run = listeners_call_run,
        .done = listeners_call_done,
    };
    struct alive_call *made;
    int err = alive_ask(&made, l, queue, spec);

    if (!err) {
        made->then = listeners_ask;
        CONTAINER(made, struct listeners_call, alive)->fn = fn;
    }
    return err;
}

/* ---- remove ---- */
struct remove_call {
    struct alive_call alive;
    lapse_count_fn *fn;
    struct remove_request script;
    struct forget_request forget;
    char key[KEYS_MAX]; /* of the registry */
    bool by_force;
    bool begun;
    uint64_t n;
    uint64_t n_running;
};

static void remove_call_run(struct task *t)
{
    struct remove_call *c = CONTAINER(t, struct remove_call, alive.request.task);
    const struct request *r = &c->alive.request;

    if (c->fn) {
        c->fn(r->handle, r->err, c->n, c->n_running, r->arg);
    }
}

static void remove_call_done(struct task *t, bool alive)
{
    (void)alive;
    alive_call_free(&CONTAINER(t, struct remove_call, alive.request.task)->alive);
}

static void on_forgotten(struct forget_request *r, int err, const struct forget_reply *reply)
{
    (void)reply;
    request_end(&CONTAINER(r, struct remove_call, forget)->alive.request, err);
}

static void remove_name(struct remove_call *c)
{
    struct lapse *l = c->alive.request.handle;

    keys_queues(c->key, l->context.options.space);
    c->forget.end = on_forgotten;
    c->forget.request.until_us = request_until_us(l);
    script_forget(&l->script, &c->forget, span_of(c->key), span_of(c->alive.request.queue));
}

static void remove_ask(struct alive_call *alive)
{
    struct remove_call *c = CONTAINER(alive, struct remove_call, alive);
    struct lapse *l = alive->request.handle;

    alive->names[0] = span_of(c->by_force ? "1" : "0");
    c->script.request.until_us = request_until_us(l);
    script_remove(&l->script, &c->script, alive->request.key, alive->names, alive->n_names + 1);
}

static int remove_count(struct remove_call *c, const struct remove_reply *reply)
{
    bool is_busy = reply->n_listeners > 0 || reply->n_held > 0;

    if (!c->begun) {
        c->n_running = (uint64_t)reply->n_held;
    }
    c->begun = true;
    c->n += (uint64_t)reply->n;

    if (is_busy && !c->by_force) {
        return LAPSE_EBUSY;
    }
    if (reply->more && reply->n == 0) {
        return LAPSE_EBROKEN;
    }
    return c->alive.request.handle->ended ? LAPSE_ECLOSED : 0;
}

static void on_removed(struct remove_request *r, int err, const struct remove_reply *reply)
{
    struct remove_call *c = CONTAINER(r, struct remove_call, script);

    if (!err) {
        err = remove_count(c, reply);
    }

    if (err) {
        request_end(&c->alive.request, err);
    } else if (reply->more) {
        remove_ask(&c->alive);
    } else {
        tally_forget(&c->alive.request.handle->tallies, c->alive.request.queue);
        remove_name(c);
    }
}

int lapse_remove(struct lapse *l, const char *queue, unsigned flags, lapse_count_fn *fn, void *arg)
{
    struct request_spec spec = {
        .size = sizeof(struct remove_call),
        .arg = arg,
        .run = remove_call_run,
        .done = remove_call_done,
    };
    struct alive_call *made;
    int err = flags <= LAPSE_FORCE ? alive_ask(&made, l, queue, spec) : LAPSE_EINVAL;

    if (err) {
        return err;
    }

    struct remove_call *c = CONTAINER(made, struct remove_call, alive);
    made->then = remove_ask;
    c->fn = fn;
    c->by_force = flags == LAPSE_FORCE;
    c->script.end = on_removed;

    return 0;
}
