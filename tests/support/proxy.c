/* SPDX-License-Identifier: MIT */
/* A forked child carries bytes between clients and the server's socket, as badly as it is told to in shared memory. */
#include "support.h"
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

struct proxy_ctl {
    atomic_long asked, seen;      /* changes told, changes in force */
    atomic_long cut[2], cut_conn; /* bytes still to pass; -1: no end */
    atomic_long swallow_conn;
    atomic_long bytes[2], conns;               /* counted */
    atomic_int swallow, refuse, delay, jitter; /* ms */
    atomic_int drop, half_close;               /* once */
};

enum { MAX_CONNS = 64, PIECE = 65536 };
struct pipe_end {
    int from, to;
    size_t n;         /* bytes of the piece in hand */
    int64_t ready_at; /* when it may go on */
    char piece[PIECE];
};
static struct conn {
    long number; /* 1: the first; 0: free */
    struct pipe_end way[2];
} conns[MAX_CONNS]; /* the child's */

static void cut(struct conn *c)
{
    close(c->way[PROXY_UP].from);
    close(c->way[PROXY_UP].to);
    c->number = 0;
}

static bool write_all(int fd, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t done = send(fd, data, n, MSG_NOSIGNAL);
        if (done <= 0)
            return false;
        data += done;
        n -= (size_t)done;
    }
    return true;
}

static void accept_one(struct proxy_ctl *ctl, int listener, const struct sockaddr_un *server)
{
    int client = accept(listener, NULL, NULL);
    size_t i = 0;
    while (i < MAX_CONNS && conns[i].number)
        i++;
    int up = socket(AF_UNIX, SOCK_STREAM, 0);
    atomic_fetch_add(&ctl->conns, 1);
    if (client < 0 || i == MAX_CONNS || ctl->refuse || connect(up, (const struct sockaddr *)server, sizeof *server)) {
        close(client);
        close(up);
        return;
    }
    conns[i].number = ctl->conns;
    conns[i].way[PROXY_UP].from = conns[i].way[PROXY_DOWN].to = client;
    conns[i].way[PROXY_UP].to = conns[i].way[PROXY_DOWN].from = up;
    conns[i].way[PROXY_UP].n = conns[i].way[PROXY_DOWN].n = 0;
}

/* Passes the piece in hand on; false: the connection is to be cut. */
static bool pass(struct proxy_ctl *ctl, struct conn *c, enum proxy_way way)
{
    struct pipe_end *e = &c->way[way];
    size_t n = e->n;
    bool counts = ctl->cut[way] >= 0 && (!ctl->cut_conn || ctl->cut_conn == c->number);
    bool last = counts && (long)n >= ctl->cut[way];
    if (last)
        n = (size_t)ctl->cut[way];
    e->n = 0;
    atomic_fetch_add(&ctl->bytes[way], (long)n);
    if (counts)
        ctl->cut[way] = last ? -1 : ctl->cut[way] - (long)n;
    return write_all(e->to, e->piece, n) && !last;
}

static void obey(struct proxy_ctl *ctl, int wake)
{
    uint64_t n;
    if (read(wake, &n, sizeof n) != sizeof n)
        return;
    long asked = ctl->asked;
    bool drop = atomic_exchange(&ctl->drop, 0), half = atomic_exchange(&ctl->half_close, 0);
    for (struct conn *c = conns; c < conns + MAX_CONNS; c++) {
        if (c->number && half)
            shutdown(c->way[PROXY_DOWN].to, SHUT_WR);
        if (c->number && drop)
            cut(c);
    }
    ctl->seen = asked;
}

