/* SPDX-License-Identifier: MIT */
/* A webhook is delivered, and while its receiver is out of order it is retried after longer and
 * longer delays. The back-off belongs to the job; what went wrong is kept with it, and after the
 * last try it is dead, for people to look at.
 *
 *     lapse dev                                 prints the URL of a Redis to try things on
 *     LAPSE_URL=unix://... webhook_retry        in another terminal
 *
 * The receiver answers 503 twice and then 200. post() stands for an HTTP client in the same loop:
 * its answer comes later, and until then the job is held, its lease renewed by the library. */
#include <ev.h>
#include <lapse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int err, const char *what)
{
    if (err) {
        fprintf(stderr, "webhook_retry: %s: %s\n", what, lapse_strerror(err));
        exit(1);
    }
}

static void on_log(int level, const char *line, void *arg)
{
    (void)level;
    (void)arg;
    fprintf(stderr, "webhook_retry: %s\n", line);
}

/* ---- the HTTP client ---- */
struct post {
    ev_timer timer; /* an HTTP client would have its socket here */
    struct lapse_job *job;
};

static void on_delivered(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)job;
    (void)arg;
    check(err, "settling the webhook");
    lapse_close(l, 1000, NULL, NULL); /* a server would go on */
}

static void on_answer(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct post *post = timer->data;
    struct lapse_job *job = post->job;
    int status = lapse_job_try(job) < 3 ? 503 : 200;
    char reason[32];

    (void)loop;
    (void)events;
    free(post);
    printf("%s: try %u of %u: %d\n", lapse_job_id(job), lapse_job_try(job), lapse_job_tries(job),
           status);

    snprintf(reason, sizeof reason, "HTTP %d", status);
    if (status == 200) {
        lapse_done(job, on_delivered, NULL);
    } else if (status == 410) {
        lapse_fail(job, reason, NULL, NULL); /* it will never work: dead at once */
    } else {
        lapse_retry(job, LAPSE_BACKOFF, reason, NULL, NULL);
    }
}

static void post(struct ev_loop *loop, struct lapse_job *job)
{
    struct post *post = malloc(sizeof *post);

    if (!post) {
        lapse_retry(job, LAPSE_BACKOFF, "out of memory", NULL, NULL);
        return;
    }

    post->job = job;
    ev_timer_init(&post->timer, on_answer, 0.05, 0);
    post->timer.data = post;
    ev_timer_start(loop, &post->timer);
}

/* ---- the listener ---- */
static void on_due(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct ev_loop *loop = arg;
    const char *reason = lapse_job_reason(job);

    (void)l;
    if (*reason) {
        printf("%s: again, after %s\n", lapse_job_id(job), reason);
    }
    post(loop, job);
}

/* ---- the producer ---- */
static void on_scheduled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)arg;
    check(err, "scheduling");
    printf("%s: scheduled\n", lapse_job_id(job));
}

static void schedule(struct lapse *l)
{
    static const char body[] = "{\"url\":\"https://example.com/hook\",\"event\":\"paid\"}";
    struct lapse_spec spec = lapse_spec_init();

    spec.queue = "webhooks";
    spec.id = "hook-7";
    spec.body = body;
    spec.body_len = strlen(body);
    spec.tries = 5;
    spec.backoff_ms = 400; /* then about 800, 1600, ... */
    spec.on_conflict = LAPSE_REPLACE;
    check(lapse_schedule(l, &spec, on_scheduled, NULL), "scheduling");
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
    check(lapse_listen(l, "webhooks", NULL, on_due, loop), "listening");

    schedule(l);
    ev_run(loop, 0); /* returns when the handle is closed */

    return 0;
}
