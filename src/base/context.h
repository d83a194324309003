/* SPDX-License-Identifier: MIT */
/* What all rooms of one handle share. */
#ifndef LAPSE_CORE_H
#define LAPSE_CORE_H
#include "api/options.h"
#include "base/clock.h"
#include "base/health.h"
#include "base/log.h"
#include "base/timer.h"
#include "redis/server_clock.h"

struct core {
    struct ev_loop *loop;
    struct options options;
    struct log log;
    struct health health;
    struct lapse_stats stats;
    struct server_clock clock;
    bool up;       /* the connection for commands is */
    int login_err; /* EAUTH, EDENIED: Redis did not let us in the last time it was asked; else 0 */
    /* when the log first said that a connection is not; 0: that is over, and was said */
    int64_t trouble_us;
    struct lapse *handle; /* for the users' callbacks */
};

#endif
