/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_REFUSAL_H
#define LAPSE_REFUSAL_H
#include "base/context.h"
#include "base/span.h"

bool refusal_is(struct span error, const char *word); /* begins with it */
/* The code of an error that a script answered: EREFUSED, EDENIED or EBROKEN. It is logged, and
 * reported as health. */
int refusal_code(struct context *context, const char *script, struct span error);

#endif
