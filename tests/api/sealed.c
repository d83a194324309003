/* SPDX-License-Identifier: MIT */
/* The option replicas: what was answered has copies, and a handler begins when its claim has. The
 * replica is true; it is stopped, or its link swallows what is written, as a network does that is
 * cut. */
#include "audit.h"
#include "calls.h"
#include "handler.h"
#include "listening.h"
#include "proxy.h"
#include "replica.h"
#include "scripted_server.h"
#include "states.h"
#include <signal.h>

enum { HOUR = 3600000, SOON_MS = 50, FAIR_MS = 3000, LATE_MS = 60000 };

/* ---- options: for copies that come, for some that come and some that do not, for none ---- */
static void patient(struct lapse_options *o)
{
    o->replicas = 1;
    o->replicas_ms = LATE_MS;
}

static void fair(struct lapse_options *o)
{
    o->replicas = 1;
    o->replicas_ms = FAIR_MS;
}

static void impatient(struct lapse_options *o)
{
    o->replicas = 1;
    o->replicas_ms = SOON_MS;
}

/* ---- the stage: a master, its replica, a handle with the option ---- */
struct stage {
    struct flow *f;
    struct server *replica;
    struct proxy *link; /* between them; or NULL */
};

static void open_with(struct stage *s, flow_tweak *tweak)
{
    struct lapse_options opts = flow_options(s->f);

    tweak(&opts);
    s->f->l = flow_open(s->f, &opts);
}

static struct stage stage_begin(void)
{
    struct stage s = {.f = flow_start_tcp(FLOW_FULL, replica_args, NULL)};

    flow_allow_log(s.f, "written, but ");
    flow_allow_log(s.f, "fewer than 1 replicas have what is written");
    return s;
}

static struct stage stage_start(flow_tweak *tweak)
{
    struct stage s = stage_begin();

    s.replica = replica_start(s.f->server);
    open_with(&s, tweak);
    return s;
}

static struct stage stage_start_with_link(flow_tweak *tweak)
{
    struct stage s = stage_begin();

    s.link = proxy_start(s.f->server);
    s.replica = replica_of_port(atoi(strrchr(s.link->tcp_url, ':') + 1));
    replicas_confirm(s.f->server, 1);
    open_with(&s, tweak);
    return s;
}

static void stage_end(struct stage *s)
{
    server_signal(s->replica, SIGCONT);
    proxy_stop(s->link);
    server_stop(s->replica);
    flow_end(s->f, "q");
}

static void stop_replica(struct stage *s)
{
    server_signal(s->replica, SIGSTOP);
}

static void go_on(struct stage *s)
{
    server_signal(s->replica, SIGCONT);
}

/* A client is in a WAIT. */
static bool is_waited_for(struct flow *f)
{
    char *list = redis_str(f->server, "CLIENT LIST TYPE normal");
    bool yes = strstr(list, " flags=b") != NULL;

    free(list);
    return yes;
}

static uint64_t n_unsealed(struct flow *f)
{
    return flow_stats(f->l).unsealed;
}

/* A job that was scheduled without a wait for copies. */
static void put(struct flow *f, const char *id, int64_t delay_ms)
{
    struct lapse *own = f->l;

    f->l = flow_open(f, NULL);
    cr_assert_eq(flow_schedule(f, "q", id, delay_ms, NULL), 0);
    flow_close(f, f->l, 0);
    f->l = own;
}

/* Two answers that too few replicas have. */
static void until_alone(struct flow *f)
{
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, HOUR, NULL), LAPSE_EALONE);
    }
    cr_assert_eq(flow_logged(f, "takes no jobs, and all answers are EALONE"), 1);
}

/* ---- answers ---- */
/* The queue is as a call that writes needs it. */
static void prepare(struct flow *f, const struct api_call *call)
{
    redis_do(f->server, "FLUSHALL");
    if (call->kind == CALL_CHANGES) {
        put(f, "a", HOUR);
    }
}

