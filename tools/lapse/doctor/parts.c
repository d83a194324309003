/* SPDX-License-Identifier: MIT */
/* Lists of parts that are of no group, as a program may leave them that removes a record by itself.
 * Each group has a key of its own for them, so they are found by the names of all keys. */
#include "doctor/ask.h"
#include "doctor/checks.h"
#include "doctor/report.h"
#include "cli/message.h"
#include "job/keys.h"
#include "redis/redis_error.h"
#include "tool_scripts.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 100, IDS_SHOWN = 3 };

/* Of a queue. */
struct found {
    int64_t n_stray;    /* that are still there */
    int64_t n_repaired; /* of which a dead job was made */
    char ids[120];      /* the first few of both */
    char error[400];    /* what Redis answered instead; "": none */
};

/* The ids of one call, as they stand in the answer to SCAN. */
struct page {
    const char *ids[PAGE];
    size_t lens[PAGE];
    int n;
};

static struct span text_of(const redisReply *r)
{
    return (struct span){r->str, (size_t)r->len};
}

static int place_of_queue(const struct doctor *d, struct span queue)
{
    for (int i = 0; i < d->queues.n; i++) {
        if (span_is(queue, d->queues.names[i])) {
            return i;
        }
    }
    return -1;
}

static void add_found(struct found *f, const char *id, bool repaired)
{
    size_t used = strlen(f->ids);

    if (f->n_stray + f->n_repaired < IDS_SHOWN) {
        snprintf(f->ids + used, sizeof f->ids - used, "%s%.36s", used ? " " : "", printable(id));
    }
    if (repaired) {
        f->n_repaired++;
    } else {
        f->n_stray++;
    }
}

/* At those from first on. Returns how many the script has looked at: it stops when it has read
 * enough for one call. */
static int look_at_some(struct doctor *d, const char *queue, const struct page *p, int first,
                        struct found *f)
{
    enum { START = 7 };
    char due[KEYS_MAX];
    char none[KEYS_MAX];
    char db[32];
    const char *repair = d->repair ? "1" : "0";
    const char *argv[START + PAGE] = {d->eval, script_parts, "2", due, none, db, repair};
    size_t lens[START + PAGE];

    keys_of(due, d->space, queue, KEYS_DUE);
    keys_none(none, span_of(due));
    snprintf(db, sizeof db, "%d%s", d->redis.db, d->is_cluster && !d->half ? " cluster" : "");
    for (int i = 0; i < START; i++) {
        lens[i] = strlen(argv[i]);
    }
    int n_asked = p->n - first;
    for (int i = 0; i < n_asked; i++) {
        argv[START + i] = p->ids[first + i];
        lens[START + i] = p->lens[first + i];
    }

    redisReply *r = ask_redis(d, START + n_asked, argv, lens);
    size_t n = r && r->type == REDIS_REPLY_ARRAY ? r->elements : 0;
    int n_looked = 0;
    if (r && n == 0) {
        snprintf(f->error, sizeof f->error, "%s", is_error(r) ? r->str : "unexpected reply");
    }
    for (size_t i = 1; i < n && n_looked < n_asked; i++) {
        if (is_text(r->element[i]) && *r->element[i]->str) {
            add_found(f, p->ids[first + n_looked], is_text_of(r->element[i], "parts"));
        }
        n_looked++;
    }
    freeReplyObject(r);
    return n_looked;
}

static void look_at_page(struct doctor *d, const char *queue, const struct page *p, struct found *f)
{
    int n_looked = 1;

    for (int at = 0; at < p->n && n_looked > 0 && !d->code; at += n_looked) {
        n_looked = look_at_some(d, queue, p, at, f);
    }
}

static const char *text_or_none(const redisReply *r)
{
    return is_text(r) ? r->str : "";
}

static int compare_keys(const void *a, const void *b)
{
    const redisReply *one = *(redisReply *const *)a;
    const redisReply *two = *(redisReply *const *)b;

    return strcmp(text_or_none(one), text_or_none(two));
}

static void look_and_clear(struct doctor *d, int queue, struct page *p, struct found *found)
{
    if (p->n > 0 && !d->code && !*found[queue].error) {
        look_at_page(d, d->queues.names[queue], p, &found[queue]);
    }
    p->n = 0;
}

