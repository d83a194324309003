/* SPDX-License-Identifier: MIT */
#include "bench/producer.h"
#include "bench/loop.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_PREFIX "bench-"
enum { ID_BYTES = 20, ID_DIGITS = ID_BYTES - (sizeof ID_PREFIX - 1) };

bool producer_init(struct producer *p, struct bench_loop *loop, const char *queue, size_t body_len)
{
    *p = (struct producer){.loop = loop, .queue = queue, .body_len = body_len};
    p->body = malloc(body_len + 1);
    if (!p->body) {
        return false;
    }

    for (size_t i = 0; i < body_len; i++) {
        p->body[i] = (char)('a' + i % 26);
    }

    return true;
}

void producer_free(struct producer *p)
{
    free(p->body);
}

int producer_schedule(struct producer *p, struct lapse_due due, lapse_cb *fn, void *arg)
{
    struct lapse_spec s = lapse_spec_init();
    char id[sizeof ID_PREFIX + 24];

    snprintf(id, sizeof id, ID_PREFIX "%0*" PRIu64, ID_DIGITS, p->next);
    s.queue = p->queue;
    s.id = id;
    s.body = p->body;
    s.body_len = p->body_len;
    s.due = due;

    int err = lapse_schedule(p->loop->client.l, &s, fn, arg);
    if (!err) {
        p->next++;
    }

    return err;
}

bool producer_number_of(const char *id, uint64_t *number)
{
    if (strlen(id) != ID_BYTES || strncmp(id, ID_PREFIX, strlen(ID_PREFIX)) != 0) {
        return false;
    }

    *number = strtoull(id + strlen(ID_PREFIX), NULL, 10);
    return true;
}
