/* SPDX-License-Identifier: MIT */
/* Entries of a stream that a dead consumer has, given to another one. */
#include "allocations.h"
#include "ask.h"
#include "listening.h"
#include "proxy.h"
#include <hiredis/hiredis.h>

enum { MANY = 2000, HOUR = 3600000, DAY = 86400000 };

#define STREAM "lapse:{q}:stream"

/* What calls of lapse_adopt() gave. */
struct adopted {
    struct flow *f;
    unsigned calls;
    int err;
    size_t n;       /* of all calls */
    size_t n_calls; /* entries of the last one */
    struct lapse_job *jobs[MANY];
};

static void on_adopted(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                       void *arg)
{
    struct adopted *a = arg;

    (void)l;
    a->calls++;
    a->err = err;
    a->n_calls = n;
    for (size_t i = 0; i < n; i++) {
        cr_assert_lt(a->n, (size_t)MANY);
        a->jobs[a->n] = lapse_job_dup(jobs[i]);
        cr_assert(a->jobs[a->n]);
        a->n++;
    }
}

/* Allocates nothing. */
static void on_counted(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                       void *arg)
{
    struct adopted *a = arg;

    (void)l;
    (void)jobs;
    a->calls++;
    a->err = err;
    a->n_calls = n;
}

static struct lapse_adoption adoption(unsigned n)
{
    return (struct lapse_adoption){
        .size = sizeof(struct lapse_adoption),
        .group = "g",
        .consumer = "me",
        .idle_ms = 1,
        .n = n,
    };
}

/* The error of the call, or of its callback. */
static int adopt(struct adopted *a, const struct lapse_adoption *what)
{
    unsigned calls = a->calls;
    int err = lapse_adopt(a->f->l, "q", what, on_adopted, a);

    if (err) {
        return err;
    }
    flow_until(a->f, a->calls > calls);
    return a->err;
}

static void forget(struct adopted *a)
{
    while (a->n > 0) {
        lapse_job_free(a->jobs[--a->n]);
    }
}

/* Entries i to n, as lapse adds them, given to a consumer that is gone. */
static void given_out(struct flow *f, int first, int n)
{
    static const char script[] =
        "for i = ARGV[1], ARGV[2] do redis.call('XADD', KEYS[1], i .. '-1', 'id', 'j' .. i, "
        "'due_ms', '5', 'try', '1', 'token', '7', 'body', 'b' .. i) end "
        "redis.call('XREADGROUP', 'GROUP', 'g', 'gone', 'STREAMS', KEYS[1], '>')";
    char from[16];
    char to[16];

    snprintf(from, sizeof from, "%d", first);
    snprintf(to, sizeof to, "%d", n);
    redis_do(f->server, "EVAL %s 1 " STREAM " %s %s", script, from, to);
}

/* They were all given out an hour ago. */
static void an_hour_ago(struct flow *f, int first, int n)
{
    static const char script[] =
        "for i = ARGV[1], ARGV[2] do redis.call('XCLAIM', KEYS[1], 'g', 'gone', 0, i .. '-1', "
        "'IDLE', 3600000, 'RETRYCOUNT', 1, 'JUSTID') end";
    char from[16];
    char to[16];

    snprintf(from, sizeof from, "%d", first);
    snprintf(to, sizeof to, "%d", n);
    redis_do(f->server, "EVAL %s 1 " STREAM " %s %s", script, from, to);
}

static struct flow *with_a_stream(int n)
{
    struct flow *f = flow_start(FLOW_FULL);

    cr_assert_eq(flow_configure(f, "q", "forward=stream forward_groups=g", NULL), 0);
    if (n > 0) {
        given_out(f, 1, n);
        an_hour_ago(f, 1, n);
    }
    return f;
}

static long long pending_of(struct flow *f, const char *consumer)
{
    static const char script[] =
        "for _, c in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], 'g')) do "
        "if c[2] == ARGV[1] then return c[4] end end return -1";

    return redis_int(f->server, "EVAL %s 1 " STREAM " %s", script, consumer);
}

