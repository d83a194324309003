/* SPDX-License-Identifier: MIT */
#include "injection.h"
#include "hook.h"
#include "allocations.h"
#include <criterion/criterion.h>
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

#define E(call, error)      \
    {                       \
        call, error, #error \
    }
const struct injection inject_calls[] = {
    E("read", EINTR),
    E("read", EAGAIN),
    E("read", ECONNRESET),
    E("read", ETIMEDOUT),
    E("read", ENOMEM),
    E("read", EIO),
    E("read", AT_END),
    E("read", SHORT),
    E("write", EINTR),
    E("write", EAGAIN),
    E("write", EPIPE),
    E("write", ECONNRESET),
    E("write", ENOBUFS),
    E("write", ENOMEM),
    E("write", SHORT),
    E("connect", EINTR),
    E("connect", EAGAIN),
    E("connect", ECONNREFUSED),
    E("connect", ENOENT),
    E("connect", ETIMEDOUT),
    E("connect", EACCES),
    E("connect", ENOMEM),
    E("socket", EMFILE),
    E("socket", ENFILE),
    E("socket", ENOMEM),
    E("socket", EACCES),
    E("fcntl", EINTR),
    E("fcntl", ENOMEM),
    E("setsockopt", ENOMEM),
    E("setsockopt", ENOPROTOOPT),
    E("getsockopt", ENOBUFS),
    E("getsockopt", ENOMEM),
    E("epoll_wait", EINTR),
    E("epoll_ctl", ENOMEM),
    E("epoll_ctl", ENOSPC),
    E("epoll_create1", EMFILE),
    E("epoll_create1", ENFILE),
    E("epoll_create1", ENOMEM),
    E("timerfd_create", EMFILE),
    E("timerfd_create", ENFILE),
    E("timerfd_create", ENOMEM),
    E("timerfd_create", ENODEV),
    E("getentropy", ENOSYS),
    E("getentropy", EIO),
    E("getaddrinfo", EAI_AGAIN),
    E("getaddrinfo", EAI_MEMORY),
    E("close", EINTR),
    E("close", EIO),
    {NULL, 0, NULL},
};

static struct {
    const struct injection *i;
    long nth, seen;
    uint64_t random;
    bool paused, fired, outside;
} now;

static bool strikes(const char *what)
{
    if (!now.i || now.paused || strcmp(now.i->what, what) != 0) {
        return false;
    }

    now.random = now.random * 6364136223846793005u + 1442695040888963407u;
    bool yes = now.nth < 0 ? (now.random >> 33) % (uint64_t)-now.nth == 0 : ++now.seen == now.nth;
    now.fired = now.fired || yes;
    if (yes) {
        errno = now.i->error > 0 ? now.i->error : 0;
    }

    return yes;
}

