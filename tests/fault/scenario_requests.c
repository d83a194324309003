/* SPDX-License-Identifier: MIT */
/* Scenes: a handle, and what is asked through it. */
#include "scenario.h"
#include "ask.h"
#include <stdio.h>
#include <time.h>

/* ---- the handle ---- */
static void open_and_close(struct play *p)
{
    play_close(p, play_open(p), 1000);
    play_all_closed(p);
}

static void connect_and_close(struct play *p)
{
    play_open(p);
    play_depth(p, "q");
    play_wait(p);
    play_close(p, p->l, 1000);
    play_all_closed(p);
}

static void close_without_grace(struct play *p)
{
    play_open(p);
    play_depth(p, "q");
    play_wait(p);
    play_close(p, p->l, 0);
    play_all_closed(p);
}

static void close_twice(struct play *p)
{
    struct lapse *l = play_open(p);

    p->want = LAPSE_ECLOSED;
    play_schedule(p, "q", "a", HOUR);
    play_close(p, l, HOUR);
    play_close(p, l, 0);
    play_all_closed(p);
}

static void abandon_at_once(struct play *p)
{
    play_abandon(p, play_open(p));
}

static void abandon_connected(struct play *p)
{
    play_open(p);
    play_schedule(p, "q", "a", HOUR);
    play_wait(p);
    play_schedule(p, "q", "b", HOUR);
    play_get(p, "q", "a");
    play_abandon(p, p->l);
}

static void one_job(struct play *p)
{
    play_open(p);
    play_schedule(p, "q", "a", HOUR);
    play_wait(p);
    play_get(p, "q", "a");
    play_wait(p);
}

static void open_by_user_and_password(struct play *p)
{
    PLAY_REDIS(p, "ACL SETUSER torture on >secret ~* &* +@all");
    snprintf(p->url, sizeof p->url, "unix://torture:secret@%s", p->server->socket);
    one_job(p);
}

static void open_another_database(struct play *p)
{
    p->db = 3;
    snprintf(p->url, sizeof p->url, "unix://%s?db=3", p->server->socket);
    one_job(p);
}

static void open_with_all_options(struct play *p)
{
    struct lapse_options *o = &p->opts;
    static const char *const given[][2] = {
        {"space", "torture"},   {"name", "it"},        {"lease_ms", "5s"},    {"run_ms", "1m"},
        {"sweep_ms", "100ms"},  {"max_running", "10"}, {"max_pending", "50"}, {"max_bytes", "2MiB"},
        {"arm_ahead_ms", "1h"}, {"reply_ms", "5s"},
    };

    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        PLAY_ASSERT(lapse_options_set(o, given[i][0], given[i][1]) == 0);
    }

    one_job(p);
}

static void open_with_wrong_options(struct play *p)
{
    static const char *const wrong[] = {"http://x", "redis://:::", "unix://", "redis://h:99999",
                                        ""};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct lapse *l = NULL;
        p->opts.url = wrong[i];
        int err = lapse_open(&l, p->loop, &p->opts);
        PLAY_ASSERT((err == LAPSE_EINVAL || (err == LAPSE_ENOMEM && play_faulty())) && !l);
    }

    p->opts.url = p->url;
    PLAY_ASSERT(lapse_options_set(&p->opts, "lease_ms", "never") == LAPSE_EINVAL);
}

static void open_where_no_server_is(struct play *p)
{
    char there[sizeof p->url];

    strcpy(there, p->url);
    snprintf(p->url, sizeof p->url, "unix://%s.not", p->server->socket);
    p->opts.reply_ms = 100;
    play_open(p);
    p->want = LAPSE_EDOWN;
    play_schedule(p, "q", "a", HOUR);
    p->want = LAPSE_EDOWN;
    play_depth(p, "q");
    play_wait(p);
    play_close(p, p->l, 0);
    play_all_closed(p);
    strcpy(p->url, there);
    p->opts.reply_ms = 5000;
}

