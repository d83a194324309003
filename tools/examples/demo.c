/* SPDX-License-Identifier: MIT */
/* The story that `make demo` tells, on the Redis whose URL is given (tools/build/demo.sh starts a
 * private one). Nine orders wait for their payment: five time out, one is paid, one gets more time,
 * the handler of one fails at first, and one loses its trigger key, so that Redis never announces
 * it. At the end everything is counted: a job that is missing, runs twice or runs early by Redis's
 * clock is exit status 1. To learn the library, read the other examples instead. */
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

enum { ORDERS = 9, PAID = 6, EXTENDED = 7, FAILING = 8, SILENT = 9 };
enum { FIRST_MS = 2500, STEP_MS = 250, EXTENDED_MS = 4000, DEADLINE_MS = 12000 };

static struct {
    struct ev_loop *loop;
    struct lapse *l;
    const char *socket; /* its path, to delete a key behind lapse's back */
    ev_tstamp start;
    unsigned n_runs[ORDERS + 1]; /* by order; 0 is not used */
    int64_t due_ms[ORDERS + 1];
    unsigned n_settled, n_faults;
    const char *bold, *dim, *plain;
    ev_timer scenes[3], deadline;
} demo;

/* ---- printing ---- */
static void print_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void print_line(const char *format, ...)
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

static void print_fault(const char *what, const char *id)
{
    print_line("%sFAULT: %s: %s%s", demo.bold, id, what, demo.plain);
    demo.n_faults++;
}

static void check(int err, const char *what)
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

static unsigned order_number(const char *id)
{
    unsigned n = (unsigned)strtoul(id + strlen("order-"), NULL, 10);

    return n >= 1 && n <= ORDERS ? n : 0;
}

/* ---- the end ---- */
static unsigned expected_runs(unsigned order)
{
    if (order == PAID) {
        return 0;
    }
    return order == FAILING ? 2 : 1;
}

static void on_closed(void *arg)
{
    (void)arg;
    ev_timer_stop(demo.loop, &demo.deadline);
}

static void check_runs(void)
{
    for (unsigned i = 1; i <= ORDERS; i++) {
        char id[16];

        snprintf(id, sizeof id, "order-%u", i);
        if (demo.n_runs[i] < expected_runs(i)) {
            print_fault("it did not run", id);
        } else if (demo.n_runs[i] > expected_runs(i)) {
            print_fault("it ran too often", id);
        }
    }
}

static void print_statistics(const struct lapse *l)
{
    struct lapse_stats s;

    lapse_stats(l, &s, sizeof s);
    printf("\n%sStatistics%s\n", demo.bold, demo.plain);

#define LAPSE_X(name, text) \
    printf("  %-14s %6" PRIu64 "  %s%s%s\n", #name, s.name, demo.dim, text, demo.plain);
    LAPSE_STATS(LAPSE_X)
#undef LAPSE_X
}

static void on_counted(struct lapse *l, int err, const struct lapse_depth *d, void *arg)
{
    (void)arg;
    check(err, "counting");
    check_runs();
    if (d->waiting || d->running || d->dead) {
        print_fault("jobs are left in Redis", "orders");
    }

    print_statistics(l);
    if (demo.n_faults) {
        printf("\n%s%u faults%s\n", demo.bold, demo.n_faults, demo.plain);
    } else {
        printf("\nEvery order was handled correctly: none missing, none twice, none early.\n");
    }

    lapse_close(l, 1000, on_closed, NULL);
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)timer;
    (void)events;
    check(lapse_depth(demo.l, "orders", on_counted, NULL), "counting");
}

static void on_settled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    unsigned n_all = 0;

    (void)job;
    (void)arg;
    check(err, "settling");

    for (unsigned i = 1; i <= ORDERS; i++) {
        n_all += expected_runs(i);
    }

    if (++demo.n_settled == n_all) {
        check(lapse_depth(l, "orders", on_counted, NULL), "counting");
    }
}

/* ---- an order times out ---- */
static const char *what_happens(const struct lapse_job *job)
{
    switch (order_number(lapse_job_id(job))) {
    case EXTENDED: return "not paid in the longer time either: cancelled";
    case FAILING:
        return lapse_job_try(job) == 1 ? "the handler fails; retried after its backoff"
                                       : "the second try: cancelled";
    case SILENT:
        return lapse_job_via(job) == LAPSE_VIA_SWEEP ? "no event came: the sweep found it"
                                                     : "no event came: the alarm found it overdue";
    default: return "not paid: cancelled";
    }
}

static void print_timeout(const struct lapse_job *job, int64_t late_us)
{
    static const char *const via[] = {[LAPSE_VIA_EVENT] = "event",
                                      [LAPSE_VIA_NOTICE] = "notice",
                                      [LAPSE_VIA_ALARM] = "alarm",
                                      [LAPSE_VIA_SWEEP] = "sweep",
                                      [LAPSE_VIA_TOUCH] = "touch"};
    int64_t due_ms = lapse_job_due_ms(job);
    time_t due = (time_t)(due_ms / 1000);
    char clock[16];

    strftime(clock, sizeof clock, "%H:%M:%S", gmtime(&due));
    print_line("%s%-8s%s due %s.%03d  late %8.3f ms  by %-6s  %s", demo.bold, lapse_job_id(job),
               demo.plain, clock, (int)(due_ms % 1000), (double)late_us / 1000,
               via[lapse_job_via(job)], what_happens(job));
}