Test(sealed, an_answer_of_each_call_that_writes_comes_when_the_replica_has_what_was_written)
{
    struct stage s = stage_start(patient);

    for (const struct api_call *call = api_calls; call < api_calls + n_api_calls; call++) {
        struct flow_answer a = {.f = s.f};

        if (call->kind == CALL_READS) {
            continue;
        }
        prepare(s.f, call);
        stop_replica(&s);
        cr_assert_eq(call->make(s.f->l, &a), 0, "%s", call->name);
        flow_poll(s.f, is_waited_for(s.f));
        cr_assert_eq(a.calls, 0, "%s was answered without a copy", call->name);
        go_on(&s);
        cr_assert_eq(flow_wait(s.f, &a), 0, "%s: %s", call->name, lapse_strerror(a.err));
    }
    cr_assert_eq(n_unsealed(s.f), 0);
    stage_end(&s);
}

Test(sealed, an_answer_of_each_call_that_writes_is_ealone_without_copies)
{
    struct stage s = stage_start(impatient);

    flow_close(s.f, s.f->l, 0);
    s.f->l = NULL;

    for (const struct api_call *call = api_calls; call < api_calls + n_api_calls; call++) {
        struct flow_answer a = {.f = s.f};

        if (call->kind == CALL_READS) {
            continue;
        }
        prepare(s.f, call);
        open_with(&s, impatient);
        stop_replica(&s);
        cr_assert_eq(call->make(s.f->l, &a), 0, "%s", call->name);
        cr_assert_eq(flow_wait(s.f, &a), LAPSE_EALONE, "%s: %s", call->name, lapse_strerror(a.err));
        cr_assert_eq(n_unsealed(s.f), 1);
        go_on(&s);
        flow_close(s.f, s.f->l, 0);
    }
    stage_end(&s);
}

Test(sealed, what_only_reads_waits_for_nobody)
{
    struct stage s = stage_start(patient);
    struct lapse_depth depth;
    struct flow_job job;

    cr_assert_eq(flow_schedule(s.f, "q", "a", HOUR, NULL), 0);
    stop_replica(&s);
    cr_assert_eq(flow_get(s.f, "q", "a", &job), 0);
    cr_assert_eq(job.replicas, 0);
    cr_assert_eq(flow_depth(s.f, "q", &depth), 0);
    cr_assert_eq(flow_list(s.f, "q", LAPSE_WAITING, 10, &job, 1), 1);
    cr_assert_eq(flow_configure(s.f, "q", "", NULL), 0);
    cr_assert_eq(flow_cancel(s.f, "q", "none", NULL), LAPSE_ENOENT, "nothing was written");
    stage_end(&s);
}

Test(sealed, a_schedule_says_how_many_have_it_and_may_ask_for_more)
{
    struct stage s = stage_start(fair);
    struct lapse_spec two = flow_job_spec("q", "two", HOUR);
    struct flow_job job;

    cr_assert_eq(flow_schedule(s.f, "q", "one", HOUR, &job), 0);
    cr_assert_eq(job.replicas, 1);
    two.replicas = 2;
    cr_assert_eq(flow_spec(s.f, &two, &job), LAPSE_EALONE);
    cr_assert(job.replicas == 1 && job.created == 1);
    stage_end(&s);
}

Test(sealed, a_settle_by_its_token_is_answered_when_there_are_copies)
{
    static const struct lapse_settlement ways[] = {
        {.how = LAPSE_HOW_RENEW, .ms = HOUR},
        {.how = LAPSE_HOW_REPORT, .report = "x", .report_len = 1},
        {.how = LAPSE_HOW_RETRY, .ms = HOUR},
        {.how = LAPSE_HOW_DONE},
    };
    static const int then[] = {LAPSE_EBUSY, LAPSE_EBUSY, 0, LAPSE_ENOENT};
    struct stage s = stage_start(patient);
    struct flow_claim c;

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct lapse_settlement how = ways[i];
        struct flow_answer answer = {.f = s.f};

        cr_assert_eq(flow_schedule(s.f, "q", "a", 0, NULL), 0);
        cr_assert_eq(flow_claim_id(s.f, "q", "a", &c), 0);
        uint64_t token = lapse_job_token(c.jobs[0]);
        stop_replica(&s);
        how.size = sizeof how;
        cr_assert_eq(lapse_settle(s.f->l, "q", "a", token, &how, flow_answered, &answer), 0);
        flow_poll(s.f, is_waited_for(s.f));
        cr_assert_eq(answer.calls, 0);
        go_on(&s);
        flow_until(s.f, answer.calls == 1);
        cr_assert_eq(answer.err, 0);
        lapse_forget(c.jobs[0]);
        cr_assert_eq(flow_cancel(s.f, "q", "a", NULL), then[i]);
        if (then[i] == LAPSE_EBUSY) {
            how = (struct lapse_settlement){.how = LAPSE_HOW_DONE};
            cr_assert_eq(flow_settle_by(s.f, "q", "a", token, how), 0);
        }
    }
    stage_end(&s);
}

