/* SPDX-License-Identifier: MIT */
/* Arguments that are refused at once: nothing is sent, no callback runs, and Redis is unchanged. */
#include "ask.h"

enum { MAX_BODY = 1 << 20 };
#define TEN_YEARS INT64_C(315576000000)

static void never(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)job;
    (void)arg;
    cr_assert_fail("a refused call called back, with %d", err);
}

static void never_depth(struct lapse *l, int err, const struct lapse_depth *d, void *arg)
{
    (void)d;
    never(l, err, NULL, arg);
}

static void never_text(struct lapse *l, int err, const char *text, void *arg)
{
    (void)text;
    never(l, err, NULL, arg);
}

static void never_count(struct lapse *l, int err, uint64_t n, uint64_t n_running, void *arg)
{
    (void)n;
    (void)n_running;
    never(l, err, NULL, arg);
}

static void never_list(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                       void *arg)
{
    (void)jobs;
    (void)n;
    never(l, err, NULL, arg);
}

static void never_run(struct lapse *l, struct lapse_job *job, void *arg)
{
    never(l, 0, job, arg);
}

/* A job that each refused call would have changed; connected, and the server's clock is known. */
static struct flow *start(char **before)
{
    struct flow *f = flow_start(FLOW_FULL);
    cr_assert_eq(flow_schedule(f, "q", "a", 3600000, NULL), 0);
    *before = flow_dump(f);
    return f;
}

static void end(struct flow *f, char *before)
{
    cr_assert_eq(flow_get(f, "q", "a", NULL), 0); /* what was asked before this is answered */
    char *after = flow_dump(f);
    cr_assert_str_eq(before, after);
    free(before);
    free(after);
    flow_end(f, "q");
}

#define REFUSED(call) cr_assert_eq(call, LAPSE_EINVAL, "not refused: %s", #call)

Test(bad_input, a_backoff_without_what_its_kind_needs_is_einval)
{
    static const int64_t waits[17] = {5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5};
    static const int64_t zero[] = {5, 0};
    static const int64_t long_wait[] = {TEN_YEARS + 1};
    static const struct {
        enum lapse_backoff_kind kind;
        const int64_t *list_ms;
        unsigned n;
    } wrong[] = {
        {(enum lapse_backoff_kind)5, NULL, 0}, {LAPSE_BACKOFF_LIST, NULL, 0},
        {LAPSE_BACKOFF_LIST, waits, 0},        {LAPSE_BACKOFF_LIST, NULL, 1},
        {LAPSE_BACKOFF_LIST, waits, 17},       {LAPSE_BACKOFF_LIST, zero, 2},
        {LAPSE_BACKOFF_LIST, long_wait, 1},    {LAPSE_BACKOFF_DOUBLE, waits, 1},
        {LAPSE_BACKOFF_FIXED, waits, 0},       {LAPSE_BACKOFF_POWER2, NULL, 1},
    };
    char *before;
    struct flow *f = start(&before);

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct lapse_spec s = flow_job_spec("q", "b", 1000);
        s.backoff_kind = wrong[i].kind;
        s.backoff_list_ms = wrong[i].list_ms;
        s.n_backoff_list = wrong[i].n;
        cr_assert_eq(lapse_schedule(f->l, &s, never, f), LAPSE_EINVAL, "row %zu", i);
    }
    end(f, before);
}

