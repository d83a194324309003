/* SPDX-License-Identifier: MIT */
/* Waits until replicas, or disks, have what was written.
 *
 * WAIT says how many replicas have all that its connection wrote, and holds up whatever is behind
 * it there. So schedules go over the connection for commands, where requests of one id keep their
 * order, and when they are answered a second connection writes the fence (src/lua/queue/fence.lua)
 * with WAIT behind it. The fence comes after them in what Redis sends to its replicas: who has the
 * fence has them too.
 *
 *   prepare --> withheld --probe--> released --answer, add--> written --turn--> round --> end
 *
 *  - A round is for all that was answered before its fence; what is answered meanwhile shares the
 *    next one. It asks for the least that is wanted in it, and then for what is wanted beyond that,
 *    while replicas_ms since the fence last.
 *  - A fence counts only on a connection that was there before the schedule was sent, to the same
 *    server. After a failover another one may reach a master that never had the job, with replicas
 *    that have all of it.
 *  - The probes are WAIT 0 and WAITAOF 1 0, which Redis answers at once. An old version, a missing
 *    right, a replica and appendonly no are errors there, before anything is stored. */
#include "script/fence.h"
#include "base/error.h"
#include "script/args.h"
#include "script/refusal.h"
#include <limits.h>

/* ---- WAIT and WAITAOF ---- */
static const char *const command_names[] = {
    [FENCE_WAIT] = "WAIT",
    [FENCE_WAITAOF] = "WAITAOF",
};

static enum fence_command command_for(const struct fence_copies *wanted)
{
    return wanted->fsync ? FENCE_WAITAOF : FENCE_WAIT;
}

/* false: it was not taken. */
static bool wait_send(struct fence *f, struct call *call, enum fence_command command,
                      const char *replicas, const char *timeout_ms)
{
    const char *wait[] = {"WAIT", replicas, timeout_ms};
    const char *waitaof[] = {"WAITAOF", "1", replicas, timeout_ms};

    if (!node_fence_up(f->node)) {
        return false;
    }
    if (command == FENCE_WAITAOF) {
        return conn_send(&f->node->fence, call, 4, waitaof, NULL);
    }
    return conn_send(&f->node->fence, call, 3, wait, NULL);
}

static struct fence_wait *fence_wait_of(struct list *node)
{
    return CONTAINER(node, struct fence_wait, node);
}

/* ---- copies ---- */
static bool copies_suffice(const struct fence_copies *copies, const struct fence_copies *wanted)
{
    return copies->replicas >= wanted->replicas && (copies->fsync || !wanted->fsync);
}

static bool copies_are_fewer(const struct fence_copies *a, const struct fence_copies *b)
{
    if (a->fsync != b->fsync) {
        return b->fsync;
    }
    return a->replicas < b->replicas;
}

/* An integer, or for WAITAOF two: whether Redis's own disk has it, and how many replicas. */
static bool copies_read(struct fence_copies *out, enum fence_command command,
                        const struct redisReply *reply)
{
    bool aof = command == FENCE_WAITAOF;
    const struct redisReply *count = aof ? reply_at(reply, 1) : reply;
    int64_t own = 0;
    int64_t replicas;

    if (aof && !reply_int(reply_at(reply, 0), &own)) {
        return false;
    }
    if (!reply_int(count, &replicas) || replicas < 0 || replicas > UINT_MAX) {
        return false;
    }

    *out = (struct fence_copies){.replicas = (unsigned)replicas, .fsync = own > 0};
    return true;
}

/* ---- in vain ---- */
static unsigned waits_give_up(struct list *waits)
{
    unsigned n = 0;

    for (struct list *i; (i = list_pop(waits)); n++) {
        struct fence_wait *w = fence_wait_of(i);
        w->end(w, LAPSE_EALONE);
    }
    return n;
}

static void waits_lost(struct fence *f, struct list *waits)
{
    unsigned n = waits_give_up(waits);

    if (n > 0) {
        log_line(&f->context->log, LOG_REPLICAS, LOG_WARNING,
                 "scheduled, but no replica has confirmed it: the connection for WAIT is gone, or "
                 "was refused; jobs: %u",
                 n);
    }
}

