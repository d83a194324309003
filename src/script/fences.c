/* SPDX-License-Identifier: MIT */
/* Where there is one Redis, there is one fence. In a cluster each node has its own, with the
 * connection; the first is nowhere: what is to be written where no master is known yet waits there.
 */
#include "script/fences.h"
#include "base/mem.h"
#include "redis/masters.h"

static struct fence *fence_of(struct list *node)
{
    return CONTAINER(node, struct fence, of_fences);
}

static void fences_enter(struct fences *fs, struct fence *f, struct node *node)
{
    fence_init(f, fs->script, node, fs->changed, fs->arg);
    list_insert(&fs->all, &f->of_fences);
    node->n_holders++;
}

static struct fence *fences_find(const struct fences *fs, const struct node *node)
{
    LIST_EACH (i, &fs->all) {
        if (fence_of(i)->node == node) {
            return fence_of(i);
        }
    }
    return NULL;
}

/* NULL: there is no memory. */
static struct fence *fences_at(struct fences *fs, struct node *node)
{
    struct fence *f = fences_find(fs, node);

    if (!f) {
        f = mem_new(sizeof *f, 0);
        if (f) {
            fences_enter(fs, f, node);
        }
    }
    return f;
}

static struct fence *fences_for(struct fences *fs, struct span key)
{
    return fences_at(fs, node_of(fs->script, key));
}

void fences_init(struct fences *fs, struct script *script, void (*changed)(void *arg), void *arg)
{
    *fs = (struct fences){
        .context = script->context, .script = script, .changed = changed, .arg = arg};
    list_init(&fs->all);
    fences_enter(fs, &fs->first, topo_first(script->topo));
}

void fences_close(struct fences *fs)
{
    LIST_EACH (i, &fs->all) {
        fence_close(fence_of(i));
    }
}

static void fences_leave(struct fence *f)
{
    list_remove(&f->of_fences);
    f->node->n_holders--;
    mem_free(f);
}

void fences_free(struct fences *fs)
{
    list_remove(&fs->first.of_fences);
    LIST_EACH (i, &fs->all) {
        fences_leave(fence_of(i));
    }
}

void fences_up(struct fences *fs, struct node *node)
{
    if (fs->context->options.replicas > 0 && !fences_at(fs, node)) {
        masters_repeat_change(fs->script->topo->masters); /* one Redis has the first */
    }
}

/* Each node that is up has one, if the option says so. */
static bool fences_are_there(struct fences *fs)
{
    bool all = true;

    LIST_EACH (i, &fs->script->topo->nodes) {
        struct node *node = topo_node_at(i);
        if (fs->context->options.replicas > 0 && node_up(node)) {
            all = fences_at(fs, node) && all;
        }
    }
    return all;
}

static bool fence_has_key(const struct fence *f)
{
    return !*f->key || node_of(f->script, span_of(f->key)) == f->node;
}

bool fences_remapped(struct fences *fs)
{
    bool all = fences_are_there(fs);

    LIST_EACH (i, &fs->all) {
        struct fence *from = fence_of(i);

        if (!fence_has_key(from)) {
            fence_forget_key(from);
        }
        fence_withhold_unsent(from);
        LIST_EACH (k, &from->withheld) {
            struct fence_wait *w = fence_wait_of(k);
            struct fence *to = fences_for(fs, w->key);
            if (to && to != from) {
                fence_take_over(to, w);
            }
        }
        fence_release(from);
    }
    return all;
}

/* Where something else holds the node, requests may come that need the fence at once. */
void fences_let_go_of(struct fences *fs, struct node *node)
{
    struct fence *f = fences_find(fs, node);
    bool others_hold = node->n_holders > 1 || !list_empty(&node->commands.calls);

    if (f && f != &fs->first && !others_hold && fence_is_unused(f)) {
        fence_close(f);
        node_end_fence(node);
        fences_leave(f);
    }
}

bool fences_are_idle(const struct fences *fs)
{
    LIST_EACH (i, &fs->all) {
        if (!fence_is_idle(fence_of(i))) {
            return false;
        }
    }
    return true;
}

void fences_prepare(struct fences *fs, struct fence_wait *w)
{
    struct fence *f = fences_for(fs, w->key);

    fence_prepare(f ? f : &fs->first, w);
}

/* Without memory for a fence it is not confirmed. */
void fences_add(struct fences *fs, struct fence_wait *w)
{
    struct fence *f = fences_for(fs, w->key);

    fence_add(f ? f : &fs->first, w);
}

void fences_turn(struct fences *fs)
{
    LIST_EACH (i, &fs->all) {
        fence_turn(fence_of(i));
    }
}
