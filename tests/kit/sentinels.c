/* SPDX-License-Identifier: MIT */
/* The Sentinels know each other and the replicas by their configuration: to find out takes them
 * seconds. */
#include "sentinels.h"
#include "redis.h"
#include "test.h"
#include <criterion/criterion.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SETTLED_MS = 60000, LOOK_MS = 20, STARTS = 5 };

static const char *const redis_args[] = {"--repl-diskless-sync-delay", "0", NULL};

/* ---- a Sentinel ---- */
static void sentinel_write(const struct sentinels *s, unsigned i, const char *password, int down_ms)
{
    const struct server *me = s->sentinel[i];
    char path[100];

    snprintf(path, sizeof path, "%s/conf", me->dir);
    FILE *f = fopen(path, "w");
    cr_assert(f, "%s: %m", path);
    fprintf(f,
            "%sport %d\nbind 127.0.0.1\nunixsocket %s\ndir %s\nlogfile %s/log\n"
            "sentinel myid %040u\nsentinel monitor m 127.0.0.1 %d %u\n"
            "sentinel down-after-milliseconds m %d\nsentinel failover-timeout m 3000\n",
            s->keys ? "tls-" : "", me->port, me->socket, me->dir, me->dir, i + 1, s->redis[0]->port,
            s->n / 2 + 1, down_ms);
    for (unsigned k = 1; k < s->n_redis; k++) {
        fprintf(f, "sentinel known-replica m 127.0.0.1 %d\n", s->redis[k]->port);
    }
    for (unsigned k = 0; k < s->n; k++) {
        if (k != i) {
            fprintf(f, "sentinel known-sentinel m 127.0.0.1 %d %040u\n", s->sentinel[k]->port,
                    k + 1);
        }
    }
    if (s->keys) {
        tls_write_only(s->keys, f);
    }
    if (password) {
        fprintf(f, "requirepass %s\nsentinel sentinel-pass %s\n", password, password);
    }
    cr_assert(!fclose(f));
}

static void sentinel_exec(const struct server *me, pid_t parent)
{
    const char *given = getenv("LAPSE_TEST_SERVER");
    const char *program = given ? given : "redis-server";
    char path[100];

    snprintf(path, sizeof path, "%s/conf", me->dir);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent) {
        execlp(program, program, path, "--sentinel", (char *)NULL);
    }
    _exit(127);
}

static bool answers(const struct server *me)
{
    redisContext *c = redisConnectUnix(me->socket);
    redisReply *r = c && !c->err ? redisCommand(c, "PING") : NULL;
    bool yes = r != NULL;

    freeReplyObject(r);
    if (c) {
        redisFree(c);
    }
    return yes;
}

/* false: it did not start. */
static bool sentinel_run(struct server *me)
{
    pid_t parent = getpid();
    int64_t end_ms = test_now_ms() + SETTLED_MS;

    me->pid = fork();
    cr_assert(me->pid >= 0);
    if (me->pid == 0) {
        sentinel_exec(me, parent);
    }
    while (!answers(me)) {
        cr_assert_lt(test_now_ms(), end_ms, "a Sentinel does not answer: %s/log", me->dir);
        if (waitpid(me->pid, NULL, WNOHANG) == me->pid) {
            me->pid = 0;
            return false;
        }
        poll(NULL, 0, 1);
    }
    return true;
}

static struct server *sentinel_make(void)
{
    struct server *me = calloc(1, sizeof *me);

    cr_assert(me);
    test_dir(me->dir, sizeof me->dir);
    snprintf(me->socket, sizeof me->socket, "%s/sentinel", me->dir);
    return me;
}

/* ---- what they say ---- */
static struct server *running(struct sentinels *s)
{
    struct server *first = NULL;

    for (unsigned i = 0; i < s->n && !first; i++) {
        first = s->sentinel[i]->pid ? s->sentinel[i] : NULL;
    }
    cr_assert(first, "no Sentinel runs");
    return first;
}

