/* SPDX-License-Identifier: MIT */
#include "redis/conn.h"
#include "loop.h"
#include "scripted_server.h"
#include "test.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <ev.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { TIMEOUT_MS = 5000 };

static char password[] = "p";

/* A connection for commands, and the one that it carries. */
static struct asker {
    struct context context;
    struct endpoint endpoint;
    char socket[100]; /* outlives the server */
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

static void asker_start(const char *path)
{
    static const struct conn_events events = {.up = on_up, .down = on_down};

    asker.context.loop = ev_loop_new(0);
    asker.context.options.reply_ms = 5000;
    asker.endpoint.context = &asker.context;
    asker.endpoint.address.unix_socket = true;
    snprintf(asker.socket, sizeof asker.socket, "%s", path);
    asker.endpoint.address.host = asker.socket;
    conn_init(&asker.conn, &asker.endpoint, CONN_COMMANDS, &events, NULL);
    conn_start(&asker.conn);
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
