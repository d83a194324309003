/* SPDX-License-Identifier: MIT */
/* Private servers that never outlive us, not even after kill -9. Their parent is a janitor, a
 * process of ours that only holds one end of a pair of sockets, the leash: when the other end
 * closes, for whatever reason, it ends its children (whose pids are safe, because only the janitor
 * can reap them) and removes the folder. All are in a session of their own, so that Ctrl-C in a
 * terminal reaches us alone and the listener can drain first. If the janitor is killed, the servers
 * die by PDEATHSIG. */
#include "dev/janitor.h"
#include "cli/message.h"
#include "cli/values.h"
#include "client/private_folder.h"
#include "command.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { END_MS = 5000, STATUS_NOT_FOUND = 127 };

/* What the janitor has in hand. */
struct charge {
    pid_t pids[JANITOR_SERVERS];
    struct pollfd ends[JANITOR_SERVERS + 1]; /* a pidfd each, -1 once it has ended; and the leash */
    int n, n_running;
};

/* ---- in the server ---- */
static void set_stop_signals(void (*handler)(int))
{
    signal(SIGINT, handler);
    signal(SIGTERM, handler);
    signal(SIGHUP, handler);
}

static _Noreturn void become_server(const struct janitor_server *s)
{
    set_stop_signals(SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);

    if (!chdir(s->dir)) {
        int log = open("redis.log", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        dup2(log, 1);
        dup2(log, 2);
        execvp(s->argv[0], (char *const *)(uintptr_t)s->argv);
    }

    _exit(STATUS_NOT_FOUND);
}

/* ---- in the janitor ---- */
/* A reader of our pipes must see their end when lapse ends, not when the janitor does. */
static void close_other_files(int leash)
{
    int null = open("/dev/null", O_RDWR);

    for (int fd = 0; fd < 3; fd++) {
        dup2(null, fd);
    }

    close_range(3, (unsigned)leash - 1, 0);
    close_range((unsigned)leash + 1, ~0u, 0);
}

/* False: it could not be started. */
static bool start_server(struct charge *c, const struct janitor_server *s)
{
    pid_t pid = fork();

    if (pid == 0) {
        become_server(s);
    }
    if (pid < 0) {
        return false;
    }

    int end = pidfd_open(pid, 0);
    if (end < 0) { /* nobody would hear of its end */
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return false;
    }

    c->pids[c->n] = pid;
    c->ends[c->n] = (struct pollfd){.fd = end, .events = POLLIN};
    c->n++;
    c->n_running++;
    return true;
}

static void reap(struct charge *c, int i)
{
    waitpid(c->pids[i], NULL, 0);
    close(c->ends[i].fd);
    c->ends[i].fd = -1;
    c->n_running--;
}

/* Reaps who has ended, and tells lapse. */
static void reap_ended(struct charge *c, int leash)
{
    for (int i = 0; i < c->n; i++) {
        if (c->ends[i].fd >= 0 && c->ends[i].revents) {
            char which = (char)i;
            reap(c, i);
            send(leash, &which, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        }
    }
}

/* Until lapse has closed its end, or no server is left. */
static void watch(struct charge *c, int leash)
{
    struct pollfd *end = &c->ends[c->n];

    *end = (struct pollfd){.fd = leash, .events = POLLIN};
    while (c->n_running > 0 && !end->revents) {
        if (poll(c->ends, (nfds_t)c->n + 1, -1) > 0) {
            reap_ended(c, leash);
        }
    }
}

static void signal_running(const struct charge *c, int signum)
{
    for (int i = 0; i < c->n; i++) {
        if (c->ends[i].fd >= 0) {
            kill(c->pids[i], signum);
        }
    }
}

static void end_all(struct charge *c, int leash)
{
    int64_t until_ms = monotonic_ms() + END_MS;

    signal_running(c, SIGTERM);
    for (int64_t ms = END_MS; c->n_running > 0 && ms > 0; ms = until_ms - monotonic_ms()) {
        if (poll(c->ends, (nfds_t)c->n, (int)ms) > 0) {
            reap_ended(c, leash);
        }
    }

    signal_running(c, SIGKILL);
    for (int i = 0; i < c->n; i++) {
        if (c->ends[i].fd >= 0) {
            reap(c, i);
        }
    }
}

static _Noreturn void be_janitor(int leash, const char *dir, const struct janitor_server *servers,
                                 int n)
{
    struct charge c = {.n = 0};
    bool started = true;

    setsid();
    close_other_files(leash);
    set_stop_signals(SIG_IGN);

    for (int i = 0; i < n && started; i++) {
        started = start_server(&c, &servers[i]);
    }
    if (started) {
        watch(&c, leash);
    }
    end_all(&c, leash);

    /* Servers that ended by themselves leave their logs for lapse to read: let lapse know, and wait
     * until it has closed its end. */
    struct pollfd end = {.fd = leash, .events = POLLIN};
    shutdown(leash, SHUT_WR);
    while (poll(&end, 1, -1) < 0) {}
    private_folder_remove(dir);
    _exit(0);
}

/* ---- in lapse ---- */
int janitor_start(struct janitor *j, const char *dir, const struct janitor_server *servers, int n)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
        message_print("socketpair: %s", strerror(errno));
        return DOWN;
    }

    j->pid = fork();
    if (j->pid == 0) {
        close(ends[1]);
        be_janitor(ends[0], dir, servers, n);
    }

    close(ends[0]);
    j->leash = ends[1];

    if (j->pid < 0) {
        message_print("fork: %s", strerror(errno));
        close(ends[1]);
        return DOWN;
    }

    return 0;
}

void janitor_stop(struct janitor *j)
{
    close(j->leash);
    while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR) {}
}

int janitor_heard(const struct janitor *j)
{
    char which;
    ssize_t n = recv(j->leash, &which, 1, MSG_DONTWAIT);

    if (n == 1) {
        return which;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return JANITOR_SILENT;
    }
    return JANITOR_ALL_ENDED;
}
