/* lapse_sync.h - lapse for threads: calls that wait for their answer, and handlers that may block.
 *
 * One handle of lapse.h works in a thread of its own, that of the loop. Any number of threads use
 * it at the same time, over one connection; what they ask at about the same time travels together.
 * What lapse.h says of jobs, queues and errors holds here. This differs:
 *
 *   WAITING    A call returns when its answer has come. It gives up after timeout_ms, or with 0
 *              after the option reply_ms (and twice replicas_ms where copies are asked for, and up
 *              to a second, in which lapse may say more, such as LAPSE_EDOWN), and returns
 *              LAPSE_ETIMEOUT: what it asked may still happen. timeout_ms is at most 3652 days.
 *              Calls that take several requests (of selections and removals,
 *              lapse_sync_batch_get(), lapse_sync_queues() and lapse_sync_listeners()) go on with 0
 *              for as long as it takes: each request has reply_ms.
 *   RESULT     0, or a negative LAPSE_E* code. Only after 0 is out written, where it is a job after
 *              LAPSE_EALONE, and by lapse_sync_adopt() always. LAPSE_ELOST is also returned when it
 *              happened, but memory was short for what out should get.
 *   JOBS       The jobs that a call gives are the caller's: read them by lapse_job_*(), and free
 *              them by lapse_sync_free(). Only lapse_sync_get(), lapse_sync_wait(),
 *              lapse_sync_adopt() and the lists bring a body, and the first two a report. out may
 *              be NULL.
 *   THREADS    Every function may be called from every thread and from every handler, but
 *              lapse_sync_close(). The functions for the log, health, events and calendars, those
 *              after handlers and the allocator run in the thread of the loop, too: they must not
 *              block, nor wait for a lock that a thread holds in a call, and calls that they make
 *              return LAPSE_EINVAL.
 *   FORK       A forked child has no such thread: calls return LAPSE_ECLOSED there. Fork first,
 *              then open.
 */
