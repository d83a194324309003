/* SPDX-License-Identifier: MIT */
/* The end of stdout: a reply that was not written is no reply, whatever Redis said. */
#include "cli/stdout.h"
#include "cli/message.h"
#include "command.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

int stdout_error_code(void)
{
    struct pollfd end = {.fd = 1, .events = POLLOUT};

    if (poll(&end, 1, 0) == 1 && (end.revents & POLLERR)) {
        return UNREAD;
    }
    return OUTPUT;
}

int close_stdout(int code)
{
    int lost = DONE;
    int err = 0;

    message_flush();

    errno = 0;
    if (ferror(stdout) || fflush(stdout)) {
        err = errno;
        lost = stdout_error_code();
    }

    if (fclose(stdout) && lost == DONE) {
        err = errno;
        lost = OUTPUT;
    }

    if (lost == OUTPUT) {
        message_print("stdout: %s", err ? strerror(err) : "a write failed");
    }

    return code ? code : lost;
}
