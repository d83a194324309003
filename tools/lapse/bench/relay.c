/* SPDX-License-Identifier: MIT */
#include "bench/relay.h"
#include "bench/delay_line.h"
#include "client/redis_sync.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

struct relay {
    const struct relay_plan *plan;
    struct ev_loop *loop;
};

/* ---- a connection ---- */
struct connection {
    int client, server;
    struct delay_line there, back;
};

static void connection_end(void *arg)
{
    struct connection *c = arg;

    delay_line_stop(&c->there);
    delay_line_stop(&c->back);
    close(c->client);
    close(c->server);
    free(c);
}

static void connection_start_line(struct connection *c, struct delay_line *d, const struct relay *r)
{
    bool is_there = d == &c->there;

    d->loop = r->loop;
    d->delay_us = r->plan->delay_us;
    d->from = is_there ? c->client : c->server;
    d->to = is_there ? c->server : c->client;
    d->ended = connection_end;
    d->arg = c;
    delay_line_start(d);
}

static bool connection_begin(const struct relay *r, int client, int server)
{
    struct connection *c = malloc(sizeof *c);

    if (!c) {
        return false;
    }

    c->client = client;
    c->server = server;
    connection_start_line(c, &c->there, r);
    connection_start_line(c, &c->back, r);

    return true;
}

/* ---- the relay ---- */
static bool set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

static void on_client(struct ev_loop *loop, ev_io *w, int events)
{
    const struct relay *r = w->data;
    int client = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    (void)loop;
    (void)events;
    if (client < 0) {
        return;
    }

    int server = redis_sync_dial(&r->plan->server);
    bool ok = server >= 0 && set_nonblocking(server) && connection_begin(r, client, server);
    if (!ok) { /* which a client takes for a Redis that is down */
        close(client);
    }
    if (!ok && server >= 0) {
        close(server);
    }
}

static void on_leash(struct ev_loop *loop, ev_io *w, int events)
{
    (void)w;
    (void)events;
    ev_break(loop, EVBREAK_ALL);
}

/* Each connection takes four descriptors. */
static void allow_many_descriptors(void)
{
    struct rlimit limit;

    if (!getrlimit(RLIMIT_NOFILE, &limit)) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

bool relay_run(const struct relay_plan *plan)
{
    struct relay relay = {.plan = plan, .loop = ev_loop_new(EVFLAG_AUTO)};
    ev_io client;
    ev_io leash;

    if (!relay.loop) {
        return false;
    }

    allow_many_descriptors();
    ev_io_init(&client, on_client, plan->listening, EV_READ);
    ev_io_init(&leash, on_leash, plan->leash, EV_READ);
    client.data = &relay;
    ev_io_start(relay.loop, &client);
    ev_io_start(relay.loop, &leash);
    ev_run(relay.loop, 0);

    return true;
}
