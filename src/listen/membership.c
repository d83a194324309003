/* SPDX-License-Identifier: MIT */
/* Redis keeps the names of a queue's listeners: of those that hear events and can take jobs.
 * src/lua/README.md says in which order they are; each job is owned by one of them, by its id,
 * counting those that are alive, which peers.c knows.
 *
 * The names are written by who enters or leaves, which is published, and read by all others then:
 * a plain command. Anyone may publish that, so a listener reads them at most once in APART_MS, and
 * many do not read in the same moment. They are also read once in VERIFY_MS, and when Redis had
 * forgotten us; a member that does not find its name enters again. The member of rank 0 removes the
 * names of the dead.
 *
 * A listener of thousands of queues does not enter all at once, or Redis would do nothing else:
 * memberships wait for their turn. Until then it answers all events, as a listener that is alone
 * does.
 *
 * A listener without free slots leaves only after FULL_MS: at max_running it would otherwise leave
 * and rejoin, and notify every peer, once per job. Until then the grace covers it. */
#include "listen/membership.h"
#include "base/mem.h"
#include "job/owner.h"
#include <stdio.h>
#include <stdlib.h>

enum {
    RETRY_MS = 300,
    APART_MS = 200,
    FULL_MS = 1000,
    VERIFY_MS = 30000,
    READ_COST = 1,     /* of what may be asked for in a time, */
    WRITE_COST = 10,   /* ten times as much of Redis */
    CREDIT_MS = 5,     /* what is added in a millisecond: 500 scripts a second */
    CREDIT_MAX = 1000, /* what is saved up */
    TURN_MS = 20
};

static int64_t in_ms(int64_t ms)
{
    return clock_us() + ms * 1000;
}

static int64_t random_ms(int64_t max_ms)
{
    return (int64_t)(clock_random() % (uint64_t)(max_ms + 1));
}

/* When to leave because no slot is free; 0: some are. */
static int64_t membership_full_end_us(const struct membership *m)
{
    return m->full_us ? m->full_us + FULL_MS * INT64_C(1000) : 0;
}

static bool membership_should_join(const struct membership *m)
{
    int64_t full_end_us = membership_full_end_us(m);
    bool full_for_long = full_end_us && clock_us() >= full_end_us;

    return m->wanted && !full_for_long;
}

static bool membership_up(const struct membership *m)
{
    return node_up(node_of(m->all->script, m->key));
}

/* Is it to be removed? */
static bool membership_misses(const struct membership *m, const struct peer *p)
{
    return peer_is_gone(p) && !membership_is_ours(m, peer_name(p));
}

/* ---- asking ---- */
static void membership_set_beats(struct membership *m)
{
    bool beats = m->wanted || m->joined;

    if (beats && !m->beats) {
        peers_enter(&m->all->peers);
    } else if (!beats && m->beats) {
        peers_leave(&m->all->peers);
    }

    m->beats = beats;
}

static void membership_set_joined(struct membership *m, bool joined)
{
    m->joined = joined;
    membership_set_beats(m);
}

static void membership_set_wanted(struct membership *m, bool wanted)
{
    m->wanted = wanted;
    membership_set_beats(m);
}

static void membership_write(struct membership *m, bool join)
{
    membership_set_joined(m, join);
    m->asked_us = clock_us();
    m->ask_us = 0;
    m->writes = false;

    script_join_clear(&m->join);
    for (size_t i = 0; i < m->n_names; i++) {
        if (membership_misses(m, m->names[i])) {
            script_join_add_gone(&m->join, peer_name(m->names[i]));
        }
    }

    m->join.request.until_us = in_ms(m->all->context->options.reply_ms);
    script_join(m->all->script, &m->join, m->key, m->all->name, join);
}

