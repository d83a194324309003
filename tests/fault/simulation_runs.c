/* SPDX-License-Identifier: MIT */
/* Steps: claims, and the ends of runs. */
#include "simulation.h"

/* ---- steps: claims ---- */
static void knows(struct sim *s, int holder, int id)
{
    struct holder *h = &s->holder[holder];
    int at = h->n < KNOWN ? h->n++ : (int)sim_below(s, KNOWN);
    h->known[at] = (struct claim){id, sim_job(s, id)->attempt.token};
}

/* How a holder claims. */
struct taker {
    int holder;
    int64_t lease_ms;
    bool forgets; /* the answer is lost */
};

static struct taker some_taker(struct sim *s)
{
    static const int64_t lease_ms[] = {1, 500, 3000, 30000};
    struct taker t = {.holder = (int)sim_below(s, HOLDERS), .lease_ms = lease_ms[sim_below(s, 4)]};
    t.forgets = sim_below(s, 6) == 0;
    return t;
}

/* Returns whether the answer has a row of it: a moment of a series may have no job. Of a group it
 * is that of its job. */
static bool taken(struct sim *s, size_t at, int id, const struct taker *t)
{
    const char *reason;

    s->about = id;
    if (model_is_maker(s->model, sim_job(s, id))) {
        id = model_fires(s->model, id);
        if (id < 0) {
            HOLDS(id == MODEL_NO_JOB, "the model has no place for another job\n");
            return false;
        }
    }

    struct job *j = sim_job(s, id);
    enum kind verdict = model_verdict(s->model, j, &reason);

    if (verdict == SKIPPED) {
        struct shown want = sim_shown(s, id);
        want.state = SKIPPED;
        want.has_body = true;
        sim_row_is(s, at, want);
        model_claim(s->model, id, t->holder, t->lease_ms);
        return true;
    }

    model_claim(s->model, id, t->holder, t->lease_ms);
    struct shown want = sim_shown(s, id);
    want.state = j->kind;
    want.ms = j->ms;
    want.has_body = true;
    sim_row_is(s, at, want);
    if (verdict == RUNNING && !t->forgets) {
        knows(s, t->holder, id);
    }
    return true;
}

/* Those that were claimed, then the series that have few moments left, and no other rows. */
static void all_taken(struct sim *s, size_t first, const int *ids, int n, const struct taker *t)
{
    size_t at = first;

    model_sees_overlaps(s->model, ids, n);
    s->model->n_few = 0;
    for (int i = 0; i < n; i++) {
        at += taken(s, at, ids[i], t);
    }
    for (int i = 0; i < s->model->n_few; i++) {
        sim_row_is_now(s, at, s->model->few[i]);
        HOLDS(sim_element(s, at)->element[5]->integer == 0, "it has a place\n");
        at++;
    }
    model_batches_end(s->model);
    HOLDS(s->reply->elements == at, "%zu rows, not %zu\n", s->reply->elements - first, at - first);
}

/* The due jobs behind a due time, the first ones first. Returns how many. */
static int due_ids(struct sim *s, int64_t behind_ms, int *ids)
{
    int n = 0;

    for (int id = 0; id < s->model->n_jobs; id++) {
        const struct job *j = sim_job(s, id);
        /* one with a priority stands a part of a millisecond before its time */
        bool is_behind = j->ms > behind_ms;
        if (model_is_due(s->model, j) && is_behind) {
            ids[n++] = id;
        }
    }
    sim_sort(s, ids, n);
    return n;
}

/* The due time of the next job that waits for it; 0: there is none. */
static int64_t next_due(struct sim *s)
{
    int64_t next = 0;

    for (int i = 0; i < s->model->n_jobs; i++) {
        const struct job *j = sim_job(s, i);
        if (j->kind == WAITING && j->ms > sim_now_ms(s) && (!next || j->ms < next)) {
            next = j->ms;
        }
    }
    return next;
}

/* What claim and touch answer of the jobs that they leave, or of a pause. */
static void leaves_told(struct sim *s)
{
    int ids[MODEL_JOBS];
    bool is_paused = s->model->paused_ms > sim_now_ms(s);
    int n = is_paused ? 0 : due_ids(s, 0, ids);

    sim_is_number(s, 1, n ? sim_job(s, ids[0])->ms : 0);
    sim_is_number(s, 2, is_paused ? 0 : next_due(s));
    sim_is_number(s, 3, 0);
    sim_is_number(s, 4, 0);
    sim_is_number(s, 5, is_paused ? s->model->paused_ms : 0);
}

