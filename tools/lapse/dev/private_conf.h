/* SPDX-License-Identifier: MIT */
#ifndef PRIVATE_CONF_H
#define PRIVATE_CONF_H

/* Opens the configuration that was given, or else that of the current folder or the installed one.
 * -1 after it has printed why. */
int private_conf_open(const char *given);
/* Makes the file path, which only this user may read, of an open configuration and some more lines.
 * 0 or an errno. */
int private_conf_copy(int from, const char *path, const char *more);
#endif
