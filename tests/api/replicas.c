/* SPDX-License-Identifier: MIT */
/* Schedules that wait for copies: with true replicas that are stopped, killed or promoted, and with
 * a connection for WAIT that is lost at any moment. */
#include "audit.h"
#include "handler.h"
#include "proxy.h"
#include "replica.h"
#include "scripted_server.h"
#include <hiredis/hiredis.h>
#include <signal.h>

enum { HOUR = 3600000, SOON_MS = 100, FAIR_MS = 5000, LATE_MS = 60000 };

/* ---- options: for copies that come, for some that come and some that do not, for none ---- */
static void patient(struct lapse_options *opts)
{
    opts->replicas_ms = LATE_MS;
}

static void fair(struct lapse_options *opts)
{
    opts->replicas_ms = FAIR_MS;
}

static void impatient(struct lapse_options *opts)
{
    opts->replicas_ms = SOON_MS;
}

static struct lapse *open_with(struct flow *f, flow_tweak *tweak)
{
    struct lapse_options opts = flow_options(f);

    tweak(&opts);
    return f->l = flow_open(f, &opts);
}

/* ---- servers ---- */
/* A master on a port, without a handle. */
static struct flow *master(void)
{
    struct flow *f = flow_start_tcp(FLOW_FULL, replica_args, NULL);

    flow_close(f, f->l, 0);
    return f;
}

static bool has_job(struct server *s, const char *id)
{
    return redis_has_job(s, "q", id);
}

static bool has_waitaof(struct server *s)
{
    redisReply *r = redis_cmd(s, "COMMAND INFO WAITAOF");
    bool yes = r->elements == 1 && r->element[0]->type == REDIS_REPLY_ARRAY;

    freeReplyObject(r);
    return yes;
}

static unsigned n_clients(struct flow *f)
{
    char *list = redis_str(f->server, "CLIENT LIST TYPE normal");
    unsigned n = 0;

    for (const char *at = list; (at = strchr(at, '\n')); at++) {
        n++;
    }
    free(list);
    return n;
}

/* The client that is in a WAIT; 0: there is none. */
static long long waiting_client(struct flow *f)
{
    char *list = redis_str(f->server, "CLIENT LIST TYPE normal");
    long long id = 0;

    for (char *at = list, *line; (line = strtok_r(at, "\n", &at));) {
        if (strstr(line, " flags=b")) {
            cr_assert_eq(sscanf(line, "id=%lld", &id), 1, "%s", line);
        }
    }
    free(list);
    return id;
}

/* ---- schedules ---- */
static struct lapse_spec spec_of(const char *id, unsigned replicas)
{
    struct lapse_spec s = flow_job_spec("q", id, HOUR);

    s.replicas = replicas;
    return s;
}

static int schedule(struct flow *f, const char *id, unsigned replicas, struct flow_job *out)
{
    struct lapse_spec s = spec_of(id, replicas);

    return flow_spec(f, &s, out);
}

static void begin(struct flow *f, struct flow_answer *a, const char *id, unsigned replicas)
{
    struct lapse_spec s = spec_of(id, replicas);

    *a = (struct flow_answer){.f = f};
    cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, a), 0);
}

/* A schedule that is stored, and waits for a replica that is stopped. */
static void begin_in_vain(struct flow *f, struct flow_answer *a, const char *id)
{
    begin(f, a, id, 1);
    flow_poll(f, waiting_client(f) != 0);
    cr_assert_eq(a->calls, 0);
}

/* Likewise, and another one behind it, which is sent, and stored. */
static void begin_two_in_vain(struct flow *f, struct server *replica, struct flow_answer *waits,
                              struct flow_answer *next)
{
    open_with(f, patient);
    server_signal(replica, SIGSTOP);
    begin_in_vain(f, waits, "waits");
    begin(f, next, "next", 1);
    cr_assert_eq(flow_get(f, "q", "waits", NULL), 0); /* answered after it */
}

static void is_alone(const struct flow_answer *a, const char *id)
{
    cr_assert_eq(a->err, LAPSE_EALONE, "%s", lapse_strerror(a->err));
    cr_assert(a->has_job && a->job.replicas == 0 && a->job.created == 1);
    cr_assert_str_eq(a->job.id, id);
}

