/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_DELIVERY_H
#define LAPSE_DELIVERY_H
#include "listen/lease.h"
#include "listen/pulls.h"
#include "script/calendars.h"

/* Where the jobs that claims bring to a queue go: to its handler, or to who asked for them. */
struct delivery {
    struct context *context;
    struct leases *leases;
    struct calendars *calendars;
    struct share *share;
    const char *queue;
    struct span key;
    void *owner;            /* of the leases */
    lapse_handler *handler; /* NULL: there is none */
    void *handler_arg;
    struct pulls *pulls; /* NULL: nobody asks */
    bool has_priorities; /* such a job came */
    bool said_forwarded; /* that the handler gets nothing, since Redis forwards the jobs */
};

/* Makes leases of what a claim brought, and counts it. ENOMEM: not of all, and Redis holds the
 * others for us all the same. */
int delivery_take(struct delivery *d, const struct claim *c, const struct claim_result *got);

/* Redis moved n jobs itself. */
void delivery_note_forwarded(struct delivery *d, int64_t n);

#endif
