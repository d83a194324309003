/* SPDX-License-Identifier: MIT */
/* The scripts of src/lua/queue, a function each; job_verbs.h says what holds for all requests. The
 * reply that end() gets is NULL on an error. */
#ifndef LAPSE_QUEUE_VERBS_H
#define LAPSE_QUEUE_VERBS_H
#include "job/job.h"
#include "job/keys.h"
#include "script/args.h"
#include "script/script.h"
#include "script_replies.h"

/* ---- for users ---- */
struct depth_request {
    struct script_request request;
    void (*end)(struct depth_request *r, int err, const struct depth_reply *reply);
};

void script_depth(struct script *s, struct depth_request *r, struct span key);
void script_depth_read(const struct depth_reply *reply, struct lapse_depth *out);

struct list_page {
    enum lapse_state state;
    unsigned limit;
    int64_t after_score_ms;
    unsigned after_priority; /* of a waiting job */
    struct span after_id;    /* of the last job of the page before; empty for the first page */
};

enum { ARG_SCORE_MAX = 40 };

struct list_request {
    struct script_request request;
    struct span args[4];
    char state[ARG_NUMBER_MAX];
    char limit[ARG_NUMBER_MAX];
    char score[ARG_SCORE_MAX];
    /* of list_tag too: it answers as list does */
    void (*end)(struct list_request *r, int err, const struct list_reply *reply);
};

void script_list(struct script *s, struct list_request *r, struct span key,
                 const struct list_page *page);

/* after_id: of the last job of the page before; empty for the first page. */
void script_list_tag(struct script *s, struct list_request *r, struct span key, struct span tag,
                     unsigned limit, struct span after_id);

/* The i-th job of a page; false: its row cannot be read. */
bool script_listed_job(const struct list_reply *reply, size_t i, struct job_row *row);

struct configure_request {
    struct script_request request;
    struct span args[1];
    void (*end)(struct configure_request *r, int err, const struct configure_reply *reply);
};

/* changes: "name=value name=value", not copied; empty: only shows the settings. */
void script_configure(struct script *s, struct configure_request *r, struct span key,
                      struct span changes);

struct adopt_page {
    struct span group;
    struct span consumer;
    int64_t idle_ms;
    unsigned limit;   /* 0 to SCRIPT_BATCH; 0: only removes consumers */
    struct span from; /* "-", "(ENTRY", or next of the reply before */
    int64_t gone_ms;
};

struct adopt_request {
    struct script_request request;
    struct span args[6];
    char idle[ARG_NUMBER_MAX];
    char limit[ARG_NUMBER_MAX];
    char gone[ARG_NUMBER_MAX];
    void (*end)(struct adopt_request *r, int err, const struct adopt_reply *reply);
};

/* The texts of page are not copied. */
void script_adopt(struct script *s, struct adopt_request *r, struct span key,
                  const struct adopt_page *page);

/* The i-th entry that was moved; false: it cannot be read. */
bool script_adopted_entry(const struct adopt_reply *reply, size_t i, struct job_entry *entry);

/* ---- for listeners ---- */
struct arm_request {
    struct script_request request;
    struct span args[1];
    char cursor[ARG_NUMBER_MAX];
    void (*end)(struct arm_request *r, int err, const struct arm_reply *reply);
};

void script_arm(struct script *s, struct arm_request *r, struct span key, int64_t cursor_ms);

struct trim_request {
    struct script_request request;
    void (*end)(struct trim_request *r, int err, const struct trim_reply *reply);
};

void script_trim(struct script *s, struct trim_request *r, struct span key);

struct heartbeat {
    struct span name; /* not copied */
    int64_t life_ms;  /* 0: the listener ends */
    enum lapse_told told;
    int64_t known; /* the version of the names that the listener knows; 0: it knows none */
};

struct heartbeat_request {
    struct script_request request;
    struct span args[4];
    char life[ARG_NUMBER_MAX];
    char told[ARG_NUMBER_MAX];
    char known[ARG_NUMBER_MAX];
    void (*end)(struct heartbeat_request *r, int err, const struct heartbeat_reply *reply);
};

/* key: that of keys_alive(). */
void script_heartbeat(struct script *s, struct heartbeat_request *r, struct span key,
                      const struct heartbeat *h);

/* A listener that is alive, as heartbeat and alive name it. */
struct live_listener {
    struct span name;
    int64_t end_ms; /* of its heartbeat */
    enum lapse_told told;
};
/* name, end: of the reply. false: they cannot be read; if the name can, it is set. */
bool script_live_listener(const struct redisReply *name, const struct redisReply *end,
                          struct live_listener *out);

enum { JOIN_GONE_MAX = 8 };

