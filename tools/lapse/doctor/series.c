/* SPDX-License-Identifier: MIT */
/* Series whose calendar no listener knows. They miss moments, and lose none: which of those that
 * passed are made up for is up to the series, once it has moments again. */
#include "doctor/series.h"
#include "doctor/report.h"
#include "cli/message.h"
#include <stdio.h>
#include <string.h>

enum { SHOWN = 3 };

void dry_series_add(struct dry_series *dry, const char *id, const char *calendar)
{
    size_t used = strlen(dry->names);

    if (dry->n < SHOWN) {
        used += (size_t)snprintf(dry->names + used, sizeof dry->names - used, "%s%.36s by ",
                                 dry->n ? ", " : "", printable(id));
        snprintf(dry->names + used, sizeof dry->names - used, "%.36s", printable(calendar));
    }
    dry->n++;
}

void dry_series_report(const struct dry_series *dry, struct doctor *d, const char *queue)
{
    struct finding f = {.check = "series", .queue = queue, .verdict = WARN};
    const char *more = dry->n > SHOWN ? ", ..." : "";
    char fix[200];

    if (dry->n == 0) {
        return;
    }

    f.fix = fix;
    snprintf(fix, sizeof fix,
             "lapse_calendar(), or lapse_cron() for cron, in a listener of %s: they go on within a "
             "minute",
             queue);
    report(d, f, "%lld without a next moment, as no listener knows the calendar: %s%s",
           (long long)dry->n, dry->names, more);
}