/* The ids of those that are named and due, or of as many of the oldest. */
static int claimed_ids(struct sim *s, int limit, const int *named, int n_named, int *ids)
{
    bool has_priority = false;
    int n = 0;

    for (int i = 0; i < n_named; i++) {
        if (model_is_due(s->model, sim_job(s, named[i]))) {
            has_priority = has_priority || sim_job(s, named[i])->record.priority;
            ids[n++] = named[i];
        }
    }
    if (limit > 0 || has_priority) {
        int most = limit > 0 ? limit : n;
        bool by_name = limit == 0;
        if (!by_name) {
            int oldest[MODEL_JOBS];
            int n_due = due_ids(s, 0, oldest);
            n = n_due < most ? n_due : most;
            memcpy(ids, oldest, (size_t)n * sizeof *ids);
        }
    }
    return n;
}

void sim_claim(struct sim *s)
{
    enum { FIRST = 7 };
    struct taker t = some_taker(s);
    int limit = sim_below(s, 2) ? 1 + (int)sim_below(s, s->size.most) : -(int)sim_below(s, 2);
    int named[MOST];
    int ids[MODEL_JOBS];
    int n_named = limit > 0 ? 0 : sim_ids(s, named);

    sim_begin(s);
    sim_arg(s, "h%d", t.holder);
    sim_arg(s, "%" PRId64, t.lease_ms);
    sim_arg(s, "%d", limit);
    for (int i = 0; i < n_named; i++) {
        sim_arg_id(s, named[i]);
    }
    sim_ask(s, CLAIM);

    int n = claimed_ids(s, limit, named, n_named, ids);
    n = s->model->paused_ms > sim_now_ms(s) ? 0 : n;
    all_taken(s, FIRST, ids, n, &t);
    leaves_told(s);
}

/* Of a listener that is alone: each job is its own. */
void sim_touch(struct sim *s)
{
    enum { FIRST = 14 };
    struct taker t = some_taker(s);
    int limit = (int)sim_below(s, s->size.most);
    int64_t cursor_ms = sim_below(s, 2) ? 0 : sim_now_ms(s) - sim_below(s, 1000);
    bool everyone = sim_below(s, 2);
    int ids[MODEL_JOBS];

    sim_begin(s);
    sim_arg(s, "h%d", t.holder);
    sim_arg(s, "%" PRId64, t.lease_ms);
    sim_arg(s, "%d", limit);
    sim_arg(s, "%" PRId64, cursor_ms);
    sim_arg(s, "0");
    sim_arg(s, "1");
    sim_arg(s, "%d", everyone);
    sim_arg(s, "%d", (int)sim_below(s, 2) * 5);
    sim_ask(s, TOUCH);

    int found = s->model->paused_ms > sim_now_ms(s) ? 0 : due_ids(s, cursor_ms, ids);
    bool is_page = found >= PAGE;
    found = is_page ? PAGE : found;
    int n = found < limit ? found : limit;
    sim_is_number(s, 7, everyone ? found : n);
    if (s->model->paused_ms <= sim_now_ms(s)) {
        sim_is_number(s, 11, is_page || found > n);
    }
    all_taken(s, FIRST, ids, n, &t);
    leaves_told(s);
}

/* ---- steps: ends of runs ---- */
/* Of more than 200 bytes, with a character of two across the 200th. */
#define TEN "ten bytes "
#define FIFTY TEN TEN TEN TEN TEN
static const char long_reason[] = FIFTY FIFTY FIFTY TEN TEN TEN TEN "and nine \303\251, and more";

/* A settle of several jobs: with tokens that a holder knows, of now or of long ago, or that nobody
 * has; by that holder, another, or any (HOLDERS). */
struct settle {
    enum script how;
    int by;
    const char *reason;
    bool reports;
    char report[16];
    int64_t delay_ms; /* -1: the backoff */
    bool snoozes;
    struct claim claim[MOST];
    int n;
};

static struct settle some_settle(struct sim *s)
{
    int from = (int)sim_below(s, HOLDERS);
    struct holder *h = &s->holder[from];
    struct settle t = {.how = DONE + (enum script)sim_below(s, 6), .by = from};
    bool seen[MODEL_JOBS] = {false};

