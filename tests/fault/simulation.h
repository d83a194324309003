/* SPDX-License-Identifier: MIT */
/* The true scripts on a true Redis, one at a time, in any order, several jobs at once, beside a
 * model of what a job may be (model.h). The clock is ours: it stands in the key "clock", and jumps.
 * The holders forget answers, sleep, and come back with tokens of long ago.
 *
 * A step asks a script something by chance, lets the same happen to the model, and holds the answer
 * against it. simulation.c has the tests, simulation_ask.c what all steps need, and the others the
 * steps. */
#ifndef SIMULATION_H
#define SIMULATION_H
#include "model.h"
#include "server.h"
#include <criterion/criterion.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOLDERS = 4, KNOWN = 512, TEXT = 512, ARGS = 512, RECORD = 448, MOST = 30, PAGE = 100 };

struct claim { /* what a holder knows of one, right or wrong */
    int id;
    uint64_t token;
};
struct holder {
    struct claim known[KNOWN];
    int n;
};

/* How large a history is. */
struct size {
    int n_ids, n_keys, n_tags, n_batches, most; /* most: in one call */
    long steps, look_every, audit_every;
    bool fails; /* most runs do, so that there are more errors of a job than are kept */
    bool makes; /* most jobs are made, by series and groups */
    bool fills; /* most are made by groups, whose parts may be so large that there is no room */
};

struct sim {
    unsigned long seed;
    uint64_t dice;
    long step;
    struct size size;
    struct server *server;
    struct model *model;
    struct holder holder[HOLDERS];
    uint32_t spread[MODEL_JOBS]; /* the first bits of the SHA1 of each id */

    /* the question to a script, and its answer */
    char argv[ARGS][TEXT];
    size_t len[ARGS];
    int argc;
    int large_at; /* the one that stands here; 0: none */
    char large[MODEL_PART_MAX + 2];
    redisReply *reply;
    long asked[64]; /* by script */

    /* all that was asked: its lines that name a job are shown when that is wrong */
    char *trace;
    size_t traced;
    FILE *tracing;
    int about;
};

enum script {
    SCHEDULE,
    CANCEL,
    RESCHEDULE,
    KILL,
    CANCEL_ALL,
    KILL_ALL,
    RESCHEDULE_ALL,
    GET,
    CLAIM,
    TOUCH,
    DONE,
    RETRY,
    FAIL,
    RELEASE,
    RENEW,
    REPORT,
    SWEEP,
    RECLAIM,
    CONFIGURE,
    PAUSE,
    GATHER,
    BATCH_CLOSE,
    BATCH_GET,
    REFILL,
    N_SCRIPTS
};

/* ---- chance ---- */
int64_t sim_below(struct sim *s, int64_t n); /* 0 to n - 1 */
/* Some ids, each once; half of the time only one. Returns how many. */
int sim_ids(struct sim *s, int *ids);
/* The same of those that may be scheduled: all but the jobs of series and groups. */
int sim_given_ids(struct sim *s, int *ids);

/* ---- the model ---- */
int64_t sim_now_ms(struct sim *s);
struct job *sim_job(struct sim *s, int id);
/* As the scripts walk: those that run come first, and else what comes first in its set. */
void sim_sort(struct sim *s, int *ids, int n);
enum { NAME = 32 };
/* Returns name: what Redis knows a job by. */
const char *sim_name(const struct sim *s, int id, char name[NAME]);
/* The first bits of the SHA1 of this. */
uint32_t sim_spread_of(struct sim *s, int id);

/* ---- telling ---- */
__attribute__((format(printf, 2, 3))) void sim_trace(struct sim *s, const char *format, ...);
void sim_show_trace(struct sim *s);
/* The scripts and the model agree on it; what follows is printf's. */
#define HOLDS(cond, ...)                                                                        \
    do {                                                                                        \
        if (!(cond)) {                                                                          \
            sim_trace(s, "    j%03d broken: ", s->about);                                       \
            sim_trace(s, __VA_ARGS__);                                                          \
            sim_show_trace(s);                                                                  \
            cr_assert_fail("step %ld; replay it with LAPSE_SEED=%lu: not %s", s->step, s->seed, \
                           #cond);                                                              \
        }                                                                                       \
    } while (0)

/* ---- asking ---- */
void sim_load_scripts(struct server *s);
void sim_begin(struct sim *s);
__attribute__((format(printf, 2, 3))) void sim_arg(struct sim *s, const char *format, ...);
void sim_arg_bytes(struct sim *s, const void *bytes, size_t len);
void sim_arg_id(struct sim *s, int id);
void sim_arg_part(struct sim *s, const struct part *part);
void sim_ask(struct sim *s, enum script script);

/* ---- answers: each function fails where they differ from the model ---- */
const redisReply *sim_element(struct sim *s, size_t i);
void sim_is_number(struct sim *s, size_t i, int64_t want);
void sim_is_text(struct sim *s, size_t i, const char *want);
/* As src/lua/README.md draws it, without the body. maker: that of a job. Returns its length. */
size_t sim_header(unsigned char *header, const struct record *r, int maker);
/* The attribute S of a series, and the moments of a calendar, as it says them. */
void sim_rule_text(char *out, size_t size, const struct rule *rule);
void sim_moments_text(char *out, size_t size, const struct rule *rule);
/* What a row says of a job. */
struct shown {
    int id;
    enum kind state;
    int64_t ms;
    const struct attempt *attempt;
    const struct record *record;
    bool has_body; /* where the state is not KEPT: there the record says so */
};
void sim_row_is(struct sim *s, size_t i, struct shown want);
/* As get shows it, and others before they change it. */
struct shown sim_shown(struct sim *s, int id);
void sim_row_is_now(struct sim *s, size_t i, int id);
/* A row of get also says what its runs have left. */
void sim_row_tells_past(struct sim *s, size_t i, int id);

/* ---- steps ---- */
typedef void sim_step(struct sim *s);
sim_step sim_schedule, sim_cancel, sim_reschedule, sim_kill, sim_pause, sim_gather, sim_close,
    sim_refill;
sim_step sim_cancel_all, sim_kill_all, sim_reschedule_all;
sim_step sim_claim, sim_touch, sim_settle, sim_sweep, sim_reclaim, sim_forget;
#endif
