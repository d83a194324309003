/* SPDX-License-Identifier: MIT */
/* lapse forward: sets the target of a queue, and serves it until it is stopped. Redis moves the
 * jobs; this process only asks at the right moment. */
#include "cli/arguments.h"
#include "cli/message.h"
#include "cli/print.h"
#include "cli/values.h"
#include "client/oneshot.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    TARGET_BYTES = 300,
    GROUPS_BYTES = 1025,
    CHANGES_BYTES = 2048,
    TICK_MS = 50,
    GRACE_MS = 1000
};

struct forward_command {
    struct oneshot once; /* first: send() gets this */

    bool to_stream;
    bool to_list;
    bool off;
    bool drain;
    const char *key;
    const char *element;
    char groups[GROUPS_BYTES];
    unsigned max;
    char changes[CHANGES_BYTES];

    bool watches;       /* the signals */
    int64_t started_ms; /* monotonic */
    int64_t asked_ms;
    bool asking; /* for the depth */
    ev_signal term, interrupt, hangup;
    ev_timer tick;
};

/* ---- the end ---- */
static void forward_stop(struct forward_command *f, int code)
{
    struct ev_loop *loop = f->once.c.loop;

    client_set_exit_code(&f->once.c, code);
    ev_timer_stop(loop, &f->tick);
    ev_signal_stop(loop, &f->term);
    ev_signal_stop(loop, &f->interrupt);
    ev_signal_stop(loop, &f->hangup);
    client_close(&f->once.c, GRACE_MS); /* the other listeners are told */
}

static void on_forward_signal(struct ev_loop *loop, ev_signal *w, int events)
{
    (void)loop;
    (void)events;
    forward_stop(w->data, 0);
}

static void on_forward_told(struct lapse *l, enum lapse_told what, void *arg)
{
    (void)l;
    if (what == LAPSE_TOLD_STOP) {
        forward_stop(arg, 0);
    }
}

/* ---- --drain ---- */
static void on_forward_depth(struct lapse *l, int err, const struct lapse_depth *d, void *arg)
{
    struct forward_command *f = arg;

    (void)l;
    f->asking = false;

    /* late for longer than we have been here: it was due when we came */
    if (!err && (!d->late_ms || d->late_ms < f->asked_ms - f->started_ms)) {
        forward_stop(f, 0);
    }
}

static void on_forward_tick(struct ev_loop *loop, ev_timer *w, int events)
{
    struct forward_command *f = w->data;

    (void)loop;
    (void)events;
    if (f->asking) {
        return;
    }

    f->asked_ms = monotonic_ms();
    f->asking = lapse_depth(f->once.c.l, f->once.queue, on_forward_depth, f) == 0;
}

/* ---- serving ---- */
/* The library goes on trying, and its log says what is wrong. */
static void forward_refused(struct client *c)
{
    (void)c;
}

static void watch_signal(struct forward_command *f, ev_signal *w, int signum)
{
    ev_signal_init(w, on_forward_signal, signum);
    w->data = f;
    ev_signal_start(f->once.c.loop, w);
}

static bool hangup_is_ignored(void)
{
    struct sigaction action;

    return sigaction(SIGHUP, NULL, &action) || action.sa_handler == SIG_IGN;
}

static void watch_signals(struct forward_command *f)
{
    f->watches = true;
    watch_signal(f, &f->term, SIGTERM);
    watch_signal(f, &f->interrupt, SIGINT);
    if (!hangup_is_ignored()) {
        watch_signal(f, &f->hangup, SIGHUP);
    }
}

static void on_forwarding(struct lapse *l, int err, const char *text, void *arg)
{
    struct forward_command *f = arg;
    struct oneshot *o = &f->once;

    (void)l;
    (void)text;
    if (err) {
        oneshot_replied(o, err, o->queue, NULL);
        return;
    }

    f->started_ms = monotonic_ms();
    o->c.one_shot = false;
    o->c.on_refused = forward_refused;
    if (f->drain) {
        ev_timer_init(&f->tick, on_forward_tick, 0, TICK_MS / 1000.0);
        f->tick.data = f;
        ev_timer_start(o->c.loop, &f->tick);
    }
}

static void on_forward_configured(struct lapse *l, int err, const char *text, void *arg)
{
    struct forward_command *f = arg;
    struct oneshot *o = &f->once;

    if (err == LAPSE_EINVAL && text) {
        usage_errorf("%s: %s", o->queue, printable(text));
        client_set_exit_code(&o->c, USAGE);
        oneshot_ended(o);
        return;
    }
    if (!err && !f->off && !strstr(text, "forward=")) {
        usage_errorf("%s: has no target; use --to-stream or --to-list", o->queue);
        client_set_exit_code(&o->c, USAGE);
        oneshot_ended(o);
        return;
    }

    if (!err && !f->off) {
        int wrong = oneshot_sent(o, lapse_forward(l, o->queue, NULL, on_forwarding, f));
        client_set_exit_code(&o->c, client_report(&o->c, wrong, o->queue));
    }
    if (oneshot_replied(o, err, o->queue, NULL)) {
        print_settings(o->g, o->queue, text);
        fflush(stdout);
    }
}

