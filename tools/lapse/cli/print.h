/* SPDX-License-Identifier: MIT */
#ifndef PRINT_H
#define PRINT_H
#include "command.h"
#include <stdio.h>

enum { TIME_BYTES = 32 };
const char *print_time(char out[TIME_BYTES], int64_t unix_ms); /* 2026-12-24T18:00:00.000Z */
const char *state_name(enum lapse_state state);
const char *via_name(enum lapse_via via);
enum print_parts {
    WITH_BODY = 1,    /* it was asked for with it */
    WITH_CREATED = 2, /* a schedule's answer */
};
/* A job as Redis has it. */
void print_job(const struct globals *g, const struct lapse_job *job, unsigned parts);
void print_job_heading(void);                     /* of the columns of print_job() for people */
void print_job_long(const struct lapse_job *job); /* a line per field, for people */
/* what a listener says of it */
void print_fired(const struct globals *g, const struct lapse_job *job, FILE *to);
void print_depth(const struct globals *g, const char *queue, const struct lapse_depth *d,
                 int heading);
#endif