/* The ids j1, j2... */
static void in_order(const struct adopted *a, size_t n)
{
    cr_assert_eq(a->n, n);
    for (size_t i = 0; i < n; i++) {
        char id[24];
        snprintf(id, sizeof id, "j%zu", i + 1);
        cr_assert_str_eq(lapse_job_id(a->jobs[i]), id);
    }
}

/* ---- what is moved ---- */
Test(adopt, gives_the_jobs_of_a_dead_consumer_with_all_that_was_forwarded)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct adopted a = {.f = f};
    struct lapse_adoption what = adoption(100);
    struct lapse_spec spec = flow_job_spec("q", "order-1", 0);
    struct flow_answer answer = {.f = f};

    spec.headers = (const struct lapse_header[]){{"trace", "4bf9"}, {"empty", ""}};
    spec.n_headers = 2;
    spec.body = "un\0paid";
    spec.body_len = 7;
    cr_assert_eq(flow_configure(f, "q", "forward_groups=g forward=stream", NULL), 0);
    cr_assert_eq(lapse_forward(f->l, "q", NULL, flow_text_answered, &answer), 0);
    cr_assert_eq(flow_spec(f, &spec, &answer.job), 0);
    int64_t due_ms = answer.job.due_ms;
    flow_until(f, flow_stats(f->l).forwarded == 1);
    redis_do(f->server, "XREADGROUP GROUP g gone STREAMS " STREAM " >");
    char *entry = redis_str(f->server, "EVAL %s 1 " STREAM,
                            "return redis.call('XRANGE', KEYS[1], '-', '+')[1][1]");
    char *token = redis_str(f->server, "EVAL %s 1 " STREAM,
                            "return redis.call('XRANGE', KEYS[1], '-', '+')[1][2][8]");

    flow_poll(f, adopt(&a, &what) == 0 && a.n == 1); /* once it is idle for a ms */
    size_t len;
    const char *body = lapse_job_body(a.jobs[0], &len);
    cr_assert(len == 7 && memcmp(body, "un\0paid", 7) == 0);
    cr_assert_str_eq(lapse_job_header(a.jobs[0], "trace"), "4bf9");
    cr_assert_str_eq(lapse_job_header(a.jobs[0], "empty"), "");
    cr_assert_null(lapse_job_header_name(a.jobs[0], 2));
    cr_assert_str_eq(lapse_job_queue(a.jobs[0]), "q");
    cr_assert_str_eq(lapse_job_id(a.jobs[0]), "order-1");
    cr_assert_str_eq(lapse_job_entry(a.jobs[0]), entry);
    cr_assert_eq(lapse_job_deliveries(a.jobs[0]), 2);
    cr_assert_eq(lapse_job_due_ms(a.jobs[0]), due_ms);
    cr_assert_eq(lapse_job_try(a.jobs[0]), 1);
    cr_assert_eq(lapse_job_token(a.jobs[0]), strtoull(token, NULL, 10));
    cr_assert(lapse_job_state(a.jobs[0]) == 0 && lapse_job_tries(a.jobs[0]) == 0);
    cr_assert_eq(pending_of(f, "me"), 1);
    cr_assert_eq(redis_int(f->server, "XACK " STREAM " g %s", lapse_job_entry(a.jobs[0])), 1);

    free(entry);
    free(token);
    forget(&a);
    flow_end(f, "q");
}

