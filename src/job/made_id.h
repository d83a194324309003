/* SPDX-License-Identifier: MIT */
/* The ids that the library makes up, where a schedule names none: a time, then what chance says. */
#ifndef LAPSE_MADE_ID_H
#define LAPSE_MADE_ID_H
#include "base/span.h"

enum { MADE_ID_DIGITS = 11 /* of 5 bits: a time in us for the next thousand years */ };

void made_id_put(char out[2 * MADE_ID_DIGITS + 1], int64_t us, uint64_t bits);

/* The time that it tells. false: it is none, or its time is before 2020. */
bool made_id_us(struct span id, int64_t *us);

#endif
