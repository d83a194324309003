/* SPDX-License-Identifier: MIT */
#include "stub.h"
#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST_SCRIPT = 5, MAX_CONNS = 32, PIECE = 65536 };
const char *const stub_steps[STUB_STEPS] = {
    "AUTH", "SELECT", "PING",    "PSUBSCRIBE", "SUBSCRIBE", "schedule", "cancel", "reschedule",
    "get",  "claim",  "done",    "retry",      "fail",      "release",  "renew",  "touch",
    "arm",  "sweep",  "reclaim", "heartbeat",  "depth",     "list"};

bool stub_is_script(int step)
{
    return step >= FIRST_SCRIPT;
}

struct stub_ctl {
    atomic_int step; /* -1: none */
    atomic_long hits;
    char answer[256];
};
static struct script {
    char *text, *sha;
    size_t len;
} scripts[STUB_STEPS]; /* before the fork */

struct buffer {
    char *at;
    size_t len, room;
};
static struct conn {
    bool used, waits, subscribes; /* waits: for Redis's answer to the last command */
    int client, redis;
    struct buffer up, down;
} conns[MAX_CONNS]; /* the child's */

/* ---- RESP ---- */
/* The length of the value at the beginning; 0: not all of it is there. */
static size_t value_len(const char *at, size_t len)
{
    const char *end = memchr(at, '\n', len);

    if (!end) {
        return 0;
    }

    size_t n = (size_t)(end - at) + 1;
    long count = *at == '$' || *at == '*' ? strtol(at + 1, NULL, 10) : -1;
    if (*at == '$' && count >= 0) {
        return n + (size_t)count + 2 <= len ? n + (size_t)count + 2 : 0;
    }

    for (long i = 0; *at == '*' && i < count; i++) {
        size_t one = value_len(at + n, len - n);
        if (!one) {
            return 0;
        }
        n += one;
    }

    return n;
}

/* The text of argument i of a command that is there whole. */
static const char *argument(const char *at, size_t len, int i, size_t *text_len)
{
    const char *next = (const char *)memchr(at, '\n', len) + 1;
    const char *end = at + len;

    for (; i > 0 && next < end; i--) {
        next += value_len(next, (size_t)(end - next));
    }

    if (next >= end) {
        return NULL;
    }

    *text_len = (size_t)strtol(next + 1, NULL, 10);
    return (const char *)memchr(next, '\n', (size_t)(end - next)) + 1;
}

static int step_of(const char *at, size_t len)
{
    size_t name_len;
    size_t text_len;
    const char *name = argument(at, len, 0, &name_len);
    const char *text = argument(at, len, 1, &text_len);

    for (int i = 0; i < FIRST_SCRIPT; i++) {
        if (strlen(stub_steps[i]) == name_len && memcmp(stub_steps[i], name, name_len) == 0) {
            return i;
        }
    }

    for (int i = FIRST_SCRIPT; text && i < STUB_STEPS; i++) {
        if ((text_len == 40 && memcmp(scripts[i].sha, text, 40) == 0) ||
            (text_len == scripts[i].len && memcmp(scripts[i].text, text, text_len) == 0)) {
            return i;
        }
    }

    return -1;
}

/* ---- the child ---- */
static void drop(struct conn *c)
{
    close(c->client);
    close(c->redis);
    free(c->up.at);
    free(c->down.at);
    *c = (struct conn){.used = false};
}

static bool fill(struct buffer *b, int fd)
{
    if (b->room < b->len + PIECE) {
        b->at = realloc(b->at, b->room = 2 * b->len + PIECE);
    }
    ssize_t n = b->at ? read(fd, b->at + b->len, PIECE) : -1;
    b->len += n > 0 ? (size_t)n : 0;
    return n > 0;
}

static bool write_all(int fd, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        if (n <= 0) {
            return false;
        }
        at += n;
        len -= (size_t)n;
    }

    return true;
}

static void take(struct buffer *b, size_t len)
{
    memmove(b->at, b->at + len, b->len -= len);
}

static bool pass(struct stub_ctl *ctl, struct conn *c)
{
    size_t len;

    while (c->down.len && (len = value_len(c->down.at, c->down.len))) {
        if (!write_all(c->client, c->down.at, len)) {
            return false;
        }
        take(&c->down, len);
        c->waits = false;
    }

    while (!c->waits && c->up.len && (len = value_len(c->up.at, c->up.len))) {
        int step = step_of(c->up.at, len);
        bool ours = step >= 0 && step == ctl->step;
        if (ours) {
            atomic_fetch_add(&ctl->hits, 1);
        }
        if (ours ? !write_all(c->client, ctl->answer, strlen(ctl->answer))
                 : !write_all(c->redis, c->up.at, len)) {
            return false;
        }
        c->subscribes = c->subscribes || (step >= 0 && strstr(stub_steps[step], "SUBSCRIBE"));
        c->waits = !ours && !c->subscribes;
        take(&c->up, len);
    }

    return true;
}

