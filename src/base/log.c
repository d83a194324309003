/* SPDX-License-Identifier: MIT */
/* Writes a line to the user's log callback. Bytes that would control a terminal, or end the line,
 * do not get through. */
#include "base/log.h"
#include "base/clock.h"
#include <stdarg.h>
#include <stdio.h>

static char *log_escape_also(char *out, size_t size, const void *bytes, size_t len, char also)
{
    const unsigned char *in = bytes;
    size_t at = 0;

    for (size_t i = 0; i < len && at + 5 < size; i++) {
        if (in[i] >= 0x20 && in[i] <= 0x7e && in[i] != also) {
            out[at++] = (char)in[i];
        } else {
            at += (size_t)snprintf(out + at, size - at, "\\x%02x", in[i]);
        }
    }

    out[at] = '\0';
    return out;
}

char *log_escape(char *out, size_t size, const void *bytes, size_t len)
{
    return log_escape_also(out, size, bytes, len, '\\');
}

bool log_line(struct log *log, enum log_site site, int level, const char *format, ...)
{
    int64_t now = clock_us();

    if (!log->fn) {
        return false;
    }

    if (log->last_us[site] && now - log->last_us[site] < 1000000) {
        log->held_back[site]++;
        return false;
    }

    enum { MORE = 32 }; /* bytes to have for how many were left out */
    char raw[512];
    char line[1024];
    va_list args;
    va_start(args, format);

    int len = vsnprintf(raw, sizeof raw, format, args);
    va_end(args);

    size_t raw_len = len < 0 ? 0 : (size_t)len;
    if (raw_len >= sizeof raw) {
        raw_len = sizeof raw - 1;
    }

    size_t at = strlen(log_escape_also(line, sizeof line - MORE, raw, raw_len, '\0'));
    if (log->held_back[site]) {
        snprintf(line + at, MORE, " (and %u more like it)", log->held_back[site]);
    }

    log->last_us[site] = now;
    log->held_back[site] = 0;
    log->fn(level, line, log->arg);

    return true;
}
