/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_REPLY_H
#define LAPSE_REPLY_H
#include "base/span.h"

/* Reads what Redis answered. Nothing is trusted: a place that is not there, or of another type, is
 * NULL or false. */
struct redisReply; /* hiredis's, alive until the callback that got it returns */

size_t reply_len(const struct redisReply *r);                            /* of an array; else 0 */
const struct redisReply *reply_at(const struct redisReply *r, size_t i); /* NULL: no such element */
/* an integer, or text that is one */
bool reply_int(const struct redisReply *r, int64_t *out);
bool reply_text(const struct redisReply *r, struct span *out);  /* a string or a status */
bool reply_error(const struct redisReply *r, struct span *out); /* an error */

#endif
