/* SPDX-License-Identifier: MIT */
/* How many dead jobs there are: by default they stay until an operator decides about them. */
#include "doctor/ask.h"
#include "doctor/checks.h"
#include "doctor/report.h"
#include "job/keys.h"
#include <hiredis/hiredis.h>
#include <stdio.h>

enum { MANY = 10000 };

static void check_queue_dead(struct doctor *d, const char *queue)
{
    struct finding f = {.check = "dead", .queue = queue, .verdict = WARN};
    char key[KEYS_MAX];
    char fix[KEYS_MAX + 80];

    keys_of(key, d->space, queue, KEYS_DEAD);
    redisReply *r = ASK(d, "ZCARD", key);

    if (r && r->type == REDIS_REPLY_INTEGER && r->integer >= MANY) {
        f.fix = fix;
        snprintf(fix, sizeof fix,
                 "lapse list %s --state dead, then lapse configure %s dead_keep=7d", queue, queue);
        report(d, f, "%lld dead jobs, which take memory", r->integer);
    }

    freeReplyObject(r);
}

void check_dead(struct doctor *d)
{
    for (int i = 0; i < d->queues.n && !d->code; i++) {
        check_queue_dead(d, d->queues.names[i]);
    }
}
