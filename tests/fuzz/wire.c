/* SPDX-License-Identifier: MIT */
/* The whole library above its connection, against a Redis that answers anything: the input says
 * what the user asks, what the server replies and publishes, when the wire breaks and how time
 * passes. In the place of conn.c is what is here. */
#include "fuzz.h"
#include "api/handle.h"
#include "script_facts.h"
#include <hiredis/hiredis.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 64, HELD = 32, DEPTH = 4, START_US = 1000000 };
#define SERVER_AHEAD_US INT64_C(1795217976000000)

static struct eat in;
static int64_t now_us;
static long live;                /* allocations */
static unsigned accepted, ended; /* callbacks to come, and those that came */
static struct lapse_job *held[HELD];
static unsigned n_held;
enum { PLAIN = SCRIPTS_N }; /* a command that runs no script */
enum { CONNS = CONN_ENDS + 1 };
static struct conn *conns[CONNS]; /* by their roles */
static struct sent {
    unsigned char scripts[4096]; /* of the calls, in order */
    unsigned n, n_answered;
} sent[CONNS];
static bool wants_copies; /* some schedules do */

/* ---- what the library takes from outside ---- */
int clock_gettime(clockid_t id, struct timespec *t) /* libFuzzer measures by another clock */
{
    if (id == CLOCK_MONOTONIC || id == CLOCK_BOOTTIME) {
        *t = (struct timespec){now_us / 1000000, now_us % 1000000 * 1000};
        return 0;
    }
    *t = (struct timespec){time(NULL), 0};
    return 0;
}

int timerfd_create(int clock,
                   int flags) /* its time is the kernel's: a timer of the loop takes its place */
{
    (void)clock;
    (void)flags;
    return -1;
}

int getentropy(void *out, size_t len)
{
    static uint64_t n;
    memset(out, 0, len);
    n++;
    memcpy(out, &n, len < sizeof n ? len : sizeof n);
    return 0;
}

static void *allocate(void *old, size_t size)
{
    if (size == 0) {
        live -= old ? 1 : 0;
        free(old);
        return NULL;
    }

    live += old ? 0 : 1;
    return realloc(old, size);
}

/* ---- the connection ---- */
static void end_calls(struct conn *c, int err)
{
    sent[c->role].n = sent[c->role].n_answered = 0;

    for (struct list *i; (i = list_pop(&c->calls));) {
        struct call *call = CONTAINER(i, struct call, node);
        MUST(!call->ended);
        call->ended = true;
        call->end(call, err, NULL);
    }
}

static void on_timer(void *arg)
{
    struct conn *c = arg;
    bool may = c->role != CONN_FENCE || conns[CONN_COMMANDS]->state == CONN_UP;

    if (c->state == CONN_DOWN && may) {
        c->state = CONN_UP;
        c->events->up(c->arg);
    } else if (c->state == CONN_FAILING) {
        end_calls(c, c->end_reason);
        c->state = CONN_DOWN;
        timer_set(&c->timer, 10);
        c->events->down(c->arg);
    }
}

void conn_init(struct conn *c, struct endpoint *endpoint, enum conn_role role,
               const struct conn_events *events, void *arg)
{
    *c = (struct conn){.context = endpoint->context,
                       .role = role,
                       .events = events,
                       .arg = arg,
                       .end_reason = LAPSE_ELOST};
    list_init(&c->calls);
    timer_init(&c->timer, c->context->loop, on_timer, c);
    MUST(!conns[role]);
    conns[role] = c;
}

void conn_start(struct conn *c)
{
    if (c->state == CONN_DOWN) {
        timer_set(&c->timer, 0);
    }
}

/* By its hash, or by its text. */
static bool names_script(const struct script_facts *t, const char *name, size_t len)
{
    if (len == 40) {
        return memcmp(name, t->sha, 40) == 0;
    }
    return len == t->len && memcmp(name, t->text, len) == 0;
}

