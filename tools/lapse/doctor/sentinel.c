/* SPDX-License-Identifier: MIT */
/* Under Sentinel: whether there would be a new master, and whether it would be fit. A replica gets
 * neither the configuration nor the users of its master, so it is looked at as this user. */
#include "doctor/ask.h"
#include "doctor/checks.h"
#include "doctor/report.h"
#include "doctor/visit.h"
#include "cli/message.h"
#include "client/sentinel_sync.h"
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACE_BYTES = 300, FEW = 3, REPLICAS_MAX = 64, CLOCKS_APART_US = 100000 };

struct place {
    char text[PLACE_BYTES]; /* host:port */
    char host[256];
    int port;
};

/* What the Sentinels of the URL say. */
struct watched {
    struct sentinel_sync sync;
    unsigned n_answers;
    unsigned n_sentinels; /* with those that are not in the URL; of the first answer, and so on */
    int64_t quorum;
    int64_t n_replicas;
    int64_t down_ms;
    bool known;
    bool replicas_known;
    struct place replicas[REPLICAS_MAX];
    unsigned n;
};

static void place_set(struct place *p, const char *host, int port)
{
    snprintf(p->host, sizeof p->host, "%s", host);
    p->port = port;
    snprintf(p->text, sizeof p->text, "%s:%d", printable(p->host), port);
}

/* ---- what a Sentinel says ---- */
static const char *map_text(const redisReply *map, const char *name)
{
    size_t n = map && map->type == REDIS_REPLY_ARRAY ? map->elements : 0;

    for (size_t i = 0; i + 1 < n; i += 2) {
        if (is_text_of(map->element[i], name) && is_text(map->element[i + 1])) {
            return map->element[i + 1]->str;
        }
    }
    return "";
}

static int64_t map_int(const redisReply *map, const char *name)
{
    return strtoll(map_text(map, name), NULL, 10);
}

static redisReply *ask_sentinel(struct redis_sync *r, const char *what, const char *master)
{
    const char *argv[] = {"SENTINEL", what, master};

    return redis_sync_command(r, 3, argv, NULL);
}

static void read_state(struct watched *w, struct redis_sync *r)
{
    redisReply *map = ask_sentinel(r, "MASTER", w->sync.address.master);

    w->known = *map_text(map, "quorum") != '\0';
    w->n_sentinels = 1 + (unsigned)map_int(map, "num-other-sentinels");
    w->quorum = map_int(map, "quorum");
    w->n_replicas = map_int(map, "num-slaves");
    w->down_ms = map_int(map, "down-after-milliseconds");
    freeReplyObject(map);
}

static void read_replicas(struct watched *w, struct redis_sync *r)
{
    redisReply *all = ask_sentinel(r, "REPLICAS", w->sync.address.master);

    w->replicas_known = all && all->type == REDIS_REPLY_ARRAY;
    for (size_t i = 0; w->replicas_known && i < all->elements && w->n < REPLICAS_MAX; i++) {
        const redisReply *map = all->element[i];
        place_set(&w->replicas[w->n++], map_text(map, "ip"), (int)map_int(map, "port"));
    }
    freeReplyObject(all);
}

/* Does it name the master that we are connected to? */
static void check_master(struct doctor *d, const struct watched *w, struct redis_sync *r,
                         const char *at)
{
    struct finding f = {.check = "sentinel", .verdict = WARN, .at = at};
    redisReply *place = ask_sentinel(r, "GET-MASTER-ADDR-BY-NAME", w->sync.address.master);
    bool is_place = place && place->type == REDIS_REPLY_ARRAY && place->elements == 2 &&
                    is_text(place->element[0]) && is_text(place->element[1]);

    if (!place) {
        report(d, f, "cannot be asked: %s", printable(r->why));
    } else if (is_error(place)) {
        report(d, f, "%s", printable(place->str));
    } else if (!is_place) {
        report(d, f, "it knows no master of the name %s", printable(w->sync.address.master));
    } else if (strcmp(place->element[0]->str, d->redis.host) != 0 ||
               atoi(place->element[1]->str) != d->redis.port) {
        report(d, f, "it calls %s:%s the master, and others %s:%d",
               printable(place->element[0]->str), printable(place->element[1]->str),
               printable(d->redis.host), d->redis.port);
    }
    freeReplyObject(place);
}

static void ask_each(struct doctor *d, struct watched *w)
{
    for (unsigned i = 0; i < w->sync.address.n_seeds; i++) {
        const struct address_place *seed = &w->sync.address.seeds[i];
        struct finding f = {.check = "sentinel", .verdict = WARN};
        struct redis_sync r;
        struct place at = {.port = 0};

        place_set(&at, seed->host, seed->port);
        f.at = at.text;
        if (sentinel_sync_open(&r, &w->sync, i)) {
            report(d, f, "cannot be asked: %s", printable(r.why));
            continue;
        }
        check_master(d, w, &r, at.text);
        if (w->n_answers++ == 0) {
            read_state(w, &r);
            read_replicas(w, &r);
        }
        redis_sync_close(&r);
    }
}

