/* SPDX-License-Identifier: MIT */
#include "workload.h"
#include "audit.h"
#include "process.h"
#include "redis.h"
#include "test.h"
#include "child.h"
#include "journal.h"
#include "listener.h"
#include "producer.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UP_MS = 20000, CHECK_MS = 120000, CHECKED_PER_MS = 2, QUIET_MS = 1000 };

struct member {
    struct listener *listener; /* or, of a producer: */
    pid_t pid;                 /* 0: it has ended */
    int life;
};
struct work {
    struct server *server;
    struct work_opts o;
    char dir[200];
    struct journal nemesis, end; /* one file, under two names */
    struct journal_totals *totals;
    struct member listener[WORK_CREW], producer[WORK_CREW];
    unsigned born;
};

struct work_opts work_opts(void)
{
    return (struct work_opts){.lapse = lapse_options_init(),
                              .producers = 2,
                              .listeners = 2,
                              .queues = 1,
                              .jobs = 1000,
                              .delay_ms = 1000,
                              .body_len = 64,
                              .tries = LAPSE_FOREVER,
                              .backoff_ms = 50,
                              .seed = 1,
                              .turn = 1,
                              .delayed = 1000};
}

/* ---- queues ---- */
const char *work_queue(int i, char out[WORK_QUEUE_NAME])
{
    if (i == 0) {
        return WORK_QUEUE;
    }
    snprintf(out, WORK_QUEUE_NAME, WORK_QUEUE "%d", i);
    return out;
}

const char *work_queue_of(const struct work_opts *o, const char *id, char out[WORK_QUEUE_NAME])
{
    unsigned hash = 5381;

    while (*id) {
        hash = hash * 33 + (unsigned char)*id++;
    }
    return work_queue((int)(hash % (unsigned)o->queues), out);
}

static struct server *server_of(const struct work *w, int queue)
{
    return w->o.server_of ? w->o.server_of(w->o.arg, queue) : w->server;
}

static void name_queues(const struct work_opts *o, char *out, size_t size)
{
    size_t used = 0;

    for (int i = 0; i < o->queues; i++) {
        char name[WORK_QUEUE_NAME];
        used +=
            (size_t)snprintf(out + used, size - used, "%s%s", i ? " " : "", work_queue(i, name));
    }
}

/* ---- processes ---- */
static unsigned next_seed(struct work *w)
{
    return w->o.seed * 7919u + w->born++;
}

/* kind: 'l' or 'p' */
static struct journal journal_of(struct work *w, struct member *m, char kind, int number)
{
    struct journal j = {.totals = w->totals};

    snprintf(j.proc, sizeof j.proc, "%c%d.%d", kind, number, m->life++);
    snprintf(j.path, sizeof j.path, "%s/%s.jsonl", w->dir, j.proc);
    return j;
}

static void start_producer(struct work *w, int number)
{
    const struct work_opts *o = &w->o;
    struct member *m = &w->producer[number];
    struct journal journal = journal_of(w, m, 'p', number);
    struct producer p = {.opts = o, .journal = &journal, .seed = next_seed(w)};

    p.jobs = o->jobs / o->producers + (number < o->jobs % o->producers);
    p.per_s = o->per_s ? (o->per_s + o->producers - 1) / o->producers : 0;
    m->pid = child_start(producer_run, &p, NULL);
}

static void make_odd(struct listener_plan *plan, const struct work_opts *o)
{
    plan->lapse.flags |= o->odd_one.flags;
    if (o->odd_one.max_running) {
        plan->lapse.max_running = o->odd_one.max_running;
    }
    if (o->odd_one.hold_ms) {
        plan->hold_least_ms = plan->hold_most_ms = o->odd_one.hold_ms;
    }
    plan->block_ms = o->odd_one.block_ms;
}

/* What a listener sees goes to its journal, and calls of its handler to memory besides. */
struct two_recorders {
    struct recorder journal;
    struct runs *runs;
};

static void both_begin(void *arg)
{
    const struct two_recorders *both = arg;
    both->journal.begin(both->journal.arg);
}

static void both_started(void *arg, const struct lapse_job *job)
{
    const struct two_recorders *both = arg;

    both->journal.started(both->journal.arg, job);
    if (both->runs) {
        runs_add(both->runs, job);
    }
}

static void *both_settling(void *arg, const struct lapse_job *job, const struct settle *s)
{
    const struct two_recorders *both = arg;
    return both->journal.settling(both->journal.arg, job, s);
}

