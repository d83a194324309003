/* SPDX-License-Identifier: MIT */
/* The handle: all that one lapse_open() makes, in the order in which it closes. */
#ifndef LAPSE_HANDLE_H
#define LAPSE_HANDLE_H
#include "api/options.h"
#include "listen/ends.h"
#include "listen/listener.h"
#include "script/calendars.h"
#include "script/fences.h"
#include "script/registry.h"
#include "script/tally.h"

struct lapse {
    struct context context;
    struct task_queue tasks;
    struct options options; /* owns the texts of the options and of the node's address */
    struct topo topo;
    struct node node; /* all of it, where it is one Redis; else topo has masters */
    struct script script;
    struct fences fences;
    struct ends ends;
    struct registry registry;
    struct tallies tallies;
    struct calendars calendars;
    struct listener listener;

    unsigned n_pending; /* requests without an answer */
    size_t n_bytes;     /* of their bodies */
    int64_t last_id_us; /* the time in the last id that was generated */

    bool closing;     /* takes nothing new */
    bool giving_back; /* the grace is over: jobs that handlers still have go back to Redis */
    bool counts_sent; /* those that are left for the history */
    bool ended;       /* every request has ended */
    int64_t end_us;   /* monotonic: when closing ends, settled or not */
    ev_prepare turn;  /* runs in each turn of the loop, before the loop sleeps */
    struct timer grace;
    struct task closed;
    void (*closed_fn)(void *arg);
    void *closed_arg;
};

#endif
