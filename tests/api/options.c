/* SPDX-License-Identifier: MIT */
/* Options, through the door: set by name, given to lapse_open(), seen in what the handle does. */
#include "allocations.h"
#include "audit.h"
#include "handler.h"

enum { HOUR = 3600000 };

static void set(struct lapse_options *o, const char *name, const char *value)
{
    cr_assert_eq(lapse_options_set(o, name, value), 0, "%s=%s", name, value);
}

static void set_by_name(struct flow *f, struct lapse_options *o)
{
    char url[200];

    snprintf(url, sizeof url, "%s?db=2", f->server->url);
    set(o, "url", url);
    set(o, "space", "Space_1");
    set(o, "name", "the-name");
    set(o, "lease_ms", "1m30s");
    set(o, "max_running", "2");
    set(o, "max_pending", "3");
    set(o, "flags", "no_events");
    server_allow(f->server, "~Space_1:{*}:* &Space_1:{*}:notice:* &Space_1:{}:wake:*");
    f->l = flow_open(f, o);
    memset(url, 'x', sizeof url); /* it was copied */
    f->space = "Space_1";
}

Test(options, set_by_name_are_those_of_the_handle)
{
    place_not_in_cluster("there is one database");

    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options o = flow_options(f);
    struct flow_handler w = {.way = FLOW_KEEP};

    set_by_name(f, &o);
    flow_listen(f, "q", &w);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    flow_until(f, w.n_held == 2);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(lapse_get(f->l, "q", "a", NULL, NULL), 0);
    }
    cr_assert_eq(lapse_get(f->l, "q", "a", NULL, NULL), LAPSE_EFULL);

    int64_t lease = lapse_job_until_ms(w.held[0]) * 1000 - lapse_job_claimed_us(w.held[0]);
    cr_assert(lease <= 90000000 && lease > 89999000, "%lld us", (long long)lease);
    redis_do(f->server, "SELECT 2");
    cr_assert_eq(flow_count(f, "q", "run"), 2);

    char *held = redis_str(f->server, "HGET Space_1:{q}:attempts %s", lapse_job_id(w.held[0]));
    cr_assert(strstr(held, " the-name/"), "%s", held);
    free(held);

    char *channels = redis_str(f->server, "PUBSUB NUMPAT");
    cr_assert_str_eq(channels, "0", "no_events");
    free(channels);

    w.way = FLOW_DONE;
    flow_settle(&w, FLOW_DONE);
    flow_until(f, w.settled == 3);
    flow_end(f, "q");
}

Test(options, none_at_all_are_the_defaults)
{
    struct ev_loop *loop = ev_loop_new(0);
    struct lapse *l = NULL;

    alloc_install();
    /* a Redis at the usual place may be there or not */
    cr_assert_eq(lapse_open(&l, loop, NULL), 0);
    lapse_abandon(l);
    cr_assert_eq(alloc_live(), 0);
    ev_loop_destroy(loop);
}

static void refused(struct flow *f, const char *what, struct lapse_options *o)
{
    struct lapse *l = (struct lapse *)f;
    long live = alloc_live();
    int fds = fds_open();

    cr_assert_eq(lapse_open(&l, f->loop, o), LAPSE_EINVAL, "not refused: %s", what);
    cr_assert_eq((void *)l, f, "*out is set only on 0");
    cr_assert_eq(alloc_live(), live);
    cr_assert_eq(fds_open(), fds);
}

/* One field of good options is changed. */
#define REFUSED(change)                \
    do {                               \
        struct lapse_options o = good; \
        o.change;                      \
        refused(f, #change, &o);       \
    } while (0)

static void refused_texts(struct flow *f, struct lapse_options good)
{
    char long_name[66];

    memset(long_name, 'n', 65);
    long_name[65] = '\0';
    REFUSED(url = "");
    REFUSED(url = "http://127.0.0.1");
    REFUSED(url = "redis://");
    REFUSED(url = "redis://:pass word\n@h");
    REFUSED(url = "redis://h:0");
    REFUSED(url = "redis://h:65536");
    REFUSED(url = "unix://");
    REFUSED(url = "unix:///x?db=-1");
    REFUSED(url = "user@h");
    REFUSED(space = "");
    REFUSED(space = "a b");
    REFUSED(space = "{q}");
    REFUSED(space = long_name);
    REFUSED(name = "");
    REFUSED(name = "two words");
    REFUSED(name = long_name);
}

static void refused_numbers(struct flow *f, struct lapse_options good)
{
    REFUSED(size = 0);
    REFUSED(size = sizeof(size_t));
    REFUSED(lease_ms = -1);
    REFUSED(lease_ms = 99);
    REFUSED(lease_ms = INT64_MAX);
    REFUSED(run_ms = 1);
    REFUSED(sweep_ms = 9);
    REFUSED(sweep_ms = -5);
    REFUSED(reply_ms = 49);
    REFUSED(reply_ms = 3600001);
    REFUSED(max_running = 100001);
    REFUSED(max_pending = 10000001);
    REFUSED(max_bytes = 1);
    REFUSED(flags = 8);
    REFUSED(flags = ~0u);
    REFUSED(arm_ahead_ms = -1);
    REFUSED(notify = 2);
}

Test(options, out_of_range_do_not_open)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse *l;
    struct lapse_options good = flow_options(f);

    cr_assert_eq(lapse_open(NULL, f->loop, &good), LAPSE_EINVAL);
    cr_assert_eq(lapse_open(&l, NULL, &good), LAPSE_EINVAL);
    flow_allow_log(f, "the URL is refused: must be redis://");
    refused_texts(f, good);
    refused_numbers(f, good);
    flow_end(f);
}

static void silent(struct lapse_options *opts)
{
    opts->log = NULL;
}

Test(options, without_a_log_nothing_is_printed_and_all_goes_on)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, silent);

    redis_do(f->server, "CONFIG SET maxmemory 1");
    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), LAPSE_EREFUSED);
    redis_do(f->server, "CONFIG SET maxmemory 0");
    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), 0);
    cr_assert_null(f->lines);
    flow_end(f, "q");
}

static void count_line(int level, const char *line, void *arg)
{
    cr_assert(level && strstr(line, "OOM"));
    *(unsigned *)arg += strstr(line, "Redis refused schedule: ") != NULL;
}

Test(options, each_handle_logs_to_its_own_hook)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_options opts = flow_options(f);
    struct lapse *first = f->l;
    unsigned lines = 0;

    opts.log = count_line;
    opts.log_arg = &lines;
    f->l = flow_open(f, &opts);
    redis_do(f->server, "CONFIG SET maxmemory 1");
    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), LAPSE_EREFUSED);
    cr_assert(lines == 1 && !f->lines);
    f->l = first;
    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), LAPSE_EREFUSED);
    cr_assert(lines == 1 && flow_logged(f, "Redis refused schedule: OOM") == 1);
    flow_allow_log(f, "OOM");
    redis_do(f->server, "CONFIG SET maxmemory 0");
    flow_end(f, "q");
}