static void membership_read(struct membership *m)
{
    struct conn *conn = &node_of(m->all->script, m->key)->commands;
    char key[KEYS_MAX];
    const char *argv[] = {"ZRANGE", key, "0", "-1"};
    enum { ARGS = sizeof argv / sizeof *argv };
    size_t lens[ARGS];

    keys_of(key, m->all->context->options.space, m->queue, KEYS_LISTENERS);
    for (size_t i = 0; i < ARGS; i++) {
        lens[i] = strlen(argv[i]);
    }

    m->asked_us = clock_us();
    m->ask_us = 0;
    m->reading = conn_send(conn, &m->read, ARGS, argv, lens);
    if (!m->reading) {
        timer_set(&m->timer, RETRY_MS);
    }
}

static unsigned membership_cost(const struct membership *m)
{
    return m->writes || m->joined != membership_should_join(m) ? WRITE_COST : READ_COST;
}

static void membership_ask(struct membership *m)
{
    bool join = membership_should_join(m);

    if (!join && !m->joined) {
        m->ask_us = 0;
    } else if (m->writes || m->joined != join) {
        membership_write(m, join);
    } else {
        membership_read(m);
    }
}

/* ---- taking turns ---- */
static void memberships_earn(struct memberships *ms)
{
    int64_t for_ms = (clock_us() - ms->credit_us) / 1000;
    int64_t credit = ms->credit + for_ms * CREDIT_MS;

    ms->credit_us += for_ms * 1000;
    ms->credit = credit < CREDIT_MAX ? (unsigned)credit : CREDIT_MAX;
}

static void memberships_ask(struct memberships *ms)
{
    memberships_earn(ms);
    LIST_EACH (i, &ms->waiting) {
        struct membership *m = CONTAINER(i, struct membership, waits);
        const struct conn *conn = &node_of(ms->script, m->key)->commands;
        unsigned cost = membership_cost(m);

        if (!conn_up(conn)) {
            continue;
        }
        if (ms->credit < cost || conn_full(conn)) {
            timer_set(&ms->timer, TURN_MS);
            return;
        }

        ms->credit -= cost;
        list_remove(&m->waits);
        membership_ask(m);
    }
}

static void on_turn(void *arg)
{
    memberships_ask(arg);
}

/* ---- when to ask ---- */
/* The caller has put it among those that wait, if it is time. */
static void membership_set_timer(struct membership *m)
{
    int64_t at_us = m->ask_us;
    int64_t apart_us = m->asked_us + APART_MS * INT64_C(1000);
    int64_t full_end_us = membership_full_end_us(m);

    if (m->left_for_good || membership_pending(m) || !list_empty(&m->waits)) {
        return; /* the answer sets it */
    }

    if (m->joined && full_end_us && (!at_us || full_end_us < at_us)) {
        at_us = full_end_us;
    }
    if (!at_us) {
        timer_stop(&m->timer);
        return;
    }
    if (m->asked_us && at_us < apart_us) {
        at_us = apart_us;
    }

    int64_t left_us = at_us - clock_us();
    if (left_us > 0) {
        timer_set(&m->timer, left_us / 1000 + 1);
        return;
    }

    timer_stop(&m->timer);
    list_insert(&m->all->waiting, &m->waits);
    if (!timer_on(&m->all->timer)) {
        timer_set(&m->all->timer, 0);
    }
}

static void on_time(void *arg)
{
    struct membership *m = arg;

    if (!membership_pending(m) && list_empty(&m->waits) && membership_up(m)) {
        list_insert(&m->all->waiting, &m->waits);
        memberships_ask(m->all);
    }
}

static void membership_ask_in(struct membership *m, int64_t for_ms, bool write)
{
    int64_t at_us = in_ms(for_ms);

    m->writes = m->writes || write;
    if (!m->ask_us || at_us < m->ask_us) {
        m->ask_us = at_us;
    }

    membership_set_timer(m);
}

void membership_join(struct membership *m)
{
    membership_set_wanted(m, true);
    membership_ask_in(m, 0, true);
}

void membership_leave(struct membership *m)
{
    membership_set_wanted(m, false);
    membership_ask_in(m, 0, false);
}

void membership_refresh(struct membership *m)
{
    membership_ask_in(m, random_ms(m->n_members / 2), false);
}

