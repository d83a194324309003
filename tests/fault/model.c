/* SPDX-License-Identifier: MIT */
#include "model.h"
#include <string.h>

static const char lease_ended[] = "the lease ended";

/* ---- what is so of a job ---- */
int64_t model_ms(const struct model *m)
{
    return m->now_us / 1000;
}

bool model_is_known(const struct model *m, const struct job *j)
{
    return j->kind != NONE && !(j->kind == KEPT && j->ms <= model_ms(m));
}

bool model_is_over(const struct model *m, const struct job *j)
{
    return j->kind == RUNNING && j->ms <= model_ms(m);
}

bool model_runs(const struct model *m, const struct job *j)
{
    return j->kind == RUNNING && j->ms > model_ms(m);
}

bool model_is_due(const struct model *m, const struct job *j)
{
    return j->kind == WAITING && j->ms <= model_ms(m);
}

bool model_is_marked(const struct job *j)
{
    return j->attempt.is_there && (j->attempt.stops || j->attempt.again_ms);
}

bool model_is_before(const struct model *m, int left, int right)
{
    const struct job *a = &m->job[left];
    const struct job *b = &m->job[right];

    if (a->ms != b->ms) {
        return a->ms < b->ms;
    }
    if (a->kind == WAITING && b->kind == WAITING && a->record.priority != b->record.priority) {
        return a->record.priority > b->record.priority;
    }
    return left < right;
}

bool model_used_up(const struct attempt *a)
{
    return a->tries != FOREVER && a->tried >= a->tries;
}

/* The defaults of a record: 1 s, an hour. */
int64_t model_backoff_ms(const struct attempt *a)
{
    int64_t wait_ms = 1000;

    for (int64_t i = 1; i < a->tried && wait_ms < 3600000; i++) {
        wait_ms *= 2;
    }
    wait_ms = wait_ms < 3600000 ? wait_ms : 3600000;

    double turns = (double)(a->token % 1000000) * 0.6180339887498949;
    double part = turns - (double)(int64_t)turns;
    return wait_ms - (int64_t)(part * (double)(wait_ms / 4 + 1));
}

/* When a job is due whose lease ended; 0: it dies. */
static int64_t due_after_lease(const struct job *j)
{
    const struct attempt *a = &j->attempt;
    int64_t due_ms = j->ms;

    if (strcmp(a->reason, lease_ended) == 0) {
        due_ms += model_backoff_ms(a);
    }
    bool is_too_late = a->last_ms && due_ms > a->last_ms;
    return model_used_up(a) || is_too_late ? 0 : due_ms;
}

enum kind model_shown(const struct model *m, const struct job *j)
{
    if (!model_is_over(m, j)) {
        return j->kind;
    }
    return model_is_marked(j) || due_after_lease(j) ? WAITING : DIED;
}

int64_t model_shown_ms(const struct model *m, const struct job *j)
{
    if (!model_is_over(m, j)) {
        return j->ms;
    }
    if (model_is_marked(j)) {
        return j->attempt.again_ms ? j->attempt.again_ms : j->ms;
    }

    int64_t due_ms = due_after_lease(j);
    return due_ms ? due_ms : j->ms;
}

const struct record *model_record(const struct model *m, const struct job *j)
{
    return model_is_over(m, j) && j->attempt.follows ? &j->next : &j->record;
}

/* ---- keys ---- */
static bool holds(const struct model *m, int id, int key)
{
    const struct job *j = &m->job[id];
    const struct attempt *a = &j->attempt;

    if (!m->entered[key][id]) {
        return false;
    }
    if (j->kind == RUNNING && a->follows && j->next.key == key) {
        return true;
    }

    bool lives = j->kind == WAITING || j->kind == RUNNING;
    bool began = a->is_there && a->token;
    bool is_past = model_is_over(m, j) && a->follows;
    return lives && j->record.key == key && !(j->record.until_start && began) && !is_past &&
           model_shown(m, j) != DIED;
}

int model_holder(struct model *m, int key, bool cleans)
{
    for (int id = 0; key && id < m->n_ids; id++) {
        if (holds(m, id, key)) {
            return id;
        }
        if (cleans) {
            m->entered[key][id] = false;
        }
    }
    return -1;
}

bool model_may_wait(struct model *m, int id)
{
    int holder = model_holder(m, model_record(m, &m->job[id])->key, true);
    return holder < 0 || holder == id;
}

bool model_has_lost_key(const struct model *m, int id)
{
    const struct job *j = &m->job[id];
    const struct record *r = &j->record;

    return model_is_over(m, j) && r->key && !r->until_start && !m->entered[r->key][id];
}

