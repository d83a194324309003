/* SPDX-License-Identifier: MIT */
#include "redis.h"
#include "simulation.h"
#include "test.h"
#include <stdarg.h>

#define KEY "lapse:{q}:due"
#define NONE_KEY "lapse:{q}:none"

static const char *const script_name[N_SCRIPTS] = {
    "schedule",       "cancel",  "reschedule", "kill",        "cancel_all", "kill_all",
    "reschedule_all", "get",     "claim",      "touch",       "done",       "retry",
    "fail",           "release", "renew",      "report",      "sweep",      "reclaim",
    "configure",      "pause",   "gather",     "batch_close", "batch_get",  "refill"};
static char sha[N_SCRIPTS][64];

/* ---- chance ---- */
int64_t sim_below(struct sim *s, int64_t n)
{
    s->dice += 0x9e3779b97f4a7c15u; /* splitmix64 */
    uint64_t z = s->dice;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (int64_t)((z ^ (z >> 31)) % (uint64_t)n);
}

int64_t sim_now_ms(struct sim *s)
{
    return model_ms(s->model);
}

struct job *sim_job(struct sim *s, int id)
{
    return &s->model->job[id];
}

/* Of a job that a series or a group has made; or, if that is none, of any other. */
static int some_made(struct sim *s)
{
    int id = s->model->n_ids + (int)sim_below(s, 50);

    return s->model->made[id].token ? id : (int)sim_below(s, s->size.n_ids);
}

/* Of any job; or of one of the few that most calls are about; or of one that may run. */
static int some_id(struct sim *s)
{
    const struct holder *h = &s->holder[sim_below(s, HOLDERS)];

    switch (sim_below(s, 6)) {
    case 0:
    case 1: return (int)sim_below(s, s->size.n_ids);
    case 2: return (int)sim_below(s, s->size.n_ids / 20 + 1);
    case 3: return some_made(s);
    default: return h->n ? h->known[sim_below(s, h->n)].id : (int)sim_below(s, s->size.n_ids);
    }
}

/* Some ids, each once; half of the time only one. Returns how many. */
int sim_ids(struct sim *s, int *ids)
{
    bool taken[MODEL_JOBS] = {false};
    int n = sim_below(s, 2) ? 1 : 1 + (int)sim_below(s, s->size.most);
    int found = 0;

    for (int i = 0; i < n; i++) {
        int id = some_id(s);
        if (!taken[id]) {
            ids[found++] = id;
        }
        taken[id] = true;
    }
    return found;
}

int sim_given_ids(struct sim *s, int *ids)
{
    int n = sim_ids(s, ids);
    int found = 0;

    for (int i = 0; i < n; i++) {
        if (ids[i] < s->size.n_ids) {
            ids[found++] = ids[i];
        }
    }
    return found;
}

const char *sim_name(const struct sim *s, int id, char name[NAME])
{
    const struct made *made = &s->model->made[id];

    if (id < s->size.n_ids) {
        snprintf(name, NAME, "j%03d", id);
    } else {
        snprintf(name, NAME, "j%03d~%" PRIu64, made->maker, made->token);
    }
    return name;
}

uint32_t sim_spread_of(struct sim *s, int id)
{
    char name[NAME];

    if (s->spread[id] && id < s->size.n_ids) {
        return s->spread[id];
    }
    char *hash =
        redis_str(s->server, "EVAL %s 0 %s", "return string.sub(redis.sha1hex(ARGV[1]), 1, 8)",
                  sim_name(s, id, name));
    s->spread[id] = (uint32_t)strtoul(hash, NULL, 16);
    free(hash);
    return s->spread[id];
}

/* ---- telling ---- */
void sim_trace(struct sim *s, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vfprintf(s->tracing, format, ap);
    va_end(ap);
}

/* All of it, in a file that can be searched for other jobs. */
static void keep_trace(const struct sim *s)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/simulation.%lu", test_build(), s->seed);
    FILE *f = fopen(path, "w");
    if (f) {
        fwrite(s->trace, 1, s->traced, f);
        fclose(f);
        fprintf(stderr, "all that was asked is in %s\n", path);
    }
}

