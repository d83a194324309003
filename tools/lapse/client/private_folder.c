/* SPDX-License-Identifier: MIT */
#include "client/private_folder.h"
#include "cli/message.h"
#include "command.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
