/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_HOSTS_H
#define LAPSE_HOSTS_H
#include <stdbool.h>

enum { HOSTS_MAX = 8, HOSTS_TEXT = 64 };

/* The addresses of one name, as numbers, and which of them was tried. */
struct hosts {
    char at[HOSTS_MAX][HOSTS_TEXT];
    unsigned n;
    unsigned next;
    char good[HOSTS_TEXT]; /* the last one that let us in; "": none did */
};

/* Returns the address to try next. When all were tried, or after hosts_restart(), the name is
 * looked up again, which blocks; the good one comes first then. NULL: there is none, and *why says
 * why. */
const char *hosts_next(struct hosts *h, const char *name, const char **why);

/* Are there addresses that were not tried since the name was looked up? */
static inline bool hosts_left(const struct hosts *h)
{
    return h->next < h->n;
}

static inline void hosts_restart(struct hosts *h)
{
    h->next = h->n;
}

/* The address that hosts_next() gave last is the good one. */
void hosts_good(struct hosts *h);

#endif
