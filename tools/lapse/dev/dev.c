/* SPDX-License-Identifier: MIT */
/* lapse dev: a Redis to try things on, and a listener on it, gone when lapse is. The URL is the
 * first line on stdout, so that a script can read it and go on. */
#include "cli/arguments.h"
#include "cli/json.h"
#include "cli/message.h"
#include "cli/url_mask.h"
#include "cli/values.h"
#include "dev/private_redis.h"
#include "listen/listen.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct dev {
    struct listen in;
    const char *conf;
    bool cluster;
    struct private_redis redis;
    char url[PRIVATE_URL]; /* for the listener, which blots it */
    ev_io leash;
    ev_prepare ready;
};

/* ---- the servers ---- */
static void report_ended(const struct dev *d, int which)
{
    if (d->cluster && which >= 0) {
        message_print("the node 127.0.0.1:%d exited; %d of %d run", d->redis.servers[which].port,
                      d->redis.n_running, d->redis.n);
    }
}

/* A cluster goes on without some of its nodes: to see how is what it is for. */
static void on_server_ended(struct ev_loop *loop, ev_io *w, int events)
{
    struct dev *d = w->data;
    int which = private_redis_heard(&d->redis);

    (void)events;
    report_ended(d, which);
    if (which != JANITOR_SILENT && d->redis.n_running == 0) {
        ev_io_stop(loop, w);
        message_print("the private redis-server exited");
        listen_stop(&d->in, DOWN);
    }
}

/* The line with the URL, to be freed; NULL: out of memory. JSON only where it was asked for,
 * because a script reads the first line as it is. */
static char *url_line(const struct dev *d, size_t *len)
{
    struct json j;
    char *text = NULL;
    FILE *to = open_memstream(&text, len);

    if (!to) {
        return NULL;
    }

    if (d->in.g->json) {
        json_begin(&j, to);
        json_text(&j, "url", d->redis.url);
        json_end(&j);
    } else {
        fprintf(to, "%s\n", d->redis.url);
    }

    if (fclose(to)) {
        free(text);
        return NULL;
    }

    return text;
}

/* Called by the loop, because a reader of the URL may stop us at once, and by then the signals must
 * be watched. A terminal that was stopped is not waited for: it gets the URL as it gets the lines
 * of jobs. */
static void on_loop_ready(struct ev_loop *loop, ev_prepare *w, int events)
{
    struct dev *d = w->data;
    size_t len = 0;
    char *text = url_line(d, &len);

    (void)events;
    ev_prepare_stop(loop, w);
    if (!text || !lines_add_text(&d->in.lines, text, len)) {
        message_print("out of memory");
        listen_stop(&d->in, INTERNAL);
    }
}

static int dev_listen(struct dev *d)
{
    struct ev_loop *loop = ev_default_loop(0);
    int rc;

    ev_io_init(&d->leash, on_server_ended, d->redis.janitor.leash, EV_READ);
    ev_prepare_init(&d->ready, on_loop_ready);
    d->leash.data = d;
    d->ready.data = d;
    ev_io_start(loop, &d->leash);
    ev_prepare_start(loop, &d->ready);

    rc = listen_run(&d->in);

    ev_prepare_stop(loop, &d->ready);
    ev_io_stop(loop, &d->leash);

    return rc;
}

/* ---- the command ---- */
static int dev_start(struct dev *d)
{
    if (d->cluster) {
        return private_cluster_start(&d->redis, d->conf);
    }
    return private_redis_start(&d->redis, d->conf);
}

static int dev_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct dev d = {.in.grace_ms = -1};
    int rc = arguments_read(cmd, g, &d, args);

    if (rc) {
        return rc;
    }

    if (g->url || g->password_file) {
        return usage_errorf("option %s is not allowed: dev starts a Redis of its own, and prints "
                            "its URL",
                            g->url ? "--url" : "--password-file");
    }

    rc = listen_prepare(&d.in, g, args);
    if (rc) {
        return rc;
    }

    url_blot_env();
    unsetenv("LAPSE_URL");
    unsetenv("LAPSE_PASSWORD");

    rc = dev_start(&d);
    if (rc) {
        listen_free(&d.in);
        return rc;
    }

    memcpy(d.url, d.redis.url, sizeof d.url);
    g->url = d.url;
    g->is_private = true;
    rc = dev_listen(&d);
    private_redis_stop(&d.redis);

    return rc;
}

#define AT(field) offsetof(struct dev, field)
static const struct opt dev_options[] = {
    {"conf", 0, "FILE", set_text, AT(conf),
     "configuration of the server; default: ./redis.conf if nobody else could have put it "
     "there, else the installed one"},
    {"cluster", 0, NULL, set_switch, AT(cluster),
     "three masters with a replica each, instead of one server"},
    {"jobs", 'j', "N", set_count, AT(in.max_jobs), "as for lapse listen"},
    {"exec", 0, NULL, set_switch, AT(in.exec_given), "as for lapse listen"},
    {"count", 'n', "N", set_count, AT(in.count), "as for lapse listen"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

const struct command cmd_dev = {
    .name = "dev",
    .usage = "[QUEUE...] [--cluster] [--exec -- CMD ARG...]",
    .summary = "start a private Redis and a listener, to try things out",
    .min = 0,
    .max = INT_MAX,
    .opts = dev_options,
    .text = "Starts a redis-server on a Unix socket in a new folder that only you can enter\n"
            "(under XDG_RUNTIME_DIR, TMPDIR or /tmp), prints its URL as the first line, and\n"
            "listens on the queues, if any, as lapse listen does. When it ends, in whatever\n"
            "way, the server and the folder are gone. With --json the first line is a JSON\n"
            "object, too: url.\n"
            "\n"
            "With --cluster it is a Redis Cluster of six servers on ports of 127.0.0.1, with a\n"
            "password, which is in the URL. Kill one to see what becomes of jobs: lapse dev says\n"
            "which one it was, and goes on until none is left.\n"
            "\n"
            "examples:\n"
            "  lapse dev orders\n"
            "  lapse dev --cluster orders\n"
            "  lapse schedule orders --in 2s hello -u unix:///tmp/lapse-k3XbQ2/redis.sock\n",
    .run = dev_run,
};