static void both_settled(void *arg, void *note, int err)
{
    const struct two_recorders *both = arg;
    both->journal.settled(both->journal.arg, note, err);
}

static void start_listener(struct work *w, int number)
{
    const struct work_opts *o = &w->o;
    struct member *m = &w->listener[number];
    struct journal journal = journal_of(w, m, 'l', number);
    struct producer again = {.opts = o, .journal = &journal};
    struct two_recorders both = {journal_recorder(&journal), o->runs};
    struct recorder recorder = {&both, both_begin, both_started, both_settling, both_settled};
    char queues[WORK_QUEUES_MOST * WORK_QUEUE_NAME];
    struct listener_plan plan = {.queues = queues,
                                 .lapse = o->lapse,
                                 .recorder = recorder,
                                 .claims = o->claims,
                                 .hold_most_ms = o->hold_ms,
                                 .retry = o->retry,
                                 .fail = o->fail,
                                 .backoff_ms = o->backoff_ms,
                                 .seed = next_seed(w),
                                 .may_be_refused = true,
                                 .done = producer_enqueue_again,
                                 .arg = &again};

    name_queues(o, queues, sizeof queues);
    if (o->listener_url && number < o->listeners - o->direct) {
        plan.lapse.url = o->listener_url;
    }
    if (number < o->odd) {
        make_odd(&plan, o);
    }
    listener_free(m->listener);
    m->listener = listener_start_plan(&plan);
}

static long count_in(struct work *w, int queue, const char *set)
{
    char name[WORK_QUEUE_NAME];

    return (long)redis_int(server_of(w, queue), "ZCARD %s:{%s}:%s", w->o.lapse.space,
                           work_queue(queue, name), set);
}

/* Of all queues. */
static long count(struct work *w, const char *set)
{
    long n = 0;

    for (int i = 0; i < w->o.queues; i++) {
        n += count_in(w, i, set);
    }
    return n;
}

static void until_listening(struct work *w)
{
    int64_t deadline = test_now_ms() + UP_MS;
    while (count(w, "listeners") < (long)w->o.listeners * w->o.queues) {
        cr_assert(test_now_ms() < deadline, "the listeners did not come");
        poll(NULL, 0, 5);
    }
}

static void make_dir(struct work *w)
{
    char top[160];
    const char *there = getenv("LAPSE_HISTORY");

    if (there) {
        snprintf(top, sizeof top, "%s", there);
    } else {
        snprintf(top, sizeof top, "%s/history", test_build());
    }
    cr_assert(!mkdir(top, 0700) || errno == EEXIST, "%s: %m", top);
    snprintf(w->dir, sizeof w->dir, "%s/%d-%" PRId64, top, (int)getpid(), test_now_ms());
    cr_assert(!mkdir(w->dir, 0700), "%s: %m", w->dir);
}

struct work *work_start(struct server *s, const struct work_opts *o)
{
    struct work *w = calloc(1, sizeof *w);

    cr_assert(w);
    w->server = s;
    w->o = *o;
    cr_assert(o->producers > 0 && o->producers <= WORK_CREW && o->listeners >= 0 &&
              o->listeners <= WORK_CREW);
    w->o.lapse.url = o->lapse.url ? o->lapse.url : s->url;
    w->o.lapse.space = o->lapse.space ? o->lapse.space : "lapse";
    make_dir(w);
    w->totals = shared_new(sizeof *w->totals);
    w->nemesis = (struct journal){.proc = "nemesis", .totals = w->totals};
    snprintf(w->nemesis.path, sizeof w->nemesis.path, "%s/nemesis.jsonl", w->dir);
    journal_open(&w->nemesis);
    w->end = w->nemesis;
    strcpy(w->end.proc, "end");

    for (int i = 0; i < o->listeners; i++) {
        start_listener(w, i);
    }

    until_listening(w);
    for (int i = 0; i < o->producers; i++) {
        start_producer(w, i);
    }

    return w;
}

static void end_listener(struct work *w, int number)
{
    int status = listener_exit(w->listener[number].listener);
    cr_assert_eq(status, 0, "listener %d ended with status %d", number, status);
}

/* ---- harm ---- */
void work_nemesis(struct work *w, const char *what)
{
    journal_line(&w->nemesis, "\"op\":\"nemesis\",\"what\":\"%s\"", what);
}

void work_note(struct work *w, const char *what)
{
    journal_line(&w->nemesis, "\"op\":\"note\",\"what\":\"%s\"", what);
}

void work_clock_fault(struct work *w)
{
    work_nemesis(w, "clock");
}

