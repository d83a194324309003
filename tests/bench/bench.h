/* SPDX-License-Identifier: MIT */
/* What the programs of the bench share. Each program schedules jobs in one system and runs
 * them, by the verbs of bench.c; run.py starts them. Figures go to stdout, each a line of a
 * name and a value. */
#ifndef BENCH_H
#define BENCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ID_LEN = 20, BODY_LEN = 100, KIND_LEN = 4 };

/* ---- bench.c ---- */
struct system {
    /* The number of puts that may be in flight during a fill. */
    long window;
    /* address: the path of a Unix socket, or for Redis a port of this machine. */
    void (*open)(const char *address);
    /* Sent by the next wait() at the latest. due_ms 0: now. id and body are ID_LEN and BODY_LEN
     * bytes long; id is text. */
    void (*put)(const char *id, const char *body, int64_t due_ms);
    /* Returns when at most so many puts are unanswered. */
    void (*wait)(long in_flight);
    /* Calls job_started() and job_settled() as long as listening() is true. */
    void (*listen)(void);
    /* Runs a verb that only this system has: exit status, or -1 if there is no such verb. NULL: the
     * system has none. */
    int (*verb)(const char *verb);
};

int bench_main(int argc, char **argv, const struct system *system);
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void figure(const char *name, double value);
/* Prints p50_us, p99_us and max_us; sorts them. */
void figure_times(int64_t *us, size_t n);
/* By the wall clock, which is the server's on this machine. */
int64_t now_us(void);
void sleep_until_us(int64_t at_us);
/* Memory for n + 1 things, written now, so that it does not show as growth of the resident set. */
void *alloc_touched(int64_t n, size_t size);

/* ---- arguments.c: NAME=VALUE on the command line ---- */
void arguments_set(char **words);
/* otherwise: what it is if it is not given; NULL: it must be given. */
const char *argument(const char *name, const char *otherwise);
int64_t argument_int(const char *name, int64_t otherwise);
int64_t argument_required(const char *name);
/* The nth o.NAME=VALUE; NULL: there are no more. */
const char *argument_option(size_t nth, const char **value);

/* ---- produce.c: jobs by number, at a rate, in bulk or one by one ---- */
/* kind: the first KIND_LEN letters of the ids. */
void put_numbered(const struct system *system, const char *kind, int64_t number, int64_t due_ms);
int produce_bulk(const struct system *system, const char *kind, int64_t step_us, int64_t first_ms);
int produce_singly(const struct system *system);
int produce_at_rate(const struct system *system, const char *kind);

/* ---- listen.c: what a listener records ---- */
int listen_and_record(const struct system *system, const char *kind);
/* False once all jobs are settled, or the time is over. */
bool listening(void);
int64_t listen_until_us(void);
/* A handler begins. claimed_us, due_ms: 0 where the system does not say. */
void job_started(const char *id, size_t len, int64_t claimed_us, int64_t due_ms);
/* The handler of a job that lasts settles it now. */
void job_ends(const char *id, size_t len);
void job_settled(void);

/* ---- pipe.c: one blocking connection to Redis with several commands in flight ---- */
struct redisReply;
void pipe_open(const char *address);
/* format: hiredis's. */
void pipe_add(const char *format, ...);
/* in_flight: commands. An error reply ends the program. */
void pipe_wait(long in_flight);
/* The reply is the caller's to free; nothing else may be in flight. */
struct redisReply *pipe_ask(const char *format, ...);
#endif
