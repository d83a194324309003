/* SPDX-License-Identifier: MIT */
/* A configuration is code: it may load a module. The one in the current folder is used only if
 * nobody but us and root could have put it there. It is checked once it is open, and what was
 * opened is copied: no path is looked up twice, and nothing that is swapped meanwhile matters. */
#include "dev/private_conf.h"
#include "cli/arguments.h"
#include "cli/message.h"
#include "command.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONF_BYTES = 1 << 20 };
#define INSTALLED LAPSE_SHARE "/redis.conf"

/* ---- which one ---- */
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

int private_conf_open(const char *given)
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

/* ---- the copy ---- */
static int write_all(int to, const char *text)
{
    size_t len = strlen(text);

    errno = 0;
    if (write(to, text, len) == (ssize_t)len) {
        return 0;
    }
    return errno ? errno : EIO;
}

int private_conf_copy(int from, const char *path, const char *more)
{
    int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int err;

    if (to < 0) {
        return errno;
    }

    err = copy_file(from, to);
    if (!err) {
        err = write_all(to, more);
    }
    if (close(to) && !err) {
        err = errno;
    }

    return err;
}
