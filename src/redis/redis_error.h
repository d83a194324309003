/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_REFUSAL_H
#define LAPSE_REFUSAL_H
#include "job/keys.h"
#include "base/context.h"

bool refusal_is(struct span error, const char *word); /* begins with it */
/* The code of an error that a script answered: EREFUSED, EDENIED or EBROKEN. It is logged, and
 * reported as health. */
int refusal_code(struct context *context, const char *script, struct span error);

#endif