static int forward_send(struct oneshot *o)
{
    struct forward_command *f = (struct forward_command *)o;

    if (!f->watches && !f->off) {
        watch_signals(f);
    }
    lapse_on_told(o->c.l, on_forward_told, f);

    return oneshot_sent(o, lapse_configure(o->c.l, o->queue, f->changes, on_forward_configured, f));
}

/* ---- the command line ---- */
static int set_group(const struct opt *o, char *value, void *field)
{
    char *groups = field;
    size_t used = strlen(groups);

    (void)o;
    if (!*value || strchr(value, ',') || strchr(value, ' ')) {
        return usage_error("--group", value, "must be a name without comma and space");
    }
    if (used + strlen(value) + 2 > GROUPS_BYTES) {
        return usage_errorf("the names of --group are longer than %d bytes", GROUPS_BYTES - 2);
    }

    snprintf(groups + used, GROUPS_BYTES - used, "%s%s", used ? "," : "", value);
    return 0;
}

static const struct opt forward_options[] = {
    {"to-stream", 0, NULL, set_switch, offsetof(struct forward_command, to_stream), "to a stream"},
    {"to-list", 0, NULL, set_switch, offsetof(struct forward_command, to_list), "to a list"},
    {"key", 0, "KEY", set_text, offsetof(struct forward_command, key),
     "of the target, with {QUEUE} as its first hash tag; otherwise a key of lapse"},
    {"group", 0, "GROUP", set_group, offsetof(struct forward_command, groups),
     "make this group of the stream, from its start; may be repeated"},
    {"element", 0, "WHAT", set_text, offsetof(struct forward_command, element),
     "of a list: job (ID DUE_MS TRY TOKEN BODY, the default), body or id"},
    {"max", 0, "N", set_count, offsetof(struct forward_command, max),
     "while the target has so many entries jobs wait"},
    {"drain", 0, NULL, set_switch, offsetof(struct forward_command, drain),
     "stop when all jobs that were due at the start are forwarded"},
    {"off", 0, NULL, set_switch, offsetof(struct forward_command, off),
     "forward no more: listeners run the jobs again"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

static int check_options(const struct forward_command *f)
{
    bool has_target = f->to_stream || f->to_list;
    bool has_more = f->key || *f->groups || f->element || f->max;

    if (f->to_stream && f->to_list) {
        return usage_errorf("--to-stream and --to-list: use only one of them");
    }
    if (f->off && (has_target || has_more || f->drain)) {
        return usage_errorf("--off: takes no other option");
    }
    if (has_more && !has_target) {
        return usage_errorf("missing option --to-stream or --to-list");
    }
    if (*f->groups && !f->to_stream) {
        return usage_error("--group", f->groups, "only with --to-stream");
    }
    if (f->element && !f->to_list) {
        return usage_error("--element", f->element, "only with --to-list");
    }
    if (f->key && (strlen(f->key) >= TARGET_BYTES || strchr(f->key, ' ') || !*f->key)) {
        return usage_error("--key", f->key, "must be at most 255 bytes, without spaces");
    }
    if (f->element && strchr(f->element, ' ')) {
        return usage_error("--element", f->element, "must be job, body or id");
    }

    return 0;
}

static const char *text_or_none(const char *text)
{
    return text ? text : "";
}

/* What is not given gets its default again. */
static void set_changes(struct forward_command *f)
{
    const char *kind = f->to_stream ? "stream" : "list";
    char target[TARGET_BYTES + 8] = "";
    char max[16] = "";

    if (!f->off && !f->to_stream && !f->to_list) {
        return;
    }

    if (!f->off) {
        snprintf(target, sizeof target, "%s:%s", kind, text_or_none(f->key));
    }
    if (f->max) {
        snprintf(max, sizeof max, "%u", f->max);
    }
    snprintf(f->changes, sizeof f->changes,
             "forward=%s forward_max=%s forward_element=%s forward_groups=%s", target, max,
             text_or_none(f->element), f->groups);
}

static int forward_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct forward_command f = {.to_stream = false};
    int rc = arguments_read(cmd, g, &f, args);

    if (!rc) {
        rc = check_queue(args->v[0]);
    }
    if (!rc) {
        rc = check_options(&f);
    }
    if (rc) {
        return rc;
    }

    set_changes(&f);
    f.once.queue = args->v[0];
    f.once.c.unknown_advice = "the settings may have been changed; repeat the command";

    return oneshot_run(&f.once, g, forward_send);
}

const struct command cmd_forward = {
    .name = "forward",
    .usage = "QUEUE [--to-stream | --to-list] [OPTION...] | --off",
    .summary = "move due jobs to a stream or a list of Redis",
    .min = 1,
    .max = 1,
    .opts = forward_options,
    .text = "Moves the jobs of a queue to a stream or a list when they are due, where other\n"
            "programs take them (XREADGROUP, BRPOP). Redis moves them itself, each once: it is\n"
            "a setting of the queue, so every listener of the queue does it, and its handlers\n"
            "are not called. Without a target it serves the one that is set. Prints the\n"
            "settings, and goes on until it is stopped.\n"
            "\n"
            "An entry of a stream has the fields id, due_ms, try, token and body. What all\n"
            "groups have acknowledged is removed from the stream; without a group nothing is.\n"
            "\n"
            "examples:\n"
            "  lapse forward orders --to-stream --group billing --group mail --max 100000\n"
            "  lapse forward orders --to-list --element body\n"
            "  lapse forward orders --off\n",
    .run = forward_run,
};
