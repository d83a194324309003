/* SPDX-License-Identifier: MIT */
/* What a queue may hold, and what each thing that happens makes of a job of it: a model of the
 * scripts, in which nothing is stored twice and nothing is fast. It knows neither Redis nor the
 * texts that lie there. */
#ifndef MODEL_H
#define MODEL_H
#include <lapse.h>
#include <stdbool.h>
#include <stdint.h>

enum { MODEL_IDS = 1000, MODEL_KEYS = 16, MODEL_TAGS = 12 };
/* Behind the ids that are given come places for the jobs that series and groups make. */
enum { MODEL_MADE = 3000, MODEL_JOBS = MODEL_IDS + MODEL_MADE };
enum { MODEL_STAGES = 3, MODEL_MOMENTS = 10, LOOK_MS = 60000 };
/* The first ids are those of the batches' own jobs. */
enum { MODEL_BATCHES = 3, MODEL_PARTS = 6 };
enum { MODEL_NO_JOB = -1, MODEL_NO_PLACE = -2 };
enum { MODEL_PART_MAX = 1048568, MODEL_BODY_MAX = 1048576 };
enum { DEFAULT_TRIES = 10, MODEL_ERRORS = 5, UNSAID = 1 };
#define FOREVER INT64_C(4294967295)
#define TEN_YEARS_MS INT64_C(315576000000)
/* As the rows of answers say it; of a job that is not there they say nothing. */
enum kind { SKIPPED, WAITING, RUNNING, DIED, KEPT, NONE };

/* What a series says of its moments. */
struct rule {
    char catch_up; /* 0: it is no series */
    bool no_overlap;
    int64_t until_ms, times; /* 0: no limit */
    int64_t every_ms;        /* 0: it has stages, or a calendar */
    int n_stages;            /* 0: it has a calendar */
    int64_t stage_ms[MODEL_STAGES];
    int n_moments; /* of the calendar, that are known */
    int64_t moment_ms[MODEL_MOMENTS];
    bool is_whole; /* there are no more */
};

/* Of a group; 0 is none, but a group has a most. */
struct limits {
    int64_t quiet_ms, most, age_ms;
};
struct part { /* the same letter, again and again */
    char letter;
    int len;
};
struct parts {
    int n;
    struct part part[MODEL_PARTS];
};

/* What a schedule asks for. Where a number is 0, it does not ask for that. */
struct record {
    int64_t tries;
    unsigned tags; /* by bits */
    int key;
    bool until_start; /* it holds the key until its first claim */
    int priority;
    char guard; /* the operation, on the one key of the model, and the value 1 */
    bool late_dies;
    int64_t late_ms, retry_for_ms;
    int64_t keep_ms;
    bool keeps_body;
    bool keeps_errors;
    int64_t created_ms; /* when its life was first scheduled; UNSAID: when it will be */
    int batch;          /* the id of its own job, and 1 more; 0: it is of none */
    struct rule rule;
    struct limits group;
    int64_t moment;     /* of a job that a series or a group has made: its nth; 0: of none */
    struct parts parts; /* likewise */
};

struct error { /* of a run */
    int64_t at_ms, tried;
    const char *reason;
};

struct attempt {
    bool is_there; /* there is one: a claim or a kill has made it, or a limit is kept */
    uint64_t token;
    int holder; /* -1: nobody */
    int64_t tried, tries, claimed_us, due_ms;
    const char *reason;

    /* of an attempt of form 2 */
    bool is_marked_record; /* its record has tags or a key */
    int priority;
    int64_t last_ms;    /* 0: its runs may begin at any time */
    int stops;          /* 1: it is to go, and to stop; 2: it is to go, as its series has */
    int64_t again_ms;   /* 0: it was not asked to wait again */
    bool follows;       /* next follows the run */
    int64_t limit_ms;   /* of a debounced one; 0: none */
    enum lapse_end end; /* 0: the job has not ended */
    bool keeps_errors;
    bool counts; /* of a group; of a series that has begun, or was paused: n moments have been */
    int64_t n;
    bool is_paused;
    bool is_dry;  /* its calendar has no moment left, and looks for some */
    bool gathers; /* of a group: it has these parts */
    struct parts parts;
    bool awaits; /* the end of the batch whose own job it is */

    /* beside the attempt, and no longer there than it */
    bool has_report;
    char report[16];
    int n_errors;
    struct error error[MODEL_ERRORS]; /* the oldest first */
};

struct job {
    enum kind kind;
    int64_t ms; /* in the set of its kind: when it is due, its lease ends, it died, is forgotten */
    struct record record, next;
    struct attempt attempt;
};

