/* SPDX-License-Identifier: MIT */
#include "scripted_server.h"
#include "child.h"
#include "redis.h"
#include "test.h"
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST_SCRIPT = 5, MAX_CONNS = 32, PIECE = 65536, MOST_ANSWER = 1 << 17, SPECIAL = 4 };

const char *const scripted_steps[SCRIPTED_STEPS] = {
    "AUTH", "SELECT", "PING",    "PSUBSCRIBE", "SUBSCRIBE", "schedule", "cancel", "reschedule",
    "get",  "claim",  "done",    "retry",      "fail",      "release",  "renew",  "touch",
    "arm",  "sweep",  "reclaim", "heartbeat",  "depth",     "list"};

int scripted_step(const char *name)
{
    int step = 0;

    while (step < SCRIPTED_STEPS && strcmp(scripted_steps[step], name) != 0) {
        step++;
    }

    cr_assert_lt(step, SCRIPTED_STEPS, "%s", name);
    return step;
}

bool scripted_step_is_script(int step)
{
    return step >= FIRST_SCRIPT;
}

/* A command that has an answer of its own. */
struct special {
    atomic_bool on;
    char command[64], answer[600];
};

struct scripted_ctl {
    atomic_int step, most_conns, delay_ms;
    struct special special[SPECIAL];
    atomic_long answered;
    char command[16]; /* is answered too */
    size_t len;
    char answer[MOST_ANSWER];
};

static struct script {
    char *text, *sha;
    size_t len;
} scripts[SCRIPTED_STEPS]; /* read before the fork */

/* ---- RESP ---- */
/* The length of the value at the beginning; 0: not all of it is there. */
/* NOLINTNEXTLINE(misc-no-recursion): arrays are nested as deep as the program under test says */
static size_t value_len(const char *at, size_t len)
{
    size_t n = 0;

    for (long left = 1; left > 0; left--) {
        const char *begin = at + n;
        const char *end = memchr(begin, '\n', len - n);
        if (!end) {
            return 0;
        }

        long count = *begin == '$' || *begin == '*' ? strtol(begin + 1, NULL, 10) : -1;
        n = (size_t)(end - at) + 1;
        if (*begin == '*' && count > 0) {
            left += count;
        } else if (*begin == '$' && count >= 0) {
            n += (size_t)count + 2;
        }
        if (n > len) {
            return 0;
        }
    }

    return n;
}

/* The text of argument i of a command that is complete; NULL: it has fewer. */
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

static bool is_text(const char *text, size_t len, const char *wanted, size_t wanted_len)
{
    return len == wanted_len && memcmp(text, wanted, len) == 0;
}

static int step_of(const char *at, size_t len)
{
    size_t name_len;
    size_t text_len;
    const char *name = argument(at, len, 0, &name_len);
    const char *text = argument(at, len, 1, &text_len);

    for (int i = 0; name && i < FIRST_SCRIPT; i++) {
        if (is_text(name, name_len, scripted_steps[i], strlen(scripted_steps[i]))) {
            return i;
        }
    }

    for (int i = FIRST_SCRIPT; text && i < SCRIPTED_STEPS; i++) {
        const struct script *s = &scripts[i];
        if (s->text && (is_text(text, text_len, s->sha, strlen(s->sha)) ||
                        is_text(text, text_len, s->text, s->len))) {
            return i;
        }
    }

    return SCRIPTED_NONE;
}

static bool is_command(const char *at, size_t len, const char *name)
{
    size_t text_len;
    const char *text = argument(at, len, 0, &text_len);

    return text && *name && is_text(text, text_len, name, strlen(name));
}

/* The answer to a command that has one of its own; NULL: it has none. */
static const char *special_answer(const struct scripted_ctl *ctl, const char *at, size_t len)
{
    for (int i = 0; i < SPECIAL; i++) {
        const struct special *special = &ctl->special[i];
        size_t name_len = strcspn(special->command, " ");
        const char *rest = special->command + name_len;
        size_t text_len;
        const char *text = argument(at, len, 0, &text_len);

        if (!special->on || !text || !is_text(text, text_len, special->command, name_len)) {
            continue;
        }
        text = argument(at, len, 1, &text_len);
        if (!*rest || (text && is_text(text, text_len, rest + 1, strlen(rest + 1)))) {
            return special->answer;
        }
    }
    return NULL;
}

/* ---- connections, in the child ---- */
struct buffer {
    char *at;
    size_t len, cap;
};

static struct conn {
    bool used;
    bool waits; /* for Redis's answer to the last command */
    bool subscribes;
    int client, redis; /* redis: -1: there is none */
    struct buffer up, down;
} conns[MAX_CONNS];

static void conn_drop(struct conn *c)
{
    close(c->client);
    close(c->redis);
    free(c->up.at);
    free(c->down.at);
    *c = (struct conn){.used = false};
}