/* ---- what is confirmed ---- */
Test(replicas, have_the_job_when_its_schedule_is_answered)
{
    struct flow *f = master();
    struct server *replica = replica_start(f->server);
    struct flow_job job;
    char id[16];

    open_with(f, patient);
    for (int i = 0; i < 20; i++) {
        snprintf(id, sizeof id, "j%d", i);
        cr_assert_eq(schedule(f, id, 1, &job), 0);
        cr_assert(has_job(replica, id), "%s", id);
        cr_assert(job.replicas == 1 && job.created == 1 && job.state == LAPSE_WAITING);
    }

    cr_assert_eq(schedule(f, "plain", 0, &job), 0);
    cr_assert_eq(job.replicas, 0);
    server_stop(replica);
    flow_end(f, "q");
}

Test(replicas, that_are_stopped_hold_up_only_those_who_wait_for_them)
{
    struct flow *f = master();
    struct server *replica = replica_start(f->server);
    struct flow_answer a;

    open_with(f, patient);
    server_signal(replica, SIGSTOP);
    begin_in_vain(f, &a, "a");
    cr_assert_eq(schedule(f, "plain", 0, NULL), 0);
    cr_assert_eq(flow_cancel(f, "q", "plain", NULL), 0);
    cr_assert_eq(a.calls, 0);

    server_signal(replica, SIGCONT);
    cr_assert_eq(flow_wait(f, &a), 0);
    cr_assert_eq(a.job.replicas, 1);
    server_stop(replica);
    flow_end(f, "q");
}

Test(replicas, too_few_are_ealone_with_the_job_and_the_log_says_how_many)
{
    struct flow *f = master();
    struct server *replica = replica_start(f->server);
    struct flow_answer a;

    open_with(f, impatient);
    flow_allow_log(f,
                   "written, but 0 of 1 replicas have it after 100 ms (replicas_ms); answers: 1");
    cr_assert_eq(lapse_outcome_unknown(LAPSE_EALONE), 1);

    server_signal(replica, SIGSTOP);
    begin(f, &a, "a", 1);
    flow_wait(f, &a);
    is_alone(&a, "a");
    cr_assert_eq(flow_logged(f, "0 of 1 replicas"), 1);
    cr_assert_eq(flow_get(f, "q", "a", NULL), 0);

    server_signal(replica, SIGCONT);
    server_stop(replica);
    flow_end(f, "q");
}

Test(replicas, that_were_killed_are_missing_and_the_others_are_counted)
{
    struct flow *f = master();
    struct server *replica[2] = {replica_of_port(f->server->port),
                                 replica_of_port(f->server->port)};
    struct flow_job job;

    replicas_confirm(f->server, 2);
    open_with(f, patient);
    cr_assert_eq(schedule(f, "a", 2, &job), 0);
    cr_assert_eq(job.replicas, 2);
    server_kill9(replica[0]);

    open_with(f, fair);
    flow_allow_log(f,
                   "written, but 1 of 2 replicas have it after 5000 ms (replicas_ms); answers: 1");
    cr_assert_eq(schedule(f, "b", 2, &job), LAPSE_EALONE);
    cr_assert_eq(job.replicas, 1);
    cr_assert_eq(schedule(f, "c", 1, &job), 0);
    cr_assert_eq(job.replicas, 1);

    server_stop(replica[0]);
    server_stop(replica[1]);
    flow_end(f, "q");
}

