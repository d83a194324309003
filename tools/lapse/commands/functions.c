/* SPDX-License-Identifier: MIT */
/* lapse functions. The library itself sends its scripts by EVALSHA and needs none of this. */
#include "cli/arguments.h"
#include "cli/json.h"
#include "cli/message.h"
#include "cli/url_mask.h"
#include "cli/values.h"
#include "client/cluster_sync.h"
#include "client/redis_sync.h"
#include "redis/redis_error.h"
#include "tool_functions.h"
#include <hiredis/hiredis.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLY_MS = 5000 };

struct functions_command {
    bool load;
    bool replace; /* a library of that name, whatever is in it */
    struct globals *g;
    int64_t reply_ms;
    struct redis_sync redis;
    struct cluster_sync cluster;
    const char *master; /* of the cluster; NULL: there is no cluster */
};

/* How messages call the server. */
static const char *functions_server(const struct functions_command *f)
{
    return f->master ? f->master : printable(f->g->shown_url);
}

/* ---- what Redis has ---- */
static redisReply *functions_ask(struct functions_command *f, int argc, const char *const *argv)
{
    return redis_sync_command(&f->redis, argc, argv, NULL);
}

static bool is_text_of(const redisReply *r, const char *text)
{
    return r->type == REDIS_REPLY_STRING && strcmp(r->str, text) == 0;
}

/* The text of our library in the reply to FUNCTION LIST, which is a list of names and values; NULL:
 * it is not there. */
static const char *code_in(const redisReply *list)
{
    const redisReply *library =
        list->type == REDIS_REPLY_ARRAY && list->elements == 1 ? list->element[0] : NULL;

    for (size_t i = 0; library && i + 1 < library->elements; i += 2) {
        const redisReply *value = library->element[i + 1];
        if (is_text_of(library->element[i], "library_code") && value->type == REDIS_REPLY_STRING) {
            return value->str;
        }
    }
    return NULL;
}

/* ---- what is printed ---- */
static int print_loaded(const struct functions_command *f, bool loaded)
{
    struct json j;

    if (f->g->text && f->master) {
        printf("%s: ", f->master);
    }
    if (f->g->text) {
        printf("%s %s\n", functions_name, loaded ? "is loaded" : "was loaded already");
        return DONE;
    }

    json_begin(&j, stdout);
    json_text(&j, "library", functions_name);
    json_bool(&j, "loaded", loaded);
    if (f->master) {
        json_text(&j, "server", f->master);
    }
    json_end(&j);
    return DONE;
}

static const char *advice(const struct functions_command *f, enum redis_error kind)
{
    if (f->master && kind == REDIS_ERROR_READ_ONLY) {
        return "it is a replica by now; repeat the command";
    }
    return redis_error_advice(kind);
}

static int report_error(const struct functions_command *f, const redisReply *r)
{
    const char *server = functions_server(f);
    enum redis_error kind = redis_error_of(span_of(r->str));

    switch (kind) {
    case REDIS_ERROR_NO_COMMAND:
        message_print("%s: it has no functions; Redis 7.0 or later is needed", server);
        return DOWN;
    case REDIS_ERROR_DENIED:
    case REDIS_ERROR_NO_LOGIN:
        message_print("%s: %s; to load functions takes +function|load +function|list", server,
                      printable(r->str));
        return DENIED;
    case REDIS_ERROR_OTHER: message_print("%s: %s", server, printable(r->str)); return DOWN;
    default: message_print("%s: %s: %s", server, printable(r->str), advice(f, kind)); return DOWN;
    }
}

/* ---- loading ---- */
/* Redis refused to load ours, because there is one: is it the same? */
static int functions_compare(struct functions_command *f, const char *refusal)
{
    redisReply *r = functions_ask(
        f, 5, (const char *[]){"FUNCTION", "LIST", "LIBRARYNAME", functions_name, "WITHCODE"});
    int code = DOWN;

    if (!r) {
        return code;
    }

    const char *there = code_in(r);

    if (r->type == REDIS_REPLY_ERROR) {
        code = report_error(f, r);
    } else if (!there) {
        /* a function of ours stands in another library */
        message_print("%s: %s", functions_server(f), printable(refusal));
        code = ANSWER_NO;
    } else if (strcmp(there, functions_text) == 0) {
        code = print_loaded(f, false);
    } else {
        message_print("%s: there is a library %s with another text; --replace replaces it",
                      functions_server(f), functions_name);
        code = ANSWER_NO;
    }

    freeReplyObject(r);
    return code;
}