/* ---- claims ---- */
/* Redis has given us the job, and its replica does not hear of it until go_on(). */
static void claim_in_vain(struct stage *s, struct flow_handler *w)
{
    flow_listen(s->f, "q", w);
    stop_replica(s);
    put(s->f, "a", 0);
    flow_poll(s->f, flow_count(s->f, "q", "run") == 1 && is_waited_for(s->f));
}

Test(sealed, a_handler_begins_when_the_replica_has_its_claim)
{
    struct stage s = stage_start(patient);
    struct flow_handler w = {.way = FLOW_DONE};

    claim_in_vain(&s, &w);
    cr_assert_eq(w.n_runs, 0, "it began without a copy");

    go_on(&s);
    flow_until(s.f, w.settled == 1);
    cr_assert_eq(w.errors, 0);
    flow_each_once(&w, 1);
    stage_end(&s);
}

Test(sealed, a_claim_without_copies_goes_back_and_its_try_does_not_count)
{
    struct stage s = stage_start(impatient);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(s.f, "q", &w);
    stop_replica(&s);
    put(s.f, "a", 0);
    flow_until(s.f, flow_logged(s.f, "takes no jobs, and all answers are EALONE") == 1);
    flow_poll(s.f, flow_count(s.f, "q", "due") == 1);
    cr_assert_eq(w.n_runs, 0);
    cr_assert_geq(n_unsealed(s.f), 2);

    go_on(&s);
    flow_until(s.f, w.settled == 1);
    cr_assert_eq(flow_logged(s.f, "takes jobs: 1 replicas have what is written"), 1);
    cr_assert_eq(w.runs[0].job.try_no, 1);
    flow_each_once(&w, 1);
    stage_end(&s);
}

Test(sealed, nothing_is_claimed_while_we_are_alone)
{
    struct stage s = stage_start(impatient);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(s.f, "q", &w);
    flow_until_listeners(s.f, "q", 1);
    stop_replica(&s);
    until_alone(s.f);
    uint64_t claimed = flow_stats(s.f->l).claimed;
    cr_assert_eq(flow_schedule(s.f, "q", "a", 0, NULL), LAPSE_EALONE);
    flow_heard(s.f);
    flow_spin(s.f, 100);
    cr_assert_eq(flow_stats(s.f->l).claimed, claimed);

    go_on(&s);
    flow_until(s.f, w.settled == 1);
    stage_end(&s);
}

/* At most one WAIT for what a call has answered: 100 claims, or 100 settles. */
Test(sealed, ten_thousand_claims_share_the_waits_and_so_do_their_settles)
{
    enum { N = 10000, BATCH = 100 };
    struct flow *f = flow_start_tcp(FLOW_FULL, replica_args, NULL);
    struct stage s = {.f = f, .replica = replica_start(f->server)};
    struct lapse_options opts = flow_options(f);
    struct flow_handler w = {.way = FLOW_KEEP};

    for (int i = 0; i < N; i++) {
        struct lapse_spec spec = flow_job_spec("q", NULL, 0);
        cr_assert_eq(lapse_schedule(f->l, &spec, NULL, NULL), 0);
    }
    flow_poll(f, flow_count(f, "q", "due") == N);
    flow_close(f, f->l, 0);

    patient(&opts);
    opts.max_running = N;
    f->l = flow_open(f, &opts);
    long long before = flow_calls(f, "wait");
    flow_listen(f, "q", &w);
    flow_until(f, w.n_held == N);
    long long claimed = flow_calls(f, "wait");
    cr_assert_leq(claimed - before, N / BATCH + 1, "%lld", claimed - before); /* and the probe */

    flow_settle(&w, FLOW_DONE); /* all in one turn */
    cr_assert_eq(w.errors, 0);
    cr_assert_leq(flow_calls(f, "wait") - claimed, N / BATCH);
    flow_each_once(&w, N);
    stage_end(&s);
}

