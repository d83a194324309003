/* SPDX-License-Identifier: MIT */
/* lapse_listeners(), lapse_remove(). Each begins with the question who is alive: that is in one key
 * for all queues, which a script of one queue cannot read. And lapse_quiet(), lapse_stop(), which
 * write into that key what a listener was told. */
#include "api/request.h"
#include "base/mem.h"
#include "script/queue_verbs.h"

struct alive_call {
    struct request request;
    struct alive_request script;
    char key[KEYS_MAX];
    struct span *names;    /* of the alive; before them is space for one argument more */
    enum lapse_told *told; /* what each of them was */
    unsigned n_names;
    void (*then)(struct alive_call *c);
};

static void alive_call_free(struct alive_call *c)
{
    mem_free(c->names);
    mem_free(c);
}

/* One whose end is no time, as another program may have written it, is alive by Redis's account and
 * was told nothing. */
static bool alive_one(const struct alive_reply *reply, size_t i, struct live_listener *out)
{
    return script_live_listener(alive_reply_name(reply, i), alive_reply_end_ms(reply, i), out) ||
           out->name.at;
}

/* In one block: the names, what each was told, and the texts. */
static int alive_read(struct alive_call *c, const struct alive_reply *reply)
{
    size_t names_size = (reply->n_jobs + 1) * sizeof *c->names;
    size_t told_size = reply->n_jobs * sizeof *c->told;
    size_t len = 0;
    struct live_listener one;

    for (size_t i = 0; i < reply->n_jobs; i++) {
        if (!alive_one(reply, i, &one)) {
            return LAPSE_EBROKEN;
        }
        len += one.name.len;
    }

    c->names = mem_new(names_size, told_size + len);
    if (!c->names) {
        return LAPSE_ENOMEM;
    }

    c->told = (enum lapse_told *)(void *)((char *)c->names + names_size);
    char *text = (char *)c->names + names_size + told_size;
    for (size_t i = 0; i < reply->n_jobs; i++) {
        alive_one(reply, i, &one);
        c->names[1 + i] = (struct span){memcpy(text, one.name.at, one.name.len), one.name.len};
        c->told[i] = one.told;
        text += one.name.len;
    }
    c->n_names = (unsigned)reply->n_jobs;

    return 0;
}

static enum lapse_told alive_told(const struct alive_call *c, struct span name)
{
    for (unsigned i = 0; i < c->n_names; i++) {
        if (span_eq(c->names[1 + i], name)) {
            return c->told[i];
        }
    }

    return LAPSE_TOLD_GO_ON;
}

