/* SPDX-License-Identifier: MIT */
/* How many queues of a listener are touched, in the plain sense: each queue lies on memory pages of
 * its own, which are protected, and the first access to one counts. So whatever walks over all
 * queues, be it in a list, a heap or a table, is found here without knowing of it. */
#include "handler.h"
#include "listening.h"
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    QUEUES = 1000,
    JOBS = 20,
    FEW = 30 /* libev's heap of timers touches a handful */
};

/* ---- memory on pages of its own ---- */
static struct block {
    char *at;
    size_t len;
    bool protected;
} blocks[2 * QUEUES];
static size_t n_blocks;
static bool paging;
static size_t queue_size; /* of the first block that lapse_listen() asks for */
static volatile unsigned n_touched;

static void block_protect(struct block *b, bool protect)
{
    mprotect(b->at, b->len, protect ? PROT_NONE : PROT_READ | PROT_WRITE);
    b->protected = protect;
}

static struct block *block_at(const void *p)
{
    for (size_t i = 0; i < n_blocks; i++) {
        struct block *b = &blocks[i];
        if ((const char *)p >= b->at && (const char *)p < b->at + b->len) {
            return b;
        }
    }
    return NULL;
}

static void on_access(int sig, siginfo_t *info, void *context)
{
    struct block *b = block_at(info->si_addr);

    (void)context;
    if (!b || !b->protected) {
        signal(sig, SIG_DFL);
        return;
    }

    block_protect(b, false);
    n_touched++;
}