Test(sealed, a_claim_in_flight_goes_back_when_the_connection_for_wait_is_lost)
{
    struct stage s = stage_start(patient);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_allow_log(s.f, "Redis at ");
    claim_in_vain(&s, &w);
    redis_do(s.f->server, "CLIENT KILL TYPE normal SKIPME yes");
    go_on(&s);
    flow_until(s.f, w.settled == 1);
    cr_assert_eq(w.runs[0].job.try_no, 1);
    flow_each_once(&w, 1);
    stage_end(&s);
}

/* The client whose last command was a WAIT. */
static long long client_for_wait(struct flow *f)
{
    char *list = redis_str(f->server, "CLIENT LIST TYPE normal");
    long long id = 0;

    for (char *at = list, *line; (line = strtok_r(at, "\n", &at));) {
        if (strstr(line, " cmd=wait ")) {
            cr_assert_eq(sscanf(line, "id=%lld", &id), 1, "%s", line);
        }
    }
    free(list);
    return id;
}

Test(sealed, an_answer_that_meets_no_connection_for_wait_is_ealone)
{
    struct stage s = stage_start(patient);
    struct flow_answer answer = {.f = s.f};

    flow_allow_log(s.f, "Redis at ");
    cr_assert_eq(flow_schedule(s.f, "q", "before", HOUR, NULL), 0);
    struct lapse_spec spec = flow_job_spec("q", NULL, HOUR);
    cr_assert_eq(lapse_schedule(s.f->l, &spec, flow_answered, &answer), 0);
    redis_do(s.f->server, "CLIENT KILL ID %lld", client_for_wait(s.f));
    flow_until(s.f, answer.calls == 1);
    cr_assert_eq(answer.err, LAPSE_EALONE, "%s", lapse_strerror(answer.err));
    cr_assert_eq(flow_count(s.f, "q", "due"), 2);
    cr_assert_eq(flow_schedule(s.f, "q", "after", HOUR, NULL), 0, "it waits for the next one");
    stage_end(&s);
}

/* The replica is promoted and has never heard of the claim. */
Test(sealed, a_master_that_is_cut_off_gives_nobody_a_job)
{
    struct stage s = stage_start_with_link(impatient);
    struct flow_handler cut_off = {.way = FLOW_DONE};
    struct flow_handler present = {.way = FLOW_DONE};
    struct lapse_options opts = flow_options(s.f);

    struct lapse *alone = s.f->l;
    put(s.f, "a", 0);
    replicas_confirm(s.f->server, 1);
    proxy_swallow(s.link, true);
    flow_listen(s.f, "q", &cut_off);
    flow_until(s.f, flow_stats(alone).unsealed > 0);
    redis_do(s.replica, "REPLICAOF NO ONE");
    opts.url = s.replica->url;
    s.f->l = flow_open(s.f, &opts);
    flow_listen(s.f, "q", &present);
    flow_until(s.f, present.settled == 1);
    flow_each_once(&present, 1);
    cr_assert_eq(cut_off.n_runs, 0, "it began without a copy");

    cr_assert_eq(audit(s.replica, "lapse", "q", NULL), 0);
    flow_close(s.f, s.f->l, 0);
    flow_close(s.f, alone, 0);
    stage_end(&s);
}

/* ---- jobs that are asked for ---- */
Test(sealed, a_job_that_is_asked_for_is_given_when_the_replica_has_its_claim)
{
    struct stage s = stage_start(patient);
    struct flow_claim c = {.f = s.f};

    cr_assert_eq(flow_schedule(s.f, "q", "a", 0, NULL), 0);
    stop_replica(&s);
    cr_assert_eq(lapse_claim(s.f->l, "q", 1, 0, flow_claimed, &c), 0);
    flow_poll(s.f, flow_count(s.f, "q", "run") == 1 && is_waited_for(s.f));
    cr_assert_eq(c.calls, 0);
    go_on(&s);
    flow_until(s.f, c.calls == 1);
    cr_assert(c.err == 0 && c.n == 1);
    flow_claim_done(s.f, &c);
    stage_end(&s);
}