/* The replica's link swallows what is written, as a network does that is cut. */
Test(replicas, of_which_one_is_promoted_has_every_job_that_was_confirmed)
{
    enum { CONFIRMED = 100, MISSED = 20 };
    struct flow *f = master();
    struct proxy *link = proxy_start(f->server);
    struct server *replica = replica_of_port(atoi(strrchr(link->tcp_url, ':') + 1));
    struct flow_answer a[CONFIRMED];
    char id[16];

    replicas_confirm(f->server, 1);
    open_with(f, patient);
    for (int i = 0; i < CONFIRMED; i++) {
        snprintf(id, sizeof id, "j%d", i);
        begin(f, &a[i], id, 1);
    }
    for (int i = 0; i < CONFIRMED; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), 0);
    }

    flow_allow_log(f, "0 of 1 replicas");
    open_with(f, impatient);
    proxy_swallow(link, true);
    for (int i = 0; i < MISSED; i++) {
        snprintf(id, sizeof id, "m%d", i);
        begin(f, &a[i], id, 1);
    }
    for (int i = 0; i < MISSED; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), LAPSE_EALONE);
    }

    flow_allow_log(f, "connect");
    server_kill9(f->server);
    redis_do(replica, "REPLICAOF NO ONE");
    cr_assert_eq(redis_int(replica, "HLEN lapse:{q}:jobs"), CONFIRMED);
    for (int i = 0; i < CONFIRMED; i++) {
        snprintf(id, sizeof id, "j%d", i);
        cr_assert(has_job(replica, id), "%s was confirmed, and is lost", id);
    }

    cr_assert_eq(audit(replica, "lapse", "q", NULL), 0);
    proxy_stop(link);
    server_stop(replica);
    flow_end(f);
}

Test(replicas, are_asked_again_by_a_repeat_that_keeps_the_job)
{
    struct flow *f = master();
    struct server *replica = replica_start(f->server);
    struct lapse_spec again = spec_of("a", 1);
    struct flow_job job;

    flow_allow_log(f, "0 of 1 replicas");
    open_with(f, impatient);
    server_signal(replica, SIGSTOP);
    cr_assert_eq(schedule(f, "a", 1, NULL), LAPSE_EALONE);
    server_signal(replica, SIGCONT);

    open_with(f, patient);
    again.on_conflict = LAPSE_KEEP;
    cr_assert_eq(flow_spec(f, &again, &job), 0);
    cr_assert(job.created == 0 && job.replicas == 1);
    cr_assert(has_job(replica, "a"));
    cr_assert_eq(flow_count(f, "q", "due"), 1);

    again.on_conflict = LAPSE_REJECT;
    cr_assert_eq(flow_spec(f, &again, &job), LAPSE_EEXIST);
    server_stop(replica);
    flow_end(f, "q");
}

Test(replicas, do_not_hold_up_the_run_of_a_job_that_is_due_at_once)
{
    struct flow *f = master();
    struct server *replica = replica_start(f->server);
    struct lapse_spec s = spec_of("a", 1);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_answer a = {.f = f};

    open_with(f, patient);
    flow_listen(f, "q", &w);
    server_signal(replica, SIGSTOP);
    s.due = lapse_in(0);
    cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a), 0);
    flow_until(f, w.settled == 1);
    cr_assert_eq(a.calls, 0);

    server_signal(replica, SIGCONT);
    cr_assert_eq(flow_wait(f, &a), 0);
    cr_assert_eq(a.job.replicas, 1);
    server_stop(replica);
    flow_end(f, "q");
}

/* ---- what it costs ---- */
Test(replicas, take_a_second_connection_when_they_are_first_asked_for)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, impatient);

    flow_allow_log(f, "0 of 1 replicas");
    cr_assert_eq(schedule(f, "a", 0, NULL), 0);

    unsigned before = n_clients(f);
    cr_assert_eq(schedule(f, "b", 0, NULL), 0);
    cr_assert_eq(flow_cancel(f, "q", "b", NULL), 0);
    cr_assert_eq(n_clients(f), before);
    cr_assert_eq(flow_calls(f, "wait"), 0);

    cr_assert_eq(schedule(f, "c", 1, NULL), LAPSE_EALONE);
    cr_assert_eq(n_clients(f), before + 1);
    cr_assert_eq(schedule(f, "d", 1, NULL), LAPSE_EALONE);
    cr_assert_eq(n_clients(f), before + 1);
    flow_end(f, "q");
}

Test(replicas, are_waited_for_once_by_a_hundred_schedules_of_one_turn)
{
    enum { N = 100 };
    struct flow *f = master();
    struct server *replica = replica_start(f->server);
    struct flow_answer a[N];

    open_with(f, patient);
    cr_assert_eq(schedule(f, "first", 1, NULL), 0); /* has asked whether Redis can wait */

    long long before = flow_calls(f, "wait");
    long long scripts = flow_scripts(f);
    for (int i = 0; i < N; i++) {
        begin(f, &a[i], NULL, 1);
    }
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), 0);
        cr_assert_eq(a[i].job.replicas, 1);
    }

    cr_assert_eq(flow_calls(f, "wait") - before, 1);
    cr_assert_eq(flow_scripts(f) - scripts, 2, "schedule and fence");
    server_stop(replica);
    flow_end(f, "q");
}