/* The last lines that name the job, and the last of all. */
void sim_show_trace(struct sim *s)
{
    enum { LAST = 40 };
    const char *line[LAST];
    char id[16];
    int n = 0;

    fflush(s->tracing);
    keep_trace(s);
    snprintf(id, sizeof id, "j%03d", s->about);
    for (char *at = s->trace; *at;) {
        char *end = strchr(at, '\n');
        *end = 0;
        bool is_named = strstr(at, id) || strstr(at, "_all ") || strstr(at, " sweep");
        if (is_named || !end[1]) {
            line[n++ % LAST] = at;
        }
        at = end + 1;
    }
    for (int i = n > LAST ? n - LAST : 0; i < n; i++) {
        fprintf(stderr, "%.400s\n", line[i % LAST]);
    }
}

/* ---- asking ---- */
void sim_arg_bytes(struct sim *s, const void *bytes, size_t len)
{
    cr_assert(s->argc < ARGS && len < TEXT);
    memcpy(s->argv[s->argc], bytes, len);
    s->argv[s->argc][len] = 0;
    s->len[s->argc++] = len;
}

void sim_arg_part(struct sim *s, const struct part *part)
{
    size_t len = (size_t)part->len;

    if (len < TEXT) {
        memset(s->argv[s->argc], part->letter, len);
        s->len[s->argc++] = len;
        return;
    }

    cr_assert(s->large_at == 0 && len < sizeof s->large); /* one in a call */
    memset(s->large, part->letter, len);
    s->large_at = s->argc;
    s->len[s->argc++] = len;
}

void sim_arg(struct sim *s, const char *format, ...)
{
    char text[TEXT];
    va_list ap;

    va_start(ap, format);
    int n = vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    sim_arg_bytes(s, text, (size_t)n);
}

void sim_arg_id(struct sim *s, int id)
{
    char name[NAME];

    sim_arg(s, "%s", sim_name(s, id, name));
}

void sim_begin(struct sim *s)
{
    s->argc = 0;
    s->large_at = 0;
    sim_arg(s, "0");
}

static void trace_question(struct sim *s, enum script script)
{
    sim_trace(s, "%3ld %" PRId64 " %s", s->step, s->model->now_us, script_name[script]);
    for (int i = 0; i < s->argc; i++) {
        sim_trace(s, " ");
        if (i > 0 && i == s->large_at) {
            sim_trace(s, "%zu*%c", s->len[i], *s->large);
            continue;
        }
        for (size_t at = 0; at < s->len[i]; at++) {
            char c = s->argv[i][at];
            sim_trace(s, c > ' ' && c < 127 ? "%c" : "\\%d", c);
        }
    }
    sim_trace(s, "\n");
}

void sim_ask(struct sim *s, enum script script)
{
    enum { START = 5 };
    const char *argv[START + ARGS] = {"EVALSHA", sha[script], "2", KEY, NONE_KEY};
    size_t len[START + ARGS] = {7, strlen(sha[script]), 1, sizeof KEY - 1, sizeof NONE_KEY - 1};
    redisContext *c = s->server->redis;
    redisReply *clock;

    trace_question(s, script);
    s->asked[script]++;
    for (int i = 0; i < s->argc; i++) {
        argv[START + i] = i > 0 && i == s->large_at ? s->large : s->argv[i];
        len[START + i] = s->len[i];
    }
    if (s->reply) {
        freeReplyObject(s->reply);
    }

    redisAppendCommand(c, "HSET clock s %lld us %lld", (long long)(s->model->now_us / 1000000),
                       (long long)(s->model->now_us % 1000000));
    redisAppendCommandArgv(c, START + s->argc, argv, len);
    cr_assert_eq(redisGetReply(c, (void **)&clock), REDIS_OK);
    cr_assert_eq(redisGetReply(c, (void **)&s->reply), REDIS_OK);
    freeReplyObject(clock);
    HOLDS(s->reply->type == REDIS_REPLY_ARRAY && s->reply->elements >= 1, "%s\n",
          s->reply->str ? s->reply->str : "no array");
    HOLDS(s->reply->element[0]->integer == s->model->now_us, "another time\n");
}

/* ---- answers ---- */
const redisReply *sim_element(struct sim *s, size_t i)
{
    HOLDS(i < s->reply->elements, "%zu elements, and not %zu\n", s->reply->elements, i + 1);
    return s->reply->element[i];
}

void sim_is_number(struct sim *s, size_t i, int64_t want)
{
    const redisReply *e = sim_element(s, i);
    HOLDS(e->type == REDIS_REPLY_INTEGER && e->integer == want,
          "element %zu: %lld %s, not %" PRId64 "\n", i, e->integer, e->str ? e->str : "", want);
}

void sim_is_text(struct sim *s, size_t i, const char *want)
{
    const redisReply *e = sim_element(s, i);
    HOLDS(e->type == REDIS_REPLY_STRING && strcmp(e->str, want) == 0,
          "element %zu: %lld %s, not %s\n", i, e->integer, e->str ? e->str : "", want);
}