struct join_request {
    struct script_request request;
    struct span args[2 + JOIN_GONE_MAX];
    unsigned n_gone;
    void (*end)(struct join_request *r, int err, const struct join_reply *reply);
};

/* Forgets the names that were added before. */
static inline void script_join_clear(struct join_request *r)
{
    r->n_gone = 0;
}

/* Adds the name of a dead listener, to be removed; not copied. It does nothing when there are
 * JOIN_GONE_MAX. */
void script_join_add_gone(struct join_request *r, struct span name);
/* enters: the listener does; otherwise it leaves. */
void script_join(struct script *s, struct join_request *r, struct span key, struct span name,
                 bool enters);

struct eviction_request {
    struct script_request request;
    void (*end)(struct eviction_request *r, int err, const struct eviction_reply *reply);
};

void script_eviction(struct script *s, struct eviction_request *r, struct span key);

/* ---- history ---- */
struct counted {
    struct span sender; /* empty: it never asks again */
    int64_t number;
    struct span counts;
};

struct count_request {
    struct script_request request;
    struct span args[3];
    char number[ARG_NUMBER_MAX];
    void (*end)(struct count_request *r, int err, const struct count_reply *reply);
};

/* The texts of c are not copied. */
void script_count(struct script *s, struct count_request *r, struct span key,
                  const struct counted *c);

struct history_request {
    struct script_request request;
    struct span args[2];
    char from[ARG_NUMBER_MAX];
    char to[ARG_NUMBER_MAX];
    void (*end)(struct history_request *r, int err, const struct history_reply *reply);
};

void script_history(struct script *s, struct history_request *r, struct span key, int64_t from_ms,
                    int64_t to_ms);

/* A row of the history. */
struct past_row {
    int64_t from_ms;
    int64_t length_ms;
    struct span counts;
};

/* false: the i-th row cannot be read. */
bool script_past_row(const struct history_reply *reply, size_t i, struct past_row *out);

/* ---- the registry: key is that of keys_queues() ---- */
struct enter_request {
    struct script_request request;
    void (*end)(struct enter_request *r, int err, const struct enter_reply *reply);
};

/* names: up to SCRIPT_BATCH, not copied. */
void script_enter(struct script *s, struct enter_request *r, struct span key,
                  const struct span *names, unsigned n);

/* One end of a range of names, as ZRANGEBYLEX has it. Any byte may be in a name that another
 * program has written. */
struct names_end {
    size_t len;
    char text[1 + KEYS_QUEUE_MAX + 1];
};

struct names_request {
    struct script_request request;
    struct span args[3];
    char limit[ARG_NUMBER_MAX];
    struct names_end from;
    struct names_end to;
    void (*end)(struct names_request *r, int err, const struct names_reply *reply);
};

/* Which names are to be read: all from one to another, or all of one beginning. */
void names_between(struct names_request *r, struct span first, struct span last);
void names_of(struct names_request *r, struct span beginning);
/* Of them a page, which has SCRIPT_BATCH names unless it is the last. */
void script_names(struct script *s, struct names_request *r, struct span key);
/* From now on only those behind this one, the last of a page. false: it is too long for that. */
bool names_go_behind(struct names_request *r, struct span name);

struct forget_request {
    struct script_request request;
    struct span args[1];
    void (*end)(struct forget_request *r, int err, const struct forget_reply *reply);
};

/* name: not copied. */
void script_forget(struct script *s, struct forget_request *r, struct span key, struct span name);

/* ---- who listens ---- */
struct alive_request {
    struct script_request request;
    void (*end)(struct alive_request *r, int err, const struct alive_reply *reply);
};

/* key: that of keys_alive(). */
void script_alive(struct script *s, struct alive_request *r, struct span key);

struct tell_request {
    struct script_request request;
    struct span args[2];
    char told[ARG_NUMBER_MAX];
    void (*end)(struct tell_request *r, int err, const struct tell_reply *reply);
};

/* key: that of keys_alive(). name: not copied. */
void script_tell(struct script *s, struct tell_request *r, struct span key, struct span name,
                 enum lapse_told told);

struct listeners_request {
    struct script_request request;
    void (*end)(struct listeners_request *r, int err, const struct listeners_reply *reply);
};

/* names: of those that are alive, not copied. */
void script_listeners(struct script *s, struct listeners_request *r, struct span key,
                      const struct span *names, unsigned n);

struct remove_request {
    struct script_request request;
    void (*end)(struct remove_request *r, int err, const struct remove_reply *reply);
};

/* args: "1" by force, or "0", then the names of those that are alive; not copied. */
void script_remove(struct script *s, struct remove_request *r, struct span key,
                   const struct span *args, unsigned n);

#endif
