/* SPDX-License-Identifier: MIT */
/* Bugs that comparable projects had, as tests of ours; tests/known_bugs.md names the others. */
#include "handler.h"
#include "listening.h"
#include "states.h"
#include "fault.h"
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdarg.h>

enum { BATCH = 100, WORDS = 5 * BATCH, WORD = 24, LONG_MS = 120000 };

static const char *word[WORDS];
static char text[WORDS][WORD];
static size_t n_words;

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(text[n_words], WORD, format, ap);
    va_end(ap);
    word[n_words] = text[n_words];
    n_words++;
}

static void run_script(struct server *s, const char *name)
{
    size_t len[WORDS];

    for (size_t i = 0; i < n_words; i++) {
        /* a record where all is default has a NUL */
        len[i] = word[i][0] == 1 ? 2 : strlen(word[i]);
    }

    redisReply *r = redis_scriptv(s, name, "lapse:{q}:due", n_words, word, len);
    cr_assert_neq(r->type, REDIS_REPLY_ERROR, "%s: %s", name, r->str);
    freeReplyObject(r);
    n_words = 0;
}

/* Jobs first, first + 1..., held by a process that is not there. */
static void claimed_by_a_lost_holder(struct server *s, long first, long n, int64_t lease_ms)
{
    for (long i = first; i < first + n; i += BATCH) {
        add("0");
        for (long k = i; k < i + BATCH; k++) {
            add("j%06ld", k);
            add("+0");
            add("0");
            add("\1");
        }
        run_script(s, "schedule");
        add("0");
        add("gone");
        add("%" PRId64, lease_ms);
        add("%d", BATCH);
        run_script(s, "claim");
    }

    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:run"), first + n);
}

static void sweep_often(struct lapse_options *o)
{
    o->sweep_ms = 200;
}

/* kombu#164: ten a sweep, and 200,000 stuck */
Test(known_bugs, two_hundred_thousand_ended_leases_all_come_back, .timeout = 300)
{
    long n = fault_n(20000, 200000);
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, sweep_often);
    struct flow_handler w = {.way = FLOW_DONE};

    claimed_by_a_lost_holder(f->server, 0, n, 1);

    int64_t start_ms = test_now_ms();
    flow_listen(f, "q", &w);
    while (w.settled < n && test_now_ms() < start_ms + LONG_MS) {
        flow_turn(f, test_now_ms() + 100);
    }

    cr_assert_eq(w.settled, n);
    for (long i = 0; i < n; i++) {
        cr_assert_eq(w.runs[i].job.try_no, 2);
    }

    fault_say("%ld ended leases: all ran again within %lld ms", n,
              (long long)(test_now_ms() - start_ms));
    flow_end(f, "q");
}

/* River PR#1318: a first page of long jobs hid the rest */
Test(known_bugs, many_long_runs_do_not_hide_one_whose_lease_ended)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, sweep_often);
    struct flow_handler w = {.way = FLOW_DONE};

    claimed_by_a_lost_holder(f->server, 0, 5 * BATCH, 600000);
    claimed_by_a_lost_holder(f->server, 5 * BATCH, BATCH, 1);
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == BATCH);
    cr_assert_eq(flow_count(f, "q", "run"), 5 * BATCH);
    flow_end(f, "q");
}

/* HDT3213/delayqueue: bodies had an expiry of their own, and an outage outlived them */
Test(known_bugs, nothing_but_triggers_canaries_and_the_last_token_expires)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};

    for (int state = 0; state < FLOW_STATES; state++) {
        char id[8];
        snprintf(id, sizeof id, "s%d", state);
        flow_put(f, "q", id, (enum flow_state)state, NULL);
    }

    flow_listen(f, "other", &w);
    flow_until_listeners(f, "other", 1);

    redisReply *keys = redis_cmd(f->server, "KEYS lapse:*");
    cr_assert_geq(keys->elements, 5);

    for (size_t i = 0; i < keys->elements; i++) {
        if (!strstr(keys->element[i]->str, "}:t:") && !strstr(keys->element[i]->str, "}:seq")) {
            cr_assert_eq(redis_int(f->server, "PTTL %s", keys->element[i]->str), -1, "%s",
                         keys->element[i]->str);
        }
    }

    freeReplyObject(keys);
    flow_end(f, "q", "other");
}

/* OptimalBits/bull#1822: one stalled job blocked the others */
Test(known_bugs, a_job_that_is_never_settled_holds_up_no_other)
{
    enum { N = 50 };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_hold(f, &w, "stalled");
    w.way = FLOW_DONE;
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, i, NULL), 0);
    }

    flow_until(f, w.settled == N);
    flow_settle(&w, FLOW_DONE);
    flow_each_once(&w, N + 1);
    flow_end(f, "q");
}

/* HDT3213/delayqueue: `zrank(..) ~= nil` is always true in Lua, so a late nack put a job back that
 * had been done */
Test(known_bugs, a_retry_of_a_job_that_was_done_puts_nothing_back)
{
    struct flow *f = flow_start(FLOW_FULL);
    uint64_t token[BATCH];

    claimed_by_a_lost_holder(f->server, 0, BATCH, 60000);

    for (long k = 0; k < BATCH; k++) {
        char *held = redis_str(f->server, "HGET lapse:{q}:attempts j%06ld", k);
        cr_assert_eq(sscanf(held, "1 %" SCNu64, &token[k]), 1, "%s", held);
        free(held);
    }

    for (int again = 0; again < 2; again++) {
        add("0");
        add("gone");
        for (long k = 0; k < BATCH; k++) {
            add("j%06ld", k);
            add("%" PRIu64, token[k]);
            if (again) {
                add("0");
                add("late");
            }
        }
        run_script(f->server, again ? "retry" : "done");
    }

    cr_assert_eq(flow_count(f, "q", "due") + flow_count(f, "q", "run") + flow_count(f, "q", "dead"),
                 0);
    flow_end(f, "q");
}
