/* SPDX-License-Identifier: MIT */
/* What the machine allows: the three commands that lapse's schedule script stands for, pipelined
 * from one connection, and the round trip of a PING. ping  at=PATH n=N              one after the
 * other watch at=PATH from=MS until=MS one each millisecond, till then or SIGTERM: another client
 * of a busy Redis */
#include "bench.h"
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { ADDS = 3, HEADER_LEN = 8 };

static void put(const char *id, const char *body, int64_t due_ms)
{
    char record[HEADER_LEN + BODY_LEN];

    memset(record, 1, HEADER_LEN);
    memcpy(record + HEADER_LEN, body, BODY_LEN);
    pipe_add("ZADD due %lld %s", (long long)due_ms, id);
    pipe_add("HSET jobs %s %b", id, record, sizeof record);
    pipe_add("SET t:%s 1 PXAT %lld", id, (long long)due_ms - 1);
}

static void until(long in_flight)
{
    pipe_until(in_flight * ADDS);
}

static volatile sig_atomic_t ended;

static void on_term(int unused)
{
    (void)unused;
    ended = 1;
}

static int64_t ping(void)
{
    int64_t before = now_us();
    freeReplyObject(pipe_ask("PING"));
    return now_us() - before;
}

static int other(const char *verb)
{
    bool watch = strcmp(verb, "watch") == 0;

    if (!watch && strcmp(verb, "ping") != 0) {
        return -1;
    }

    int64_t from_us = arg_n("from", 0) * 1000;
    int64_t last_us = arg_n("until", 0) * 1000;
    int64_t max = watch ? (last_us - from_us) / 1000 : arg_n("n", INT64_MIN);
    int64_t n = 0;
    int64_t *us = calloc((size_t)max + 1, sizeof *us);
    signal(SIGTERM, on_term);
    if (watch) {
        until_us(from_us);
    }

    for (; us && n < max && !ended && (!watch || now_us() < last_us); n++) {
        us[n] = ping();
        if (watch) {
            until_us(now_us() + 1000);
        }
    }

    tell_times(us, (size_t)n);
    free(us);

    return 0;
}

int main(int argc, char **argv)
{
    static const struct peer native = {
        .window = 400, .open = pipe_open, .put = put, .until = until, .other = other};
    return bench_main(argc, argv, &native);
}
