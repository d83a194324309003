/* SPDX-License-Identifier: MIT */
/* The kit of the flow tests. They see lapse as its users do: through <lapse.h> and libev, and Redis
 * from outside. */
#ifndef FLOW_H
#define FLOW_H
#include "support.h"
#include <criterion/criterion.h>
#include <ev.h>
#include <lapse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- modes: what rings; each must deliver every job by itself ---- */
enum flow_mode {
    FLOW_FULL,      /* events and alarm */
    FLOW_NO_ALARM,  /* the bare mechanism: Redis's own expiry and the sweep */
    FLOW_NO_EVENTS, /* alarm and sweep */
    FLOW_MUTE,      /* as FULL, on a server with notify-keyspace-events "" */
    FLOW_STILL,     /* as FULL, and Redis expires nothing by itself */
    FLOW_SWEEP,     /* STILL and NO_ALARM: the sweep alone */
};
/* One body, one test per mode: FLOW_ALL_MODES(due, a_job_runs_once) { struct flow *f =
 * flow_start(mode); ... } */
#define FLOW_ALL_MODES(suite, name)                      \
    static void suite##_##name(enum flow_mode mode);     \
    FLOW_IN_MODE_(suite, name, FLOW_FULL, full)          \
    FLOW_IN_MODE_(suite, name, FLOW_NO_ALARM, no_alarm)  \
    FLOW_IN_MODE_(suite, name, FLOW_NO_EVENTS, no_event) \
    FLOW_IN_MODE_(suite, name, FLOW_MUTE, mute)          \
    FLOW_IN_MODE_(suite, name, FLOW_STILL, still)        \
    FLOW_IN_MODE_(suite, name, FLOW_SWEEP, sweep)        \
    static void suite##_##name(enum flow_mode mode)
