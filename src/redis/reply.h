/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_REPLY_H
#define LAPSE_REPLY_H
#include "base/span.h"

/* Reads what Redis answered. Nothing is trusted: an element that is not there, or is of another
 * type, is NULL or false. */

/* hiredis's; it lives until the callback that got it returns. */
struct redisReply;

/* The length of an array; of anything else 0. */
size_t reply_len(const struct redisReply *r);
/* NULL: there is no such element. */
const struct redisReply *reply_at(const struct redisReply *r, size_t i);

/* An integer, or a text that is one. */
bool reply_int(const struct redisReply *r, int64_t *out);
/* A string or a status. */
bool reply_text(const struct redisReply *r, struct span *out);
bool reply_nil(const struct redisReply *r);
bool reply_error(const struct redisReply *r, struct span *out);

#endif
