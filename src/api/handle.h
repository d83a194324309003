/* SPDX-License-Identifier: MIT */
/* The handle: all rooms of it, in the order in which they close. */
#ifndef LAPSE_HANDLE_H
#define LAPSE_HANDLE_H
#include "listen/listener.h"

struct lapse {
    struct core core;
    struct deliver deliver;
    struct conn conn; /* for commands; the subscription has its own */
    struct script script;
    struct work work;
    unsigned n_pending; /* requests not answered yet */
    size_t n_bytes;     /* their bodies */
    int64_t last_id_us; /* the time in the id that was made up last */
    bool closing;
    bool giving_back; /* grace is over: what handlers still have is on its way to Redis */
    bool ended;
    int64_t end_us; /* monotonic: when closing ends, settled or not */
    ev_prepare idle;
    struct timer grace;
    struct req closed;
};

#endif
