/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_JOB_H
#define LAPSE_JOB_H
#include "job/record.h"
#include <lapse.h>

struct lapse_job {
    struct lapse *handle; /* NULL: it has none any more, and settling only frees the job */

    /* these ten, entry and report lie in the same allocation as the job */
    const char *queue;
    const char *id;
    const char *tags;    /* each terminated, and behind them ""; or NULL */
    const char *headers; /* likewise; of each the name and the value */
    const char *guard;   /* OPKEY, FIELD and VALUE, each terminated; or NULL */
    size_t guard_value_len;
    const char *unique;    /* or "" */
    const char *series;    /* of which it is; or NULL */
    const char *batch;     /* likewise */
    const char *rule;      /* of a series, as in its record; or NULL */
    const char *calendar;  /* of a series, its name and its rule, each terminated; or NULL */
    size_t attributes_len; /* of these together, in this order */
    const char *errors; /* "AT_MS TRY" and a reason, each terminated, the oldest first; or NULL */
    size_t errors_len;
    unsigned n_errors;
    const void *body;
    size_t body_len;

    enum lapse_state state;
    enum lapse_via via;
    int created;
    unsigned replicas; /* that have it, of those that its schedule waited for */
    int64_t due_ms;
    int64_t until_ms; /* the loop changes it while another thread may read it: see job_until_ms() */
    int64_t score_ms; /* its place in its state, from which lapse_list() goes on */

    int cancelled; /* likewise: see job_cancelled() */
    enum lapse_end end;

    int awaits;                 /* the other jobs of the batch that has its id as its name */
    unsigned stage;             /* of its series; of one itself: how many moments have been */
    unsigned parts;             /* in its body; of a group: that it has gathered */
    struct lapse_gather gather; /* of a group; most 0: it is none */
    int paused;
    unsigned priority;
    int64_t max_late_ms; /* 0: it may be as late as it is */
    enum lapse_late late;
    int64_t run_ms;     /* how long one run may take, as its schedule says; 0: it does not */
    int64_t created_ms; /* as Redis has kept it; 0: it was not asked to */
    unsigned tries;
    unsigned try_no;
    uint64_t token;
    int64_t claimed_us;
    char reason[JOB_REASON_MAX + 1];

    bool is_dup; /* made by lapse_job_dup(): it is no lease */

    uint64_t deliveries; /* of its entry in a stream; 0: it comes from none */
    const char *entry;   /* the id of that; NULL: it has none */

    const void *report; /* NULL: it has none, or was answered without it */
    size_t report_len;
};

/* A handler in another thread may read it while the loop renews the lease. */
static inline int64_t job_until_ms(const struct lapse_job *job)
{
    return __atomic_load_n(&job->until_ms, __ATOMIC_RELAXED);
}

static inline void job_set_until_ms(struct lapse_job *job, int64_t until_ms)
{
    __atomic_store_n(&job->until_ms, until_ms, __ATOMIC_RELAXED);
}

static inline int job_cancelled(const struct lapse_job *job)
{
    return __atomic_load_n(&job->cancelled, __ATOMIC_RELAXED);
}

static inline void job_set_cancelled(struct lapse_job *job, int cancelled)
{
    __atomic_store_n(&job->cancelled, cancelled, __ATOMIC_RELAXED);
}

enum { JOB_SKIPPED = 0 }; /* beside the states of enum lapse_state: it is gone */

/* What a script answers of one job. Its texts are not copied. */
struct job_row {
    struct span id;
    struct span attempt;
    struct span record;
    struct span errors; /* why its last runs failed; empty: it has none, or they are not shown */
    int64_t state;      /* of a claim it may be JOB_SKIPPED, too */
    int64_t score_ms;
    int64_t place;      /* in the list of ids that was asked for; 0: in none */
    struct span report; /* of an answer of get; NULL: it has none */
};

/* The bytes that the texts of a row take. */
size_t job_texts_len(const char *queue, const struct job_row *row, bool with_body);

/* Fills a job, all of whose fields are 0, from a row; the texts are copied to texts, headers along
 * with the body. Of a record that this version cannot read tries stays 0, and there is no body. */
void job_fill(struct lapse_job *job, const char *queue, const struct job_row *row, char *texts,
              bool with_body);

/* The reason is no longer than JOB_REASON_MAX. */
void job_die(struct lapse_job *job, struct span reason);

enum { JOB_ENTRY_MAX = 20 + 1 + 20 }; /* bytes of the id of an entry, MS-N */

/* What an entry of a stream has of a job. */
struct job_entry {
    struct span entry; /* its id */
    int64_t deliveries;
    struct span id; /* empty: another program has added it, and what follows is empty, too */
    struct span body;
    int64_t due_ms;
    int64_t try_no;
    int64_t token;
    struct span headers[HEADERS_MAX]; /* NAME=VALUE */
    unsigned n_headers;
    unsigned parts; /* of which its body is; 0: of none */
};

/* The bytes that its texts take. */
size_t job_entry_texts_len(const char *queue, const struct job_entry *entry);

/* Fills a job, all of whose fields are 0, from an entry; the texts are copied to texts. */
void job_fill_from_entry(struct lapse_job *job, const char *queue, const struct job_entry *entry,
                         char *texts);

/* 0: the job has none. */
unsigned job_row_priority(const struct job_row *row);

/* May one run be limited to so long? */
bool job_run_ms_ok(int64_t run_ms);

/* How many bytes of a reason are kept, which may be NULL: one that is too long is cut between two
 * characters of UTF-8. */
size_t job_reason_len(const char *reason);

#endif
