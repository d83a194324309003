/* SPDX-License-Identifier: MIT */
/* The true scripts on a true Redis, one at a time, in any order, beside a model of what a job may
 * be. The clock is ours: it stands in the key "clock", and jumps. Three holders forget answers,
 * sleep, and come back with tokens of long ago. */
#include "fault.h"
#include "audit.h"
#include "redis.h"
#include "test.h"
#include <criterion/criterion.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <lapse.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "lapse:{q}:due"
#define NONE_KEY "lapse:{q}:none"
enum { IDS = 5, HOLDERS = 3, STEPS = 60, KNOWN = 64, TEXT = 48, ARGS = 80, LOOK_EVERY = 6 };
enum { DEFAULT_TRIES = 10 };
static const int64_t DAY_MS = 86400000;
static const int64_t TEN_YEARS_MS = 315576000000;
static const int64_t FOREVER = 4294967295;
enum kind { NONE, WAITING, RUNNING, DIED };

/* ---- the model ---- */
struct job {
    enum kind kind;
    int64_t score; /* ms, in the set that it is in */
    int64_t tries; /* its record's */
    bool held;     /* it was claimed in this life; then, as at its last claim: */
    int64_t attempt, held_tries, held_due, claimed_us;
    bool lease_ended; /* says its reason */
    uint64_t token;
    int holder;
    char key;         /* 0: it has none */
    bool until_start; /* it holds the key until its first claim */
    int64_t limit_ms; /* of one that is debounced and was not claimed: due no later; 0 */
    int64_t limit_tries, limit_due; /* as it was then */
    bool again;                     /* it runs, and waits again after this run: */
    int64_t again_ms, next_tries, next_limit_ms;
    char next_key;
    bool next_until_start;
    char marks[96]; /* as its attempt says it */
};
struct claim { /* what a holder knows of one, right or wrong */
    int id;
    uint64_t token;
};
struct holder {
    struct claim known[KNOWN];
    int n;
};

struct sim {
    unsigned long seed;
    uint64_t dice;
    int step;
    struct server *server;

    /* the model */
    int64_t now_us;
    uint64_t seq; /* the last token */
    struct job job[IDS];
    struct holder holder[HOLDERS];

    /* the question to a script, and its answer */
    char argv[ARGS][TEXT];
    size_t len[ARGS];
    int argc;
    redisReply *reply;

    char trace[16384]; /* all that was asked, to be shown when something is wrong */
    size_t traced;
};

enum script {
    SCHEDULE,
    CANCEL,
    RESCHEDULE,
    GET,
    CLAIM,
    DONE,
    RETRY,
    FAIL,
    RELEASE,
    RENEW,
    SWEEP,
    RECLAIM,
    N_SCRIPTS
};
static const char *const script_name[N_SCRIPTS] = {"schedule", "cancel", "reschedule", "get",
                                                   "claim",    "done",   "retry",      "fail",
                                                   "release",  "renew",  "sweep",      "reclaim"};
static char sha[N_SCRIPTS][64];

/* ---- chance ---- */
static int64_t below(struct sim *s, int64_t n)
{
    s->dice += 0x9e3779b97f4a7c15u; /* splitmix64 */
    uint64_t z = s->dice;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (int64_t)((z ^ (z >> 31)) % (uint64_t)n);
}

static int64_t now_ms(struct sim *s)
{
    return s->now_us / 1000;
}

/* ---- telling ---- */
__attribute__((format(printf, 2, 3))) static void trace(struct sim *s, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(s->trace + s->traced, sizeof s->trace - s->traced, format, ap);
    va_end(ap);
    s->traced += (size_t)n < sizeof s->trace - s->traced ? (size_t)n : 0;
}

