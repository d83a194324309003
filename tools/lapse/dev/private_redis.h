/* SPDX-License-Identifier: MIT */
#ifndef SERVER_H
#define SERVER_H
#include "command.h"
#include <sys/types.h>

struct server { /* a private redis-server, gone with us */
    pid_t janitor;
    int leash; /* when this end is closed, also by our death, the janitor cleans up */
    char dir[80], url[128];
};
/* NULL: ours; 0, or an exit code and has said why */
int server_start(struct server *s, const char *given);
void server_stop(struct server *s); /* waits until all is gone */
#endif
