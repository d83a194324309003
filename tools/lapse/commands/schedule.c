/* SPDX-License-Identifier: MIT */
/* lapse schedule. The body is the last argument, or stdin for "-"; stdin is read to its end before
 * Redis is asked for anything, so that a producer that fails midway leaves no half body. */
#include "cli/arguments.h"
#include "cli/message.h"
#include "cli/print.h"
#include "cli/values.h"
#include "client/oneshot.h"
#include "commands/gather.h"
#include "commands/moments.h"
#include "job/keys.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BODY_BYTES = 1 << 20,
    BACKOFFS = 16,
    RUN_MIN_MS = 100,
    MS_BYTES = 15, /* of a number of ms in the record, at most, and of the time of --created */
};

struct tags {
    const char *v[TAGS_MAX];
    unsigned n;
};

static const int64_t RUN_MAX_MS = 366 * (int64_t)86400000;

struct headers {
    struct lapse_header v[HEADERS_MAX];
    unsigned n;
};

/* What --backoff says; 0: it does not. */
struct backoff {
    enum lapse_backoff_kind kind;
    int64_t ms;
    int64_t max_ms;
    int64_t list_ms[BACKOFFS];
    unsigned n;
    unsigned tries;
};

struct schedule_command {
    struct oneshot once; /* first: send() gets this */
    struct lapse_spec spec;
    struct when when;
    struct tags tags;
    struct headers headers;
    struct moment_options moments;
    struct gather_option gather;
    struct backoff backoff;
    struct lapse_guard guard; /* without a key: there is none */
    char *stdin_body;         /* owned */
};

/* ---- options ---- */
static int set_tries(const struct opt *o, char *value, void *field)
{
    unsigned *tries = field;

    (void)o;
    if (strcmp(value, "forever") == 0) {
        *tries = LAPSE_FOREVER;
        return 0;
    }

    if (parse_count(value, LAPSE_FOREVER - 1, tries)) {
        return usage_error("--tries", value, "must be a whole number from 1, or forever");
    }

    return 0;
}

static int set_conflict(const struct opt *o, char *value, void *field)
{
    static const char *const names[] = {
        [LAPSE_REJECT] = "reject",   [LAPSE_KEEP] = "keep",   [LAPSE_REPLACE] = "replace",
        [LAPSE_EARLIER] = "earlier", [LAPSE_LATER] = "later", [LAPSE_DEBOUNCE] = "debounce"};

    (void)o;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(value, names[i]) == 0) {
            *(enum lapse_conflict *)field = (enum lapse_conflict)i;
            return 0;
        }
    }

    return usage_error("--on-conflict", value,
                       "must be reject, keep, replace, earlier, later or debounce");
}

static int set_wait(const struct opt *o, char *value, void *field)
{
    int64_t *ms = field;
    int rc = set_duration(o, value, field);
    char what[24];

    if (!rc && *ms == 0) {
        snprintf(what, sizeof what, "--%s", o->name);
        return usage_error(what, value, "must be at least 1ms");
    }

    return rc;
}

static int set_backoff_list(const struct opt *o, char *value, struct backoff *b)
{
    b->kind = LAPSE_BACKOFF_LIST;
    for (char *at = value; at;) {
        char *comma = strchr(at, ',');

        if (b->n == BACKOFFS) {
            return usage_error("--backoff", at, "is one too many: at most 16 are allowed");
        }
        if (comma) {
            *comma++ = '\0';
        }
        if (set_wait(o, at, &b->list_ms[b->n++])) {
            return USAGE;
        }
        at = comma;
    }

    return 0;
}

