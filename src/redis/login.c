/* SPDX-License-Identifier: MIT */
/* The password's way to Redis. hiredis would leave it in memory that it has freed, so it goes from
 * where it is kept straight to the socket, and hiredis is only told that there is one more answer
 * to come, by a command of no bytes. */
#include "redis/login.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

bool login_send(struct redisAsyncContext *ac, const struct address *u, redisCallbackFn *fn)
{
    static const char command[] =
        "*1\r\n$4\r\nAUTH\r\n"; /* 0.14.1 and 1.x read its name, to know a subscribe */
    char head[64];
    char middle[32];
    size_t user_len = u->user ? strlen(u->user) : 0;
    size_t len = strlen(u->password);
    int head_len = u->user ? snprintf(head, sizeof head, "*3\r\n$4\r\nAUTH\r\n$%zu\r\n", user_len)
                           : snprintf(head, sizeof head, "*2\r\n$4\r\nAUTH\r\n");
    int middle_len = snprintf(middle, sizeof middle, "%s$%zu\r\n", u->user ? "\r\n" : "", len);
    struct iovec parts[] = {
        {head, (size_t)head_len}, {u->user, user_len}, {middle, (size_t)middle_len},
        {u->password, len},       {"\r\n", 2},
    };
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = sizeof parts / sizeof *parts};
    size_t all = (size_t)head_len + user_len + (size_t)middle_len + len + 2;

    /* nothing was sent before, so a socket takes all of it */
    return sendmsg(ac->c.fd, &message, MSG_NOSIGNAL) == (ssize_t)all &&
           redisAsyncFormattedCommand(ac, fn, NULL, command, 0) == REDIS_OK &&
           ac->replies.tail; /* noted: see conn.c */
}
