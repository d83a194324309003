/* SPDX-License-Identifier: MIT */
/* The life of a handle.
 *
 *   open --close--> CLOSING -----all is settled and answered----> ENDED --closed()--> freed
 *                      |                                            ^
 *                      '--grace is over--> GIVING BACK --at most----'
 *                                                       GIVE_BACK_MS
 *
 * CLOSING takes nothing new, and waits for handlers and answers. GIVING BACK returns the jobs that
 * handlers still have, and sends what was counted, whatever waits for an answer. When it has ENDED
 * every request has ended too: their callbacks run, then closed(), and then the handle is freed. */
#include "api/handle.h"
#include "base/error.h"
#include "base/mem.h"

enum { GIVE_BACK_MS = 1000, GATHER_US = 250 };

/* ---- Redis ---- */
static void on_up(void *arg, struct node *node)
{
    struct lapse *l = arg;

    if (registry_is_at(&l->registry, node)) {
        registry_up(&l->registry);
    }
    tallies_up(&l->tallies);
    fences_up(&l->fences, node);
    listener_up(&l->listener, node);
    ends_up(&l->ends, node);
}

static void on_idle(void *arg, struct node *node)
{
    struct lapse *l = arg;

    listener_let_go_of(&l->listener, node);
    ends_let_go_of(&l->ends, node);
    fences_let_go_of(&l->fences, node); /* which goes only with the node */
}

static int masters_make(struct lapse *l)
{
    static const struct masters_events events = {.up = on_up, .idle = on_idle};
    struct masters *masters = mem_new(sizeof *masters, 0);
    int err = LAPSE_ENOMEM;

    if (masters) {
        err = masters_init(masters, &l->topo, &l->context, &l->options.address, &events, l);
    }
    if (err) {
        mem_free(masters);
    }
    return err;
}

static int redis_init(struct lapse *l)
{
    static const struct node_events events = {.up = on_up};
    const struct address *address = &l->options.address;

    if (address->kind == ADDRESS_CLUSTER) {
        return masters_make(l);
    }

    int err = node_init(&l->node, &l->context, address, &events, l);
    topo_init(&l->topo, &l->node);
    if (err) {
        node_close(&l->node);
    }
    return err;
}

static void redis_start(struct lapse *l)
{
    if (l->topo.masters) {
        masters_start(l->topo.masters);
    } else {
        node_start(&l->node);
    }
}

static void redis_close(struct lapse *l)
{
    if (l->topo.masters) {
        masters_close(l->topo.masters);
    } else {
        node_close(&l->node);
    }
}

static void redis_free(struct lapse *l)
{
    if (l->topo.masters) {
        masters_free(l->topo.masters);
        mem_free(l->topo.masters);
    }
}

/* Queues may have another master than in the last turn. */
static void redis_turn(struct lapse *l)
{
    if (!l->topo.masters || !masters_take_change(l->topo.masters)) {
        return;
    }

    bool is_fenced = fences_remapped(&l->fences);
    bool listens = listener_remapped(&l->listener);
    bool waits = ends_remapped(&l->ends);
    if (!is_fenced || !listens || !waits) {
        masters_repeat_change(l->topo.masters);
    }
}

static void on_in_company(void *arg)
{
    struct lapse *l = arg;
    listener_in_company(&l->listener);
}

/* ---- the end ---- */
static void handle_free(struct lapse *l)
{
    task_queue_close(&l->tasks);
    fences_free(&l->fences);
    redis_free(l);
    options_free(&l->options);
    mem_free(l);
}

static void closed_run(struct task *t)
{
    struct lapse *l = CONTAINER(t, struct lapse, closed);

    if (l->closed_fn) {
        l->closed_fn(l->closed_arg);
    }
}

static void closed_done(struct task *t, bool alive)
{
    if (alive) {
        handle_free(CONTAINER(t, struct lapse, closed));
    }
}

/* From here on nothing is sent and nothing is received: every request ends, and its callback
 * becomes a task. */
