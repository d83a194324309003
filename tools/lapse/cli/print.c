/* SPDX-License-Identifier: MIT */
/* What stdout shows of a job and of a queue, in both formats. JSON members never change their names
 * or order; new ones are appended. The text is for people: it may change, is cut where it would
 * break a line, and holds no byte that a terminal would obey. */
#include "cli/print.h"
#include "base/span.h"
#include "cli/json.h"
#include "cli/message.h"
#include "cli/text.h"
#include "job/attributes.h"
#include "job/keys.h"
#include "job/group.h"
#include "job/series.h"
#include <inttypes.h>
#include <string.h>
#include <time.h>

enum {
    SHOWN_BYTES = 300,
    REASON_BYTES = 1024,
    HEADER_BYTES = 1024,
    TRIES_BYTES = 16,
    TIME_BYTES = 32,
    SETTING_BYTES = 300
};

/* ---- values ---- */
/* 2026-12-24T18:00:00.000Z */
static const char *time_text(char out[TIME_BYTES], int64_t unix_ms)
{
    time_t s = (time_t)(unix_ms / 1000);
    struct tm tm;
    size_t n = 0;

    if (gmtime_r(&s, &tm)) {
        n = strftime(out, TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &tm);
    }
    snprintf(out + n, TIME_BYTES - n, ".%03dZ", (int)(unix_ms % 1000));

    return out;
}

const char *state_name(enum lapse_state state)
{
    switch (state) {
    case LAPSE_WAITING: return "waiting";
    case LAPSE_RUNNING: return "running";
    case LAPSE_DEAD: return "dead";
    case LAPSE_KEPT: return "kept";
    case LAPSE_SERIES: return "series";
    default: return "unknown";
    }
}

const char *catch_up_name(enum lapse_catch_up catch_up)
{
    switch (catch_up) {
    case LAPSE_CATCH_UP_LATEST: return "latest";
    case LAPSE_CATCH_UP_ALL: return "all";
    case LAPSE_CATCH_UP_NONE: return "none";
    default: return "unknown";
    }
}

const char *via_name(enum lapse_via via)
{
    switch (via) {
    case LAPSE_VIA_EVENT: return "event";
    case LAPSE_VIA_NOTICE: return "notice";
    case LAPSE_VIA_ALARM: return "alarm";
    case LAPSE_VIA_SWEEP: return "sweep";
    case LAPSE_VIA_TOUCH: return "touch";
    case LAPSE_VIA_ASKED: return "asked";
    default: return "unknown";
    }
}

static const char *end_name(enum lapse_end end)
{
    switch (end) {
    case LAPSE_ENDED_DONE: return "done";
    case LAPSE_ENDED_CANCELLED: return "cancelled";
    case LAPSE_ENDED_SKIPPED: return "skipped";
    case LAPSE_ENDED_FORWARDED: return "forwarded";
    default: return "unknown";
    }
}

static int64_t job_late_us(const struct lapse_job *job)
{
    return lapse_job_claimed_us(job) - lapse_job_due_ms(job) * 1000;
}

/* LAPSE_FOREVER is no number that means anything to people. */
static const char *tries_text(const struct lapse_job *job, char out[TRIES_BYTES])
{
    if (lapse_job_tries(job) == LAPSE_FOREVER) {
        return "forever";
    }

    snprintf(out, TRIES_BYTES, "%u", lapse_job_tries(job));
    return out;
}

/* lapse get fails with EDATA for such a job; a list shows what is known of it. */
static bool job_is_unreadable(const struct lapse_job *job)
{
    return lapse_job_tries(job) == 0;
}

static const char *bytes_text(const char *bytes, size_t len, char out[SHOWN_BYTES])
{
    if (!text_is_utf8(bytes, len) || memchr(bytes, '\0', len)) {
        snprintf(out, SHOWN_BYTES, "(%zu bytes that are not text)", len);
        return out;
    }

    return text_escaped(out, SHOWN_BYTES, bytes, len);
}

