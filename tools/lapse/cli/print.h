/* SPDX-License-Identifier: MIT */
#ifndef PRINT_H
#define PRINT_H
#include "command.h"
#include <stdio.h>

const char *state_name(enum lapse_state state);
const char *via_name(enum lapse_via via);
const char *catch_up_name(enum lapse_catch_up catch_up);

enum print_parts {
    WITH_BODY = 1,    /* it was asked for with its body */
    WITH_CREATED = 2, /* the reply to a schedule */
    WITH_COPIES = 4,  /* of one that asked for copies */
};
/* A job as Redis has it, in the format that was asked for. */
void print_job(const struct globals *g, const struct lapse_job *job, unsigned parts);
void print_job_heading(void);                     /* for the columns of print_job() as text */
void print_job_long(const struct lapse_job *job); /* as text, a line for each field */
/* A job that a listener has claimed. */
void print_fired(const struct globals *g, const struct lapse_job *job, FILE *to);
/* A job whose entry of a stream was given to another consumer. */
void print_adopted(const struct globals *g, const struct lapse_job *job);
void print_depth(const struct globals *g, const char *queue, const struct lapse_depth *d);
void print_depth_heading(void);
/* What print_depth() prints, and the settings: as text each in a line below. */
void print_queue(const struct globals *g, const struct lapse_queue *queue);
void print_listener(const struct globals *g, const char *queue,
                    const struct lapse_listener *listener);
void print_listener_heading(void);
void print_told(const struct globals *g, const struct lapse_listener *listener);
/* The settings of a queue, "name=value name=value". */
void print_settings(const struct globals *g, const char *queue, const char *settings);
/* The same; as text it is whether the queue is paused, and until when. */
void print_pause(const struct globals *g, const char *queue, const char *settings);
#endif
