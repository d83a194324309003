/* SPDX-License-Identifier: MIT */
/* A private redis-server that never outlives us, not even after kill -9. Its parent is a janitor, a
 * process of ours that only holds one end of a pipe, the leash: when the other end closes, for
 * whatever reason, it ends its child (whose pid is safe, for only the janitor can reap it) and
 * removes the folder. Both are in a session of their own, so that Ctrl-C in a terminal reaches us
 * alone and the listener can drain first. If the janitor is killed, the server dies by PDEATHSIG.
 */
#include "dev/private_redis.h"
#include "cli/message.h"
#include "cli/values.h"
#include "listen/exec.h"
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

enum { READY_MS = 10000, END_MS = 5000, POLL_MS = 3, NOT_FOUND = 127, CONF_BYTES = 1 << 20 };
#define INSTALLED LAPSE_SHARE "/redis.conf"

/* ---- the janitor ---- */
/* What Redis leaves is two deep. NOLINTNEXTLINE(misc-no-recursion) */
static void remove_tree(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && unlinkat(fd, e->d_name, 0)) {
            remove_tree(fd, e->d_name);
        }
    }

    if (dir) {
        closedir(dir);
    }

    unlinkat(at, name, AT_REMOVEDIR);
}

static void serve(const char *dir)
{
    char sock[100];
    char conf[100];

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

    _exit(NOT_FOUND);
}

static pid_t fork_server(const char *dir)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    pid_t pid;

    for (int i = 0; i < 3; i++) {
        signal(signals[i], SIG_IGN);
    }

    pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 3; i++) {
            signal(signals[i], SIG_DFL);
        }
        serve(dir);
    }

    return pid;
}

