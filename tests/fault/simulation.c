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
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "lapse:{q}:due"
enum { IDS = 5, HOLDERS = 3, STEPS = 60, KNOWN = 64, TEXT = 48, ARGS = 80, LOOK_EVERY = 6 };
static const int64_t TEN_YEARS_MS = 315576000000, FOREVER = 4294967295;
enum kind { NONE, WAITING, RUNNING, DIED };

struct job {
    enum kind kind;
    int64_t score; /* ms, of the set it is in */
    int64_t tries; /* its record's */
    bool held;     /* it was claimed in this life; then, as at its last claim: */
    int64_t attempt, held_tries, held_due, claimed_us;
    uint64_t token;
    int holder;
};
struct claim { /* that a holder knows of, right or wrong */
    int id;
    uint64_t token;
};
struct holder {
    struct claim known[KNOWN];
    int n;
};
static struct sim {
    struct server *s;
    unsigned long seed;
    int64_t now_us;
    uint64_t seq;
    struct job job[IDS];
    struct holder holder[HOLDERS];
    char argv[ARGS][TEXT];
    size_t len[ARGS];
    int argc, step;
    redisReply *r;
    char trace[16384];
    size_t traced;
    uint64_t dice;
} x;

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
    RESUME,
    N_SCRIPTS
};
static const char *const script_name[N_SCRIPTS] = {"schedule", "cancel", "reschedule", "get",
                                                   "claim",    "done",   "retry",      "fail",
                                                   "release",  "renew",  "sweep",      "reclaim"};
static char sha[N_SCRIPTS][64];

/* ---- chance ---- */
static int64_t below(int64_t n)
{
    x.dice += 0x9e3779b97f4a7c15u; /* splitmix64 */
    uint64_t z = x.dice;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (int64_t)((z ^ (z >> 31)) % (uint64_t)n);
}

static int64_t now_ms(void)
{
    return x.now_us / 1000;
}

/* ---- telling ---- */
__attribute__((format(printf, 1, 2))) static void trace(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(x.trace + x.traced, sizeof x.trace - x.traced, format, ap);
    va_end(ap);
    x.traced += (size_t)n < sizeof x.trace - x.traced ? (size_t)n : 0;
}

