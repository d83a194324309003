/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_KEYS_H
#define LAPSE_KEYS_H
#include "base/span.h"

enum { KEYS_QUEUE_MAX = 64, KEYS_ID_MAX = 255, KEYS_MAX = 64 + 64 + 32 }; /* bytes */

bool keys_word(const char *s, size_t max); /* 1 to max of A-Z a-z 0-9 . _ - */
bool keys_queue_ok(const char *queue);
bool keys_id_ok(const char *id, size_t len);

/* KEYS[1] of every script */
size_t keys_due(char out[KEYS_MAX], const char *space, const char *queue);
/* the wake channel */
size_t keys_wake(char out[KEYS_MAX], const char *space, const char *queue, int db);

/* What to listen to: KEYS_EXPIRED, all expiries, or those of a queue's triggers. */
#define KEYS_EXPIRED "__keyevent@*__:expired"
size_t keys_pattern(char out[KEYS_MAX], const char *space, const char *queue, int db);

/* Takes an expiry event of either kind apart: the database must be db, the key's space ours, queue
 * and id valid. A canary has the name of its listener, in braces, where a job has its id. */
enum keys_event { KEYS_FOREIGN, KEYS_TRIGGER, KEYS_CANARY };
enum keys_event keys_event(struct span channel, struct span text, const char *space, int db,
                           struct span *queue, struct span *id);

#endif
