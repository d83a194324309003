/* SPDX-License-Identifier: MIT */
/* When Redis notices that a moment has come: its clock, and how soon it expires keys by itself. */
#include "doctor/ask.h"
#include "doctor/checks.h"
#include "doctor/report.h"
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    CLOCK_ROUNDS = 10,
    CLOCK_OFF_US = 500000,
    MANY_FOREIGN_KEYS = 10000,
    HIGH_HZ = 100,
    KEYS_A_CYCLE = 20, /* that Redis looks at, hz times a second */
    KEYS_AN_EFFORT = 5 /* and as many more for each step of active-expire-effort */
};

static int64_t wall_clock_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* How far Redis's clock is ahead of this machine's: by the shortest of several round trips, which
 * says it best. False: there was no answer. */
bool measure_clock(struct doctor *d, int64_t *ahead_us)
{
    int64_t shortest_us = INT64_MAX;

    for (int i = 0; i < CLOCK_ROUNDS; i++) {
        int64_t sent_us = wall_clock_us();
        redisReply *r = ASK(d, "TIME");
        int64_t trip_us = wall_clock_us() - sent_us;
        bool ok = r && r->type == REDIS_REPLY_ARRAY && r->elements == 2 && is_text(r->element[0]) &&
                  is_text(r->element[1]);

        if (ok && trip_us < shortest_us) {
            int64_t redis_us = strtoll(r->element[0]->str, NULL, 10) * 1000000 +
                               strtoll(r->element[1]->str, NULL, 10);
            shortest_us = trip_us;
            *ahead_us = redis_us - (sent_us + trip_us / 2);
        }

        freeReplyObject(r);
    }

    return shortest_us < INT64_MAX;
}

void check_clock(struct doctor *d)
{
    struct finding f = {.check = "clock", .verdict = WARN};
    d->has_clock = measure_clock(d, &d->ahead_us);
    double ahead_s = (double)d->ahead_us / 1e6;

    if (d->code) {
        return;
    }

    f.fix = d->has_clock ? "timedatectl set-ntp true, on both machines" : NULL;
    if (!d->has_clock) {
        report(d, f, "unknown: this user may not run TIME, which every script needs");
    } else if (d->ahead_us > CLOCK_OFF_US) {
        report(d, f,
               "Redis's clock is %.3f s ahead of this machine's: lapse goes by Redis's clock, so "
               "moments that are computed here (--at) come early",
               ahead_s);
    } else if (d->ahead_us < -CLOCK_OFF_US) {
        report(d, f,
               "Redis's clock is %.3f s behind this machine's: lapse goes by Redis's clock, so "
               "moments that are computed here (--at) come late",
               -ahead_s);
    } else {
        f.verdict = FINE;
        f.fix = NULL;
        report(d, f, "%.1f ms from this machine's", ahead_s * 1e3);
    }
}

/* Of all databases. */
static int64_t expiring_keys(const struct doctor *d)
{
    static const char field[] = ",expires=";
    int64_t n = 0;

    for (const char *at = strstr(d->info, field); at; at = strstr(at, field)) {
        at += strlen(field);
        n += strtoll(at, NULL, 10);
    }

    return n;
}

/* How late Redis may be to expire a key that nobody reads. */
static double expiry_delay_s(struct doctor *d, int64_t keys, int64_t hz)
{
    char text[VALUE_BYTES];
    int64_t effort = 1;

    if (config_text(d, "active-expire-effort", text)) {
        effort = strtoll(text, NULL, 10);
    }

    int64_t keys_per_s = hz * (KEYS_A_CYCLE + KEYS_AN_EFFORT * (effort - 1));

    return keys_per_s > 0 ? (double)keys / (double)keys_per_s : 0;
}

void check_expiry(struct doctor *d)
{
    struct finding f = {.check = "expiry", .verdict = WARN};
    const struct lapse_options *o = &d->g->opts;

    if (!info_has(d, "hz")) {
        report(d, f, "unknown: this user may not run INFO");
        return;
    }

    int64_t keys = expiring_keys(d);
    int64_t foreign = keys > d->n_triggers ? keys - d->n_triggers : 0;
    int64_t hz = info_int(d, "hz");
    double delay_s = expiry_delay_s(d, keys, hz);

    if ((o->flags & LAPSE_NO_ALARM) && delay_s > 1) {
        f.fix = "do not use no_alarm";
        report(d, f,
               "%" PRId64 " expiring keys, hz %" PRId64 ": with no_alarm, expiry events could be "
               "up to %.1f s late, and jobs wait for them or for the sweep",
               keys, hz, delay_s);
    } else if (foreign > MANY_FOREIGN_KEYS && o->notify == LAPSE_KEYEVENT) {
        f.fix = "run all listeners with -o notify=keyspace; lapse doctor -o notify=keyspace prints "
                "the flags that Redis needs";
        report(d, f,
               "%" PRId64 " expiring keys are not lapse's, and every listener receives an event "
               "for each",
               foreign);
    } else if (hz > HIGH_HZ) {
        f.fix = "redis-cli CONFIG SET hz 10";
        report(d, f, "hz %" PRId64 " costs CPU, and lapse does not need it", hz);
    } else {
        f.verdict = FINE;
        report(d, f,
               "%" PRId64 " expiring keys (%" PRId64 " not lapse's), hz %" PRId64
               ": without listeners, expiry events could be up to %.1f s late",
               keys, foreign, hz, delay_s);
    }
}