static void *block_new(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct block *b = &blocks[n_blocks];

    cr_assert_lt(n_blocks, sizeof blocks / sizeof *blocks);
    b->len = (size + page - 1) / page * page;
    b->at = mmap(NULL, b->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(b->at != MAP_FAILED);
    n_blocks++;

    return b->at;
}

static void *paged_alloc(void *old, size_t size)
{
    struct block *b = old ? block_at(old) : NULL;

    if (b) {
        cr_assert_eq(size, 0, "a queue does not grow");
        munmap(b->at, b->len);
        *b = blocks[--n_blocks];
        return NULL;
    }
    if (size == 0) {
        free(old);
        return NULL;
    }

    if (paging && !queue_size) {
        queue_size = size;
    }

    return paging && size == queue_size ? block_new(size) : realloc(old, size);
}

/* ---- queues ---- */
static struct flow *start(const char *const *server_args)
{
    struct sigaction access = {.sa_sigaction = on_access, .sa_flags = SA_SIGINFO};
    struct flow *f = flow_bare(FLOW_STILL, server_args);
    struct lapse_options opts = flow_options(f);

    sigaction(SIGSEGV, &access, NULL);
    lapse_set_allocator(paged_alloc);
    opts.sweep_ms = 60000;
    opts.max_running = 1000;
    f->l = flow_open(f, &opts);

    return f;
}

static const char *name_of(unsigned i)
{
    static char name[16];

    snprintf(name, sizeof name, "q%u", i);
    return name;
}

static void listen_to_many(struct flow *f, unsigned n, struct flow_handler *w)
{
    paging = true;
    for (unsigned i = 0; i < n; i++) {
        flow_listen(f, name_of(i), w);
    }
    paging = false;
    cr_assert_eq(n_blocks, n, "queues are not what was allocated");
}

static void protect_all(void)
{
    for (size_t i = 0; i < n_blocks; i++) {
        block_protect(&blocks[i], true);
    }
    n_touched = 0;
}

static long long heartbeats(struct flow *f)
{
    flow_calm(f);
    return flow_heartbeats(f);
}

/* A heartbeat, of any queue, may touch as many as a job. */
static void has_touched_few(struct flow *f, long long heartbeats_before)
{
    unsigned touched = n_touched;
    long long most = FEW * (1 + heartbeats(f) - heartbeats_before);

    cr_assert_leq(touched, most, "%u queues were touched, at most %lld", touched, most);
}

/* Until they neither enter, nor leave, nor read who else listens: for 400 ms, in which they would
 * have read again, and in which their loop has turned often. */
static void rest(struct flow *f)
{
    int64_t end_ms = test_now_ms() + FLOW_WAIT_MS;
    long long before = -1;

    for (long long now = 0; now != before;) {
        cr_assert(test_now_ms() < end_ms, "the queues never rest");
        before = now;
        for (int i = 0; i < 20; i++) {
            flow_spin(f, 20);
            flow_calm(f);
        }
        now = flow_calls(f, "zrange") + flow_calls(f, "publish");
    }
}

static bool any_listens(struct flow *f)
{
    return flow_keys(f, "*:listeners") > 0;
}

/* The jobs are of one queue, one after the other. */
static void touches_few(struct flow *f, const char *queue, const struct flow_handler *w)
{
    for (unsigned i = 0; i < JOBS; i++) {
        unsigned settled = w->settled;
        int64_t delay_ms = i % 2 * 10;
        long long before = heartbeats(f);

        protect_all();
        cr_assert_eq(flow_schedule(f, queue, NULL, delay_ms, NULL), 0);
        flow_until(f, w->settled == settled + 1);
        has_touched_few(f, before);
    }
}

static void end(struct flow *f)
{
    for (size_t i = 0; i < n_blocks; i++) {
        block_protect(&blocks[i], false);
    }
    redis_do(f->server, "FLUSHALL"); /* the audit knows a few queues by name, not a thousand */
    flow_end(f, "q0");
}

Test(many_queues, a_job_leaves_the_queues_of_others_alone)
{
    struct flow *f = start(NULL);
    struct flow_handler w = {.way = FLOW_DONE};

    listen_to_many(f, QUEUES, &w);
    for (unsigned i = 0; i < QUEUES; i += 100) {
        flow_until_listeners(f, name_of(i), 1);
    }
    flow_until_listeners(f, name_of(QUEUES - 1), 1);
    rest(f);

    touches_few(f, "q500", &w);
    end(f);
}

/* A hint is remembered for each; what is asked meanwhile is no reason to look at them. */
Test(many_queues, that_may_not_claim_are_left_alone)
{
    static const char *const args[] = {"--maxmemory-policy", "allkeys-lru", NULL};
    struct flow *f = start(args);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_allow_log(f, "may evict");
    listen_to_many(f, QUEUES, &w);
    flow_until(f, flow_logged(f, "may evict") == 1);
    int64_t end_ms = test_now_ms() + FLOW_WAIT_MS;
    do { /* who may not claim is no member for long */
        cr_assert(test_now_ms() < end_ms, "who may not claim is a member still");
        rest(f);
    } while (any_listens(f));

    for (unsigned i = 0; i < JOBS; i++) {
        long long before = heartbeats(f);

        protect_all();
        cr_assert_eq(flow_schedule(f, "q500", NULL, 60000, NULL), 0);
        has_touched_few(f, before);
    }

    end(f);
}

/* They live until their jobs are settled. */
Test(many_queues, that_were_stopped_are_left_alone)
{
    enum { STOPPED = 512 };
    struct flow *f = start(NULL);
    struct flow_handler keeps = {.way = FLOW_KEEP};
    struct flow_handler w = {.way = FLOW_DONE};

    listen_to_many(f, STOPPED, &keeps);
    flow_listen(f, "busy", &w);
    for (unsigned i = 0; i < STOPPED; i++) {
        cr_assert_eq(flow_schedule(f, name_of(i), NULL, 0, NULL), 0);
    }
    flow_until(f, keeps.n_held == STOPPED);
    for (unsigned i = 0; i < STOPPED; i++) {
        cr_assert_eq(lapse_unlisten(f->l, name_of(i)), 0);
    }
    rest(f);

    touches_few(f, "busy", &w);

    for (size_t i = 0; i < n_blocks; i++) {
        block_protect(&blocks[i], false);
    }
    flow_settle(&keeps, FLOW_DONE);
    flow_until(f, n_blocks == 0); /* and no longer */
    end(f);
}