static int port_by(struct server *sentinel)
{
    redisReply *r = redis_cmd(sentinel, "SENTINEL GET-MASTER-ADDR-BY-NAME m");
    int port = r->type == REDIS_REPLY_ARRAY && r->elements == 2 ? atoi(r->element[1]->str) : 0;

    freeReplyObject(r);
    return port;
}

int sentinels_master_port(struct sentinels *s)
{
    return port_by(running(s));
}

int sentinels_agreed_port(struct sentinels *s)
{
    int port = sentinels_master_port(s);

    for (unsigned i = 0; i < s->n; i++) {
        if (s->sentinel[i]->pid && port_by(s->sentinel[i]) != port) {
            return 0;
        }
    }
    return port;
}

struct server *sentinels_master(struct sentinels *s)
{
    int port = sentinels_master_port(s);
    struct server *master = NULL;

    for (unsigned i = 0; i < s->n_redis; i++) {
        if (s->redis[i]->port == port) {
            master = s->redis[i];
        }
    }
    cr_assert(master, "no server has port %d", port);
    return master;
}

/* How many replicas it knows that are no matter of concern. */
static unsigned n_good_replicas(struct server *sentinel)
{
    redisReply *r = redis_cmd(sentinel, "SENTINEL REPLICAS m");
    unsigned n = 0;

    for (size_t i = 0; r->type == REDIS_REPLY_ARRAY && i < r->elements; i++) {
        const redisReply *map = r->element[i];
        bool good = false;
        bool linked = false;
        for (size_t k = 0; k + 1 < map->elements; k += 2) {
            const char *name = map->element[k]->str;
            const char *value = map->element[k + 1]->str;
            good = good || (strcmp(name, "flags") == 0 && strcmp(value, "slave") == 0);
            linked =
                linked || (strcmp(name, "master-link-status") == 0 && strcmp(value, "ok") == 0);
        }
        n += good && linked;
    }
    freeReplyObject(r);
    return n;
}

static bool is_ok(struct server *s, const char *command)
{
    redisReply *r = redis_cmd(s, command);
    bool ok = r->type != REDIS_REPLY_ERROR;

    freeReplyObject(r);
    return ok;
}

/* Which port the master has, by one of them, and that all is well with it; 0: it is not. */
static int settled_port(struct server *sentinel, unsigned n_replicas)
{
    redisReply *r = redis_cmd(sentinel, "SENTINEL MASTER m");
    int port = 0;
    bool well = false;

    for (size_t k = 0; r->type == REDIS_REPLY_ARRAY && k + 1 < r->elements; k += 2) {
        if (strcmp(r->element[k]->str, "port") == 0) {
            port = atoi(r->element[k + 1]->str);
        }
        if (strcmp(r->element[k]->str, "flags") == 0) {
            well = strcmp(r->element[k + 1]->str, "master") == 0;
        }
    }
    freeReplyObject(r);
    well =
        well && n_good_replicas(sentinel) == n_replicas && is_ok(sentinel, "SENTINEL CKQUORUM m");
    return well ? port : 0;
}

/* That a link is up does not say that the replica gets what is written from now on. */
static bool replicas_confirm(struct sentinels *s)
{
    struct server *master = sentinels_master(s);
    long long n = s->n_redis - 1;

    if (!is_ok(master, "SET other x") || !is_ok(master, "DEL other")) {
        return false;
    }
    return n == 0 || redis_int(master, "WAIT %lld 200", n) == n;
}

bool sentinels_are_settled(struct sentinels *s)
{
    int port = 0;

    for (unsigned i = 0; i < s->n; i++) {
        if (!s->sentinel[i]->pid) {
            continue;
        }
        int theirs = settled_port(s->sentinel[i], s->n_redis - 1);
        if (theirs == 0 || (port && theirs != port)) {
            return false;
        }
        port = theirs;
    }
    return replicas_confirm(s);
}

static void until_settled(struct sentinels *s)
{
    int64_t end_ms = test_now_ms() + SETTLED_MS;

    while (!sentinels_are_settled(s)) {
        cr_assert_lt(test_now_ms(), end_ms, "the Sentinels do not agree");
        poll(NULL, 0, LOOK_MS);
    }
}

