/* SPDX-License-Identifier: MIT */
/* All that is known of GLib's GTimeZone (2.74):
 *
 * - It opens whatever file it gets the name of, "../../../etc/passwd" too, and complains on stderr
 *   about one that is no zone, such as "leapseconds". So a name is checked first, and its file.
 * - Where there is no such file it takes the name for a rule: "05" is five hours east, and "UTC+2"
 *   two hours west. So there must be a file.
 * - It tells an offset, and not when it changes. Shifts are found by halving; they are a week apart
 *   in all zones, so a day has one at most.
 * - After the table of a zone's file, which mostly ends in 2037, it goes by the rule behind it. It
 *   does not understand the one rule whose winter time is "daylight saving" with an offset of 0,
 *   Ireland's, and is two hours wrong. There a year of the table that has the same days stands in.
 * - From 2999 on it knows no daylight saving.
 * - It ends the process where memory is missing.
 */
#include "cron/zone.h"
#include "cron/calendar.h"
#include <fcntl.h>
#include <glib.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    NAME_BYTES = 65,
    FIRST_LIKE_YEAR = 2010, /* 28 years have each kind of year; those until 2037 are in the table */
    LAST_LIKE_YEAR = 2037,
};

/* The farthest that a clock can be put back, and what came before. */
#define LOOK_BACK_S (2 * ZONE_FARTHEST_S)

/* ---- names ---- */
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool zone_name_ok(struct span name)
{
    if (name.len == 0 || name.len >= NAME_BYTES || !is_letter(*name.at)) {
        return false;
    }

    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        if (!is_letter(c) && !(c >= '0' && c <= '9') && !(c && strchr("_+-/", c))) {
            return false;
        }
    }
    return true;
}

/* Is there a zone's file where GLib looks for it? */
static bool zone_has_file(const char *name)
{
    const char *folder = getenv("TZDIR");
    char path[PATH_MAX];
    char magic[4] = "";
    int len;
    int fd;

    len = snprintf(path, sizeof path, "%s/%s", folder ? folder : "/usr/share/zoneinfo", name);
    if (len < 0 || (size_t)len >= sizeof path) {
        return false;
    }

    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }

    ssize_t n = read(fd, magic, sizeof magic);
    close(fd);

    return n == sizeof magic && memcmp(magic, "TZif", sizeof magic) == 0;
}

enum zone_result zone_open(struct zone *z, struct span name)
{
    struct zone zone = {NULL, span_is(name, "Europe/Dublin") || span_is(name, "Eire")};
    char text[NAME_BYTES];

    if (name.len == 0 || span_is(name, "UTC")) {
        *z = zone;
        return ZONE_OK;
    }
    if (!zone_name_ok(name)) {
        return ZONE_NO_NAME;
    }

    memcpy(text, name.at, name.len);
    text[name.len] = '\0';
    if (zone_has_file(text)) {
        zone.glib = g_time_zone_new_identifier(text);
    }
    if (!zone.glib) {
        return ZONE_UNKNOWN;
    }

    *z = zone;
    return ZONE_OK;
}

void zone_close(struct zone *z)
{
    if (z->glib) {
        g_time_zone_unref(z->glib);
    }
}

/* ---- offsets ---- */
static int64_t year_begins(int64_t year)
{
    return calendar_day((struct date){year, 1, 1});
}

/* The same second of a year of the table that has the same days. */
static int64_t zone_like(int64_t at_s)
{
    int64_t year = calendar_date(calendar_floor(at_s, DAY_S)).year;
    int64_t first = year_begins(year);

    for (int64_t like = LAST_LIKE_YEAR; year > LAST_LIKE_YEAR && like >= FIRST_LIKE_YEAR; like--) {
        int64_t like_first = year_begins(like);
        if (calendar_weekday(like_first) == calendar_weekday(first) &&
            year_begins(like + 1) - like_first == year_begins(year + 1) - first) {
            return at_s - (first - like_first) * DAY_S;
        }
    }
    return at_s;
}

static int64_t zone_offset(const struct zone *z, int64_t at_s)
{
    int64_t like_s = z->is_ireland ? zone_like(at_s) : at_s;

    if (!z->glib) {
        return 0;
    }
    return g_time_zone_get_offset(
        z->glib, g_time_zone_find_interval(z->glib, G_TIME_TYPE_UNIVERSAL, like_s));
}

struct stretch zone_stretch(const struct zone *z, int64_t from_s)
{
    struct stretch s = {zone_offset(z, from_s), from_s + DAY_S};
    int64_t same_s = from_s;

    if (zone_offset(z, s.until_s) == s.offset_s) {
        return s;
    }

    while (s.until_s - same_s > 1) {
        int64_t middle_s = same_s + (s.until_s - same_s) / 2;
        if (zone_offset(z, middle_s) == s.offset_s) {
            same_s = middle_s;
        } else {
            s.until_s = middle_s;
        }
    }
    return s;
}

int64_t zone_highest(const struct zone *z, int64_t at_s)
{
    int64_t highest = at_s - ZONE_FARTHEST_S;

    for (int64_t t = at_s - LOOK_BACK_S; t <= at_s;) {
        struct stretch s = zone_stretch(z, t);
        int64_t last_s = s.until_s > at_s ? at_s : s.until_s - 1;

        if (last_s + s.offset_s > highest) {
            highest = last_s + s.offset_s;
        }
        t = s.until_s;
    }
    return highest;
}

int64_t zone_reaches(const struct zone *z, int64_t reading)
{
    int64_t t = reading - ZONE_FARTHEST_S;

    while (t < reading + ZONE_FARTHEST_S) {
        struct stretch s = zone_stretch(z, t);

        if (s.until_s - 1 + s.offset_s >= reading) {
            int64_t at_s = reading - s.offset_s;
            return at_s > t ? at_s : t;
        }
        t = s.until_s;
    }
    return t;
}
