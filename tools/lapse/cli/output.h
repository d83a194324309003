/* SPDX-License-Identifier: MIT */
#ifndef OUTLET_H
#define OUTLET_H
#include <sys/types.h>

struct outlet { /* stdout or stderr, written to without ever waiting for who reads it */
    int fd;     /* to be watched; ours if it is not the one that was given */
    int given;
    enum { TAKES_ALL, RETURNS, SOCKET, ASKED_FIRST } kind;
};
void outlet_open(struct outlet *o, int fd);
/* some of it; -1 EAGAIN: none now */
ssize_t outlet_write(struct outlet *o, const char *text, size_t len);
void outlet_close(struct outlet *o);
#endif
