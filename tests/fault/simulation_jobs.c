/* SPDX-License-Identifier: MIT */
/* Steps: jobs that wait, or are dead, and marks of those that run. */
#include "simulation.h"

/* Makes some due time an argument; returns what it comes to. */
static int64_t due_arg(struct sim *s)
{
    static const int64_t ahead_ms[] = {
        0, 1, 20, 50, 300, 1000, 5000, 20000, 60000, TEN_YEARS_MS, TEN_YEARS_MS + 1};
    bool is_far = sim_below(s, 50) == 0;
    int64_t ms = ahead_ms[is_far ? 9 + sim_below(s, 2) : sim_below(s, 9)];

    if (sim_below(s, 2)) {
        sim_arg(s, "+%" PRId64, ms);
        return sim_now_ms(s) + ms;
    }

    if (sim_below(s, 4)) {
        ms += sim_now_ms(s);
    } else {
        ms = 1 + sim_below(s, 2) * 1000000000000; /* long past */
    }
    sim_arg(s, "%" PRId64, ms);
    return ms > sim_now_ms(s) ? ms : sim_now_ms(s);
}

static bool is_too_far(struct sim *s, int64_t due_ms)
{
    return due_ms > sim_now_ms(s) + TEN_YEARS_MS;
}

/* What a schedule asks for, beside its id. */
struct wish {
    int asked, id; /* id: the job that it is about */
    enum lapse_conflict conflict;
    int64_t due_ms;
    int64_t most_wait_ms; /* 0: no limit */
    bool is_dry;          /* of a calendar: it has no moment that is to come */
    struct record record;
};

/* What a calendar tells: moments around now, and behind those that it has told before. */
static void some_moments(struct sim *s, struct rule *rule)
{
    int64_t ms = sim_now_ms(s) - sim_below(s, 3000);

    rule->n_moments = 1 + (int)sim_below(s, MODEL_MOMENTS);
    for (int i = 0; i < rule->n_moments; i++) {
        ms += 1 + sim_below(s, 2000);
        rule->moment_ms[i] = ms;
    }
    rule->is_whole = sim_below(s, 3) == 0;
}

static struct rule some_rule(struct sim *s)
{
    struct rule rule = {.catch_up = "lan"[sim_below(s, 3)], .no_overlap = sim_below(s, 3) == 0};

    if (sim_below(s, 4) == 0) {
        rule.until_ms = sim_now_ms(s) + sim_below(s, 20000);
    }
    if (sim_below(s, 3)) {
        rule.times = 1 + sim_below(s, 12);
    }
    if (sim_below(s, 3) == 0) {
        some_moments(s, &rule);
        return rule;
    }
    if (sim_below(s, 2)) {
        rule.every_ms = 1 + sim_below(s, 2) * sim_below(s, 3000);
        return rule;
    }
    rule.n_stages = 1 + (int)sim_below(s, MODEL_STAGES);
    for (int i = 0; i < rule.n_stages; i++) {
        rule.stage_ms[i] = (i ? rule.stage_ms[i - 1] : 0) + 1 + sim_below(s, 2000);
    }
    return rule;
}

/* Few, so that many parts come to one group. */
static struct limits some_limits(struct sim *s)
{
    static const struct limits some[] = {
        {1000, 1, 0}, {1000, MODEL_PARTS, 0}, {0, 3, 2000}, {500, 3, 1500}};

    if (s->size.fills && sim_below(s, 8)) {
        return some[1]; /* and so into one that has parts */
    }
    return some[sim_below(s, sizeof some / sizeof *some)];
}

/* Of those that are large some fill a body to the last byte, or leave room for the smallest. */
static int some_part_len(struct sim *s)
{
    static const int large[] = {1,      127,    128,    349522,
                                349523, 524285, 524286, MODEL_PART_MAX,
                                1,      349522, 524285, MODEL_PART_MAX + 1};

    return s->size.fills ? large[sim_below(s, sizeof large / sizeof *large)] : 1;
}

static struct record some_record(struct sim *s)
{
    static const int64_t some_tries[] = {DEFAULT_TRIES, 1, 2, 3, FOREVER};
    static const char some_guards[] = "=!+-";
    struct record r = {.tries = some_tries[sim_below(s, 5)]};

