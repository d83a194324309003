/* SPDX-License-Identifier: MIT */
/* A reply to CLUSTER SLOTS is an array of [first slot, last slot, master, replica, replica...], and
 * a node is [host, port, id, more]. It is read into a new map, which takes the place of the old one
 * when all of it makes sense: half a map would send jobs to nodes that nobody has named. */
#include "redis/slot_map.h"
#include "base/mem.h"
#include <string.h>

enum { PORT_MAX = 65535, ROW_MIN = 3 };

const char slot_map_no_memory[] = "out of memory";

/* ---- places ---- */
static bool place_read(struct slot_place *p, const struct redisReply *node,
                       const struct slot_place *asked)
{
    struct span host = {"", 0};
    int64_t port;

    reply_text(reply_at(node, 0), &host); /* it may be nil */
    if (!reply_int(reply_at(node, 1), &port) || port < 1 || port > PORT_MAX) {
        return false;
    }
    p->port = (int)port;
    return slot_place_set_host(p, host, asked);
}

/* Adds a place unless the map has it. Its index, or -1: there is no memory, or are too many. */
static int map_add_place(struct slot_map *m, const struct slot_place *place)
{
    for (unsigned i = 0; i < m->n_places; i++) {
        if (slot_place_eq(&m->places[i], place)) {
            return (int)i;
        }
    }
    if (m->n_places == SLOT_NODES_MAX) {
        return -1;
    }

    struct slot_place *places = mem_grow(m->places, m->n_places + 1, sizeof *places);
    if (!places) {
        return -1;
    }
    m->places = places;
    m->places[m->n_places] = *place;
    return (int)m->n_places++;
}

/* ---- the map ---- */
static const char *map_read_row(struct slot_map *m, const struct redisReply *row,
                                const struct slot_place *asked)
{
    struct slot_place place;
    int64_t first;
    int64_t last;

    if (reply_len(row) < ROW_MIN || !reply_int(reply_at(row, 0), &first) ||
        !reply_int(reply_at(row, 1), &last)) {
        return "a row is no range of slots";
    }
    if (first < 0 || last >= SLOT_COUNT || first > last) {
        return "a range of slots is none";
    }
    if (!place_read(&place, reply_at(row, 2), asked)) {
        return "a node has no address";
    }

    int owner = map_add_place(m, &place);
    if (owner < 0) {
        return m->n_places == SLOT_NODES_MAX ? "it has over 1000 masters" : slot_map_no_memory;
    }

    for (int64_t slot = first; slot <= last; slot++) {
        if (m->owner[slot]) {
            return "a slot has two masters";
        }
        m->owner[slot] = (uint16_t)(owner + 1);
    }
    return NULL;
}

static const char *map_read_rows(struct slot_map *m, const struct redisReply *reply,
                                 const struct slot_place *asked)
{
    const char *why = reply_len(reply) ? NULL : "no slot has a master";

    for (size_t i = 0; i < reply_len(reply) && !why; i++) {
        why = map_read_row(m, reply_at(reply, i), asked);
    }
    return why;
}

const char *slot_map_read(struct slot_map *m, const struct redisReply *reply,
                          const struct slot_place *asked)
{
    struct slot_map *read = mem_new(sizeof *read, 0);

    if (!read) {
        return slot_map_no_memory;
    }

    const char *why = map_read_rows(read, reply, asked);
    if (!why) {
        mem_free(m->places);
        *m = *read;
        read->places = NULL;
    }
    mem_free(read->places);
    mem_free(read);
    return why;
}

/* Each node may tell the places in an order of its own. */
bool slot_map_eq(const struct slot_map *a, const struct slot_map *b)
{
    unsigned last_a = 0;
    unsigned last_b = 0;

    for (unsigned slot = 0; slot < SLOT_COUNT; slot++) {
        unsigned of_a = a->owner[slot];
        unsigned of_b = b->owner[slot];

        if (of_a == last_a && of_b == last_b) {
            continue;
        }
        if (!of_a || !of_b || !slot_place_eq(&a->places[of_a - 1], &b->places[of_b - 1])) {
            return false;
        }
        last_a = of_a;
        last_b = of_b;
    }
    return true;
}

void slot_map_free(struct slot_map *m)
{
    mem_free(m->places);
    *m = (struct slot_map){0};
}

const struct slot_place *slot_map_owner(const struct slot_map *m, unsigned slot)
{
    unsigned owner = m->owner[slot];
    return owner ? &m->places[owner - 1] : NULL;
}

bool slot_map_set(struct slot_map *m, unsigned slot, const struct slot_place *place)
{
    int owner = map_add_place(m, place);

    if (owner < 0) {
        return false;
    }
    m->owner[slot] = (uint16_t)(owner + 1);
    return true;
}