struct model {
    int64_t now_us;
    uint64_t token; /* the last one */
    int n_ids;      /* that are given */
    int n_jobs;     /* these, and places for those that series and groups make */
    struct job job[MODEL_JOBS];
    struct made {
        int maker;
        uint64_t token; /* 0: nobody knows a job that was made in this place */
    } made[MODEL_JOBS];
    struct batch {
        int64_t n_left; /* it */
        bool is_closed;
    } batch[MODEL_BATCHES + 1];
    int batches[MODEL_JOBS][2]; /* in which a job was after the last call */
    bool overlaps[MODEL_JOBS];  /* a series: when this claim began a job of it waited or ran */
    int few[MODEL_JOBS]; /* the series that this claim went by, and that have few moments left */
    int n_few;
    int just_made; /* the place of a job whose moment is being claimed; 0: there is none */
    bool entered[MODEL_KEYS][MODEL_JOBS]; /* the index leads from the key to the job */
    int64_t paused_ms;
    int dead_max;    /* 0: none */
    int guard_value; /* of the key that guards look at; 0: it is not there */
};

int64_t model_ms(const struct model *m);
bool model_is_known(const struct model *m, const struct job *j); /* it is there, and not past */
bool model_is_over(const struct model *m, const struct job *j);  /* its lease */
bool model_runs(const struct model *m, const struct job *j);
bool model_is_due(const struct model *m, const struct job *j);
bool model_is_marked(const struct job *j);
bool model_is_series(const struct model *m, const struct job *j);
bool model_is_maker(const struct model *m, const struct job *j); /* a series or a group */
/* Is the job of the left, in the set of its kind, before that of the right? */
bool model_is_before(const struct model *m, int left, int right);

/* As it is shown: of a job whose lease is over, what the next sweep will make of it. */
enum kind model_shown(const struct model *m, const struct job *j);
int64_t model_shown_ms(const struct model *m, const struct job *j);
const struct record *model_record(const struct model *m, const struct job *j);

int64_t model_backoff_ms(const struct attempt *a);
bool model_used_up(const struct attempt *a);
/* The job that holds a key; -1: it is free. cleans: entries before it that are wrong go. */
int model_holder(struct model *m, int key, bool cleans);
/* May a dead job wait? Its key is free, or it has none. */
bool model_may_wait(struct model *m, int id);
/* Its lease is over, and a call has found its key free since: its holder can only end it. */
bool model_has_lost_key(const struct model *m, int id);

/* What happens to a job that waits, or is dead. */
void model_make(struct model *m, int id, const struct record *record, int64_t due_ms,
                int64_t limit_ms);
void model_gone(struct model *m, int id);
/* It has ended: it is kept if it asks for that, and else gone. due_ms: 0, that of its attempt. */
void model_ends(struct model *m, int id, enum lapse_end end, int64_t due_ms);
void model_put_off(struct model *m, int id, int64_t due_ms); /* it waits, and is due then */
void model_kill(struct model *m, int id, const char *reason);
/* What a claim makes of it: it is skipped, and gone; it runs; or it died. */
enum kind model_verdict(const struct model *m, const struct job *j, const char **reason);
void model_claim(struct model *m, int id, int holder, int64_t lease_ms);
/* Before the first job of a claim: looks which series have jobs that wait or run. */
void model_sees_overlaps(struct model *m, const int *ids, int n);
/* A series is at a moment, and goes on or ends; or a group is due, and is gone. Returns the place
 * of the job that it has made: that waits, and is claimed next, by the token of this moment;
 * MODEL_NO_JOB; or MODEL_NO_PLACE. */
int model_fires(struct model *m, int id);
/* May a part be put into what has this id? If it is there, it is a group with these limits. */
bool model_may_gather(const struct model *m, int id, const struct limits *limits);
/* Returns whether the group was made; sets *made to the place of a job that a full one has made. */
bool model_gather(struct model *m, int id, const struct record *record, struct part part,
                  int *made);
int model_bytes(const struct parts *parts); /* all of them, each behind its length */
/* The first moment of a calendar behind a time; 0: there is none. */
int64_t model_first_moment(const struct rule *rule, int64_t behind_ms);
/* A series that waits gets other moments. Returns when it is due. */
int64_t model_refill(struct model *m, int id, const struct rule *moments);
void model_forgets_made(struct model *m); /* which are gone: their places are free */
void model_pause(struct model *m, int id, bool is_paused); /* a series that waits */
/* A series or a group was cancelled: its jobs go, or are asked to, and to stop where they run. */
void model_descent_ends(struct model *m, int id, bool stops);

/* The batch whose own job this is was closed: that waits for the others, or is due. */
void model_close(struct model *m, int id);
/* After each call: who has left a batch is counted, and one that is closed and empty ends. */
void model_batches_end(struct model *m);
/* How many jobs of a batch wait or run, and how many are dead. */
void model_batch_count(const struct model *m, int batch, int64_t *n_left, int64_t *n_dead);

/* What happens to a job that runs. */
void model_fails(struct attempt *a, int64_t at_ms, const char *reason); /* a run of it */
void model_stop(struct model *m, int id);
void model_ask_again(struct model *m, int id, int64_t due_ms);
void model_follow(struct model *m, int id, const struct record *record, int64_t due_ms,
                  int64_t limit_ms);
void model_dies(struct model *m, int id, int64_t ms, const char *reason);
void model_waits_again(struct model *m, int id, int64_t due_ms);
void model_sweep(struct model *m, int id);
#endif
