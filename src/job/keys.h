/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_KEYS_H
#define LAPSE_KEYS_H
#include "base/span.h"

enum {
    KEYS_SPACE_MAX = 64,
    KEYS_QUEUE_MAX = 64,
    KEYS_NAME_MAX = 64,
    KEYS_ID_MAX = 255,
    KEYS_MAX = KEYS_SPACE_MAX + KEYS_QUEUE_MAX + 32 /* of a key or channel, but one with an id */
};

/* A space and a queue are of A-Z a-z 0-9 . _ - alone. */
bool keys_space_ok(struct span space);
bool keys_queue_ok(struct span queue);
/* An id, and the name of a listener, are of printable ASCII without space, { and }. */
bool keys_id_ok(struct span id);
bool keys_name_ok(struct span name);

/* The key that scripts are called with, which names the queue. */
size_t keys_due(char out[KEYS_MAX], const char *space, const char *queue);
/* The channel on which the scripts publish. */
size_t keys_wake(char out[KEYS_MAX], const char *space, const char *queue, int db);

/* What to subscribe to: the expiries of all keys, or those of the triggers of one queue. */
#define KEYS_EXPIRED "__keyevent@*__:expired"
size_t keys_pattern(char out[KEYS_MAX], const char *space, const char *queue, int db);

/* An expiry event, of either kind of subscription. It is ours where the database, the space and the
 * spelling of queue and id are. */
struct keys_event {
    enum { KEYS_FOREIGN, KEYS_TRIGGER, KEYS_CANARY } kind;
    struct span queue;
    struct span id; /* of a job; of a canary the name of the listener that set it */
};
struct keys_event keys_event(struct span channel, struct span text, const char *space, int db);

#endif
