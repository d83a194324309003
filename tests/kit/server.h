/* SPDX-License-Identifier: MIT */
/* A redis-server for this test alone, with redis.conf, on a Unix socket. */
#ifndef SERVER_H
#define SERVER_H
#include <sys/types.h>

struct redisContext;

enum { SERVER_ARGS = 24 };
struct server {
    pid_t pid;    /* 0: not running */
    int port;     /* on 127.0.0.1; 0: none */
    int tls_port; /* if not 0, proxies connect there */
    char dir[64], socket[80], url[120], tcp_url[80];
    const char *args[SERVER_ARGS + 1]; /* the caller's, after the config file's; NULL ends them */
    struct redisContext *redis;        /* the connection of redis.c */
    int n_proxies;
};

struct server *server_start(void);
/* extra_args must live as long as the server; NULL ends them, and may stand for none. */
struct server *server_start_opts(const char *const *extra_args);
/* Listens on a free port too: tcp_url. */
struct server *server_start_tcp(const char *const *extra_args);

/* The same on this port; NULL: it did not start, for another process may have taken the port. */
struct server *server_start_at(int port, const char *const *extra_args);

int server_free_port(void); /* on 127.0.0.1; another one with each call */

void server_kill9(struct server *s);
/* Kills it (-9) if it runs, and starts it on the same files: it replays its append-only file. */
void server_restart(struct server *s);
void server_signal(struct server *s, int sig); /* SIGSTOP, SIGCONT */
void server_stop(struct server *s);            /* and removes its folder; NULL is fine */

/* ---- users ----
 * Every server has the users of tools/doc/users.md, with the password "secret". With
 * LAPSE_TEST_ACL=listener the URLs of all servers and proxies are that user's; the tests themselves
 * look at Redis as a user who may do anything. */
const char *server_login(void); /* the part of these URLs: "lapse_listener:secret@"; or "" */
/* This test needs a listener: skips it where the user is a producer. */
void server_listens(void);
/* Gives that user more rights. */
void server_allow(struct server *s, const char *rules);
/* How often Redis refused that user anything; each case is printed to stderr. */
int server_refusals(struct server *s);
#endif
