/* SPDX-License-Identifier: MIT */
#include "listen/weighted.h"
#include "cli/message.h"
#include "cli/values.h"
#include "command.h"
#include <lapse.h>
#include <stdlib.h>
#include <string.h>

/* A name of a queue has no colon. */
static int weighted_read_word(struct weighted_queue *q, char *word, bool strict)
{
    char *colon = strchr(word, ':');

    if (colon && strict) {
        return usage_error("queue", word, "has a weight, and --strict serves by order alone");
    }
    if (colon && parse_count(colon + 1, LAPSE_WEIGHT_MAX, &q->weight)) {
        return usage_error("queue", word, "its weight must be a whole number from 1 to 1000");
    }
    if (colon) {
        *colon = '\0';
    }
    q->name = word;

    return check_queues(word);
}

int weighted_read(struct weighted *q, char **words, int n, bool strict)
{
    q->n = n;
    q->v = calloc((size_t)n + 1, sizeof *q->v);
    if (!q->v) {
        message_print("out of memory");
        return INTERNAL;
    }

    for (int i = 0; i < n; i++) {
        int rc = weighted_read_word(&q->v[i], words[i], strict);
        if (rc) {
            return rc;
        }
        for (int k = 0; k < i; k++) {
            if (strcmp(words[k], words[i]) == 0) {
                return usage_error("queue", words[i], "is named twice");
            }
        }
    }

    return 0;
}

void weighted_free(struct weighted *q)
{
    free(q->v);
    q->v = NULL;
}
