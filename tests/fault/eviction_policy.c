/* SPDX-License-Identifier: MIT */
/* F19: where Redis may evict any key, doctor fails and no listener starts, unless it is
 * forced to. */
#include "fault.h"
#include "process.h"
#include "redis.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fills Redis with other keys until the queue is gone: what the refusal is for. */
static long long dropped(struct server *s)
{
    static const char fill[] =
        "for i = 1, 200 do redis.pcall('SET', 'other:' .. ARGV[1] .. ':' .. i, string.rep('x', "
        "2000)) end return redis.call('HLEN', 'lapse:{q}:jobs')";

    redis_do(s, "EVAL %s 0",
             "for i = 1, 1000 do redis.call('HSET', 'lapse:{q}:jobs', i, '\\1\\0') "
             "redis.call('ZADD', 'lapse:{q}:due', 9e12, i) end");
    redis_do(s, "CONFIG SET maxmemory 4mb");
    for (int i = 0; i < 400 && redis_int(s, "EVAL %s 0 %d", fill, i) == 1000; i++) {}
    redis_do(s, "CONFIG SET maxmemory 0");
    return 1000 - redis_int(s, "HLEN lapse:{q}:jobs");
}

static void must_exit(struct proc *p, int status, const char *text)
{
    proc_wait(p, 10000);
    cr_assert(p->status == status && (strstr(p->out, text) || strstr(p->err, text)),
              "%d, not %d: %s%s", p->status, status, p->out, p->err);
    proc_free(p);
}

Test(f19, where_any_key_may_go_doctor_fails_and_no_listener_starts_unless_forced)
{
    static const char *const policies[] = {"allkeys-lru", "allkeys-lfu", "allkeys-random"};
    struct server *s = server_start();
    long long lost = 0;

    setenv("LAPSE_URL", s->url, 1);

    for (int i = 0; i < 3; i++) {
        redis_do(s, "FLUSHALL");
        redis_do(s, "CONFIG SET maxmemory-policy %s", policies[i]);
        must_exit(proc_run(NULL, "lapse", "schedule", "q", "--id", "i", "--in", "0s", NULL), 0,
                  "waiting");
        must_exit(proc_run(NULL, "lapse", "doctor", "q", NULL), 1, "FAIL  eviction");
        must_exit(proc_run(NULL, "lapse", "listen", "q", NULL), 78, "takes no jobs");
        cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:due"), 1);
        must_exit(proc_run(NULL, "lapse", "listen", "q", "--count", "1", "--force", NULL), 0,
                  "\"id\":\"i\"");
        long long n = dropped(s);
        fault_say("F19 %s: %lld of 1000 records dropped by a full Redis", policies[i], n);
        lost += n;
    }

    cr_assert_gt(lost, 0, "the fault was none");
    server_stop(s);
    fault_row("F19", "eviction by allkeys-lru, -lfu, -random",
              "doctor and listener refuse unless forced",
              "doctor exits with 1, listen with 78, with --force it runs; a full Redis dropped "
              "%lld of 3,000 records",
              lost);
}
