/* SPDX-License-Identifier: MIT */
/* beanstalkd, by its protocol. Its delays are whole seconds; a delay is rounded up here, so that no
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

static int fd;
static char out[OUT_SIZE], in[IN_SIZE];
static size_t out_len, in_at, in_len;
static long n_asked;

static void open_socket(const char *at)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    snprintf(a.sun_path, sizeof a.sun_path, "%s", at);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a)) {
        die("%s: %m", at);
    }
}

static void flush(void)
{
    for (size_t at = 0; at < out_len;) {
        ssize_t n = write(fd, out + at, out_len - at);
        if (n < 0 && errno != EINTR) {
            die("beanstalkd: %m");
        }
        at += n > 0 ? (size_t)n : 0;
    }
    out_len = 0;
}

static void say(const char *text, size_t len)
{
    if (out_len + len > sizeof out) {
        flush();
    }
    memcpy(out + out_len, text, len);
    out_len += len;
}

/* The next len bytes; a line with len 0. NULL: not before it is late. Good until the next call. */
static const char *next(size_t len, int64_t until_us)
{
    for (;;) {
        const char *from = in + in_at;
        const char *nl = len ? NULL : memchr(from, '\n', in_len - in_at);
        size_t need = nl ? (size_t)(nl - from) + 1 : len;
        if (need && in_len - in_at >= need) {
            in_at += need;
            return from;
        }
        memmove(in, from, in_len -= in_at);
        in_at = 0;
        int64_t left_ms = (until_us - now_us()) / 1000;
        struct pollfd p = {fd, POLLIN, 0};
        if (poll(&p, 1, left_ms <= 0 ? 0 : left_ms < INT_MAX ? (int)left_ms : INT_MAX) <= 0) {
            return NULL;
        }
        ssize_t n = read(fd, in + in_len, sizeof in - in_len);
        if (n <= 0) {
            die("beanstalkd: %s", n ? strerror(errno) : "it hung up");
        }
        in_len += (size_t)n;
    }
}

static const char *line(const char *expected, int64_t until_us)
{
    const char *text = next(0, until_us);
    if (text && strncmp(text, expected, strlen(expected)) != 0) {
        die("beanstalkd says %.40s", text);
    }
    return text;
}

static void put(const char *id, const char *body, int64_t due_ms)
{
    char text[BODY_LEN + 160];
    int64_t for_ms = due_ms - now_us() / 1000;
    int64_t delay_s = for_ms > 0 ? (for_ms + 999) / 1000 : 0;

    /* there is no id to choose: it is the head of the body */
    int len = snprintf(text, sizeof text, "put 0 %lld %d %d\r\n%s%.*s\r\n", (long long)delay_s,
                       TTR_S, BODY_LEN, id, BODY_LEN - ID_LEN, body);

    say(text, (size_t)len);
    n_asked++;
}

static void until(long in_flight)
{
    flush();
    for (; n_asked > in_flight; n_asked--) {
        line("INSERTED", INT64_MAX / 2);
    }
}

static void listen_jobs(void)
{
    char text[96];
    const char *job;

    say("reserve\r\n", 9);
    flush();

    while (listening() && (job = line("RESERVED ", listen_until_us()))) {
        unsigned long long number = strtoull(job + 9, NULL, 10);
        const char *body = next(BODY_LEN + 2, INT64_MAX / 2);
        if (!body) {
            die("beanstalkd: a job without a body");
        }
        heard(body, ID_LEN, 0, 0);
        say(text, (size_t)snprintf(text, sizeof text, "delete %llu\r\nreserve\r\n", number));
        flush();
        line("DELETED", INT64_MAX / 2);
        settled();
    }
}

int main(int argc, char **argv)
{
    static const struct peer beanstalk = {
        .window = 400, .open = open_socket, .put = put, .until = until, .listen = listen_jobs};
    return bench_main(argc, argv, &beanstalk);
}
