/* SPDX-License-Identifier: MIT */
#include "listen/look.h"
#include "job/keys.h"

/* A key that is named twice counts twice: an odd number says that the one named once is there. */
enum { ARGS = 6, TWICE = 2 };

static void on_answer(struct call *call, int err, const struct redisReply *reply)
{
    struct look *l = CONTAINER(call, struct look, call);
    int64_t n_keys = 0;
    bool told = !err && reply_int(reply, &n_keys);

    l->pending = false;
    l->end(l, !told || n_keys >= TWICE, n_keys % TWICE != 0);
}

void look_ask(struct look *l)
{
    const char *space = l->script->context->options.space;
    char due[KEYS_MAX];
    char run[KEYS_MAX];
    char kept[KEYS_MAX];
    const char *argv[ARGS] = {"EXISTS", due, run, due, run, kept};
    size_t lens[ARGS] = {strlen(argv[0])};

    lens[1] = lens[3] = keys_of(due, space, l->queue, KEYS_DUE);
    lens[2] = lens[4] = keys_of(run, space, l->queue, KEYS_RUN);
    lens[5] = keys_of(kept, space, l->queue, KEYS_KEPT);

    struct conn *conn = &node_of(l->script, (struct span){due, lens[1]})->commands;
    if (!l->pending && conn_up(conn) && !conn_full(conn)) {
        l->pending = conn_send(conn, &l->call, ARGS, argv, lens);
    }
}

void look_init(struct look *l, struct script *script, const char *queue,
               void (*end)(struct look *l, bool any, bool kept))
{
    *l = (struct look){.script = script, .queue = queue, .end = end};
    l->call.end = on_answer;
}
