/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_REPORT_H
#define LAPSE_REPORT_H
#include "base/span.h"
#include "redis/endpoint.h"
#include "redis/hosts.h"

/* What the log and the health callback hear of one connection. */
struct report {
    struct endpoint *endpoint;
    enum conn_role role;
    const struct hosts *hosts; /* of several addresses, the one that was tried is named */
};

/* It could not be made. */
void report_cannot_connect(const struct report *r, const char *why);
/* Redis, or something between, ended it. */
void report_lost(const struct report *r, const char *why);
/* Redis has not answered for reply_ms. */
void report_silent(const struct report *r);
/* Redis refused the handshake. */
void report_not_let_in(const struct report *r, struct span error);
/* It is up, after it was up before, or for the first time. */
void report_up(const struct report *r, bool again);
void report_too_old(const struct report *r, struct span version);

#endif
