/* SPDX-License-Identifier: MIT */
/* Why the last runs of a job failed, as Redis keeps it; src/lua/README.md draws it. */
#ifndef LAPSE_FAILURES_H
#define LAPSE_FAILURES_H
#include "base/span.h"

struct failure {
    struct span numbers; /* AT_MS TRY, as they stand in the text */
    struct span reason;  /* likewise */
};

/* Takes the first off the text: the oldest. false: there is none, or it cannot be read. */
bool failures_take(struct span *text, struct failure *out);

#endif
