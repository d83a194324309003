/* SPDX-License-Identifier: MIT */
/* Everything that the program says to people. A value from outside (argv, a job, Redis) goes
 * through printable(): an escape sequence in an id must not reach a terminal, nor a line break a
 * log. A word of the command line goes through printable_argument(), because any of them may be a
 * URL with a password, given in the wrong place. */
#include "cli/message.h"
#include "cli/output.h"
#include "cli/url_mask.h"
#include "command.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PRINTABLE_BYTES = 256, PRINTABLE_SLOTS = 8, LINE_BYTES = 2048 };

/* Of a process with a loop, which must not stop because a log collector does. */
static struct {
    struct output out;
    bool is_nonblocking;
    char rest[LINE_BYTES]; /* of a line that was taken in part */
    size_t rest_len;
    unsigned n_dropped;
} err;

const char *printable(const char *text)
{
    static char slots[PRINTABLE_SLOTS][4 * PRINTABLE_BYTES + 4];
    static unsigned turn;
    char *start = slots[turn++ % PRINTABLE_SLOTS];
    char *to = start;
    size_t n = 0;

    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (n++ == PRINTABLE_BYTES) {
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

static const char *printable_without(const char *word, struct piece secret)
{
    char text[PRINTABLE_BYTES + 8];
    int before = secret.at < PRINTABLE_BYTES ? (int)secret.at : PRINTABLE_BYTES;

    if (!secret.len) {
        return printable(word);
    }

    snprintf(text, sizeof text, "%.*s***%s", before, word, word + secret.at + secret.len);
    return printable(text);
}

const char *printable_argument(const char *word)
{
    return printable_without(word, url_secret(word, false));
}

const char *printable_url(const char *url)
{
    return printable_without(url, url_secret(url, true));
}

/* False: stderr took nothing. One that is broken for good takes everything. */
static bool message_write(const char *line, size_t len)
{
    size_t sent = 0;
    ssize_t n = 1;

    while (sent < len && n > 0) {
        n = output_write(&err.out, line + sent, len - sent);
        sent += n > 0 ? (size_t)n : 0;
    }

    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        sent = len;
    }

    if (!sent) {
        return false;
    }

    err.rest_len = len - sent;
    memmove(err.rest, line + sent, err.rest_len);
    return true;
}

void message_flush(void)
{
    char line[80];

    if (err.rest_len) {
        message_write(err.rest, err.rest_len);
    }

    if (err.n_dropped && !err.rest_len) {
        int len = snprintf(line, sizeof line, "lapse: lines lost because stderr was blocked: %u\n",
                           err.n_dropped);
        if (message_write(line, (size_t)len)) {
            err.n_dropped = 0;
        }
    }
}

void message_set_nonblocking(void)
{
    if (!err.is_nonblocking) {
        output_open(&err.out, 2);
        err.is_nonblocking = true;
    }
}

static void message_line(const char *prefix, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

static void message_line(const char *prefix, const char *format, va_list args)
{
    char line[LINE_BYTES];
    size_t len = (size_t)snprintf(line, sizeof line, "%s: ", prefix);

    vsnprintf(line + len, sizeof line - len - 1, format, args);
    len = strlen(line);
    line[len++] = '\n';

    if (!err.is_nonblocking) {
        fwrite(line, 1, len, stderr);
        return;
    }

    message_flush();
    if (err.rest_len || err.n_dropped || !message_write(line, len)) {
        err.n_dropped++;
    }
}

void message_print(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    message_line("lapse", format, args);
    va_end(args);
}

/* ---- wrong arguments ---- */
static char usage_prefix[32] = "lapse";

void usage_set_command(const char *name)
{
    snprintf(usage_prefix, sizeof usage_prefix, "lapse %s", name);
}

int usage_errorf(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    message_line(usage_prefix, format, args);
    va_end(args);

    return USAGE;
}

int usage_error(const char *what, const char *value, const char *rule)
{
    return usage_errorf("%s '%s': %s", what, printable_argument(value), rule);
}
