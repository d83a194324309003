/* SPDX-License-Identifier: MIT */
/* Which nodes a cluster has, by the reply to CLUSTER SLOTS: an array of [first slot, last slot,
 * master, replica...], where a node is [host, port, id, more]. It leaves out masters without slots,
 * and replicas that are dead, or of which no data was heard yet; CLUSTER NODES has them, if this
 * user may ask for it: lines of ID HOST:PORT@BUS FLAGS MASTER and more. */
#include "client/cluster_sync.h"
#include "cli/message.h"
#include "cli/values.h"
#include "command.h"
#include "redis/redis_error.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NODES_MAX = 1000, AGAIN_US = 50000 };

/* ---- the reply ---- */
static bool is_number(const redisReply *r, long long most)
{
    return r->type == REDIS_REPLY_INTEGER && r->integer >= 0 && r->integer <= most;
}

static bool is_node(const redisReply *r)
{
    return r->type == REDIS_REPLY_ARRAY && r->elements >= 3 && is_number(r->element[1], 65535) &&
           r->element[2]->str;
}

static int find_node(const struct cluster_sync *c, const char *id)
{
    for (int i = 0; i < c->n; i++) {
        if (strcmp(c->nodes[i].id, id) == 0) {
            return i;
        }
    }
    return -1;
}

/* Its index; -1: there is no room. */
static int add_node(struct cluster_sync *c, const char *id, const char *host, int port)
{
    struct cluster_node *node = &c->nodes[c->n];

    if (c->n == NODES_MAX || strlen(id) >= CLUSTER_ID) {
        return -1;
    }

    *node = (struct cluster_node){.master = -1, .port = port};
    snprintf(node->id, sizeof node->id, "%s", id);
    snprintf(node->host, sizeof node->host, "%s", host);
    snprintf(node->place, sizeof node->place, "%.256s:%d", printable(node->host), port);
    return c->n++;
}

static void add_replica(struct cluster_sync *c, int i, int master)
{
    c->nodes[i].master = master;
    c->nodes[master].n_replicas++;
}

/* The index of a node that is new, or was named before; -1: there is no room. asked: who said so
 * has the host of a node without one. */
static int node_of(struct cluster_sync *c, const redisReply *r, const struct redis_sync *asked)
{
    const char *host = r->element[0]->str;
    int i = find_node(c, r->element[2]->str);

    if (i >= 0) {
        return i;
    }
    return add_node(c, r->element[2]->str, host && *host ? host : asked->host,
                    (int)r->element[1]->integer);
}

static bool read_row(struct cluster_sync *c, const redisReply *row, const struct redis_sync *asked)
{
    int master = -1;

    if (row->type != REDIS_REPLY_ARRAY || row->elements < 3 ||
        !is_number(row->element[0], SLOT_COUNT - 1) ||
        !is_number(row->element[1], SLOT_COUNT - 1)) {
        return false;
    }

    for (size_t i = 2; i < row->elements; i++) {
        int before = c->n;
        int node = is_node(row->element[i]) ? node_of(c, row->element[i], asked) : -1;
        if (node < 0) {
            return false;
        }
        if (i == 2) {
            master = node;
        } else if (node == before) {
            add_replica(c, node, master);
        }
    }

    for (long long slot = row->element[0]->integer; slot <= row->element[1]->integer; slot++) {
        c->owners[slot] = (uint16_t)(master + 1);
        c->nodes[master].n_slots++;
    }
    return true;
}

static bool is_denied(const redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_ERROR &&
           redis_error_of(span_of(reply->str)) == REDIS_ERROR_DENIED;
}

/* Why it is none; "": it is one. */
static void read_nodes(struct cluster_sync *c, const redisReply *reply,
                       const struct redis_sync *asked, char why[REDIS_WHY])
{
    bool good = reply && reply->type == REDIS_REPLY_ARRAY && reply->elements > 0;

    c->n = 0;
    memset(c->owners, 0, sizeof c->owners);
    for (size_t i = 0; good && i < reply->elements; i++) {
        good = read_row(c, reply->element[i], asked);
    }

    *why = '\0';
    if (!reply) {
        snprintf(why, REDIS_WHY, "no answer");
    } else if (is_denied(reply)) {
        snprintf(why, REDIS_WHY, "this user lacks +cluster|slots: %s", reply->str);
    } else if (reply->type == REDIS_REPLY_ERROR) {
        snprintf(why, REDIS_WHY, "CLUSTER SLOTS: %s%s", reply->str,
                 strstr(reply->str, "cluster support disabled")
                     ? " (it is no node of a cluster: give redis:// for a single Redis)"
                     : "");
    } else if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 0) {
        snprintf(why, REDIS_WHY, "it knows no node that has slots");
    } else if (!good) {
        snprintf(why, REDIS_WHY, "its answer to CLUSTER SLOTS makes no sense");
    }
}

