/* SPDX-License-Identifier: MIT */
/* F27: an attacker or a bug has written what lies in Redis. From a seed,
 * LAPSE_SEED.
 *
 * A round breaks some jobs of queue h in one to three ways each, while its listener runs, and adds
 * healthy ones. Half of them ask for more than a body (record and attempt of form 2), and the
 * index has entries of them, and of nothing. What is broken must be dead with its reason, or gone,
 * or run; what is healthy runs once; every call answers. In some rounds a key of the whole queue is
 * replaced too: then that queue waits until it is mended, and queue o goes on. */
#include "handler.h"
#include "fault.h"
#include <hiredis/hiredis.h>

enum { VICTIMS = 50, HEALTHY = 5, BIG = 1 << 20, HOUR = 3600000 };

static uint64_t state;

static uint64_t random_number(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

/* ---- a victim ---- */
struct victim {
    char *id, *record, *held; /* NULL: none */
    size_t id_len, record_len, held_len;
    bool asks_more;
    bool in[3];        /* due, run, dead */
    const char *score; /* in all of them */
};
static const char *const sets[] = {"due", "run", "dead"};

static void set_text(char **text, size_t *len, const void *from, size_t n)
{
    free(*text);
    *text = malloc(n + 1);
    cr_assert(*text);
    memcpy(*text, from, n);
    (*text)[n] = '\0';
    *len = n;
}

static void random_text(char **text, size_t *len, size_t most)
{
    char bytes[64];
    size_t n = random_number(most + 1);

    for (size_t i = 0; i < n; i++) {
        bytes[i] = (char)(random_number(4) ? random_number(256) : random_number(10));
    }
    set_text(text, len, bytes, n);
}

/* Somewhere: another byte, one less, or the end. */
static void mutate(char *text, size_t *len)
{
    if (!text || !*len) {
        return;
    }

    size_t at = random_number(*len < 64 ? *len : 64);
    switch (random_number(3)) {
    case 0: text[at] = (char)random_number(256); break;
    case 1: memmove(text + at, text + at + 1, --*len - at); break;
    default: *len = at;
    }
}

static void big_text(char **text, size_t *len, size_t n, const char *head, size_t head_len)
{
    char *big = malloc(n);

    cr_assert(big);
    memset(big, 'x', n);
    memcpy(big, head, head_len);
    set_text(text, len, big, n);
    free(big);
}

static void break_id(struct victim *v, long i)
{
    static const char *const odd[] = {"a b",      "{x}",  "}",           "\n", "\x1b[2J",
                                      "\xff\xfe", "a\tb", "$'\r\nERR x", ""};
    char id[64];

    switch (random_number(4)) {
    case 0:
        snprintf(id, sizeof id, "%ld-", i);
        big_text(&v->id, &v->id_len, random_number(20) ? 256 + random_number(500) : BIG, id,
                 strlen(id));
        break;
    case 1:
        random_text(&v->id, &v->id_len, 20);
        v->id = realloc(v->id, v->id_len + 24); /* no two are the same */
        cr_assert(v->id);
        v->id_len += (size_t)snprintf(v->id + v->id_len, 24, "-%ld", i);
        break;
    default:
        snprintf(id, sizeof id, "%s%ld", odd[random_number(sizeof odd / sizeof *odd)], i);
        set_text(&v->id, &v->id_len, id, strlen(id));
    }
}

/* One of the attributes of a record as some_record() makes it: its letter, its length, its value;
 * or there it is once more. */
static void break_attribute(struct victim *v)
{
    static const char letters[] = "CGKLOQRSTUXbehmrx";
    char twice[512];
    size_t at = 6;

    if (!v->record || v->record_len < 12 || *v->record != 2 || v->record[1] != 7) {
        return;
    }
    for (uint64_t n = random_number(4); n; n--) {
        size_t next = at + 2 + (unsigned char)v->record[at + 1];
        at = next + 6 < v->record_len ? next : at; /* behind the last one is the body */
    }

    size_t len = 2 + (size_t)(unsigned char)v->record[at + 1];
    bool is_whole = at + len <= v->record_len && v->record_len + len <= sizeof twice;
    switch (random_number(4)) {
    case 0: v->record[at] = letters[random_number(sizeof letters - 1)]; break;
    case 1: v->record[at + 1] = (char)(v->record[at + 1] + (random_number(2) ? 1 : -1)); break;
    case 2: v->record[at + 2] = (char)random_number(256); break;
    default:
        if (is_whole) {
            memcpy(twice, v->record, at + len);
            memcpy(twice + at + len, v->record + at, v->record_len - at);
            twice[5] += (char)len;
            set_text(&v->record, &v->record_len, twice, v->record_len + len);
        }
    }
}

static void break_it(struct victim *v, long i)
{
    static const char *const scores[] = {
        "inf", "-inf",   "1e300", "-1e300", "9007199254740993", "1e17", "-1", "0", "0.5",
        "1.5", "1e-300", "-0",    "1000",   "123456789.25"};
    static const char *const helds[] = {
        "1 1 w 99 1 1 1 why",
        "1 0 w 0 0 0 0 ",
        "1 9007199254740992 w 4294967295 4294967295 1 1 x",
        "1 1 w 99999999999999999999999 99999999999999999999999 1 1 x",
        "1 1 w 1 10 1 1",
        "2 what is this",
        "1 99999999999999999999 w 1 10 1 99999999999999999999 x",
        "2 1 w 1 10 1 1 , x",
        "2 1 w 1 10 1 1 x",
        "2 1 w 1 10 1 1 c=1,d=5,j=1 x",
        "2 1 w 1 10 1 1 d=99999999999999999999 x",
        "2 1 w 1 10 1 1 f=0,q=999,w=1 x",
        "2 1 w 1 10 1 1 o=1,r=1,x=1,e=9 x",
        "2 0 - 0 10 0 1 r=2,z=1,n=-1,n=1 x"};
    size_t which;

    if (v->asks_more && random_number(2)) {
        break_attribute(v);
        return;
    }
    switch (random_number(12)) {
    case 0: random_text(&v->record, &v->record_len, 40); break;
    case 1:
    case 2: mutate(v->record, &v->record_len); break;
    case 3:
        free(v->record);
        v->record = NULL;
        break;
    case 4: random_text(&v->held, &v->held_len, 40); break;
    case 5:
        which = random_number(sizeof helds / sizeof *helds);
        set_text(&v->held, &v->held_len, helds[which], strlen(helds[which]));
        break;
    case 6: mutate(v->held, &v->held_len); break;
    case 7: break_id(v, i); break;
    case 8: v->in[random_number(3)] ^= true; break;
    case 9:
    case 10: v->score = scores[random_number(sizeof scores / sizeof *scores)]; break;
    default:
        if (random_number(20) == 0) {
            big_text(&v->record, &v->record_len, BIG + random_number(4), "\1\0", 2);
        } else if (random_number(20) == 0) {
            big_text(&v->held, &v->held_len, BIG, "1 7 w 1 10 1 1 x", 16);
        } else {
            set_text(&v->record, &v->record_len, "\2\0newer", 7);
        }
    }
}

/* One that asks for more, all of which lets it run; its key is its own. Returns its length. */
static size_t some_record(char *record, long i)
{
    static const char *const wishes[] = {
        "K\00560000", "K\00660000b", "Q\1\7",  "T\1a",   "T\2bb",
        "U",          "b\5l1,20",    "e\0015", "h\3a=b", "m\0150000000000000"};
    size_t n = 6;

    memcpy(record, "\2\7\3\1\1", 5); /* 3 tries, backoff 1 ms */
    for (size_t w = 0; w < sizeof wishes / sizeof *wishes; w++) {
        if (random_number(2)) {
            continue;
        }
        size_t len = strlen(wishes[w]);
        memcpy(record + n, wishes[w], len);
        if (*wishes[w] == 'U') {
            len += (size_t)sprintf(record + n + 2, "e%ld", i);
            record[n + 1] = (char)(len++ - 1);
        }
        n += len;
    }
    record[5] = (char)(n - 6);
    memcpy(record + n, "body", 4);
    return n + 4;
}

static void victim_init(struct victim *v, long i)
{
    char text[128];

    *v = (struct victim){.score = "1000"};
    snprintf(text, sizeof text, "v%ld", i);
    set_text(&v->id, &v->id_len, text, strlen(text));
    v->asks_more = random_number(2);
    if (v->asks_more) {
        size_t n = some_record(text, i);
        set_text(&v->record, &v->record_len, text, n);
    } else {
        set_text(&v->record, &v->record_len, "\1\7\3\1\1body", 9); /* 3 tries, backoff 1 ms */
    }
    v->in[random_number(2)] = true;
    if (v->in[1] || random_number(2)) {
        const char *more = v->asks_more ? "q=7,r=0,x=1 " : "";
        snprintf(text, sizeof text, "%d %ld w:1/2 1 3 1790000000000000 1790000000000 %sso so",
                 1 + v->asks_more, i, more);
        set_text(&v->held, &v->held_len, text, strlen(text));
    }

    for (uint64_t n = 1 + random_number(3); n; n--) {
        break_it(v, i);
    }
}

/* What leads to it, or says so; and what should stand beside an attempt alone. */
static void put_beside(struct flow *f, const struct victim *v)
{
    static const char *const entries[] = {"t a ", "t bb ", "t ", "u e", "u e1 ",
                                          "s a ", "r ",    "",   "x "};
    static const char *const hashes[] = {"next", "report", "errors"};
    char *noise = NULL;
    size_t len;

    if (random_number(2)) {
        const char *entry = entries[random_number(sizeof entries / sizeof *entries)];
        redis_do(f->server, "ZADD lapse:{h}:index 0 %s%b", entry, v->id, v->id_len);
    }
    random_text(&noise, &len, 40);
    if (random_number(4) == 0) {
        redis_do(f->server, "ZADD lapse:{h}:index %d %b", (int)random_number(3) - 1, noise, len);
    }
    if (random_number(4) == 0) {
        redis_do(f->server, "HSET lapse:{h}:%s %b %b", hashes[random_number(3)], v->id, v->id_len,
                 noise, len);
    }
    free(noise);
}

static void put(struct flow *f, const struct victim *v)
{
    static const char *const kinds[] = {"SET %s%b x", "LPUSH %s%b x", "SADD %s%b x",
                                        "SET %s%b x PX 5"};

    if (v->held) {
        redis_do(f->server, "HSET lapse:{h}:attempts %b %b", v->id, v->id_len, v->held,
                 v->held_len);
    }

    if (v->record) {
        redis_do(f->server, "HSET lapse:{h}:jobs %b %b", v->id, v->id_len, v->record,
                 v->record_len);
    }

    if (random_number(10) == 0) {
        freeReplyObject(
            redis_cmd(f->server, kinds[random_number(4)], "lapse:{h}:t:", v->id, v->id_len));
    }

    put_beside(f, v);
    for (int k = 0; k < 3; k++) {
        if (v->in[k]) {
            redis_do(f->server, "ZADD lapse:{h}:%s %s %b", sets[k], v->score, v->id, v->id_len);
        }
    }
}

static void victim_free(struct victim *v)
{
    free(v->id);
    free(v->record);
    free(v->held);
}

/* ---- what must have become of it ---- */
static bool are_letters(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] <= ' ' || text[i] > '~' || text[i] == '{' || text[i] == '}') {
            return false;
        }
    }
    return len > 0;
}

