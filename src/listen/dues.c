/* SPDX-License-Identifier: MIT */
/* A listener must know of its jobs before they are due, so that it can send ahead. Scripts name the
 * moments to come, of a second at most; what is scheduled later within that second is announced by
 * a notice. So nothing up to known_ms is missed, unless a notice is lost. */
#include "listen/dues.h"
#include <string.h>

static void dues_remove_at(struct dues *d, unsigned i)
{
    d->n--;
    memmove(d->at + i, d->at + i + 1, (d->n - i) * sizeof *d->at);
}

/* One of others, if there is any: these are only watched. */
static void dues_forget_last(struct dues *d)
{
    for (unsigned i = d->n; i-- > 0;) {
        if (!d->at[i].own) {
            int64_t ms = d->at[i].ms;
            if (!d->forgot_ms || ms < d->forgot_ms) {
                d->forgot_ms = ms;
            }
            dues_remove_at(d, i);
            return;
        }
    }

    d->n--;
    if (d->at[d->n].ms <= d->known_ms) {
        d->known_ms = d->at[d->n].ms - 1;
    }
}

void dues_add(struct dues *d, struct due due)
{
    unsigned i = d->n;

    while (i > 0 && d->at[i - 1].ms > due.ms) {
        i--;
    }

    if (i > 0 && d->at[i - 1].ms == due.ms) {
        struct due *same = &d->at[i - 1];
        same->own = same->own || due.own;
        same->heard_us = due.heard_us > same->heard_us ? due.heard_us : same->heard_us;
        return;
    }

    memmove(d->at + i + 1, d->at + i, (d->n - i) * sizeof *d->at);
    d->at[i] = due;
    d->n++;
    if (d->n > DUES_MAX) {
        dues_forget_last(d);
    }
}

const struct due *dues_first(const struct dues *d, bool own)
{
    for (unsigned i = 0; i < d->n; i++) {
        if (d->at[i].own == own) {
            return &d->at[i];
        }
    }

    return NULL;
}

void dues_remove(struct dues *d, bool own, int64_t until_ms)
{
    for (unsigned i = d->n; i-- > 0;) {
        if (d->at[i].own == own && d->at[i].ms <= until_ms) {
            dues_remove_at(d, i);
        }
    }
}

void dues_learn(struct dues *d, const struct dues_seen *seen)
{
    struct span rest = seen->coming;

    for (unsigned i = d->n; i-- > 0;) {
        if (d->at[i].ms <= seen->known_ms && d->at[i].heard_us < seen->sent_us) {
            dues_remove_at(d, i);
        }
    }

    d->known_ms = seen->known_ms;
    d->forgot_ms = 0;
    for (bool more = rest.len > 0; more;) {
        struct span word = rest;
        int64_t ms = 0;

        more = span_cut(&rest, ' ', &word);
        bool own = word.len > 0 && word.at[0] == '+';
        if (own) {
            word = (struct span){word.at + 1, word.len - 1};
        }
        if (span_decimal(word, EXACT_MAX, &ms) && ms > seen->taken_ms) {
            dues_add(d, (struct due){.ms = ms, .own = own});
        }
    }
}

static bool dues_knew(const struct dues *d, int64_t ms)
{
    if (d->forgot_ms && ms >= d->forgot_ms) {
        return true;
    }

    for (unsigned i = 0; i < d->n; i++) {
        if (d->at[i].ms == ms) {
            return true;
        }
    }

    return false;
}

void dues_learn_next(struct dues *d, int64_t next_ms, int64_t taken_ms, bool all_own)
{
    if (next_ms == 0) {
        d->known_ms = DUES_ALL;
        return;
    }

    if (next_ms > taken_ms && all_own) {
        dues_add(d, (struct due){.ms = next_ms, .own = true});
    } else if (next_ms > d->known_ms || (next_ms > taken_ms && !dues_knew(d, next_ms))) {
        d->known_ms = next_ms - 1;
    }
}

void dues_forget(struct dues *d)
{
    if (d->n > 0 || d->known_ms != DUES_ALL) {
        *d = (struct dues){0};
    }
}
