/* SPDX-License-Identifier: MIT */
/* Everything that the program says to people. A value that came from outside (argv, a job, Redis) goes through plain():
 * an escape sequence in an id must not reach a terminal, nor a line break a log. A word of the command line goes
 * through typed(), for any of them may be a URL with a password that slipped out of its place. */
#include "tool.h"
#include <errno.h>
#include <stdarg.h>
#include <string.h>

enum { PLAIN_BYTES = 256, PLAIN_SLOTS = 8 };

const char *plain(const char *text)
{
    static char slots[PLAIN_SLOTS][4 * PLAIN_BYTES + 4];
    static unsigned turn;
    char *start = slots[turn++ % PLAIN_SLOTS], *to = start;
    size_t n = 0;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (n++ == PLAIN_BYTES) {
            memcpy(to, "...", 3);
            to += 3;
            break;
        }
        if (*c >= 0x20 && *c <= 0x7e) {
            *to++ = (char)*c;
        } else {
            to += snprintf(to, 5, "\\x%02x", *c);
        }
    }
    *to = '\0';
    return start;
}

static const char *without(const char *word, struct piece secret)
{
    char text[PLAIN_BYTES + 8];
    int before = secret.at < PLAIN_BYTES ? (int)secret.at : PLAIN_BYTES;
    if (!secret.len) {
        return plain(word);
    }
    snprintf(text, sizeof text, "%.*s***%s", before, word, word + secret.at + secret.len);
    return plain(text);
}

const char *typed(const char *word)
{
    return without(word, url_secret(word, 0));
}

const char *typed_url(const char *url)
{
    return without(url, url_secret(url, 1));
}

void say(const char *format, ...)
{
    char line[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fprintf(stderr, "lapse: %s\n", line);
}

int bad(const char *what, const char *value, const char *rule)
{
    say("%s '%s': %s", what, typed(value), rule);
    return USAGE;
}

int finish(int code)
{
    /* an answer that did not arrive is not an answer, whatever Redis said */
    int failed = ferror(stdout);
    errno = 0;
    if (fclose(stdout) || failed) {
        say("stdout: %s", errno ? strerror(errno) : "a write failed");
        return code ? code : OUTPUT;
    }
    return code;
}
