/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_KEYS_H
#define LAPSE_KEYS_H
#include "base/span.h"

enum {
    KEYS_SPACE_MAX = 64,
    KEYS_QUEUE_MAX = 64,
    KEYS_NAME_MAX = 64,
    KEYS_HEADER_MAX = 64,
    KEYS_TAG_MAX = 64,
    KEYS_ID_MAX = 255,
    KEYS_GUARD_MAX = 512,
    KEYS_MAX = KEYS_SPACE_MAX + KEYS_QUEUE_MAX + 32, /* of a key or channel without an id */
    KEYS_TRIGGER_MAX = KEYS_MAX + KEYS_ID_MAX
};

/* A space and a queue are of A-Z a-z 0-9 . _ - alone. */
bool keys_space_ok(struct span space);
bool keys_queue_ok(struct span queue);
/* A pattern of queues: what their names begin with, which may be nothing, and a star. */
bool keys_queues_of(struct span pattern, struct span *beginning);
/* An id, and the name of a listener, are of printable ASCII without space, { and }. */
bool keys_id_ok(struct span id);
bool keys_name_ok(struct span name);
/* So is the name of a header, without = as well. */
bool keys_header_ok(struct span name);
bool keys_tag_ok(struct span tag);
/* The key of a guard has no space, and is in the slot of the queue: its first braces hold the name.
 * Nor has a field of a hash a space. */
bool keys_guard_ok(struct span key, struct span queue);
bool keys_field_ok(struct span field);

/* What Redis keeps of a queue beside its triggers: SPACE:{QUEUE}:PART. */
enum keys_part {
    KEYS_DUE, /* KEYS[1] of a script: it names the queue */
    KEYS_RUN,
    KEYS_DEAD,
    KEYS_JOBS,
    KEYS_ATTEMPTS,
    KEYS_SEQ,
    KEYS_CONF,
    KEYS_STREAM,
    KEYS_LIST,
    KEYS_LISTENERS,
    KEYS_INDEX,
    KEYS_NEXT,
    KEYS_REPORT,
    KEYS_KEPT,
    KEYS_ERRORS,
    KEYS_BATCHES,
    KEYS_PAST,
    KEYS_PARTS
};
const char *keys_part_name(enum keys_part part);
size_t keys_of(char out[KEYS_MAX], const char *space, const char *queue, enum keys_part part);
/* KEYS[2] of a script, of its KEYS[1]: a key of the same queue that is never written. */
size_t keys_none(char out[KEYS_MAX], struct span key);
/* Reads such a key. false: it is not ours, or a trigger. */
bool keys_queue_of(struct span key, const char *space, struct span *queue);

/* The list that has the parts of a group. */
size_t keys_group(char out[KEYS_TRIGGER_MAX], const char *space, const char *queue, const char *id);
bool keys_group_of(struct span key, const char *space, struct span *queue, struct span *id);

/* The key that expires when a job is due; for id "" what all of them begin with. */
size_t keys_trigger(char out[KEYS_TRIGGER_MAX], const char *space, const char *queue,
                    const char *id);
/* The same of a listener. */
size_t keys_canary(char out[KEYS_TRIGGER_MAX], const char *space, const char *queue,
                   const char *name);

/* The names of the listeners that are alive. It is of no queue. */
size_t keys_alive(char out[KEYS_MAX], const char *space);

/* The names of the queues that are used. It is of no queue. */
size_t keys_queues(char out[KEYS_MAX], const char *space);

/* The channel on which they are told when they are new. */
size_t keys_wake(char out[KEYS_MAX], const char *space, int db);

/* The channels on which the scripts publish: for listeners, and for who waits for ends of jobs. */
size_t keys_notice(char out[KEYS_MAX], const char *space, const char *queue, int db);
size_t keys_ends(char out[KEYS_MAX], const char *space, const char *queue, int db);

/* What to subscribe to: the expiries of all keys, or those of the triggers of one queue. */
#define KEYS_EXPIRED "__keyevent@*__:expired"
size_t keys_pattern(char out[KEYS_MAX], const char *space, const char *queue, int db);

/* Patterns for all queues of a space: of their keys but the triggers, which must not be touched,
 * of the lists of their groups, and of the channels on which the scripts publish. */
size_t keys_pattern_of_parts(char out[KEYS_MAX], const char *space);
size_t keys_pattern_of_groups(char out[KEYS_MAX], const char *space);
size_t keys_pattern_of_notices(char out[KEYS_MAX], const char *space);
size_t keys_pattern_of_ends(char out[KEYS_MAX], const char *space);

/* An expiry event, of either kind of subscription. It is ours where the database, the space and the
 * spelling of queue and id are. */
struct keys_event {
    enum { KEYS_FOREIGN, KEYS_TRIGGER, KEYS_CANARY } kind;
    struct span queue;
    struct span id; /* of a job; of a canary the name of the listener that set it */
};
struct keys_event keys_event(struct span channel, struct span text, const char *space, int db);

#endif