/* "2 parts: one, two" */
static const char *parts_text(const struct lapse_job *job, char out[SHOWN_BYTES])
{
    char text[SHOWN_BYTES];
    size_t used = (size_t)snprintf(out, SHOWN_BYTES, "%u parts", lapse_job_parts(job));
    size_t len;
    const char *part;

    for (unsigned i = 0; used < SHOWN_BYTES && (part = lapse_job_part(job, i, &len)); i++) {
        const char *comma = i ? ", " : ": ";
        used += (size_t)snprintf(out + used, SHOWN_BYTES - used, "%s%s", comma,
                                 bytes_text(part, len, text));
    }
    return out;
}

static bool has_parts(const struct lapse_job *job)
{
    return lapse_job_part(job, 0, NULL) != NULL;
}

static const char *body_text(const struct lapse_job *job, char out[SHOWN_BYTES])
{
    size_t len;
    const char *body = lapse_job_body(job, &len);

    return has_parts(job) ? parts_text(job, out) : bytes_text(body, len, out);
}

static const char *reason_text(const struct lapse_job *job, char out[SHOWN_BYTES])
{
    const char *reason = lapse_job_reason(job);

    if (job_is_unreadable(job)) {
        reason = lapse_strerror(LAPSE_EDATA);
    }
    return text_escaped(out, SHOWN_BYTES, reason, strlen(reason));
}

/* ---- a job ---- */
void print_job_heading(void)
{
    printf("%-8s %-24s %-15s %-24s %s\n", "STATE", "DUE", " TRY", "ID", "REASON");
}

/* The id comes after all columns of fixed width: it may have 255 letters. */
static void print_job_line(const struct lapse_job *job)
{
    char due[TIME_BYTES];
    char tries[TRIES_BYTES];
    char reason[SHOWN_BYTES];

    printf("%-8s %s %4u of %-7s %-24s %s\n", state_name(lapse_job_state(job)),
           time_text(due, lapse_job_due_ms(job)), lapse_job_try(job), tries_text(job, tries),
           lapse_job_id(job), reason_text(job, reason));
}

static void json_tries(struct json *j, const struct lapse_job *job)
{
    if (lapse_job_tries(job) == LAPSE_FOREVER) {
        json_text(j, "tries", "forever");
    } else {
        json_int(j, "tries", lapse_job_tries(job));
    }
}

/* Tags, headers, priority and key are members only of jobs that have some. */
static void json_tags(struct json *j, const struct lapse_job *job)
{
    const char *tags[TAGS_MAX];
    unsigned n = 0;

    while (n < TAGS_MAX && (tags[n] = lapse_job_tag(job, n))) {
        n++;
    }
    if (n) {
        json_texts(j, "tags", tags, n);
    }
}

static void json_headers(struct json *j, const struct lapse_job *job)
{
    char text[HEADER_BYTES];
    const char *name = lapse_job_header_name(job, 0);

    if (!name) {
        return;
    }

    json_open(j, "headers");
    for (unsigned i = 0; (name = lapse_job_header_name(job, i)); i++) {
        json_pair(j, name, text_repaired(text, sizeof text, lapse_job_header(job, name)));
    }
    json_close(j);
}

static void json_priority(struct json *j, const struct lapse_job *job)
{
    if (lapse_job_priority(job)) {
        json_int(j, "priority", lapse_job_priority(job));
    }
}

enum { GUARD_BYTES = 2 * KEYS_GUARD_MAX + GUARD_VALUE_MAX + 4 };

/* As --if takes it: KEY, maybe FIELD, and what is asked of them. 0: there is none. */
static size_t guard_text(const struct lapse_job *job, char out[GUARD_BYTES])
{
    static const char *const ops[] = {
        [LAPSE_EQUALS] = "=", [LAPSE_DIFFERS] = "!=", [LAPSE_EXISTS] = "?", [LAPSE_MISSING] = "!"};
    struct lapse_guard g = lapse_guard_init();

    if (!lapse_job_guard(job, &g)) {
        return 0;
    }

    const char *space = g.field ? " " : "";
    const char *field = g.field ? g.field : "";
    int len = snprintf(out, GUARD_BYTES, "%.512s%s%.512s%s", g.key, space, field, ops[g.op]);
    size_t value_len = g.value_len < GUARD_VALUE_MAX ? g.value_len : GUARD_VALUE_MAX;
    memcpy(out + len, g.value, value_len);
    return (size_t)len + value_len;
}

