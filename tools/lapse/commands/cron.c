/* SPDX-License-Identifier: MIT */
/* lapse cron. Nothing is asked of Redis. liblapse-cron says when; the clock of the zone, which only
 * people want to see, is libc's. */
#include "cli/arguments.h"
#include "cli/json.h"
#include "cli/message.h"
#include "cli/values.h"
#include <lapse_cron.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SECOND_MS = 1000, DEFAULT_MOMENTS = 5, REASON_BYTES = 128, LOCAL_BYTES = 48 };

struct cron_command {
    const char *zone;
    unsigned n;
    int64_t from_ms; /* -1: now */
};

#ifdef LAPSE_WITH_CRON

/* ---- the zone's clock ---- */
/* The last word of a rule that is right; "": its line has no zone. */
static const char *zone_of(const char *rule)
{
    const char *at = rule + strspn(rule, " \t");

    for (int words = *at == '@' ? 1 : 5; words; words--) {
        at += strcspn(at, " \t");
        at += strspn(at, " \t");
    }
    return at;
}

/* From now on localtime_r() shows this zone. */
static int clock_set(const char *rule)
{
    const char *zone = zone_of(rule);
    size_t len = strcspn(zone, " \t");
    char text[80];

    snprintf(text, sizeof text, ":%.*s", (int)len, zone);
    if (setenv("TZ", len ? text : "UTC0", 1)) {
        message_print("out of memory");
        return INTERNAL;
    }

    tzset();
    return DONE;
}

/* 2026-12-24T18:00:00+01:00 Thu, without the day where that is not asked for */
static const char *clock_text(char out[LOCAL_BYTES], int64_t ms, bool with_day)
{
    time_t s = (time_t)(ms / SECOND_MS);
    struct tm tm;
    char day[8] = "";
    char time[LOCAL_BYTES / 2];

    localtime_r(&s, &tm);
    strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%S", &tm);
    if (with_day) {
        strftime(day, sizeof day, " %a", &tm);
    }

    snprintf(out, LOCAL_BYTES, "%s%c%02d:%02d%s", time, tm.tm_gmtoff < 0 ? '-' : '+',
             (int)(labs(tm.tm_gmtoff) / 3600 % 100), (int)(labs(tm.tm_gmtoff) / 60 % 60), day);
    return out;
}

/* ---- printing ---- */
static void print_moment(const struct globals *g, int64_t ms)
{
    char local[LOCAL_BYTES];
    struct json j;

    if (g->text) {
        puts(clock_text(local, ms, true));
        return;
    }

    json_begin(&j, stdout);
    json_int(&j, "due_ms", ms);
    json_text(&j, "local", clock_text(local, ms, false));
    json_end(&j);
}

static int print_moments(const struct cron_command *c, const struct globals *g, const char *rule)
{
    int64_t ms = lapse_cron_next(rule, c->from_ms);

    if (ms == 0) {
        message_print("this line has no moment after that");
        return ANSWER_NO;
    }

    for (unsigned i = 0; i < c->n && ms > 0; i++) {
        print_moment(g, ms);
        ms = lapse_cron_next(rule, ms);
    }
    return DONE;
}

static int cron_print(struct cron_command *c, const struct globals *g, const char *line)
{
    const char *space = c->zone ? " " : "";
    const char *zone = c->zone ? c->zone : "";
    char reason[REASON_BYTES];
    char *with_zone = NULL;
    int code;

    if (asprintf(&with_zone, "%s%s%s", line, space, zone) < 0) {
        message_print("out of memory");
        return INTERNAL;
    }

    if (lapse_cron_check(with_zone, reason, sizeof reason)) {
        code = usage_error("line", with_zone, reason);
    } else {
        code = clock_set(with_zone);
    }
    if (!code) {
        code = print_moments(c, g, with_zone);
    }

    free(with_zone);
    return code;
}

#else

static int cron_print(struct cron_command *c, const struct globals *g, const char *line)
{
    (void)c;
    (void)g;
    (void)line;
    return usage_errorf("this lapse was built without GLib, and knows no cron lines");
}

#endif

static int cron_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct cron_command c = {NULL, DEFAULT_MOMENTS, -1};
    struct timespec now;
    int code = arguments_read(cmd, g, &c, args);

    if (code) {
        return code;
    }

    if (c.from_ms < 0) {
        clock_gettime(CLOCK_REALTIME, &now);
        c.from_ms = (int64_t)now.tv_sec * SECOND_MS;
    }
    return cron_print(&c, g, args->v[0]);
}

static const struct opt opts[] = {
    {"tz", 0, "ZONE", set_text, offsetof(struct cron_command, zone),
     "the zone, such as Europe/Berlin; default: that of LINE, or else UTC"},
    {"limit", 'n', "N", set_count, offsetof(struct cron_command, n), "print N moments; default: 5"},
    {"from", 0, "TIME", set_moment, offsetof(struct cron_command, from_ms),
     "print the moments after TIME; default: now"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

const struct command cmd_cron = {
    .name = "cron",
    .usage = "LINE [--tz ZONE] [-n N] [--from TIME]",
    .summary = "check a cron line, and print its next moments",
    .min = 1,
    .max = 1,
    .opts = opts,
    .text =
        "Prints the next moments of LINE, a JSON object each: due_ms, and local, the clock of\n"
        "its zone. With --format text: that, and the day of the week. Redis is not needed.\n"
        "\n"
        "LINE is one argument: minute, hour, day of month, month and day of week as in\n"
        "crontab(5), or @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually; and\n"
        "a zone. lapse_cron(3) says what happens when a clock is put forward or back.\n"
        "\n"
        "examples:\n"
        "  lapse cron '30 9 * * mon-fri' --tz Europe/Berlin\n"
        "  lapse cron '0 2 * * * America/New_York' -n 3 --from 2026-03-07T00:00-05:00\n",
    .exits = "  1    the line is right, but there is no such moment\n",
    .run = cron_run,
};