static _Noreturn void be_janitor(int leash, const char *dir)
{
    struct pollfd ends[2] = {{.fd = leash, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    int null = open("/dev/null", O_RDWR);
    pid_t server;

    setsid();

    /* whoever reads a pipe of ours must see its end when lapse ends */
    for (int fd = 0; fd < 3; fd++) {
        dup2(null, fd);
    }

    close_range(3, (unsigned)leash - 1, 0);
    close_range((unsigned)leash + 1, ~0u, 0);
    server = fork_server(dir);
    ends[1].fd = server > 0 ? pidfd_open(server, 0) : -1;
    while (server > 0 && poll(ends, 2, -1) < 0) {}

    if (server > 0) {
        kill(server, SIGTERM);
        if (poll(&ends[1], 1, END_MS) != 1) {
            kill(server, SIGKILL);
        }
        waitpid(server, NULL, 0);
    }

    /* a server that ended by itself leaves its log for lapse to read: tell, and wait until that is
     * done */
    shutdown(leash, SHUT_WR);
    while (poll(ends, 1, -1) < 0) {}
    remove_tree(AT_FDCWD, dir);
    _exit(0);
}

/* ---- lapse's side ---- */
static int make_dir(struct server *s)
{
    const char *const places[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        /* the socket's path, with its name, must fit in sockaddr_un; and the URL takes no escapes
         * here */
        if (!places[i] || *places[i] != '/' || strlen(places[i]) > 60 ||
            strpbrk(places[i], "%?#@ ")) {
            continue;
        }
        snprintf(s->dir, sizeof s->dir, "%s/lapse-XXXXXX", places[i]);
        if (mkdtemp(s->dir)) {
            snprintf(s->url, sizeof s->url, "unix://%s/redis.sock", s->dir);
            return 0;
        }
    }

    message_print(
        "no folder for a private Redis: neither XDG_RUNTIME_DIR, TMPDIR nor /tmp took one (%s)",
        strerror(errno));

    return DOWN;
}

/* ---- the configuration ---- */
/* A configuration is code: it may load a module. The one in this folder is taken only where nobody
 * but us and root could have put it there. It is looked at once it is open, and what was open is
 * copied, so that no path is looked up twice, and nothing that another swaps meanwhile matters. */
static int is_of_others(const struct stat *st)
{
    return st->st_uid && st->st_uid != geteuid();
}

static const char *objection(const struct stat *file, const struct stat *folder)
{
    if (!S_ISREG(file->st_mode)) {
        return "it is not a file";
    }
    if (is_of_others(folder)) {
        return "the folder belongs to another user, who could swap it";
    }
    if (folder->st_mode & (S_IWGRP | S_IWOTH)) {
        return "others can write to the folder, and could swap it";
    }
    if (is_of_others(file)) {
        return "it belongs to another user";
    }

    return file->st_mode & (S_IWGRP | S_IWOTH) ? "others can write to it" : NULL;
}

/* -1: there is none, or it may not be used, and *why says why not. */
static int open_conf_here(const char **why)
{
    struct stat file;
    struct stat folder;
    int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

    /* neither a link, nor a pipe that has no writer: that would be waited for */
    int fd = openat(here, "redis.conf", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    *why = NULL;

    if (fd < 0 && errno != ENOENT) {
        *why = errno == ELOOP ? "it is a symbolic link" : strerror(errno);
    } else if (fd >= 0) {
        *why =
            fstat(fd, &file) || fstat(here, &folder) ? strerror(errno) : objection(&file, &folder);
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

static int open_conf(const char *given)
{
    const char *why = NULL;
    int fd = given ? open(given, O_RDONLY | O_CLOEXEC) : open_conf_here(&why);

    if (given && fd < 0) {
        usage_error("--conf", given, strerror(errno));
    } else if (fd < 0) {
        fd = open(INSTALLED, O_RDONLY | O_CLOEXEC);
        if (why) {
            message_print("redis.conf of this folder is not used: %s%s", why,
                          fd < 0 ? "" : "; " INSTALLED " is");
        }
        if (fd < 0) {
            message_print("no redis.conf %sin %s; --conf FILE names one", why ? "" : "here nor ",
                          LAPSE_SHARE);
        }
    }

    return fd;
}

/* Into the private folder; 0 or an errno. */
static int copy_conf(int from, const char *dir)
{
    char path[100];
    char bytes[4096];
    ssize_t n;
    size_t len = 0;

    snprintf(path, sizeof path, "%s/redis.conf", dir);

    int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int err = to < 0 ? errno : 0;
    while (!err && (n = read(from, bytes, sizeof bytes)) != 0) {
        len += n > 0 ? (size_t)n : 0;
        if (n < 0 || len > CONF_BYTES) {
            err = n < 0 ? errno : EFBIG;
        } else if (write(to, bytes, (size_t)n) != n) {
            err = errno ? errno : EIO;
        }
    }

    if (to >= 0 && close(to) && !err) {
        err = errno;
    }

    return err;
}

static int answers(const struct server *s)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int ok;

    snprintf(to.sun_path, sizeof to.sun_path, "%s/redis.sock", s->dir);
    ok = fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof to);
    close(fd);
    return ok;
}

static void show_log(const struct server *s)
{
    char path[100];
    char line[300];
    FILE *log;

    snprintf(path, sizeof path, "%s/redis.log", s->dir);
    log = fopen(path, "re");

    while (log && fgets(line, sizeof line, log)) {
        line[strcspn(line, "\n")] = '\0';
        if (*line) {
            message_print("redis-server: %s", printable(line));
        }
    }

    if (log) {
        fclose(log);
    }
}

static int ended(const struct server *s)
{
    struct pollfd leash = {.fd = s->leash, .events = POLLIN};
    return poll(&leash, 1, 0) == 1;
}

static int wait_ready(struct server *s)
{
    const struct timespec pause = {0, POLL_MS * 1000000L};
    int64_t until = monotonic_ms() + READY_MS;

    while (monotonic_ms() < until && !ended(s)) {
        if (answers(s)) {
            return 0;
        }
        nanosleep(&pause, NULL);
    }

    message_print("the private redis-server did not start:");
    show_log(s);
    server_stop(s);

    return DOWN;
}

/* The folder with all that the server needs; 0, or an exit code and has said why. */
static int prepare(struct server *s, const char *given)
{
    int fd = open_conf(given);
    int rc;
    int err;

    if (fd < 0) {
        return USAGE;
    }

    rc = make_dir(s);
    err = rc ? 0 : copy_conf(fd, s->dir);
    close(fd);
    if (err) {
        remove_tree(AT_FDCWD, s->dir);
        rc = usage_error("--conf", given ? given : "redis.conf", strerror(err));
    }

    return rc;
}

/* Beside us, in a process that ends what we leave; 0, or an exit code and has said why. */
static int start_janitor(struct server *s)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
        message_print("socketpair: %s", strerror(errno));
        return DOWN;
    }

    s->janitor = fork();
    if (s->janitor == 0) {
        close(ends[1]);
        be_janitor(ends[0], s->dir);
    }

    close(ends[0]);
    s->leash = ends[1];

    if (s->janitor < 0) {
        message_print("fork: %s", strerror(errno));
        close(ends[1]);
        return DOWN;
    }

    return 0;
}

int server_start(struct server *s, const char *given)
{
    char *program = find_program("redis-server");
    int rc;

    if (!program) {
        message_print("redis-server is not in PATH; on Debian: apt-get install redis-server");
        return DOWN;
    }

    free(program);
    rc = prepare(s, given);
    if (rc) {
        return rc;
    }

    rc = start_janitor(s);
    if (rc) {
        remove_tree(AT_FDCWD, s->dir);
        return rc;
    }

    return wait_ready(s);
}

void server_stop(struct server *s)
{
    close(s->leash);
    while (waitpid(s->janitor, NULL, 0) < 0 && errno == EINTR) {}
    remove_tree(AT_FDCWD, s->dir); /* should someone have killed the janitor */
}
