/* SPDX-License-Identifier: MIT */
/* lapse dev: a Redis to try things on, and a listener on it, gone when lapse is. The URL is the
 * first line on stdout, so that a script can read it and go on. */
#include "cli/arguments.h"
#include "cli/json.h"
#include "cli/message.h"
#include "cli/url_mask.h"
#include "cli/values.h"
#include "listen/listen.h"
#include "dev/private_redis.h"
#include <limits.h>
#include <stdlib.h>

struct dev {
    struct listen in; /* first: listen_opts set its fields */
    const char *conf;
    struct server server;
    ev_io leash;
    ev_prepare ready;
};

static void on_server_ended(struct ev_loop *loop, ev_io *w, int events)
{
    struct dev *d = w->data;
    (void)events;
    ev_io_stop(loop, w);
    message_print("the private redis-server ended");
    listen_stop(&d->in, DOWN);
}

/* JSON only where it was asked for: a script reads the first line as it is. A terminal that was
 * stopped is not waited for: it gets the line as it gets those of jobs. 0, or no memory. */
static int print_url(struct dev *d)
{
    struct json j;
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);

    if (!to) {
        return -1;
    }

    if (d->in.g->json) {
        json_begin(&j, to);
        json_text(&j, "url", d->server.url);
        json_end(&j);
    } else {
        fprintf(to, "%s\n", d->server.url);
    }

    if (fclose(to)) {
        free(text);
        return -1;
    }

    return lines_add_text(&d->in.lines, text, len);
}

/* From the loop: whoever reads the URL may stop us at once, and then the signals are watched. */
static void on_ready(struct ev_loop *loop, ev_prepare *w, int events)
{
    struct dev *d = w->data;

    (void)events;
    ev_prepare_stop(loop, w);
    if (print_url(d)) {
        message_print("out of memory");
        listen_stop(&d->in, INTERNAL);
    }
}

static int run(const struct command *cmd, struct globals *g, struct arguments *w)
{
    struct dev d = {.in.grace_ms = -1};
    int rc = arguments_read(cmd, g, &d, w);

    if (!rc && (g->url || g->password_file)) {
        message_print("%s: dev brings a Redis of its own, without a password",
                      g->url ? "--url" : "--password-file");
        rc = USAGE;
    }

    if (rc || (rc = listen_check(&d.in, g, w))) {
        return rc;
    }

    url_blot_env();
    unsetenv("LAPSE_URL");
    unsetenv("LAPSE_PASSWORD");
    if ((rc = server_start(&d.server, d.conf))) {
        exec_free(&d.in.exec);
        return rc;
    }

    g->url = d.server.url;

    struct ev_loop *loop = ev_default_loop(0);
    ev_io_init(&d.leash, on_server_ended, d.server.leash, EV_READ);
    ev_prepare_init(&d.ready, on_ready);
    d.leash.data = d.ready.data = &d;
    ev_io_start(loop, &d.leash);
    ev_prepare_start(loop, &d.ready);
    rc = listen_run(&d.in);
    ev_prepare_stop(loop, &d.ready);
    ev_io_stop(loop, &d.leash);
    server_stop(&d.server);

    return rc;
}

#define IN(field) offsetof(struct dev, in.field)
static const struct opt opts[] = {
    {"conf", 0, "FILE", set_text, offsetof(struct dev, conf),
     "configuration; ./redis.conf if nobody else could have put\nit there, else the installed one"},
    {"jobs", 'j', "N", set_count, IN(jobs), "as for lapse listen"},
    {"exec", 0, NULL, set_switch, IN(exec_given), "as for lapse listen"},
    {"count", 'n', "N", set_count, IN(count), "as for lapse listen"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

const struct command cmd_dev = {
    "dev",
    "[QUEUE...] [--exec -- CMD ARG...]",
    "a private Redis and a listener on it, for trying things",
    0,
    INT_MAX,
    opts,
    "Starts a redis-server of its own on a Unix socket in a fresh folder that only you can enter\n"
    "(under XDG_RUNTIME_DIR, TMPDIR or /tmp), prints its URL as the first line, and listens on\n"
    "the queues, if any, as lapse listen does. When it ends, in whatever way, the server and the\n"
    "folder are gone. With --json the first line is an object, too: url.\n"
    "\nexamples:\n"
    "  lapse dev orders\n"
    "  LAPSE_URL=unix:///tmp/lapse-k3XbQ2/redis.sock lapse schedule orders --in 2s hello\n",
    NULL,
    run,
};
