/* SPDX-License-Identifier: MIT */
/* A forked child carries bytes between clients and the server's socket, as badly as the settings
 * in shared memory say. */
#include "child.h"
#include "proxy.h"
#include "test.h"
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct proxy_ctl {
    atomic_long asked, seen;      /* changes that were asked for, and those in force */
    atomic_long cut[2], cut_conn; /* bytes still to pass; -1: no end */
    atomic_long swallow_conn;
    atomic_long bytes[2], conns; /* counted */
    atomic_long delay_us[2], jitter_us;
    atomic_int streams; /* several pieces are on a way at a time */
    atomic_int swallow, refuse;
    atomic_int drop, half_close, heal; /* once */
    atomic_int hold, held;             /* held: all connections are */
    char socket[108];                  /* of the server; written before asked */
    int tls_port;                      /* of the server; 0: to its socket */
};

enum { MAX_CONNS = 64, MAX_PIECES = 1024, PIECE = 65536, MAX_BYTES = 4 * PIECE };
struct piece {
    size_t n;         /* bytes */
    int64_t ready_us; /* when it may go on */
};
struct pipe_end {
    int from, to;
    /* on its way: a ring of pieces; their bytes, which begin at start */
    struct piece pieces[MAX_PIECES];
    size_t first, n_pieces, start, n_bytes;
    char bytes[MAX_BYTES];
};
/* How far in a command, or between two: what a client may say is an array of texts. */
struct reader {
    char kind; /* '*' or '$': its number is being read; 0: none is */
    long number, texts, skip;
    char name[12]; /* the command's */
    size_t name_len;
};
enum stillness { FLOWS, ASKED, STILL }; /* ASKED: for an echo, the last answer */
struct conn {
    long number; /* 1: the first; 0: free */
    struct pipe_end way[2];
    struct reader reader;
    enum stillness still;
    char *rest; /* answers before the echo */
    size_t rest_len;
};
/* The child's own: LeakSanitizer reads static data at the end of each test, and this is 36 MB. */
static struct conn *conns;

static const char ECHO[] = "*2\r\n$4\r\nECHO\r\n$10\r\nall is out\r\n",
                  ECHOED[] = "$10\r\nall is out\r\n";

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- a way ---- */
static const struct piece *way_first(const struct pipe_end *e)
{
    return &e->pieces[e->first];
}

static bool way_has_room(const struct proxy_ctl *ctl, const struct pipe_end *e)
{
    if (!ctl->streams) {
        return e->n_pieces == 0;
    }
    return e->n_pieces < MAX_PIECES && e->n_bytes <= MAX_BYTES - PIECE;
}

/* Where the next piece is put. */
static char *way_room(struct pipe_end *e)
{
    if (e->start + e->n_bytes > MAX_BYTES - PIECE) {
        memmove(e->bytes, e->bytes + e->start, e->n_bytes);
        e->start = 0;
    }
    return e->bytes + e->start + e->n_bytes;
}

/* A piece that was put there; none overtakes another. */
static void way_add(struct pipe_end *e, size_t n, int64_t ready_us)
{
    const struct piece *last = &e->pieces[(e->first + e->n_pieces - 1) % MAX_PIECES];

    if (e->n_pieces > 0 && last->ready_us > ready_us) {
        ready_us = last->ready_us;
    }
    e->pieces[(e->first + e->n_pieces) % MAX_PIECES] = (struct piece){n, ready_us};
    e->n_pieces++;
    e->n_bytes += n;
}

/* So many bytes of the first piece have gone on. */
static void way_take(struct pipe_end *e, size_t n)
{
    struct piece *first = &e->pieces[e->first];

    first->n -= n;
    e->start += n;
    e->n_bytes -= n;
    if (first->n == 0) {
        e->first = (e->first + 1) % MAX_PIECES;
        e->n_pieces--;
    }
}

/* ---- a connection ---- */
static void conn_cut(struct conn *c)
{
    close(c->way[PROXY_UP].from);
    close(c->way[PROXY_UP].to);
    free(c->rest);
    c->number = 0;
    c->reader = (struct reader){0};
    c->still = FLOWS;
    c->rest = NULL;
    c->rest_len = 0;
}