Test(adopt, goes_on_behind_the_last_entry_until_there_are_no_more)
{
    enum { ALL = 250 };
    struct flow *f = with_a_stream(ALL);
    struct adopted a = {.f = f};
    struct lapse_adoption what = adoption(100);

    for (size_t page = 1; page <= 3; page++) {
        cr_assert_eq(adopt(&a, &what), 0);
        cr_assert_eq(a.n_calls, page < 3 ? 100 : 50);
        what.after = a.jobs[a.n - 1];
    }
    in_order(&a, ALL);
    cr_assert_eq(pending_of(f, "me"), ALL);
    cr_assert_eq(adopt(&a, &what), 0);
    cr_assert_eq(a.n_calls, 0);
    for (size_t i = 0; i < ALL; i++) {
        cr_assert_eq(lapse_job_deliveries(a.jobs[i]), 2);
    }
    forget(&a);
    flow_end(f, "q");
}

Test(adopt, leaves_entries_alone_that_were_given_out_a_short_while_ago)
{
    struct flow *f = with_a_stream(20);
    struct adopted a = {.f = f};
    struct lapse_adoption what = adoption(100);

    given_out(f, 21, 40);
    what.idle_ms = 0; /* a minute */
    cr_assert_eq(adopt(&a, &what), 0);
    in_order(&a, 20);
    cr_assert_eq(adopt(&a, &what), 0);
    cr_assert_eq(a.n_calls, 0);
    cr_assert_eq(pending_of(f, "gone"), 20);
    forget(&a);
    flow_end(f, "q");
}

/* A script looks at a thousand. */
Test(adopt, finds_one_old_entry_behind_thousands_of_young_ones)
{
    struct flow *f = with_a_stream(0);
    struct adopted a = {.f = f};
    struct lapse_adoption what = adoption(1);

    given_out(f, 1, 3500);
    an_hour_ago(f, 3400, 3400);
    what.idle_ms = HOUR;
    long long before = flow_scripts(f);
    cr_assert_eq(adopt(&a, &what), 0);
    cr_assert_eq(a.n, 1);
    cr_assert_str_eq(lapse_job_id(a.jobs[0]), "j3400");
    cr_assert_eq(flow_scripts(f) - before, 4);
    forget(&a);
    flow_end(f, "q");
}

/* Those of a script end at 256 KiB. */
Test(adopt, of_large_bodies_gives_as_many_as_were_asked_for)
{
    enum { N = 20 };
    struct flow *f = with_a_stream(0);
    struct adopted a = {.f = f};
    struct lapse_adoption what = adoption(N);

    for (int i = 1; i <= N; i++) {
        redis_do(f->server, "EVAL %s 1 " STREAM " %d",
                 "redis.call('XADD', KEYS[1], ARGV[1] .. '-1', 'id', 'j' .. ARGV[1], 'due_ms', 5, "
                 "'try', 1, 'token', 7, 'body', string.rep('x', 200000))",
                 i);
    }
    redis_do(f->server, "XREADGROUP GROUP g gone STREAMS " STREAM " >");
    an_hour_ago(f, 1, N);
    long long before = flow_scripts(f);
    cr_assert_eq(adopt(&a, &what), 0);
    in_order(&a, N);
    cr_assert_eq(flow_scripts(f) - before, 7); /* of 3, and of the rest */
    forget(&a);
    flow_end(f, "q");
}

