/* SPDX-License-Identifier: MIT */
/* Queues are found by their keys. Triggers are left out by the pattern, so that none of them is
 * touched. */
#include "doctor/ask.h"
#include "doctor/checks.h"
#include "doctor/report.h"
#include "cli/message.h"
#include "job/keys.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

static void add_queue_of(struct doctor *d, const char *key)
{
    struct span queue;

    if (keys_queue_of(span_of(key), d->space, &queue) &&
        !queues_add(&d->queues, queue.at, queue.len)) {
        message_print("out of memory");
        d->code = INTERNAL;
    }
}

static bool is_page(const redisReply *r)
{
    return r && r->type == REDIS_REPLY_ARRAY && r->elements == 2 && is_text(r->element[0]) &&
           r->element[1]->type == REDIS_REPLY_ARRAY;
}

static void add_queues_of(struct doctor *d, const redisReply *keys)
{
    for (size_t i = 0; i < keys->elements; i++) {
        if (is_text(keys->element[i])) {
            add_queue_of(d, keys->element[i]->str);
        }
    }
}

void find_queues(struct doctor *d)
{
    struct finding f = {.check = "queues", .verdict = WARN, .fix = "lapse doctor QUEUE..."};
    char cursor[24] = "0";
    char pattern[KEYS_MAX];
    bool more = true;

    keys_pattern_of_parts(pattern, d->space);

    while (more && !d->code) {
        redisReply *r = ASK(d, "SCAN", cursor, "MATCH", pattern, "COUNT", "1000");

        more = is_page(r);
        if (more) {
            add_queues_of(d, r->element[1]);
            snprintf(cursor, sizeof cursor, "%s", r->element[0]->str);
            more = strcmp(cursor, "0") != 0;
        } else if (r) {
            report(d, f, "cannot be listed: %s",
                   is_error(r) ? printable(r->str) : "unexpected reply to SCAN");
        }

        freeReplyObject(r);
    }

    queues_sort(&d->queues); /* a queue has several keys */
}