void membership_verify(struct membership *m)
{
    if (m->joined && clock_us() - m->asked_us >= VERIFY_MS * INT64_C(1000)) {
        membership_ask_in(m, 0, false);
    }
}

void membership_set_free_slots(struct membership *m, bool any)
{
    m->full_us = any ? 0 : clock_us();

    if (any && !m->joined) {
        membership_ask_in(m, 0, false);
    } else {
        membership_set_timer(m);
    }
}

/* ---- the names ---- */
static int by_rank(const void *a, const void *b)
{
    return peer_order(peer_name(*(struct peer *const *)a), peer_name(*(struct peer *const *)b));
}

static void membership_drop_names(struct membership *m, struct peer **names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        peers_release(&m->all->peers, names[i]);
    }

    mem_free(names);
}

/* Of an answer, from its element first on. false: out of memory. */
static bool membership_take_names(struct membership *m, const struct redisReply *reply,
                                  size_t first)
{
    struct peer **names = mem_new(sizeof *names, reply_len(reply) * sizeof *names);
    size_t n = 0;

    if (!names) {
        return false;
    }

    for (size_t i = first; i < reply_len(reply); i++) {
        struct span name;
        if (!reply_text(reply_at(reply, i), &name) || name.len >= PEER_NAME_MAX) {
            continue; /* no listener has such a name */
        }

        names[n] = peers_use(&m->all->peers, name);
        if (!names[n]) {
            membership_drop_names(m, names, n);
            return false;
        }
        n++;
    }

    qsort(names, n, sizeof(struct peer *), by_rank);
    membership_drop_names(m, m->names, m->n_names);
    m->names = names;
    m->n_names = n;

    return true;
}

static void membership_set_rank(struct membership *m, int64_t rank, int64_t n_members)
{
    bool changed = rank != m->rank || n_members != m->n_members;

    m->rank = rank;
    m->n_members = n_members;
    if (changed) {
        m->events->ranked(m->arg, rank, n_members);
    }
}

/* Which of those that are alive and take jobs we are. */
static void membership_rank(struct membership *m)
{
    bool is_quiet = m->all->peers.told != LAPSE_TOLD_GO_ON;
    bool is_member = m->joined && m->wanted && !is_quiet;
    int64_t n_alive = 0;
    int64_t rank = -1;
    bool any_gone = false;

    for (size_t i = 0; i < m->n_names; i++) {
        bool ours = membership_is_ours(m, peer_name(m->names[i]));
        bool takes_jobs = m->names[i]->alive && !m->names[i]->quiet;
        bool counts = ours ? is_member : takes_jobs;

        if (ours && is_member) {
            rank = n_alive;
        }
        if (counts) {
            n_alive++;
        }
        any_gone = any_gone || membership_misses(m, m->names[i]);
    }

    membership_set_rank(m, rank, n_alive);

    bool removed = is_member && rank < 0;
    if ((removed || (rank == 0 && any_gone)) && !membership_pending(m)) {
        membership_ask_in(m, 0, true);
    }
}

/* ---- answers ---- */
/* Behind the request to enter that is pending, if one is: then its answer leads here. */
static void membership_leave_now(struct membership *m)
{
    if (m->join.request.pending) {
        return;
    }

    if (m->joined && membership_up(m)) {
        membership_write(m, false);
    } else {
        membership_set_joined(m, false);
    }
}

static void membership_answered(struct membership *m, int err, const struct redisReply *reply,
                                size_t first)
{
    if (m->left_for_good) {
        membership_leave_now(m);
        if (!membership_pending(m)) {
            m->events->ended(m->arg);
        }
        return;
    }

    if (err || !membership_take_names(m, reply, first)) {
        membership_ask_in(m, RETRY_MS, false);
    } else {
        membership_rank(m);
    }

    if (m->wanted != m->joined && !m->full_us) {
        membership_ask_in(m, 0, false);
    } else {
        membership_set_timer(m);
    }
}

