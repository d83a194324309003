/* SPDX-License-Identifier: MIT */
/* Whether every job is consistent. Each key of a queue is walked in pages by check.lua, which looks
 * at everything about a job at one moment: so a job that moves is not taken for a broken one, and
 * no other client waits for more than a page. */
#include "doctor/ask.h"
#include "doctor/checks.h"
#include "doctor/report.h"
#include "doctor/series.h"
#include "cli/message.h"
#include "job/keys.h"
#include "redis/redis_error.h"
#include "cli/values.h"
#include "tool_scripts.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { PAGE = 100, PAGE_BYTES = 128 * 1024, IDS_SHOWN = 3, PROGRESS_MS = 1000 };

/* Elements of check.lua's answer: Redis's clock, these, then pairs of an id and a defect, and dry
 * series. */
enum { PAGE_NEXT = 1, PAGE_LOOKED, PAGE_READ_BYTES, PAGE_UNREADABLE, PAGE_DEFECTS };

static const char unexpected[] = "unexpected reply";

static const struct {
    const char *code, *text;
} defects[] = {
    {"none", "in none of the sets due, run, dead, kept"},
    {"many", "in more than one of the sets due, run, dead, kept"},
    {"record", "in a set but without a record"},
    {"attempt", "of which only an attempt is left"},
    {"holder", "running without a holder"},
    {"tag", "with a tag that is not in the index"},
    {"entry", "in the index alone"},
    {"next", "not running, with a record for after the run"},
    {"report", "with a report that is of no job"},
    {"error", "in errors, without having any"},
    {"parts", "a group with another number of parts than it says"},
    {"batch", "the name of a batch that is closed and has ended unseen"},
};
enum { N_DEFECTS = sizeof defects / sizeof *defects };

struct walk {
    struct doctor *d;
    const char *queue;
    char due_key[KEYS_MAX];
    char none_key[KEYS_MAX];
    char db[16];
    int64_t looked, jobs, unreadable, repaired;
    int64_t reported_ms; /* the last line of progress */
    int64_t n_defects[N_DEFECTS];
    char ids[N_DEFECTS][120]; /* the first few */
    struct dry_series dry;
    char error[600]; /* what Redis answered instead; "": none */
};

static void walk_fail(struct walk *w, const char *error)
{
    snprintf(w->error, sizeof w->error, "%s", error);
}

static bool walk_failed(const struct walk *w)
{
    return *w->error || w->d->code;
}

/* ---- a page ---- */
static redisReply *run_script(struct walk *w, const char *script, int argc, const char *const *args,
                              const size_t *lens)
{
    enum { START = 6 };
    const char *argv[START + PAGE] = {w->d->eval, script, "2", w->due_key, w->none_key, w->db};
    size_t len[START + PAGE];

    for (int i = 0; i < argc; i++) {
        argv[START + i] = args[i];
    }
    for (int i = 0; i < START + argc; i++) {
        len[i] = lens && i >= START ? lens[i - START] : strlen(argv[i]);
    }

    redisReply *r = ask_redis(w->d, START + argc, argv, len);
    if (r && (r->type != REDIS_REPLY_ARRAY || r->elements == 0)) {
        walk_fail(w, is_error(r) ? r->str : unexpected);
        freeReplyObject(r);
        return NULL;
    }

    return r;
}

static void add_id(char *ids, size_t size, const char *id)
{
    size_t used = strlen(ids);
    snprintf(ids + used, size - used, "%s%.36s", used ? " " : "", printable(id));
}

static void count_defect(struct walk *w, const char *id, const char *code)
{
    for (size_t i = 0; i < N_DEFECTS; i++) {
        if (strcmp(defects[i].code, code) != 0) {
            continue;
        }
        if (w->n_defects[i] < IDS_SHOWN) {
            add_id(w->ids[i], sizeof w->ids[i], id);
        }
        w->n_defects[i]++;
    }
}

static bool is_texts(const redisReply *e, size_t n)
{
    if (e->type != REDIS_REPLY_ARRAY || e->elements != n) {
        return false;
    }

    for (size_t i = 0; i < n; i++) {
        if (!is_text(e->element[i])) {
            return false;
        }
    }
    return true;
}

static void count_defects(struct walk *w, const redisReply *page)
{
    for (size_t i = PAGE_DEFECTS; i < page->elements; i++) {
        const redisReply *e = page->element[i];
        if (is_texts(e, 2)) {
            count_defect(w, e->element[0]->str, e->element[1]->str);
        } else if (is_texts(e, 3) && is_text_of(e->element[1], "dry")) {
            dry_series_add(&w->dry, e->element[0]->str, e->element[2]->str);
        } else {
            walk_fail(w, unexpected);
            return;
        }
    }
}

