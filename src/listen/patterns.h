/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_PATTERNS_H
#define LAPSE_PATTERNS_H
#include "listen/slots.h"
#include "listen/watch.h"

enum { PATTERN_LOOKS_MAX = 16 };

/* What is to be asked about a pattern, or is being asked. */
enum pattern_ask {
    PATTERN_NOTHING,
    PATTERN_NAME,  /* is this name there? */
    PATTERN_RANGE, /* which names are there from low to high? */
    PATTERN_ALL
};

/* The queues whose names have one beginning. */
struct pattern {
    struct list node;
    struct table_node named; /* by the beginning */
    struct share_spec share; /* of each of its queues */
    lapse_handler *handler;
    void *handler_arg;
    enum pattern_ask ask; /* but PATTERN_NAME */
    char low[KEYS_QUEUE_MAX + 1];
    char high[KEYS_QUEUE_MAX + 1];
    size_t len;
    char beginning[KEYS_QUEUE_MAX + 1];
};

struct patterns_events {
    /* The registry has this queue, whose pattern is pattern_of(). */
    void (*found)(void *arg, struct span queue);
    /* It has no others of this pattern than those that were found with walk number n, or later. */
    void (*walked)(void *arg, const struct pattern *p, uint64_t n);
};

/* All patterns of a listener: which queues they have, by the registry. */
struct patterns {
    struct context *context;
    struct script *script;
    struct watches *watches;
    const struct patterns_events *events;
    void *arg;

    struct list all;
    struct table names;
    char key[KEYS_MAX];

    char looks[PATTERN_LOOKS_MAX][KEYS_QUEUE_MAX + 1]; /* names that are to be looked for */
    unsigned n_looks;

    struct names_request names_request;
    struct pattern *asked; /* whose names are read; NULL: it has gone, or one name is read */
    enum pattern_ask asks;
    uint64_t walk; /* the number of the last one */

    bool subscribed; /* we hear of new names */
    bool stopped;
    struct timer timer;

    /* by clock_us(); 0: never */
    int64_t range_us; /* the last time that a range was asked for */
    int64_t all_us;   /* when to ask for all next */
};

void patterns_init(struct patterns *ps, struct script *script, struct watches *watches,
                   const struct patterns_events *events, void *arg);

struct pattern_spec {
    struct span beginning;
    struct share_spec share;
    lapse_handler *handler;
    void *handler_arg;
};

/* EEXIST, ENOMEM. Its queues are found from now on. It becomes a user of the cap instead of the
 * caller. */
int patterns_add(struct patterns *ps, const struct pattern_spec *spec);
/* NULL: there is none. */
struct pattern *patterns_find(const struct patterns *ps, struct span beginning);
/* Of several the longest. NULL: there is none. */
struct pattern *pattern_of(const struct patterns *ps, struct span queue);
/* From now on it has no queue; it is to be freed when none names it. */
void patterns_remove(struct patterns *ps, struct pattern *p);
void pattern_free(struct pattern *p);

/* Nothing else has this queue any more. */
void patterns_look(struct patterns *ps, struct span queue);
/* The connection for commands is there again. */
void patterns_up(struct patterns *ps);

/* The handle closes; and when no request is pending. */
void patterns_stop(struct patterns *ps);
void patterns_close(struct patterns *ps);

#endif
