/* SPDX-License-Identifier: MIT */
/* The functions of the system that can be made to fail are defined here, in the program, so they
 * come before those of the C library for all that it is linked with: lapse, hiredis and libev. A
 * sanitizer's own stand between these and the C library's. */
#undef _FORTIFY_SOURCE /* it defines some of these itself */
#include "injection.h"
#include "allocations.h"
#include "hiredis_memory.h"
#include "resolver.h"
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* clang-format off */
#define FAILS(call, error) {call, error, #error}
const struct injection inject_calls[] = {
    FAILS("read", EINTR),
    FAILS("read", EAGAIN),
    FAILS("read", ECONNRESET),
    FAILS("read", ETIMEDOUT),
    FAILS("read", ENOMEM),
    FAILS("read", EIO),
    FAILS("read", AT_END),
    FAILS("read", SHORT),
    FAILS("write", EINTR),
    FAILS("write", EAGAIN),
    FAILS("write", EPIPE),
    FAILS("write", ECONNRESET),
    FAILS("write", ENOBUFS),
    FAILS("write", ENOMEM),
    FAILS("write", SHORT),
    FAILS("connect", EINTR),
    FAILS("connect", EAGAIN),
    FAILS("connect", ECONNREFUSED),
    FAILS("connect", ENOENT),
    FAILS("connect", ETIMEDOUT),
    FAILS("connect", EACCES),
    FAILS("connect", ENOMEM),
    FAILS("socket", EMFILE),
    FAILS("socket", ENFILE),
    FAILS("socket", ENOMEM),
    FAILS("socket", EACCES),
    FAILS("fcntl", EINTR),
    FAILS("fcntl", ENOMEM),
    FAILS("setsockopt", ENOMEM),
    FAILS("setsockopt", ENOPROTOOPT),
    FAILS("getsockopt", ENOBUFS),
    FAILS("getsockopt", ENOMEM),
    FAILS("epoll_wait", EINTR),
    FAILS("epoll_ctl", ENOMEM),
    FAILS("epoll_ctl", ENOSPC),
    FAILS("epoll_create1", EMFILE),
    FAILS("epoll_create1", ENFILE),
    FAILS("epoll_create1", ENOMEM),
    FAILS("timerfd_create", EMFILE),
    FAILS("timerfd_create", ENFILE),
    FAILS("timerfd_create", ENOMEM),
    FAILS("timerfd_create", ENODEV),
    FAILS("getentropy", ENOSYS),
    FAILS("getentropy", EIO),
    FAILS("getaddrinfo", EAI_AGAIN),
    FAILS("getaddrinfo", EAI_MEMORY),
    FAILS("close", EINTR),
    FAILS("close", EIO),
    {NULL, 0, NULL},
};
/* clang-format on */

static struct {
    const struct injection *i;
    long nth, seen;
    uint64_t random;
    bool paused, fired, outside;
} now;

bool inject_strikes(const char *what)
{
    if (!now.i || now.paused || strcmp(now.i->what, what) != 0) {
        return false;
    }

    bool strikes;
    now.random = now.random * 6364136223846793005u + 1442695040888963407u;
    if (now.nth < 0) {
        strikes = (now.random >> 33) % (uint64_t)-now.nth == 0;
    } else {
        strikes = ++now.seen == now.nth;
    }

    if (strikes) {
        now.fired = true;
        errno = now.i->error > 0 ? now.i->error : 0;
    }
    return strikes;
}

/* ---- the system ---- */
static void *next_of(const char *name)
{
    void *fn = dlsym(RTLD_NEXT, name);

    if (!fn) {
        abort();
    }
    return fn;
}

/* The function of this name that would have been called. */
#define NEXT(name)                              \
    ({                                          \
        static __typeof__(&name) next;          \
        if (!next) {                            \
            void *found = next_of(#name);       \
            memcpy(&next, &found, sizeof next); \
        }                                       \
        next;                                   \
    })

int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t len)
{
    return inject_strikes("connect") ? -1 : NEXT(connect)(fd, address, len);
}

