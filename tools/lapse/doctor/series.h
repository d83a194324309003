/* SPDX-License-Identifier: MIT */
#ifndef DOCTOR_SERIES_H
#define DOCTOR_SERIES_H
#include "doctor/doctor.h"

/* Series of a queue that have no moment left, and look each minute for a listener that knows their
 * calendar. */
struct dry_series {
    int64_t n;
    char names[300]; /* of the first few, with their calendars */
};

void dry_series_add(struct dry_series *dry, const char *id, const char *calendar);
/* Says nothing where there are none. */
void dry_series_report(const struct dry_series *dry, struct doctor *d, const char *queue);
#endif
