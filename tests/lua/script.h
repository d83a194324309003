/* SPDX-License-Identifier: MIT */
/* Runs scripts on a server of the test's own, with the clock standing still, and shows replies and
 * keys as text.
 *
 * The clock shows T, a moment about a day ahead, so that no trigger expires meanwhile, until
 * now_at() moves it. In arguments and in what is expected, T+5 and U+5 are the moments 5 ms and 5
 * us after T as Redis keeps them, ms and us. Arguments are words; 'a b' is one word, '' an empty
 * one, \0a a byte. Replies: 1 'text' [list] nil -error. Keys:
 *
 *     due b:T+5 | run a:T+9 | jobs a=\01\00x b=\01\00 | attempts a=1 U+1 me 1 10 U T  | seq U+1 |
 *     t b:T+4
 *
 * sets by score, hashes and triggers by id, settings as "conf 1 paused=T+5 ", the index as "index
 * 't TAG ID'"; what is empty or missing is left out. */
#ifndef SCRIPT_H
#define SCRIPT_H
#include "redis.h"
#include "test.h"
#include <criterion/criterion.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REC "\\01\\00"                  /* a record's header when all is default */
#define TAG_A "\\02\\00\\03T\\01a"      /* that of a job with the tag a */
#define LAST_U "\\02\\01\\01\\04U\\02e" /* with one try; its key follows */
/* Known a minute after its end; with its body; with the tag a; and skipped if it is 1 ms late. */
#define KEEP "\\02\\00\\07K\\0560000"
#define KEEP_BODY "\\02\\00\\08K\\0660000b"
#define KEEP_A "\\02\\00\\0aK\\0560000T\\01a"
#define KEEP_LATE "\\02\\00\\0bK\\0560000L\\02s1"
/* That of a group: due 500 ms after its last part, or when it has two. */
#define GROUP "'\\02\\00\\09P\\07500 2 0'"
#define KEY "s:{q}:due"
#define ALIVE "s:{}:alive" /* of all queues */
#define QUEUES "s:{}:queues"

extern struct server *redis;
extern int64_t T; /* ms */

/* A server for each test of a suite; audited at its end. */
void script_init(void);
void script_init_on(struct server *s); /* which is stopped then */
void script_fini(void);
#define SCRIPTS(name) TestSuite(name, .init = script_init, .fini = script_fini)

/* Lua that stands before each script from now on: how another Redis behaves. */
void redis_differs(const char *lua);

void now_at(int64_t after_ms); /* the clock stands at T + after_ms */
void now_real(void);           /* the scripts ask Redis from now on */
void wait_until(int64_t ms);   /* Redis's own clock has passed it */

/* never freed: a test is a process */
char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *moments(const char *words); /* each T+5 and U+5 among them as Redis keeps it */
char *show(const struct redisReply *r);
struct redisReply *ask(const char *format, ...); /* Redis */
struct redisReply *run(const char *name, const char *args);
struct redisReply *run_on(const char *key, const char *name, const char *args);
struct redisReply *run_bytes(const char *name, size_t argc, const char *const *argv,
                             const size_t *len);
/* From now on each is a function of the library of functions; check and mend have none. */
void run_by_function(bool yes);
bool run_has_function(const char *name);
/* Its key is that of a queue. */
bool run_is_of_queue(const char *name);
/* From now on each is that of before/, or not. */
void run_before(bool yes);
/* From now on a call of one fails that makes what its head names behind SELDOM, or not. */
void run_plain(bool yes);
/* The text of one with its long names. */
const char *script_long(const char *name);
/* runs it, must not answer an error; forgets the wakes */
void given(const char *name, const char *args);

/* w waits, r runs, the lease of e ended, that of u too and it has used its only try, d is dead; it
 * is T+20. */
void five(void);
#define FIVE_JOBS "jobs d=" REC "d e=" REC "e r=" REC "r u=\\01\\01\\01u w=" REC "w"
#define ATTEMPT_E "e=1 U+1 me 1 10 U T "
#define ATTEMPT_U "u=1 U+2 me 1 1 U T "
#define ATTEMPT_R "r=1 U+3 me 1 10 U T "
#define ATTEMPT_D "d=1 U+4 me 1 10 U T bad"
#define FIVE                                                                                    \
    "due w:T+500 | run e:T+10 u:T+10 r:T+1000 | dead d:T | " FIVE_JOBS " | attempts " ATTEMPT_D \
    " " ATTEMPT_E " " ATTEMPT_R " " ATTEMPT_U " | seq U+4 | t w:T+499"
/* Beside the five: x is due and has a trigger, y cannot be read, m and n are members without a
 * record; l listens. */
void everything(void);
/* The same; where "SETTINGS; " stands before the arguments, these are the settings of the queue,
 * and with entries=1 among them its stream has an entry that its group has acknowledged; with
 * again=1 the lease of e ended in the run before, too; with tags=1 tr runs, tw is due and td is
 * dead, all with the tag a, and the index has an entry of no job; with unique=1 uw waits, us is
 * due and has its key until its start, ur runs, the last lease of ue ended, and ud is dead; with
 * kept=1 jobs that are known after their end, with errors=1 jobs that keep their errors, with
 * series=1 series, with groups=1 groups and with batch=1 batches, which script.c describes; with
 * met=1 a claim has met max_running; with pending=1 the stream also has one that a consumer of the
 * group h has and will not acknowledge. */
void everything_for(const char *args);
/* "marks; " makes jobs of which something was asked while they ran; "ended; " ends their leases. */
/* Calls in which each script does all that it can, in the situation of everything_for(); those of
 * one script follow each other. No name: the end. */
extern const struct script_call {
    const char *name, *args;
} script_calls[];
void many(int first, int n, const char *due); /* jobs j000, j001... */
long long calls(const char *command);         /* since CONFIG RESETSTAT */
long long commands(void);                     /* likewise: all within scripts, TIME too */

char *keys(void); /* of queue q */
/* wakes since it was last asked: the channel's end and the text of each */
const char *heard(void);
/* The same of the ends of jobs. */
const char *heard_ends(void);
const char *expired(void); /* likewise: ids whose triggers Redis says expired */
char *dumps(void);         /* all keys, with their bytes and expiry */

void same(const char *file, int line, const char *what, const char *got, const char *expected);
#define RUN(name, args, expected) same(__FILE__, __LINE__, name, show(run(name, args)), expected)
#define KEYS(expected) same(__FILE__, __LINE__, "keys", keys(), expected)
#define HEARD(expected) same(__FILE__, __LINE__, "heard", heard(), expected)
#define HEARD_ENDS(expected) same(__FILE__, __LINE__, "ends", heard_ends(), expected)

#endif
