/* SPDX-License-Identifier: MIT */
#include "script.h"
#include "audit.h"
#include <ctype.h>
#include <stdarg.h>

enum { ARGS = 1024, US = 123, SNAPSHOT_KEYS = 64, LOADED = 100 };
struct server *redis;
int64_t T;
static int64_t now;
static bool real, by_function, before, plain;
static const char *difference = "";
static redisContext *ear, *end_ear, *eye;

/* What is handed out lives until the test ends. */
struct kept {
    struct kept *next;
    void *p;
    void (*drop)(void *p);
};
static struct kept *kept;

static void *keep(void *p, void (*drop)(void *p))
{
    struct kept *k = malloc(sizeof *k);
    cr_assert(k && p);
    *k = (struct kept){kept, p, drop};
    kept = k;
    return p;
}

void script_init(void)
{
    script_init_on(server_start());
}

void script_init_on(struct server *s)
{
    redis = s;
    now = T = redis_now_ms(redis) + 86400000; /* and redis->redis is connected */
    ear = redisConnectUnix(redis->socket);
    eye = redisConnectUnix(redis->socket);
    keep(redisCommand(ear, "PSUBSCRIBE s:{q}:notice:*"), freeReplyObject);
    keep(redisCommand(ear, "PSUBSCRIBE s:{}:wake:*"), freeReplyObject);
    end_ear = redisConnectUnix(redis->socket);
    keep(redisCommand(end_ear, "PSUBSCRIBE s:{q}:ends:*"), freeReplyObject);
    keep(redisCommand(eye, "PSUBSCRIBE __keyevent@0__:expired"), freeReplyObject);
}

void script_fini(void)
{
    if (audit(redis, "s", "q", "p", NULL) != 0) {
        abort(); /* an assertion that fails here fails no test */
    }
    redisFree(ear);
    redisFree(end_ear);
    redisFree(eye);
    server_stop(redis);
    for (struct kept *k; (k = kept);) {
        kept = k->next;
        k->drop(k->p);
        free(k);
    }
}

void now_at(int64_t after_ms)
{
    now = T + after_ms;
}

void redis_differs(const char *lua)
{
    difference = lua;
}

void now_real(void)
{
    real = true;
}

void wait_until(int64_t ms)
{
    int64_t deadline = test_now_ms() + 10000;
    while (redis_now_ms(redis) <= ms) {
        cr_assert(test_now_ms() < deadline, "Redis's clock stands");
    }
}

char *text(const char *format, ...)
{
    char *out;
    va_list ap;

    va_start(ap, format);
    cr_assert(vasprintf(&out, format, ap) >= 0);
    va_end(ap);
    return keep(out, free);
}

redisReply *ask(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    redisReply *r = redisvCommand(redis->redis, format, ap);
    va_end(ap);
    return keep(r, freeReplyObject);
}

void run_before(bool yes)
{
    before = yes;
}

void run_plain(bool yes)
{
    plain = yes;
}

/* ---- numbers and bytes as text ---- */
static void put_moment(FILE *f, long long n, const char *raw)
{
    char letter = 0;

    if (n > T - 400000000000 && n < T + 400000000000) {
        letter = 'T', n -= T;
    } else if (n > T * 1000 - 400000000000 && n < T * 1000 + 400000000000) {
        letter = 'U', n -= T * 1000 + US;
    }

    if (!letter) {
        fputs(raw, f);
    } else if (n) {
        fprintf(f, "%c%+lld", letter, n);
    } else {
        fputc(letter, f);
    }
}

static void put_byte(FILE *f, unsigned char c)
{
    if (isprint(c) && c != '\\') {
        fputc(c, f);
    } else {
        fprintf(f, "\\%02x", c);
    }
}

static void put_bytes(FILE *f, const char *s, size_t len)
{
    if (len > 1000) {
        uint32_t h = 0;
        for (size_t i = 0; i < len; i++) {
            h = h * 31 + (unsigned char)s[i];
        }
        fprintf(f, "<%zu bytes %08x>", len, h);
        return;
    }

    for (size_t i = 0, n; i < len; i += n) {
        for (n = 0; i + n < len && n < 18 && isdigit((unsigned char)s[i + n]);) {
            n++;
        }
        if (n) {
            char *raw = text("%.*s", (int)n, s + i);
            put_moment(f, *raw == '0' ? 0 : atoll(raw), raw);
        } else {
            n = 1;
            put_byte(f, (unsigned char)s[i]);
        }
    }
}

static void put_reply(FILE *f, const redisReply *r)
{
    switch (r->type) {
    case REDIS_REPLY_INTEGER: put_moment(f, r->integer, text("%lld", r->integer)); break;
    case REDIS_REPLY_NIL: fputs("nil", f); break;
    case REDIS_REPLY_ERROR: fprintf(f, "-%s", r->str); break;
    case REDIS_REPLY_ARRAY:
        for (size_t i = 0; i < r->elements; i++) {
            fputs(i ? " " : "[", f);
            put_reply(f, r->element[i]);
        }
        fputs(r->elements ? "]" : "[]", f);
        break;
    default:
        fputc('\'', f);
        put_bytes(f, r->str, (size_t)r->len);
        fputc('\'', f);
    }
}

char *show(const redisReply *r)
{
    char *out;
    size_t len;
    FILE *f = open_memstream(&out, &len);

    put_reply(f, r);
    fclose(f);
    return keep(out, free);
}

/* ---- running ---- */
/* NAME=T+5 as the script gets it. */
static char *setting(char *word, size_t *len)
{
    char *value = strstr(word, "=T");

    if (value && strspn(word, "abcdefghijklmnopqrstuvwxyz_") == (size_t)(value - word)) {
        *value = '\0';
        word = text("%s=%lld", word, (long long)(T + atoll(value + 2)));
        *len = strlen(word);
    }
    return word;
}

