/* SPDX-License-Identifier: MIT */
#ifndef OUTLET_H
#define OUTLET_H
#include <sys/types.h>

struct output { /* stdout or stderr, written to without ever waiting for who reads it */
    int fd;     /* to be watched; ours if it is not the one that was given */
    int given;
    enum { TAKES_ALL, RETURNS, SOCKET, ASKED_FIRST } kind;
};
void output_open(struct output *o, int fd);
/* some of it; -1 EAGAIN: none now */
ssize_t output_write(struct output *o, const char *text, size_t len);
void output_close(struct output *o);
#endif
