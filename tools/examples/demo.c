/* SPDX-License-Identifier: MIT */
/* The story that `make demo` tells, on the Redis whose URL is given (tools/build/demo.sh brings a
 * private one). Nine orders wait for their payment: five time out, one is paid, one is prolonged,
 * the handler of one fails at first, and one loses its trigger key, so that Redis will never
 * announce it. At the end everything is counted: a job that is missing, runs twice or runs early by
 * Redis's clock is exit status 1. To learn the library, read its three neighbours instead.
 */
#include <ev.h>
#include <lapse.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { ORDERS = 9, PAID = 6, PROLONGED = 7, FAILING = 8, SILENT = 9 };
enum { FIRST_MS = 2500, STEP_MS = 250, LONGER_MS = 4000, DEADLINE_MS = 12000 };

static struct {
    struct ev_loop *loop;
    struct lapse *l;
    const char *socket; /* path, to play the vandal */
    ev_tstamp start;
    unsigned runs[ORDERS + 1]; /* by order; 0 is not used */
    unsigned settled, faults;
    int64_t due_ms[ORDERS + 1];
    const char *bold, *dim, *plain;
    ev_timer scenes[3], deadline;
} demo;

static void line(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void line(const char *format, ...)
{
    va_list args;

    ev_now_update(demo.loop);
    printf("%s%7.3f s%s  ", demo.dim, ev_now(demo.loop) - demo.start, demo.plain);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

static void fault(const char *what, const char *id)
{
    line("%sFAULT: %s: %s%s", demo.bold, id, what, demo.plain);
    demo.faults++;
}

static void must(int err, const char *what)
{
    if (err) {
        fprintf(stderr, "demo: %s: %s\n", what, lapse_strerror(err));
        exit(1);
    }
}

static void on_log(int level, const char *text, void *arg)
{
    (void)level;
    (void)arg;
    fprintf(stderr, "demo: %s\n", text);
}

static unsigned number(const char *id)
{
    unsigned n = (unsigned)strtoul(id + strlen("order-"), NULL, 10);
    return n >= 1 && n <= ORDERS ? n : 0;
}

/* ---- the end ---- */
static unsigned expected(unsigned order)
{
    return order == PAID ? 0 : order == FAILING ? 2 : 1;
}

static void on_closed(void *arg)
{
    (void)arg;
    ev_timer_stop(demo.loop, &demo.deadline);
}

static void count(struct lapse *l, int err, const struct lapse_depth *d, void *arg)
{
    struct lapse_stats s;

    (void)arg;
    must(err, "counting");

    for (unsigned i = 1; i <= ORDERS; i++) {
        if (demo.runs[i] != expected(i)) {
            char id[16];
            snprintf(id, sizeof id, "order-%u", i);
            fault(demo.runs[i] < expected(i) ? "it did not run" : "it ran too often", id);
        }
    }

    if (d->waiting || d->running || d->dead) {
        fault("jobs are left in Redis", "orders");
    }

    lapse_stats(l, &s, sizeof s);
    printf("\n%sStatistics%s\n", demo.bold, demo.plain);
#define LAPSE_X(name, text) \
    printf("  %-11s %6" PRIu64 "  %s%s%s\n", #name, s.name, demo.dim, text, demo.plain);

    LAPSE_STATS(LAPSE_X)
#undef LAPSE_X
    if (demo.faults) {
        printf("\n%s%u faults%s\n", demo.bold, demo.faults, demo.plain);
    } else {
        printf(
            "\nEvery order was handled as it had to be: none missing, none twice, none early.\n");
    }

    lapse_close(l, 1000, on_closed, NULL);
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)timer;
    (void)events;
    must(lapse_depth(demo.l, "orders", count, NULL), "counting");
}

static void on_settled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    unsigned all = 0;

    (void)job;
    (void)arg;
    must(err, "settling");
    for (unsigned i = 1; i <= ORDERS; i++) {
        all += expected(i);
    }

    if (++demo.settled == all) {
        must(lapse_depth(l, "orders", count, NULL), "counting");
    }
}

/* ---- an order times out ---- */
static void on_timeout(struct lapse *l, struct lapse_job *job, void *arg)
{
    static const char *const via[] = {"", "event", "notice", "alarm", "sweep"};
    const char *id = lapse_job_id(job);
    const char *what = "not paid: cancelled";
    unsigned n = number(id);
    int64_t late_us = lapse_job_claimed_us(job) - lapse_job_due_ms(job) * 1000;
    time_t due = (time_t)(lapse_job_due_ms(job) / 1000);
    char clock[16];

    (void)l;
    (void)arg;
    strftime(clock, sizeof clock, "%H:%M:%S", gmtime(&due));
    demo.runs[n]++;

    if (n == PROLONGED) {
        what = "not paid, the longer time is over too: cancelled";
    } else if (n == FAILING) {
        what = lapse_job_try(job) == 1 ? "the handler fails; once more, by its backoff"
                                       : "the second try: cancelled";
    } else if (n == SILENT) {
        what = lapse_job_via(job) == LAPSE_VIA_SWEEP
                   ? "no event ever came: the sweep found it"
                   : "no event ever came: our own alarm found it overdue";
    }

    line("%s%-8s%s due %s.%03d  late %8.3f ms  by %-5s  %s", demo.bold, id, demo.plain, clock,
         (int)(lapse_job_due_ms(job) % 1000), (double)late_us / 1000, via[lapse_job_via(job)],
         what);
    if (late_us < 0 || (lapse_job_try(job) == 1 && lapse_job_due_ms(job) != demo.due_ms[n])) {
        fault("it ran early", id);
    }

    if (n == SILENT && lapse_job_via(job) != LAPSE_VIA_ALARM &&
        lapse_job_via(job) != LAPSE_VIA_SWEEP) {
        fault("an event came all the same", id);
    }

    if (n == FAILING && lapse_job_try(job) == 1) {
        lapse_retry(job, LAPSE_BACKOFF, "the demo wants it to fail", on_settled, NULL);
    } else {
        lapse_done(job, on_settled, NULL);
    }
}

/* ---- scenes ---- */
static void on_paid(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)job;
    (void)arg;
    must(err, "paying");
    line("%sorder-%d%s  is paid: its job is cancelled and will never run", demo.bold, PAID,
         demo.plain);
}