/* The word at *at, unescaped; NULL: no more. */
static char *word(const char **at, size_t *len)
{
    while (**at == ' ') {
        ++*at;
    }

    if (!**at) {
        return NULL;
    }

    bool quoted = **at == '\'';
    const char *s = *at + quoted;
    char *out = keep(malloc(strlen(s) + 24), free);
    size_t n = 0;
    for (; *s && *s != (quoted ? '\'' : ' '); n++) {
        char hex[3] = {s[1], *s == '\\' ? s[2] : '\0', '\0'};
        out[n] = *s == '\\' ? (char)strtol(hex, NULL, 16) : *s;
        s += *s == '\\' ? 3 : 1;
    }

    out[n] = '\0';
    *at = s + quoted;
    if ((*out == 'T' || *out == 'U') && (n == 1 || out[1] == '+' || out[1] == '-')) {
        n = (size_t)sprintf(out, "%lld", (*out == 'T' ? T : T * 1000 + US) + atoll(out + 1));
    }

    *len = n;

    return setting(out, len);
}

char *moments(const char *words)
{
    const char *out = "";
    size_t len;

    for (char *next; (next = word(&words, &len));) {
        out = text("%s%s%s", out, *out ? " " : "", next);
    }
    return text("%s", out);
}

/* KEYS[2], of KEYS[1]. */
static const char *none_of(const char *key)
{
    return text("%.*snone", (int)(strrchr(key, ':') + 1 - key), key);
}

/* What stands before a script so that the clock stands still: at the seconds and microseconds which
 * are the last two arguments. So the text is the same at each moment, and is compiled once. */
static const char frozen[] =
    "local redis = (function(R) local us = table.remove(ARGV) local s = table.remove(ARGV) return "
    "{pcall = R.pcall, acl_check_cmd = R.acl_check_cmd, sha1hex = R.sha1hex, call = function(c, "
    "...) if c == 'TIME' then return {s, us} end return R.call(c, ...) end} end)(redis) ";

const char *script_long(const char *name)
{
    return keep(test_read_file(text("%s/lua/long/%s.lua", test_build(), name), NULL), free);
}

/* One that fails where it makes what is seldom needed. */
static const char *plain_text(const char *name)
{
    static const char make[] = "if not seldom_functions then";
    const char *script = script_long(name);
    const char *at = strstr(script, make);

    cr_assert(at, "%s.lua has nothing that is seldom needed", name);
    return text("%.*sif error('seldom') then%s", (int)(at - script), script, at + strlen(make));
}

static const char *script_text(const char *name)
{
    const char *path = before ? text("%s/tests/lua/before/%s.lua", test_root(), name)
                              : text("%s/lua/%s.lua", test_build(), name);
    const char *script = plain ? plain_text(name) : keep(test_read_file(path, NULL), free);

    return text("%s%s %s", real ? "" : frozen, difference, script);
}

/* The scripts that Redis has, each as it was to be when it was loaded. */
static struct loaded {
    const char *name, *difference, *sha;
    bool real, before, plain;
} loaded[LOADED];

static bool is_loaded(const struct loaded *l, const char *name)
{
    return strcmp(l->name, name) == 0 && l->difference == difference && l->real == real &&
           l->before == before && l->plain == plain;
}

static const char *sha_of(const char *name)
{
    struct loaded *l = loaded;

    while (l->sha && !is_loaded(l, name)) {
        l++;
    }

    if (!l->sha) {
        cr_assert_lt(l - loaded, LOADED - 1);
        redisReply *r = ask("SCRIPT LOAD %s", script_text(name));
        cr_assert_neq(r->type, REDIS_REPLY_ERROR, "%s.lua: %s", name, r->str);
        *l = (struct loaded){name, difference, r->str, real, before, plain};
    }
    return l->sha;
}

static const char *library(void)
{
    static const char *all;

    if (!all) {
        all = keep(test_read_file(text("%s/functions.lua", test_build()), NULL), free);
    }
    return all;
}

static void load_functions(void)
{
    static const char begin[] = "callback = function(KEYS, ARGV)\n";
    static bool are_loaded;
    const char *at = library();
    char *out;
    size_t len;

    if (are_loaded) {
        return;
    }

    FILE *f = open_memstream(&out, &len);
    for (const char *next; (next = strstr(at, begin)); at = next + strlen(begin)) {
        fprintf(f, "%.*s%s%s", (int)(next - at), at, begin, frozen);
    }
    fputs(at, f);
    fclose(f);
    keep(out, free);

    redis_do(redis, "FUNCTION LOAD REPLACE %s", out);
    are_loaded = true;
}

bool run_has_function(const char *name)
{
    return strstr(library(), text("'lapse1_%s'", name)) != NULL;
}

void run_by_function(bool yes)
{
    by_function = yes;
}

static redisReply *eval(const char *name, const char *key, size_t argc, const char *const *argv,
                        const size_t *len)
{
    bool of_queue = strcmp(key, ALIVE) != 0 && strcmp(key, QUEUES) != 0;
    size_t start = of_queue ? 5 : 4;
    const char *all[7 + ARGS] = {NULL, NULL, of_queue ? "2" : "1", key, none_of(key)};
    size_t all_len[7 + ARGS] = {0, 0, 1, strlen(key), strlen(none_of(key))};
    size_t n = start + argc;

    cr_assert(argc <= ARGS);
    if (by_function) {
        load_functions();
        all[0] = "FCALL", all[1] = text("lapse1_%s", name);
    } else {
        all[0] = "EVALSHA", all[1] = sha_of(name);
    }
    all_len[0] = strlen(all[0]), all_len[1] = strlen(all[1]);
    for (size_t i = 0; i < argc; i++) {
        all[start + i] = argv[i], all_len[start + i] = len[i];
    }
    if (by_function || !real) {
        all[n] = text("%" PRId64, now / 1000), all_len[n] = strlen(all[n]);
        n++;
        all[n] = text("%" PRId64, now % 1000 * 1000 + US), all_len[n] = strlen(all[n]);
        n++;
    }

    redisReply *r = redisCommandArgv(redis->redis, (int)n, all, all_len);
    cr_assert(r, "%s.lua: %s", name, redis->redis->errstr);

    return keep(r, freeReplyObject);
}

redisReply *run_bytes(const char *name, size_t argc, const char *const *argv, const size_t *len)
{
    return eval(name, KEY, argc, argv, len);
}

/* Where the arguments begin, behind settings. */
static const char *args_of(const char *args)
{
    const char *end = strstr(args, "; ");
    return end ? end + 2 : args;
}

