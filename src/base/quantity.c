/* SPDX-License-Identifier: MIT */
#include "base/quantity.h"
#include "base/span.h"
#include <string.h>

struct unit {
    const char *name; /* NULL ends the table, which has the largest first */
    int64_t scale;
};

static const struct unit durations[] = {
    {"d", (int64_t)24 * 3600 * 1000},
    {"h", (int64_t)3600 * 1000},
    {"m", (int64_t)60 * 1000},
    {"s", 1000},
    {"ms", 1},
    {NULL, 0},
};

static const struct unit sizes[] = {
    {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}, {NULL, 0},
};

/* Cuts off what consists of digits, or of anything else. */
static struct span cut_run(const char **text, bool digits)
{
    static const char ten[] = "0123456789";
    size_t len = digits ? strspn(*text, ten) : strcspn(*text, ten);
    struct span run = {*text, len};

    *text += len;
    return run;
}

static bool quantity(const char *text, const struct unit *unit, int64_t *out)
{
    int64_t sum = 0;

    if (!*text) {
        return false;
    }

    while (*text) {
        struct span number = cut_run(&text, true);
        struct span name = cut_run(&text, false);
        int64_t n;

        while (unit->name && !span_is(name, unit->name)) {
            unit++;
        }
        if (!unit->name || !span_decimal(number, (INT64_MAX - sum) / unit->scale, &n)) {
            return false;
        }
        sum += n * unit->scale;
        unit++;
    }

    *out = sum;
    return true;
}

bool quantity_ms(const char *text, int64_t *out)
{
    return quantity(text, durations, out);
}

bool quantity_bytes(const char *text, int64_t *out)
{
    return quantity(text, sizes, out);
}
