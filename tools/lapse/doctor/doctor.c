/* SPDX-License-Identifier: MIT */
/* lapse doctor: looks at Redis as this user, and says of each thing whether it is fine and what
 * mends it. What it may not ask it says so and goes on; nothing but --repair changes anything that
 * lasts. */
#include "doctor/doctor.h"
#include "cli/json.h"
#include <hiredis/hiredis.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- what it says ---- */
void report(struct doctor *d, enum verdict v, const char *check, const char *queue,
            const char *mend, const char *format, ...)
{
    static const char *const words[] = {"OK", "WARN", "FAIL"};
    char text[1024];
    struct json j;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    d->n[v]++;

    if (!d->g->json) {
        printf("%-4s  %-11s  %s%s%s\n", words[v], check, queue ? queue : "", queue ? ": " : "",
               text);
        if (mend) {
            printf("%19s%s\n", "mend: ", mend);
        }
        fflush(stdout);
        return;
    }

    json_begin(&j, stdout);
    json_text(&j, "check", check);
    if (queue) {
        json_text(&j, "queue", queue);
    }

    json_text(&j, "verdict", words[v]);
    json_text(&j, "text", text);
    if (mend) {
        json_text(&j, "mend", mend);
    }

    json_end(&j);
    fflush(stdout);
}

int is_tame(const char *word, const char *also)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t len = 0;

    while (word[len] && (strchr(letters, word[len]) || strchr(also, word[len]))) {
        len++;
    }
    return len && *word != '-' && !word[len];
}

/* ---- what it asks ---- */
int64_t doctor_patience_ms(const struct doctor *d)
{
    return d->g->opts.reply_ms ? d->g->opts.reply_ms : 5000;
}

redisReply *doctor_ask(struct doctor *d, int argc, const char *const *argv, const size_t *len)
{
    redisReply *r = d->code ? NULL : redis_sync_command(&d->r, argc, argv, len);
    if (!r) {
        d->code = DOWN;
    }
    return r;
}

int is_error(const redisReply *r, const char *word)
{
    return r && r->type == REDIS_REPLY_ERROR && strncmp(r->str, word, strlen(word)) == 0;
}

int is_text(const redisReply *r)
{
    return r && (r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_STATUS) && r->str;
}

const char *doctor_text(const struct doctor *d, const char *name, char out[VALUE_BYTES])
{
    const char *at = redis_info_field(d->info, name);
    snprintf(out, VALUE_BYTES, "%.*s", (int)(strcspn(at, "\r\n") % VALUE_BYTES), at);
    return out;
}

int64_t doctor_int(const struct doctor *d, const char *name)
{
    return strtoll(redis_info_field(d->info, name), NULL, 10);
}

int doctor_config(struct doctor *d, const char *name, char out[VALUE_BYTES])
{
    redisReply *r = ASK(d, "CONFIG", "GET", name);
    int known = r && r->type == REDIS_REPLY_ARRAY && r->elements == 2 && is_text(r->element[1]);

    *out = '\0';
    if (known) {
        snprintf(out, VALUE_BYTES, "%s", printable(r->element[1]->str));
    }
    freeReplyObject(r);
    return known;
}

static void read_info(struct doctor *d)
{
    redisReply *r = ASK(d, "INFO", "all");

    if (is_error(r, "NOPERM")) {
        freeReplyObject(r);
        r = ASK(d, "INFO", "memory"); /* what a listener may ask */
    }

    d->info = strdup(is_text(r) ? r->str : "");
    freeReplyObject(r);
    if (!d->info) {
        message_print("out of memory");
        d->code = INTERNAL;
    }
}

/* ---- the command line ---- */
static int set_role(const struct opt *o, char *value, void *field)
{
    static const char *const names[] = {"listener", "producer", "monitor"};

    (void)o;
    for (unsigned i = 0; i < 3; i++) {
        if (strcmp(value, names[i]) == 0) {
            *(unsigned *)field = i;
            return 0;
        }
    }

    return usage_error("--for", value, "listener, producer or monitor");
}

