/* SPDX-License-Identifier: MIT */
#include "redis/conn.h"
#include "loop.h"
#include "scripted_server.h"
#include "test.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <ev.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { TIMEOUT_MS = 5000, REPLY_MS = 5000, FILL_MS = 200 };

static char password[] = "p";

/* A connection for commands, and the one that it carries. */
static struct asker {
    struct context context;
    struct endpoint endpoint;
    char host[100]; /* outlives the server */
    struct conn conn;
    struct call call;
    bool answered;
    bool down;
} asker;

static void on_answer(struct call *c, int err, const struct redisReply *reply)
{
    (void)c;
    cr_assert_eq(err, 0);
    cr_assert_not_null(reply);
    asker.answered = true;
}

static void on_up(void *arg)
{
    const char *ping = "PING";

    (void)arg;
    asker.call.end = on_answer;
    cr_assert(conn_send(&asker.conn, &asker.call, 1, &ping, NULL));
}

static void on_down(void *arg)
{
    (void)arg;
    asker.down = true;
}

static void asker_start_at(const char *host, bool unix_socket)
{
    static const struct conn_events events = {.up = on_up, .down = on_down};

    asker.context.loop = ev_loop_new(0);
    asker.context.options.reply_ms = REPLY_MS;
    endpoint_init(&asker.endpoint, &asker.context, &asker.endpoint.address);
    asker.endpoint.address.unix_socket = unix_socket;
    snprintf(asker.host, sizeof asker.host, "%s", host);
    asker.endpoint.address.host = asker.host;
    conn_init(&asker.conn, &asker.endpoint, CONN_COMMANDS, &events, NULL);
    conn_start(&asker.conn);
}

static void asker_start(const char *path)
{
    asker_start_at(path, true);
}

static void asker_end(void)
{
    conn_close(&asker.conn, LAPSE_ECLOSED);
    ev_loop_destroy(asker.context.loop);
}

static char logged[300];

static void note_line(int level, const char *line, void *arg)
{
    (void)level;
    (void)arg;
    snprintf(logged, sizeof logged, "%s", line);
}

static unsigned n_disconnects(void)
{
    return asker.context.health.reports[LAPSE_HEALTH_DISCONNECTED].in_a_row;
}

static bool is_disconnected_again(void *arg)
{
    return n_disconnects() > *(unsigned *)arg;
}

/* That a connection worked counts at most once a second: so each attempt comes seconds after the
 * one before. */
Test(conn, that_worked_does_not_make_attempts_after_it_count_as_the_first)
{
    struct scripted_server *s = scripted_server_start("+PONG\r\n", 7);

    asker_start(s->path);
    cr_assert(loop_until(asker.context.loop, is_true, &asker.answered, TIMEOUT_MS));

    scripted_server_stop(s); /* and its socket goes: connect(2) fails at once */
    cr_assert(loop_until(asker.context.loop, is_true, &asker.down, TIMEOUT_MS));
    cr_assert_eq(n_disconnects(), 1);
    cr_assert_eq(asker.conn.attempts.n_failed, 1);

    for (unsigned n = 1; n < 4; n++) {
        unit_pass_us(2000000);
        cr_assert(loop_until(asker.context.loop, is_disconnected_again, &n, TIMEOUT_MS));
        cr_assert_eq(asker.conn.attempts.n_failed, n + 1, "%u", asker.conn.attempts.n_failed);
    }

    asker_end();
}

/* A server that closes each connection at once, as one does that has too many. */
Test(conn, that_ends_before_its_password_is_sent_is_reported)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char dir[64];
    int client = -1;
    unsigned none = 0;

    asker.context.log.fn = note_line;
    test_dir(dir, sizeof dir);
    snprintf(at.sun_path, sizeof at.sun_path, "%s/door", dir);
    int door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    cr_assert(door >= 0 && bind(door, (struct sockaddr *)&at, sizeof at) == 0);
    cr_assert_eq(listen(door, 1), 0);

    asker.endpoint.address.password = password;
    asker_start(at.sun_path);
    while (client < 0) {
        ev_run(asker.context.loop, EVRUN_ONCE);
        client = accept(door, NULL, NULL);
    }
    close(client);
    cr_assert(loop_until(asker.context.loop, is_disconnected_again, &none, 2 * TIMEOUT_MS));
    cr_assert(strstr(logged, "could not be sent"), "%s", logged);

    asker_end();
    close(door);
    test_dir_remove(dir);
}

/* ---- a server that cannot keep up ---- */
/* Connects until no more connections are taken. */
static int fill_door(const struct sockaddr_in *at, int clients[], int most)
{
    int n = 0;
    struct pollfd p = {.revents = POLLOUT};

    while (n < most && p.revents) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        cr_assert_geq(fd, 0);
        clients[n++] = fd;
        connect(fd, (const struct sockaddr *)at, sizeof *at);
        p = (struct pollfd){.fd = fd, .events = POLLOUT};
        poll(&p, 1, FILL_MS);
    }

    return n;
}

/* The kernel drops what it sends to begin with, as a firewall may. */
Test(conn, that_nobody_answers_is_given_up_after_reply_ms)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int clients[16];
    unsigned none = 0;
    int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert(door >= 0 && bind(door, (struct sockaddr *)&at, sizeof at) == 0);
    cr_assert(listen(door, 0) == 0 && getsockname(door, (struct sockaddr *)&at, &len) == 0);
    int n = fill_door(&at, clients, 16);
    cr_assert_lt(n, 16);

    asker.context.log.fn = note_line;
    asker.endpoint.address.port = ntohs(at.sin_port);
    asker_start_at("127.0.0.1", false);
    while (asker.conn.state != CONN_CONNECTING) {
        ev_run(asker.context.loop, EVRUN_ONCE);
    }
    cr_assert_eq(n_disconnects(), 0);
    unit_pass_us(REPLY_MS * INT64_C(1000));
    cr_assert(loop_until(asker.context.loop, is_disconnected_again, &none, TIMEOUT_MS));
    cr_assert(strstr(logged, "cannot connect to Redis") && strstr(logged, "no answer"), "%s",
              logged);

    asker_end();
    for (int i = 0; i < n; i++) {
        close(clients[i]);
    }
    close(door);
}
