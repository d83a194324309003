/* SPDX-License-Identifier: MIT */
/* lapse_adopt(): entries of a stream that dead consumers have not acknowledged.
 *
 * A script moves as many as a call may, and says where to go on; it is called until there are as
 * many as were asked for, or no more. What was moved belongs to the consumer, whatever becomes of
 * the next call, so it is given to the user with an error, too. */
#include "api/request.h"
#include "base/mem.h"
#include "script/queue_verbs.h"
#include <stdio.h>

enum {
    NAME_BYTES = 1024,            /* of a group, or of a consumer */
    IDLE_MS = 60000,              /* the default */
    CONSUMER_GONE_MS = 86400000,  /* one that has asked for nothing for so long is removed */
    FROM_SIZE = JOB_ENTRY_MAX + 2 /* "(ENTRY" with its end */
};

struct adopt_call {
    struct request request;
    lapse_list_fn *fn;
    struct adopt_request script;
    struct adopt_page page;
    char from[FROM_SIZE];
    unsigned limit;
    unsigned n;
    struct lapse_job *jobs[SCRIPT_BATCH];
};

static void adopt_call_run(struct task *t)
{
    struct adopt_call *c = CONTAINER(t, struct adopt_call, request.task);
    const struct lapse_job *const *jobs = (const struct lapse_job *const *)c->jobs;

    if (c->fn) {
        c->fn(c->request.handle, c->request.err, c->n ? jobs : NULL, c->n, c->request.arg);
    }
}

static void adopt_call_done(struct task *t, bool alive)
{
    struct adopt_call *c = CONTAINER(t, struct adopt_call, request.task);
    (void)alive;

    for (unsigned i = 0; i < c->n; i++) {
        mem_free(c->jobs[i]);
    }
    mem_free(c);
}

static void adopt_ask(struct adopt_call *c)
{
    c->page.limit = c->limit - c->n;
    c->page.from = span_of(c->from);
    c->script.request.until_us = request_until_us(c->request.handle);
    script_adopt(&c->request.handle->script, &c->script, c->request.key, &c->page);
}

/* Without memory the entry is moved all the same, and the user does not hear of it: ELOST. */
static int adopt_add(struct adopt_call *c, const struct adopt_reply *reply, size_t i)
{
    struct job_entry entry;

    if (!script_adopted_entry(reply, i, &entry) || c->n >= c->limit) {
        return LAPSE_EBROKEN;
    }

    struct lapse_job *job = mem_new(sizeof *job, job_entry_texts_len(c->request.queue, &entry));
    if (!job) {
        return LAPSE_ELOST;
    }

    job_fill_from_entry(job, c->request.queue, &entry, (char *)(job + 1));
    c->jobs[c->n++] = job;

    return 0;
}

static int adopt_take(struct adopt_call *c, const struct adopt_reply *reply)
{
    int err = 0;

    if (!reply->known) {
        return LAPSE_ENOENT;
    }
    if (reply->next.len >= FROM_SIZE) {
        return LAPSE_EBROKEN;
    }

    for (size_t i = 0; !err && i < reply->n_jobs; i++) {
        err = adopt_add(c, reply, i);
    }
    return err;
}

/* Is there more to do? A Redis that says so, and does not get on, is not asked again. */
static bool adopt_goes_on(struct adopt_call *c, const struct adopt_reply *reply)
{
    bool all_seen = span_is(reply->next, "0-0");
    bool progress = !span_is(reply->next, c->from);
    bool wants_more = c->n < c->limit && !all_seen && progress;

    memcpy(c->from, reply->next.at, reply->next.len);
    c->from[reply->next.len] = '\0';

    return (wants_more || reply->n_removed == SCRIPT_BATCH) && !request_is_cut_off(&c->request);
}

static void on_adopt(struct adopt_request *r, int err, const struct adopt_reply *reply)
{
    struct adopt_call *c = CONTAINER(r, struct adopt_call, script);

    request_wrote(&c->request, r->request.sent_us);
    if (!err) {
        err = adopt_take(c, reply);
    }

    if (!err && adopt_goes_on(c, reply)) {
        adopt_ask(c);
    } else {
        request_end(&c->request, err);
    }
}

static bool name_is_valid(const char *name)
{
    return name && *name && strlen(name) <= NAME_BYTES;
}

/* A job that was not adopted has no place to go on from. */
static bool adoption_read(struct lapse_adoption *out, const struct lapse_adoption *in)
{
    return in && in->size >= sizeof *in && mem_read_sized(out, sizeof *out, in) &&
           name_is_valid(out->group) && name_is_valid(out->consumer) && out->idle_ms >= 0 &&
           out->idle_ms <= JOB_TEN_YEARS_MS && out->n >= 1 && out->n <= SCRIPT_BATCH &&
           (!out->after || *lapse_job_entry(out->after));
}

/* Copies the names, and says where to begin. */
static void adopt_fill(struct adopt_call *c, const struct lapse_adoption *what)
{
    struct span group = span_of(what->group);
    struct span consumer = span_of(what->consumer);
    char *names = c->request.extra;

    c->page.group = (struct span){memcpy(names, group.at, group.len), group.len};
    names += group.len;
    c->page.consumer = (struct span){memcpy(names, consumer.at, consumer.len), consumer.len};
    c->page.idle_ms = what->idle_ms ? what->idle_ms : IDLE_MS;
    c->page.gone_ms = CONSUMER_GONE_MS;
    c->limit = what->n;

    if (what->after) {
        snprintf(c->from, sizeof c->from, "(%.*s", JOB_ENTRY_MAX, lapse_job_entry(what->after));
    } else {
        strcpy(c->from, "-");
    }
}

int lapse_adopt(struct lapse *l, const char *queue, const struct lapse_adoption *adoption,
                lapse_list_fn *fn, void *arg)
{
    struct request_spec spec = {
        .size = sizeof(struct adopt_call),
        .queue = queue,
        .id = "",
        .arg = arg,
        .run = adopt_call_run,
        .done = adopt_call_done,
    };
    struct lapse_adoption what;
    void *made;

    if (!l || !queue || !keys_queue_ok(span_of(queue)) || !adoption_read(&what, adoption)) {
        return LAPSE_EINVAL;
    }

    spec.extra_len = strlen(what.group) + strlen(what.consumer);
    int err = request_new(&made, l, &spec);
    if (err) {
        return err;
    }

    struct adopt_call *c = made;
    c->fn = fn;
    c->script.end = on_adopt;
    adopt_fill(c, &what);
    adopt_ask(c);

    return 0;
}
