/* SPDX-License-Identifier: MIT */
/* One scenario from its beginning to its end, and what must be true then. */
#include "scenario.h"
#include "hiredis_memory.h"
#include "allocations.h"
#include "audit.h"
#include "redis.h"
#include "test.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <unistd.h>

struct server *play_server;
static struct play p;

static void begin(void)
{
    play_server->redis = NULL; /* the parent's */
    redis_do(play_server, "FLUSHALL");
    redis_do(play_server, "CONFIG SET notify-keyspace-events Ex");
    p.server = play_server;
    snprintf(p.url, sizeof p.url, "%s",
             play_server->port ? play_server->tcp_url : play_server->url);
    p.opts = lapse_options_init();
    p.opts.url = p.url;
    p.opts.sweep_ms = 200;
    p.opts.lease_ms = 10000;
}

static struct lapse *any_handle(void)
{
    for (int i = 0; i < HANDLES; i++) {
        if (p.handles[i]) {
            return p.handles[i];
        }
    }
    return NULL;
}

static const struct entry *probe(void)
{
    const struct entry *e = p.ledger;

    while (e && strcmp(e->id, "probe") != 0) {
        e = e->next;
    }
    return e;
}

static bool probe_ran(void)
{
    const struct entry *e = probe();
    return e && e->n_done && e->exists != YES;
}

/* The handle, or a new one where the scenario closed its own, does what it is for. */
static void serves(void)
{
    if (!any_handle()) {
        play_open(&p);
    }

    p.l = any_handle();
    p.want = 0;
    p.then = NULL;
    play_handle(&p, "after", 0, play_done);

    for (int i = 0; !probe_ran(); i++) {
        PLAY_ASSERT(i < 20);
        /* a fault at the very end of the scenario may cost a connection: once more */
        play_schedule(&p, "after", "probe", 0);
        play_wait(&p);
        int64_t end_ms = test_now_ms() + (probe()->exists == YES ? 30000 : 500);
        while (!probe_ran() && play_turn(&p, end_ms)) {}
    }

    play_wait(&p);
}

static void check_redis(void)
{
    const char *space = p.opts.space ? p.opts.space : "lapse";

    redis_do(play_server, "SELECT %d", p.db);

    for (const struct entry *e = p.ledger; e; e = e->next) {
        long long there = redis_int(play_server, "HEXISTS %s:{%s}:jobs %s", space, e->queue, e->id);
        if (there ? e->exists == NO : e->exists == YES) {
            play_fail("job %s of %s is %s in Redis: %s", e->id, e->queue, there ? "still" : "not",
                      e->tale);
        }
    }

    const char **q = p.queues;
    if (audit(play_server, space, q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7], q[8], q[9], q[10],
              q[11], NULL)) {
        play_fail("the audit finds defects");
    }
}

/* Leaks are counted here: LeakSanitizer of gcc 12 looks for the thread that was before fork(). */
static void check_process(const struct injection *i, long n_live, int n_fds)
{
    const char *where = "?";

    ev_loop_destroy(p.loop);
    redisFree(play_server->redis);
    play_server->redis = NULL;
    if (alloc_live() != n_live) {
        play_fail("%ld blocks are not given back", alloc_live() - n_live);
    }

    bool theirs = i && strcmp(i->what, "hiredis") == 0;
    if (theirs && hiredis_memory_live(&where) == 1 && strcmp(where, "sdsnewlen") == 0) {
        play_lost_outside(where);
    } else if (hiredis_memory_live(&where)) {
        play_fail("%ld blocks of hiredis are not given back, one of %s",
                  hiredis_memory_live(&where), where);
    }

    if (fds_open() != n_fds) {
        play_fail("%d descriptors more than before", fds_open() - n_fds);
    }
}

unsigned play_scenario(const struct scenario *s, const struct injection *i, long nth, unsigned seed)
{
    int n_fds = fds_open();
    long n_live = alloc_live();

    begin();
    p.seed = seed;
    inject_arm(i, nth, seed);
    p.opts.reply_ms = inject_outside() ? 400 : 5000;
    p.loop = ev_loop_new(EVFLAG_AUTO);
    PLAY_ASSERT(p.loop);
    s->play(&p);
    inject_disarm();
    p.over = true;

    play_wait(&p);

    if (any_handle()) {
        play_settle_held(&p);
    } else {
        play_drop_held(&p);
    }

    play_wait(&p);
    serves();

    for (int h = 0; h < HANDLES; h++) {
        if (p.handles[h]) {
            play_close(&p, p.handles[h], 5000);
        }
    }

    play_all_closed(&p);
    check_redis();
    check_process(i, n_live, n_fds);

    return p.runs;
}
