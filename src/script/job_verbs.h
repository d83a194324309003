/* SPDX-License-Identifier: MIT */
/* The scripts of src/lua/job, a function each. A request holds its arguments as texts, so
 * submitting it needs no memory and cannot fail. key is KEYS[1] of the queue; it, ids and records
 * are not copied, and live until the request has ended. */
#ifndef LAPSE_JOB_VERBS_H
#define LAPSE_JOB_VERBS_H
#include "job/job.h"
#include "script/args.h"
#include "script/script.h"
#include "script_replies.h"

/* ---- schedule ---- */
struct schedule_job {
    struct span id;
    struct lapse_due due;
    bool is_calendar; /* it is due at the first of its moments instead */
    enum lapse_conflict on_conflict;
    int64_t max_wait_ms; /* of LAPSE_DEBOUNCE; 0: no limit */
    struct span record;
};

struct schedule_answer {
    bool made;          /* with the id that was asked for */
    int64_t due_ms;     /* of the job that was made */
    struct job_row row; /* else the job as it is now; its place is a SCHEDULE_ */
};

enum { SCHEDULE_KEPT, SCHEDULE_MADE, SCHEDULE_MOVED };

struct schedule_request {
    struct script_request request;
    struct span args[4];
    char due[ARG_NUMBER_MAX];
    char conflict[2 + ARG_NUMBER_MAX];
    void (*end)(struct schedule_request *r, int err, const struct schedule_answer *answer);
};

void script_schedule(struct script *s, struct schedule_request *r, struct span key,
                     const struct schedule_job *job);

/* A part of a group: due, on_conflict and max_wait_ms do not count. header_len: of the record. */
void script_gather(struct script *s, struct schedule_request *r, struct span key,
                   const struct schedule_job *job, size_t header_len);

/* ---- cancel, reschedule, kill, get ---- */
struct reschedule_how {
    struct lapse_due due;
    bool running;
};

struct job_request {
    struct script_request request;
    struct span args[3];
    char due[ARG_NUMBER_MAX];
    /* row: NULL on an error */
    void (*end)(struct job_request *r, int err, const struct job_row *row);
};

/* running: one that runs is asked, and the state in the answer is LAPSE_RUNNING. */
void script_cancel(struct script *s, struct job_request *r, struct span key, struct span id,
                   bool running);
void script_reschedule(struct script *s, struct job_request *r, struct span key, struct span id,
                       const struct reschedule_how *how);
void script_kill(struct script *s, struct job_request *r, struct span key, struct span id,
                 struct span reason);
void script_get(struct script *s, struct job_request *r, struct span key, struct span id);

/* ---- series ---- */
void script_pause(struct script *s, struct job_request *r, struct span key, struct span id,
                  bool is_paused);

struct refill_spec {
    struct span id;
    struct span series; /* its attribute S, as it was read */
    struct span calendar;
    struct span moments; /* to take the place of those in S */
};

struct refill_request {
    struct script_request request;
    struct span args[4];
    void (*end)(struct refill_request *r, int err);
};

/* ENOENT: the series is gone, or says something else. */
void script_refill(struct script *s, struct refill_request *r, struct span key,
                   const struct refill_spec *spec);

/* ---- batches ---- */
/* The answer shows the batch's own job, whose id is its name. */
void script_batch_close(struct script *s, struct job_request *r, struct span key, struct span name);

struct batch_get_request {
    struct script_request request;
    struct span args[2];
    void (*end)(struct batch_get_request *r, int err, const struct batch_get_reply *reply);
};

/* cursor: empty at first, then that of the last answer, which has at most KEYS_ID_MAX bytes; empty:
 * none is left. */
void script_batch_get(struct script *s, struct batch_get_request *r, struct span key,
                      struct span name, struct span cursor);

/* ---- cancel_all, kill_all, reschedule_all ---- */
enum { CURSOR_MAX = 640 };

struct selection {
    enum lapse_state state; /* 0: any, with a tag or a batch */
    struct span tag;        /* or, of a batch, "b NAME"; empty: any */
    struct span reason;
    int64_t before_ms;
    bool running;       /* those that run are asked */
    unsigned limit;     /* of this call, 1 to SCRIPT_BATCH */
    struct span cursor; /* empty at first, then that of the last answer */
};

struct selection_answer {
    uint64_t n;
    uint64_t n_running;
    struct span cursor; /* of at most CURSOR_MAX bytes; empty: none is left */
    int64_t due_ms;     /* none that was moved is due before; 0: none was moved */
};

struct selection_request {
    struct script_request request;
    struct span args[9];
    char state[ARG_NUMBER_MAX];
    char before[ARG_NUMBER_MAX];
    char limit[ARG_NUMBER_MAX];
    char due[ARG_NUMBER_MAX];
    char spread[ARG_NUMBER_MAX];
    /* answer: NULL on an error */
    void (*end)(struct selection_request *r, int err, const struct selection_answer *answer);
};

void script_cancel_all(struct script *s, struct selection_request *r, struct span key,
                       const struct selection *selection);
/* Those that wait; why must live until end(). */
void script_kill_all(struct script *s, struct selection_request *r, struct span key,
                     const struct selection *selection, struct span why);
/* EINVAL through end(): they would be due in over ten years. */
void script_reschedule_all(struct script *s, struct selection_request *r, struct span key,
                           const struct selection *selection, struct lapse_due due,
                           int64_t spread_ms);

#endif
