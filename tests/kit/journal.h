/* SPDX-License-Identifier: MIT */
/* The recorder on disk: what a process asks of lapse and what it hears, a line of JSON each, as
 * tests/history/README.md has it. */
#ifndef JOURNAL_H
#define JOURNAL_H
#include "recorder.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct journal_totals { /* of all processes, in shared memory */
    atomic_long asked, answered, started;
};

struct journal {
    char proc[16], path[300]; /* the name of the process; its file, which it appends to */
    struct journal_totals *totals;
    int fd;
    long n_calls, n_open; /* calls made; of them those without an answer */
};

struct journal_call {
    struct journal *journal;
    long number;
    char op[12], id[64];
};

void journal_open(struct journal *j); /* proc, path and totals are set */
int64_t journal_ns(void);             /* monotonic */
/* {"proc":PROC,"mono_ns":now, and then what format says. It is one write: a process that is killed
 * leaves no half lines. */
__attribute__((format(printf, 2, 3))) void journal_line(const struct journal *j, const char *format,
                                                        ...);

/* Writes that this is asked of a job, and what format says of it; begin that with a comma. */
__attribute__((format(printf, 4, 5))) struct journal_call *journal_asked(struct journal *j,
                                                                         const char *op,
                                                                         const char *id,
                                                                         const char *format, ...);
/* Writes the answer, with more (begin that with a comma); frees the call. */
void journal_answered(struct journal_call *call, int err, const char *more);

uint64_t journal_digest(const void *body, size_t len);
struct recorder journal_recorder(struct journal *j);
#endif
