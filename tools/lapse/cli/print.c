/* SPDX-License-Identifier: MIT */
/* What stdout shows of a job and of a queue, in both formats. JSON members keep their names and
 * order for ever; new ones go to the end. The text is for people: it may change, is cut where it
 * would break a line, and holds no byte that a terminal would obey. */
#include "cli/print.h"
#include "cli/json.h"
#include "cli/text.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SHOWN_BYTES = 300, REASON_BYTES = 1024 };

const char *print_time(char out[TIME_BYTES], int64_t unix_ms)
{
    time_t s = (time_t)(unix_ms / 1000);
    struct tm tm;
    size_t n = gmtime_r(&s, &tm) ? strftime(out, TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &tm) : 0;
    snprintf(out + n, TIME_BYTES - n, ".%03dZ", (int)(unix_ms % 1000));
    return out;
}

const char *state_name(enum lapse_state state)
{
    return state == LAPSE_WAITING   ? "waiting"
           : state == LAPSE_RUNNING ? "running"
           : state == LAPSE_DEAD    ? "dead"
                                    : "unknown";
}

const char *via_name(enum lapse_via via)
{
    return via == LAPSE_VIA_EVENT    ? "event"
           : via == LAPSE_VIA_NOTICE ? "notice"
           : via == LAPSE_VIA_ALARM  ? "alarm"
           : via == LAPSE_VIA_SWEEP  ? "sweep"
                                     : "unknown";
}

static int64_t late_us(const struct lapse_job *job)
{
    return lapse_job_claimed_us(job) - lapse_job_due_ms(job) * 1000;
}

/* tries as text: LAPSE_FOREVER is no number that means anything to people */
static const char *tries_text(const struct lapse_job *job, char out[16])
{
    if (lapse_job_tries(job) == LAPSE_FOREVER) {
        return "forever";
    }
    snprintf(out, 16, "%u", lapse_job_tries(job));
    return out;
}

/* get says EDATA of such a job; a list shows what is known of it */
static int unreadable(const struct lapse_job *job)
{
    return !lapse_job_tries(job);
}

static const char *body_text(const struct lapse_job *job, char out[SHOWN_BYTES])
{
    size_t len;
    const char *body = lapse_job_body(job, &len);

    if (!text_is_utf8(body, len) || memchr(body, '\0', len)) {
        snprintf(out, SHOWN_BYTES, "(%zu bytes that are not text)", len);
        return out;
    }
    return text_shown(out, SHOWN_BYTES, body, len);
}

static const char *why_text(const struct lapse_job *job, char out[SHOWN_BYTES])
{
    const char *reason = unreadable(job) ? lapse_strerror(LAPSE_EDATA) : lapse_job_reason(job);
    return text_shown(out, SHOWN_BYTES, reason, strlen(reason));
}

static void json_tries(struct json *j, const struct lapse_job *job)
{
    if (lapse_job_tries(job) == LAPSE_FOREVER) {
        json_text(j, "tries", "forever");
    } else {
        json_int(j, "tries", lapse_job_tries(job));
    }
}

/* The id stands behind what has a width: it may have 255 letters. */
static void print_job_line(const struct lapse_job *job)
{
    char due[TIME_BYTES];
    char tries[16];
    char reason[SHOWN_BYTES];

    printf("%-8s %s %4u of %-7s %-24s %s\n", state_name(lapse_job_state(job)),
           print_time(due, lapse_job_due_ms(job)), lapse_job_try(job), tries_text(job, tries),
           lapse_job_id(job), why_text(job, reason));
}

