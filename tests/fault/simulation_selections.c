/* SPDX-License-Identifier: MIT */
/* Steps: selections. */
#include "simulation.h"

struct where {
    enum kind state; /* SKIPPED: any but KEPT */
    int tag;         /* -1: any */
    const char *reason;
    int64_t before_ms;
    int limit;
    bool runs_too;
};

static struct where some_where(struct sim *s)
{
    static const char *const reasons[] = {"", "", "", "why", "ended", "late"};
    struct where w = {.state = (enum kind)(1 + sim_below(s, 4)), .tag = -1};

    if (sim_below(s, 10)) {
        w.tag = (int)sim_below(s, s->size.n_tags);
        w.state = (enum kind)sim_below(s, 5);
    }
    w.reason = reasons[sim_below(s, 6)];
    w.before_ms = sim_below(s, 4) ? 0 : sim_now_ms(s) + sim_below(s, 10000) - 5000;
    w.limit = sim_below(s, 2) ? 100 : 1 + (int)sim_below(s, 30);
    w.runs_too = sim_below(s, 2);
    return w;
}

static bool selects(struct sim *s, const struct where *w, int id)
{
    const struct job *j = sim_job(s, id);
    const struct attempt *a = &j->attempt;
    bool follows = model_runs(s->model, j) && a->follows;

    if (!model_is_known(s->model, j) ||
        (w->state != SKIPPED && model_shown(s->model, j) != w->state)) {
        return false;
    }
    if (w->before_ms && j->ms >= w->before_ms) {
        return false;
    }
    if (!strstr(a->is_there ? a->reason : "", w->reason)) {
        return false;
    }

    unsigned tags = model_record(s->model, j)->tags | (follows ? j->next.tags : 0);
    tags = j->kind == KEPT ? 0 : tags;
    return w->tag < 0 || tags & 1u << w->tag;
}

static int selected(struct sim *s, const struct where *w, int *ids)
{
    int n = 0;

    for (int id = 0; id < s->model->n_jobs; id++) {
        if (selects(s, w, id)) {
            ids[n++] = id;
        }
    }
    if (w->tag < 0) {
        sim_sort(s, ids, n);
    }
    return n;
}

static void where_args(struct sim *s, const struct where *w, const char *cursor)
{
    sim_begin(s);
    sim_arg(s, "%d", (int)w->state);
    if (w->tag < 0) {
        sim_arg(s, "%s", "");
    } else {
        sim_arg(s, "t%d", w->tag);
    }
    sim_arg(s, "%s", w->reason);
    sim_arg(s, "%" PRId64, w->before_ms);
    sim_arg(s, "%d", w->limit);
    sim_arg(s, "%s", cursor);
    sim_arg(s, "%d", w->runs_too);
}

/* Calls until the walk is over, and counts. */
static void walk(struct sim *s, const struct where *w, enum script script, const int64_t *due,
                 int64_t count[2])
{
    char cursor[TEXT] = "";

    count[0] = count[1] = 0;
    do {
        where_args(s, w, cursor);
        if (script == KILL_ALL) {
            sim_arg(s, "killed");
        }
        if (script == RESCHEDULE_ALL) {
            sim_arg(s, "%" PRId64, due[0]);
            sim_arg(s, "%" PRId64, due[1]);
        }
        sim_ask(s, script);
        count[0] += sim_element(s, 1)->integer;
        count[1] += sim_element(s, 2)->integer;
        snprintf(cursor, sizeof cursor, "%s", sim_element(s, 3)->str);
    } while (*cursor);
}