static void handle_end(struct lapse *l)
{
    l->closing = true;
    l->ended = true;
    ev_prepare_stop(l->context.loop, &l->turn);
    timer_stop(&l->grace);
    listener_stop(&l->listener);
    tallies_stop(&l->tallies);
    ends_close(&l->ends);
    fences_close(&l->fences);
    redis_close(l);
    script_close(&l->script);
    registry_close(&l->registry);
    tallies_close(&l->tallies);
    listener_close(&l->listener);
}

static void handle_end_and_tell(struct lapse *l)
{
    handle_end(l);
    task_queue_push(&l->tasks, &l->closed);
}

static bool handle_has_to_give(struct lapse *l)
{
    bool has_jobs = listener_give_back(&l->listener);

    return has_jobs || tallies_have_any(&l->tallies);
}

static void on_grace_over(void *arg)
{
    struct lapse *l = arg;
    int64_t reply_ms = l->context.options.reply_ms;
    bool is_first = !l->giving_back && !l->counts_sent;

    if (is_first && topo_any_up(&l->topo) && handle_has_to_give(l)) {
        l->giving_back = true;
        timer_set(&l->grace, reply_ms < GIVE_BACK_MS ? reply_ms : GIVE_BACK_MS);
        return;
    }

    handle_end_and_tell(l);
}

/* Of a handle that is closing: nothing is left to do. */
static bool handle_is_idle(const struct lapse *l)
{
    bool told = fences_are_idle(&l->fences) && task_queue_empty(&l->tasks);
    bool answered = l->n_pending == 0 && script_is_idle(&l->script) && told;
    return listener_is_idle(&l->listener) && (answered || l->giving_back);
}

/* Then what was counted is sent, and waited for, if Redis is there. */
static void handle_leave(struct lapse *l)
{
    int64_t reply_ms = l->context.options.reply_ms;

    if (!l->counts_sent) {
        l->counts_sent = true;
        tallies_flush(&l->tallies);
        script_flush(&l->script);
        if (!l->giving_back && !tallies_are_idle(&l->tallies)) {
            timer_set(&l->grace, reply_ms < GIVE_BACK_MS ? reply_ms : GIVE_BACK_MS);
        }
    }

    if (tallies_are_idle(&l->tallies)) {
        handle_end_and_tell(l);
    }
}

/* ---- the turn ---- */
/* When the oldest of what waits for the turn began to wait. */
static int64_t waiting_since_us(const struct lapse *l)
{
    int64_t turn_us = listener_turn_due_us(&l->listener);
    int64_t asked_us = l->script.oldest_us;

    if (!script_has_unsent(&l->script)) {
        return turn_us;
    }

    return turn_us && turn_us < asked_us ? turn_us : asked_us;
}

/* While tasks run, one in each turn, they may add requests that can travel in the same call. They
 * have GATHER_US for it. */
static bool more_to_come(const struct lapse *l)
{
    return !task_queue_empty(&l->tasks) && l->script.n_gathered < SCRIPT_BATCH &&
           clock_us() - waiting_since_us(l) <= GATHER_US;
}

/* Runs once in each turn, before the loop sleeps: claims what became due, then sends everything
 * at once. */
static void on_turn(struct ev_loop *loop, ev_prepare *w, int events)
{
    struct lapse *l = w->data;

    redis_turn(l);
    registry_turn(&l->registry);
    script_fetch(&l->script);
    bool has_work = script_has_unsent(&l->script) || listener_turn_due_us(&l->listener);

    (void)loop;
    (void)events;

    fences_turn(&l->fences);
    if (has_work && !more_to_come(l)) {
        listener_turn(&l->listener);
        script_flush(&l->script);
    }

    if (l->closing && handle_is_idle(l)) {
        handle_leave(l);
    }
}

