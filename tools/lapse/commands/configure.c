/* SPDX-License-Identifier: MIT */
/* lapse configure, lapse pause, lapse unpause: the settings of a queue. */
#include "base/span.h"
#include "cli/arguments.h"
#include "cli/json.h"
#include "cli/message.h"
#include "cli/print.h"
#include "cli/values.h"
#include "client/oneshot.h"
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { CHANGES_BYTES = 4096 };

struct configure_command {
    struct oneshot once; /* first: send() gets this */
    char changes[CHANGES_BYTES];
    int64_t for_ms; /* of a pause; 0: until it is taken away */
    void (*print)(const struct globals *g, const char *queue, const char *settings);
};

static const char advice[] = "the settings may have been changed; repeat the command";

static void on_configure_reply(struct lapse *l, int err, const char *text, void *arg)
{
    struct configure_command *configure = arg;
    struct oneshot *o = &configure->once;

    (void)l;
    if (err == LAPSE_EINVAL && text) {
        usage_errorf("%s: %s", o->queue, printable(text));
        client_set_exit_code(&o->c, USAGE);
        oneshot_ended(o);
    } else if (oneshot_replied(o, err, o->queue, NULL)) {
        configure->print(o->g, o->queue, text);
    }
}

static int configure_send(struct oneshot *o)
{
    struct configure_command *configure = (struct configure_command *)o;
    int err = lapse_configure(o->c.l, o->queue, configure->changes, on_configure_reply, configure);

    return oneshot_sent(o, err);
}

/* ---- configure ---- */
static int add_change(char *changes, const char *word)
{
    size_t used = strlen(changes);

    if (!strchr(word, '=') || strchr(word, ' ')) {
        return usage_error("setting", word, "must be NAME=VALUE, without spaces");
    }
    if (used + strlen(word) + 2 > CHANGES_BYTES) {
        return usage_errorf("the settings are longer than %d bytes", CHANGES_BYTES);
    }

    snprintf(changes + used, CHANGES_BYTES - used, "%s%s", used ? " " : "", word);
    return 0;
}

static int configure_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct configure_command configure = {.print = print_settings};
    int rc = arguments_read(cmd, g, &configure, args);

    if (!rc) {
        rc = check_queue(args->v[0]);
    }
    for (int i = 1; !rc && i < args->n; i++) {
        rc = add_change(configure.changes, args->v[i]);
    }
    if (rc) {
        return rc;
    }

    configure.once.queue = args->v[0];
    configure.once.c.unknown_advice = *configure.changes ? advice : NULL;

    return oneshot_run(&configure.once, g, configure_send);
}

const struct command cmd_configure = {
    .name = "configure",
    .usage = "QUEUE [NAME=VALUE...]",
    .summary = "show or change the settings of a queue",
    .min = 1,
    .max = INT_MAX,
    .text = "Changes settings of a queue, all that are named or none, and prints one JSON\n"
            "object: queue, and each setting that has not its default. Redis keeps them, and\n"
            "all listeners of the queue obey at once. NAME= sets the default again.\n"
            "\n"
            "settings:\n"
            "  paused=MS      no job is claimed until then, Unix time in ms, or +MS from now;\n"
            "                 lapse pause and lapse unpause set it\n"
            "  max_running=N  at most N jobs run, of all listeners together; the others wait\n"
            "  rate=N/D       at most N jobs start in any time of D, of all listeners together:\n"
            "                 100/1s; D is 1ms to 1d\n"
            "  dead_max=N     of more dead jobs the oldest are freed; 0 frees all\n"
            "  dead_keep=D    dead jobs are freed so long after their death: 90s 30m 12h 7d.\n"
            "                 Without these two they stay. Listeners free them every sweep_ms\n"
            "                 while jobs of the queue wait or run\n"
            "  history_days=N lapse history knows N days, 0 to 366; 90. 0 turns it off\n"
            "\n"
            "examples:\n"
            "  lapse configure orders\n"
            "  lapse configure orders paused=+60000\n"
            "  lapse configure orders paused=\n"
            "  lapse configure orders rate=100/1s max_running=8\n"
            "  lapse configure orders dead_keep=7d dead_max=100000\n",
    .run = configure_run,
};

/* ---- pause, unpause ---- */
static int set_for(const struct opt *o, char *value, void *field)
{
    int rc = set_duration(o, value, field);

    if (!rc && *(int64_t *)field == 0) {
        return usage_error("--for", value, "must be at least 1ms");
    }
    return rc;
}

struct pause_command {
    struct oneshot once;
    const char *id;
    bool is_paused; /* from now on */
};

