/* SPDX-License-Identifier: MIT */
/* A session ends when it was idle for a while. Logging in schedules its end; each click only
 * reschedules that job, which costs the same however long the session lives.
 *
 *     lapse dev                                 prints the URL of a Redis to try things on
 *     LAPSE_URL=unix://... session_idle         in another terminal
 *
 * A user clicks three times, 300 ms apart, and then stops; the session ends one second after the
 * last click. */
#include <ev.h>
#include <lapse.h>
#include <stdio.h>
#include <stdlib.h>

enum { IDLE_MS = 1000, CLICKS = 3 };
static const char SESSION[] = "session-42";

static void check(int err, const char *what)
{
    if (err) {
        fprintf(stderr, "session_idle: %s: %s\n", what, lapse_strerror(err));
        exit(1);
    }
}

static void on_log(int level, const char *line, void *arg)
{
    (void)level;
    (void)arg;
    fprintf(stderr, "session_idle: %s\n", line);
}

/* ---- the login ---- */
static void on_logged_in(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)arg;
    check(err, "logging in");
    printf("%s begins\n", lapse_job_id(job));
}

static void log_in(struct lapse *l)
{
    struct lapse_spec spec = lapse_spec_init();

    spec.queue = "sessions";
    spec.id = SESSION;
    spec.due = lapse_in(IDLE_MS);
    spec.on_conflict = LAPSE_REPLACE;
    check(lapse_schedule(l, &spec, on_logged_in, NULL), "logging in");
}

/* ---- clicks ---- */
static void on_extended(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)arg;
    if (err == LAPSE_ENOENT || err == LAPSE_EBUSY) {
        printf("%s has ended or is ending: log in again\n", SESSION);
        return;
    }

    check(err, "extending the session");
    printf("%s: a click, it now lives until %lld\n", lapse_job_id(job),
           (long long)lapse_job_due_ms(job));
}

static void on_click(struct ev_loop *loop, ev_timer *timer, int events)
{
    static int clicks;
    struct lapse *l = timer->data;

    (void)events;
    check(lapse_reschedule(l, "sessions", SESSION, lapse_in(IDLE_MS), 0, on_extended, NULL),
          "extending the session");

    if (++clicks == CLICKS) {
        ev_timer_stop(loop, timer);
    }
}

/* ---- the end of a session: in any number of processes that listen ---- */
static void on_ended(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)job;
    (void)arg;
    check(err, "ending the session");
    lapse_close(l, 1000, NULL, NULL); /* a server would go on */
}

static void on_idle(struct lapse *l, struct lapse_job *job, void *arg)
{
    (void)l;
    (void)arg;
    printf("%s was idle for %d ms: logged out\n", lapse_job_id(job), IDLE_MS);
    lapse_done(job, on_ended, NULL);
}

int main(int argc, char **argv)
{
    struct ev_loop *loop = EV_DEFAULT;
    struct lapse_options options = lapse_options_init();
    struct lapse *l;
    ev_timer click;

    setvbuf(stdout, NULL, _IOLBF, 0);
    options.url = argc > 1 ? argv[1] : getenv("LAPSE_URL");
    options.log = on_log;
    check(lapse_open(&l, loop, &options), "opening");
    check(lapse_listen(l, "sessions", NULL, on_idle, NULL), "listening");

    log_in(l);

    ev_timer_init(&click, on_click, 0.3, 0.3);
    click.data = l;
    ev_timer_start(loop, &click);

    ev_run(loop, 0); /* returns when the handle is closed */

    return 0;
}