static bool write_all(int fd, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t done = send(fd, data, n, MSG_NOSIGNAL);
        if (done <= 0) {
            return false;
        }
        data += done;
        n -= (size_t)done;
    }

    return true;
}

static bool reader_is_between(const struct reader *r)
{
    return !r->kind && !r->texts && !r->skip;
}

/* So many bytes of it, up to the end of a command if it is to stop there. */
static size_t reader_read(struct reader *r, const char *at, size_t n, bool stop)
{
    for (size_t i = 0; i < n; i++) {
        if (stop && reader_is_between(r)) {
            return i;
        }
        if (r->skip) {
            if (r->name_len < sizeof r->name - 1) {
                r->name[r->name_len++] = at[i];
            }
            r->skip--;
        } else if (!r->kind) {
            r->name_len = r->texts ? r->name_len : 0;
            r->kind = at[i];
            r->number = 0;
        } else if (at[i] >= '0' && at[i] <= '9') {
            r->number = 10 * r->number + at[i] - '0';
        } else if (at[i] == '\n') {
            r->skip = r->kind == '$' ? r->number + 2 : 0;
            r->texts = r->kind == '$' ? r->texts - 1 : r->number;
            r->kind = 0;
        }
    }

    return n;
}

static bool reader_subscribes(const struct reader *r)
{
    return memmem(r->name, r->name_len, "SUBSCRIBE", 9) != NULL;
}

/* Between two commands, sends an ECHO behind all that the client sent. */
static bool conn_quieten(struct conn *c)
{
    if (c->still != FLOWS || !reader_is_between(&c->reader)) {
        return true;
    }
    if (reader_subscribes(&c->reader)) {
        return false;
    }

    c->still = ASKED;
    return write_all(c->way[PROXY_UP].to, ECHO, sizeof ECHO - 1);
}

/* The analyzer of gcc takes what realloc() moved for a leak. */
#if defined __GNUC__ && !defined __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
/* Keeps its answers until the echo is there. */
static bool conn_keep_answer(struct conn *c, const char *at, size_t n)
{
    size_t echo = sizeof ECHOED - 1;
    char *rest = realloc(c->rest, c->rest_len + n);

    if (!rest) {
        abort();
    }

    c->rest = rest;
    memcpy(c->rest + c->rest_len, at, n);
    c->rest_len += n;
    if (c->rest_len < echo || memcmp(c->rest + c->rest_len - echo, ECHOED, echo) != 0) {
        return true;
    }

    bool ok = write_all(c->way[PROXY_DOWN].to, c->rest, c->rest_len - echo);
    c->rest_len = 0;
    c->still = STILL;
    return ok;
}
#if defined __GNUC__ && !defined __clang__
#pragma GCC diagnostic pop
#endif

static struct sockaddr_un proxy_target(const struct proxy_ctl *ctl)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    memcpy(un.sun_path, ctl->socket, sizeof un.sun_path);
    return un;
}