int socket(int domain, int type, int protocol)
{
    return inject_strikes("socket") ? -1 : NEXT(socket)(domain, type, protocol);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    return inject_strikes("setsockopt") ? -1 : NEXT(setsockopt)(fd, level, name, value, len);
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    return inject_strikes("getsockopt") ? -1 : NEXT(getsockopt)(fd, level, name, value, len);
}

int epoll_wait(int fd, struct epoll_event *events, int n, int timeout_ms)
{
    return inject_strikes("epoll_wait") ? -1 : NEXT(epoll_wait)(fd, events, n, timeout_ms);
}

int epoll_ctl(int fd, int op, int other, struct epoll_event *event)
{
    return inject_strikes("epoll_ctl") ? -1 : NEXT(epoll_ctl)(fd, op, other, event);
}

int epoll_create1(int flags)
{
    return inject_strikes("epoll_create1") ? -1 : NEXT(epoll_create1)(flags);
}

int timerfd_create(int clock, int flags)
{
    return inject_strikes("timerfd_create") ? -1 : NEXT(timerfd_create)(clock, flags);
}

int getentropy(void *to, size_t n)
{
    return inject_strikes("getentropy") ? -1 : NEXT(getentropy)(to, n);
}

ssize_t read(int fd, void *to, size_t n)
{
    if (!inject_strikes("read")) {
        return NEXT(read)(fd, to, n);
    }
    if (now.i->error == SHORT) {
        return NEXT(read)(fd, to, n > sizeof(uint64_t) ? 1 : n); /* eventfds give 8 bytes or none */
    }
    return now.i->error == AT_END ? 0 : -1;
}

ssize_t recv(int fd, void *to, size_t n, int flags)
{
    if (!inject_strikes("read")) {
        return NEXT(recv)(fd, to, n, flags);
    }
    if (now.i->error == SHORT) {
        return NEXT(recv)(fd, to, 1, flags);
    }
    return now.i->error == AT_END ? 0 : -1;
}

ssize_t write(int fd, const void *from, size_t n)
{
    if (!inject_strikes("write")) {
        return NEXT(write)(fd, from, n);
    }
    return now.i->error == SHORT ? NEXT(write)(fd, from, 1) : -1;
}

ssize_t send(int fd, const void *from, size_t n, int flags)
{
    if (!inject_strikes("write")) {
        return NEXT(send)(fd, from, n, flags);
    }
    return now.i->error == SHORT ? NEXT(send)(fd, from, 1, flags) : -1;
}

int fcntl(int fd, int what, ...)
{
    va_list ap;

    va_start(ap, what);
    void *arg = va_arg(ap, void *);
    va_end(ap);

    return inject_strikes("fcntl") ? -1 : NEXT(fcntl)(fd, what, arg);
}

/* Linux closes the descriptor whatever it answers. */
int close(int fd)
{
    bool strikes = inject_strikes("close");
    int error = errno;
    int result = NEXT(close)(fd);

    if (!strikes) {
        return result;
    }
    errno = error;
    return -1;
}

static int error_of_lookup(void)
{
    return inject_strikes("getaddrinfo") ? now.i->error : 0;
}

/* ---- arming ---- */
void inject_install(void)
{
    hiredis_memory_watch();
    resolver_fail(error_of_lookup);
    alloc_install();
}

static bool ours(const struct injection *i)
{
    return i && strcmp(i->what, "alloc") == 0;
}

void inject_arm(const struct injection *i, long nth, unsigned seed)
{
    now.i = i;
    now.nth = nth;
    now.seen = 0;
    now.random = seed;
    now.fired = now.paused = false;
    now.outside = i && !ours(i);
    if (ours(i) && nth < 0) {
        alloc_fail_often(-nth, seed);
    } else if (ours(i)) {
        alloc_fail(nth);
    }
}

void inject_pause(bool on)
{
    now.paused = on;
}

void inject_disarm(void)
{
    now.fired = inject_fired();
    if (ours(now.i)) {
        alloc_fail(0);
    }
    now.i = NULL;
}

bool inject_fired(void)
{
    return now.fired || (ours(now.i) && alloc_has_failed());
}

bool inject_outside(void)
{
    return now.outside;
}