static bool buffer_fill(struct buffer *b, int fd)
{
    if (b->cap < b->len + PIECE) {
        b->cap = 2 * b->len + PIECE;
        b->at = realloc(b->at, b->cap);
    }

    ssize_t n = b->at ? read(fd, b->at + b->len, PIECE) : -1;
    if (n <= 0) {
        return false;
    }

    b->len += (size_t)n;
    return true;
}

static void buffer_drop(struct buffer *b, size_t len)
{
    b->len -= len;
    memmove(b->at, b->at + len, b->len);
}

static bool client_write(int fd, const char *at, size_t len)
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

/* One command; false: the connection is gone. */
static bool conn_command(struct scripted_ctl *ctl, struct conn *c, const char *at, size_t len)
{
    int step = step_of(at, len);
    bool is_step = ctl->step == SCRIPTED_ANY || (step != SCRIPTED_NONE && step == ctl->step);
    const char *special = special_answer(ctl, at, len);

    if (special || is_step || is_command(at, len, ctl->command)) {
        poll(NULL, 0, ctl->delay_ms);
        atomic_fetch_add(&ctl->answered, 1);
        if (special) {
            return client_write(c->client, special, strlen(special));
        }
        return client_write(c->client, ctl->answer, ctl->len);
    }

    if (step != SCRIPTED_NONE && strstr(scripted_steps[step], "SUBSCRIBE")) {
        c->subscribes = true;
    }
    c->waits = !c->subscribes;
    return client_write(c->redis, at, len);
}

static bool conn_pass(struct scripted_ctl *ctl, struct conn *c)
{
    size_t len;

    while (c->down.len && (len = value_len(c->down.at, c->down.len))) {
        if (!client_write(c->client, c->down.at, len)) {
            return false;
        }
        buffer_drop(&c->down, len);
        c->waits = false;
    }

    while (!c->waits && c->up.len && (len = value_len(c->up.at, c->up.len))) {
        if (!conn_command(ctl, c, c->up.at, len)) {
            return false;
        }
        buffer_drop(&c->up, len);
    }

    return true;
}

static bool conn_serve(struct scripted_ctl *ctl, struct conn *c, bool from_client, bool from_redis)
{
    if (from_client && !buffer_fill(&c->up, c->client)) {
        return false;
    }
    if (from_redis && !buffer_fill(&c->down, c->redis)) {
        return false;
    }
    return conn_pass(ctl, c);
}

/* -1: it is not to be reached */
static int scripted_dial(const struct sockaddr_un *at)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    if (connect(fd, (const struct sockaddr *)at, sizeof *at) == 0) {
        return fd;
    }
    close(fd);
    return -1;
}

static void scripted_accept(int listener, const struct sockaddr_un *redis)
{
    bool alone = !*redis->sun_path;
    int client = accept(listener, NULL, NULL);
    int up = alone ? -1 : scripted_dial(redis);
    struct conn *c = conns;

    while (c < conns + MAX_CONNS && c->used) {
        c++;
    }

    if (c == conns + MAX_CONNS || client < 0 || (up < 0 && !alone)) {
        close(client);
        close(up);
        return;
    }

    *c = (struct conn){.used = true, .client = client, .redis = up};
}

struct duty {
    struct scripted_ctl *ctl;
    int listener;
    int tcp;                  /* likewise; -1: none */
    struct sockaddr_un redis; /* no path: there is none */
};

static void scripted_serve(void *arg)
{
    struct duty *d = arg;

    for (;;) {
        struct pollfd fds[2 + 2 * MAX_CONNS];
        struct pollfd *doors = &fds[(size_t)2 * MAX_CONNS];
        int n_conns = 0;

        for (size_t i = 0; i < MAX_CONNS; i++) {
            const struct conn *c = &conns[i];
            fds[2 * i] = (struct pollfd){c->used ? c->client : -1, POLLIN, 0};
            fds[2 * i + 1] = (struct pollfd){c->used ? c->redis : -1, POLLIN, 0};
            n_conns += c->used ? 1 : 0;
        }
        bool open = n_conns < d->ctl->most_conns;
        doors[0] = (struct pollfd){open ? d->listener : -1, POLLIN, 0};
        doors[1] = (struct pollfd){open ? d->tcp : -1, POLLIN, 0};

        poll(fds, 2 + 2 * MAX_CONNS, -1);

        for (size_t i = 0; i < MAX_CONNS; i++) {
            bool from_client = fds[2 * i].revents != 0;
            bool from_redis = fds[2 * i + 1].revents != 0;
            if ((from_client || from_redis) &&
                !conn_serve(d->ctl, &conns[i], from_client, from_redis)) {
                conn_drop(&conns[i]);
            }
        }

        for (int i = 0; i < 2; i++) {
            if (doors[i].revents) {
                scripted_accept(doors[i].fd, &d->redis);
            }
        }
    }
}

