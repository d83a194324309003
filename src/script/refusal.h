/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_REFUSAL_H
#define LAPSE_REFUSAL_H
#include "base/context.h"
#include "base/span.h"

/* The code for an error that Redis answered to a script: EREFUSED, EDENIED or EBROKEN. The error is
 * logged, and reported as health. */
int refusal_code(struct context *context, const char *script, struct span error);
/* The same of a script that no user has asked for: it is a warning, and nothing else. */
int refusal_unasked_code(struct context *context, const char *script, struct span error);

#endif
