/* SPDX-License-Identifier: MIT */
/* hiredis's async interface, as 0.14.1 and 1.x share it, on libev.
 *
 * TLS is a second kind of transport beside the plain one. Within hiredis 1.x it takes the place of
 * read(2) and write(2), so sending, reading and closing are the same for both kinds; what differs
 * is how a connection begins, and how a password goes. The owner hears of a connection when its
 * handshake is done, so nothing is sent before. */
#include "redis/transport.h"
#include <errno.h>
#include <fcntl.h>
#include <hiredis/adapters/libev.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <hiredis/sds.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

struct transport_kind {
    bool (*auth)(struct transport *t, struct answer *a, const char *user, const char *password);
    void (*connected)(struct transport *t); /* the socket is */
    void (*ready)(struct transport *t, int events);
};

static void on_answer(struct redisAsyncContext *ac, void *reply, void *arg)
{
    struct transport *t = ac->data;
    struct answer *a = arg;
    a->come(t->owner, a, reply);
}

/* ---- reading and writing ---- */
static sigset_t only_sigpipe(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    return set;
}

/* Holds SIGPIPE off for this thread. What a host program does with that signal stays its own. */
static void sigpipe_hold(sigset_t *before)
{
    sigset_t sigpipe = only_sigpipe();
    pthread_sigmask(SIG_BLOCK, &sigpipe, before);
}

