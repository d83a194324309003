/* SPDX-License-Identifier: MIT */
#ifndef ASK_H
#define ASK_H
#include "doctor/doctor.h"

struct redisReply;

enum { VALUE_BYTES = 400 };

/* The reply, also if it is an error; to be freed. NULL: the connection is lost, which has been
 * printed, and d->code is set. len: of each argument; NULL: they are texts. */
struct redisReply *ask_redis(struct doctor *d, int argc, const char *const *argv,
                             const size_t *len);
#define ASK(d, ...)                                                      \
    ask_redis(d, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), \
              (const char *[]){__VA_ARGS__}, NULL)

bool is_error(const struct redisReply *r);
/* This user may not run the command. */
bool is_denied(const struct redisReply *r);
/* The words of an error, for people. Which of TRYAGAIN and ASK comes depends on the keys that have
 * moved, and both mean the same to the queue: that is put before them. */
const char *explain_error(const char *error, char out[VALUE_BYTES]);
bool is_text(const struct redisReply *r);
bool is_text_of(const struct redisReply *r, const char *text);

/* Fields of INFO: "", or 0, if it has none of that name. */
bool info_has(const struct doctor *d, const char *name);
int64_t info_int(const struct doctor *d, const char *name);
const char *info_text(const struct doctor *d, const char *name, char out[VALUE_BYTES]);
/* Fields of HELLO, which every user may send. */
const char *hello_text(struct doctor *d, const char *name, char out[VALUE_BYTES]);
/* False: this user may not run CONFIG GET; out is then "". */
bool config_text(struct doctor *d, const char *name, char out[VALUE_BYTES]);
#endif