/* What the attempt of a job says, as src/lua/README.md draws it; in the order of the names. */
static void attempt_text(char *text, size_t size, const struct attempt *a)
{
    char more[160] = "";
    size_t n = 0;

    *text = 0;
    if (!a->is_there) {
        return;
    }
#define WORD(is_there, ...) \
    (n += (is_there) ? (size_t)snprintf(more + n, sizeof more - n, __VA_ARGS__) : 0)
    WORD(a->is_dry, "a=0,");
    WORD(a->awaits, "b=1,");
    WORD(a->stops, "c=%d,", a->stops);
    WORD(a->again_ms, "d=%" PRId64 ",", a->again_ms);
    WORD(a->end, "e=%d,", a->end);
    WORD(a->last_ms, "f=%" PRId64 ",", a->last_ms);
    WORD(a->gathers, "g=%d:%d,", a->parts.n, model_bytes(&a->parts));
    WORD(a->follows, "j=1,");
    WORD(a->counts, "n=%" PRId64 ",", a->n);
    WORD(a->has_report, "o=1,");
    WORD(a->priority, "q=%d,", a->priority);
    WORD(a->keeps_errors, "r=%d,", a->n_errors > 0);
    WORD(a->limit_ms, "w=%" PRId64 ",", a->limit_ms);
    WORD(a->is_marked_record, "x=1,");
    WORD(a->is_paused, "z=1,");
#undef WORD
    if (n) {
        more[n - 1] = ' '; /* in place of the last comma */
    }

    char holder[16] = "-";
    if (a->holder >= 0) {
        snprintf(holder, sizeof holder, "h%d", a->holder);
    }
    snprintf(text, size, "%d %" PRIu64 " %s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %s%s",
             n ? 2 : 1, a->token, holder, a->tried, a->tries, a->claimed_us, a->due_ms, more,
             a->reason);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The same text, with what only some attempts have in the order of the names. */
static void sort_words(char *text)
{
    enum { BEFORE = 7, WORDS = 16 };
    char *word[WORDS];
    char sorted[160] = "";
    char *at = text;
    size_t n = 0;

    for (int i = 0; i < BEFORE && at; i++) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    if (*text != '2' || !at) {
        return;
    }

    size_t len = strcspn(at, " ");
    char words[160];
    snprintf(words, sizeof words, "%.*s", (int)len, at);
    for (char *w = strtok(words, ","); w && n < WORDS; w = strtok(NULL, ",")) {
        word[n++] = w;
    }
    qsort(word, n, sizeof *word, by_text);
    for (size_t i = 0; i < n; i++) {
        snprintf(sorted + strlen(sorted), sizeof sorted - strlen(sorted), "%s%s", i ? "," : "",
                 word[i]);
    }
    if (strlen(sorted) == len) {
        memcpy(at, sorted, len);
    }
}

/* ---- records ---- */
enum { ATTRIBUTES = 416 };

static void list_text(char *out, size_t size, const int64_t *ms, int n_ms)
{
    int n = 0;

    for (int i = 0; i < n_ms; i++) {
        n += snprintf(out + n, size - (size_t)n, i ? ",%" PRId64 : "%" PRId64, ms[i]);
    }
}

void sim_moments_text(char *out, size_t size, const struct rule *rule)
{
    list_text(out, size, rule->moment_ms, rule->n_moments);
    if (rule->is_whole) {
        size_t n = strlen(out);
        snprintf(out + n, size - n, ",0");
    }
}

void sim_rule_text(char *out, size_t size, const struct rule *rule)
{
    char moments[256] = "";
    char kind = 'c';

    if (rule->every_ms) {
        kind = 'e';
        snprintf(moments, sizeof moments, "%" PRId64, rule->every_ms);
    } else if (rule->n_stages) {
        kind = 's';
        list_text(moments, sizeof moments, rule->stage_ms, rule->n_stages);
    } else {
        sim_moments_text(moments, sizeof moments, rule);
    }
    snprintf(out, size, "%c%s %" PRId64 " %" PRId64 " %c %s", rule->catch_up,
             rule->no_overlap ? "o" : "", rule->until_ms, rule->times, kind, moments);
}

static size_t varint_put(unsigned char *at, int64_t number)
{
    size_t n = 0;

    for (; number > 127; number >>= 7) {
        at[n++] = (unsigned char)((number & 127) | 128);
    }
    at[n++] = (unsigned char)number;
    return n;
}

/* Some attributes of a record, as src/lua/README.md draws them. */
struct attributes {
    unsigned char bytes[ATTRIBUTES];
    size_t n;
};

__attribute__((format(printf, 3, 4))) static void attribute_put(struct attributes *a, char letter,
                                                                const char *format, ...)
{
    char text[TEXT];
    va_list ap;

    va_start(ap, format);
    size_t len = (size_t)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);

    a->bytes[a->n++] = (unsigned char)letter;
    a->n += varint_put(a->bytes + a->n, (int64_t)len);
    memcpy(a->bytes + a->n, text, len);
    a->n += len;
}