static void leaves_key(struct model *m, int id, int key)
{
    m->entered[key][id] = false;
}

/* The key of next has an entry of its own, unless the run holds the same. */
static bool next_has_own_key(const struct job *j)
{
    return j->next.key && (j->record.key != j->next.key || j->record.until_start);
}

/* ---- what happens to a job that waits, or is dead ---- */
void model_gone(struct model *m, int id)
{
    struct job *j = &m->job[id];

    if (j->kind != NONE) {
        leaves_key(m, id, j->record.key);
        leaves_key(m, id, j->attempt.follows ? j->next.key : 0);
    }
    *j = (struct job){.kind = NONE};
}

void model_ends(struct model *m, int id, enum lapse_end end, int64_t due_ms)
{
    struct job *j = &m->job[id];
    struct record record = *model_record(m, j);
    struct attempt a = j->attempt;

    model_gone(m, id);
    if (!record.keep_ms) {
        return;
    }

    if (!a.is_there) {
        a = (struct attempt){.holder = -1, .tries = record.tries, .reason = ""};
    }
    a.is_there = true;
    a.due_ms = due_ms ? due_ms : a.due_ms;
    a.end = end;
    a.is_marked_record = a.stops = a.follows = false;
    a.priority = 0;
    a.last_ms = a.again_ms = a.limit_ms = 0;
    *j = (struct job){KEPT, model_ms(m) + record.keep_ms, record, {0}, a};
}

/* It waits with its record, as if no run had been. */
static void begins(struct job *j, int64_t due_ms, int64_t limit_ms)
{
    j->kind = WAITING;
    j->ms = due_ms;
    j->next = (struct record){0};
    j->attempt = (struct attempt){0};
    if (limit_ms) {
        j->attempt = (struct attempt){
            .is_there = true,
            .holder = -1,
            .tries = j->record.tries,
            .due_ms = due_ms,
            .reason = "",
            .limit_ms = limit_ms,
        };
    }
}

void model_make(struct model *m, int id, const struct record *record, int64_t due_ms,
                int64_t limit_ms)
{
    model_gone(m, id);
    m->job[id].record = *record;
    m->entered[record->key][id] = record->key > 0;
    begins(&m->job[id], due_ms, limit_ms);
}

void model_waits_again(struct model *m, int id, int64_t due_ms)
{
    struct job *j = &m->job[id];
    int64_t limit_ms = j->attempt.follows ? j->attempt.limit_ms : 0;

    if (j->attempt.follows) {
        leaves_key(m, id, j->record.key != j->next.key ? j->record.key : 0);
        j->record = j->next;
    }
    begins(j, due_ms, limit_ms);
}

void model_put_off(struct model *m, int id, int64_t due_ms)
{
    struct job *j = &m->job[id];

    if (model_shown(m, j) == DIED) {
        m->entered[j->record.key][id] = j->record.key > 0;
        begins(j, due_ms, 0);
    } else if (model_is_marked(j)) {
        model_waits_again(m, id, due_ms);
    } else {
        j->kind = WAITING;
        j->ms = due_ms;
    }
}

void model_kill(struct model *m, int id, const char *reason)
{
    struct job *j = &m->job[id];
    struct attempt *a = &j->attempt;

    if (j->kind == DIED) {
        return;
    }
    if (!a->is_there) {
        *a = (struct attempt){.is_there = true, .holder = -1, .tries = j->record.tries};
        a->due_ms = j->ms;
    }
    if (a->follows) {
        leaves_key(m, id, j->record.key);
        j->record = j->next;
        a->limit_ms = 0;
        a->has_report = a->keeps_errors = false; /* a life has begun, and has none */
        a->n_errors = 0;
    }
    a->stops = a->follows = false;
    a->again_ms = 0;
    model_dies(m, id, model_ms(m), reason);
}

/* ---- claims ---- */
static bool guard_is_met(const struct model *m, char guard)
{
    switch (guard) {
    case '=': return m->guard_value == 1;
    case '!': return m->guard_value != 1;
    case '+': return m->guard_value != 0;
    case '-': return m->guard_value == 0;
    default: return true;
    }
}

/* The last moment at which a run may begin; 0: any. */
static int64_t last_ms(const struct job *j)
{
    const struct attempt *a = &j->attempt;

    if (!j->record.retry_for_ms) {
        return 0;
    }
    if (a->is_there && a->due_ms == j->ms && a->last_ms) {
        return a->last_ms;
    }
    return j->ms + j->record.retry_for_ms;
}

