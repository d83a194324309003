/* SPDX-License-Identifier: MIT */
#ifndef INFO_H
#define INFO_H
#include <stddef.h>
#include <stdint.h>

struct redisContext;

struct info {        /* what Redis says of itself */
    int known;       /* 0: this user may not ask */
    int64_t cpu_us;  /* used so far, user and system */
    int64_t memory;  /* bytes, without the buffers of clients and of the append-only file */
    int64_t room;    /* bytes to maxmemory, or to the machine's end; -1: not known */
    int64_t scripts; /* calls so far */
    /* the same, those inside scripts included; without INFO and PING, which are ours */
    int64_t commands;
    int64_t hz;
    char version[24];
};

/* A blocking connection beside the library's: for what lapse.h does not tell. All return 0, or an
 * exit code and have said why. */
struct info_conn {
    struct redisContext *c;
    const char *shown; /* the URL, for messages */
    int db;
    char user[64]; /* of the URL; "": the default one */
};
/* wait_ms: for one that is not there, or is loading. */
int info_open(struct info_conn *r, const char *url, const char *shown, int64_t reply_ms,
              int64_t wait_ms);
void info_close(struct info_conn *r);
int info_take(struct info_conn *r, struct info *out);
struct redisReply *info_ask(struct info_conn *r, int argc, const char *const *argv,
                            const size_t *len);             /* also an error; NULL: said why */
const char *info_field(const char *text, const char *name); /* up to the line's end; "" */
int info_ping(struct info_conn *r, int64_t *us);
/* How far our monotonic clock is ahead of Redis's, and how wrong that can be at most. */
int info_clock(struct info_conn *r, int64_t *offset_us, int64_t *error_us);
/* Runs a script that answers n numbers. */
int info_script(struct info_conn *r, const char *script, const char *key, int argc,
                const char *const *argv, int n, int64_t *out);
int64_t monotonic_us(void);
#endif