static void serve(struct proxy_ctl *ctl, int wake, const int listener[2], const struct sockaddr_un *server)
{
    for (;;) {
        struct pollfd fds[3 + 2 * MAX_CONNS] = {{wake, POLLIN, 0}, {listener[0], POLLIN, 0}, {listener[1], POLLIN, 0}};
        int64_t now = test_now_ms(), wait = -1;
        for (size_t i = 0; i < 2UL * MAX_CONNS; i++) {
            struct conn *c = &conns[i / 2];
            struct pipe_end *e = &c->way[i % 2];
            fds[3 + i].fd = c->number && !e->n ? e->from : -1;
            fds[3 + i].events = POLLIN;
            if (c->number && e->n && (wait < 0 || e->ready_at - now < wait))
                wait = e->ready_at > now ? e->ready_at - now : 0;
        }
        poll(fds, sizeof fds / sizeof *fds, (int)wait);
        now = test_now_ms();
        for (size_t i = 0; i < 2UL * MAX_CONNS; i++) {
            struct conn *c = &conns[i / 2];
            struct pipe_end *e = &c->way[i % 2];
            if (c->number && fds[3 + i].fd >= 0 && fds[3 + i].revents) {
                ssize_t n = read(e->from, e->piece, PIECE);
                bool gone = ctl->swallow && (!ctl->swallow_conn || ctl->swallow_conn == c->number);
                e->n = n > 0 && !gone ? (size_t)n : 0;
                e->ready_at = now + ctl->delay + (ctl->jitter ? random() % (2 * ctl->jitter + 1) - ctl->jitter : 0);
                if (n <= 0)
                    cut(c);
            }
            if (c->number && e->n && e->ready_at <= now && !pass(ctl, c, i % 2))
                cut(c);
        }
        for (int i = 0; i < 2; i++)
            if (fds[1 + i].revents)
                accept_one(ctl, listener[i], server);
        if (fds[0].revents)
            obey(ctl, wake);
    }
}

struct proxy *proxy_start(struct server *s)
{
    struct proxy *p = calloc(1, sizeof *p);
    cr_assert(p);
    p->ctl = mmap(NULL, sizeof *p->ctl, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    p->wake = eventfd(0, EFD_CLOEXEC);
    cr_assert(p->ctl != MAP_FAILED && p->wake >= 0);
    p->ctl->cut[PROXY_UP] = p->ctl->cut[PROXY_DOWN] = -1;

    struct sockaddr_un un = {.sun_family = AF_UNIX}, server = {.sun_family = AF_UNIX};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    snprintf(un.sun_path, sizeof un.sun_path, "%s/proxy%d", s->dir, s->n_proxies++);
    snprintf(server.sun_path, sizeof server.sun_path, "%s", s->socket);
    int fd[2] = {socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    cr_assert(!bind(fd[0], (struct sockaddr *)&un, sizeof un) && !listen(fd[0], 64));
    cr_assert(!bind(fd[1], (struct sockaddr *)&in, len) && !listen(fd[1], 64));
    cr_assert(!getsockname(fd[1], (struct sockaddr *)&in, &len));
    snprintf(p->url, sizeof p->url, "unix://%s%s", server_login(), un.sun_path);
    snprintf(p->tcp_url, sizeof p->tcp_url, "redis://%s127.0.0.1:%d", server_login(), ntohs(in.sin_port));

    pid_t parent = getpid();
    p->pid = fork();
    cr_assert(p->pid >= 0);
    if (p->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* a copy of the test's sockets would keep them open after the test closed them */
        for (int i = 3; i < 1024; i++)
            if (i != p->wake && i != fd[0] && i != fd[1])
                close(i);
        if (getppid() == parent)
            serve(p->ctl, p->wake, fd, &server);
        _exit(0);
    }
    close(fd[0]);
    close(fd[1]);
    return p;
}

static void tell(struct proxy *p)
{
    long asked = atomic_fetch_add(&p->ctl->asked, 1) + 1;
    uint64_t one = 1;
    cr_assert(write(p->wake, &one, sizeof one) == sizeof one);
    while (p->ctl->seen < asked)
        poll(NULL, 0, 1);
}

void proxy_cut_after(struct proxy *p, enum proxy_way way, long bytes)
{
    p->ctl->cut[way] = bytes;
    tell(p);
}

void proxy_cut_conn(struct proxy *p, long n)
{
    p->ctl->cut_conn = n;
    tell(p);
}

void proxy_drop(struct proxy *p)
{
    p->ctl->drop = 1;
    tell(p);
}

void proxy_half_close(struct proxy *p)
{
    p->ctl->half_close = 1;
    tell(p);
}

void proxy_swallow(struct proxy *p, bool on)
{
    p->ctl->swallow = on;
    tell(p);
}

void proxy_swallow_conn(struct proxy *p, long n)
{
    p->ctl->swallow_conn = n;
    tell(p);
}

void proxy_refuse(struct proxy *p, bool on)
{
    p->ctl->refuse = on;
    tell(p);
}

void proxy_delay(struct proxy *p, int ms)
{
    p->ctl->delay = ms;
    tell(p);
}

void proxy_jitter(struct proxy *p, int ms)
{
    p->ctl->jitter = ms;
    tell(p);
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
    if (!p)
        return;
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
    munmap(p->ctl, sizeof *p->ctl);
    close(p->wake);
    free(p);
}
