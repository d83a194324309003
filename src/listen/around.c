/* SPDX-License-Identifier: MIT */
#include "listen/around.h"
#include "base/clock.h"

void passage_begin(struct passage *p, const struct arounds *all, int64_t now_us)
{
    *p = (struct passage){.all = all->n ? all : NULL, .began_us = now_us};
}

bool passage_enter(struct passage *p, const struct around **out)
{
    while (p->all && p->n < p->all->n) {
        *out = &p->all->of[p->n++];
        if ((*out)->before) {
            return true;
        }
    }
    return false;
}

void passage_turn(struct passage *p, enum lapse_how how)
{
    p->how = how;
    p->ran_us = clock_us() - p->began_us;
}

bool passage_comes_back(struct passage *p)
{
    while (p->n && !p->all->of[p->n - 1].after) {
        p->n--;
    }
    return p->n;
}

void passage_leave(struct passage *p, struct lapse *l, const struct lapse_job *job, int err)
{
    const struct around *a = &p->all->of[--p->n];

    a->after(l, job, p->how, err, p->ran_us, a->arg);
}
