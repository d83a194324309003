/* SPDX-License-Identifier: MIT */
/* The two texts that Redis keeps of a job; src/lua/README.md draws both. */
#ifndef LAPSE_RECORD_H
#define LAPSE_RECORD_H
#include "job/attributes.h"

enum {
    JOB_BODY_MAX = 1 << 20,
    JOB_REASON_MAX = 200,
    JOB_TRIES = 10,
    JOB_BACKOFF_MS = 1000,
    JOB_BACKOFF_MAX_MS = 3600000
};
#define JOB_TEN_YEARS_MS ((int64_t)315576000000)

/* What does not change in the life of a job. */
struct record {
    unsigned tries;
    int64_t backoff_ms;
    int64_t backoff_max_ms;
    struct span attributes;
    struct span body;
};

enum { RECORD_HEADER_MAX = 2 + 5 + 7 + 7 + 2 }; /* version, flags, four varints */

/* Writes the header, after which the attributes and the body follow as they are; returns its
 * length. */
size_t record_encode(unsigned char out[RECORD_HEADER_MAX], const struct record *r);

/* r->attributes and r->body then point into text. false: this version cannot read it, and r has not
 * changed. */
bool record_decode(struct record *r, struct span text);

/* The last run of a job, and why it ended; kept from the first claim on. */
struct attempt {
    unsigned try_no;
    uint64_t token;
    int64_t claimed_us;
    int64_t due_ms;
    bool cancelled;   /* it was asked to stop while it ran */
    int ended;        /* enum lapse_end; 0: it has not */
    unsigned moments; /* of a series: how many have been */
    unsigned parts;   /* of a group: how many it has */
    bool is_paused;   /* of a series */
    bool is_dry;      /* of a calendar: it has no moment left */
    bool awaits;      /* of a batch's own job: it waits for the others */
    struct span reason;
};

/* a->reason then points into text. false: likewise. */
bool attempt_decode(struct attempt *a, struct span text);

#endif
