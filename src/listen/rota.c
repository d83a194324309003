/* SPDX-License-Identifier: MIT */
#include "listen/rota.h"
#include "script/request.h"

void rota_init(struct rota *r)
{
    *r = (struct rota){.now = 0};
    for (int i = 0; i < ROTA_TURNS; i++) {
        list_init(&r->turns[i]);
    }
}

void rota_add(struct rota *r, struct list *node)
{
    if (r->n == SCRIPT_BATCH) {
        r->next = (r->next + 1) % ROTA_TURNS;
        r->n = 0;
    }
    list_insert(&r->turns[r->next], node);
    r->n++;
}

struct list *rota_turn(struct rota *r)
{
    r->now = (r->now + 1) % ROTA_TURNS;
    return &r->turns[r->now];
}