    if (sim_below(s, 3) == 0) {
        return r;
    }
    if (sim_below(s, 2)) {
        r.key = 1 + (int)sim_below(s, s->size.n_keys);
        r.until_start = sim_below(s, 2);
    }
    for (int64_t n = sim_below(s, 3); n > 0; n--) {
        r.tags |= 1u << sim_below(s, s->size.n_tags);
    }
    r.priority = sim_below(s, 3) == 0 ? 1 + (int)sim_below(s, 255) : 0;
    r.guard = sim_below(s, 4) == 0 ? some_guards[sim_below(s, 4)] : 0;
    if (sim_below(s, 4) == 0) {
        r.late_dies = sim_below(s, 2);
        r.late_ms = 1 + sim_below(s, 3000);
    }
    r.retry_for_ms = sim_below(s, 4) == 0 ? 1 + sim_below(s, 5000) : 0;
    if (sim_below(s, 3) == 0) {
        r.keep_ms = 1 + sim_below(s, 4) * sim_below(s, 20000);
        r.keeps_body = sim_below(s, 2);
    }
    r.keeps_errors = sim_below(s, 2);
    if (sim_below(s, 2 + s->size.n_ids / 20) == 0) { /* few, so that batches end */
        r.batch = 1 + (int)sim_below(s, s->size.n_batches);
    }
    r.created_ms = sim_below(s, 4) == 0 ? UNSAID : 0;
    if (sim_below(s, s->size.makes ? 2 : 8) == 0) {
        r.rule = some_rule(s);
        r.key = 0;
    } else if (sim_below(s, 20) == 0) {
        r.group = some_limits(s);
        r.key = 0;
    }
    return r;
}

static struct wish wish_arg(struct sim *s, int id)
{
    struct wish w = {.asked = id, .conflict = (enum lapse_conflict)sim_below(s, 6)};
    unsigned char record[RECORD];

    sim_arg_id(s, id);
    w.record = some_record(s);
    if (w.record.rule.n_moments && sim_below(s, 4)) {
        int64_t first_ms = model_first_moment(&w.record.rule, sim_now_ms(s));
        sim_arg(s, "first");
        w.is_dry = first_ms == 0;
        w.due_ms = first_ms ? first_ms : sim_now_ms(s) + LOOK_MS;
    } else {
        w.due_ms = due_arg(s);
    }
    if (w.conflict == LAPSE_DEBOUNCE && !w.record.rule.catch_up && sim_below(s, 2)) {
        w.most_wait_ms = 1 + sim_below(s, 20000);
        sim_arg(s, "%d:%" PRId64, (int)w.conflict, w.most_wait_ms);
    } else {
        sim_arg(s, "%d", (int)w.conflict);
    }
    size_t len = sim_header(record, &w.record, 0);
    record[len++] = 'x';
    sim_arg_bytes(s, record, len);
    return w;
}

/* The row that a schedule answers has, behind the others, what became of the job. */
static void row_says(struct sim *s, size_t i, int id, int outcome)
{
    sim_row_is_now(s, i, id);
    const redisReply *row = sim_element(s, i);
    HOLDS(row->elements == 6 && row->element[5]->integer == outcome, "not outcome %d\n", outcome);
}

/* When a job is due that is debounced: no later than its first call has said, or this one. */
static int64_t debounced_ms(struct sim *s, const struct wish *w, int64_t *limit_ms)
{
    if (!*limit_ms && w->most_wait_ms) {
        *limit_ms = sim_now_ms(s) + w->most_wait_ms;
    }
    if (!*limit_ms || w->due_ms <= *limit_ms) {
        return w->due_ms;
    }
    return *limit_ms > sim_now_ms(s) ? *limit_ms : sim_now_ms(s);
}

static bool is_better(const struct wish *w, int64_t old_ms)
{
    bool earlier = w->conflict == LAPSE_EARLIER;
    return earlier ? w->due_ms < old_ms : w->due_ms > old_ms;
}

