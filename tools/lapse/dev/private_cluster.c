/* SPDX-License-Identifier: MIT */
/* A private Redis Cluster. Its nodes know each other from their start, by a nodes.conf that is
 * written for each. They cannot do without TCP, where every user of this machine reaches them, so a
 * password that is drawn for them alone stands in the configuration, which nobody else can read. */
#include "dev/private_redis.h"
#include "cli/message.h"
#include "cli/values.h"
#include "client/redis_sync.h"
#include "command.h"
#include "redis/address.h"
#include "redis/slot.h"
#include <arpa/inet.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MASTERS = 3,
    NODES = 6,
    ID_BYTES = 41,
    PASSWORD_BYTES = 33,
    READY_MS = 30000,
    REPLY_MS = 5000
};

struct cluster {
    struct private_redis *r;
    char password[PASSWORD_BYTES];
    char ids[NODES][ID_BYTES];
    int reserved[2 * NODES]; /* sockets that keep the ports free for the nodes */
    int n_reserved;
};

/* len - 1 hexadecimal digits that nobody can guess; false: there is no randomness. */
static bool draw_digits(char *out, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[ID_BYTES];

    if (getrandom(bytes, len - 1, 0) != (ssize_t)len - 1) {
        return false;
    }
    for (size_t i = 0; i + 1 < len; i++) {
        out[i] = digits[bytes[i] % 16];
    }
    out[len - 1] = '\0';
    return true;
}

static bool draw_secrets(struct cluster *c)
{
    bool drawn = draw_digits(c->password, PASSWORD_BYTES);

    for (int i = 0; i < NODES && drawn; i++) {
        drawn = draw_digits(c->ids[i], ID_BYTES);
    }
    if (!drawn) {
        message_print("getrandom: %s", strerror(errno));
    }
    return drawn;
}

/* ---- ports ---- */
/* A port that nobody has, and nobody gets until the node listens there: the socket is bound and
 * does not listen, so that of all programs those can bind to it that share their addresses, as
 * redis-server does. -1: there is none. */
static int reserve_port(struct cluster *c)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return -1;
    }

    c->reserved[c->n_reserved++] = fd;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(fd, (struct sockaddr *)&a, sizeof a) || getsockname(fd, (struct sockaddr *)&a, &len)) {
        return -1;
    }
    return ntohs(a.sin_port);
}

static bool reserve_ports(struct cluster *c)
{
    for (int i = 0; i < NODES; i++) {
        struct private_server *s = &c->r->servers[i];
        s->port = reserve_port(c);
        s->bus_port = reserve_port(c);
        if (s->port < 0 || s->bus_port < 0) {
            message_print("no port for a node of the cluster: %s", strerror(errno));
            return false;
        }
    }
    return true;
}

static void release_ports(struct cluster *c)
{
    for (int i = 0; i < c->n_reserved; i++) {
        close(c->reserved[i]);
    }
}

/* ---- folders ---- */
static void write_node(const struct cluster *c, FILE *f, int i, int me)
{
    const struct private_server *s = &c->r->servers[i];
    const char *myself = i == me ? "myself," : "";
    int master = i % MASTERS;

    if (i == master) {
        fprintf(f, "%s 127.0.0.1:%d@%d %smaster - 0 0 %d connected %d-%d\n", c->ids[i], s->port,
                s->bus_port, myself, i + 1, SLOT_COUNT * i / MASTERS,
                SLOT_COUNT * (i + 1) / MASTERS - 1);
    } else {
        fprintf(f, "%s 127.0.0.1:%d@%d %sslave %s 0 0 %d connected\n", c->ids[i], s->port,
                s->bus_port, myself, c->ids[master], master + 1);
    }
}

static bool make_node(struct cluster *c, int me)
{
    struct private_server *s = &c->r->servers[me];
    char path[PRIVATE_PATH + 12];
    FILE *f;

    snprintf(s->dir, sizeof s->dir, "%s/node-%d", c->r->dir, me + 1);
    snprintf(path, sizeof path, "%s/nodes.conf", s->dir);
    if (mkdir(s->dir, 0700)) {
        return false;
    }

    f = fopen(path, "we");
    if (!f) {
        return false;
    }
    for (int i = 0; i < NODES; i++) {
        write_node(c, f, i, me);
    }
    fprintf(f, "vars currentEpoch %d lastVoteEpoch 0\n", MASTERS);
    return fclose(f) == 0;
}

