/* SPDX-License-Identifier: MIT */
/* What a claim brought becomes leases: those of a handler's jobs begin with its turn, and those of
 * jobs that were asked for wait for the end of the pull. A job that no pull wants any more is given
 * back; where nobody wants any, there is none, as the claim has asked for none. */
#include "listen/delivery.h"
#include "listen/told.h"
#include "script/tally.h"

static int64_t lateness_us(const struct job_row *row)
{
    struct attempt attempt;

    return attempt_decode(&attempt, row->attempt) ? attempt.claimed_us - attempt.due_ms * 1000 : 0;
}

static void delivery_count(struct delivery *d, enum lapse_via via, int64_t late_us)
{
    struct lapse_stats *stats = &d->context->stats;

    stats->claimed++;
    histogram_add_us(&d->context->late[via], late_us);
    tally_late(d->context->tallies, d->queue, via, late_us);
    switch (via) {
    case LAPSE_VIA_EVENT: stats->via_event++; break;
    case LAPSE_VIA_NOTICE: stats->via_notice++; break;
    case LAPSE_VIA_ALARM: stats->via_alarm++; break;
    case LAPSE_VIA_SWEEP: stats->via_sweep++; break;
    case LAPSE_VIA_TOUCH: stats->via_touch++; break;
    case LAPSE_VIA_ASKED: stats->via_asked++; break;
    default: break;
    }
}

/* surplus: for a job that nobody wants any more. ENOMEM. */
static int delivery_take_job(struct delivery *d, const struct claim *c, const struct job_row *row,
                             struct list *surplus)
{
    struct pull *p = d->pulls ? pulls_taker(d->pulls, c) : NULL;
    struct lease_spec spec = {.owner = d->owner,
                              .queue = d->queue,
                              .key = d->key,
                              .row = row,
                              .via = claim_via(c, row),
                              .claimed_us = claim_sent_us(c),
                              .length_ms = c->lease_ms,
                              .handler = d->handler,
                              .handler_arg = d->handler_arg};

    if (d->pulls) {
        spec.to = p ? &p->leases : surplus;
    }
    if (leases_add(d->leases, &spec)) {
        log_line(&d->context->log, LOG_MEMORY, LOG_ERR,
                 "out of memory: a job of queue %s is returned, its handler has not begun",
                 d->queue);
        return LAPSE_ENOMEM;
    }

    share_hold(d->share);
    delivery_count(d, spec.via, lateness_us(row));
    d->has_priorities = d->has_priorities || job_row_priority(row) > 0;
    if (p) {
        pull_got(p, spec.claimed_us);
    }

    return 0;
}

static void on_told(void *arg)
{
    struct delivery *d = arg;
    d->leases->events->ended(d->leases->arg, d->owner);
}

/* It does not run, as its attributes say. Until the event function has heard of it, it keeps a
 * slot: so no more of them come than are heard of. */
static void delivery_note_verdict(struct delivery *d, const struct job_row *row)
{
    struct lapse_stats *stats = &d->context->stats;
    struct told_end end = {on_told, d};
    enum lapse_event what = LAPSE_EVENT_DIED;

    if (row->state == JOB_SKIPPED) {
        what = LAPSE_EVENT_SKIPPED;
        stats->skipped++;
        tally_count(d->context->tallies, d->queue, PAST_SKIPPED, 1);
    } else {
        stats->failed++;
        tally_count(d->context->tallies, d->queue, PAST_DEAD, 1);
    }

    if (told_of_row(d->leases->tasks, d->context, what, d->queue, row, &end)) {
        share_hold(d->share);
    }
}

/* It is no job: a series has few moments left, or none. */
static void delivery_note_short(struct delivery *d, const struct job_row *row)
{
    struct record record;
    struct attempt attempt;

    if (record_decode(&record, row->record) && attempt_decode(&attempt, row->attempt)) {
        struct calendar_series s = {.queue = d->queue,
                                    .key = d->key,
                                    .id = row->id,
                                    .attributes = record.attributes,
                                    .next_ms = row->score_ms,
                                    .after_ms = attempt.due_ms,
                                    .is_dry = attempt.is_dry};
        calendars_refill(d->calendars, &s);
    }
}

int delivery_take(struct delivery *d, const struct claim *c, const struct claim_result *got)
{
    struct context *context = d->context;
    struct list surplus;
    bool takes = d->handler || d->pulls;
    int err = 0;

    list_init(&surplus);
    for (size_t i = 0; i < got->n_jobs; i++) {
        struct job_row row;
        if (!claim_job(got, i, &row)) {
            continue;
        }
        if (row.state == LAPSE_WAITING) {
            delivery_note_short(d, &row);
        } else if (row.state != LAPSE_RUNNING) {
            delivery_note_verdict(d, &row);
        } else if (takes && delivery_take_job(d, c, &row, &surplus)) {
            err = LAPSE_ENOMEM;
        }
    }
    leases_release(&surplus);

    if (got->n_jobs == 0 && got->n_forwarded == 0 && c->kind != CLAIM_TOUCH) {
        context->stats.empty_claims++;
    }
    tally_count(context->tallies, d->queue, PAST_DEAD, (uint64_t)got->n_unreadable);
    if (got->n_unreadable || got->n_lost) {
        log_line(&context->log, LOG_DATA, LOG_ERR,
                 "queue %s: %lld jobs in a format this version cannot read are dead now, %lld "
                 "without a record are gone",
                 d->queue, (long long)got->n_unreadable, (long long)got->n_lost);
    }

    return err;
}

void delivery_note_forwarded(struct delivery *d, int64_t n)
{
    d->context->stats.forwarded += (uint64_t)n;
    tally_count(d->context->tallies, d->queue, PAST_FORWARDED, (uint64_t)n);
    if (d->handler && !d->said_forwarded) {
        d->said_forwarded = true;
        log_line(&d->context->log, LOG_FORWARD, LOG_WARNING,
                 "queue %s: its handler is not called, for its settings say that Redis forwards "
                 "the jobs",
                 d->queue);
    }
}
