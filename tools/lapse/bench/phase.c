/* SPDX-License-Identifier: MIT */
#include "bench/phase.h"

static void phase_add_listener(struct phase *p, const struct listener_figures *figures)
{
    histogram_merge(&p->claimed, &figures->claimed);
    histogram_merge(&p->started, &figures->started);
    histogram_merge(&p->heard, &figures->heard);
    p->early += figures->early;
    p->twice += figures->twice;
    p->foreign += figures->foreign;

    if (figures->last_settled_us > p->last_settled_us) {
        p->last_settled_us = figures->last_settled_us;
    }
}

void phase_collect(struct phase *p)
{
    const struct listeners *l = &p->listeners;
    uint64_t ran = listeners_ran(l);

    for (unsigned i = 0; i < l->n; i++) {
        phase_add_listener(p, listeners_figures(l, i));
    }

    p->settled = listeners_settled(l);
    p->lost = p->load.stored > ran ? p->load.stored - ran : 0;
}

bool phase_is_broken(const struct phase *p)
{
    return p->lost > 0 || p->twice > 0 || p->early > 0 || p->foreign > 0;
}

int64_t phase_settled_per_s(const struct phase *p)
{
    int64_t took_us = p->settling_us;
    if (took_us < p->load.at_least_us) {
        took_us = p->load.at_least_us;
    }

    return took_us > 0 ? (int64_t)p->settled * 1000000 / took_us : 0;
}

int64_t phase_bytes_per_job(const struct phase *p)
{
    return thousandths(p->after.info.memory - p->before.info.memory, p->load.stored);
}

struct costs phase_costs(const struct phase *p, uint64_t jobs)
{
    return costs_of(&p->before, &p->after, jobs);
}
