/* SPDX-License-Identifier: MIT */
/* lapse_listen() with a pattern: all queues of one beginning, those that are there and those that
 * come. */
#include "allocations.h"
#include "handler.h"
#include "listening.h"
#include "wire.h"

enum { HOUR = 3600000, SOON_MS = 100 };

/* What is looked at rarely is looked at ten times a second. */
static void looks_often(struct lapse_options *o)
{
    o->sweep_ms = SOON_MS / 12;
    if (o->sweep_ms < 10) {
        o->sweep_ms = 10;
    }
}

static void quiet(struct lapse_options *o)
{
    o->sweep_ms = 60000;
}

static void run_in(struct flow *f, const char *queue, struct flow_handler *w)
{
    unsigned want = w->settled + 1;

    cr_assert_eq(flow_schedule(f, queue, NULL, 0, NULL), 0);
    flow_until(f, w->settled == want);
    cr_assert_str_eq(w->runs[w->n_runs - 1].job.queue, queue);
}

/* How often the names of the registry were read. */
static long long reads(struct flow *f)
{
    return flow_calls(f, "zrangebylex");
}

static void enter_many(struct flow *f, const char *prefix, int n)
{
    redis_do(f->server, "EVAL %s 1 lapse:{}:queues %s %d",
             "for i = 1, ARGV[2] do redis.call('ZADD', KEYS[1], 0, ARGV[1] .. i) end", prefix, n);
}

static void listened(struct flow *f, const char *prefix, int n)
{
    char pattern[64];

    snprintf(pattern, sizeof pattern, "lapse:{%s*}:listeners", prefix);
    flow_poll(f, flow_keys(f, pattern) == n);
}

/* The audit has no room for so many names. */
static void forget_tokens(struct flow *f)
{
    redis_do(f->server, "EVAL %s 0",
             "for _, key in ipairs(redis.call('KEYS', 'lapse:{*}:seq')) do redis.call('DEL', key) "
             "end");
}

FLOW_ALL_MODES(pattern, has_the_queues_that_there_are_and_those_that_come)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_handler other = {.way = FLOW_DONE};
    struct lapse *first = f->l;

    cr_assert_eq(flow_schedule(f, "email.a", "there", 0, NULL), 0);
    cr_assert_eq(flow_schedule(f, "emailx", "not", 0, NULL), 0);
    flow_listen(f, "email.*", &w);
    flow_until(f, w.settled == 1);

    f->l = flow_open(f, NULL); /* another process */
    cr_assert_eq(flow_schedule(f, "email.b", "now", 0, NULL), 0);
    cr_assert_eq(flow_schedule(f, "email.c", "soon", 30, NULL), 0);
    flow_until(f, w.settled == 3);
    run_in(f, "email.a", &w);
    flow_each_once(&w, 4);
    cr_assert_eq(flow_count(f, "emailx", "due"), 1);

    f->l = first;
    flow_listen(f, "*", &other);
    flow_until(f, other.settled == 1);
    run_in(f, "email.b", &w);
    flow_end(f, "email.a", "email.b", "email.c", "emailx");
}

/* It is the first of its listener, so no other queue has brought it a place to hear at. */
Test(pattern, that_comes_when_redis_is_known_already_hears_of_new_queues)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quiet);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_enter(f, "email.a");
    flow_listen(f, "email.*", &w);
    flow_until_listeners(f, "email.a", 1);
    flow_calm(f);
    run_in(f, "email.b", &w);
    flow_end(f, "email.a", "email.b");
}

/* ---- whose a queue is ---- */
enum { CALLS = 3 };