static void log_too_few(struct fence *f, unsigned n_jobs)
{
    const struct fence_copies *copies = &f->copies;
    bool not_fsynced = f->wanted.fsync && !copies->fsync;
    const char *own = not_fsynced ? "Redis does not have it on disk, and " : "";
    const char *where = f->wanted.fsync ? " on disk" : "";

    log_line(&f->context->log, LOG_REPLICAS, LOG_WARNING,
             "scheduled, but %s%u of %u replicas have it%s after %lld ms (replicas_ms); jobs: %u",
             own, copies->replicas, f->wanted.replicas, where,
             (long long)f->context->options.replicas_ms, n_jobs);
}

/* ---- a round ---- */
static void round_sent(struct fence *f, bool taken)
{
    if (taken) {
        f->n_calls++;
    } else {
        f->broken = true;
    }
}

static void round_send_fence(struct fence *f)
{
    struct span key = fence_wait_of(f->round.next)->request->key;
    struct conn *conn = &f->node->fence;
    bool taken = node_fence_up(f->node) &&
                 script_send_alone(f->script, conn, &f->fence_call, SCRIPT_FENCE, key);

    f->fenced_us = clock_us();
    round_sent(f, taken);
}

static struct fence_copies round_least(struct fence *f)
{
    struct fence_copies least = fence_wait_of(f->round.next)->wanted;

    LIST_EACH (i, &f->round) {
        const struct fence_copies *wanted = &fence_wait_of(i)->wanted;
        if (copies_are_fewer(wanted, &least)) {
            least = *wanted;
        }
    }
    return least;
}

/* Without a timeout, 0, Redis would wait forever. */
static void round_send_wait(struct fence *f)
{
    int64_t took_ms = (clock_us() - f->fenced_us) / 1000;
    int64_t left_ms = f->context->options.replicas_ms - took_ms;
    char replicas[ARG_NUMBER_MAX];
    char timeout[ARG_NUMBER_MAX];

    f->wanted = round_least(f);
    arg_number(replicas, f->wanted.replicas);
    arg_number(timeout, left_ms > 0 ? left_ms : 1);
    round_sent(f, wait_send(f, &f->wait_call, command_for(&f->wanted), replicas, timeout));
}

/* Ends those that have what they want. If the wait was in vain, it was so for all that want at
 * least as much. */
static void round_answer(struct fence *f)
{
    bool in_vain = !copies_suffice(&f->copies, &f->wanted);
    unsigned n_alone = 0;

    LIST_EACH (i, &f->round) {
        struct fence_wait *w = fence_wait_of(i);

        if (w->wanted.fsync != f->wanted.fsync) {
            continue;
        }
        w->n_replicas = f->copies.replicas;

        if (copies_suffice(&f->copies, &w->wanted)) {
            list_remove(i);
            w->end(w, 0);
        } else if (in_vain) {
            list_remove(i);
            w->end(w, LAPSE_EALONE);
            n_alone++;
        }
    }

    if (n_alone > 0) {
        log_too_few(f, n_alone);
    }
}

/* What is left of the round, when nothing of it is on its way. */
static void round_go_on(struct fence *f)
{
    if (f->n_calls == 0 && !f->broken) {
        round_answer(f);
        if (!list_empty(&f->round)) {
            round_send_wait(f);
        }
    }
    if (f->n_calls == 0 && f->broken) {
        waits_lost(f, &f->round);
    }
}

/* Is this an answer to go by? */
static bool round_heard(struct fence *f, const char *what, int err, const struct redisReply *reply)
{
    struct span error;

    ASSERT(f->n_calls > 0);
    f->n_calls--;

    if (!err && reply_error(reply, &error)) {
        err = refusal_code(f->context, what, error);
    }
    return err == 0;
}

static void on_fence(struct call *call, int err, const struct redisReply *reply)
{
    struct fence *f = CONTAINER(call, struct fence, fence_call);

    if (!round_heard(f, script_facts[SCRIPT_FENCE].name, err, reply)) {
        f->broken = true;
    }
    round_go_on(f);
}

static void on_wait(struct call *call, int err, const struct redisReply *reply)
{
    struct fence *f = CONTAINER(call, struct fence, wait_call);
    enum fence_command command = command_for(&f->wanted);
    bool heard = round_heard(f, command_names[command], err, reply);

    if (!heard || !copies_read(&f->copies, command, reply)) {
        f->broken = true;
        f->probes[command].passed = false; /* what Redis could do, it may no longer */
    }
    round_go_on(f);
}

