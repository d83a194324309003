/* SPDX-License-Identifier: MIT */
/* lapse_sync_queues(), lapse_sync_listeners(), lapse_sync_quiet(), lapse_sync_stop(),
 * lapse_sync_history(), lapse_sync_free_rows().
 *
 * What the callbacks of lapse.h lend is copied into one block: pointers to the rows, the rows, and
 * behind them their texts. So one function frees it, whatever it is. */
#include "sync/call.h"
#include <string.h>

void lapse_sync_free_rows(void *rows)
{
    lapse_allocate(rows, 0);
}

/* NULL: out of memory. */
static void *rows_new(size_t n, size_t row_size, size_t texts_len)
{
    return lapse_allocate(NULL, n * (sizeof(void *) + row_size) + texts_len + 1);
}

/* Copies a text to *at, and moves that behind it. */
static const char *rows_text(char **at, const char *text)
{
    size_t size = strlen(text) + 1;
    const char *copy = memcpy(*at, text, size);

    *at += size;
    return copy;
}

/* ---- queues ---- */
struct queue_row {
    struct lapse_queue queue;
    struct lapse_depth depth;
};

static struct lapse_queue **queues_dup(const struct lapse_queue *const *queues, size_t n)
{
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        len += strlen(queues[i]->name) + 1 + strlen(queues[i]->settings) + 1;
    }
    struct lapse_queue **dups = rows_new(n, sizeof(struct queue_row), len);
    if (!dups) {
        return NULL;
    }

    struct queue_row *rows = (void *)(dups + n);
    char *text = (char *)(rows + n);
    for (size_t i = 0; i < n; i++) {
        rows[i].depth = *queues[i]->depth;
        rows[i].queue.name = rows_text(&text, queues[i]->name);
        rows[i].queue.depth = &rows[i].depth;
        rows[i].queue.settings = rows_text(&text, queues[i]->settings);
        dups[i] = &rows[i].queue;
    }

    return dups;
}

static void on_queues(struct lapse *l, int err, const struct lapse_queue *const *queues, size_t n,
                      void *arg)
{
    struct call *c = arg;
    struct lapse_queue **dups = NULL;
    (void)l;

    if (!err) {
        dups = queues_dup(queues, n);
        err = dups ? 0 : LAPSE_ENOMEM;
    }

    struct lapse_sync_queue_rows *out = call_out(c);
    if (out && dups) {
        *out = (struct lapse_sync_queue_rows){n, dups};
        dups = NULL;
    }
    call_ended(c, err);
    lapse_sync_free_rows(dups);
}

static int queues_ask(struct call *c)
{
    return lapse_queues(c->sync->handle, c->args, on_queues, c);
}

int lapse_sync_queues(struct lapse_sync *s, const char *pattern, int64_t timeout_ms,
                      struct lapse_sync_queue_rows *out)
{
    return out ? call_run(s, queues_ask, pattern, call_all_ms(timeout_ms), out) : LAPSE_EINVAL;
}

/* ---- listeners ---- */
struct listener_args {
    const char *queue;
    const char *name;
    int quiet;
};

static struct lapse_listener **listeners_dup(const struct lapse_listener *const *listeners,
                                             size_t n)
{
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        len += strlen(listeners[i]->name) + 1;
    }
    struct lapse_listener **dups = rows_new(n, sizeof(struct lapse_listener), len);
    if (!dups) {
        return NULL;
    }

    struct lapse_listener *rows = (void *)(dups + n);
    char *text = (char *)(rows + n);
    for (size_t i = 0; i < n; i++) {
        rows[i] = *listeners[i];
        rows[i].name = rows_text(&text, listeners[i]->name);
        dups[i] = &rows[i];
    }

    return dups;
}

/* no_memory: what it means that they cannot be copied. */
static void listeners_answer(struct call *c, int err, const struct lapse_listener *const *listeners,
                             size_t n, int no_memory)
{
    struct lapse_listener **dups = NULL;

    if (!err && c->out) {
        dups = listeners_dup(listeners, n);
        err = dups ? 0 : no_memory;
    }

    struct lapse_sync_listener_rows *out = call_out(c);
    if (out && dups) {
        *out = (struct lapse_sync_listener_rows){n, dups};
        dups = NULL;
    }
    call_ended(c, err);
    lapse_sync_free_rows(dups);
}

