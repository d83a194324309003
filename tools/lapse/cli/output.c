/* SPDX-License-Identifier: MIT */
/* Writing without waiting. O_NONBLOCK belongs to the open file, which others share: the shell on a
 * terminal, the other writers of a pipe. So a terminal or a pipe is opened a second time, and that
 * open file is ours alone. Where that is not permitted, as after su, poll() is asked first. For a
 * pipe its answer is exact: a writable one takes PIPE_BUF bytes at once, unless another process
 * writes in between. For a terminal it says little, and so little is written. A file takes all. */
#include "cli/output.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OWN = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, TTY_BYTES = 64 };

static bool is_same_terminal(int a, int b)
{
    unsigned device_a;
    unsigned device_b;

    return !ioctl(a, TIOCGDEV, &device_a) && !ioctl(b, TIOCGDEV, &device_b) && device_a == device_b;
}

/* The same file, opened again; -1: that is not permitted. */
static int reopen(int fd)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = open(path, OWN);

    if (own < 0 && isatty(fd)) {
        /* it may belong to another user, but a process may open its controlling terminal so */
        own = open("/dev/tty", OWN);
        if (own >= 0 && !is_same_terminal(own, fd)) {
            close(own);
            own = -1;
        }
    }

    return own;
}

void output_open(struct output *o, int fd)
{
    struct stat st = {.st_mode = 0};

    *o = (struct output){.fd = fd, .given = fd, .kind = TAKES_ALL};
    fstat(fd, &st);

    if (S_ISSOCK(st.st_mode)) {
        o->kind = SOCKET;
    } else if (isatty(fd) || S_ISFIFO(st.st_mode)) {
        int own = reopen(fd);
        o->kind = own < 0 ? POLLED_FIRST : RETURNS;
        o->fd = own < 0 ? fd : own;
    }
}

static bool is_writable(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};

    return poll(&ready, 1, 0) > 0;
}

ssize_t output_write(struct output *o, const char *text, size_t len)
{
    size_t most = o->kind == POLLED_FIRST && isatty(o->fd) ? TTY_BYTES : PIPE_BUF;

    if (len > most) {
        len = most;
    }

    if (o->kind == SOCKET) {
        return send(o->fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    }

    if (o->kind == POLLED_FIRST && !is_writable(o->fd)) {
        errno = EAGAIN;
        return -1;
    }

    return write(o->fd, text, len);
}

void output_close(struct output *o)
{
    if (o->fd != o->given) {
        close(o->fd);
    }
    o->fd = o->given;
}
