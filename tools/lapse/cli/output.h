/* SPDX-License-Identifier: MIT */
#ifndef OUTPUT_H
#define OUTPUT_H
#include <sys/types.h>

/* stdout or stderr, written to without ever waiting for its reader. */
struct output {
    int fd;    /* to be watched; owned if it is not the given one */
    int given; /* 1 or 2 */
    enum { TAKES_ALL, RETURNS, SOCKET, POLLED_FIRST } kind;
};
void output_open(struct output *o, int fd);
/* Writes some of it; -1 with EAGAIN: nothing can be written now. */
ssize_t output_write(struct output *o, const char *text, size_t len);
void output_close(struct output *o);
#endif
