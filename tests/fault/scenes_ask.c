/* SPDX-License-Identifier: MIT */
/* Scenes: a handle, and what is asked through it. */
#include "torture.h"
#include <stdio.h>
#include <time.h>

/* ---- the handle ---- */
static void open_and_close(struct torture *t)
{
    t_close(t, t_open(t), 1000);
    t_all_closed(t);
}

static void connect_and_close(struct torture *t)
{
    t_open(t);
    t_depth(t, "q");
    t_wait(t);
    t_close(t, t->l, 1000);
    t_all_closed(t);
}

static void close_without_grace(struct torture *t)
{
    t_open(t);
    t_depth(t, "q");
    t_wait(t);
    t_close(t, t->l, 0);
    t_all_closed(t);
}

static void close_twice(struct torture *t)
{
    struct lapse *l = t_open(t);

    t->want = LAPSE_ECLOSED;
    t_schedule(t, "q", "a", HOUR);
    t_close(t, l, HOUR);
    t_close(t, l, 0);
    t_all_closed(t);
}

static void abandon_at_once(struct torture *t)
{
    t_abandon(t, t_open(t));
}

static void abandon_connected(struct torture *t)
{
    t_open(t);
    t_schedule(t, "q", "a", HOUR);
    t_wait(t);
    t_schedule(t, "q", "b", HOUR);
    t_get(t, "q", "a");
    t_abandon(t, t->l);
}

static void one_job(struct torture *t)
{
    t_open(t);
    t_schedule(t, "q", "a", HOUR);
    t_wait(t);
    t_get(t, "q", "a");
    t_wait(t);
}

static void open_by_user_and_password(struct torture *t)
{
    T_REDIS(t, "ACL SETUSER torture on >secret ~* &* +@all");
    snprintf(t->url, sizeof t->url, "unix://torture:secret@%s", t->server->socket);
    one_job(t);
}

static void open_another_database(struct torture *t)
{
    t->db = 3;
    snprintf(t->url, sizeof t->url, "unix://%s?db=3", t->server->socket);
    one_job(t);
}

static void open_with_all_options(struct torture *t)
{
    struct lapse_options *o = &t->opts;
    static const char *const given[][2] = {
        {"space", "torture"},   {"name", "it"},        {"lease_ms", "5s"},    {"run_ms", "1m"},
        {"sweep_ms", "100ms"},  {"max_running", "10"}, {"max_pending", "50"}, {"max_bytes", "2MiB"},
        {"arm_ahead_ms", "1h"}, {"reply_ms", "5s"},
    };

    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        T_ASSERT(lapse_options_set(o, given[i][0], given[i][1]) == 0);
    }

    one_job(t);
}

static void open_with_wrong_options(struct torture *t)
{
    static const char *const wrong[] = {"http://x", "redis://:::", "unix://", "redis://h:99999",
                                        ""};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct lapse *l = NULL;
        t->opts.url = wrong[i];
        int err = lapse_open(&l, t->loop, &t->opts);
        T_ASSERT((err == LAPSE_EINVAL || (err == LAPSE_ENOMEM && t_faulty())) && !l);
    }

    t->opts.url = t->url;
    T_ASSERT(lapse_options_set(&t->opts, "lease_ms", "never") == LAPSE_EINVAL);
}

static void open_where_nobody_is(struct torture *t)
{
    char there[sizeof t->url];

    strcpy(there, t->url);
    snprintf(t->url, sizeof t->url, "unix://%s.not", t->server->socket);
    t->opts.reply_ms = 100;
    t_open(t);
    t->want = LAPSE_EDOWN;
    t_schedule(t, "q", "a", HOUR);
    t->want = LAPSE_EDOWN;
    t_depth(t, "q");
    t_wait(t);
    t_close(t, t->l, 0);
    t_all_closed(t);
    strcpy(t->url, there);
    t->opts.reply_ms = 5000;
}

/* ---- schedule ---- */
static void schedule_a_hundred(struct torture *t)
{
    t_open(t);
    for (int i = 0; i < 100; i++) {
        char id[8];
        snprintf(id, sizeof id, "j%d", i);
        t_schedule(t, "q", id, HOUR + i);
    }
    t_wait(t);
}

static void schedule_without_an_id(struct torture *t)
{
    t_open(t);
    t_schedule(t, "q", NULL, HOUR);
    t_wait(t);
}

static void big(struct torture *t, const char *id, size_t len)
{
    struct lapse_spec s = t_job("q", id, HOUR);
    char *body = malloc(len);

    T_ASSERT(body);
    memset(body, 'x', len);
    s.body = body;
    s.body_len = len;
    t_spec(t, &s);
    free(body);
}

static void schedule_a_mebibyte(struct torture *t)
{
    t_open(t);
    big(t, "a", MIB);
    t_wait(t);
    t_get(t, "q", "a");
    t_wait(t);
}

