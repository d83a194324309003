/* SPDX-License-Identifier: MIT */
/* One queue. Four kinds of hints lead to one action: whether an event, a notice, the alarm or the
 * sweep wants us to look, a claim asks Redis, and Redis decides by its clock and the sorted set.
 *
 * A hint that finds no free slot puts the queue into the backlog. A claim by age that found jobs
 * puts it there too, until one comes back short: so the oldest go first, and other queues get their
 * turn between. In the backlog are only queues that lack nothing but a slot. A hint for a queue
 * that may not claim now is remembered by the queue itself: otherwise each turn would look at every
 * queue while Redis refuses, or may evict.
 *
 * A queue without handler has pulls (pulls.c). It hears of jobs once one of them waits.
 *
 * After a reconnect lost jobs are reclaimed before anything is claimed: reclaim.c says why. */
#include "listen/queue.h"
#include "base/error.h"
#include "base/mem.h"
#include "job/keys.h"

enum { PAUSE_MS = 300, TOUCH_SHARE = 4, TOUCH_MAX = 16 };

/* ---- may we claim? ---- */
static bool queue_is_closed(const struct queue *q)
{
    return q->stopped || q->shared->closing;
}

/* Who only asks does not wait for Redis to say whether it may evict jobs. */
static bool queue_may_be_evicted(const struct queue *q)
{
    const struct eviction *e = &q->site->eviction;

    return q->hears ? eviction_forbids_claims(e) : eviction_possible(e);
}

/* Each claim would be refused, and hints may come by the thousand. */
static bool queue_must_wait(const struct queue *q)
{
    bool lost_jobs_first = reclaim_on(&q->reclaim) || q->reclaim_when_idle;
    bool waits = q->paused || gate_closed(&q->gate) || q->shared->quiet;

    return lost_jobs_first || waits || q->site->node->copies_in_vain || queue_may_be_evicted(q);
}

/* Whether we can take jobs of it. The other listeners learn of it after a while. Who asks in a loop
 * will ask again. */
static void queue_show_free_slots(struct queue *q, bool any)
{
    bool can_take = any || q->asked;

    if (q->hears) {
        watch_set_free_slots(&q->watch, can_take && !eviction_possible(&q->site->eviction));
    }
}

/* A hint that cannot be followed now. */
static void queue_remember(struct queue *q, enum lapse_via via)
{
    if (q->oldest_claimed || queue_must_wait(q)) {
        q->later = via;
    } else {
        share_join_backlog(&q->share, via);
    }
}

/* A slot that is free this moment is of the queues that wait already. */
static void queue_wait_in_turn(struct queue *q, enum lapse_via via)
{
    queue_remember(q, via);
    shared_want_turn(q->shared);
}

void queue_claims_allowed(struct queue *q)
{
    enum lapse_via via = q->later;

    pulls_ask(&q->pulls, false);
    if (via && !queue_is_closed(q) && !q->oldest_claimed && !queue_must_wait(q)) {
        q->later = 0;
        queue_wait_in_turn(q, via);
    }
}

void queue_go_on(struct queue *q)
{
    if (q->hears) {
        q->later = LAPSE_VIA_ALARM;
    }

    queue_claims_allowed(q);
}

/* Something of the queue has ended. If it was stopped, that may have been the last. */
static void queue_part_ended(struct queue *q)
{
    struct shared *sh = q->shared;

    if (q->stopped) {
        list_remove(&q->node);
        list_insert(&sh->ending, &q->node);
        shared_want_turn(sh);
    }
}

static void on_ended(void *arg)
{
    queue_part_ended(arg);
}

/* ---- claims ---- */
static void on_claimed(struct claim *c, int err, const struct claim_result *got);

/* NULL: out of memory. It is tried again after a pause. */
static struct claim *queue_new_claim(struct queue *q, enum claim_kind kind)
{
    struct claim *c = claim_new(&q->shared->claims, kind, q, on_claimed);

    if (!c) {
        timer_set(&q->pause, PAUSE_MS);
        return NULL;
    }

