/* SPDX-License-Identifier: MIT */
/* lapse_sync_configure(), lapse_sync_pause(), lapse_sync_unpause(), lapse_sync_forward(),
 * lapse_sync_free_text(). */
#include "sync/call.h"
#include <string.h>

struct settings_args {
    const char *queue;
    const char *changes;
    const char *id;
    int64_t for_ms;
    const char *to;
};

static char *text_dup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *dup = lapse_allocate(NULL, size);

    return dup ? memcpy(dup, text, size) : NULL;
}

/* A change that was refused comes with the reason, and is as refused without it. */
static void on_text(struct lapse *l, int err, const char *text, void *arg)
{
    struct call *c = arg;
    char *dup = NULL;
    (void)l;

    if (text && c->out) {
        dup = text_dup(text);
        err = dup || err ? err : LAPSE_ELOST;
    }

    char **out = call_out(c);
    if (out && dup) {
        *out = dup;
        dup = NULL;
    }
    call_ended(c, err);
    lapse_sync_free_text(dup);
}

static int settings_ask_configure(struct call *c)
{
    const struct settings_args *a = c->args;
    return lapse_configure(c->sync->handle, a->queue, a->changes, on_text, c);
}

static int settings_ask_pause(struct call *c)
{
    const struct settings_args *a = c->args;
    return lapse_pause(c->sync->handle, a->queue, a->id, a->for_ms, on_text, c);
}

static int settings_ask_unpause(struct call *c)
{
    const struct settings_args *a = c->args;
    return lapse_unpause(c->sync->handle, a->queue, a->id, on_text, c);
}

static int settings_ask_forward(struct call *c)
{
    const struct settings_args *a = c->args;
    return lapse_forward(c->sync->handle, a->queue, a->to, on_text, c);
}

int lapse_sync_configure(struct lapse_sync *s, const char *queue, const char *changes,
                         int64_t timeout_ms, char **out)
{
    struct settings_args args = {.queue = queue, .changes = changes};
    return call_run(s, settings_ask_configure, &args, timeout_ms, out);
}

int lapse_sync_pause(struct lapse_sync *s, const char *queue, const char *id, int64_t for_ms,
                     int64_t timeout_ms, char **out)
{
    struct settings_args args = {.queue = queue, .id = id, .for_ms = for_ms};
    return call_run(s, settings_ask_pause, &args, timeout_ms, out);
}

int lapse_sync_unpause(struct lapse_sync *s, const char *queue, const char *id, int64_t timeout_ms,
                       char **out)
{
    struct settings_args args = {.queue = queue, .id = id};
    return call_run(s, settings_ask_unpause, &args, timeout_ms, out);
}

int lapse_sync_forward(struct lapse_sync *s, const char *queue, const char *to, int64_t timeout_ms,
                       char **out)
{
    struct settings_args args = {.queue = queue, .to = to};
    return call_run(s, settings_ask_forward, &args, timeout_ms, out);
}

void lapse_sync_free_text(char *text)
{
    if (text) {
        lapse_allocate(text, 0);
    }
}