    bool fails = s->size.fails && sim_below(s, 8);
    t.how = fails ? RETRY : t.how;
    t.reason = sim_below(s, 4) ? "why" : long_reason;
    t.reports = t.how == REPORT || (t.how == DONE && sim_below(s, 2));
    if (sim_below(s, 8)) {
        snprintf(t.report, sizeof t.report, "r%ld", s->step);
    }
    t.delay_ms = t.how == RETRY ? sim_below(s, 3) * 2500 - 1 : sim_below(s, 2) * 5000;
    if (t.how == RETRY && sim_below(s, 3) == 0) {
        t.snoozes = true;
        t.delay_ms = sim_below(s, 2) * 2000;
    }
    t.delay_ms = fails ? 0 : t.delay_ms;
    if (sim_below(s, 8) == 0) {
        t.by = (int)sim_below(s, HOLDERS + 1);
    }
    for (int64_t i = 1 + sim_below(s, 2) * sim_below(s, s->size.most); i > 0; i--) {
        struct claim c = {(int)sim_below(s, s->size.n_ids),
                          s->model->token + (uint64_t)sim_below(s, 2)};
        if (h->n && sim_below(s, 10)) {
            int at = fails ? h->n - 1 : (int)sim_below(s, h->n);
            c = h->known[at];
            h->known[at] = sim_below(s, 2) ? h->known[--h->n] : c;
        }
        if (!seen[c.id]) {
            t.claim[t.n++] = c;
        }
        seen[c.id] = true;
    }
    return t;
}

static void settle_args(struct sim *s, const struct settle *t)
{
    sim_begin(s);
    if (t->by == HOLDERS) {
        sim_arg(s, "*");
    } else {
        sim_arg(s, "h%d", t->by);
    }
    for (int i = 0; i < t->n; i++) {
        sim_arg_id(s, t->claim[i].id);
        if (t->how == DONE && t->reports) {
            sim_arg(s, "%" PRIu64 " %s", t->claim[i].token, t->report);
        } else {
            sim_arg(s, "%" PRIu64, t->claim[i].token);
        }
        if (t->how == REPORT) {
            sim_arg(s, "%s", t->report);
        }
        if (t->how == RETRY && t->delay_ms < 0) {
            sim_arg(s, "%s", "");
        } else if (t->how == RETRY || t->how == RENEW) {
            sim_arg(s, "%s%" PRId64, t->snoozes ? "~" : "", t->delay_ms);
        }
        if (t->how == RETRY || t->how == FAIL) {
            sim_arg(s, "%s", t->reason);
        }
    }
}

static void retried(struct sim *s, size_t i, int id, const struct settle *t)
{
    struct job *j = sim_job(s, id);
    struct attempt *a = &j->attempt;

    a->tried -= t->snoozes;
    int64_t wait_ms = t->delay_ms < 0 ? model_backoff_ms(a) : t->delay_ms;
    int64_t due_ms = sim_now_ms(s) + wait_ms;
    bool is_last = (!t->snoozes && model_used_up(a)) || (a->last_ms && due_ms > a->last_ms);
    a->reason = t->reason;
    if (!t->snoozes) {
        model_fails(a, sim_now_ms(s), t->reason);
    }
    if (is_last) {
        sim_is_number(s, i, 0);
        model_dies(s->model, id, sim_now_ms(s), t->reason);
        return;
    }
    sim_is_number(s, i, due_ms);
    j->kind = WAITING;
    j->ms = a->due_ms = due_ms;
}

static void reports(struct attempt *a, const struct settle *t)
{
    a->has_report = true;
    memcpy(a->report, t->report, sizeof a->report);
}

/* What a settle does to a job that this holder has. */
static void settled(struct sim *s, size_t i, int id, const struct settle *t)
{
    struct job *j = sim_job(s, id);
    struct attempt *a = &j->attempt;

    if (t->how == RENEW) {
        j->ms = sim_now_ms(s) + t->delay_ms;
        sim_is_number(s, i, a->stops == 1 ? -j->ms : j->ms);
    } else if (t->how == REPORT) {
        reports(a, t);
        sim_is_number(s, i, 1);
    } else if (a->again_ms) {
        sim_is_number(s, i, a->again_ms);
        model_waits_again(s->model, id, a->again_ms);
    } else if (t->how == DONE || a->stops) {
        sim_is_number(s, i, t->how == DONE ? 1 : -1);
        model_ends(s->model, id, t->how == DONE ? LAPSE_ENDED_DONE : LAPSE_ENDED_CANCELLED, 0);
        if (j->kind == KEPT && t->reports) {
            reports(a, t);
        }
    } else if (t->how == RETRY) {
        retried(s, i, id, t);
    } else if (t->how == FAIL) {
        sim_is_number(s, i, 1);
        model_fails(a, sim_now_ms(s), t->reason);
        model_dies(s->model, id, sim_now_ms(s), t->reason);
    } else {
        sim_is_number(s, i, 1);
        j->kind = WAITING;
        j->ms = a->due_ms;
        a->tried--;
    }
}