/* One wait, to be doubled; a fixed one; several, one after another; or those of another queue. */
static int set_backoff(const struct opt *o, char *value, void *field)
{
    static const struct {
        const char *name;
        struct backoff backoff;
    } queues[] = {
        {"delayq", {.kind = LAPSE_BACKOFF_POWER2, .max_ms = 4096000, .tries = LAPSE_FOREVER}},
        {"asynq", {.kind = LAPSE_BACKOFF_POWER4, .ms = 30000, .tries = 26}},
        {"sidekiq", {.kind = LAPSE_BACKOFF_POWER4, .ms = 10000, .tries = 26}},
    };
    static const char fixed[] = "fixed:";
    struct backoff *b = field;

    *b = (struct backoff){.kind = LAPSE_BACKOFF_DOUBLE};
    for (size_t i = 0; i < sizeof queues / sizeof *queues; i++) {
        if (strcmp(value, queues[i].name) == 0) {
            *b = queues[i].backoff;
            return 0;
        }
    }

    if (strchr(value, ',')) {
        return set_backoff_list(o, value, b);
    }
    if (strncmp(value, fixed, sizeof fixed - 1) == 0) {
        b->kind = LAPSE_BACKOFF_FIXED;
        value += sizeof fixed - 1;
    }
    return set_wait(o, value, &b->ms);
}

static int set_run(const struct opt *o, char *value, void *field)
{
    int64_t *ms = field;
    int rc = set_duration(o, value, field);

    if (!rc && (*ms < RUN_MIN_MS || *ms > RUN_MAX_MS)) {
        return usage_error("--max-run", value, "must be 100ms to 366d");
    }

    return rc;
}

/* DURATION[:dead] */
static int set_late(const struct opt *o, char *value, void *field)
{
    struct lapse_spec *spec = field;
    char *colon = strchr(value, ':');

    if (colon) {
        if (strcmp(colon, ":dead") != 0) {
            return usage_error("--max-late", value, "must be DURATION or DURATION:dead");
        }
        *colon = '\0';
        spec->late = LAPSE_LATE_DEAD;
    }
    return set_wait(o, value, &spec->max_late_ms);
}

static int guard_error(const char *value)
{
    return usage_error("--if", value,
                       "must be 'KEY=VALUE', 'KEY!=VALUE', 'KEY?' (it exists) or 'KEY!' (it is "
                       "missing), with KEY FIELD in the place of KEY for a field of a hash; VALUE "
                       "has at most 255 bytes");
}

/* The first = divides it; without one its last character says what is asked. */
static struct span guard_left(struct lapse_guard *g, char *value)
{
    struct span rest = span_of(value);
    struct span left;

    if (span_cut(&rest, '=', &left)) {
        bool differs = left.len > 0 && left.at[left.len - 1] == '!';

        g->op = differs ? LAPSE_DIFFERS : LAPSE_EQUALS;
        g->value = rest.at;
        g->value_len = rest.len;
        left.len -= differs;
        return left;
    }

    left = span_of(value);
    left.len -= left.len > 0;
    char asked = left.at[left.len];
    g->op = asked == '?' ? LAPSE_EXISTS : LAPSE_MISSING;
    if (asked != '?' && asked != '!') {
        left.len = 0;
    }
    return left;
}

static int set_guard(const struct opt *o, char *value, void *field)
{
    struct lapse_guard *g = field;
    struct span left = guard_left(g, value);
    char *space = memchr(value, ' ', left.len);

    (void)o;
    g->key = value;
    if (left.len == 0 || space == value || g->value_len > GUARD_VALUE_MAX) {
        return guard_error(value);
    }
    if (space && !keys_field_ok((struct span){space + 1, left.len - (size_t)(space + 1 - value)})) {
        return guard_error(value);
    }

    value[left.len] = '\0';
    if (space) {
        *space = '\0';
        g->field = space + 1;
    }
    return 0;
}

static int set_fsync(const struct opt *o, char *value, void *field)
{
    unsigned *flags = field;

    (void)o;
    (void)value;
    *flags |= LAPSE_FSYNC;

    return 0;
}

static int set_created(const struct opt *o, char *value, void *field)
{
    unsigned *flags = field;

    (void)o;
    (void)value;
    *flags |= LAPSE_CREATED;

    return 0;
}

static int set_errors(const struct opt *o, char *value, void *field)
{
    unsigned *flags = field;

    (void)o;
    (void)value;
    *flags |= LAPSE_KEEP_ERRORS;

    return 0;
}

