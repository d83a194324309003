/* SPDX-License-Identifier: MIT */
#include "redis/attempts.h"
#include "base/clock.h"
#include <stdbool.h>

enum { BACKOFF_MIN_MS = 8, BACKOFF_STEP_MS = 64, BACKOFF_MAX_MS = 500 };
enum { RESET_MS = 1000, GARBLED_FAILURES = 4, DIAL_MS = 400, PATIENT_FROM = 8, MOST_PATIENT = 64 };

static int64_t attempts_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The first attempt comes at once, and no more than ten come in a second. */
int64_t attempts_backoff_ms(const struct attempts *a)
{
    if (a->n_failed == 0) {
        return BACKOFF_MIN_MS;
    }
    return attempts_least(BACKOFF_STEP_MS * (int64_t)a->n_failed, BACKOFF_MAX_MS);
}

/* The kernel resends a lost SYN only after 1, 2, 4 s, so a server that was reached before is
 * dialled again sooner. The 8th, 16th, 32nd... attempt waits longer, in case the way has become
 * longer. */
int64_t attempts_patience_ms(const struct attempts *a, unsigned n_addresses, int64_t reply_ms)
{
    bool patient = a->n_failed >= PATIENT_FROM && (a->n_failed & (a->n_failed - 1)) == 0;
    int64_t patience_ms = DIAL_MS + 4 * a->reached_ms;

    if (a->reached_ms == 0) {
        int64_t share_ms = reply_ms / (n_addresses > 1 ? n_addresses : 1);
        return n_addresses > 1 && share_ms > DIAL_MS ? share_ms : reply_ms;
    }

    if (patient) {
        patience_ms = a->n_failed < MOST_PATIENT ? 2 * patience_ms : reply_ms;
    }
    return attempts_least(patience_ms, reply_ms);
}

void attempts_reached(struct attempts *a, int64_t started_us)
{
    a->reached_ms = (clock_us() - started_us) / 1000 + 1;
}

/* At most once a second: something between us and Redis that cuts every reply must not make us
 * connect again and again in a tight loop. */
void attempts_worked(struct attempts *a)
{
    int64_t now_us = clock_us();

    if (now_us - a->reset_us > RESET_MS * INT64_C(1000)) {
        a->n_failed = 0;
        a->reset_us = now_us;
    }
}

void attempts_garbled(struct attempts *a)
{
    if (a->n_failed < GARBLED_FAILURES) {
        a->n_failed = GARBLED_FAILURES;
    }
}