/* ---- schedule ---- */
static void schedule_a_hundred(struct play *p)
{
    play_open(p);
    for (int i = 0; i < 100; i++) {
        char id[8];
        snprintf(id, sizeof id, "j%d", i);
        play_schedule(p, "q", id, HOUR + i);
    }
    play_wait(p);
}

static void schedule_without_an_id(struct play *p)
{
    play_open(p);
    play_schedule(p, "q", NULL, HOUR);
    play_wait(p);
}

static void big(struct play *p, const char *id, size_t len)
{
    struct lapse_spec s = flow_job_spec("q", id, HOUR);
    char *body = malloc(len);

    PLAY_ASSERT(body);
    memset(body, 'x', len);
    s.body = body;
    s.body_len = len;
    play_spec(p, &s);
    free(body);
}

static void schedule_a_mebibyte(struct play *p)
{
    play_open(p);
    big(p, "a", MIB);
    play_wait(p);
    play_get(p, "q", "a");
    play_wait(p);
}

static void schedule_some_mebibytes(struct play *p)
{
    static const char *const ids[] = {"a", "b", "c", "d"};

    play_open(p);
    for (size_t i = 0; i < 4; i++) {
        big(p, ids[i], MIB / 2);
    }
    play_wait(p);
}

static void conflict(struct play *p, enum lapse_conflict how, int want)
{
    struct lapse_spec s = flow_job_spec("q", "a", 2 * HOUR);

    play_open(p);
    play_schedule(p, "q", "a", HOUR);
    play_wait(p);
    s.on_conflict = how;
    p->want = want;
    play_spec(p, &s);
    play_wait(p);
}

static void schedule_again_rejected(struct play *p)
{
    conflict(p, LAPSE_REJECT, LAPSE_EEXIST);
}

static void schedule_again_kept(struct play *p)
{
    conflict(p, LAPSE_KEEP, 0);
}

static void schedule_again_replaced(struct play *p)
{
    conflict(p, LAPSE_REPLACE, 0);
}

static void schedule_again_earlier(struct play *p)
{
    conflict(p, LAPSE_EARLIER, 0);
}

static void schedule_again_later(struct play *p)
{
    conflict(p, LAPSE_LATER, 0);
}

static void schedule_again_debounced(struct play *p)
{
    conflict(p, LAPSE_DEBOUNCE, 0);
}

static void schedule_at_a_moment(struct play *p)
{
    struct lapse_spec s = flow_job_spec("q", "a", 0);

    play_open(p);
    s.due = lapse_at((int64_t)time(NULL) * 1000 + 24 * HOUR);
    play_spec(p, &s);
    play_wait(p);
    s.id = "b";
    play_spec(p, &s);
    play_wait(p);
}

static void schedule_for_a_replica_that_there_is_not(struct play *p)
{
    struct lapse_spec s = flow_job_spec("q", "a", HOUR);

    p->opts.replicas_ms = 1;
    play_open(p);
    s.replicas = 1;
    for (int i = 0; i < 2; i++) {
        p->want = LAPSE_EALONE;
        s.on_conflict = LAPSE_KEEP;
        play_spec(p, &s);
        play_wait(p);
    }
}

static void schedule_while_full(struct play *p)
{
    p->opts.max_pending = 2;
    play_open(p);
    play_schedule(p, "q", "a", HOUR);
    play_schedule(p, "q", "b", HOUR);
    p->want = LAPSE_EFULL;
    play_schedule(p, "q", "c", HOUR);
    play_wait(p);
    play_schedule(p, "q", "c", HOUR);
    play_wait(p);
}

static void schedule_beyond_max_bytes(struct play *p)
{
    p->opts.max_bytes = MIB;
    play_open(p);
    big(p, "a", MIB);
    p->want = LAPSE_EFULL;
    big(p, "b", 1);
    play_wait(p);
    big(p, "b", 1);
    play_wait(p);
}