/* In each order of the calls. */
Test(pattern, has_no_queue_that_has_its_own_handler_or_a_longer_pattern)
{
    static const char *const names[CALLS] = {"a.*", "a.b.*", "a.b.c"};
    static const int orders[][CALLS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                        {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        struct flow *f = flow_start(FLOW_FULL);
        struct flow_handler w[CALLS] = {{.way = FLOW_DONE}, {.way = FLOW_DONE}, {.way = FLOW_DONE}};
        static const char *const queues[CALLS] = {"a.x", "a.b.x", "a.b.c"};
        int n_listened = 0;

        for (int k = 0; k < CALLS; k++) {
            flow_enter(f, queues[k]);
        }
        for (int k = 0; k < CALLS; k++) {
            int call = orders[i][k];
            flow_listen(f, names[call], &w[call]);
            n_listened = CALLS - call > n_listened ? CALLS - call : n_listened;
            listened(f, "a", n_listened);
        }
        for (int k = 0; k < CALLS; k++) {
            run_in(f, queues[k], &w[k]);
        }
        flow_end(f, "a.x", "a.b.x", "a.b.c");
    }
}

Test(pattern, gets_the_queues_whose_own_handler_or_longer_pattern_has_gone)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w[CALLS] = {{.way = FLOW_DONE}, {.way = FLOW_DONE}, {.way = FLOW_DONE}};

    flow_listen(f, "a.b.c", &w[2]);
    flow_listen(f, "a.b.*", &w[1]);
    flow_listen(f, "a.*", &w[0]);
    run_in(f, "a.b.c", &w[2]);
    run_in(f, "a.b.d", &w[1]);

    cr_assert_eq(lapse_unlisten(f->l, "a.b.d"), LAPSE_ENOENT, "it has no handler of its own");
    cr_assert_eq(lapse_unlisten(f->l, "a.b.c"), 0);
    run_in(f, "a.b.c", &w[1]);
    cr_assert_eq(lapse_unlisten(f->l, "a.b.c"), LAPSE_ENOENT);
    cr_assert_eq(lapse_unlisten(f->l, "a.b.*"), 0);
    cr_assert_eq(lapse_unlisten(f->l, "a.b.*"), LAPSE_ENOENT);
    run_in(f, "a.b.c", &w[0]);
    run_in(f, "a.b.d", &w[0]);

    cr_assert_eq(lapse_unlisten(f->l, "a.*"), 0);
    listened(f, "a", 0);
    cr_assert_eq(flow_schedule(f, "a.b.c", "stays", 0, NULL), 0);
    flow_heard(f);
    flow_calm(f);
    cr_assert_eq(flow_count(f, "a.b.c", "due"), 1);
    flow_end(f, "a.b.c", "a.b.d");
}

/* What a handler has begun it goes on with; what it has not goes back, and uses up no try. */
Test(pattern, leaves_running_jobs_to_their_handler_when_it_goes)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow_handler next = {.way = FLOW_DONE};

    flow_listen(f, "a*", &w);
    cr_assert_eq(flow_schedule(f, "a1", "runs", 0, NULL), 0);
    flow_until(f, w.n_held == 1);
    cr_assert_eq(lapse_unlisten(f->l, "a*"), 0);
    flow_listen(f, "a1", &next);
    run_in(f, "a1", &next);
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(w.errors, 0);
    flow_end(f, "a1");
}

Test(pattern, leaves_a_queue_to_the_claims_that_wait_for_its_jobs)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_claim waits = {.f = f};
    struct flow_claim late = {.f = f};

    cr_assert_eq(lapse_claim(f->l, "a1", 1, HOUR, flow_claimed, &waits), 0);
    flow_until_listeners(f, "a1", 1);
    flow_listen(f, "a*", &w);
    cr_assert_eq(lapse_claim(f->l, "a1", 1, 0, flow_claimed, &late), LAPSE_EEXIST);
    cr_assert_eq(lapse_claim(f->l, "a2", 1, 0, flow_claimed, &late), LAPSE_EEXIST);
    cr_assert_eq(flow_schedule(f, "a1", "claimed", 0, NULL), 0);
    flow_until(f, waits.n == 1);
    flow_claim_done(f, &waits);
    run_in(f, "a2", &w);

    cr_assert_eq(flow_schedule(f, "a1", "later", 0, NULL), 0);
    flow_until(f, w.settled == 2);
    flow_end(f, "a1", "a2");
}

