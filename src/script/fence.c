/* SPDX-License-Identifier: MIT */
/* Waits until replicas, or disks, have what was written.
 *
 * WAIT says how many replicas have all that its connection wrote, and holds up whatever is behind
 * it there. So scripts go over the connection for commands, where requests of one id keep their
 * order, and when they are answered a second connection writes the fence (src/lua/queue/fence.lua)
 * with WAIT behind it. The fence comes after them in what Redis sends to its replicas: who has the
 * fence has them too.
 *
 *   prepare --> withheld --probe--> released --answer, add--> written --turn--> round --> end
 *
 *  - A round is for all that was answered before its fence; what is answered meanwhile shares the
 *    next one. It asks for the least that is wanted in it, and then for what is wanted beyond that,
 *    while replicas_ms since the fence last.
 *  - A fence counts only on a connection that was there before the script was sent, to the same
 *    server. After a failover another one may reach a master that never had the job, with replicas
 *    that have all of it. In a cluster the node must have had its slots before, too: else another
 *    one was asked.
 *  - The probes are WAIT 0 and WAITAOF 1 0, which Redis answers at once. An old version, a missing
 *    right, a replica and appendonly no are errors there, before anything is stored.
 *
 * With the option replicas all that is written is to have copies. Then the node takes no script
 * that writes before the probe has passed, so that nothing has to be withheld one by one. Where
 * ALONE_ROUNDS in a row were in vain, we are alone: what was written ends with EALONE at once, and
 * nothing is claimed, until a round that is for nobody, one each second, finds the replicas. */
#include "script/fence.h"
#include "base/error.h"
#include "redis/masters.h"
#include "script/args.h"
#include "script/refusal.h"
#include <limits.h>
#include <string.h>

enum { ALONE_ROUNDS = 2, AGAIN_MS = 1000 };

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

/* As many as the option says, of whatever is written. */
static struct fence_copies fence_own_copies(const struct fence *f)
{
    return (struct fence_copies){.replicas = f->context->options.replicas};
}

/* ---- in vain ---- */
static void wait_end(struct fence *f, struct fence_wait *w, int err)
{
    list_remove(&w->node);
    f->context->stats.unsealed += err == LAPSE_EALONE;
    w->end(w, err);
}

static unsigned waits_give_up(struct fence *f, struct list *waits)
{
    unsigned n = 0;

    for (; !list_empty(waits); n++) {
        wait_end(f, fence_wait_of(waits->next), LAPSE_EALONE);
    }
    return n;
}

static void waits_lost(struct fence *f, struct list *waits)
{
    unsigned n = waits_give_up(f, waits);

    if (n > 0) {
        log_line(&f->context->log, LOG_REPLICAS, LOG_WARNING,
                 "written, but no replica has confirmed it: the connection for WAIT is gone, or "
                 "was refused; answers: %u",
                 n);
    }
}

static void log_too_few(struct fence *f, unsigned n)
{
    const struct fence_copies *copies = &f->copies;
    bool not_fsynced = f->wanted.fsync && !copies->fsync;
    const char *own = not_fsynced ? "Redis does not have it on disk, and " : "";
    const char *where = f->wanted.fsync ? " on disk" : "";

    log_line(&f->context->log, LOG_REPLICAS, LOG_WARNING,
             "written, but %s%u of %u replicas have it%s after %lld ms (replicas_ms); answers: %u",
             own, copies->replicas, f->wanted.replicas, where,
             (long long)f->context->options.replicas_ms, n);
}

/* ---- alone ---- */
/* Something is to be asked again when the connection has been up for a while. */
static bool fence_asks_again(const struct fence *f)
{
    const struct node *n = f->node;
    return node_fence_up(n) && (n->copies_in_vain || (n->wants_copies && !n->copies_waited));
}

static void fence_ask_later(struct fence *f)
{
    if (fence_asks_again(f)) {
        timer_set(&f->again, AGAIN_MS);
    }
}

static void fence_be_alone(struct fence *f)
{
    f->node->copies_in_vain = true;
    log_line(&f->context->log, LOG_ALONE, LOG_ERR,
             "takes no jobs, and all answers are EALONE: fewer than %u replicas have what is "
             "written (replicas)",
             f->context->options.replicas);
    waits_give_up(f, &f->written);
}

static void fence_be_in_company(struct fence *f)
{
    f->node->copies_in_vain = false;
    log_line(&f->context->log, LOG_NOT_ALONE, LOG_NOTICE,
             "takes jobs: %u replicas have what is written", f->copies.replicas);
    f->changed(f->arg);
}