static void accept_one(int listener, const struct sockaddr_un *redis)
{
    struct conn *c = conns;

    while (c < conns + MAX_CONNS && c->used) {
        c++;
    }

    int client = accept(listener, NULL, NULL);
    int up = socket(AF_UNIX, SOCK_STREAM, 0);
    if (c == conns + MAX_CONNS || client < 0 ||
        connect(up, (const struct sockaddr *)redis, sizeof *redis)) {
        close(client);
        close(up);
        return;
    }

    *c = (struct conn){.used = true, .client = client, .redis = up};
}

_Noreturn static void serve(struct stub_ctl *ctl, int listener, const struct sockaddr_un *redis)
{
    for (;;) {
        struct pollfd fds[1 + 2 * MAX_CONNS] = {{listener, POLLIN, 0}};
        for (int i = 0; i < MAX_CONNS; i++) {
            fds[1 + 2 * i] = (struct pollfd){conns[i].used ? conns[i].client : -1, POLLIN, 0};
            fds[2 + 2 * i] = (struct pollfd){conns[i].used ? conns[i].redis : -1, POLLIN, 0};
        }
        poll(fds, 1 + 2 * MAX_CONNS, -1);
        for (int i = 0; i < MAX_CONNS; i++) {
            struct conn *c = &conns[i];
            short client = fds[1 + 2 * i].revents;
            short server = fds[2 + 2 * i].revents;
            if (c->used &&
                ((client && !fill(&c->up, c->client)) || (server && !fill(&c->down, c->redis)) ||
                 ((client || server) && !pass(ctl, c)))) {
                drop(c);
            }
        }
        if (fds[0].revents) {
            accept_one(listener, redis);
        }
    }
}

/* ---- the test ---- */
struct stub *stub_start(struct server *s)
{
    struct stub *stub = calloc(1, sizeof *stub);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct sockaddr_un redis = {.sun_family = AF_UNIX};

    cr_assert(stub);

    for (int i = FIRST_SCRIPT; i < STUB_STEPS; i++) {
        char path[300];
        snprintf(path, sizeof path, "%s/lua/%s.lua", test_build(), stub_steps[i]);
        scripts[i].text = test_read_file(path, &scripts[i].len);
        scripts[i].sha = redis_str(s, "SCRIPT LOAD %b", scripts[i].text, scripts[i].len);
        cr_assert(scripts[i].sha && strlen(scripts[i].sha) == 40, "%s", stub_steps[i]);
    }

    redis_do(s, "SCRIPT FLUSH");
    stub->ctl =
        mmap(NULL, sizeof *stub->ctl, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(stub->ctl != MAP_FAILED);
    stub->ctl->step = -1;
    snprintf(stub->path, sizeof stub->path, "%s/stub", s->dir);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", stub->path);
    snprintf(redis.sun_path, sizeof redis.sun_path, "%s", s->socket);

    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(!bind(fd, (struct sockaddr *)&at, sizeof at) && !listen(fd, 64));

    pid_t parent = getpid();
    stub->pid = fork();
    cr_assert(stub->pid >= 0);

    if (stub->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 3; i < 1024; i++) {
            if (i != fd) {
                close(i);
            }
        }
        if (getppid() == parent) {
            serve(stub->ctl, fd, &redis);
        }
        _exit(0);
    }

    close(fd);

    return stub;
}

void stub_answer(struct stub *stub, int step, const char *answer)
{
    stub->ctl->step = -1;
    stub->ctl->hits = 0;
    if (answer) {
        snprintf(stub->ctl->answer, sizeof stub->ctl->answer, "%s", answer);
        stub->ctl->step = step;
    }
}

long stub_hits(struct stub *stub)
{
    return stub->ctl->hits;
}

void stub_stop(struct stub *stub)
{
    kill(stub->pid, SIGKILL);
    waitpid(stub->pid, NULL, 0);
    munmap(stub->ctl, sizeof *stub->ctl);
    for (int i = FIRST_SCRIPT; i < STUB_STEPS; i++) {
        free(scripts[i].text);
        free(scripts[i].sha);
    }
    free(stub);
}