bool conn_send(struct conn *c, struct call *call, int argc, const char **argv, const size_t *len)
{
    static volatile unsigned sum;

    MUST(c->state == CONN_UP && argc >= 3);

    for (int i = 0; i < argc; i++) {
        size_t n = len ? len[i] : strlen(argv[i]);
        for (size_t k = 0; k < n; k++) {
            sum += (unsigned char)argv[i][k];
        }
    }

    bool plain = strncmp(argv[0], "EVAL", 4) != 0;
    unsigned script = plain ? PLAIN : 0;
    while (script < SCRIPTS_N && !names_script(&script_facts[script], argv[1], len[1])) {
        script++;
    }

    (void)sum;
    struct sent *s = &sent[c->role];
    MUST((plain || script < SCRIPTS_N) && s->n < sizeof s->scripts);
    s->scripts[s->n++] = (unsigned char)script;
    call->ended = false;
    call->sent_us = clock_us();
    list_insert(&c->calls, &call->node);

    return true;
}

bool conn_subscribe(struct conn *c, const char *verb, const char *channel)
{
    (void)verb;
    (void)channel;
    return c->state == CONN_UP;
}

bool conn_full(const struct conn *c)
{
    (void)c;
    return false;
}

void conn_flush(struct conn *c)
{
    (void)c;
}

static void lose(struct conn *c, int why)
{
    if (c->state == CONN_UP) {
        c->state = CONN_FAILING;
        c->end_reason = why;
        timer_set(&c->timer, 0);
    }
}

void conn_drop(struct conn *c)
{
    lose(c, LAPSE_ELOST);
}

/* These are for a node that moves, and this one's place is in its URL. */
void conn_retire(struct conn *c)
{
    (void)c;
    MUST(false);
}

void conn_move(struct conn *c)
{
    (void)c;
    MUST(false);
}

void conn_set_reply_ms(struct conn *c, int64_t reply_ms)
{
    (void)c;
    (void)reply_ms;
    MUST(false);
}

void conn_close(struct conn *c, int why)
{
    timer_stop(&c->timer);
    c->state = CONN_CLOSED;
    end_calls(c, why);
}

/* ---- replies ---- */
static struct redisReply *reply(int type)
{
    struct redisReply *r = calloc(1, sizeof *r);
    MUST(r);
    r->type = type;
    return r;
}

static struct redisReply *integer(int64_t n)
{
    struct redisReply *r = reply(REDIS_REPLY_INTEGER);
    r->integer = n;
    return r;
}

static struct redisReply *text(int type, const void *bytes, size_t len)
{
    struct redisReply *r = reply(type);

    r->str = malloc(len + 1);
    MUST(r->str);
    memcpy(r->str, bytes, len);
    r->str[len] = '\0';
    __typeof__(r->len) n = (__typeof__(r->len))len; /* an int in 0.14 */
    r->len = n;
    return r;
}

static struct redisReply *string(const char *s)
{
    return text(REDIS_REPLY_STRING, s, strlen(s));
}

static struct redisReply *array(size_t n)
{
    struct redisReply *r = reply(REDIS_REPLY_ARRAY);
    r->elements = n;
    r->element = calloc(n + 1, sizeof *r->element);
    MUST(r->element);
    return r;
}

static void reply_free(struct redisReply *r)
{
    if (r->type == REDIS_REPLY_ARRAY) {
        for (size_t i = 0; i < r->elements; i++) {
            reply_free(r->element[i]);
        }
        free(r->element);
    }
    free(r->str);
    free(r);
}

static int64_t server_us(void)
{
    return now_us + SERVER_AHEAD_US;
}

