/* SPDX-License-Identifier: MIT */
#ifndef REDIS_SYNC_H
#define REDIS_SYNC_H
#include <stddef.h>
#include <stdint.h>

struct redisContext;

struct redis_info {  /* what Redis says of itself */
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
struct redis_sync {
    struct redisContext *c;
    const char *shown; /* the URL, for messages */
    int db;
    char user[64]; /* of the URL; "": the default one */
};
/* wait_ms: for one that is not there, or is loading. */
int redis_sync_open(struct redis_sync *r, const char *url, const char *shown, int64_t reply_ms,
                    int64_t wait_ms);
void redis_sync_close(struct redis_sync *r);
int redis_sync_info(struct redis_sync *r, struct redis_info *out);
struct redisReply *redis_sync_command(struct redis_sync *r, int argc, const char *const *argv,
                                      const size_t *len); /* also an error; NULL: said why */
const char *redis_info_field(const char *text, const char *name); /* up to the line's end; "" */
int redis_sync_ping(struct redis_sync *r, int64_t *us);
/* How far our monotonic clock is ahead of Redis's, and how wrong that can be at most. */
int redis_sync_clock(struct redis_sync *r, int64_t *offset_us, int64_t *error_us);
/* Runs a script that answers n numbers. */
int redis_sync_script(struct redis_sync *r, const char *script, const char *key, int argc,
                      const char *const *argv, int n, int64_t *out);
int64_t monotonic_us(void);
#endif
