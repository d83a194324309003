/* SPDX-License-Identifier: MIT */
#ifndef PROXY_H
#define PROXY_H
#include "bench/histogram.h"
#include "client/private_folder.h"
#include "client/redis_sync.h"
#include <sys/types.h>

/* A network between the listeners and Redis: a process that carries what they say to each other,
 * and takes half a round trip for each way. */
struct proxy {
    pid_t pid; /* 0: there is none */
    int leash; /* our end of a pipe; the proxy stops when it is closed, also by our death */
    char folder[PRIVATE_FOLDER_BYTES];
    char *url; /* of Redis through the proxy, with its password; owned, wiped */

    /* of PINGs */
    struct histogram direct, through;
};

/* To be called before the listeners are forked. Both return 0, or an exit code after they have
 * printed why. */
int proxy_start(struct proxy *p, const char *url, int64_t rtt_us);
/* Measures the round trip through it, and without it. */
int proxy_measure(struct proxy *p, struct redis_sync *redis, int64_t rtt_us);
void proxy_stop(struct proxy *p);
#endif
