/* SPDX-License-Identifier: MIT */
/* Redis keeps the names of a queue's listeners, each until its heartbeat ends. Members are those
 * that hear events and can take jobs. src/lua/README.md says in which order they are; each
 * job is owned by one of them, by its id.
 *
 * Each join or leave is published, and makes all other listeners ask for their rank; anyone may
 * publish it. So a listener asks at most once in APART_MS, and many do not ask in the same moment.
 *
 * A listener without free slots leaves only after FULL_MS: at max_running it would otherwise leave
 * and rejoin, and notify every peer, once per job. Until then the grace covers it. */
#include "listen/membership.h"
#include "job/owner.h"
#include <stdio.h>

enum {
    LIFE_MS = 15000,
    HEARTBEAT_MS = LIFE_MS / 3,
    JITTER_MS = 500,
    RETRY_MS = 300,
    APART_MS = 200,
    FULL_MS = 1000
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

static void membership_ask(struct membership *m, bool join)
{
    m->joined = join;
    m->refresh_us = 0;
    m->asked_us = clock_us();
    m->heartbeat.request.until_us = in_ms(m->context->settings.reply_ms);
    script_heartbeat(m->script, &m->heartbeat, m->key, m->name, join ? LIFE_MS : 0);
}

/* ---- when to ask ---- */
static void membership_set_timer(struct membership *m)
{
    int64_t at_us = m->heartbeat_us;
    int64_t apart_us = m->asked_us + APART_MS * INT64_C(1000);
    int64_t full_end_us = membership_full_end_us(m);

    if (m->left_for_good || m->heartbeat.request.pending) {
        return; /* the answer sets it */
    }

    if (m->refresh_us && m->refresh_us < at_us) {
        at_us = m->refresh_us;
    }
    if (m->joined && full_end_us && full_end_us < at_us) {
        at_us = full_end_us;
    }
    if (m->asked_us && at_us < apart_us) {
        at_us = apart_us;
    }

    int64_t left_us = at_us - clock_us();
    timer_set(&m->timer, left_us > 0 ? left_us / 1000 + 1 : 0);
}

static void on_time(void *arg)
{
    struct membership *m = arg;
    bool join = membership_should_join(m);

    if (m->heartbeat.request.pending || !node_up(node_of(m->script, m->key)) ||
        !(join || m->joined)) {
        return; /* the answer, the connection or a free slot sets the timer again */
    }

    membership_ask(m, join);
}

static void membership_ask_in(struct membership *m, int64_t for_ms)
{
    int64_t at_us = in_ms(for_ms);

    if (!m->refresh_us || at_us < m->refresh_us) {
        m->refresh_us = at_us;
    }

    membership_set_timer(m);
}

void membership_join(struct membership *m)
{
    m->wanted = true;
    membership_ask_in(m, 0);
}

void membership_leave(struct membership *m)
{
    m->wanted = false;
    membership_ask_in(m, 0);
}

void membership_refresh(struct membership *m)
{
    membership_ask_in(m, random_ms(m->n_members / 2));
}

void membership_set_free_slots(struct membership *m, bool any)
{
    m->full_us = any ? 0 : clock_us();

    if (any && !m->joined) {
        membership_ask_in(m, 0);
    } else {
        membership_set_timer(m);
    }
}

/* ---- answers ---- */
static void on_answer(struct heartbeat_request *r, int err, const struct heartbeat_reply *reply)
{
    struct membership *m = CONTAINER(r, struct membership, heartbeat);

    if (m->left_for_good) {
        if (m->joined && node_up(node_of(m->script, m->key))) {
            membership_ask(m, false);
        } else {
            m->events->ended(m->arg);
        }
        return;
    }

    if (err) {
        m->heartbeat_us = in_ms(RETRY_MS);
    } else {
        m->rank = reply->rank < reply->n_live ? reply->rank : -1;
        m->n_members = reply->n_live;
        m->heartbeat_us = in_ms(HEARTBEAT_MS - random_ms(JITTER_MS));
    }

    if (m->wanted != m->joined && !m->full_us) {
        membership_ask_in(m, 0);
    } else {
        membership_set_timer(m);
    }

    m->events->ranked(m->arg, m->rank, m->n_members);
}

void membership_lost_events(struct membership *m)
{
    m->rank = -1;
    m->n_members = 0;
    m->heartbeat_us = 0;
    membership_leave(m);
    m->events->ranked(m->arg, m->rank, m->n_members);
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
    return span_eq(name, m->name);
}

bool membership_is_first(const struct membership *m)
{
    return m->rank <= 0;
}

/* ---- life ---- */
/* Members are ordered by the random bits of their names. The first bit puts those last that do not
 * touch triggers, so that rank 0 does, wherever any member does. */
void membership_make_name(char out[MEMBERSHIP_NAME_MAX], const struct lapse_options *settings)
{
    uint64_t bits = clock_random() >> 1;

    if (settings->flags & LAPSE_NO_ALARM) {
        bits |= UINT64_C(1) << 63;
    }

    snprintf(out, MEMBERSHIP_NAME_MAX, "%s/%016llx", settings->name, (unsigned long long)bits);
}

void membership_init(struct membership *m, const struct membership_spec *spec)
{
    struct context *c = spec->script->context;

    *m = (struct membership){.context = c,
                             .script = spec->script,
                             .key = spec->key,
                             .name = spec->name,
                             .events = spec->events,
                             .arg = spec->arg};
    m->rank = -1;
    m->heartbeat.end = on_answer;
    timer_init(&m->timer, c->loop, on_time, m);
}

void membership_leave_for_good(struct membership *m)
{
    membership_stop(m);
    m->wanted = false;
    if (m->joined && !m->heartbeat.request.pending && node_up(node_of(m->script, m->key))) {
        membership_ask(m, false);
    }
}

void membership_stop(struct membership *m)
{
    m->left_for_good = true;
    timer_stop(&m->timer);
}