#define FLOW_IN_MODE_(suite, name, mode, word) \
    Test(suite, name##__##word)                \
    {                                          \
        suite##_##name(mode);                  \
    }

/* ---- a flow: a server, a loop, handles, and what they logged ---- */
enum { FLOW_HANDLES = 8, FLOW_WAIT_MS = 10000 };
struct kept {
    struct kept *next;
    _Alignas(16) char bytes[];
};
struct flow {
    enum flow_mode mode;
    struct server *server;
    struct ev_loop *loop;
    /* the first handle; the calls below ask it, so a test may set another; NULL: none */
    struct lapse *l;
    struct lapse *handles[FLOW_HANDLES]; /* open ones; flow_end() closes them */
    unsigned n_open, n_closed;
    unsigned n_answers;  /* callbacks that ran: each answer's number */
    const char *space;   /* for audit(); "lapse" */
    struct line *lines;  /* logged */
    struct kept *kept;   /* copies of bodies, runs: freed with f */
    const char *fine[8]; /* texts of warnings that are no surprise */
    int n_fds;
    long n_live;
};
/* Changes the first handle's options before it is opened. */
typedef void flow_tweak(struct lapse_options *opts);

struct flow *flow_start(enum flow_mode mode);
/* server_args: redis-server's, NULL-ended, or NULL. tweak: NULL, or changes the first handle's
 * options. */
struct flow *flow_start_opts(enum flow_mode mode, const char *const *server_args,
                             flow_tweak *tweak);
struct flow *flow_start_tcp(enum flow_mode mode, const char *const *server_args, flow_tweak *tweak);
struct flow *flow_bare(enum flow_mode mode, const char *const *server_args); /* no handle yet */
/* of the mode: url, log, flags */
struct lapse_options flow_options(struct flow *f);
/* NULL: flow_options() */
struct lapse *flow_open(struct flow *f, const struct lapse_options *opts);
/* the test closed or abandoned it itself */
void flow_forget(struct flow *f, struct lapse *l);
void flow_close(struct flow *f, struct lapse *l, int64_t grace_ms); /* and waits for closed() */
/* Closes what is open, audits the queues named (NULL-ended), and counts memory, descriptors,
 * warnings; frees f. */
void flow_end_queues(struct flow *f, ...);
#define flow_end(...) flow_end_queues(__VA_ARGS__, (const char *)NULL)

/* Turns the loop until cond holds, which must be within FLOW_WAIT_MS. */
#define flow_until(f, cond)                                                \
    do {                                                                   \
        for (int64_t flow_end_ms = test_now_ms() + FLOW_WAIT_MS; !(cond);) \
            if (!flow_turn(f, flow_end_ms)) {                              \
                cr_assert(cond, "never came true: %s", #cond);             \
                break;                                                     \
            }                                                              \
    } while (0)
bool flow_turn(struct flow *f, int64_t end_ms); /* one turn of the loop; false: past end_ms */

/* ---- log: each line is checked as it comes (no '\n', printable) ---- */
void flow_fine(struct flow *f, const char *text); /* lines with it may come, at any level */
unsigned flow_logged(struct flow *f, const char *text);

/* ---- asking: each call returns its error, or that of its callback ---- */
struct flow_job {
    char queue[65], id[256], reason[201];
    const char *body; /* f's */
    size_t body_len;
    enum lapse_state state;
    int64_t due_ms, until_ms, claimed_us;
    unsigned try_no, tries;
    uint64_t token;
    int created;
    enum lapse_via via;
};
void flow_copy(struct flow *f, struct flow_job *out, const struct lapse_job *job);
/* out: the job of the callback, all 0 where it was NULL; or NULL. id NULL: made up. */
int flow_schedule(struct flow *f, const char *queue, const char *id, int64_t delay_ms,
                  struct flow_job *out);
int flow_spec(struct flow *f, const struct lapse_spec *spec, struct flow_job *out);
int flow_cancel(struct flow *f, const char *queue, const char *id, struct flow_job *out);
int flow_reschedule(struct flow *f, const char *queue, const char *id, struct lapse_due due,
                    struct flow_job *out);
int flow_get(struct flow *f, const char *queue, const char *id, struct flow_job *out);
int flow_depth(struct flow *f, const char *queue, struct lapse_depth *out);
/* All pages of n, at most max jobs; how many they were, or an error. */
int flow_list(struct flow *f, const char *queue, enum lapse_state state, unsigned n,
              struct flow_job *out, size_t max);

/* The same without waiting: lapse_get(l, q, id, flow_answered, &a); flow_until(f, a.calls); */
struct flow_answer {
    struct flow *f;
    unsigned calls, nth; /* nth: of all answers of f, from 1 */
    int err;
    bool has_job;
    struct flow_job job;
    struct lapse_depth depth;
    size_t n; /* of a list */
};
lapse_cb flow_answered;
lapse_depth_fn flow_depth_answered;
lapse_list_fn flow_list_answered;                     /* job: the first */
int flow_wait(struct flow *f, struct flow_answer *a); /* its err */
struct lapse_spec flow_job_spec(const char *queue, const char *id, int64_t delay_ms);

/* ---- states: put there by a process of its own, which is gone then ---- */
enum { FLOW_LEASE_MS = 250 }; /* of one whose lease is over */
enum flow_state {
    FLOW_WAITS,      /* due in an hour */
    FLOW_RUNS,       /* held for a minute more, by nobody */
    FLOW_DEAD,       /* why "broken" */
    FLOW_ENDED,      /* its lease is over, no sweep has been by */
    FLOW_ENDED_LAST, /* the same, and its tries are used up */
    FLOW_STATES
};
extern const char *const flow_state_names[FLOW_STATES];
/* A job with the body "old" and 3 tries (FLOW_ENDED_LAST: 1); out: as lapse_get() shows it then;
 * NULL: not wanted. */
void flow_put(struct flow *f, const char *queue, const char *id, enum flow_state state,
              struct flow_job *out);
bool flow_same(const struct flow_job *a, const struct flow_job *b); /* in all but created and via */

/* ---- handling ---- */
/* A run as a producer (server_login()) leaves out the tests that listen. */
#define lapse_listen(...) (server_listens(), lapse_listen(__VA_ARGS__))
enum flow_policy {
    FLOW_DONE,
    FLOW_RETRY,
    FLOW_FAIL,
    FLOW_KEEP /* in held[], for the test to settle */
};
enum { FLOW_HELD = 512 };
struct flow_run {
    struct flow_job job;
    struct lapse *l;
};
struct flow_worker {
    struct flow *f;
    enum flow_policy policy;
    int64_t delay_ms; /* FLOW_RETRY */
    const char *reason;
    struct flow_run *runs; /* in order; f's */
    size_t n_runs;
    struct lapse_job *held[FLOW_HELD];
    size_t n_held;
    unsigned settled, errors; /* callbacks of settles; those with an error */
    int err;                  /* the last error */
};
/* on f->l, with w's policy; w's f is set */
void flow_handle(struct flow *f, const char *queue, struct flow_worker *w);
lapse_handler flow_handler; /* arg: a flow_worker */
lapse_cb flow_settled;      /* arg: a flow_worker */
/* all of held, and waits */
void flow_settle(struct flow_worker *w, enum flow_policy how);
size_t flow_runs_of(const struct flow_worker *w, const char *id);

/* ---- Redis ---- */
long long flow_count(struct flow *f, const char *queue, const char *set); /* set: due, run, dead */
/* INFO commandstats: calls so far */
long long flow_calls(struct flow *f, const char *command);
/* likewise: scripts run */
long long flow_scripts(struct flow *f);
/* every key but canaries, with its value, as one text; the caller's to free */
char *flow_dump(struct flow *f);
#endif