void fence_turn(struct fence *f)
{
    if (list_empty(&f->written) || !list_empty(&f->round) || f->n_calls > 0) {
        return;
    }

    list_move(&f->round, &f->written);
    f->broken = false;
    round_send_fence(f);
    if (!f->broken) {
        round_send_wait(f);
    }

    if (f->n_calls == 0) {
        waits_lost(f, &f->round);
        return;
    }
    conn_flush(&f->node->fence);
}

/* ---- can Redis wait? ---- */
static void withheld_release(struct fence *f, enum fence_command command)
{
    LIST_EACH (i, &f->withheld) {
        struct fence_wait *w = fence_wait_of(i);
        if (command_for(&w->wanted) == command) {
            list_remove(i);
            list_insert(&f->released, i);
            w->connection = f->n_connections;
            script_let_go(f->script, w->request);
        }
    }
}

static void withheld_refuse(struct fence *f, enum fence_command command, int err)
{
    LIST_EACH (i, &f->withheld) {
        struct fence_wait *w = fence_wait_of(i);
        if (command_for(&w->wanted) == command) {
            bool unsent = script_withdraw(f->script, w->request);
            ASSERT(unsent);
            list_remove(i);
            w->end(w, err);
        }
    }
}

/* What was not sent yet goes with the next connection. */
static void released_withhold(struct fence *f)
{
    LIST_EACH (i, &f->released) {
        if (script_withhold(f->script, fence_wait_of(i)->request)) {
            list_remove(i);
            list_insert(&f->withheld, i);
        }
    }
}

/* What Redis refuses now it may do the next time: appendonly can be switched on. */
static void on_probe(struct call *call, int err, const struct redisReply *reply)
{
    struct fence_probe *p = CONTAINER(call, struct fence_probe, call);
    struct fence *f = p->fence;
    enum fence_command command = (enum fence_command)(p - f->probes);
    struct span error;

    p->asked = false;
    if (err) {
        return;
    }

    if (reply_error(reply, &error)) {
        withheld_refuse(f, command, refusal_code(f->context, command_names[command], error));
    } else {
        p->passed = true;
        withheld_release(f, command);
    }
}

static void probe_ask(struct fence *f, enum fence_command command)
{
    struct fence_probe *p = &f->probes[command];

    if (!p->asked) {
        p->asked = wait_send(f, &p->call, command, "0", "1");
    }
}

/* ---- the connection ---- */
static void on_up(void *arg)
{
    struct fence *f = arg;

    f->n_connections++;
    LIST_EACH (i, &f->withheld) {
        probe_ask(f, command_for(&fence_wait_of(i)->wanted));
    }
}

static void on_down(void *arg)
{
    struct fence *f = arg;

    for (unsigned i = 0; i < FENCE_COMMANDS; i++) {
        f->probes[i].passed = false;
    }
    released_withhold(f);
    waits_lost(f, &f->written);
}

/* ---- what the owner calls ---- */
void fence_init(struct fence *f, struct script *script, struct node *node)
{
    *f = (struct fence){.context = script->context, .script = script, .node = node};
    list_init(&f->withheld);
    list_init(&f->released);
    list_init(&f->written);
    list_init(&f->round);
    f->fence_call.end = on_fence;
    f->wait_call.end = on_wait;

    for (unsigned i = 0; i < FENCE_COMMANDS; i++) {
        f->probes[i].fence = f;
        f->probes[i].call.end = on_probe;
    }
}

void fence_close(struct fence *f)
{
    waits_give_up(&f->round);
    waits_give_up(&f->written);
}

void fence_prepare(struct fence *f, struct fence_wait *w)
{
    static const struct conn_events events = {.up = on_up, .down = on_down};
    enum fence_command command = command_for(&w->wanted);

    if (!f->node->fence_begun) {
        node_begin_fence(f->node, &events, f);
    }

    if (node_fence_up(f->node) && f->probes[command].passed) {
        list_insert(&f->released, &w->node);
        w->connection = f->n_connections;
        return;
    }

    w->request->withheld = true;
    list_insert(&f->withheld, &w->node);
    probe_ask(f, command);
}

void fence_add(struct fence *f, struct fence_wait *w)
{
    struct list gone;

    list_remove(&w->node);
    if (node_fence_up(f->node) && w->connection == f->n_connections) {
        list_insert(&f->written, &w->node);
        return;
    }

    list_init(&gone);
    list_insert(&gone, &w->node);
    waits_lost(f, &gone);
}

void fence_forget(struct fence_wait *w)
{
    list_remove(&w->node);
}