#define HOLDS(cond, ...)                                                                      \
    do                                                                                        \
        if (!(cond)) {                                                                        \
            trace("    broken: " __VA_ARGS__);                                                \
            cr_assert_fail("replay it with LAPSE_SEED=%lu\n%s\n    not: %s", x.seed, x.trace, \
                           #cond);                                                            \
        }                                                                                     \
    while (0)

/* ---- asking ---- */
static void arg_bytes(const void *bytes, size_t len)
{
    cr_assert(x.argc < ARGS && len < TEXT);
    memcpy(x.argv[x.argc], bytes, len);
    x.argv[x.argc][len] = 0;
    x.len[x.argc++] = len;
}

__attribute__((format(printf, 1, 2))) static void arg(const char *format, ...)
{
    char text[TEXT];
    va_list ap;

    va_start(ap, format);
    int n = vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    arg_bytes(text, (size_t)n);
}

static void begin(void)
{
    x.argc = 0;
    arg("0");
}

static void ask(enum script script)
{
    const char *argv[ARGS + 4] = {"EVALSHA", sha[script], "1", KEY};
    size_t len[ARGS + 4] = {7, strlen(sha[script]), 1, sizeof KEY - 1};
    redisContext *c = x.s->redis;
    redisReply *clock;

    trace("%3d %" PRId64 " %s", x.step, x.now_us, script_name[script]);
    for (int i = 0; i < x.argc; i++) {
        argv[4 + i] = x.argv[i], len[4 + i] = x.len[i];
        trace(" %s", x.argv[i][0] == 1 ? "record" : x.argv[i]);
    }

    trace("\n");
    if (x.r) {
        freeReplyObject(x.r);
    }

    redisAppendCommand(c, "HSET clock s %lld us %lld", (long long)(x.now_us / 1000000),
                       (long long)(x.now_us % 1000000));
    redisAppendCommandArgv(c, 4 + x.argc, argv, len);
    cr_assert_eq(redisGetReply(c, (void **)&clock), REDIS_OK);
    cr_assert_eq(redisGetReply(c, (void **)&x.r), REDIS_OK);
    freeReplyObject(clock);
    HOLDS(x.r->type == REDIS_REPLY_ARRAY && x.r->elements >= 1, "%s\n",
          x.r->str ? x.r->str : "no array");
    HOLDS(x.r->element[0]->integer == x.now_us, "another time\n");
}

static int64_t number(size_t i)
{
    HOLDS(i < x.r->elements && x.r->element[i]->type == REDIS_REPLY_INTEGER,
          "element %zu is no number\n", i);
    return x.r->element[i]->integer;
}

static bool says(size_t i, const char *word)
{
    return i < x.r->elements && x.r->element[i]->type == REDIS_REPLY_STRING &&
           strcmp(x.r->element[i]->str, word) == 0;
}

/* ---- the model ---- */
static bool over(const struct job *j)
{
    return j->kind == RUNNING && j->score <= now_ms();
}

static bool busy(const struct job *j)
{
    return j->kind == RUNNING && !over(j);
}

static bool used_up(const struct job *j)
{
    return j->held && j->held_tries != FOREVER && j->attempt >= j->held_tries;
}

static enum kind shown(const struct job *j)
{
    return over(j) ? (used_up(j) ? DIED : WAITING) : j->kind;
}

static void row_is(size_t i, int id, const struct job *j)
{
    const redisReply *row = i < x.r->elements ? x.r->element[i] : NULL;

    HOLDS(row && row->type == REDIS_REPLY_ARRAY && row->elements >= 4, "element %zu is no row\n",
          i);
    HOLDS(row->element[0]->str[0] == 'a' + id, "another job: %s\n", row->element[0]->str);
    HOLDS(row->element[1]->integer == (long long)shown(j), "state %lld, not %d\n",
          row->element[1]->integer, shown(j));
    HOLDS(row->element[2]->integer == j->score, "score %lld, not %" PRId64 "\n",
          row->element[2]->integer, j->score);

    char held[160] = "";
    if (j->held) {
        snprintf(held, sizeof held,
                 "1 %" PRId64 " %" PRId64 " %" PRIu64 " %" PRId64 " %" PRId64 " h%d ", j->attempt,
                 j->held_tries, j->token, j->claimed_us, j->held_due, j->holder);
    }

    HOLDS(strncmp(row->element[3]->str, held, strlen(held)) == 0 &&
              (j->held || !row->element[3]->str[0]),
          "held '%s', not '%s'\n", row->element[3]->str, held);
}

static int64_t some_due(void) /* as an argument; what it comes to */
{
    static const int64_t ahead_ms[] = {0,     1,        50,           1000,
                                       60000, 86400000, TEN_YEARS_MS, TEN_YEARS_MS + 1};
    int64_t ms = ahead_ms[below(sizeof ahead_ms / sizeof *ahead_ms)];

    if (below(2)) {
        arg("+%" PRId64, ms);
        return now_ms() + ms;
    }

    ms = below(3) ? now_ms() + ms : 1 + below(2) * 1000000000000;
    arg("%" PRId64, ms);
    return ms > now_ms() ? ms : now_ms();
}

static void id_arg(int id)
{
    arg("%c", 'a' + id);
}

/* ---- steps ---- */
static void schedule(void)
{
    static const int64_t some_tries[] = {10, 1, 2, 3, FOREVER};
    int id = (int)below(IDS);
    int conflict = (int)below(3);
    struct job *j = &x.job[id];
    int64_t tries = some_tries[below(5)];
    unsigned char record[16] = {1, tries != 10};
    size_t len = 2;

    for (int64_t rest = tries; tries != 10; rest >>= 7) {
        record[len++] = (unsigned char)((rest & 127) | (rest > 127 ? 128 : 0));
        if (rest <= 127) {
            break;
        }
    }

    record[len++] = 'x';
    begin();
    id_arg(id);

    int64_t due = some_due();
    arg("%d", conflict);
    arg_bytes(record, len);
    ask(SCHEDULE);

    if (due > now_ms() + TEN_YEARS_MS) {
        HOLDS(says(1, "EINVAL"), "not EINVAL\n");
    } else if (j->kind != NONE && conflict == 0) {
        HOLDS(says(1, "EEXIST"), "not EEXIST\n");
    } else if (j->kind != NONE && conflict == 1) {
        row_is(1, id, j);
    } else if (busy(j)) {
        HOLDS(says(1, "EBUSY"), "not EBUSY\n");
    } else {
        HOLDS(number(1) == due, "due %" PRId64 "\n", number(1));
        *j = (struct job){.kind = WAITING, .score = due, .tries = tries};
    }
}

static void cancel(void)
{
    int id = (int)below(IDS);
    struct job *j = &x.job[id];

    begin();
    id_arg(id);
    ask(CANCEL);
    if (j->kind == NONE) {
        HOLDS(says(1, "ENOENT"), "not ENOENT\n");
    } else if (busy(j)) {
        HOLDS(says(1, "EBUSY"), "not EBUSY\n");
    } else {
        row_is(1, id, j);
        *j = (struct job){.kind = NONE};
    }
}

static void reschedule(void)
{
    int id = (int)below(IDS);
    struct job *j = &x.job[id];

    begin();
    id_arg(id);

    int64_t due = some_due();
    ask(RESCHEDULE);

    if (j->kind == NONE) {
        HOLDS(says(1, "ENOENT"), "not ENOENT\n");
    } else if (busy(j)) {
        HOLDS(says(1, "EBUSY"), "not EBUSY\n");
    } else if (due > now_ms() + TEN_YEARS_MS) {
        HOLDS(says(1, "EINVAL"), "not EINVAL\n");
    } else {
        j->held = j->held && shown(j) != DIED;
        j->kind = WAITING;
        j->score = due;
        row_is(1, id, j);
    }
}

static void knows(int holder, int id, uint64_t token)
{
    struct holder *h = &x.holder[holder];
    h->known[h->n < KNOWN ? h->n++ : (int)below(KNOWN)] = (struct claim){id, token};
}

static void taken(size_t at, int id, int holder, int64_t lease_ms, bool forget)
{
    struct job *j = &x.job[id];

    j->attempt = j->held ? j->attempt + 1 : 1;
    j->held = true;
    j->held_due = j->score;
    j->held_tries = j->tries;
    j->claimed_us = x.now_us;
    j->holder = holder;
    x.seq = (x.seq > (uint64_t)x.now_us ? x.seq : (uint64_t)x.now_us) + 1;
    j->token = x.seq;
    j->kind = RUNNING;
    j->score = now_ms() + lease_ms;
    HOLDS(at < x.r->elements, "%c was not taken\n", 'a' + id);
    row_is(at, id, j);
    if (!forget) {
        knows(holder, id, j->token);
    }
}

static bool is_due(const struct job *j)
{
    return j->kind == WAITING && j->score <= now_ms();
}

static int oldest(void)
{
    int found = -1;

    for (int i = 0; i < IDS; i++) {
        if (is_due(&x.job[i]) && (found < 0 || x.job[i].score < x.job[found].score)) {
            found = i;
        }
    }
    return found;
}

static void claim(void)
{
    int holder = (int)below(HOLDERS);
    int limit = below(2) ? 1 + (int)below(IDS) : 0;
    int named[IDS];
    int n = 0;
    int64_t lease_ms = below(3) ? 1000 : 1;
    bool forget = below(6) == 0; /* the answer is lost */
    size_t at = 5;

    begin();
    arg("h%d", holder);
    arg("%" PRId64, lease_ms);
    arg("%d", limit);

    if (!limit) {
        for (n = 0; n < IDS && below(4); n++) {
            id_arg(named[n] = (int)below(IDS));
        }
    }

    ask(CLAIM);
    for (int i; limit-- > 0 && (i = oldest()) >= 0;) {
        taken(at++, i, holder, lease_ms, forget);
    }

    for (int i = 0; i < n; i++) {
        if (is_due(&x.job[named[i]])) {
            taken(at++, named[i], holder, lease_ms, forget);
        }
    }

    HOLDS(x.r->elements == at, "%zu rows, not %zu\n", x.r->elements - 5, at - 5);

    int left = oldest();
    int64_t next = 0;
    for (int i = 0; i < IDS; i++) {
        if (x.job[i].kind == WAITING && x.job[i].score > now_ms() &&
            (!next || x.job[i].score < next)) {
            next = x.job[i].score;
        }
    }

    HOLDS(number(1) == (left < 0 ? 0 : x.job[left].score), "oldest left %" PRId64 "\n", number(1));
    HOLDS(number(2) == next, "next %" PRId64 ", not %" PRId64 "\n", number(2), next);
    HOLDS(number(3) == 0 && number(4) == 0, "damage, and nobody did any\n");
}

/* With a token that some holder knows, of now or of long ago, or that nobody has; by that holder,
 * another, or any. */
static void settle(void)
{
    int by = (int)below(HOLDERS);
    struct holder *h = &x.holder[by];
    struct claim c = {.id = (int)below(IDS), .token = x.seq + (uint64_t)below(2)};
    enum script how = DONE + (enum script)below(5);
    int64_t delay_ms = below(2) * 5000;

    if (h->n && below(10)) {
        c = h->known[below(h->n)];
    }

    if (below(8) == 0) {
        by = (int)below(HOLDERS + 1);
    }

    struct job *j = &x.job[c.id];
    bool ours = j->kind == RUNNING && j->token == c.token && (j->holder == by || by == HOLDERS);
    begin();

    if (by == HOLDERS) {
        arg("*");
    } else {
        arg("h%d", by);
    }

    id_arg(c.id);
    arg("%" PRIu64, c.token);
    if (how == RETRY || how == RENEW) {
        arg("%" PRId64, delay_ms);
    }

    if (how == RETRY || how == FAIL) {
        arg("why");
    }

    ask(how);

    if (!ours) {
        HOLDS(says(1, "EGONE"), "not EGONE\n");
    } else if (how == DONE) {
        HOLDS(number(1) == 1, "not 1\n");
        *j = (struct job){.kind = NONE};
    } else if (how == RETRY && !used_up(j)) {
        j->kind = WAITING;
        j->score = j->held_due = now_ms() + delay_ms;
        HOLDS(number(1) == j->score, "due %" PRId64 "\n", number(1));
    } else if (how == RETRY || how == FAIL) {
        HOLDS(number(1) == (how == FAIL), "not dead\n");
        j->kind = DIED;
        j->score = now_ms();
    } else if (how == RELEASE) {
        HOLDS(number(1) == 1, "not 1\n");
        j->kind = WAITING;
        j->score = j->held_due;
        j->attempt--;
    } else {
        j->score = now_ms() + delay_ms;
        HOLDS(number(1) == j->score, "until %" PRId64 "\n", number(1));
    }
}

static void sweep(void)
{
    int64_t back = 0;
    int64_t dead = 0;

    begin();
    ask(SWEEP);

    for (int i = 0; i < IDS; i++) {
        struct job *j = &x.job[i];
        if (!over(j)) {
            continue;
        }
        back++;
        dead += used_up(j);
        j->kind = used_up(j) ? DIED : WAITING;
        j->held_due = j->score;
    }

    HOLDS(number(1) == back, "%" PRId64 " taken back, not %" PRId64 "\n", number(1), back);
    HOLDS(number(2) == dead, "%" PRId64 " dead, not %" PRId64 "\n", number(2), dead);
}

/* A holder is back, and looks at what runs under its name. */
static void resume(void)
{
    int holder = (int)below(HOLDERS);
    size_t n = 0;

    begin();
    arg("h%d", holder);
    arg("0");
    ask(RESUME);
    for (int i = 0; i < IDS; i++) {
        n += x.job[i].kind == RUNNING && x.job[i].holder == holder;
    }

    HOLDS(number(1) == 0 && x.r->elements == 2 + 2 * n, "%zu elements, not of %zu jobs\n",
          x.r->elements, n);

    for (size_t i = 2; i < x.r->elements; i += 2) {
        const struct job *j = &x.job[x.r->element[i]->str[0] - 'a'];
        HOLDS(j->kind == RUNNING && j->holder == holder, "%s is not its own\n",
              x.r->element[i]->str);
        HOLDS(strtoull(x.r->element[i + 1]->str, NULL, 10) == j->token, "token %s\n",
              x.r->element[i + 1]->str);
    }
}

static void forget(void)
{
    x.holder[below(HOLDERS)].n = 0; /* killed, and begun again under its name */
}

static void look(void)
{
    begin();
    for (int i = 0; i < IDS; i++) {
        id_arg(i);
    }

    ask(GET);
    for (int i = 0; i < IDS; i++) {
        if (x.job[i].kind == NONE) {
            HOLDS(says((size_t)i + 1, "ENOENT"), "%c is there\n", 'a' + i);
        } else {
            row_is((size_t)i + 1, i, &x.job[i]);
        }
    }
}

static void pass_time(void)
{
    static const int64_t jump_us[] = {0,      1,       999,     1000,       20000,
                                      999000, 1001000, 7000000, 86400000000};
    x.now_us += jump_us[below(sizeof jump_us / sizeof *jump_us)];
}

/* By our clock: a job that is due later has its trigger, and what else is there has expired. */
static void look_at_triggers(void)
{
    for (int i = 0; i < IDS; i++) {
        const struct job *j = &x.job[i];
        bool waits = j->kind == WAITING && j->score > now_ms();
        char key[] = "lapse:{q}:t:a";
        key[sizeof key - 2] = (char)('a' + i);
        int64_t at_ms = redis_int(x.s, "PEXPIRETIME %s", key);
        if (waits) {
            HOLDS(at_ms == j->score - 1 || at_ms == j->score, "%c: trigger at %" PRId64 "\n",
                  'a' + i, at_ms);
        } else {
            HOLDS(at_ms <= now_ms(), "%c: a trigger, and it does not wait\n", 'a' + i);
        }
        if (!waits) {
            redis_do(x.s, "DEL %s", key);
        }
    }
}

static void simulate(unsigned long seed)
{
    static void (*const step[])(void) = {schedule, schedule, schedule, claim,      claim,  claim,
                                         claim,    settle,   settle,   settle,     settle, sweep,
                                         resume,   look,     cancel,   reschedule, forget};
    struct server *s = x.s;
    redisReply *old = x.r;

    redis_do(s, "FLUSHALL");
    memset(&x, 0, sizeof x);
    x.s = s, x.r = old, x.seed = seed, x.dice = seed;
    x.now_us = (redis_now_ms(s) + 86400000 * 40000ll) *
               1000; /* triggers must not expire by the true clock */

    for (x.step = 0; x.step < STEPS; x.step++) {
        step[below(sizeof step / sizeof *step)]();
        if (x.step % LOOK_EVERY == 0) {
            look();
        }
        pass_time();
    }

    look();
    look_at_triggers();
    HOLDS(audit(s, "lapse", "q", NULL) == 0, "the audit says so\n");
}

static void load(struct server *s)
{
    static const char asks[] = "call('TIME')";
    static const char instead[] = "call('HMGET', 'clock', 's', 'us')";

    for (int i = 0; i < N_SCRIPTS; i++) {
        char path[4096];
        char all[16384];
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

    x.s = server_start_opts(args);
    load(x.s);
    for (unsigned long seed = first; seed <= last; seed++) {
        simulate(seed);
    }

    if (!one) {
        fault_row("F29",
                  "any order of scripts, holders that forget, a clock that jumps: the scripts "
                  "beside a model",
                  "10,000 seeds, each to be replayed", "%lu seeds of %d steps in %lld s: 0 differ",
                  last, STEPS, (long long)(test_now_ms() - start_ms) / 1000);
    }

    freeReplyObject(x.r);
    server_stop(x.s);
}
