/* SPDX-License-Identifier: MIT */
#ifndef PRIVATE_FOLDER_H
#define PRIVATE_FOLDER_H

enum { PRIVATE_FOLDER_BYTES = 80 };

/* Makes a folder that only this user may enter, under XDG_RUNTIME_DIR, TMPDIR or /tmp. Its path
 * leaves room for the name of a socket, and needs no escapes in a URL. 0, or an exit code after it
 * has printed why; what: whose folder it would have been, for the message. */
int private_folder_make(char path[PRIVATE_FOLDER_BYTES], const char *what);
/* With all that is in it. */
void private_folder_remove(const char *path);
#endif
