/* SPDX-License-Identifier: MIT */
/* The first program of README.md, which shows this file. */
#include <ev.h>
#include <lapse.h>
#include <stdio.h>
#include <stdlib.h>

static void on_log(int level, const char *line, void *arg)
{
    (void)level;
    (void)arg;
    fprintf(stderr, "%s\n", line);
}

static void on_idle(struct lapse *l, struct lapse_job *job, void *arg)
{
    (void)arg;
    printf("session %s was idle for a second\n", lapse_job_id(job));
    lapse_done(job, NULL, NULL);
    lapse_close(l, 1000, NULL, NULL); /* a server would go on */
}

int main(void)
{
    struct lapse *l;
    struct lapse_options options = lapse_options_init();
    struct lapse_spec session = lapse_spec_init();

    options.url = getenv("LAPSE_URL");
    options.log = on_log;
    session.queue = "sessions";
    session.id = "42";
    session.due = lapse_in(1000); /* ms; each click would call lapse_reschedule() */

    if (lapse_open(&l, EV_DEFAULT, &options) || lapse_listen(l, "sessions", NULL, on_idle, NULL) ||
        lapse_schedule(l, &session, NULL, NULL)) {
        return 1;
    }
    return ev_run(EV_DEFAULT, 0);
}
