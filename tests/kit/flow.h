/* SPDX-License-Identifier: MIT */
/* A flow is one test's use of lapse: a Redis, an event loop, handles and what they log. It sees
 * lapse as users do, through <lapse.h> and libev, and Redis from outside. */
#ifndef FLOW_H
#define FLOW_H
#include "place.h"
#include "redis.h"
#include "test.h"
#include <criterion/criterion.h>
#include <ev.h>
#include <lapse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- modes: what finds out that a job is due; each must deliver every job ---- */
enum flow_mode {
    FLOW_FULL,      /* events and alarm */
    FLOW_NO_ALARM,  /* Redis's own expiry, and the sweep */
    FLOW_NO_EVENTS, /* alarm and sweep */
    FLOW_MUTE,      /* as FULL, on a server with notify-keyspace-events "" */
    FLOW_STILL,     /* as FULL, on a server that expires nothing by itself */
    FLOW_SWEEP,     /* as NO_ALARM, on such a server: the sweep alone */
};

/* One body, a test for each mode:
 *     FLOW_ALL_MODES(due, a_job_runs_once)
 *     {
 *         struct flow *f = flow_start(mode);
 *         ... */
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

/* ---- life ---- */
enum { FLOW_HANDLES = 8, FLOW_WAIT_MS = 60000, FLOW_POLL_MS = 3 };

struct flow {
    enum flow_mode mode;
    struct place *place;
    struct server *server; /* of place */
    struct ev_loop *loop;
    /* the handle that ask.h and handler.h use: the first, or another; NULL: none */
    struct lapse *l;
    struct lapse *handles[FLOW_HANDLES]; /* those that are open; flow_end() closes them */
    unsigned n_open, n_closed;
    unsigned n_answers;     /* callbacks that ran: each answer's number */
    const char *space;      /* for audit(); "lapse" */
    struct log_line *lines; /* logged */
    struct kept *kept;      /* blocks of flow_keep() */
    const char *allowed[8]; /* texts of warnings that are no surprise */
    int n_fds;
    long n_live;
};
/* Changes the options of the first handle before it is opened. */
typedef void flow_tweak(struct lapse_options *opts);

struct flow *flow_start(enum flow_mode mode);
/* server_args: those of redis-server, which NULL ends, or NULL. tweak: may be NULL. */
struct flow *flow_start_opts(enum flow_mode mode, const char *const *server_args,
                             flow_tweak *tweak);
struct flow *flow_start_tcp(enum flow_mode mode, const char *const *server_args, flow_tweak *tweak);
/* Without a handle. */
struct flow *flow_bare(enum flow_mode mode, const char *const *server_args);

/* Closes all handles, audits the queues that are named, and checks that no memory, no descriptor
 * and no warning is left over. Frees f. */
#define flow_end(...) flow_end_queues(__VA_ARGS__, (const char *)NULL)
void flow_end_queues(struct flow *f, ...);

/* ---- handles ---- */
struct lapse_options flow_options(struct flow *f); /* of the mode: URL, log, flags */
/* opts NULL: flow_options() */
struct lapse *flow_open(struct flow *f, const struct lapse_options *opts);
void flow_close(struct flow *f, struct lapse *l, int64_t grace_ms); /* waits until it is closed */
/* The test closed or abandoned it itself. */
void flow_forget(struct flow *f, struct lapse *l);

/* In a run as a producer (server_login()) the tests that need more rights are left out. */
#define lapse_listen(...) (server_listens(), lapse_listen(__VA_ARGS__))
#define lapse_claim(...) (server_listens(), lapse_claim(__VA_ARGS__))
#define lapse_claim_id(...) (server_listens(), lapse_claim_id(__VA_ARGS__))
#define lapse_settle(...) (server_listens(), lapse_settle(__VA_ARGS__))
#define lapse_quiet(...) (server_listens(), lapse_quiet(__VA_ARGS__))
#define lapse_stop(...) (server_listens(), lapse_stop(__VA_ARGS__))
#define lapse_remove(...) (server_listens(), lapse_remove(__VA_ARGS__))
#define lapse_report(...) (server_listens(), lapse_report(__VA_ARGS__))
#define lapse_configure(...) (server_listens(), lapse_configure(__VA_ARGS__))
#define lapse_pause(...) (server_listens(), lapse_pause(__VA_ARGS__))
#define lapse_unpause(...) (server_listens(), lapse_unpause(__VA_ARGS__))
#define lapse_forward(...) (server_listens(), lapse_forward(__VA_ARGS__))
#define lapse_adopt(...) (server_listens(), lapse_adopt(__VA_ARGS__))

/* ---- waiting ---- */
/* Turns the loop until cond holds, which must be within FLOW_WAIT_MS. */
#define flow_until(f, cond)                                                             \
    do {                                                                                \
        int64_t flow_end_ms = test_now_ms() + FLOW_WAIT_MS;                             \
        while (!(cond) && flow_turn(f, flow_end_ms)) {}                                 \
        cr_assert(test_now_ms() < flow_end_ms || (cond), "never came true: %s", #cond); \
    } while (0)
/* The same of what may change without an event in this loop: it is looked at every few ms. */
#define flow_poll(f, cond)                                                        \
    do {                                                                          \
        int64_t flow_end_ms = test_now_ms() + FLOW_WAIT_MS;                       \
        while (!(cond)) {                                                         \
            cr_assert(test_now_ms() < flow_end_ms, "never came true: %s", #cond); \
            flow_spin(f, FLOW_POLL_MS);                                           \
        }                                                                         \
    } while (0)
/* One turn of the loop; false: it is past end_ms, and the loop was not turned. */
bool flow_turn(struct flow *f, int64_t end_ms);
/* Turns the loop for so long, to show that something does not happen. */
void flow_spin(struct flow *f, int64_t for_ms);

/* ---- log: each line is checked as it comes: printable, no end of line in it ---- */
/* Lines that contain this may come, at any level. Where a connection may be lost, or not be made,
 * so may that for the map of a cluster. */
void flow_allow_log(struct flow *f, const char *text);
unsigned flow_logged(struct flow *f, const char *text); /* lines that contain it */

/* ---- Redis ---- */
long long flow_count(struct flow *f, const char *queue, const char *set); /* set: due, run, dead */
int64_t flow_score(struct flow *f, const char *queue, const char *set, const char *id);
/* So far, by INFO commandstats of each master. */
long long flow_calls(struct flow *f, const char *command);
long long flow_scripts(struct flow *f); /* scripts run, likewise */
/* The server that has a key: of a cluster of several masters maybe another one than f->server. */
struct server *flow_server_of(struct flow *f, const char *key);
/* How many keys there are whose names are of this pattern, on all masters together. */
long long flow_keys(struct flow *f, const char *pattern);
/* What a command names no key for: on each master. */
#define flow_do(f, ...)                                                      \
    do {                                                                     \
        for (int flow_i = 0; flow_i < place_masters((f)->place); flow_i++) { \
            redis_do(place_master((f)->place, flow_i), __VA_ARGS__);         \
        }                                                                    \
    } while (0)
/* Has Redis met the end of each connection but that of the test, and so run all they had sent? */
bool flow_is_alone(struct flow *f);
/* Every key but canaries, with its value, as one text; the caller's to free. */
char *flow_dump(struct flow *f);

/* ---- memory ---- */
/* size bytes that begin with these len, the others 0; freed with f. */
void *flow_keep(struct flow *f, const void *bytes, size_t len, size_t size);
#endif