void print_job(const struct globals *g, const struct lapse_job *job, unsigned parts)
{
    struct json j;
    char reason[REASON_BYTES];

    if (g->text) {
        print_job_line(job);
        return;
    }

    json_begin(&j, stdout);
    json_text(&j, "queue", lapse_job_queue(job));
    json_text(&j, "id", lapse_job_id(job));
    json_text(&j, "state", state_name(lapse_job_state(job)));
    json_int(&j, "due_ms", lapse_job_due_ms(job));
    json_int(&j, "try", lapse_job_try(job));
    json_tries(&j, job);
    json_int(&j, "token", (int64_t)lapse_job_token(job));
    json_int(&j, "until_ms", lapse_job_until_ms(job));
    json_text(&j, "reason", text_mended(reason, sizeof reason, lapse_job_reason(job)));

    if (parts & WITH_BODY) {
        size_t len;
        const void *bytes = lapse_job_body(job, &len);
        json_bytes(&j, "body", bytes, len);
    }

    if (parts & WITH_CREATED) {
        json_bool(&j, "created", lapse_job_created(job));
    }

    if (unreadable(job)) {
        json_text(&j, "error", lapse_strerror(LAPSE_EDATA));
    }

    json_end(&j);
}

void print_job_heading(void)
{
    printf("%-8s %-24s %-15s %-24s %s\n", "STATE", "DUE", " TRY", "ID", "REASON");
}

void print_job_long(const struct lapse_job *job)
{
    char due[TIME_BYTES];
    char until[TIME_BYTES];
    char tries[16];
    char text[SHOWN_BYTES];

    printf("queue   %s\nid      %s\nstate   %s\ndue     %s\ntry     %u of %s\ntoken   %" PRIu64
           "\n",
           lapse_job_queue(job), lapse_job_id(job), state_name(lapse_job_state(job)),
           print_time(due, lapse_job_due_ms(job)), lapse_job_try(job), tries_text(job, tries),
           lapse_job_token(job));
    if (lapse_job_until_ms(job)) {
        printf("until   %s\n", print_time(until, lapse_job_until_ms(job)));
    }

    if (*lapse_job_reason(job)) {
        printf("why     %s\n", why_text(job, text));
    }

    printf("body    %s\n", body_text(job, text));
}

void print_fired(const struct globals *g, const struct lapse_job *job, FILE *to)
{
    struct json j;
    size_t len;
    const void *body = lapse_job_body(job, &len);
    char due[TIME_BYTES];
    char text[SHOWN_BYTES];

    if (g->text) {
        fprintf(to, "%s/%s due %s late %.3f ms (%s) try %u: %s\n", lapse_job_queue(job),
                lapse_job_id(job), print_time(due, lapse_job_due_ms(job)),
                (double)late_us(job) / 1000, via_name(lapse_job_via(job)), lapse_job_try(job),
                body_text(job, text));
        return;
    }

    json_begin(&j, to);
    json_text(&j, "queue", lapse_job_queue(job));
    json_text(&j, "id", lapse_job_id(job));
    json_bytes(&j, "body", body, len);
    json_int(&j, "due_ms", lapse_job_due_ms(job));
    json_ms(&j, "late_ms", late_us(job));
    json_int(&j, "try", lapse_job_try(job));
    json_int(&j, "token", (int64_t)lapse_job_token(job));
    json_text(&j, "via", via_name(lapse_job_via(job)));
    json_end(&j);
}

void print_depth(const struct globals *g, const char *queue, const struct lapse_depth *d,
                 int heading)
{
    struct json j;

    if (g->text) {
        if (heading) {
            printf("%10s %10s %10s %12s  %s\n", "WAITING", "RUNNING", "DEAD", "LATE", "QUEUE");
        }
        printf("%10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %9" PRId64 " ms  %s\n", d->waiting,
               d->running, d->dead, d->late_ms, queue);
        return;
    }

    json_begin(&j, stdout);
    json_text(&j, "queue", queue);
    json_int(&j, "waiting", (int64_t)d->waiting);
    json_int(&j, "running", (int64_t)d->running);
    json_int(&j, "dead", (int64_t)d->dead);
    json_int(&j, "late_ms", d->late_ms);
    json_end(&j);
}
