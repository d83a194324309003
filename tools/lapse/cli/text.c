/* SPDX-License-Identifier: MIT */
/* UTF-8 that others wrote. It is shown as it is, in any language, but for what a terminal would
 * obey; bytes that are no character become U+FFFD, so that what is printed is always text. */
#include "cli/text.h"
#include <stdio.h>
#include <string.h>

size_t text_char(const unsigned char *s, size_t len)
{
    size_t n = *s < 0x80                  ? 1
               : *s >= 0xc2 && *s <= 0xdf ? 2
               : *s >= 0xe0 && *s <= 0xef ? 3
               : *s >= 0xf0 && *s <= 0xf4 ? 4
                                          : 0;

    if (!n || n > len) {
        return 0;
    }

    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
    }

    if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] > 0x9f) || (*s == 0xf0 && s[1] < 0x90) ||
        (*s == 0xf4 && s[1] > 0x8f)) {
        return 0;
    }

    return n;
}

uint32_t text_code(const unsigned char *s, size_t n)
{
    static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = *s & first[n];

    for (size_t i = 1; i < n; i++) {
        code = code << 6 | (s[i] & 0x3f);
    }
    return code;
}

/* C0, DEL and C1 steer a terminal; the others turn the direction of text around, or end a line. */
int text_is_obeyed(uint32_t code)
{
    static const struct {
        uint32_t from, to;
    } ranges[] = {
        {0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
        {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
    };

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (code >= ranges[i].from && code <= ranges[i].to) {
            return 1;
        }
    }

    return 0;
}

int text_is_utf8(const void *bytes, size_t len)
{
    const unsigned char *s = bytes;

    while (len) {
        size_t n = text_char(s, len);
        if (!n) {
            return 0;
        }
        s += n;
        len -= n;
    }

    return 1;
}

/* What is put in the place of what cannot be shown. */
static int substitute(char out[8], const unsigned char *s, size_t n)
{
    uint32_t code = n ? text_code(s, n) : 0;
    return !n ? snprintf(out, 8, "\xef\xbf\xbd")
              : snprintf(out, 8, code < 0x80 ? "\\x%02x" : "\\u%04x", code);
}

static const char *copy(char *out, size_t size, const unsigned char *s, size_t len, int escape)
{
    static const char more[] = "...";
    size_t used = 0;
    size_t room = size - sizeof more;

    while (len) {
        size_t n = text_char(s, len);
        size_t step = n ? n : 1;
        char other[8];
        int replaced = !n || (escape && text_is_obeyed(text_code(s, n)));
        size_t wide = replaced ? (size_t)substitute(other, s, n) : n;
        if (used + wide > room) {
            memcpy(out + used, more, sizeof more);
            return out;
        }
        memcpy(out + used, replaced ? other : (const char *)s, wide);
        used += wide;
        s += step;
        len -= step;
    }

    out[used] = '\0';

    return out;
}

const char *text_shown(char *out, size_t size, const void *bytes, size_t len)
{
    return copy(out, size, bytes, len, 1);
}

const char *text_mended(char *out, size_t size, const char *text)
{
    return copy(out, size, (const unsigned char *)text, strlen(text), 0);
}
