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

bool model_is_series(const struct model *m, const struct job *j)
{
    return j->kind != NONE && model_record(m, j)->rule.catch_up;
}

bool model_is_maker(const struct model *m, const struct job *j)
{
    return j->kind != NONE && (model_is_series(m, j) || model_record(m, j)->group.most);
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

    /* who makes jobs comes before these, and these before the next id */
    struct made x = left < m->n_ids ? (struct made){left, 0} : m->made[left];
    struct made y = right < m->n_ids ? (struct made){right, 0} : m->made[right];
    return x.maker != y.maker ? x.maker < y.maker : x.token < y.token;
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
    a.is_marked_record = a.follows = a.awaits = false;
    a.stops = a.priority = 0;
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

    if (j->kind == DIED && j->attempt.counts) {
        j->kind = WAITING; /* a series goes on counting, and a group has its parts */
        j->ms = due_ms;
    } else if (model_shown(m, j) == DIED) {
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
    a->follows = false;
    a->stops = 0;
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

static uint64_t next_token(struct model *m)
{
    m->token = (m->token > (uint64_t)m->now_us ? m->token : (uint64_t)m->now_us) + 1;
    return m->token;
}

void model_claim(struct model *m, int id, int holder, int64_t lease_ms)
{
    struct job *j = &m->job[id];
    struct attempt *a = &j->attempt;
    int64_t begins_by_ms = last_ms(j);
    const char *reason;
    enum kind verdict = model_verdict(m, j, &reason);
    bool is_first = id > 0 && id == m->just_made;

    m->just_made = 0;
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
    a->is_marked_record =
        j->record.tags || j->record.key || j->record.keep_ms || j->record.batch || j->record.moment;
    a->keeps_errors = j->record.keeps_errors;
    a->priority = j->record.priority;
    a->last_ms = begins_by_ms;
    a->limit_ms = 0;
    a->awaits = false;
    if (verdict == DIED) {
        model_fails(a, model_ms(m), reason);
        model_dies(m, id, model_ms(m), reason);
        return;
    }

    a->token = is_first ? m->token : next_token(m);
    a->tried++;
    j->kind = RUNNING;
    j->ms = model_ms(m) + lease_ms;
    leaves_key(m, id, j->record.until_start ? j->record.key : 0);
}

/* ---- series ---- */
enum { FEW = 8 };

/* The moment that a series is at: when it is, its number, and when the next one is; 0: there is
 * none. Of a calendar with few moments, how many are left; else -1. */
struct moment {
    int64_t ms, n, next_ms;
    int left;
};

int64_t model_first_moment(const struct rule *rule, int64_t behind_ms)
{
    for (int i = 0; i < rule->n_moments; i++) {
        if (rule->moment_ms[i] > behind_ms) {
            return rule->moment_ms[i];
        }
    }
    return 0;
}

static void calendar_moment(const struct rule *r, int64_t now_ms, struct moment *at)
{
    at->left = 0;
    for (int i = 0; i < r->n_moments; i++) {
        int64_t ms = r->moment_ms[i];
        bool may_pass = r->catch_up != 'a' && (!r->times || at->n < r->times);
        if (ms <= at->ms) {
            continue;
        }
        if (ms <= now_ms && may_pass) {
            at->ms = ms;
            at->n++;
        } else {
            at->next_ms = at->next_ms ? at->next_ms : ms;
            at->left++;
        }
    }
}

static struct moment moment_of(const struct model *m, const struct job *j)
{
    const struct rule *r = &j->record.rule;
    struct moment at = {.ms = j->ms, .n = j->attempt.n + 1, .left = -1};
    int64_t until_ms = model_ms(m);

    until_ms = r->until_ms && r->until_ms < until_ms ? r->until_ms : until_ms;
    if (r->n_moments) {
        calendar_moment(r, until_ms, &at);
    } else if (r->every_ms) {
        int64_t passed = r->catch_up == 'a' ? 0 : (until_ms - at.ms) / r->every_ms;
        if (r->times && passed > r->times - at.n) {
            passed = r->times - at.n;
        }
        passed = passed > 0 ? passed : 0;
        at.ms += passed * r->every_ms;
        at.n += passed;
        at.next_ms = at.ms + r->every_ms;
    } else if (at.n <= r->n_stages) {
        int64_t before_ms = at.n > 1 ? r->stage_ms[at.n - 2] : 0;
        at.next_ms = at.ms + r->stage_ms[at.n - 1] - before_ms;
    }
    if ((r->times && at.n >= r->times) || (r->until_ms && at.next_ms > r->until_ms)) {
        at.next_ms = 0;
        at.left = -1;
    } else if (r->is_whole || at.left >= FEW) {
        at.left = -1;
    } else if (at.left == 0) {
        at.next_ms = model_ms(m) + LOOK_MS;
    }
    return at;
}

/* Of a calendar that looks for moments: it is at none. */
static struct moment dry_moment(const struct model *m, const struct job *j)
{
    const struct attempt *a = &j->attempt;
    int64_t next_ms = j->record.rule.is_whole ? 0 : model_ms(m) + LOOK_MS;

    return (struct moment){.ms = a->due_ms, .n = a->n, .next_ms = next_ms};
}

/* Does a job of it wait or run, also where a lease is over? */
static bool overlaps(const struct model *m, int id)
{
    for (int i = m->n_ids; i < m->n_jobs; i++) {
        const struct job *j = &m->job[i];
        bool lives = j->kind == WAITING || j->kind == RUNNING;
        if (lives && j->record.moment && m->made[i].maker == id) {
            return true;
        }
    }
    return false;
}

void model_sees_overlaps(struct model *m, const int *ids, int n)
{
    for (int i = 0; i < n; i++) {
        m->overlaps[ids[i]] = overlaps(m, ids[i]);
    }
}

/* The nth job of a maker waits, under the last token. */
static int made_place(struct model *m, int maker, struct record record, int64_t n, int64_t due_ms)
{
    for (int i = m->n_ids; i < m->n_jobs; i++) {
        if (m->made[i].token == 0) {
            m->made[i] = (struct made){maker, m->token};
            record.rule = (struct rule){0};
            record.group = (struct limits){0};
            record.moment = n;
            record.created_ms = record.created_ms ? model_ms(m) : 0;
            m->job[i] = (struct job){.kind = WAITING, .ms = due_ms, .record = record};
            return i;
        }
    }
    return MODEL_NO_PLACE;
}

/* All parts of a group become a job. */
static int made_of_parts(struct model *m, int id, int64_t due_ms)
{
    const struct job *j = &m->job[id];
    struct record record = j->record;

    next_token(m);
    record.parts = j->attempt.parts;
    return made_place(m, id, record, j->attempt.n + 1, due_ms);
}

static int group_fires(struct model *m, int id)
{
    int made = made_of_parts(m, id, m->job[id].ms);

    m->just_made = made;
    model_gone(m, id);
    return made;
}

static int series_fires(struct model *m, int id)
{
    struct job *j = &m->job[id];
    const struct rule *rule = &j->record.rule;
    struct record record = j->record;
    bool is_dry = j->attempt.is_dry;
    struct moment at = is_dry ? dry_moment(m, j) : moment_of(m, j);
    int64_t most_ms = record.late_ms ? record.late_ms : 60000;
    bool is_late = rule->catch_up == 'n' && !rule->n_stages && model_ms(m) - at.ms > most_ms;
    bool is_over = rule->until_ms && at.ms > rule->until_ms;
    bool is_overlap = rule->no_overlap && m->overlaps[id];
    bool passes = is_dry || j->attempt.is_paused || is_late || is_over || is_overlap;
    struct attempt a = {
        .is_there = true,
        .token = j->attempt.token,
        .holder = -1,
        .tried = j->attempt.tried,
        .tries = record.tries,
        .claimed_us = j->attempt.claimed_us,
        .due_ms = at.ms,
        .reason = "",
        .counts = true,
        .n = at.n,
        .is_paused = j->attempt.is_paused,
        .is_dry = at.left == 0,
    };

    next_token(m);
    if (!passes) {
        a.token = m->token;
        a.tried++;
        a.claimed_us = m->now_us;
    }
    j->attempt = a;
    j->ms = at.next_ms;
    if (!at.next_ms) {
        model_ends(m, id, LAPSE_ENDED_DONE, at.ms);
    } else if (at.left >= 0) {
        m->few[m->n_few++] = id;
    }
    if (passes) {
        return MODEL_NO_JOB;
    }

    int made = made_place(m, id, record, at.n, at.ms);
    m->just_made = made;
    return made;
}

int model_fires(struct model *m, int id)
{
    return model_is_series(m, &m->job[id]) ? series_fires(m, id) : group_fires(m, id);
}

int64_t model_refill(struct model *m, int id, const struct rule *moments)
{
    struct job *j = &m->job[id];
    struct attempt *a = &j->attempt;
    struct rule *rule = &j->record.rule;
    int64_t begins_ms = model_first_moment(moments, model_ms(m) - LOOK_MS);
    int64_t first_ms = model_first_moment(moments, a->due_ms);

    rule->n_moments = moments->n_moments;
    rule->is_whole = moments->is_whole;
    memcpy(rule->moment_ms, moments->moment_ms, sizeof rule->moment_ms);
    if (a->is_dry) {
        a->is_dry = first_ms == 0;
        j->ms = first_ms ? first_ms : model_ms(m);
    } else if (a->n == 0 && begins_ms && begins_ms < j->ms) {
        j->ms = begins_ms;
    }
    return j->ms;
}

void model_forgets_made(struct model *m)
{
    for (int i = m->n_ids; i < m->n_jobs; i++) {
        if (m->job[i].kind == NONE) {
            m->made[i] = (struct made){0};
        }
    }
}

void model_pause(struct model *m, int id, bool is_paused)
{
    struct job *j = &m->job[id];
    struct attempt *a = &j->attempt;

    (void)m;
    if (!a->is_there) {
        *a = (struct attempt){
            .is_there = true,
            .holder = -1,
            .tries = j->record.tries,
            .due_ms = j->ms,
            .reason = "",
        };
    }
    a->counts = true;
    a->is_paused = is_paused;
}

void model_descent_ends(struct model *m, int id, bool stops)
{
    for (int i = m->n_ids; i < m->n_jobs; i++) {
        struct job *j = &m->job[i];
        if (m->made[i].maker != id || j->kind == NONE || model_record(m, j)->moment == 0) {
            continue;
        }
        if (model_shown(m, j) == WAITING) {
            model_ends(m, i, LAPSE_ENDED_CANCELLED, j->kind == WAITING ? j->ms : 0);
        } else if (model_shown(m, j) == RUNNING) {
            model_stop(m, i);
            j->attempt.stops = stops ? 1 : 2;
        }
    }
}

/* ---- groups ---- */
bool model_may_gather(const struct model *m, int id, const struct limits *limits)
{
    const struct job *j = &m->job[id];
    const struct limits *own = &j->record.group;
    (void)m;

    if (j->kind == NONE || j->kind == KEPT) {
        return true;
    }
    return j->kind == WAITING && own->quiet_ms == limits->quiet_ms && own->most == limits->most &&
           own->age_ms == limits->age_ms;
}

/* When it is due with one part more. What is due already stays so. */
static int64_t group_due_ms(const struct model *m, const struct job *j, int64_t before_ms)
{
    const struct limits *limits = &j->record.group;
    const struct attempt *a = &j->attempt;
    int64_t quiet_ms = model_ms(m) + limits->quiet_ms;

    if (before_ms && before_ms <= model_ms(m)) {
        return before_ms;
    }
    if (a->parts.n >= limits->most) {
        return model_ms(m);
    }
    if (!limits->quiet_ms) {
        return a->limit_ms;
    }
    return a->limit_ms && a->limit_ms < quiet_ms ? a->limit_ms : quiet_ms;
}

/* A length has seven bits a byte. */
static int framed_bytes(const struct part *part)
{
    int n = 1;

    for (int len = part->len; len > 127; len /= 128) {
        n++;
    }
    return n + part->len;
}

int model_bytes(const struct parts *parts)
{
    int n = 0;

    for (int i = 0; i < parts->n; i++) {
        n += framed_bytes(&parts->part[i]);
    }
    return n;
}

/* Is there no room for one part more? */
static bool group_is_full(const struct job *j, const struct part *part)
{
    const struct parts *parts = &j->attempt.parts;

    return parts->n >= j->record.group.most ||
           model_bytes(parts) + framed_bytes(part) > MODEL_BODY_MAX;
}

bool model_gather(struct model *m, int id, const struct record *record, struct part part, int *made)
{
    struct job *j = &m->job[id];
    struct attempt *a = &j->attempt;
    bool is_new = j->kind != WAITING;
    int64_t before_ms = is_new ? 0 : j->ms;

    *made = MODEL_NO_JOB;
    if (is_new) {
        model_make(m, id, record, 0, 0);
        *a = (struct attempt){
            .is_there = true,
            .holder = -1,
            .tries = record->tries,
            .reason = "",
            .counts = true,
            .gathers = true,
        };
    }
    if (group_is_full(j, &part)) {
        *made = made_of_parts(m, id, before_ms < model_ms(m) ? before_ms : model_ms(m));
        a->parts.n = 0;
        a->n++;
        a->tried++;
        a->token = m->token;
        a->claimed_us = m->now_us;
        a->limit_ms = before_ms = 0;
    }
    a->parts.part[a->parts.n++] = part;
    if (j->record.group.age_ms && !a->limit_ms) {
        a->limit_ms = model_ms(m) + j->record.group.age_ms;
    }
    a->reason = "";
    j->ms = a->due_ms = group_due_ms(m, j, before_ms);
    return is_new;
}

/* ---- batches ---- */
/* In which batches a job is: those of its record, and of the one that follows; 0: in none. */
static void batches_of(const struct job *j, int of[2])
{
    bool is_in = j->kind == WAITING || j->kind == RUNNING || j->kind == DIED;
    bool follows = j->kind == RUNNING && j->attempt.follows;

    of[0] = is_in ? j->record.batch : 0;
    of[1] = follows && j->next.batch != of[0] ? j->next.batch : 0;
}

void model_batch_count(const struct model *m, int batch, int64_t *n_left, int64_t *n_dead)
{
    int of[2];

    *n_left = *n_dead = 0;
    for (int i = 0; i < m->n_jobs; i++) {
        batches_of(&m->job[i], of);
        if (of[0] == batch || of[1] == batch) {
            *(m->job[i].kind == DIED ? n_dead : n_left) += 1;
        }
    }
}

static bool batch_is_empty(const struct model *m, int batch)
{
    int64_t n_left;
    int64_t n_dead;

    model_batch_count(m, batch, &n_left, &n_dead);
    return n_left + n_dead == 0;
}

void model_close(struct model *m, int id)
{
    struct job *j = &m->job[id];
    struct attempt *a = &j->attempt;

    if (a->awaits) {
        return;
    }
    if (id >= MODEL_BATCHES) { /* no job is of its batch */
        j->ms = model_ms(m);
        return;
    }

    struct batch *batch = &m->batch[id + 1];
    if (batch_is_empty(m, id + 1)) {
        j->ms = model_ms(m);
        *batch = (struct batch){0};
        return;
    }

    if (!a->is_there) {
        *a = (struct attempt){.is_there = true, .holder = -1, .tries = j->record.tries};
        a->due_ms = j->ms;
        a->reason = "";
    }
    a->priority = j->record.priority;
    a->awaits = true;
    batch->is_closed = true;
}

static void batch_ends(struct model *m, int batch)
{
    struct job *own = &m->job[batch - 1];

    m->batch[batch] = (struct batch){0};
    if (own->kind == WAITING && own->attempt.awaits) {
        own->ms = model_ms(m);
        own->attempt = (struct attempt){0};
    }
}

void model_batches_end(struct model *m)
{
    int n_left[MODEL_BATCHES + 1] = {0};

    for (int i = 0; i < m->n_jobs; i++) {
        int *were = m->batches[i];
        int are[2];
        batches_of(&m->job[i], are);
        for (int k = 0; k < 2; k++) {
            bool stays = were[k] == are[0] || were[k] == are[1];
            n_left[stays ? 0 : were[k]]++;
        }
        were[0] = are[0];
        were[1] = are[1];
    }

    for (int batch = 1; batch <= MODEL_BATCHES; batch++) {
        m->batch[batch].n_left += n_left[batch];
        if (n_left[batch] && m->batch[batch].is_closed && batch_is_empty(m, batch)) {
            batch_ends(m, batch);
        }
    }
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
    a->stops = 1;
}

void model_ask_again(struct model *m, int id, int64_t due_ms)
{
    m->job[id].attempt.stops = 0;
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
