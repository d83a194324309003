/* SPDX-License-Identifier: MIT */
#include "job/job.h"
#include "base/mem.h"
#include "job/failures.h"
#include "job/group.h"
#include "job/made_id.h"
#include "job/series.h"

enum {
    BATCH = 'B',
    CALENDAR = 'C',
    GROUP = 'P',
    GUARD = 'G',
    LATE = 'L',
    OF_SERIES = 'O',
    PRIORITY = 'Q',
    SERIES = 'S',
    TAG = 'T',
    UNIQUE = 'U',
    HEADER = 'h',
    CREATED = 'm',
    PARTS = 'p',
    RUN = 'r'
}; /* the letters of attributes */
enum { RUN_MIN_MS = 100, CREATED_DIGITS = 13 };
static const int64_t DAY_MS = 86400000;
static const int64_t RUN_MAX_MS = 366 * (int64_t)86400000;

bool job_run_ms_ok(int64_t run_ms)
{
    return run_ms >= RUN_MIN_MS && run_ms <= RUN_MAX_MS;
}

size_t job_texts_len(const char *queue, const struct job_row *row, bool with_body)
{
    size_t shown = with_body ? row->record.len + row->report.len + row->errors.len : 0;

    return strlen(queue) + 1 + row->id.len + 1 + shown;
}

static char *put_text(char *to, struct span text, const char **field)
{
    memcpy(to, text.at, text.len);
    to[text.len] = '\0';
    *field = to;
    return to + text.len + 1;
}

/* Tags, headers, guard, key, series and batch take no more room than the header of the record. */
static char *put_tags(char *to, struct span attributes)
{
    struct attribute a;
    const char *text;

    while (attributes_take(&attributes, &a)) {
        if (a.letter == TAG) {
            to = put_text(to, a.value, &text);
        }
    }

    *to = '\0';
    return to + 1;
}

static char *put_headers(char *to, struct span attributes)
{
    struct attribute a;
    struct span name;
    struct span value;
    const char *text;

    while (attributes_take(&attributes, &a)) {
        if (a.letter == HEADER && header_read(a.value, &name, &value)) {
            to = put_text(to, name, &text);
            to = put_text(to, value, &text);
        }
    }

    *to = '\0';
    return to + 1;
}

/* OPKEY, FIELD and VALUE, each terminated. */
static char *put_guard(char *to, struct span attributes, struct lapse_job *job)
{
    struct span text;
    struct guard guard;
    const char *at;

    if (!attributes_find(attributes, GUARD, &text) || !guard_read(text, &guard)) {
        return to;
    }

    job->guard = to;
    job->guard_value_len = guard.value.len;
    *to++ = guard.op;
    to = put_text(to, guard.key, &at);
    to = put_text(to, guard.field, &at);
    return put_text(to, guard.value, &at);
}

static void set_late(struct lapse_job *job, struct span attributes)
{
    struct span text;

    if (attributes_find(attributes, LATE, &text)) {
        job->late = text.at[0] == 'd' ? LAPSE_LATE_DEAD : LAPSE_LATE_SKIP;
        span_decimal((struct span){text.at + 1, text.len - 1}, EXACT_MAX, &job->max_late_ms);
    }
}

/* The key, behind the letter that says until when the job holds it. */
static char *put_unique(char *to, struct span attributes, const char **field)
{
    struct span value = {"", 0};

    if (attributes_find(attributes, UNIQUE, &value)) {
        value = (struct span){value.at + 1, value.len - 1};
    }
    return put_text(to, value, field);
}

/* What a series says, and of which series a job is. */
static char *put_series(char *to, struct span attributes, struct lapse_job *job)
{
    struct span text;
    struct span id;
    struct span name;
    struct span rule;
    const char *at;
    int64_t n;

    if (attributes_find(attributes, OF_SERIES, &text) && series_of_read(text, &id, &n)) {
        to = put_text(to, id, &job->series);
    }
    if (attributes_find(attributes, SERIES, &text)) {
        to = put_text(to, text, &job->rule);
    }
    if (attributes_find(attributes, CALENDAR, &text) && calendar_read(text, &name, &rule)) {
        to = put_text(to, name, &job->calendar);
        to = put_text(to, rule, &at);
    }
    return to;
}

