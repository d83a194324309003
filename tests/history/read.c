/* SPDX-License-Identifier: MIT */
/* Lines to events. A call is two lines, asked and answered, so that one whose asker was killed is
 * known; they become one event, with what either says. */
#include "history.h"
#include <jansson.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const op_name[N_OPS] = {"enqueue", "cancel",  "reschedule", "get",   "start",
                                    "ack",     "nack",    "dead",       "state", "final",
                                    "fsck",    "nemesis", "note"};
enum { CALLS_MOST = 100000000 }; /* of a process */
static const char *const outcome_name[] = {"asked", "ok", "fail", "info"};
static const char *const conflict_name[] = {"reject", "keep", "replace"};
static const char *const state_name[] = {"absent", "waiting", "running", "dead"};

/* ---- texts ---- */
static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void *must(void *p)
{
    if (!p) {
        fputs("history-check: out of memory\n", stderr);
        exit(2);
    }
    return p;
}

/* Equal texts get one address. */
static const char *intern(const char *text)
{
    static void *root;

    if (!text) {
        return NULL;
    }

    const char **node = tfind(text, &root, by_text);
    if (!node) {
        node = must(tsearch(must(strdup(text)), &root, by_text));
    }

    return *node;
}

/* ---- the events of calls ---- */
struct proc {
    const char *name;
    size_t *of_call; /* by number: which event it is, plus 1; 0: none yet */
    size_t n;
};

static int by_name(const void *a, const void *b)
{
    const char *x = ((const struct proc *)a)->name;
    const char *y = ((const struct proc *)b)->name;
    return (x > y) - (x < y);
}

static size_t *place_of(const char *name, long call)
{
    static void *root;
    struct proc key = {.name = name};
    struct proc **node = tfind(&key, &root, by_name);

    if (!node) {
        struct proc *made = must(calloc(1, sizeof *made));
        made->name = name;
        node = must(tsearch(made, &root, by_name));
    }

    struct proc *p = *node;
    if ((size_t)call >= p->n) {
        size_t n = 2 * (size_t)call + 64;
        p->of_call = must(realloc(p->of_call, n * sizeof *p->of_call));
        memset(p->of_call + p->n, 0, (n - p->n) * sizeof *p->of_call);
        p->n = n;
    }

    return &p->of_call[call];
}

/* ---- one line ---- */
static const char *text(const json_t *o, const char *name)
{
    return intern(json_string_value(json_object_get(o, name)));
}

static int64_t number(const json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

/* otherwise: what it is where the line does not have it */
static int64_t number_or(const json_t *o, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(o, name);

    return value ? json_integer_value(value) : otherwise;
}

/* Which of these words it is; -1: none of them. 0 where the line does not have it. */
static int word(const json_t *o, const char *name, const char *const *words, int n)
{
    const char *said = json_string_value(json_object_get(o, name));

    for (int i = 0; said && i < n; i++) {
        if (strcmp(said, words[i]) == 0) {
            return i;
        }
    }
    return said ? -1 : 0;
}

static bool read_words(const json_t *o, struct event *e)
{
    int op = word(o, "op", op_name, N_OPS);
    int outcome = word(o, "outcome", outcome_name, 4);
    int conflict = word(o, "conflict", conflict_name, 3);
    int state = word(o, "state", state_name, 4);

    if (op < 0 || outcome < 0 || conflict < 0 || state < 0 || !json_object_get(o, "op")) {
        return false;
    }

    e->op = (enum op)op;
    e->outcome = json_object_get(o, "outcome") ? (enum outcome)outcome : OK;
    e->conflict = (enum conflict)conflict;
    e->state = (enum state)state;
    return true;
}

static void read_numbers(const json_t *o, struct event *e)
{
    e->call = (long)number(o, "call");
    e->to_ns = number(o, "mono_ns");
    e->from_ns = number_or(o, "asked_ns", e->to_ns);
    e->redis_us = number(o, "redis_us");
    e->redis_ms = number(o, "redis_ms");
    e->due_ms = number(o, "due");
    e->delay_ms = number_or(o, "delay", -1);
    e->lease_until_ms = number(o, "lease_until");
    e->least_ms = number(o, "least");
    e->since_ns = number(o, "since_ns");
    e->token = (uint64_t)number(o, "token");
    e->attempt = (long)number(o, "attempt");
    e->tries = (long)number(o, "tries");
    e->created = (long)number_or(o, "created", 1);
    e->running = number(o, "running") == 1;
    e->defects = (long)number(o, "defects");
    e->n_due = (long)number(o, "n_due");
    e->n_run = (long)number(o, "n_run");
    e->n_dead = (long)number(o, "n_dead");
    e->n_jobs = (long)number(o, "n_jobs");
}

static bool read_event(const json_t *o, struct event *e)
{
    e->proc = text(o, "proc");
    e->job = text(o, "job");
    e->queue = text(o, "queue");
    e->err = text(o, "err");
    e->payload = text(o, "payload");
    e->what = text(o, "what");
    if (!read_words(o, e) || !e->proc) {
        return false;
    }

    read_numbers(o, e);

    bool is_of_job = e->op <= STATE;
    return e->call >= 0 && e->call < CALLS_MOST && is_of_job == (e->job != NULL);
}

/* ---- to a history ---- */
static void add_answer(struct event *asked, const struct event *answer)
{
    asked->outcome = answer->outcome;
    asked->to_ns = answer->to_ns;
    asked->err = answer->err;
    asked->created = answer->created;
    asked->state = answer->state;
    if (answer->due_ms) {
        asked->due_ms = answer->due_ms;
    }
}

static void add_event(struct history *h, const struct event *e)
{
    size_t *place = e->call ? place_of(e->proc, e->call) : NULL;

    if (place && *place) {
        add_answer(&h->event[*place - 1], e);
        return;
    }

    if (h->n == h->cap) {
        h->cap = h->cap ? 2 * h->cap : 4096;
        h->event = must(realloc(h->event, h->cap * sizeof *h->event));
    }

    h->event[h->n++] = *e;
    if (place) {
        *place = h->n;
    }
}

bool history_read(struct history *h, const char *path)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    bool ok = true;

    path = intern(path);
    if (!f) {
        perror(path);
        return false;
    }

    for (long n = 1; ok && (len = getline(&line, &cap, f)) > 0; n++) {
        struct event e = {.file = path, .line = n};
        if (line[0] == '\n' || line[0] == '#') {
            continue;
        }
        json_t *o = json_loadb(line, (size_t)len, 0, NULL);
        if (!o && line[len - 1] != '\n') {
            break; /* its writer was killed in the middle */
        }
        ok = o && read_event(o, &e);
        json_decref(o);
        if (ok) {
            add_event(h, &e);
        } else {
            fprintf(stderr, "%s:%ld: not a line of a history: %s", path, n, line);
        }
    }

    free(line);
    fclose(f);

    return ok;
}

