/* SPDX-License-Identifier: MIT */
/* An order that is not paid in time is cancelled. Placing it schedules a job for that moment;
 * paying it cancels the job.
 *
 *     lapse dev                                 prints the URL of a Redis to try things on
 *     LAPSE_URL=unix://... order_timeout        in another terminal
 *
 * Two orders are placed: one is paid after half a second, the other one times out after a second.
 *
 * Which came first, the payment or the timeout? Your database decides, by an UPDATE that only one
 * of them can win; lapse only rings the bell. So nothing here depends on the reply to a cancel,
 * which may come too late: the handler then finds an order that is paid, and leaves it alone. If
 * the reply is lost with the connection, the cancel is asked again: what became of a job is known
 * for a day, so the answer to the repeat is that of the first. */
#include <ev.h>
#include <lapse.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int err, const char *what)
{
    if (err) {
        fprintf(stderr, "order_timeout: %s: %s\n", what, lapse_strerror(err));
        exit(1);
    }
}

static void on_log(int level, const char *line, void *arg)
{
    (void)level;
    (void)arg;
    fprintf(stderr, "order_timeout: %s\n", line);
}

/* ---- the database ---- */
enum state { OPEN, PAID, CANCELLED };
static struct order {
    const char *id, *mail;
    enum state state;
} orders[] = {
    {"order-1", "ann@example.com", OPEN},
    {"order-2", "bob@example.com", OPEN},
};

/* UPDATE orders SET state = to WHERE id = id AND state = 'open'; true: it changed a row. */
static bool update_open_order(const char *id, enum state to)
{
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        if (strcmp(orders[i].id, id) == 0 && orders[i].state == OPEN) {
            orders[i].state = to;
            return true;
        }
    }

    return false;
}

/* ---- placing and paying: in a real shop, in two request handlers ---- */
static void place(struct lapse *l, const struct order *order);

static void on_placed(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    const struct order *order = arg;

    (void)job;
    if (lapse_outcome_unknown(err)) {
        place(l, order); /* the job has an id: a second request adds no second job */
        return;
    }

    check(err, "placing an order");
    printf("%s is placed\n", order->id);
}

static void place(struct lapse *l, const struct order *order)
{
    struct lapse_spec spec = lapse_spec_init();

    spec.queue = "orders";
    spec.id = order->id;
    spec.body = order->mail;
    spec.body_len = strlen(order->mail);
    spec.due = lapse_in(1000);
    spec.on_conflict = LAPSE_KEEP;
    spec.keep_ms = INT64_C(24) * 3600 * 1000;
    check(lapse_schedule(l, &spec, on_placed, (void *)(uintptr_t)order), "placing an order");
}

static void on_job_cancelled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    const char *order = arg;

    (void)job;
    if (lapse_outcome_unknown(err) && !lapse_cancel(l, "orders", order, 0, on_job_cancelled, arg)) {
        return; /* 0 if the job was cancelled, whichever of the two did it */
    }

    /* EENDED and EBUSY: the job has run, or runs. Any other error: it may run. The order is paid in
     * each case. */
    if (err) {
        printf("the job of %s may run: %s\n", order, lapse_strerror(err));
    } else {
        printf("the job of %s is cancelled\n", order);
    }
}

static void on_payment(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct lapse *l = timer->data;
    static char order[] = "order-1";

    (void)loop;
    (void)events;
    if (!update_open_order(order, PAID)) {
        printf("%s is paid too late: refund it\n", order);
        return;
    }

    printf("%s is paid\n", order);
    check(lapse_cancel(l, "orders", order, 0, on_job_cancelled, order), "paying an order");
}

/* ---- timing out: in a real shop, in any number of processes that listen ---- */
static void on_settled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)job;
    (void)arg;
    if (err) {
        /* the job runs again, and finds nothing left to do */
        printf("settling an order: %s\n", lapse_strerror(err));
    }

    if (orders[0].state != OPEN && orders[1].state != OPEN) {
        lapse_close(l, 1000, NULL, NULL); /* a shop would go on */
    }
}

static void on_timeout(struct lapse *l, struct lapse_job *job, void *arg)
{
    size_t len;
    const char *mail = lapse_job_body(job, &len);
    const char *id = lapse_job_id(job);

    (void)l;
    (void)arg;
    if (update_open_order(id, CANCELLED)) {
        printf("%s was not paid in time: cancelled, mail to %.*s\n", id, (int)len, mail);
    } else {
        printf("%s was paid: nothing to do\n", id);
    }

    /* only now is the job gone: after a crash before this line it would run again */
    lapse_done(job, on_settled, NULL);
}

int main(int argc, char **argv)
{
    struct ev_loop *loop = EV_DEFAULT;
    struct lapse_options options = lapse_options_init();
    struct lapse *l;
    ev_timer payment;

    setvbuf(stdout, NULL, _IOLBF, 0);
    options.url = argc > 1 ? argv[1] : getenv("LAPSE_URL");
    options.log = on_log;
    check(lapse_open(&l, loop, &options), "opening");
    check(lapse_listen(l, "orders", NULL, on_timeout, NULL), "listening");

    place(l, &orders[0]);
    place(l, &orders[1]);

    ev_timer_init(&payment, on_payment, 0.5, 0);
    payment.data = l;
    ev_timer_start(loop, &payment);

    ev_run(loop, 0); /* returns when the handle is closed */

    return 0;
}