static char *put_batch(char *to, struct span attributes, const char **field)
{
    struct span name;

    return attributes_find(attributes, BATCH, &name) ? put_text(to, name, field) : to;
}

/* They take no more room than in the row: the length of each reason is left out. */
static char *put_errors(char *to, struct span text, struct lapse_job *job)
{
    struct failure one;
    const char *field;

    job->errors = to;
    while (failures_take(&text, &one)) {
        one.reason.len = strnlen(one.reason.at, one.reason.len);
        to = put_text(to, one.numbers, &field);
        to = put_text(to, one.reason, &field);
        job->n_errors++;
    }
    job->errors_len = (size_t)(to - job->errors);
    return to;
}

static unsigned priority_of(struct span attributes)
{
    struct span value;

    return attributes_find(attributes, PRIORITY, &value) ? (unsigned char)*value.at : 0;
}

/* One of another form counts as missing. */
static void set_run(struct lapse_job *job, struct span attributes)
{
    struct attribute a;
    int64_t run_ms;

    while (attributes_take(&attributes, &a)) {
        if (a.letter == RUN && span_decimal(a.value, RUN_MAX_MS, &run_ms) &&
            job_run_ms_ok(run_ms)) {
            job->run_ms = run_ms;
            return;
        }
    }
}

/* One of another form, or that no script has written, counts as missing. */
static void set_created(struct lapse_job *job, struct span attributes)
{
    struct span value;
    int64_t ms;

    if (attributes_find(attributes, CREATED, &value) && value.len == CREATED_DIGITS &&
        span_decimal(value, EXACT_MAX, &ms)) {
        job->created_ms = ms;
    }
}

/* One that waits and is a series shows that as its state. */
static void set_stage(struct lapse_job *job, struct span attributes)
{
    struct span text;
    struct span id;
    int64_t n;

    if (attributes_find(attributes, OF_SERIES, &text) && series_of_read(text, &id, &n)) {
        job->stage = n < UINT32_MAX ? (unsigned)n : UINT32_MAX;
    } else if (!attributes_find(attributes, SERIES, &text)) {
        job->stage = 0;
    } else if (job->state == LAPSE_WAITING) {
        job->state = LAPSE_SERIES;
    }
}

/* parts: those of a group, as its attempt says. Of the job of a group that number is another's. */
static void set_group(struct lapse_job *job, struct span attributes, unsigned parts)
{
    struct span text;
    int64_t n;

    if (attributes_find(attributes, GROUP, &text) && group_read(text, &job->gather)) {
        job->parts = parts;
    } else if (attributes_find(attributes, PARTS, &text) &&
               span_decimal(text, GROUP_MOST_MAX, &n)) {
        job->parts = (unsigned)n;
    }
}

static void set_attempt(struct lapse_job *job, const struct attempt *a)
{
    size_t len = a->reason.len < JOB_REASON_MAX ? a->reason.len : JOB_REASON_MAX;

    job->try_no = a->try_no;
    job->token = a->token;
    job->claimed_us = a->claimed_us;
    job->due_ms = a->due_ms;
    job->cancelled = a->cancelled;
    job->stage = a->moments;
    job->paused = a->is_paused;
    job->awaits = a->awaits && job->state == LAPSE_WAITING;
    job->end = job->state == LAPSE_KEPT ? (enum lapse_end)a->ended : 0;
    memcpy(job->reason, a->reason.at, len);
    job->reason[len] = '\0';
}

/* An empty one is a report, too. */
static void set_report(struct lapse_job *job, struct span report, char *texts)
{
    if (report.at) {
        job->report = report.len ? memcpy(texts, report.at, report.len) : "";
        job->report_len = report.len;
    }
}