Test(pattern, leaves_a_queue_that_is_forwarded_here)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_answer a = {.f = f};

    flow_listen(f, "a*", &w);
    run_in(f, "a1", &w);
    cr_assert_eq(lapse_forward(f->l, "a1", "list", flow_text_answered, &a), 0);
    cr_assert_eq(flow_wait(f, &a), 0);
    cr_assert_eq(flow_schedule(f, "a1", "moved", 0, NULL), 0);
    flow_poll(f, redis_int(f->server, "LLEN lapse:{a1}:list") == 1);
    cr_assert_eq(w.settled, 1);
    redis_do(f->server, "DEL lapse:{a1}:list");
    cr_assert_eq(flow_configure(f, "a1", "forward=", NULL), 0);
    flow_end(f, "a1");
}

/* ---- what it shares ---- */
Test(pattern, has_one_max_running_for_all_its_queues)
{
    enum { QUEUES = 40, MOST = 3 };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.f = f, .way = FLOW_KEEP};
    struct lapse_listen_options opts = {.size = sizeof opts, .max_running = MOST};
    char queue[16];

    cr_assert_eq(lapse_listen(f->l, "a*", &opts, flow_on_job, &w), 0);
    for (int i = 0; i < 2 * QUEUES; i++) {
        snprintf(queue, sizeof queue, "a%d", i % QUEUES);
        cr_assert_eq(flow_schedule(f, queue, NULL, 0, NULL), 0);
    }

    for (unsigned n = 0; n < 2 * QUEUES; n++) {
        flow_until(f, w.n_held == MOST || w.n_runs == (size_t)2 * QUEUES);
        cr_assert_leq(w.n_held, MOST);
        lapse_done(w.held[--w.n_held], flow_on_settled, &w);
    }
    flow_until(f, w.settled == 2 * QUEUES);
    flow_each_once(&w, (size_t)2 * QUEUES);
    forget_tokens(f);
    flow_end(f, "a1");
}

/* The slots are taken before there are jobs, so that all queues have a backlog. */
Test(pattern, gives_its_weight_and_its_level_to_each_of_its_queues)
{
    enum { SLOTS = 20, JOBS = 60 };
    static const char *const queues[] = {"z.1", "m.1", "h.1"};
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options o = flow_options(f);
    struct lapse_listen_options first = {.size = sizeof first, .weight = 3};
    struct lapse_listen_options last = {.size = sizeof last, .level = 1};
    struct flow_handler block = {.way = FLOW_KEEP};
    struct flow_handler w = {.f = f, .way = FLOW_DONE};

    o.max_running = SLOTS;
    quiet(&o);
    f->l = flow_open(f, &o);
    cr_assert_eq(lapse_listen(f->l, "h.*", &first, flow_on_job, &w), 0);
    cr_assert_eq(lapse_listen(f->l, "m.*", NULL, flow_on_job, &w), 0);
    cr_assert_eq(lapse_listen(f->l, "z.*", &last, flow_on_job, &w), 0);
    for (int i = 0; i < 3; i++) {
        flow_enter(f, queues[i]);
        flow_until_listeners(f, queues[i], 1);
    }

    flow_listen(f, "block", &block);
    for (int i = 0; i < SLOTS; i++) {
        cr_assert_eq(flow_schedule(f, "block", NULL, 0, NULL), 0);
    }
    flow_until(f, block.n_held == SLOTS);
    for (int i = 0; i < 3 * JOBS; i++) {
        cr_assert_eq(flow_schedule(f, queues[i % 3], NULL, 0, NULL), 0);
    }
    flow_calm(f);
    flow_settle(&block, FLOW_DONE);
    flow_until(f, w.settled == 3 * JOBS);

    unsigned n_heavy = 0;
    for (int i = 0; i < JOBS; i++) {
        n_heavy += w.runs[i].job.queue[0] == 'h';
    }
    cr_assert(n_heavy >= JOBS / 2 + 5 && n_heavy <= JOBS - 5, "%u of %d", n_heavy, JOBS);
    for (int i = 0; i < 2 * JOBS; i++) {
        cr_assert_neq(w.runs[i].job.queue[0], 'z', "at %d", i);
    }
    flow_end(f, "h.1", "m.1", "z.1", "block");
}

