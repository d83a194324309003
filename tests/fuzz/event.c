/* SPDX-License-Identifier: MIT */
/* Expiry events, which anybody may forge: the database's digit, the channel, a line's end, the
 * text. */
#include "fuzz.h"
#include "job/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct eat e = {data, size};
    int db = eat_byte(&e) % 10;
    const uint8_t *end = memchr(e.at, '\n', e.left);
    size_t len = end ? (size_t)(end - e.at) : e.left;
    char *channel = eat_copy(&e, len, false);

    eat_byte(&e);

    size_t text_len = e.left;
    char *text = eat_copy(&e, text_len, false);
    char key[400];
    char name[KEYS_QUEUE_MAX + 1];
    struct span in = {channel, len};
    struct span told = {text, text_len};
    struct keys_event event = keys_event(in, told, "lapse", db);
    struct span queue = event.queue;
    struct span id = event.id;
    if (event.kind != KEYS_FOREIGN) {
        MUST(queue.len >= 1 && queue.len <= KEYS_QUEUE_MAX && keys_id_ok(id));
        snprintf(name, sizeof name, "%.*s", (int)queue.len, queue.at);
        MUST(strlen(name) == queue.len && keys_queue_ok(span_of(name)));
        const char *left = event.kind == KEYS_CANARY ? "{" : "";
        const char *right = event.kind == KEYS_CANARY ? "}" : "";
        int n = snprintf(key, sizeof key, "lapse:{%s}:t:%s%.*s%s", name, left, (int)id.len, id.at,
                         right);
        /* its key is the text, or what the channel's name ends in */
        bool by_text = span_is(told, key);
        MUST(by_text || (len > (size_t)n && memcmp(channel + len - n, key, (size_t)n) == 0));
        struct span again = {key + (id.at - queue.at) + (int)strlen("lapse:{"), id.len};
        MUST(span_hash(id) == span_hash(again));
    }

    free(channel);
    free(text);

    return 0;
}
