/* SPDX-License-Identifier: MIT */
/* One redis-server per test: it answers about 10 ms after its start, so sharing one would save
 * little and tie tests together. It dies with the test, however that ends. */
#include "redis.h"
#include "test.h"
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void forget_connection(struct server *s)
{
    if (s->redis) {
        redisFree(s->redis);
    }
    s->redis = NULL;
}

/* ---- ports ---- */
/* Below those that the kernel gives to outgoing connections: none of these takes it before us. */
enum { PORT_MIN = 10000, PORT_MAX = 32000 };

static bool port_is_free(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert(fd >= 0);
    bool is_free = bind(fd, (struct sockaddr *)&a, sizeof a) == 0;
    close(fd);
    return is_free;
}

/* Tests that run beside this one begin elsewhere. */
int server_free_port(void)
{
    static int last;

    if (!last) {
        last = PORT_MIN + (int)((unsigned)getpid() * 7919U % (PORT_MAX - PORT_MIN));
    }
    do {
        last = last < PORT_MAX ? last + 1 : PORT_MIN;
    } while (!port_is_free(last));
    return last;
}

/* ---- users ---- */
static bool is_of_cluster(const struct server *s)
{
    for (size_t i = 0; s->args[i]; i++) {
        if (strcmp(s->args[i], "--cluster-enabled") == 0) {
            return true;
        }
    }
    return false;
}

static void server_write_users(const struct server *s)
{
    const char *more = is_of_cluster(s) ? " +cluster|slots" : "";
    char path[4096];

    snprintf(path, sizeof path, "%s/users.acl", test_build());
    char *rules = test_read_file(path, NULL);
    snprintf(path, sizeof path, "%s/users.conf", s->dir);
    FILE *f = fopen(path, "w");
    cr_assert(f, "%s: %m", path);
    for (char *at = rules, *line; (line = strtok_r(at, "\n", &at));) {
        fprintf(f, "%s%s >secret\n", line, more);
    }

    cr_assert(!fclose(f));
    free(rules);
}

const char *server_login(void)
{
    static char login[32];
    const char *role = getenv("LAPSE_TEST_ACL");

    if (role && *role) {
        snprintf(login, sizeof login, "lapse_%.16s:secret@", role);
    }
    return login;
}

void server_listens(void)
{
    if (strncmp(server_login(), "lapse_producer", 14) == 0) {
        cr_skip_test("a producer may not listen");
    }
}

void server_allow(struct server *s, const char *rules)
{
    const char *login = server_login();
    char command[256];

    snprintf(command, sizeof command, "ACL SETUSER %.*s %s", (int)strcspn(login, ":"), login,
             rules);
    if (*login) {
        redis_do(s, command);
    }
}

int server_refusals(struct server *s)
{
    redisReply *log = redis_cmd(s, "ACL LOG 128");
    int n = 0;

    for (size_t i = 0; log->type == REDIS_REPLY_ARRAY && i < log->elements; i++) {
        const redisReply *entry = log->element[i];
        const char *object = "";
        const char *reason = "";
        const char *user = "";
        for (size_t k = 0; k + 1 < entry->elements; k += 2) {
            const char *name = entry->element[k]->str;
            const char *value = entry->element[k + 1]->str;
            object = strcmp(name, "object") == 0 ? value : object;
            reason = strcmp(name, "reason") == 0 ? value : reason;
            user = strcmp(name, "username") == 0 ? value : user;
        }
        if (strncmp(user, "lapse_", 6) != 0) {
            continue;
        }
        fprintf(stderr, "%s was refused the %s %s\n", user, reason, object);
        n++;
    }

    freeReplyObject(log);

    return n;
}

/* redis.conf, which Sentinel makes Redis write: so it is a copy. */
static void server_write_conf(const struct server *s)
{
    char path[4096];
    size_t len;

    snprintf(path, sizeof path, "%s/redis.conf", test_root());
    char *text = test_read_file(path, &len);
    snprintf(path, sizeof path, "%s/redis.conf", s->dir);
    FILE *f = fopen(path, "w");
    cr_assert(f && fwrite(text, 1, len, f) == len && !fclose(f), "%s: %m", path);
    free(text);
}

