/* SPDX-License-Identifier: MIT */
/* One scene from its beginning to its end, and what must be true then. */
#include "torture.h"
#include "allocations.h"
#include "audit.h"
#include "redis.h"
#include "test.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <unistd.h>

struct server *t_server;
static struct torture t;

static void begin(void)
{
    t_server->redis = NULL; /* the parent's */
    redis_do(t_server, "FLUSHALL");
    redis_do(t_server, "CONFIG SET notify-keyspace-events Ex");
    t.server = t_server;
    snprintf(t.url, sizeof t.url, "%s", t_server->port ? t_server->tcp_url : t_server->url);
    t.opts = lapse_options_init();
    t.opts.url = t.url;
    t.opts.sweep_ms = 200;
    t.opts.lease_ms = 10000;
}

static struct lapse *any_handle(void)
{
    for (int i = 0; i < HANDLES; i++) {
        if (t.handles[i]) {
            return t.handles[i];
        }
    }
    return NULL;
}

static bool probe_ran(void)
{
    for (const struct entry *e = t.ledger; e; e = e->next) {
        if (strcmp(e->id, "probe") == 0) {
            return e->n_done && e->exists != YES;
        }
    }
    return false;
}

/* The handle, or a new one where the scene closed its own, does what it is for. */
static void serves(void)
{
    if (!any_handle()) {
        t_open(&t);
    }

    t.l = any_handle();
    t.want = 0;
    t.then = NULL;
    t_handle(&t, "after", 0, t_done);

    for (int i = 0; !probe_ran(); i++) {
        T_ASSERT(i < 20);
        t_schedule(&t, "after", "probe",
                   0); /* a fault at the very end of the scene may cost a connection: once more */
        t_wait(&t);
        for (int64_t end_ms = test_now_ms() + 500; !probe_ran() && t_turn(&t, end_ms);) {}
    }

    t_wait(&t);
}

static void check_redis(void)
{
    const char *space = t.opts.space ? t.opts.space : "lapse";

    redis_do(t_server, "SELECT %d", t.db);

    for (const struct entry *e = t.ledger; e; e = e->next) {
        long long there = redis_int(t_server, "HEXISTS %s:{%s}:jobs %s", space, e->queue, e->id);
        if (there ? e->exists == NO : e->exists == YES) {
            t_fail("job %s of %s is %s in Redis: %s", e->id, e->queue, there ? "still" : "not",
                   e->tale);
        }
    }

    const char **q = t.queues;
    if (audit(t_server, space, q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7], q[8], q[9], q[10],
              q[11], NULL)) {
        t_fail("the audit finds defects");
    }
}

/* Leaks are counted here: LeakSanitizer of gcc 12 looks for the thread that was before fork(). */
static void check_process(const struct injection *i, long n_live, int n_fds)
{
    const char *where = "?";

    ev_loop_destroy(t.loop);
    redisFree(t_server->redis);
    t_server->redis = NULL;
    if (alloc_live() != n_live) {
        t_fail("%ld blocks are not given back", alloc_live() - n_live);
    }

    bool theirs = i && strcmp(i->what, "hiredis") == 0;
    if (theirs && inject_hiredis_live(&where) == 1 && strcmp(where, "sdsnewlen") == 0) {
        t_lost_outside(where);
    } else if (inject_hiredis_live(&where)) {
        t_fail("%ld blocks of hiredis are not given back, one of %s", inject_hiredis_live(&where),
               where);
    }

    if (fds_open() != n_fds) {
        t_fail("%d descriptors more than before", fds_open() - n_fds);
    }
}

unsigned t_play(const struct scene *s, const struct injection *i, long nth, unsigned seed)
{
    int n_fds = fds_open();
    long n_live = alloc_live();

    begin();
    t.seed = seed;
    inject_arm(i, nth, seed);
    t.opts.reply_ms = inject_outside() ? 400 : 5000;
    t.loop = ev_loop_new(EVFLAG_AUTO);
    T_ASSERT(t.loop);
    s->play(&t);
    inject_disarm();
    t.over = true;

    t_wait(&t);

    if (any_handle()) {
        t_settle_held(&t);
    } else {
        t_drop_held(&t);
    }

    t_wait(&t);
    serves();

    for (int h = 0; h < HANDLES; h++) {
        if (t.handles[h]) {
            t_close(&t, t.handles[h], 5000);
        }
    }

    t_all_closed(&t);
    check_redis();
    check_process(i, n_live, n_fds);

    return t.runs;
}
