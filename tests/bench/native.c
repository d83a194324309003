/* SPDX-License-Identifier: MIT */
/* What the machine allows: the three commands that lapse's schedule script stands for, pipelined
 * over one connection, and the round trip of a PING. Its own verbs:
 *
 *     ping   at= n=           one after the other
 *     watch  at= from= until= one each millisecond, until UNTIL or SIGTERM, as another client of a
 *                             busy Redis sends them */
#include "bench.h"
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { COMMANDS_A_JOB = 3, HEADER_LEN = 8 };

static void native_put(const char *id, const char *body, int64_t due_ms)
{
    char record[HEADER_LEN + BODY_LEN];

    memset(record, 1, HEADER_LEN);
    memcpy(record + HEADER_LEN, body, BODY_LEN);
    pipe_add("ZADD due %lld %s", (long long)due_ms, id);
    pipe_add("HSET jobs %s %b", id, record, sizeof record);
    pipe_add("SET t:%s 1 PXAT %lld", id, (long long)due_ms - 1);
}

static void native_wait(long in_flight)
{
    pipe_wait(in_flight * COMMANDS_A_JOB);
}

static int64_t ping_us(void)
{
    int64_t before_us = now_us();
    freeReplyObject(pipe_ask("PING"));
    return now_us() - before_us;
}

static int ping_singly(void)
{
    int64_t n = argument_required("n");
    int64_t *us = alloc_touched(n, sizeof *us);

    for (int64_t i = 0; i < n; i++) {
        us[i] = ping_us();
    }

    figure_times(us, (size_t)n);
    free(us);

    return 0;
}

static volatile sig_atomic_t terminated;

static void on_term(int signum)
{
    (void)signum;
    terminated = 1;
}

static int ping_each_ms(void)
{
    int64_t from_us = argument_required("from") * 1000;
    int64_t until_us = argument_required("until") * 1000;
    int64_t most = (until_us - from_us) / 1000;
    int64_t *us = alloc_touched(most, sizeof *us);
    int64_t n = 0;

    signal(SIGTERM, on_term);
    sleep_until_us(from_us);

    while (n < most && !terminated && now_us() < until_us) {
        us[n++] = ping_us();
        sleep_until_us(now_us() + 1000);
    }

    figure_times(us, (size_t)n);
    free(us);

    return 0;
}

static int native_verb(const char *verb)
{
    if (strcmp(verb, "ping") == 0) {
        return ping_singly();
    }
    if (strcmp(verb, "watch") == 0) {
        return ping_each_ms();
    }
    return -1;
}

int main(int argc, char **argv)
{
    static const struct system native = {
        .window = 400,
        .open = pipe_open,
        .put = native_put,
        .wait = native_wait,
        .verb = native_verb,
    };
    return bench_main(argc, argv, &native);
}
