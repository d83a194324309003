/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_LOOK_H
#define LAPSE_LOOK_H
#include "script/script.h"

/* Asks Redis whether a queue has jobs that wait or run, or are kept, by a plain command: the looks
 * of a turn travel together, and cost Redis a tenth of a script each. */
struct look {
    struct script *script;
    const char *queue; /* its owner's */
    struct call call;
    bool pending;
    /* any: it has some that wait or run, or Redis did not say. kept: it has some that are kept. */
    void (*end)(struct look *l, bool any, bool kept);
};

void look_init(struct look *l, struct script *script, const char *queue,
               void (*end)(struct look *l, bool any, bool kept));

/* Asks, if the connection has room and no answer is pending; else it is for the next time. */
void look_ask(struct look *l);

/* When the last one was sent, by clock_us(). */
static inline int64_t look_sent_us(const struct look *l)
{
    return l->call.sent_us;
}

#endif
