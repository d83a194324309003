/* SPDX-License-Identifier: MIT */
#include "job/made_id.h"
#include <string.h>

static const char digits[] = "0123456789abcdefghijklmnopqrstuv"; /* sorted by their bytes */
static const int64_t FIRST_US = 1577836800000000;                /* 2020 begins */

static char *put_digits(char *out, uint64_t bits)
{
    for (int i = MADE_ID_DIGITS; i-- > 0; bits >>= 5) {
        out[i] = digits[bits & 31];
    }
    return out + MADE_ID_DIGITS;
}

void made_id_put(char out[2 * MADE_ID_DIGITS + 1], int64_t us, uint64_t bits)
{
    out = put_digits(out, (uint64_t)us);
    out = put_digits(out, bits);
    *out = '\0';
}

bool made_id_us(struct span id, int64_t *us)
{
    int64_t sum = 0;

    if (id.len != 2 * (size_t)MADE_ID_DIGITS) {
        return false;
    }

    for (size_t i = 0; i < id.len; i++) {
        const char *digit = memchr(digits, id.at[i], sizeof digits - 1);
        if (!digit) {
            return false;
        }
        if (i < MADE_ID_DIGITS) {
            sum = sum * 32 + (digit - digits);
        }
    }

    *us = sum;
    return sum >= FIRST_US;
}