    c->forwards = !q->has_handler && !q->asked;
    return c;
}

void queue_claim(struct queue *q, enum lapse_via via)
{
    unsigned n_free = share_free(&q->share);
    struct claim *c = NULL;

    if (queue_is_closed(q)) {
        return;
    }
    if (n_free > 0 && !q->oldest_claimed && !queue_must_wait(q)) {
        c = queue_new_claim(q, CLAIM_OLDEST);
    }

    /* Even while a claim by age is pending: it may have been executed before the job that this hint
     * is about was stored. */
    if (!c) {
        queue_remember(q, via);
        if (!q->oldest_claimed) {
            queue_show_free_slots(q, n_free > 0);
        }
        return;
    }

    unsigned n = share_fair(&q->share);
    share_ask(&q->share, n);
    pulls_asked(&q->pulls);
    q->oldest_claimed = true;
    q->later = 0;
    claim_ask_oldest(c, span_of(q->key), n, via);
}

void queue_serve(struct share *s)
{
    queue_claim(CONTAINER(s, struct queue, share), s->via);
}

/* Jobs may be due. */
static void queue_hint(struct queue *q, enum lapse_via via)
{
    if (!share_others_wait(&q->share)) {
        queue_claim(q, via);
        return;
    }

    if (queue_is_closed(q)) {
        return;
    }

    queue_wait_in_turn(q, via);
    if (share_free(&q->share) == 0) {
        queue_show_free_slots(q, false);
    }
}

/* The job of this id may be due. */
static void queue_hint_id(struct queue *q, struct span id, enum lapse_via via)
{
    unsigned n_free = share_free(&q->share);
    struct claim *c = q->open && claim_is_open(q->open) ? q->open : NULL;

    if (queue_is_closed(q)) {
        return;
    }
    if (q->delivery.has_priorities) { /* none is claimed by its id, before those above it */
        queue_hint(q, via);
        return;
    }
    if (!c && n_free > 0 && !queue_must_wait(q) && !share_others_wait(&q->share)) {
        c = queue_new_claim(q, CLAIM_IDS);
    }

    if (!c || n_free == 0) {
        queue_wait_in_turn(q, via);
        queue_show_free_slots(q, n_free > 0);
        return;
    }

    q->open = c;
    c->in_order = true;
    share_claim(&q->share, 1);
    claim_add(c, span_of(q->key), id, via);
}

/* ---- touching ---- */
/* How many jobs a touch may claim. Several may be on their way, and most find one. */
static unsigned queue_touch_slots(const struct queue *q)
{
    unsigned n_free = share_free(&q->share);
    unsigned n = (n_free + TOUCH_SHARE - 1) / TOUCH_SHARE;

    if (queue_must_wait(q) || share_others_wait(&q->share)) {
        return 0;
    }

    return n < TOUCH_MAX ? n : TOUCH_MAX;
}

/* Without a free slot jobs of ours wait until there is one; those of others are to be touched all
 * the same. A touch of a closed gate would read nothing. Who is quiet leaves that to others. */
static bool on_touch_due(void *arg, const struct touch_range *range, int64_t target_ms)
{
    struct queue *q = arg;
    unsigned n = queue_touch_slots(q);
    struct claim *c = NULL;

    if (queue_is_closed(q)) {
        return false;
    }
    if (n > 0 || (range->everyone && !gate_closed(&q->gate) && !q->shared->quiet)) {
        c = queue_new_claim(q, CLAIM_TOUCH);
    }
    if (n == 0) {
        queue_hint(q, LAPSE_VIA_ALARM);
    }
    if (!c) {
        return false;
    }

    c->target_ms = target_ms;
    share_claim(&q->share, n);
    claim_touch(c, span_of(q->key), n, range);
    return true;
}

/* ---- claims that are not sent yet ---- */
static void queue_withdraw_claim(struct queue *q)
{
    struct claim *c = q->open;

    if (c && claim_withdraw(c)) {
        q->open = NULL;
        share_unclaim(&q->share, c->n_slots);
        claim_free(c);
    }
}