static void on_series_paused(struct lapse *l, int err, const char *text, void *arg)
{
    struct pause_command *p = arg;
    struct oneshot *o = &p->once;
    struct json j;

    (void)l;
    (void)text;
    if (err == LAPSE_EINVAL) {
        usage_errorf("%s is no series; without an id the whole queue is paused", printable(p->id));
        client_set_exit_code(&o->c, USAGE);
        oneshot_ended(o);
    } else if (!oneshot_replied(o, err, o->queue, p->id)) {
        return;
    } else if (o->g->text) {
        puts(p->is_paused ? "paused" : "not paused");
    } else {
        json_begin(&j, stdout);
        json_text(&j, "queue", o->queue);
        json_text(&j, "id", p->id);
        json_bool(&j, "paused", p->is_paused);
        json_end(&j);
    }
}

static int pause_send(struct oneshot *o)
{
    struct pause_command *p = (struct pause_command *)o;
    int err = p->is_paused ? lapse_pause(o->c.l, o->queue, p->id, 0, on_series_paused, p)
                           : lapse_unpause(o->c.l, o->queue, p->id, on_series_paused, p);

    return oneshot_sent(o, err);
}

/* The arguments are a queue, and the id of a series in it. */
static int pause_series(const struct arguments *args, struct globals *g, bool is_paused)
{
    struct pause_command p = {.once.queue = args->v[0], .id = args->v[1], .is_paused = is_paused};

    p.once.c.unknown_advice = "it may have been done; repeat the command";
    if (check_queue(args->v[0]) || check_id(args->v[1])) {
        return USAGE;
    }
    return oneshot_run(&p.once, g, pause_send);
}

static const struct opt pause_options[] = {
    {"for", 0, "DURATION", set_for, offsetof(struct configure_command, for_ms),
     "so long: 90s 30m 1h30m; otherwise until lapse unpause"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

static int pause_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct configure_command pause = {.print = print_pause};
    int rc = arguments_read(cmd, g, &pause, args);

    if (!rc) {
        rc = check_queue(args->v[0]);
    }
    if (rc) {
        return rc;
    }

    if (args->n == 2 && pause.for_ms) {
        return usage_errorf("--for is of a queue; a series is paused until lapse unpause");
    }
    if (args->n == 2) {
        return pause_series(args, g, true);
    }

    if (pause.for_ms > 0) {
        snprintf(pause.changes, sizeof pause.changes, "paused=+%" PRId64, pause.for_ms);
    } else {
        snprintf(pause.changes, sizeof pause.changes, "paused=%" PRId64, EXACT_MAX);
    }
    pause.once.queue = args->v[0];
    pause.once.c.unknown_advice = advice;

    return oneshot_run(&pause.once, g, configure_send);
}

const struct command cmd_pause = {
    .name = "pause",
    .usage = "QUEUE [ID | --for DURATION]",
    .summary = "keep the jobs of a queue waiting, or a series from making any",
    .min = 1,
    .max = 2,
    .opts = pause_options,
    .text = "No listener claims a job of the queue, until lapse unpause or for so long. Jobs\n"
            "may be scheduled, cancelled and rescheduled, due ones wait, and those that run,\n"
            "run on. Prints the settings of the queue, as lapse configure does.\n"
            "\n"
            "With the ID of a series its moments pass, and make no job, until lapse unpause;\n"
            "the jobs that it has made run on. Prints queue, id and paused.\n"
            "\n"
            "examples:\n"
            "  lapse pause orders\n"
            "  lapse pause reports daily\n"
            "  lapse pause orders --for 15m\n",
    .run = pause_run,
};

static int unpause_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct configure_command unpause = {.print = print_pause, .changes = "paused="};
    int rc = arguments_read(cmd, g, &unpause, args);

    if (!rc) {
        rc = check_queue(args->v[0]);
    }
    if (rc) {
        return rc;
    }

    if (args->n == 2) {
        return pause_series(args, g, false);
    }

    unpause.once.queue = args->v[0];
    unpause.once.c.unknown_advice = advice;

    return oneshot_run(&unpause.once, g, configure_send);
}

const struct command cmd_unpause = {
    .name = "unpause",
    .usage = "QUEUE [ID]",
    .summary = "end the pause of a queue: listeners claim what is due, at once; or of a series",
    .min = 1,
    .max = 2,
    .text = "Ends a pause of the queue, if there is one. Prints the settings of the queue, as\n"
            "lapse configure does. With the ID of a series: ends that of the series.\n"
            "\n"
            "examples:\n"
            "  lapse unpause orders\n"
            "  lapse unpause reports daily\n",
    .run = unpause_run,
};
