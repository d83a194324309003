/* SPDX-License-Identifier: MIT */
#include "redis/slot.h"
#include <string.h>

enum { CRC16_POLYNOMIAL = 0x1021, PORT_MAX = 65535 };

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

bool slot_place_set_host(struct slot_place *p, struct span host, const struct slot_place *asked)
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
    return slot_place_set_host(p, host, asked);
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