/* ---- what a claim brought ---- */
static int queue_take_jobs(struct queue *q, const struct claim *c, const struct claim_result *got)
{
    int err = delivery_take(&q->delivery, c, got);

    if (err) {
        q->reclaim_later = true;
    }

    return err;
}

/* Redis moved the jobs itself. */
static void queue_note_forwarded(struct queue *q, const struct claim_result *got)
{
    if (got->n_forwarded > 0) {
        delivery_note_forwarded(&q->delivery, got->n_forwarded);
        trim_soon(&q->trim);
    }
}

/* Whether jobs are overdue, by what the claim saw. */
static bool queue_tell_alarm(struct queue *q, const struct claim *c, const struct claim_result *got)
{
    struct due_times seen = {got->now_us, got->oldest_due_ms, got->next_due_ms};

    if (!q->hears) {
        return false;
    }
    if (c->kind == CLAIM_TOUCH) {
        return alarm_touched(&q->alarm, got->touch, c->target_ms, claim_sent_us(c));
    }

    return alarm_answered(&q->alarm, &seen, claim_sent_us(c));
}

/* The answer to a claim also says whether more is due. */
static void queue_look_further(struct queue *q, const struct claim *c,
                               const struct claim_result *got)
{
    bool overdue = queue_tell_alarm(q, c, got);
    bool more = got->touch && got->touch->more;

    /* Whatever is asked for, as many as a call may are forwarded, and more are due. */
    if (got->n_forwarded > 0) {
        more = more || got->oldest_due_ms;
    }

    if (queue_is_closed(q)) {
        return;
    }

    if (c->kind != CLAIM_OLDEST) {
        if (overdue || more) {
            queue_hint(q, LAPSE_VIA_ALARM);
        }
    } else if (got->oldest_due_ms && claim_found(got)) {
        share_note_more(&q->share);
        queue_wait_in_turn(q, c->via);
    } else if (q->hears) {
        watch_set_free_slots(&q->watch, true);
    }
}

/* ---- pulls ---- */
static void queue_tell_pulls(struct queue *q, const struct claim *c, int err,
                             const struct claim_result *got)
{
    if (q->asked) {
        pulls_answered(&q->pulls, c, err, got);
    }
}

static bool on_pull_asks(void *arg)
{
    const struct queue *q = arg;
    return !queue_must_wait(q) && !queue_is_closed(q);
}

static int queue_obstacle(const struct queue *q)
{
    if (eviction_possible(&q->site->eviction)) {
        return LAPSE_EREFUSED;
    }
    if (q->site->node->copies_in_vain) {
        return LAPSE_EALONE;
    }

    return node_up(node_of(q->shared->script, span_of(q->key))) ? 0 : LAPSE_EDOWN;
}

static int on_pull_gave_up(void *arg)
{
    return queue_obstacle(arg);
}

static void queue_claim_ended(struct queue *q);

static void on_pull_answered(struct claim *c, int err, const struct claim_result *got)
{
    struct queue *q = c->owner;

    share_unclaim(&q->share, c->n_slots);
    if (!err) {
        err = queue_take_jobs(q, c, got);
    }

    queue_tell_pulls(q, c, err, got);
    claim_free(c);
    queue_claim_ended(q);
}

static void queue_hear(struct queue *q);

static void on_pull_waits(void *arg)
{
    struct queue *q = arg;

    if (!q->hears) {
        queue_hear(q);
    }
}

static void on_unused(void *arg)
{
    struct queue *q = arg;
    q->unused(q->unused_arg, q);
}

