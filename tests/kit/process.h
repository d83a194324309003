/* SPDX-License-Identifier: MIT */
/* A program under test. It inherits the environment, and dies with the test. */
#ifndef PROCESS_H
#define PROCESS_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct proc {
    pid_t pid;              /* 0: ended and reaped */
    int status;             /* its exit status, or 128 + signal; -1 while it runs */
    int in, out_fd, err_fd; /* -1: closed */
    char *out, *err;        /* what it wrote so far, with a NUL byte at the end */
    size_t out_len, err_len;
};

/* It ends a wait for what never comes. Nothing that comes is that slow. */
enum { PROC_WAIT_MS = 60000 };

/* argv ends with NULL. argv[0] is "lapse" or "examples/x", of BUILD, or any other program. */
struct proc *proc_start(const char *const *argv);
/* Starts it, writes in to it (NULL: nothing), and waits for its end.
 * The arguments end with NULL. */
struct proc *proc_run(const char *in, const char *arg0, ...);
void proc_free(struct proc *p); /* kills it if it still runs; NULL is fine */

void proc_write(struct proc *p, const void *data, size_t len);
void proc_close_in(struct proc *p);
void proc_signal(struct proc *p, int sig);
/* Does it write this text in time? */
bool proc_until_out(struct proc *p, const char *text, int timeout_ms);
bool proc_until_err(struct proc *p, const char *text, int timeout_ms);
int proc_wait(struct proc *p, int timeout_ms); /* its status; -1: it did not end */
#endif