/* The key must be in the slot of the queue, which is q. */
Test(bad_input, a_guard_that_breaks_a_rule_is_einval)
{
    static char long_key[514] = "{q}";
    static char long_field[514];
    char *before;
    struct flow *f = start(&before);

    memset(long_key + 3, 'k', 510);
    memset(long_field, 'f', 513);

    const struct lapse_guard wrong[] = {
        {.key = NULL, .op = LAPSE_EXISTS},
        {.key = "", .op = LAPSE_EXISTS},
        {.key = "order", .op = LAPSE_EXISTS},
        {.key = "order:{p}", .op = LAPSE_EXISTS},
        {.key = "order:{p}{q}", .op = LAPSE_EXISTS},
        {.key = "order:{}{q}", .op = LAPSE_EXISTS},
        {.key = "order:{q", .op = LAPSE_EXISTS},
        {.key = "order:{qq}", .op = LAPSE_EXISTS},
        {.key = "order:{q} 1", .op = LAPSE_EXISTS},
        {.key = " {q}", .op = LAPSE_EXISTS},
        {.key = long_key, .op = LAPSE_EXISTS},
        {.key = "{q}", .op = (enum lapse_guard_op)0},
        {.key = "{q}", .op = (enum lapse_guard_op)(LAPSE_MISSING + 1)},
        {.key = "{q}", .field = "", .op = LAPSE_EXISTS},
        {.key = "{q}", .field = "a b", .op = LAPSE_EXISTS},
        {.key = "{q}", .field = long_field, .op = LAPSE_EXISTS},
        {.key = "{q}", .op = LAPSE_EXISTS, .value = "x", .value_len = 1},
        {.key = "{q}", .op = LAPSE_MISSING, .value = "x", .value_len = 1},
        {.key = "{q}", .op = LAPSE_EQUALS, .value = long_field, .value_len = 256},
        {.key = "{q}", .op = LAPSE_EQUALS, .value_len = 1},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct lapse_spec s = flow_job_spec("q", "b", 1000);
        struct lapse_guard g = wrong[i];
        g.size = sizeof g;
        s.guard = &g;
        cr_assert_eq(lapse_schedule(f->l, &s, never, f), LAPSE_EINVAL, "row %zu", i);
    }

    struct lapse_spec s = flow_job_spec("q", "b", 1000);
    struct lapse_guard g = {.size = 0, .key = "{q}", .op = LAPSE_EXISTS};
    s.guard = &g;
    cr_assert_eq(lapse_schedule(f->l, &s, never, f), LAPSE_EINVAL, "without its size");
    end(f, before);
}

