/* SPDX-License-Identifier: MIT */
/* lapse schedule. The body is the last word, or stdin for "-"; stdin is read to its end before
 * Redis is asked for anything, so that a producer that breaks off midway leaves no half a body. */
#include "cli/arguments.h"
#include "cli/message.h"
#include "cli/values.h"
#include "client/client.h"
#include "cli/print.h"
#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BODY_BYTES = 1 << 20 };

struct schedule {
    struct oneshot q; /* first: ask() gets this */
    struct lapse_spec spec;
    struct when when;
};

static int set_tries(const struct opt *o, char *value, void *field)
{
    unsigned *tries = field;

    (void)o;
    if (strcmp(value, "forever") == 0) {
        *tries = LAPSE_FOREVER;
    } else if (parse_count(value, LAPSE_FOREVER - 1, tries)) {
        return usage_error("--tries", value,
                           "runs before the job is dead: a whole number from 1, or forever");
    }

    return 0;
}

static int set_conflict(const struct opt *o, char *value, void *field)
{
    static const char *const names[] = {
        [LAPSE_REJECT] = "reject", [LAPSE_KEEP] = "keep", [LAPSE_REPLACE] = "replace"};

    (void)o;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(value, names[i]) == 0) {
            *(enum lapse_conflict *)field = (enum lapse_conflict)i;
            return 0;
        }
    }

    return usage_error("--on-conflict", value, "reject, keep or replace");
}

static int set_backoff(const struct opt *o, char *value, void *field)
{
    int64_t *ms = field;
    char what[24];
    int rc = set_duration(o, value, field);
    snprintf(what, sizeof what, "--%s", o->name);
    return rc || *ms ? rc : usage_error(what, value, "at least 1ms");
}

#define AT(field) offsetof(struct schedule, field)
static const struct opt opts[] = {
    {"id", 0, "ID", set_text, AT(spec.id),
     "its name, unique in the queue; without it one is made up"},
    {"in", 0, "DURATION", set_in, AT(when),
     "due so long after Redis takes it: 250ms 90s 30m 1h30m 7d"},
    {"at", 0, "TIME", set_at, AT(when),
     "due then: 2026-12-24T18:00Z, T18:00:30.5+02:00, or @MS of\nUnix time; the past is now"},
    {"tries", 0, "N", set_tries, AT(spec.tries), "runs before it is dead, or forever; 10"},
    {"backoff", 0, "DURATION", set_backoff, AT(spec.backoff_ms),
     "wait before the second run; doubles from run to run; 1s"},
    {"backoff-max", 0, "DURATION", set_backoff, AT(spec.backoff_max_ms),
     "but never longer than this; 1h"},
    {"on-conflict", 0, "WHAT", set_conflict, AT(spec.on_conflict),
     "if the id exists: reject (exit 1, default), keep the one\nthere, or replace it unless it "
     "runs"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

static int read_body(struct lapse_spec *spec, char *word)
{
    char *body;
    size_t len = 0;
    ssize_t n;

    if (strcmp(word, "-")) {
        spec->body = word;
        spec->body_len = strlen(word);
        if (spec->body_len <= BODY_BYTES) {
            return 0;
        }
        message_print("the body has %zu bytes: at most 1 MiB (1048576)", spec->body_len);
        return USAGE;
    }

    spec->body = body = malloc(BODY_BYTES + 1);
    if (!body) {
        message_print("out of memory");
        return INTERNAL;
    }

    while (len <= BODY_BYTES &&
           ((n = read(0, body + len, BODY_BYTES + 1 - len)) > 0 || (n < 0 && errno == EINTR))) {
        len += n > 0 ? (size_t)n : 0;
    }

    spec->body_len = len;

    if (len > BODY_BYTES) {
        message_print("the body on stdin is longer than 1 MiB (1048576 bytes)");
    } else if (n < 0) {
        message_print("stdin: %s", strerror(errno));
    }

    return len > BODY_BYTES || n < 0 ? USAGE : 0;
}

static void on_scheduled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct schedule *s = arg;
    (void)l;
    if (oneshot_replied(&s->q, err, s->spec.queue, s->spec.id)) {
        print_job(s->q.g, job, WITH_CREATED);
    }
}

static int ask(struct oneshot *q)
{
    struct schedule *s = (struct schedule *)q;
    int err = lapse_schedule(q->c.l, &s->spec, on_scheduled, s);
    q->open += !err;
    return err;
}

static int run(const struct command *cmd, struct globals *g, struct arguments *w)
{
    struct schedule s = {.spec = lapse_spec_init()};
    int rc = arguments_read(cmd, g, &s, w);
    int from_stdin;

    if (rc || (rc = check_when(&s.when)) || (rc = check_queue(w->v[0])) ||
        (s.spec.id && (rc = check_id(s.spec.id)))) {
        return rc;
    }

    s.spec.queue = s.q.queue = w->v[0];
    s.spec.due = s.when.due;
    s.q.c.maybe =
        s.spec.id
            ? "it may be scheduled. Repeat it with --on-conflict keep: that makes no second one "
              "while the first is there"
            : "it may be scheduled, under an id that is not known. With --id it could be repeated";
    from_stdin = w->n == 2 && strcmp(w->v[1], "-") == 0;
    if (from_stdin && g->password_file && strcmp(g->password_file, "-") == 0) {
        return usage_error("--password-file", "-", "the body comes from stdin already");
    }

    rc = w->n == 2 ? read_body(&s.spec, w->v[1]) : 0;
    if (!rc) {
        rc = oneshot_run(&s.q, g, ask);
    }

    if (from_stdin) {
        free((void *)s.spec.body);
    }

    return rc;
}

const struct command cmd_schedule = {
    "schedule",
    "QUEUE [--id ID] (--in DURATION | --at TIME) [BODY | -]",
    "put a job into a queue, due later",
    1,
    2,
    opts,
    "Puts a job into QUEUE. Prints it as Redis now has it: one JSON object with queue, id, state,\n"
    "due_ms, try, tries (a number or \"forever\"), token, until_ms, why, and created (false:\n"
    "--on-conflict keep found one).\n"
    "BODY is what the handler gets, any bytes up to 1 MiB; - reads it from stdin.\n"
    "\nexamples:\n"
    "  lapse schedule orders --id order-1 --in 30m 'cancel unless paid'\n"
    "  lapse schedule reports --at 2026-12-24T18:00+01:00 - < body.bin\n"
    "  lapse schedule webhooks --in 0s --tries 20 --backoff 5s '{\"url\":\"...\"}'\n",
    NULL,
    run,
};
