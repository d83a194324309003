/* SPDX-License-Identifier: MIT */
/* A private redis-server that never outlives us, not even after kill -9. Its parent is a janitor, a
 * process of ours that only holds one end of a pair of sockets, the leash: when the other end
 * closes, for whatever reason, it ends its child (whose pid is safe, because only the janitor can
 * reap it) and removes the folder. Both are in a session of their own, so that Ctrl-C in a terminal
 * reaches us alone and the listener can drain first. If the janitor is killed, the server dies by
 * PDEATHSIG. */
#include "dev/private_redis.h"
#include "cli/message.h"
#include "cli/values.h"
#include "client/private_folder.h"
#include "listen/spawn.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READY_MS = 10000, END_MS = 5000, POLL_MS = 3, CONF_BYTES = 1 << 20 };
enum { PATH_BYTES = 100, STATUS_NOT_FOUND = 127 };
#define INSTALLED LAPSE_SHARE "/redis.conf"

/* ---- the folder ---- */
/* What Redis leaves is two deep. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static void remove_tree(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    for (struct dirent *e; dir && (e = readdir(dir));) {
        bool is_entry = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
        if (is_entry && unlinkat(fd, e->d_name, 0)) {
            remove_tree(fd, e->d_name);
        }
    }

    if (dir) {
        closedir(dir);
    }

    unlinkat(at, name, AT_REMOVEDIR);
}

/* ---- the janitor ---- */
static _Noreturn void become_server(const char *dir)
{
    char sock[PATH_BYTES];
    char conf[PATH_BYTES];

    snprintf(sock, sizeof sock, "%s/redis.sock", dir);
    snprintf(conf, sizeof conf, "%s/redis.conf", dir);
    prctl(PR_SET_PDEATHSIG, SIGKILL);

    if (!chdir(dir)) {
        int log = open("redis.log", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        dup2(log, 1);
        dup2(log, 2);
        execlp("redis-server", "redis-server", conf, "--port", "0", "--unixsocket", sock,
               "--unixsocketperm", "600", "--dir", dir, "--daemonize", "no", "--supervised", "no",
               "--pidfile", "", "--logfile", "", (char *)NULL);
    }

    _exit(STATUS_NOT_FOUND);
}

static void set_stop_signals(void (*handler)(int))
{
    signal(SIGINT, handler);
    signal(SIGTERM, handler);
    signal(SIGHUP, handler);
}

static pid_t fork_server(const char *dir)
{
    pid_t pid;

    set_stop_signals(SIG_IGN);

    pid = fork();
    if (pid == 0) {
        set_stop_signals(SIG_DFL);
        become_server(dir);
    }

    return pid;
}

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

static _Noreturn void be_janitor(int leash, const char *dir)
{
    struct pollfd ends[2] = {{.fd = leash, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    pid_t server;

    setsid();
    close_other_files(leash);

    server = fork_server(dir);
    if (server > 0) {
        ends[1].fd = pidfd_open(server, 0);
        while (poll(ends, 2, -1) < 0) {}

        kill(server, SIGTERM);
        if (poll(&ends[1], 1, END_MS) != 1) {
            kill(server, SIGKILL);
        }
        waitpid(server, NULL, 0);
    }

    /* A server that ended by itself leaves its log for lapse to read: let lapse know, and wait
     * until it has closed its end. */
    shutdown(leash, SHUT_WR);
    while (poll(ends, 1, -1) < 0) {}
    remove_tree(AT_FDCWD, dir);
    _exit(0);
}

/* Starts the process that ends what we leave; 0, or an exit code after it has printed why. */
static int start_janitor(struct private_redis *r)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
        message_print("socketpair: %s", strerror(errno));
        return DOWN;
    }

    r->janitor = fork();
    if (r->janitor == 0) {
        close(ends[1]);
        be_janitor(ends[0], r->dir);
    }

    close(ends[0]);
    r->leash = ends[1];

    if (r->janitor < 0) {
        message_print("fork: %s", strerror(errno));
        close(ends[1]);
        return DOWN;
    }

    return 0;
}

/* ---- the configuration ---- */
/* A configuration is code: it may load a module. The one in the current folder is used only if
 * nobody but us and root could have put it there. It is checked once it is open, and what was
 * opened is copied: no path is looked up twice, and nothing that is swapped meanwhile matters. */
static bool is_of_others(const struct stat *st)
{
    return st->st_uid && st->st_uid != geteuid();
}

static const char *objection_to(const struct stat *file, const struct stat *folder)
{
    if (!S_ISREG(file->st_mode)) {
        return "it is not a file";
    }
    if (is_of_others(folder)) {
        return "its folder belongs to another user, who could replace it";
    }
    if (folder->st_mode & (S_IWGRP | S_IWOTH)) {
        return "other users can write to its folder, and could replace it";
    }
    if (is_of_others(file)) {
        return "it belongs to another user";
    }
    if (file->st_mode & (S_IWGRP | S_IWOTH)) {
        return "other users can write to it";
    }

    return NULL;
}

static const char *objection_to_open(int here, int fd)
{
    struct stat file;
    struct stat folder;

    if (fstat(fd, &file) || fstat(here, &folder)) {
        return strerror(errno);
    }

    return objection_to(&file, &folder);
}

/* -1: there is none, or it must not be used, and then *why says why. */
static int open_conf_here(const char **why)
{
    int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

    /* neither a link, nor a pipe without a writer, for which open() would wait */
    int fd = openat(here, "redis.conf", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    *why = NULL;

    if (fd >= 0) {
        *why = objection_to_open(here, fd);
    } else if (errno == ELOOP) {
        *why = "it is a symbolic link";
    } else if (errno != ENOENT) {
        *why = strerror(errno);
    }

    if (fd >= 0 && *why) {
        close(fd);
        fd = -1;
    }

    if (here >= 0) {
        close(here);
    }

    return fd;
}

static int open_given_conf(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        usage_error("--conf", path, strerror(errno));
    }
    return fd;
}

/* -1 after it has printed why. */
static int open_conf(const char *given)
{
    const char *why;
    int fd;

    if (given) {
        return open_given_conf(given);
    }

    fd = open_conf_here(&why);
    if (fd >= 0) {
        return fd;
    }

    fd = open(INSTALLED, O_RDONLY | O_CLOEXEC);
    if (why) {
        message_print("ignoring ./redis.conf: %s", why);
    }
    if (fd < 0) {
        message_print("no configuration: %s: %s; use --conf FILE", INSTALLED, strerror(errno));
    }

    return fd;
}

/* 0 or an errno. */
static int copy_file(int from, int to)
{
    char bytes[4096];
    size_t len = 0;
    ssize_t n;

    while ((n = read(from, bytes, sizeof bytes)) > 0) {
        len += (size_t)n;
        if (len > CONF_BYTES) {
            return EFBIG;
        }

        errno = 0;
        if (write(to, bytes, (size_t)n) != n) {
            return errno ? errno : EIO;
        }
    }

    return n < 0 ? errno : 0;
}

/* Into the private folder; 0 or an errno. */
static int copy_conf(int from, const char *dir)
{
    char path[PATH_BYTES];
    int to;
    int err;

    snprintf(path, sizeof path, "%s/redis.conf", dir);

    to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (to < 0) {
        return errno;
    }

    err = copy_file(from, to);
    if (close(to) && !err) {
        err = errno;
    }

    return err;
}

/* Makes the folder with all that the server needs; 0, or an exit code after it has printed why. */
static int prepare_folder(struct private_redis *r, const char *conf)
{
    int fd = open_conf(conf);
    int rc;
    int err = 0;

    if (fd < 0) {
        return USAGE;
    }

    rc = private_folder_make(r->dir, "the private Redis");
    if (!rc) {
        snprintf(r->url, sizeof r->url, "unix://%s/redis.sock", r->dir);
        err = copy_conf(fd, r->dir);
    }
    close(fd);

    if (err) {
        remove_tree(AT_FDCWD, r->dir);
        rc = usage_error("--conf", conf ? conf : "redis.conf", strerror(err));
    }

    return rc;
}

/* ---- the server ---- */
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

static bool server_has_ended(const struct private_redis *r)
{
    struct pollfd leash = {.fd = r->leash, .events = POLLIN};

    return poll(&leash, 1, 0) == 1;
}

static void print_server_log(const struct private_redis *r)
{
    char path[PATH_BYTES];
    char line[300];
    FILE *log;

    snprintf(path, sizeof path, "%s/redis.log", r->dir);
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

static int wait_until_ready(struct private_redis *r)
{
    const struct timespec pause = {0, POLL_MS * 1000000L};
    int64_t until_ms = monotonic_ms() + READY_MS;

    while (monotonic_ms() < until_ms && !server_has_ended(r)) {
        if (server_answers(r)) {
            return 0;
        }
        nanosleep(&pause, NULL);
    }

    message_print("the private redis-server did not start:");
    print_server_log(r);
    private_redis_stop(r);

    return DOWN;
}

int private_redis_start(struct private_redis *r, const char *conf)
{
    char *program = find_program("redis-server");
    int rc;

    if (!program) {
        message_print("redis-server not found in PATH; on Debian: apt-get install redis-server");
        return DOWN;
    }
    free(program);

    rc = prepare_folder(r, conf);
    if (rc) {
        return rc;
    }

    rc = start_janitor(r);
    if (rc) {
        remove_tree(AT_FDCWD, r->dir);
        return rc;
    }

    return wait_until_ready(r);
}

void private_redis_stop(struct private_redis *r)
{
    close(r->leash);
    while (waitpid(r->janitor, NULL, 0) < 0 && errno == EINTR) {}
    remove_tree(AT_FDCWD, r->dir); /* in case the janitor was killed */
}