redisReply *run_on(const char *key, const char *name, const char *args)
{
    const char *argv[ARGS];
    size_t len[ARGS];
    size_t n = 0;

    args = args_of(args);
    while ((argv[n] = word(&args, &len[n]))) {
        cr_assert(++n < ARGS);
    }
    return eval(name, key, n, argv, len);
}

bool run_is_of_queue(const char *name)
{
    static const char *const others[] = {"heartbeat", "alive", "tell", "enter", "names", "forget"};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strcmp(name, others[i]) == 0) {
            return false;
        }
    }
    return true;
}

redisReply *run(const char *name, const char *args)
{
    if (run_is_of_queue(name)) {
        return run_on(KEY, name, args);
    }

    bool of_alive =
        strcmp(name, "heartbeat") == 0 || strcmp(name, "alive") == 0 || strcmp(name, "tell") == 0;
    return run_on(of_alive ? ALIVE : QUEUES, name, args);
}

/* ---- snapshots ---- */
static int by_text(const void *a, const void *b)
{
    return strcmp((*(redisReply *const *)a)->str, (*(redisReply *const *)b)->str);
}

static redisReply *names_of(const char *pattern)
{
    redisReply *r = ask("KEYS %s", pattern);
    if (r->elements) {
        qsort(r->element, r->elements, sizeof *r->element, by_text);
    }
    return r;
}

/* Every key with its bytes and its expiry, in the order of their names. */
struct snapshot {
    const char *of; /* the arguments of everything_for() */
    size_t n;
    const char *names[SNAPSHOT_KEYS];
    long long expires_ms[SNAPSHOT_KEYS]; /* -1: never */
    const redisReply *values[SNAPSHOT_KEYS];
};

static const redisReply *next_reply(void)
{
    redisReply *r = NULL;
    cr_assert_eq(redisGetReply(redis->redis, (void **)&r), REDIS_OK);
    return keep(r, freeReplyObject);
}

static void snapshot_take(struct snapshot *s)
{
    const redisReply *names = names_of("*");

    cr_assert_leq(names->elements, SNAPSHOT_KEYS);
    s->n = names->elements;
    for (size_t i = 0; i < s->n; i++) {
        s->names[i] = names->element[i]->str;
        redisAppendCommand(redis->redis, "PEXPIRETIME %s", s->names[i]);
        redisAppendCommand(redis->redis, "DUMP %s", s->names[i]);
    }
    for (size_t i = 0; i < s->n; i++) {
        s->expires_ms[i] = next_reply()->integer;
        s->values[i] = next_reply();
    }
}

static void snapshot_restore(const struct snapshot *s)
{
    redisAppendCommand(redis->redis, "FLUSHALL");
    for (size_t i = 0; i < s->n; i++) {
        redisAppendCommand(redis->redis, "RESTORE %s %lld %b ABSTTL", s->names[i],
                           s->expires_ms[i] > 0 ? s->expires_ms[i] : 0, s->values[i]->str,
                           s->values[i]->len);
    }
    for (size_t i = 0; i < 1 + s->n; i++) {
        const redisReply *r = next_reply();
        cr_assert_str_eq(r->str, "OK");
    }
}

/* ---- situations ---- */
void given(const char *name, const char *args)
{
    redisReply *r = run(name, args);
    cr_assert(r->type != REDIS_REPLY_ERROR, "%s: %s", name, r->str);
    heard();
}

void five(void)
{
    given("schedule", "0 e +0 0 " REC "e u +0 0 \\01\\01\\01u r +0 0 " REC "r d +0 0 " REC
                      "d w +500 0 " REC "w");
    given("claim", "0 me 10 0 e u");
    given("claim", "0 me 1000 0 r d");
    given("fail", "0 me d U+4 bad");
    now_at(20);
}

void everything(void)
{
    /* a hash of longer values has no order: DUMP would show another after a mere read */
    ask("CONFIG SET hash-max-listpack-value 512");
    ask("FLUSHALL");
    now_at(0);
    five();
    given("schedule", "0 x +0 0 " REC " y +0 0 \\02");
    ask("SET s:{q}:t:x 1 PXAT %lld", (long long)now);
    ask("ZADD s:{q}:due 5 m");
    ask("ZADD s:{q}:run 5 n");
    ask("HSET s:{q}:attempts m %s n %s", "1 7 you 1 1 5 5 ", "1 8 you 1 1 5 5 ");
    ask("ZADD s:{q}:listeners 5 l");
    ask("SET s:{q}:conf %s", "1 paused=5 ");
    ask("ZADD " ALIVE " 5 l %lld m", (long long)T + 1000);
}

/* Redis keeps when a consumer read, and that is the same each time. */
static void add_pending(void)
{
    static redisReply *dump;

    if (dump) {
        ask("RESTORE s:{q}:stream 0 %b REPLACE", dump->str, (size_t)dump->len);
        return;
    }

    ask("XADD s:{q}:stream 6-6 id x due_ms 5 try 1 token 7 body text");
    ask("XGROUP CREATE s:{q}:stream h 5-5");
    ask("XREADGROUP GROUP h lost STREAMS s:{q}:stream >");
    dump = ask("DUMP s:{q}:stream");
}

/* Something is asked of these: of stop, tagged, again and put, which run, and of old, which waits
 * because an older version has ended its run. The record of put after its run lies in next, and
 * there is one of no job. All of them have reports, and that job, too. */
static void marks(void)
{
    ask("HSET s:{q}:jobs stop %b again %b old %b", "\1\0", (size_t)2, "\1\0", (size_t)2, "\1\0",
        (size_t)2);
    ask("ZADD s:{q}:run %lld stop %lld again", (long long)T + 1000, (long long)T + 1000);
    given("schedule", "0 tagged +0 0 " TAG_A);
    ask("ZREM s:{q}:due tagged");
    ask("ZADD s:{q}:run %lld tagged", (long long)T + 1000);
    ask("HSET s:{q}:attempts tagged %s", "2 14 me 1 10 5 5 x=1,c=1,o=1 ");
    given("schedule", "0 put +0 0 " TAG_A);
    ask("ZREM s:{q}:due put");
    ask("ZADD s:{q}:run %lld put", (long long)T + 1000);
    ask("HSET s:{q}:attempts put %s", text("2 15 me 1 10 5 5 x=1,o=1,d=%lld,j=1,w=%lld ",
                                           (long long)T + 500, (long long)T + 500));
    ask("HSET s:{q}:next put %b gone %b", "\1\0", (size_t)2, "\1\0", (size_t)2);
    ask("ZADD s:{q}:due 6 old");
    ask("HSET s:{q}:attempts stop %s again %s old %s", "2 11 me 1 10 5 5 o=1,c=1 ",
        text("2 12 me 1 10 5 5 o=1,d=%lld ", (long long)T + 500), "2 13 me 1 10 5 5 o=1,c=1 ");
    ask("HSET s:{q}:report tagged a put b stop c again d old e gone f");
}

