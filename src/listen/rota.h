/* SPDX-License-Identifier: MIT */
/* Whose turn it is: what is to be looked at once in each round is spread over its turns, so that
 * many of them are not one burst. As many as one script may name share a turn. */
#ifndef LAPSE_ROTA_H
#define LAPSE_ROTA_H
#include "base/list.h"

enum { ROTA_TURNS = 16 };

struct rota {
    struct list turns[ROTA_TURNS];
    unsigned now;  /* whose turn it was last */
    unsigned next; /* the turn that who comes next gets */
    unsigned n;    /* who came since that began */
};

void rota_init(struct rota *r);
/* To leave, list_remove(). */
void rota_add(struct rota *r, struct list *node);
/* Those of the next turn. */
struct list *rota_turn(struct rota *r);

#endif
