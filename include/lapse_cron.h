/* lapse_cron.h - when the next moment of a cron line is, in any zone; and series by cron lines.
 *
 * A library of its own, as it takes zones from GLib. All but lapse_cron() and lapse_sync_cron()
 * needs no handle and no Redis, and may be called from every thread. lapse_cron(3) has the whole
 * rule.
 *
 *   RULE       "30 9 * * mon-fri Europe/Berlin": minute, hour, day of month, month, day of week,
 *              and an IANA zone; without one it is UTC. Or @hourly, @daily, @midnight, @weekly,
 *              @monthly, @yearly or @annually, and a zone.
 *   FIELDS     *, numbers, names (jan to dec, sun to sat), ranges, lists, and steps behind * or a
 *              range. Sunday is 0 or 7. Where both the day of month and the day of week do not
 *              begin with *, a day of either is one, as in cron.
 *   SHIFTS     A zone's clock is put forward or back. An hour that begins with * goes by the time
 *              that passes: a minute that does not exist is left out, one that comes twice is two
 *              moments. With any other hour a day loses and repeats nothing: minutes that do not
 *              exist are one moment, that of the shift, and one that comes twice is the first.
 */
#ifndef LAPSE_CRON_H
#define LAPSE_CRON_H
#include <lapse_sync.h>
#ifdef __cplusplus
extern "C" {
#endif

/* The first moment of the rule after this one, both in milliseconds of Unix time. 0: there is none
 * before the year 2900. -1: the rule is wrong. What is before 1970 counts as its beginning. */
LAPSE_API int64_t lapse_cron_next(const char *rule, int64_t after_ms);

/* 0, or LAPSE_EINVAL where the rule is wrong: reason then gets why, and at which column, such as
 * "column 4: hour must be 0 to 23", cut to size bytes with its NUL; 128 are enough. NULL with a
 * size of 0 is fine. A rule that is right may have no moment, such as "0 0 31 2 *". */
LAPSE_API int lapse_cron_check(const char *rule, char *reason, size_t size);

/* lapse_cron_next(), as a calendar. */
LAPSE_API int64_t lapse_cron_calendar(const char *rule, int64_t after_ms, void *unused);

/* Makes cron lines known to a handle, as the calendar "cron": a series may have one as its rule,
 * and a listener that knows it keeps such series going. Errors as those of lapse_calendar(). */
static inline int lapse_cron(struct lapse *l)
{
    return lapse_calendar(l, "cron", lapse_cron_calendar, NULL);
}

/* The same for a handle of lapse_sync.h. Errors as those of lapse_sync_calendar(). */
static inline int lapse_sync_cron(struct lapse_sync *s)
{
    return lapse_sync_calendar(s, "cron", lapse_cron_calendar, NULL);
}

#ifdef __cplusplus
}
#endif
#endif