/* Adds the node of a line of CLUSTER NODES, if it is new: a master, which has no slots then; or a
 * replica of a master that is known. False: it is a master that could not be added. */
static bool read_line(struct cluster_sync *c, const char *line, bool masters)
{
    char id[CLUSTER_ID];
    char place[300];
    char flags[100];
    char master[CLUSTER_ID];

    if (sscanf(line, "%47s %299s %99s %47s", id, place, flags, master) != 4) {
        return true;
    }
    place[strcspn(place, "@")] = '\0';
    char *port = strrchr(place, ':');
    int of = find_node(c, master);
    if (find_node(c, id) >= 0 || !strstr(flags, masters ? "master" : "slave") ||
        (!masters && of < 0)) {
        return true;
    }
    if (!port || port == place) {
        return !masters;
    }

    *port++ = '\0';
    int i = add_node(c, id, place, atoi(port));
    if (i >= 0 && !masters) {
        add_replica(c, i, of);
    }
    return i >= 0;
}

static bool read_lines(struct cluster_sync *c, const char *line, bool masters)
{
    bool all = true;

    for (; *line; line += strspn(line, "\n")) {
        all = read_line(c, line, masters) && all;
        line += strcspn(line, "\n");
    }
    return all;
}

static void read_others(struct cluster_sync *c, struct redis_sync *asked)
{
    static const char *const argv[] = {"CLUSTER", "NODES"};
    redisReply *reply = redis_sync_command(asked, 2, argv, NULL);

    c->knows_masters = false;
    if (reply && reply->type == REDIS_REPLY_STRING) {
        c->knows_masters = read_lines(c, reply->str, true);
        read_lines(c, reply->str, false);
    }
    freeReplyObject(reply);
}

/* ---- connections ---- */
int cluster_sync_connect_to(const struct cluster_sync *c, const char *host, int port,
                            struct redis_sync *r)
{
    struct address one = c->address;

    one.host = (char *)(uintptr_t)host;
    one.port = port;
    return redis_sync_open_quietly(r, &one, c->shown, c->reply_ms);
}

int cluster_sync_connect(const struct cluster_sync *c, int node, struct redis_sync *r)
{
    return cluster_sync_connect_to(c, c->nodes[node].host, c->nodes[node].port, r);
}

/* The nodes of the URL, one after the other. why: none of them says, and this is the reason of the
 * last. */
static int ask_seeds(struct cluster_sync *c, char why[REDIS_WHY])
{
    static const char *const argv[] = {"CLUSTER", "SLOTS"};
    int code = DOWN;

    for (unsigned i = 0; i < c->address.n_seeds; i++) {
        const struct address_place *seed = &c->address.seeds[i];
        struct redis_sync r;
        char text[REDIS_WHY];

        code = cluster_sync_connect_to(c, seed->host, seed->port, &r);
        snprintf(text, sizeof text, "%s", r.why);
        if (!code) {
            redisReply *reply = redis_sync_command(&r, 2, argv, NULL);
            read_nodes(c, reply, &r, text);
            code = *text ? DOWN : DONE;
            code = is_denied(reply) ? DENIED : code;
            freeReplyObject(reply);
        }
        if (!code) {
            read_others(c, &r);
            redis_sync_close(&r);
            return DONE;
        }
        redis_sync_close(&r);
        snprintf(why, REDIS_WHY, "%.200s:%d: %.400s", seed->host, seed->port, text);
    }

    return code;
}

bool cluster_sync_is_url(const char *url)
{
    struct address_parts parts;

    return address_split(&parts, url) && parts.kind == ADDRESS_CLUSTER;
}

int cluster_sync_open(struct cluster_sync *c, const struct lapse_options *o, int64_t wait_ms)
{
    int64_t until_ms = monotonic_ms() + wait_ms;
    char why[REDIS_WHY];
    int code;

    c->nodes = calloc(NODES_MAX, sizeof *c->nodes);
    c->texts = redis_sync_address(&c->address, o, c->url);
    if (!c->nodes || !c->texts) {
        message_print("out of memory");
        return INTERNAL;
    }

    c->address.kind = ADDRESS_REDIS; /* of each node */
    code = ask_seeds(c, why);
    while (code == DOWN && monotonic_ms() < until_ms) {
        usleep(AGAIN_US);
        code = ask_seeds(c, why);
    }
    if (code == DENIED) {
        message_print("the cluster refuses this user: %s: %s", printable(c->shown), printable(why));
    } else if (code) {
        message_print("the cluster could not be reached: %s: %s; set its URL with -u or LAPSE_URL",
                      printable(c->shown), printable(why));
    }
    return code;
}

void cluster_sync_close(struct cluster_sync *c)
{
    if (c->texts) {
        redis_sync_address_free(c->texts, c->url);
    }
    free(c->nodes);
}
