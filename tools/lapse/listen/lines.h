/* SPDX-License-Identifier: MIT */
#ifndef LINES_H
#define LINES_H
#include "cli/output.h"
#include "command.h"
#include <ev.h>

struct line;
struct lines { /* fired jobs on their way to stdout; a job is done when its whole line is out */
    struct ev_loop *loop;
    const struct globals *g;
    lapse_cb *settled; /* of each settle, with the arg of lines_add() */
    /* stdout is gone; what waits here is kept until the handle ends, which gives it back */
    void (*broken)(void *arg);
    void *broken_arg;
    struct output out;
    ev_io writable;
    ev_timer later; /* instead of it, where it was said to be writable and was not */
    struct line *first, **last;
    unsigned n, n_kept; /* jobs whose lines wait; those whose lines will never be written */
    int is_broken;
};
void lines_init(struct lines *s);
void lines_add(struct lines *s, struct lapse_job *job, void *arg);
/* of no job; text is given to free(); 0, or no memory */
int lines_add_text(struct lines *s, char *text, size_t len);
/* writes no more; broken() is told if a line waits */
void lines_give_up(struct lines *s, const char *reason);
/* what is not out yet is dropped, its job too; each arg is given to free() */
void lines_free(struct lines *s);
#endif
