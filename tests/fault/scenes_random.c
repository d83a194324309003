/* SPDX-License-Identifier: MIT */
/* A scene that does at random all that the others do, as long as it is told to. */
#include "fault.h"
#include "test.h"
#include "torture.h"
#include <stdio.h>

enum { IDS = 150 };
static unsigned long long state;

static unsigned dice(unsigned sides)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % sides;
}

static void settle_somehow(struct torture *t, struct lapse_job *job)
{
    static job_fn *const how[] = {t_done, t_done, t_done, t_failed, t_backoff, t_done_untold};

    if (t->n_held < 20 && dice(4) == 0) {
        t_keep(t, job);
    } else {
        how[dice(sizeof how / sizeof *how)](t, job);
    }
}

static void ask_something(struct torture *t, const char *queue)
{
    char id[16];
    char body[2000] = "";

    snprintf(id, sizeof id, "%s%u", queue, dice(IDS));

    struct lapse_spec s = t_job(queue, id, dice(40));
    t->want = ANY;

    switch (dice(10)) {
    case 0: t_cancel(t, queue, id); break;
    case 1: t_reschedule(t, queue, id, dice(40)); break;
    case 2: t_get(t, queue, id); break;
    case 3: t_list(t, queue, dice(2) ? LAPSE_WAITING : LAPSE_DEAD, NULL, 1 + dice(100)); break;
    case 4: t_depth(t, queue); break;
    default:
        s.body = body;
        s.body_len = dice(sizeof body);
        s.backoff_ms = 1 + dice(20);
        s.on_conflict = dice(3);
        t_spec(t, &s);
    }

    t->want = 0;
}

/* A queue each: what two handles ask of one job comes in no order, and the ledger could not tell.
 */
struct one {
    const char *queue;
    struct lapse *l;
    bool listens;
};

static void step(struct torture *t, struct one *one)
{
    t->l = one->l;
    for (unsigned n = dice(6); n > 0 && t->asked - t->answered < 40; n--) {
        ask_something(t, one->queue);
    }

    if (dice(300) == 0) {
        t_handle(t, one->queue, 1 + dice(30), one->listens ? NULL : settle_somehow);
        one->listens = !one->listens;
    }

    if (dice(1000) == 0) {
        t_wait(t);
        t_settle_held(t);
        t_close(t, one->l, 1000);
        t_all_closed(t);
        *one = (struct one){one->queue, t_open(t), false};
    }
}

static void random_life(struct torture *t)
{
    struct one both[] = {{"q", t_open(t), false}, {"r", t_open(t), false}};

    state = t->seed;
    for (int64_t end_ms = test_now_ms() + fault_n(5000, 10000); test_now_ms() < end_ms;) {
        step(t, &both[dice(2)]);
        while (t->n_held && dice(3)) {
            t_done(t, t->held[--t->n_held]);
        }
        t_turn(t, end_ms);
    }

    t_wait(t);
}
const struct scene scene_random = SCENE(random_life);