Test(sealed, a_job_that_is_asked_for_without_copies_goes_back_and_the_answer_is_ealone)
{
    struct stage s = stage_start(impatient);
    struct flow_claim c;

    put(s.f, "a", 0);
    stop_replica(&s);
    cr_assert_eq(flow_claim(s.f, "q", 1, 0, &c), LAPSE_EALONE);
    cr_assert_eq(c.n, 0);
    flow_poll(s.f, flow_count(s.f, "q", "due") == 1);
    cr_assert_eq(flow_claim_id(s.f, "q", "a", &c), LAPSE_EALONE);
    flow_poll(s.f, flow_count(s.f, "q", "due") == 1);

    uint64_t claimed = flow_stats(s.f->l).claimed;
    cr_assert_eq(flow_claim(s.f, "q", 1, 0, &c), LAPSE_EALONE);
    cr_assert_eq(flow_claim(s.f, "q", 1, 1, &c), LAPSE_EALONE);
    cr_assert_eq(flow_stats(s.f->l).claimed, claimed, "nothing is claimed while we are alone");

    go_on(&s);
    flow_poll(s.f, flow_claim(s.f, "q", 1, LATE_MS, &c) == 0);
    cr_assert_eq(c.n, 1);
    cr_assert_eq(lapse_job_try(c.jobs[0]), 1);
    flow_claim_done(s.f, &c);
    stage_end(&s);
}

/* ---- leases ---- */
static void short_lease(struct lapse_options *o)
{
    fair(o);
    o->lease_ms = 9000;
}

/* Redis has renewed it, and sweeps it no sooner; but another Redis may have the job by then. */
Test(sealed, a_renewal_without_copies_does_not_keep_a_lease)
{
    struct stage s = stage_start(short_lease);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_allow_log(s.f, "the lease of job a in queue q ended (it could not be renewed in time)");
    flow_hold(s.f, &w, "a");
    int64_t until_ms = lapse_job_until_ms(w.held[0]);
    flow_until(s.f, lapse_job_until_ms(w.held[0]) > until_ms);

    stop_replica(&s);
    until_ms = lapse_job_until_ms(w.held[0]);
    flow_until(s.f, lapse_job_until_ms(w.held[0]) != until_ms);
    cr_assert_eq(lapse_job_until_ms(w.held[0]), 0);
    cr_assert_gt(flow_score(s.f, "q", "run", "a"), until_ms);

    go_on(&s);
    flow_settle(&w, FLOW_DONE);
    stage_end(&s);
}

static void six_seconds(struct lapse_options *o)
{
    patient(o);
    o->lease_ms = 6000;
}

/* It is renewed after 2 s, and the copy is known after 1.6 more: longer than until a renewal that
 * has failed is repeated. */
Test(sealed, a_renewal_whose_copy_comes_late_keeps_the_lease)
{
    struct stage s = stage_start_with_link(six_seconds);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_hold(s.f, &w, "a");
    proxy_delay(s.link, 800);
    int64_t until_ms = lapse_job_until_ms(w.held[0]);
    flow_until(s.f, lapse_job_until_ms(w.held[0]) != until_ms);
    cr_assert_gt(lapse_job_until_ms(w.held[0]), until_ms, "it was lost");
    proxy_delay(s.link, 0);
    flow_settle(&w, FLOW_DONE);
    stage_end(&s);
}

Test(sealed, a_lease_is_made_shorter_without_copies)
{
    struct stage s = stage_start(patient);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_hold(s.f, &w, "a");
    int64_t until_ms = lapse_job_until_ms(w.held[0]);
    stop_replica(&s);
    cr_assert_eq(lapse_extend(w.held[0], 20000), 0);
    flow_until(s.f, lapse_job_until_ms(w.held[0]) != until_ms);
    cr_assert_lt(lapse_job_until_ms(w.held[0]), until_ms);
    cr_assert_eq(flow_score(s.f, "q", "run", "a"), lapse_job_until_ms(w.held[0]));
    go_on(&s);
    flow_settle(&w, FLOW_DONE);
    stage_end(&s);
}

