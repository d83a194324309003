/* SPDX-License-Identifier: MIT */
#ifndef DOCTOR_H
#define DOCTOR_H
#include "cli/arguments.h"
#include "cli/message.h"
#include "cli/url_mask.h"
#include "cli/values.h"
#include "client/redis_sync.h"
#include <stdio.h>

struct redisReply;

enum verdict { FINE, WARN, FAIL };
struct doctor {
    struct globals *g;
    struct redis_sync r;
    char *secret, *info; /* info: all that INFO says; "": this user may not ask */
    const char *space;
    bool repair;
    unsigned role; /* of enum doctor_role */
    char **queues; /* each of its own */
    int n_queues, queues_room;
    int named; /* the queues were, by the user */
    int code;  /* to exit with */
    int replica;
    unsigned n[FAIL + 1]; /* of each verdict */
    const char *eval;     /* EVAL, or EVAL_RO of who may only read */
    int64_t waiting;      /* jobs that may have a trigger */
};
enum doctor_role { FOR_LISTENER, FOR_PRODUCER, FOR_MONITOR };

/* ---- doctor.c ---- */
/* One line. queue, mend: NULL if there is none; mend is a command. */
void report(struct doctor *d, enum verdict v, const char *check, const char *queue,
            const char *mend, const char *format, ...) __attribute__((format(printf, 6, 7)));
/* What came from outside may stand in a command only so: of letters, digits, . _ - and these. A
 * command is to be pasted. */
int is_tame(const char *word, const char *also);
/* The answer, also if it is an error; to be freed. NULL: the connection is gone, it was said, and
 * d->code is set. */
struct redisReply *doctor_ask(struct doctor *d, int argc, const char *const *argv,
                              const size_t *len);
#define ASK(d, ...)                                                       \
    doctor_ask(d, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), \
               (const char *[]){__VA_ARGS__}, NULL)
int64_t doctor_patience_ms(const struct doctor *d);
int is_error(const struct redisReply *r, const char *word); /* word "": any; of no reply too */
int is_text(const struct redisReply *r);
int64_t doctor_int(const struct doctor *d, const char *name); /* of INFO; 0 if it is not there */
enum { VALUE_BYTES = 400 };
/* likewise; "" */
const char *doctor_text(const struct doctor *d, const char *name, char out[VALUE_BYTES]);
/* 0: not allowed */
int doctor_config(struct doctor *d, const char *name, char out[VALUE_BYTES]);

/* ---- doctor_server.c, doctor_user.c, doctor_jobs.c: the checks ---- */
void check_server(struct doctor *d);
void check_memory(struct doctor *d);
void check_kept(struct doctor *d);
void check_clock(struct doctor *d);
void check_expiry(struct doctor *d);
void check_rights(struct doctor *d);
void check_events(struct doctor *d);
void check_jobs(struct doctor *d);
int doctor_find_queues(struct doctor *d); /* 0: it may not look; has reported it */
#endif