/* A round for nobody needs a key of this node. */
void fence_forget_key(struct fence *f)
{
    f->key[0] = '\0';
    f->n_in_vain = 0;
    if (f->node->copies_in_vain) {
        f->node->copies_in_vain = false; /* the next two rounds tell again */
        f->changed(f->arg);
    }
}

/* What a round says of the replicas that the option wants. */
static void fence_note_round(struct fence *f, bool enough)
{
    if (f->context->options.replicas == 0) {
        return;
    }

    f->n_in_vain = enough ? 0 : f->n_in_vain + 1;
    bool alone = f->node->copies_in_vain;
    if (alone && enough) {
        fence_be_in_company(f);
    } else if (!alone && *f->key && f->n_in_vain >= ALONE_ROUNDS) {
        fence_be_alone(f);
    }
}

/* ---- probes ---- */
static void probe_ask(struct fence *f, enum fence_command command)
{
    struct fence_probe *p = &f->probes[command];

    if (!p->asked) {
        p->asked = wait_send(f, &p->call, command, "0", "1");
    }
}

/* What Redis could do, it may no longer. */
static void fence_doubt(struct fence *f, enum fence_command command)
{
    f->probes[command].passed = false;
    if (command == FENCE_WAIT && f->node->copies_waited) {
        f->node->copies_waited = false;
        probe_ask(f, command);
    }
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

/* One that is for nobody has the key of the last. */
static void round_send_fence(struct fence *f)
{
    if (!list_empty(&f->round)) {
        struct span of_first = fence_wait_of(f->round.next)->key;
        memcpy(f->key, of_first.at, of_first.len);
        f->key[of_first.len] = '\0';
    }

    struct span key = span_of(f->key);
    bool taken =
        node_fence_up(f->node) && script_send_fence(f->script, f->node, &f->fence_call, key);

    f->fenced_us = clock_us();
    round_sent(f, taken);
}

static struct fence_copies round_least(struct fence *f)
{
    if (list_empty(&f->round)) {
        return fence_own_copies(f);
    }

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
    struct fence_copies own = fence_own_copies(f);
    struct list served;
    struct list alone;

    list_init(&served);
    list_init(&alone);
    LIST_EACH (i, &f->round) {
        struct fence_wait *w = fence_wait_of(i);

        if (w->wanted.fsync != f->wanted.fsync) {
            continue;
        }
        w->n_replicas = f->copies.replicas;

        if (copies_suffice(&f->copies, &w->wanted)) {
            list_remove(i);
            list_insert(&served, i);
        } else if (in_vain) {
            list_remove(i);
            list_insert(&alone, i);
        }
    }

    /* one by one, because an end() may forget another wait */
    while (!list_empty(&served)) {
        wait_end(f, fence_wait_of(served.next), 0);
    }
    unsigned n_alone = waits_give_up(f, &alone);
    if (n_alone > 0) {
        log_too_few(f, n_alone);
    }
    if (!f->wanted.fsync) {
        fence_note_round(f, copies_suffice(&f->copies, &own));
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
        if (node_fence_up(f->node)) {
            fence_note_round(f, false);
        }
    }
    if (f->n_calls == 0) {
        fence_ask_later(f);
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
        fence_doubt(f, command);
    }
    round_go_on(f);
}

static void round_begin(struct fence *f)
{
    f->broken = false;
    round_send_fence(f);
    if (!f->broken) {
        round_send_wait(f);
    }

    if (f->n_calls == 0) {
        waits_lost(f, &f->round);
        fence_ask_later(f);
        return;
    }
    conn_flush(&f->node->fence);
}

void fence_turn(struct fence *f)
{
    if (list_empty(&f->written) || !list_empty(&f->round) || f->n_calls > 0) {
        return;
    }

    list_move(&f->round, &f->written);
    round_begin(f);
}

/* ---- can Redis wait? ---- */
static void withheld_release(struct fence *f, enum fence_command command)
{
    LIST_EACH (i, &f->withheld) {
        struct fence_wait *w = fence_wait_of(i);
        if (command_for(&w->wanted) == command) {
            list_remove(i);
            list_insert(&f->released, i);
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
            wait_end(f, w, err);
        }
    }
}

/* What was not sent yet goes with the next connection. */
void fence_withhold_unsent(struct fence *f)
{
    LIST_EACH (i, &f->released) {
        if (script_withhold(f->script, fence_wait_of(i)->request)) {
            list_remove(i);
            list_insert(&f->withheld, i);
        }
    }
}

static void fence_let_writes(struct fence *f, enum fence_command command)
{
    struct node *n = f->node;

    if (n->wants_copies && command == FENCE_WAIT) {
        n->copies_waited = true;
        n->copies_err = 0;
        f->changed(f->arg);
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
        err = refusal_code(f->context, command_names[command], error);
        f->node->copies_err = command == FENCE_WAIT ? err : f->node->copies_err;
        withheld_refuse(f, command, err);
    } else {
        p->passed = true;
        fence_let_writes(f, command);
        withheld_release(f, command);
    }
    fence_ask_later(f);
}

/* Are the replicas there, or can Redis wait? */
static void on_again(void *arg)
{
    struct fence *f = arg;

    if (!fence_asks_again(f) || f->n_calls > 0) {
        return;
    }
    if (!f->probes[FENCE_WAIT].passed) {
        probe_ask(f, FENCE_WAIT);
        fence_ask_later(f);
    } else {
        round_begin(f);
    }
}

/* ---- the connection ---- */
static void on_up(void *arg)
{
    struct fence *f = arg;

    f->up_us = clock_us();
    if (f->node->wants_copies) {
        probe_ask(f, FENCE_WAIT);
    }
    LIST_EACH (i, &f->withheld) {
        probe_ask(f, command_for(&fence_wait_of(i)->wanted));
    }
    fence_ask_later(f);
}

static void on_down(void *arg)
{
    struct fence *f = arg;

    for (unsigned i = 0; i < FENCE_COMMANDS; i++) {
        f->probes[i].passed = false;
    }
    f->node->copies_waited = false;
    f->node->copies_err = 0;
    f->node->copies_in_vain = false; /* there may be another server */
    f->n_in_vain = 0;
    timer_stop(&f->again);
    fence_withhold_unsent(f);
    waits_lost(f, &f->written);
}

/* ---- what the owner calls ---- */
static void fence_begin(struct fence *f)
{
    static const struct conn_events events = {.up = on_up, .down = on_down};

    if (!f->node->fence_begun) {
        node_begin_fence(f->node, &events, f);
    }
}

void fence_init(struct fence *f, struct script *script, struct node *node,
                void (*changed)(void *arg), void *arg)
{
    struct context *c = script->context;

    *f = (struct fence){
        .context = c, .script = script, .node = node, .changed = changed, .arg = arg};
    list_init(&f->withheld);
    list_init(&f->released);
    list_init(&f->written);
    list_init(&f->round);
    f->fence_call.end = on_fence;
    f->wait_call.end = on_wait;
    timer_init(&f->again, c->loop, on_again, f);

    for (unsigned i = 0; i < FENCE_COMMANDS; i++) {
        f->probes[i].fence = f;
        f->probes[i].call.end = on_probe;
    }

    if (node->wants_copies) {
        fence_begin(f);
    }
}

void fence_close(struct fence *f)
{
    timer_stop(&f->again);
    waits_give_up(f, &f->round);
    waits_give_up(f, &f->written);
}

void fence_prepare(struct fence *f, struct fence_wait *w)
{
    enum fence_command command = command_for(&w->wanted);

    fence_begin(f);
    if (node_fence_up(f->node) && f->probes[command].passed) {
        list_insert(&f->released, &w->node);
        return;
    }

    w->request->withheld = true;
    list_insert(&f->withheld, &w->node);
    probe_ask(f, command);
}

void fence_release(struct fence *f)
{
    for (unsigned i = 0; i < FENCE_COMMANDS; i++) {
        if (node_fence_up(f->node) && f->probes[i].passed) {
            withheld_release(f, (enum fence_command)i);
        }
    }
}

void fence_take_over(struct fence *f, struct fence_wait *w)
{
    fence_begin(f);
    list_remove(&w->node);
    list_insert(&f->withheld, &w->node);
    probe_ask(f, command_for(&w->wanted));
    fence_release(f);
}

/* When this node got the slot of the key; what was written before was written elsewhere. */
static int64_t fence_gained_us(const struct fence *f, struct span key)
{
    const struct masters *masters = f->script->topo->masters;

    return masters ? masters_gained_us(masters, slot_of_key(key)) : 0;
}

void fence_add(struct fence *f, struct fence_wait *w)
{
    struct list gone;

    list_remove(&w->node);
    if (f->node->copies_in_vain) {
        wait_end(f, w, LAPSE_EALONE);
        return;
    }
    bool went_here = w->sent_us > f->up_us && w->sent_us > fence_gained_us(f, w->key);
    if (node_fence_up(f->node) && went_here) {
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
