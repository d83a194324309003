/* SPDX-License-Identifier: MIT */
/* An order that is not paid in time is cancelled. Placing it schedules a job for that moment;
 * paying takes the job back.
 *
 *     order_timeout redis://127.0.0.1:6379
 *
 * Here two orders are placed, one is paid after half a second, and the other times out after one.
 *
 * Who was first, the payment or the timeout? Your database decides, by an UPDATE that only one of
 * them can win; lapse only rings the bell. So nothing here depends on the answer to a cancel: it
 * may be lost with the connection, or come too late, and the handler then finds an order that is
 * paid, and leaves it alone. */
#include <ev.h>
#include <lapse.h>
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
} orders[] = {{"order-1", "ann@example.com", OPEN}, {"order-2", "bob@example.com", OPEN}};

/* UPDATE orders SET state = to WHERE id = id AND state = 'open': how many rows changed. */
static int update(const char *id, enum state to)
{
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        if (strcmp(orders[i].id, id) == 0 && orders[i].state == OPEN) {
            orders[i].state = to;
            return 1;
        }
    }
    return 0;
}

/* ---- placing and paying: in a real shop, from two request handlers ---- */
static void place(struct lapse *l, const struct order *order);

static void on_placed(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    const struct order *order = arg;

    (void)job;
    if (lapse_outcome_unknown(err)) {
        place(l, order); /* it names its id: a second time makes no second job */
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
    check(lapse_schedule(l, &spec, on_placed, (void *)(uintptr_t)order), "placing an order");
}

static void on_taken_back(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)job;

    /* ENOENT, EBUSY: the bell rings, or has rung. Lost, not reached: it may ring. The order is
     * paid, whichever it is.
     */
    if (err) {
        printf("the bell of %s may ring: %s\n", (const char *)arg, lapse_strerror(err));
    }
}

static void pay_first(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct lapse *l = timer->data;
    static char order[] = "order-1";

    (void)loop;
    (void)events;
    if (!update(order, PAID)) {
        printf("%s is paid too late: give the money back\n", order);
        return;
    }

    printf("%s is paid\n", order);
    check(lapse_cancel(l, "orders", order, 0, on_taken_back, order), "paying an order");
}

/* ---- timing out: in a real shop, any number of processes that listen ---- */
static void on_closed(void *arg)
{
    (void)arg;
    printf("good night\n");
}

static void on_done(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)job;
    (void)arg;
    if (err) { /* it runs again, and finds that nothing is left to be done */
        printf("settling an order: %s\n", lapse_strerror(err));
    }
    if (orders[0].state != OPEN && orders[1].state != OPEN) {
        lapse_close(l, 1000, on_closed, NULL); /* a shop would go on for ever */
    }
}

static void on_timeout(struct lapse *l, struct lapse_job *job, void *arg)
{
    size_t len;
    const char *mail = lapse_job_body(job, &len);

    (void)l;
    (void)arg;
    if (update(lapse_job_id(job), CANCELLED)) {
        printf("%s was not paid in time: cancelled, a mail goes to %.*s\n", lapse_job_id(job),
               (int)len, mail);
    } else {
        printf("%s was paid: nothing is to be done\n", lapse_job_id(job));
    }

    lapse_done(job, on_done,
               NULL); /* only now is the job gone: had we crashed before, it would run again */
}

int main(int argc, char **argv)
{
    struct ev_loop *loop = EV_DEFAULT;
    struct lapse_options options = lapse_options_init();
    struct lapse *l;
    ev_timer payment;

    options.url = argc > 1 ? argv[1] : NULL;
    options.log = on_log;
    setvbuf(stdout, NULL, _IOLBF, 0);
    check(lapse_open(&l, loop, &options), "opening");
    check(lapse_listen(l, "orders", NULL, on_timeout, NULL), "listening");
    place(l, &orders[0]);
    place(l, &orders[1]);
    ev_timer_init(&payment, pay_first, 0.5, 0);
    payment.data = l;
    ev_timer_start(loop, &payment);
    ev_run(loop, 0); /* returns when the handle is closed */

    return 0;
}
