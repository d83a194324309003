/* SPDX-License-Identifier: MIT */
#ifndef WEIGHTED_H
#define WEIGHTED_H
#include <stdbool.h>

struct weighted_queue {
    char *name;
    unsigned weight; /* 0: none was given */
};

/* The queues of a command line: names, which may have a weight behind a colon. */
struct weighted {
    struct weighted_queue *v;
    int n;
};

/* 0, or an exit code after it has printed why. The words are cut in place. strict: there may be no
 * weights. */
int weighted_read(struct weighted *q, char **words, int n, bool strict);
void weighted_free(struct weighted *q);

#endif