/* It is the record that follows which has the tag. */
static void next_tagged(void)
{
    ask("HSET s:{q}:jobs put %b", "\1\0", (size_t)2);
    ask("HSET s:{q}:next put %b", "\2\0\3T\1a", (size_t)6);
}

/* kr runs, and is asked to stop; ke is, too, and its lease is over; kw waits, ks is due and will be
 * skipped, ko has ended; kp did so too long ago; kb is due, and an older version has left it in
 * kept. */
static void ended(void)
{
    given("schedule", "0 kr +0 0 " KEEP_A "r kw +500 0 " KEEP_A "w ks +0 0 " KEEP_LATE
                      "s ko +5 0 " KEEP "o kp +5 0 " KEEP "p kb +0 0 " REC " ke +0 0 " KEEP);
    given("claim", "0 me 1000 0 kr");
    given("claim", "0 me 10 0 ke");
    given("cancel", "0 kr 1 ke 1 ko 0 kp 0");
    ask("ZADD s:{q}:run 5 ke");
    ask("ZADD s:{q}:due 5 ks");
    ask("ZADD s:{q}:kept 5 kp 5 kb");
    ask("ZADD s:{q}:index 0 %s", "t a ko");
}

/* Jobs of batches, of each of which they are the last one: bw of ow waits, br of or runs, bc of oc
 * too and is asked to stop, as was be of oe, whose lease is over; the record that follows the run
 * of bn of on is of none, and its lease is over; bs of os is late, and is skipped. bx of ox waits,
 * and ox is not closed. There is an entry of a job of oz that is gone; oy has none. Beside these bu
 * is dead; it and bn have the tag a, and bu has a key. */
static void of_batches(void)
{
    static const char *const of[] = {"bw", "br", "bc", "be", "bx"};

    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const char *due = strchr("wx", of[i][1]) ? "+50" : "+0";
        given("schedule", text("0 %s %s 0 \\02\\00\\04B\\02o%c", of[i], due, of[i][1]));
    }
    given("schedule", "0 bn +0 0 \\02\\00\\07B\\02onT\\01a bu +0 0 \\02\\00\\07T\\01aU\\02eu");
    given("kill", "0 bu bad");
    given("schedule", "0 bs +0 0 \\02\\00\\08B\\02osL\\02s1");
    for (const char *own = "wrcensxyz"; *own; own++) {
        given("schedule", text("0 o%c +60000 0 " REC, *own));
    }
    ask("ZADD s:{q}:index 0 %s", "b oz gone");
    given("batch_close", "0 ow or oc oe on os oz");
    given("claim", "0 me 1000 0 br bc be bn");
    given("cancel", "0 bc 1 be 1");
    given("schedule", "0 bn +50 5 " TAG_A);
    ask("ZADD s:{q}:run 5 be 5 bn");
    ask("ZADD s:{q}:due 5 bs");
}

/* Jobs that keep their errors: fr and fm run, ff too and has not failed yet; fm is asked to stop;
 * fw is due, fd is dead, fl dies at its claim. The leases of fm and fe are over, and a record
 * follows the run of fe. There is an entry of no job, too. */
static void failed(void)
{
    static const char *const have[] = {"fr", "fm", "fw", "fd", "fe", "gone"};
    static const char *const asks[] = {"fr", "ff", "fm", "fd", "fe"};

    given("schedule", "0 fw +0 0 \\02\\00\\06T\\01ae\\015 fl +0 0 \\02\\00\\07L\\02d1e\\015");
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
        ask("HSET s:{q}:jobs %s %b", asks[i], "\2\0\3e\0015", (size_t)6);
    }
    for (size_t i = 0; i < sizeof have / sizeof *have; i++) {
        ask("HSET s:{q}:errors %s %s", have[i], "5 1 1 x");
    }
    ask("ZADD s:{q}:due 8 fw 9 fl");
    ask("ZADD s:{q}:dead 9 fd");
    ask("ZADD s:{q}:run %lld fr %lld ff 7 fe 7 fm", (long long)T + 1000, (long long)T + 1000);
    ask("HSET s:{q}:next fe %b", "\1\0", (size_t)2);
    ask("HSET s:{q}:attempts fr %s ff %s fm %s fw %s fd %s fe %s", "2 21 me 1 10 5 5 r=1 x",
        "2 22 me 1 10 5 5 r=0 ", "2 23 me 1 10 5 5 r=1,c=1 x", "2 24 me 1 10 5 5 x=1,r=1 x",
        "2 25 me 1 10 5 5 r=1 x", text("2 26 me 1 10 5 5 r=1,d=%lld,j=1 x", (long long)T + 500));
}

/* so is due and goes on, sl ends with this moment; of the jobs of sc one waits and one runs; cd
 * goes by a calendar, and has no moment. */
static void series(void)
{
#define EVERY_50 "'\\02\\00\\0cS\\0al 0 0 e 50'"
    given("schedule",
          "0 so +0 0 " EVERY_50 " sc +0 0 " EVERY_50 " sl +0 0 '\\02\\00\\0cS\\0al 0 1 e 50'");
    given("claim", "0 me 1000 0 sc");
    const char *waits = ask("ZRANGE s:{q}:run -1 -1")->element[0]->str;
    given("retry", text("0 me %s %s 500 x", waits, waits + strlen("sc~")));
    given("reschedule", "0 sc +0 0");
    given("claim", "0 me 1000 0 sc");
    given("schedule", "0 cd first 0 '\\02\\00\\10C\\03n rS\\09l 0 0 c 1'");
}