int queue_pull(struct queue *q, struct pull *p)
{
    int err = pulls_add(&q->pulls, p);

    if (err) {
        return err;
    }

    gate_open(&q->gate); /* who does not listen does not hear that it has opened */
    if (eviction_possible(&q->site->eviction)) {
        pulls_end(&q->pulls, p, LAPSE_EREFUSED);
    } else if (q->site->node->copies_in_vain && p->wait_ms == 0) {
        pulls_end(&q->pulls, p, LAPSE_EALONE);
    } else if (q->shared->quiet && p->wait_ms == 0) {
        pulls_end(&q->pulls, p, 0);
    } else if (pull_is_by_id(p)) {
        pulls_ask(&q->pulls, false);
    } else {
        queue_claim(q, LAPSE_VIA_ASKED);
    }

    return 0;
}

/* Redis refused a claim, or broke off in it. */
static void queue_pause(struct queue *q, const struct claim *c, int err)
{
    if (err == LAPSE_EBROKEN) {
        q->reclaim_later = true;
    }

    q->later = c->kind == CLAIM_OLDEST ? c->via : LAPSE_VIA_SWEEP;
    q->paused = true;
    timer_set(&q->pause, PAUSE_MS);
}

/* ---- the gate ---- */
/* It may be open. Also: a stream has room. */
static void on_gate_over(void *arg)
{
    struct queue *q = arg;

    gate_open(&q->gate);
    q->later = LAPSE_VIA_ALARM;
    queue_claims_allowed(q);
}

/* A claim was answered that the gate is closed. */
static void queue_meet_gate(struct queue *q, const struct claim *c, const struct claim_result *got)
{
    const struct node *node = node_of(q->shared->script, span_of(q->key));
    struct gate_answer answer = {.sent_us = claim_sent_us(c),
                                 .now_ms = got->now_us / 1000,
                                 .until_ms = got->gate_ms,
                                 .until_us = node_mono_us(node, got->gate_ms * 1000)};

    switch (gate_answered(&q->gate, &answer)) {
    case GATE_OUTDATED: q->later = LAPSE_VIA_NOTICE; break;
    case GATE_CLOSED_BRIEFLY: trim_now(&q->trim); break;
    case GATE_OPEN:
    case GATE_CLOSED: break;
    }
}

void queue_configured(struct queue *q)
{
    trim_changed(&q->trim);
    if (gate_configured(&q->gate)) {
        queue_hint(q, LAPSE_VIA_NOTICE);
    }
}

static void queue_claim_failed(struct queue *q, const struct claim *c, int err)
{
    if ((err_is_refusal(err) || err == LAPSE_EBROKEN) && !queue_is_closed(q)) {
        queue_pause(q, c, err);
    }

    queue_tell_pulls(q, c, err, NULL);
}

static void queue_reclaim(struct queue *q);

/* No claim takes the place of the one that has ended. */
static void queue_claim_ended(struct queue *q)
{
    struct shared *sh = q->shared;

    if (!q->oldest_claimed) {
        share_answered(&q->share);
    }

    if (queue_is_closed(q)) {
        leases_release_queued(&sh->leases, q);
        queue_part_ended(q);
    } else if (q->reclaim_later || (q->reclaim_when_idle && !share_claims(&q->share))) {
        queue_reclaim(q);
    }

    queue_claims_allowed(q);
}

static void on_claimed(struct claim *c, int err, const struct claim_result *got)
{
    struct queue *q = c->owner;
    unsigned n_left = 0; /* their slots remain set aside */

    if (!err && c->kind == CLAIM_IDS) {
        n_left = claim_n_left(c, got);
    }
    if (err && c->kind == CLAIM_TOUCH) {
        alarm_touch_failed(&q->alarm, !queue_is_closed(q));
    }
    if (c->kind == CLAIM_OLDEST) {
        q->oldest_claimed = false;
    }
    if (q->open == c) {
        q->open = NULL;
    }

    share_unclaim(&q->share, c->n_slots - n_left);
    if (!err) {
        int taken = queue_take_jobs(q, c, got);
        queue_note_forwarded(q, got);
        queue_tell_pulls(q, c, taken, got);
        queue_look_further(q, c, got);
        if (got->gate_ms && !queue_is_closed(q)) {
            queue_meet_gate(q, c, got);
        }
    } else {
        queue_claim_failed(q, c, err);
    }

    if (n_left > 0 && !queue_is_closed(q) && !queue_must_wait(q)) {
        claim_go_on(c, n_left);
        return;
    }

    if (n_left > 0) {
        share_unclaim(&q->share, n_left);
        if (!queue_is_closed(q)) {
            queue_remember(q, LAPSE_VIA_SWEEP);
        }
    }

    claim_free(c);
    queue_claim_ended(q);
}