static int proxy_dial_tls(int port)
{
    struct sockaddr_in server = {.sin_family = AF_INET,
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                 .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (!connect(fd, (struct sockaddr *)&server, sizeof server)) {
        return fd;
    }
    close(fd);
    return -1;
}

static int proxy_dial(const struct proxy_ctl *ctl)
{
    if (ctl->tls_port) {
        return proxy_dial_tls(ctl->tls_port);
    }

    struct sockaddr_un server = proxy_target(ctl);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    if (!connect(fd, (struct sockaddr *)&server, sizeof server)) {
        return fd;
    }
    close(fd);
    return -1;
}

static void proxy_accept(struct proxy_ctl *ctl, int listener)
{
    int client = accept(listener, NULL, NULL);
    size_t i = 0;

    while (i < MAX_CONNS && conns[i].number) {
        i++;
    }

    int up = proxy_dial(ctl);
    atomic_fetch_add(&ctl->conns, 1);

    if (client < 0 || i == MAX_CONNS || ctl->refuse || up < 0) {
        close(client);
        close(up);
        return;
    }

    conns[i].number = ctl->conns;
    conns[i].way[PROXY_UP].from = conns[i].way[PROXY_DOWN].to = client;
    conns[i].way[PROXY_UP].to = conns[i].way[PROXY_DOWN].from = up;
    conns[i].way[PROXY_UP].n_pieces = conns[i].way[PROXY_DOWN].n_pieces = 0;
    conns[i].way[PROXY_UP].n_bytes = conns[i].way[PROXY_DOWN].n_bytes = 0;
}

/* Passes the first piece of a way on; false: the connection is to be cut. */
static bool conn_pass(struct proxy_ctl *ctl, struct conn *c, enum proxy_way way)
{
    struct pipe_end *e = &c->way[way];
    const char *bytes = e->bytes + e->start;
    size_t n = way_first(e)->n;
    size_t whole = way == PROXY_UP ? reader_read(&c->reader, bytes, n, ctl->hold) : n;

    if (c->still == ASKED && way == PROXY_DOWN) {
        way_take(e, n);
        return conn_keep_answer(c, bytes, n);
    }

    way_take(e, whole);
    if (whole < n) { /* the rest waits */
        return write_all(e->to, bytes, whole);
    }

    bool counts = ctl->cut[way] >= 0 && (!ctl->cut_conn || ctl->cut_conn == c->number);
    bool last = counts && (long)n >= ctl->cut[way];
    if (last) {
        n = (size_t)ctl->cut[way];
    }

    atomic_fetch_add(&ctl->bytes[way], (long)n);
    if (counts) {
        ctl->cut[way] = last ? -1 : ctl->cut[way] - (long)n;
    }

    return write_all(e->to, bytes, n) && !last;
}

/* Goes on with another server. */
static void conn_move(struct proxy_ctl *ctl, struct conn *c)
{
    int up = proxy_dial(ctl);
    close(c->way[PROXY_UP].to);
    c->way[PROXY_UP].to = c->way[PROXY_DOWN].from = up;
}

static void proxy_obey(struct proxy_ctl *ctl, int wake, struct sockaddr_un *aim)
{
    uint64_t n;

    if (read(wake, &n, sizeof n) != sizeof n) {
        return;
    }

    long asked = ctl->asked;
    struct sockaddr_un now = proxy_target(ctl);
    bool moved = memcmp(&now, aim, sizeof now) != 0;
    *aim = now;

    bool heal = atomic_exchange(&ctl->heal, 0);
    bool drop = atomic_exchange(&ctl->drop, 0) || heal;
    bool half = atomic_exchange(&ctl->half_close, 0);
    if (heal) {
        ctl->swallow = 0;
    }

    for (struct conn *c = conns; c < conns + MAX_CONNS; c++) {
        if (c->number && half) {
            shutdown(c->way[PROXY_DOWN].to, SHUT_WR);
        }
        if (c->number && moved && c->still == STILL) {
            conn_move(ctl, c);
        }
        if (c->number && !ctl->hold) {
            c->still = FLOWS;
        }
        if (c->number && drop) {
            conn_cut(c);
        }
    }

    ctl->seen = asked;
}

/* Each that can be stopped is stopped; are all? */
static bool conns_quieten(void)
{
    bool all = true;

    for (struct conn *c = conns; c < conns + MAX_CONNS; c++) {
        if (c->number && !conn_quieten(c)) {
            conn_cut(c);
        }
        all = all && (!c->number || c->still == STILL);
    }
    return all;
}

/* What a client sends while it is held waits. */
static bool conn_waits(const struct proxy_ctl *ctl, const struct conn *c, size_t way)
{
    return ctl->hold && way == PROXY_UP && c->still != FLOWS;
}

static void conn_take_piece(const struct proxy_ctl *ctl, struct conn *c, enum proxy_way way,
                            int64_t at_us)
{
    struct pipe_end *e = &c->way[way];
    bool swallowed = ctl->swallow && (!ctl->swallow_conn || ctl->swallow_conn == c->number);
    long jitter_us = ctl->jitter_us ? random() % (2 * ctl->jitter_us + 1) - ctl->jitter_us : 0;
    ssize_t n = read(e->from, way_room(e), PIECE);

    if (n <= 0) {
        conn_cut(c);
    } else if (!swallowed) {
        way_add(e, (size_t)n, at_us + ctl->delay_us[way] + jitter_us);
    }
}

struct duty {
    struct proxy_ctl *ctl;
    int wake;
    int listener[2];
};

/* How long until the next piece of all may go on; -1: there is none. */
static int64_t conns_next_ready(const struct proxy_ctl *ctl, int64_t at_us)
{
    int64_t wait_us = -1;

    for (size_t i = 0; i < 2UL * MAX_CONNS; i++) {
        const struct conn *c = &conns[i / 2];
        const struct pipe_end *e = &c->way[i % 2];
        if (!c->number || !e->n_pieces || conn_waits(ctl, c, i % 2)) {
            continue;
        }
        int64_t ready_us = way_first(e)->ready_us;
        int64_t left_us = ready_us > at_us ? ready_us - at_us : 0;
        if (wait_us < 0 || left_us < wait_us) {
            wait_us = left_us;
        }
    }

    return wait_us;
}

static void proxy_poll(const struct proxy_ctl *ctl, struct pollfd *fds, nfds_t n)
{
    int64_t wait_us = conns_next_ready(ctl, now_us());
    struct timespec wait = {wait_us / 1000000, wait_us % 1000000 * 1000};

    ppoll(fds, n, wait_us < 0 ? NULL : &wait, NULL);
}

static void conns_serve(struct proxy_ctl *ctl, const struct pollfd *fds, int64_t at_us)
{
    for (size_t i = 0; i < 2UL * MAX_CONNS; i++) {
        struct conn *c = &conns[i / 2];
        struct pipe_end *e = &c->way[i % 2];

        if (c->number && fds[i].fd >= 0 && fds[i].revents) {
            conn_take_piece(ctl, c, i % 2, at_us);
        }
        if (c->number && e->n_pieces && !conn_waits(ctl, c, i % 2) &&
            way_first(e)->ready_us <= at_us && !conn_pass(ctl, c, i % 2)) {
            conn_cut(c);
        }
    }
}

static void proxy_serve(void *arg)
{
    struct duty *d = arg;
    struct proxy_ctl *ctl = d->ctl;
    struct sockaddr_un aim = proxy_target(ctl);

    conns = shared_new(MAX_CONNS * sizeof *conns);
    prctl(PR_SET_TIMERSLACK, 1); /* ns */
    for (;;) {
        struct pollfd fds[3 + 2 * MAX_CONNS] = {{d->wake, POLLIN, 0}};

        ctl->held = ctl->hold && conns_quieten();
        for (int i = 0; i < 2; i++) {
            fds[1 + i] = (struct pollfd){ctl->hold ? -1 : d->listener[i], POLLIN, 0};
        }
        for (size_t i = 0; i < 2UL * MAX_CONNS; i++) {
            const struct conn *c = &conns[i / 2];
            const struct pipe_end *e = &c->way[i % 2];
            bool reads = c->number && way_has_room(ctl, e);
            fds[3 + i] = (struct pollfd){reads ? e->from : -1, POLLIN, 0};
        }

        proxy_poll(ctl, fds, sizeof fds / sizeof *fds);
        conns_serve(ctl, fds + 3, now_us());

        for (int i = 0; i < 2; i++) {
            if (fds[1 + i].revents) {
                proxy_accept(ctl, d->listener[i]);
            }
        }
        if (fds[0].revents) {
            proxy_obey(ctl, d->wake, &aim);
        }
    }
}

/* ---- in the test ---- */
static int listen_unix(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    cr_assert(!bind(fd, (struct sockaddr *)&at, sizeof at) && !listen(fd, 64));
    return fd;
}

/* On a free port of 127.0.0.1. */
static int listen_tcp(int *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert(!bind(fd, (struct sockaddr *)&at, len) && !listen(fd, 64));
    cr_assert(!getsockname(fd, (struct sockaddr *)&at, &len));
    *port = ntohs(at.sin_port);
    return fd;
}

struct proxy *proxy_start(struct server *s)
{
    struct proxy *p = calloc(1, sizeof *p);
    char path[100];
    int port;

    cr_assert(p);
    p->wake = eventfd(0, EFD_CLOEXEC);
    cr_assert_geq(p->wake, 0);
    p->ctl = shared_new(sizeof *p->ctl);
    p->ctl->cut[PROXY_UP] = p->ctl->cut[PROXY_DOWN] = -1;
    snprintf(p->ctl->socket, sizeof p->ctl->socket, "%s", s->socket);
    p->ctl->tls_port = s->tls_port;

    snprintf(path, sizeof path, "%s/proxy%d", s->dir, s->n_proxies++);
    struct duty duty = {p->ctl, p->wake, {listen_unix(path), listen_tcp(&port)}};
    snprintf(p->url, sizeof p->url, "unix://%s%s", server_login(), path);
    snprintf(p->tcp_url, sizeof p->tcp_url, "redis://%s127.0.0.1:%d", server_login(), port);

    const int kept[] = {p->wake, duty.listener[0], duty.listener[1], -1};
    p->pid = child_start(proxy_serve, &duty, kept);
    close(duty.listener[0]);
    close(duty.listener[1]);

    return p;
}

static void proxy_tell(struct proxy *p)
{
    long asked = atomic_fetch_add(&p->ctl->asked, 1) + 1;
    uint64_t one = 1;

    cr_assert(write(p->wake, &one, sizeof one) == sizeof one);
    while (p->ctl->seen < asked) {
        poll(NULL, 0, 1);
    }
}

void proxy_cut_after(struct proxy *p, enum proxy_way way, long bytes)
{
    p->ctl->cut[way] = bytes;
    proxy_tell(p);
}

long proxy_cut_left(struct proxy *p, enum proxy_way way)
{
    return p->ctl->cut[way];
}

void proxy_cut_conn(struct proxy *p, long n)
{
    p->ctl->cut_conn = n;
    proxy_tell(p);
}

void proxy_drop(struct proxy *p)
{
    p->ctl->drop = 1;
    proxy_tell(p);
}

void proxy_half_close(struct proxy *p)
{
    p->ctl->half_close = 1;
    proxy_tell(p);
}

void proxy_swallow(struct proxy *p, bool on)
{
    p->ctl->swallow = on;
    proxy_tell(p);
}

void proxy_heal(struct proxy *p)
{
    p->ctl->heal = 1;
    proxy_tell(p);
}

void proxy_swallow_conn(struct proxy *p, long n)
{
    p->ctl->swallow_conn = n;
    proxy_tell(p);
}

void proxy_refuse(struct proxy *p, bool on)
{
    p->ctl->refuse = on;
    proxy_tell(p);
}

void proxy_delay(struct proxy *p, int ms)
{
    p->ctl->streams = 0;
    p->ctl->delay_us[PROXY_UP] = p->ctl->delay_us[PROXY_DOWN] = ms * 1000L;
    proxy_tell(p);
}

void proxy_network(struct proxy *p, long up_us, long down_us, long jitter_us)
{
    p->ctl->streams = 1;
    p->ctl->delay_us[PROXY_UP] = up_us;
    p->ctl->delay_us[PROXY_DOWN] = down_us;
    p->ctl->jitter_us = jitter_us;
    proxy_tell(p);
}

void proxy_aim(struct proxy *p, struct server *s)
{
    memset(p->ctl->socket, 0, sizeof p->ctl->socket);
    strcpy(p->ctl->socket, s->socket);
    proxy_tell(p);
}

void proxy_hold(struct proxy *p, bool on)
{
    p->ctl->hold = on;
    proxy_tell(p);
    for (int64_t end_ms = test_now_ms() + 20000; on && !p->ctl->held; poll(NULL, 0, 1)) {
        cr_assert_lt(test_now_ms(), end_ms, "what was asked is not answered");
    }
}

void proxy_jitter(struct proxy *p, int ms)
{
    p->ctl->jitter_us = ms * 1000L;
    proxy_tell(p);
}

long proxy_conns(struct proxy *p)
{
    return p->ctl->conns;
}

long proxy_bytes(struct proxy *p, enum proxy_way way)
{
    return p->ctl->bytes[way];
}

void proxy_stop(struct proxy *p)
{
    if (!p) {
        return;
    }

    child_kill(p->pid);
    shared_free(p->ctl, sizeof *p->ctl);
    close(p->wake);
    free(p);
}
