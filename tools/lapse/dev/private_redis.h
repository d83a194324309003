/* SPDX-License-Identifier: MIT */
#ifndef PRIVATE_REDIS_H
#define PRIVATE_REDIS_H
#include "client/private_folder.h"
#include <sys/types.h>

/* A redis-server in a folder of its own; both are gone when this process is. */
struct private_redis {
    pid_t janitor;
    int leash; /* when this end is closed, also by our death, the janitor cleans up */
    char dir[PRIVATE_FOLDER_BYTES], url[128];
};
/* conf: NULL: the usual one; 0, or an exit code after it has printed why. */
int private_redis_start(struct private_redis *r, const char *conf);
void private_redis_stop(struct private_redis *r); /* waits until everything is gone */
#endif