/* A row as a script gives it, of one of a few ids. */
static struct redisReply *row(unsigned which)
{
    static const char *const ids[] = {"a", "b", "c", "d"};
    static const char *const helds[] = {"",
                                        "1 1 me 1 10 1795217976000000 1795217976000 why",
                                        "1 7 me 2 10 1 1 ",
                                        "2 x",
                                        "2 1 me 1 10 1795217976000000 1795217976000 c=1 why",
                                        "2 7 me 2 10 1 1 d=1795217977000,q=9 "};
    struct redisReply *r = array(6);

    r->element[0] = string(ids[which % 4]);
    r->element[1] = integer((1 + which / 4) % 4);
    r->element[2] = integer(server_us() / 1000 + (int)(which % 5) * 1000);
    r->element[3] = string(helds[which / 2 % 6]);
    r->element[4] = text(REDIS_REPLY_STRING, which % 7 ? "\1\0body" : "\2\0body", 6);
    r->element[5] = integer(which % 3);
    return r;
}

/* One byte says the kind in three bits and a number in five. */
static struct redisReply *tree(unsigned depth)
{
    static const char *const words[] = {
        "LAPSE ENOENT", "ENOENT",  "EEXIST",     "EBUSY",    "EGONE",         "EDATA",   "EREFUSED",
        "message",      "OK",      "",           "pmessage", "subscribe",     "1",       "-1",
        "9999999",      "expired", "NOSCRIPT x", "OOM x",    "LAPSE EBROKEN", "NOPERM x"};
    unsigned byte = eat_byte(&in);
    unsigned n = byte >> 3;
    const char *word = words[n % (sizeof words / sizeof *words)];
    struct redisReply *r;
    size_t len;
    char *bytes;

    switch (byte & 7) {
    case 0: return n ? text(REDIS_REPLY_STATUS, word, strlen(word)) : reply(REDIS_REPLY_NIL);
    case 1: return integer(n);
    case 2: return integer((int64_t)eat_number(&in, 8));
    case 3:
        len = n < 31 ? n : eat_byte(&in);
        len = len < in.left ? len : in.left;
        bytes = eat_copy(&in, len, false);
        r = text(REDIS_REPLY_STRING, bytes, len);
        free(bytes);
        return r;
    case 4: return string(word);
    case 5: return text(REDIS_REPLY_ERROR, word, strlen(word));
    case 6:
        r = array(depth < DEPTH ? n : 0);
        for (size_t i = 0; i < r->elements; i++) {
            r->element[i] = tree(depth + 1);
        }
        return r;
    default:
        if (n == 0) {
            return integer(server_us());
        }
        return n == 1 ? integer(server_us() / 1000) : row(n);
    }
}

enum { TOUCH_COMING = 13 }; /* the place of the moments to come */

static struct redisReply *coming(void)
{
    char text[64];
    long long now_ms = server_us() / 1000;

    snprintf(text, sizeof text, "%lld +%lld", now_ms + 1, now_ms + 5);
    return string(text);
}

/* Of a command that runs no script: a number, OK, or the names of listeners. */
static struct redisReply *plain_reply(unsigned byte)
{
    struct redisReply *names;

    switch (byte % 3) {
    case 0: return integer(byte >> 4 & 3);
    case 1: return text(REDIS_REPLY_STATUS, "OK", 2);
    default:
        names = array(2);
        names->element[0] = string("fuzz/0000000000000001");
        names->element[1] = string(byte & 16 ? "other/8000000000000002" : "x");
        return names;
    }
}

/* Of WAIT and WAITAOF. */
static struct redisReply *wait_reply(unsigned byte)
{
    struct redisReply *counts;

    switch (byte % 4) {
    case 0: return text(REDIS_REPLY_ERROR, "ERR unknown command", 19);
    case 1: return integer(byte >> 4 & 3);
    default:
        counts = array(2);
        counts->element[0] = integer(byte >> 2 & 1);
        counts->element[1] = integer(byte >> 4 & 3);
        return counts;
    }
}

