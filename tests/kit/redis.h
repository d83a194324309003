/* SPDX-License-Identifier: MIT */
/* A blocking connection of the test to its Redis. Formats are those of hiredis: %s, %b, %lld. */
#ifndef REDIS_H
#define REDIS_H
#include "server.h"
#include <stddef.h>
#include <stdint.h>

struct redisContext;
struct redisReply;

/* The reply is the caller's to free, and may be an error. */
struct redisReply *redis_cmd(struct server *s, const char *format, ...);
/* The answer must be an integer, or a text that is one. */
long long redis_int(struct server *s, const char *format, ...);
/* The text is the caller's to free; NULL: nil. An error is "ERR ...". */
char *redis_str(struct server *s, const char *format, ...);
/* How often this command has run. */
long long redis_calls(struct server *s, const char *command);
/* How often it has answered an error that begins with this word. */
long long redis_errors(struct server *s, const char *error);
/* The answer must not be an error. */
void redis_do(struct server *s, const char *format, ...);

/* A connection of its own, which the caller frees. */
struct redisContext *redis_connect(struct server *s);
/* Sends all of it, and does not wait for the answer. */
void redis_send(struct redisContext *c, const char *format, ...);

/* Begins MONITOR, on a connection of its own, which the caller frees. */
struct redisContext *redis_monitor(struct server *s);
/* Shows each line that came since, the last of them this call's own ECHO. */
void redis_monitor_read(struct redisContext *monitor, struct server *s,
                        void (*see)(void *arg, char *line), void *arg);

/* Begins a script that only redis_not_busy() ends. Returns when Redis answers BUSY, which it does
 * because of this script alone, not of one that takes long on a busy machine. */
struct redisContext *redis_busy(struct server *s);
/* Returns when that has ended: SCRIPT KILL is answered before, and what follows may be refused. */
void redis_not_busy(struct server *s, struct redisContext *busy);

int64_t redis_now_ms(struct server *s);
/* How many connections it has, with that of the test. */
long long redis_clients(struct server *s);
/* What is to be done when Redis was killed (tools/doc/guarantees.md): else it may run the beginning
 * of a script, at which its log ended, when it is killed once more. Returns when that is done. */
void redis_rewrite_log(struct server *s);
/* How many jobs wait or run. Counted in one step, so a job that moves meanwhile is counted once. */
long long redis_left(struct server *s, const char *space, const char *queue);

/* Runs BUILD/lua/NAME.lua on a queue, whose KEYS[1] is key, with texts that NULL ends, or with any
 * bytes. */
struct redisReply *redis_script(struct server *s, const char *name, const char *key, ...);
struct redisReply *redis_scriptv(struct server *s, const char *name, const char *key, size_t argc,
                                 const char *const *argv, const size_t *len);
#endif
