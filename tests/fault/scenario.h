/* SPDX-License-Identifier: MIT */
/* A scenario is a piece of the life of a program that uses lapse. It is played again and again,
 * each time with one more fault (injection.h), each time in a process of its own, and it must come
 * to its end: what was accepted is answered once, no answer is a lie, what was stored runs or is
 * there still, nothing leaks, and the handle serves the next job. A scenario therefore says what it
 * wants of each call, which is checked strictly while no fault has come, and goes on whatever it
 * gets. */
#ifndef SCENARIO_H
#define SCENARIO_H
#include "injection.h"
#include "redis.h"
#include "test.h"
#include <ev.h>
#include <lapse.h>
#include <stdlib.h>
#include <string.h>

enum {
    HOUR = 3600000,
    HANDLES = 6,
    QUEUES = 12,
    MIB = 1 << 20,
    ANY = 1 /* as want: whatever a lost connection answers */
};
enum exists { NO, YES, MAYBE }; /* may be: an answer was lost, or a settle is on its way */
struct entry {                  /* what Redis must know of a job */
    struct entry *next;
    char queue[65], id[256];
    enum exists exists;
    unsigned asked; /* calls that change it, not answered yet */
    unsigned runs, n_done;
    bool soon;       /* it is due while the scenario goes on */
    unsigned untold; /* settles without a callback */
    /* what happened to it, the last of it: S, C, R, D, T asked; s, c, r, d, t answered; ! it ran */
    char tale[240];
};
struct play;
typedef void scenario_fn(struct play *p);
typedef void job_fn(struct play *p, struct lapse_job *job);

struct play {
    struct server *server;
    struct ev_loop *loop;
    struct lapse *l; /* the first handle, or the one that the calls below ask; NULL: closed */
    struct lapse *handles[HANDLES];
    char url[256];
    const char *queues[QUEUES]; /* named so far */
    int db;
    struct lapse_options opts; /* of play_open() */
    int want;                  /* the answer to the next call where no fault has come; ANY */
    scenario_fn *then;         /* runs in the callback of the next call */
    unsigned asked, answered, n_closing, n_closed;
    unsigned runs, settling, settled;
    struct entry *ledger;
    struct asked *asks;
    struct handler *handlers;
    struct lapse_job *held[128];
    unsigned n_held, n; /* n: the scenario's own */
    unsigned seed;      /* of scenario_random */
    bool over;          /* the scenario is: what still runs is settled as done */
};

struct scenario {
    const char *name;
    scenario_fn *play;
    bool tcp; /* on a port too */
};
/* clang-format off */
#define SCENARIO(fn) {#fn, fn, false}
/* clang-format on */
/* name NULL ends them */
extern const struct scenario scenarios_requests[], scenarios_listening[], scenarios_life[];
extern const struct scenario scenario_random;

extern struct server *play_server; /* of this scenario */
/* How often a job ran. */
unsigned play_scenario(const struct scenario *s, const struct injection *i, long nth,
                       unsigned seed);

/* The fault, or what it led to, is not what it should be: says so, and ends this process. */
__attribute__((noreturn, format(printf, 1, 2))) void play_fail(const char *format, ...);
void play_lost_outside(const char *by); /* a block of hiredis, by its own doing */
#define PLAY_ASSERT(cond)                                              \
    do {                                                               \
        if (!(cond))                                                   \
            play_fail("%s:%d: not so: %s", __func__, __LINE__, #cond); \
    } while (0)
/* A fault has come, or a slow machine may have cost a connection before it did: where the system's
 * calls fail we do not wait long for answers. */
bool play_faulty(void);
bool play_turn(struct play *p, int64_t end_ms);
#define play_until(p, cond)                                                         \
    do {                                                                            \
        for (int64_t play_end_ms = test_now_ms() + 15000; !(cond);)                 \
            if (!play_turn(p, play_end_ms))                                         \
                play_fail("%s:%d: never came true: %s", __func__, __LINE__, #cond); \
    } while (0)

/* ---- handles. Where a call says ENOMEM it is made again, which must do. ---- */
struct lapse *play_open(struct play *p); /* with t->opts; the first is t->l */
void play_close(struct play *p, struct lapse *l, int64_t grace_ms);
void play_abandon(struct play *p, struct lapse *l);
void play_all_closed(struct play *p); /* waits */

/* ---- asking; each call returns its error, and waits for nothing ---- */
int play_schedule(struct play *p, const char *queue, const char *id, int64_t delay_ms);
int play_spec(struct play *p, const struct lapse_spec *s);
int play_cancel(struct play *p, const char *queue, const char *id);
int play_reschedule(struct play *p, const char *queue, const char *id, int64_t delay_ms);
int play_get(struct play *p, const char *queue, const char *id);
int play_list(struct play *p, const char *queue, enum lapse_state state,
              const struct lapse_job *after, unsigned n);
int play_depth(struct play *p, const char *queue);
int play_configure(struct play *p, const char *queue, const char *changes);
void play_wait(struct play *p); /* for all answers */

/* ---- handling ---- */
int play_handle(struct play *p, const char *queue, unsigned max_running, job_fn *fn);
int play_stop(struct play *p, const char *queue);
/* without a handler: claims in a loop, and waits */
void play_claims(struct play *p, const char *queue, job_fn *fn);
job_fn play_done_by_token;
job_fn play_done, play_done_untold, play_retry, play_backoff, play_failed, play_keep;
void play_settle_held(struct play *p); /* all, as done */
void play_drop_held(struct play *p);   /* of a handle that is gone: they are only freed */
/* every job that is stored and due soon has run, and is settled or held */
bool play_ran(struct play *p);

/* ---- Redis, by the test itself: no fault strikes there ---- */
#define PLAY_REDIS(p, ...)                  \
    do {                                    \
        inject_pause(true);                 \
        redis_do((p)->server, __VA_ARGS__); \
        inject_pause(false);                \
    } while (0)
#endif