static int set_until_start(const struct opt *o, char *value, void *field)
{
    unsigned *flags = field;

    (void)o;
    (void)value;
    *flags |= LAPSE_UNIQUE_UNTIL_START;

    return 0;
}

/* DURATION[:body] */
static int set_keep(const struct opt *o, char *value, void *field)
{
    struct lapse_spec *spec = field;
    char *colon = strchr(value, ':');

    if (colon) {
        if (strcmp(colon, ":body") != 0) {
            return usage_error("--keep", value, "must be DURATION or DURATION:body");
        }
        *colon = '\0';
        spec->flags |= LAPSE_KEEP_BODY;
    }
    return set_wait(o, value, &spec->keep_ms);
}

static int set_priority(const struct opt *o, char *value, void *field)
{
    int64_t n;

    (void)o;
    if (!span_decimal(span_of(value), PRIORITY_MAX, &n)) {
        return usage_error("--priority", value, "must be a whole number from 0 to 255");
    }
    *(unsigned *)field = (unsigned)n;
    return 0;
}

static int add_tag(const struct opt *o, char *value, void *field)
{
    struct tags *tags = field;

    (void)o;
    if (check_tag(value)) {
        return USAGE;
    }
    if (tags->n == TAGS_MAX) {
        return usage_error("--tag", value, "is one too many: at most 8 are allowed");
    }

    for (unsigned i = 0; i < tags->n; i++) {
        if (strcmp(tags->v[i], value) == 0) {
            return usage_error("--tag", value, "is given twice");
        }
    }

    tags->v[tags->n++] = value;
    return 0;
}

