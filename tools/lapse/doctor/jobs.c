/* SPDX-License-Identifier: MIT */
/* Is every job whole? Each key of a queue is walked in pages by check.lua, which looks at all that
 * is of a job at one moment: so a job that moves is not taken for a broken one, and no other client
 * waits for more than a page. */
#include "doctor/doctor.h"
#include "tool_scripts.h"
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 100, PAGE_BYTES = 128 * 1024, SHOWN = 3, PROGRESS_MS = 1000 };

static const struct {
    const char *what, *text;
} defects[] = {
    {"none", "in no set"},
    {"many", "in more than one set"},
    {"record", "without a record"},
    {"attempt", "of which only what is held is left"},
    {"holder", "running, held by nobody"},
};
enum { DEFECTS = sizeof defects / sizeof *defects };

struct walk {
    struct doctor *d;
    const char *queue;
    char key[160], db[16];
    int64_t looked, jobs, unread, mended, said_ms;
    int64_t n[DEFECTS];
    char ids[DEFECTS][120]; /* the first few */
    char error[300];        /* what Redis said instead */
};

/* ---- queues ---- */
static void add_queue(struct doctor *d, const char *name, size_t len)
{
    for (int i = 0; i < d->n_queues; i++) {
        if (strlen(d->queues[i]) == len && memcmp(d->queues[i], name, len) == 0) {
            return;
        }
    }

    if (d->n_queues == d->queues_room) {
        char **more = realloc(d->queues, 2 * (size_t)d->queues_room * sizeof *more);
        if (!more) {
            return;
        }
        d->queues = more;
        d->queues_room *= 2;
    }

    d->queues[d->n_queues] = strndup(name, len);
    d->n_queues += d->queues[d->n_queues] != NULL;
}

/* SPACE:{NAME}:x of anybody; triggers are left out by the pattern, so that none is touched. */
static void add_key(struct doctor *d, const char *key)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    static const char *const ends[] = {"due",      "run", "dead",     "jobs",
                                       "attempts", "seq", "listeners"};
    const char *name = key + strlen(d->space) + 2;
    size_t len = strspn(name, letters);

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (len && len <= 64 && strncmp(name + len, "}:", 2) == 0 &&
            strcmp(name + len + 2, ends[i]) == 0) {
            add_queue(d, name, len);
        }
    }
}

int doctor_find_queues(struct doctor *d)
{
    char cursor[24] = "0";
    char pattern[100];

    snprintf(pattern, sizeof pattern, "%s:{*}:[^t]*", d->space);

    do {
        redisReply *r = ASK(d, "SCAN", cursor, "MATCH", pattern, "COUNT", "1000");
        int ok = r && r->type == REDIS_REPLY_ARRAY && r->elements == 2 && is_text(r->element[0]) &&
                 r->element[1]->type == REDIS_REPLY_ARRAY;
        if (!ok) {
            if (r) {
                report(d, WARN, "queues", NULL, "lapse doctor QUEUE...", "cannot be looked for: %s",
                       is_error(r, "") ? printable(r->str) : "SCAN was not answered");
            }
            freeReplyObject(r);
            return 0;
        }
        for (size_t i = 0; i < r->element[1]->elements; i++) {
            if (is_text(r->element[1]->element[i])) {
                add_key(d, r->element[1]->element[i]->str);
            }
        }
        snprintf(cursor, sizeof cursor, "%s", r->element[0]->str);
        freeReplyObject(r);
    } while (strcmp(cursor, "0") != 0);

    return 1;
}

/* ---- a page ---- */
static redisReply *script(struct walk *w, const char *text, int argc, const char *const *args,
                          const size_t *lens)
{
    const char *argv[5 + PAGE] = {w->d->eval, text, "1", w->key, w->db};
    size_t len[5 + PAGE] = {strlen(w->d->eval), strlen(text), 1, strlen(w->key), strlen(w->db)};

    for (int i = 0; i < argc; i++) {
        argv[5 + i] = args[i];
        len[5 + i] = lens ? lens[i] : strlen(args[i]);
    }

    redisReply *r = doctor_ask(w->d, 5 + argc, argv, len);
    if (r && (r->type != REDIS_REPLY_ARRAY || !r->elements)) {
        snprintf(w->error, sizeof w->error, "%s",
                 is_error(r, "") ? r->str : "an answer of another shape");
        freeReplyObject(r);
        r = NULL;
    }

    return r;
}

static void count(struct walk *w, const char *id, const char *what)
{
    for (size_t i = 0; i < DEFECTS; i++) {
        if (strcmp(defects[i].what, what) == 0) {
            size_t used = strlen(w->ids[i]);
            if (w->n[i]++ < SHOWN) {
                snprintf(w->ids[i] + used, sizeof w->ids[i] - used, "%s%.36s", used ? " " : "",
                         printable(id));
            }
        }
    }
}

/* What was broken a moment ago is looked at again by the script that mends it. An id may hold any
 * byte. */
static void mend(struct walk *w, const redisReply *page)
{
    for (size_t first = 5; first < page->elements && !*w->error;) {
        const char *ids[PAGE];
        size_t lens[PAGE];
        int n = 0;
        for (; first < page->elements && n < PAGE; first++) {
            lens[n] = (size_t)page->element[first]->element[0]->len;
            ids[n++] = page->element[first]->element[0]->str;
        }
        redisReply *r = script(w, script_mend, n, ids, lens);
        for (size_t i = 1; r && i < r->elements; i++) {
            w->mended += is_text(r->element[i]) && *r->element[i]->str;
        }
        freeReplyObject(r);
    }
}

static int64_t number(const redisReply *page, size_t i)
{
    return i < page->elements && page->element[i]->type == REDIS_REPLY_INTEGER
               ? page->element[i]->integer
               : 0;
}