/* All behind the first wait were answered while it lasted: they share the next. */
Test(replicas, are_waited_for_once_by_all_that_were_stored_meanwhile)
{
    enum { N = 50 };
    struct flow *f = master();
    struct server *replica = replica_start(f->server);
    struct flow_answer first;
    struct flow_answer a[N];

    open_with(f, patient);
    cr_assert_eq(schedule(f, "before", 1, NULL), 0);
    long long before = flow_calls(f, "wait");

    server_signal(replica, SIGSTOP);
    begin_in_vain(f, &first, "first");
    for (int i = 0; i < N; i++) {
        begin(f, &a[i], NULL, 1);
        cr_assert_eq(flow_get(f, "q", "first", NULL), 0); /* answered after it */
    }

    server_signal(replica, SIGCONT);
    cr_assert_eq(flow_wait(f, &first), 0);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), 0);
    }

    cr_assert_eq(flow_calls(f, "wait") - before, 2);
    server_stop(replica);
    flow_end(f, "q");
}

Test(replicas, are_waited_for_by_ten_thousand)
{
    enum { N = 10000, BATCH = 100 };
    struct flow *f = master();
    struct server *replica = replica_start(f->server);
    struct flow_answer *a = calloc(N, sizeof *a);

    open_with(f, patient);
    long long before = flow_calls(f, "wait");
    for (int i = 0; i < N; i++) {
        begin(f, &a[i], NULL, 1);
    }
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), 0);
    }

    cr_assert_eq(redis_int(replica, "HLEN lapse:{q}:jobs"), N);
    cr_assert_leq(flow_calls(f, "wait") - before, N / BATCH + 1);
    free(a);
    server_stop(replica);
    flow_end(f, "q");
}

/* In one round the least is asked for first. */
Test(replicas, that_one_schedule_wants_too_many_of_do_not_fail_another)
{
    struct flow *f = master();
    struct server *replica = replica_start(f->server);
    struct flow_answer many;
    struct flow_answer one;
    struct flow_answer three;

    open_with(f, fair);
    flow_allow_log(f, "1 of 2 replicas have it after 5000 ms (replicas_ms); answers: 2");
    begin(f, &many, "many", 2);
    begin(f, &three, "three", 3);
    begin(f, &one, "one", 1);
    cr_assert_eq(flow_wait(f, &one), 0);
    cr_assert_eq(flow_wait(f, &many), LAPSE_EALONE);
    cr_assert_eq(flow_wait(f, &three), LAPSE_EALONE);
    cr_assert(one.nth < many.nth && one.nth < three.nth);
    cr_assert(many.job.replicas == 1 && three.job.replicas == 1);
    server_stop(replica);
    flow_end(f, "q");
}

/* ---- order ---- */
Test(replicas, leave_the_requests_of_one_id_in_their_order)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, impatient);
    struct flow_answer made;
    struct flow_answer moved = {.f = f};
    struct flow_answer gone = {.f = f};
    struct flow_answer again;

    flow_allow_log(f, "0 of 1 replicas");
    begin(f, &made, "a", 1); /* before there is a connection to wait on */
    cr_assert_eq(lapse_reschedule(f->l, "q", "a", lapse_in(2 * HOUR), 0, flow_answered, &moved), 0);
    cr_assert_eq(lapse_cancel(f->l, "q", "a", 0, flow_answered, &gone), 0);
    begin(f, &again, "a", 1);

    cr_assert_eq(flow_wait(f, &moved), 0);
    cr_assert_eq(flow_wait(f, &gone), 0);
    cr_assert_eq(flow_wait(f, &made), LAPSE_EALONE);
    cr_assert_eq(flow_wait(f, &again), LAPSE_EALONE);
    cr_assert(moved.nth < gone.nth && made.job.created && again.job.created);
    cr_assert_eq(flow_count(f, "q", "due"), 1);
    flow_end(f, "q");
}

