/* SPDX-License-Identifier: MIT */
/* wire PATH SERVER RTT_US: the network of `lapse bench --rtt` alone, for listeners of any system.
 * Who connects to the Unix socket PATH, which it makes, gets to the Unix socket SERVER, and each
 * round trip takes RTT_US longer. Runs until it is killed. */
#include "bench/relay.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 64 };

static int listen_on(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, BACKLOG)) {
        return -1;
    }

    return fd;
}

int main(int argc, char **argv)
{
    int leash[2]; /* which is never closed */

    if (argc != 4 || pipe(leash)) {
        fputs("usage: wire PATH SERVER RTT_US\n", stderr);
        return 2;
    }

    struct relay_plan plan = {
        .server = {.unix_socket = true, .host = argv[2]},
        .delay_us = strtoll(argv[3], NULL, 10) / 2,
        .listening = listen_on(argv[1]),
        .leash = leash[0],
    };
    if (plan.listening < 0) {
        perror(argv[1]);
        return 1;
    }

    return relay_run(&plan) ? 0 : 1;
}
