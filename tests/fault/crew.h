/* SPDX-License-Identifier: MIT */
/* The processes of workload.h, and the lines they write. */
#ifndef CREW_H
#define CREW_H
#include "workload.h"
#include <stdatomic.h>

struct crew_shared { /* outlives who is killed */
    atomic_long n_asked, n_answered, n_starts;
};
struct crew { /* what a process is born with */
    const struct work_opts *o;
    struct crew_shared *shared;
    char proc[16], path[300]; /* its name; its file, which it appends to */
    unsigned seed;
    long jobs, per_s;
    int number;
};
_Noreturn void crew_listen(const struct crew *c);
_Noreturn void crew_produce(const struct crew *c);

int history_open(const char *path);
int64_t history_ns(void); /* monotonic */
/* {"proc":PROC,"mono_ns":now, and then what format says. One write: whoever is killed leaves whole
 * lines. */
__attribute__((format(printf, 3, 4))) void history_line(int fd, const char *proc,
                                                        const char *format, ...);
uint64_t body_digest(const void *body, size_t len);
#endif