static int count_before(struct lapse *l, struct lapse_job *job, void *arg)
{
    (void)l;
    (void)job;
    ++*(unsigned *)arg;
    return 0;
}

Test(pattern, has_around_its_handlers_what_all_have)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    unsigned n = 0;

    cr_assert_eq(lapse_around(f->l, count_before, NULL, &n), 0);
    flow_listen(f, "a*", &w);
    run_in(f, "a1", &w);
    run_in(f, "a2", &w);
    cr_assert_eq(n, 2);
    flow_end(f, "a1", "a2");
}

/* ---- bad input ---- */
Test(pattern, has_its_star_at_the_end_and_nowhere_else)
{
#define TEN "0123456789"
    static const char long_name[] = TEN TEN TEN TEN TEN TEN "0123*";
    static const char *const wrong[] = {
        "",   "**",   "a**",  "*a",  "a*b",       "a*b*",
        "a?", "a ?*", "{a}*", "a/*", "\xc3\xa4*", TEN TEN TEN TEN TEN TEN "01234*"};
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.f = f, .way = FLOW_DONE};
    struct lapse_listen_options heavy = {.size = sizeof heavy, .weight = LAPSE_WEIGHT_MAX + 1};
    struct lapse_spec spec = flow_job_spec("a*", "a", 0);
    struct flow_claim claim = {.f = f};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_assert_eq(lapse_listen(f->l, wrong[i], NULL, flow_on_job, &w), LAPSE_EINVAL, "%s",
                     wrong[i]);
        cr_assert_eq(lapse_unlisten(f->l, wrong[i]), LAPSE_EINVAL, "%s", wrong[i]);
    }
    cr_assert_eq(lapse_listen(f->l, "a*", &heavy, flow_on_job, &w), LAPSE_EINVAL);
    cr_assert_eq(lapse_listen(f->l, "a*", NULL, NULL, &w), LAPSE_EINVAL);
    cr_assert_eq(lapse_unlisten(f->l, "a*"), LAPSE_ENOENT);
    cr_assert_eq(lapse_schedule(f->l, &spec, NULL, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_forward(f->l, "a*", NULL, NULL, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_claim(f->l, "a*", 1, 0, flow_claimed, &claim), LAPSE_EINVAL);

    cr_assert_eq(lapse_listen(f->l, "a*", NULL, flow_on_job, &w), 0);
    cr_assert_eq(lapse_listen(f->l, "a*", NULL, flow_on_job, &w), LAPSE_EEXIST);
    cr_assert_eq(lapse_listen(f->l, long_name, NULL, flow_on_job, &w), 0);
    run_in(f, "a1", &w);
    flow_end(f, "a1");
}

/* ---- what it hears ---- */
/* Only the registry says which queues there are. */
Test(pattern, does_not_believe_in_a_queue_without_its_name_in_the_registry)
{
    static const char *const texts[] = {"email.forged",    "email.", "",       "{",
                                        "email.a email.b", "other",  "email.*"};
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quiet);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "email.*", &w);
    run_in(f, "email.a", &w);
    flow_calm(f);

    long long before = reads(f);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        redis_do(flow_server_of(f, "lapse:{}:queues"), "PUBLISH lapse:{}:wake:0 %s", texts[i]);
        flow_heard(f);
        flow_calm(f);
    }
    run_in(f, "email.b", &w); /* its name is heard after these */
    flow_poll(f, reads(f) - before >= 3);
    cr_assert_eq(reads(f) - before, 3, "one a name that it might have");
    listened(f, "email.", 2);
    flow_end(f, "email.a", "email.b");
}

Test(pattern, has_the_queues_behind_a_page_of_names_that_contain_zeros)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quiet);
    struct flow_handler w = {.way = FLOW_DONE};

    redis_do(f->server, "EVAL %s 1 lapse:{}:queues",
             "for i = 1, 250 do redis.call('ZADD', KEYS[1], 0, 'email.a\\0' .. i) end");
    enter_many(f, "email.b", 1);
    flow_listen(f, "email.*", &w);
    listened(f, "email.", 1);
    flow_calm(f);
    cr_assert_leq(reads(f), 2 * (251 / 100 + 1), "at its start, and as it was subscribed");
    flow_end(f, "email.b1");
}

