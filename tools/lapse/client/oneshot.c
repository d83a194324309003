/* SPDX-License-Identifier: MIT */
#include "client/oneshot.h"
#include "cli/message.h"
#include "cli/values.h"
#include <stdio.h>
#include <string.h>

static bool has_time_left(const struct oneshot *o)
{
    return !client_is_denied(&o->c) && monotonic_ms() < o->until_ms;
}

/* The close ends all requests with ECLOSED, and oneshot_replied() reports the cause. */
static void oneshot_refused(struct client *c)
{
    struct oneshot *o = (struct oneshot *)c;

    if (client_is_denied(c) || c->evicts || (c->away && !has_time_left(o))) {
        client_close(c, 0);
    }
}

static void oneshot_send(struct oneshot *o)
{
    int err = o->send(o);

    if (err) {
        client_set_exit_code(&o->c, client_report(&o->c, err, o->queue));
    }

    if (!o->n_open) {
        client_close(&o->c, 0);
    }
}

int oneshot_run(struct oneshot *o, struct globals *g, int (*send)(struct oneshot *o))
{
    int64_t wait_ms = g->connect_wait_ms > 0 ? g->connect_wait_ms : 0;
    int err;

    o->c.one_shot = true;
    err = client_open(&o->c, g, oneshot_refused);
    if (err) {
        return err;
    }

    o->g = g;
    o->send = send;
    o->until_ms = monotonic_ms() + wait_ms;
    oneshot_send(o);

    return client_run(&o->c);
}

int oneshot_sent(struct oneshot *o, int err)
{
    if (!err) {
        o->n_open++;
    }
    return err;
}

void oneshot_ended(struct oneshot *o)
{
    o->n_open--;
    o->n_answered++;
    if (!o->n_open) {
        client_close(&o->c, o->grace_ms);
    }
}

static void about_job(char *out, size_t size, const char *queue, const char *id)
{
    if (!id) {
        snprintf(out, size, "%s", queue);
    } else if (strstr(id, "://")) {
        snprintf(out, size, "%s/%s", queue, printable_argument(id));
    } else {
        snprintf(out, size, "%s/%s", queue, id);
    }
}

/* It did not come to Redis, or changes nothing there. */
static bool may_be_sent_again(const struct oneshot *o, int err)
{
    return err == LAPSE_EDOWN || (lapse_outcome_unknown(err) && !o->c.unknown_advice);
}

bool oneshot_replied(struct oneshot *o, int err, const char *queue, const char *id)
{
    char about[400];
    bool again = may_be_sent_again(o, err);

    o->n_open--;
    if (!again) {
        o->n_answered++;
    }

    /* reply_ms is over, but not the time that the user gives Redis to come up */
    if (again && !o->n_answered && has_time_left(o)) {
        if (!o->n_open) {
            oneshot_send(o);
        }
        return false;
    }

    about_job(about, sizeof about, queue, id);
    client_set_exit_code(&o->c, client_report(&o->c, err, about));
    if (!o->n_open) {
        client_close(&o->c, o->grace_ms);
    }

    return err == 0;
}
