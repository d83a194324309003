/* SPDX-License-Identifier: MIT */
#include "base/span.h"
#include <string.h>

struct span span_of(const char *text)
{
    return (struct span){text, strlen(text)};
}

bool span_eq(struct span a, struct span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

bool span_is(struct span s, const char *text)
{
    return span_eq(s, span_of(text));
}

bool span_starts(struct span s, const char *text)
{
    size_t len = strlen(text);
    return s.len >= len && memcmp(s.at, text, len) == 0;
}

bool span_skip(struct span *s, const char *text)
{
    if (!span_starts(*s, text)) {
        return false;
    }

    size_t len = strlen(text);
    *s = (struct span){s->at + len, s->len - len};
    return true;
}

bool span_cut(struct span *s, char mark, struct span *before)
{
    const char *at = memchr(s->at, mark, s->len);

    if (!at) {
        return false;
    }

    *before = (struct span){s->at, (size_t)(at - s->at)};
    *s = (struct span){at + 1, s->len - before->len - 1};
    return true;
}

bool span_decimal(struct span s, int64_t max, int64_t *out)
{
    int64_t n = 0;

    for (size_t i = 0; i < s.len; i++) {
        int digit = s.at[i] - '0';
        if (digit < 0 || digit > 9 || n > max / 10 || n * 10 > max - digit) {
            return false;
        }
        n = n * 10 + digit;
    }

    if (s.len == 0) {
        return false;
    }

    *out = n;
    return true;
}

uint32_t span_hash(struct span s)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < s.len; i++) {
        h = (h ^ (unsigned char)s.at[i]) * 16777619u;
    }
    return h;
}