static void report_state(struct doctor *d, const struct watched *w)
{
    struct finding f = {.check = "sentinel"};

    if (!w->known) {
        f.verdict = WARN;
        report(d, f, "unknown: its user may not run SENTINEL MASTER");
    } else if (w->n_sentinels < w->quorum) {
        f.verdict = FAIL;
        f.fix = "start more Sentinels, or SENTINEL SET NAME quorum N on each";
        report(d, f, "%u run, and the quorum is %" PRId64 ": no replica is ever promoted",
               w->n_sentinels, w->quorum);
    } else if (w->n_replicas == 0) {
        f.verdict = WARN;
        report(d, f, "%u, quorum %" PRId64 ", and no replica that could be promoted",
               w->n_sentinels, w->quorum);
    } else if (w->n_sentinels < FEW) {
        f.verdict = WARN;
        f.fix = "run three, on three machines";
        report(d, f, "%u, quorum %" PRId64 ": when one is gone, no replica is promoted",
               w->n_sentinels, w->quorum);
    } else {
        report(d, f,
               "%u, quorum %" PRId64 ", %" PRId64 " replicas; a master is down after %" PRId64
               " ms (down-after-milliseconds)",
               w->n_sentinels, w->quorum, w->n_replicas, w->down_ms);
    }
}

/* ---- replicas ---- */
static void check_apart(struct doctor *d, int64_t master_ahead_us)
{
    struct finding f = {.check = "clock", .verdict = WARN};
    int64_t ahead_us = 0;

    if (!measure_clock(d, &ahead_us)) {
        return;
    }
    ahead_us -= master_ahead_us;
    if (ahead_us > CLOCKS_APART_US || ahead_us < -CLOCKS_APART_US) {
        f.fix = "timedatectl set-ntp true, on both machines";
        report(d, f,
               "its clock is %.3f s ahead of the master's (less than 0: behind it): due jobs go by "
               "the master's",
               (double)ahead_us / 1e6);
    }
}

static void check_replica(struct doctor *d, struct redis_sync *redis, const char *at,
                          int64_t master_ahead_us)
{
    struct finding f = {.check = "replica", .at = at};
    unsigned n_bad = d->n_verdicts[WARN] + d->n_verdicts[FAIL];
    struct visit v;

    visit_begin(&v, d, redis, at);
    d->is_replica = true;
    if (!d->code) {
        check_rights(d);
        check_flags(d);
        check_memory(d);
        check_persistence(d);
        check_apart(d, master_ahead_us);
    }
    visit_end(&v, d, redis);

    if (d->n_verdicts[WARN] + d->n_verdicts[FAIL] == n_bad) {
        report(d, f, "fit to become the master");
    }
}

static void check_replicas(struct doctor *d, const struct watched *w)
{
    struct finding f = {.check = "replica", .verdict = WARN};
    int64_t master_ahead_us = 0;

    if (!w->replicas_known) {
        report(d, f, "cannot be looked at: the user of Sentinel may not run SENTINEL REPLICAS");
        return;
    }

    measure_clock(d, &master_ahead_us);
    for (unsigned i = 0; i < w->n && !d->code; i++) {
        const struct place *p = &w->replicas[i];
        struct redis_sync redis;
        int code = sentinel_sync_open_server(&redis, &w->sync, p->host, p->port);

        f.at = p->text;
        f.verdict = code == DENIED ? FAIL : WARN;
        if (code == DENIED) {
            report(d, f, "it does not let this user in: %s; users are not replicated",
                   printable(redis.why));
        } else if (code) {
            report(d, f, "cannot be reached: %s", printable(redis.why));
        } else {
            check_replica(d, &redis, p->text, master_ahead_us);
        }
        redis_sync_close(&redis);
    }
}

void check_sentinel(struct doctor *d)
{
    struct watched *w;
    char *texts;

    if (!d->redis.by_sentinel) {
        return;
    }

    w = calloc(1, sizeof *w);
    texts = w ? redis_sync_address(&w->sync.address, &d->g->opts, d->url) : NULL;
    if (!texts) {
        message_print("out of memory");
        free(w);
        d->code = INTERNAL;
        return;
    }

    w->sync.shown = d->redis.shown;
    w->sync.reply_ms = doctor_reply_ms(d);
    ask_each(d, w);
    if (w->n_answers > 0) {
        report_state(d, w);
        check_replicas(d, w);
    }
    redis_sync_address_free(texts, d->url);
    free(w);
}
