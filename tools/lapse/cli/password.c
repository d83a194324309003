/* SPDX-License-Identifier: MIT */
/* --password-file. Only its owner may be able to read it; but the secrets of containers and of
 * systemd are made by root in memory, with modes that cannot be chosen (0444, 0644, 0440), and
 * there the container keeps strangers out. */
#include "cli/password.h"
#include "cli/message.h"
#include "command.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static bool is_in_memory(int fd)
{
    struct statfs fs = {0};
    return fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

/* 0, or USAGE after it has printed why. */
static int check_mode(const char *path, int fd, const struct stat *st)
{
    bool is_trusted = st->st_uid == 0 || st->st_uid == geteuid();
    bool is_writable = st->st_mode & 022;

    if (!(st->st_mode & 077)) {
        return 0;
    }
    if (!is_trusted || is_writable || !is_in_memory(fd)) {
        return usage_error("--password-file", path,
                           "can be opened by other users; run chmod 600 on it");
    }

    message_print("warning: --password-file '%s' can be read by other users (mode %04o)",
                  printable(path), st->st_mode & 07777);

    return 0;
}

/* 0, or an errno. */
static int read_all(int fd, char *out, size_t *len)
{
    ssize_t n = 0;

    *len = 0;
    while (*len < PASSWORD_ROOM) {
        n = read(fd, out + *len, PASSWORD_ROOM - *len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        *len += (size_t)n;
    }

    return n < 0 ? errno : 0;
}

bool is_password(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) {
            return false;
        }
    }
    return len && len <= PASSWORD_BYTES;
}

static size_t without_end_of_line(const char *text, size_t len)
{
    if (len && text[len - 1] == '\n') {
        len--;
        len -= len && text[len - 1] == '\r';
    }
    return len;
}

/* Reads what is in it; 0, or USAGE after it has printed why. */
static int read_password_file(const char *path, char *out, size_t *len)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc;
    int err;

    if (fd < 0) {
        return usage_error("--password-file", path, strerror(errno));
    }

    if (fstat(fd, &st)) {
        rc = usage_error("--password-file", path, strerror(errno));
    } else {
        rc = check_mode(path, fd, &st);
    }

    if (!rc) {
        err = read_all(fd, out, len);
        if (err) {
            rc = usage_error("--password-file", path, strerror(err));
        }
    }

    close(fd);

    return rc;
}

int password_read(const char *path, char out[PASSWORD_ROOM])
{
    size_t len = 0;

    if (strcmp(path, "-") == 0) {
        int err = read_all(0, out, &len);
        if (err) {
            return usage_error("--password-file", path, strerror(err));
        }
    } else if (read_password_file(path, out, &len)) {
        return USAGE;
    }

    len = without_end_of_line(out, len);
    if (!is_password(out, len)) {
        return usage_error("--password-file", path, PASSWORD_RULE);
    }
    out[len] = '\0';

    return 0;
}