/* Its password is not on the command line, which all can see. */
static int make_folders(struct cluster *c, const char *conf)
{
    char more[100];

    snprintf(more, sizeof more, "\nrequirepass %s\nmasterauth %s\n", c->password, c->password);
    int rc = private_redis_prepare(c->r, conf, more);
    explicit_bzero(more, sizeof more);

    for (int i = 0; i < NODES && !rc; i++) {
        if (!make_node(c, i)) {
            message_print("%s: %s", c->r->dir, strerror(errno));
            private_folder_remove(c->r->dir);
            rc = DOWN;
        }
    }
    return rc;
}

/* All nodes, so that the URL is good as long as one of them is there. */
static void make_url(struct cluster *c)
{
    char *url = c->r->url;
    int len = snprintf(url, PRIVATE_URL, "redis+cluster://:%s@", c->password);

    for (int i = 0; i < NODES; i++) {
        len += snprintf(url + len, PRIVATE_URL - (size_t)len, "%s127.0.0.1:%d", i ? "," : "",
                        c->r->servers[i].port);
    }
}

/* ---- until it is up ---- */
/* By its socket, where nobody else can answer. password: NULL: none. */
static int open_node(struct redis_sync *sync, const struct private_server *s, char *password)
{
    char path[PRIVATE_PATH + 12];
    char why[REDIS_WHY];
    struct address a = {.kind = ADDRESS_REDIS, .unix_socket = true, .host = path};

    snprintf(path, sizeof path, "%s/redis.sock", s->dir);
    a.password = password;
    *sync = (struct redis_sync){.shown = path, .quiet = true};
    return redis_sync_try(sync, &a, redis_sync_limit(REPLY_MS), why);
}

static bool says(struct redis_sync *sync, const char *const *argv, const char *text)
{
    redisReply *reply = redis_sync_command(sync, 2, argv, NULL);
    bool yes = reply && reply->type == REDIS_REPLY_STRING && strstr(reply->str, text);

    freeReplyObject(reply);
    return yes;
}

static bool node_is_up(struct cluster *c, int i)
{
    static const char *const info[] = {"CLUSTER", "INFO"};
    static const char *const link[] = {"INFO", "replication"};
    struct redis_sync sync;
    bool up = open_node(&sync, &c->r->servers[i], c->password) == 0;

    up = up && says(&sync, info, "cluster_state:ok");
    if (up && i >= MASTERS) {
        up = says(&sync, link, "master_link_status:up");
    }
    redis_sync_close(&sync);
    return up;
}

static int wait_until_up(struct cluster *c)
{
    int64_t until_ms = monotonic_ms() + READY_MS;
    int heard = JANITOR_SILENT;
    int n_up = 0;

    while (n_up < NODES && heard == JANITOR_SILENT && monotonic_ms() < until_ms) {
        if (node_is_up(c, n_up)) {
            n_up++;
        } else {
            private_redis_pause();
        }
        heard = private_redis_heard(c->r);
    }

    if (n_up == NODES) {
        return 0;
    }
    return private_redis_give_up(c->r, heard == JANITOR_SILENT ? n_up : heard);
}

/* What it says to who has no password: DENIED, as it should; DONE; DOWN, if it is not there yet. */
static int ask_as_a_stranger(const struct private_server *s)
{
    struct redis_sync sync;
    int64_t us;
    int code = open_node(&sync, s, NULL);

    if (!code) {
        code = redis_sync_ping(&sync, &us);
    }
    redis_sync_close(&sync);
    return code;
}

/* A configuration may have users of its own, and let others in without a password. */
static int wait_until_locked(struct cluster *c)
{
    int64_t until_ms = monotonic_ms() + READY_MS;
    int heard = JANITOR_SILENT;
    int code = DOWN;

    while (code == DOWN && heard == JANITOR_SILENT && monotonic_ms() < until_ms) {
        code = ask_as_a_stranger(&c->r->servers[0]);
        if (code == DOWN) {
            private_redis_pause();
            heard = private_redis_heard(c->r);
        }
    }

    if (code == DENIED) {
        return 0;
    }
    if (code == DOWN) {
        return private_redis_give_up(c->r, heard);
    }
    message_print("the configuration lets anyone in without a password, and every user of this "
                  "machine reaches the nodes of a cluster: remove its user default (--conf)");
    private_redis_stop(c->r);
    return DOWN;
}

int private_cluster_start(struct private_redis *r, const char *conf)
{
    struct cluster c = {.r = r};
    int rc = draw_secrets(&c) && reserve_ports(&c) ? 0 : DOWN;

    if (!rc) {
        rc = make_folders(&c, conf);
    }
    if (!rc) {
        make_url(&c);
        r->n = NODES;
        rc = private_redis_launch(r);
    }
    if (!rc) {
        rc = wait_until_locked(&c);
    }
    if (!rc) {
        rc = wait_until_up(&c);
    }

    release_ports(&c);
    explicit_bzero(&c, sizeof c);
    return rc;
}
