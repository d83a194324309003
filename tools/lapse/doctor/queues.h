/* SPDX-License-Identifier: MIT */
#ifndef QUEUES_H
#define QUEUES_H
#include "job/keys.h"
#include <stdbool.h>
#include <stddef.h>

enum { QUEUE_LEN = KEYS_QUEUE_MAX };

/* Names of queues. */
struct queues {
    char (*names)[QUEUE_LEN + 1];
    int n, cap;
};

/* A name longer than QUEUE_LEN is cut. False: out of memory. */
bool queues_add(struct queues *q, const char *name, size_t len);
bool queues_have(const struct queues *q, const char *name);
/* By name, each once. */
void queues_sort(struct queues *q);
void queues_free(struct queues *q);
#endif
