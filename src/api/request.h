/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_REQUEST_H
#define LAPSE_REQUEST_H
#include "api/handle.h"

/* What all requests of the public API share. Each verb embeds it in a struct of its own, which is
 * one allocation together with its texts and all that the answer will need: only an answer that
 * brings a body can fail for lack of memory. */
struct request {
    struct task task;
    struct lapse *handle;
    int err;
    void *arg;                /* the user's */
    size_t body_len;          /* counted in handle->n_bytes until the answer */
    struct fence_wait copies; /* of what was written for it */
    const char *queue;
    struct span key; /* KEYS[1] of the queue */
    struct span id;  /* zero-terminated; may be empty */
    char *texts;     /* space for the texts of a job without body: the queue and the id */
    char *extra;     /* spec.extra_len bytes */
};

struct request_spec {
    size_t size; /* of the struct in which the request is the first field */
    const char *queue;
    const char *id;
    size_t body_len;
    size_t extra_len;
    size_t answer_id_len; /* of an id that the answer may have instead; 0: it has none */
    bool of_lease;        /* it is made by who holds the job, while the handle is closing, too */
    void *arg;
    void (*run)(struct task *t);
    void (*done)(struct task *t, bool alive);
};

/* ECLOSED, EFULL, ENOMEM. *out is zeroed, but for its request. */
int request_new(void **out, struct lapse *l, const struct request_spec *spec);

/* Undoes request_new(), for a request that nobody has taken on. */
void request_drop(struct request *r);

/* Redis has written something for it, and was asked then, by clock_us(): its end waits for copies,
 * where some are wanted. Of several calls the first counts. */
void request_wrote(struct request *r, int64_t sent_us);

/* The answer came: the user's callback is called in a later turn of the loop, or if Redis has
 * written for it, when there are copies. err is EALONE then if there are too few. */
void request_end(struct request *r, int err);

/* Monotonic: when a request that is made now gives up. */
int64_t request_until_us(const struct lapse *l);

/* The grace of a close is over: a request of several calls makes no further one. */
static inline bool request_is_cut_off(const struct request *r)
{
    return r->handle->giving_back || r->handle->ended;
}

/* Not both a delay and a moment, and neither negative nor over ten years ahead. */
bool request_due_is_valid(const struct lapse *l, struct lapse_due due);

#endif
