/* SPDX-License-Identifier: MIT */
/* A job in any state, put there by a process that is gone. */
#ifndef STATES_H
#define STATES_H
#include "ask.h"

enum { FLOW_LEASE_MS = 250 }; /* of a job whose lease is over */
enum flow_state {
    FLOW_WAITS,      /* due in an hour */
    FLOW_RUNS,       /* its lease has a minute left, and its holder is gone */
    FLOW_DEAD,       /* for the reason "broken" */
    FLOW_ENDED,      /* its lease is over, and no sweep has been by */
    FLOW_ENDED_LAST, /* the same, and its tries are used up */
    FLOW_STATES
};
extern const char *const flow_state_names[FLOW_STATES];

/* Makes a job with the body "old" and 3 tries (FLOW_ENDED_LAST: 1). out: as lapse_get() shows it
 * then; may be NULL. */
void flow_put(struct flow *f, const char *queue, const char *id, enum flow_state state,
              struct flow_job *out);
bool flow_same(const struct flow_job *a, const struct flow_job *b); /* in all but created and via */
#endif
