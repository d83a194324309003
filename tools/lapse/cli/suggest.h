/* SPDX-License-Identifier: MIT */
#ifndef SUGGEST_H
#define SUGGEST_H
#include <stddef.h>

/* The name that a mistyped one was probably meant to be. */
struct suggestion {
    const char *given;
    const char *name; /* NULL: none is near */
    size_t distance;
};
struct suggestion suggestion_for(const char *given);
void suggestion_consider(struct suggestion *s, const char *name);
#endif