/* A page has a hundred names, and any process may publish them. */
Test(pattern, reads_few_pages_for_many_new_names_at_once)
{
    enum { MANY = 300 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quiet);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "email.*", &w);
    run_in(f, "email.a", &w);
    flow_calm(f);

    long long before = reads(f);
    redis_do(f->server, "EVAL %s 1 lapse:{}:queues %d",
             "for i = 1, ARGV[1] do redis.call('ZADD', KEYS[1], 0, 'email.' .. i) "
             "redis.call('PUBLISH', 'lapse:{}:wake:0', 'email.' .. i) end",
             MANY);
    listened(f, "email.", MANY + 1);
    cr_assert_leq(reads(f) - before, 16 + 1 + MANY / 100 + 2);
    forget_tokens(f);
    flow_end(f, "email.a");
}

/* A thousand queues cost what a thousand cost that are named, and one that comes looks at no
 * other. */
Test(pattern, of_a_thousand_queues_reads_one_name_for_one_that_comes)
{
    enum { MANY = 1000 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quiet);
    struct flow_handler w = {.way = FLOW_DONE};

    enter_many(f, "email.", MANY);
    flow_listen(f, "email.*", &w);
    listened(f, "email.", MANY);
    flow_heard(f);
    flow_calm(f);
    cr_assert_leq(reads(f), 2 * (MANY / 100 + 1), "at its start, and as it was subscribed");

    long long before = reads(f);
    long long scripts = flow_scripts(f);
    run_in(f, "email.new", &w);
    flow_until_listeners(f, "email.new", 1);
    flow_calm(f);
    cr_assert_eq(reads(f) - before, 1);
    cr_assert_leq(flow_scripts(f) - scripts, 10);
    for (int i = 1; i <= 20; i++) {
        char queue[16];
        snprintf(queue, sizeof queue, "email.%d", i * 50);
        run_in(f, queue, &w);
    }
    forget_tokens(f);
    flow_end(f, "email.new");
}

/* ---- what is lost ---- */
Test(pattern, finds_what_came_while_it_was_not_connected)
{
    place_not_with_masters("the proxy is before one of the masters");

    struct wire x;
    struct flow_handler w = {.f = NULL, .way = FLOW_DONE};

    wire_start(&x, FLOW_DONE, NULL);
    w.f = x.f;
    cr_assert_eq(lapse_listen(x.l, "email.*", NULL, flow_on_job, &w), 0);
    run_in(x.f, "email.a", &w);
    wire_lose(&x);
    run_in(x.f, "email.b", &w);
    run_in(x.f, "email.a", &w);
    proxy_drop(x.proxy);
    run_in(x.f, "email.c", &w);
    run_in(x.f, "email.b", &w);
    redis_do(x.f->server, "DEL lapse:{email.a}:seq");
    redis_do(x.f->server, "DEL lapse:{email.b}:seq");
    redis_do(x.f->server, "DEL lapse:{email.c}:seq");
    wire_end(&x);
}

static unsigned n_denied;

static void on_health(struct lapse *l, const struct lapse_health *h, void *arg)
{
    (void)l;
    (void)arg;
    if (h->kind == LAPSE_HEALTH_DENIED && strcmp(h->what, "names") == 0) {
        n_denied++;
    }
}