Test(sealed, a_renewal_by_the_token_counts_when_there_are_copies)
{
    struct stage s = stage_start(patient);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct lapse_settlement how = {.size = sizeof how, .how = LAPSE_HOW_RENEW, .ms = HOUR};
    struct flow_answer answer = {.f = s.f};

    flow_hold(s.f, &w, "a");
    int64_t until_ms = lapse_job_until_ms(w.held[0]);
    stop_replica(&s);
    cr_assert_eq(lapse_settle(s.f->l, "q", "a", w.runs[0].job.token, &how, flow_answered, &answer),
                 0);
    flow_poll(s.f, is_waited_for(s.f));
    cr_assert_eq(lapse_job_until_ms(w.held[0]), until_ms);
    cr_assert_eq(answer.calls, 0);
    go_on(&s);
    flow_until(s.f, answer.calls == 1);
    cr_assert_eq(flow_score(s.f, "q", "run", "a"), lapse_job_until_ms(w.held[0]));
    cr_assert_gt(lapse_job_until_ms(w.held[0]), until_ms);
    flow_settle(&w, FLOW_DONE);
    stage_end(&s);
}

/* ---- settles ---- */
Test(sealed, a_settle_is_answered_when_the_replica_has_it_and_its_slot_is_free_before)
{
    struct stage s = {.f = NULL};
    struct flow_handler w = {.way = FLOW_KEEP};

    s = stage_start(patient);
    flow_hold(s.f, &w, "a");
    stop_replica(&s);
    lapse_done(w.held[0], flow_on_settled, &w);
    flow_poll(s.f, is_waited_for(s.f));
    cr_assert_eq(flow_stats(s.f->l).done, 1);
    cr_assert_eq(w.settled, 0);
    go_on(&s);
    flow_until(s.f, w.settled == 1);
    cr_assert_eq(w.errors, 0);
    stage_end(&s);
}

Test(sealed, a_settle_without_copies_is_ealone_and_one_without_callback_waits_for_none)
{
    struct stage s = stage_start(fair);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_hold(s.f, &w, "a");
    cr_assert_eq(flow_schedule(s.f, "q", "b", 0, NULL), 0);
    flow_until(s.f, w.n_held == 2);
    stop_replica(&s);
    lapse_done(w.held[0], flow_on_settled, &w);
    flow_until(s.f, w.settled == 1);
    cr_assert_eq(w.err, LAPSE_EALONE);

    uint64_t before = n_unsealed(s.f);
    lapse_done(w.held[1], NULL, NULL);
    flow_until(s.f, flow_stats(s.f->l).done == 2);
    flow_calm(s.f);
    cr_assert_eq(n_unsealed(s.f), before);
    stage_end(&s);
}

/* ---- alone ---- */
Test(sealed, without_a_replica_answers_are_ealone_at_once_and_one_round_a_second_asks)
{
    enum { N = 200 };
    struct stage s = stage_start(impatient);

    stop_replica(&s);
    until_alone(s.f);
    long long before = flow_calls(s.f, "wait");
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(s.f, "q", NULL, HOUR, NULL), LAPSE_EALONE);
    }
    cr_assert_leq(flow_calls(s.f, "wait") - before, N / 10);
    cr_assert_eq(flow_count(s.f, "q", "due"), N + 2);
    cr_assert_eq(n_unsealed(s.f), N + 2);

    flow_poll(s.f, flow_calls(s.f, "wait") - before >= 2);
    go_on(&s);
    flow_until(s.f, flow_logged(s.f, "takes jobs: 1 replicas have what is written") == 1);
    flow_poll(s.f, flow_schedule(s.f, "q", NULL, HOUR, NULL) == 0);
    stage_end(&s);
}