/* The script that repairs looks again at what was broken a moment ago. An id may hold any byte. */
static void repair_page(struct walk *w, const redisReply *page)
{
    size_t first = PAGE_DEFECTS;

    while (first < page->elements && !walk_failed(w)) {
        const char *ids[PAGE];
        size_t lens[PAGE];
        int n = 0;

        for (; first < page->elements && n < PAGE; first++, n++) {
            const redisReply *id = page->element[first]->element[0];
            ids[n] = id->str;
            lens[n] = (size_t)id->len;
        }

        redisReply *r = run_script(w, script_mend, n, ids, lens);
        for (size_t i = 1; r && i < r->elements; i++) {
            if (is_text(r->element[i]) && *r->element[i]->str) {
                w->repaired++;
            }
        }
        freeReplyObject(r);
    }
}

static int64_t page_number(const redisReply *page, size_t i)
{
    if (i >= page->elements || page->element[i]->type != REDIS_REPLY_INTEGER) {
        return 0;
    }

    return page->element[i]->integer;
}

/* ---- a key ---- */
static bool is_hash(enum keys_part part)
{
    return part == KEYS_JOBS || part == KEYS_ATTEMPTS || part == KEYS_NEXT || part == KEYS_REPORT ||
           part == KEYS_ERRORS || part == KEYS_BATCHES;
}

/* How many members a key has; -1: this user may not ask. */
static int64_t size_of_key(struct walk *w, enum keys_part part)
{
    char key[KEYS_MAX];

    keys_of(key, w->d->space, w->queue, part);
    redisReply *r = ASK(w->d, is_hash(part) ? "HLEN" : "ZCARD", key);
    int64_t n = r && r->type == REDIS_REPLY_INTEGER ? r->integer : -1;

    freeReplyObject(r);
    return n;
}

/* A hash that grows is shown in part twice, and new jobs come: it never claims to have looked at
 * more than there are. */
static void print_progress(struct walk *w, enum keys_part part, int64_t looked)
{
    if (monotonic_ms() - w->reported_ms < PROGRESS_MS) {
        return;
    }

    int64_t all = size_of_key(w, part);
    w->reported_ms = monotonic_ms();
    if (all < 0) {
        message_print("queue %s: checking %s", printable(w->queue), keys_part_name(part));
        return;
    }

    message_print("queue %s: %lld of %lld checked in %s", printable(w->queue),
                  (long long)(looked < all ? looked : all), (long long)all, keys_part_name(part));
}

/* So that a page is neither much work for Redis nor many bytes. */
static int64_t next_size(int64_t size, const redisReply *page)
{
    if (page_number(page, PAGE_READ_BYTES) > PAGE_BYTES) {
        return size > 1 ? size / 2 : 1;
    }

    return 2 * size < PAGE ? 2 * size : PAGE;
}

static void count_page(struct walk *w, enum keys_part part, const redisReply *page)
{
    int64_t looked = page_number(page, PAGE_LOOKED);

    w->looked += looked;
    w->unreadable += page_number(page, PAGE_UNREADABLE);
    if (part == KEYS_JOBS) {
        w->jobs += looked;
    }
    if (part == KEYS_DUE) {
        w->d->n_triggers += looked;
    }
}

static void walk_key(struct walk *w, enum keys_part part)
{
    int64_t before = w->looked;
    int64_t page = 0;
    int64_t size = 1;

    do {
        char page_text[24];
        char size_text[24];
        snprintf(page_text, sizeof page_text, "%llu", (unsigned long long)page);
        snprintf(size_text, sizeof size_text, "%lld", (long long)size);
        const char *args[] = {keys_part_name(part), page_text, size_text};

        redisReply *r = run_script(w, script_check, 3, args, NULL);
        if (!r) {
            return;
        }

        count_defects(w, r);
        if (!walk_failed(w)) {
            count_page(w, part, r);
            page = page_number(r, PAGE_NEXT);
            size = next_size(size, r);
            if (w->d->repair) {
                repair_page(w, r);
            }
        }

        freeReplyObject(r);
        print_progress(w, part, w->looked - before);
    } while (page && !walk_failed(w));
}

