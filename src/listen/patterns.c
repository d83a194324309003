/* SPDX-License-Identifier: MIT */
/* Which queues a pattern has, the registry says. We read all its names when the pattern comes, on
 * each connection, and then now and then: as often as an empty queue is looked at, for the same
 * reason, as its channel says which names are new. What it says only makes us look for that name;
 * or where many come at once, for all between the first and the last of them, once in APART_MS. So
 * a burst of new names is read with few requests, and what we keep of what anybody may publish has
 * a fixed size. */
#include "listen/patterns.h"
#include "base/mem.h"
#include <stdio.h>

enum { APART_MS = 200 };

static int64_t in_ms(int64_t ms)
{
    return clock_us() + ms * 1000;
}

static void patterns_ask(struct patterns *ps);

/* ---- when ---- */
static int64_t patterns_every_ms(const struct patterns *ps)
{
    return ps->subscribed ? context_rarely_ms(ps->context) : ps->context->options.sweep_ms;
}

static bool patterns_up_now(const struct patterns *ps)
{
    return node_up(node_of(ps->script, span_of(ps->key)));
}

static void patterns_set_timer(struct patterns *ps, int64_t at_us)
{
    int64_t left_us = at_us - clock_us();

    timer_set(&ps->timer, left_us > 0 ? left_us / 1000 + 1 : 0);
}

static void patterns_ask_all(struct patterns *ps)
{
    LIST_EACH (i, &ps->all) {
        CONTAINER(i, struct pattern, node)->ask = PATTERN_ALL;
    }

    ps->all_us = in_ms(patterns_every_ms(ps));
    patterns_ask(ps);
}

static void on_time(void *arg)
{
    struct patterns *ps = arg;

    if (clock_us() >= ps->all_us) {
        patterns_ask_all(ps);
    } else {
        patterns_ask(ps);
    }
}

/* ---- asking ---- */
static void patterns_read(struct patterns *ps)
{
    int64_t reply_ms = ps->context->options.reply_ms;

    ps->names_request.request.until_us = in_ms(reply_ms);
    script_names(ps->script, &ps->names_request, span_of(ps->key));
}

static void patterns_begin(struct patterns *ps, struct pattern *p)
{
    ps->asked = p;
    ps->asks = p->ask;
    p->ask = PATTERN_NOTHING;

    if (ps->asks == PATTERN_ALL) {
        names_of(&ps->names_request, p->named.name);
    } else {
        names_between(&ps->names_request, span_of(p->low), span_of(p->high));
        ps->range_us = clock_us();
    }

    list_remove(&p->node);
    list_insert(&ps->all, &p->node); /* the others come before it the next time */
    ps->walk++;
    patterns_read(ps);
}

static void patterns_begin_look(struct patterns *ps)
{
    struct span name = span_of(ps->looks[--ps->n_looks]);

    ps->asked = NULL;
    ps->asks = PATTERN_NAME;
    names_between(&ps->names_request, name, name);
    ps->walk++;
    patterns_read(ps);
}

/* What is to be asked next; NULL: nothing, or not yet. */
static struct pattern *patterns_next(const struct patterns *ps)
{
    bool apart = !ps->range_us || clock_us() - ps->range_us >= APART_MS * INT64_C(1000);

    LIST_EACH (i, &ps->all) {
        struct pattern *p = CONTAINER(i, struct pattern, node);
        if (p->ask == PATTERN_ALL || (p->ask == PATTERN_RANGE && apart)) {
            return p;
        }
    }

    return NULL;
}

static bool patterns_wait(const struct patterns *ps)
{
    LIST_EACH (i, &ps->all) {
        if (CONTAINER(i, struct pattern, node)->ask) {
            return true;
        }
    }

    return false;
}

static void patterns_ask(struct patterns *ps)
{
    struct pattern *next = patterns_next(ps);
    int64_t apart_us = ps->range_us + APART_MS * INT64_C(1000);

    if (ps->stopped || list_empty(&ps->all) || ps->names_request.request.pending) {
        return;
    }

    if (ps->n_looks > 0 && patterns_up_now(ps)) {
        patterns_begin_look(ps);
    } else if (next && patterns_up_now(ps)) {
        patterns_begin(ps, next);
    } else if (!next && patterns_wait(ps) && apart_us < ps->all_us) {
        patterns_set_timer(ps, apart_us);
    } else {
        patterns_set_timer(ps, ps->all_us);
    }
}

/* ---- answers ---- */
/* What cannot be the name of a queue another program has written. It is passed over, unless it
 * leaves no way to go on behind it. */
static bool patterns_take(struct patterns *ps, const struct names_reply *reply)
{
    struct span name = {"", 0};

    for (size_t i = 0; i < reply->n_jobs; i++) {
        if (!reply_text(names_reply_name(reply, i), &name)) {
            return false;
        }
        if (keys_queue_ok(name) && pattern_of(ps, name)) {
            ps->events->found(ps->arg, name);
        }
    }

    return names_go_behind(&ps->names_request, name);
}

static void on_names(struct names_request *r, int err, const struct names_reply *reply)
{
    struct patterns *ps = CONTAINER(r, struct patterns, names_request);

    if (ps->stopped) {
        return;
    }

    if (err) {
        ps->all_us = in_ms(ps->context->options.sweep_ms);
    } else if (ps->asked || ps->asks == PATTERN_NAME) {
        bool can_go_on = patterns_take(ps, reply);
        bool is_last = reply->n_jobs < SCRIPT_BATCH;

        if (!is_last && can_go_on) {
            patterns_read(ps);
            return;
        }
        if (can_go_on && ps->asks == PATTERN_ALL) {
            ps->events->walked(ps->arg, ps->asked, ps->walk);
        }
    }

    ps->asked = NULL;
    patterns_ask(ps);
}