/* ---- Redis cannot wait: known before anything is stored ---- */
static void refused_unstored(struct flow *f, const struct lapse_spec *s, int err)
{
    long long before = flow_calls(f, "eval") + flow_calls(f, "evalsha");

    cr_assert_eq(flow_spec(f, s, NULL), err);
    cr_assert_eq(lapse_outcome_unknown(err), 0);
    cr_assert_eq(flow_calls(f, "eval") + flow_calls(f, "evalsha"), before);
    cr_assert_eq(flow_count(f, "q", "due"), 0);
}

Test(replicas, of_a_replica_are_erefused_before_anything_is_stored)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, impatient);
    struct lapse_spec s = spec_of("a", 1);

    flow_allow_log(f, "Redis refused WAIT: ERR WAIT cannot be used with replica instances");
    flow_allow_log(f, "0 of 1 replicas");
    redis_do(f->server, "REPLICAOF 127.0.0.1 1");
    refused_unstored(f, &s, LAPSE_EREFUSED);
    cr_assert_eq(flow_logged(f, "Redis refused WAIT"), 1);

    redis_do(f->server, "REPLICAOF NO ONE");
    cr_assert_eq(flow_spec(f, &s, NULL), LAPSE_EALONE, "it is asked again");
    flow_end(f, "q");
}

Test(replicas, without_the_right_to_wait_are_edenied_before_anything_is_stored)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options opts = flow_options(f);
    struct lapse_spec s = spec_of("a", 1);
    char url[160];

    flow_allow_log(f, "Redis refused WAIT: NOPERM");
    redis_do(f->server, "ACL SETUSER mute on >secret ~* &* +@all -wait");
    snprintf(url, sizeof url, "unix://mute:secret@%s", f->server->socket);
    opts.url = url;
    f->l = flow_open(f, &opts);

    refused_unstored(f, &s, LAPSE_EDENIED);
    cr_assert_eq(schedule(f, "plain", 0, NULL), 0);
    flow_end(f, "q");
}

Test(replicas, without_a_second_connection_are_edown_and_nothing_is_stored)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct proxy *p = proxy_start(f->server);
    struct lapse_options opts = flow_options(f);
    struct lapse_spec s = spec_of("a", 1);

    flow_allow_log(f, "Redis at ");
    opts.url = p->url;
    opts.reply_ms = 4000; /* beyond the longest wait between two attempts to connect */
    opts.replicas_ms = SOON_MS;
    f->l = flow_open(f, &opts);
    cr_assert_eq(schedule(f, "plain", 0, NULL), 0);
    cr_assert_eq(flow_cancel(f, "q", "plain", NULL), 0);

    proxy_refuse(p, true);
    refused_unstored(f, &s, LAPSE_EDOWN);
    cr_assert_eq(schedule(f, "plain", 0, NULL), 0, "the first connection is as it was");

    proxy_refuse(p, false);
    flow_allow_log(f, "0 of 1 replicas");
    cr_assert_eq(flow_spec(f, &s, NULL), LAPSE_EALONE);
    flow_close(f, f->l, 1000);
    proxy_stop(p);
    flow_end(f, "q");
}

/* ---- disks ---- */
static struct lapse_spec fsync_spec(const char *id, unsigned replicas)
{
    struct lapse_spec s = spec_of(id, replicas);

    s.flags = LAPSE_FSYNC;
    return s;
}

Test(replicas, fsync_is_erefused_before_anything_is_stored_where_redis_has_no_waitaof)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, patient);
    struct lapse_spec s = fsync_spec("a", 0);

    if (has_waitaof(f->server)) {
        flow_end(f);
        cr_skip_test("this Redis has WAITAOF");
    }

    flow_allow_log(f, "Redis refused WAITAOF: it does not know it; Redis 7.2 or later, or Valkey");
    refused_unstored(f, &s, LAPSE_EREFUSED);
    s.replicas = 1;
    refused_unstored(f, &s, LAPSE_EREFUSED);
    cr_assert_geq(flow_logged(f, "Redis refused WAITAOF"), 1);
    cr_assert_eq(schedule(f, "plain", 0, NULL), 0);
    flow_end(f, "q");
}

