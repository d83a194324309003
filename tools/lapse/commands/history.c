/* SPDX-License-Identifier: MIT */
/* lapse history. */
#include "cli/arguments.h"
#include "cli/json.h"
#include "cli/message.h"
#include "cli/print.h"
#include "cli/values.h"
#include "client/oneshot.h"
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { HOUR_MS = 3600000, DAY_MS = 24 * HOUR_MS, DAYS_MAX = 366, HOURS_UP_TO = 3 };
enum { NOT_GIVEN = -1 };

struct history_command {
    struct oneshot once; /* first: send() gets this */
    unsigned days;       /* 0: not given */
    int64_t step_ms;     /* 0: of all time */
    bool all;
};

/* ---- as JSON ---- */
static void json_quantiles(struct json *j, const char *const names[3],
                           const struct lapse_histogram *h)
{
    json_ms(j, names[0], (int64_t)lapse_quantile_us(h, 0.5));
    json_ms(j, names[1], (int64_t)lapse_quantile_us(h, 0.99));
    json_ms(j, names[2], (int64_t)h->max_us);
}

static void json_late(struct json *j, const struct lapse_past *p)
{
    static const char *const names[3] = {"p50_ms", "p99_ms", "max_ms"};
    bool is_first = true;

    json_list_open(j, "late");
    for (int via = LAPSE_VIA_EVENT; via <= LAPSE_VIA_ASKED; via++) {
        const struct lapse_histogram *h = &p->late[via];
        if (h->n) {
            json_item_open(j, is_first);
            json_text(j, "via", via_name((enum lapse_via)via));
            json_int(j, "claimed", (int64_t)h->n);
            json_quantiles(j, names, h);
            json_close(j);
            is_first = false;
        }
    }
    json_list_close(j);
}

static void print_row_as_json(const char *queue, const struct lapse_past *p)
{
    static const char *const late[3] = {"late_p50_ms", "late_p99_ms", "late_max_ms"};
    static const char *const run[3] = {"run_p50_ms", "run_p99_ms", "run_max_ms"};
    struct json j;

    json_begin(&j, stdout);
    json_text(&j, "queue", queue);
    json_int(&j, "from_ms", p->from_ms);
    json_int(&j, "to_ms", p->to_ms);
    json_int(&j, "scheduled", (int64_t)p->scheduled);
    json_int(&j, "claimed", (int64_t)p->claimed);
    json_int(&j, "done", (int64_t)p->done);
    json_int(&j, "retried", (int64_t)p->retried);
    json_int(&j, "dead", (int64_t)p->dead);
    json_int(&j, "cancelled", (int64_t)p->cancelled);
    json_int(&j, "skipped", (int64_t)p->skipped);
    json_int(&j, "forwarded", (int64_t)p->forwarded);
    json_int(&j, "gone", (int64_t)p->gone);
    json_int(&j, "recovered", (int64_t)p->recovered);
    json_quantiles(&j, late, &p->late[0]);
    json_quantiles(&j, run, &p->run);
    json_late(&j, p);
    json_end(&j);
}

/* ---- as text ---- */
static void print_row_as_text(const struct lapse_past *p)
{
    time_t from = (time_t)(p->from_ms / 1000);
    struct tm tm;
    char text[32] = "-";

    if (p->from_ms && gmtime_r(&from, &tm)) {
        strftime(text, sizeof text, "%Y-%m-%d %H:%MZ", &tm);
    }

    printf("%-17s  %9" PRIu64 "  %9" PRIu64 "  %9" PRIu64 "  %9" PRIu64 "  %9" PRIu64, text,
           p->scheduled, p->claimed, p->done, p->retried, p->dead);
    for (int via = LAPSE_VIA_EVENT; via <= LAPSE_VIA_ASKED; via++) {
        const struct lapse_histogram *h = &p->late[via];
        if (h->n) {
            printf("  %s %g/%g/%g", via_name((enum lapse_via)via),
                   (double)lapse_quantile_us(h, 0.5) / 1000,
                   (double)lapse_quantile_us(h, 0.99) / 1000, (double)h->max_us / 1000);
        }
    }
    putchar('\n');
}

/* The claimed jobs of all rows, as high as they are many. */
static void print_sparkline(const struct lapse_past *const *rows, size_t n)
{
    static const char *const blocks[] = {"\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83",
                                         "\xe2\x96\x84", "\xe2\x96\x85", "\xe2\x96\x86",
                                         "\xe2\x96\x87", "\xe2\x96\x88"};
    uint64_t most = 0;

    for (size_t i = 0; i < n; i++) {
        most = rows[i]->claimed > most ? rows[i]->claimed : most;
    }

    fputs("claimed ", stdout);
    for (size_t i = 0; i < n; i++) {
        double part = (double)rows[i]->claimed / (double)most;
        fputs(rows[i]->claimed ? blocks[(int)(part * 7)] : " ", stdout);
    }
    printf(" at most %" PRIu64 "\n", most);
}

