/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SENTINEL_H
#define LAPSE_SENTINEL_H
#include "redis/conn.h"

enum { SENTINEL_PLACES = 32 };

struct sentinel_place {
    char host[ADDRESS_HOST_MAX + 1];
    int port;
};

struct sentinel;

/* A question to the Sentinel that is asked. */
struct sentinel_call {
    struct call call;
    struct sentinel *sentinel;
};

/* Which server is the master, by the Sentinels of a URL and those that they name. */
struct sentinel {
    struct context *context;
    struct endpoint endpoint; /* of the one that is asked */
    struct conn conn;
    const char *name; /* of the master, as Sentinel has it */

    struct sentinel_place places[SENTINEL_PLACES];
    unsigned n_places;
    unsigned at;          /* the one that is asked */
    unsigned n_silent;    /* in a row that could not be asked, or did not answer as they should */
    bool moves_on;        /* that one answered, and the next one may know more */
    int64_t left_us;      /* the attempt after which at went on, by when it had begun */
    int64_t patience_ms;  /* how long an answer may take */
    bool all_were_silent; /* and the log says so */

    struct timer timer; /* the next question */
    struct sentinel_call state;
    struct sentinel_call address;
    struct sentinel_call others;
    unsigned n_calls;  /* of these, without an answer */
    unsigned n_rounds; /* of questions on the connection of now */
    int64_t asked_us;
    int64_t epoch; /* of the configuration, by the last answer to state; -1: unknown */
    bool trouble;  /* likewise: the master may be down, or a failover is under way */

    struct sentinel_place master; /* that is known; port 0: none */
    int64_t master_epoch;
    bool doubted; /* it could not be used, when that was last tried */
    int64_t doubted_us;

    void (*found)(void *arg, const char *host, int port);
    void *arg;
};

/* The address is that of the URL, and its texts outlive s. found(): this is the master; it runs for
 * the first one, and whenever it is another, from the loop. */
void sentinel_init(struct sentinel *s, struct context *context, const struct address *address,
                   void (*found)(void *arg, const char *host, int port), void *arg);
void sentinel_start(struct sentinel *s);
/* Not to be called from found(). */
void sentinel_close(struct sentinel *s);

/* The master cannot be used: asks again at once, and then more often. */
void sentinel_doubt(struct sentinel *s);
/* It can. */
void sentinel_trust(struct sentinel *s);

#endif