#ifndef LAPSE_SYNC_H
#define LAPSE_SYNC_H
#include <lapse.h>
#ifdef __cplusplus
extern "C" {
#endif

struct lapse_sync;

/* Starts the thread, which begins to connect. */
LAPSE_API int lapse_sync_open(struct lapse_sync **out, const struct lapse_options *opts);

/* To be called by one thread, and not from a handler, when no other thread but handlers is in a
 * call; a settle may still be. New calls fail with LAPSE_ECLOSED, settles excepted. Jobs that no
 * thread has begun go back at once, and use up no try. Handlers have up to grace_ms to settle what
 * they have. Then that goes back too, uses up no try, and settles of it return LAPSE_EGONE.
 *
 * It returns when every handler has returned, however long that takes, as a thread cannot be
 * stopped from outside. After it jobs that nobody has settled are freed by lapse_sync_free().
 * NULL, or in a forked child: nothing happens. */
LAPSE_API void lapse_sync_close(struct lapse_sync *s, int64_t grace_ms);

/* ---- jobs ---- */
LAPSE_API int lapse_sync_schedule(struct lapse_sync *s, const struct lapse_spec *spec,
                                  int64_t timeout_ms, struct lapse_job **out);
LAPSE_API int lapse_sync_cancel(struct lapse_sync *s, const char *queue, const char *id,
                                unsigned flags, int64_t timeout_ms, struct lapse_job **out);
LAPSE_API int lapse_sync_reschedule(struct lapse_sync *s, const char *queue, const char *id,
                                    struct lapse_due due, unsigned flags, int64_t timeout_ms,
                                    struct lapse_job **out);
LAPSE_API int lapse_sync_kill(struct lapse_sync *s, const char *queue, const char *id,
                              const char *reason, int64_t timeout_ms, struct lapse_job **out);
LAPSE_API int lapse_sync_get(struct lapse_sync *s, const char *queue, const char *id,
                             int64_t timeout_ms, struct lapse_job **out);
/* Waits for the end of a job, as lapse_wait() does, at most wait_ms (0 to 3651 days). ETIMEOUT: it
 * has not ended. EDOWN: Redis could not be asked when the time was over. */
LAPSE_API int lapse_sync_wait(struct lapse_sync *s, const char *queue, const char *id,
                              int64_t wait_ms, struct lapse_job **out);

/* As lapse_batch_close() and lapse_batch_get(); out must not be NULL where it is no job. */
LAPSE_API int lapse_sync_batch_close(struct lapse_sync *s, const char *queue, const char *name,
                                     int64_t timeout_ms, struct lapse_job **out);
LAPSE_API int lapse_sync_batch_get(struct lapse_sync *s, const char *queue, const char *name,
                                   int64_t timeout_ms, struct lapse_batch *out);

/* Makes a calendar known to the handle, as lapse_calendar(): series that any thread schedules may
 * go by it, and a handler of their queue keeps them going. fn runs in the thread of the loop; see
 * THREADS above. lapse_cron.h has lapse_sync_cron(). */
LAPSE_API int lapse_sync_calendar(struct lapse_sync *s, const char *name, lapse_next_fn *fn,
                                  void *arg);

/* Frees a job that a call gave, or one that nobody settled before lapse_sync_close(). NULL is
 * fine. */
LAPSE_API void lapse_sync_free(struct lapse_job *job);

/* ---- many jobs at once ---- */
struct lapse_sync_count {
    uint64_t n;
    uint64_t n_running;
};
/* As lapse_cancel_all(), lapse_kill_all() and lapse_reschedule_all(). out gets the counts also
 * where the selection breaks off with an error; it may be NULL. A call that gives up does not stop
 * its selection. */
LAPSE_API int lapse_sync_cancel_all(struct lapse_sync *s, const char *queue,
                                    const struct lapse_where *w, unsigned flags, int64_t timeout_ms,
                                    struct lapse_sync_count *out);
LAPSE_API int lapse_sync_kill_all(struct lapse_sync *s, const char *queue,
                                  const struct lapse_where *w, const char *reason,
                                  int64_t timeout_ms, struct lapse_sync_count *out);
LAPSE_API int lapse_sync_reschedule_all(struct lapse_sync *s, const char *queue,
                                        const struct lapse_where *w, struct lapse_due due,
                                        int64_t spread_ms, unsigned flags, int64_t timeout_ms,
                                        struct lapse_sync_count *out);

/* ---- queues ---- */
#define LAPSE_SYNC_JOBS 100
struct lapse_sync_jobs {
    size_t n;
    struct lapse_job *jobs[LAPSE_SYNC_JOBS];
};

/* A page, as lapse_list() gives it. */
LAPSE_API int lapse_sync_list(struct lapse_sync *s, const char *queue, enum lapse_state state,
                              const struct lapse_job *after, unsigned n, int64_t timeout_ms,
                              struct lapse_sync_jobs *out);
/* Likewise, as lapse_list_tag() gives it. */
LAPSE_API int lapse_sync_list_tag(struct lapse_sync *s, const char *queue, const char *tag,
                                  const struct lapse_job *after, unsigned n, int64_t timeout_ms,
                                  struct lapse_sync_jobs *out);
/* Likewise, as lapse_list_batch() gives it. */
LAPSE_API int lapse_sync_list_batch(struct lapse_sync *s, const char *queue, const char *batch,
                                    const struct lapse_job *after, unsigned n, int64_t timeout_ms,
                                    struct lapse_sync_jobs *out);
/* Frees the jobs of a page; n is 0 then. */
LAPSE_API void lapse_sync_free_jobs(struct lapse_sync_jobs *jobs);

LAPSE_API int lapse_sync_depth(struct lapse_sync *s, const char *queue, int64_t timeout_ms,
                               struct lapse_depth *out);

/* What a call found: n rows, of one kind. They are the caller's, to be freed all at once by
 * lapse_sync_free_rows(out.rows). out must not be NULL, but for what lapse_sync_quiet() and
 * lapse_sync_stop() give. */
struct lapse_sync_queue_rows {
    size_t n;
    struct lapse_queue **rows;
};
struct lapse_sync_listener_rows {
    size_t n;
    struct lapse_listener **rows;
};
struct lapse_sync_past_rows {
    size_t n;
    struct lapse_past **rows;
};
LAPSE_API void lapse_sync_free_rows(void *rows); /* NULL is fine */

/* As lapse_queues(), lapse_listeners() and lapse_history() tell it. */
LAPSE_API int lapse_sync_queues(struct lapse_sync *s, const char *pattern, int64_t timeout_ms,
                                struct lapse_sync_queue_rows *out);
LAPSE_API int lapse_sync_listeners(struct lapse_sync *s, const char *queue, int64_t timeout_ms,
                                   struct lapse_sync_listener_rows *out);
LAPSE_API int lapse_sync_history(struct lapse_sync *s, const char *queue, int64_t from_ms,
                                 int64_t to_ms, int64_t step_ms, int64_t timeout_ms,
                                 struct lapse_sync_past_rows *out);

/* Tell a listener to take no more jobs, to go on, or to stop, as lapse_quiet() and lapse_stop(). */
LAPSE_API int lapse_sync_quiet(struct lapse_sync *s, const char *name, int quiet,
                               int64_t timeout_ms, struct lapse_sync_listener_rows *out);
LAPSE_API int lapse_sync_stop(struct lapse_sync *s, const char *name, int64_t timeout_ms,
                              struct lapse_sync_listener_rows *out);

/* Removes a queue, as lapse_remove(). out gets the counts also with an error; it may be NULL. A
 * call that gives up does not stop its removal. */
LAPSE_API int lapse_sync_remove(struct lapse_sync *s, const char *queue, unsigned flags,
                                int64_t timeout_ms, struct lapse_sync_count *out);

/* ---- settings ---- */
/* out gets the settings, the caller's to free by lapse_sync_free_text(); or, after LAPSE_EINVAL,
 * the change that was refused and why, if Redis has refused it: set it to NULL before. NULL: it is
 * not wanted. */
LAPSE_API int lapse_sync_configure(struct lapse_sync *s, const char *queue, const char *changes,
                                   int64_t timeout_ms, char **out);
LAPSE_API int lapse_sync_pause(struct lapse_sync *s, const char *queue, const char *id,
                               int64_t for_ms, int64_t timeout_ms, char **out);
LAPSE_API int lapse_sync_unpause(struct lapse_sync *s, const char *queue, const char *id,
                                 int64_t timeout_ms, char **out);
/* Until lapse_sync_unlisten(), or not at all after an error. */
LAPSE_API int lapse_sync_forward(struct lapse_sync *s, const char *queue, const char *to,
                                 int64_t timeout_ms, char **out);
LAPSE_API void lapse_sync_free_text(char *text); /* NULL is fine */

/* out gets the jobs whose entries were moved, also with an error; n is 0 if it is not known. out
 * must not be NULL. */
LAPSE_API int lapse_sync_adopt(struct lapse_sync *s, const char *queue,
                               const struct lapse_adoption *adoption, int64_t timeout_ms,
                               struct lapse_sync_jobs *out);

/* ---- worker threads ---- */

/* Runs in one of the threads of its queue, and may block. The lease is renewed meanwhile, for up to
 * run_ms. The job belongs to the handler until it is settled: once, in the handler or later, by any
 * thread. */
typedef void lapse_sync_handler(struct lapse_sync *s, struct lapse_job *job, void *arg);

struct lapse_sync_listen_options {
    size_t size;
    unsigned threads;     /* 1 to 10000; 0: 1 */
    unsigned max_running; /* how many jobs of the queue may be held, at most 100000; as many as
                             there are threads, if that is more. Those that find no free thread wait
                             here, and the time counts for run_ms */
    unsigned weight;      /* as in lapse_listen(): 1 to LAPSE_WEIGHT_MAX; 0: 1 */
    unsigned level;       /* likewise */
};

/* Starts the threads, and runs fn in them for the jobs of a queue. No more is claimed than threads
 * are free, or than max_running, and never more than the option max_running of the handle. opts may
 * be NULL. queue may be a pattern, as in lapse_listen(): all its queues share these threads.
 * EEXIST: the queue has a handler. ENOMEM: a thread could not be started. */
LAPSE_API int lapse_sync_listen(struct lapse_sync *s, const char *queue,
                                const struct lapse_sync_listen_options *opts,
                                lapse_sync_handler *fn, void *arg);

/* Stops. The handler does not begin again; one that runs goes on. Jobs that no thread has begun go
 * back, and use up no try. ENOENT: the queue has no handler. */
LAPSE_API int lapse_sync_unlisten(struct lapse_sync *s, const char *queue);

/* Jobs that are due, for who has no handler, as lapse_claim() gives them: they are the caller's
 * until they are settled below, by any thread, and their leases are renewed meanwhile. timeout_ms 0
 * adds wait_ms. What comes after the call has given up goes back. out must not be NULL. */
LAPSE_API int lapse_sync_claim(struct lapse_sync *s, const char *queue, unsigned n, int64_t wait_ms,
                               int64_t timeout_ms, struct lapse_sync_jobs *out);
/* ENOENT: it is not due, or not there. */
LAPSE_API int lapse_sync_claim_id(struct lapse_sync *s, const char *queue, const char *id,
                                  int64_t timeout_ms, struct lapse_job **out);

/* Settles a job by the token of its claim, as lapse_settle(). */
LAPSE_API int lapse_sync_settle(struct lapse_sync *s, const char *queue, const char *id,
                                uint64_t token, const struct lapse_settlement *how,
                                int64_t timeout_ms);

/* The settles take the job, whatever they return, but for LAPSE_EINVAL and LAPSE_ECLOSED. A settle
 * that gives up goes on: it is repeated until Redis answers or the lease ends. */
LAPSE_API int lapse_sync_done(struct lapse_sync *s, struct lapse_job *job, int64_t timeout_ms);
LAPSE_API int lapse_sync_retry(struct lapse_sync *s, struct lapse_job *job, int64_t delay_ms,
                               const char *reason, int64_t timeout_ms);
LAPSE_API int lapse_sync_snooze(struct lapse_sync *s, struct lapse_job *job, int64_t delay_ms,
                                const char *reason, int64_t timeout_ms);
LAPSE_API int lapse_sync_fail(struct lapse_sync *s, struct lapse_job *job, const char *reason,
                              int64_t timeout_ms);
LAPSE_API int lapse_sync_release(struct lapse_sync *s, struct lapse_job *job, int64_t timeout_ms);
/* Keeps a report of the job, as lapse_report(). It takes no job, and may be called while
 * lapse_sync_close() waits for handlers. */
LAPSE_API int lapse_sync_report(struct lapse_sync *s, struct lapse_job *job, const void *bytes,
                                size_t len, int64_t timeout_ms);
/* The job may be held for run_ms from now on, as lapse_extend(). It takes no job, and waits for the
 * loop, not for Redis. */
LAPSE_API int lapse_sync_extend(struct lapse_sync *s, struct lapse_job *job, int64_t run_ms,
                                int64_t timeout_ms);
/* Frees the job, and asks Redis nothing, as lapse_forget(). */
LAPSE_API int lapse_sync_forget(struct lapse_sync *s, struct lapse_job *job);

typedef void lapse_sync_event_fn(struct lapse_sync *s, enum lapse_event what,
                                 const struct lapse_job *job, void *arg);

/* What lapse_on_event() tells: fn runs in the thread of the loop; see THREADS above. job is lent
 * until it returns. A handler that blocks may as well ask lapse_job_cancelled(). NULL: no
 * reports. */
LAPSE_API int lapse_sync_on_event(struct lapse_sync *s, lapse_sync_event_fn *fn, void *arg);

typedef void lapse_sync_told_fn(struct lapse_sync *s, enum lapse_told what, void *arg);

/* What lapse_on_told() tells: fn runs in the thread of the loop; see THREADS above. At
 * LAPSE_TOLD_STOP it should have another thread call lapse_sync_close(). NULL: no reports. */
LAPSE_API int lapse_sync_on_told(struct lapse_sync *s, lapse_sync_told_fn *fn, void *arg);

/* ---- around handlers ---- */

/* Before a handler, in its thread: it may block, and make any call that the handler may. 0: the job
 * goes on to what is next, and at last to its handler. But if its lease has ended meanwhile, or it
 * was cancelled, or given back as the handle closed, it goes back, and its handler does not begin.
 * Not 0: the job is this function's, which settles it as a handler would, now or later. One that
 * has settled the job does not return 0, even where the settle failed. */
typedef int lapse_sync_before_fn(struct lapse_sync *s, struct lapse_job *job, void *arg);

/* After it, when the settle of the job was answered, and before the call that settles it returns,
 * if that has not given up. It runs in the thread of the loop; see THREADS above. how: 0 is
 * lapse_sync_forget(); LAPSE_HOW_RELEASE is also a job that went back after a function before. err:
 * what that call returns, unless it gives up; LAPSE_EGONE of a job that was given back as the
 * handle closed. ran_us: from the first of the functions before until it was settled. job is lent
 * until this returns. */
typedef void lapse_sync_after_fn(struct lapse_sync *s, const struct lapse_job *job,
                                 enum lapse_how how, int err, int64_t ran_us, void *arg);

/* What all handlers have in common, as lapse_around() says it: jobs that come from now on pass
 * before in the order of these calls, then their handler, and then after in the reverse order, of
 * those that they passed before. A job that waits for a thread already has come. One of the two may
 * be NULL. A job that no thread has begun passes none, nor one of lapse_sync_claim(). Of a job that
 * nobody has settled, and that lapse_sync_free() frees, no function after is called.
 * lapse_sync_unlisten() and lapse_sync_close() take a job that is at a function before for one that
 * its handler has. EFULL: there are LAPSE_AROUND_MAX. EINVAL: both are NULL. */
LAPSE_API int lapse_sync_around(struct lapse_sync *s, lapse_sync_before_fn *before,
                                lapse_sync_after_fn *after, void *arg);

/* ---- statistics and health ---- */
LAPSE_API int lapse_sync_stats(struct lapse_sync *s, struct lapse_stats *out, size_t size);
LAPSE_API int lapse_sync_lateness(struct lapse_sync *s, enum lapse_via via,
                                  struct lapse_histogram *out);

typedef void lapse_sync_health_fn(struct lapse_sync *s, const struct lapse_health *h, void *arg);

/* fn runs in the thread of the loop; see THREADS above. NULL: no reports. */
LAPSE_API int lapse_sync_on_health(struct lapse_sync *s, lapse_sync_health_fn *fn, void *arg);
#ifdef __cplusplus
}
#endif
#endif
