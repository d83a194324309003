/* SPDX-License-Identifier: MIT */
#ifndef JANITOR_H
#define JANITOR_H
#include <sys/types.h>

/* Who ends our servers and removes their folder when we are gone. */
struct janitor {
    pid_t pid;
    int leash; /* when this end is closed, also by our death, it cleans up */
};

enum { JANITOR_SERVERS = 6 };
/* A redis-server: the folder that it is started in, where its log is redis.log, and its command
 * line, which ends with NULL. */
struct janitor_server {
    const char *dir;
    const char *const *argv;
};

/* Starts a janitor, and through it the servers, which are at most JANITOR_SERVERS. dir: what it
 * removes at the end. 0, or an exit code after it has printed why. */
int janitor_start(struct janitor *j, const char *dir, const struct janitor_server *servers, int n);
void janitor_stop(struct janitor *j); /* waits until everything is gone */

/* The leash is readable when there is something to hear: which server has ended, or that all have,
 * or the janitor itself. */
enum { JANITOR_SILENT = -1, JANITOR_ALL_ENDED = -2 };
int janitor_heard(const struct janitor *j);
#endif