static const struct opt opts[] = {
    {"repair", 0, NULL, set_switch, offsetof(struct doctor, repair),
     "mend jobs that are not whole; throws nothing away"},
    {"for", 0, "ROLE", set_role, offsetof(struct doctor, role),
     "rights of a listener (the default), a producer (schedule,\ncancel, reschedule, get) or a "
     "monitor (get, list, depth)"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

static void examine(struct doctor *d)
{
    static void (*const checks[])(struct doctor *) = {check_server, check_rights, check_events,
                                                      check_memory, check_kept,   check_clock,
                                                      check_jobs,   check_expiry};

    read_info(d);
    if (!d->n_queues && !d->code) {
        doctor_find_queues(d);
    }

    for (size_t i = 0; i < sizeof checks / sizeof *checks && !d->code; i++) {
        checks[i](d);
    }

    if (!d->g->json && !d->code) { /* programs have the verdicts, and the exit status */
        printf("%u FAIL, %u WARN, %u OK\n", d->n[FAIL], d->n[WARN], d->n[FINE]);
    }
}

#ifndef __clang__ /* gcc 12 does not see that d->queues keeps them */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
static int add_queues(struct doctor *d, const struct arguments *w)
{
    d->queues = calloc((size_t)w->n + 1, sizeof *d->queues);
    d->queues_room = w->n + 1;

    for (int i = 0; d->queues && i < w->n; i++) {
        if (check_queue(w->v[i])) {
            return USAGE;
        }
        char *copy = strdup(w->v[i]);
        if (!copy) {
            break;
        }
        d->queues[d->n_queues++] = copy;
    }

    d->named = d->n_queues > 0;
    if (d->n_queues < w->n || !d->queues) {
        message_print("out of memory");
        return INTERNAL;
    }

    return 0;
}
#ifndef __clang__
#pragma GCC diagnostic pop
#endif

static int run(const struct command *cmd, struct globals *g, struct arguments *w)
{
    struct doctor d = {.g = g, .eval = "EVAL"};
    int code = arguments_read(cmd, g, &d, w);

    if (!code) {
        code = add_queues(&d, w);
    }

    if (!code && !(code = url_make(g))) {
        d.space = g->opts.space ? g->opts.space : "lapse";
        d.secret = strdup(g->secret_url);
        url_wipe(g);
        /* it is freed below; NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        code = d.secret ? redis_sync_open(&d.r, d.secret, g->shown_url, doctor_patience_ms(&d),
                                          g->connect_wait_ms)
                        : INTERNAL;
        if (!code) {
            examine(&d);
            code = d.code ? d.code : d.n[FAIL] ? ANSWER_NO : DONE;
        }
        redis_sync_close(&d.r);
    }

    if (d.secret) {
        explicit_bzero(d.secret, strlen(d.secret));
    }

    for (int i = 0; i < d.n_queues; i++) {
        free(d.queues[i]);
    }

    free(d.queues);
    free(d.secret);
    free(d.info);

    return code;
}

const struct command cmd_doctor = {
    "doctor",
    "[QUEUE...] [--repair] [--for ROLE]",
    "is this Redis fit for lapse, and is every job whole",
    0,
    INT_MAX,
    opts,
    "Looks at Redis as the user of the URL, and prints a line for each check: OK, WARN (jobs "
    "still\n"
    "run: later, or not after a crash) or FAIL, and the command that mends it. Without QUEUE it\n"
    "looks for the queues itself. What this user may not ask is said, and is no FAIL.\n"
    "\n"
    "checks: server, role, rights (a missing one may break a script in the middle), events (a key "
    "of\n"
    "its own expires, and it waits for the word), eviction, memory, persistence, replicas, "
    "buffers,\n"
    "clock, jobs (each in exactly one state, with its record), expiry (how late Redis would say "
    "that\n"
    "a key expired if nobody touched it).\n"
    "\n"
    "It is safe beside running listeners: jobs are looked at in small batches, each at one "
    "moment.\n"
    "--repair puts a job with a live lease, or that would run again, into that one state; what is\n"
    "left over of others becomes a dead job that says what was found (lapse list QUEUE --state "
    "dead):\n"
    "reschedule or cancel it.\n"
    "\nexamples:\n"
    "  lapse doctor\n"
    "  lapse doctor orders --repair\n"
    "  lapse doctor --json | jq -r 'select(.verdict == \"FAIL\").mend'\n",
    "  1   also: a check failed\n",
    run,
};