/* How many elements come before the rows, in the answer of a script that has rows. */
static size_t before_rows(unsigned script)
{
    switch (script) {
    case SCRIPT_CLAIM: return 7;
    case SCRIPT_TOUCH: return TOUCH_COMING + 1;
    case SCRIPT_LIST: return 2;
    default: return 1;
    }
}

/* The shape that the script's head promises, more or less. */
static struct redisReply *canned(enum conn_role role, unsigned script)
{
    unsigned byte = eat_byte(&in);
    unsigned n = byte % 8;
    if (script == PLAIN) {
        return role == CONN_FENCE ? wait_reply(byte) : plain_reply(byte);
    }

    const struct script_facts *facts = &script_facts[script];
    bool has_rows = script == SCRIPT_CLAIM || script == SCRIPT_TOUCH || script == SCRIPT_LIST;
    bool may_have_rows = facts->batch && !facts->has_holder && byte & 8;
    struct redisReply *r = array(has_rows ? before_rows(script) + n : 8);

    r->element[0] = integer(server_us());
    for (size_t i = 1; i < r->elements; i++) {
        bool is_row = (has_rows || may_have_rows) && i >= before_rows(script);
        if (script == SCRIPT_TOUCH && i == TOUCH_COMING) {
            r->element[i] = coming();
        } else {
            r->element[i] = is_row ? row(byte / 8 + (unsigned)i) : integer(byte >> 4 & 3);
        }
    }

    return r;
}

static void answer(struct conn *c, bool by_shape)
{
    struct sent *s = &sent[c->role];
    struct redisReply *r = by_shape ? canned(c->role, s->scripts[s->n_answered]) : tree(0);
    struct list *i = c->state == CONN_UP ? list_pop(&c->calls) : NULL;

    if (i) {
        s->n_answered++;
        struct call *call = CONTAINER(i, struct call, node);
        MUST(!call->ended);
        call->ended = true;
        call->end(call, 0, r);
    }

    reply_free(r);
}

static struct redisReply *event_of(const char *key)
{
    struct redisReply *r = array(4);

    r->element[0] = string("pmessage");
    r->element[1] = string(KEYS_EXPIRED);
    r->element[2] = string("__keyevent@0__:expired");
    r->element[3] = string(key);
    return r;
}

static struct redisReply *notice(unsigned in_ms, bool stops, bool forged)
{
    struct redisReply *r = array(3);
    char text[64];

    if (stops) {
        snprintf(text, sizeof text, "stop a 1 b %u c 7", in_ms / 100);
    } else {
        snprintf(text, sizeof text, "%lld a", (long long)(server_us() / 1000 + in_ms));
    }
    r->element[0] = string("message");
    r->element[1] = string("lapse:{q}:notice:0");
    r->element[2] = forged ? tree(1) : string(text);
    return r;
}

static struct redisReply *subscribed(void)
{
    struct redisReply *r = array(3);

    r->element[0] = string("subscribe");
    r->element[1] = string("lapse:{q}:notice:0");
    r->element[2] = integer(1);
    return r;
}

static void publish(struct conn *c, unsigned how)
{
    static const char *const triggers[] = {"lapse:{q}:t:a", "lapse:{q}:t:b", "lapse:{q}:t:{host:1}",
                                           "lapse:{x}:t:c"};
    struct redisReply *r;

    switch (how % 4) {
    case 0: r = tree(0); break;
    case 1: r = event_of(triggers[how / 4 % 4]); break;
    case 2: r = notice(how / 4 * 100, how & 128, how & 64); break;
    default: r = subscribed();
    }

    if (c->state == CONN_UP && c->events->pushed) {
        c->events->pushed(c->arg, r);
    }

    reply_free(r);
}

/* ---- the user ---- */
static void on_answer(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)arg;
    ended++;
    if (!err && job) {
        size_t len;
        MUST(strlen(lapse_job_id(job)) <= KEYS_ID_MAX && lapse_job_body(job, &len));
    }
}

