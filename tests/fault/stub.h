/* SPDX-License-Identifier: MIT */
/* A man in the middle who knows RESP: he passes on one command after the other and its answer, but
 * answers those of one step himself, as he was told; Redis does not hear of these. */
#ifndef STUB_H
#define STUB_H
#include "support.h"

enum { STUB_STEPS = 22 };
extern const char *const stub_steps[STUB_STEPS]; /* of a connection's beginning, and the scripts */
bool stub_is_script(int step);
struct stub {
    pid_t pid;
    struct stub_ctl *ctl;
    char path[100]; /* of its socket */
};
struct stub *stub_start(struct server *s);
void stub_answer(struct stub *stub, int step, const char *answer); /* NULL: passes all on */
long stub_hits(struct stub *stub);                                 /* answered so since */
void stub_stop(struct stub *stub);
#endif
