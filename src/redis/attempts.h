/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_ATTEMPTS_H
#define LAPSE_ATTEMPTS_H
#include <stdint.h>

/* How often a connection is tried, and how patiently. */
struct attempts {
    unsigned n_failed;  /* in a row; of a name with several addresses, of all of them each */
    int64_t reset_us;   /* when that was set to 0 last */
    int64_t reached_ms; /* how long it took to connect, the last time; 0: it never did */
};

/* How long to wait from the start of one attempt to the start of the next, on average. */
int64_t attempts_backoff_ms(const struct attempts *a);

/* How long an attempt may take to connect; n_addresses: of the name. */
int64_t attempts_patience_ms(const struct attempts *a, unsigned n_addresses, int64_t reply_ms);

/* The attempt connected; it began at started_us. */
void attempts_reached(struct attempts *a, int64_t started_us);

/* The connection has delivered a reply. */
void attempts_worked(struct attempts *a);

/* What was there did not speak like Redis, and will not do so the next time: there is no hurry. */
void attempts_garbled(struct attempts *a);

#endif