static void on_alive(struct alive_request *r, int err, const struct alive_reply *reply)
{
    struct alive_call *c = CONTAINER(r, struct alive_call, script);

    if (!err) {
        err = alive_read(c, reply);
    }
    if (!err && request_is_cut_off(&c->request)) {
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
enum {
    LISTENER_NAME_SIZE = KEYS_NAME_MAX + 33,
    LISTENER_DIGITS = 17 /* and the slash before them */
};

/* What an answer shows. */
struct listener_rows {
    struct lapse_listener *all; /* and behind them their texts */
    const struct lapse_listener **listeners;
    char *texts;
    size_t n;
};

/* Places for n rows, and a text behind them for each. ENOMEM. */
static int listener_rows_new(struct listener_rows *rows, size_t n)
{
    rows->all = mem_new(n * sizeof *rows->all + 1, n * LISTENER_NAME_SIZE);
    rows->listeners = mem_new((n + 1) * sizeof *rows->listeners, 0);
    rows->texts = (char *)(rows->all + n);

    return rows->all && rows->listeners ? 0 : LAPSE_ENOMEM;
}

static void listener_rows_add(struct listener_rows *rows, struct lapse_listener one,
                              struct span name)
{
    char *text = rows->texts + rows->n * LISTENER_NAME_SIZE;

    snprintf(text, LISTENER_NAME_SIZE, "%.*s", (int)name.len, name.at);
    one.name = text;
    rows->all[rows->n] = one;
    rows->listeners[rows->n] = &rows->all[rows->n];
    rows->n++;
}

static void listener_rows_answer(const struct listener_rows *rows, const struct request *r,
                                 lapse_listeners_fn *fn)
{
    if (!fn) {
        return;
    }
    if (r->err) {
        fn(r->handle, r->err, NULL, 0, r->arg);
    } else {
        fn(r->handle, 0, rows->listeners, rows->n, r->arg);
    }
}

static void listener_rows_free(struct listener_rows *rows)
{
    mem_free(rows->listeners);
    mem_free(rows->all);
}

struct listeners_call {
    struct alive_call alive;
    lapse_listeners_fn *fn;
    struct listeners_request script;
    struct listener_rows rows;
};

static void listeners_call_run(struct task *t)
{
    const struct listeners_call *c = CONTAINER(t, struct listeners_call, alive.request.task);

    listener_rows_answer(&c->rows, &c->alive.request, c->fn);
}

static void listeners_call_done(struct task *t, bool alive)
{
    struct listeners_call *c = CONTAINER(t, struct listeners_call, alive.request.task);
    (void)alive;

    listener_rows_free(&c->rows);
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
    int err = listener_rows_new(&c->rows, reply->n_jobs);
    struct lapse_listener one;
    struct span name;

    for (size_t i = 0; !err && i < reply->n_jobs; i++) {
        if (!listener_read(&one, reply, i, &name)) {
            return LAPSE_EBROKEN;
        }
        one.told = alive_told(&c->alive, name);
        listener_rows_add(&c->rows, one, name);
    }

    return err;
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

/* ---- tell ---- */
struct tell_call {
    struct request request;
    lapse_listeners_fn *fn;
    struct tell_request script;
    enum lapse_told what;
    char key[KEYS_MAX];
    struct listener_rows rows;
};

static void tell_call_run(struct task *t)
{
    const struct tell_call *c = CONTAINER(t, struct tell_call, request.task);

    listener_rows_answer(&c->rows, &c->request, c->fn);
}

static void tell_call_done(struct task *t, bool alive)
{
    struct tell_call *c = CONTAINER(t, struct tell_call, request.task);
    (void)alive;

    listener_rows_free(&c->rows);
    mem_free(c);
}

static int tell_read(struct tell_call *c, const struct tell_reply *reply)
{
    int err = listener_rows_new(&c->rows, reply->n_jobs);
    struct span name;

    for (size_t i = 0; !err && i < reply->n_jobs; i++) {
        if (!reply_text(tell_reply_name(reply, i), &name)) {
            return LAPSE_EBROKEN;
        }
        listener_rows_add(&c->rows, (struct lapse_listener){.told = c->what}, name);
    }

    return err;
}

static void on_tell(struct tell_request *r, int err, const struct tell_reply *reply)
{
    struct tell_call *c = CONTAINER(r, struct tell_call, script);

    if (!err && reply->n_jobs == 0) {
        err = LAPSE_ENOENT;
    }
    request_end(&c->request, err ? err : tell_read(c, reply));
}

/* The option, and maybe a slash and digits behind it. */
static bool listener_name_ok(const char *name)
{
    struct span s = span_of(name ? name : "");
    struct span option = s;

    if (s.len > LISTENER_DIGITS && s.at[s.len - LISTENER_DIGITS] == '/') {
        option.len -= LISTENER_DIGITS;
    }
    return keys_name_ok(option);
}

static int tell(struct lapse *l, const char *name, enum lapse_told what, lapse_listeners_fn *fn,
                void *arg)
{
    bool is_name = listener_name_ok(name);
    struct request_spec spec = {
        .size = sizeof(struct tell_call),
        .queue = "",
        .id = name,
        .arg = arg,
        .run = tell_call_run,
        .done = tell_call_done,
    };
    void *made;

    int err = l && is_name ? request_new(&made, l, &spec) : LAPSE_EINVAL;
    if (err) {
        return err;
    }

    struct tell_call *c = made;
    c->fn = fn;
    c->what = what;
    c->script.end = on_tell;
    c->script.request.until_us = request_until_us(l);
    keys_alive(c->key, l->context.options.space);
    script_tell(&l->script, &c->script, span_of(c->key), c->request.id, what);

    return 0;
}

int lapse_quiet(struct lapse *l, const char *name, int quiet, lapse_listeners_fn *fn, void *arg)
{
    return tell(l, name, quiet ? LAPSE_TOLD_QUIET : LAPSE_TOLD_GO_ON, fn, arg);
}

int lapse_stop(struct lapse *l, const char *name, lapse_listeners_fn *fn, void *arg)
{
    return tell(l, name, LAPSE_TOLD_STOP, fn, arg);
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
    return request_is_cut_off(&c->alive.request) ? LAPSE_ECLOSED : 0;
}

static void on_removed(struct remove_request *r, int err, const struct remove_reply *reply)
{
    struct remove_call *c = CONTAINER(r, struct remove_call, script);

    request_wrote(&c->alive.request, r->request.sent_us);
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