/* ---- the calls ---- */
static int handle_init(struct lapse *l, struct ev_loop *loop, const struct options *options)
{
    l->options = *options;
    l->context = (struct context){.loop = loop, .options = options->set, .handle = l};
    l->context.health = (struct health){.tasks = &l->tasks, .handle = l};
    l->context.log = (struct log){.fn = options->set.log, .arg = options->set.log_arg};
    task_queue_init(&l->tasks, loop);

    int err = redis_init(l);
    if (err) {
        return err;
    }
    err = script_init(&l->script, &l->topo);
    if (err) {
        redis_close(l);
        redis_free(l);
        return err;
    }

    fences_init(&l->fences, &l->script, on_in_company, l);
    ends_init(&l->ends, &l->script);
    registry_init(&l->registry, &l->script);
    tallies_init(&l->tallies, &l->script);
    l->context.tallies = &l->tallies;
    calendars_init(&l->calendars, &l->script);
    listener_init(&l->listener, &l->fences, &l->registry, &l->calendars, &l->tasks);
    timer_init(&l->grace, loop, on_grace_over, l);
    l->closed = (struct task){.run = closed_run, .done = closed_done};

    ev_prepare_init(&l->turn, on_turn);
    /* after those of the user, which may ask for more */
    ev_set_priority(&l->turn, EV_MINPRI);
    l->turn.data = l;
    ev_prepare_start(loop, &l->turn);

    return 0;
}

int lapse_open(struct lapse **out, struct ev_loop *loop, const struct lapse_options *opts)
{
    struct options options;

    if (!out || !loop) {
        return LAPSE_EINVAL;
    }
    int err = options_read(&options, opts);
    if (err) {
        return err;
    }

    struct lapse *l = mem_new(sizeof *l, 0);
    err = l ? handle_init(l, loop, &options) : LAPSE_ENOMEM;
    if (err) {
        options_free(&options);
        mem_free(l);
        return err;
    }

    redis_start(l);
    *out = l;

    return 0;
}

static int64_t grace_in_range_ms(int64_t grace_ms)
{
    if (grace_ms < 0) {
        return 0;
    }

    return grace_ms < JOB_TEN_YEARS_MS ? grace_ms : JOB_TEN_YEARS_MS;
}

void lapse_close(struct lapse *l, int64_t grace_ms, void (*closed)(void *arg), void *arg)
{
    if (!l) {
        return;
    }
    if (!l->closed_fn) {
        l->closed_fn = closed;
        l->closed_arg = arg;
    }
    if (l->ended || l->giving_back) {
        return;
    }

    grace_ms = grace_in_range_ms(grace_ms);
    int64_t end_us = clock_us() + grace_ms * 1000;

    if (!l->closing) {
        l->closing = true;
        listener_drain(&l->listener);
        ends_drain(&l->ends);
    } else if (end_us >= l->end_us) {
        return;
    }

    l->end_us = end_us;
    timer_set(&l->grace, grace_ms);
}

void lapse_abandon(struct lapse *l)
{
    if (!l) {
        return;
    }
    if (!l->ended) {
        handle_end(l);
    }

    handle_free(l);
}

void lapse_stats(const struct lapse *l, struct lapse_stats *out, size_t size)
{
    memset(out, 0, size);
    memcpy(out, &l->context.stats, size < sizeof *out ? size : sizeof *out);
}

int lapse_lateness(const struct lapse *l, enum lapse_via via, struct lapse_histogram *out)
{
    struct lapse_histogram all = {0};

    if (!l || !out || (unsigned)via >= VIAS) {
        return LAPSE_EINVAL;
    }

    for (unsigned i = 1; i < VIAS; i++) {
        if (!via || i == (unsigned)via) {
            histogram_add_all(&all, &l->context.late[i]);
        }
    }

    *out = all;
    return 0;
}

void lapse_on_health(struct lapse *l, lapse_health_fn *fn, void *arg)
{
    l->context.health.fn = fn;
    l->context.health.arg = arg;
}

void lapse_on_event(struct lapse *l, lapse_event_fn *fn, void *arg)
{
    l->context.on_event = fn;
    l->context.on_event_arg = arg;
}

void lapse_on_told(struct lapse *l, lapse_told_fn *fn, void *arg)
{
    l->context.on_told = fn;
    l->context.on_told_arg = arg;
}

const char *lapse_version(void)
{
    return LAPSE_VERSION;
}
