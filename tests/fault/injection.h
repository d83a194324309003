/* SPDX-License-Identifier: MIT */
/* One fault at one moment, in this process: the nth allocation of lapse or of hiredis, the nth call
 * of the system. */
#ifndef INJECT_H
#define INJECT_H
#include <stdbool.h>

struct injection {
    /* "alloc": lapse's; "hiredis": its allocations; or a function: "read", "connect" */
    const char *what;
    /* of a function: its errno; SHORT: one byte only; AT_END: read says that the other end
     * closed */
    int error;
    const char *name; /* of the error */
};
enum { SHORT = -1, AT_END = -2 };
extern const struct injection inject_calls[]; /* what is NULL ends them */

void inject_install(void); /* once a process, before the first lapse_open() */
/* The nth such call from now fails, once; nth < 0: one in -nth, at random. */
void inject_arm(const struct injection *i, long nth, unsigned seed);
void inject_pause(bool on); /* the test's own calls do not count */
void inject_disarm(void);
bool inject_outside(void); /* not of lapse's memory: it can cost a connection */
bool inject_fired(void);   /* since inject_arm() */
/* Is this call the one that is to fail? Sets errno then. For the functions that do so. */
bool inject_strikes(const char *what);
#endif
