/* SPDX-License-Identifier: MIT */
#ifndef STDOUT_H
#define STDOUT_H

/* Flushes and closes stdout. Returns code, or where that is 0 and the output was lost
 * stdout_error_code(). */
int close_stdout(int code);
/* The exit code for a write to stdout that failed: UNREAD or OUTPUT. */
int stdout_error_code(void);
#endif