/* NULL: this Redis has no WAITAOF. */
static struct flow *with_waitaof(const char *const *server_args, flow_tweak *tweak)
{
    struct flow *f = flow_start_tcp(FLOW_FULL, server_args, tweak);

    if (!has_waitaof(f->server)) {
        flow_end(f);
        cr_skip_test("this Redis has no WAITAOF; make test-trixie has those that do");
    }
    server_allow(f->server, "+waitaof");
    return f;
}

Test(replicas, fsync_is_answered_when_the_job_is_on_disk)
{
    static const char *const always[] = {"--appendfsync", "always", "--repl-diskless-sync-delay",
                                         "0", NULL};
    struct flow *f = with_waitaof(always, patient);
    struct lapse_spec s = fsync_spec("a", 0);
    struct flow_job job;

    cr_assert_eq(flow_spec(f, &s, &job), 0);
    cr_assert_eq(job.replicas, 0);
    server_kill9(f->server);
    flow_allow_log(f, "connect");
    server_restart(f->server);
    server_allow(f->server, "+waitaof"); /* it forgot that */
    cr_assert(has_job(f->server, "a"));

    struct server *replica = replica_start(f->server);
    open_with(f, patient);
    s = fsync_spec("b", 1);
    cr_assert_eq(flow_spec(f, &s, &job), 0);
    cr_assert_eq(job.replicas, 1);
    cr_assert(has_job(replica, "b"));
    server_stop(replica);
    flow_end(f, "q");
}

Test(replicas, fsync_of_a_redis_that_leaves_it_to_the_system_is_ealone)
{
    static const char *const never[] = {"--appendfsync", "no", NULL};
    struct flow *f = with_waitaof(never, impatient);
    struct lapse_spec s = fsync_spec("a", 0);
    struct flow_job job;

    flow_allow_log(f, "written, but Redis does not have it on disk, and 0 of 0 replicas");
    cr_assert_eq(flow_spec(f, &s, &job), LAPSE_EALONE);
    cr_assert_eq(job.replicas, 0);
    cr_assert_eq(flow_logged(f, "have it on disk after 100 ms (replicas_ms); answers: 1"), 1);
    flow_end(f, "q");
}

Test(replicas, fsync_without_an_append_only_file_is_erefused_before_anything_is_stored)
{
    static const char *const none[] = {"--appendonly", "no", NULL};
    struct flow *f = with_waitaof(none, patient);
    struct lapse_spec s = fsync_spec("a", 0);

    flow_allow_log(f, "appendonly is disabled");
    refused_unstored(f, &s, LAPSE_EREFUSED);
    redis_do(f->server, "CONFIG SET appendfsync always");
    redis_do(f->server, "CONFIG SET appendonly yes");
    cr_assert_eq(flow_spec(f, &s, NULL), 0, "it is asked again");
    flow_end(f, "q");
}

Test(replicas, no_other_flag_is_taken)
{
    static const unsigned flags[] = {2, 3, 0x80000000u, 0xffffffffu};
    struct flow *f = flow_start(FLOW_FULL);

    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        struct lapse_spec s = spec_of("a", 0);
        s.flags = flags[i];
        cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL);
    }
    flow_end(f);
}

/* ---- the connection is lost ---- */
static void lost_logs(struct flow *f)
{
    flow_allow_log(f, "Redis at ");
    flow_allow_log(f, "written, but no replica has confirmed it: the connection for WAIT is gone");
}

Test(replicas, are_not_confirmed_by_a_connection_that_is_lost_while_it_waits)
{
    struct flow *f = master();
    struct server *replica = replica_start(f->server);
    struct flow_answer waits;
    struct flow_answer next;

    lost_logs(f);
    begin_two_in_vain(f, replica, &waits, &next);

    redis_do(f->server, "CLIENT KILL ID %lld", waiting_client(f));
    flow_wait(f, &waits);
    flow_wait(f, &next);
    is_alone(&waits, "waits");
    is_alone(&next, "next");

    server_signal(replica, SIGCONT);
    cr_assert_eq(schedule(f, "after", 1, NULL), 0);
    cr_assert_eq(flow_count(f, "q", "due"), 3);
    server_stop(replica);
    flow_end(f, "q");
}