/* ---- a queue ---- */
/* "2 running without a holder (a b); 1 in a set but without a record (c)"; returns how many. */
static int64_t describe_defects(const struct walk *w, char *out, size_t size)
{
    int64_t n = 0;
    size_t used = 0;

    *out = '\0';
    for (size_t i = 0; i < N_DEFECTS; i++) {
        if (w->n_defects[i] == 0) {
            continue;
        }
        const char *more = w->n_defects[i] > IDS_SHOWN ? " ..." : "";
        used += (size_t)snprintf(out + used, size - used, "%s%lld %s (%s%s)", used ? "; " : "",
                                 (long long)w->n_defects[i], defects[i].text, w->ids[i], more);
        n += w->n_defects[i];
    }

    return n;
}

/* A script that had written puts its own code before the error of Redis. */
static enum redis_error walk_error_kind(const struct walk *w)
{
    struct span text = span_of(w->error);

    span_skip(&text, "LAPSE EBROKEN ");
    return redis_error_of(text);
}

static void report_error(const struct walk *w, const char *found)
{
    struct finding f = {.check = "jobs", .queue = w->queue, .verdict = FAIL};
    enum redis_error kind = walk_error_kind(w);
    char fix[300];
    char error[VALUE_BYTES];

    if (kind == REDIS_ERROR_DENIED && !w->d->repair) {
        f.verdict = WARN;
    }
    if (kind == REDIS_ERROR_WRONG_TYPE) {
        snprintf(fix, sizeof fix,
                 "redis-cli TYPE '%s', likewise run, dead, kept, jobs, attempts, index, next, "
                 "report, errors and batches; RENAME the key of another type",
                 w->due_key);
        f.fix = fix;
    }

    report(w->d, f, "%s: %s", *found ? found : "cannot be checked", explain_error(w->error, error));
}

static void report_queue(const struct walk *w)
{
    struct doctor *d = w->d;
    struct finding f = {.check = "jobs", .queue = w->queue};
    char found[1600];
    char fix[200];
    int64_t broken = describe_defects(w, found, sizeof found);

    f.fix = fix;
    if (report_half(d, f.check, w->queue, w->error)) {
        return;
    }
    if (*w->error) {
        report_error(w, found);
    } else if (broken > 0 && d->repair) {
        f.verdict = WARN;
        snprintf(fix, sizeof fix, "lapse list %s --state dead", w->queue);
        report(d, f, "%s: %lld of them repaired", found, (long long)w->repaired);
    } else if (broken > 0) {
        f.verdict = FAIL;
        snprintf(fix, sizeof fix, "lapse doctor %s --repair", w->queue);
        report(d, f, "%s", found);
    } else if (w->unreadable > 0) {
        f.verdict = WARN;
        f.fix = "upgrade lapse to the version that stored them";
        report(d, f, "%lld of %lld have a format that this version cannot read",
               (long long)w->unreadable, (long long)w->jobs);
    } else {
        f.fix = NULL;
        report(d, f, "%lld, each in one state", (long long)w->jobs);
    }
}

static void check_queue_jobs(struct doctor *d, const char *queue)
{
    static const enum keys_part parts[] = {KEYS_JOBS,   KEYS_DUE,      KEYS_RUN,    KEYS_DEAD,
                                           KEYS_KEPT,   KEYS_ATTEMPTS, KEYS_INDEX,  KEYS_NEXT,
                                           KEYS_REPORT, KEYS_ERRORS,   KEYS_BATCHES};
    struct walk w = {.d = d, .queue = queue, .reported_ms = monotonic_ms()};

    keys_of(w.due_key, d->space, queue, KEYS_DUE);
    keys_none(w.none_key, span_of(w.due_key));
    snprintf(w.db, sizeof w.db, "%d%s", d->redis.db, d->is_cluster && !d->half ? " cluster" : "");

    for (size_t i = 0; i < sizeof parts / sizeof *parts && !walk_failed(&w); i++) {
        walk_key(&w, parts[i]);
    }

    if (!d->code) {
        report_queue(&w);
        dry_series_report(&w.dry, d, queue);
    }
}

void check_jobs(struct doctor *d)
{
    struct finding f = {.check = "jobs"};

    if (d->repair && d->is_replica) {
        f.verdict = FAIL;
        report(d, f, "a replica cannot be repaired");
        return;
    }

    if (d->queues.n == 0) {
        report(d, f, "no queue found");
    }

    for (int i = 0; i < d->queues.n && !d->code; i++) {
        check_queue_jobs(d, d->queues.names[i]);
    }
}
