/* SPDX-License-Identifier: MIT */
/* The proxy listens on a Unix socket in a folder of its own: on a port, a Redis that only its Unix
 * socket protects would be open to all users of this machine. It ends after the listeners, which
 * have the other copy of the leash, and removes the folder, also if this process was killed. */
#include "bench/proxy.h"
#include "bench/relay.h"
#include "cli/message.h"
#include "command.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BACKLOG = 512, MOST_PINGS = 1000, LEAST_PINGS = 10, PINGS_US = 1000000 };

static void proxy_socket(const struct proxy *p, struct sockaddr_un *at)
{
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(at->sun_path, sizeof at->sun_path, "%s/redis.sock", p->folder);
}

static void proxy_remove_folder(const struct proxy *p)
{
    struct sockaddr_un at;

    proxy_socket(p, &at);
    unlink(at.sun_path);
    rmdir(p->folder);
}

/* ---- in the proxy ---- */
static _Noreturn void become_proxy(const struct proxy *p, const struct relay_plan *plan)
{
    /* a terminal signals all processes, and the proxy ends last */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);

    bool ok = relay_run(plan);
    proxy_remove_folder(p);

    /* not by exit(): what stdout has buffered is the producer's */
    _exit(ok ? DONE : INTERNAL);
}

/* ---- in the producer ---- */
/* Makes the folder and the socket in it; -1 after it has printed why. */
static int proxy_listen(struct proxy *p)
{
    struct sockaddr_un at;

    if (private_folder_make(p->folder, "the proxy")) {
        return -1;
    }

    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    proxy_socket(p, &at);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, BACKLOG)) {
        message_print("cannot listen on %s: %m", at.sun_path);
        if (fd >= 0) {
            close(fd);
        }
        proxy_remove_folder(p);
        return -1;
    }

    return fd;
}

static bool proxy_fork(struct proxy *p, struct relay_plan *plan)
{
    int leash[2];

    if (pipe2(leash, O_CLOEXEC)) {
        return false;
    }

    plan->leash = leash[0];
    p->pid = fork();
    if (p->pid == 0) {
        close(leash[1]);
        become_proxy(p, plan);
    }

    close(leash[0]);
    p->leash = leash[1];
    if (p->pid < 0) {
        close(leash[1]);
        p->pid = 0;
        return false;
    }

    return true;
}

/* As whom we log in, and the database, stay the same. */
static char *url_through(const struct proxy *p, const char *url, int db)
{
    struct address_parts parts;
    char *out = NULL;
    int rc;

    if (address_split(&parts, url) && parts.user.at) {
        rc = asprintf(&out, "unix://%.*s:%.*s@%s/redis.sock?db=%d", (int)parts.user.len,
                      parts.user.at, (int)parts.password.len, parts.password.at, p->folder, db);
    } else {
        rc = asprintf(&out, "unix://%s/redis.sock?db=%d", p->folder, db);
    }

    return rc < 0 ? NULL : out;
}

/* Where there can be no proxy; NULL: there can. */
static const char *proxy_obstacle(const struct address *a)
{
    if (a->tls) {
        return "on a connection with TLS";
    }

    switch (a->kind) {
    case ADDRESS_SENTINEL: return "under Sentinel: give the URL of the master";
    case ADDRESS_CLUSTER: return "in a cluster, whose nodes say where the others are";
    default: return NULL;
    }
}

int proxy_start(struct proxy *p, const char *url, int64_t rtt_us)
{
    struct relay_plan plan = {.delay_us = rtt_us / 2};
    char *texts = malloc(2 * strlen(url) + 1);

    if (!texts) {
        message_print("out of memory");
        return INTERNAL;
    }

    address_parse(&plan.server, url, texts); /* which the library has accepted */
    const char *obstacle = proxy_obstacle(&plan.server);
    if (obstacle) {
        message_print("a round trip (--rtt) cannot be added %s", obstacle);
        explicit_bzero(texts, 2 * strlen(url) + 1);
        free(texts);
        return USAGE;
    }
    plan.listening = proxy_listen(p);
    int code = plan.listening >= 0 ? DONE : DOWN;

    if (!code && !proxy_fork(p, &plan)) {
        message_print("cannot start the proxy: %m");
        proxy_remove_folder(p);
        code = INTERNAL;
    }
    if (!code) {
        p->url = url_through(p, url, plan.server.db);
    }
    if (!code && !p->url) {
        message_print("out of memory");
        code = INTERNAL;
    }

    if (plan.listening >= 0) {
        close(plan.listening);
    }
    explicit_bzero(texts, 2 * strlen(url) + 1);
    free(texts);

    return code;
}

static int measure_pings(struct histogram *out, struct redis_sync *redis, int64_t n)
{
    int code = DONE;

    for (int64_t i = 0; i < n && !code; i++) {
        int64_t us;
        code = redis_sync_ping(redis, &us);
        if (!code) {
            histogram_add(out, us);
        }
    }

    return code;
}

int proxy_measure(struct proxy *p, struct redis_sync *redis, int64_t rtt_us)
{
    struct redis_sync through;
    int64_t reply_ms = 5000 + rtt_us / 1000;
    int64_t n = rtt_us > 0 ? PINGS_US / rtt_us : MOST_PINGS;
    const struct lapse_options local = lapse_options_init();
    int code = redis_sync_open(&through, &local, p->url, redis->shown, reply_ms, 0);

    if (n > MOST_PINGS) {
        n = MOST_PINGS;
    } else if (n < LEAST_PINGS) {
        n = LEAST_PINGS;
    }

    if (!code) {
        code = measure_pings(&p->through, &through, n);
    }
    if (!code) {
        code = measure_pings(&p->direct, redis, n);
    }
    redis_sync_close(&through);

    return code;
}

void proxy_stop(struct proxy *p)
{
    if (p->pid) {
        close(p->leash);
        waitpid(p->pid, NULL, 0);
        p->pid = 0;
    }
    if (p->url) {
        explicit_bzero(p->url, strlen(p->url));
        free(p->url);
        p->url = NULL;
    }
}