static bool id_ok(const struct victim *v)
{
    return v->id_len <= 255 && are_letters(v->id, v->id_len);
}

/* What an attribute makes of its record. ODD: whether the job runs is for the scripts to say. */
enum reads { UNREADABLE, READABLE, ODD };

static enum reads attribute_reads(char letter, const char *value, size_t len, int n_of_it)
{
    size_t n_digits = 0;

    switch (letter) {
    case 'C':
    case 'G':
    case 'L':
    case 'O':
    case 'R':
    case 'S': return ODD;
    case 'K':
        while (n_digits < len && value[n_digits] >= '0' && value[n_digits] <= '9') {
            n_digits++;
        }
        bool is_rest = len == n_digits || (len == n_digits + 1 && value[n_digits] == 'b');
        return n_digits && n_digits <= 12 && *value != '0' && is_rest && n_of_it == 1;
    case 'Q': return len == 1 && *value && n_of_it == 1;
    case 'T': return len <= 64 && are_letters(value, len) && n_of_it <= 8;
    case 'U':
        return len >= 2 && len <= 256 && (*value == 'e' || *value == 's') &&
               are_letters(value + 1, len - 1) && n_of_it == 1;
    default: return letter >= 'a' ? READABLE : UNREADABLE;
    }
}

static enum reads attributes_read(const char *at, const char *end)
{
    enum reads all = READABLE;
    int n_of_it = 0;
    char last = 0;