static int functions_load(struct functions_command *f)
{
    redisReply *r;
    int code;

    if (f->replace) {
        r = functions_ask(f, 4, (const char *[]){"FUNCTION", "LOAD", "REPLACE", functions_text});
    } else {
        r = functions_ask(f, 3, (const char *[]){"FUNCTION", "LOAD", functions_text});
    }
    if (!r) {
        return DOWN;
    }

    if (r->type != REDIS_REPLY_ERROR) {
        code = print_loaded(f, true);
    } else if (strstr(r->str, "already exists")) {
        code = functions_compare(f, r->str);
    } else {
        code = report_error(f, r);
    }

    freeReplyObject(r);
    return code;
}

/* ---- one server, or each master of a cluster ---- */
static int functions_load_into_one(struct functions_command *f)
{
    const struct globals *g = f->g;
    int code = redis_sync_open(&f->redis, &g->opts, g->secret_url, g->shown_url, f->reply_ms,
                               g->connect_wait_ms);

    if (!code) {
        code = functions_load(f);
    }
    redis_sync_close(&f->redis);
    return code;
}

static int functions_load_into_master(struct functions_command *f, int node)
{
    int code = cluster_sync_connect(&f->cluster, node, &f->redis);

    f->master = f->cluster.nodes[node].place;
    if (code) {
        const char *what = code == DOWN ? "cannot be reached" : "does not let this user in";
        message_print("%s: %s: %s", f->master, what, printable(f->redis.why));
        return code;
    }

    f->redis.shown = f->master;
    f->redis.quiet = false;
    code = functions_load(f);
    redis_sync_close(&f->redis);
    return code;
}

/* The exit code is that of the worst, which is the highest. */
static int functions_load_into_all(struct functions_command *f)
{
    struct cluster_sync *c = &f->cluster;
    int worst;

    c->url = f->g->secret_url;
    c->shown = f->g->shown_url;
    c->reply_ms = f->reply_ms;
    worst = cluster_sync_open(c, &f->g->opts, f->g->connect_wait_ms);
    for (int i = 0, n = worst ? 0 : c->n; i < n; i++) {
        if (c->nodes[i].n_slots > 0) {
            int code = functions_load_into_master(f, i);
            worst = code > worst ? code : worst;
        }
    }

    cluster_sync_close(c);
    return worst;
}

static int functions_connect_and_load(struct functions_command *f)
{
    int code = url_make(f->g);

    if (code) {
        return code;
    }

    f->reply_ms = f->g->opts.reply_ms ? f->g->opts.reply_ms : REPLY_MS;
    if (cluster_sync_is_url(f->g->secret_url)) {
        code = functions_load_into_all(f);
    } else {
        code = functions_load_into_one(f);
    }
    url_wipe(f->g);
    return code;
}

static int functions_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct functions_command f = {.g = g};
    int code = arguments_read(cmd, g, &f, args);

    if (code) {
        return code;
    }
    if (f.replace && !f.load) {
        return usage_errorf("option --replace needs --load");
    }
    if (g->json && !f.load) {
        return usage_error("--format", "json", "the functions are printed as text only");
    }

    if (!f.load) {
        fputs(functions_text, stdout);
        return DONE;
    }

    return functions_connect_and_load(&f);
}

static const struct opt opts[] = {
    {"load", 0, NULL, set_switch, offsetof(struct functions_command, load),
     "load them into Redis instead of printing them"},
    {"replace", 0, NULL, set_switch, offsetof(struct functions_command, replace),
     "with --load: also if there is a library of this name with another text"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

const struct command cmd_functions = {
    .name = "functions",
    .usage = "[--load [--replace]]",
    .summary = "print or load the scripts as functions, for clients in other languages",
    .min = 0,
    .max = 0,
    .opts = opts,
    .text =
        "Prints a library of Redis functions: each script of lapse is one, such as\n"
        "lapse1_schedule. lapse-protocol(7) has their keys, arguments and replies. The 1 stays\n"
        "as long as the arguments do. lapse itself does not need them.\n"
        "\n"
        "--load prints a JSON object: library, and loaded, which is false if the same library\n"
        "was there. Replicas and the files of a Redis have its functions too. With the URL of a\n"
        "cluster they are loaded into each master that has slots: one object each, which also\n"
        "says the server. A master that fails is named, the others are loaded all the same, and\n"
        "the exit code is the highest of all.\n"
        "\n"
        "examples:\n"
        "  lapse functions --load\n"
        "  lapse functions > lapse1.lua\n",
    .exits = "  1    a library of this name has another text; nothing was changed there\n",
    .run = functions_run,
};