/* In the child. */
static void exec_server(struct server *s, pid_t parent)
{
    char conf[96];
    char log[96];
    char users[96];
    char port[8];

    snprintf(conf, sizeof conf, "%s/redis.conf", s->dir);
    snprintf(log, sizeof log, "%s/log", s->dir);
    snprintf(users, sizeof users, "%s/users.conf", s->dir);
    snprintf(port, sizeof port, "%d", s->port);

    const char *given = getenv("LAPSE_TEST_SERVER");
    /* clang-format off */
    const char *argv[20 + SERVER_ARGS] = {
        given ? given : "redis-server", conf,
        "--port", port, "--unixsocket", s->socket, "--unixsocketperm", "700",
        "--dir", s->dir, "--daemonize", "no", "--logfile", log,
        "--enable-debug-command", "local", "--include", users,
    };
    /* clang-format on */
    size_t n = 18;
    for (const char **arg = s->args; *arg; arg++) {
        argv[n++] = *arg;
    }

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent) {
        execvp(argv[0], (char *const *)(void *)argv);
    }

    _exit(127);
}

/* 1: yes, 0: not yet, -1: it is dead. */
static int server_answers(struct server *s)
{
    int status;

    if (waitpid(s->pid, &status, WNOHANG) == s->pid) {
        s->pid = 0;
        return -1;
    }

    redisContext *c = redisConnectUnix(s->socket);
    redisReply *r = c && !c->err ? redisCommand(c, "PING") : NULL;

    /* NOAUTH is an answer too; while it loads, nothing else works yet */
    int yes = r && !(r->type == REDIS_REPLY_ERROR && strncmp(r->str, "LOADING", 7) == 0);
    if (r) {
        freeReplyObject(r);
    }

    if (c) {
        redisFree(c);
    }

    return yes;
}

static bool server_run(struct server *s)
{
    pid_t parent = getpid();

    forget_connection(s);
    unlink(s->socket); /* kill -9 leaves it */
    server_write_conf(s);
    s->pid = fork();
    cr_assert(s->pid >= 0);
    if (s->pid == 0) {
        exec_server(s, parent);
    }

    int64_t deadline = test_now_ms() + 20000;
    int up;
    while ((up = server_answers(s)) == 0 && test_now_ms() < deadline) {
        poll(NULL, 0, 1);
    }

    return up == 1;
}

static struct server *server_prepare(const char *const *extra)
{
    struct server *s = calloc(1, sizeof *s);

    cr_assert(s);
    test_dir(s->dir, sizeof s->dir);
    snprintf(s->socket, sizeof s->socket, "%s/redis", s->dir);
    snprintf(s->url, sizeof s->url, "unix://%s%s", server_login(), s->socket);
    for (size_t i = 0; extra && extra[i]; i++) {
        cr_assert(i < SERVER_ARGS);
        s->args[i] = extra[i];
    }
    server_write_users(s);
    return s;
}

static void server_write_tcp_url(struct server *s)
{
    snprintf(s->tcp_url, sizeof s->tcp_url, "redis://%s127.0.0.1:%d", server_login(), s->port);
}

static struct server *server_make(const char *const *extra, bool tcp)
{
    struct server *s = server_prepare(extra);
    bool up = false;

    for (int i = 0; !up && i < (tcp ? 5 : 1);
         i++) { /* another process may take the free port before we do */
        s->port = tcp ? server_free_port() : 0;
        up = server_run(s);
    }

    if (!up) {
        char log[96];
        snprintf(log, sizeof log, "%s/log", s->dir);
        cr_assert_fail("redis-server did not start: %s",
                       access(log, R_OK) ? "no log" : test_read_file(log, NULL));
    }

    if (tcp) {
        server_write_tcp_url(s);
    }

    return s;
}

struct server *server_start(void)
{
    return server_make(NULL, false);
}

struct server *server_start_opts(const char *const *extra_args)
{
    return server_make(extra_args, false);
}

struct server *server_start_tcp(const char *const *extra_args)
{
    return server_make(extra_args, true);
}

struct server *server_start_at(int port, const char *const *extra_args)
{
    struct server *s = server_prepare(extra_args);

    s->port = port;
    if (!server_run(s)) {
        server_stop(s);
        return NULL;
    }
    server_write_tcp_url(s);
    return s;
}

void server_kill9(struct server *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGKILL);
        waitpid(s->pid, NULL, 0);
    }
    s->pid = 0;
    forget_connection(s);
}

void server_restart(struct server *s)
{
    server_kill9(s);
    cr_assert(server_run(s), "redis-server did not start again in %s", s->dir);
}

void server_signal(struct server *s, int sig)
{
    cr_assert(s->pid > 0 && !kill(s->pid, sig));
}

void server_stop(struct server *s)
{
    if (!s) {
        return;
    }
    server_kill9(s);
    test_dir_remove(s->dir);
    free(s);
}