void work_rolled_back(struct work *w, int64_t since_ms)
{
    journal_line(&w->nemesis, "\"op\":\"nemesis\",\"what\":\"rollback\",\"since_ns\":%" PRId64,
                 since_ms * 1000000);
}

void work_signal(struct work *w, int listener, int sig)
{
    char what[32];

    snprintf(what, sizeof what, "signal %d to l%d", sig, listener);
    work_nemesis(w, what);
    listener_signal(w->listener[listener].listener, sig);
}

void work_kill(struct work *w, int listener)
{
    work_signal(w, listener, SIGKILL);
    start_listener(w, listener);
}

void work_replace(struct work *w, int listener)
{
    work_nemesis(w, "a listener is replaced");
    end_listener(w, listener);
    start_listener(w, listener);
}

void work_server(struct work *w, struct server *s)
{
    w->server = s;
}

void work_wait(struct work *w, int ms)
{
    (void)w;
    poll(NULL, 0, ms);
}

pid_t work_pid(struct work *w, int listener)
{
    return w->listener[listener].listener->pid;
}

bool work_asked_all(struct work *w)
{
    for (int i = 0; i < w->o.producers; i++) {
        struct member *m = &w->producer[i];
        int status;

        if (m->pid && waitpid(m->pid, &status, WNOHANG) == m->pid) {
            m->pid = 0;
            cr_assert_eq(status, 0, "a producer ended by itself: %#x", (unsigned)status);
        }
        if (m->pid) {
            return false;
        }
    }

    return true;
}

long work_starts(struct work *w)
{
    return w->totals->started;
}

/* ---- the end ---- */
/* A handler may have scheduled a job again and ended the old one: the job is in no set until that
 * is answered. Requests of a process that was killed since are never answered. */
static bool has_open_calls(const struct work *w, int64_t *quiet_since_ms)
{
    static long asked;
    static long answered;

    if (asked != w->totals->asked || answered != w->totals->answered) {
        *quiet_since_ms = test_now_ms();
    }
    asked = w->totals->asked;
    answered = w->totals->answered;
    return asked > answered && test_now_ms() - *quiet_since_ms < QUIET_MS;
}

static bool is_empty(const struct work *w)
{
    char name[WORK_QUEUE_NAME];

    for (int i = 0; i < w->o.queues; i++) {
        if (redis_left(server_of(w, i), w->o.lapse.space, work_queue(i, name)) > 0) {
            return false;
        }
    }
    return true;
}

static void until_all_ran(struct work *w, int timeout_ms)
{
    int64_t deadline = test_now_ms() + timeout_ms;
    int64_t quiet_since_ms = test_now_ms();

    for (;;) {
        long asked = w->totals->asked;
        if (work_asked_all(w) && is_empty(w) && !has_open_calls(w, &quiet_since_ms) &&
            is_empty(w) && asked == w->totals->asked) {
            return;
        }
        if (test_now_ms() >= deadline) {
            fault_say("not all ran in time: %ld calls of %ld answered, %ld wait, %ld run",
                      w->totals->answered, w->totals->asked, count(w, "due"), count(w, "run"));
            return; /* the history says what is wrong */
        }
        poll(NULL, 0, 10);
    }
}

static void end_listeners(struct work *w)
{
    for (int i = 0; i < w->o.listeners; i++) {
        listener_signal(w->listener[i].listener, SIGTERM);
    }

    for (int i = 0; i < w->o.listeners; i++) {
        end_listener(w, i);
        listener_free(w->listener[i].listener);
    }
}

static void write_jobs(struct work *w, int nth, const char *set, const char *state)
{
    char name[WORK_QUEUE_NAME];
    const char *queue = work_queue(nth, name);
    struct server *s = server_of(w, nth);
    redisReply *all =
        redis_cmd(s, "ZRANGE %s:{%s}:%s 0 -1 WITHSCORES", w->o.lapse.space, queue, set);

    cr_assert_eq(all->type, REDIS_REPLY_ARRAY);
    for (size_t k = 0; k + 1 < all->elements; k += 2) {
        const char *id = all->element[k]->str;
        long long score = strtoll(all->element[k + 1]->str, NULL, 10);
        char *held = redis_str(s, "HGET %s:{%s}:attempts %s", w->o.lapse.space, queue, id);
        unsigned long long token = 0;
        unsigned attempt = 0;
        long long tries = 0;
        if (held) {
            sscanf(held, "%*d %llu %*s %u %lld", &token, &attempt, &tries);
        }
        journal_line(
            &w->end,
            "\"op\":\"state\",\"job\":\"%s\",\"queue\":\"%s\",\"state\":\"%s\","
            "\"due\":%lld,\"lease_until\":%lld,\"attempt\":%u,\"tries\":%lld,\"token\":%llu",
            id, queue, state, score, score, attempt, tries == LAPSE_FOREVER ? 0 : tries, token);
        free(held);
    }
    freeReplyObject(all);
}

