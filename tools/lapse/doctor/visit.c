/* SPDX-License-Identifier: MIT */
#include "doctor/visit.h"
#include <stdlib.h>
#include <string.h>

void visit_begin(struct visit *v, struct doctor *d, const struct redis_sync *redis, const char *at)
{
    v->before = *d;
    d->redis = *redis;
    d->at = at;
    d->info = NULL;
    d->n_triggers = 0;
    doctor_read_info(d);
}

int visit_end(const struct visit *v, struct doctor *d, struct redis_sync *redis)
{
    struct doctor before = v->before;
    int code = d->code;

    *redis = d->redis;
    free(d->info);
    memcpy(before.n_verdicts, d->n_verdicts, sizeof before.n_verdicts);
    *d = before;
    return code;
}