static void on_depth(struct lapse *l, int err, const struct lapse_depth *d, void *arg)
{
    (void)l;
    (void)arg;
    MUST(!err == !!d);
    ended++;
}

static void on_queues(struct lapse *l, int err, const struct lapse_queue *const *queues, size_t n,
                      void *arg)
{
    (void)l;
    (void)arg;
    ended++;
    for (size_t i = 0; i < n; i++) {
        MUST(!err && queues[i]->depth && strlen(queues[i]->name) <= KEYS_QUEUE_MAX);
    }
}

static void on_history(struct lapse *l, int err, const struct lapse_past *const *rows, size_t n,
                       void *arg)
{
    (void)l;
    (void)arg;
    ended++;
    for (size_t i = 0; i < n; i++) {
        MUST(!err && rows[i]->to_ms > rows[i]->from_ms);
    }
}

static void on_list(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                    void *arg)
{
    (void)l;
    (void)arg;
    MUST(err <= 0 && (!err || !n) && n <= 100);
    for (size_t i = 0; i < n; i++) {
        MUST(strlen(lapse_job_id(jobs[i])) <= KEYS_ID_MAX);
    }
    ended++;
}

static void on_event(struct lapse *l, enum lapse_event what, const struct lapse_job *job, void *arg)
{
    size_t len;
    (void)l;
    (void)arg;

    MUST(what >= LAPSE_EVENT_CANCEL && what <= LAPSE_EVENT_DIED);
    MUST(strlen(lapse_job_id(job)) <= KEYS_ID_MAX && lapse_job_body(job, &len));
    MUST(what != LAPSE_EVENT_CANCEL || lapse_job_cancelled(job));
    MUST(what != LAPSE_EVENT_DIED || lapse_job_state(job) == LAPSE_DEAD);
    MUST(what != LAPSE_EVENT_SKIPPED || lapse_job_state(job) == 0);
}

static void settle(struct lapse_job *job, unsigned how)
{
    accepted += how % 2;
    lapse_cb *fn = how % 2 ? on_answer : NULL;
    switch (how / 2 % 3) {
    case 0: lapse_done(job, fn, NULL); break;
    case 1: lapse_retry(job, how & 64 ? LAPSE_BACKOFF : 10, "why", fn, NULL); break;
    default: lapse_fail(job, "why", fn, NULL); break;
    }
}

static void on_job(struct lapse *l, struct lapse_job *job, void *arg)
{
    (void)l;
    (void)arg;
    unsigned how = eat_byte(&in);
    if (how & 128 && n_held < HELD) {
        held[n_held++] = job;
    } else {
        settle(job, how);
    }
}

static int ask(struct lapse *l, unsigned how)
{
    static const char *const ids[] = {"a", "b", "c", "d"};
    static const struct lapse_header header = {"trace", "1"};
    const char *id = ids[how / 8 % 4];
    struct lapse_spec s = lapse_spec_init();
    struct lapse_due due = lapse_in(how / 32 * 100);

    switch (how % 8) {
    case 0:
    case 1:
        s.queue = "q";
        s.id = id;
        s.body = "body";
        s.body_len = how / 32 % 5;
        s.due = due;
        s.replicas = wants_copies ? how / 32 % 3 : 0;
        s.flags = wants_copies && how & 128 ? LAPSE_FSYNC : 0;
        s.on_conflict = (enum lapse_conflict)(how / 32 % 3);
        s.headers = &header;
        s.n_headers = how % 8;
        return lapse_schedule(l, &s, on_answer, NULL);
    case 2: return lapse_cancel(l, "q", id, 0, on_answer, NULL);
    case 3: return lapse_reschedule(l, "q", id, due, 0, on_answer, NULL);
    case 4:
        if (how & 128) {
            return lapse_wait(l, "q", id, how / 32 * 100, on_answer, NULL);
        }
        return lapse_get(l, "q", id, on_answer, NULL);
    case 5:
        if (how & 128) {
            return lapse_queues(l, NULL, on_queues, NULL);
        }
        if (how & 64) {
            return lapse_history(l, "q", 0, 7200000, 60000, on_history, NULL);
        }
        return lapse_depth(l, "q", on_depth, NULL);
    case 6: return lapse_list(l, "q", LAPSE_RUNNING, NULL, 1 + how / 8, on_list, NULL);
    default: break;
    }

    const char *queue = how & 8 ? "q2" : "q";
    int err = how & 16 ? lapse_unlisten(l, queue) : lapse_listen(l, queue, NULL, on_job, NULL);
    return err ? 1 : 2;
}

