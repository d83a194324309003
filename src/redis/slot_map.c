/* SPDX-License-Identifier: MIT */
/* A reply to CLUSTER SLOTS is an array of [first slot, last slot, master, replica, replica...], and
 * a node is [host, port, id, more]. It is read into a new map, which takes the place of the old one
 * when all of it makes sense: half a map would send jobs to nodes that nobody has named. */
#include "redis/slot_map.h"
#include "base/mem.h"
#include <string.h>

enum { CRC16_POLYNOMIAL = 0x1021, PORT_MAX = 65535, ROW_MIN = 3 };

const char slot_map_no_memory[] = "out of memory";

/* ---- the slot of a key ---- */
/* CRC16 of XMODEM. A key is hashed once in a while, so it needs no table. */
static unsigned crc16(struct span s)
{
    unsigned crc = 0;

    for (size_t i = 0; i < s.len; i++) {
        crc ^= (unsigned)(unsigned char)s.at[i] << 8;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc & 0x8000 ? crc << 1 ^ CRC16_POLYNOMIAL : crc << 1;
        }
    }
    return crc & 0xffff;
}

unsigned slot_of_key(struct span key)
{
    struct span tag = key;
    struct span before;

    if (span_cut(&tag, '{', &before) && span_cut(&tag, '}', &before) && before.len > 0) {
        return crc16(before) % SLOT_COUNT;
    }
    return crc16(key) % SLOT_COUNT;
}

/* ---- places ---- */
bool slot_place_eq(const struct slot_place *a, const struct slot_place *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

/* A host that is missing or empty is that of asked. A node that does not know its own name says
 * "?", and is nowhere. */
static bool place_set_host(struct slot_place *p, struct span host, const struct slot_place *asked)
{
    if (host.len == 0) {
        host = span_of(asked->host);
    }
    if (host.len == 0 || host.len >= sizeof p->host || span_is(host, "?")) {
        return false;
    }

    for (size_t i = 0; i < host.len; i++) {
        if (host.at[i] <= ' ' || host.at[i] > '~') {
            return false;
        }
    }

    memcpy(p->host, host.at, host.len);
    p->host[host.len] = '\0';
    return true;
}

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
    return place_set_host(p, host, asked);
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

/* ---- MOVED and ASK ---- */
/* "HOST:PORT", "::1:7000", ":7000" */
static bool redirect_read_place(struct slot_place *p, struct span text,
                                const struct slot_place *asked)
{
    const char *colon = memrchr(text.at, ':', text.len);
    int64_t port;

    if (!colon) {
        return false;
    }

    struct span host = {text.at, (size_t)(colon - text.at)};
    struct span digits = {colon + 1, text.len - host.len - 1};
    if (!span_decimal(digits, PORT_MAX, &port) || port == 0) {
        return false;
    }
    p->port = (int)port;
    return place_set_host(p, host, asked);
}

bool slot_redirect_read(struct slot_redirect *r, struct span error, const struct slot_place *asked)
{
    struct span number;
    int64_t slot;

    r->asks = span_skip(&error, "ASK ");
    if (!r->asks && !span_skip(&error, "MOVED ")) {
        return false;
    }
    if (!span_cut(&error, ' ', &number) || !span_decimal(number, SLOT_COUNT - 1, &slot)) {
        return false;
    }
    r->slot = (unsigned)slot;
    return redirect_read_place(&r->place, error, asked);
}
