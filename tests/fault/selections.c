/* SPDX-License-Identifier: MIT */
/* F55 and F56: many jobs are changed by one call, beside a listener that has work of its own. */
#include "ask.h"
#include "fault.h"
#include "workload.h"
#include <hiredis/hiredis.h>

enum { HOUR = 3600000, ONE_IN = 10, PER_S = 500 };
#define PILE "pile"

/* ---- the pile ---- */
static void count_answers(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)job;
    cr_assert_eq(err, 0, "%s", lapse_strerror(err));
    --*(long *)arg;
}

/* Asks for each of so many ids, as fast as that is taken, and waits for the answers. */
static void of_each(struct flow *f, long n,
                    int (*ask)(struct lapse *l, const char *id, long i, long *n_open))
{
    long n_open = 0;

    for (long i = 0; i < n;) {
        char id[24];
        snprintf(id, sizeof id, "%ld", i);
        int err = ask(f->l, id, i, &n_open);
        if (err == LAPSE_EFULL) {
            flow_turn(f, test_now_ms() + FLOW_WAIT_MS);
            continue;
        }
        cr_assert_eq(err, 0);
        n_open++;
        i++;
    }
    flow_until(f, n_open == 0);
}

/* A job that waits; of ten the first has a tag. */
static int schedule_one(struct lapse *l, const char *id, long i, long *n_open)
{
    const char *tag = "order-42";
    struct lapse_spec s = flow_job_spec(PILE, id, HOUR);

    s.tags = &tag;
    s.n_tags = i % ONE_IN == 0;
    return lapse_schedule(l, &s, count_answers, n_open);
}

static int kill_one(struct lapse *l, const char *id, long i, long *n_open)
{
    (void)i;
    return lapse_kill(l, PILE, id, "no", count_answers, n_open);
}

static void finish(struct flow *f, const struct flow_counts *c)
{
    flow_until(f, c->calls == 1);
    cr_assert_eq(c->err, 0, "%s", lapse_strerror(c->err));
}

/* ---- how long its calls held Redis up ---- */
struct calls {
    long n;
    long long *us;
};

static int by_number(const void *a, const void *b)
{
    long long x = *(const long long *)a;
    long long y = *(const long long *)b;
    return (x > y) - (x < y);
}

static redisReply *redis_ask(struct flow *f, const char *command)
{
    redisReply *r = redisCommand(f->server->redis, command);

    cr_assert(r && r->type != REDIS_REPLY_ERROR, "%s", command);
    return r;
}

/* What the log of slow commands, in which are all, has of this script; sorted. */
static struct calls calls_of(struct flow *f, const char *script)
{
    char path[4096];
    size_t len;

    snprintf(path, sizeof path, "%s/lua/%s.lua", test_build(), script);
    char *text = test_read_file(path, &len);
    redisReply *sha = redisCommand(f->server->redis, "SCRIPT LOAD %b", text, len);
    redisReply *log = redis_ask(f, "SLOWLOG GET -1");
    struct calls c = {.us = calloc(log->elements + 1, sizeof *c.us)};

    for (size_t i = 0; i < log->elements; i++) {
        const redisReply *entry = log->element[i];
        const redisReply *argv = entry->element[3];
        if (argv->elements > 1 && strcmp(argv->element[1]->str, sha->str) == 0) {
            c.us[c.n++] = entry->element[2]->integer;
        }
    }
    qsort(c.us, (size_t)c.n, sizeof *c.us, by_number);

    freeReplyObject(log);
    freeReplyObject(sha);
    free(text);
    return c;
}

/* ---- F55 ---- */
Test(f55, a_tag_of_many_is_cancelled_beside_a_listener_at_work, .timeout = 600)
{
    long n = fault_n(20000, 1000000);
    struct flow *f = flow_start(FLOW_FULL);
    struct work_opts o = work_opts();
    const struct lapse_where tagged = {.size = sizeof tagged, .tag = "order-42"};
    const struct lapse_where waiting = {.size = sizeof waiting, .state = LAPSE_WAITING};
    struct flow_counts counts = {0};

    of_each(f, n, schedule_one);
    redis_do(f->server, "CONFIG SET slowlog-max-len 1000000 slowlog-log-slower-than 0");
    o.producers = o.listeners = 1;
    o.per_s = PER_S;
    o.jobs = fault_n(1000, 5000);
    struct work *w = work_start(f->server, &o);
    redis_do(f->server, "SLOWLOG RESET");
    cr_assert_eq(lapse_cancel_all(f->l, PILE, &tagged, 0, flow_counted, &counts), 0);
    finish(f, &counts);
    redis_do(f->server, "CONFIG SET slowlog-log-slower-than -1");
    cr_assert_eq(counts.n, (uint64_t)n / ONE_IN);
    cr_assert_eq(flow_count(f, PILE, "due"), n - n / ONE_IN);
    while (work_starts(w) < o.jobs) {
        work_wait(w, 20);
    }

    struct calls c = calls_of(f, "cancel_all");
    cr_assert_eq(c.n, n / ONE_IN / 100 - 1, "%ld calls", c.n); /* the first brought the script */

    /* the history knows nothing of the pile */
    counts = (struct flow_counts){0};
    cr_assert_eq(lapse_cancel_all(f->l, PILE, &waiting, 0, flow_counted, &counts), 0);
    finish(f, &counts);
    struct verdict v = work_end(w, 60000);

    fault_row("F55", "100,000 of 1,000,000 jobs are cancelled by their tag, beside a listener",
              "each call <= 1.5 ms of Redis; the other listener's p99 <= 5 ms",
              "%ld of %ld jobs in %ld calls: p50 %.2f, p99 %.2f, max %.2f ms; p99 of the other "
              "%.1f ms",
              n / ONE_IN, n, c.n, (double)c.us[c.n / 2] / 1000, (double)c.us[c.n * 99 / 100] / 1000,
              (double)c.us[c.n - 1] / 1000, v.late_p99_ms);
    free(c.us);
    flow_end(f, PILE, WORK_QUEUE);
}

/* ---- F56 ---- */
Test(f56, dead_jobs_are_requeued_evenly_over_a_time, .timeout = 600)
{
    enum { N = 10000, SECONDS = 10 };
    struct flow *f = flow_start(FLOW_FULL);
    const struct lapse_where dead = {.size = sizeof dead, .state = LAPSE_DEAD};
    struct flow_counts counts = {0};
    long least = N;
    long most = 0;

    of_each(f, N, schedule_one);
    of_each(f, N, kill_one);

    struct lapse_due due = lapse_at(redis_now_ms(f->server) + HOUR);
    cr_assert_eq(
        lapse_reschedule_all(f->l, PILE, &dead, due, SECONDS * 1000, 0, flow_counted, &counts), 0);
    finish(f, &counts);
    cr_assert_eq(counts.n, N);

    for (int s = 0; s < SECONDS; s++) {
        long long from_ms = due.at_ms + s * 1000;
        long in_it = (long)redis_int(f->server, "ZCOUNT lapse:{" PILE "}:due %lld (%lld", from_ms,
                                     from_ms + 1000);
        least = in_it < least ? in_it : least;
        most = in_it > most ? in_it : most;
    }
    cr_assert(least >= 850 && most <= 1150, "%ld to %ld in a second", least, most);
    fault_row("F56", "10,000 dead jobs are requeued over 10 s",
              "from 850 to 1,150 of them are due in each second", "%ld to %ld in each", least,
              most);
    flow_end(f, PILE);
}
