/* SPDX-License-Identifier: MIT */
/* Redis's events do not come, come several times, or are forged. */
#include "workload.h"
#include "redis.h"
#include "test.h"
#include <criterion/criterion.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- F2 ---- */
static struct verdict in_silence(void (*mute)(struct server *s), unsigned flags, int64_t sweep_ms)
{
    struct server *s = server_start();
    struct work_opts o = work_opts();

    mute(s);
    o.jobs = fault_n(4000, 20000);
    o.per_s = fault_n(2000, 2000);
    o.lapse.flags = flags;
    o.lapse.sweep_ms = sweep_ms;
    struct verdict v = work_end(work_start(s, &o), 120000);
    cr_assert_eq(v.starts, o.jobs);
    server_stop(s);
    return v;
}

static void no_notifications(struct server *s)
{
    redis_do(s, "CONFIG SET notify-keyspace-events %s", "");
}

static void no_expiry(struct server *s)
{
    redis_do(s, "DEBUG SET-ACTIVE-EXPIRE 0");
}

Test(f2, with_no_event_at_all_each_job_runs_once, .timeout = 300)
{
    struct verdict a = in_silence(no_notifications, 0, 5000);
    struct verdict b = in_silence(no_expiry, 0, 5000);
    struct verdict c = in_silence(no_expiry, LAPSE_NO_ALARM, 1000);

    fault_row("F2", "no events: notifications off; Redis's own expiry off",
              "20,000 jobs: 0 lost; at most 100 ms late by the alarm, 250 ms + sweep_ms without it",
              "3 x %ld jobs: 0 lost, 0 twice; max %.1f ms late with notifications off, %.1f ms "
              "with expiry off, %.0f ms by a sweep of 1000 ms alone",
              a.jobs, a.late_max_ms, b.late_max_ms, c.late_max_ms);
}

/* ---- F3 ---- */
enum { COPIES = 5, FORGED_PER_MS = 10, FORGED_AT_ONCE = 1000 };

static void drain(redisContext *to, int n)
{
    redisReply *r;
    while (n-- > 0 && redisGetReply(to, (void **)&r) == REDIS_OK) {
        freeReplyObject(r);
    }
}

/* Says of a job, or of one that never was, that its trigger expired; of garbage now and then. */
static void forge(redisContext *to)
{
    static const char *const id[] = {"t:nobody", "t:a{b", "due\r\n\033[2J"};
    char key[80];
    long kind = random() % 8;

    if (kind < 3) {
        snprintf(key, sizeof key, "lapse:{q}:%s", id[kind]);
    } else {
        snprintf(key, sizeof key, "lapse:{q}:t:p%ld.0-%ld", random() % 2, random() % 5000);
    }

    redisAppendCommand(to, "PUBLISH __keyevent@0__:expired %s", key);
}

/* Each true event is heard on its other channel, and repeated several times on the one that lapse
 * listens to. */
static int repeat(redisContext *to, redisContext *from)
{
    redisReply *r = NULL;
    int n = 0;

    redisBufferRead(from);

    while (redisReaderGetReply(from->reader, (void **)&r) == REDIS_OK && r) {
        if (r->elements == 4 && r->element[2]->type == REDIS_REPLY_STRING &&
            strcmp(r->element[3]->str, "expired") == 0) {
            for (int i = 0; i < COPIES - 1; i++, n++) {
                redisAppendCommand(to, "PUBLISH __keyevent@0__:expired %s",
                                   strchr(r->element[2]->str, ':') + 1);
            }
        }
        freeReplyObject(r);
        r = NULL;
    }

    return n;
}

struct forged {
    long copies, lies;
};

static _Noreturn void lie(const char *socket, struct forged *told)
{
    redisContext *to = redisConnectUnix(socket);
    redisContext *from = redisConnectUnix(socket);
    redisReply *r = redisCommand(from, "PSUBSCRIBE __keyspace@0__:lapse:{q}:t:*");
    int64_t start = test_now_ms();

    freeReplyObject(r);

    for (;;) {
        struct pollfd fd = {from->fd, POLLIN, 0};
        int n = 0;
        if (poll(&fd, 1, 1) > 0) {
            told->copies += n = repeat(to, from);
        }
        /* a machine that does not keep up has true events to repeat all the same */
        long owed = (test_now_ms() - start) * FORGED_PER_MS - told->lies;
        for (long i = 0; i < owed && i < FORGED_AT_ONCE; i++, told->lies++, n++) {
            forge(to);
        }
        drain(to, n);
    }
}

static struct verdict amid_lies(struct forged *told, int64_t *took_ms)
{
    static const char *const args[] = {"--notify-keyspace-events", "KEx", NULL};
    struct server *s = server_start_opts(args);
    struct work_opts o = work_opts();
    pid_t liar = 0;
    pid_t parent = getpid();

    o.jobs = fault_n(8000, 100000);
    o.listeners = 4;

    if (told && (liar = fork()) == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) {
            lie(s->socket, told);
        }
        _exit(1);
    }

    int64_t start = test_now_ms();
    while (liar && !((volatile struct forged *)told)->lies) {
        cr_assert_lt(test_now_ms(), start + 10000, "there are no lies");
        poll(NULL, 0, 1);
    }

    start = test_now_ms();
    struct work *w = work_start(s, &o);
    if (told) {
        work_note(w, "every event five times, and 10,000 forged ones a second");
    }

    while (work_starts(w) < o.jobs && test_now_ms() < start + 100000) {
        work_wait(w, 1);
    }

    *took_ms = test_now_ms() - start;

    struct verdict v = work_end(w, 60000);
    cr_assert_eq(v.starts, o.jobs);
    if (liar) {
        kill(liar, SIGKILL);
        waitpid(liar, NULL, 0);
    }

    server_stop(s);

    return v;
}

Test(f3, events_published_five_times_and_forged_ones_run_nothing_twice_or_early, .timeout = 300)
{
    int64_t calm_ms;
    int64_t took_ms;
    struct forged *told =
        mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    cr_assert(told != MAP_FAILED);
    amid_lies(NULL, &calm_ms);

    struct verdict v = amid_lies(told, &took_ms);
    cr_assert_gt(told->copies, 0);
    fault_row("F3", "every event five times, 10,000 forged events a second",
              "0 twice, 0 early; at most 20 % slower",
              "%ld jobs, %ld copies, %ld forged: 0 twice, 0 early; %lld ms, and %lld ms in calm; "
              "p99 late %.1f ms",
              v.jobs, told->copies, told->lies, (long long)took_ms, (long long)calm_ms,
              v.late_p99_ms);
    munmap(told, sizeof *told);
}
