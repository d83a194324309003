/* SPDX-License-Identifier: MIT */
#include "client/private_folder.h"
#include "cli/message.h"
#include "command.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_PLACE = 60 }; /* so that the path of a socket fits into sockaddr_un */

int private_folder_make(char path[PRIVATE_FOLDER_BYTES], const char *what)
{
    const char *const places[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *place = places[i];

        if (!place || *place != '/' || strlen(place) > MOST_PLACE || strpbrk(place, "%?#@ ")) {
            continue;
        }

        snprintf(path, PRIVATE_FOLDER_BYTES, "%s/lapse-XXXXXX", place);
        if (mkdtemp(path)) {
            return DONE;
        }
    }

    message_print("cannot create a folder for %s in XDG_RUNTIME_DIR, TMPDIR or /tmp: %s", what,
                  strerror(errno));

    return DOWN;
}

/* What Redis leaves is three deep. */
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

void private_folder_remove(const char *path)
{
    remove_tree(AT_FDCWD, path);
}