static const char *late_name(enum lapse_late late)
{
    return late == LAPSE_LATE_DEAD ? "dead" : "skip";
}

/* Only of jobs that have them. */
static void json_conditions(struct json *j, const struct lapse_job *job)
{
    char guard[GUARD_BYTES];
    enum lapse_late late;
    int64_t max_late_ms = lapse_job_max_late_ms(job, &late);
    size_t len = guard_text(job, guard);

    if (max_late_ms) {
        json_int(j, "max_late_ms", max_late_ms);
        json_text(j, "late", late_name(late));
    }
    if (len) {
        json_bytes(j, "if", guard, len);
    }
}

/* What a series says of its moments. */
static void json_rule(struct json *j, const struct lapse_job *job)
{
    struct lapse_series s = lapse_series_init();
    int64_t stages_ms[SERIES_STAGES_MAX];

    if (!lapse_job_rule(job, &s, stages_ms)) {
        return;
    }

    if (s.n_stages) {
        json_ints(j, "stages_ms", s.stages_ms, s.n_stages);
    } else if (s.calendar) {
        json_text(j, "calendar", s.calendar);
        json_text(j, "rule", s.rule);
    } else {
        json_int(j, "every_ms", s.every_ms);
    }
    if (!s.n_stages) {
        json_text(j, "catch_up", catch_up_name(s.catch_up));
    }
    if (s.until_ms) {
        json_int(j, "last_ms", s.until_ms);
    }
    if (s.times) {
        json_int(j, "times", s.times);
    }
    if (s.no_overlap) {
        json_bool(j, "no_overlap", true);
    }
    if (lapse_job_paused(job)) {
        json_bool(j, "paused", true);
    }
}

/* Only of series, and of the jobs that they have made. */
static void json_series(struct json *j, const struct lapse_job *job)
{
    if (*lapse_job_series(job)) {
        json_text(j, "series", lapse_job_series(job));
    }
    if (lapse_job_stage(job) || lapse_job_state(job) == LAPSE_SERIES) {
        json_int(j, "stage", lapse_job_stage(job));
    }
    json_rule(j, job);
}

/* The body is the parts, of the job of a group. */
static void json_body(struct json *j, const struct lapse_job *job)
{
    size_t len;
    const void *body = lapse_job_body(job, &len);

    if (!has_parts(job)) {
        json_bytes(j, "body", body, len);
    }
}

/* Only of groups, and of the jobs that they have made. */
static void json_group(struct json *j, const struct lapse_job *job)
{
    struct lapse_gather g = lapse_gather_init();
    struct json_part parts[GROUP_MOST_MAX];
    unsigned n = 0;

    if (lapse_job_gather(job, &g)) {
        json_int(j, "gathered", lapse_job_parts(job));
        json_int(j, "quiet_ms", g.quiet_ms);
        json_int(j, "most", g.most);
        json_int(j, "age_ms", g.age_ms);
    }

    while (n < GROUP_MOST_MAX && (parts[n].bytes = lapse_job_part(job, n, &parts[n].len))) {
        n++;
    }
    if (n) {
        json_parts(j, "parts", parts, n);
    }
}

static void json_batch(struct json *j, const struct lapse_job *job)
{
    if (lapse_job_batch(job)) {
        json_text(j, "batch", lapse_job_batch(job));
    }
    if (lapse_job_awaits(job)) {
        json_bool(j, "awaits", true);
    }
}

static void json_unique(struct json *j, const struct lapse_job *job)
{
    if (lapse_job_unique(job)) {
        json_text(j, "unique", lapse_job_unique(job));
    }
}

/* Of lapse get alone. */
static void json_report(struct json *j, const struct lapse_job *job)
{
    size_t len;
    const void *report = lapse_job_report(job, &len);

    if (report) {
        json_bytes(j, "report", report, len);
    }
}

