/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_LOG_H
#define LAPSE_LOG_H
#include <lapse.h>
#include <stdbool.h>
#include <syslog.h>

/* One a second each; what is held back in between is counted and said with the next. */
enum log_site {
    LOG_CONNECT,
    LOG_AGAIN, /* takes back a warning of LOG_CONNECT, LOG_REFUSED or LOG_SILENT */
    LOG_VERSION,
    LOG_REFUSED,
    LOG_SUBSCRIBE,
    LOG_SILENT,
    LOG_DEAF,
    LOG_HEARS, /* of its own, or it is held back by the warning that it takes back */
    LOG_POLICY,
    LOG_KEEPS, /* likewise */
    LOG_DATA,
    LOG_LEASE,
    LOG_BLOCKED,
    LOG_RESUMED,
    LOG_MEMORY,
    LOG_CLOCK,
    LOG_SITES
};
struct log {
    lapse_log_fn *fn;
    void *arg;
    int64_t last_us[LOG_SITES];
    unsigned held_back[LOG_SITES];
};
/* Was it written, and not held back? */
bool log_line(struct log *log, enum log_site site, int level, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Untrusted bytes for a line, one to one: what is not printable ASCII, and each backslash, becomes
 * \xNN; cut to fit. Returns out. log_line() escapes the same bytes but backslashes, so that nothing
 * is escaped twice. */
enum { LOG_VALUE = 256 }; /* bytes to have for a value in a line */
char *log_escape(char *out, size_t size, const void *bytes, size_t len);

#endif