Test(sealed, one_round_in_vain_is_not_yet_alone)
{
    struct stage s = stage_start(fair);

    for (int i = 0; i < 3; i++) {
        stop_replica(&s);
        cr_assert_eq(flow_schedule(s.f, "q", NULL, HOUR, NULL), LAPSE_EALONE);
        go_on(&s);
        replicas_confirm(s.f->server, 1);
        cr_assert_eq(flow_schedule(s.f, "q", NULL, HOUR, NULL), 0);
    }
    cr_assert_eq(flow_logged(s.f, "takes no jobs"), 0);
    stage_end(&s);
}

Test(sealed, too_many_copies_that_one_schedule_wants_leave_nobody_alone)
{
    struct stage s = stage_start(fair);
    struct lapse_spec two = flow_job_spec("q", NULL, HOUR);

    two.replicas = 2;
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(flow_spec(s.f, &two, NULL), LAPSE_EALONE);
    }
    cr_assert_eq(flow_logged(s.f, "takes no jobs"), 0);
    cr_assert_eq(flow_schedule(s.f, "q", NULL, HOUR, NULL), 0);
    stage_end(&s);
}

Test(sealed, a_new_connection_is_not_alone)
{
    struct stage s = stage_start(impatient);

    flow_allow_log(s.f, "Redis at ");
    stop_replica(&s);
    until_alone(s.f);
    go_on(&s);
    replicas_confirm(s.f->server, 1);
    redis_do(s.f->server, "CLIENT KILL TYPE normal SKIPME yes");
    flow_poll(s.f, flow_stats(s.f->l).reconnects > 0);
    flow_poll(s.f, flow_schedule(s.f, "q", NULL, HOUR, NULL) == 0);
    stage_end(&s);
}

/* ---- Redis cannot wait ---- */
Test(sealed, nothing_is_written_where_redis_denies_wait_until_it_allows_it)
{
    struct flow *f = flow_start_tcp(FLOW_FULL, replica_args, NULL);
    struct stage s = {.f = f, .replica = replica_start(f->server)};
    struct lapse_options opts = flow_options(f);
    char url[160];

    flow_allow_log(f, "Redis refused WAIT");
    flow_allow_log(f, "Redis denied");
    redis_do(f->server, "ACL SETUSER me on >secret ~* &* +@all -wait");
    snprintf(url, sizeof url, "unix://me:secret@%s", f->server->socket);
    flow_close(f, f->l, 0);
    patient(&opts);
    opts.url = url;
    opts.reply_ms = FAIR_MS; /* so long it asks */
    f->l = flow_open(f, &opts);

    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), LAPSE_EDENIED);
    cr_assert_eq(flow_count(f, "q", "due"), 0);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT, "it only reads");

    redis_do(f->server, "ACL SETUSER me +wait");
    int err = LAPSE_EDENIED;
    flow_poll(f, (err = flow_schedule(f, "q", "a", HOUR, NULL)) != LAPSE_EDENIED);
    cr_assert_eq(err, 0);
    stage_end(&s);
}

/* What Redis has allowed again is asked for until the replicas are found. */
Test(sealed, one_that_may_not_wait_while_it_is_alone_is_in_company_again_when_it_may)
{
    struct stage s = stage_begin();
    struct lapse_options opts = flow_options(s.f);
    char url[160];

    s.replica = replica_start(s.f->server);
    flow_allow_log(s.f, "Redis refused WAIT");
    flow_allow_log(s.f, "Redis denied");
    redis_do(s.f->server, "ACL SETUSER me on >secret ~* &* +@all");
    snprintf(url, sizeof url, "unix://me:secret@%s", s.f->server->socket);
    impatient(&opts);
    opts.url = url;
    s.f->l = flow_open(s.f, &opts);
    stop_replica(&s);
    until_alone(s.f);

    redis_do(s.f->server, "ACL SETUSER me -wait");
    long long denied = flow_logged(s.f, "WAIT");
    flow_poll(s.f, flow_logged(s.f, "WAIT") > denied);
    flow_poll(s.f, flow_schedule(s.f, "q", NULL, HOUR, NULL) == LAPSE_EDENIED);
    redis_do(s.f->server, "ACL SETUSER me +wait");
    go_on(&s);
    flow_poll(s.f, flow_schedule(s.f, "q", NULL, HOUR, NULL) == 0);
    stage_end(&s);
}