static void on_prolonged(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)arg;
    must(err, "prolonging");
    demo.due_ms[PROLONGED] = lapse_job_due_ms(job);
    line("%sorder-%d%s  is prolonged: its job is rescheduled, %d s from now", demo.bold, PROLONGED,
         demo.plain, LONGER_MS / 1000);
}

/* What an eviction, a crash or a lost packet does: the hint is gone, the job is not. */
static void lose_trigger(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    char text[64];
    char answer[16] = "";
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int len = snprintf(text, sizeof text, "DEL lapse:{orders}:t:order-%d\r\n", SILENT);

    strncpy(to.sun_path, demo.socket, sizeof to.sun_path - 1);

    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) ||
        write(fd, text, (size_t)len) != len || read(fd, answer, sizeof answer - 1) < 2 ||
        strncmp(answer, ":1", 2)) {
        fault("its trigger could not be deleted", "order-9");
    }

    close(fd);
    line("%sorder-%d%s  loses its trigger key: Redis will not announce it", demo.bold, SILENT,
         demo.plain);
}

static void on_scene(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    if (timer == &demo.scenes[0]) {
        must(lapse_cancel(demo.l, "orders", "order-6", 0, on_paid, NULL), "paying");
    } else if (timer == &demo.scenes[1]) {
        must(lapse_reschedule(demo.l, "orders", "order-7", lapse_in(LONGER_MS), 0, on_prolonged,
                              NULL),
             "prolonging");
    } else {
        lose_trigger();
    }
}

static void on_placed(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)arg;
    must(err, "placing");
    demo.due_ms[number(lapse_job_id(job))] = lapse_job_due_ms(job);
    if (number(lapse_job_id(job)) == ORDERS) {
        line("%d orders are placed, each with a job that is due when its time to pay is over",
             ORDERS);
    }
}

static void play(void)
{
    for (unsigned i = 1; i <= ORDERS; i++) {
        struct lapse_spec spec = lapse_spec_init();
        char id[16];
        snprintf(id, sizeof id, "order-%u", i);
        spec.queue = "orders";
        spec.id = id;
        spec.due = lapse_in(FIRST_MS + (int64_t)i * STEP_MS);
        must(lapse_schedule(demo.l, &spec, on_placed, NULL), "placing");
    }

    for (int i = 0; i < 3; i++) {
        ev_timer_init(&demo.scenes[i], on_scene, 0.6 + 0.6 * i, 0);
        ev_timer_start(demo.loop, &demo.scenes[i]);
    }

    ev_timer_init(&demo.deadline, on_deadline, DEADLINE_MS / 1000.0, 0);
    ev_timer_start(demo.loop, &demo.deadline);
}

int main(int argc, char **argv)
{
    struct lapse_options options = lapse_options_init();
    int tty = isatty(1);

    if (argc != 2 || strncmp(argv[1], "unix://", 7) != 0) {
        fprintf(stderr, "usage: demo unix:///path/of/a/redis.sock\n");
        return 2;
    }

    demo.bold = tty ? "\033[1m" : "";
    demo.dim = tty ? "\033[2m" : "";
    demo.plain = tty ? "\033[0m" : "";
    demo.socket = argv[1] + 7;
    demo.loop = EV_DEFAULT;
    demo.start = ev_now(demo.loop);
    options.url = argv[1];
    options.log = on_log;
    must(lapse_open(&demo.l, demo.loop, &options), "opening");
    must(lapse_listen(demo.l, "orders", NULL, on_timeout, NULL), "listening");
    printf("%slapse demo%s: orders that are not paid in time are cancelled, to the millisecond\n"
           "late is by Redis's clock, from the moment a job is due to the moment a listener has "
           "it\n\n",
           demo.bold, demo.plain);
    play();
    ev_run(demo.loop, 0);

    return demo.faults != 0;
}