static void print_rows(const struct history_command *c, const struct lapse_past *const *rows,
                       size_t n)
{
    bool is_text = c->once.g->text;

    if (is_text) {
        printf("%-17s  %9s  %9s  %9s  %9s  %9s  %s\n", "FROM", "SCHEDULED", "CLAIMED", "DONE",
               "RETRIED", "DEAD", "LATE p50/p99/max, ms");
    }
    for (size_t i = 0; i < n; i++) {
        if (is_text) {
            print_row_as_text(rows[i]);
        } else {
            print_row_as_json(c->once.queue, rows[i]);
        }
    }
    if (is_text && n > 1 && isatty(STDOUT_FILENO)) {
        print_sparkline(rows, n);
    }
}

/* ---- the command ---- */
static void on_history_reply(struct lapse *l, int err, const struct lapse_past *const *rows,
                             size_t n, void *arg)
{
    struct history_command *command = arg;

    (void)l;
    if (oneshot_replied(&command->once, err, command->once.queue, NULL)) {
        print_rows(command, rows, n);
    }
}

/* The last step is the one in which we are, by the clock of this machine. */
static int history_send(struct oneshot *o)
{
    struct history_command *command = (struct history_command *)o;
    int64_t step_ms = command->step_ms;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    int64_t end_ms = step_ms ? ((int64_t)now.tv_sec * 1000 / step_ms + 1) * step_ms : 0;
    int64_t from_ms = step_ms ? end_ms - (int64_t)command->days * DAY_MS : 0;

    return oneshot_sent(
        o, lapse_history(o->c.l, o->queue, from_ms, end_ms, step_ms, on_history_reply, command));
}

static int check_step(const struct history_command *c)
{
    int64_t step_ms = c->step_ms;

    if (step_ms < LAPSE_STEP_MIN_MS || step_ms % LAPSE_STEP_MIN_MS || step_ms > DAY_MS ||
        DAY_MS % step_ms) {
        return usage_errorf("--step is a part of a day, in whole minutes, such as 10m");
    }
    if (c->days * (DAY_MS / step_ms) > LAPSE_STEPS_MAX) {
        return usage_errorf("these are over %d steps; take a longer --step, or fewer --days",
                            LAPSE_STEPS_MAX);
    }
    return 0;
}

/* Which time is shown, by which steps. */
static int history_choose(struct history_command *c)
{
    if (c->all && (c->days || c->step_ms != NOT_GIVEN)) {
        return usage_errorf("--all is used without --days and --step");
    }
    if (c->all) {
        c->step_ms = 0;
        return 0;
    }
    if (c->days > DAYS_MAX) {
        return usage_errorf("--days is at most %d", DAYS_MAX);
    }

    if (c->days == 0) {
        c->days = 1;
    }
    if (c->step_ms == NOT_GIVEN) {
        c->step_ms = c->days <= HOURS_UP_TO ? HOUR_MS : DAY_MS;
    }
    return check_step(c);
}

static int history_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct history_command command = {.step_ms = NOT_GIVEN};
    int rc = arguments_read(cmd, g, &command, args);

    if (rc || check_queue(args->v[0])) {
        return USAGE;
    }
    if (history_choose(&command)) {
        return USAGE;
    }

    command.once.queue = args->v[0];
    return oneshot_run(&command.once, g, history_send);
}

static const struct opt history_options[] = {
    {"days", 0, "N", set_count, offsetof(struct history_command, days),
     "the last N days, up to 366; default: 1"},
    {"step", 0, "TIME", set_duration, offsetof(struct history_command, step_ms),
     "a line for each TIME, such as 10m; default: 1h for up to 3 days, else 1d"},
    {"all", 0, NULL, set_switch, offsetof(struct history_command, all),
     "one line, of all that was ever counted"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

const struct command cmd_history = {
    .name = "history",
    .usage = "QUEUE ([--days N] [--step TIME] | --all)",
    .summary = "show what has happened in a queue, and how late its jobs were",
    .min = 1,
    .max = 1,
    .opts = history_options,
    .text =
        "Prints one JSON object per step of time, the oldest first: queue, from_ms, to_ms; how\n"
        "many jobs were scheduled, claimed, done, retried, dead, cancelled, skipped and\n"
        "forwarded, how many settles were gone (too late), how many jobs were recovered from\n"
        "ended leases; late_p50_ms, late_p99_ms, late_max_ms of the lateness, and\n"
        "run_... of how long jobs were held; and late, the same by what made a process\n"
        "claim the jobs (via). Quantiles are exact to a bucket, 1-2-5. As text on a terminal\n"
        "the last line draws how many were claimed.\n"
        "\n"
        "Each process sends what it has counted every 10 s (with more than 1,000 queues more\n"
        "rarely, up to once a minute) and at its end; one that crashes loses what it has not\n"
        "sent. Redis keeps an hour by minutes, a day by ten minutes, two weeks by hours, and\n"
        "the setting history_days by days, in UTC. What is kept by the hour or the day is in\n"
        "the line in which that begins, whole.\n"
        "\n"
        "examples:\n"
        "  lapse history orders\n"
        "  lapse history orders --days 30 --format text\n"
        "  lapse history orders --step 10m | jq -r '[.from_ms, .late_p99_ms] | @tsv'\n",
    .run = history_run,
};
