/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_ZONE_H
#define LAPSE_ZONE_H
#include "base/span.h"

struct _GTimeZone;

struct zone {
    struct _GTimeZone *glib; /* owned; NULL: UTC */
    bool is_ireland;
};

/* The limits of what a zone is asked for, in seconds: no clock is further from UTC, and GLib knows
 * no daylight saving after about 2999. */
#define ZONE_FARTHEST_S (26 * INT64_C(3600))
#define ZONE_END_S INT64_C(29348006400) /* 2900-01-01 */

enum zone_result { ZONE_OK, ZONE_NO_NAME, ZONE_UNKNOWN };

/* Opens the zone of this name; with an empty one UTC. Only after ZONE_OK it is to be closed. */
enum zone_result zone_open(struct zone *z, struct span name);
void zone_close(struct zone *z);

/* What its clock showed last before it was put back, or shows now: its highest reading until this
 * moment. Readings are seconds, counted as if the clock were UTC's. */
int64_t zone_highest(const struct zone *z, int64_t at_s);
/* The first moment at which its clock shows this or more. */
int64_t zone_reaches(const struct zone *z, int64_t reading);

/* Time in which a clock goes evenly. */
struct stretch {
    int64_t offset_s;
    int64_t until_s; /* the first second that is no longer of it */
};
/* From this moment on until the next shift, or less: at most a day. */
struct stretch zone_stretch(const struct zone *z, int64_t from_s);

#endif