/* The server of a queue, with all queues that are there; once, for the first of them. */
static int audit_server_of(struct work *w, int nth)
{
    char names[WORK_QUEUES_MOST][WORK_QUEUE_NAME];
    const char *there[WORK_QUEUES_MOST];
    struct server *s = server_of(w, nth);
    size_t n = 0;

    for (int i = 0; i < w->o.queues; i++) {
        bool is_there = server_of(w, i) == s;
        if (is_there && i < nth) {
            return 0;
        }
        if (is_there) {
            there[n++] = work_queue(i, names[i]);
        }
    }
    return audit_queues(s, w->o.lapse.space, there, n);
}

static void write_states(struct work *w)
{
    static const char *const set[] = {"due", "run", "dead"};
    static const char *const state[] = {"waiting", "running", "dead"};
    long long n_jobs = 0;
    int defects = 0;

    for (int i = 0; i < w->o.queues; i++) {
        char name[WORK_QUEUE_NAME];
        for (int k = 0; k < 3; k++) {
            write_jobs(w, i, set[k], state[k]);
        }
        n_jobs +=
            redis_int(server_of(w, i), "HLEN %s:{%s}:jobs", w->o.lapse.space, work_queue(i, name));
        defects += audit_server_of(w, i);
    }

    journal_line(&w->end,
                 "\"op\":\"final\",\"redis_ms\":%" PRId64
                 ",\"n_due\":%ld,\"n_run\":%ld,\"n_dead\":%ld,\"n_jobs\":%lld",
                 redis_now_ms(w->server), count(w, "due"), count(w, "run"), count(w, "dead"),
                 n_jobs);
    journal_line(&w->end, "\"op\":\"fsck\",\"defects\":%d", defects);
}

static double figure(const char *text, const char *name)
{
    char key[40];
    snprintf(key, sizeof key, " %s=", name);
    const char *at = strstr(text, key);
    cr_assert(at, "the checker does not say %s:\n%s", name, text);
    return strtod(at + strlen(key), NULL);
}

static struct verdict check(struct work *w)
{
    char line[1024];
    struct verdict v;

    snprintf(line, sizeof line, "exec '%s/history-check' --late-ms %" PRId64 " '%s'/*.jsonl",
             test_build(), w->o.late_ms, w->dir);

    struct proc *p = proc_start((const char *const[]){"/bin/sh", "-c", line, NULL});
    int status = proc_wait(p, CHECK_MS + (int)(w->o.jobs / CHECKED_PER_MS));
    cr_assert_eq(status, 0, "the history in %s (%d):\n%s%s", w->dir, status, p->out, p->err);

    const char *out = strstr(p->out, "jobs=");
    cr_assert(out, "%s", p->out);
    v.jobs = strtol(out + 5, NULL, 10);
#define FIGURE(name) v.name = (long)figure(out, #name)
    FIGURE(ok);
    FIGURE(info);
    FIGURE(asked);
    FIGURE(starts);
    FIGURE(done);
    FIGURE(dead);
    FIGURE(stale);
    FIGURE(twice);
    FIGURE(expired);
    FIGURE(lost_in_window);
    FIGURE(searched);
#undef FIGURE
    v.window_ms = figure(out, "window_ms");
    v.late_p50_ms = figure(out, "late_p50_ms");
    v.late_p99_ms = figure(out, "late_p99_ms");
    v.late_max_ms = figure(out, "late_max_ms");
    fault_say("%s", out);
    proc_free(p);

    return v;
}

struct verdict work_end(struct work *w, int timeout_ms)
{
    until_all_ran(w, timeout_ms);
    end_listeners(w);

    for (int i = 0; i < w->o.producers; i++) {
        child_kill(w->producer[i].pid);
    }

    write_states(w);
    close(w->end.fd);

    struct verdict v = check(w);
    if (!getenv("LAPSE_KEEP_HISTORY")) {
        test_dir_remove(w->dir);
    }

    shared_free(w->totals, sizeof *w->totals);
    free(w);

    return v;
}