/* ---- the system ---- */
#define CALL(result, name, params, args)               \
    static result(*real_##name) params;                \
    static result my_##name params                     \
    {                                                  \
        return strikes(#name) ? -1 : real_##name args; \
    }
CALL(int, connect, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
CALL(int, socket, (int domain, int type, int protocol), (domain, type, protocol))
CALL(int, setsockopt, (int fd, int level, int name, const void *v, socklen_t n),
     (fd, level, name, v, n))
CALL(int, getsockopt, (int fd, int level, int name, void *v, socklen_t *n), (fd, level, name, v, n))
CALL(int, epoll_wait, (int fd, struct epoll_event *e, int n, int ms), (fd, e, n, ms))
CALL(int, epoll_ctl, (int fd, int op, int other, struct epoll_event *e), (fd, op, other, e))
CALL(int, epoll_create1, (int flags), (flags))
CALL(int, timerfd_create, (int clock, int flags), (clock, flags))
CALL(int, getentropy, (void *to, size_t n), (to, n))

static ssize_t (*real_read)(int, void *, size_t);
static ssize_t my_read(int fd, void *to, size_t n)
{
    if (!strikes("read")) {
        return real_read(fd, to, n);
    }
    return now.i->error == SHORT    ? real_read(fd, to, n > 8 ? 1 : n)
           : now.i->error == AT_END ? 0
                                    : -1;
}
static ssize_t (*real_recv)(int, void *, size_t, int);
static ssize_t my_recv(int fd, void *to, size_t n, int flags)
{
    if (!strikes("read")) {
        return real_recv(fd, to, n, flags);
    }
    return now.i->error == SHORT ? real_recv(fd, to, 1, flags) : now.i->error == AT_END ? 0 : -1;
}
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t my_write(int fd, const void *from, size_t n)
{
    if (!strikes("write")) {
        return real_write(fd, from, n);
    }
    return now.i->error == SHORT ? real_write(fd, from, 1) : -1;
}
static ssize_t (*real_send)(int, const void *, size_t, int);
static ssize_t my_send(int fd, const void *from, size_t n, int flags)
{
    if (!strikes("write")) {
        return real_send(fd, from, n, flags);
    }
    return now.i->error == SHORT ? real_send(fd, from, 1, flags) : -1;
}
static int (*real_fcntl)(int, int, ...);
static int my_fcntl(int fd, int what, ...)
{
    va_list ap;
    va_start(ap, what);
    void *arg = va_arg(ap, void *);
    va_end(ap);
    return strikes("fcntl") ? -1 : real_fcntl(fd, what, arg);
}
static int (*real_close)(int);
static int my_close(int fd)
{
    bool yes = strikes("close");
    int error = errno;
    int result = real_close(fd); /* Linux closes it, whatever it says */
    errno = yes ? error : errno;
    return yes ? -1 : result;
}
static int (*real_getaddrinfo)(const char *, const char *, const struct addrinfo *,
                               struct addrinfo **);
static int my_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                          struct addrinfo **out)
{
    return now.i && strikes("getaddrinfo") ? now.i->error
                                           : real_getaddrinfo(host, port, hints, out);
}

/* ---- hiredis's memory ---- */
enum { BLOCKS = 1 << 16 };
static struct block {
    void *at, *by;
} blocks[BLOCKS];
static long n_blocks;

static struct block *block(const void *at)
{
    uintptr_t i = (uintptr_t)at / 16 * 2654435761u % BLOCKS;
    while (blocks[i].at && blocks[i].at != at) {
        i = (i + 1) % BLOCKS;
    }
    return &blocks[i];
}

static void *made(void *at, void *by)
{
    if (at && n_blocks < BLOCKS / 2) {
        *block(at) = (struct block){at, by};
        n_blocks++;
    }
    return at;
}

static bool gone(const void *at)
{
    struct block *b = at ? block(at) : NULL;

    if (!b || !b->at) {
        return false;
    }

    n_blocks--;
    b->at = NULL;
    for (struct block *i = b;
         i = i == blocks + BLOCKS - 1 ? blocks : i + 1, i->at;) { /* close the gap */
        struct block moved = *i;
        i->at = NULL;
        *block(moved.at) = moved;
    }

    return true;
}

static void *my_malloc(size_t n)
{
    return strikes("hiredis") ? NULL : made(malloc(n), __builtin_return_address(0));
}
static void *my_calloc(size_t n, size_t size)
{
    return strikes("hiredis") ? NULL : made(calloc(n, size), __builtin_return_address(0));
}
static void *my_realloc(void *old, size_t n)
{
    if (strikes("hiredis")) {
        return NULL;
    }
    gone(old);
    return made(realloc(old, n), __builtin_return_address(0));
}
static char *my_strdup(const char *s)
{
    return strikes("hiredis") ? NULL : made(strdup(s), __builtin_return_address(0));
}
static void (*real_free)(void *);
static void my_free(void *p)
{
    gone(p);
    real_free(p);
}

long inject_hiredis_live(const char **where)
{
    Dl_info info;
    for (size_t i = 0; i < BLOCKS; i++) {
        if (blocks[i].at) {
            *where = dladdr(blocks[i].by, &info) && info.dli_sname ? info.dli_sname : "?";
        }
    }
    return n_blocks;
}

/* ---- install ---- */
typedef void any_fn(void);
static void install(const char *name, void *real, any_fn *mine)
{
    static const char *const objects[] = {"", "libhiredis", "libev"};
    void *fn = dlsym(RTLD_DEFAULT, name);

    cr_assert(fn, "%s", name);
    memcpy(real, &fn, sizeof fn);
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        hook(objects[i], name, mine);
    }
}
#define INSTALL(name) install(#name, (void *)&real_##name, (any_fn *)my_##name)

void inject_install(void)
{
    static const struct {
        const char *name;
        any_fn *fn;
    } memory[] = {
        {"malloc", (any_fn *)my_malloc},
        {"calloc", (any_fn *)my_calloc},
        {"realloc", (any_fn *)my_realloc},
        {"strdup", (any_fn *)my_strdup},
    };

    INSTALL(connect), INSTALL(socket), INSTALL(setsockopt), INSTALL(getsockopt),
        INSTALL(epoll_wait);
    INSTALL(epoll_ctl), INSTALL(epoll_create1), INSTALL(timerfd_create), INSTALL(getentropy),
        INSTALL(read);
    INSTALL(recv), INSTALL(write), INSTALL(send), INSTALL(fcntl), INSTALL(close),
        INSTALL(getaddrinfo), INSTALL(free);

    bool some = false;
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        some |= hook("libhiredis", memory[i].name, memory[i].fn);
    }

    cr_assert(some, "libhiredis does not allocate?");
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
