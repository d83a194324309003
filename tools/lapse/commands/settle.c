/* SPDX-License-Identifier: MIT */
/* lapse report, done, retry, snooze, fail, release, renew: what becomes of a job, by the token that
 * its claim printed. */
#include "base/span.h"
#include "cli/arguments.h"
#include "cli/json.h"
#include "cli/message.h"
#include "cli/values.h"
#include "client/oneshot.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { LEASE_MIN_MS = 100, LEASE_MAX_MS = 86400000 };

struct settle_command {
    struct oneshot once; /* first: send() gets this */
    const char *name;
    const char *id;
    int64_t token;
    struct lapse_settlement how;
    const char *report_file; /* NULL: there is no report; "-": stdin */
    char report[LAPSE_REPORT_MAX + 1];
};

/* ---- options ---- */
static int set_lease(const struct opt *o, char *value, void *field)
{
    int64_t *ms = field;
    int rc = set_duration(o, value, field);

    if (!rc && (*ms < LEASE_MIN_MS || *ms > LEASE_MAX_MS)) {
        return usage_error("--for", value, "must be 100ms to 1d");
    }

    return rc;
}

#define AT(field) offsetof(struct settle_command, field)
#define REASON                                                   \
    {                                                            \
        "reason", 0, "TEXT", set_text, AT(how.reason),           \
            "kept with the job, which shows it, up to 200 bytes" \
    }
#define REPORT(help)                                                              \
    {                                                                             \
        "report", 0, "FILE|-", set_text, AT(report_file), help "; at most 64 KiB" \
    }