static void on_joined(struct join_request *r, int err, const struct join_reply *reply)
{
    struct membership *m = CONTAINER(r, struct membership, join);

    m->writes = m->writes || err != 0;
    membership_answered(m, err, reply ? reply->reply : NULL, 1);
}

static void on_read(struct call *call, int err, const struct redisReply *reply)
{
    struct membership *m = CONTAINER(call, struct membership, read);
    struct span refusal;

    m->reading = false;
    if (!err && reply_error(reply, &refusal)) {
        err = LAPSE_EREFUSED;
    }

    membership_answered(m, err, reply, 0);
}

void membership_lost_events(struct membership *m)
{
    membership_set_rank(m, -1, 0);
    membership_leave(m);
}

/* ---- who answers ---- */
bool membership_owns(const struct membership *m, struct span id)
{
    if (m->rank < 0) {
        return m->n_members == 0;
    }

    return owner_of(id, m->n_members) == m->rank;
}

bool membership_is_ours(const struct membership *m, struct span name)
{
    return span_eq(name, m->all->name);
}

bool membership_is_first(const struct membership *m)
{
    return m->rank <= 0;
}

/* ---- life ---- */
/* Members are ordered by the random bits of their names. The first bit puts those last that do not
 * touch triggers, so that rank 0 does, wherever any member does. */
void membership_make_name(char out[PEER_NAME_MAX], const struct lapse_options *options)
{
    uint64_t bits = clock_random() >> 1;

    if (options->flags & LAPSE_NO_ALARM) {
        bits |= UINT64_C(1) << 63;
    }

    snprintf(out, PEER_NAME_MAX, "%s/%016llx", options->name, (unsigned long long)bits);
}

void membership_init(struct membership *m, const struct membership_spec *spec)
{
    struct memberships *ms = spec->all;

    *m = (struct membership){.all = ms,
                             .queue = spec->queue,
                             .key = spec->key,
                             .events = spec->events,
                             .arg = spec->arg};
    m->rank = -1;
    m->join.end = on_joined;
    m->read.end = on_read;
    list_init(&m->waits);
    list_insert(&ms->all, &m->node);
    timer_init(&m->timer, ms->context->loop, on_time, m);
}

void membership_leave_for_good(struct membership *m)
{
    membership_stop(m);
    membership_set_wanted(m, false);
    membership_leave_now(m);
}

void membership_stop(struct membership *m)
{
    m->left_for_good = true;
    list_remove(&m->node);
    list_remove(&m->waits);
    timer_stop(&m->timer);
}

void membership_free(struct membership *m)
{
    membership_drop_names(m, m->names, m->n_names);
}

/* ---- all memberships ---- */
static void on_changed(void *arg)
{
    struct memberships *ms = arg;

    LIST_EACH (i, &ms->all) {
        membership_rank(CONTAINER(i, struct membership, node));
    }
}

static void on_forgotten(void *arg)
{
    struct memberships *ms = arg;

    LIST_EACH (i, &ms->all) {
        membership_refresh(CONTAINER(i, struct membership, node));
    }
}

static void on_told(void *arg, enum lapse_told what)
{
    struct memberships *ms = arg;

    on_changed(ms);
    ms->told(ms->arg, what);
}

void memberships_init(struct memberships *ms, struct script *script, struct span name)
{
    static const struct peers_events events = {on_changed, on_forgotten, on_told};

    *ms = (struct memberships){.context = script->context, .script = script, .name = name};
    ms->credit = CREDIT_MAX;
    ms->credit_us = clock_us();
    list_init(&ms->all);
    list_init(&ms->waiting);
    timer_init(&ms->timer, script->context->loop, on_turn, ms);
    peers_init(&ms->peers, script, name, &events, ms);
}

void memberships_up(struct memberships *ms)
{
    peers_up(&ms->peers);
}

void memberships_go_on(struct memberships *ms)
{
    memberships_ask(ms);
}

void memberships_stop(struct memberships *ms)
{
    timer_stop(&ms->timer);
    peers_stop(&ms->peers);
}

void memberships_close(struct memberships *ms)
{
    peers_close(&ms->peers);
}