    while (at < end) {
        char letter = *at++;
        bool is_letter = (letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z');
        if (!is_letter || letter < last || at == end) {
            return UNREADABLE;
        }

        size_t len = (unsigned char)*at++;
        if (len >= 128) {
            if (at == end) {
                return UNREADABLE;
            }
            len = len - 128 + (size_t)(unsigned char)*at++ * 128;
        }
        if (len > (size_t)(end - at)) {
            return UNREADABLE;
        }

        n_of_it = letter == last ? n_of_it + 1 : 1;
        last = letter;
        enum reads one = attribute_reads(letter, at, len, n_of_it);
        if (one == UNREADABLE) {
            return UNREADABLE;
        }
        all = one == ODD ? ODD : all;
        at += len;
    }
    return all;
}

/* By the drawing in src/lua/README.md, not by the code. */
static enum reads record_reads(const struct victim *v)
{
    const unsigned char *r = (const unsigned char *)v->record;
    uint64_t number[4] = {10, 0, 0, 0}; /* the last are the bytes of the attributes */
    size_t at = 2;

    if (v->record_len < 2 || r[0] < 1 || r[0] > 2 || r[1] > 7) {
        return UNREADABLE;
    }

    int flags = r[0] == 2 ? r[1] | 8 : r[1];
    for (int bit = 0; bit < 4; bit++) {
        uint64_t value = 0;
        int n = 0;
        if (!(flags & 1 << bit)) {
            continue;
        }
        do {
            if (at == v->record_len || n == 7) {
                return UNREADABLE;
            }
            value |= (uint64_t)(r[at] & 127) << 7 * n++;
        } while (r[at++] >= 128);
        number[bit] = value;
    }