/* ---- lost jobs ---- */
static void queue_reclaim(struct queue *q)
{
    bool can = !reclaim_on(&q->reclaim) && !queue_is_closed(q) &&
               node_up(node_of(q->shared->script, span_of(q->key)));

    q->reclaim_later = false;

    /* We hold no lease yet of what pending claims bring: it would be returned, and run twice. */
    q->reclaim_when_idle = can && share_claims(&q->share);
    if (can && !q->reclaim_when_idle) {
        reclaim_start(&q->reclaim);
    }
}

static void on_reclaimed(void *arg, int err, int64_t n_returned)
{
    struct queue *q = arg;
    struct shared *sh = q->shared;

    if (n_returned) {
        log_line(&sh->context->log, LOG_RECLAIMED, LOG_NOTICE,
                 "queue %s: returned %lld jobs, as the replies to their claims were lost", q->name,
                 (long long)n_returned);
    }

    if (queue_is_closed(q)) {
        queue_part_ended(q);
    } else if (!err) {
        queue_claim(q, LAPSE_VIA_SWEEP);
    } else {
        q->reclaim_later = true; /* if the connection is gone, the next one begins it before */
        timer_set(&q->pause, PAUSE_MS);
    }
}

static void on_pause_over(void *arg)
{
    struct queue *q = arg;

    q->paused = false;
    if (q->reclaim_later) {
        queue_reclaim(q);
    }

    queue_claims_allowed(q);
    shared_want_turn(q->shared);
}

/* ---- hints ---- */
static void on_named(void *arg, struct span id, enum lapse_via via)
{
    struct queue *q = arg;
    bool taken =
        via == LAPSE_VIA_EVENT && claims_take_echo(&q->shared->claims, span_of(q->key), id);

    if (!taken) {
        queue_hint_id(q, id, via);
    }
}

static void on_configured(void *arg)
{
    queue_configured(arg);
}

static void on_stop(void *arg, struct span id, uint64_t token)
{
    struct queue *q = arg;
    struct leased_job job = {.key = span_of(q->key), .id = id, .token = token};

    leases_look(&q->shared->leases, &job);
}

static void on_heard(void *arg)
{
    struct queue *q = arg;
    sweep_heard(&q->sweep);
}

static void on_subscribed(void *arg)
{
    struct queue *q = arg;

    sweep_set_subscribed(&q->sweep, true);
    gate_open(&q->gate);
    queue_hint(q, LAPSE_VIA_SWEEP);
}

static void on_unsubscribed(void *arg)
{
    struct queue *q = arg;
    sweep_set_subscribed(&q->sweep, false);
}

static void on_overdue(void *arg)
{
    queue_hint(arg, LAPSE_VIA_ALARM);
}

static void on_look(void *arg)
{
    struct queue *q = arg;

    pulls_looked(&q->pulls);
    if (q->hears) {
        watch_verify(&q->watch);
    }
}

static void on_nothing_to_sweep(void *arg)
{
    struct queue *q = arg;

    if (q->asked) {
        pulls_not_again(&q->pulls);
    }
}

/* Jobs of ours whose handlers have not begun are returned before the sweep finds them and counts a
 * try. */
static void on_sweep_due(void *arg)
{
    struct queue *q = arg;

    leases_check(&q->shared->leases);
    sweep_recover(&q->sweep);
    trim_changed(&q->trim);
    gate_open(&q->gate);
    pulls_ask(&q->pulls, true);
    queue_hint(q, LAPSE_VIA_SWEEP);
    if (q->hears && watch_is_first(&q->watch)) {
        sweep_arm(&q->sweep);
    }
}