enum kind model_verdict(const struct model *m, const struct job *j, const char **reason)
{
    const struct record *r = &j->record;

    *reason = "too late: more than max_late_ms after it was due";
    if (r->late_ms && model_ms(m) - j->ms > r->late_ms) {
        return r->late_dies ? DIED : SKIPPED;
    }
    *reason = "too late: more than retry_for_ms after it was first due";
    if (last_ms(j) && model_ms(m) > last_ms(j)) {
        return DIED;
    }
    return guard_is_met(m, r->guard) ? RUNNING : SKIPPED;
}

void model_claim(struct model *m, int id, int holder, int64_t lease_ms)
{
    struct job *j = &m->job[id];
    struct attempt *a = &j->attempt;
    int64_t begins_by_ms = last_ms(j);
    const char *reason;
    enum kind verdict = model_verdict(m, j, &reason);

    if (verdict == SKIPPED) {
        model_ends(m, id, LAPSE_ENDED_SKIPPED, j->ms);
        return;
    }

    a->reason = a->is_there ? a->reason : "";
    a->is_there = true;
    a->holder = holder;
    a->tries = j->record.tries;
    a->claimed_us = m->now_us;
    a->due_ms = j->ms;
    a->is_marked_record = j->record.tags || j->record.key || j->record.keep_ms;
    a->keeps_errors = j->record.keeps_errors;
    a->priority = j->record.priority;
    a->last_ms = begins_by_ms;
    a->limit_ms = 0;
    if (verdict == DIED) {
        model_fails(a, model_ms(m), reason);
        model_dies(m, id, model_ms(m), reason);
        return;
    }

    m->token = (m->token > (uint64_t)m->now_us ? m->token : (uint64_t)m->now_us) + 1;
    a->token = m->token;
    a->tried++;
    j->kind = RUNNING;
    j->ms = model_ms(m) + lease_ms;
    leaves_key(m, id, j->record.until_start ? j->record.key : 0);
}

/* ---- what happens to a job that runs ---- */
void model_fails(struct attempt *a, int64_t at_ms, const char *reason)
{
    a->reason = reason;
    if (!a->keeps_errors) {
        return;
    }
    if (a->n_errors == MODEL_ERRORS) {
        memmove(a->error, a->error + 1, (MODEL_ERRORS - 1) * sizeof *a->error);
        a->n_errors--;
    }
    a->error[a->n_errors++] = (struct error){at_ms, a->tried, reason};
}

void model_stop(struct model *m, int id)
{
    struct job *j = &m->job[id];
    struct attempt *a = &j->attempt;

    if (a->follows) {
        leaves_key(m, id, next_has_own_key(j) ? j->next.key : 0);
        a->follows = false;
        a->limit_ms = 0;
    }
    a->again_ms = 0;
    a->stops = true;
}

void model_ask_again(struct model *m, int id, int64_t due_ms)
{
    m->job[id].attempt.stops = false;
    m->job[id].attempt.again_ms = due_ms;
}

void model_follow(struct model *m, int id, const struct record *record, int64_t due_ms,
                  int64_t limit_ms)
{
    struct job *j = &m->job[id];
    struct attempt *a = &j->attempt;

    if (a->follows) {
        leaves_key(m, id, next_has_own_key(j) ? j->next.key : 0);
    }
    j->next = *record;
    if (next_has_own_key(j)) {
        m->entered[record->key][id] = true;
    }
    a->follows = true;
    a->limit_ms = a->limit_ms ? a->limit_ms : limit_ms;
    model_ask_again(m, id, due_ms);
}

void model_dies(struct model *m, int id, int64_t ms, const char *reason)
{
    struct job *j = &m->job[id];

    leaves_key(m, id, j->record.key);
    j->kind = DIED;
    j->ms = ms;
    j->attempt.reason = reason;
}

void model_sweep(struct model *m, int id)
{
    struct job *j = &m->job[id];
    struct attempt *a = &j->attempt;

    if (a->again_ms) {
        model_waits_again(m, id, a->again_ms);
        return;
    }
    if (a->stops) {
        model_ends(m, id, LAPSE_ENDED_CANCELLED, 0);
        return;
    }

    int64_t due_ms = due_after_lease(j);
    model_fails(a, j->ms, lease_ended);
    if (!due_ms) {
        a->due_ms = j->ms;
        model_dies(m, id, j->ms, lease_ended);
        return;
    }
    j->kind = WAITING;
    j->ms = a->due_ms = due_ms;
}
