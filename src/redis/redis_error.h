/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_REFUSAL_H
#define LAPSE_REFUSAL_H
#include "job/keys.h"
#include "base/log.h"

bool refusal_is(struct span error, const char *word); /* begins with it */
/* The code of an error that a script answered, EREFUSED or EBROKEN; logs it. */
int refusal_code(struct log *log, const char *script, struct span error);

#endif