static void schedule_some_mebibytes(struct torture *t)
{
    static const char *const ids[] = {"a", "b", "c", "d"};

    t_open(t);
    for (size_t i = 0; i < 4; i++) {
        big(t, ids[i], MIB / 2);
    }
    t_wait(t);
}

static void conflict(struct torture *t, enum lapse_conflict how, int want)
{
    struct lapse_spec s = t_job("q", "a", 2 * HOUR);

    t_open(t);
    t_schedule(t, "q", "a", HOUR);
    t_wait(t);
    s.on_conflict = how;
    t->want = want;
    t_spec(t, &s);
    t_wait(t);
}
static void schedule_again_rejected(struct torture *t)
{
    conflict(t, LAPSE_REJECT, LAPSE_EEXIST);
}
static void schedule_again_kept(struct torture *t)
{
    conflict(t, LAPSE_KEEP, 0);
}
static void schedule_again_replaced(struct torture *t)
{
    conflict(t, LAPSE_REPLACE, 0);
}

static void schedule_at_a_moment(struct torture *t)
{
    struct lapse_spec s = t_job("q", "a", 0);

    t_open(t);
    s.due = lapse_at((int64_t)time(NULL) * 1000 + 24 * HOUR);
    t_spec(t, &s);
    t_wait(t);
    s.id = "b";
    t_spec(t, &s);
    t_wait(t);
}

static void schedule_while_full(struct torture *t)
{
    t->opts.max_pending = 2;
    t_open(t);
    t_schedule(t, "q", "a", HOUR);
    t_schedule(t, "q", "b", HOUR);
    t->want = LAPSE_EFULL;
    t_schedule(t, "q", "c", HOUR);
    t_wait(t);
    t_schedule(t, "q", "c", HOUR);
    t_wait(t);
}

static void schedule_beyond_max_bytes(struct torture *t)
{
    t->opts.max_bytes = MIB;
    t_open(t);
    big(t, "a", MIB);
    t->want = LAPSE_EFULL;
    big(t, "b", 1);
    t_wait(t);
    big(t, "b", 1);
    t_wait(t);
}

static void schedule_nonsense(struct torture *t)
{
    t_open(t);
    t->want = LAPSE_EINVAL;
    t_schedule(t, "a queue", "a", HOUR);
    t->want = LAPSE_EINVAL;
    t_schedule(t, "q", "{}", HOUR);
    t->want = LAPSE_EINVAL;
    t_schedule(t, "q", "a", -1);
    t->queues[0] = NULL; /* it named none */
    while (t->ledger) {
        struct entry *e = t->ledger;
        t->ledger = e->next;
        free(e);
    }
}

/* ---- the other verbs ---- */
static void cancel(struct torture *t)
{
    t_open(t);
    t_schedule(t, "q", "a", HOUR);
    t_wait(t);
    t_cancel(t, "q", "a");
    t_wait(t);
    t->want = LAPSE_ENOENT;
    t_cancel(t, "q", "a");
    t_wait(t);
}

static void cancel_a_running_job(struct torture *t)
{
    t_open(t);
    t_handle(t, "q", 0, t_keep);
    t_schedule(t, "q", "a", 0);
    t_until(t, t_ran(t));
    t->want = LAPSE_EBUSY;
    t_cancel(t, "q", "a");
    t->want = LAPSE_EBUSY;
    t_reschedule(t, "q", "a", HOUR);
    t_wait(t);
}

static void reschedule(struct torture *t)
{
    t_open(t);
    t_schedule(t, "q", "a", HOUR);
    t_wait(t);
    t_reschedule(t, "q", "a", 2 * HOUR);
    t_reschedule(t, "q", "a", HOUR);
    t->want = LAPSE_ENOENT;
    t_reschedule(t, "q", "b", HOUR);
    t_wait(t);
}

static void reschedule_a_dead_job(struct torture *t)
{
    t_open(t);
    t_handle(t, "q", 0, t_failed);
    t_schedule(t, "q", "a", 0);
    t_until(t, t_ran(t));
    t_wait(t);
    t_reschedule(t, "q", "a", HOUR);
    t_wait(t);
    t_cancel(t, "q", "a");
    t_wait(t);
}

static void get(struct torture *t)
{
    t_open(t);
    t_schedule(t, "q", "a", HOUR);
    t_wait(t);
    t_get(t, "q", "a");
    t->want = LAPSE_ENOENT;
    t_get(t, "q", "b");
    t_wait(t);
}

static void list_some(struct torture *t)
{
    t_open(t);
    for (int i = 0; i < 10; i++) {
        t_schedule(t, "q", (char[]){(char)('a' + i), 0}, HOUR + i);
    }

    t_wait(t);
    t_list(t, "q", LAPSE_WAITING, NULL, 100);
    t_list(t, "q", LAPSE_WAITING, NULL, 3);
    t_list(t, "q", LAPSE_DEAD, NULL, 100);
    t_wait(t);
}