void sim_cancel_all(struct sim *s)
{
    struct where w = some_where(s);
    int ids[MODEL_JOBS];
    int n = selected(s, &w, ids);
    int64_t count[2];
    int64_t gone = 0;
    int64_t running = 0;

    /* one that made jobs would take them along, of the selection or not; and while it walks a batch
     * may end, whose own job it would miss then */
    for (int i = 0; i < n; i++) {
        if (model_is_maker(s->model, sim_job(s, ids[i])) || sim_job(s, ids[i])->attempt.awaits) {
            return;
        }
    }
    walk(s, &w, CANCEL_ALL, NULL, count);
    for (int i = 0; i < n; i++) {
        struct job *j = sim_job(s, ids[i]);
        if (j->kind == KEPT) {
            model_gone(s->model, ids[i]);
            gone++;
        } else if (!model_runs(s->model, j)) {
            model_ends(s->model, ids[i], LAPSE_ENDED_CANCELLED, j->kind == WAITING ? j->ms : 0);
            gone++;
        } else {
            running += !(w.runs_too && j->attempt.stops == 1);
            if (w.runs_too) {
                model_stop(s->model, ids[i]);
            }
        }
    }
    HOLDS(count[0] == gone && count[1] == running,
          "%" PRId64 " gone and %" PRId64 " running, not %" PRId64 " and %" PRId64 "\n", count[0],
          count[1], gone, running);
}

void sim_kill_all(struct sim *s)
{
    struct where w = some_where(s);
    int ids[MODEL_JOBS];
    int64_t count[2];
    int64_t killed = 0;
    int64_t running = 0;

    w.state = w.tag >= 0 && sim_below(s, 2) ? SKIPPED : WAITING;
    w.runs_too = false;
    int n = selected(s, &w, ids);
    for (int i = 0; i < n; i++) {
        if (sim_job(s, ids[i])->attempt.awaits) {
            return; /* as above */
        }
    }
    walk(s, &w, KILL_ALL, NULL, count);
    for (int i = 0; i < n; i++) {
        const struct job *j = sim_job(s, ids[i]);
        running += model_runs(s->model, j);
        if (model_shown(s->model, j) == WAITING) {
            model_kill(s->model, ids[i], "killed");
            killed++;
        }
    }
    HOLDS(count[0] == killed && count[1] == running,
          "%" PRId64 " killed and %" PRId64 " running, not %" PRId64 " and %" PRId64 "\n", count[0],
          count[1], killed, running);
}

/* Also requeues: those that are dead. */
void sim_reschedule_all(struct sim *s)
{
    struct where w = some_where(s);
    int ids[MODEL_JOBS];
    int64_t due[] = {sim_now_ms(s) + sim_below(s, 5000), sim_below(s, 2) * 3000};
    int64_t count[2];
    int64_t moved = 0;
    int64_t running = 0;

    if (w.state == KEPT || sim_below(s, 4) == 0) {
        w.state = DIED;
    }
    int n = selected(s, &w, ids);
    for (int i = 0; i < n; i++) {
        if (sim_job(s, ids[i])->attempt.awaits) {
            return; /* as above */
        }
    }
    walk(s, &w, RESCHEDULE_ALL, due, count);
    sim_is_number(s, 4, due[0]);
    for (int i = 0; i < n; i++) {
        struct job *j = sim_job(s, ids[i]);
        int64_t part = (int64_t)((double)sim_spread_of(s, ids[i]) / 4294967296.0 * (double)due[1]);
        int64_t at_ms = due[0] + part;
        if (model_runs(s->model, j)) {
            running += !(w.runs_too && j->attempt.again_ms == at_ms);
            if (w.runs_too) {
                model_ask_again(s->model, ids[i], at_ms);
            }
        } else if (j->kind == WAITING && j->ms == at_ms) {
            continue;
        } else if (model_shown(s->model, j) != DIED || model_may_wait(s->model, ids[i])) {
            model_put_off(s->model, ids[i], at_ms);
            moved++;
        }
    }
    HOLDS(count[0] == moved && count[1] == running,
          "%" PRId64 " moved and %" PRId64 " running, not %" PRId64 " and %" PRId64 "\n", count[0],
          count[1], moved, running);
}