/* The record of a wish as it is stored, in the place of another (NULL: of none). */
static struct record stored(struct sim *s, const struct wish *w, const struct record *before)
{
    struct record r = w->record;

    if (r.created_ms) {
        r.created_ms = before && before->created_ms ? before->created_ms : sim_now_ms(s);
    }
    return r;
}

/* A calendar looks for moments from its schedule on. */
static void looks(struct sim *s, struct job *j)
{
    struct attempt *a = &j->attempt;

    if (!a->is_there) {
        *a = (struct attempt){.is_there = true, .holder = -1, .tries = j->record.tries};
        a->reason = "";
        a->counts = true;
    }
    a->due_ms = sim_now_ms(s);
    a->is_dry = true;
}

static void makes(struct sim *s, size_t i, const struct wish *w)
{
    struct job *j = sim_job(s, w->id);
    bool waits = w->conflict == LAPSE_DEBOUNCE && model_shown(s->model, j) == WAITING;
    int64_t limit_ms = waits ? j->attempt.limit_ms : 0;
    int64_t due_ms = debounced_ms(s, w, &limit_ms);
    struct record record = stored(s, w, waits ? model_record(s->model, j) : NULL);
    bool goes_on = record.rule.catch_up && model_is_series(s->model, j) && j->kind != KEPT &&
                   j->attempt.counts;
    struct attempt counted = j->attempt;

    model_make(s->model, w->id, &record, due_ms, limit_ms);
    if (goes_on) {
        j->attempt = counted;
        j->attempt.reason = "";
        j->attempt.is_dry = false;
    }
    if (w->is_dry) {
        looks(s, j);
    }
    if (waits || w->id != w->asked || record.created_ms) {
        row_says(s, i, w->id, waits ? 2 : 1);
    } else {
        sim_is_number(s, i, due_ms);
    }
}

/* Of a job that waits: another time, if that is better. What was asked of a run whose lease is over
 * happens. */
static void shifts(struct sim *s, size_t i, const struct wish *w)
{
    struct job *j = sim_job(s, w->id);
    int64_t old_ms = model_shown_ms(s->model, j);
    bool moves = is_better(w, old_ms);
    int64_t due_ms = moves ? w->due_ms : old_ms;

    if (moves || model_is_marked(j)) {
        model_put_off(s->model, w->id, due_ms);
        row_says(s, i, w->id, 2);
    } else {
        row_says(s, i, w->id, 0);
    }
}

/* Of a job that runs: what follows its run. */
static void follows(struct sim *s, size_t i, const struct wish *w)
{
    const struct job *j = sim_job(s, w->id);
    const struct attempt *a = &j->attempt;
    struct record record = stored(s, w, a->follows ? &j->next : NULL);
    int64_t old_ms = a->again_ms;
    int64_t limit_ms = a->limit_ms;

    if (w->conflict == LAPSE_DEBOUNCE) {
        int64_t due_ms = debounced_ms(s, w, &limit_ms);
        model_follow(s->model, w->id, &record, due_ms, limit_ms);
    } else if (!old_ms) {
        model_follow(s->model, w->id, &record, w->due_ms, 0);
    } else if (is_better(w, old_ms)) {
        model_ask_again(s->model, w->id, w->due_ms);
    } else {
        row_says(s, i, w->id, 0);
        return;
    }
    row_says(s, i, w->id, old_ms ? 2 : 1);
}

/* A series that has no moment so late. */
static bool is_behind_end(const struct record *r, int64_t due_ms)
{
    return r->rule.until_ms && due_ms > r->rule.until_ms;
}

