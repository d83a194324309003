/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_REPORT_H
#define LAPSE_REPORT_H
#include "base/span.h"
#include "redis/endpoint.h"
#include "redis/hosts.h"

enum { REPORT_PLACE = 256 };

/* What the log and the health callback hear of one connection. */
struct report {
    struct endpoint *endpoint;
    enum conn_role role;
    const struct hosts *hosts; /* of several addresses, the one that was tried is named */
};

/* Where it goes: host:port, and of a name with several addresses the one that was tried. */
const char *report_place(const struct report *r, char out[REPORT_PLACE]);

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
void report_too_old(const struct report *r, const char *version);
/* The URL is that of a Redis, and this is a Sentinel. */
void report_is_sentinel(const struct report *r);
/* A Sentinel named it as the master, and it says that it has another role; "": none. */
void report_not_master(const struct report *r, const char *role);
/* A Sentinel said that the master is here now. */
void report_moved(const struct report *r, const char *sentinel);

/* Of the connection to a Sentinel: it cannot be asked, or does not answer as it should. One line
 * for all that happens until one does; then another. */
void report_sentinel(const struct report *r, const char *why);
/* None of them can be asked, or answers as it should. */
void report_no_sentinel(const struct report *r, bool master_is_known);
void report_sentinel_answers(const struct report *r);
/* It answered who the master is, or refused this user with that error; else error is empty. */
void report_sentinel_login(const struct report *r, struct span error);

/* The same of a connection to any node of a cluster. */
void report_seed(const struct report *r, const char *why);
void report_no_seed(const struct report *r);
void report_seed_answers(const struct report *r);
/* A node whose commands can be used gives no map of its cluster that can. */
void report_no_map(const struct report *r, const char *why);

#endif