    bool is_cut = number[3] > 4096 || number[3] > v->record_len - at;
    bool is_wrong = number[0] < 1 || number[0] > 4294967295;
    if (is_cut || is_wrong || v->record_len - at - number[3] > BIG) {
        return UNREADABLE;
    }
    return attributes_read(v->record + at, v->record + at + number[3]);
}

/* Does its attempt, which was broken, say something that may end it? */
static bool is_marked(const struct victim *v)
{
    return v->held && *v->held == '2' && !strstr(v->held, " q=7,r=0,x=1 so so");
}

static bool is_in(struct flow *f, const char *set, const struct victim *v)
{
    char *score = redis_str(f->server, "ZSCORE lapse:{h}:%s %b", set, v->id, v->id_len);
    bool in = score;
    free(score);
    return in;
}

enum fate { RAN, USED_UP, QUARANTINED, GONE, LEFT, AS_IT_SAID, FATES };
static long fates[FATES];

static enum fate fate(struct flow *f, const struct flow_handler *w, size_t from,
                      const struct victim *v)
{
    bool past = strtod(v->score, NULL) < 1e15;
    bool due = v->in[0] && past;
    bool over = v->in[1] && past;

    if (!due && !over) {
        return LEFT;
    }

    if (!v->record) {
        cr_assert(!is_in(f, "due", v) && (!is_in(f, "run", v) || !over),
                  "a member without a record is there still");
        return GONE;
    }

    enum reads reads = record_reads(v);
    if (is_marked(v) || reads == ODD) {
        return AS_IT_SAID; /* it is not due still, and does not run */
    }

    if (reads == READABLE && id_ok(v)) {
        for (size_t i = from; i < w->n_runs; i++) {
            if (strcmp(w->runs[i].job.id, v->id) == 0) {
                return RAN;
            }
        }
        cr_assert(is_in(f, "dead", v), "%s neither ran nor died", v->id);
        return USED_UP;
    }

    if (!v->in[2]) {
        cr_assert(is_in(f, "dead", v), "not dead: %.20s", v->id);
    }

    char *record = redis_str(f->server, "HGET lapse:{h}:jobs %b", v->id, v->id_len);
    cr_assert(record && memcmp(record, v->record, strlen(record)) == 0, "it was changed");
    free(record);

    return QUARANTINED;
}

/* ---- a round ---- */
static void healthy(struct flow *f, struct flow_handler *w, const char *queue, long round)
{
    struct flow_answer a[HEALTHY];
    char id[40];

    for (int i = 0; i < HEALTHY; i++) {
        snprintf(id, sizeof id, "ok-%ld-%d", round, i);
        struct lapse_spec s = flow_job_spec(queue, id, i);
        a[i] = (struct flow_answer){.f = f};
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[i]), 0);
    }

    size_t from = w->n_runs;
    for (int i = 0; i < HEALTHY; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), 0, "%s", lapse_strerror(a[i].err));
    }

    for (int i = 0; i < HEALTHY; i++) {
        size_t n = 0;
        size_t at = from > 200 ? from - 200 : 0;
        snprintf(id, sizeof id, "ok-%ld-%d", round, i);
        flow_poll(f, redis_int(f->server, "HEXISTS lapse:{%s}:jobs %s", queue, id) == 0);
        for (; at < w->n_runs; at++) {
            if (strcmp(w->runs[at].job.id, id) == 0) {
                n++;
            }
        }
        cr_assert_eq(n, 1, "%s ran %zu times", id, n);
    }
}

