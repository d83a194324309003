/* SPDX-License-Identifier: MIT */
/* A bad wire between clients and a server. Each change is in force when its call returns. */
#ifndef PROXY_H
#define PROXY_H
#include "server.h"
#include <stdbool.h>

enum proxy_way { PROXY_UP, PROXY_DOWN }; /* to Redis, to the client */
struct proxy {
    pid_t pid;
    int wake; /* eventfd: look at ctl */
    struct proxy_ctl *ctl;
    char url[160], tcp_url[80];
};

struct proxy *proxy_start(struct server *s);
void proxy_stop(struct proxy *p); /* NULL is fine */
/* New connections go to another server. */
void proxy_aim(struct proxy *p, struct server *s);

/* ---- cutting ---- */
/* After so many more bytes, of whatever connections, cuts the one that had the last of them;
 * once. */
void proxy_cut_after(struct proxy *p, enum proxy_way way, long bytes);
/* Bytes that pass until then; -1: it has cut. */
long proxy_cut_left(struct proxy *p, enum proxy_way way);
/* For that only the nth connection counts; 0: all do. */
void proxy_cut_conn(struct proxy *p, long n);
void proxy_drop(struct proxy *p); /* cuts all connections */
/* Clients read an end, and may go on to write. */
void proxy_half_close(struct proxy *p);
void proxy_refuse(struct proxy *p, bool on); /* accepts connections and closes them */

/* ---- swallowing and slowing ---- */
void proxy_swallow(struct proxy *p, bool on); /* reads everything and forwards nothing, both ways */
/* Only of the nth connection; 0: of all. */
void proxy_swallow_conn(struct proxy *p, long n);
/* Stops swallowing and cuts all connections, in one step: a connection that goes on after some of
 * its bytes were swallowed has a hole in the middle. */
void proxy_heal(struct proxy *p);
/* Of each piece, each way; the next one is read when it has gone on. */
void proxy_delay(struct proxy *p, int ms);
void proxy_jitter(struct proxy *p, int ms); /* so much more or less than that, at random */
/* A network instead of that: what is sent arrives so much later, at random jitter_us more or less,
 * however much is on its way; nothing overtakes what was sent before it. */
void proxy_network(struct proxy *p, long up_us, long down_us, long jitter_us);

/* ---- holding ---- */
/* Holds back what clients send: each connection as soon as it has the answers to all it asked, and
 * new ones. false: goes on. Where the aim was changed meanwhile, it goes on to the other server;
 * subscriptions are cut. Not for users who log in. */
void proxy_hold(struct proxy *p, bool on);

/* ---- counts ---- */
long proxy_conns(struct proxy *p); /* accepted so far */
long proxy_bytes(struct proxy *p, enum proxy_way way);
#endif
