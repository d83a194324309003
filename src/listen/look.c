/* SPDX-License-Identifier: MIT */
#include "listen/look.h"
#include "job/keys.h"

enum { ARGS = 3 };

static void on_answer(struct call *call, int err, const struct redisReply *reply)
{
    struct look *l = CONTAINER(call, struct look, call);
    int64_t n_keys = 0;
    bool told = !err && reply_int(reply, &n_keys);

    l->pending = false;
    l->end(l, !told || n_keys > 0);
}

void look_ask(struct look *l)
{
    const char *space = l->script->context->options.space;
    char due[KEYS_MAX];
    char run[KEYS_MAX];
    const char *argv[ARGS] = {"EXISTS", due, run};
    size_t lens[ARGS] = {strlen(argv[0])};

    lens[1] = keys_of(due, space, l->queue, KEYS_DUE);
    lens[2] = keys_of(run, space, l->queue, KEYS_RUN);

    struct conn *conn = &node_of(l->script, (struct span){due, lens[1]})->commands;
    if (!l->pending && conn_up(conn) && !conn_full(conn)) {
        l->pending = conn_send(conn, &l->call, ARGS, argv, lens);
    }
}

void look_init(struct look *l, struct script *script, const char *queue,
               void (*end)(struct look *l, bool any))
{
    *l = (struct look){.script = script, .queue = queue, .end = end};
    l->call.end = on_answer;
}