/* Both connections are of the same time: the one for commands may come back to another server. */
Test(replicas, are_not_confirmed_when_the_other_connection_is_lost_meanwhile)
{
    struct flow *f = master();
    struct server *replica = replica_start(f->server);
    struct flow_answer waits;
    struct flow_answer next;

    lost_logs(f);
    begin_two_in_vain(f, replica, &waits, &next);

    redis_do(f->server, "CLIENT KILL TYPE normal SKIPME yes");
    flow_wait(f, &waits);
    flow_wait(f, &next);
    is_alone(&waits, "waits");
    is_alone(&next, "next");

    server_signal(replica, SIGCONT);
    cr_assert_eq(schedule(f, "after", 1, NULL), 0);
    server_stop(replica);
    flow_end(f, "q");
}

/* On the second connection Redis answers "*1 :1790000000000000", 23 bytes with the ends of lines,
 * and ":1". */
Test(replicas, are_confirmed_by_a_whole_answer_alone)
{
    static const struct {
        int bytes, err;
    } rows[] = {{1, LAPSE_EALONE},
                {4, LAPSE_EALONE},
                {22, LAPSE_EALONE},
                {23, LAPSE_EALONE},
                {24, LAPSE_EALONE},
                {26, LAPSE_EALONE},
                {27, 0}};
    struct flow *f = master();
    struct server *replica = replica_start(f->server);
    struct proxy *p = proxy_start(f->server);
    struct lapse_options opts = flow_options(f);
    char id[16];

    lost_logs(f);
    opts.url = p->url;
    opts.replicas_ms = LATE_MS;
    f->l = flow_open(f, &opts);

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct flow_answer a;
        snprintf(id, sizeof id, "before-%zu", i);
        cr_assert_eq(schedule(f, id, 1, NULL), 0); /* connects again, and asks what Redis can do */
        proxy_cut_conn(p, proxy_conns(p));
        proxy_cut_after(p, PROXY_DOWN, rows[i].bytes);

        snprintf(id, sizeof id, "a-%zu", i);
        begin(f, &a, id, 1);
        cr_assert_eq(flow_wait(f, &a), rows[i].err, "%d bytes", rows[i].bytes);
        cr_assert(a.has_job && has_job(f->server, id));
        flow_poll(f, proxy_cut_left(p, PROXY_DOWN) == -1);
    }

    flow_close(f, f->l, 1000);
    proxy_stop(p);
    server_stop(replica);
    flow_end(f, "q");
}

Test(replicas, whose_answer_never_comes_are_given_up)
{
    struct flow *f = master();
    struct server *replica = replica_start(f->server);
    struct proxy *p = proxy_start(f->server);
    struct lapse_options opts = flow_options(f);
    struct flow_answer a;

    lost_logs(f);
    opts.url = p->url;
    opts.reply_ms = 3900;
    opts.replicas_ms = SOON_MS;
    f->l = flow_open(f, &opts);
    flow_allow_log(f, "0 of 1 replicas"); /* of a machine that has other work */
    cr_assert_leq(schedule(f, "first", 1, NULL), 0);

    proxy_swallow_conn(p, proxy_conns(p));
    proxy_swallow(p, true);
    begin(f, &a, "a", 1);
    cr_assert_eq(schedule(f, "plain", 0, NULL), 0);
    cr_assert_eq(a.calls, 0);
    flow_wait(f, &a);
    is_alone(&a, "a");
    cr_assert_eq(flow_logged(f, "in 4000 ms (reply_ms and replicas_ms) to WAIT"), 1);

    proxy_heal(p);
    flow_close(f, f->l, 1000);
    proxy_stop(p);
    server_stop(replica);
    flow_end(f, "q");
}