/* gw waits and has a part; gd is due; gf is full, and due; gk is dead. gr is kept, with a report
 * and errors. */
static void groups(void)
{
    given("gather", "0 gw " GROUP " w gd " GROUP " d gk " GROUP " k");
    given("gather", "0 gf " GROUP " f gf " GROUP " f");
    ask("ZADD s:{q}:due 9 gd");
    given("kill", "0 gk bad");
    ask("HSET s:{q}:jobs gr %b", "\2\0\012K\00560000e\0015", (size_t)13);
    ask("HSET s:{q}:attempts gr %s", "2 31 me 1 10 5 5 r=1,o=1,e=1 x");
    ask("HSET s:{q}:report gr a");
    ask("HSET s:{q}:errors gr %s", "5 1 1 x");
    ask("ZADD s:{q}:kept %lld gr", (long long)T + 1000);
}

static void tagged(void)
{
    given("schedule", "0 tr +0 0 " TAG_A " td +0 0 " TAG_A " tw +0 0 " TAG_A);
    given("claim", "0 me 1000 0 tr td");
    given("fail", "0 me td U+20002 bad");
    ask("ZADD s:{q}:index 0 %s", "t stray x");
}

static void with_keys(void)
{
    given("schedule", "0 uw +50 0 \\02\\00\\04U\\02ew ud +50 0 \\02\\00\\04U\\02ed ur +0 0 " LAST_U
                      "r ue +0 0 " LAST_U "e us +0 0 \\02\\00\\04U\\02ss");
    given("kill", "0 ud bad");
    given("claim", "0 me 1000 0 ur ue");
    ask("ZADD s:{q}:run %s ue", moments("T+10"));
}

static void make_everything_for(const char *args)
{
    const char *behind = args_of(args);

    everything();
    if (behind == args) {
        return;
    }

    if (strncmp(args, "marks; ", strlen("marks; ")) == 0) {
        marks();
        return;
    }
    if (strncmp(args, "ended; ", strlen("ended; ")) == 0) {
        marks();
        ask("ZADD s:{q}:run 7 stop 7 tagged 7 again 7 put");
        next_tagged();
        return;
    }

    if (strstr(args, "tags=1")) {
        tagged();
    }
    if (strstr(args, "errors=1")) {
        failed();
    }
    if (strstr(args, "unique=1")) {
        with_keys();
    }
    if (strstr(args, "kept=1")) {
        ended();
    }
    if (strstr(args, "series=1")) {
        series();
    }
    if (strstr(args, "groups=1")) {
        groups();
    }
    if (strstr(args, "stray=1")) {
        ask("RPUSH s:{q}:p:stray %b", "\1x", (size_t)2);
    }
    if (strstr(args, "batch=1")) {
        of_batches();
    }
    ask("SET s:{q}:conf %s", text("1 %.*s ", (int)(behind - args - 2), args));
    if (strstr(args, "met=1")) {
        ask("HSET s:{q}:attempts {max_running} 1");
    }
    if (strstr(args, "entries=1")) {
        ask("XADD s:{q}:stream 5-5 id 1");
        ask("XGROUP CREATE s:{q}:stream g $");
    }
    if (strstr(args, "again=1")) {
        ask("HSET s:{q}:attempts e %s", "1 1 me 1 10 5 5 the lease ended");
    }
    if (strstr(args, "pending=1")) {
        add_pending();
    }
}

/* The same again is restored, which is faster than to make it. */
void everything_for(const char *args)
{
    static struct snapshot last;

    if (last.of == args) {
        snapshot_restore(&last);
        now_at(20);
        heard();
        return;
    }

    make_everything_for(args);
    snapshot_take(&last);
    last.of = args;
}

