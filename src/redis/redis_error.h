/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_REDIS_ERROR_H
#define LAPSE_REDIS_ERROR_H
#include "base/span.h"

/* What an error of Redis means to us. */
enum redis_error {
    REDIS_ERROR_OTHER,
    REDIS_ERROR_NO_LOGIN,  /* it wants a password, and we gave none */
    REDIS_ERROR_BAD_LOGIN, /* user or password are wrong */
    REDIS_ERROR_DENIED,    /* the user may not run a command, or use a key or a channel */
    REDIS_ERROR_LOADING,
    REDIS_ERROR_BUSY,
    REDIS_ERROR_NO_MEMORY,
    REDIS_ERROR_READ_ONLY,
    REDIS_ERROR_NO_DISK,
    REDIS_ERROR_NO_REPLICAS,
    REDIS_ERROR_NO_SCRIPT,
    REDIS_ERROR_NO_COMMAND, /* it does not know that command */
    REDIS_ERROR_WRONG_TYPE,
    REDIS_ERROR_MOVED,  /* another node of its cluster has the key */
    REDIS_ERROR_MOVING, /* a part of the slot of the key has moved */
    REDIS_ERROR_CLUSTER_DOWN,
    REDIS_ERROR_MASTER_DOWN
};

/* Classifies the text of an error reply. */
enum redis_error redis_error_of(struct span error);

/* What the operator is to make of it, in half a sentence. */
const char *redis_error_advice(enum redis_error kind);

#endif