void job_fill(struct lapse_job *job, const char *queue, const struct job_row *row, char *texts,
              bool with_body)
{
    struct attempt attempt = {.parts = 0};
    struct record record = {.body = {NULL, 0}};

    texts = put_text(texts, span_of(queue), &job->queue);
    texts = put_text(texts, row->id, &job->id);
    job->state = (enum lapse_state)row->state;
    job->score_ms = row->score_ms;
    job->due_ms = row->score_ms;

    if (attempt_decode(&attempt, row->attempt)) {
        set_attempt(job, &attempt);
    }

    if (row->state == LAPSE_WAITING || row->state == JOB_SKIPPED) {
        job->due_ms = row->score_ms;
    } else if (job->state == LAPSE_RUNNING || job->state == LAPSE_KEPT) {
        job->until_ms = row->score_ms;
    }

    if (record_decode(&record, row->record)) {
        job->tries = record.tries;
        job->priority = priority_of(record.attributes);
        set_run(job, record.attributes);
        set_created(job, record.attributes);
        set_late(job, record.attributes);
        set_stage(job, record.attributes);
        set_group(job, record.attributes, attempt.parts);
    }

    if (with_body && record.attributes.len) {
        job->tags = texts;
        job->headers = texts = put_tags(texts, record.attributes);
        texts = put_headers(texts, record.attributes);
        texts = put_guard(texts, record.attributes, job);
        texts = put_unique(texts, record.attributes, &job->unique);
        texts = put_series(texts, record.attributes, job);
        texts = put_batch(texts, record.attributes, &job->batch);
        job->attributes_len = (size_t)(texts - job->tags);
    }

    if (with_body && row->errors.len) {
        texts = put_errors(texts, row->errors, job);
    }

    job->body = "";
    job->body_len = 0;
    if (with_body && record.body.len) {
        job->body = memcpy(texts, record.body.at, record.body.len);
        job->body_len = record.body.len;
        texts += record.body.len;
    }
    if (with_body) {
        set_report(job, row->report, texts);
    }
}

void job_die(struct lapse_job *job, struct span reason)
{
    job->state = LAPSE_DEAD;
    job_set_until_ms(job, 0);
    memcpy(job->reason, reason.at, reason.len);
    job->reason[reason.len] = '\0';
}

size_t job_entry_texts_len(const char *queue, const struct job_entry *entry)
{
    size_t len = strlen(queue) + 1 + entry->id.len + 1 + entry->entry.len + 1 + entry->body.len;

    for (unsigned i = 0; i < entry->n_headers; i++) {
        len += entry->headers[i].len + 1;
    }
    return len + 3; /* the ends of the tags and of the headers, and an empty key */
}

static char *put_entry_headers(char *to, const struct job_entry *entry)
{
    struct span name;
    struct span value;
    const char *text;

    for (unsigned i = 0; i < entry->n_headers; i++) {
        if (header_read(entry->headers[i], &name, &value)) {
            to = put_text(to, name, &text);
            to = put_text(to, value, &text);
        }
    }

    *to = '\0';
    return to + 1;
}

void job_fill_from_entry(struct lapse_job *job, const char *queue, const struct job_entry *entry,
                         char *texts)
{
    texts = put_text(texts, span_of(queue), &job->queue);
    texts = put_text(texts, entry->id, &job->id);
    texts = put_text(texts, entry->entry, &job->entry);

    job->deliveries = (uint64_t)entry->deliveries;
    job->due_ms = entry->due_ms;
    job->parts = entry->parts;
    job->try_no = (unsigned)entry->try_no;
    job->token = (uint64_t)entry->token;

    if (entry->n_headers > 0) {
        job->tags = texts;
        *texts++ = '\0'; /* no tags */
        job->headers = texts;
        texts = put_entry_headers(texts, entry);
        job->unique = texts;
        *texts++ = '\0';
        job->attributes_len = (size_t)(texts - job->tags);
    }

    job->body = "";
    job->body_len = entry->body.len;
    if (entry->body.len) {
        job->body = memcpy(texts, entry->body.at, entry->body.len);
    }
}

unsigned job_row_priority(const struct job_row *row)
{
    struct record record;

    return record_decode(&record, row->record) ? priority_of(record.attributes) : 0;
}

struct lapse_job *lapse_job_dup(const struct lapse_job *job)
{
    struct span queue = span_of(job->queue);
    struct span id = span_of(job->id);
    struct span entry = span_of(lapse_job_entry(job));
    size_t bytes_len = job->body_len + job->report_len + job->errors_len;
    size_t texts_len = queue.len + 1 + id.len + 1 + entry.len + 1 + job->attributes_len + bytes_len;
    struct lapse_job *dup = mem_new(sizeof *dup, texts_len);

    if (!dup) {
        return NULL;
    }

    *dup = *job;
    dup->handle = NULL;
    dup->is_dup = true;

