/* SPDX-License-Identifier: MIT */
#include "place.h"
#include "cluster.h"
#include "sentinels.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DOWN_MS = 600000, /* longer than any test stops its master, which is not to be given up */
    MASTERS = 3,
    REPLICAS = 1 /* of each master */
};

static bool is_on(const char *name)
{
    const char *given = getenv("LAPSE_TEST_ON");
    return given && strcmp(given, name) == 0;
}

bool place_has_masters(void)
{
    return is_on("masters");
}

/* A test that stops its master wants it back: no replica takes its place. */
static struct cluster *cluster_with_replicas(const char *const *args)
{
    const char *all[SERVER_ARGS + 1] = {"--cluster-replica-no-failover", "yes"};

    for (size_t n = 2; args && *args; args++) {
        cr_assert(n < SERVER_ARGS);
        all[n++] = *args;
    }
    return cluster_start_opts(MASTERS, REPLICAS, all);
}

static void place_in_cluster(struct place *p, struct cluster *cluster)
{
    p->cluster = cluster;
    p->server = cluster_of(p->cluster, "lapse:{q}:due");
    snprintf(p->text, sizeof p->text, "redis+cluster://%s127.0.0.1:%d", server_login(),
             p->server->port);
    p->url = p->text;
}

static void place_by_sentinel(struct place *p, const char *const *args)
{
    p->sentinels = sentinels_start_opts(1, 1, NULL, DOWN_MS, args);
    p->server = p->sentinels->redis[0];
    p->url = p->sentinels->url;
}

/* Proxies go on to its Unix socket, and what is behind them is plain. */
static void place_by_tls(struct place *p, const char *const *args, bool tcp)
{
    tls_needed();
    keys_of_the_run(&p->keys);
    int port = server_free_port();
    const char *const *more = tls_server_args(&p->keys, "good", port, args);
    p->server = tcp ? server_start_tcp(more) : server_start_opts(more);
    snprintf(p->text, sizeof p->text, "rediss://%s127.0.0.1:%d", server_login(), port);
    p->url = p->text;
    p->tls_ca = p->keys.ca;
}

static void place_on_server(struct place *p, const char *const *args, bool tcp)
{
    p->server = tcp ? server_start_tcp(args) : server_start_opts(args);
    p->url = tcp ? p->server->tcp_url : p->server->url;
}

struct place *place_start(const char *const *args, bool tcp)
{
    struct place *p = calloc(1, sizeof *p);

    cr_assert(p);
    if (is_on("cluster")) {
        place_in_cluster(p, cluster_start_opts(1, 0, args));
    } else if (place_has_masters()) {
        place_in_cluster(p, cluster_with_replicas(args));
    } else if (is_on("sentinel")) {
        place_by_sentinel(p, args);
    } else if (is_on("tls")) {
        place_by_tls(p, args, tcp);
    } else {
        place_on_server(p, args, tcp);
    }
    return p;
}

void place_stop(struct place *p)
{
    if (p->cluster) {
        cluster_stop(p->cluster);
    } else if (p->sentinels) {
        sentinels_stop(p->sentinels);
    } else {
        server_stop(p->server);
    }
    free(p);
}

int place_masters(const struct place *p)
{
    return p->cluster ? p->cluster->n_masters : 1;
}

struct server *place_master(const struct place *p, int i)
{
    return p->cluster ? p->cluster->nodes[i].server : p->server;
}

void place_not_in_cluster(const char *why)
{
    if (is_on("cluster") || place_has_masters()) {
        cr_skip_test("in a cluster: %s", why);
    }
}

void place_not_with_masters(const char *why)
{
    if (place_has_masters()) {
        cr_skip_test("with several masters: %s", why);
    }
}

void place_not_by_sentinel(const char *why)
{
    if (is_on("sentinel")) {
        cr_skip_test("by Sentinel: %s", why);
    }
}

void place_not_by_tls(const char *why)
{
    if (is_on("tls")) {
        cr_skip_test("by TLS: %s", why);
    }
}