static void list_in_pieces(struct torture *t) /* of more bytes than one script may answer */
{
    t_open(t);
    for (int i = 0; i < 5; i++) {
        big(t, (char[]){(char)('a' + i), 0}, MIB / 5);
    }
    t_wait(t);
    t_list(t, "q", LAPSE_WAITING, NULL, 100);
    t_wait(t);
}

static void on_first(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                     void *arg)
{
    struct torture *t = arg;
    (void)l;
    t->n = 1;
    T_ASSERT((n == 1 && !err) || t_faulty());
    t_list(t, "q", LAPSE_WAITING, n ? jobs[0] : NULL, 1);
}

static void list_page_by_page(struct torture *t)
{
    t_open(t);
    t_schedule(t, "q", "a", HOUR);
    t_schedule(t, "q", "b", 2 * HOUR);
    t_wait(t);
    while (lapse_list(t->l, "q", LAPSE_WAITING, NULL, 1, on_first, t)) {
        T_ASSERT(t_faulty());
    }

    t_until(t, t->n);
    t_wait(t);
}

static void depth_and_stats(struct torture *t)
{
    struct lapse_stats s;

    t_open(t);
    t_schedule(t, "q", "a", HOUR);
    t_depth(t, "q");
    t_depth(t, "another");
    t_wait(t);
    lapse_stats(t->l, &s, sizeof s);
    T_ASSERT(s.scheduled == 1 || t_faulty());
}

static void all_in_one_turn(struct torture *t)
{
    t_open(t);
    t_schedule(t, "q", "a", HOUR);
    t_reschedule(t, "q", "a", 2 * HOUR);
    t_get(t, "q", "a");
    t_list(t, "q", LAPSE_WAITING, NULL, 10);
    t_depth(t, "q");
    t_cancel(t, "q", "a");
    t->want = LAPSE_ENOENT;
    t_get(t, "q", "a");
    t_schedule(t, "q", "a", HOUR);
    t_wait(t);
}

static void queues_in_one_turn(struct torture *t)
{
    static const char *const queues[] = {"q", "r", "s"};

    t_open(t);
    for (int i = 0; i < 12; i++) {
        t_schedule(t, queues[i % 3], (char[]){(char)('a' + i), 0}, HOUR);
    }

    for (int i = 0; i < 12; i += 2) {
        t_cancel(t, queues[i % 3], (char[]){(char)('a' + i), 0});
    }

    t_wait(t);
}

static void nobody_is_told(struct torture *t)
{
    struct lapse_spec s = t_job("q", "quiet", HOUR);

    t_open(t);
    while (lapse_schedule(t->l, &s, NULL, NULL)) {
        T_ASSERT(t_faulty());
    }

    while (lapse_cancel(t->l, "q", "quiet", 0, NULL, NULL)) {
        T_ASSERT(t_faulty());
    }

    while (lapse_get(t->l, "q", "quiet", NULL, NULL) || lapse_depth(t->l, "q", NULL, NULL) ||
           lapse_list(t->l, "q", LAPSE_WAITING, NULL, 9, NULL, NULL)) {
        T_ASSERT(t_faulty());
    }

    t_depth(t, "q");
    t_wait(t);
}

const struct scene scenes_ask[] = {
    SCENE(open_and_close),
    SCENE(connect_and_close),
    SCENE(close_without_grace),
    SCENE(close_twice),
    SCENE(abandon_at_once),
    SCENE(abandon_connected),
    SCENE(one_job),
    SCENE(open_by_user_and_password),
    SCENE(open_another_database),
    SCENE(open_with_all_options),
    SCENE(open_with_wrong_options),
    SCENE(open_where_nobody_is),
    SCENE(schedule_a_hundred),
    SCENE(schedule_without_an_id),
    SCENE(schedule_a_mebibyte),
    SCENE(schedule_some_mebibytes),
    SCENE(schedule_again_rejected),
    SCENE(schedule_again_kept),
    SCENE(schedule_again_replaced),
    SCENE(schedule_at_a_moment),
    SCENE(schedule_while_full),
    SCENE(schedule_beyond_max_bytes),
    SCENE(schedule_nonsense),
    SCENE(cancel),
    SCENE(cancel_a_running_job),
    SCENE(reschedule),
    SCENE(reschedule_a_dead_job),
    SCENE(get),
    SCENE(list_some),
    SCENE(list_in_pieces),
    SCENE(list_page_by_page),
    SCENE(depth_and_stats),
    SCENE(all_in_one_turn),
    SCENE(queues_in_one_turn),
    SCENE(nobody_is_told),
    {NULL, NULL, false},
};