/* The scripts and the model agree on it; what follows is printf's. */
#define HOLDS(cond, ...)                                                                        \
    do {                                                                                        \
        if (!(cond)) {                                                                          \
            trace(s, "    broken: " __VA_ARGS__);                                               \
            cr_assert_fail("replay it with LAPSE_SEED=%lu\n%s\n    not: %s", s->seed, s->trace, \
                           #cond);                                                              \
        }                                                                                       \
    } while (0)

/* ---- asking ---- */
static void arg_bytes(struct sim *s, const void *bytes, size_t len)
{
    cr_assert(s->argc < ARGS && len < TEXT);
    memcpy(s->argv[s->argc], bytes, len);
    s->argv[s->argc][len] = 0;
    s->len[s->argc++] = len;
}

__attribute__((format(printf, 2, 3))) static void arg(struct sim *s, const char *format, ...)
{
    char text[TEXT];
    va_list ap;

    va_start(ap, format);
    int n = vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    arg_bytes(s, text, (size_t)n);
}

static void begin(struct sim *s)
{
    s->argc = 0;
    arg(s, "0");
}

static void ask(struct sim *s, enum script script)
{
    enum { START = 5 };
    const char *argv[START + ARGS] = {"EVALSHA", sha[script], "2", KEY, NONE_KEY};
    size_t len[START + ARGS] = {7, strlen(sha[script]), 1, sizeof KEY - 1, sizeof NONE_KEY - 1};
    redisContext *c = s->server->redis;
    redisReply *clock;

    trace(s, "%3d %" PRId64 " %s", s->step, s->now_us, script_name[script]);
    for (int i = 0; i < s->argc; i++) {
        argv[START + i] = s->argv[i];
        len[START + i] = s->len[i];
        trace(s, " %s", s->argv[i][0] == 1 ? "record" : s->argv[i]);
    }

    trace(s, "\n");
    if (s->reply) {
        freeReplyObject(s->reply);
    }

    redisAppendCommand(c, "HSET clock s %lld us %lld", (long long)(s->now_us / 1000000),
                       (long long)(s->now_us % 1000000));
    redisAppendCommandArgv(c, START + s->argc, argv, len);
    cr_assert_eq(redisGetReply(c, (void **)&clock), REDIS_OK);
    cr_assert_eq(redisGetReply(c, (void **)&s->reply), REDIS_OK);
    freeReplyObject(clock);
    HOLDS(s->reply->type == REDIS_REPLY_ARRAY && s->reply->elements >= 1, "%s\n",
          s->reply->str ? s->reply->str : "no array");
    HOLDS(s->reply->element[0]->integer == s->now_us, "another time\n");
}

static int64_t number(struct sim *s, size_t i)
{
    HOLDS(i < s->reply->elements && s->reply->element[i]->type == REDIS_REPLY_INTEGER,
          "element %zu is no number\n", i);
    return s->reply->element[i]->integer;
}

static bool says(struct sim *s, size_t i, const char *word)
{
    return i < s->reply->elements && s->reply->element[i]->type == REDIS_REPLY_STRING &&
           strcmp(s->reply->element[i]->str, word) == 0;
}

/* ---- the model ---- */
static bool over(struct sim *s, const struct job *j)
{
    return j->kind == RUNNING && j->score <= now_ms(s);
}

static bool busy(struct sim *s, const struct job *j)
{
    return j->kind == RUNNING && !over(s, j);
}

static bool used_up(const struct job *j)
{
    return j->held && j->held_tries != FOREVER && j->attempt >= j->held_tries;
}

/* As it is shown: of a job whose lease is over, what the next sweep will make of it. */
static enum kind shown(struct sim *s, const struct job *j)
{
    if (!over(s, j)) {
        return j->kind;
    }
    return used_up(j) && !j->again ? DIED : WAITING;
}

/* The defaults of a record: 1 s, an hour. */
static int64_t backoff_ms(const struct job *j)
{
    int64_t wait_ms = 1000;

    for (int64_t i = 1; i < j->attempt && wait_ms < 3600000; i++) {
        wait_ms *= 2;
    }
    wait_ms = wait_ms < 3600000 ? wait_ms : 3600000;

    double turns = (double)(j->token % 1000000) * 0.6180339887498949;
    double part = turns - (double)(int64_t)turns;
    return wait_ms - (int64_t)(part * (double)(wait_ms / 4 + 1));
}

static int64_t shown_score(struct sim *s, const struct job *j)
{
    bool waits_longer = j->held && j->lease_ended && !used_up(j);

    if (over(s, j) && j->again) {
        return j->again_ms;
    }
    return j->score + (over(s, j) && waits_longer ? backoff_ms(j) : 0);
}

static void row_is(struct sim *s, size_t i, int id, const struct job *j)
{
    const redisReply *row = i < s->reply->elements ? s->reply->element[i] : NULL;

    HOLDS(row && row->type == REDIS_REPLY_ARRAY && row->elements >= 4, "element %zu is no row\n",
          i);
    HOLDS(row->element[0]->str[0] == 'a' + id, "another job: %s\n", row->element[0]->str);
    HOLDS(row->element[1]->integer == (long long)shown(s, j), "state %lld, not %d\n",
          row->element[1]->integer, shown(s, j));
    HOLDS(row->element[2]->integer == shown_score(s, j), "score %lld, not %" PRId64 "\n",
          row->element[2]->integer, shown_score(s, j));

    char held[256] = "";
    char more[128] = "";
    int form = j->key || *j->marks ? 2 : 1;
    if (form == 2) {
        const char *comma = j->key && *j->marks ? "," : "";
        snprintf(more, sizeof more, "%s%s%s ", j->key ? "x=1" : "", comma, j->marks);
    }
    if (j->held) {
        snprintf(held, sizeof held,
                 "%d %" PRIu64 " h%d %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %s", form,
                 j->token, j->holder, j->attempt, j->held_tries, j->claimed_us, j->held_due, more);
    } else if (j->limit_ms) {
        snprintf(held, sizeof held, "2 0 - 0 %" PRId64 " 0 %" PRId64 " w=%" PRId64 " ",
                 j->limit_tries, j->limit_due, j->limit_ms);
    }

    HOLDS(strncmp(row->element[3]->str, held, strlen(held)) == 0 &&
              (*held || !row->element[3]->str[0]),
          "held '%s', not '%s'\n", row->element[3]->str, held);
}

/* The run is over, and the job waits again. */
static void waits_again(struct job *j)
{
    *j = (struct job){
        .kind = WAITING,
        .score = j->again_ms,
        .tries = j->next_tries,
        .key = j->next_key,
        .until_start = j->next_until_start,
        .limit_ms = j->next_limit_ms,
        .limit_tries = j->next_tries,
        .limit_due = j->again_ms,
    };
}

/* Makes some due time an argument; returns what it comes to. */
static int64_t due_arg(struct sim *s)
{
    static const int64_t ahead_ms[] = {0,     1,        50,           1000,
                                       60000, 86400000, TEN_YEARS_MS, TEN_YEARS_MS + 1};
    int64_t ms = ahead_ms[below(s, sizeof ahead_ms / sizeof *ahead_ms)];

    if (below(s, 2)) {
        arg(s, "+%" PRId64, ms);
        return now_ms(s) + ms;
    }

    if (below(s, 3)) {
        ms += now_ms(s);
    } else {
        ms = 1 + below(s, 2) * 1000000000000; /* long past */
    }
    arg(s, "%" PRId64, ms);
    return ms > now_ms(s) ? ms : now_ms(s);
}

static void id_arg(struct sim *s, int id)
{
    arg(s, "%c", 'a' + id);
}

/* ---- steps ---- */
/* As src/lua/README.md draws it; the body is "x". Returns its length. */
static size_t record_of(unsigned char *record, const struct job *j)
{
    int64_t tries = j->tries;
    size_t len = 0;

    record[len++] = j->key ? 2 : 1;
    record[len++] = tries != DEFAULT_TRIES;
    if (tries != DEFAULT_TRIES) {
        for (; tries > 127; tries >>= 7) {
            record[len++] = (unsigned char)((tries & 127) | 128);
        }
        record[len++] = (unsigned char)tries;
    }
    if (j->key) {
        unsigned char attributes[] = {4, 'U', 2, j->until_start ? 's' : 'e', (unsigned char)j->key};
        memcpy(record + len, attributes, sizeof attributes);
        len += sizeof attributes;
    }

    record[len++] = 'x';
    return len;
}

/* The job that holds a key; -1: it is free. */
static int holder_of(struct sim *s, char key)
{
    for (int i = 0; key && i < IDS; i++) {
        const struct job *j = &s->job[i];
        bool lives = j->kind != NONE && shown(s, j) != DIED && !(over(s, j) && j->again);
        bool holds = lives && j->key == key && !(j->until_start && j->held);
        if (holds || (j->again && j->next_key == key)) {
            return i;
        }
    }
    return -1;
}

/* What a schedule asks for, beside its id. */
struct wish {
    enum lapse_conflict conflict;
    int64_t due;
    int64_t max_wait_ms; /* 0: no limit */
    struct job job;
};

static struct wish wish_of(struct sim *s)
{
    static const int64_t some_tries[] = {DEFAULT_TRIES, 1, 2, 3, FOREVER};
    struct wish w = {.conflict = (enum lapse_conflict)below(s, 6)};

    w.job.tries = some_tries[below(s, 5)];
    if (below(s, 2)) {
        w.job.key = (char)('k' + below(s, 2));
        w.job.until_start = below(s, 2);
    }
    if (w.conflict == LAPSE_DEBOUNCE && below(s, 2)) {
        w.max_wait_ms = 1 + below(s, 2000);
    }
    return w;
}

static void answered_due(struct sim *s, int id, bool by_key, int64_t due)
{
    const redisReply *r = s->reply->elements > 1 ? s->reply->element[1] : NULL;

    if (!by_key) {
        HOLDS(number(s, 1) == due, "due %" PRId64 "\n", number(s, 1));
        return;
    }
    HOLDS(r && r->type == REDIS_REPLY_ARRAY && r->elements == 6 && r->element[5]->integer == 1,
          "no job was made\n");
    row_is(s, 1, id, &s->job[id]);
}

/* A new life of the job, or of its id. */
static void makes(struct sim *s, int id, const struct wish *w, bool by_key)
{
    struct job *j = &s->job[id];
    bool waits = w->conflict == LAPSE_DEBOUNCE && j->kind != NONE && shown(s, j) == WAITING;
    int64_t limit_ms = waits && !j->held ? j->limit_ms : 0;
    int64_t due = w->due;

    if (waits && j->again) {
        limit_ms = j->next_limit_ms;
    }

    if (!limit_ms && w->max_wait_ms) {
        limit_ms = now_ms(s) + w->max_wait_ms;
    }
    if (limit_ms && due > limit_ms) {
        due = limit_ms > now_ms(s) ? limit_ms : now_ms(s);
    }

    *j = w->job;
    j->kind = WAITING;
    j->score = due;
    j->limit_ms = limit_ms;
    j->limit_tries = j->tries;
    j->limit_due = due;
    if (waits) {
        row_is(s, 1, id, j);
    } else {
        answered_due(s, id, by_key, due);
    }
}

/* Of a job that waits: another time, if that is better. */
static void shifts(struct sim *s, int id, const struct wish *w)
{
    struct job *j = &s->job[id];
    int64_t score = shown_score(s, j);
    bool ran = j->again;

    if (ran) {
        waits_again(j);
    }
    if (w->conflict == LAPSE_EARLIER ? w->due < score : w->due > score) {
        j->kind = WAITING;
        j->score = w->due;
    }
    j->limit_due = ran ? j->score : j->limit_due;
    row_is(s, 1, id, j);
}

/* In the order of the attempt: what stays, when it is due, and what is new. */
static void mark(struct job *j, bool is_first, int64_t limit_ms)
{
    char old_limit[32] = "";
    char new_limit[32] = "";

    if (j->next_limit_ms) {
        snprintf(old_limit, sizeof old_limit, "w=%" PRId64 ",", j->next_limit_ms);
    } else if (limit_ms) {
        snprintf(new_limit, sizeof new_limit, ",w=%" PRId64, limit_ms);
    }
    if (is_first) {
        snprintf(j->marks, sizeof j->marks, "d=%" PRId64 ",j=1%s", j->again_ms, new_limit);
    } else {
        snprintf(j->marks, sizeof j->marks, "j=1,%sd=%" PRId64 "%s", old_limit, j->again_ms,
                 new_limit);
    }
    j->next_limit_ms = j->next_limit_ms ? j->next_limit_ms : limit_ms;
}

/* Of a job that runs: what follows its run. */
static void follows(struct sim *s, int id, const struct wish *w)
{
    struct job *j = &s->job[id];
    bool was = j->again;
    bool is_better = w->conflict == LAPSE_EARLIER ? w->due < j->again_ms : w->due > j->again_ms;
    bool debounced = w->conflict == LAPSE_DEBOUNCE;
    int64_t place = was ? 2 : 1;
    int64_t limit_ms = debounced && j->again ? j->next_limit_ms : 0;

    if (debounced && !limit_ms && w->max_wait_ms) {
        limit_ms = now_ms(s) + w->max_wait_ms;
    }
    if (was && !debounced && !is_better) {
        place = 0;
    } else {
        j->again_ms = w->due;
        if (limit_ms && w->due > limit_ms) {
            j->again_ms = limit_ms > now_ms(s) ? limit_ms : now_ms(s);
        }
        j->again = true;
        mark(j, !was, limit_ms);
    }
    if (!was || debounced) {
        j->next_tries = w->job.tries;
        j->next_key = w->job.key;
        j->next_until_start = w->job.until_start;
    }

    row_is(s, 1, id, j);
    HOLDS(s->reply->element[1]->elements == 6 && s->reply->element[1]->element[5]->integer == place,
          "another outcome than %" PRId64 "\n", place);
}

static void schedule(struct sim *s)
{
    int asked = (int)below(s, IDS);
    struct wish w = wish_of(s);
    unsigned char record[16];
    size_t len = record_of(record, &w.job);

    begin(s);
    id_arg(s, asked);
    w.due = due_arg(s);
    if (w.max_wait_ms) {
        arg(s, "%d:%" PRId64, (int)w.conflict, w.max_wait_ms);
    } else {
        arg(s, "%d", (int)w.conflict);
    }
    arg_bytes(s, record, len);

    int holder = holder_of(s, w.job.key);
    int id = holder >= 0 ? holder : asked;
    struct job *j = &s->job[id];
    ask(s, SCHEDULE);

    if (w.due > now_ms(s) + TEN_YEARS_MS) {
        HOLDS(says(s, 1, "EINVAL"), "not EINVAL\n");
    } else if (j->kind != NONE && w.conflict == LAPSE_REJECT) {
        HOLDS(says(s, 1, "EEXIST"), "not EEXIST\n");
    } else if (j->kind != NONE && w.conflict == LAPSE_KEEP) {
        row_is(s, 1, id, j);
    } else if (busy(s, j) && w.conflict == LAPSE_REPLACE) {
        HOLDS(says(s, 1, "EBUSY"), "not EBUSY\n");
    } else if (busy(s, j)) {
        follows(s, id, &w);
    } else if (j->kind != NONE && shown(s, j) == WAITING &&
               (w.conflict == LAPSE_EARLIER || w.conflict == LAPSE_LATER)) {
        shifts(s, id, &w);
    } else {
        makes(s, id, &w, id != asked);
    }
}

static void cancel(struct sim *s)
{
    int id = (int)below(s, IDS);
    struct job *j = &s->job[id];

    begin(s);
    id_arg(s, id);
    arg(s, "0");
    ask(s, CANCEL);
    if (j->kind == NONE) {
        HOLDS(says(s, 1, "ENOENT"), "not ENOENT\n");
    } else if (busy(s, j)) {
        HOLDS(says(s, 1, "EBUSY"), "not EBUSY\n");
    } else {
        row_is(s, 1, id, j);
        *j = (struct job){.kind = NONE};
    }
}

static void reschedule(struct sim *s)
{
    int id = (int)below(s, IDS);
    struct job *j = &s->job[id];

    begin(s);
    id_arg(s, id);

    int64_t due = due_arg(s);
    arg(s, "0");
    ask(s, RESCHEDULE);

    if (j->kind == NONE) {
        HOLDS(says(s, 1, "ENOENT"), "not ENOENT\n");
    } else if (busy(s, j)) {
        HOLDS(says(s, 1, "EBUSY"), "not EBUSY\n");
    } else if (due > now_ms(s) + TEN_YEARS_MS) {
        HOLDS(says(s, 1, "EINVAL"), "not EINVAL\n");
    } else if (shown(s, j) == DIED && holder_of(s, j->key) >= 0) {
        HOLDS(says(s, 1, "EEXIST"), "not EEXIST\n");
    } else {
        if (j->again) {
            waits_again(j);
            j->limit_due = due;
        }
        j->held = j->held && shown(s, j) != DIED;
        j->limit_ms = shown(s, j) != DIED ? j->limit_ms : 0;
        j->kind = WAITING;
        j->score = due;
        row_is(s, 1, id, j);
    }
}

static void knows(struct sim *s, int holder, int id, uint64_t token)
{
    struct holder *h = &s->holder[holder];
    h->known[h->n < KNOWN ? h->n++ : (int)below(s, KNOWN)] = (struct claim){id, token};
}

static void taken(struct sim *s, size_t at, int id, int holder, int64_t lease_ms, bool forget)
{
    struct job *j = &s->job[id];

    j->attempt = j->held ? j->attempt + 1 : 1;
    j->lease_ended = j->held && j->lease_ended;
    j->held = true;
    j->limit_ms = 0;
    j->held_due = j->score;
    j->held_tries = j->tries;
    j->claimed_us = s->now_us;
    j->holder = holder;
    s->seq = (s->seq > (uint64_t)s->now_us ? s->seq : (uint64_t)s->now_us) + 1;
    j->token = s->seq;
    j->kind = RUNNING;
    j->score = now_ms(s) + lease_ms;
    HOLDS(at < s->reply->elements, "%c was not taken\n", 'a' + id);
    row_is(s, at, id, j);
    if (!forget) {
        knows(s, holder, id, j->token);
    }
}

static bool is_due(struct sim *s, const struct job *j)
{
    return j->kind == WAITING && j->score <= now_ms(s);
}

static int oldest(struct sim *s)
{
    int found = -1;

    for (int i = 0; i < IDS; i++) {
        if (is_due(s, &s->job[i]) && (found < 0 || s->job[i].score < s->job[found].score)) {
            found = i;
        }
    }
    return found;
}

/* The due time of the next job that waits for it; 0: there is none. */
static int64_t next_due(struct sim *s)
{
    int64_t next = 0;

    for (int i = 0; i < IDS; i++) {
        const struct job *j = &s->job[i];
        if (j->kind == WAITING && j->score > now_ms(s) && (!next || j->score < next)) {
            next = j->score;
        }
    }
    return next;
}

/* The oldest that are due, up to a limit, or those that are named. */
static void claim(struct sim *s)
{
    int holder = (int)below(s, HOLDERS);
    int limit = below(s, 2) ? 1 + (int)below(s, IDS) : 0;
    int named[IDS];
    int n_named = 0;
    int64_t lease_ms = below(s, 3) ? 1000 : 1;
    bool forget = below(s, 6) == 0; /* the answer is lost */
    size_t at = 7;                  /* where the rows begin */

    begin(s);
    arg(s, "h%d", holder);
    arg(s, "%" PRId64, lease_ms);
    arg(s, "%d", limit);
    while (!limit && n_named < IDS && below(s, 4)) {
        named[n_named] = (int)below(s, IDS);
        id_arg(s, named[n_named++]);
    }
    ask(s, CLAIM);

    for (int i; limit-- > 0 && (i = oldest(s)) >= 0;) {
        taken(s, at++, i, holder, lease_ms, forget);
    }
    for (int i = 0; i < n_named; i++) {
        if (is_due(s, &s->job[named[i]])) {
            taken(s, at++, named[i], holder, lease_ms, forget);
        }
    }
    HOLDS(s->reply->elements == at, "%zu rows, not %zu\n", s->reply->elements - 5, at - 5);

    int left = oldest(s);
    int64_t left_due = left < 0 ? 0 : s->job[left].score;
    int64_t next = next_due(s);
    HOLDS(number(s, 1) == left_due, "oldest left %" PRId64 "\n", number(s, 1));
    HOLDS(number(s, 2) == next, "next %" PRId64 ", not %" PRId64 "\n", number(s, 2), next);
    HOLDS(number(s, 3) == 0 && number(s, 4) == 0, "damage, and nobody did any\n");
}

/* What a settle does to a job that this holder has. */
static void settled(struct sim *s, struct job *j, enum script how, int64_t delay_ms, bool snoozes)
{
    if (how != RENEW && j->again) {
        waits_again(j);
        HOLDS(number(s, 1) == j->score, "due %" PRId64 "\n", number(s, 1));
    } else if (how == DONE) {
        HOLDS(number(s, 1) == 1, "not 1\n");
        *j = (struct job){.kind = NONE};
    } else if (how == RETRY && (snoozes || !used_up(j))) {
        j->kind = WAITING;
        j->score = j->held_due = now_ms(s) + delay_ms;
        j->lease_ended = false;
        j->attempt -= snoozes;
        HOLDS(number(s, 1) == j->score, "due %" PRId64 "\n", number(s, 1));
    } else if (how == RETRY || how == FAIL) {
        HOLDS(number(s, 1) == (how == FAIL), "not dead\n");
        j->kind = DIED;
        j->score = now_ms(s);
        j->lease_ended = false;
    } else if (how == RELEASE) {
        HOLDS(number(s, 1) == 1, "not 1\n");
        j->kind = WAITING;
        j->score = j->held_due;
        j->attempt--;
    } else {
        j->score = now_ms(s) + delay_ms;
        HOLDS(number(s, 1) == j->score, "until %" PRId64 "\n", number(s, 1));
    }
}

/* With a token that some holder knows, of now or of long ago, or that nobody has; by that holder,
 * another, or any (HOLDERS). */
static void settle(struct sim *s)
{
    int by = (int)below(s, HOLDERS);
    struct holder *h = &s->holder[by];
    struct claim c = {.id = (int)below(s, IDS), .token = s->seq + (uint64_t)below(s, 2)};
    enum script how = DONE + (enum script)below(s, 5);
    int64_t delay_ms = below(s, 2) * 5000;
    bool snoozes = how == RETRY && below(s, 3) == 0;

    if (h->n && below(s, 10)) {
        c = h->known[below(s, h->n)];
    }
    if (below(s, 8) == 0) {
        by = (int)below(s, HOLDERS + 1);
    }

    begin(s);
    if (by == HOLDERS) {
        arg(s, "*");
    } else {
        arg(s, "h%d", by);
    }
    id_arg(s, c.id);
    arg(s, "%" PRIu64, c.token);
    if (how == RETRY || how == RENEW) {
        arg(s, "%s%" PRId64, snoozes ? "~" : "", delay_ms);
    }
    if (how == RETRY || how == FAIL) {
        arg(s, "why");
    }
    ask(s, how);

    struct job *j = &s->job[c.id];
    bool is_holder = j->holder == by || by == HOLDERS;
    if (j->kind == RUNNING && j->token == c.token && is_holder) {
        settled(s, j, how, delay_ms, snoozes);
    } else {
        HOLDS(says(s, 1, "EGONE"), "not EGONE\n");
    }
}

static void sweep(struct sim *s)
{
    int64_t back = 0;
    int64_t dead = 0;

    begin(s);
    ask(s, SWEEP);

    for (struct job *j = s->job; j < s->job + IDS; j++) {
        if (!over(s, j)) {
            continue;
        }
        back++;
        if (j->again) {
            waits_again(j);
            continue;
        }
        j->score = shown_score(s, j);
        j->kind = WAITING;
        if (used_up(j)) {
            dead++;
            j->kind = DIED;
        }
        j->held_due = j->score;
        j->lease_ended = true;
    }

    HOLDS(number(s, 1) == back, "%" PRId64 " taken back, not %" PRId64 "\n", number(s, 1), back);
    HOLDS(number(s, 2) == dead, "%" PRId64 " dead, not %" PRId64 "\n", number(s, 2), dead);
}

/* A holder is back, and looks at what runs under its name. */
static void reclaim(struct sim *s)
{
    int holder = (int)below(s, HOLDERS);
    size_t n = 0;

    begin(s);
    arg(s, "h%d", holder);
    arg(s, "0");
    ask(s, RECLAIM);
    for (int i = 0; i < IDS; i++) {
        if (s->job[i].kind == RUNNING && s->job[i].holder == holder) {
            n++;
        }
    }

    HOLDS(number(s, 1) == 0 && s->reply->elements == 2 + 2 * n, "%zu elements, not of %zu jobs\n",
          s->reply->elements, n);

    for (size_t i = 2; i < s->reply->elements; i += 2) {
        const struct job *j = &s->job[s->reply->element[i]->str[0] - 'a'];
        HOLDS(j->kind == RUNNING && j->holder == holder, "%s is not its own\n",
              s->reply->element[i]->str);
        HOLDS(strtoull(s->reply->element[i + 1]->str, NULL, 10) == j->token, "token %s\n",
              s->reply->element[i + 1]->str);
    }
}

static void forget(struct sim *s)
{
    s->holder[below(s, HOLDERS)].n = 0; /* killed, and begun again under its name */
}

static void look(struct sim *s)
{
    begin(s);
    for (int i = 0; i < IDS; i++) {
        id_arg(s, i);
    }

    ask(s, GET);
    for (int i = 0; i < IDS; i++) {
        if (s->job[i].kind == NONE) {
            HOLDS(says(s, (size_t)i + 1, "ENOENT"), "%c is there\n", 'a' + i);
        } else {
            row_is(s, (size_t)i + 1, i, &s->job[i]);
        }
    }
}

static void pass_time(struct sim *s)
{
    static const int64_t jump_us[] = {0,      1,       999,     1000,       20000,
                                      999000, 1001000, 7000000, 86400000000};
    s->now_us += jump_us[below(s, sizeof jump_us / sizeof *jump_us)];
}

/* By our clock: a job that is due later has its trigger, and what else is there has expired. */
static void look_at_triggers(struct sim *s)
{
    for (int i = 0; i < IDS; i++) {
        const struct job *j = &s->job[i];
        bool waits = j->kind == WAITING && j->score > now_ms(s);
        char key[] = "lapse:{q}:t:a";
        key[sizeof key - 2] = (char)('a' + i);
        int64_t at_ms = redis_int(s->server, "PEXPIRETIME %s", key);
        if (waits) {
            HOLDS(at_ms == j->score - 1 || at_ms == j->score, "%c: trigger at %" PRId64 "\n",
                  'a' + i, at_ms);
        } else {
            HOLDS(at_ms <= now_ms(s), "%c: a trigger, and it does not wait\n", 'a' + i);
        }
        if (!waits) {
            redis_do(s->server, "DEL %s", key);
        }
    }
}

/* Triggers must not expire by the true clock. */
static int64_t far_ahead_us(struct server *server)
{
    return (redis_now_ms(server) + 40000 * DAY_MS) * 1000;
}

static void simulate(struct server *server, unsigned long seed)
{
    static void (*const step[])(struct sim * s) = {
        schedule, schedule, schedule, claim,   claim, claim,  claim,      settle, settle,
        settle,   settle,   sweep,    reclaim, look,  cancel, reschedule, forget};
    struct sim *s = calloc(1, sizeof *s);

    cr_assert(s);
    redis_do(server, "FLUSHALL");
    s->server = server;
    s->seed = s->dice = seed;
    s->now_us = far_ahead_us(server);

    for (s->step = 0; s->step < STEPS; s->step++) {
        step[below(s, sizeof step / sizeof *step)](s);
        if (s->step % LOOK_EVERY == 0) {
            look(s);
        }
        pass_time(s);
    }

    look(s);
    look_at_triggers(s);
    HOLDS(audit(server, "lapse", "q", NULL) == 0, "the audit says so\n");
    freeReplyObject(s->reply);
    free(s);
}

static void load_scripts(struct server *s)
{
    static const char asks[] = "call('TIME')";
    static const char instead[] = "call('HMGET', 'clock', 's', 'us')";

    for (int i = 0; i < N_SCRIPTS; i++) {
        char path[4096];
        char all[65536];
        snprintf(path, sizeof path, "%s/lua/%s.lua", test_build(), script_name[i]);
        char *text = test_read_file(path, NULL);
        char *at = strstr(text, asks);
        cr_assert(at && !strstr(at + 1, asks), "%s asks for the time once", path);
        snprintf(all, sizeof all, "%.*s%s%s", (int)(at - text), text, instead,
                 at + sizeof asks - 1);
        char *hash = redis_str(s, "SCRIPT LOAD %s", all);
        cr_assert_eq(strlen(hash), 40, "%s: %s", path, hash);
        memcpy(sha[i], hash, 41);
        free(hash);
        free(text);
    }
}

Test(f29, any_order_of_scripts_leaves_a_job_what_the_model_says, .timeout = 1800)
{
    static const char *const args[] = {"--appendonly", "no", NULL};
    const char *one = getenv("LAPSE_SEED");
    unsigned long first = one ? strtoul(one, NULL, 10) : 1;
    unsigned long last = one ? first : (unsigned long)fault_n(1000, 10000);
    int64_t start_ms = test_now_ms();

    struct server *server = server_start_opts(args);
    load_scripts(server);
    for (unsigned long seed = first; seed <= last; seed++) {
        simulate(server, seed);
    }

    if (!one) {
        fault_row("F29",
                  "any order of scripts, holders that forget, a clock that jumps: the scripts "
                  "beside a model",
                  "10,000 seeds, each to be replayed", "%lu seeds of %d steps in %lld s: 0 differ",
                  last, STEPS, (long long)(test_now_ms() - start_ms) / 1000);
    }

    server_stop(server);
}
