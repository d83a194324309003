/* SPDX-License-Identifier: MIT */
/* Texts that look like Lua, Redis's protocol or a key of another queue are data wherever
 * they go. */
#include "handler.h"

enum { HOUR = 3600000, ID_BYTES = 256 };

static const char *const payloads[] = {
    "x') or redis.call('FLUSHALL') or ('",
    "'); redis.call('FLUSHALL'); --",
    "\"..redis.call('FLUSHALL')..\"",
    "]] redis.call('FLUSHALL') --[[",
    "]=] redis.call('FLUSHALL') --[=[",
    "' .. redis.call('SET', 'victim', 'x') .. '",
    "x\nredis.call('FLUSHALL')\n--",
    "x\r\n*1\r\n$8\r\nFLUSHALL\r\n",
    "\r\n$8\r\nFLUSHALL\r\n",
    "redis.call('FLUSHALL')",
    "return redis.call('DEL', 'victim')",
    "loadstring(\"redis.call('FLUSHALL')\")()",
    "\\') or redis.call('FLUSHALL') or (\\'",
    "\\27; redis.call('FLUSHALL')",
    "%q%s%c%99999d",
    "%1%2%b()%f[%w]",
    "${redis.call('FLUSHALL')}",
    "a} victim",
    "lapse:{victim}:due",
    "*\" ~* +@all",
    "KEYS[1]..'x'",
    "-inf +inf (0 [a WITHSCORES LIMIT 0 -1",
    "1 99 me 1 10 1 1 ", /* what is held, as we write it */
    "nil",
};
enum { PAYLOADS = sizeof payloads / sizeof *payloads };

/* The same without what an id may not have. */
static void id_of(char out[ID_BYTES], const char *payload)
{
    size_t n = 0;

    for (; *payload && n + 1 < ID_BYTES; payload++) {
        if (*payload > ' ' && *payload <= '~' && *payload != '{' && *payload != '}') {
            out[n++] = *payload;
        }
    }
    out[n] = '\0';
}

static void call_each_verb_with(struct flow *f, const char *payload)
{
    char id[ID_BYTES];
    char other[ID_BYTES + 1];
    struct flow_job job;

    id_of(id, payload);
    snprintf(other, sizeof other, "%s2", id);

    struct lapse_spec s = flow_job_spec("q", id, HOUR);
    s.body = payload;
    s.body_len = strlen(payload);
    cr_assert_eq(flow_spec(f, &s, NULL), 0, "%s", id);
    cr_assert_eq(flow_schedule(f, "q", other, HOUR, NULL), 0);

    cr_assert_eq(flow_get(f, "q", id, &job), 0);
    cr_assert_str_eq(job.id, id);
    cr_assert_eq(job.body_len, s.body_len);
    cr_assert(memcmp(job.body, s.body, s.body_len) == 0, "%s", payload);

    cr_assert_eq(flow_cancel(f, "q", other, NULL), 0);
    cr_assert_eq(flow_reschedule(f, "q", id, lapse_in(0), NULL), 0);
}

/* Its body is the reason, and the id as far as it can be. */
static void fail_with_body(struct flow_handler *w, struct lapse_job *job)
{
    size_t len;
    const char *body = lapse_job_body(job, &len);
    char reason[128];
    char id[ID_BYTES];

    snprintf(reason, sizeof reason, "%.*s", (int)len, body);
    id_of(id, reason);
    cr_assert_str_eq(lapse_job_id(job), id);
    lapse_fail(job, reason, flow_on_settled, w);
}

/* There is nothing but our queue, the names of its listeners, and what was there before. */
static void nothing_else_changed(struct flow *f)
{
    static const char count_others[] =
        "local n = 0 for _, k in ipairs(redis.call('KEYS', '*')) do if k ~= 'victim' and "
        "k ~= 'lapse:{}:alive' and k ~= 'lapse:{}:queues' and k:sub(1, 10) ~= 'lapse:{q}:' "
        "then n = n + 1 end end return n";
    char *victim = redis_str(f->server, "GET victim");

    cr_assert_str_eq(victim, "whole");
    cr_assert_eq(redis_int(f->server, "EVAL %s 0", count_others), 0);
    free(victim);
}

Test(hostile_texts, hostile_texts_are_ids_bodies_and_reasons_and_nothing_else)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};

    redis_do(f->server, "SET victim whole");
    for (int i = 0; i < PAYLOADS; i++) {
        call_each_verb_with(f, payloads[i]);
    }

    flow_listen(f, "q", &w);
    flow_until(f, w.n_held == PAYLOADS);
    for (size_t i = 0; i < PAYLOADS; i++) {
        fail_with_body(&w, w.held[i]);
    }
    flow_until(f, w.settled == PAYLOADS);
    cr_assert_eq(w.errors, 0);

    for (int i = 0; i < PAYLOADS; i++) {
        char id[ID_BYTES];
        struct flow_job job;

        id_of(id, payloads[i]);
        cr_assert_eq(flow_get(f, "q", id, &job), 0);
        cr_assert_str_eq(job.reason, payloads[i]);
        cr_assert_eq(job.state, LAPSE_DEAD);
    }

    nothing_else_changed(f);
    redis_do(f->server, "DEL victim");
    flow_end(f, "q");
}

static void hostile_name(struct lapse_options *opts)
{
    opts->name = "')or(redis.call('FLUSHALL'))or('";
}

Test(hostile_texts, a_hostile_name_of_a_listener_is_a_name)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, hostile_name);
    struct flow_handler w = {.way = FLOW_DONE};

    redis_do(f->server, "SET victim whole");
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, w.settled == 1);
    redis_do(f->server, "DEL victim");
    cr_assert_eq(w.errors, 0);
    flow_end(f, "q");
}

Test(hostile_texts, hostile_names_of_queue_and_space_are_refused)
{
    struct flow *f = flow_start(FLOW_FULL);

    for (int i = 0; i < PAYLOADS; i++) {
        struct lapse_options o = flow_options(f);
        struct lapse *l = NULL;
        if (strspn(payloads[i], "abcdefghijklmnopqrstuvwxyz") == strlen(payloads[i])) {
            continue;
        }
        o.space = payloads[i];
        cr_assert_eq(lapse_open(&l, f->loop, &o), LAPSE_EINVAL, "%s", payloads[i]);
        cr_assert_eq(lapse_options_set(&o, "space", payloads[i]), LAPSE_EINVAL);
        struct lapse_spec s = flow_job_spec(payloads[i], "a", HOUR);
        cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL);
        cr_assert_eq(lapse_listen(f->l, payloads[i], NULL, flow_on_job, NULL), LAPSE_EINVAL);
        cr_assert_eq(lapse_depth(f->l, payloads[i], NULL, NULL), LAPSE_EINVAL);
    }

    flow_end(f, "q");
}
