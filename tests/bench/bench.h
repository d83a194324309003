/* SPDX-License-Identifier: MIT */
/* What the programs of the bench share. Each puts jobs into one system and hears them, in the words
 * of bench.c; run.sh starts them side by side. Results go to stdout as lines of a name and a value.
 */
#ifndef BENCH_H
#define BENCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ID_LEN = 20, BODY_LEN = 100 };

/* ---- bench.c ---- */
const char *arg(const char *name, const char *otherwise); /* of NAME=VALUE on the command line */
int64_t arg_n(const char *name, int64_t otherwise);
const char *arg_option(size_t nth, const char **value); /* the nth o.NAME=VALUE; NULL: no more */
/* the wall clock, which is the server's on this machine */
int64_t now_us(void);
void until_us(int64_t at_us);
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void tell(const char *name, double value);
void tell_times(int64_t *us, size_t n); /* p50_us, p99_us, max_us; sorts them */

struct peer {
    long window; /* how many puts may be on their way in a fill */
    /* the path of a Unix socket; Redis's: or a port of this machine */
    void (*open)(const char *at);
    /* Sent by the next until() at the latest. due_ms 0: at once. id and body are ID_LEN and
     * BODY_LEN long, id is text.
     */
    void (*put)(const char *id, const char *body, int64_t due_ms);
    void (*until)(long in_flight); /* returns when at most so many are not answered */
    void (*listen)(void);          /* calls heard() and settled() for as long as listening() */
    /* a verb of its own: exit status, or -1: no such verb; NULL: none */
    int (*other)(const char *verb);
};
int bench_main(int argc, char **argv, const struct peer *p);

bool listening(void); /* neither have all jobs been settled, nor is it late */
int64_t listen_until_us(void);
/* A handler begins. claimed_us, due_ms: 0 where the system does not say. */
void heard(const char *id, size_t len, int64_t claimed_us, int64_t due_ms);
void settled(void); /* one more is done for good */

/* ---- pipe.c: one blocking connection to Redis with several commands on their way ---- */
struct redisReply;
void pipe_open(const char *at);
void pipe_add(const char *format, ...); /* hiredis's */
/* in commands; an error reply ends the program */
void pipe_until(long in_flight);
/* the caller's to free; nothing else may be on its way */
struct redisReply *pipe_ask(const char *format, ...);
int pipe_fd(void);
#endif
