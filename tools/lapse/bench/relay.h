/* SPDX-License-Identifier: MIT */
#ifndef RELAY_H
#define RELAY_H
#include "redis/address.h"

struct relay_plan {
    struct address server;
    int64_t delay_us; /* each way */
    int listening;    /* a socket, for those who want to get there */
    int leash;        /* fd: at its end the relay stops */
};

/* Connects each that comes to the server, and carries what they say to each other. Returns at the
 * end of the leash; false: it could not start. */
bool relay_run(const struct relay_plan *plan);
#endif
