/* SPDX-License-Identifier: MIT */
/* Writing without waiting. O_NONBLOCK belongs to the open file, which others share: the shell on a
 * terminal, the other writers of a pipe. So a terminal or a pipe is opened anew, and that open file
 * is ours alone. Where it may not be, as after su, poll() is asked first. Of a pipe that is exact:
 * what is writable takes PIPE_BUF bytes at once, unless another writes in between. Of a terminal it
 * says little, and so little is written. A file takes all. */
#include "cli/output.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OWN = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, TTY_BYTES = 64 };

static int is_same_terminal(int a, int b)
{
    unsigned device_a;
    unsigned device_b;
    return !ioctl(a, TIOCGDEV, &device_a) && !ioctl(b, TIOCGDEV, &device_b) && device_a == device_b;
}

static int open_anew(int fd)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);

    int own = open(path, OWN);
    if (own < 0 && isatty(fd)) {
        /* it may be another user's; whose controlling terminal it is, may open it so */
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
    int own;

    *o = (struct output){.fd = fd, .given = fd, .kind = TAKES_ALL};
    fstat(fd, &st);
    if (S_ISSOCK(st.st_mode)) {
        o->kind = SOCKET;
    } else if (isatty(fd) || S_ISFIFO(st.st_mode)) {
        own = open_anew(fd);
        o->kind = own < 0 ? ASKED_FIRST : RETURNS;
        o->fd = own < 0 ? fd : own;
    }
}

ssize_t output_write(struct output *o, const char *text, size_t len)
{
    struct pollfd ready = {.fd = o->fd, .events = POLLOUT};
    size_t most = o->kind == ASKED_FIRST && isatty(o->fd) ? TTY_BYTES : PIPE_BUF;

    len = len < most ? len : most;
    if (o->kind == SOCKET) {
        return send(o->fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    }

    if (o->kind == ASKED_FIRST && poll(&ready, 1, 0) <= 0) {
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