Test(adopt, gives_entries_that_another_program_has_added_without_an_id)
{
    static const char *const fields[] = {
        "text x",
        "id a due_ms 5 try 1 token 7",
        "id a{b due_ms 5 try 1 token 7 body x",
        "id a due_ms soon try 1 token 7 body x",
        "id a due_ms 5 try 4294967296 token 7 body x",
        "id a due_ms 5 try -1 token 7 body x",
        "id a due_ms 5 try 1 token 18446744073709551616 body x",
        "id  due_ms 5 try 1 token 7 body x",
        "header:a b id a due_ms 5 try 1 token 7 body x",
    };
    enum { N = sizeof fields / sizeof *fields };
    struct flow *f = with_a_stream(0);
    struct adopted a = {.f = f};
    struct lapse_adoption what = adoption(100);

    for (int i = 0; i < N; i++) {
        redis_do(f->server, "EVAL %s 1 " STREAM " %s",
                 "local f = {} for word in (ARGV[1] .. ' '):gmatch('([^ ]*) ') do f[#f + 1] = word "
                 "end redis.call('XADD', KEYS[1], '*', unpack(f))",
                 fields[i]);
    }
    redis_do(f->server, "XREADGROUP GROUP g gone STREAMS " STREAM " >");
    flow_spin(f, 5);
    cr_assert_eq(adopt(&a, &what), 0);
    cr_assert_eq(a.n, N);
    for (int i = 0; i < N; i++) {
        size_t len;
        lapse_job_body(a.jobs[i], &len);
        cr_assert_str_eq(lapse_job_id(a.jobs[i]), "", "%s", fields[i]);
        cr_assert_null(lapse_job_header_name(a.jobs[i], 0));
        cr_assert(len == 0 && lapse_job_due_ms(a.jobs[i]) == 0 && lapse_job_token(a.jobs[i]) == 0);
        cr_assert(strstr(lapse_job_entry(a.jobs[i]), "-") && lapse_job_deliveries(a.jobs[i]) == 2);
    }
    forget(&a);
    flow_end(f, "q");
}

/* No schedule takes more than 16, or these names. */
Test(adopt, gives_the_first_sixteen_headers_that_are_some)
{
    struct flow *f = with_a_stream(0);
    struct adopted a = {.f = f};
    struct lapse_adoption what = adoption(100);
    char name[8];

    redis_do(
        f->server, "EVAL %s 1 " STREAM,
        "local f = {'id', 'a', 'due_ms', 5, 'try', 1, 'token', 7, 'body', 'x', 'header:', 'x', "
        "'header:a b', 'x', 'header:long', string.rep('x', 256)} for i = 0, 19 do "
        "f[#f + 1] = 'header:h' .. i f[#f + 1] = i end "
        "redis.call('XADD', KEYS[1], '*', unpack(f))");
    redis_do(f->server, "XREADGROUP GROUP g gone STREAMS " STREAM " >");
    flow_poll(f, adopt(&a, &what) == 0 && a.n == 1);
    for (unsigned i = 0; i < 16; i++) {
        snprintf(name, sizeof name, "h%u", i);
        cr_assert_str_eq(lapse_job_header_name(a.jobs[0], i), name);
        cr_assert_str_eq(lapse_job_header(a.jobs[0], name), name + 1);
    }
    cr_assert_null(lapse_job_header_name(a.jobs[0], 16));
    size_t len;
    cr_assert(memcmp(lapse_job_body(a.jobs[0], &len), "x", 1) == 0 && len == 1);
    forget(&a);
    flow_end(f, "q");
}

static void keep_dup(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)err;
    *(struct lapse_job **)arg = lapse_job_dup(job);
}

Test(adopt, goes_on_behind_no_job_but_one_that_was_adopted)
{
    struct flow *f = with_a_stream(2);
    struct adopted a = {.f = f};
    struct lapse_adoption what = adoption(100);
    struct lapse_job *job = NULL;

    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), 0);
    cr_assert_eq(lapse_get(f->l, "q", "a", keep_dup, &job), 0);
    flow_until(f, job);
    cr_assert_str_eq(lapse_job_entry(job), "");
    cr_assert_eq(lapse_job_deliveries(job), 0);
    what.after = job;
    cr_assert_eq(adopt(&a, &what), LAPSE_EINVAL);
    cr_assert_eq(pending_of(f, "gone"), 2);
    lapse_job_free(job);
    flow_end(f, "q");
}

