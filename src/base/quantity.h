/* SPDX-License-Identifier: MIT */
/* Quantities as people write them: numbers with a unit, "1h30m" or "64MiB". */
#ifndef LAPSE_QUANTITY_H
#define LAPSE_QUANTITY_H
#include <stdbool.h>
#include <stdint.h>

/* Both take the largest unit first and each unit once, so that a slip such as 5s1h is refused.
 * false: it is no such quantity, or over INT64_MAX, and *out has not changed. */
bool quantity_ms(const char *text, int64_t *out);    /* d, h, m, s, ms */
bool quantity_bytes(const char *text, int64_t *out); /* GiB, MiB, KiB, B */

#endif
