/* SPDX-License-Identifier: MIT */
/* Anyone with access to Redis can send events and notices. They make a listener look, and change
 * nothing. */
#include "handler.h"
#include "listening.h"

static const char EVENT[] = "__keyevent@0__:expired";

/* What the jobs of q are: its sets, records and what is held; not the registry, whose heartbeats go
 * on. */
static char *jobs_of(struct flow *f)
{
    return redis_str(f->server, "EVAL %s 0",
                     "local out = {} for _, k in ipairs({'due', 'run', 'dead', 'jobs', 'attempts', "
                     "'seq'}) do out[#out + 1] = k .. redis.sha1hex(redis.call('DUMP', "
                     "'lapse:{q}:' .. k) or '') end return table.concat(out)");
}

static void same_jobs(struct flow *f, const char *before)
{
    char *after = jobs_of(f);
    cr_assert_str_eq(after, before);
    free(after);
}

static const struct {
    const char *channel, *key;
    size_t len; /* 0: a text */
} foreign_events[] = {
    {"__keyevent@1__:expired", "lapse:{q}:t:future", 0}, /* another database */
    {"__keyevent@00__:expired", "lapse:{q}:t:future", 0},
    {"__keyevent@__:expired", "lapse:{q}:t:future", 0},
    {"__keyevent@0x__:expired", "lapse:{q}:t:future", 0},
    {EVENT, "other:{q}:t:future", 0}, /* another space */
    {EVENT, "laps:{q}:t:future", 0},
    {EVENT, "lapse2:{q}:t:future", 0},
    {EVENT, "{q}:t:future", 0},
    {EVENT, "lapse:{other}:t:future", 0}, /* a queue that we do not handle */
    {EVENT, "lapse:{q:t:future", 0},
    {EVENT, "lapse:q:t:future", 0},
    {EVENT, "lapse:{}:t:future", 0},
    {EVENT, "lapse:{q}:due", 0},
    {EVENT, "lapse:{q}:x:future", 0},
    {EVENT, "lapse:{q}:t:", 0},
    {EVENT, "lapse:{q}:t:a b", 0},
    {EVENT, "lapse:{q}:t:a}b", 0},
    {EVENT, "lapse:{q}:t:fut\0ure", 19},
    {EVENT, "lapse:{q}:t:future\r\nERROR fake\0\x1b[2J", 36},
    {EVENT, "lapse:{q}:t:\xff\xfe", 0},
    {EVENT, "session:42", 0}, /* other programs' keys */
    {EVENT, "", 0},
};
enum { FOREIGN_EVENTS = sizeof foreign_events / sizeof *foreign_events };

/* An id of 256 letters is none, and neither is a queue of 65. */
static void publish_long_names(struct flow *f)
{
    char key[400];

    snprintf(key, sizeof key, "lapse:{q}:t:%0256d", 0);
    redis_do(f->server, "PUBLISH %s %s", EVENT, key);
    snprintf(key, sizeof key, "lapse:{%065d}:t:a", 0);
    redis_do(f->server, "PUBLISH %s %s", EVENT, key);
}

Test(foreign, events_that_are_not_ours_are_counted_and_change_nothing)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};

    cr_assert_eq(flow_schedule(f, "q", "future", 3600000, NULL), 0);
    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    char *before = jobs_of(f);

    for (size_t i = 0; i < FOREIGN_EVENTS; i++) {
        const char *key = foreign_events[i].key;
        size_t len = foreign_events[i].len ? foreign_events[i].len : strlen(key);
        struct lapse_stats was = flow_stats(f->l);

        redis_do(f->server, "PUBLISH %s %b", foreign_events[i].channel, key, len);
        flow_until(f, flow_stats(f->l).foreign_events == was.foreign_events + 1);
        cr_assert_eq(flow_stats(f->l).events, was.events, "event %zu", i);
    }

    publish_long_names(f);
    flow_until(f, flow_stats(f->l).foreign_events == FOREIGN_EVENTS + 2);
    same_jobs(f, before);
    cr_assert_eq(w.n_runs, 0);
    free(before);
    flow_end(f, "q");
}

Test(foreign, an_event_is_ours_by_the_number_of_our_database)
{
    place_not_in_cluster("there is one database");

    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options opts = flow_options(f);
    struct flow_handler w = {.way = FLOW_DONE};
    char url[160];

    snprintf(url, sizeof url, "%s?db=13", f->server->url);
    opts.url = url;
    f->l = flow_open(f, &opts);
    flow_listen(f, "q", &w);
    redis_do(f->server, "SELECT 13");
    flow_until_listeners(f, "q", 1);

    uint64_t foreign = flow_stats(f->l).foreign_events;
    redis_do(f->server, "PUBLISH __keyevent@0__:expired lapse:{q}:t:a");
    redis_do(f->server, "PUBLISH __keyevent@1__:expired lapse:{q}:t:a");
    redis_do(f->server, "PUBLISH __keyevent@130__:expired lapse:{q}:t:a");
    flow_until(f, flow_stats(f->l).foreign_events == foreign + 3);
    cr_assert_eq(flow_stats(f->l).events, 0);
    redis_do(f->server, "PUBLISH __keyevent@13__:expired lapse:{q}:t:a");
    flow_until(f, flow_stats(f->l).events == 1);
    cr_assert_eq(flow_stats(f->l).foreign_events, foreign + 3);
    flow_end(f, "q"); /* audits the database that was selected */
}

