/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_HISTOGRAM_H
#define LAPSE_HISTOGRAM_H
#include <lapse.h>

enum { VIAS = LAPSE_VIA_ASKED + 1 }; /* 0 is none of them */

/* Less than 0, as from two clocks, is 0. */
void histogram_add_us(struct lapse_histogram *h, int64_t us);
/* Adds all times of another one. */
void histogram_add_all(struct lapse_histogram *h, const struct lapse_histogram *other);

#endif