static bool header_is_named(const struct headers *headers, const char *name)
{
    for (unsigned i = 0; i < headers->n; i++) {
        if (strcmp(headers->v[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static int set_header(const struct opt *o, char *value, void *field)
{
    struct headers *headers = field;
    struct span text = span_of(value);
    struct span name;

    (void)o;
    if (!span_cut(&text, '=', &name) || !keys_header_ok(name) || text.len > HEADER_VALUE_MAX) {
        return usage_error("--header", value,
                           "must be NAME=VALUE: a NAME of 1 to 64 printable ASCII characters, "
                           "without space, =, { and }, and a VALUE of at most 255 bytes");
    }
    if (headers->n == HEADERS_MAX) {
        return usage_error("--header", value, "is one too many: at most 16 are allowed");
    }

    value[name.len] = '\0';
    if (header_is_named(headers, value)) {
        return usage_error("--header", value, "is given twice: a job has one header of a name");
    }

    headers->v[headers->n++] = (struct lapse_header){value, text.at};
    return 0;
}

#define AT(field) offsetof(struct schedule_command, field)
static const struct opt schedule_options[] = {
    {"id", 0, "ID", set_text, AT(spec.id), "unique in the queue; generated if not given"},
    {"in", 0, "DURATION", set_in, AT(when),
     "due this long after Redis stores it: 250ms 90s 30m 1h30m 7d"},
    {"at", 0, "TIME", set_at, AT(when),
     "due at this time: 2026-12-24T18:00Z, with seconds and an offset "
     "2026-12-24T18:00:30.5+02:00, or @MS (Unix time in milliseconds); a time in the past "
     "means now"},
    {"stage", 0, "DURATION,...", set_stages, AT(moments),
     "a series: due as well so long after --in or --at, each of these, up to 32, such as 5d,6d,7d"},
    {"every", 0, "DURATION", set_every, AT(moments),
     "a series: due again and again, from --in or --at on, at least 100ms apart"},
    {"cron", 0, "LINE", set_cron, AT(moments),
     "a series: due at the moments of a cron line, such as '30 9 * * mon-fri', from now on, or "
     "from --in or --at on; lapse cron shows them"},
    {"tz", 0, "ZONE", set_zone, AT(moments),
     "of --cron: the zone, such as Europe/Berlin; default: that of LINE, or else UTC"},
    {"until", 0, "TIME", set_until, AT(moments), "of a series: no moment is later"},
    {"times", 0, "N", set_times, AT(moments),
     "of a series: no more than so many moments, those that made no job included"},
    {"catch-up", 0, "WHICH", set_catch_up, AT(moments),
     "of --every and --cron: of the moments that passed while nobody listened run latest, the last "
     "one (the default), all, or none, the last one if it is no older than --max-late, or a "
     "minute"},
    {"no-overlap", 0, NULL, set_no_overlap, AT(moments),
     "of a series: pass over a moment while an earlier job of it waits or runs"},
    {"gather", 0, "LIMITS", set_gather, AT(gather),
     "a part of the group --id, which is due when no part has come for so long, when it has so "
     "many, or is so old: quiet=5s,most=100,age=1m; then one job has all its parts"},
    {"tries", 0, "N", set_tries, AT(spec.tries),
     "runs before the job is dead, or forever; default 10"},
    {"backoff", 0, "HOW", set_backoff, AT(backoff),
     "delay before the second run, doubled after each run: 5s (default 1s); always the same: "
     "fixed:5s; one after another, the last one repeated: 1s,5s,1m; or that of delayq, asynq or "
     "sidekiq, with their number of runs if --tries says no other"},
    {"backoff-max", 0, "DURATION", set_wait, AT(spec.backoff_max_ms),
     "upper limit of a doubled delay; default 1h, of delayq 4096s"},
    {"retry-for", 0, "DURATION", set_wait, AT(spec.retry_for_ms),
     "no run begins later than this after the job was first due: then it is dead"},
    {"max-late", 0, "DURATION[:dead]", set_late, AT(spec),
     "if the job is claimed later than this after it was due it does not run: it is gone, or dead"},
    {"if", 0, "CONDITION", set_guard, AT(guard),
     "the job runs only if this is so when it is claimed, else it is gone: KEY=VALUE, KEY!=VALUE, "
     "KEY? (exists) or KEY! (is missing), or 'KEY FIELD' for a field of a hash; KEY has {QUEUE} "
     "in it"},
    {"max-run", 0, "DURATION", set_run, AT(spec.run_ms),
     "how long one run may take, 100ms to 366d, and at most what who runs it allows (its run_ms); "
     "then the job runs again"},
    {"on-conflict", 0, "WHAT", set_conflict, AT(spec.on_conflict),
     "if the id exists, or another job holds the key: reject (default; exit code 1), keep the "
     "existing job, replace it unless it is running, make it due earlier or later, or debounce "
     "it: replace it, due then"},
    {"max-wait", 0, "DURATION", set_wait, AT(spec.max_wait_ms),
     "with --on-conflict debounce: the job is due no later than this after the first such command"},
    {"unique", 0, "KEY", set_text, AT(spec.unique),
     "a second name: while a job that waits or runs has this key, the command is about that job, "
     "whatever its id"},
    {"until-start", 0, NULL, set_until_start, AT(spec.flags),
     "the key is free once the job has begun to run, not only at its end"},
    {"batch", 0, "NAME", set_text, AT(spec.batch),
     "it is a job of this batch, whose own job, the one with the id NAME, runs when lapse batch "
     "has closed it and all have ended"},
    {"replicas", 0, "N", set_count, AT(spec.replicas),
     "wait until so many replicas of Redis have the job; exit code 69 if fewer have it after "
     "replicas_ms (-o replicas_ms=5s; default 1s): the job is stored then"},
    {"fsync", 0, NULL, set_fsync, AT(spec.flags),
     "wait until the job is on the disk of Redis, and of these replicas; needs Redis 7.2 with "
     "appendonly yes, or Valkey"},
    {"keep", 0, "DURATION[:body]", set_keep, AT(spec),
     "what became of the job is known so long after its end: lapse get shows it, and a cancel "
     "whose "
     "answer was lost can be repeated; with its body, or without"},
    {"priority", 0, "N", set_priority, AT(spec.priority),
     "0 to 255: of jobs that are due in the same millisecond the higher runs first; default 0"},
    {"created", 0, NULL, set_created, AT(spec.flags),
     "keep when Redis has stored the job first, for lapse get; a generated id tells it, too"},
    {"errors", 0, NULL, set_errors, AT(spec.flags),
     "keep why the last five runs failed, for lapse get and list, not only the last one"},
    {"tag", 0, "TAG", add_tag, AT(tags),
     "what the job is found by, together with others: lapse list --tag; up to 8 times"},
    {"header", 0, "NAME=VALUE", set_header, AT(headers),
     "what the handler gets beside the body, such as the id of a trace; up to 16 times"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

/* ---- the body ---- */
static int body_from_argument(struct lapse_spec *spec, const char *word)
{
    spec->body = word;
    spec->body_len = strlen(word);

    if (spec->body_len > BODY_BYTES) {
        return usage_errorf("the body has %zu bytes; it may have at most 1048576 (1 MiB)",
                            spec->body_len);
    }

    return 0;
}

/* Reads to the end of stdin, or one byte more than a body may have; -1 with errno. */
static ssize_t read_stdin(char *body)
{
    size_t len = 0;
    ssize_t n = 1;

    while (n > 0 && len <= BODY_BYTES) {
        n = read(0, body + len, BODY_BYTES + 1 - len);
        if (n < 0 && errno == EINTR) {
            n = 1;
        } else if (n > 0) {
            len += (size_t)n;
        }
    }

    return n < 0 ? -1 : (ssize_t)len;
}

static int body_from_stdin(struct schedule_command *s)
{
    ssize_t len;

    s->stdin_body = malloc(BODY_BYTES + 1);
    if (!s->stdin_body) {
        message_print("out of memory");
        return INTERNAL;
    }

    len = read_stdin(s->stdin_body);
    if (len < 0) {
        return usage_errorf("stdin: %s", strerror(errno));
    }
    if (len > BODY_BYTES) {
        return usage_errorf("the body on stdin has more than 1048576 bytes (1 MiB)");
    }

    s->spec.body = s->stdin_body;
    s->spec.body_len = (size_t)len;

    return 0;
}

/* word: NULL if there is none. */
static int schedule_body(struct schedule_command *s, const struct globals *g, const char *word)
{
    if (!word) {
        return 0;
    }

    if (strcmp(word, "-") != 0) {
        return body_from_argument(&s->spec, word);
    }

    if (g->password_file && strcmp(g->password_file, "-") == 0) {
        return usage_error("--password-file", "-", "the body is read from stdin already");
    }

    return body_from_stdin(s);
}

static void schedule_backoff(struct lapse_spec *spec, const struct backoff *b)
{
    spec->backoff_kind = b->kind;
    spec->backoff_ms = b->ms;
    spec->backoff_max_ms = spec->backoff_max_ms ? spec->backoff_max_ms : b->max_ms;
    spec->tries = spec->tries ? spec->tries : b->tries;
    spec->backoff_list_ms = b->n ? b->list_ms : NULL;
    spec->n_backoff_list = b->n;
}

/* ---- the request ---- */
static size_t attribute_bytes(size_t len)
{
    return len < 128 ? len + 2 : len + 3;
}

static size_t ms_bytes(int64_t ms)
{
    return ms ? MS_BYTES : 0;
}

static size_t backoff_bytes(const struct backoff *b)
{
    size_t len = 1;

    for (unsigned i = 0; i < b->n; i++) {
        len += (size_t)snprintf(NULL, 0, i ? ",%" PRId64 : "%" PRId64, b->list_ms[i]);
    }
    return b->kind == LAPSE_BACKOFF_DOUBLE ? 0 : attribute_bytes(len);
}

/* OP KEY FIELD VALUE */
static size_t guard_bytes(const struct lapse_guard *g)
{
    size_t field = g->field ? strlen(g->field) : 0;

    return g->key ? attribute_bytes(2 + strlen(g->key) + 1 + field + 1 + g->value_len) : 0;
}

static int check_guard(const struct schedule_command *s)
{
    if (s->guard.key && !keys_guard_ok(span_of(s->guard.key), span_of(s->spec.queue))) {
        return usage_errorf("--if %s: the first braces in the key must hold the name of the queue, "
                            "%s, and it may have at most 512 bytes",
                            printable(s->guard.key), s->spec.queue);
    }
    return 0;
}

static int check_unique(const struct lapse_spec *spec)
{
    if (spec->unique && !keys_id_ok(span_of(spec->unique))) {
        return usage_error("--unique", spec->unique,
                           "must be 1 to 255 printable ASCII characters, without space, { and }");
    }
    if (!spec->unique && (spec->flags & LAPSE_UNIQUE_UNTIL_START)) {
        return usage_errorf("--until-start says how long a key is held: give --unique, too");
    }
    if (spec->max_wait_ms && spec->on_conflict != LAPSE_DEBOUNCE) {
        return usage_errorf("--max-wait is for --on-conflict debounce");
    }
    if (spec->max_wait_ms && spec->max_wait_ms < spec->due.delay_ms) {
        return usage_errorf("--max-wait must not be shorter than --in");
    }
    return 0;
}

static int check_own_batch(const struct lapse_spec *spec)
{
    if (spec->batch && check_batch(spec->batch)) {
        return USAGE;
    }
    if (spec->batch && spec->id && strcmp(spec->batch, spec->id) == 0) {
        return usage_errorf("a job whose id is %s is that batch's own job, and waits for the "
                            "others: it cannot be one of them",
                            spec->id);
    }
    return 0;
}

static int check_attributes(const struct schedule_command *s)
{
    size_t bytes = s->spec.priority ? attribute_bytes(1) : 0;

    bytes += s->spec.flags & LAPSE_KEEP_ERRORS ? attribute_bytes(1) : 0;
    if (s->spec.unique) {
        bytes += attribute_bytes(1 + strlen(s->spec.unique));
    }
    if (s->spec.batch) {
        bytes += attribute_bytes(strlen(s->spec.batch));
    }

    for (unsigned i = 0; i < s->tags.n; i++) {
        bytes += attribute_bytes(strlen(s->tags.v[i]));
    }
    for (unsigned i = 0; i < s->headers.n; i++) {
        const struct lapse_header *h = &s->headers.v[i];
        bytes += attribute_bytes(strlen(h->name) + 1 + strlen(h->value));
    }

    bytes += backoff_bytes(&s->backoff) + guard_bytes(&s->guard) + ms_bytes(s->spec.run_ms) +
             ms_bytes(s->spec.max_late_ms) + ms_bytes(s->spec.retry_for_ms) +
             ms_bytes(s->spec.flags & LAPSE_CREATED) + ms_bytes(s->spec.keep_ms) +
             moments_bytes(&s->spec) + gather_bytes(&s->spec);

    if (bytes > ATTRIBUTES_MAX) {
        return usage_errorf("tags, headers, --unique, --if and what else the record says of the "
                            "job take %zu bytes; they "
                            "may take 4096",
                            bytes);
    }
    return 0;
}

static void on_schedule_reply(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct schedule_command *s = arg;
    unsigned copies = s->spec.replicas || (s->spec.flags & LAPSE_FSYNC) ? WITH_COPIES : 0;

    (void)l;
    if (err == LAPSE_EEXIST && s->spec.gather) {
        message_print(
            "%s/%s: it is a job, or a group that is dead or has other limits; `lapse get` "
            "shows it",
            s->spec.queue, s->spec.id);
        client_set_exit_code(&s->once.c, ANSWER_NO);
        oneshot_ended(&s->once);
        return;
    }
    oneshot_replied(&s->once, err, s->spec.queue, s->spec.id);
    if (job) {
        print_job(s->once.g, job, WITH_CREATED | copies);
    }
}

static int schedule_send(struct oneshot *o)
{
    struct schedule_command *s = (struct schedule_command *)o;

    return oneshot_sent(o, lapse_schedule(o->c.l, &s->spec, on_schedule_reply, s));
}

static int schedule_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct schedule_command s = {.spec = lapse_spec_init(),
                                 .guard = lapse_guard_init(),
                                 .moments.series = lapse_series_init(),
                                 .gather.limits = lapse_gather_init()};
    int rc = arguments_read(cmd, g, &s, args);

    if (rc) {
        return rc;
    }

    s.spec.queue = s.once.queue = args->v[0];
    s.spec.due = s.when.due;
    s.spec.tags = s.tags.v;
    s.spec.n_tags = s.tags.n;
    s.spec.headers = s.headers.v;
    s.spec.n_headers = s.headers.n;
    s.spec.guard = s.guard.key ? &s.guard : NULL;
    schedule_backoff(&s.spec, &s.backoff);
    bool has_moment = !s.moments.cron && !s.gather.given;
    if ((has_moment && check_when(&s.when)) || check_queue(s.spec.queue) ||
        (s.spec.id && check_id(s.spec.id)) || check_guard(&s) || check_unique(&s.spec) ||
        check_own_batch(&s.spec) || moments_read(&s.moments, &s.spec) ||
        gather_read(&s.gather, &s.spec, &s.when) || check_attributes(&s)) {
        return USAGE;
    }

    if (s.spec.gather) {
        s.once.c.unknown_advice = "the group may have this part; repeated, it may have it twice";
    } else if (s.spec.id) {
        s.once.c.unknown_advice =
            "it may have been scheduled. Repeat the command with --on-conflict keep: that adds no "
            "second job while the first one exists";
    } else {
        s.once.c.unknown_advice = "it may have been scheduled, under an unknown id; with --id it "
                                  "could be repeated safely";
    }

    rc = schedule_body(&s, g, args->n == 2 ? args->v[1] : NULL);
    rc = rc ? rc : check_part(&s.spec);
    if (!rc) {
        rc = oneshot_run(&s.once, g, schedule_send);
    }

    free(s.stdin_body);

    return rc;
}

const struct command cmd_schedule = {
    .name = "schedule",
    .usage = "QUEUE [--id ID] (--in DURATION | --at TIME | --cron LINE [--tz ZONE] | "
             "--gather LIMITS) "
             "[--stage DURATION,... | --every DURATION] [BODY | -]",
    .summary = "add a job that becomes due later",
    .min = 1,
    .max = 2,
    .opts = schedule_options,
    .text = "Adds a job to QUEUE and prints it as Redis stores it: one JSON object with\n"
            "queue, id, state, due_ms, try, tries (a number or \"forever\"), token,\n"
            "until_ms, reason, created (false if --on-conflict keep, earlier, later or debounce\n"
            "found the job), and with --replicas or --fsync replicas (how many have the job).\n"
            "With --gather ID is a group, BODY one more part of it, and created is true if it\n"
            "is the first one; then gathered (how many it has), quiet_ms, most and age_ms.\n"
            "With earlier, later and debounce a job that runs waits again after its run.\n"
            "BODY is passed to the handler: any bytes up to 1 MiB; - reads it from stdin.\n"
            "\n"
            "examples:\n"
            "  lapse schedule orders --id order-1 --in 30m 'cancel unless paid'\n"
            "  lapse schedule trials --id trial-1 --in 23d --stage 5d,6d,7d\n"
            "  lapse schedule cleanup --id hourly --in 1h --every 1h --no-overlap\n"
            "  lapse schedule digest --id daily --cron '30 9 * * mon-fri' --tz Europe/Berlin\n"
            "  lapse schedule index --id page-7 --gather quiet=5s,most=100,age=1m 'edit 12'\n"
            "  lapse schedule reports --at 2026-12-24T18:00+01:00 - < body.bin\n"
            "  lapse schedule webhooks --in 0s --tries 20 --backoff 5s '{\"url\":\"...\"}'\n",
    .run = schedule_run,
};
