/* SPDX-License-Identifier: MIT */
#include "allocations.h"
#include "audit.h"
#include "cluster.h"
#include "flow.h"
#include "loop.h"
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <syslog.h>

struct log_line {
    struct log_line *next;
    int level;
    char text[];
};

/* ---- log ---- */
static void on_log(int level, const char *text, void *arg)
{
    struct flow *f = arg;
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++) {
        cr_assert(text[i] >= ' ' && text[i] <= '~', "byte %d in log line: %s", text[i], text);
    }

    cr_assert(len && level >= LOG_EMERG && level <= LOG_DEBUG);

    struct log_line *line = malloc(sizeof *line + len + 1);
    cr_assert(line);
    line->level = level;
    memcpy(line->text, text, len + 1);
    line->next = f->lines;
    f->lines = line;
}

void flow_allow_log(struct flow *f, const char *text)
{
    size_t i = 0;

    while (f->allowed[i]) {
        i++;
    }
    cr_assert(i < sizeof f->allowed / sizeof *f->allowed);
    f->allowed[i] = text;
}

unsigned flow_logged(struct flow *f, const char *text)
{
    unsigned n = 0;
    for (const struct log_line *i = f->lines; i; i = i->next) {
        if (strstr(i->text, text) != NULL) {
            n++;
        }
    }
    return n;
}

static bool is_allowed(const struct flow *f, const struct log_line *line)
{
    bool lacks_map = strstr(line->text, "cannot ask the node at ");

    if (strstr(line->text, "the event loop was blocked for")) {
        return true; /* by a machine that has other work */
    }

    for (size_t i = 0; i < sizeof f->allowed / sizeof *f->allowed && f->allowed[i]; i++) {
        bool no_surprise =
            lacks_map && (strstr(f->allowed[i], "onnect") || strstr(f->allowed[i], "Redis"));
        if (strstr(line->text, f->allowed[i]) || no_surprise) {
            return true;
        }
    }

    return line->level > LOG_WARNING;
}

/* ---- memory ---- */
struct kept {
    struct kept *next;
    _Alignas(16) char bytes[];
};

void *flow_keep(struct flow *f, const void *bytes, size_t len, size_t size)
{
    struct kept *k = malloc(sizeof *k + size);

    cr_assert(k);
    if (len) {
        memcpy(k->bytes, bytes, len);
    }

    memset(k->bytes + len, 0, size - len);
    k->next = f->kept;
    f->kept = k;
    return k->bytes;
}

/* ---- life ---- */
static struct flow *flow_make(enum flow_mode mode, const char *const *server_args, bool tcp)
{
    int n_fds = fds_open();
    struct flow *f = calloc(1, sizeof *f);

    cr_assert(f);
    f->mode = mode;
    f->n_fds = n_fds;
    f->space = "lapse";
    alloc_install();
    f->n_live = alloc_live();
    f->place = place_start(server_args, tcp);
    f->server = f->place->server;
    if (mode == FLOW_MUTE) {
        flow_do(f, "CONFIG SET notify-keyspace-events %s", "");
        flow_allow_log(f, "notify-keyspace-events");
    }

    if (mode == FLOW_STILL || mode == FLOW_SWEEP) {
        flow_do(f, "DEBUG SET-ACTIVE-EXPIRE 0");
        /* the canary of an idle listener does not expire either */
        flow_allow_log(f, "notify-keyspace-events");
    }

    f->loop = ev_loop_new(EVFLAG_AUTO);
    cr_assert(f->loop);

    return f;
}

static struct flow *with_handle(struct flow *f, flow_tweak *tweak)
{
    struct lapse_options opts = flow_options(f);

    if (tweak) {
        tweak(&opts);
    }
    f->l = flow_open(f, &opts);
    return f;
}

struct flow *flow_start_opts(enum flow_mode mode, const char *const *server_args, flow_tweak *tweak)
{
    return with_handle(flow_make(mode, server_args, false), tweak);
}

struct flow *flow_start_tcp(enum flow_mode mode, const char *const *server_args, flow_tweak *tweak)
{
    return with_handle(flow_make(mode, server_args, true), tweak);
}

struct flow *flow_start(enum flow_mode mode)
{
    return flow_start_opts(mode, NULL, NULL);
}

struct flow *flow_bare(enum flow_mode mode, const char *const *server_args)
{
    return flow_make(mode, server_args, false);
}

struct lapse_options flow_options(struct flow *f)
{
    struct lapse_options opts = lapse_options_init();

    opts.url = f->place->url;
    opts.tls_ca = f->place->tls_ca;
    opts.log = on_log;
    opts.log_arg = f;
    if (f->mode == FLOW_NO_EVENTS) {
        opts.flags = LAPSE_NO_EVENTS;
    }

    if (f->mode == FLOW_NO_ALARM || f->mode == FLOW_SWEEP) {
        opts.flags = LAPSE_NO_ALARM;
        opts.sweep_ms = 100; /* the only floor there is: 5 s would only make the test slow */
    }

    return opts;
}

struct lapse *flow_open(struct flow *f, const struct lapse_options *opts)
{
    struct lapse_options own = flow_options(f);
    struct lapse *l = NULL;