const struct script_call script_calls[] = {
    {"schedule", "0 new +5 0 " REC " w +0 2 " REC " e +5 2 " REC " d +5 2 " REC},
    {"schedule", "tags=1; 0 tn +5 0 " TAG_A " tw +5 2 " REC},
    {"schedule", "unique=1; 0 un +5 5:9 " LAST_U "w"},
    {"schedule", "marks; 0 r +5 3 " TAG_A " put +5 5 " REC},
    {"schedule", "ended; 0 n +5 0 " TAG_A " put +5 3 " REC " r +5 3 " REC},
    {"schedule", "kept=1; 0 ko +5 2 " REC},
    {"schedule", "errors=1; 0 tn +5 0 " TAG_A " fw +5 2 " REC},
    {"schedule", "series=1; 0 so +5 2 '\\02\\00\\0cS\\0al 0 0 e 90' sc +5 2 " REC},
    {"schedule", "groups=1; 0 gw +5 2 " REC " gk +5 2 " REC},
    {"schedule", "batch=1; 0 tn +5 0 " TAG_A " bw +5 2 " REC},
    {"gather", "groups=1; 0 gn " GROUP " a gw " GROUP " b gf " GROUP " c gr " GROUP " d"},
    {"batch_close", "batch=1; 0 ox oy none"},
    {"batch_get", "batch=1; 0 ox ''"},
    {"pause", "series=1; 0 so 1"},
    {"refill", "series=1; 0 cd 'l 0 0 c 1' 'n r' T+90"},
    {"cancel", "series=1; 0 sc 1 so 0"},
    {"cancel", "groups=1; 0 gw 0 gk 0"},
    {"cancel", "kept=1; 0 kw 0 ko 0"},
    {"cancel", "errors=1; 0 fw 0 fe 0"},
    {"cancel", "0 w 0 e 0 d 0"},
    {"cancel", "0 r 1"},
    {"cancel", "batch=1; 0 bw 0"},
    {"cancel", "tags=1; 0 tw 0"},
    {"cancel", "marks; 0 put 1"},
    {"cancel", "ended; 0 put 0"},
    {"reschedule", "kept=1; 0 ko +5 0 w +5 0"},
    {"reschedule", "0 w +0 0 e +5 0 d +5 0"},
    {"reschedule", "0 r +5 1"},
    {"reschedule", "unique=1; 0 w +0 0 ud +5 0"},
    {"reschedule", "ended; 0 w +0 0 put +5 0"},
    {"reschedule", "errors=1; 0 w +0 0 fe +5 0 fd +5 0"},
    {"reschedule", "batch=1; 0 w +0 0 bn +5 0 bu +0 0"},
    {"kill", "kept=1; 0 ko x"},
    {"kill", "kept=1; 0 kw x"},
    {"kill", "errors=1; 0 fe x"},
    {"kill", "0 w x e x d x"},
    {"kill", "ended; 0 put x"},
    {"kill", "unique=1; 0 uw x"},
    {"kill", "batch=1; 0 w x bn x"},
    {"kill_all", "0 1 '' '' 0 100 '' 0 x"},
    {"kill_all", "ended; 0 1 '' '' 0 100 '' 0 x"},
    {"kill_all", "tags=1; 0 0 a '' 0 100 '' 0 x"},
    {"kill_all", "unique=1; 0 1 '' '' 0 100 '' 0 x"},
    {"kill_all", "kept=1; 0 1 '' '' 0 100 '' 0 x"},
    {"kill_all", "batch=1; 0 1 '' '' T+80 100 '' 0 x"},
    {"kill_all", "errors=1; 0 1 '' '' 0 100 '' 0 x"},
    {"cancel_all", "kept=1; 0 1 '' '' 0 100 '' 0"},
    {"cancel_all", "groups=1; 0 1 '' '' 0 100 '' 0"},
    {"cancel_all", "kept=1; 0 4 '' '' 0 100 '' 0"},
    {"cancel_all", "0 1 '' '' 0 100 '' 0"},
    {"cancel_all", "0 3 '' '' 0 100 '' 0"},
    {"cancel_all", "0 2 '' '' 0 100 '' 0"},
    {"cancel_all", "0 2 '' '' 0 100 '' 1"},
    {"cancel_all", "marks; 0 2 '' '' 0 100 '' 1"},
    {"cancel_all", "ended; 0 1 '' '' 0 100 '' 0"},
    {"cancel_all", "tags=1; 0 1 '' '' 0 100 '' 0"},
    {"cancel_all", "tags=1; 0 0 a '' 0 100 '' 1"},
    {"cancel_all", "errors=1; 0 3 '' '' 0 100 '' 0"},
    {"cancel_all", "batch=1; 0 1 '' '' T+80 100 '' 0"},
    {"reschedule_all", "batch=1; 0 0 a '' 0 100 '' 0 +5 0"},
    {"reschedule_all", "errors=1; 0 3 '' '' 0 100 '' 0 +5 0"},
    {"reschedule_all", "0 1 '' '' 0 100 '' 0 +0 0"},
    {"reschedule_all", "0 3 '' '' 0 100 '' 0 +5 0"},
    {"reschedule_all", "0 2 '' '' 0 100 '' 1 +5 0"},
    {"reschedule_all", "ended; 0 1 '' '' 0 100 '' 0 +5 0"},
    {"reschedule_all", "unique=1; 0 3 '' '' 0 100 '' 0 +5 0"},
    {"get", "kept=1; 0 ko"},
    {"get", "0 w e d"},
    {"get", "ended; 0 put"},
    {"get", "errors=1; 0 fw"},
    {"claim", "kept=1; 0 me 10 100"},
    {"claim", "forward=list:s:{q}:list kept=1; 0 me 10 100"},
    {"claim", "0 me 10 100"},
    {"claim", "0 me 10 0 x y m"},
    {"claim", "forward=stream:s:{q}:stream forward_groups=g; 0 me 10 100"},
    {"claim", "forward=list:s:{q}:list; 0 me 10 100"},
    {"claim", "forward=list:s:{q}:list tags=1; 0 me 10 100"},
    {"claim", "marks; 0 me 10 100"},
    {"claim", "unique=1; 0 me 10 100"},
    {"claim", "rate=5/1s max_running=5; 0 me 10 100"},
    {"claim", "max_running=2; 0 me 10 100"},
    {"claim", "forward=list:s:{q}:list rate=5/1s; 0 me 10 100"},
    {"claim", "errors=1; 0 me 10 100"},
    {"claim", "forward=list:s:{q}:list errors=1; 0 me 10 100"},
    {"claim", "series=1; 0 me 10 100"},
    {"claim", "batch=1; 0 me 10 100"},
    {"claim", "forward=list:s:{q}:list batch=1; 0 me 10 100"},
    {"claim", "forward=list:s:{q}:list series=1; 0 me 10 100"},
    {"claim", "groups=1; 0 me 10 100"},
    {"claim", "forward=stream:s:{q}:stream groups=1; 0 me 10 100"},
    {"done", "kept=1; 0 me kr U+20001"},
    {"done", "0 me r U+3"},
    {"done", "met=1; 0 me r U+3"},
    {"done", "tags=1; 0 me tr U+20001"},
    {"done", "marks; 0 me r U+3 stop 11 tagged 14 again 12 put 15"},
    {"done", "errors=1; 0 me fr 21"},
    {"done", "tags=1 batch=1; 0 me tr U+20001 br U+20003"},
    {"retry", "kept=1; 0 me kr U+20001 5 x"},
    {"retry", "0 me r U+3 5 x u U+2 5 x"},
    {"retry", "errors=1; 0 me fr 21 5 x ff 22 5 x fm 23 5 x"},
    {"retry", "0 me r U+3 '' x"},
    {"retry", "marks; 0 me stop 11 5 x tagged 14 5 x again 12 5 x put 15 5 x"},
    {"retry", "unique=1; 0 me ur U+20001 5 x"},
    {"retry", "met=1; 0 me r U+3 5 x"},
    {"retry", "batch=1; 0 me r U+3 5 x bc U+20002 5 x"},
    {"fail", "kept=1; 0 me kr U+20001 x"},
    {"fail", "0 me r U+3 x"},
    {"fail", "met=1; 0 me r U+3 x"},
    {"fail", "errors=1; 0 me fr 21 x ff 22 x fm 23 x"},
    {"fail", "marks; 0 me r U+3 x stop 11 x tagged 14 x again 12 x put 15 x"},
    {"fail", "unique=1; 0 me ur U+20001 x"},
    {"fail", "batch=1; 0 me r U+3 x bc U+20002 x"},
    {"release", "kept=1; 0 me kr U+20001"},
    {"release", "0 me r U+3"},
    {"release", "met=1; 0 me r U+3"},
    {"release", "errors=1; 0 me fm 23"},
    {"release", "batch=1; 0 me r U+3 bc U+20002"},
    {"release", "marks; 0 me r U+3 stop 11 tagged 14 again 12 put 15"},
    {"renew", "0 me r U+3 5"},
    {"renew", "unique=1; 0 me ue U+20002 5"},
    {"renew", "met=1; 0 me r U+3 5"},
    {"report", "0 me r U+3 text"},
    {"sweep", "kept=1; 0"},
    {"sweep", "0"},
    {"sweep", "again=1; 0"},
    {"sweep", "ended; 0"},
    {"sweep", "unique=1; 0"},
    {"sweep", "dead_max=0; 0"},
    {"sweep", "dead_max=0 groups=1; 0"},
    {"sweep", "max_running=1 met=1; 0"},
    {"sweep", "errors=1; 0"},
    {"sweep", "batch=1; 0"},
    {"reclaim", "0 me 0"},
    {"touch", "kept=1; 0 me 1000 100 0 0 1 1 24"},
    {"touch", "0 me 1000 100 0 0 1 1 24"},
    {"touch", "forward=stream:s:{q}:stream; 0 me 1000 100 0 0 1 1 24"},
    {"touch", "forward=list:s:{q}:list; 0 me 1000 100 0 0 1 1 24"},
    {"touch", "forward=list:s:{q}:list tags=1; 0 me 1000 100 0 0 1 1 24"},
    {"touch", "unique=1; 0 me 1000 100 0 0 1 1 24"},
    {"touch", "rate=5/1s max_running=5; 0 me 1000 100 0 0 1 1 24"},
    {"touch", "marks; 0 me 1000 100 0 0 1 1 24"},
    {"touch", "errors=1; 0 me 1000 100 0 0 1 1 24"},
    {"touch", "series=1; 0 me 1000 100 0 0 1 1 24"},
    {"touch", "groups=1; 0 me 1000 100 0 0 1 1 24"},
    {"touch", "batch=1; 0 me 1000 100 0 0 1 1 24"},
    {"trim", "forward=stream:s:{q}:stream entries=1; 0"},
    {"adopt", "forward=stream:s:{q}:stream entries=1 pending=1; 0 h me 0 10 - 0"},
    {"arm", "'0 600' 0"},
    {"configure", "0 'forward=stream forward_groups=g'"},
    {"configure", "rate=5/1s; 0 rate="},
    {"configure", "0 history_days=0"},
    {"heartbeat", "0 me 100 0 0"},
    {"heartbeat", "0 l 0 0 0"},
    {"tell", "0 m 1"},
    {"enter", "0 x y"},
    {"names", "0 - + 10"},
    {"forget", "0 x"},
    {"alive", "0"},
    {"listeners", "0 l x"},
    {"remove", "0 1 x"},
    {"remove", "kept=1; 0 1 x"},
    {"remove", "groups=1; 0 1 x"},
    {"join", "0 me 1"},
    {"join", "0 l 0"},
    {"eviction", "0"},
    {"fence", "0"},
    {"count", "0 a 1 s1"},
    {"history", "0 0 9007199254740992"},
    {"depth", "0"},
    {"list", "kept=1; 0 4 10 '' ''"},
    {"list", "0 1 10 '' ''"},
    {"list", "series=1; 0 5 10 '' ''"},
    {"list", "0 2 10 '' ''"},
    {"list", "ended; 0 2 10 '' ''"},
    {"list", "0 3 10 '' ''"},
    {"list", "errors=1; 0 1 10 '' ''"},
    {"list_tag", "kept=1; 0 a 10 ''"},
    {"list_tag", "errors=1; 0 a 10 ''"},
    {"list_tag", "tags=1; 0 a 10 ''"},
    {"list_tag", "ended; 0 a 10 ''"},
    {"check", "kept=1; 0 kept 0 100"},
    {"check", "0 jobs 0 100"},
    {"check", "0 due 0 100"},
    {"check", "0 attempts 0 100"},
    {"check", "marks; 0 next 0 100"},
    {"check", "marks; 0 report 0 100"},
    {"check", "tags=1; 0 index 0 100"},
    {"check", "errors=1; 0 errors 0 100"},
    {"check", "groups=1; 0 jobs 0 100"},
    {"check", "batch=1; 0 batches 0 100"},
    {"parts", "groups=1 stray=1; 0 1 stray gw"},
    {"mend", "kept=1; 0 kb"},
    {"mend", "0 m n r"},
    {"mend", "errors=1; 0 gone"},
    {"mend", "groups=1; 0 gw"},
    {"mend", "marks; 0 gone put"},
    {"mend", "tags=1; 0 tw 't stray x'"},
    {"mend", "tags=1 batch=1; 0 m r 't stray x' 'b oz gone'"},
    {NULL, NULL},
};