/* B to O. */
static void first_attributes_put(struct attributes *a, const struct record *r, int maker)
{
    if (r->batch) {
        attribute_put(a, 'B', "j%03d", r->batch - 1);
    }
    if (r->rule.n_moments) {
        attribute_put(a, 'C', "n r");
    }
    if (r->guard) {
        attribute_put(a, 'G', "%c {q}g  1", r->guard);
    }
    if (r->keep_ms) {
        attribute_put(a, 'K', "%" PRId64 "%s", r->keep_ms, r->keeps_body ? "b" : "");
    }
    if (r->late_ms) {
        attribute_put(a, 'L', "%c%" PRId64, r->late_dies ? 'd' : 's', r->late_ms);
    }
    if (r->moment) {
        attribute_put(a, 'O', "j%03d %" PRId64, maker, r->moment);
    }
}

/* P to S. */
static void next_attributes_put(struct attributes *a, const struct record *r)
{
    const struct limits *group = &r->group;

    if (group->most) {
        attribute_put(a, 'P', "%" PRId64 " %" PRId64 " %" PRId64, group->quiet_ms, group->most,
                      group->age_ms);
    }
    if (r->priority) {
        attribute_put(a, 'Q', "%c", r->priority);
    }
    if (r->retry_for_ms) {
        attribute_put(a, 'R', "%" PRId64, r->retry_for_ms);
    }
    if (r->rule.catch_up) {
        char rule[TEXT];
        sim_rule_text(rule, sizeof rule, &r->rule);
        attribute_put(a, 'S', "%s", rule);
    }
}

/* T to p. */
static void last_attributes_put(struct attributes *a, const struct record *r)
{
    for (int tag = 0; tag < MODEL_TAGS; tag++) {
        if (r->tags & 1u << tag) {
            attribute_put(a, 'T', "t%d", tag);
        }
    }
    if (r->key) {
        attribute_put(a, 'U', "%ck%d", r->until_start ? 's' : 'e', r->key);
    }
    if (r->keeps_errors) {
        attribute_put(a, 'e', "5");
    }
    if (r->created_ms) {
        attribute_put(a, 'm', "%013" PRId64, r->created_ms == UNSAID ? 0 : r->created_ms);
    }
    if (r->parts.n) {
        attribute_put(a, 'p', "%d", r->parts.n);
    }
}

size_t sim_header(unsigned char *header, const struct record *r, int maker)
{
    struct attributes a = {.n = 0};
    size_t len = 0;

    first_attributes_put(&a, r, maker);
    next_attributes_put(&a, r);
    last_attributes_put(&a, r);

    header[len++] = a.n ? 2 : 1;
    header[len++] = r->tries != DEFAULT_TRIES;
    if (r->tries != DEFAULT_TRIES) {
        len += varint_put(header + len, r->tries);
    }
    if (a.n) {
        len += varint_put(header + len, (int64_t)a.n);
        memcpy(header + len, a.bytes, a.n);
        len += a.n;
    }
    return len;
}

static bool is_all(const char *text, size_t len, char letter)
{
    return len == 0 || (*text == letter && memcmp(text, text + 1, len - 1) == 0);
}

/* A group has none; that of its job is its parts, each behind its length; all others have an x. */
static bool body_is(const char *body, size_t len, const struct record *r)
{
    if (r->group.most) {
        return len == 0;
    }
    if (r->parts.n == 0) {
        return len == 1 && *body == 'x';
    }
    if (len != (size_t)model_bytes(&r->parts)) {
        return false;
    }
    for (int i = 0; i < r->parts.n; i++) {
        const struct part *part = &r->parts.part[i];
        unsigned char length[8];
        size_t n = varint_put(length, part->len);
        if (memcmp(body, length, n) != 0 || !is_all(body + n, (size_t)part->len, part->letter)) {
            return false;
        }
        body += n + (size_t)part->len;
    }
    return true;
}

