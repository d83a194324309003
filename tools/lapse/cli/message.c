/* SPDX-License-Identifier: MIT */
/* Everything that the program says to people. A value from outside (argv, a job, Redis) goes
 * through printable(): an escape sequence in an id must not reach a terminal, nor a line break a
 * log. A word of the command line goes through printable_argument(), because any of them may be a
 * URL with a password, given in the wrong place. */
#include "cli/output.h"
#include "command.h"
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>

enum { PLAIN_BYTES = 256, PLAIN_SLOTS = 8, LINE_BYTES = 2048 };

static struct { /* of a process with a loop, which a log collector that stands still must not stop
                 */
    struct output out;
    int no_wait;
    char rest[LINE_BYTES]; /* of a line that was taken in part */
    size_t rest_len;
    unsigned lost;
} err;

const char *printable(const char *text)
{
    static char slots[PLAIN_SLOTS][4 * PLAIN_BYTES + 4];
    static unsigned turn;
    char *start = slots[turn++ % PLAIN_SLOTS];
    char *to = start;
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
        return printable(word);
    }
    snprintf(text, sizeof text, "%.*s***%s", before, word, word + secret.at + secret.len);
    return printable(text);
}

const char *printable_argument(const char *word)
{
    return without(word, url_secret(word, 0));
}

const char *printable_url(const char *url)
{
    return without(url, url_secret(url, 1));
}

/* 0: nothing of it was taken. What is broken for good takes everything. */
static int put(const char *line, size_t len)
{
    size_t sent = 0;
    ssize_t n = 0;

    while (sent < len && (n = output_write(&err.out, line + sent, len - sent)) > 0) {
        sent += (size_t)n;
    }

    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        sent = len;
    }

    if (sent) {
        err.rest_len = len - sent;
        memmove(err.rest, line + sent, err.rest_len);
    }

    return sent > 0;
}

static void catch_up(void)
{
    char line[80];

    if (err.rest_len) {
        put(err.rest, err.rest_len);
    }

    if (err.lost && !err.rest_len) {
        int len = snprintf(line, sizeof line,
                           "lapse: lines that stderr did not take, and are lost: %u\n", err.lost);
        err.lost = put(line, (size_t)len) ? 0 : err.lost;
    }
}

void message_set_nonblocking(void)
{
    if (!err.no_wait) {
        output_open(&err.out, 2);
        err.no_wait = 1;
    }
}

void message_print(const char *format, ...)
{
    static const char name[] = "lapse: ";
    enum { NAME = sizeof name - 1 };
    char line[LINE_BYTES];
    va_list args;

    memcpy(line, name, NAME);
    va_start(args, format);
    vsnprintf(line + NAME, sizeof line - NAME - 1, format, args);
    va_end(args);

    size_t len = strlen(line);
    line[len++] = '\n';
    if (!err.no_wait) {
        fwrite(line, 1, len, stderr);
        return;
    }

    catch_up();
    if (err.rest_len || err.lost || !put(line, len)) {
        err.lost++;
    }
}

int usage_error(const char *what, const char *value, const char *rule)
{
    message_print("%s '%s': %s", what, printable_argument(value), rule);
    return USAGE;
}

int stdout_error_code(void)
{
    struct pollfd end = {.fd = 1, .events = POLLOUT};
    return poll(&end, 1, 0) == 1 && end.revents & POLLERR ? UNREAD : OUTPUT;
}

int close_stdout(int code)
{
    int failed;
    int number;
    int why;

    if (err.no_wait) {
        catch_up();
    }

    errno = 0;

    /* an answer that did not arrive is not an answer, whatever Redis said */
    failed = ferror(stdout) || fflush(stdout);
    number = errno;
    why = failed ? stdout_error_code() : DONE;
    if (fclose(stdout) && !failed) {
        number = errno;
        why = OUTPUT;
    }

    if (why == OUTPUT) {
        message_print("stdout: %s", number ? strerror(number) : "a write failed");
    }

    return code ? code : why;
}