/* The newest first. */
static void json_errors(struct json *j, const struct lapse_job *job)
{
    char text[REASON_BYTES];
    const char *reason;
    int64_t at_ms;
    unsigned try_no;

    if (!lapse_job_error(job, 0, NULL, NULL)) {
        return;
    }

    json_list_open(j, "errors");
    for (unsigned i = 0; (reason = lapse_job_error(job, i, &at_ms, &try_no)); i++) {
        json_item_open(j, i == 0);
        json_int(j, "at_ms", at_ms);
        json_int(j, "try", try_no);
        json_text(j, "reason", text_repaired(text, sizeof text, reason));
        json_close(j);
    }
    json_list_close(j);
}

static void print_errors(const struct lapse_job *job)
{
    char at[TIME_BYTES];
    char text[SHOWN_BYTES];
    const char *reason;
    int64_t at_ms;
    unsigned try_no;

    for (unsigned i = 0; (reason = lapse_job_error(job, i, &at_ms, &try_no)); i++) {
        printf("error   %s try %u: %s\n", time_text(at, at_ms), try_no,
               text_escaped(text, sizeof text, reason, strlen(reason)));
    }
}

static void print_job_json(const struct lapse_job *job, unsigned parts)
{
    struct json j;
    char reason[REASON_BYTES];

    json_begin(&j, stdout);
    json_text(&j, "queue", lapse_job_queue(job));
    json_text(&j, "id", lapse_job_id(job));
    json_text(&j, "state", state_name(lapse_job_state(job)));
    json_int(&j, "due_ms", lapse_job_due_ms(job));
    json_int(&j, "try", lapse_job_try(job));
    json_tries(&j, job);
    json_int(&j, "token", (int64_t)lapse_job_token(job));
    json_int(&j, "until_ms", lapse_job_until_ms(job));
    json_text(&j, "reason", text_repaired(reason, sizeof reason, lapse_job_reason(job)));

    if (parts & WITH_BODY) {
        json_body(&j, job);
    }

    if (parts & WITH_CREATED) {
        json_bool(&j, "created", lapse_job_created(job));
    }

    if (parts & WITH_COPIES) {
        json_int(&j, "replicas", lapse_job_replicas(job));
    }

    if (job_is_unreadable(job)) {
        json_text(&j, "error", lapse_strerror(LAPSE_EDATA));
    }

    json_tags(&j, job);
    json_headers(&j, job);
    json_priority(&j, job);
    json_conditions(&j, job);
    if (lapse_job_cancelled(job)) {
        json_bool(&j, "cancelled", true);
    }
    json_unique(&j, job);
    if (lapse_job_created_ms(job)) {
        json_int(&j, "created_ms", lapse_job_created_ms(job));
    }
    json_report(&j, job);
    if (lapse_job_state(job) == LAPSE_KEPT) {
        json_text(&j, "end", end_name(lapse_job_end(job)));
    }
    json_errors(&j, job);
    json_series(&j, job);
    json_group(&j, job);
    json_batch(&j, job);
    json_end(&j);
}

void print_job(const struct globals *g, const struct lapse_job *job, unsigned parts)
{
    if (g->text) {
        print_job_line(job);
    } else {
        print_job_json(job, parts);
    }
}

static void print_report(const struct lapse_job *job)
{
    char text[SHOWN_BYTES];
    size_t len;
    const char *report = lapse_job_report(job, &len);

    if (report) {
        printf("report  %s\n", bytes_text(report, len, text));
    }
}

static void print_conditions(const struct lapse_job *job)
{
    char text[SHOWN_BYTES];
    char guard[GUARD_BYTES];
    size_t guard_len = guard_text(job, guard);
    enum lapse_late late;
    int64_t max_late_ms = lapse_job_max_late_ms(job, &late);

    if (max_late_ms) {
        printf("max late %" PRId64 " ms, then %s\n", max_late_ms, late_name(late));
    }
    if (guard_len) {
        printf("if      %s\n", bytes_text(guard, guard_len, text));
    }
}

