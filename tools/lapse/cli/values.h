/* SPDX-License-Identifier: MIT */
#ifndef VALUES_H
#define VALUES_H
#include "command.h"
#include "job/record.h"

#define TEN_YEARS_MS JOB_TEN_YEARS_MS /* the longest duration */

/* 0, or -1 where text is none; out is then unchanged. */
int parse_duration(const char *text, int64_t *ms);
int parse_time(const char *text, int64_t *ms);
int parse_count(const char *text, unsigned max, unsigned *out); /* 1 to max */

struct when {
    struct lapse_due due;
    const char *in, *at;
};
/* 0, or USAGE after they have printed why. */
int check_queue(const char *queue);
/* A name, or a pattern of queues. */
int check_queues(const char *pattern);
bool is_pattern(const char *queue); /* of these two */
int check_listener(const char *name);
int check_id(const char *id);
int check_tag(const char *tag);
int check_batch(const char *name);
int check_when(const struct when *when); /* exactly one of --in and --at was given */

/* For struct opt. */
int set_text(const struct opt *o, char *value, void *field);     /* const char * */
int set_tag(const struct opt *o, char *value, void *field);      /* const char * */
int set_batch(const struct opt *o, char *value, void *field);    /* const char * */
int set_switch(const struct opt *o, char *value, void *field);   /* bool */
int set_count(const struct opt *o, char *value, void *field);    /* unsigned */
int set_duration(const struct opt *o, char *value, void *field); /* int64_t */
int set_state(const struct opt *o, char *value, void *field);    /* int, of enum lapse_state */
int set_moment(const struct opt *o, char *value, void *field);   /* int64_t, Unix ms */
int set_in(const struct opt *o, char *value, void *field);       /* struct when */
int set_at(const struct opt *o, char *value, void *field);       /* struct when */

int64_t monotonic_ms(void);
#endif
