/* SPDX-License-Identifier: MIT */
/* lapse_cancel_all(), lapse_kill_all(), lapse_reschedule_all(). */
#include "api/request.h"
#include "script/job_verbs.h"
#include "base/mem.h"

struct selection_call {
    struct request request;
    lapse_count_fn *fn;
    struct selection_request script;
    struct selection next; /* what is asked for next; its texts are in request.extra */
    char *cursor;
    uint64_t most; /* 0: no limit */
    uint64_t n;
    uint64_t n_running;
    bool asks; /* those that run: LAPSE_RUNNING_TOO */
    enum { SELECTION_CANCEL, SELECTION_KILL, SELECTION_RESCHEDULE } how;

    struct span why;      /* of a kill */
    struct lapse_due due; /* of a reschedule */
    int64_t spread_ms;
};

static void selection_call_run(struct task *t)
{
    struct selection_call *c = CONTAINER(t, struct selection_call, request.task);

    if (c->fn) {
        c->fn(c->request.handle, c->request.err, c->n, c->n_running, c->request.arg);
    }
}

static void selection_call_done(struct task *t, bool alive)
{
    (void)alive;
    mem_free(CONTAINER(t, struct selection_call, request.task));
}

static uint64_t selection_call_changed(const struct selection_call *c)
{
    return c->n + (c->asks ? c->n_running : 0);
}

static void selection_call_send(struct selection_call *c)
{
    struct lapse *l = c->request.handle;
    uint64_t left = c->most - selection_call_changed(c);

    c->next.limit = SCRIPT_BATCH;
    if (c->most > 0 && left < SCRIPT_BATCH) {
        c->next.limit = (unsigned)left;
    }

    c->script.request.until_us = request_until_us(l);
    switch (c->how) {
    case SELECTION_CANCEL:
        script_cancel_all(&l->script, &c->script, c->request.key, &c->next);
        break;
    case SELECTION_KILL:
        script_kill_all(&l->script, &c->script, c->request.key, &c->next, c->why);
        break;
    case SELECTION_RESCHEDULE:
        script_reschedule_all(&l->script, &c->script, c->request.key, &c->next, c->due,
                              c->spread_ms);
        break;
    }
}

/* Redis has looked at some jobs. false: the cursor has not moved, and never would. */
static bool selection_call_go_on(struct selection_call *c, const struct selection_answer *answer)
{
    struct lapse *l = c->request.handle;

    c->n += answer->n;
    if (c->how == SELECTION_CANCEL && c->next.state != LAPSE_KEPT) {
        tally_count(&l->tallies, c->request.queue, PAST_CANCELLED, answer->n);
    }
    c->n_running += answer->n_running;
    if (answer->due_ms) {
        listener_scheduled(&l->listener, c->request.queue, span_of(""), answer->due_ms);
    }

    bool moved = !span_eq(answer->cursor, c->next.cursor);
    if (answer->cursor.len > 0) {
        memcpy(c->cursor, answer->cursor.at, answer->cursor.len);
    }
    c->next.cursor = (struct span){c->cursor, answer->cursor.len};
    return moved || answer->cursor.len == 0;
}

static void on_selected(struct selection_request *r, int err, const struct selection_answer *answer)
{
    struct selection_call *c = CONTAINER(r, struct selection_call, script);

    if (!err && !selection_call_go_on(c, answer)) {
        err = LAPSE_EBROKEN;
    }

    request_wrote(&c->request, r->request.sent_us);
    bool is_over = c->next.cursor.len == 0 || (c->most > 0 && selection_call_changed(c) >= c->most);
    if (!err && !is_over && request_is_cut_off(&c->request)) {
        err = LAPSE_ECLOSED;
    }
    if (err || is_over) {
        request_end(&c->request, err);
    } else {
        selection_call_send(c);
    }
}

static bool where_is_valid(const struct lapse_where *w)
{
    unsigned state = w->state;
    bool some = state <= LAPSE_KEPT && (state != 0 || w->tag || w->batch);
    bool tag = !w->tag || (keys_tag_ok(span_of(w->tag)) && !w->batch);
    bool batch = !w->batch || keys_id_ok(span_of(w->batch));
    bool reason = !w->reason || strnlen(w->reason, JOB_REASON_MAX + 1) <= JOB_REASON_MAX;

    return some && tag && batch && reason && w->before_ms >= 0 && w->before_ms <= EXACT_MAX;
}

