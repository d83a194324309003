/* SPDX-License-Identifier: MIT */
#include "doctor/queues.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool queues_grow(struct queues *q)
{
    int cap = q->cap ? 2 * q->cap : 16;
    void *names = realloc(q->names, (size_t)cap * sizeof *q->names);

    if (!names) {
        return false;
    }

    q->names = names;
    q->cap = cap;
    return true;
}

bool queues_add(struct queues *q, const char *name, size_t len)
{
    if (q->n == q->cap && !queues_grow(q)) {
        return false;
    }

    snprintf(q->names[q->n], sizeof q->names[0], "%.*s", (int)len, name);
    q->n++;
    return true;
}

bool queues_have(const struct queues *q, const char *name)
{
    for (int i = 0; i < q->n; i++) {
        if (strcmp(q->names[i], name) == 0) {
            return true;
        }
    }

    return false;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

void queues_sort(struct queues *q)
{
    int n = 0;

    if (q->n == 0) {
        return;
    }

    qsort(q->names, (size_t)q->n, sizeof q->names[0], compare_names);
    for (int i = 1; i < q->n; i++) {
        if (strcmp(q->names[i], q->names[n]) != 0) {
            n++;
            memmove(q->names[n], q->names[i], sizeof q->names[0]);
        }
    }

    q->n = n + 1;
}

void queues_free(struct queues *q)
{
    free(q->names);
}
