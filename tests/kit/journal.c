/* SPDX-License-Identifier: MIT */
#include "journal.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_SIZE = 1024, NO_MEMORY = 122, NOT_WRITTEN = 123, NOT_OPENED = 124 };

/* ---- lines ---- */
void journal_open(struct journal *j)
{
    j->fd = open(j->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (j->fd < 0) {
        _exit(NOT_OPENED);
    }
}

int64_t journal_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

void journal_line(const struct journal *j, const char *format, ...)
{
    static const char head[] = "{\"proc\":\"%s\",\"mono_ns\":%" PRId64 ",";
    char line[LINE_SIZE];
    int n = snprintf(line, sizeof line, head, j->proc, journal_ns());
    va_list ap;

    va_start(ap, format);
    n += vsnprintf(line + n, sizeof line - (size_t)n, format, ap);
    va_end(ap);

    if ((size_t)n + 2 >= sizeof line) {
        abort();
    }
    line[n++] = '}';
    line[n++] = '\n';

    if (write(j->fd, line, (size_t)n) != n) {
        _exit(NOT_WRITTEN);
    }
}

/* FNV-1a: what is looked for is damage, not a forger. */
uint64_t journal_digest(const void *body, size_t len)
{
    const unsigned char *bytes = body;
    uint64_t hash = 14695981039346656037u;

    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ bytes[i]) * 1099511628211u;
    }
    return hash ^ len;
}

/* ---- calls ---- */
struct journal_call *journal_asked(struct journal *j, const char *op, const char *id,
                                   const char *format, ...)
{
    struct journal_call *call = calloc(1, sizeof *call);
    char more[LINE_SIZE / 2];
    va_list ap;

    if (!call) {
        _exit(NO_MEMORY);
    }

    call->journal = j;
    call->number = ++j->n_calls;
    snprintf(call->op, sizeof call->op, "%s", op);
    snprintf(call->id, sizeof call->id, "%s", id);
    j->n_open++;
    j->totals->asked++;

    va_start(ap, format);
    vsnprintf(more, sizeof more, format, ap);
    va_end(ap);
    journal_line(j, "\"call\":%ld,\"op\":\"%s\",\"job\":\"%s\",\"outcome\":\"asked\"%s",
                 call->number, op, id, more);

    return call;
}

static const char *outcome_of(int err)
{
    if (err == 0) {
        return "ok";
    }
    return lapse_outcome_unknown(err) ? "info" : "fail";
}

static const char *name_of(int err)
{
    switch (err) {
#define LAPSE_X(name, number, did, text) \
    case LAPSE_##name: return #name;
        LAPSE_ERRORS(LAPSE_X)
#undef LAPSE_X
    }
    return "";
}

void journal_answered(struct journal_call *call, int err, const char *more)
{
    struct journal *j = call->journal;

    journal_line(j, "\"call\":%ld,\"op\":\"%s\",\"job\":\"%s\",\"outcome\":\"%s\",\"err\":\"%s\"%s",
                 call->number, call->op, call->id, outcome_of(err), name_of(err), more);
    j->n_open--;
    j->totals->answered++;
    free(call);
}

/* ---- as a recorder ---- */
static void on_begin(void *arg)
{
    journal_open(arg);
}

static void on_started(void *arg, const struct lapse_job *job)
{
    struct journal *j = arg;
    unsigned tries = lapse_job_tries(job);
    size_t len;
    const void *body = lapse_job_body(job, &len);

    journal_line(j,
                 "\"op\":\"start\",\"job\":\"%s\",\"queue\":\"%s\",\"token\":%" PRIu64
                 ",\"attempt\":%u,\"tries\":%u,\"due\":%" PRId64 ",\"redis_us\":%" PRId64
                 ",\"lease_until\":%" PRId64 ",\"via\":%d,\"payload\":\"%016" PRIx64 "\"",
                 lapse_job_id(job), lapse_job_queue(job), lapse_job_token(job), lapse_job_try(job),
                 tries == LAPSE_FOREVER ? 0 : tries, lapse_job_due_ms(job),
                 lapse_job_claimed_us(job), lapse_job_until_ms(job), (int)lapse_job_via(job),
                 journal_digest(body, len));
    j->totals->started++;
}

static void *on_settling(void *arg, const struct lapse_job *job, const struct settle *s)
{
    static const char *const op[] = {
        [SETTLE_DONE] = "ack", [SETTLE_RETRY] = "nack", [SETTLE_FAIL] = "dead"};

    return journal_asked(arg, op[s->how], lapse_job_id(job),
                         ",\"token\":%" PRIu64 ",\"lease_until\":%" PRId64 ",\"least\":%" PRId64,
                         lapse_job_token(job), lapse_job_until_ms(job), s->least_ms);
}

static void on_settled(void *arg, void *note, int err)
{
    (void)arg;
    journal_answered(note, err, "");
}

struct recorder journal_recorder(struct journal *j)
{
    return (struct recorder){.arg = j,
                             .begin = on_begin,
                             .started = on_started,
                             .settling = on_settling,
                             .settled = on_settled};
}
