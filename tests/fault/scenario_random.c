/* SPDX-License-Identifier: MIT */
/* A scenario that does at random what the others do, for as long as the test asks for. */
#include "fault.h"
#include "test.h"
#include "scenario.h"
#include "ask.h"
#include <stdio.h>

enum { IDS = 150 };
static unsigned long long state;

static unsigned dice(unsigned sides)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % sides;
}

static void settle_somehow(struct play *p, struct lapse_job *job)
{
    static job_fn *const how[] = {play_done,   play_done,    play_done,
                                  play_failed, play_backoff, play_done_untold};

    if (p->n_held < 20 && dice(4) == 0) {
        play_keep(p, job);
    } else {
        how[dice(sizeof how / sizeof *how)](p, job);
    }
}

static void ask_something(struct play *p, const char *queue)
{
    char id[16];
    char body[2000] = "";

    snprintf(id, sizeof id, "%s%u", queue, dice(IDS));

    struct lapse_spec s = flow_job_spec(queue, id, dice(40));
    p->want = ANY;

    switch (dice(10)) {
    case 0: play_cancel(p, queue, id); break;
    case 1: play_reschedule(p, queue, id, dice(40)); break;
    case 2: play_get(p, queue, id); break;
    case 3: play_list(p, queue, dice(2) ? LAPSE_WAITING : LAPSE_DEAD, NULL, 1 + dice(100)); break;
    case 4: play_depth(p, queue); break;
    default:
        s.body = body;
        s.body_len = dice(sizeof body);
        s.backoff_ms = 1 + dice(20);
        s.on_conflict = dice(3);
        play_spec(p, &s);
    }

    p->want = 0;
}

/* A queue each: what two handles ask of one job comes in no order, and the ledger could not follow
 * it. */
struct one {
    const char *queue;
    struct lapse *l;
    bool listens;
};

static void step(struct play *p, struct one *one)
{
    p->l = one->l;
    for (unsigned n = dice(6); n > 0 && p->asked - p->answered < 40; n--) {
        ask_something(p, one->queue);
    }

    if (dice(300) == 0) {
        play_handle(p, one->queue, 1 + dice(30), one->listens ? NULL : settle_somehow);
        one->listens = !one->listens;
    }

    if (dice(1000) == 0) {
        play_wait(p);
        play_settle_held(p);
        play_close(p, one->l, 1000);
        play_all_closed(p);
        *one = (struct one){one->queue, play_open(p), false};
    }
}

static void random_life(struct play *p)
{
    struct one both[] = {{"q", play_open(p), false}, {"r", play_open(p), false}};

    state = p->seed;
    for (int64_t end_ms = test_now_ms() + fault_n(5000, 10000); test_now_ms() < end_ms;) {
        step(p, &both[dice(2)]);
        while (p->n_held && dice(3)) {
            play_done(p, p->held[--p->n_held]);
        }
        play_turn(p, end_ms);
    }

    play_wait(p);
}

const struct scenario scenario_random = SCENARIO(random_life);