static void scheduled(struct sim *s, size_t i, const struct wish *w)
{
    const struct job *j = sim_job(s, w->id);
    bool runs = model_runs(s->model, j);
    bool shifts_it = w->conflict == LAPSE_EARLIER || w->conflict == LAPSE_LATER;
    bool is_known = model_is_known(s->model, j);

    s->about = w->id;
    if (is_too_far(s, w->due_ms) || is_behind_end(&w->record, w->due_ms) || w->record.group.most) {
        sim_is_text(s, i, "EINVAL");
    } else if (is_known && w->conflict == LAPSE_REJECT) {
        sim_is_text(s, i, "EEXIST");
    } else if (is_known && w->conflict == LAPSE_KEEP) {
        sim_row_is_now(s, i, w->id);
    } else if (runs && w->conflict == LAPSE_REPLACE) {
        sim_is_text(s, i, "EBUSY");
    } else if (is_known && w->conflict != LAPSE_REPLACE &&
               (model_is_maker(s->model, j) || w->record.rule.catch_up)) {
        sim_is_text(s, i, "EINVAL");
    } else if (runs) {
        follows(s, i, w);
    } else if (shifts_it && model_shown(s->model, j) == WAITING) {
        shifts(s, i, w);
    } else {
        makes(s, i, w);
    }
}

/* Which job each is about; returns how many can be answered together. */
static int subjects(struct sim *s, struct wish *wish, int n)
{
    bool id_seen[MODEL_JOBS] = {false};
    bool key_seen[MODEL_KEYS] = {false};
    bool any = false;

    for (int i = 0; i < n; i++) {
        unsigned char header[RECORD];
        sim_header(header, &wish[i].record, 0);
        any = any || header[0] == 2;
        wish[i].id = wish[i].asked;
    }
    for (int i = 0; any && i < n; i++) {
        struct wish *w = &wish[i];
        int holder = model_holder(s->model, w->record.key, true);
        w->id = holder >= 0 ? holder : w->asked;
        if (id_seen[w->id] || key_seen[w->record.key]) {
            return i;
        }
        id_seen[w->id] = true;
        key_seen[w->record.key] = w->record.key > 0;
    }
    return n;
}

void sim_schedule(struct sim *s)
{
    static struct wish wish[MOST];
    int ids[MOST];
    int n = sim_given_ids(s, ids);

    if (n == 0) {
        return;
    }
    sim_begin(s);
    for (int i = 0; i < n; i++) {
        wish[i] = wish_arg(s, ids[i]);
    }
    sim_ask(s, SCHEDULE);

    n = subjects(s, wish, n);
    HOLDS(s->reply->elements == (size_t)n + 1, "%zu answers, not %d\n", s->reply->elements - 1, n);
    for (int i = 0; i < n; i++) {
        scheduled(s, (size_t)i + 1, &wish[i]);
    }
}

void sim_cancel(struct sim *s)
{
    int ids[MOST];
    int n = sim_ids(s, ids);
    bool stops = sim_below(s, 2);

    for (int i = 0; i < n; i++) { /* who made jobs takes them along, so it is asked alone */
        if (model_is_maker(s->model, sim_job(s, ids[i]))) {
            ids[0] = ids[i];
            n = 1;
        }
    }
    sim_begin(s);
    for (int i = 0; i < n; i++) {
        sim_arg_id(s, ids[i]);
        sim_arg(s, "%d", stops);
    }
    sim_ask(s, CANCEL);

    for (int i = 0; i < n; i++) {
        size_t at = (size_t)i + 1;
        struct job *j = sim_job(s, ids[i]);
        s->about = ids[i];
        if (!model_is_known(s->model, j)) {
            sim_is_text(s, at, "ENOENT");
        } else if (j->kind == KEPT && j->attempt.end == LAPSE_ENDED_CANCELLED) {
            sim_row_is_now(s, at, ids[i]);
        } else if (j->kind == KEPT) {
            sim_is_text(s, at, "EENDED");
        } else if (model_runs(s->model, j) && stops) {
            model_stop(s->model, ids[i]);
            sim_row_is_now(s, at, ids[i]);
        } else if (model_runs(s->model, j)) {
            sim_is_text(s, at, "EBUSY");
        } else {
            bool is_maker = model_is_maker(s->model, j);
            sim_row_is_now(s, at, ids[i]);
            model_ends(s->model, ids[i], LAPSE_ENDED_CANCELLED, j->kind == WAITING ? j->ms : 0);
            if (is_maker) {
                model_descent_ends(s->model, ids[i], stops);
            }
        }
    }
}