/* ---- what is answered is not believed ---- */
static void is_not_confirmed(const char *command, const char *answer)
{
    struct flow *f = master();
    struct server *replica = replica_start(f->server);
    struct scripted_server *between = scripted_server_before(f->server);
    struct lapse_options opts = flow_options(f);
    struct flow_answer a;

    lost_logs(f);
    flow_allow_log(f, "Redis refused ");
    flow_allow_log(f, "Redis broke off in the middle of fence");
    flow_allow_log(f, " of 1 replicas");
    opts.url = between->url;
    opts.replicas_ms = LATE_MS;
    f->l = flow_open(f, &opts);
    cr_assert_eq(schedule(f, "before", 1, NULL), 0);

    scripted_server_answer_command(between, command, answer);
    begin(f, &a, "a", 1);
    cr_assert_eq(flow_wait(f, &a), LAPSE_EALONE, "%s answers %s", command, answer);
    is_alone(&a, "a");
    cr_assert(has_job(f->server, "a"));

    scripted_server_answer_command(between, "", "");
    cr_assert_eq(schedule(f, "after", 1, NULL), 0);
    flow_close(f, f->l, 1000);
    scripted_server_stop(between);
    server_stop(replica);
    flow_end(f, "q");
}

Test(replicas, are_not_confirmed_by_an_answer_of_another_shape)
{
    static const char *const answers[] = {
        "+OK\r\n",       "$-1\r\n",
        "*0\r\n",        "*2\r\n:1\r\n:1\r\n",
        ":-1\r\n",       ":4294967296\r\n",
        "$3\r\none\r\n", "-ERR WAIT cannot be used with replica instances\r\n",
        "hello\r\n",
    };

    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        is_not_confirmed("WAIT", answers[i]);
    }
    is_not_confirmed("WAIT", ":0\r\n");
}

/* WAIT behind it says 1: of what was written before. */
Test(replicas, are_not_confirmed_where_the_fence_was_refused)
{
    static const char *const answers[] = {
        "-OOM command not allowed when used memory > 'maxmemory'\r\n",
        "-READONLY You can't write against a read only replica.\r\n",
        "-LAPSE EBROKEN it\r\n",
    };

    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        is_not_confirmed("EVAL", answers[i]);
    }
}

/* ---- the end of the handle ---- */
static void on_closed(void *arg)
{
    struct flow *f = arg;
    f->n_closed++;
}

Test(replicas, are_waited_for_by_a_close_with_grace)
{
    struct flow *f = master();
    struct server *replica = replica_start(f->server);
    struct flow_answer a;

    open_with(f, patient);
    server_signal(replica, SIGSTOP);
    begin_in_vain(f, &a, "a");

    unsigned closed = f->n_closed;
    lapse_close(f->l, LATE_MS, on_closed, f);
    flow_spin(f, 50);
    cr_assert(a.calls == 0 && f->n_closed == closed);

    server_signal(replica, SIGCONT);
    cr_assert_eq(flow_wait(f, &a), 0);
    flow_until(f, f->n_closed > closed);
    flow_forget(f, f->l);
    server_stop(replica);
    flow_end(f, "q");
}

Test(replicas, are_not_known_when_the_handle_is_closed_at_once)
{
    struct flow *f = master();
    struct server *replica = replica_start(f->server);
    struct flow_answer waits;
    struct flow_answer next;

    begin_two_in_vain(f, replica, &waits, &next);

    flow_close(f, f->l, 0);
    cr_assert(waits.calls == 1 && next.calls == 1);
    is_alone(&waits, "waits");
    is_alone(&next, "next");
    server_stop(replica);
    flow_end(f, "q");
}

Test(replicas, that_are_asked_for_before_a_close_are_unstored_eclosed)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, patient);
    struct flow_answer a;

    cr_assert_eq(schedule(f, "plain", 0, NULL), 0);
    begin(f, &a, "a", 1);
    flow_close(f, f->l, 0);
    cr_assert(a.calls == 1 && a.err == LAPSE_ECLOSED && !a.has_job);
    cr_assert_eq(flow_count(f, "q", "due"), 1);
    flow_end(f, "q");
}

Test(replicas, are_forgotten_by_abandon)
{
    struct flow *f = master();
    struct server *replica = replica_start(f->server);
    struct flow_answer waits;
    struct flow_answer next;

    open_with(f, patient);
    server_signal(replica, SIGSTOP);
    begin_in_vain(f, &waits, "waits");
    begin(f, &next, "next", 1);
    lapse_abandon(f->l);
    flow_forget(f, f->l);
    ev_run(f->loop, EVRUN_NOWAIT);
    cr_assert(waits.calls == 0 && next.calls == 0);
    server_stop(replica);
    flow_end(f, "q");
}
