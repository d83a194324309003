/* SPDX-License-Identifier: MIT */
#ifndef DELAY_LINE_H
#define DELAY_LINE_H
#include "base/exact_timer.h"
#include <stddef.h>

enum { DELAY_LINE_BYTES = 1 << 20, DELAY_LINE_PARCELS = 1 << 13 };

/* Bytes that arrived together. */
struct parcel {
    int64_t due_us; /* when they are to be written, by clock_us() */
    size_t len;     /* of what is still to be written */
};

/* One way of a connection: carries bytes from one socket to another, and writes each delay_us after
 * it arrived. A megabyte can be on its way. */
struct delay_line {
    /* set by the owner, whose sockets these are; they do not block */
    struct ev_loop *loop;
    int from, to;
    int64_t delay_us;
    /* All that came has been written and nothing more comes, or a socket failed. May stop the line
     * and free it. */
    void (*ended)(void *arg);
    void *arg;

    bool at_end; /* nothing more comes */
    ev_io readable, writable;
    struct exact_timer timer; /* for the first parcel */

    /* what is on its way; two rings */
    size_t first_parcel, n_parcels, first_byte, n_bytes;
    struct parcel parcels[DELAY_LINE_PARCELS];
    char bytes[DELAY_LINE_BYTES];
};

void delay_line_start(struct delay_line *d);
/* What is on its way is lost. */
void delay_line_stop(struct delay_line *d);
#endif
