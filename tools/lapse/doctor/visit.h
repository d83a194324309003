/* SPDX-License-Identifier: MIT */
#ifndef DOCTOR_VISIT_H
#define DOCTOR_VISIT_H
#include "doctor/doctor.h"

/* A look at another server than that of the URL: meanwhile all that d knows of that one is put
 * aside. */
struct visit {
    struct doctor before;
};

/* d->code: INFO could not be read. */
void visit_begin(struct visit *v, struct doctor *d, const struct redis_sync *redis, const char *at);
/* The exit code that d had at the end; its verdicts stay. */
int visit_end(const struct visit *v, struct doctor *d, struct redis_sync *redis);
#endif
