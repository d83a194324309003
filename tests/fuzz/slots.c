/* SPDX-License-Identifier: MIT */
/* What nodes of a cluster say of slots: the reply to CLUSTER SLOTS as bytes of RESP, or an error
 * that says where a slot is. The first byte chooses. */
#include "redis/slot_map.h"
#include "fuzz.h"
#include <hiredis/hiredis.h>

static const struct slot_place asked = {"asked.example", 7000};

static void is_a_place(const struct slot_place *p)
{
    size_t len = strnlen(p->host, sizeof p->host);

    MUST(len > 0 && len < sizeof p->host && p->port >= 1 && p->port <= 65535);
}

static void is_a_map(const struct slot_map *m)
{
    MUST(m->n_places <= SLOT_NODES_MAX);
    for (unsigned slot = 0; slot < SLOT_COUNT; slot++) {
        const struct slot_place *p = slot_map_owner(m, slot);
        MUST(m->owner[slot] <= m->n_places);
        if (p) {
            is_a_place(p);
        }
    }
}

static void read_reply(struct slot_map *m, const struct eat *e)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;

    MUST(reader);
    redisReaderFeed(reader, (const char *)e->at, e->left);
    if (redisReaderGetReply(reader, &reply) == REDIS_OK && reply) {
        bool taken = !slot_map_read(m, reply, &asked);
        is_a_map(m);
        MUST(taken == (m->n_places > 0));
        freeReplyObject(reply);
    }
    redisReaderFree(reader);
}

static void read_error(struct slot_map *m, struct eat *e)
{
    size_t len = e->left;
    char *text = eat_copy(e, len, false);
    struct span error = {text, len};
    struct slot_redirect r;

    if (slot_redirect_read(&r, error, &asked)) {
        is_a_place(&r.place);
        MUST(r.slot < SLOT_COUNT && slot_map_set(m, r.slot, &r.place));
        MUST(slot_map_owner(m, r.slot)->port == r.place.port);
    }
    MUST(slot_of_key(error) < SLOT_COUNT);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slot_map *m = calloc(1, sizeof *m);
    struct eat e = {data, size};

    MUST(m);
    if (eat_byte(&e) == 'R') {
        read_reply(m, &e);
    } else {
        read_error(m, &e);
    }
    slot_map_free(m);
    free(m);
    return 0;
}