    if (opts && strncmp(opts->url, "redis+cluster://", strlen("redis+cluster://")) != 0) {
        place_not_with_masters("the URL is that of one server");
    }

    int err = lapse_open(&l, f->loop, opts ? opts : &own);

    cr_assert(err == 0 && l && f->n_open < FLOW_HANDLES, "lapse_open: %s", lapse_strerror(err));
    f->handles[f->n_open++] = l;
    return l;
}

void flow_forget(struct flow *f, struct lapse *l)
{
    unsigned i = 0;

    while (i < f->n_open && f->handles[i] != l) {
        i++;
    }
    cr_assert(i < f->n_open);
    f->handles[i] = f->handles[--f->n_open];
    f->l = f->l == l ? NULL : f->l;
}

static void on_closed(void *arg)
{
    ((struct flow *)arg)->n_closed++;
}

void flow_close(struct flow *f, struct lapse *l, int64_t grace_ms)
{
    unsigned want = f->n_closed + 1;
    lapse_close(l, grace_ms, on_closed, f);
    flow_until(f, f->n_closed == want);
    flow_forget(f, l);
}

static void flow_free(struct flow *f)
{
    for (struct log_line *i = f->lines, *next; i; i = next) {
        next = i->next;
        free(i);
    }

    for (struct kept *i = f->kept, *next; i; i = next) {
        next = i->next;
        free(i);
    }

    free(f);
}

void flow_end_queues(struct flow *f, ...)
{
    const char *q[8] = {NULL};
    size_t n = 0;
    va_list ap;

    va_start(ap, f);
    for (const char *name; (name = va_arg(ap, const char *)); q[n++] = name) {
        cr_assert(n < 8);
    }

    va_end(ap);

    while (f->n_open) {
        flow_close(f, f->handles[f->n_open - 1], 5000);
    }

    if (f->server->pid) {
        cr_assert_eq(
            audit(f->server, f->space, q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7], NULL), 0);
        cr_assert_eq(server_refusals(f->server), 0);
    }

    cr_assert_eq(alloc_live(), f->n_live, "%ld blocks are not given back",
                 alloc_live() - f->n_live);
    for (const struct log_line *i = f->lines; i; i = i->next) {
        cr_assert(is_allowed(f, i), "logged: %s", i->text);
    }

    place_stop(f->place);
    ev_loop_destroy(f->loop);
    cr_assert_eq(fds_open(), f->n_fds, "%d descriptors more than before", fds_open() - f->n_fds);
    flow_free(f);
}

/* ---- waiting ---- */
bool flow_turn(struct flow *f, int64_t end_ms)
{
    return loop_turn(f->loop, end_ms);
}

void flow_spin(struct flow *f, int64_t for_ms)
{
    loop_for(f->loop, (int)for_ms);
}

/* ---- Redis ---- */
long long flow_count(struct flow *f, const char *queue, const char *set)
{
    return redis_int(f->server, "ZCARD %s:{%s}:%s", f->space, queue, set);
}

int64_t flow_score(struct flow *f, const char *queue, const char *set, const char *id)
{
    return redis_int(f->server, "ZSCORE %s:{%s}:%s %s", f->space, queue, set, id);
}

long long flow_calls(struct flow *f, const char *command)
{
    long long n = 0;

    for (int i = 0; i < place_masters(f->place); i++) {
        n += redis_calls(place_master(f->place, i), command);
    }
    return n;
}

long long flow_scripts(struct flow *f)
{
    return flow_calls(f, "eval") + flow_calls(f, "evalsha") + flow_calls(f, "eval_ro") +
           flow_calls(f, "evalsha_ro");
}

struct server *flow_server_of(struct flow *f, const char *key)
{
    return place_has_masters() ? cluster_of(f->place->cluster, key) : f->server;
}

long long flow_keys(struct flow *f, const char *pattern)
{
    long long n = 0;

    for (int i = 0; i < place_masters(f->place); i++) {
        n += redis_int(place_master(f->place, i), "EVAL %s 0 %s",
                       "return #redis.call('KEYS', ARGV[1])", pattern);
    }
    return n;
}

static bool is_alone_on(struct server *s)
{
    char *list = redis_str(s, "CLIENT LIST");
    unsigned n = 0;

    for (char *rest = list, *line; (line = strtok_r(rest, "\n", &rest));) {
        n += !strstr(line, " name=sentinel-") && !strstr(line, " flags=S "); /* replicas */
    }
    free(list);
    return n == 1;
}

bool flow_is_alone(struct flow *f)
{
    for (int i = 0; i < place_masters(f->place); i++) {
        if (!is_alone_on(place_master(f->place, i))) {
            return false;
        }
    }
    return true;
}

char *flow_dump(struct flow *f)
{
    static const char script[] =
        "local out, keys = {}, redis.call('KEYS', '*') table.sort(keys) for _, k in ipairs(keys) "
        "do if not string.find(k, ':t:{', 1, true) then " /* canaries */
        "out[#out + 1] = k .. ' ' .. redis.call('PEXPIRETIME', k) .. ' ' .. "
        "redis.sha1hex(redis.call('DUMP', k) or '') end end return table.concat(out, '\\n')";

    return redis_str(f->server, "EVAL %s 0", script);
}
