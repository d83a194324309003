/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_FENCES_H
#define LAPSE_FENCES_H
#include "script/fence.h"

/* A fence for each node on which something is written that is to have copies. */
struct fences {
    struct context *context;
    struct script *script;
    void (*changed)(void *arg);
    void *arg;
    struct list all;
    struct fence first;
};

/* Calls changed(arg) when jobs may be claimed again that could not be. */
void fences_init(struct fences *fs, struct script *script, void (*changed)(void *arg), void *arg);

/* Nothing is confirmed any more: what was written ends with EALONE. */
void fences_close(struct fences *fs);
void fences_free(struct fences *fs);

/* The connection for commands to this node is there: with the option replicas, nothing can be
 * written before its fence is there, too. */
void fences_up(struct fences *fs, struct node *node);
/* Some queues have another node than before. false: there is no memory for some fence. */
bool fences_remapped(struct fences *fs);
/* Nobody has used this node for a while: lets go of it, if nothing waits there. */
void fences_let_go_of(struct fences *fs, struct node *node);

/* As many copies as the option says, of whatever is written. */
static inline struct fence_copies fences_own_copies(const struct fences *fs)
{
    return (struct fence_copies){.replicas = fs->context->options.replicas};
}

/* Nobody waits for copies. */
bool fences_are_idle(const struct fences *fs);

/* As fence_prepare() and fence_add(), with the fence of the node that has the key of w. */
void fences_prepare(struct fences *fs, struct fence_wait *w);
void fences_add(struct fences *fs, struct fence_wait *w);

/* Once in each turn of the loop. */
void fences_turn(struct fences *fs);

#endif
