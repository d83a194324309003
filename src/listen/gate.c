/* SPDX-License-Identifier: MIT */
/* The settings of a queue may keep its jobs back: then each claim is answered until when. Until
 * then nothing is asked. A notice says that the settings have changed, or that a job has ended
 * where no more may run; since it may be lost, a sweep asks all the same. Notices and answers come
 * on different sockets, in no order: so an answer counts only if its claim was sent after the last
 * notice. */
#include "listen/gate.h"
#include "base/clock.h"
#include "base/span.h"

enum { BRIEFLY_MS = 1000 };
#define UNTIL_TOLD_MS EXACT_MAX

void gate_init(struct gate *g, struct ev_loop *loop, void (*over)(void *arg), void *arg)
{
    *g = (struct gate){.closed = false};
    timer_init(&g->timer, loop, over, arg);
}

void gate_open(struct gate *g)
{
    timer_stop(&g->timer);
    g->closed = false;
}

bool gate_configured(struct gate *g)
{
    bool was_closed = g->closed;

    g->configured_us = clock_us();
    gate_open(g);

    return was_closed;
}

static void gate_close(struct gate *g, const struct gate_answer *answer)
{
    int64_t left_us = answer->until_us - clock_us();

    g->closed = true;
    if (answer->until_ms < UNTIL_TOLD_MS) {
        timer_set(&g->timer, left_us > 0 ? left_us / 1000 + 1 : 1);
    } else {
        timer_stop(&g->timer);
    }
}

enum gate_news gate_answered(struct gate *g, const struct gate_answer *answer)
{
    if (answer->sent_us <= g->configured_us) {
        return GATE_OUTDATED;
    }
    if (answer->until_ms <= answer->now_ms) {
        return GATE_OPEN;
    }

    gate_close(g, answer);
    return answer->until_ms <= answer->now_ms + BRIEFLY_MS ? GATE_CLOSED_BRIEFLY : GATE_CLOSED;
}

void gate_stop(struct gate *g)
{
    timer_stop(&g->timer);
}