static int is_defect(const redisReply *e)
{
    return e->type == REDIS_REPLY_ARRAY && e->elements == 2 && is_text(e->element[0]) &&
           is_text(e->element[1]);
}

/* How many there are of what is walked; -1: this user may not ask. */
static int64_t size_of(struct walk *w, const char *end)
{
    char key[160];
    int is_hash = strcmp(end, "jobs") == 0 || strcmp(end, "attempts") == 0;

    snprintf(key, sizeof key, "%s:{%s}:%s", w->d->space, w->queue, end);
    redisReply *r = ASK(w->d, is_hash ? "HLEN" : "ZCARD", key);
    int64_t n = r && r->type == REDIS_REPLY_INTEGER ? r->integer : -1;
    freeReplyObject(r);
    return n;
}

/* A hash that grows is shown in part twice, and new jobs come: more than there are is never
 * claimed. */
static void progress(struct walk *w, const char *end, int64_t looked)
{
    if (monotonic_ms() - w->said_ms >= PROGRESS_MS) {
        int64_t all = size_of(w, end);
        w->said_ms = monotonic_ms();
        if (all >= 0) {
            message_print("%s of %s: %lld of %lld looked at", end, printable(w->queue),
                          (long long)(looked < all ? looked : all), (long long)all);
        } else {
            message_print("%s of %s: being looked at", end, printable(w->queue));
        }
    }
}

static void walk_key(struct walk *w, const char *end)
{
    int64_t page = 0;
    int64_t size = 1;
    int64_t before = w->looked;

    do {
        char at[24];
        char n[24];
        snprintf(at, sizeof at, "%llu", (unsigned long long)page);
        snprintf(n, sizeof n, "%lld", (long long)size);
        redisReply *r = script(w, script_check, 3, (const char *[]){end, at, n}, NULL);
        if (!r) {
            return;
        }
        for (size_t i = 5; i < r->elements; i++) {
            if (!is_defect(r->element[i])) {
                strcpy(w->error, "an answer of another shape");
                freeReplyObject(r);
                return;
            }
            count(w, r->element[i]->element[0]->str, r->element[i]->element[1]->str);
        }
        page = number(r, 1);
        w->looked += number(r, 2);
        w->jobs += strcmp(end, "jobs") == 0 ? number(r, 2) : 0;
        w->unread += number(r, 4);
        size = number(r, 3) > PAGE_BYTES ? size / 2 : size * 2;
        size = size < 1 ? 1 : size > PAGE ? PAGE : size;
        if (w->d->repair) {
            mend(w, r);
        }
        freeReplyObject(r);
        progress(w, end, w->looked - before);
    } while (page && !*w->error && !w->d->code);
}

/* ---- a queue ---- */
static void told(struct walk *w)
{
    struct doctor *d = w->d;
    char text[900] = "";
    char command[200];
    size_t used = 0;
    int64_t broken = 0;

    for (size_t i = 0; i < DEFECTS; i++) {
        broken += w->n[i];
        if (w->n[i]) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld %s (%s%s)",
                                     used ? "; " : "", (long long)w->n[i], defects[i].text,
                                     w->ids[i], w->n[i] > SHOWN ? " ..." : "");
        }
    }

    snprintf(command, sizeof command, "lapse doctor %s --repair", w->queue);

    if (*w->error) {
        int denied = strncmp(w->error, "NOPERM", 6) == 0 ||
                     strstr(w->error, "The user executing the script can't") ||
                     strstr(w->error, "ACL failure in script");
        int /* Redis 7; 8 and Valkey */
            type = strstr(w->error, "WRONGTYPE") != NULL;
        snprintf(command, sizeof command,
                 "redis-cli TYPE '%s:{%s}:due', and so on for run dead jobs attempts; RENAME the "
                 "odd one",
                 d->space, w->queue);
        report(d, denied && !d->repair ? WARN : FAIL, "jobs", w->queue, type ? command : NULL,
               "%s: %s", broken ? text : "cannot be looked at", printable(w->error));
    } else if (broken && d->repair) {
        snprintf(command, sizeof command, "lapse list %s --state dead", w->queue);
        report(d, WARN, "jobs", w->queue, command, "%s: %lld of them mended", text,
               (long long)w->mended);
    } else if (broken) {
        report(d, FAIL, "jobs", w->queue, command, "%s", text);
    } else if (w->unread) {
        report(d, WARN, "jobs", w->queue, "run the newer lapse that stored them",
               "%lld of %lld are of a format that this version cannot read", (long long)w->unread,
               (long long)w->jobs);
    } else {
        report(d, FINE, "jobs", w->queue, NULL, "%lld, each in one state", (long long)w->jobs);
    }
}

void check_jobs(struct doctor *d)
{
    static const char *const ends[] = {"jobs", "due", "run", "dead", "attempts"};

    if (d->repair && d->replica) {
        report(d, FAIL, "jobs", NULL, NULL, "a replica cannot be mended");
        return;
    }

    if (!d->n_queues) {
        report(d, FINE, "jobs", NULL, NULL, "no queue to look at");
    }

    for (int i = 0; i < d->n_queues && !d->code; i++) {
        struct walk w = {.d = d, .queue = d->queues[i], .said_ms = monotonic_ms()};
        snprintf(w.key, sizeof w.key, "%s:{%s}:due", d->space, w.queue);
        snprintf(w.db, sizeof w.db, "%d", d->r.db);
        for (size_t k = 0; k < sizeof ends / sizeof *ends && !*w.error && !d->code; k++) {
            int64_t before = w.looked;
            walk_key(&w, ends[k]);
            d->waiting += k == 1 ? w.looked - before : 0;
        }
        if (!d->code) {
            told(&w);
        }
    }
}