/* ---- consumers that are gone ---- */
/* Redis keeps behind the name of a consumer when it was heard of, 8 bytes of ms. */
static void heard_of_ago(struct flow *f, const char *consumer, int64_t ago_ms)
{
    redisReply *dump = redis_cmd(f->server, "DUMP " STREAM);
    char *at = memmem(dump->str, (size_t)dump->len, consumer, strlen(consumer));
    uint64_t ms = (uint64_t)(redis_now_ms(f->server) - ago_ms);

    cr_assert(at);
    at += strlen(consumer);
    for (int i = 0; i < 8; i++) {
        at[i] = (char)(ms >> (8 * i));
    }
    redis_do(f->server, "DEBUG SET-SKIP-CHECKSUM-VALIDATION 1");
    redis_do(f->server, "RESTORE " STREAM " 0 %b REPLACE", dump->str, (size_t)dump->len);
    freeReplyObject(dump);
}

Test(adopt, removes_consumers_that_have_no_entries_and_have_asked_for_nothing_for_a_day)
{
    struct flow *f = with_a_stream(3);
    struct adopted a = {.f = f};
    struct lapse_adoption what = adoption(100);

    redis_do(f->server, "XGROUP CREATECONSUMER " STREAM " g young");
    redis_do(f->server, "XGROUP CREATECONSUMER " STREAM " g old");
    heard_of_ago(f, "young", DAY - 60000);
    heard_of_ago(f, "old", DAY);
    heard_of_ago(f, "gone", 2 * (int64_t)DAY);
    what.idle_ms = 2 * HOUR; /* no entry is so old */
    cr_assert_eq(adopt(&a, &what), 0);
    cr_assert_eq(pending_of(f, "old"), -1);
    cr_assert_eq(pending_of(f, "young"), 0);
    cr_assert_eq(pending_of(f, "gone"), 3);

    what.idle_ms = 1;
    cr_assert_eq(adopt(&a, &what), 0);
    in_order(&a, 3);
    cr_assert_eq(pending_of(f, "gone"), -1);
    cr_assert_eq(pending_of(f, "young"), 0);
    cr_assert_eq(pending_of(f, "me"), 3);
    forget(&a);
    flow_end(f, "q");
}

/* ---- what goes wrong ---- */
Test(adopt, of_a_queue_without_a_stream_or_without_the_group_is_enoent)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct adopted a = {.f = f};
    struct lapse_adoption what = adoption(100);

    cr_assert_eq(adopt(&a, &what), LAPSE_ENOENT);
    cr_assert_eq(flow_configure(f, "q", "forward=list", NULL), 0);
    cr_assert_eq(adopt(&a, &what), LAPSE_ENOENT);
    cr_assert_eq(flow_configure(f, "q", "forward=stream", NULL), 0);
    cr_assert_eq(adopt(&a, &what), LAPSE_ENOENT);
    cr_assert_eq(flow_configure(f, "q", "forward_groups=h", NULL), 0);
    cr_assert_eq(adopt(&a, &what), LAPSE_ENOENT);
    what.group = "h";
    cr_assert_eq(adopt(&a, &what), 0);
    cr_assert_eq(a.n, 0);
    flow_end(f, "q");
}

Test(adopt, of_a_key_of_another_type_is_refused)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct adopted a = {.f = f};
    struct lapse_adoption what = adoption(100);

    flow_allow_log(f, "WRONGTYPE");
    cr_assert_eq(flow_configure(f, "q", "forward=stream", NULL), 0);
    redis_do(f->server, "SET " STREAM " x");
    cr_assert_eq(adopt(&a, &what), LAPSE_EREFUSED);
    cr_assert_eq(a.n, 0);
    redis_do(f->server, "DEL " STREAM);
    flow_end(f, "q");
}

Test(adopt, works_when_redis_is_out_of_memory)
{
    struct flow *f = with_a_stream(20);
    struct adopted a = {.f = f};
    struct lapse_adoption what = adoption(100);

    redis_do(f->server, "CONFIG SET maxmemory 1");
    cr_assert_eq(adopt(&a, &what), 0);
    redis_do(f->server, "CONFIG SET maxmemory 0");
    in_order(&a, 20);
    forget(&a);
    flow_end(f, "q");
}