static const struct opt report_options[] = {
    REPORT("where the report is: a file, or stdin"),
    {NULL, 0, NULL, NULL, 0, NULL},
};
static const struct opt done_options[] = {
    REPORT("what came of the job: a file, or stdin"),
    {NULL, 0, NULL, NULL, 0, NULL},
};
static const struct opt retry_options[] = {
    {"in", 0, "DURATION", set_duration, AT(how.ms),
     "due again this long from now; default: the backoff of the job"},
    REASON,
    {NULL, 0, NULL, NULL, 0, NULL},
};
static const struct opt snooze_options[] = {
    {"in", 0, "DURATION", set_duration, AT(how.ms),
     "due again this long from now: 250ms 30m 1h30m"},
    REASON,
    {NULL, 0, NULL, NULL, 0, NULL},
};
static const struct opt fail_options[] = {REASON, {NULL, 0, NULL, NULL, 0, NULL}};
static const struct opt renew_options[] = {
    {"for", 0, "DURATION", set_lease, AT(how.ms),
     "the lease from now on, 100ms to 1d; default: the option lease_ms, 30s"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

/* ---- the report ---- */
/* Reads to the end, or one byte more than a report may have; -1 with errno. */
static ssize_t read_report(int fd, char *out)
{
    size_t len = 0;
    ssize_t n = 1;

    while (n > 0 && len <= LAPSE_REPORT_MAX) {
        n = read(fd, out + len, LAPSE_REPORT_MAX + 1 - len);
        if (n < 0 && errno == EINTR) {
            n = 1;
        } else if (n > 0) {
            len += (size_t)n;
        }
    }

    return n < 0 ? -1 : (ssize_t)len;
}

static int report_error(const struct settle_command *settle, const char *why)
{
    return usage_error("--report", settle->report_file, why);
}

/* It is read to its end before Redis is asked for anything. */
static int settle_read_report(struct settle_command *settle, const struct globals *g)
{
    bool is_stdin = settle->report_file && strcmp(settle->report_file, "-") == 0;

    if (!settle->report_file) {
        return 0;
    }
    if (is_stdin && g->password_file && strcmp(g->password_file, "-") == 0) {
        return usage_error("--password-file", "-", "the report is read from stdin already");
    }

    int fd = is_stdin ? STDIN_FILENO : open(settle->report_file, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read_report(fd, settle->report);
    int error = errno;

    if (fd > STDIN_FILENO) {
        close(fd);
    }
    if (len < 0) {
        return report_error(settle, strerror(error));
    }
    if (len > LAPSE_REPORT_MAX) {
        return report_error(settle, "has more than 65536 bytes (64 KiB)");
    }

    settle->how.report = settle->report;
    settle->how.report_len = (size_t)len;
    return 0;
}

/* ---- the request ---- */
static void on_settle_reply(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct settle_command *settle = arg;
    const char *queue = settle->once.queue;
    struct json j;

    (void)l;
    (void)job;
    if (!oneshot_replied(&settle->once, err, queue, settle->id)) {
        return;
    }

    if (settle->once.g->text) {
        printf("%s/%s %" PRId64 " %s\n", queue, settle->id, settle->token, settle->name);
        return;
    }

    json_begin(&j, stdout);
    json_text(&j, "queue", queue);
    json_text(&j, "id", settle->id);
    json_int(&j, "token", settle->token);
    json_text(&j, "settled", settle->name);
    json_end(&j);
}

static int settle_send(struct oneshot *o)
{
    struct settle_command *settle = (struct settle_command *)o;

    return oneshot_sent(o, lapse_settle(o->c.l, o->queue, settle->id, (uint64_t)settle->token,
                                        &settle->how, on_settle_reply, settle));
}

static int check_token(const char *text, int64_t *token)
{
    if (!span_decimal(span_of(text), EXACT_MAX, token) || *token == 0) {
        return usage_error("token", text, "must be a whole number from 1 to 9007199254740992");
    }

    return 0;
}

static int settle_read(struct settle_command *settle, const struct command *cmd, struct globals *g,
                       struct arguments *args)
{
    int rc = arguments_read(cmd, g, settle, args);

    if (rc) {
        return rc;
    }

    settle->name = cmd->name;
    settle->once.queue = args->v[0];
    settle->id = args->v[1];
    if (check_queue(settle->once.queue) || check_id(settle->id) ||
        check_token(args->v[2], &settle->token) || settle_read_report(settle, g)) {
        return USAGE;
    }

    settle->once.c.unknown_advice = "it may have been settled. Repeat the command: exit code 1 "
                                    "then means that it was, or that its lease was over";

    return 0;
}

static int settle_as(enum lapse_how how, int64_t ms, const struct command *cmd, struct globals *g,
                     struct arguments *args)
{
    struct settle_command settle = {.how = {.size = sizeof settle.how, .how = how, .ms = ms}};
    int rc = settle_read(&settle, cmd, g, args);

    return rc ? rc : oneshot_run(&settle.once, g, settle_send);
}

/* ---- the commands ---- */
static int report_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct settle_command settle = {.how = {.size = sizeof settle.how, .how = LAPSE_HOW_REPORT}};
    int rc = settle_read(&settle, cmd, g, args);

    if (!rc && !settle.report_file) {
        rc = usage_errorf("missing option --report, such as --report progress.json");
    }

    return rc ? rc : oneshot_run(&settle.once, g, settle_send);
}

static int done_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    return settle_as(LAPSE_HOW_DONE, 0, cmd, g, args);
}

static int retry_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    return settle_as(LAPSE_HOW_RETRY, LAPSE_BACKOFF, cmd, g, args);
}

static int snooze_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct settle_command settle = {
        .how = {.size = sizeof settle.how, .how = LAPSE_HOW_SNOOZE, .ms = -1}};
    int rc = settle_read(&settle, cmd, g, args);

    if (!rc && settle.how.ms < 0) {
        rc = usage_errorf("missing option --in, such as --in 30m");
    }

    return rc ? rc : oneshot_run(&settle.once, g, settle_send);
}

static int fail_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    return settle_as(LAPSE_HOW_FAIL, 0, cmd, g, args);
}

static int release_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    return settle_as(LAPSE_HOW_RELEASE, 0, cmd, g, args);
}

static int renew_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    return settle_as(LAPSE_HOW_RENEW, 0, cmd, g, args);
}