void many(int first, int n, const char *due)
{
    for (int i = first, last; i < first + n; i = last) {
        char *args = text("0");
        for (last = i; last < first + n && last < i + 100; last++) {
            args = text("%s j%03d %s 0 " REC, args, last, due);
        }
        given("schedule", args);
    }
}

long long calls(const char *command)
{
    const char *at = strstr(ask("INFO commandstats")->str, text("cmdstat_%s:calls=", command));
    return at ? atoll(strchr(at, '=') + 1) : 0;
}

/* TIME is answered here, and PING is asked behind each script. */
long long commands(void)
{
    static const char *const ours[] = {
        "eval:", "evalsha:", "script|load:", "info:", "config|resetstat:"};
    const char *at = ask("INFO commandstats")->str;
    long long n = 0;

    while ((at = strstr(at, "cmdstat_"))) {
        at += strlen("cmdstat_");
        bool is_ours = false;
        for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
            is_ours = is_ours || strncmp(at, ours[i], strlen(ours[i])) == 0;
        }
        n += is_ours ? 0 : atoll(strstr(at, "calls=") + strlen("calls="));
    }
    return n;
}

/* ---- looking ---- */
static void put_pairs(FILE *f, const char *name, redisReply *r, char mark, const char *key)
{
    if (r->type != REDIS_REPLY_ARRAY) {
        fprintf(f, " | %s is a %s", name, ask("TYPE %s", key)->str);
        return;
    }

    /* a hash comes in any order */
    if (mark == '=' && r->elements) {
        qsort(r->element, r->elements / 2, 2 * sizeof *r->element, by_text);
    }

    for (size_t i = 0; i < r->elements; i += 2) {
        if (i == 0) {
            fprintf(f, " | %s", name);
        }
        fputc(' ', f);
        put_bytes(f, r->element[i]->str, (size_t)r->element[i]->len);
        fputc(mark, f);
        put_bytes(f, r->element[i + 1]->str, (size_t)r->element[i + 1]->len);
    }
}