void sim_reschedule(struct sim *s)
{
    int ids[MOST];
    int64_t due_ms[MOST];
    int n = sim_ids(s, ids);
    bool runs_too = sim_below(s, 2);

    sim_begin(s);
    for (int i = 0; i < n; i++) {
        sim_arg_id(s, ids[i]);
        due_ms[i] = due_arg(s);
        sim_arg(s, "%d", runs_too);
    }
    sim_ask(s, RESCHEDULE);

    for (int i = 0; i < n; i++) {
        size_t at = (size_t)i + 1;
        struct job *j = sim_job(s, ids[i]);
        bool runs = model_runs(s->model, j);
        s->about = ids[i];
        if (!model_is_known(s->model, j)) {
            sim_is_text(s, at, "ENOENT");
        } else if (j->kind == KEPT) {
            sim_is_text(s, at, "EENDED");
        } else if (runs && !runs_too) {
            sim_is_text(s, at, "EBUSY");
        } else if (is_too_far(s, due_ms[i]) ||
                   is_behind_end(model_record(s->model, j), due_ms[i])) {
            sim_is_text(s, at, "EINVAL");
        } else if (runs) {
            model_ask_again(s->model, ids[i], due_ms[i]);
            sim_row_is_now(s, at, ids[i]);
        } else if (model_shown(s->model, j) == DIED && !model_may_wait(s->model, ids[i])) {
            sim_is_text(s, at, "EEXIST");
        } else {
            model_put_off(s->model, ids[i], due_ms[i]);
            sim_row_is_now(s, at, ids[i]);
        }
    }
}

void sim_kill(struct sim *s)
{
    int ids[MOST];
    int n = sim_ids(s, ids);

    sim_begin(s);
    for (int i = 0; i < n; i++) {
        sim_arg_id(s, ids[i]);
        sim_arg(s, "killed");
    }
    sim_ask(s, KILL);

    for (int i = 0; i < n; i++) {
        size_t at = (size_t)i + 1;
        struct job *j = sim_job(s, ids[i]);
        s->about = ids[i];
        if (!model_is_known(s->model, j)) {
            sim_is_text(s, at, "ENOENT");
        } else if (j->kind == KEPT) {
            sim_is_text(s, at, "EENDED");
        } else if (model_runs(s->model, j)) {
            sim_is_text(s, at, "EBUSY");
        } else {
            model_kill(s->model, ids[i], "killed");
            sim_row_is_now(s, at, ids[i]);
        }
    }
}

void sim_pause(struct sim *s)
{
    int ids[MOST];
    int n = sim_ids(s, ids);
    bool is_paused = sim_below(s, 2);

    sim_begin(s);
    for (int i = 0; i < n; i++) {
        sim_arg_id(s, ids[i]);
        sim_arg(s, "%d", is_paused);
    }
    sim_ask(s, PAUSE);

    for (int i = 0; i < n; i++) {
        size_t at = (size_t)i + 1;
        const struct job *j = sim_job(s, ids[i]);
        s->about = ids[i];
        if (j->kind != WAITING) {
            sim_is_text(s, at, "ENOENT");
        } else if (!j->record.rule.catch_up) {
            sim_is_text(s, at, "EINVAL");
        } else {
            model_pause(s->model, ids[i], is_paused);
            sim_row_is_now(s, at, ids[i]);
        }
    }
}

/* ---- calendars ---- */
/* As one who has seen a series, now or long ago. */
static void refilled(struct sim *s, size_t i, int id, const struct rule *moments, bool is_seen)
{
    const struct job *j = sim_job(s, id);

    s->about = id;
    if (j->kind == WAITING && j->record.rule.n_moments && is_seen) {
        sim_is_number(s, i, model_refill(s->model, id, moments));
    } else {
        sim_is_text(s, i, "ENOENT");
    }
}