Test(sealed, a_wait_that_redis_answers_with_nonsense_seals_nothing)
{
    struct flow *f = flow_start_tcp(FLOW_FULL, replica_args, NULL);
    struct stage s = {.f = f, .replica = replica_start(f->server)};
    struct scripted_server *between = scripted_server_before(f->server);
    struct lapse_options opts = flow_options(f);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_allow_log(f, "written, but ");
    flow_allow_log(f, "fewer than 1 replicas have what is written");
    flow_close(f, f->l, 0);
    patient(&opts);
    opts.url = between->url;
    f->l = flow_open(f, &opts);
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "before", HOUR, NULL), 0);

    scripted_server_answer_command(between, "WAIT", "+OK\r\n");
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), LAPSE_EALONE);
    flow_until(f, flow_logged(f, "takes no jobs") == 1);
    cr_assert_eq(w.n_runs, 0);

    scripted_server_answer_command(between, "", "");
    flow_until(f, w.settled == 1);
    flow_each_once(&w, 1);
    flow_close(f, f->l, 1000);
    scripted_server_stop(between);
    stage_end(&s);
}

/* ---- the end of the handle ---- */
static void on_closed(void *arg)
{
    struct flow *f = arg;
    f->n_closed++;
}

Test(sealed, a_close_with_grace_waits_for_the_copies_of_settles)
{
    struct stage s = stage_start(patient);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_hold(s.f, &w, "a");
    stop_replica(&s);
    lapse_done(w.held[0], flow_on_settled, &w);
    flow_poll(s.f, is_waited_for(s.f));
    unsigned closed = s.f->n_closed;
    lapse_close(s.f->l, LATE_MS, on_closed, s.f);
    flow_spin(s.f, 50);
    cr_assert(w.settled == 0 && s.f->n_closed == closed);

    go_on(&s);
    flow_until(s.f, s.f->n_closed > closed);
    cr_assert(w.settled == 1 && w.errors == 0);
    flow_forget(s.f, s.f->l);
    stage_end(&s);
}

Test(sealed, a_close_at_once_gives_back_what_has_no_copies_and_settles_are_ealone)
{
    struct stage s = stage_start(patient);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_hold(s.f, &w, "a");
    stop_replica(&s);
    lapse_done(w.held[0], flow_on_settled, &w);
    flow_poll(s.f, is_waited_for(s.f));
    struct lapse_spec b = flow_job_spec("q", "b", 0);
    cr_assert_eq(lapse_schedule(s.f->l, &b, NULL, NULL), 0);
    flow_poll(s.f, flow_count(s.f, "q", "run") == 1);

    flow_close(s.f, s.f->l, 0);
    cr_assert(w.settled == 1 && w.err == LAPSE_EALONE);
    cr_assert_eq(w.n_runs, 1);
    cr_assert_eq(flow_count(s.f, "q", "due"), 1);
    stage_end(&s);
}

Test(sealed, copies_are_forgotten_by_abandon)
{
    struct stage s = stage_start(patient);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow_answer answer = {.f = s.f};

    flow_hold(s.f, &w, "a");
    stop_replica(&s);
    lapse_done(w.held[0], flow_on_settled, &w);
    struct lapse_spec b = flow_job_spec("q", "b", 0);
    cr_assert_eq(lapse_schedule(s.f->l, &b, flow_answered, &answer), 0);
    flow_poll(s.f, flow_count(s.f, "q", "run") == 1 && is_waited_for(s.f));
    lapse_abandon(s.f->l);
    flow_forget(s.f, s.f->l);
    ev_run(s.f->loop, EVRUN_NOWAIT);
    cr_assert(w.settled == 0 && answer.calls == 0);
    stage_end(&s);
}

/* ---- without the option ---- */
Test(sealed, without_the_option_nothing_waits_and_there_is_no_third_connection)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, w.settled == 1);
    cr_assert_eq(flow_calls(f, "wait"), 0);
    cr_assert_eq(redis_int(f->server, "EXISTS lapse:{q}:fence"), 0);
    cr_assert_eq(flow_stats(f->l).unsealed, 0);
    flow_end(f, "q");
}
