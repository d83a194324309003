/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_DUES_H
#define LAPSE_DUES_H
#include "base/span.h"

enum { DUES_MAX = 32 };

#define DUES_ALL INT64_MAX

/* A moment, by Redis's clock, at which jobs of a queue are due. */
struct due {
    int64_t ms;
    int64_t heard_us; /* when a notice named it, by clock_us(); 0: only a script did */
    bool own;         /* one of the jobs is ours */
};

/* The next moments of a queue, as far as we know. */
struct dues {
    struct due at[DUES_MAX + 1]; /* in order; one more than are kept */
    unsigned n;
    int64_t known_ms;  /* up to there all are known; DUES_ALL: there are no others */
    int64_t forgot_ms; /* from there on those of others were forgotten; 0: none was */
};

/* Of two with the same moment one remains. When there are too many, the last of others is
 * forgotten, and if all are ours, the last. */
void dues_add(struct dues *d, struct due due);
/* The first that is ours, or is not; NULL: none is known. */
const struct due *dues_first(const struct dues *d, bool own);
/* Removes ours, or the others, up to a moment. */
void dues_remove(struct dues *d, bool own, int64_t until_ms);

/* A script that was sent at sent_us said which moments up to known_ms are to come: "MS +MS ...",
 * with a + where a job is ours. Those that a notice named since are kept. Moments up to taken_ms
 * are taken care of. */
struct dues_seen {
    struct span coming;
    int64_t known_ms;
    int64_t taken_ms;
    int64_t sent_us;
};
void dues_learn(struct dues *d, const struct dues_seen *seen);

/* A script said which moment is next; 0: none. One that we did not know ends what is known.
 * all_own: it is surely ours. */
void dues_learn_next(struct dues *d, int64_t next_ms, int64_t taken_ms, bool all_own);

/* Which of them are ours is not known any more. */
void dues_forget(struct dues *d);

#endif
