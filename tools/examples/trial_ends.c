/* SPDX-License-Identifier: MIT */
/* A trial of 30 days: its user is reminded on day 23, 28 and 29, and the account is deleted on day
 * 30, unless the user has paid: then one cancel undoes all that is to come.
 *
 *     lapse dev                              prints the URL of a Redis to try things on
 *     LAPSE_URL=unix://... trial_ends        in another terminal
 *
 * A day lasts 20 ms here. Two trials begin: ann pays after the reminder of day 28, bob never does.
 *
 * The four moments are one series, so there is one id to cancel, and none of them is forgotten.
 * Each moment is a job of its own: a mail that cannot be sent is tried again and keeps no later one
 * waiting. A job may run twice, after a crash, so whether an account is to be deleted is decided by
 * your database: here, by an account that has not paid. */
#include <ev.h>
#include <lapse.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_MS INT64_C(20)

static void check(int err, const char *what)
{
    if (err) {
        fprintf(stderr, "trial_ends: %s: %s\n", what, lapse_strerror(err));
        exit(1);
    }
}

static void on_log(int level, const char *line, void *arg)
{
    (void)level;
    (void)arg;
    fprintf(stderr, "trial_ends: %s\n", line);
}

/* ---- the database ---- */
enum state { TRIAL, PAID, DELETED };
static struct account {
    const char *name;
    enum state state;
} accounts[] = {{"ann", TRIAL}, {"bob", TRIAL}};

static struct account *account_of(const char *name)
{
    for (size_t i = 0; i < sizeof accounts / sizeof *accounts; i++) {
        if (strcmp(accounts[i].name, name) == 0) {
            return &accounts[i];
        }
    }
    return NULL;
}

/* ---- a trial begins ---- */
static void on_begun(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    const struct account *account = arg;

    (void)l;
    (void)job;
    check(err, "beginning a trial");
    printf("%s: the trial begins\n", account->name);
}

static void begin(struct lapse *l, struct account *account)
{
    static const int64_t after_ms[] = {5 * DAY_MS, 6 * DAY_MS, 7 * DAY_MS};
    struct lapse_series moments = lapse_series_init();
    struct lapse_spec trial = lapse_spec_init();

    moments.stages_ms = after_ms; /* day 28, 29 and 30 */
    moments.n_stages = 3;

    trial.queue = "trials";
    trial.id = account->name;
    trial.due = lapse_in(23 * DAY_MS);
    trial.series = &moments;
    trial.on_conflict = LAPSE_KEEP; /* a repeat adds no second trial */
    check(lapse_schedule(l, &trial, on_begun, account), "beginning a trial");
}

/* ---- a user pays ---- */
static void on_cancelled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    const struct account *account = arg;

    (void)l;
    (void)job;
    /* ENOENT: the last moment was before this; its job finds an account that has paid */
    if (err && err != LAPSE_ENOENT) {
        printf("%s: a moment may come: %s\n", account->name, lapse_strerror(err));
    } else {
        printf("%s: nothing is to come any more\n", account->name);
    }
}

static void pay(struct lapse *l, struct account *account)
{
    account->state = PAID;
    printf("%s: has paid\n", account->name);
    check(lapse_cancel(l, "trials", account->name, 0, on_cancelled, account), "paying");
}

/* ---- a moment has come ---- */
static void on_settled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)job;
    (void)arg;
    if (err) {
        printf("settling a job: %s\n", lapse_strerror(err)); /* it runs again */
    }
    if (accounts[0].state == PAID && accounts[1].state == DELETED) {
        lapse_close(l, 1000, NULL, NULL); /* a service would go on */
    }
}

static void on_moment(struct lapse *l, struct lapse_job *job, void *arg)
{
    enum { LAST = 4 };
    static const int days[] = {23, 28, 29, 30};
    struct account *account = account_of(lapse_job_series(job));
    unsigned stage = lapse_job_stage(job);

    (void)arg;
    if (!account || account->state != TRIAL || stage < 1 || stage > LAST) {
        lapse_done(job, on_settled, NULL);
        return;
    }

    if (stage == LAST) {
        account->state = DELETED;
        printf("%s: day %d: deleted\n", account->name, days[stage - 1]);
    } else {
        printf("%s: day %d: a mail, your trial ends soon\n", account->name, days[stage - 1]);
    }
    if (stage == 2 && account == &accounts[0]) {
        pay(l, account);
    }
    lapse_done(job, on_settled, NULL);
}

int main(int argc, char **argv)
{
    struct ev_loop *loop = EV_DEFAULT;
    struct lapse_options options = lapse_options_init();
    struct lapse *l;

    setvbuf(stdout, NULL, _IOLBF, 0);
    options.url = argc > 1 ? argv[1] : getenv("LAPSE_URL");
    options.log = on_log;
    check(lapse_open(&l, loop, &options), "opening");
    check(lapse_listen(l, "trials", NULL, on_moment, NULL), "listening");

    begin(l, &accounts[0]);
    begin(l, &accounts[1]);

    ev_run(loop, 0); /* returns when the handle is closed */

    return 0;
}