static void schedule_nonsense(struct play *p)
{
    play_open(p);
    p->want = LAPSE_EINVAL;
    play_schedule(p, "a queue", "a", HOUR);
    p->want = LAPSE_EINVAL;
    play_schedule(p, "q", "{}", HOUR);
    p->want = LAPSE_EINVAL;
    play_schedule(p, "q", "a", -1);
    p->queues[0] = NULL; /* it named none */
    while (p->ledger) {
        struct entry *e = p->ledger;
        p->ledger = e->next;
        free(e);
    }
}

/* ---- the other verbs ---- */
static void cancel(struct play *p)
{
    play_open(p);
    play_schedule(p, "q", "a", HOUR);
    play_wait(p);
    play_cancel(p, "q", "a");
    play_wait(p);
    p->want = LAPSE_ENOENT;
    play_cancel(p, "q", "a");
    play_wait(p);
}

static void cancel_a_running_job(struct play *p)
{
    play_open(p);
    play_handle(p, "q", 0, play_keep);
    play_schedule(p, "q", "a", 0);
    play_until(p, play_ran(p));
    p->want = LAPSE_EBUSY;
    play_cancel(p, "q", "a");
    p->want = LAPSE_EBUSY;
    play_reschedule(p, "q", "a", HOUR);
    play_wait(p);
}

static void reschedule(struct play *p)
{
    play_open(p);
    play_schedule(p, "q", "a", HOUR);
    play_wait(p);
    play_reschedule(p, "q", "a", 2 * HOUR);
    play_reschedule(p, "q", "a", HOUR);
    p->want = LAPSE_ENOENT;
    play_reschedule(p, "q", "b", HOUR);
    play_wait(p);
}

static void reschedule_a_dead_job(struct play *p)
{
    play_open(p);
    play_handle(p, "q", 0, play_failed);
    play_schedule(p, "q", "a", 0);
    play_until(p, play_ran(p));
    play_wait(p);
    play_reschedule(p, "q", "a", HOUR);
    play_wait(p);
    play_cancel(p, "q", "a");
    play_wait(p);
}

static void get(struct play *p)
{
    play_open(p);
    play_schedule(p, "q", "a", HOUR);
    play_wait(p);
    play_get(p, "q", "a");
    p->want = LAPSE_ENOENT;
    play_get(p, "q", "b");
    play_wait(p);
}

static void list_some(struct play *p)
{
    play_open(p);
    for (int i = 0; i < 10; i++) {
        play_schedule(p, "q", (char[]){(char)('a' + i), 0}, HOUR + i);
    }

    play_wait(p);
    play_list(p, "q", LAPSE_WAITING, NULL, 100);
    play_list(p, "q", LAPSE_WAITING, NULL, 3);
    play_list(p, "q", LAPSE_DEAD, NULL, 100);
    play_wait(p);
}

static void list_in_pieces(struct play *p) /* of more bytes than one script may answer */
{
    play_open(p);
    for (int i = 0; i < 5; i++) {
        big(p, (char[]){(char)('a' + i), 0}, MIB / 5);
    }
    play_wait(p);
    play_list(p, "q", LAPSE_WAITING, NULL, 100);
    play_wait(p);
}

static void on_first(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                     void *arg)
{
    struct play *p = arg;
    (void)l;
    p->n = 1;
    PLAY_ASSERT((n == 1 && !err) || play_faulty());
    play_list(p, "q", LAPSE_WAITING, n ? jobs[0] : NULL, 1);
}

static void list_page_by_page(struct play *p)
{
    play_open(p);
    play_schedule(p, "q", "a", HOUR);
    play_schedule(p, "q", "b", 2 * HOUR);
    play_wait(p);
    while (lapse_list(p->l, "q", LAPSE_WAITING, NULL, 1, on_first, p)) {
        PLAY_ASSERT(play_faulty());
    }

    play_until(p, p->n);
    play_wait(p);
}

static void depth_and_stats(struct play *p)
{
    struct lapse_stats s;

    play_open(p);
    play_schedule(p, "q", "a", HOUR);
    play_depth(p, "q");
    play_depth(p, "another");
    play_wait(p);
    lapse_stats(p->l, &s, sizeof s);
    PLAY_ASSERT(s.scheduled == 1 || play_faulty());
}