static void on_timeout(struct lapse *l, struct lapse_job *job, void *arg)
{
    const char *id = lapse_job_id(job);
    enum lapse_via via = lapse_job_via(job);
    unsigned n = order_number(id);
    int64_t late_us = lapse_job_claimed_us(job) - lapse_job_due_ms(job) * 1000;

    (void)l;
    (void)arg;
    demo.n_runs[n]++;
    print_timeout(job, late_us);

    if (late_us < 0 || (lapse_job_try(job) == 1 && lapse_job_due_ms(job) != demo.due_ms[n])) {
        print_fault("it ran early", id);
    }
    if (n == SILENT && via != LAPSE_VIA_ALARM && via != LAPSE_VIA_SWEEP) {
        print_fault("an event came all the same", id);
    }

    if (n == FAILING && lapse_job_try(job) == 1) {
        lapse_retry(job, LAPSE_BACKOFF, "the demo makes it fail", on_settled, NULL);
    } else {
        lapse_done(job, on_settled, NULL);
    }
}

/* ---- what happens meanwhile ---- */
static void on_paid(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)job;
    (void)arg;
    check(err, "paying");
    print_line("%sorder-%d%s  is paid: its job is cancelled and will never run", demo.bold, PAID,
               demo.plain);
}

static void on_extended(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)arg;
    check(err, "extending");
    demo.due_ms[EXTENDED] = lapse_job_due_ms(job);
    print_line("%sorder-%d%s  gets more time: its job is rescheduled, %d s from now", demo.bold,
               EXTENDED, demo.plain, EXTENDED_MS / 1000);
}

/* As an eviction, a crash or a lost packet does it: the hint is gone, the job is not. */
static void delete_trigger(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    char text[64];
    char answer[16] = "";
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int len = snprintf(text, sizeof text, "DEL lapse:{orders}:t:order-%d\r\n", SILENT);

    strncpy(to.sun_path, demo.socket, sizeof to.sun_path - 1);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) ||
        write(fd, text, (size_t)len) != len || read(fd, answer, sizeof answer - 1) < 2 ||
        strncmp(answer, ":1", 2) != 0) {
        print_fault("its trigger could not be deleted", "order-9");
    }
    close(fd);

    print_line("%sorder-%d%s  loses its trigger key: Redis will not announce it", demo.bold, SILENT,
               demo.plain);
}

static void on_scene(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    if (timer == &demo.scenes[0]) {
        check(lapse_cancel(demo.l, "orders", "order-6", 0, on_paid, NULL), "paying");
    } else if (timer == &demo.scenes[1]) {
        check(lapse_reschedule(demo.l, "orders", "order-7", lapse_in(EXTENDED_MS), 0, on_extended,
                               NULL),
              "extending");
    } else {
        delete_trigger();
    }
}

/* ---- the start ---- */
static void on_placed(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    unsigned n;

    (void)l;
    (void)arg;
    check(err, "placing");
    n = order_number(lapse_job_id(job));
    demo.due_ms[n] = lapse_job_due_ms(job);
    if (n == ORDERS) {
        print_line("%d orders are placed, each with a job that is due when its time to pay is over",
                   ORDERS);
    }
}

static void place_orders(void)
{
    for (unsigned i = 1; i <= ORDERS; i++) {
        struct lapse_spec spec = lapse_spec_init();
        char id[16];

        snprintf(id, sizeof id, "order-%u", i);
        spec.queue = "orders";
        spec.id = id;
        spec.due = lapse_in(FIRST_MS + (int64_t)i * STEP_MS);
        check(lapse_schedule(demo.l, &spec, on_placed, NULL), "placing");
    }
}

static void start_timers(void)
{
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
    const char *url = argc > 1 ? argv[1] : getenv("LAPSE_URL");
    int tty = isatty(1);

    if (!url || strncmp(url, "unix://", 7) != 0) {
        fprintf(stderr, "usage: demo unix:///path/of/a/redis.sock (or LAPSE_URL)\n");
        return 2;
    }

    demo.bold = tty ? "\033[1m" : "";
    demo.dim = tty ? "\033[2m" : "";
    demo.plain = tty ? "\033[0m" : "";
    demo.socket = url + strlen("unix://");
    demo.loop = EV_DEFAULT;
    demo.start = ev_now(demo.loop);
    options.url = url;
    options.log = on_log;
    check(lapse_open(&demo.l, demo.loop, &options), "opening");
    check(lapse_listen(demo.l, "orders", NULL, on_timeout, NULL), "listening");

    printf("%slapse demo%s: orders that are not paid in time are cancelled, to the millisecond\n"
           "late: from the moment a job is due to the moment a listener has it, by Redis's clock\n"
           "\n",
           demo.bold, demo.plain);
    place_orders();
    start_timers();
    ev_run(demo.loop, 0);

    return demo.n_faults != 0;
}