Test(bad_input, a_schedule_with_any_wrong_field_is_einval)
{
    char *before;
    char long_id[257];
    struct flow *f = start(&before);
    char *big = calloc(1, MAX_BODY + 1);
    int64_t now = redis_now_ms(f->server);

    memset(long_id, 'x', 256), long_id[256] = 0;
#define BAD(change)                                                                       \
    do {                                                                                  \
        struct lapse_spec s = flow_job_spec("q", "b", 1000);                              \
        change;                                                                           \
        cr_assert_eq(lapse_schedule(f->l, &s, never, f), LAPSE_EINVAL, "not refused: %s", \
                     #change);                                                            \
    } while (0)
    BAD(s.size = 0);
    BAD(s.size = sizeof s.size);
    BAD(s.queue = NULL);
    BAD(s.queue = "");
    BAD(s.id = "");
    BAD(s.id = long_id);
    BAD(s.body = NULL; s.body_len = 1);
    BAD(s.body = big; s.body_len = MAX_BODY + 1);
    BAD(s.body = big; s.body_len = SIZE_MAX);
    BAD(s.due.at_ms = now + 1000); /* and a delay */
    BAD(s.due = lapse_in(-1));
    BAD(s.due = lapse_in(INT64_MIN));
    BAD(s.due = lapse_in(TEN_YEARS + 1));
    BAD(s.due = lapse_in(INT64_MAX));
    BAD(s.due = lapse_at(-1));
    BAD(s.due = lapse_at(INT64_MIN));
    BAD(s.due = lapse_at(now + TEN_YEARS + 60000));
    BAD(s.due = lapse_at(INT64_MAX));
    BAD(s.backoff_ms = -1);
    BAD(s.backoff_ms = TEN_YEARS + 1);
    BAD(s.run_ms = -1);
    BAD(s.run_ms = 99);
    BAD(s.run_ms = 366 * INT64_C(86400000) + 1);
    BAD(s.retry_for_ms = -1);
    BAD(s.retry_for_ms = TEN_YEARS + 1);
    BAD(s.max_late_ms = -1);
    BAD(s.max_late_ms = TEN_YEARS + 1);
    BAD(s.late = LAPSE_LATE_DEAD); /* without max_late_ms */
    BAD(s.max_late_ms = 1; s.late = (enum lapse_late)2);
    BAD(s.backoff_max_ms = -1);
    BAD(s.backoff_max_ms = INT64_MAX);
    BAD(s.on_conflict = LAPSE_DEBOUNCE + 1);
    BAD(s.on_conflict = (enum lapse_conflict)77);
#undef BAD
    struct lapse_spec good = flow_job_spec("q", "b", 1000);
    REFUSED(lapse_schedule(NULL, &good, never, f));
    REFUSED(lapse_schedule(f->l, NULL, never, f));
    free(big);
    end(f, before);
}

Test(bad_input, a_selection_of_nothing_or_with_any_wrong_argument_is_einval)
{
    char *before;
    char long_reason[202];
    struct flow *f = start(&before);
    const struct lapse_where good = {.size = sizeof good, .state = LAPSE_WAITING};
    struct lapse_due in = lapse_in(1);

    memset(long_reason, 'x', 201), long_reason[201] = 0;
#define BAD(change)                                                             \
    do {                                                                        \
        struct lapse_where w = good;                                            \
        change;                                                                 \
        REFUSED(lapse_cancel_all(f->l, "q", &w, 0, never_count, f));            \
        REFUSED(lapse_reschedule_all(f->l, "q", &w, in, 0, 0, never_count, f)); \
    } while (0)
    BAD(w.size = 0);
    BAD(w.size = sizeof w.size);
    BAD(w.state = (enum lapse_state)0; w.reason = "x"; w.before_ms = 1);
    BAD(w.state = LAPSE_KEPT + 1);
    BAD(w.tag = "");
    BAD(w.tag = "a b");
    BAD(w.tag = "{a}");
    BAD(w.tag = long_reason);
    BAD(w.state = LAPSE_KEPT + 1; w.tag = "a");
    BAD(w.state = (enum lapse_state) - 1);
    BAD(w.reason = long_reason);
    BAD(w.before_ms = -1);
    BAD(w.before_ms = INT64_MAX);
#undef BAD
    REFUSED(lapse_cancel_all(NULL, "q", &good, 0, never_count, f));
    REFUSED(lapse_cancel_all(f->l, NULL, &good, 0, never_count, f));
    REFUSED(lapse_cancel_all(f->l, "a b", &good, 0, never_count, f));
    REFUSED(lapse_cancel_all(f->l, "q", NULL, 0, never_count, f));
    REFUSED(lapse_cancel_all(f->l, "q", &good, 1u << 31, never_count, f));
    REFUSED(lapse_cancel_all(f->l, "q", &good, 2, never_count, f));
    REFUSED(lapse_kill_all(NULL, "q", &good, NULL, never_count, f));
    REFUSED(lapse_kill_all(f->l, "q", NULL, NULL, never_count, f));
    REFUSED(lapse_reschedule_all(f->l, "q", &good, in, 0, 3, never_count, f));
    REFUSED(lapse_reschedule_all(NULL, "q", &good, in, 0, 0, never_count, f));
    REFUSED(lapse_reschedule_all(f->l, "q", &good, in, 0, 1u << 31, never_count, f));
    REFUSED(lapse_reschedule_all(f->l, "q", &good, in, -1, 0, never_count, f));
    REFUSED(lapse_reschedule_all(f->l, "q", &good, in, TEN_YEARS, 0, never_count, f));
    REFUSED(lapse_reschedule_all(f->l, "q", &good, in, INT64_MAX, 0, never_count, f));
    REFUSED(lapse_reschedule_all(f->l, "q", &good, lapse_in(-1), 0, 0, never_count, f));
    REFUSED(lapse_reschedule_all(f->l, "q", &good, (struct lapse_due){1, 1}, 0, 0, never_count, f));
    end(f, before);
}

Test(bad_input, a_kill_of_what_is_no_queue_or_no_id_is_einval)
{
    char *before;
    struct flow *f = start(&before);

    REFUSED(lapse_kill(NULL, "q", "a", "x", never, f));
    REFUSED(lapse_kill(f->l, "a b", "a", "x", never, f));
    REFUSED(lapse_kill(f->l, "q", NULL, "x", never, f));
    REFUSED(lapse_batch_close(NULL, "q", "a", never, f));
    REFUSED(lapse_batch_close(f->l, "a b", "a", never, f));
    REFUSED(lapse_batch_close(f->l, NULL, "a", never, f));
    REFUSED(lapse_batch_close(f->l, "q", NULL, never, f));
    REFUSED(lapse_batch_get(NULL, "q", "a", NULL, f));
    REFUSED(lapse_batch_get(f->l, "a b", "a", NULL, f));
    REFUSED(lapse_batch_get(f->l, NULL, "a", NULL, f));
    REFUSED(lapse_batch_get(f->l, "q", NULL, NULL, f));
    end(f, before);
}

Test(bad_input, an_adoption_with_any_wrong_field_is_einval)
{
    char *before;
    char long_name[1026];
    struct flow *f = start(&before);
    struct flow_answer a = {.f = f};

    memset(long_name, 'x', 1025), long_name[1025] = 0;
#define BAD(change)                                                                              \
    do {                                                                                         \
        struct lapse_adoption w = {                                                              \
            .size = sizeof w, .group = "g", .consumer = "c", .idle_ms = 1, .n = 1};              \
        change;                                                                                  \
        cr_assert_eq(lapse_adopt(f->l, "q", &w, never_list, f), LAPSE_EINVAL, "not refused: %s", \
                     #change);                                                                   \
    } while (0)
    BAD(w.size = 0);
    BAD(w.size = sizeof w - 1);
    BAD(w.group = NULL);
    BAD(w.group = "");
    BAD(w.group = long_name);
    BAD(w.consumer = NULL);
    BAD(w.consumer = "");
    BAD(w.consumer = long_name);
    BAD(w.idle_ms = -1);
    BAD(w.idle_ms = TEN_YEARS + 1);
    BAD(w.n = 0);
    BAD(w.n = 101);
#undef BAD
    struct lapse_adoption good = {
        .size = sizeof good, .group = "g", .consumer = "c", .idle_ms = 1, .n = 1};
    REFUSED(lapse_adopt(NULL, "q", &good, never_list, f));
    REFUSED(lapse_adopt(f->l, NULL, &good, never_list, f));
    REFUSED(lapse_adopt(f->l, "{q}", &good, never_list, f));
    REFUSED(lapse_adopt(f->l, "q", NULL, never_list, f));

    good.group = long_name + 1;
    good.consumer = long_name + 1;
    good.idle_ms = TEN_YEARS;
    cr_assert_eq(lapse_adopt(f->l, "q", &good, flow_list_answered, &a), 0);
    cr_assert_eq(flow_wait(f, &a), LAPSE_ENOENT);
    end(f, before);
}

Test(bad_input, other_calls_with_any_wrong_argument_are_einval)
{
    char *before;
    struct flow *f = start(&before);
    struct lapse_due in = lapse_in(1);
    struct lapse *l = f->l;
    char long_text[4098] = "";

    memset(long_text, 'x', sizeof long_text - 1);
    REFUSED(lapse_cancel(NULL, "q", "a", 0, never, f));
    REFUSED(lapse_cancel(l, NULL, "a", 0, never, f));
    REFUSED(lapse_cancel(l, "q", NULL, 0, never, f));
    REFUSED(lapse_cancel(l, "q", "", 0, never, f));
    REFUSED(lapse_cancel(l, "q", "a", 2, never, f));
    REFUSED(lapse_reschedule(NULL, "q", "a", in, 0, never, f));
    REFUSED(lapse_reschedule(l, NULL, "a", in, 0, never, f));
    REFUSED(lapse_reschedule(l, "q", NULL, in, 0, never, f));
    REFUSED(lapse_reschedule(l, "q", "a", in, 4, never, f));
    REFUSED(lapse_reschedule(l, "q", "a", lapse_in(-1), 0, never, f));
    REFUSED(lapse_reschedule(l, "q", "a", lapse_at(-1), 0, never, f));
    REFUSED(lapse_reschedule(l, "q", "a", lapse_in(TEN_YEARS + 1), 0, never, f));
    REFUSED(lapse_reschedule(l, "q", "a", (struct lapse_due){1, 1}, 0, never, f));
    REFUSED(lapse_get(NULL, "q", "a", never, f));
    REFUSED(lapse_get(l, NULL, "a", never, f));
    REFUSED(lapse_get(l, "q", NULL, never, f));
    REFUSED(lapse_get(l, "q", "{a}", never, f));
    REFUSED(lapse_configure(NULL, "q", NULL, never_text, f));
    REFUSED(lapse_configure(l, NULL, NULL, never_text, f));
    REFUSED(lapse_configure(l, "{q}", NULL, never_text, f));
    REFUSED(lapse_configure(l, "q", long_text, never_text, f));
    REFUSED(lapse_pause(NULL, "q", NULL, 1, never_text, f));
    REFUSED(lapse_pause(l, NULL, NULL, 1, never_text, f));
    REFUSED(lapse_pause(l, "q", "a", 1, never_text, f));
    REFUSED(lapse_pause(l, "q", NULL, -1, never_text, f));
    REFUSED(lapse_pause(l, "q", NULL, TEN_YEARS + 1, never_text, f));
    REFUSED(lapse_unpause(NULL, "q", NULL, never_text, f));
    REFUSED(lapse_unpause(l, "", NULL, never_text, f));
    REFUSED(lapse_depth(NULL, "q", never_depth, f));
    REFUSED(lapse_depth(l, NULL, never_depth, f));
    REFUSED(lapse_depth(l, "", never_depth, f));
    REFUSED(lapse_list(NULL, "q", LAPSE_WAITING, NULL, 1, never_list, f));
    REFUSED(lapse_list(l, NULL, LAPSE_WAITING, NULL, 1, never_list, f));
    REFUSED(lapse_list(l, "q", (enum lapse_state)0, NULL, 1, never_list, f));
    REFUSED(lapse_list(l, "q", (enum lapse_state)6, NULL, 1, never_list, f));
    REFUSED(lapse_list(l, "q", LAPSE_WAITING, NULL, 0, never_list, f));
    REFUSED(lapse_list(l, "q", LAPSE_WAITING, NULL, 101, never_list, f));

    struct lapse_listen_options opts = {.max_running = 1};
    REFUSED(lapse_listen(NULL, "q", NULL, never_run, f));
    REFUSED(lapse_listen(l, NULL, NULL, never_run, f));
    REFUSED(lapse_listen(l, "no/slash", NULL, never_run, f));
    REFUSED(lapse_listen(l, "q", &opts, never_run, f));
    REFUSED(lapse_listen(l, "q", NULL, NULL, f));
    REFUSED(lapse_unlisten(NULL, "q"));
    REFUSED(lapse_unlisten(l, NULL));
    REFUSED(lapse_unlisten(l, "no/slash"));
    end(f, before);
}

static void never_queues(struct lapse *l, int err, const struct lapse_queue *const *queues,
                         size_t n, void *arg)
{
    (void)queues;
    (void)n;
    never(l, err, NULL, arg);
}

Test(bad_input, a_pattern_that_is_no_name_and_no_beginning_of_names_is_einval)
{
    char *before;
    struct flow *f = start(&before);
    struct lapse *l = f->l;

    REFUSED(lapse_queues(NULL, NULL, never_queues, f));
    REFUSED(lapse_queues(l, "", never_queues, f));
    REFUSED(lapse_queues(l, "a*b", never_queues, f));
    REFUSED(lapse_queues(l, "*a", never_queues, f));
    REFUSED(lapse_queues(l, "**", never_queues, f));
    REFUSED(lapse_queues(l, "{q}", never_queues, f));
    end(f, before);
}

static void never_listeners(struct lapse *l, int err, const struct lapse_listener *const *listeners,
                            size_t n, void *arg)
{
    (void)listeners;
    (void)n;
    never(l, err, NULL, arg);
}

Test(bad_input, listeners_and_removal_with_any_wrong_argument_are_einval)
{
    char *before;
    struct flow *f = start(&before);
    struct lapse *l = f->l;

    REFUSED(lapse_listeners(NULL, "q", never_listeners, f));
    REFUSED(lapse_listeners(l, NULL, never_listeners, f));
    REFUSED(lapse_listeners(l, "{q}", never_listeners, f));
    REFUSED(lapse_remove(NULL, "q", 0, never_count, f));
    REFUSED(lapse_remove(l, NULL, 0, never_count, f));
    REFUSED(lapse_remove(l, "q*", 0, never_count, f));
    REFUSED(lapse_remove(l, "q", 2, never_count, f));
    end(f, before);
}

static void never_claim(struct lapse *l, int err, struct lapse_job *const *jobs, size_t n,
                        void *arg)
{
    (void)jobs;
    (void)n;
    never(l, err, NULL, arg);
}

Test(bad_input, a_claim_with_any_wrong_argument_is_einval)
{
    char *before;
    struct flow *f = start(&before);
    struct lapse *l = f->l;

    REFUSED(lapse_claim(NULL, "q", 1, 0, never_claim, f));
    REFUSED(lapse_claim(l, NULL, 1, 0, never_claim, f));
    REFUSED(lapse_claim(l, "a/b", 1, 0, never_claim, f));
    REFUSED(lapse_claim(l, "q", 0, 0, never_claim, f));
    REFUSED(lapse_claim(l, "q", 101, 0, never_claim, f));
    REFUSED(lapse_claim(l, "q", 1, -1, never_claim, f));
    REFUSED(lapse_claim(l, "q", 1, LAPSE_WAIT_MAX_MS + 1, never_claim, f));
    REFUSED(lapse_claim(l, "q", 1, 0, NULL, f));
    REFUSED(lapse_claim_id(NULL, "q", "a", never_claim, f));
    REFUSED(lapse_claim_id(l, NULL, "a", never_claim, f));
    REFUSED(lapse_claim_id(l, "q", NULL, never_claim, f));
    REFUSED(lapse_claim_id(l, "q", "", never_claim, f));
    REFUSED(lapse_claim_id(l, "q", "a b", never_claim, f));
    REFUSED(lapse_claim_id(l, "q", "a", NULL, f));
    end(f, before);
}

Test(bad_input, a_settlement_with_any_wrong_field_is_einval)
{
    static const struct lapse_settlement wrong[] = {
        {.size = 0, .how = LAPSE_HOW_DONE},
        {.size = sizeof(size_t), .how = LAPSE_HOW_DONE},
        {.size = sizeof *wrong, .how = (enum lapse_how)0},
        {.size = sizeof *wrong, .how = (enum lapse_how)8},
        {.size = sizeof *wrong, .how = LAPSE_HOW_DONE, .ms = 1},
        {.size = sizeof *wrong, .how = LAPSE_HOW_DONE, .reason = "why"},
        {.size = sizeof *wrong, .how = LAPSE_HOW_FAIL, .ms = 1},
        {.size = sizeof *wrong, .how = LAPSE_HOW_FAIL, .ms = LAPSE_BACKOFF},
        {.size = sizeof *wrong, .how = LAPSE_HOW_RELEASE, .ms = 1},
        {.size = sizeof *wrong, .how = LAPSE_HOW_RELEASE, .reason = "why"},
        {.size = sizeof *wrong, .how = LAPSE_HOW_RETRY, .ms = -2},
        {.size = sizeof *wrong, .how = LAPSE_HOW_RETRY, .ms = TEN_YEARS + 1},
        {.size = sizeof *wrong, .how = LAPSE_HOW_SNOOZE, .ms = -1},
        {.size = sizeof *wrong, .how = LAPSE_HOW_SNOOZE, .ms = TEN_YEARS + 1},
        {.size = sizeof *wrong, .how = LAPSE_HOW_RENEW, .ms = 99},
        {.size = sizeof *wrong, .how = LAPSE_HOW_RENEW, .ms = -1},
        {.size = sizeof *wrong, .how = LAPSE_HOW_RENEW, .ms = 86400001},
        {.size = sizeof *wrong, .how = LAPSE_HOW_RENEW, .ms = 100, .reason = "why"},
    };
    static const struct lapse_settlement done = {.size = sizeof done, .how = LAPSE_HOW_DONE};
    char *before;
    struct flow *f = start(&before);
    struct lapse *l = f->l;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_assert_eq(lapse_settle(l, "q", "a", 1, &wrong[i], never, f), LAPSE_EINVAL, "row %zu", i);
    }

    REFUSED(lapse_settle(NULL, "q", "a", 1, &done, never, f));
    REFUSED(lapse_settle(l, NULL, "a", 1, &done, never, f));
    REFUSED(lapse_settle(l, "a/b", "a", 1, &done, never, f));
    REFUSED(lapse_settle(l, "q", NULL, 1, &done, never, f));
    REFUSED(lapse_settle(l, "q", "a b", 1, &done, never, f));
    REFUSED(lapse_settle(l, "q", "a", 1, NULL, never, f));
    REFUSED(lapse_settle(l, "q", "a", 0, &done, never, f));
    REFUSED(lapse_settle(l, "q", "a", (UINT64_C(1) << 53) + 1, &done, never, f));
    REFUSED(lapse_settle(l, "q", "a", UINT64_MAX, &done, never, f));
    end(f, before);
}

Test(bad_input, only_the_bytes_of_the_contract_make_a_queue_or_an_id)
{
    char *before;
    char name[4] = "x?y";
    struct flow *f = start(&before);

    for (int c = 1; c < 256; c++) {
        name[1] = (char)c;
        bool in_queue =
            strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", c);
        bool in_id = c > ' ' && c <= '~' && c != '{' && c != '}';
        cr_assert_eq(lapse_get(f->l, name, "a", NULL, NULL), in_queue ? 0 : LAPSE_EINVAL,
                     "queue, byte %d", c);
        cr_assert_eq(lapse_get(f->l, "q", name, NULL, NULL), in_id ? 0 : LAPSE_EINVAL,
                     "id, byte %d", c);
        struct lapse_spec s = flow_job_spec(name, "a", 1000);
        if (!in_queue) {
            REFUSED(lapse_schedule(f->l, &s, never, f));
        }
        s = flow_job_spec("q", name, 1000);
        if (!in_id) {
            REFUSED(lapse_schedule(f->l, &s, never, f));
        }
    }

    end(f, before);
}

Test(bad_input, what_is_just_within_the_limits_is_taken)
{
    struct flow *f = flow_start(FLOW_FULL);
    char queue[66];
    char id[257];
    struct flow_job job;

    memset(queue, 'q', 65), queue[65] = 0;
    memset(id, 'i', 256), id[256] = 0;
    REFUSED(lapse_get(f->l, queue, "a", never, f));
    REFUSED(lapse_get(f->l, "q", id, never, f));
    queue[64] = id[255] = 0;

    struct lapse_spec s = flow_job_spec(queue, id, TEN_YEARS);
    s.backoff_ms = s.backoff_max_ms = TEN_YEARS;
    s.tries = LAPSE_FOREVER;
    s.on_conflict = LAPSE_REPLACE;
    cr_assert_eq(flow_spec(f, &s, &job), 0);
    cr_assert(strcmp(job.queue, queue) == 0 && strcmp(job.id, id) == 0);
    s.due = lapse_at(redis_now_ms(f->server) + TEN_YEARS - 60000);
    cr_assert_eq(flow_spec(f, &s, &job), 0);
    cr_assert_eq(job.due_ms, s.due.at_ms);
    cr_assert_eq(flow_reschedule(f, queue, id, lapse_in(TEN_YEARS), NULL), 0);
    flow_end(f, queue);
}

Test(bad_input, a_time_too_far_is_refused_also_before_the_servers_clock_is_known)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_answer a = {.f = f};
    struct lapse_spec s = flow_job_spec("q", "a", 0);

    s.due = lapse_at(INT64_MAX);
    REFUSED(lapse_schedule(f->l, &s, never, f));
    s.due = lapse_at(redis_now_ms(f->server) + TEN_YEARS + 60000); /* only Redis knows */
    int err = lapse_schedule(f->l, &s, flow_answered, &a);
    cr_assert_eq(err ? err : flow_wait(f, &a), LAPSE_EINVAL);
    cr_assert_eq(redis_int(f->server, "EXISTS lapse:{q}:due lapse:{q}:jobs"), 0);
    flow_end(f, "q");
}
