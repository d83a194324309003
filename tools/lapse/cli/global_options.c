/* SPDX-License-Identifier: MIT */
#include "cli/global_options.h"
#include "cli/message.h"
#include "cli/suggest.h"
#include "cli/url_mask.h"
#include "cli/values.h"
#include <stdio.h>
#include <string.h>

/* The last of several is used; those before it do not stay readable in argv. */
static int set_url(const struct opt *o, char *value, void *field)
{
    char **url = field;

    (void)o;
    if (*url) {
        url_blot(*url);
    }

    *url = value;
    return 0;
}

static int set_format(const struct opt *o, char *value, void *field)
{
    struct globals *g = field;

    (void)o;
    g->text = strcmp(value, "text") == 0;
    g->json = strcmp(value, "json") == 0;

    if (!g->text && !g->json) {
        return usage_error("--format", value, "must be json or text");
    }
    return 0;
}

static int set_json(const struct opt *o, char *value, void *field)
{
    struct globals *g = field;

    (void)o;
    (void)value;
    g->text = false;
    g->json = true;
    return 0;
}

/* ---- -o ---- */
static int report_unknown_option(const char *name, const char *value)
{
    static const char *const names[] = {
#define LAPSE_X(name, ...) #name,
        LAPSE_OPTIONS(LAPSE_X)
#undef LAPSE_X
    };
    struct suggestion s = suggestion_for(name);
    char what[64];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        suggestion_consider(&s, names[i]);
    }

    if (s.name && s.distance == 0) {
        snprintf(what, sizeof what, "-o %s", name);
        return usage_error(what, value, "invalid or out of range; see lapse(3)");
    }

    if (s.name) {
        return usage_errorf("-o '%s': unknown option; did you mean '%s'?", printable_argument(name),
                            s.name);
    }
    return usage_errorf("-o '%s': unknown option; see lapse(3)", printable_argument(name));
}

static int set_library_option(const struct opt *o, char *value, void *field)
{
    struct globals *g = field;
    char *equals = strchr(value, '=');

    if (!equals || equals == value) {
        return usage_error("-o", value, "must be NAME=VALUE, such as lease_ms=10s");
    }

    *equals = '\0';
    if (strcmp(value, "url") == 0) {
        return set_url(o, equals + 1, &g->url);
    }
    if (lapse_options_set(&g->opts, value, equals + 1)) {
        return report_unknown_option(value, equals + 1);
    }

    return 0;
}

const struct opt no_options[] = {{NULL, 0, NULL, NULL, 0, NULL}};
const struct opt global_options[] = {
    {"url", 'u', "URL", set_url, offsetof(struct globals, url),
     "redis://[[user]:password@]host[:port][/db], the same with rediss:// for TLS (see -o tls_ca), "
     "unix://[[user]:password@]/path[?db=n], or "
     "redis+sentinel://[[user]:password@]host[:port][,host[:port]...]/MASTER[?db=n&"
     "sentinel_user=user&sentinel_password=password], or "
     "redis+cluster://[[user]:password@]host[:port][,host[:port]...]; default: LAPSE_URL, else "
     "redis://127.0.0.1:6379"},
    {"option", 'o', "NAME=VALUE", set_library_option, 0,
     "set an option of the library, such as lease_ms=10s (see lapse(3)); may be repeated"},
    {"password-file", 0, "FILE", set_text, offsetof(struct globals, password_file),
     "read the password from a file that only you can read, or from stdin (-); default: "
     "LAPSE_PASSWORD"},
    {"connect-wait", 0, "DURATION", set_duration, offsetof(struct globals, connect_wait_ms),
     "how long to wait for a Redis that cannot be reached; default: 0s, but listen waits "
     "without limit"},
    {"format", 0, "json|text", set_format, 0,
     "output for programs or for people; default: text for doctor and bench, json for all "
     "others"},
    {"json", 0, NULL, set_json, 0, "short for --format json"},
    {"verbose", 'v', NULL, set_switch, offsetof(struct globals, verbose),
     "print the log of the library to stderr"},
    {"help", 'h', NULL, NULL, 0, "show the help of the command"},
    {"version", 0, NULL, NULL, 0, "print the version"},
    {NULL, 0, NULL, NULL, 0, NULL},
};
