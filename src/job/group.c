/* SPDX-License-Identifier: MIT */
#include "job/group.h"
#include <inttypes.h>
#include <stdio.h>

static const int64_t TEN_YEARS_MS = 315576000000;

static bool limit_ok(int64_t ms)
{
    return ms >= 0 && ms <= TEN_YEARS_MS;
}

bool group_ok(const struct lapse_gather *g)
{
    bool has_time = g->quiet_ms > 0 || g->age_ms > 0;

    return has_time && limit_ok(g->quiet_ms) && limit_ok(g->age_ms) && g->most > 0 &&
           g->most <= GROUP_MOST_MAX;
}

size_t group_put(char out[GROUP_TEXT_MAX], const struct lapse_gather *g)
{
    int len =
        snprintf(out, GROUP_TEXT_MAX, "%" PRId64 " %u %" PRId64, g->quiet_ms, g->most, g->age_ms);

    return (size_t)len;
}

bool group_read(struct span text, struct lapse_gather *out)
{
    struct lapse_gather found = lapse_gather_init();
    struct span quiet;
    struct span most;
    int64_t n;

    if (!span_cut(&text, ' ', &quiet) || !span_cut(&text, ' ', &most) ||
        !span_decimal(quiet, EXACT_MAX, &found.quiet_ms) || !span_decimal(most, UINT32_MAX, &n) ||
        !span_decimal(text, EXACT_MAX, &found.age_ms)) {
        return false;
    }

    found.most = (unsigned)n;
    *out = found;
    return group_ok(out);
}

/* Each part stands behind its length, 7 bits a byte, the low ones first. */
bool group_take_part(struct span *body, struct span *part)
{
    struct span rest = *body;
    size_t len = 0;

    for (unsigned shift = 0; rest.len > 0 && shift < 28; shift += 7) {
        unsigned char byte = (unsigned char)*rest.at;

        rest = (struct span){rest.at + 1, rest.len - 1};
        len |= (size_t)(byte & 127) << shift;
        if (byte < 128) {
            if (len > rest.len) {
                return false;
            }
            *part = (struct span){rest.at, len};
            *body = (struct span){rest.at + len, rest.len - len};
            return true;
        }
    }
    return false;
}