/* Equal texts have one address; no job comes first. */
static int by_job(const char *a, const char *b)
{
    if (a == b) {
        return 0;
    }
    if (!a || !b) {
        return a ? 1 : -1;
    }
    return strcmp(a, b);
}

static int by_job_and_time(const void *a, const void *b)
{
    const struct event *x = a;
    const struct event *y = b;
    int order = by_job(x->job, y->job);

    if (order == 0) {
        order = (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
    }
    if (order == 0) {
        order = (x->line > y->line) - (x->line < y->line);
    }
    return order;
}

/* A call that was never answered may have taken effect, or may still. */
static void end_call(struct event *e)
{
    e->heard_ns = e->outcome == ASKED ? INT64_MAX : e->to_ns;
    if (e->outcome == ASKED) {
        e->outcome = INFO;
    }
    if (e->outcome == INFO) {
        e->to_ns = INT64_MAX; /* a repeat of it may be on its way */
    }
}

static void note_nemesis(struct history *h, const struct event *e)
{
    enum { MOST = sizeof h->rollback / sizeof *h->rollback };

    h->faults = true;
    if (e->what && strcmp(e->what, "clock") == 0) {
        h->clock_fault = true;
    }
    if (e->since_ns && h->n_rollbacks < MOST) {
        h->rollback[h->n_rollbacks++] = e;
    }
}

/* A handler starts after the claim of its job. A job is made after it was asked for, and what
 * Redis's clock says then, to the millisecond, is its due time less its delay. */
static void compare_clocks(struct history *h, const struct event *e)
{
    if (e->op == START) {
        int64_t most_ns = e->to_ns - e->redis_us * 1000;
        h->offset_to_ns = most_ns < h->offset_to_ns ? most_ns : h->offset_to_ns;
    }
    if (e->op == ENQUEUE && e->outcome == OK && e->created && e->delay_ms >= 0) {
        int64_t least_ns = e->from_ns - (e->due_ms - e->delay_ms + 1) * 1000000;
        h->offset_from_ns = least_ns > h->offset_from_ns ? least_ns : h->offset_from_ns;
    }
}

void history_sort(struct history *h)
{
    if (h->n) {
        qsort(h->event, h->n, sizeof *h->event, by_job_and_time);
    }

    h->offset_from_ns = INT64_MIN;
    h->offset_to_ns = INT64_MAX;

    for (struct event *e = h->event; e < h->event + h->n; e++) {
        end_call(e);
        compare_clocks(h, e);
        if (e->op == FINAL) {
            h->final = e;
        }
        if (e->op == NEMESIS) {
            note_nemesis(h, e);
        }
    }
}
