/* SPDX-License-Identifier: MIT */
/* A command on many jobs: those whose ids are given, or a selection. */
#ifndef MANY_H
#define MANY_H
#include "cli/values.h"
#include "client/oneshot.h"

struct many;

struct many_job {
    struct many *many;
    const char *id;
};

struct many {
    struct oneshot once; /* first: send() gets this */
    struct many_job *jobs;
    int n_jobs; /* 0: it is a selection */

    /* Each sends a request through oneshot_sent(), and returns what that returns. */
    int (*ask_job)(struct many_job *job);
    int (*ask_all)(struct many *m);
    const char *done; /* what becomes of the jobs: "cancelled" */

    int state; /* enum lapse_state; 0: not given */
    const char *tag;
    const char *batch;
    const char *reason;
    const char *reason_option; /* which sets that; NULL: --reason */
    int64_t before_ms;
    unsigned limit;
    struct lapse_where where; /* made of these */
    struct when when;
    int64_t spread_ms;
    const char *why; /* of a kill: the reason that its jobs get */
    bool running;
    uint64_t n; /* jobs of the selection that were changed so far */
};

#define MANY_STATE                                                                    \
    {                                                                                 \
        "state", 's', "STATE", set_state, offsetof(struct many, state),               \
            "all jobs of a state: waiting, dead, kept (of lapse cancel alone, which " \
            "frees them), or running (which are only counted, without --running)"     \
    }
#define MANY_TAG                                                                       \
    {                                                                                  \
        "tag", 0, "TAG", set_tag, offsetof(struct many, tag),                          \
            "all jobs with this tag, in any state; with --state, those that have both" \
    }
#define MANY_BATCH                                                   \
    {                                                                \
        "batch", 0, "NAME", set_batch, offsetof(struct many, batch), \
            "all jobs of this batch, likewise"                       \
    }
#define MANY_REASON                                                              \
    {                                                                            \
        "reason", 0, "TEXT", set_text, offsetof(struct many, reason),            \
            "of these, those whose reason has this part, as lapse list shows it" \
    }
#define MANY_BEFORE                                                             \
    {                                                                           \
        "before", 0, "TIME", set_before, offsetof(struct many, before_ms),      \
            "of these, those that were due, or died, or are kept until before " \
            "this time: as --at of lapse schedule"                              \
    }
#define MANY_LIMIT                                                                            \
    {                                                                                         \
        "limit", 'n', "N", set_count, offsetof(struct many, limit), "at most N; default: all" \
    }
#define MANY_SPREAD                                                                                \
    {                                                                                              \
        "spread", 0, "DURATION", set_duration, offsetof(struct many, spread_ms),                   \
            "of a selection: spread evenly over so long, by the ids; a repeat changes nothing of " \
            "it"                                                                                   \
    }

#define MANY_RUNNING                                                        \
    {                                                                       \
        "running", 0, NULL, set_switch, offsetof(struct many, running),     \
            "ask jobs that run: the command does so when their run is over" \
    }

int set_before(const struct opt *o, char *value, void *field);

/* Checks the arguments, and what the options have set. 0, or an exit code after it has printed
 * why. */
int many_read(struct many *m, const struct command *cmd, const struct arguments *args);
/* After many_read(): sends all requests, and runs until they are answered. */
int many_run(struct many *m, struct globals *g);

/* The flags of a cancel or a reschedule. */
unsigned many_flags(const struct many *m);

/* The callback of ask_all(). */
lapse_count_fn many_counted;
#endif