static bool where_read(struct lapse_where *out, const struct lapse_where *in)
{
    return in && in->size >= offsetof(struct lapse_where, tag) &&
           mem_read_sized(out, sizeof *out, in) && where_is_valid(out);
}

/* Copies a text behind those that there are in the extra bytes of a call. */
static struct span selection_text(char **at, const char *prefix, struct span text)
{
    size_t prefix_len = strlen(prefix);
    struct span copy = {*at, prefix_len + text.len};

    memcpy(*at, prefix, prefix_len);
    memcpy(*at + prefix_len, text.at, text.len);
    *at += copy.len;
    return copy;
}

/* why: of a kill; else empty. */
static int selection_call_new(struct selection_call **out, struct lapse *l, const char *queue,
                              const struct lapse_where *in, struct span why, void *arg)
{
    struct lapse_where w;
    struct request_spec spec = {
        .size = sizeof(struct selection_call),
        .queue = queue,
        .id = "",
        .arg = arg,
        .run = selection_call_run,
        .done = selection_call_done,
    };
    void *made;

    if (!l || !queue || !keys_queue_ok(span_of(queue)) || !where_read(&w, in)) {
        return LAPSE_EINVAL;
    }
    struct span reason = span_of(w.reason ? w.reason : "");
    const char *named = w.batch ? w.batch : w.tag;
    struct span tag = span_of(named ? named : "");
    const char *prefix = w.batch ? "b " : "";
    spec.extra_len = CURSOR_MAX + reason.len + strlen(prefix) + tag.len + why.len;
    int err = request_new(&made, l, &spec);
    if (err) {
        return err;
    }

    struct selection_call *c = made;
    char *text = c->request.extra + CURSOR_MAX;

    c->cursor = c->request.extra;
    c->most = w.most;
    c->next.state = w.state;
    c->next.reason = selection_text(&text, "", reason);
    c->next.tag = selection_text(&text, prefix, tag);
    c->why = selection_text(&text, "", why);
    c->next.before_ms = w.before_ms;
    c->next.cursor = (struct span){c->cursor, 0};
    c->script.end = on_selected;
    *out = c;

    return 0;
}

int lapse_cancel_all(struct lapse *l, const char *queue, const struct lapse_where *w,
                     unsigned flags, lapse_count_fn *fn, void *arg)
{
    struct selection_call *c;
    bool known = flags <= LAPSE_RUNNING_TOO;
    int err = known ? selection_call_new(&c, l, queue, w, span_of(""), arg) : LAPSE_EINVAL;

    if (!err) {
        c->fn = fn;
        c->asks = flags & LAPSE_RUNNING_TOO;
        c->next.running = c->asks;
        selection_call_send(c);
    }
    return err;
}

int lapse_kill_all(struct lapse *l, const char *queue, const struct lapse_where *w,
                   const char *reason, lapse_count_fn *fn, void *arg)
{
    struct span why = {reason ? reason : "", job_reason_len(reason)};
    struct selection_call *c;

    if (w && w->state != 0 && w->state != LAPSE_WAITING) {
        return LAPSE_EINVAL;
    }

    int err = selection_call_new(&c, l, queue, w, why, arg);
    if (!err) {
        c->fn = fn;
        c->how = SELECTION_KILL;
        selection_call_send(c);
    }
    return err;
}

int lapse_reschedule_all(struct lapse *l, const char *queue, const struct lapse_where *w,
                         struct lapse_due due, int64_t spread_ms, unsigned flags,
                         lapse_count_fn *fn, void *arg)
{
    struct selection_call *c;

    if (!l || flags > LAPSE_RUNNING_TOO || !request_due_is_valid(l, due) || spread_ms < 0 ||
        spread_ms > JOB_TEN_YEARS_MS - due.delay_ms || (w && w->state == LAPSE_KEPT)) {
        return LAPSE_EINVAL;
    }

    int err = selection_call_new(&c, l, queue, w, span_of(""), arg);
    if (!err) {
        c->fn = fn;
        c->asks = flags & LAPSE_RUNNING_TOO;
        c->next.running = c->asks;
        c->how = SELECTION_RESCHEDULE;
        c->due = due;
        c->spread_ms = spread_ms;
        selection_call_send(c);
    }
    return err;
}
