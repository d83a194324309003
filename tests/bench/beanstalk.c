/* SPDX-License-Identifier: MIT */
/* beanstalkd, by its protocol. Its delays are whole seconds; they are rounded up here, so that no
 * job is early. The next reserve travels with the delete of the job before. */
#include "bench.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { TTR_S = 120, OUT_SIZE = 65536, IN_SIZE = 65536 };
static const int64_t never_us = INT64_MAX / 2;

static int fd;
static char out[OUT_SIZE];
static char in[IN_SIZE];
static size_t out_len, in_start, in_len;
static long n_unanswered;

static void beanstalk_open(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address)) {
        die("%s: %m", path);
    }
}

static void flush(void)
{
    for (size_t sent = 0; sent < out_len;) {
        ssize_t n = write(fd, out + sent, out_len - sent);
        if (n < 0 && errno != EINTR) {
            die("beanstalkd: %m");
        }
        if (n > 0) {
            sent += (size_t)n;
        }
    }

    out_len = 0;
}

static void append(const char *text, size_t len)
{
    if (out_len + len > sizeof out) {
        flush();
    }
    memcpy(out + out_len, text, len);
    out_len += len;
}

/* False: nothing came until then. */
static bool read_more(int64_t until_us)
{
    int64_t left_ms = (until_us - now_us()) / 1000;
    struct pollfd p = {fd, POLLIN, 0};

    if (left_ms < 0) {
        left_ms = 0;
    } else if (left_ms > INT_MAX) {
        left_ms = INT_MAX;
    }
    if (poll(&p, 1, (int)left_ms) <= 0) {
        return false;
    }

    ssize_t n = read(fd, in + in_len, sizeof in - in_len);
    if (n <= 0) {
        die("beanstalkd: %s", n ? strerror(errno) : "it hung up");
    }

    in_len += (size_t)n;
    return true;
}

/* The next len bytes, or a line if len is 0. NULL: they did not come until then. Good until the
 * next call. */
static const char *read_part(size_t len, int64_t until_us)
{
    for (;;) {
        const char *start = in + in_start;
        const char *newline = len ? NULL : memchr(start, '\n', in_len - in_start);
        size_t need = newline ? (size_t)(newline - start) + 1 : len;

        if (need && in_len - in_start >= need) {
            in_start += need;
            return start;
        }

        in_len -= in_start;
        memmove(in, start, in_len);
        in_start = 0;
        if (!read_more(until_us)) {
            return NULL;
        }
    }
}

static const char *read_line(const char *expected, int64_t until_us)
{
    const char *text = read_part(0, until_us);

    if (text && strncmp(text, expected, strlen(expected)) != 0) {
        die("beanstalkd says %.40s", text);
    }

    return text;
}

/* The id goes to the head of the body, for beanstalkd chooses its own. */
static void beanstalk_put(const char *id, const char *body, int64_t due_ms)
{
    char text[BODY_LEN + 160];
    int64_t for_ms = due_ms - now_us() / 1000;
    long long delay_s = for_ms > 0 ? (for_ms + 999) / 1000 : 0;

    int len = snprintf(text, sizeof text, "put 0 %lld %d %d\r\n%s%.*s\r\n", delay_s, TTR_S,
                       BODY_LEN, id, BODY_LEN - ID_LEN, body);
    append(text, (size_t)len);
    n_unanswered++;
}

static void beanstalk_wait(long in_flight)
{
    flush();
    while (n_unanswered > in_flight) {
        read_line("INSERTED", never_us);
        n_unanswered--;
    }
}

static void beanstalk_listen(void)
{
    const char *reserved;

    append("reserve\r\n", 9);
    flush();

    while (listening() && (reserved = read_line("RESERVED ", listen_until_us()))) {
        unsigned long long number = strtoull(reserved + 9, NULL, 10);
        const char *body = read_part(BODY_LEN + 2, never_us);
        char text[96];

        if (!body) {
            die("beanstalkd: a job without a body");
        }
        job_started(body, ID_LEN, 0, 0);

        int len = snprintf(text, sizeof text, "delete %llu\r\nreserve\r\n", number);
        append(text, (size_t)len);
        flush();
        read_line("DELETED", never_us);
        job_settled();
    }
}

int main(int argc, char **argv)
{
    static const struct system beanstalk = {
        .window = 400,
        .open = beanstalk_open,
        .put = beanstalk_put,
        .wait = beanstalk_wait,
        .listen = beanstalk_listen,
    };
    return bench_main(argc, argv, &beanstalk);
}