/* The first answer brings a hundred entries, or is cut. */
Test(adopt, whose_answer_is_lost_gives_what_came_before_and_may_be_repeated)
{
    enum { N = 120, STEP = 211, LAST = 9000 };
    struct flow *f = with_a_stream(N);
    struct lapse *direct = f->l;
    struct proxy *proxy = proxy_start(f->server);
    struct lapse_options o = flow_options(f);
    unsigned n_lost = 0;

    o.url = proxy->url;
    flow_allow_log(f, "lost the connection");
    for (long bytes = 0; bytes < LAST; bytes += STEP) {
        struct adopted a = {.f = f};
        struct lapse_adoption what = adoption(100);

        f->l = flow_open(f, &o);
        cr_assert_eq(flow_get(f, "q", "nothing", NULL), LAPSE_ENOENT);
        an_hour_ago(f, 1, N);
        proxy_cut_after(proxy, PROXY_DOWN, bytes);
        int err = adopt(&a, &what);
        proxy_cut_after(proxy, PROXY_DOWN, -1);
        cr_assert(err == 0 || err == LAPSE_ELOST, "%s", lapse_strerror(err));
        in_order(&a, a.n);
        cr_assert_eq(pending_of(f, "gone") + pending_of(f, "me"), N);
        cr_assert_geq(pending_of(f, "me"), (long long)a.n);
        n_lost += err != 0;

        forget(&a);
        flow_close(f, f->l, 0);
        f->l = direct;
        an_hour_ago(f, 1, N);
        cr_assert_eq(adopt(&a, &what), 0);
        in_order(&a, 100);
        forget(&a);
    }
    cr_assert_gt(n_lost, 20);
    proxy_stop(proxy);
    flow_end(f, "q");
}

Test(adopt, without_memory_for_an_entry_is_elost_and_gives_those_before_it)
{
    enum { N = 5 };
    struct flow *f = with_a_stream(N);
    struct lapse_adoption what = adoption(100);

    for (long n = 1; n <= N + 1; n++) {
        struct adopted a = {.f = f};
        long live = alloc_live();

        an_hour_ago(f, 1, N);
        alloc_fail(n);
        if (n == 1) {
            cr_assert_eq(adopt(&a, &what), LAPSE_ENOMEM);
            cr_assert_eq(pending_of(f, "gone"), N);
        } else {
            cr_assert_eq(lapse_adopt(f->l, "q", &what, on_counted, &a), 0);
            flow_until(f, a.calls == 1);
            cr_assert_eq(a.err, LAPSE_ELOST);
            cr_assert_eq(a.n_calls, (size_t)(n - 2));
            cr_assert_eq(pending_of(f, "me"), N);
        }
        alloc_fail(0);
        cr_assert_eq(alloc_live(), live);
    }
    flow_end(f, "q");
}

Test(adopt, of_a_handle_that_closes_ends_with_what_was_moved)
{
    struct flow *f = with_a_stream(0);

    given_out(f, 1, 9000); /* nine scripts, none of which finds one that is old enough */
    for (int turns = 0; turns < 12; turns++) {
        struct adopted a = {.f = f};
        struct lapse_adoption what = adoption(100);

        what.idle_ms = DAY;
        f->l = flow_open(f, NULL);
        cr_assert_eq(flow_get(f, "q", "nothing", NULL), LAPSE_ENOENT);
        cr_assert_eq(lapse_adopt(f->l, "q", &what, on_adopted, &a), 0);
        for (int i = 0; i < turns; i++) {
            ev_run(f->loop, EVRUN_ONCE);
        }
        flow_close(f, f->l, 0);
        cr_assert_eq(a.calls, 1);
        cr_assert(a.err == 0 || a.err == LAPSE_ECLOSED || a.err == LAPSE_ELOST, "%s",
                  lapse_strerror(a.err));
    }
    flow_end(f, "q");
}