    char *texts = put_text((char *)(dup + 1), queue, &dup->queue);
    texts = put_text(texts, id, &dup->id);
    texts = put_text(texts, entry, &dup->entry);
    if (job->attributes_len) {
        dup->tags = memcpy(texts, job->tags, job->attributes_len);
        dup->headers = texts + (job->headers - job->tags);
        dup->guard = job->guard ? texts + (job->guard - job->tags) : NULL;
        dup->unique = job->unique ? texts + (job->unique - job->tags) : NULL;
        dup->batch = job->batch ? texts + (job->batch - job->tags) : NULL;
        dup->series = job->series ? texts + (job->series - job->tags) : NULL;
        dup->rule = job->rule ? texts + (job->rule - job->tags) : NULL;
        dup->calendar = job->calendar ? texts + (job->calendar - job->tags) : NULL;
        texts += job->attributes_len;
    }
    if (job->errors_len) {
        dup->errors = memcpy(texts, job->errors, job->errors_len);
        texts += job->errors_len;
    }
    dup->body = "";
    if (job->body_len) {
        dup->body = memcpy(texts, job->body, job->body_len);
        texts += job->body_len;
    }
    set_report(dup, (struct span){job->report, job->report_len}, texts);

    return dup;
}

size_t job_reason_len(const char *reason)
{
    size_t len = reason ? strnlen(reason, JOB_REASON_MAX + 1) : 0;

    if (len <= JOB_REASON_MAX) {
        return len;
    }

    for (len = JOB_REASON_MAX; len > JOB_REASON_MAX - 4; len--) {
        if (((unsigned char)reason[len] & 0xc0) != 0x80) {
            return len;
        }
    }

    return JOB_REASON_MAX; /* it is not UTF-8 */
}

const char *lapse_job_queue(const struct lapse_job *job)
{
    return job->queue;
}

const char *lapse_job_id(const struct lapse_job *job)
{
    return job->id;
}

const void *lapse_job_body(const struct lapse_job *job, size_t *len)
{
    if (len) {
        *len = job->body_len;
    }
    return job->body;
}

unsigned lapse_job_parts(const struct lapse_job *job)
{
    return job->parts;
}

const void *lapse_job_part(const struct lapse_job *job, unsigned i, size_t *len)
{
    struct span body = {job->body, job->body_len};
    struct span part = {NULL, 0};

    for (unsigned n = 0; n <= i; n++) {
        if (i >= job->parts || !group_take_part(&body, &part)) {
            return NULL;
        }
    }

    if (len) {
        *len = part.len;
    }
    return part.at;
}

int lapse_job_gather(const struct lapse_job *job, struct lapse_gather *out)
{
    struct lapse_gather found = job->gather;
    size_t size = out->size < sizeof *out ? out->size : sizeof *out;

    if (found.most == 0) {
        return 0;
    }

    found.size = out->size;
    memcpy(out, &found, size);
    return 1;
}

const void *lapse_job_report(const struct lapse_job *job, size_t *len)
{
    if (len) {
        *len = job->report_len;
    }
    return job->report;
}

enum lapse_state lapse_job_state(const struct lapse_job *job)
{
    return job->state;
}

int64_t lapse_job_due_ms(const struct lapse_job *job)
{
    return job->due_ms;
}

int64_t lapse_job_until_ms(const struct lapse_job *job)
{
    return job_until_ms(job);
}

int lapse_job_cancelled(const struct lapse_job *job)
{
    return job_cancelled(job);
}

enum lapse_end lapse_job_end(const struct lapse_job *job)
{
    return job->end;
}

int64_t lapse_job_claimed_us(const struct lapse_job *job)
{
    return job->claimed_us;
}

unsigned lapse_job_try(const struct lapse_job *job)
{
    return job->try_no;
}

unsigned lapse_job_tries(const struct lapse_job *job)
{
    return job->tries;
}

uint64_t lapse_job_token(const struct lapse_job *job)
{
    return job->token;
}

int lapse_job_created(const struct lapse_job *job)
{
    return job->created;
}

/* The clock that an id goes by may be ahead of that of Redis. */
int64_t lapse_job_created_ms(const struct lapse_job *job)
{
    int64_t us;

    if (job->created_ms) {
        return job->created_ms;
    }

    bool is_made = made_id_us(span_of(job->id), &us);
    return is_made && us / 1000 <= job->due_ms + DAY_MS ? us / 1000 : 0;
}

