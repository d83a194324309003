/* SPDX-License-Identifier: MIT */
#include "redis/redis_error.h"

enum redis_error redis_error_of(struct span error)
{
    static const struct {
        const char *begins;
        enum redis_error kind;
    } rows[] = {
        {"NOAUTH", REDIS_ERROR_NO_LOGIN},
        {"WRONGPASS", REDIS_ERROR_BAD_LOGIN},
        {"ERR invalid password", REDIS_ERROR_BAD_LOGIN},
        {"ERR AUTH", REDIS_ERROR_BAD_LOGIN},
        {"ERR Client sent AUTH", REDIS_ERROR_BAD_LOGIN},
        {"NOPERM", REDIS_ERROR_DENIED},
        {"ERR The user executing the script", REDIS_ERROR_DENIED}, /* 7.0 */
        {"ERR ACL failure in script", REDIS_ERROR_DENIED},         /* 7.2 and later */
        {"LOADING", REDIS_ERROR_LOADING},
        {"BUSY", REDIS_ERROR_BUSY},
        {"OOM", REDIS_ERROR_NO_MEMORY},
        {"READONLY", REDIS_ERROR_READ_ONLY},
        {"MISCONF", REDIS_ERROR_NO_DISK},
        {"NOREPLICAS", REDIS_ERROR_NO_REPLICAS},
        {"NOSCRIPT", REDIS_ERROR_NO_SCRIPT},
        {"ERR unknown command", REDIS_ERROR_NO_COMMAND},
        {"WRONGTYPE", REDIS_ERROR_WRONG_TYPE},
        {"MOVED ", REDIS_ERROR_MOVED},
        {"ASK ", REDIS_ERROR_MOVING},
        {"TRYAGAIN", REDIS_ERROR_MOVING},
        {"CLUSTERDOWN", REDIS_ERROR_CLUSTER_DOWN},
        {"MASTERDOWN", REDIS_ERROR_MASTER_DOWN},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (span_starts(error, rows[i].begins)) {
            return rows[i].kind;
        }
    }

    return REDIS_ERROR_OTHER;
}

const char *redis_error_advice(enum redis_error kind)
{
    switch (kind) {
    case REDIS_ERROR_NO_LOGIN: return "the URL needs a password";
    case REDIS_ERROR_BAD_LOGIN: return "the user or the password of the URL is wrong";
    case REDIS_ERROR_DENIED: return "denied to this user; `lapse doctor` lists the rights";
    case REDIS_ERROR_LOADING: return "it is loading its data; this passes";
    case REDIS_ERROR_BUSY: return "a script runs too long there; SCRIPT KILL ends it";
    case REDIS_ERROR_NO_MEMORY: return "it is out of memory: raise maxmemory; due jobs still run";
    case REDIS_ERROR_READ_ONLY: return "it is a replica: give the URL of the master";
    case REDIS_ERROR_NO_DISK: return "it cannot write to its disk";
    case REDIS_ERROR_NO_REPLICAS: return "too few replicas are connected (min-replicas-to-write)";
    case REDIS_ERROR_WRONG_TYPE: return "a key of ours was written by another program";
    case REDIS_ERROR_MOVED:
        return "this is a cluster, and another node of it has this queue: give redis+cluster:// "
               "as the URL";
    case REDIS_ERROR_MOVING: return "the slot of the queue is moving to another node; this passes";
    case REDIS_ERROR_CLUSTER_DOWN: return "its cluster is down, or no node has this queue";
    case REDIS_ERROR_MASTER_DOWN: return "it is a replica whose master is away";
    default: return "see its documentation";
    }
}