static void until_settled(struct flow *f)
{
    flow_poll(f, redis_int(f->server, "ZCOUNT lapse:{h}:due -inf 1e15") == 0 &&
                     redis_int(f->server, "ZCOUNT lapse:{h}:run -inf 1e15") == 0);
}

static void ask_about(struct flow *f, const struct victim *v)
{
    static const unsigned fine =
        1u | 1u << -LAPSE_ENOENT | 1u << -LAPSE_EDATA | 1u << -LAPSE_EBUSY | 1u << -LAPSE_EENDED;
    int err[3] = {flow_get(f, "h", v->id, NULL), 0, 0};

    err[1] = random_number(2) ? flow_reschedule(f, "h", v->id, lapse_in(HOUR), NULL) : 0;
    err[2] = flow_cancel(f, "h", v->id, NULL);
    for (int i = 0; i < 3; i++) {
        cr_assert(err[i] <= 0 && err[i] > -32 && fine & 1u << -err[i], "%s: %s", v->id,
                  lapse_strerror(err[i]));
    }

    cr_assert(err[2] == LAPSE_EBUSY || is_in(f, "kept", v) ||
                  redis_int(f->server, "HEXISTS lapse:{h}:jobs %s", v->id) == 0,
              "%s: cancel said %s, and its record of %zu bytes is there still; in %d %d %d", v->id,
              lapse_strerror(err[2]), v->record_len, v->in[0], v->in[1], v->in[2]);
}

static void empty(struct flow *f)
{
    redis_do(f->server, "EVAL %s 0",
             "for _, k in ipairs(redis.call('KEYS', 'lapse:{h}:*')) do if k ~= "
             "'lapse:{h}:listeners' then redis.call('DEL', k) end end");
}

