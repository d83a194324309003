/* SPDX-License-Identifier: MIT */
#include "script/queue_verbs.h"
#include "job/group.h"
#include "script/row.h"

/* ---- for users ---- */
static void on_depth(struct script_request *request, int err, const struct redisReply *answer)
{
    struct depth_request *r = CONTAINER(request, struct depth_request, request);
    struct depth_reply reply;

    if (!err && !depth_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

void script_depth(struct script *s, struct depth_request *r, struct span key)
{
    r->request.script = SCRIPT_DEPTH;
    r->request.key = key;
    r->request.args = NULL;
    r->request.n_args = 0;
    r->request.end = on_depth;
    script_submit(s, &r->request);
}

void script_depth_read(const struct depth_reply *reply, struct lapse_depth *out)
{
    *out = (struct lapse_depth){
        .waiting = (uint64_t)reply->waiting,
        .running = (uint64_t)reply->running,
        .dead = (uint64_t)reply->dead,
        .late_ms = reply->backlog_ms,
        .kept = (uint64_t)reply->kept,
    };
}

static void on_list(struct script_request *request, int err, const struct redisReply *answer)
{
    struct list_request *r = CONTAINER(request, struct list_request, request);
    struct list_reply reply;

    if (!err && !list_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

/* That of a job with a priority is so many 1024ths of a millisecond less, which is exact in ten
 * decimals. */
static struct span score_arg(char buf[ARG_SCORE_MAX], const struct list_page *page)
{
    enum { PARTS = 1024, DECIMALS_OF_ONE = 9765625 };

    if (page->after_priority == 0) {
        return arg_number(buf, page->after_score_ms);
    }

    int64_t decimals = (int64_t)(PARTS - page->after_priority) * DECIMALS_OF_ONE;
    int len =
        snprintf(buf, ARG_SCORE_MAX, "%" PRId64 ".%010" PRId64, page->after_score_ms - 1, decimals);
    return (struct span){buf, (size_t)len};
}

void script_list(struct script *s, struct list_request *r, struct span key,
                 const struct list_page *page)
{
    r->args[0] = arg_number(r->state, page->state);
    r->args[1] = arg_number(r->limit, page->limit);
    r->args[2] = score_arg(r->score, page);
    r->args[3] = page->after_id;

    r->request.script = SCRIPT_LIST;
    r->request.key = key;
    r->request.args = r->args;
    r->request.n_args = 4;
    r->request.end = on_list;
    script_submit(s, &r->request);
}

void script_list_tag(struct script *s, struct list_request *r, struct span key, struct span tag,
                     unsigned limit, struct span after_id)
{
    r->args[0] = tag;
    r->args[1] = arg_number(r->limit, limit);
    r->args[2] = after_id;

    r->request.script = SCRIPT_LIST_TAG;
    r->request.key = key;
    r->request.args = r->args;
    r->request.n_args = 3;
    r->request.end = on_list;
    script_submit(s, &r->request);
}

bool script_listed_job(const struct list_reply *reply, size_t i, struct job_row *row)
{
    return row_read(row, list_reply_row(reply, i));
}

static void on_configure(struct script_request *request, int err, const struct redisReply *answer)
{
    struct configure_request *r = CONTAINER(request, struct configure_request, request);
    struct configure_reply reply;

    if (!err && !configure_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

void script_configure(struct script *s, struct configure_request *r, struct span key,
                      struct span changes)
{
    r->args[0] = changes;

    r->request.script = SCRIPT_CONFIGURE;
    r->request.key = key;
    r->request.args = r->args;
    r->request.n_args = 1;
    r->request.end = on_configure;
    script_submit(s, &r->request);
}

static void on_adopt(struct script_request *request, int err, const struct redisReply *answer)
{
    struct adopt_request *r = CONTAINER(request, struct adopt_request, request);
    struct adopt_reply reply;

    if (!err && !adopt_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

void script_adopt(struct script *s, struct adopt_request *r, struct span key,
                  const struct adopt_page *page)
{
    r->args[0] = page->group;
    r->args[1] = page->consumer;
    r->args[2] = arg_number(r->idle, page->idle_ms);
    r->args[3] = arg_number(r->limit, page->limit);
    r->args[4] = page->from;
    r->args[5] = arg_number(r->gone, page->gone_ms);

    r->request.script = SCRIPT_ADOPT;
    r->request.key = key;
    r->request.args = r->args;
    r->request.n_args = 6;
    r->request.end = on_adopt;
    script_submit(s, &r->request);
}

/* What is answered of an entry, and behind that its headers, and = and the number of its parts. */
enum {
    ENTRY_ID,
    ENTRY_DELIVERIES,
    ENTRY_JOB_ID,
    ENTRY_DUE,
    ENTRY_TRY,
    ENTRY_TOKEN,
    ENTRY_BODY,
    ENTRY_HEADERS
};

static void entry_headers_read(struct job_entry *out, const struct redisReply *r)
{
    struct span header;
    struct span name;
    struct span value;
    int64_t parts;

    for (size_t i = ENTRY_HEADERS; reply_text(reply_at(r, i), &header); i++) {
        if (span_skip(&header, "=") && span_decimal(header, GROUP_MOST_MAX, &parts)) {
            out->parts = (unsigned)parts;
        } else if (out->n_headers < HEADERS_MAX && header_read(header, &name, &value)) {
            out->headers[out->n_headers++] = header;
        }
    }
}

/* The entry has the fields that lapse adds; those of another program may have any value. */
static bool entry_job_read(struct job_entry *out, const struct redisReply *r)
{
    struct job_entry e = *out;

    if (!reply_text(reply_at(r, ENTRY_JOB_ID), &e.id) || !keys_id_ok(e.id) ||
        !reply_int(reply_at(r, ENTRY_DUE), &e.due_ms) ||
        !reply_int(reply_at(r, ENTRY_TRY), &e.try_no) ||
        !reply_int(reply_at(r, ENTRY_TOKEN), &e.token) ||
        !reply_text(reply_at(r, ENTRY_BODY), &e.body)) {
        return false;
    }
    if (e.due_ms < 0 || e.try_no < 0 || e.try_no > UINT32_MAX || e.token < 0) {
        return false;
    }
    entry_headers_read(&e, r);

    *out = e;
    return true;
}

bool script_adopted_entry(const struct adopt_reply *reply, size_t i, struct job_entry *entry)
{
    const struct redisReply *r = adopt_reply_entry(reply, i);

    *entry = (struct job_entry){.id = {"", 0}, .body = {"", 0}};
    if (!reply_text(reply_at(r, ENTRY_ID), &entry->entry) || entry->entry.len > JOB_ENTRY_MAX ||
        !reply_int(reply_at(r, ENTRY_DELIVERIES), &entry->deliveries)) {
        return false;
    }

    entry_job_read(entry, r);
    return true;
}

/* ---- for listeners ---- */
static void on_arm(struct script_request *request, int err, const struct redisReply *answer)
{
    struct arm_request *r = CONTAINER(request, struct arm_request, request);
    struct arm_reply reply;

    if (!err && !arm_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

void script_arm(struct script *s, struct arm_request *r, struct span key, int64_t cursor_ms)
{
    r->args[0] = arg_number(r->cursor, cursor_ms);

    r->request.script = SCRIPT_ARM;
    r->request.key = key;
    r->request.args = r->args;
    r->request.n_args = 1;
    r->request.end = on_arm;
    script_submit(s, &r->request);
}

static void on_trim(struct script_request *request, int err, const struct redisReply *answer)
{
    struct trim_request *r = CONTAINER(request, struct trim_request, request);
    struct trim_reply reply;

    if (!err && !trim_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

void script_trim(struct script *s, struct trim_request *r, struct span key)
{
    r->request.script = SCRIPT_TRIM;
    r->request.key = key;
    r->request.args = NULL;
    r->request.n_args = 0;
    r->request.end = on_trim;
    script_submit(s, &r->request);
}

static void on_heartbeat(struct script_request *request, int err, const struct redisReply *answer)
{
    struct heartbeat_request *r = CONTAINER(request, struct heartbeat_request, request);
    struct heartbeat_reply reply;

    if (!err && !heartbeat_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

void script_heartbeat(struct script *s, struct heartbeat_request *r, struct span key,
                      const struct heartbeat *h)
{
    r->args[0] = h->name;
    r->args[1] = arg_number(r->life, h->life_ms);
    r->args[2] = arg_number(r->told, h->told);
    r->args[3] = arg_number(r->known, h->known);

    r->request.script = SCRIPT_HEARTBEAT;
    r->request.key = key;
    r->request.args = r->args;
    r->request.n_args = 4;
    r->request.end = on_heartbeat;
    script_submit(s, &r->request);
}

/* A score that is a quarter less than the end, or two: told.lua. */
bool script_live_listener(const struct redisReply *name, const struct redisReply *end,
                          struct live_listener *out)
{
    struct span rest;
    struct span whole;

    *out = (struct live_listener){.told = LAPSE_TOLD_GO_ON};
    if (!reply_text(name, &out->name)) {
        return false;
    }
    if (reply_int(end, &out->end_ms)) {
        return true;
    }
    if (!reply_text(end, &rest) || !span_cut(&rest, '.', &whole) ||
        !span_decimal(whole, EXACT_MAX, &out->end_ms)) {
        return false;
    }

    out->end_ms++;
    out->told = span_is(rest, "75") ? LAPSE_TOLD_QUIET : LAPSE_TOLD_STOP;
    return true;
}

static void on_join(struct script_request *request, int err, const struct redisReply *answer)
{
    struct join_request *r = CONTAINER(request, struct join_request, request);
    struct join_reply reply;

    if (!err && !join_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

void script_join_add_gone(struct join_request *r, struct span name)
{
    if (r->n_gone < JOIN_GONE_MAX) {
        r->args[2 + r->n_gone] = name;
        r->n_gone++;
    }
}

void script_join(struct script *s, struct join_request *r, struct span key, struct span name,
                 bool enters)
{
    r->args[0] = name;
    r->args[1] = span_of(enters ? "1" : "0");

    r->request.script = SCRIPT_JOIN;
    r->request.key = key;
    r->request.args = r->args;
    r->request.n_args = 2 + r->n_gone;
    r->request.end = on_join;
    script_submit(s, &r->request);
}

static void on_eviction(struct script_request *request, int err, const struct redisReply *answer)
{
    struct eviction_request *r = CONTAINER(request, struct eviction_request, request);
    struct eviction_reply reply;

    if (!err && !eviction_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

void script_eviction(struct script *s, struct eviction_request *r, struct span key)
{
    r->request.script = SCRIPT_EVICTION;
    r->request.key = key;
    r->request.args = NULL;
    r->request.n_args = 0;
    r->request.end = on_eviction;
    script_submit(s, &r->request);
}

/* ---- history ---- */
static void on_count(struct script_request *request, int err, const struct redisReply *answer)
{
    struct count_request *r = CONTAINER(request, struct count_request, request);
    struct count_reply reply;

    if (!err && !count_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

void script_count(struct script *s, struct count_request *r, struct span key,
                  const struct counted *c)
{
    r->args[0] = c->sender;
    r->args[1] = arg_number(r->number, c->number);
    r->args[2] = c->counts;

    r->request.script = SCRIPT_COUNT;
    r->request.key = key;
    r->request.args = r->args;
    r->request.n_args = 3;
    r->request.end = on_count;
    script_submit(s, &r->request);
}

static void on_history(struct script_request *request, int err, const struct redisReply *answer)
{
    struct history_request *r = CONTAINER(request, struct history_request, request);
    struct history_reply reply;

    if (!err && !history_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

void script_history(struct script *s, struct history_request *r, struct span key, int64_t from_ms,
                    int64_t to_ms)
{
    r->args[0] = arg_number(r->from, from_ms);
    r->args[1] = arg_number(r->to, to_ms);

    r->request.script = SCRIPT_HISTORY;
    r->request.key = key;
    r->request.args = r->args;
    r->request.n_args = 2;
    r->request.end = on_history;
    script_submit(s, &r->request);
}

bool script_past_row(const struct history_reply *reply, size_t i, struct past_row *out)
{
    return reply_int(history_reply_from_ms(reply, i), &out->from_ms) &&
           reply_int(history_reply_length_ms(reply, i), &out->length_ms) &&
           reply_text(history_reply_counts(reply, i), &out->counts);
}

/* ---- the registry ---- */
static void on_enter(struct script_request *request, int err, const struct redisReply *answer)
{
    struct enter_request *r = CONTAINER(request, struct enter_request, request);
    struct enter_reply reply;

    if (!err && !enter_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

void script_enter(struct script *s, struct enter_request *r, struct span key,
                  const struct span *names, unsigned n)
{
    r->request.script = SCRIPT_ENTER;
    r->request.key = key;
    r->request.args = names;
    r->request.n_args = n;
    r->request.end = on_enter;
    script_submit(s, &r->request);
}

static void on_names(struct script_request *request, int err, const struct redisReply *answer)
{
    struct names_request *r = CONTAINER(request, struct names_request, request);
    struct names_reply reply;

    if (!err && !names_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

/* sign: '[' with the name, '(' without it. */
static void names_end_set(struct names_end *end, char sign, struct span name)
{
    end->text[0] = sign;
    memcpy(end->text + 1, name.at, name.len);
    end->len = 1 + name.len;
}

void names_between(struct names_request *r, struct span first, struct span last)
{
    names_end_set(&r->from, '[', first);
    names_end_set(&r->to, '[', last);
}

/* They are all below their beginning with a byte that no name has. */
void names_of(struct names_request *r, struct span beginning)
{
    names_end_set(&r->from, '[', beginning);
    names_end_set(&r->to, '(', beginning);
    r->to.text[r->to.len++] = '~';
}

bool names_go_behind(struct names_request *r, struct span name)
{
    if (name.len > KEYS_QUEUE_MAX) {
        return false;
    }

    names_end_set(&r->from, '(', name);
    return true;
}

void script_names(struct script *s, struct names_request *r, struct span key)
{
    r->args[0] = (struct span){r->from.text, r->from.len};
    r->args[1] = (struct span){r->to.text, r->to.len};
    r->args[2] = arg_number(r->limit, SCRIPT_BATCH);

    r->request.script = SCRIPT_NAMES;
    r->request.key = key;
    r->request.args = r->args;
    r->request.n_args = 3;
    r->request.end = on_names;
    script_submit(s, &r->request);
}

static void on_forget(struct script_request *request, int err, const struct redisReply *answer)
{
    struct forget_request *r = CONTAINER(request, struct forget_request, request);
    struct forget_reply reply;

    if (!err && !forget_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

void script_forget(struct script *s, struct forget_request *r, struct span key, struct span name)
{
    r->args[0] = name;

    r->request.script = SCRIPT_FORGET;
    r->request.key = key;
    r->request.args = r->args;
    r->request.n_args = 1;
    r->request.end = on_forget;
    script_submit(s, &r->request);
}

/* ---- who listens ---- */
static void on_alive(struct script_request *request, int err, const struct redisReply *answer)
{
    struct alive_request *r = CONTAINER(request, struct alive_request, request);
    struct alive_reply reply;

    if (!err && !alive_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

void script_alive(struct script *s, struct alive_request *r, struct span key)
{
    r->request.script = SCRIPT_ALIVE;
    r->request.key = key;
    r->request.args = NULL;
    r->request.n_args = 0;
    r->request.end = on_alive;
    script_submit(s, &r->request);
}

static void on_tell(struct script_request *request, int err, const struct redisReply *answer)
{
    struct tell_request *r = CONTAINER(request, struct tell_request, request);
    struct tell_reply reply;

    if (!err && !tell_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

void script_tell(struct script *s, struct tell_request *r, struct span key, struct span name,
                 enum lapse_told told)
{
    r->args[0] = name;
    r->args[1] = arg_number(r->told, told);

    r->request.script = SCRIPT_TELL;
    r->request.key = key;
    r->request.args = r->args;
    r->request.n_args = 2;
    r->request.end = on_tell;
    script_submit(s, &r->request);
}

static void on_listeners(struct script_request *request, int err, const struct redisReply *answer)
{
    struct listeners_request *r = CONTAINER(request, struct listeners_request, request);
    struct listeners_reply reply;

    if (!err && !listeners_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

void script_listeners(struct script *s, struct listeners_request *r, struct span key,
                      const struct span *names, unsigned n)
{
    r->request.script = SCRIPT_LISTENERS;
    r->request.key = key;
    r->request.args = names;
    r->request.n_args = n;
    r->request.end = on_listeners;
    script_submit(s, &r->request);
}

static void on_remove(struct script_request *request, int err, const struct redisReply *answer)
{
    struct remove_request *r = CONTAINER(request, struct remove_request, request);
    struct remove_reply reply;

    if (!err && !remove_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

void script_remove(struct script *s, struct remove_request *r, struct span key,
                   const struct span *args, unsigned n)
{
    r->request.script = SCRIPT_REMOVE;
    r->request.key = key;
    r->request.args = args;
    r->request.n_args = n;
    r->request.end = on_remove;
    script_submit(s, &r->request);
}
