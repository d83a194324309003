/* SPDX-License-Identifier: MIT */
/* A private redis-server on a Unix socket. What it shares with a private cluster: the command line
 * of a server, its log, and the start and end of all. */
#include "dev/private_redis.h"
#include "cli/arguments.h"
#include "cli/message.h"
#include "cli/values.h"
#include "dev/private_conf.h"
#include "listen/spawn.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { READY_MS = 10000, POLL_MS = 3, ARGUMENTS = 48 };

/* ---- the command line ---- */
struct command_line {
    const char *argv[ARGUMENTS];
    int n;
    char conf[PRIVATE_PATH];
    char socket[PRIVATE_PATH + 12];
    char port[8];
    char bus_port[8];
};

static void add_option(struct command_line *l, const char *name, const char *value)
{
    l->argv[l->n++] = name;
    l->argv[l->n++] = value;
}

static void command_line_of(struct command_line *l, const struct private_redis *r,
                            const struct private_server *s)
{
    snprintf(l->conf, sizeof l->conf, "%s/redis.conf", r->dir);
    snprintf(l->socket, sizeof l->socket, "%s/redis.sock", s->dir);
    snprintf(l->port, sizeof l->port, "%d", s->port);
    snprintf(l->bus_port, sizeof l->bus_port, "%d", s->bus_port);

    l->n = 0;
    add_option(l, "redis-server", l->conf);
    add_option(l, "--port", l->port);
    add_option(l, "--unixsocket", l->socket);
    add_option(l, "--unixsocketperm", "600");
    add_option(l, "--dir", s->dir);
    add_option(l, "--daemonize", "no");
    add_option(l, "--supervised", "no");
    add_option(l, "--pidfile", "");
    add_option(l, "--logfile", "");
    if (s->port) {
        add_option(l, "--bind", "127.0.0.1");
        add_option(l, "--cluster-enabled", "yes");
        add_option(l, "--cluster-port", l->bus_port);
        add_option(l, "--cluster-config-file", "nodes.conf");
        add_option(l, "--cluster-node-timeout", "2000");
        add_option(l, "--cluster-require-full-coverage", "no");
        add_option(l, "--repl-diskless-sync-delay", "0");
        add_option(l, "--shutdown-timeout", "0");
    }
    l->argv[l->n] = NULL;
}

/* ---- the folder ---- */
static int find_server_program(void)
{
    char *program = find_program("redis-server");

    if (!program) {
        message_print("redis-server not found in PATH; on Debian: apt-get install redis-server");
        return DOWN;
    }

    free(program);
    return 0;
}

int private_redis_prepare(struct private_redis *r, const char *conf, const char *more)
{
    char path[PRIVATE_PATH];
    int rc = find_server_program();
    int fd = rc ? -1 : private_conf_open(conf);
    int err = 0;

    if (fd < 0) {
        return rc ? rc : USAGE;
    }

    rc = private_folder_make(r->dir, "the private Redis");
    if (!rc) {
        snprintf(path, sizeof path, "%s/redis.conf", r->dir);
        err = private_conf_copy(fd, path, more);
    }
    close(fd);

    if (err) {
        private_folder_remove(r->dir);
        rc = usage_error("--conf", conf ? conf : "redis.conf", strerror(err));
    }

    return rc;
}

/* ---- the servers ---- */
int private_redis_launch(struct private_redis *r)
{
    struct command_line lines[JANITOR_SERVERS];
    struct janitor_server servers[JANITOR_SERVERS];
    int rc;

    for (int i = 0; i < r->n; i++) {
        command_line_of(&lines[i], r, &r->servers[i]);
        servers[i] = (struct janitor_server){.dir = r->servers[i].dir, .argv = lines[i].argv};
    }

    r->n_running = r->n;
    rc = janitor_start(&r->janitor, r->dir, servers, r->n);
    if (rc) {
        private_folder_remove(r->dir);
    }

    return rc;
}

int private_redis_heard(struct private_redis *r)
{
    int which = janitor_heard(&r->janitor);

    if (which >= 0) {
        r->n_running--;
    } else if (which == JANITOR_ALL_ENDED) {
        r->n_running = 0;
    }
    return which;
}

static void print_log(const struct private_server *s)
{
    char path[PRIVATE_PATH + 12];
    char line[300];
    FILE *log;

    snprintf(path, sizeof path, "%s/redis.log", s->dir);
    log = fopen(path, "re");
    if (!log) {
        return;
    }

    while (fgets(line, sizeof line, log)) {
        line[strcspn(line, "\n")] = '\0';
        if (*line) {
            message_print("redis-server: %s", printable(line));
        }
    }

    fclose(log);
}

int private_redis_give_up(struct private_redis *r, int which)
{
    message_print("the private redis-server did not start:");
    print_log(&r->servers[which > 0 ? which : 0]);
    private_redis_stop(r);

    return DOWN;
}

void private_redis_pause(void)
{
    nanosleep(&(struct timespec){0, POLL_MS * 1000000L}, NULL);
}

void private_redis_stop(struct private_redis *r)
{
    janitor_stop(&r->janitor);
    private_folder_remove(r->dir); /* in case the janitor was killed */
}

/* ---- one alone ---- */
static bool server_answers(const struct private_redis *r)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool answers;

    snprintf(to.sun_path, sizeof to.sun_path, "%s/redis.sock", r->dir);
    answers = fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof to);
    close(fd);

    return answers;
}

int private_redis_start(struct private_redis *r, const char *conf)
{
    int rc = private_redis_prepare(r, conf, "");
    int heard = JANITOR_SILENT;

    if (rc) {
        return rc;
    }

    snprintf(r->url, sizeof r->url, "unix://%s/redis.sock", r->dir);
    snprintf(r->servers[0].dir, sizeof r->servers[0].dir, "%s", r->dir);
    r->n = 1;
    rc = private_redis_launch(r);
    if (rc) {
        return rc;
    }

    for (int64_t until_ms = monotonic_ms() + READY_MS; monotonic_ms() < until_ms;) {
        if (server_answers(r)) {
            return 0;
        }
        heard = private_redis_heard(r);
        if (heard != JANITOR_SILENT) {
            break;
        }
        private_redis_pause();
    }

    return private_redis_give_up(r, heard);
}
