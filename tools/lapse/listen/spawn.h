/* SPDX-License-Identifier: MIT */
#ifndef SPAWN_H
#define SPAWN_H
#include <sys/types.h>

/* The path of a program, found in the absolute folders of PATH, to be freed; NULL: there is
 * none. */
char *find_program(const char *name);

struct spawn {
    const char *path;
    char *const *argv;
    char *const *env;
    int stdin_fd;
};
/* Starts a program that leads a process group of its own, has no fds but 0, 1 and 2, and is killed
 * when we die; 0, or an errno. */
int spawn_program(const struct spawn *s, pid_t *pid);

void block_signal(int signum);
/* The process that started us may have blocked it. */
void unblock_signal(int signum);
#endif