/* We scheduled this job ourselves: the alarm is set at once instead of when the published notice
 * arrives, which it cannot while the subscription is down. Jobs that are already due are always
 * announced. */
void queue_scheduled(struct queue *q, struct span id, int64_t due_ms)
{
    int64_t now_us = node_time_us(node_of(q->shared->script, span_of(q->key)));

    sweep_heard(&q->sweep);
    if (q->hears && (!watch_is_subscribed(&q->watch) || due_ms * 1000 > now_us)) {
        alarm_notify(&q->alarm, due_ms, watch_owns(&q->watch, id));
    }
}

/* Where no more jobs may run, one of ours has ended. Who hears notices hears that. */
void queue_lease_ended(struct queue *q)
{
    share_unhold(&q->share);
    if (q->hears && gate_closed(&q->gate) && !watch_is_subscribed(&q->watch)) {
        gate_open(&q->gate);
        queue_hint(q, LAPSE_VIA_ALARM);
    }
    queue_part_ended(q);
}

/* ---- life ---- */
/* Begins to hear of jobs: from now on hints lead to claims. */
static void queue_hear(struct queue *q)
{
    static const struct alarm_events alarm_events = {on_touch_due, on_overdue};
    static const struct watch_events watch_events = {
        on_heard, on_named, on_configured, on_stop, on_subscribed, on_unsubscribed, on_ended};
    struct span key = span_of(q->key);

    struct alarm_spec alarm = {
        .alarms = &q->site->alarms, .key = key, .events = &alarm_events, .arg = q};
    struct watch_spec watch = {.ear = &q->site->ear,
                               .queue = q->name,
                               .key = key,
                               .alarm = &q->alarm,
                               .events = &watch_events,
                               .arg = q};

    q->hears = true;
    alarm_init(&q->alarm, &alarm);
    watch_start(&q->watch, &watch);
    if (eviction_forbids_claims(&q->site->eviction)) {
        eviction_check(&q->site->eviction, key);
    }
}

static void queue_start_sweep(struct queue *q)
{
    static const struct sweep_events sweep_events = {on_look, on_sweep_due, on_nothing_to_sweep,
                                                     on_ended};
    static const struct trim_events trim_events = {on_gate_over, on_ended};
    struct sweep_spec sweep = {.sweeps = &q->shared->sweeps,
                               .queue = q->name,
                               .key = span_of(q->key),
                               .events = &sweep_events,
                               .arg = q};

    sweep_start(&q->sweep, &sweep);
    trim_start(&q->trim, q->shared->script, span_of(q->key), &trim_events, q);
    if (!q->has_handler && !q->asked) {
        trim_soon(&q->trim);
    }
}

/* It hears nothing more. */
static void queue_stop_timers(struct queue *q)
{
    timer_stop(&q->pause);
    gate_stop(&q->gate);
    sweep_stop(&q->sweep);
    trim_stop(&q->trim);
    if (q->hears) {
        alarm_stop(&q->alarm);
    }
}

static void queue_start_pulls(struct queue *q)
{
    static const struct pulls_events events = {on_pull_asks, on_pull_gave_up, on_pull_answered,
                                               on_pull_waits, on_unused};
    struct pulls_spec pulls = {.context = q->shared->context,
                               .claims = &q->shared->claims,
                               .key = span_of(q->key),
                               .share = &q->share,
                               .sweep = &q->sweep,
                               .events = &events,
                               .arg = q};

    pulls_init(&q->pulls, &pulls);
}

static void queue_start_delivery(struct queue *q, const struct queue_spec *spec)
{
    struct shared *sh = q->shared;

    q->delivery = (struct delivery){.context = sh->context,
                                    .leases = &sh->leases,
                                    .calendars = sh->calendars,
                                    .share = &q->share,
                                    .queue = q->name,
                                    .key = span_of(q->key),
                                    .owner = q,
                                    .handler = spec->handler,
                                    .handler_arg = spec->handler_arg,
                                    .pulls = q->asked ? &q->pulls : NULL};
}

