/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_HOSTS_H
#define LAPSE_HOSTS_H

enum { HOSTS_MAX = 8, HOSTS_TEXT = 64 };

/* The addresses of one name, as numbers, and which of them was tried. */
struct hosts {
    char at[HOSTS_MAX][HOSTS_TEXT];
    unsigned n, next;
    char good[HOSTS_TEXT]; /* the last one that let us in; "": none did */
};

/* The address to try next. When all were tried, or hosts_restart() was called, the name is looked
 * up again, which blocks; the good one comes first then. NULL: *why says why there is none. */
const char *hosts_next(struct hosts *h, const char *name, const char **why);
static inline int hosts_left(const struct hosts *h)
{
    return h->next < h->n;
}
static inline void hosts_restart(struct hosts *h)
{
    h->next = h->n;
}
void hosts_good(struct hosts *h); /* the one that hosts_next() gave last */

#endif
