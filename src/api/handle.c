/* SPDX-License-Identifier: MIT */
/* The handle's life, and the handling half of the public API.
 *
 *   open --close--> closing (takes nothing new; waits for handlers and answers) --all is settled
 * and answered--> ended
 *                      '--grace over--> giving back (what handlers still have, at most
 * GIVE_BACK_MS) ------------^ ended: every request has ended; its callbacks run, then closed(),
 * then it is freed. */
#include "base/error.h"
#include "api/handle.h"
#include "base/mem.h"

enum { GIVE_BACK_MS = 1000 };

static void on_up(void *arg)
{
    work_up(&((struct lapse *)arg)->work);
}

static void on_down(void *arg)
{
    script_lost(&((struct lapse *)arg)->script);
}

static void destroy(struct lapse *l)
{
    deliver_close(&l->deliver);
    options_free(&l->core.options);
    mem_free(l);
}

static void after_closed(struct req *r, bool alive)
{
    if (alive) {
        destroy(CONTAINER(r, struct lapse, closed));
    }
}

/* From here on nothing is sent and nothing comes: all that is asked ends, into deliver's queue. */
static void end(struct lapse *l)
{
    l->closing = l->ended = true;
    ev_prepare_stop(l->core.loop, &l->idle);
    timer_stop(&l->grace);
    work_end(&l->work);
    conn_close(&l->conn, LAPSE_ELOST);
    script_close(&l->script);
    work_close(&l->work);
}

static void end_and_tell(struct lapse *l)
{
    end(l);
    deliver_push(&l->deliver, &l->closed, 0);
}

static void on_grace(void *arg)
{
    struct lapse *l = arg;
    int64_t reply_ms = l->core.options.set.reply_ms;

    if (!l->giving_back && conn_up(&l->conn) && work_give_back(&l->work)) {
        l->giving_back = true;
        timer_set(&l->grace, reply_ms < GIVE_BACK_MS ? reply_ms : GIVE_BACK_MS);
        return;
    }

    end_and_tell(l);
}

static void on_idle(struct ev_loop *loop, ev_prepare *w, int events)
{
    (void)loop;
    (void)events;
    struct lapse *l = w->data;
    bool answered = l->n_pending == 0 && script_idle(&l->script) && deliver_idle(&l->deliver);

    if (work_idle(&l->work) && (answered || l->giving_back)) {
        end_and_tell(l);
    }
}

int lapse_open(struct lapse **out, struct ev_loop *loop, const struct lapse_options *opts)
{
    static const struct conn_events events = {on_up, on_down, NULL, NULL};
    struct options options;

    if (!out || !loop) {
        return LAPSE_EINVAL;
    }

    int err = options_read(&options, opts);
    if (err) {
        return err;
    }

    struct lapse *l = mem_new(sizeof *l, 0);
    if (!l) {
        options_free(&options);
        return LAPSE_ENOMEM;
    }

    l->core = (struct core){.loop = loop, .options = options, .handle = l};
    l->core.log = (struct log){.fn = options.set.log, .arg = options.set.log_arg};
    deliver_init(&l->deliver, &l->core);
    conn_init(&l->conn, &l->core, &events, l);
    err = script_init(&l->script, &l->core, &l->conn, &l->deliver);

    if (err) {
        options_free(&options);
        mem_free(l);
        return err;
    }

    work_init(&l->work, &l->core, &l->script, &l->deliver);
    timer_init(&l->grace, loop, on_grace, l);
    ev_prepare_init(&l->idle, on_idle);
    ev_set_priority(
        &l->idle,
        EV_MINPRI); /* after script's: nothing may wake the loop again to look once more */
    l->idle.data = l;
    l->closed = (struct req){.kind = REQ_CLOSED, .after = after_closed};
    conn_start(&l->conn);
    *out = l;

    return 0;
}

void lapse_close(struct lapse *l, int64_t grace_ms, void (*closed)(void *arg), void *arg)
{
    if (!l) {
        return;
    }

    if (!l->closed.fn.closed) {
        l->closed.fn.closed = closed;
        l->closed.arg = arg;
    }

    if (l->ended || l->giving_back) {
        return;
    }

    grace_ms = grace_ms < 0 ? 0 : grace_ms < JOB_TEN_YEARS_MS ? grace_ms : JOB_TEN_YEARS_MS;

    int64_t end_us = clock_us() + grace_ms * 1000;
    if (!l->closing) {
        l->closing = true;
        work_drain(&l->work);
        ev_prepare_start(l->core.loop, &l->idle);
    } else if (end_us >= l->end_us) {
        return;
    }

    l->end_us = end_us;
    timer_set(&l->grace, grace_ms);
}

void lapse_abandon(struct lapse *l)
{
    if (l) {
        if (!l->ended) {
            end(l);
        }
        destroy(l);
    }
}

int lapse_listen(struct lapse *l, const char *queue, const struct lapse_listen_options *opts,
                 lapse_handler *fn, void *arg)
{
    struct lapse_listen_options none = {sizeof none, 0};
    struct lapse_listen_options o;

    opts = opts ? opts : &none;
    if (!l || !queue || !keys_queue_ok(queue) || !fn || opts->size < sizeof *opts ||
        !mem_read_sized(&o, sizeof o, opts)) {
        return LAPSE_EINVAL;
    }

    if (l->closing) {
        return LAPSE_ECLOSED;
    }

    return work_handle(&l->work, queue, o.max_running, fn, arg);
}

int lapse_unlisten(struct lapse *l, const char *queue)
{
    if (!l || !queue || !keys_queue_ok(queue)) {
        return LAPSE_EINVAL;
    }
    return l->closing ? LAPSE_ECLOSED : work_stop(&l->work, queue);
}

void lapse_done(struct lapse_job *job, lapse_cb *fn, void *arg)
{
    held_settle(held_of(job), SETTLE_DONE, 0, NULL, fn, arg);
}

void lapse_retry(struct lapse_job *job, int64_t delay_ms, const char *reason, lapse_cb *fn,
                 void *arg)
{
    delay_ms = delay_ms < 0                  ? job_backoff_ms(job)
               : delay_ms < JOB_TEN_YEARS_MS ? delay_ms
                                             : JOB_TEN_YEARS_MS;
    held_settle(held_of(job), SETTLE_RETRY, delay_ms, reason, fn, arg);
}

void lapse_fail(struct lapse_job *job, const char *reason, lapse_cb *fn, void *arg)
{
    held_settle(held_of(job), SETTLE_FAIL, 0, reason, fn, arg);
}

void lapse_stats(const struct lapse *l, struct lapse_stats *out, size_t size)
{
    size_t len = size < sizeof *out ? size : sizeof *out;
    memset(out, 0, size);
    memcpy(out, &l->core.stats, len);
}
