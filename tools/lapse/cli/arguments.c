/* SPDX-License-Identifier: MIT */
/* Reads the command line. Options and arguments may be mixed until "--"; the value of an option is
 * the next argument or follows a "=". Each value is validated as it is read: these functions return
 * 0 only if all of them are valid.
 *
 * getopt_long() would not make this smaller: it accepts abbreviated names, prints the values of
 * options that it does not know, which may be passwords, and has no setter for each option. */
#include "cli/arguments.h"
#include "cli/global_options.h"
#include "cli/help.h"
#include "cli/message.h"
#include "cli/stdout.h"
#include "cli/suggest.h"
#include "cli/url_mask.h"
#include "redis/tls.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 32 };

struct reader {
    const struct command *cmd; /* NULL: before the command */
    struct globals *g;
    void *to;
    struct arguments *args;
    int next; /* to be read */
};

const struct command *command_find(const char *name)
{
    struct suggestion s = suggestion_for(name);

    for (const struct command *const *c = commands; *c; c++) {
        if (strcmp((*c)->name, name) == 0) {
            return *c;
        }
        suggestion_consider(&s, (*c)->name);
    }

    if (s.name) {
        message_print("unknown command '%s'; did you mean '%s'?", printable_argument(name), s.name);
    } else {
        message_print("unknown command '%s'; see lapse help", printable_argument(name));
    }

    return NULL;
}

/* ---- options ---- */
static const struct opt *options_of(const struct command *cmd)
{
    return cmd && cmd->opts ? cmd->opts : no_options;
}

static const struct opt *option_by_letter(const struct opt *opts, char letter)
{
    for (; opts->name; opts++) {
        if (opts->letter == letter) {
            return opts;
        }
    }
    return NULL;
}

static const struct opt *option_by_name(const struct opt *opts, const char *name, size_t len)
{
    for (; opts->name; opts++) {
        if (strncmp(opts->name, name, len) == 0 && !opts->name[len]) {
            return opts;
        }
    }
    return NULL;
}

/* Names it without its value, which may be a secret, unless that is masked anyway; a short one by
 * its letter alone. */
static int unknown_option(const struct command *cmd, char *given, size_t len)
{
    size_t dashes = strspn(given, "-");
    bool is_short = given[1] != '-';
    char name[NAME_BYTES + 1];

    snprintf(name, sizeof name, "%.*s", (int)(len - dashes), given + dashes);
    struct suggestion s = suggestion_for(name);

    for (const struct opt *o = options_of(cmd); o->name; o++) {
        suggestion_consider(&s, o->name);
    }
    for (const struct opt *o = global_options; o->name; o++) {
        suggestion_consider(&s, o->name);
    }

    if (is_short) {
        given[2] = '\0';
    } else if (!url_secret(given, false).len) {
        given[len] = '\0';
    }

    if (s.name) {
        return usage_errorf("unknown option '%s'; did you mean '--%s'?", printable_argument(given),
                            s.name);
    }
    if (cmd && is_short) {
        return usage_errorf("unknown option '%s'; write -- before an argument that starts with -",
                            printable_argument(given));
    }
    return usage_errorf("unknown option '%s'; see lapse help %s", printable_argument(given),
                        cmd ? cmd->name : "options");
}

#ifdef LAPSE_WITH_CRON
#define CRON_TEXT " (with cron)"
#else
#define CRON_TEXT " (without cron)"
#endif

static _Noreturn void print_and_exit(const struct reader *r, const struct opt *o)
{
    if (o->letter != 'h') {
        printf("lapse " LAPSE_VERSION CRON_TEXT " (%s TLS)\n", tls_built() ? "with" : "without");
    } else if (r->cmd) {
        help_print_command(r->cmd, stdout);
    } else {
        help_print(stdout);
    }
    exit(close_stdout(DONE));
}

