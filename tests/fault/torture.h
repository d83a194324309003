/* SPDX-License-Identifier: MIT */
/* A scene is a piece of the life of a program that uses lapse. It is played again and again, each
 * time with one more fault (inject.h), each time in a process of its own, and it must come to its
 * end: what was accepted is answered once, no answer is a lie, what was stored runs or is there
 * still, nothing leaks, and the handle serves the next job. A scene therefore says what it wants of
 * each call, which is checked strictly while no fault has come, and goes on whatever it gets. */
#ifndef TORTURE_H
#define TORTURE_H
#include "inject.h"
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
    ANY = 1 /* as t->want: whatever a lost connection answers */
};
enum exists { NO, YES, MAYBE }; /* may be: an answer was lost, or a settle is on its way */
struct entry {                  /* what Redis must know of a job */
    struct entry *next;
    char queue[65], id[256];
    enum exists exists;
    unsigned asked; /* calls that change it, not answered yet */
    unsigned runs, n_done;
    bool soon;       /* it is due while the scene goes on */
    unsigned untold; /* settles whose answer nobody hears */
    /* what happened to it, the last of it: S, C, R, D, T asked; s, c, r, d, t answered; ! it ran */
    char tale[240];
};
struct torture;
typedef void scene_fn(struct torture *t);
typedef void job_fn(struct torture *t, struct lapse_job *job);

struct torture {
    struct server *server;
    struct ev_loop *loop;
    struct lapse *l; /* the first handle, or the one that the calls below ask; NULL: closed */
    struct lapse *handles[HANDLES];
    char url[256];
    const char *queues[QUEUES]; /* named so far */
    int db;
    struct lapse_options opts; /* of t_open() */
    int want;                  /* the answer to the next call where no fault has come; ANY */
    scene_fn *then;            /* runs in the callback of the next call */
    unsigned asked, answered, n_closing, n_closed;
    unsigned runs, settling, settled;
    struct entry *ledger;
    struct asked *asks;
    struct handler *handlers;
    struct lapse_job *held[128];
    unsigned n_held, n; /* n: the scene's own */
    unsigned seed;      /* of scene_random */
    bool over;          /* the scene is: what still runs is settled as done */
};

struct scene {
    const char *name;
    scene_fn *play;
    bool tcp; /* on a port too */
};
#define SCENE(fn)      \
    {                  \
#fn, fn, false \
    }
extern const struct scene scenes_ask[], scenes_handle[], scenes_life[]; /* name NULL ends them */
extern const struct scene scene_random;

extern struct server *t_server; /* of this scene */
/* How often a job ran. */
unsigned t_play(const struct scene *s, const struct injection *i, long nth, unsigned seed);

/* The fault, or what it led to, is not what it should be: says so, and ends this process. */
__attribute__((noreturn, format(printf, 1, 2))) void t_fail(const char *format, ...);
void t_lost_outside(const char *by); /* a block of hiredis, by its own doing */
#define T_ASSERT(cond)                                              \
    do {                                                            \
        if (!(cond))                                                \
            t_fail("%s:%d: not so: %s", __func__, __LINE__, #cond); \
    } while (0)
/* A fault has come, or a slow machine may have cost a connection before it did: where the system's
 * calls fail we do not wait long for answers. */
bool t_faulty(void);
bool t_turn(struct torture *t, int64_t end_ms);
#define t_until(t, cond)                                                         \
    do {                                                                         \
        for (int64_t t_end_ms = test_now_ms() + 15000; !(cond);)                 \
            if (!t_turn(t, t_end_ms))                                            \
                t_fail("%s:%d: never came true: %s", __func__, __LINE__, #cond); \
    } while (0)

/* ---- handles. Where a call says ENOMEM it is made again, which must do. ---- */
struct lapse *t_open(struct torture *t); /* with t->opts; the first is t->l */
void t_close(struct torture *t, struct lapse *l, int64_t grace_ms);
void t_abandon(struct torture *t, struct lapse *l);
void t_all_closed(struct torture *t); /* waits */

/* ---- asking; each call returns its error, and waits for nothing ---- */
int t_schedule(struct torture *t, const char *queue, const char *id, int64_t delay_ms);
int t_spec(struct torture *t, const struct lapse_spec *s);
struct lapse_spec t_job(const char *queue, const char *id, int64_t delay_ms);
int t_cancel(struct torture *t, const char *queue, const char *id);
int t_reschedule(struct torture *t, const char *queue, const char *id, int64_t delay_ms);
int t_get(struct torture *t, const char *queue, const char *id);
int t_list(struct torture *t, const char *queue, enum lapse_state state,
           const struct lapse_job *after, unsigned n);
int t_depth(struct torture *t, const char *queue);
void t_wait(struct torture *t); /* for all answers */

/* ---- handling ---- */
int t_handle(struct torture *t, const char *queue, unsigned max_running, job_fn *fn);
int t_stop(struct torture *t, const char *queue);
job_fn t_done, t_done_untold, t_retry, t_backoff, t_failed, t_keep;
void t_settle_held(struct torture *t); /* all, as done */
void t_drop_held(struct torture *t);   /* of a handle that is gone: they are only freed */
/* every job that is stored and due soon has run, and is settled or held */
bool t_ran(struct torture *t);

/* ---- Redis, by the test itself: no fault strikes there ---- */
#define T_REDIS(t, ...)                     \
    do {                                    \
        inject_pause(true);                 \
        redis_do((t)->server, __VA_ARGS__); \
        inject_pause(false);                \
    } while (0)
#endif