void sim_refill(struct sim *s)
{
    struct rule moments[MOST];
    bool is_seen[MOST];
    int ids[MOST];
    int n = 0;

    sim_begin(s);
    for (int id = 0; id < s->size.n_ids && n < s->size.most; id++) {
        const struct job *j = sim_job(s, id);
        bool is_one = j->kind != NONE && j->record.rule.catch_up;
        char text[TEXT] = "l 0 0 c 1";
        if (sim_below(s, is_one ? 2 : 50)) {
            continue;
        }
        is_seen[n] = is_one && sim_below(s, 5);
        if (is_seen[n]) {
            sim_rule_text(text, sizeof text, &j->record.rule);
        }
        some_moments(s, &moments[n]);
        sim_arg_id(s, id);
        sim_arg(s, "%s", text);
        sim_arg(s, "n r");
        sim_moments_text(text, sizeof text, &moments[n]);
        sim_arg(s, "%s", text);
        ids[n++] = id;
    }
    sim_ask(s, REFILL);

    for (int i = 0; i < n; i++) {
        refilled(s, (size_t)i + 1, ids[i], &moments[i], is_seen[i]);
    }
}

/* ---- groups and batches ---- */
static void gathered(struct sim *s, size_t i, int id, const struct record *wish, struct part part)
{
    struct record record = *wish;
    int made;

    s->about = id;
    if (!record.group.most || part.len > MODEL_PART_MAX) {
        sim_is_text(s, i, "EINVAL");
        return;
    }
    if (!model_may_gather(s->model, id, &record.group)) {
        sim_is_text(s, i, "EEXIST");
        return;
    }

    record.created_ms = record.created_ms ? sim_now_ms(s) : 0;
    bool is_new = model_gather(s->model, id, &record, part, &made);
    HOLDS(made != MODEL_NO_PLACE, "the model has no place for another job\n");
    row_says(s, i, id, is_new ? 1 : 2);
}

/* Parts, many of which belong to one group. */
void sim_gather(struct sim *s)
{
    struct record record[MOST];
    struct part part[MOST];
    int ids[MOST];
    int n = sim_given_ids(s, ids);
    int n_groups = s->size.n_ids < 3 ? s->size.n_ids : 3;
    char letter = (char)('a' + s->step % 26);

    if (n == 0) {
        return;
    }
    for (int i = 0; i < n; i++) {
        ids[i] = sim_below(s, 3) ? (int)sim_below(s, n_groups) : ids[i];
    }
    sim_begin(s);
    for (int i = 0; i < n; i++) {
        unsigned char header[RECORD];
        record[i] = some_record(s);
        record[i].rule = (struct rule){0};
        record[i].key = 0;
        record[i].group = sim_below(s, 20) ? some_limits(s) : (struct limits){0};
        size_t len = sim_header(header, &record[i], 0);
        sim_arg_id(s, ids[i]);
        sim_arg_bytes(s, header, len);
        part[i] = (struct part){(char)(letter + (i & 1)), some_part_len(s)};
        sim_arg_part(s, &part[i]);
    }
    sim_ask(s, GATHER);

    HOLDS(s->reply->elements == (size_t)n + 1, "%zu answers, not %d\n", s->reply->elements - 1, n);
    for (int i = 0; i < n; i++) {
        gathered(s, (size_t)i + 1, ids[i], &record[i], part[i]);
    }
}

/* Mostly of the few batches that there are. */
void sim_close(struct sim *s)
{
    int ids[MOST];
    int n = 1;

    ids[0] = (int)sim_below(s, s->size.n_batches);
    if (sim_below(s, 4) == 0) {
        n = sim_ids(s, ids);
    }
    sim_begin(s);
    for (int i = 0; i < n; i++) {
        sim_arg_id(s, ids[i]);
    }
    sim_ask(s, BATCH_CLOSE);

    for (int i = 0; i < n; i++) {
        size_t at = (size_t)i + 1;
        const struct job *j = sim_job(s, ids[i]);
        s->about = ids[i];
        if (!model_is_known(s->model, j)) {
            sim_is_text(s, at, "ENOENT");
        } else if (j->kind == KEPT) {
            sim_is_text(s, at, "EENDED");
        } else if (j->kind != WAITING || j->attempt.token) {
            sim_is_text(s, at, "EBUSY");
        } else if (model_is_maker(s->model, j)) {
            sim_is_text(s, at, "EINVAL");
        } else {
            model_close(s->model, ids[i]);
            sim_row_is_now(s, at, ids[i]);
        }
    }
}