/* value: NULL if none was attached to the option. */
static int apply_option(struct reader *r, const struct opt *o, void *to, char *value)
{
    if (!o->set) {
        print_and_exit(r, o);
    }

    if (!o->arg && value) {
        return usage_errorf("option --%s takes no value", o->name);
    }

    if (o->arg && !value) {
        if (r->next == r->args->n) {
            return usage_errorf("option --%s needs a value: %s", o->name, o->arg);
        }
        value = r->args->v[r->next++];
    }

    return o->set(o, value, (char *)to + o->at);
}

/* -v, -j4, -j 4 */
static int read_short_option(struct reader *r, char *word)
{
    char letter = word[1];
    void *to = r->to;
    const struct opt *o = option_by_letter(options_of(r->cmd), letter);

    if (!o) {
        o = option_by_letter(global_options, letter);
        to = r->g;
    }

    if (!o) {
        return unknown_option(r->cmd, word, strlen(word));
    }

    if (!o->arg && word[2]) {
        return usage_errorf("option -%c takes no value; write each option separately", letter);
    }

    return apply_option(r, o, to, word[2] ? word + 2 : NULL);
}

/* --verbose, --jobs=4, --jobs 4 */
static int read_long_option(struct reader *r, char *word)
{
    char *name = word + 2;
    size_t len = strcspn(name, "=");
    void *to = r->to;
    const struct opt *o = option_by_name(options_of(r->cmd), name, len);

    if (!o) {
        o = option_by_name(global_options, name, len);
        to = r->g;
    }

    if (!o) {
        return unknown_option(r->cmd, word, len + 2);
    }

    return apply_option(r, o, to, name[len] ? name + len + 1 : NULL);
}

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1];
}

static int read_option(struct reader *r, char *word)
{
    return word[1] == '-' ? read_long_option(r, word) : read_short_option(r, word);
}

/* ---- the command line ---- */
int arguments_read_global(struct globals *g, struct arguments *args)
{
    struct reader r = {.g = g, .args = args};

    while (r.next < args->n && is_option(args->v[r.next])) {
        int rc = read_option(&r, args->v[r.next++]);
        if (rc) {
            return rc;
        }
    }

    args->v += r.next;
    args->n -= r.next;
    return 0;
}

/* What the usage line calls the nth argument of a command, counted from 0: QUEUE of "QUEUE...". */
static void argument_name(const struct command *cmd, int n, char out[NAME_BYTES])
{
    const char *at = cmd->usage;

    for (; n; n--) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }

    snprintf(out, NAME_BYTES, "%.*s", (int)strcspn(at, " ."), at);
}

static int check_number(const struct command *cmd, const struct arguments *args)
{
    char name[NAME_BYTES];

    if (args->n > cmd->max) {
        return usage_errorf("unexpected argument '%s'; usage: lapse %s %s",
                            printable_argument(args->v[cmd->max]), cmd->name, cmd->usage);
    }

    if (args->n < cmd->min) {
        argument_name(cmd, args->n, name);
        return usage_errorf("missing argument %s; usage: lapse %s %s", name, cmd->name, cmd->usage);
    }

    return 0;
}

int arguments_read(const struct command *cmd, struct globals *g, void *to, struct arguments *args)
{
    struct reader r = {cmd, g, to, args, 0};
    int n = 0;
    bool after_dashes = false;

    usage_set_command(cmd->name);

    while (r.next < args->n) {
        char *word = args->v[r.next++];

        if (!after_dashes && strcmp(word, "--") == 0) {
            after_dashes = true;
            args->n_before_dashes = n;
        } else if (!after_dashes && is_option(word)) {
            int rc = read_option(&r, word);
            if (rc) {
                return rc;
            }
        } else {
            args->v[n++] = word;
        }
    }

    args->v[n] = NULL;
    args->n = n;
    if (!after_dashes) {
        args->n_before_dashes = n;
    }

    return check_number(cmd, args);
}
