/* SPDX-License-Identifier: MIT */
/* lapse_sync_calendar(). */
#include "sync/call.h"

struct calendar_args {
    const char *name;
    lapse_next_fn *fn;
    void *arg;
};

static int calendar_ask(struct call *c)
{
    const struct calendar_args *a = c->args;
    int err = lapse_calendar(c->sync->handle, a->name, a->fn, a->arg);

    return err ? err : CALL_OVER;
}

int lapse_sync_calendar(struct lapse_sync *s, const char *name, lapse_next_fn *fn, void *arg)
{
    struct calendar_args args = {.name = name, .fn = fn, .arg = arg};
    return call_run(s, calendar_ask, &args, 0, NULL);
}