/* ---- in the test ---- */
static int scripted_door(int *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert(fd >= 0 && !bind(fd, (struct sockaddr *)&at, len) && !listen(fd, 64) &&
              !getsockname(fd, (struct sockaddr *)&at, &len));
    *port = ntohs(at.sin_port);
    return fd;
}

static struct scripted_server *scripted_start(const char *redis, bool tcp)
{
    struct scripted_server *s = calloc(1, sizeof *s);
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    cr_assert(s);
    test_dir(s->dir, sizeof s->dir);
    snprintf(s->path, sizeof s->path, "%s/scripted", s->dir);
    snprintf(s->url, sizeof s->url, "unix://%s", s->path);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", s->path);

    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(fd >= 0 && !bind(fd, (struct sockaddr *)&at, sizeof at) && !listen(fd, 64));

    s->ctl = shared_new(sizeof *s->ctl);
    s->ctl->step = SCRIPTED_NONE;
    s->ctl->most_conns = MAX_CONNS;

    struct duty duty = {.ctl = s->ctl, .listener = fd, .tcp = -1, .redis.sun_family = AF_UNIX};
    snprintf(duty.redis.sun_path, sizeof duty.redis.sun_path, "%s", redis);
    if (tcp) {
        duty.tcp = scripted_door(&s->port);
    }
    s->pid = child_start(scripted_serve, &duty, (const int[]){fd, duty.tcp, -1});
    close(fd);
    close(duty.tcp);

    return s;
}

static void set_answer(struct scripted_server *s, int step, const void *bytes, size_t len)
{
    cr_assert_lt(len, MOST_ANSWER);
    s->ctl->step = SCRIPTED_NONE;
    s->ctl->answered = 0;
    memcpy(s->ctl->answer, bytes, len);
    s->ctl->len = len;
    s->ctl->step = step;
}

struct scripted_server *scripted_server_start(const void *answer, size_t len)
{
    struct scripted_server *s = scripted_start("", false);

    set_answer(s, SCRIPTED_ANY, answer, len);
    return s;
}

struct scripted_server *scripted_server_start_tcp(const void *answer, size_t len)
{
    struct scripted_server *s = scripted_start("", true);

    set_answer(s, SCRIPTED_ANY, answer, len);
    return s;
}

struct scripted_server *scripted_server_before(struct server *redis)
{
    for (int i = FIRST_SCRIPT; i < SCRIPTED_STEPS; i++) {
        struct script *script = &scripts[i];
        char path[300];
        snprintf(path, sizeof path, "%s/lua/%s.lua", test_build(), scripted_steps[i]);
        script->text = test_read_file(path, &script->len);
        script->sha = redis_str(redis, "SCRIPT LOAD %b", script->text, script->len);
        cr_assert(script->sha && strlen(script->sha) == 40, "%s", scripted_steps[i]);
    }

    redis_do(redis, "SCRIPT FLUSH");
    return scripted_start(redis->socket, false);
}

void scripted_server_answer(struct scripted_server *s, int step, const char *answer)
{
    set_answer(s, step, answer, strlen(answer));
}

void scripted_server_answer_command(struct scripted_server *s, const char *name, const char *answer)
{
    *s->ctl->command = '\0';
    set_answer(s, SCRIPTED_NONE, answer, strlen(answer));
    snprintf(s->ctl->command, sizeof s->ctl->command, "%s", name);
}

/* The place of this command, or a free one. */
static struct special *special_for(struct scripted_server *s, const char *command)
{
    struct special *free_one = NULL;

    for (int i = SPECIAL - 1; i >= 0; i--) {
        struct special *special = &s->ctl->special[i];
        if (special->on && strcmp(special->command, command) == 0) {
            return special;
        }
        free_one = special->on ? free_one : special;
    }
    cr_assert(free_one, "%s is one too many", command);
    return free_one;
}

void scripted_server_answer_to(struct scripted_server *s, const char *command, const char *answer)
{
    struct special *special = special_for(s, command);

    special->on = false;
    snprintf(special->command, sizeof special->command, "%s", command);
    if (answer) {
        cr_assert_lt(strlen(answer), sizeof special->answer);
        strcpy(special->answer, answer);
    }
    special->on = answer != NULL;
}

void scripted_server_delay(struct scripted_server *s, int ms)
{
    s->ctl->delay_ms = ms;
}

void scripted_server_conns(struct scripted_server *s, int most)
{
    s->ctl->most_conns = most;
}

long scripted_server_answered(const struct scripted_server *s)
{
    return s->ctl->answered;
}

void scripted_server_stop(struct scripted_server *s)
{
    child_kill(s->pid);
    test_dir_remove(s->dir);
    shared_free(s->ctl, sizeof *s->ctl);

    for (int i = FIRST_SCRIPT; i < SCRIPTED_STEPS; i++) {
        free(scripts[i].text);
        free(scripts[i].sha);
        scripts[i] = (struct script){.text = NULL};
    }
    free(s);
}