/* In the order of their names, so that those of a queue stand together. */
static void look_at_keys(struct doctor *d, const redisReply *keys, struct found *found)
{
    struct page p = {.n = 0};
    int last = -1;

    if (keys->elements > 0) {
        qsort(keys->element, keys->elements, sizeof *keys->element, compare_keys);
    }
    for (size_t i = 0; i < keys->elements; i++) {
        const redisReply *key = keys->element[i];
        struct span name;
        struct span id;
        int queue = -1;

        if (is_text(key) && keys_group_of(text_of(key), d->space, &name, &id)) {
            queue = place_of_queue(d, name);
        }
        if (queue < 0) {
            continue;
        }
        if (queue != last || p.n == PAGE) {
            look_and_clear(d, last, &p, found);
            last = queue;
        }
        p.ids[p.n] = id.at;
        p.lens[p.n++] = id.len;
    }
    look_and_clear(d, last, &p, found);
}

static void report_unknown(struct doctor *d, const redisReply *r)
{
    struct finding f = {.check = "parts", .verdict = WARN};

    report(d, f, "unknown is whether some are of no group: SCAN: %s",
           r && is_error(r) ? printable(r->str) : "unexpected reply");
}

static void look_at_all(struct doctor *d, struct found *found)
{
    char cursor[24] = "0";
    char pattern[KEYS_MAX];
    bool more = true;

    keys_pattern_of_groups(pattern, d->space);

    while (more && !d->code) {
        redisReply *r = ASK(d, "SCAN", cursor, "MATCH", pattern, "COUNT", "1000");

        more = r && r->type == REDIS_REPLY_ARRAY && r->elements == 2 && is_text(r->element[0]) &&
               r->element[1]->type == REDIS_REPLY_ARRAY;
        if (more) {
            look_at_keys(d, r->element[1], found);
            snprintf(cursor, sizeof cursor, "%s", r->element[0]->str);
            more = strcmp(cursor, "0") != 0;
        } else if (r) {
            report_unknown(d, r);
        }
        freeReplyObject(r);
    }
}

static void report_error(struct doctor *d, const char *queue, const char *error)
{
    struct finding f = {.check = "parts", .queue = queue, .verdict = FAIL};
    char text[VALUE_BYTES];

    if (report_half(d, f.check, queue, error)) {
        return;
    }
    if (redis_error_of(span_of(error)) == REDIS_ERROR_DENIED && !d->repair) {
        f.verdict = WARN;
    }
    report(d, f, "cannot be checked: %s", explain_error(error, text));
}

static void report_found(struct doctor *d, const char *queue, const struct found *found)
{
    struct finding f = {.check = "parts", .queue = queue, .verdict = FAIL};
    int64_t n = found->n_stray + found->n_repaired;
    const char *more = n > IDS_SHOWN ? " ..." : "";
    char key[KEYS_TRIGGER_MAX];
    char fix[KEYS_TRIGGER_MAX + 40];

    if (*found->error) {
        report_error(d, queue, found->error);
    }
    if (n == 0) {
        return;
    }

    f.fix = fix;
    if (!d->repair) {
        snprintf(fix, sizeof fix, "lapse doctor %s --repair", queue);
        report(d, f, "%lld lists of parts are of no group, and no job is made of them (%s%s)",
               (long long)n, found->ids, more);
    } else if (found->n_stray > 0) {
        keys_group(key, d->space, queue, "ID");
        snprintf(fix, sizeof fix, "redis-cli UNLINK '%s'", key);
        report(
            d, f,
            "%lld of %lld lists of parts that are of no group cannot be the body of a job (%s%s)",
            (long long)found->n_stray, (long long)n, found->ids, more);
    } else {
        f.verdict = WARN;
        snprintf(fix, sizeof fix, "lapse list %s --state dead", queue);
        report(d, f,
               "%lld lists of parts were of no group: each is the body of a dead job now (%s%s)",
               (long long)n, found->ids, more);
    }
}

void check_parts(struct doctor *d)
{
    struct found *found = calloc((size_t)d->queues.n + 1, sizeof *found);

    if (!found) {
        message_print("out of memory");
        d->code = INTERNAL;
        return;
    }

    if (d->queues.n > 0 && !(d->repair && d->is_replica)) {
        look_at_all(d, found);
    }
    for (int i = 0; i < d->queues.n && !d->code; i++) {
        report_found(d, d->queues.names[i], &found[i]);
    }
    free(found);
}