unsigned lapse_job_replicas(const struct lapse_job *job)
{
    return job->replicas;
}

const char *lapse_job_entry(const struct lapse_job *job)
{
    return job->entry ? job->entry : "";
}

uint64_t lapse_job_deliveries(const struct lapse_job *job)
{
    return job->deliveries;
}

enum lapse_via lapse_job_via(const struct lapse_job *job)
{
    return job->via;
}

static const char *text_behind(const char *text)
{
    return text + strlen(text) + 1;
}

unsigned lapse_job_priority(const struct lapse_job *job)
{
    return job->priority;
}

int64_t lapse_job_max_late_ms(const struct lapse_job *job, enum lapse_late *late)
{
    if (late) {
        *late = job->late;
    }
    return job->max_late_ms;
}

int lapse_job_guard(const struct lapse_job *job, struct lapse_guard *out)
{
    static const char ops[] = "=!+-";
    size_t size = out->size < sizeof *out ? out->size : sizeof *out;

    if (!job->guard) {
        return 0;
    }

    const char *key = job->guard + 1;
    const char *field = text_behind(key);
    struct lapse_guard g = {.size = out->size,
                            .key = key,
                            .field = *field ? field : NULL,
                            .op = (enum lapse_guard_op)(strchr(ops, job->guard[0]) - ops + 1),
                            .value = text_behind(field),
                            .value_len = job->guard_value_len};
    memcpy(out, &g, size);
    return 1;
}

const char *lapse_job_unique(const struct lapse_job *job)
{
    return job->unique && *job->unique ? job->unique : NULL;
}

const char *lapse_job_series(const struct lapse_job *job)
{
    return job->series ? job->series : "";
}

const char *lapse_job_batch(const struct lapse_job *job)
{
    return job->batch;
}

int lapse_job_awaits(const struct lapse_job *job)
{
    return job->awaits;
}

unsigned lapse_job_stage(const struct lapse_job *job)
{
    return job->stage;
}

int lapse_job_paused(const struct lapse_job *job)
{
    return job->paused;
}

int lapse_job_rule(const struct lapse_job *job, struct lapse_series *out, int64_t *stages_ms)
{
    struct lapse_series found;
    size_t size = out->size < sizeof *out ? out->size : sizeof *out;

    if (!job->rule || !series_read(span_of(job->rule), &found, stages_ms)) {
        return 0;
    }

    if (job->calendar) {
        found.calendar = job->calendar;
        found.rule = text_behind(job->calendar);
    }
    found.size = out->size;
    memcpy(out, &found, size);
    return 1;
}

const char *lapse_job_tag(const struct lapse_job *job, unsigned i)
{
    const char *at = job->tags ? job->tags : "";

    for (; *at && i > 0; i--) {
        at = text_behind(at);
    }
    return *at ? at : NULL;
}

const char *lapse_job_header_name(const struct lapse_job *job, unsigned i)
{
    const char *at = job->headers ? job->headers : "";

    for (; *at && i > 0; i--) {
        at = text_behind(text_behind(at));
    }
    return *at ? at : NULL;
}

const char *lapse_job_header(const struct lapse_job *job, const char *name)
{
    const char *at = job->headers ? job->headers : "";

    for (; *at; at = text_behind(text_behind(at))) {
        if (strcmp(at, name) == 0) {
            return text_behind(at);
        }
    }
    return NULL;
}

const char *lapse_job_reason(const struct lapse_job *job)
{
    return job->reason;
}

const char *lapse_job_error(const struct lapse_job *job, unsigned i, int64_t *at_ms,
                            unsigned *try_no)
{
    const char *at = job->errors;
    struct span number;
    int64_t ms;
    int64_t n;

    if (i >= job->n_errors) {
        return NULL;
    }

    for (i = job->n_errors - 1 - i; i > 0; i--) {
        at = text_behind(text_behind(at));
    }

    struct span rest = span_of(at);
    span_cut(&rest, ' ', &number);
    if (at_ms && span_decimal(number, EXACT_MAX, &ms)) {
        *at_ms = ms;
    }
    if (try_no && span_decimal(rest, UINT32_MAX, &n)) {
        *try_no = (unsigned)n;
    }
    return text_behind(at);
}