static void print_series(const struct lapse_job *job)
{
    struct lapse_series s = lapse_series_init();
    char until[TIME_BYTES];
    int64_t stages_ms[SERIES_STAGES_MAX];

    if (*lapse_job_series(job)) {
        printf("series  %s, moment %u\n", lapse_job_series(job), lapse_job_stage(job));
    }
    if (!lapse_job_rule(job, &s, stages_ms)) {
        return;
    }

    printf("moments %u so far", lapse_job_stage(job));
    if (s.times) {
        printf(" of %u", s.times);
    }
    if (s.until_ms) {
        printf(", none after %s", time_text(until, s.until_ms));
    }
    if (lapse_job_paused(job)) {
        printf(", paused");
    }
    if (s.n_stages) {
        printf("\nstages ");
    } else if (s.calendar) {
        printf("\nrule    %s, by %s, catch up %s", s.rule, s.calendar, catch_up_name(s.catch_up));
    } else {
        printf("\nevery   %" PRId64 " ms, catch up %s", s.every_ms, catch_up_name(s.catch_up));
    }
    for (unsigned i = 0; i < s.n_stages; i++) {
        printf(" %" PRId64 " ms", s.stages_ms[i]);
    }
    printf("%s\n", s.no_overlap ? ", no overlap" : "");
}

static void print_group(const struct lapse_job *job)
{
    struct lapse_gather g = lapse_gather_init();

    if (lapse_job_gather(job, &g)) {
        printf("group   %u parts, due with %u", lapse_job_parts(job), g.most);
        if (g.quiet_ms) {
            printf(", %" PRId64 " ms after the last", g.quiet_ms);
        }
        if (g.age_ms) {
            printf(", %" PRId64 " ms after the first", g.age_ms);
        }
        printf("\n");
    }
}

static void print_batch_of(const struct lapse_job *job)
{
    if (lapse_job_batch(job)) {
        printf("batch   %s\n", lapse_job_batch(job));
    }
    if (lapse_job_awaits(job)) {
        printf("awaits  the other jobs of its batch\n");
    }
}

void print_job_long(const struct lapse_job *job)
{
    char created[TIME_BYTES];
    char due[TIME_BYTES];
    char until[TIME_BYTES];
    char tries[TRIES_BYTES];
    char text[SHOWN_BYTES];
    const char *name;
    const char *tag;

    printf("queue   %s\n", lapse_job_queue(job));
    printf("id      %s\n", lapse_job_id(job));
    printf("state   %s%s\n", state_name(lapse_job_state(job)),
           lapse_job_cancelled(job) ? ", asked to stop" : "");
    if (lapse_job_state(job) == LAPSE_KEPT) {
        printf("end     %s\n", end_name(lapse_job_end(job)));
    }
    if (lapse_job_created_ms(job)) {
        printf("created %s\n", time_text(created, lapse_job_created_ms(job)));
    }
    printf("due     %s\n", time_text(due, lapse_job_due_ms(job)));
    printf("try     %u of %s\n", lapse_job_try(job), tries_text(job, tries));
    printf("token   %" PRIu64 "\n", lapse_job_token(job));

    if (lapse_job_until_ms(job)) {
        printf("until   %s\n", time_text(until, lapse_job_until_ms(job)));
    }

    if (*lapse_job_reason(job)) {
        printf("reason  %s\n", reason_text(job, text));
    }
    print_errors(job);

    if (lapse_job_priority(job)) {
        printf("priority %u\n", lapse_job_priority(job));
    }

    print_conditions(job);
    for (unsigned i = 0; (tag = lapse_job_tag(job, i)); i++) {
        printf("tag     %s\n", tag);
    }

    for (unsigned i = 0; (name = lapse_job_header_name(job, i)); i++) {
        const char *value = lapse_job_header(job, name);
        printf("header  %s=%s\n", name, text_escaped(text, sizeof text, value, strlen(value)));
    }

    print_series(job);
    print_group(job);
    if (lapse_job_unique(job)) {
        printf("unique  %s\n", lapse_job_unique(job));
    }
    print_batch_of(job);

    printf("body    %s\n", body_text(job, text));
    print_report(job);
}