/* false: there is no memory. */
static bool queue_enter_site(struct queue *q, struct shared *sh)
{
    struct site *site = sites_of_key(&sh->sites, span_of(q->key));

    if (!site) {
        return false;
    }
    q->site = site;
    q->was_up = site->was_up;
    site->n_queues++;
    return true;
}

struct queue *queue_new(const struct queue_spec *spec)
{
    struct shared *sh = spec->shared;
    struct queue *q = mem_new(sizeof *q, 0);

    if (!q) {
        return NULL;
    }
    if (share_init(&q->share, &sh->slots, &spec->share)) {
        mem_free(q);
        return NULL;
    }

    keys_of(q->key, sh->context->options.space, spec->name, KEYS_DUE);
    if (!queue_enter_site(q, sh)) {
        share_end(&q->share);
        mem_free(q);
        return NULL;
    }

    q->shared = sh;
    q->pattern = spec->pattern;
    q->has_handler = spec->handler;
    q->asked = spec->asked;
    q->unused = spec->unused;
    q->unused_arg = spec->unused_arg;
    memcpy(q->name, spec->name, strlen(spec->name) + 1);
    list_init(&q->node);
    timer_init(&q->pause, sh->context->loop, on_pause_over, q);
    gate_init(&q->gate, sh->context->loop, on_gate_over, q);

    struct reclaim_spec reclaim = {.script = sh->script,
                                   .leases = &sh->leases,
                                   .key = span_of(q->key),
                                   .holder = span_of(sh->name),
                                   .done = on_reclaimed,
                                   .arg = q};
    reclaim_init(&q->reclaim, &reclaim);

    queue_start_pulls(q);
    queue_start_delivery(q, spec);
    queue_start_sweep(q);
    if (!q->asked) {
        queue_hear(q);
        queue_hint(q, LAPSE_VIA_SWEEP);
    }

    return q;
}

void queue_up(struct queue *q)
{
    bool first_time = !q->was_up;

    q->was_up = true;
    sweep_heard(&q->sweep);
    gate_open(&q->gate);
    if (!first_time) {
        queue_reclaim(q);
    } else if (!q->asked) {
        queue_claim(q, LAPSE_VIA_SWEEP);
    }
}

void queue_move(struct queue *q, struct site *to)
{
    q->site->n_queues--;
    q->site = to;
    to->n_queues++;

    if (q->hears) {
        alarm_move(&q->alarm, &to->alarms);
        watch_move(&q->watch, &to->ear);
        if (eviction_forbids_claims(&to->eviction)) {
            eviction_check(&to->eviction, span_of(q->key));
        }
    }
}

void queue_stop(struct queue *q)
{
    struct shared *sh = q->shared;

    q->stopped = true;
    reclaim_stop(&q->reclaim);
    share_leave_backlog(&q->share);
    queue_withdraw_claim(q);
    if (q->hears) {
        watch_stop(&q->watch);
    }
    queue_stop_timers(q);
    pulls_close(&q->pulls);
    leases_release_queued(&sh->leases, q);
    queue_part_ended(q);
}

void queue_end(struct queue *q)
{
    if (q->hears) {
        watch_end(&q->watch);
    }
    queue_stop_timers(q);
    pulls_close(&q->pulls);
}

bool queue_is_idle(const struct queue *q)
{
    bool hints_pending = watch_pending(&q->watch) || alarm_pending(&q->alarm) ||
                         sweep_pending(&q->sweep) || trim_pending(&q->trim);

    return share_unused(&q->share) && !reclaim_on(&q->reclaim) && !hints_pending;
}

bool queue_is_empty(const struct queue *q)
{
    return sweep_found_none(&q->sweep) && share_unused(&q->share);
}

void queue_free(struct queue *q)
{
    list_remove(&q->node);
    reclaim_free(&q->reclaim);
    watch_free(&q->watch);
    share_end(&q->share);
    q->site->n_queues--;
    mem_free(q);
}
