/* SPDX-License-Identifier: MIT */
#ifndef LINES_H
#define LINES_H
#include "cli/output.h"
#include "command.h"
#include <ev.h>

struct line;
/* Due jobs on their way to stdout; a job is done when its whole line is written. */
struct lines {
    struct ev_loop *loop;
    const struct globals *g;
    lapse_cb *settled; /* of each settle, with the arg of lines_add_job() */
    /* stdout is gone; the jobs that wait here stay unsettled, and the end of the handle gives them
     * back */
    void (*broken)(void *arg);
    void *broken_arg;
    struct output out;
    ev_io writable;
    ev_timer later; /* watches instead of it where stdout was called writable and was not */
    struct line *first, **last;
    unsigned n_jobs;      /* whose lines wait */
    unsigned n_unsettled; /* whose lines will never be written */
    bool is_broken;
};
void lines_init(struct lines *s);
void lines_add_job(struct lines *s, struct lapse_job *job, void *arg);
/* A line of no job; text will be given to free(). False: out of memory. */
bool lines_add_text(struct lines *s, char *text, size_t len);
/* Writes nothing more; broken() is called if a line waits. */
void lines_give_up(struct lines *s, const char *reason);
/* Drops what is not written yet, with its jobs; each arg is given to free(). */
void lines_free(struct lines *s);
#endif