static void round_of_jobs(struct flow *f, struct flow_handler *w, long round)
{
    static struct flow_job page[4 * VICTIMS + HEALTHY];
    struct victim v[VICTIMS];
    const size_t from = w->n_runs;

    for (long i = 0; i < VICTIMS; i++) {
        victim_init(&v[i], round * VICTIMS + i);
        put(f, &v[i]);
    }

    healthy(f, w, "h", round);
    until_settled(f);
    for (int s = LAPSE_WAITING; s <= LAPSE_KEPT; s++) {
        cr_assert_geq(flow_list(f, "h", (enum lapse_state)s, 7, page, sizeof page / sizeof *page),
                      0);
    }

    struct lapse_depth d;
    cr_assert_eq(flow_depth(f, "h", &d), 0);
    for (int i = 0; i < VICTIMS; i++) {
        fates[fate(f, w, from, &v[i])]++;
    }
    const struct lapse_where tagged = {.tag = "a", .reason = round % 2 ? "so" : NULL};
    cr_assert_eq(flow_cancel_all(f, "h", tagged, NULL), 0);

    for (int i = 0; i < VICTIMS; i++) {
        if (id_ok(&v[i])) {
            ask_about(f, &v[i]);
        }
        victim_free(&v[i]);
    }

    empty(f);
}

/* A key of the whole queue is another's, until it is mended. */
static void round_of_keys(struct flow *f, struct flow_handler *w, struct flow_handler *other,
                          long round)
{
    static const char *const keys[] = {"due",       "run",  "dead",   "jobs", "attempts", "seq",
                                       "listeners", "next", "errors", "kept", "report",   "index"};
    static const char *const values[] = {"SET %s x",        "SET %s 1.5",          "SET %s -1",
                                         "SET %s 1e400",    "LPUSH %s x",          "SADD %s x",
                                         "HSET %s a b c d", "ZADD %s inf x -inf y"};
    char key[40];
    struct flow_answer a = {.f = f};
    struct lapse_spec s = flow_job_spec("h", "kept", 0);

    snprintf(key, sizeof key, "lapse:{h}:%s", keys[random_number(sizeof keys / sizeof *keys)]);
    redis_do(f->server, "DEL %s", key);
    freeReplyObject(redis_cmd(f->server, values[random_number(8)], key));
    cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a), 0);

    int err = flow_wait(f, &a);
    cr_assert(err == 0 || err == LAPSE_EREFUSED, "%s", lapse_strerror(err));
    healthy(f, other, "o", round);
    redis_do(f->server, "DEL %s", key);
    empty(f);
    healthy(f, w, "h", round);
    empty(f);
}

static void quick(struct lapse_options *o)
{
    o->sweep_ms = 10;
    o->lease_ms = 200;
}

Test(f27, hostile_data_is_quarantined_and_counted_and_hurts_no_other_job, .timeout = 3000)
{
    static const char *const fine[] = {"in a format this version cannot read", "WRONGTYPE",
                                       "is no counter", "Redis"};
    const long rounds = fault_n(40, 400);
    const char *seed = getenv("LAPSE_SEED");

    state = seed && strtoull(seed, NULL, 0) ? strtoull(seed, NULL, 0) : 27;
    fault_say("F27: LAPSE_SEED=%llu, %ld rounds", (unsigned long long)state, rounds);

    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quick);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_handler other = {.way = FLOW_DONE};
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        flow_allow_log(f, fine[i]);
    }

    flow_allow_log(f, "lease of job");
    flow_listen(f, "h", &w);
    flow_listen(f, "o", &other);

    for (long i = 0; i < rounds; i++) {
        round_of_jobs(f, &w, i);
        if (i % 4 == 3) {
            round_of_keys(f, &w, &other, rounds + i);
        }
    }

    cr_assert_geq(flow_logged(f, "are dead now"), 1);
    flow_end(f, "h", "o");
    fault_row("F27", "hostile records, sets, ids and keys",
              "10,000 cases from a seed: no crash, quarantined and counted",
              "%ld broken jobs (%ld ran, %ld had used up their tries, %ld dead with their reason, "
              "%ld gone, %ld as their marks said, %ld left as they were), %ld broken keys; %ld "
              "healthy jobs ran once each",
              rounds * VICTIMS, fates[RAN], fates[USED_UP], fates[QUARANTINED], fates[GONE],
              fates[AS_IT_SAID], fates[LEFT], rounds / 4, (rounds + 2 * (rounds / 4)) * HEALTHY);
}
