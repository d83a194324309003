/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_LOG_H
#define LAPSE_LOG_H
#include <lapse.h>
#include <stdbool.h>
#include <syslog.h>

/* The places that log. Each writes one line a second; the next line says how many were left out. */
enum log_site {
    LOG_CONNECT,
    LOG_AGAIN, /* the end of LOG_CONNECT, LOG_REFUSED or LOG_SILENT */
    LOG_VERSION,
    LOG_REFUSED,
    LOG_SUBSCRIBE,
    LOG_SILENT,
    LOG_NO_EVENTS,
    LOG_EVENTS, /* the end of LOG_NO_EVENTS: a site of its own, so that this does not delay it */
    LOG_EVICTION,
    LOG_NO_EVICTION, /* the end of LOG_EVICTION, likewise */
    LOG_DATA,
    LOG_LEASE,
    LOG_BLOCKED,
    LOG_RECLAIMED,
    LOG_MEMORY,
    LOG_CLOCK,
    LOG_REPLICAS,
    LOG_ALONE,
    LOG_NOT_ALONE, /* the end of LOG_ALONE */
    LOG_FORWARD,
    LOG_UNASKED,
    LOG_CALENDAR,
    LOG_QUIET, /* what a listener was told: sites of their own, so that none delays another */
    LOG_GO_ON,
    LOG_STOP,
    LOG_SENTINEL,
    LOG_FAILOVER,
    LOG_CLUSTER,
    LOG_SITES
};

struct log {
    lapse_log_fn *fn;
    void *arg;
    int64_t last_us[LOG_SITES];
    unsigned held_back[LOG_SITES];
};

/* Was the line written, rather than left out? */
bool log_line(struct log *log, enum log_site site, int level, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

enum { LOG_VALUE = 256 }; /* bytes to have for a value in a line */

/* Makes untrusted bytes fit for a line: what is not printable ASCII, and each backslash, becomes
 * \xNN, and what does not fit into out is left out. Returns out. log_line() escapes the same bytes
 * but backslashes, so that nothing is escaped twice. */
char *log_escape(char *out, size_t size, const void *bytes, size_t len);

#endif