/* Of each group its parts, as they lie there. */
static void put_parts(FILE *f)
{
    redisReply *lists = names_of("s:{q}:p:*");

    for (size_t i = 0; i < lists->elements; i++) {
        const char *name = lists->element[i]->str;
        redisReply *parts = ask("LRANGE %s 0 -1", name);
        fprintf(f, "%s%s=", i ? " " : " | p ", name + strlen("s:{q}:p:"));
        for (size_t k = 0; k < parts->elements; k++) {
            fputs(k ? "," : "", f);
            put_bytes(f, parts->element[k]->str, (size_t)parts->element[k]->len);
        }
    }
}

static void put_rate(FILE *f)
{
    redisReply *rate = ask("LRANGE s:{q}:rate 0 -1");

    for (size_t i = 0; i < rate->elements; i++) {
        fputs(i ? " " : " | rate ", f);
        put_bytes(f, rate->element[i]->str, (size_t)rate->element[i]->len);
    }
}

static const struct {
    const char *name, *read;
    char mark;
} shown[] = {{"due", "ZRANGE %s 0 -1 WITHSCORES", ':'},
             {"run", "ZRANGE %s 0 -1 WITHSCORES", ':'},
             {"dead", "ZRANGE %s 0 -1 WITHSCORES", ':'},
             {"kept", "ZRANGE %s 0 -1 WITHSCORES", ':'},
             {"jobs", "HGETALL %s", '='},
             {"attempts", "HGETALL %s", '='},
             {"next", "HGETALL %s", '='},
             {"report", "HGETALL %s", '='},
             {"errors", "HGETALL %s", '='},
             {"past", "HGETALL %s", '='},
             {"listeners", "ZRANGE %s 0 -1 WITHSCORES", ':'}};

char *keys(void)
{
    char *out;
    size_t len;
    FILE *f = open_memstream(&out, &len);

    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        char *name = text("s:{q}:%s", shown[i].name);
        put_pairs(f, shown[i].name, ask(shown[i].read, name), shown[i].mark, name);
    }

    put_pairs(f, "alive", ask("ZRANGE %s 0 -1 WITHSCORES", ALIVE), ':', ALIVE);
    put_pairs(f, "queues", ask("ZRANGE %s 0 -1 WITHSCORES", QUEUES), ':', QUEUES);

    redisReply *index = ask("ZRANGE s:{q}:index 0 -1");
    for (size_t i = 0; i < index->elements; i++) {
        fprintf(f, i ? " '%s'" : " | index '%s'", index->element[i]->str);
    }
    put_pairs(f, "batches", ask("HGETALL s:{q}:batches"), '=', "s:{q}:batches");

    char *seq = ask("GET s:{q}:seq")->str;
    if (seq) {
        fputs(" | seq ", f);
        put_bytes(f, seq, strlen(seq));
    }

    put_parts(f);
    put_rate(f);
    char *conf = ask("GET s:{q}:conf")->str;
    if (conf) {
        fputs(" | conf ", f);
        put_bytes(f, conf, strlen(conf));
    }

    redisReply *triggers = names_of("s:{q}:t:[^{]*"); /* no canary */
    for (size_t i = 0; i < triggers->elements; i++) {
        const char *name = triggers->element[i]->str;
        fputs(i ? " " : " | t ", f);
        put_bytes(f, name + strlen("s:{q}:t:"), strlen(name) - strlen("s:{q}:t:"));
        fputc(':', f);
        long long at = redis_int(redis, "PEXPIRETIME %s", name);
        put_moment(f, at, text("%lld", at));
        if (strcmp(ask("GET %s", name)->str, "1") != 0) {
            fprintf(f, "=%s", ask("GET %s", name)->str);
        }
    }

    fclose(f);
    keep(out, free);

    return len ? out + 3 : out;
}

char *dumps(void)
{
    char *out;
    size_t len;
    FILE *f = open_memstream(&out, &len);
    struct snapshot now_is;

    snapshot_take(&now_is);
    for (size_t i = 0; i < now_is.n; i++) {
        fprintf(f, "%s %lld ", now_is.names[i], now_is.expires_ms[i]);
        put_reply(f, now_is.values[i]);
    }

    fclose(f);
    return keep(out, free);
}

static redisReply *message(redisContext *c)
{
    redisReply *r = NULL;
    cr_assert_eq(redisGetReply(c, (void **)&r), REDIS_OK);
    keep(r, freeReplyObject);
    return strcmp(r->element[0]->str, "pong") ? r : NULL;
}

static const char *heard_by(redisContext *subscriber)
{
    const char *out = "";

    redisAppendCommand(subscriber, "PING"); /* its answer comes after all that was published */
    for (redisReply *r; (r = message(subscriber));) {
        out = text("%s%s%s %s", out, *out ? " " : "", strrchr(r->element[2]->str, ':') + 1,
                   show(r->element[3]));
    }
    return out;
}

const char *heard(void)
{
    return heard_by(ear);
}

const char *heard_ends(void)
{
    return heard_by(end_ear);
}

const char *expired(void)
{
    const char *out = "";

    redisAppendCommand(eye, "PING");
    for (redisReply *r; (r = message(eye));) {
        out = text("%s%s%s", out, *out ? " " : "", r->element[3]->str + strlen("s:{q}:t:"));
    }
    return out;
}

void same(const char *file, int line, const char *what, const char *got, const char *expected)
{
    cr_assert(strcmp(got, expected) == 0, "%s:%d: %s\n     got %s\nexpected %s", file, line, what,
              got, expected);
}