static void pass(unsigned how)
{
    static const int ms[] = {0, 1, 20, 60, 200, 2000, 5000, 40000};
    now_us += ms[how % 8] * 1000 + (int)how;
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static void no_line(int level, const char *line, void *arg)
{
    (void)level;
    (void)arg;
    for (; *line; line++) {
        MUST(*line >= ' ' && *line <= '~');
    }
}

static void step(struct lapse *l)
{
    struct conn *subscription = conns[CONN_SUBSCRIPTION];
    struct conn *fence = conns[CONN_FENCE];
    unsigned what = eat_byte(&in);
    unsigned how = what >> 4;
    int err;

    switch (what % 8) {
    case 0:
    case 1: answer(fence && how & 8 ? fence : conns[CONN_COMMANDS], what % 8); break;
    case 2: publish(how & 8 ? conns[CONN_ENDS] : subscription, eat_byte(&in)); break;
    case 3:
        if (fence && how & 4) {
            lose(fence, how & 2 ? LAPSE_ELOST : LAPSE_ETIMEOUT);
        } else if (!(how & 8)) {
            lose(conns[how % 2], how & 2 ? LAPSE_ELOST : LAPSE_ETIMEOUT);
        } else if (subscription->state == CONN_UP) {
            subscription->events->ask(subscription->arg);
        }
        break;
    case 4:
    case 5:
        err = ask(l, eat_byte(&in));
        if (err == 0) {
            accepted++;
        }
        MUST(err <= 2);
        break;
    case 6: pass(how); break;
    default:
        if (n_held) {
            settle(held[--n_held], eat_byte(&in));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lapse_options o = lapse_options_init();
    struct ev_loop *loop;
    struct lapse *l;
    bool closed = false;

    in = (struct eat){data, size};
    now_us = START_US;
    accepted = ended = n_held = 0;
    memset(conns, 0, sizeof conns);
    memset(sent, 0, sizeof sent);

    unsigned bits = eat_byte(&in);
    wants_copies = bits & 128;
    o.log = no_line;
    o.flags = bits % 4;
    o.arm_ahead_ms = bits & 4 ? 1000 : 0;
    o.notify = bits >> 3 & 1;
    o.max_running = bits & 16 ? 2 : 0;
    o.name = "host:1";
    lapse_set_allocator(allocate);
    loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_POLL);
    MUST(loop && lapse_open(&l, loop, &o) == 0);
    lapse_on_event(l, on_event, NULL);
    if (!(bits & 32)) {
        MUST(lapse_listen(l, "q", NULL, on_job, NULL) == 0);
    }

    for (int i = 0; i < STEPS && in.left; i++) {
        ev_run(loop, EVRUN_NOWAIT);
        step(l);
    }

    lapse_close(l, bits & 64 ? 100 : 0, on_closed, &closed);
    for (int i = 0; i < 1000 && !closed; i++) {
        ev_run(loop, EVRUN_NOWAIT);
        now_us += 10000;
    }

    MUST(closed);
    for (accepted -= ended; n_held;) {
        lapse_done(held[--n_held], NULL, NULL); /* cut loose: this frees it */
    }

    MUST(accepted == 0 && live == 0);
    ev_loop_destroy(loop);

    return 0;
}