/* ---- what is heard ---- */
static void pattern_note(struct pattern *p, const char *name)
{
    if (p->ask == PATTERN_NOTHING) {
        snprintf(p->low, sizeof p->low, "%s", name);
        snprintf(p->high, sizeof p->high, "%s", name);
        p->ask = PATTERN_RANGE;
    } else if (strcmp(name, p->low) < 0) {
        snprintf(p->low, sizeof p->low, "%s", name);
    } else if (strcmp(name, p->high) > 0) {
        snprintf(p->high, sizeof p->high, "%s", name);
    }
}

static bool patterns_looks_for(const struct patterns *ps, const char *name)
{
    for (unsigned i = 0; i < ps->n_looks; i++) {
        if (strcmp(ps->looks[i], name) == 0) {
            return true;
        }
    }

    return false;
}

void patterns_look(struct patterns *ps, struct span queue)
{
    struct pattern *p = keys_queue_ok(queue) ? pattern_of(ps, queue) : NULL;
    char name[KEYS_QUEUE_MAX + 1];

    if (!p) {
        return;
    }

    snprintf(name, sizeof name, "%.*s", (int)queue.len, queue.at);
    if (p->ask != PATTERN_NOTHING || ps->n_looks == PATTERN_LOOKS_MAX) {
        pattern_note(p, name);
    } else if (!patterns_looks_for(ps, name)) {
        memcpy(ps->looks[ps->n_looks++], name, sizeof name);
    }
    patterns_ask(ps);
}

static void on_new_name(void *arg, struct span queue)
{
    patterns_look(arg, queue);
}

/* What was published before was not heard. */
static void on_subscribed(void *arg)
{
    struct patterns *ps = arg;

    ps->subscribed = true;
    patterns_ask_all(ps);
}

static void on_unsubscribed(void *arg)
{
    struct patterns *ps = arg;

    ps->subscribed = false;
    ps->all_us = in_ms(patterns_every_ms(ps));
    patterns_ask(ps);
}

void patterns_up(struct patterns *ps)
{
    patterns_ask_all(ps);
}

/* ---- the patterns ---- */
struct pattern *patterns_find(const struct patterns *ps, struct span beginning)
{
    struct table_node *found = table_find(&ps->names, beginning);

    return found ? CONTAINER(found, struct pattern, named) : NULL;
}

struct pattern *pattern_of(const struct patterns *ps, struct span queue)
{
    struct pattern *p = NULL;

    if (list_empty(&ps->all)) {
        return NULL;
    }

    for (size_t len = queue.len + 1; !p && len > 0; len--) {
        p = patterns_find(ps, (struct span){queue.at, len - 1});
    }

    return p;
}

static void patterns_hear(struct patterns *ps)
{
    static const struct names_events names_events = {on_new_name, on_subscribed, on_unsubscribed};

    watches_hear_names(ps->watches, &names_events, ps);
}

int patterns_add(struct patterns *ps, const struct pattern_spec *spec)
{
    if (patterns_find(ps, spec->beginning)) {
        return LAPSE_EEXIST;
    }

    struct pattern *p = mem_new(sizeof *p, 0);
    if (!p) {
        return LAPSE_ENOMEM;
    }

    *p = (struct pattern){
        .share = spec->share, .handler = spec->handler, .handler_arg = spec->handler_arg};
    p->ask = PATTERN_ALL;
    p->len = spec->beginning.len;
    memcpy(p->beginning, spec->beginning.at, p->len);
    list_insert(&ps->all, &p->node);
    table_add(&ps->names, &p->named, (struct span){p->beginning, p->len});

    patterns_hear(ps);
    if (!ps->all_us) {
        ps->all_us = in_ms(patterns_every_ms(ps));
    }
    patterns_ask(ps);

    return 0;
}

void patterns_remove(struct patterns *ps, struct pattern *p)
{
    if (ps->asked == p) {
        ps->asked = NULL;
    }

    table_remove(&ps->names, &p->named);
    list_remove(&p->node);
}

void pattern_free(struct pattern *p)
{
    cap_release(p->share.cap);
    mem_free(p);
}

/* ---- life ---- */
void patterns_init(struct patterns *ps, struct script *script, struct watches *watches,
                   const struct patterns_events *events, void *arg)
{
    *ps = (struct patterns){.context = script->context,
                            .script = script,
                            .watches = watches,
                            .events = events,
                            .arg = arg};
    keys_queues(ps->key, ps->context->options.space);
    list_init(&ps->all);
    table_init(&ps->names);
    ps->names_request.end = on_names;
    timer_init(&ps->timer, ps->context->loop, on_time, ps);
}

void patterns_stop(struct patterns *ps)
{
    ps->stopped = true;
    timer_stop(&ps->timer);
}

void patterns_close(struct patterns *ps)
{
    while (!list_empty(&ps->all)) {
        struct pattern *p = CONTAINER(ps->all.next, struct pattern, node);
        patterns_remove(ps, p);
        pattern_free(p);
    }
    table_free(&ps->names);
}