const struct command cmd_report = {
    .name = "report",
    .usage = "QUEUE ID TOKEN --report FILE|-",
    .summary = "keep what its holder says of a job: how far it is",
    .min = 3,
    .max = 3,
    .opts = report_options,
    .text = "Keeps a report beside a job, by the token that its claim printed, in the place of\n"
            "the one before; lapse get shows it. It stays when the job is tried again or is\n"
            "dead, and goes when the job is done, unless it is kept then (lapse schedule --keep).\n"
            "Prints the same as lapse done. With the token of a claim that is over nothing\n"
            "changes (exit code 1).\n"
            "\n"
            "examples:\n"
            "  echo '40 of 100' | lapse report orders order-1 1790000000000001 --report -\n",
    .run = report_run,
};

const struct command cmd_done = {
    .name = "done",
    .usage = "QUEUE ID TOKEN [--report FILE|-]",
    .summary = "a job that was claimed is done",
    .min = 3,
    .max = 3,
    .opts = done_options,
    .text = "Ends a job, by the token that its claim printed, and prints one JSON object:\n"
            "queue, id, token, settled. A report is known as long as the job is (lapse schedule\n"
            "--keep). With the token of a claim that is over nothing changes (exit code 1).\n"
            "\n"
            "examples:\n"
            "  lapse done orders order-1 1790000000000001\n"
            "  lapse done orders order-1 1790000000000001 --report result.json\n",
    .run = done_run,
};

const struct command cmd_retry = {
    .name = "retry",
    .usage = "QUEUE ID TOKEN [--in DURATION] [--reason TEXT]",
    .summary = "put a job that was claimed back, to run again later",
    .min = 3,
    .max = 3,
    .opts = retry_options,
    .text = "Puts a job back, by the token that its claim printed; it is dead if that was its\n"
            "last try. Prints the same as lapse done. With the token of a claim that is over\n"
            "nothing changes (exit code 1).\n"
            "\n"
            "examples:\n"
            "  lapse retry orders order-1 1790000000000001 --reason 'no answer'\n"
            "  lapse retry orders order-1 1790000000000001 --in 5m\n",
    .run = retry_run,
};

const struct command cmd_snooze = {
    .name = "snooze",
    .usage = "QUEUE ID TOKEN --in DURATION [--reason TEXT]",
    .summary = "put a job that was claimed off, without using up a try",
    .min = 3,
    .max = 3,
    .opts = snooze_options,
    .text = "Puts a job back, by the token that its claim printed, to run again later. Its try\n"
            "does not count, so no job dies of it. Prints the same as lapse done. With the\n"
            "token of a claim that is over nothing changes (exit code 1).\n"
            "\n"
            "examples:\n"
            "  lapse snooze orders order-1 1790000000000001 --in 30m --reason 'not paid yet'\n",
    .run = snooze_run,
};

const struct command cmd_fail = {
    .name = "fail",
    .usage = "QUEUE ID TOKEN [--reason TEXT]",
    .summary = "a job that was claimed is dead, whatever tries it has left",
    .min = 3,
    .max = 3,
    .opts = fail_options,
    .text = "Makes a job dead, by the token that its claim printed. Prints the same as lapse\n"
            "done. With the token of a claim that is over nothing changes (exit code 1).\n"
            "\n"
            "examples:\n"
            "  lapse fail orders order-1 1790000000000001 --reason 'no such customer'\n",
    .run = fail_run,
};

const struct command cmd_release = {
    .name = "release",
    .usage = "QUEUE ID TOKEN",
    .summary = "give a job that was claimed back, unbegun",
    .min = 3,
    .max = 3,
    .text = "Gives a job back, by the token that its claim printed: it is due as before, and\n"
            "its try does not count. Prints the same as lapse done. With the token of a claim\n"
            "that is over nothing changes (exit code 1).\n"
            "\n"
            "examples:\n"
            "  lapse release orders order-1 1790000000000001\n",
    .run = release_run,
};

const struct command cmd_renew = {
    .name = "renew",
    .usage = "QUEUE ID TOKEN [--for DURATION]",
    .summary = "make the lease of a job that was claimed longer",
    .min = 3,
    .max = 3,
    .opts = renew_options,
    .text = "Makes the lease of a job longer, by the token that its claim printed. Prints the\n"
            "same as lapse done. With the token of a claim that is over nothing changes (exit\n"
            "code 1).\n"
            "\n"
            "examples:\n"
            "  lapse renew orders order-1 1790000000000001 --for 10m\n",
    .run = renew_run,
};