void sim_settle(struct sim *s)
{
    struct settle t = some_settle(s);

    settle_args(s, &t);
    sim_ask(s, t.how);
    for (int i = 0; i < t.n; i++) {
        int id = t.claim[i].id;
        const struct job *j = sim_job(s, id);
        bool is_holder = j->attempt.holder == t.by || t.by == HOLDERS;
        bool goes_on =
            t.how == RENEW || ((t.how == RETRY || t.how == RELEASE) && !model_is_marked(j));
        bool is_lost = goes_on && model_has_lost_key(s->model, id);
        s->about = id;
        if (j->kind == RUNNING && j->attempt.token == t.claim[i].token && is_holder && !is_lost) {
            settled(s, (size_t)i + 1, id, &t);
        } else {
            sim_is_text(s, (size_t)i + 1, "EGONE");
        }
    }
}

/* Those of a kind up to a time, the first ones first. */
static int ids_until(struct sim *s, enum kind kind, int64_t ms, int *ids)
{
    int n = 0;

    for (int id = 0; id < s->model->n_jobs; id++) {
        if (sim_job(s, id)->kind == kind && sim_job(s, id)->ms <= ms) {
            ids[n++] = id;
        }
    }
    sim_sort(s, ids, n);
    return n;
}

void sim_sweep(struct sim *s)
{
    int over[MODEL_JOBS];
    int dead[MODEL_JOBS];
    int past[MODEL_JOBS];
    int n_past = ids_until(s, KEPT, sim_now_ms(s), past);
    int n_over = ids_until(s, RUNNING, sim_now_ms(s), over);
    int n_surplus = ids_until(s, DIED, INT64_MAX, dead) - s->model->dead_max;
    bool tells = sim_below(s, 2);
    size_t n_died = 0;

    sim_begin(s);
    sim_arg(s, "%d", tells);
    sim_ask(s, SWEEP);

    n_surplus = s->model->dead_max && n_surplus > 0 ? n_surplus : 0;
    int n_freed = n_surplus < PAGE ? n_surplus : PAGE;
    int n = n_over < PAGE ? n_over : PAGE;
    sim_is_number(s, 1, n);
    sim_is_number(s, 3, n_over >= PAGE || n_freed < n_surplus || n_past >= PAGE);
    sim_is_number(s, 4, n_freed);
    for (int i = 0; i < n_freed; i++) {
        model_gone(s->model, dead[i]);
    }
    for (int i = 0; i < n_past && i < PAGE; i++) {
        model_gone(s->model, past[i]);
    }
    for (int i = 0; i < n; i++) {
        model_sweep(s->model, over[i]);
        if (sim_job(s, over[i])->kind == DIED) {
            struct shown want = sim_shown(s, over[i]);
            want.has_body = true;
            n_died++;
            if (tells) {
                sim_row_is(s, 4 + n_died, want);
            }
        }
    }
    sim_is_number(s, 2, (int64_t)n_died);
}

static int id_of(struct sim *s, const char *text)
{
    char name[NAME];
    int id = 0;

    while (id < s->model->n_jobs && strcmp(sim_name(s, id, name), text) != 0) {
        id++;
    }
    HOLDS(id < s->model->n_jobs, "unknown: %s\n", text);
    return id;
}

/* A holder is back, and looks at what runs under its name. */
void sim_reclaim(struct sim *s)
{
    int holder = (int)sim_below(s, HOLDERS);
    bool seen[MODEL_JOBS] = {false};
    int64_t page = 0;

    do {
        sim_begin(s);
        sim_arg(s, "h%d", holder);
        sim_arg(s, "%" PRId64, page);
        sim_ask(s, RECLAIM);
        page = sim_element(s, 1)->integer;
        for (size_t i = 2; i < s->reply->elements; i += 2) {
            int id = id_of(s, s->reply->element[i]->str);
            uint64_t token = strtoull(s->reply->element[i + 1]->str, NULL, 10);
            s->about = id;
            HOLDS(sim_job(s, id)->attempt.token == token, "token %" PRIu64 "\n", token);
            seen[id] = true;
        }
    } while (page);

    for (int id = 0; id < s->model->n_jobs; id++) {
        const struct job *j = sim_job(s, id);
        bool is_its = j->kind == RUNNING && j->attempt.holder == holder;
        s->about = id;
        HOLDS(seen[id] == is_its, "is its own: %d\n", is_its);
    }
}

void sim_forget(struct sim *s)
{
    s->holder[sim_below(s, HOLDERS)].n = 0; /* killed, and begun again under its name */
}
