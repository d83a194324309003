/* SPDX-License-Identifier: MIT */
/* UTF-8 that others wrote. It is shown as it is, in any language, except for what a terminal would
 * obey; bytes that are no character become U+FFFD, so that the output is always text. */
#include "cli/text.h"
#include <stdio.h>
#include <string.h>

/* How many bytes a character has that begins with this one; 0: none begins so. */
static size_t char_len(unsigned char first)
{
    if (first < 0x80) {
        return 1;
    }
    if (first >= 0xc2 && first <= 0xdf) {
        return 2;
    }
    if (first >= 0xe0 && first <= 0xef) {
        return 3;
    }
    return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

/* Overlong forms, surrogates, and what is above U+10FFFF. */
static bool is_out_of_range(unsigned char first, unsigned char second)
{
    return (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
           (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
}

size_t text_char(const unsigned char *s, size_t len)
{
    size_t n = char_len(*s);

    if (n > len) {
        return 0;
    }

    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
    }

    if (n > 1 && is_out_of_range(s[0], s[1])) {
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

/* C0, DEL and C1 steer a terminal; the others change the direction of text, or end a line. */
bool text_is_control(uint32_t code)
{
    static const struct {
        uint32_t from, to;
    } ranges[] = {
        {0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
        {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
    };

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (code >= ranges[i].from && code <= ranges[i].to) {
            return true;
        }
    }

    return false;
}

bool text_is_utf8(const void *bytes, size_t len)
{
    const unsigned char *s = bytes;

    while (len) {
        size_t n = text_char(s, len);
        if (!n) {
            return false;
        }
        s += n;
        len -= n;
    }

    return true;
}

enum { SUBSTITUTE_BYTES = 8 };

/* Writes what stands for a character that is not shown, or for a byte that is none (n is 0). */
static size_t substitute(char out[SUBSTITUTE_BYTES], const unsigned char *s, size_t n)
{
    uint32_t code;

    if (!n) {
        return (size_t)snprintf(out, SUBSTITUTE_BYTES, "\xef\xbf\xbd");
    }

    code = text_code(s, n);
    if (code < 0x80) {
        return (size_t)snprintf(out, SUBSTITUTE_BYTES, "\\x%02x", code);
    }
    return (size_t)snprintf(out, SUBSTITUTE_BYTES, "\\u%04x", code);
}

static const char *text_copy(char *out, size_t size, const unsigned char *s, size_t len,
                             bool escapes)
{
    static const char more[] = "...";
    size_t used = 0;
    size_t available = size - sizeof more;

    while (len) {
        size_t n = text_char(s, len);
        size_t step = n ? n : 1;
        const char *from = (const char *)s;
        size_t from_len = n;
        char other[SUBSTITUTE_BYTES];

        if (!n || (escapes && text_is_control(text_code(s, n)))) {
            from = other;
            from_len = substitute(other, s, n);
        }

        if (used + from_len > available) {
            memcpy(out + used, more, sizeof more);
            return out;
        }

        memcpy(out + used, from, from_len);
        used += from_len;
        s += step;
        len -= step;
    }

    out[used] = '\0';

    return out;
}

const char *text_escaped(char *out, size_t size, const void *bytes, size_t len)
{
    return text_copy(out, size, bytes, len, true);
}

const char *text_repaired(char *out, size_t size, const char *text)
{
    return text_copy(out, size, (const unsigned char *)text, strlen(text), false);
}
