/* SPDX-License-Identifier: MIT */
/* The programs as their users see them: words in, lines and an exit status out. Redis is reached by
 * LAPSE_URL. */
#ifndef TOOL_TEST_H
#define TOOL_TEST_H
#include "process.h"
#include "redis.h"
#include "scripted_server.h"
#include "test.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct server *tool_redis(void); /* and LAPSE_URL says where it is */
/* LAPSE_URL names all nodes of a cluster, and this login: "USER:PASSWORD@", or "". */
struct cluster;
void tool_cluster_url(const struct cluster *c, const char *login);
struct cluster *tool_cluster(int n_masters, int n_replicas); /* likewise */

/* Runs lapse to its end. */
#define lapse(...) proc_run(NULL, "lapse", __VA_ARGS__, NULL)
/* Starts it; the rest of the test goes on beside it. */
#define lapse_start(...) proc_start((const char *const[]){"lapse", __VA_ARGS__, NULL})
/* A shell line, for redirections; $lapse is the program. */
struct proc *shell(const char *line);

/* Ends it; its status must be this, and its output must contain these (NULL: anything). */
void expect(struct proc *p, int status, const char *out, const char *err);
void until_out(struct proc *p, const char *text);
void until_err(struct proc *p, const char *text);
/* set: due, run, dead */
void until_depth(struct server *s, const char *queue, const char *set, long long n);
/* Waits until the lease of each job that runs now was renewed so many times. */
void until_renewed(struct server *s, const char *queue, int times);
void until_gone(const char *path);
void until_empty(const char *folder); /* and removes it */
void until_no_process(pid_t pid);
bool has(const struct proc *p, const char *text); /* stdout */
int count_of(const char *text, const char *what);
long long member(const char *json, const char *name); /* a number */
void no_jobs(struct server *s, const char *queue);    /* audit, and every set is empty */

/* A listener named worker, whose command runs job a of queue q until it is let go. Its one slot is
 * taken, so job b waits. */
struct busy_listener {
    struct server *server;
    struct proc *proc;
    char fifo[100];
};
struct busy_listener busy_listener_start(void);
/* Lets the command go. The listener ends with it, and has begun nothing else. */
void busy_listener_ends(struct busy_listener *busy);

/* Answers each command with this, on a socket that LAPSE_URL names. */
struct scripted_server *fake_redis(const char *reply);
#endif
