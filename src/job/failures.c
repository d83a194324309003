/* SPDX-License-Identifier: MIT */
#include "job/failures.h"

/* A number and the space after it. */
static bool take_number(struct span *s, int64_t max, int64_t *out)
{
    struct span digits;

    return span_cut(s, ' ', &digits) && span_decimal(digits, max, out);
}

bool failures_take(struct span *text, struct failure *out)
{
    struct span rest = *text;
    int64_t number;
    int64_t len;

    if (!take_number(&rest, EXACT_MAX, &number) || !take_number(&rest, UINT32_MAX, &number)) {
        return false;
    }

    struct span numbers = {text->at, (size_t)(rest.at - text->at) - 1};
    if (!take_number(&rest, EXACT_MAX, &len) || len > (int64_t)rest.len) {
        return false;
    }

    out->numbers = numbers;
    out->reason = (struct span){rest.at, (size_t)len};
    *text = (struct span){rest.at + len, rest.len - (size_t)len};
    return true;
}