/* Makes it as it was; takes the signal back where we may have raised it. */
static void sigpipe_release(const sigset_t *before, bool may_be_ours)
{
    static const struct timespec now = {0, 0};
    sigset_t sigpipe = only_sigpipe();

    if (may_be_ours && !sigismember(before, SIGPIPE)) {
        while (sigtimedwait(&sigpipe, NULL, &now) < 0 && errno == EINTR) {}
    }
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* A socket that was full and takes more shows that the other end reads. One that takes
 * what fits into it shows nothing. */
static void write_out(struct transport *t)
{
    size_t had = transport_unwritten(t);
    sigset_t before;

    tls_forget_errors(); /* the program's own would be taken for ours */
    sigpipe_hold(&before);
    redisAsyncHandleWrite(t->ac);
    sigpipe_release(&before, !t->ac);

    size_t left = transport_unwritten(t);
    if (t->ac && t->blocked && left < had) {
        t->events->moved(t->owner);
    }

    t->blocked = left > 0;
}

static void read_in(struct transport *t)
{
    t->events->readable(t->owner);
    redisAsyncHandleRead(t->ac);
}

/* ---- AUTH ---- */
/* 0.14.1 and 1.x read the name of a command, to know a subscribe. */
static const char AUTH_COMMAND[] = "*1\r\n$4\r\nAUTH\r\n";

/* hiredis gets a command of no bytes, so that it expects one more answer. */
static bool expect_answer(struct transport *t, struct answer *a)
{
    bool taken = redisAsyncFormattedCommand(t->ac, on_answer, a, AUTH_COMMAND, 0) == REDIS_OK;
    return taken && t->ac->replies.tail; /* noted: see transport_send() */
}

/* AUTH in pieces, so that the password is copied nowhere. */
enum { AUTH_PARTS = 5 };
struct auth {
    char head[64];
    char middle[32];
    struct iovec parts[AUTH_PARTS];
    size_t len; /* of all */
};

static void auth_make(struct auth *m, const char *user, const char *password)
{
    size_t user_len = user ? strlen(user) : 0;
    size_t len = strlen(password);
    int head_len = user
                       ? snprintf(m->head, sizeof m->head, "*3\r\n$4\r\nAUTH\r\n$%zu\r\n", user_len)
                       : snprintf(m->head, sizeof m->head, "*2\r\n$4\r\nAUTH\r\n");
    int middle_len = snprintf(m->middle, sizeof m->middle, "%s$%zu\r\n", user ? "\r\n" : "", len);

    m->parts[0] = (struct iovec){m->head, (size_t)head_len};
    m->parts[1] = (struct iovec){(void *)(uintptr_t)user, user_len};
    m->parts[2] = (struct iovec){m->middle, (size_t)middle_len};
    m->parts[3] = (struct iovec){(void *)(uintptr_t)password, len};
    m->parts[4] = (struct iovec){"\r\n", 2};
    m->len = (size_t)head_len + user_len + (size_t)middle_len + len + 2;
}

/* ---- the plain kind ---- */
/* hiredis would leave the password in memory that it has freed. So it goes from where it is kept
 * straight to the socket. On no other kind of transport may bytes go past hiredis so. */
static bool plain_auth(struct transport *t, struct answer *a, const char *user,
                       const char *password)
{
    struct auth m = {.len = 0};

    auth_make(&m, user, password);
    struct msghdr message = {.msg_iov = m.parts, .msg_iovlen = AUTH_PARTS};

    /* nothing was sent before, so a socket takes all of it */
    return sendmsg(t->ac->c.fd, &message, MSG_NOSIGNAL) == (ssize_t)m.len && expect_answer(t, a);
}

static void plain_connected(struct transport *t)
{
    t->events->connected(t->owner);
}

static void plain_ready(struct transport *t, int events)
{
    if (events & EV_WRITE) {
        write_out(t);
    } else {
        read_in(t);
    }
}

static const struct transport_kind plain = {plain_auth, plain_connected, plain_ready};

/* ---- the kind with TLS ---- */
#ifdef LAPSE_WITH_TLS
/* Straight to OpenSSL, likewise. */
static bool secure_auth(struct transport *t, struct answer *a, const char *user,
                        const char *password)
{
    struct auth m = {.len = 0};

    auth_make(&m, user, password);
    for (size_t i = 0; i < AUTH_PARTS; i++) {
        if (!tls_write(&t->tls, m.parts[i].iov_base, m.parts[i].iov_len)) {
            return false;
        }
    }
    return expect_answer(t, a);
}

/* secure_ready() goes on with it, when hiredis is not beneath us. */
static void secure_connected(struct transport *t)
{
    t->securing = true;
}

/* The handshake has failed: hiredis has not sent anything. */
static void secure_failed(struct transport *t)
{
    struct redisAsyncContext *ac = t->ac;

    t->ac = NULL;
    t->securing = false;
    t->tls.ssl = NULL; /* hiredis frees it */
    redisAsyncFree(ac);
    t->events->ended(t->owner, t->tls.why, false);
}

static void secure_done(struct transport *t)
{
    t->securing = false;
    t->ac->ev.delWrite(t->ac->ev.data);
    t->ac->ev.addRead(t->ac->ev.data);
    t->events->connected(t->owner);
}

static void secure_step(struct transport *t)
{
    if (!t->tls.ssl && !tls_begin(&t->tls, t->address, &t->ac->c)) {
        secure_failed(t);
        return;
    }

    switch (tls_step(&t->tls)) {
    case TLS_READ:
        t->ac->ev.delWrite(t->ac->ev.data);
        t->ac->ev.addRead(t->ac->ev.data);
        break;
    case TLS_WRITE: t->ac->ev.addWrite(t->ac->ev.data); break;
    case TLS_DONE: secure_done(t); break;
    case TLS_FAILED: secure_failed(t); break;
    }
}

/* All may write there, and raise SIGPIPE. */
static void secure_ready(struct transport *t, int events)
{
    sigset_t before;

    sigpipe_hold(&before);
    tls_forget_errors();

    if (t->securing) {
        secure_step(t);
    } else if (events & EV_WRITE) {
        write_out(t);
        if (t->ac && t->securing) {
            secure_step(t);
        }
    } else {
        read_in(t);
    }

    sigpipe_release(&before, !t->ac);
}

static const struct transport_kind secure_kind = {secure_auth, secure_connected, secure_ready};
static const struct transport_kind *const secure = &secure_kind;
#else
static const struct transport_kind *const secure = NULL;
#endif

/* ---- what hiredis calls ---- */
static const char *hiredis_error(const struct redisAsyncContext *ac)
{
    if (ac->errstr && *ac->errstr) {
        return ac->errstr;
    }
    return ac->c.errstr[0] ? ac->c.errstr : "connection closed";
}

static void on_connect(const struct redisAsyncContext *ac, int status)
{
    struct transport *t = ac->data;
    int one = 1;
    unsigned patience_ms = (unsigned)t->reply_ms;

    if (t->ac != ac || t->stopped) {
        return; /* it is being closed: 1.x calls this then, too */
    }

    if (status != REDIS_OK) {
        t->ac = NULL;
        t->events->ended(t->owner, hiredis_error(ac), false);
        return;
    }

    if (ac->c.connection_type == REDIS_CONN_TCP) {
        setsockopt(ac->c.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        /* so that the kernel keeps trying no longer than we do */
        setsockopt(ac->c.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms, sizeof patience_ms);
    }

    t->kind->connected(t);
}

static void on_disconnect(const struct redisAsyncContext *ac, int status)
{
    struct transport *t = ac->data;

    (void)status;
    if (t->ac == ac) {
        const char *why = t->tls.ssl ? tls_error(&t->tls) : NULL;
        t->ac = NULL;
        t->tls.ssl = NULL; /* hiredis frees it */
        t->events->ended(t->owner, why ? why : hiredis_error(ac), ac->err == REDIS_ERR_PROTOCOL);
    }
}

static void on_ready(struct ev_loop *loop, ev_io *io, int events)
{
    struct redisAsyncContext *ac = ((redisLibevEvents *)io->data)->context;
    struct transport *t = ac->data;

    (void)loop;
    if (!t->stopped) {
        t->kind->ready(t, events);
    }
}

static redisLibevEvents *watchers(const struct transport *t)
{
    return t->ac->ev.data;
}

/* ---- what the owner calls ---- */
void transport_init(struct transport *t, struct ev_loop *loop, int64_t reply_ms,
                    const struct transport_events *events, void *owner)
{
    *t = (struct transport){
        .kind = &plain, .loop = loop, .reply_ms = reply_ms, .events = events, .owner = owner};
}

const char *transport_connect(struct transport *t, const struct address *a, const char *host)
{
    struct redisAsyncContext *ac;

    t->kind = a->tls ? secure : &plain;
    if (!t->kind) {
        return TLS_NEEDS;
    }
    t->address = a;
    ac = a->unix_socket ? redisAsyncConnectUnix(a->host) : redisAsyncConnect(host, a->port);

    if (!ac) {
        return "out of memory";
    }

    if (ac->err) {
        snprintf(t->error, sizeof t->error, "%s", hiredis_error(ac));
        redisAsyncFree(ac);
        return t->error;
    }

    fcntl(ac->c.fd, F_SETFD, FD_CLOEXEC);
    redisLibevAttach(t->loop, ac);
    ac->data = t;
    t->ac = ac;
    t->tls = (struct tls){.ssl = NULL};
    t->securing = false;
    t->stopped = false;
    t->blocked = false;
    ev_set_cb(&watchers(t)->rev, on_ready);
    ev_set_cb(&watchers(t)->wev, on_ready);
    redisAsyncSetConnectCallback(ac, on_connect);
    redisAsyncSetDisconnectCallback(ac, on_disconnect);

    return NULL;
}

bool transport_auth(struct transport *t, struct answer *a, const char *user, const char *password)
{
    return t->kind->auth(t, a, user, password);
}

/* Out of memory 0.14.1 sends a command whose callback it could not note: its answer would be taken
 * for the next one's. So we look, and write nothing more if that happened. */
bool transport_send(struct transport *t, struct answer *a, int argc, const char **argv,
                    const size_t *len)
{
    const redisCallback *last = t->ac->replies.tail;
    redisCallbackFn *fn = a ? on_answer : NULL;
    bool sent = redisAsyncCommandArgv(t->ac, fn, a, argc, argv, len) == REDIS_OK;
    bool noted = t->ac->replies.tail != last;

    if (sent && !noted) {
        transport_stop(t);
    }
    return sent && noted;
}

bool transport_subscribe(struct transport *t, struct answer *a, const char *verb,
                         const char *channel)
{
    return redisAsyncCommand(t->ac, on_answer, a, "%s %s", verb, channel) == REDIS_OK;
}

void transport_flush(struct transport *t)
{
    if (t->ac && !t->stopped && !t->blocked && watchers(t)->writing) {
        write_out(t);
    }
}

size_t transport_unwritten(const struct transport *t)
{
    return t->ac && t->ac->c.obuf ? sdslen(t->ac->c.obuf) : 0;
}

struct span transport_reason(const struct transport *t)
{
    return span_of(t->ac && t->ac->errstr ? t->ac->errstr : "");
}

const char *transport_lacks(const struct transport *t)
{
    return t->securing ? TLS_NO_ANSWER : "no answer";
}

void transport_stop(struct transport *t)
{
    t->stopped = true;
}

void transport_close(struct transport *t)
{
    struct redisAsyncContext *ac = t->ac;

    t->ac = NULL;
    if (ac) {
        t->tls.ssl = NULL;
        t->securing = false;
        redisAsyncFree(ac);
    }
}
