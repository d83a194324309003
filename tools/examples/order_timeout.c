/* SPDX-License-Identifier: MIT */
/* An order that is not paid in time is cancelled. Placing it schedules a job for that moment; paying takes the job
 * back.
 *
 *     order_timeout redis://127.0.0.1:6379
 *
 * Here two orders are placed, one is paid after half a second, and the other times out after one. */
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
    (void)level, (void)arg;
    fprintf(stderr, "order_timeout: %s\n", line);
}

/* ---- placing and paying: in a real shop, from two request handlers ---- */
static void on_placed(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l, (void)arg;
    check(err, "placing an order");
    printf("%s is placed\n", lapse_job_id(job));
}

static void place(struct lapse *l, const char *order, const char *mail)
{
    struct lapse_spec spec = lapse_spec_init();
    spec.queue = "orders";
    spec.id = order;
    spec.body = mail;
    spec.body_len = strlen(mail);
    spec.due = lapse_in(1000);
    spec.on_conflict = LAPSE_REPLACE; /* so that this program can run twice; a shop wants LAPSE_KEEP */
    check(lapse_schedule(l, &spec, on_placed, NULL), "placing an order");
}

static void on_paid(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    const char *order = arg;
    (void)l, (void)job;
    if (!err) {
        printf("%s is paid\n", order);
    } else if (err == LAPSE_ENOENT || err == LAPSE_EBUSY) {
        printf("%s is paid too late: give the money back\n", order);
    } else {
        check(err, "paying an order");
    }
}

static void pay_first(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct lapse *l = timer->data;
    static char order[] = "order-1";
    (void)loop, (void)events;
    check(lapse_cancel(l, "orders", order, 0, on_paid, order), "paying an order");
}

/* ---- timing out: in a real shop, any number of processes that listen ---- */
static void on_closed(void *arg)
{
    (void)arg;
    printf("good night\n");
}

static void on_done(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)job, (void)arg;
    check(err, "settling an order");
    lapse_close(l, 1000, on_closed, NULL); /* a shop would go on for ever */
}

static void on_timeout(struct lapse *l, struct lapse_job *job, void *arg)
{
    size_t len;
    const char *mail = lapse_job_body(job, &len);
    (void)l, (void)arg;
    printf("%s was not paid in time: cancelled, a mail goes to %.*s\n", lapse_job_id(job), (int)len, mail);
    lapse_done(job, on_done, NULL); /* only now is the job gone: had we crashed before, it would run again */
}

int main(int argc, char **argv)
{
    struct ev_loop *loop = EV_DEFAULT;
    struct lapse_options options = lapse_options_init();
    struct lapse *l;
    ev_timer payment;
    options.url = argc > 1 ? argv[1] : NULL;
    options.log = on_log;
    check(lapse_open(&l, loop, &options), "opening");
    check(lapse_handle(l, "orders", NULL, on_timeout, NULL), "listening");
    place(l, "order-1", "ann@example.com");
    place(l, "order-2", "bob@example.com");
    ev_timer_init(&payment, pay_first, 0.5, 0);
    payment.data = l;
    ev_timer_start(loop, &payment);
    ev_run(loop, 0); /* returns when the handle is closed */
    return 0;
}
