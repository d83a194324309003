/* SPDX-License-Identifier: MIT */
#ifndef REDIS_SYNC_H
#define REDIS_SYNC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>

struct address;
struct lapse_options;
struct redisContext;
struct redisReply;

enum { REDIS_WHY = 700 };

/* A blocking connection beside the library's, for what lapse.h does not show. Unless noted
 * otherwise its functions return 0, or an exit code after they have printed why. */
struct redis_sync {
    struct redisContext *c;
    const char *shown; /* the URL, for messages */
    int db;
    bool by_sentinel; /* the URL is one of Sentinels */
    char host[256];   /* where Redis is, as the URL or a Sentinel has it, or its socket */
    int port;
    char user[64];       /* of the URL; "": the default user */
    bool quiet;          /* nothing is printed */
    char why[REDIS_WHY]; /* what was, or would have been, printed last */
};

/* url: of one server, or of Sentinels; cluster_sync_open() takes that of a cluster. o: what the URL
 * does not say of TLS; wait_ms: how long to wait for a Redis that cannot be reached, or is
 * loading. */
int redis_sync_open(struct redis_sync *r, const struct lapse_options *o, const char *url,
                    const char *shown, int64_t reply_ms, int64_t wait_ms);
/* One attempt at one server. why: it cannot be reached, or is loading; else "". */
int redis_sync_try(struct redis_sync *r, const struct address *a, struct timeval limit,
                   char why[REDIS_WHY]);
/* A connection of which nothing is printed. Not 0: r->why says why there is none, or that this user
 * is not let in. */
int redis_sync_open_quietly(struct redis_sync *r, const struct address *a, const char *shown,
                            int64_t reply_ms);
/* Reads a URL that the library has accepted; NULL: out of memory. What it returns has the texts of
 * a, with the passwords, and is to be freed. */
char *redis_sync_address(struct address *a, const struct lapse_options *o, const char *url);
void redis_sync_address_free(char *texts, const char *url);
struct timeval redis_sync_limit(int64_t reply_ms);
/* Is it a matter of the user, or of the password? */
bool redis_sync_is_denial(const char *error);
/* What it says of itself: its "role", its "mode"; "": nothing. */
void redis_sync_hello(struct redis_sync *r, const char *what, char out[16]);
void redis_sync_close(struct redis_sync *r);
/* A socket that is connected to there, and on which nothing was said; -1: there is none. */
int redis_sync_dial(const struct address *a);

/* The reply, also if it is an error; NULL after it has printed that the connection is lost. len:
 * of each argument; NULL: they are texts. */
struct redisReply *redis_sync_command(struct redis_sync *r, int argc, const char *const *argv,
                                      const size_t *len);
/* Runs a script that returns n numbers; keys and args end with NULL, and are at most 8 together. */
int redis_sync_script(struct redis_sync *r, const char *script, const char *const *keys,
                      const char *const *args, int n, int64_t *out);
int redis_sync_ping(struct redis_sync *r, int64_t *us);
/* How far the monotonic clock of this machine is ahead of Redis's clock, and how wrong that can be
 * at most. */
int redis_sync_clock(struct redis_sync *r, int64_t *offset_us, int64_t *error_us);

/* From INFO. */
struct redis_info {
    bool known;      /* false: this user may not run INFO */
    int64_t cpu_us;  /* used so far, user and system */
    int64_t memory;  /* bytes, without the buffers of clients and of the append-only file */
    int64_t room;    /* bytes up to maxmemory, or to the machine's limit; -1: unknown */
    int64_t scripts; /* calls so far */
    int64_t
        commands; /* likewise, with those inside scripts, without INFO and PING, which are ours */
    int64_t hz;
    char version[24];
};
int redis_sync_info(struct redis_sync *r, struct redis_info *out);
/* The value of a field in the text of INFO, up to the end of its line and beyond; "": none. */
const char *redis_info_field(const char *text, const char *name);

int64_t monotonic_us(void);
#endif