void sentinels_fail_over(struct sentinels *s)
{
    redis_do(running(s), "SENTINEL FAILOVER m");
}

/* ---- life ---- */
/* Another process may take a free port before we do. */
static bool sentinels_run(struct sentinels *s, const char *password, int down_ms)
{
    for (unsigned i = 0; i < s->n; i++) {
        s->sentinel[i]->port = server_free_port();
    }
    for (unsigned i = 0; i < s->n; i++) {
        sentinel_write(s, i, password, down_ms);
        if (!sentinel_run(s->sentinel[i])) {
            for (unsigned k = 0; k < i; k++) {
                server_kill9(s->sentinel[k]);
            }
            return false;
        }
    }
    return true;
}

static struct server *redis_start_tls(struct sentinels *s, unsigned i)
{
    char *port = s->tls_ports[i];
    const char *const args[] = {"--include",  s->keys->only, redis_args[0], redis_args[1],
                                "--tls-port", port,          NULL};
    struct server *redis = NULL;

    for (int tries = 0; !redis; tries++) { /* another process may take the free port before we do */
        cr_assert_lt(tries, STARTS, "Redis did not start");
        int number = server_free_port();
        snprintf(port, sizeof *s->tls_ports, "%d", number);
        redis = server_start_at(number, args);
    }
    return redis;
}

static struct sentinels *start(const struct sentinels *form, const char *password, int down_ms,
                               const char *const *args)
{
    unsigned n_redis = form->n_redis;
    unsigned n_sentinels = form->n;
    struct sentinels *s = calloc(1, sizeof *s);
    size_t len;

    cr_assert(s && n_redis > 0 && n_redis <= SENTINELS_MOST && n_sentinels <= SENTINELS_MOST);
    *s = *form;
    for (unsigned i = 0; i < n_redis; i++) {
        s->redis[i] = s->keys ? redis_start_tls(s, i) : server_start_tcp(args);
        if (i > 0) {
            redis_do(s->redis[i], "REPLICAOF 127.0.0.1 %d", s->redis[0]->port);
        }
    }
    for (unsigned i = 0; i < n_sentinels; i++) {
        s->sentinel[i] = sentinel_make();
    }
    for (int i = 0; !sentinels_run(s, password, down_ms); i++) {
        cr_assert(i < STARTS, "the Sentinels did not start");
    }
    len = (size_t)snprintf(s->url, sizeof s->url, "redis%s+sentinel://%s", s->keys ? "s" : "",
                           server_login());
    for (unsigned i = 0; i < n_sentinels; i++) {
        len += (size_t)snprintf(s->url + len, sizeof s->url - len, "%s127.0.0.1:%d", i ? "," : "",
                                s->sentinel[i]->port);
    }
    snprintf(s->url + len, sizeof s->url - len, "/m");
    if (!password) {
        until_settled(s);
    }

    return s;
}

struct sentinels *sentinels_start(unsigned n_redis, unsigned n_sentinels, const char *password,
                                  int down_ms)
{
    return sentinels_start_opts(n_redis, n_sentinels, password, down_ms, redis_args);
}

struct sentinels *sentinels_start_opts(unsigned n_redis, unsigned n_sentinels, const char *password,
                                       int down_ms, const char *const *args)
{
    struct sentinels form = {.n_redis = n_redis, .n = n_sentinels};

    return start(&form, password, down_ms, args);
}

struct sentinels *sentinels_start_tls(unsigned n_redis, unsigned n_sentinels,
                                      const struct keys *keys)
{
    struct sentinels form = {.n_redis = n_redis, .n = n_sentinels, .keys = keys};

    return start(&form, NULL, 30000, NULL);
}

void sentinels_stop(struct sentinels *s)
{
    for (unsigned i = 0; i < s->n; i++) {
        server_stop(s->sentinel[i]);
    }
    for (unsigned i = 0; i < s->n_redis; i++) {
        server_stop(s->redis[i]);
    }
    free(s);
}
