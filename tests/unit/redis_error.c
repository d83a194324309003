/* SPDX-License-Identifier: MIT */
#include "redis/redis_error.h"
#include <criterion/criterion.h>
#include <string.h>

/* The texts are those of Redis 7.0 to 8 and Valkey 8.1. */
Test(redis_error, is_classified_by_its_first_words)
{
    static const struct {
        const char *text;
        enum redis_error kind;
    } rows[] = {
        {"NOAUTH Authentication required.", REDIS_ERROR_NO_LOGIN},
        {"WRONGPASS invalid username-password pair or user is disabled.", REDIS_ERROR_BAD_LOGIN},
        {"ERR AUTH <password> called without any password configured for the default user.",
         REDIS_ERROR_BAD_LOGIN},
        {"ERR invalid password", REDIS_ERROR_BAD_LOGIN},
        {"ERR Client sent AUTH, but no password is set", REDIS_ERROR_BAD_LOGIN},
        {"NOPERM this user has no permissions to run the 'ping' command", REDIS_ERROR_DENIED},
        {"NOPERM User u has no permissions to access one of the keys", REDIS_ERROR_DENIED},
        {"ERR The user executing the script can't run this command or subcommand script: f",
         REDIS_ERROR_DENIED},
        {"ERR ACL failure in script: User u has no permissions to run the 'set' command",
         REDIS_ERROR_DENIED},
        {"LOADING Redis is loading the dataset in memory", REDIS_ERROR_LOADING},
        {"BUSY Redis is busy running a script.", REDIS_ERROR_BUSY},
        {"OOM command not allowed when used memory > 'maxmemory'.", REDIS_ERROR_NO_MEMORY},
        {"READONLY You can't write against a read only replica.", REDIS_ERROR_READ_ONLY},
        {"MISCONF Redis is configured to save RDB snapshots", REDIS_ERROR_NO_DISK},
        {"NOREPLICAS Not enough good replicas to write.", REDIS_ERROR_NO_REPLICAS},
        {"NOSCRIPT No matching script.", REDIS_ERROR_NO_SCRIPT},
        {"ERR unknown command 'EVAL_RO', with args", REDIS_ERROR_NO_COMMAND},
        {"WRONGTYPE Operation against a key", REDIS_ERROR_WRONG_TYPE},
        {"ERR something else", REDIS_ERROR_OTHER},
        {"MOVED 3999 127.0.0.1:6381", REDIS_ERROR_MOVED},
        {"ASK 3999 127.0.0.1:6381", REDIS_ERROR_MOVING},
        {"TRYAGAIN Multiple keys request during rehashing of slot", REDIS_ERROR_MOVING},
        {"CLUSTERDOWN Hash slot not served", REDIS_ERROR_CLUSTER_DOWN},
        {"MASTERDOWN Link with MASTER is down", REDIS_ERROR_MASTER_DOWN},
        {"MOVED", REDIS_ERROR_OTHER},
        {"ASKING", REDIS_ERROR_OTHER},
        {"noauth", REDIS_ERROR_OTHER},
        {" NOAUTH", REDIS_ERROR_OTHER},
        {"NOAUT", REDIS_ERROR_OTHER},
        {"NO", REDIS_ERROR_OTHER},
        {"Server closed the connection", REDIS_ERROR_OTHER},
        {"", REDIS_ERROR_OTHER},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect_eq(redis_error_of(span_of(rows[i].text)), rows[i].kind, "%s", rows[i].text);
    }
}

Test(redis_error, of_every_kind_has_an_advice)
{
    for (int kind = REDIS_ERROR_OTHER; kind <= REDIS_ERROR_MASTER_DOWN; kind++) {
        cr_expect(strlen(redis_error_advice((enum redis_error)kind)) > 0);
    }
}