Test(pattern, of_who_may_not_read_the_registry_has_no_queue_until_it_may)
{
    place_not_with_masters("one of the masters alone has the user");

    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options opts = flow_options(f);
    struct flow_handler w = {.way = FLOW_DONE};
    char url[160];

    redis_do(f->server, "ACL SETUSER some on >secret ~lapse:{*.*}:* ~lapse:{}:alive &* +@all");
    snprintf(url, sizeof url, "unix://some:secret@%s", f->server->socket);
    opts.url = url;
    looks_often(&opts);
    flow_allow_log(f, "enter");
    flow_allow_log(f, "names");
    n_denied = 0;
    f->l = flow_open(f, &opts);
    lapse_on_health(f->l, on_health, NULL);
    flow_listen(f, "email.*", &w);
    flow_listen(f, "by.name", &w);
    flow_until(f, n_denied >= 2);
    run_in(f, "by.name", &w);
    cr_assert_gt(flow_logged(f, "names"), 0);

    redis_do(f->server, "ACL SETUSER some ~lapse:{}:queues");
    redis_do(f->server, "ACL LOG RESET");
    redis_do(f->server, "ZADD lapse:{}:queues 0 email.a");
    run_in(f, "email.a", &w);
    flow_end(f, "email.a", "by.name");
}

/* ---- the registry loses a name ---- */
static int remove_queue(struct flow *f, const char *queue)
{
    struct flow_counts c = {.calls = 0};

    cr_assert_eq(lapse_remove(f->l, queue, LAPSE_FORCE, flow_counted, &c), 0);
    flow_until(f, c.calls > 0);
    return c.err;
}

Test(pattern, lets_go_of_a_queue_that_was_removed_and_takes_it_again_when_it_comes_again)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, looks_often);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "email.*", &w);
    run_in(f, "email.a", &w);
    run_in(f, "email.b", &w);
    cr_assert_eq(remove_queue(f, "email.a"), 0);
    listened(f, "email.", 1);
    run_in(f, "email.b", &w);
    run_in(f, "email.a", &w);
    flow_poll(f, redis_int(f->server, "ZCARD lapse:{}:queues") == 2);
    flow_end(f, "email.a", "email.b");
}

/* As by who has scheduled to it before its name went, and does not know that it has gone. */
Test(pattern, enters_a_queue_of_its_own_again_that_has_jobs_and_no_name)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, looks_often);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "email.*", &w);
    cr_assert_eq(flow_schedule(f, "email.a", "far", HOUR, NULL), 0);
    flow_until_listeners(f, "email.a", 1);
    redis_do(f->server, "ZREM lapse:{}:queues email.a");
    flow_poll(f, redis_int(f->server, "ZCARD lapse:{}:queues") == 1);
    cr_assert_eq(flow_cancel(f, "email.a", "far", NULL), 0);
    flow_end(f, "email.a");
}

/* ---- the end ---- */
Test(pattern, may_be_let_go_of_and_closed_while_its_names_are_read)
{
    enum { ROUNDS = 60 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quiet);
    struct flow_handler w = {.f = f, .way = FLOW_DONE};

    enter_many(f, "a", 250);
    for (int i = 0; i < ROUNDS; i++) {
        cr_assert_eq(lapse_listen(f->l, "a*", NULL, flow_on_job, &w), 0);
        for (int turns = i % 9; turns > 0; turns--) {
            ev_run(f->loop, EVRUN_NOWAIT);
        }
        cr_assert_eq(lapse_unlisten(f->l, "a*"), 0);
    }
    for (int i = 0; i < 20; i++) {
        struct lapse *l = flow_open(f, NULL);
        cr_assert_eq(lapse_listen(l, "a*", NULL, flow_on_job, &w), 0);
        for (int turns = i; turns > 0; turns--) {
            ev_run(f->loop, EVRUN_NOWAIT);
        }
        flow_close(f, l, 5000);
    }
    listened(f, "a", 0);
    flow_end(f, "email.b1"); /* a canary may still be there */
}

Test(pattern, for_which_there_is_no_memory_changes_nothing)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.f = f, .way = FLOW_DONE};
    struct lapse_listen_options opts = {.size = sizeof opts, .max_running = 5};
    unsigned n = 0;
    int err = LAPSE_ENOMEM;

    while (err == LAPSE_ENOMEM) {
        alloc_fail(++n);
        err = lapse_listen(f->l, "a*", &opts, flow_on_job, &w);
        alloc_fail(0);
    }
    cr_assert_eq(err, 0);
    cr_assert_gt(n, 2);
    run_in(f, "a1", &w);
    flow_end(f, "a1");
}