void sim_row_is(struct sim *s, size_t i, struct shown want)
{
    const redisReply *row = sim_element(s, i);
    unsigned char record[RECORD];
    char id[NAME];
    char text[512];
    char said[512];

    s->about = want.id;
    HOLDS(row->type == REDIS_REPLY_ARRAY && row->elements >= 5, "element %zu is no row: %s\n", i,
          row->str ? row->str : "");
    HOLDS(strcmp(row->element[0]->str, sim_name(s, want.id, id)) == 0, "another job: %s\n",
          row->element[0]->str);
    HOLDS(row->element[1]->integer == (long long)want.state, "state %lld, not %d\n",
          row->element[1]->integer, want.state);
    HOLDS(row->element[2]->integer == want.ms, "score %lld, not %" PRId64 "\n",
          row->element[2]->integer, want.ms);

    attempt_text(text, sizeof text, want.attempt);
    snprintf(said, sizeof said, "%s", row->element[3]->str);
    sort_words(said);
    HOLDS(strcmp(said, text) == 0, "attempt '%s', not '%s'\n", said, text);

    size_t len = sim_header(record, want.record, s->model->made[want.id].maker);
    size_t said_len = row->element[4]->len;
    const char *body = row->element[4]->str + len;
    bool has_body = want.has_body && (want.state != KEPT || want.record->keeps_body);
    HOLDS(said_len >= len && memcmp(row->element[4]->str, record, len) == 0, "another record\n");
    HOLDS(has_body ? body_is(body, said_len - len, want.record) : said_len == len,
          "another body, of %zu bytes\n", said_len - len);
}

/* As get shows it, and others before they change it. */
struct shown sim_shown(struct sim *s, int id)
{
    const struct job *j = sim_job(s, id);

    return (struct shown){
        .id = id,
        .state = model_shown(s->model, j),
        .ms = model_shown_ms(s->model, j),
        .attempt = &j->attempt,
        .record = model_record(s->model, j),
    };
}

void sim_row_is_now(struct sim *s, size_t i, int id)
{
    sim_row_is(s, i, sim_shown(s, id));
}

/* Of a reason as much is kept as 200 bytes have whole characters of. */
static int error_len(const char *reason)
{
    int len = (int)strlen(reason);

    if (len <= 200) {
        return len;
    }
    len = 200;
    while (((unsigned char)reason[len] & 0xc0) == 0x80) {
        len--;
    }
    return len;
}

void sim_row_tells_past(struct sim *s, size_t i, int id)
{
    const redisReply *row = sim_element(s, i);
    const struct attempt *a = &sim_job(s, id)->attempt;
    char errors[MODEL_ERRORS * 256] = "";
    size_t n = 0;

    for (int e = 0; e < a->n_errors; e++) {
        const struct error *error = &a->error[e];
        int len = error_len(error->reason);
        n += (size_t)snprintf(errors + n, sizeof errors - n, "%" PRId64 " %" PRId64 " %d %.*s",
                              error->at_ms, error->tried, len, len, error->reason);
    }

    s->about = id;
    HOLDS(row->elements == 5u + (n || a->has_report) + a->has_report, "%zu elements\n",
          row->elements);
    if (row->elements > 5) {
        HOLDS(strcmp(row->element[5]->str, errors) == 0, "errors '%s', not '%s'\n",
              row->element[5]->str, errors);
    }
    if (a->has_report) {
        HOLDS(strcmp(row->element[6]->str, a->report) == 0, "report '%s', not '%s'\n",
              row->element[6]->str, a->report);
    }
}

/* ---- the model ---- */
static struct model *sorted;

/* Leases that are over come first, and else what comes first in the set; by a tag, by id. */
static int by_walk(const void *a, const void *b)
{
    int left = *(const int *)a;
    int right = *(const int *)b;
    bool left_runs = sorted->job[left].kind == RUNNING;
    bool right_runs = sorted->job[right].kind == RUNNING;

    if (left_runs != right_runs) {
        return left_runs ? -1 : 1;
    }
    return model_is_before(sorted, left, right) ? -1 : 1;
}

void sim_sort(struct sim *s, int *ids, int n)
{
    sorted = s->model;
    qsort(ids, (size_t)n, sizeof *ids, by_walk);
}

/* ---- scripts ---- */
void sim_load_scripts(struct server *s)
{
    static const char asks[] = "'TIME'";
    static const char instead[] = "'HMGET', 'clock', 's', 'us'";

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
