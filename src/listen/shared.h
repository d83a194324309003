/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SHARED_H
#define LAPSE_SHARED_H
#include "listen/claim.h"
#include "listen/lease.h"
#include "listen/site.h"
#include "listen/slots.h"
#include "listen/sweep.h"
#include "script/calendars.h"

/* What the queues of one listener share. */
struct shared {
    struct context *context;
    struct script *script;
    struct calendars *calendars;
    char name[PEER_NAME_MAX]; /* the listener's, as Redis knows it */
    struct slots slots;
    struct claims claims;
    struct leases leases;
    struct watches watches;
    struct sites sites;
    struct sweeps sweeps;
    bool closing;
    bool quiet;          /* no more jobs are claimed, as we were told */
    struct list ending;  /* stopped queues of which something has ended: perhaps all has */
    int64_t turn_due_us; /* by clock_us(): since when something waits for the turn; 0: nothing */
};

/* A queue of the backlog may be served, or a stopped one may be freed: when the turn ends. */
static inline void shared_want_turn(struct shared *sh)
{
    if (!sh->turn_due_us) {
        sh->turn_due_us = clock_us();
    }
}

#endif