void print_fired(const struct globals *g, const struct lapse_job *job, FILE *to)
{
    struct json j;
    char due[TIME_BYTES];
    char text[SHOWN_BYTES];

    if (g->text) {
        fprintf(to, "%s/%s due %s late %.3f ms (%s) try %u: %s\n", lapse_job_queue(job),
                lapse_job_id(job), time_text(due, lapse_job_due_ms(job)),
                (double)job_late_us(job) / 1000, via_name(lapse_job_via(job)), lapse_job_try(job),
                body_text(job, text));
        return;
    }

    json_begin(&j, to);
    json_text(&j, "queue", lapse_job_queue(job));
    json_text(&j, "id", lapse_job_id(job));
    json_body(&j, job);
    json_int(&j, "due_ms", lapse_job_due_ms(job));
    json_ms(&j, "late_ms", job_late_us(job));
    json_int(&j, "try", lapse_job_try(job));
    json_int(&j, "token", (int64_t)lapse_job_token(job));
    json_text(&j, "via", via_name(lapse_job_via(job)));
    json_tags(&j, job);
    json_headers(&j, job);
    json_series(&j, job);
    json_group(&j, job);
    json_batch(&j, job);
    json_end(&j);
}

static void print_adopted_json(const struct lapse_job *job)
{
    struct json j;

    json_begin(&j, stdout);
    json_text(&j, "queue", lapse_job_queue(job));
    json_text(&j, "id", lapse_job_id(job));
    json_body(&j, job);
    json_int(&j, "due_ms", lapse_job_due_ms(job));
    json_int(&j, "try", lapse_job_try(job));
    json_int(&j, "token", (int64_t)lapse_job_token(job));
    json_text(&j, "entry", lapse_job_entry(job));
    json_int(&j, "deliveries", (int64_t)lapse_job_deliveries(job));
    if (!*lapse_job_id(job)) {
        json_text(&j, "error", lapse_strerror(LAPSE_EDATA));
    }
    json_headers(&j, job);
    json_group(&j, job);
    json_end(&j);
}

void print_adopted(const struct globals *g, const struct lapse_job *job)
{
    char due[TIME_BYTES];
    char text[SHOWN_BYTES];

    if (!g->text) {
        print_adopted_json(job);
    } else if (!*lapse_job_id(job)) {
        printf("%s: entry %s deliveries %" PRIu64 ": %s\n", lapse_job_queue(job),
               lapse_job_entry(job), lapse_job_deliveries(job), lapse_strerror(LAPSE_EDATA));
    } else {
        printf("%s/%s entry %s deliveries %" PRIu64 " due %s try %u: %s\n", lapse_job_queue(job),
               lapse_job_id(job), lapse_job_entry(job), lapse_job_deliveries(job),
               time_text(due, lapse_job_due_ms(job)), lapse_job_try(job), body_text(job, text));
    }
}

/* ---- a queue ---- */
void print_depth_heading(void)
{
    printf("%10s %10s %10s %12s %10s  %s\n", "WAITING", "RUNNING", "DEAD", "LATE", "KEPT", "QUEUE");
}

static void json_depth(struct json *j, const char *queue, const struct lapse_depth *d)
{
    json_text(j, "queue", queue);
    json_int(j, "waiting", (int64_t)d->waiting);
    json_int(j, "running", (int64_t)d->running);
    json_int(j, "dead", (int64_t)d->dead);
    json_int(j, "late_ms", d->late_ms);
    json_int(j, "kept", (int64_t)d->kept);
}

void print_depth(const struct globals *g, const char *queue, const struct lapse_depth *d)
{
    struct json j;

    if (g->text) {
        printf("%10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %9" PRId64 " ms %10" PRIu64 "  %s\n",
               d->waiting, d->running, d->dead, d->late_ms, d->kept, queue);
        return;
    }

    json_begin(&j, stdout);
    json_depth(&j, queue, d);
    json_end(&j);
}

/* ---- the settings of a queue ---- */
/* A longer part is cut. */
struct setting {
    char name[SETTING_BYTES];
    char value[SETTING_BYTES];
};

static bool next_setting(struct span *rest, struct setting *s)
{
    struct span value = *rest;
    struct span name;

    if (rest->len == 0) {
        return false;
    }
    if (!span_cut(rest, ' ', &value)) {
        rest->len = 0;
    }
    if (!span_cut(&value, '=', &name)) {
        return false;
    }

    snprintf(s->name, sizeof s->name, "%.*s", (int)name.len, name.at);
    snprintf(s->value, sizeof s->value, "%.*s", (int)value.len, value.at);
    return true;
}

