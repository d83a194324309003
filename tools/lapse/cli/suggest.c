/* SPDX-License-Identifier: MIT */
#include "cli/suggest.h"
#include <string.h>

enum { NAME_BYTES = 32 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Levenshtein's, with a swap of neighbours counted once. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t rows[3][NAME_BYTES + 1] = {{0}};
    size_t *older = rows[0];
    size_t *last = rows[1];
    size_t *row = rows[2];
    size_t a_len = strlen(a);
    size_t b_len = strlen(b);

    if (a_len > NAME_BYTES || b_len > NAME_BYTES) {
        return NAME_BYTES;
    }

    for (size_t j = 0; j <= b_len; j++) {
        last[j] = j;
    }

    for (size_t i = 1; i <= a_len; i++) {
        row[0] = i;

        for (size_t j = 1; j <= b_len; j++) {
            row[j] = last[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = least(row[j], least(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = least(row[j], older[j - 2] + 1);
            }
        }

        size_t *spare = older;
        older = last;
        last = row;
        row = spare;
    }

    return last[b_len];
}

/* Only what a slip of the fingers explains: one letter in two, three at most. */
struct suggestion suggestion_for(const char *given)
{
    return (struct suggestion){.given = given, .distance = least(strlen(given) / 2 + 1, 4)};
}

void suggestion_consider(struct suggestion *s, const char *name)
{
    size_t len = strlen(s->given);
    size_t distance;

    if (len > 1 && strncmp(s->given, name, len) == 0) {
        distance = name[len] != '\0'; /* an abbreviation is as near as one slip */
    } else {
        distance = edit_distance(s->given, name);
    }

    if (distance < s->distance) {
        s->name = name;
        s->distance = distance;
    }
}