static void on_listeners(struct lapse *l, int err, const struct lapse_listener *const *listeners,
                         size_t n, void *arg)
{
    (void)l;
    listeners_answer(arg, err, listeners, n, LAPSE_ENOMEM);
}

static void on_tell(struct lapse *l, int err, const struct lapse_listener *const *listeners,
                    size_t n, void *arg)
{
    (void)l;
    listeners_answer(arg, err, listeners, n, LAPSE_ELOST);
}

static int listeners_ask(struct call *c)
{
    const struct listener_args *a = c->args;
    return lapse_listeners(c->sync->handle, a->queue, on_listeners, c);
}

static int listeners_ask_quiet(struct call *c)
{
    const struct listener_args *a = c->args;
    return lapse_quiet(c->sync->handle, a->name, a->quiet, on_tell, c);
}

static int listeners_ask_stop(struct call *c)
{
    const struct listener_args *a = c->args;
    return lapse_stop(c->sync->handle, a->name, on_tell, c);
}

int lapse_sync_listeners(struct lapse_sync *s, const char *queue, int64_t timeout_ms,
                         struct lapse_sync_listener_rows *out)
{
    struct listener_args args = {.queue = queue};
    return out ? call_run(s, listeners_ask, &args, call_all_ms(timeout_ms), out) : LAPSE_EINVAL;
}

int lapse_sync_quiet(struct lapse_sync *s, const char *name, int quiet, int64_t timeout_ms,
                     struct lapse_sync_listener_rows *out)
{
    struct listener_args args = {.name = name, .quiet = quiet};
    return call_run(s, listeners_ask_quiet, &args, timeout_ms, out);
}

int lapse_sync_stop(struct lapse_sync *s, const char *name, int64_t timeout_ms,
                    struct lapse_sync_listener_rows *out)
{
    struct listener_args args = {.name = name};
    return call_run(s, listeners_ask_stop, &args, timeout_ms, out);
}

/* ---- history ---- */
struct history_args {
    const char *queue;
    int64_t from_ms;
    int64_t to_ms;
    int64_t step_ms;
};

static struct lapse_past **history_dup(const struct lapse_past *const *steps, size_t n)
{
    struct lapse_past **dups = rows_new(n, sizeof(struct lapse_past), 0);

    if (!dups) {
        return NULL;
    }

    struct lapse_past *rows = (void *)(dups + n);
    for (size_t i = 0; i < n; i++) {
        rows[i] = *steps[i];
        dups[i] = &rows[i];
    }

    return dups;
}

static void on_history(struct lapse *l, int err, const struct lapse_past *const *steps, size_t n,
                       void *arg)
{
    struct call *c = arg;
    struct lapse_past **dups = NULL;
    (void)l;

    if (!err) {
        dups = history_dup(steps, n);
        err = dups ? 0 : LAPSE_ENOMEM;
    }

    struct lapse_sync_past_rows *out = call_out(c);
    if (out && dups) {
        *out = (struct lapse_sync_past_rows){n, dups};
        dups = NULL;
    }
    call_ended(c, err);
    lapse_sync_free_rows(dups);
}

static int history_ask(struct call *c)
{
    const struct history_args *a = c->args;
    return lapse_history(c->sync->handle, a->queue, a->from_ms, a->to_ms, a->step_ms, on_history,
                         c);
}

int lapse_sync_history(struct lapse_sync *s, const char *queue, int64_t from_ms, int64_t to_ms,
                       int64_t step_ms, int64_t timeout_ms, struct lapse_sync_past_rows *out)
{
    struct history_args args = {queue, from_ms, to_ms, step_ms};
    return out ? call_run(s, history_ask, &args, timeout_ms, out) : LAPSE_EINVAL;
}
