/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_LOGIN_H
#define LAPSE_LOGIN_H
#include "redis/address.h"
#include <hiredis/async.h>

/* Sends AUTH to a connection that has just been made; the answer goes to fn. false: it could not be
 * sent. */
bool login_send(struct redisAsyncContext *ac, const struct address *u, redisCallbackFn *fn);

#endif
