/* SPDX-License-Identifier: MIT */
#ifndef PASSWORD_H
#define PASSWORD_H
#include <stdbool.h>
#include <stddef.h>

/* PASSWORD_ROOM: with CR and LF, and a byte more to see that it is longer. */
enum { PASSWORD_BYTES = 1024, PASSWORD_ROOM = PASSWORD_BYTES + 3 };
#define PASSWORD_RULE \
    "not a password: must be one line of 1 to 1024 bytes without control characters"

bool is_password(const char *text, size_t len);
/* Reads it from a file, or from stdin for "-"; 0, or USAGE after it has printed why. */
int password_read(const char *path, char out[PASSWORD_ROOM]);
#endif