Test(foreign, events_of_a_future_job_or_of_none_run_nothing_early)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};

    cr_assert_eq(flow_schedule(f, "q", "future", 3600000, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "other", 3600000, NULL), 0);
    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);

    char *before = jobs_of(f);
    redis_do(f->server, "PUBLISH %s lapse:{q}:t:future", EVENT);
    redis_do(f->server, "PUBLISH %s lapse:{q}:t:other", EVENT);
    redis_do(f->server, "PUBLISH %s lapse:{q}:t:nobody", EVENT);
    flow_until(f, flow_stats(f->l).events == 3);
    cr_assert_eq(flow_get(f, "q", "nobody", NULL), LAPSE_ENOENT); /* behind the claim */
    same_jobs(f, before);
    free(before);

    cr_assert_eq(flow_reschedule(f, "q", "other", lapse_in(50), NULL), 0);
    flow_until(f, w.settled == 1);
    flow_each_once(&w, 1);
    cr_assert_str_eq(w.runs[0].job.id, "other");
    flow_end(f, "q");
}

FLOW_ALL_MODES(foreign, ten_thousand_events_of_one_job_run_it_once)
{
    enum { N = 10000 };
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};

    cr_assert_eq(flow_schedule(f, "q", "future", 3600000, NULL), 0);
    flow_listen(f, "q", &w);
    if (mode != FLOW_NO_EVENTS) {
        flow_until_listeners(f, "q", 1);
    }

    cr_assert_eq(flow_schedule(f, "q", "soon", 150, NULL), 0);
    redis_do(
        f->server, "EVAL %s 0",
        "for i = 1, 5000 do redis.call('PUBLISH', '__keyevent@0__:expired', 'lapse:{q}:t:soon') "
        "redis.call('PUBLISH', '__keyevent@0__:expired', 'lapse:{q}:t:future') end");
    flow_until(f, w.settled == 1);
    if (mode != FLOW_NO_EVENTS) {
        flow_until(f, flow_stats(f->l).events >= N);
    }

    cr_assert_eq(flow_schedule(f, "q", "last", 0, NULL), 0);
    flow_until(f, w.settled == 2);
    flow_each_once(&w, 2);
    cr_assert_eq(flow_count(f, "q", "due"), 1);
    flow_end(f, "q");
}

static const struct {
    const char *text;
    size_t len;
} notices[] = {
    {"", 0},
    {" ", 0},
    {"0", 0},
    {"1", 0},
    {"1 ", 0},
    {"0 future", 0},
    {"0 future future future", 0},
    {"1 future", 0},
    {"99999999999999 future", 0},
    {"999999999999999999999999999999", 0},
    {"999999999999999 x", 0},
    {"-1 future", 0},
    {"0  future ", 0},
    {"0 \xff\x01 {a} future", 0},
    {"0\0future", 8},
    {"\0\0\0", 3},
    {"members", 0},
    {"members members", 0},
    {"1795217976123.5 future", 0},
    {"nan future", 0},
    {"future", 0},
};

/* Of 100,000 bytes: one word; a time and one id; a time and 49,999 ids. */
static void publish_long_notices(struct flow *f)
{
    enum { LEN = 100000 };
    char *text = malloc(LEN + 1);

    cr_assert(text);
    memset(text, 'x', LEN);
    text[LEN] = '\0';
    redis_do(f->server, "PUBLISH lapse:{q}:notice:0 %s", text);

    text[0] = '0';
    text[1] = ' ';
    redis_do(f->server, "PUBLISH lapse:{q}:notice:0 %s", text);

    for (size_t i = 1; i < LEN; i += 2) {
        text[i] = ' ';
    }
    redis_do(f->server, "PUBLISH lapse:{q}:notice:0 %s", text);
    free(text);
}

Test(foreign, no_message_on_the_notice_channel_runs_a_job_early)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};

    cr_assert_eq(flow_schedule(f, "q", "future", 3600000, NULL), 0);
    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    char *before = jobs_of(f);

    for (size_t i = 0; i < sizeof notices / sizeof *notices; i++) {
        const char *text = notices[i].text;
        size_t len = notices[i].len ? notices[i].len : strlen(text);
        cr_assert_eq(redis_int(f->server, "PUBLISH lapse:{q}:notice:0 %b", text, len), 1);
        flow_spin(f, 3);
    }
    publish_long_notices(f);
    same_jobs(f, before);
    cr_assert_eq(w.n_runs, 0);

    cr_assert_eq(flow_schedule(f, "q", "soon", 50, NULL), 0);
    flow_until(f, w.settled == 1);
    flow_each_once(&w, 1);
    free(before);
    flow_end(f, "q");
}

/* Each wake may name a time long gone: the alarm must not ring for it again and again. */
Test(foreign, a_notice_of_a_time_long_past_costs_a_look_and_no_more)
{
    enum { N = 20 };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};

    cr_assert_eq(flow_schedule(f, "q", "future", 3600000, NULL), 0);
    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    flow_spin(f, 200);

    long long before = flow_scripts(f);
    for (int i = 0; i < N; i++) {
        redis_do(f->server, "PUBLISH lapse:{q}:notice:0 1");
    }

    flow_spin(f, 300);

    long long calls = flow_scripts(f) - before;
    cr_assert_leq(calls, 2 * N, "%lld calls for %d wakes", calls, N);
    flow_end(f, "q");
}