static void settings(struct play *p)
{
    play_open(p);
    play_configure(p, "q", "paused=+3600000");
    play_configure(p, "q", NULL);
    p->want = LAPSE_EINVAL;
    play_configure(p, "q", "pause=1");
    play_wait(p);
    play_configure(p, "q", "paused=");
    play_wait(p);
}

static void all_in_one_turn(struct play *p)
{
    play_open(p);
    play_schedule(p, "q", "a", HOUR);
    play_reschedule(p, "q", "a", 2 * HOUR);
    play_get(p, "q", "a");
    play_list(p, "q", LAPSE_WAITING, NULL, 10);
    play_depth(p, "q");
    play_cancel(p, "q", "a");
    p->want = LAPSE_ENOENT;
    play_get(p, "q", "a");
    play_schedule(p, "q", "a", HOUR);
    play_wait(p);
}

static void queues_in_one_turn(struct play *p)
{
    static const char *const queues[] = {"q", "r", "s"};

    play_open(p);
    for (int i = 0; i < 12; i++) {
        play_schedule(p, queues[i % 3], (char[]){(char)('a' + i), 0}, HOUR);
    }

    for (int i = 0; i < 12; i += 2) {
        play_cancel(p, queues[i % 3], (char[]){(char)('a' + i), 0});
    }

    play_wait(p);
}

static void without_callbacks(struct play *p)
{
    struct lapse_spec s = flow_job_spec("q", "quiet", HOUR);

    play_open(p);
    while (lapse_schedule(p->l, &s, NULL, NULL)) {
        PLAY_ASSERT(play_faulty());
    }

    while (lapse_cancel(p->l, "q", "quiet", 0, NULL, NULL)) {
        PLAY_ASSERT(play_faulty());
    }

    while (lapse_get(p->l, "q", "quiet", NULL, NULL) || lapse_depth(p->l, "q", NULL, NULL) ||
           lapse_list(p->l, "q", LAPSE_WAITING, NULL, 9, NULL, NULL)) {
        PLAY_ASSERT(play_faulty());
    }

    play_depth(p, "q");
    play_wait(p);
}

const struct scenario scenarios_requests[] = {
    SCENARIO(open_and_close),
    SCENARIO(connect_and_close),
    SCENARIO(close_without_grace),
    SCENARIO(close_twice),
    SCENARIO(abandon_at_once),
    SCENARIO(abandon_connected),
    SCENARIO(one_job),
    SCENARIO(open_by_user_and_password),
    SCENARIO(open_another_database),
    SCENARIO(open_with_all_options),
    SCENARIO(open_with_wrong_options),
    SCENARIO(open_where_no_server_is),
    SCENARIO(schedule_a_hundred),
    SCENARIO(schedule_without_an_id),
    SCENARIO(schedule_a_mebibyte),
    SCENARIO(schedule_some_mebibytes),
    SCENARIO(schedule_again_rejected),
    SCENARIO(schedule_again_kept),
    SCENARIO(schedule_again_replaced),
    SCENARIO(schedule_again_earlier),
    SCENARIO(schedule_again_later),
    SCENARIO(schedule_again_debounced),
    SCENARIO(schedule_at_a_moment),
    SCENARIO(schedule_for_a_replica_that_there_is_not),
    SCENARIO(schedule_while_full),
    SCENARIO(schedule_beyond_max_bytes),
    SCENARIO(schedule_nonsense),
    SCENARIO(cancel),
    SCENARIO(cancel_a_running_job),
    SCENARIO(reschedule),
    SCENARIO(reschedule_a_dead_job),
    SCENARIO(get),
    SCENARIO(list_some),
    SCENARIO(list_in_pieces),
    SCENARIO(list_page_by_page),
    SCENARIO(depth_and_stats),
    SCENARIO(settings),
    SCENARIO(all_in_one_turn),
    SCENARIO(queues_in_one_turn),
    SCENARIO(without_callbacks),
    {NULL, NULL, false},
};