static bool is_member_name(const char *name)
{
    return name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

static void json_settings(struct json *j, struct span settings)
{
    struct setting s;
    int64_t number;

    while (next_setting(&settings, &s)) {
        if (!is_member_name(s.name)) {
            continue;
        }
        if (span_decimal(span_of(s.value), EXACT_MAX, &number)) {
            json_int(j, s.name, number);
        } else {
            json_text(j, s.name, s.value);
        }
    }
}

static void print_settings_json(const char *queue, struct span settings)
{
    struct json j;

    json_begin(&j, stdout);
    json_text(&j, "queue", queue);
    json_settings(&j, settings);
    json_end(&j);
}

void print_settings(const struct globals *g, const char *queue, const char *settings)
{
    struct span rest = span_of(settings);
    struct setting s;

    if (!g->text) {
        print_settings_json(queue, rest);
        return;
    }

    if (rest.len == 0) {
        printf("%s: all settings have their defaults\n", queue);
    }
    while (next_setting(&rest, &s)) {
        printf("%s: %s=%s\n", queue, printable(s.name), printable(s.value));
    }
}

void print_pause(const struct globals *g, const char *queue, const char *settings)
{
    struct span rest = span_of(settings);
    struct setting s;
    char until[TIME_BYTES];
    int64_t until_ms = 0;

    if (!g->text) {
        print_settings_json(queue, rest);
        return;
    }

    while (next_setting(&rest, &s)) {
        if (strcmp(s.name, "paused") == 0) {
            span_decimal(span_of(s.value), EXACT_MAX, &until_ms);
        }
    }

    if (until_ms == 0) {
        printf("%s: not paused\n", queue);
    } else if (until_ms == EXACT_MAX) {
        printf("%s: paused\n", queue);
    } else {
        printf("%s: paused until %s\n", queue, time_text(until, until_ms));
    }
}

void print_queue(const struct globals *g, const struct lapse_queue *queue)
{
    struct span rest = span_of(queue->settings);
    struct setting s;
    struct json j;

    if (!g->text) {
        json_begin(&j, stdout);
        json_depth(&j, queue->name, queue->depth);
        json_settings(&j, rest);
        json_end(&j);
        return;
    }

    print_depth(g, queue->name, queue->depth);
    while (next_setting(&rest, &s)) {
        printf("%58s  %s=%s\n", "", printable(s.name), printable(s.value));
    }
}

/* ---- a listener ---- */
static const char *told_name(enum lapse_told told)
{
    switch (told) {
    case LAPSE_TOLD_QUIET: return "quiet";
    case LAPSE_TOLD_STOP: return "stop";
    case LAPSE_TOLD_GO_ON:
    default: return "go on";
    }
}

void print_told(const struct globals *g, const struct lapse_listener *listener)
{
    struct json j;

    if (g->text) {
        printf("%s: %s\n", printable(listener->name), told_name(listener->told));
        return;
    }

    json_begin(&j, stdout);
    json_text(&j, "name", listener->name);
    json_text(&j, "told", told_name(listener->told));
    json_end(&j);
}

void print_listener_heading(void)
{
    printf("%10s  %-24s  %-5s  %s\n", "HELD", "SINCE", "TOLD", "NAME");
}

void print_listener(const struct globals *g, const char *queue,
                    const struct lapse_listener *listener)
{
    bool is_member = listener->since_ms > 0;
    char since[TIME_BYTES] = "-";
    struct json j;

    if (g->text) {
        const char *told = listener->told ? told_name(listener->told) : "-";
        if (is_member) {
            time_text(since, listener->since_ms);
        }
        printf("%10" PRIu64 "  %-24s  %-5s  %s\n", listener->n_held, since, told,
               printable(listener->name));
        return;
    }

    json_begin(&j, stdout);
    json_text(&j, "queue", queue);
    json_text(&j, "name", listener->name);
    json_int(&j, "since_ms", listener->since_ms);
    json_bool(&j, "member", is_member);
    json_int(&j, "held", (int64_t)listener->n_held);
    json_text(&j, "told", told_name(listener->told));
    json_end(&j);
}
