/* SPDX-License-Identifier: MIT */
/* Options and help, both from the same tables. Options and words may be mixed until "--"; a value
 * may be the next word or follow a "=". Values are checked as they are read: when this file says 0,
 * no argument is wrong. getopt_long is not used: it reports in its own words, knows abbreviations,
 * and cannot name the nearest. */
#include "command.h"
#include <stdlib.h>
#include <string.h>

static int set_option(const struct opt *o, char *value, void *field);

/* Of several the last one holds; those before it are not left in argv. */
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
    return g->text || g->json ? 0 : usage_error("--format", value, "json or text");
}

static int set_json(const struct opt *o, char *value, void *field)
{
    struct globals *g = field;

    (void)o;
    (void)value;
    g->text = 0;
    g->json = 1;
    return 0;
}

static const struct opt global_opts[] = {
    {"url", 'u', "URL", set_url, offsetof(struct globals, url),
     "Redis: redis://[[user]:password@]host[:port][/db] or\nunix://[[user]:password@]/path[?db=n]; "
     "else LAPSE_URL,\n"
     "else redis://127.0.0.1:6379"},
    {"option", 'o', "NAME=VALUE", set_option, 0,
     "any of lease_ms run_ms sweep_ms reply_ms max_running space name...;\n"
     "may be repeated"},
    {"password-file", 0, "FILE", set_text, offsetof(struct globals, password_file),
     "a file that only you can read, or - for stdin; else\nLAPSE_PASSWORD"},
    {"connect-wait", 0, "DURATION", set_duration, offsetof(struct globals, connect_wait_ms),
     "wait so long for a Redis that is not there; 0s, but\nlisten waits for ever"},
    {"format", 0, "json|text", set_format, 0,
     "for programs or for people; doctor and bench print text\nwithout it, all others JSON"},
    {"json", 0, NULL, set_json, 0, "short for --format json"},
    {"verbose", 'v', NULL, set_switch, offsetof(struct globals, verbose),
     "the library's whole log, on stderr"},
    {"help", 'h', NULL, NULL, 0, "this text"},
    {"version", 0, NULL, NULL, 0, "the version"},
    {NULL, 0, NULL, NULL, 0, NULL},
};
static const struct opt no_opts[] = {{NULL, 0, NULL, NULL, 0, NULL}};

/* ---- the nearest name ---- */
enum { NAME_BYTES = 32 };

/* Levenshtein, a swap of neighbours counting once */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][NAME_BYTES + 1] = {{0}};
    size_t *old = rows[0];
    size_t *last = rows[1];
    size_t *row = rows[2];
    size_t a_len = strlen(a);
    size_t b_len = strlen(b);

    if (a_len > NAME_BYTES || b_len > NAME_BYTES) {
        return NAME_BYTES;
    }

    for (size_t j = 0; j <= b_len; j++) {
        last[j] = j;
    }

    for (size_t i = 1; i <= a_len; i++) {
        size_t *spare = old;
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                old[j - 2] + 1 < best) {
                best = old[j - 2] + 1;
            }
            row[j] = best;
        }
        old = last, last = row, row = spare;
    }

    return last[b_len];
}

struct nearest {
    const char *name;
    size_t score;
};

/* only what a slip of the fingers explains: one letter in two */
static struct nearest nearest_to(const char *given)
{
    size_t len = strlen(given);
    return (struct nearest){NULL, len / 2 + 1 < 4 ? len / 2 + 1 : 4};
}

static void consider(struct nearest *n, const char *given, const char *name)
{
    size_t len = strlen(given);
    size_t d =
        len > 1 && strncmp(given, name, len) == 0 ? name[len] != '\0' : distance(given, name);

    if (d < n->score) {
        *n = (struct nearest){name, d};
    }
}

const struct command *args_command(const char *name)
{
    struct nearest near = nearest_to(name);

    for (const struct command *const *c = commands; *c; c++) {
        if (strcmp((*c)->name, name) == 0) {
            return *c;
        }
        consider(&near, name, (*c)->name);
    }

    if (near.name) {
        message_print("no command '%s'; did you mean '%s'?", printable_argument(name), near.name);
    } else {
        message_print("no command '%s'; lapse help lists them", printable_argument(name));
    }

    return NULL;
}

/* ---- -o ---- */
static int set_option(const struct opt *o, char *value, void *field)
{
    static const char *const names[] = {"url",         "space",       "name",     "lease_ms",
                                        "run_ms",      "sweep_ms",    "reply_ms", "max_bytes",
                                        "max_running", "max_pending", "flags",    "arm_ahead_ms",
                                        "notify"};
    struct globals *g = field;
    char *equals = strchr(value, '=');
    char what[64];
    struct nearest near;

    if (!equals || equals == value) {
        return usage_error("-o", value, "an option is name=value, such as lease_ms=10s");
    }

    *equals = '\0';
    if (strcmp(value, "url") == 0) {
        return set_url(o, equals + 1, &g->url);
    }
    if (!lapse_options_set(&g->opts, value, equals + 1)) {
        return 0;
    }

    near = nearest_to(value);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        consider(&near, value, names[i]);
    }

    if (near.name && !near.score) {
        snprintf(what, sizeof what, "-o %s", near.name);
        return usage_error(what, equals + 1,
                           "not such a value, or out of range; lapse(3) has the ranges");
    }

    message_print("-o '%s': no option of that name%s%s%s", printable_argument(value),
                  near.name ? "; did you mean '" : "; lapse(3) lists them",
                  near.name ? near.name : "", near.name ? "'?" : "");

    return USAGE;
}

/* ---- options ---- */
/* name: up to its end or "="; one: a letter, else a long name */
static const struct opt *find(const struct opt *opts, const char *name, size_t len, int one)
{
    for (; opts->name; opts++) {
        if (one ? opts->letter == *name : strncmp(opts->name, name, len) == 0 && !opts->name[len]) {
            return opts;
        }
    }
    return NULL;
}

/* Without its value, which may be a secret, unless a part of the word is hidden anyway; of a short
 * one only the letter.
 */
static int unknown(const struct command *cmd, char *given, size_t len)
{
    char name[NAME_BYTES + 1];
    struct nearest near;

    snprintf(name, sizeof name, "%.*s", (int)(len - strspn(given, "-")),
             given + strspn(given, "-"));
    near = nearest_to(name);
    for (const struct opt *o = cmd && cmd->opts ? cmd->opts : no_opts; o->name; o++) {
        consider(&near, name, o->name);
    }

    for (const struct opt *o = global_opts; o->name; o++) {
        consider(&near, name, o->name);
    }

    if (given[1] != '-') {
        given[2] = '\0';
    } else if (!url_secret(given, 0).len) {
        given[len] = '\0';
    }

    if (near.name) {
        message_print("no option '%s'; did you mean '--%s'?", printable_argument(given), near.name);
    } else if (cmd && given[1] != '-') {
        message_print("no option '%s'; write -- before a word that begins with -",
                      printable_argument(given));
    } else {
        message_print("no option '%s'; lapse %s%s tells them all", printable_argument(given),
                      cmd ? cmd->name : "", cmd ? " --help" : "--help");
    }

    return USAGE;
}

struct parse {
    const struct command *cmd;
    struct globals *g;
    void *to;
    struct arguments *w;
    int next; /* word to read */
};

static int apply(struct parse *p, const struct opt *o, int global, char *value)
{
    char shown[48];

    if (!o->set) {
        if (o->letter == 'h') {
            args_help(p->cmd, stdout);
        } else {
            puts("lapse " LAPSE_VERSION);
        }
        exit(close_stdout(DONE));
    }

    snprintf(shown, sizeof shown, "--%s", o->name);
    if (o->arg && !value && p->next < p->w->n) {
        value = p->w->v[p->next++];
    }

    if (o->arg && !value) {
        message_print("%s: %s is missing", shown, o->arg);
        return USAGE;
    }

    if (!o->arg && value) {
        return usage_error(shown, value, "it takes no value");
    }

    return o->set(o, value, (char *)(global ? (void *)p->g : p->to) + o->at);
}

/* -v, -j4, -j 4, --jobs 4, --jobs=4 */
static int option(struct parse *p, char *word)
{
    int one = word[1] != '-';
    char *name = word + (one ? 1 : 2);
    char *value = NULL;
    size_t len = one ? 1 : strcspn(name, "=");
    const struct opt *own = p->cmd && p->cmd->opts ? p->cmd->opts : no_opts;
    const struct opt *o = find(own, name, len, one);
    int global = !o;

    if (!o) {
        o = find(global_opts, name, len, one);
    }

    if (o && one && !o->arg && name[1]) {
        message_print("-%c: it takes no value; write each option by itself", *name);
        return USAGE;
    }

    if (!o) {
        return unknown(p->cmd, word, one ? strlen(word) : len + 2);
    }

    if (name[len]) {
        value = name + len + !one;
    }

    return apply(p, o, global, value);
}

int args_global(struct globals *g, struct arguments *w)
{
    struct parse p = {NULL, g, NULL, w, 0};

    while (p.next < w->n && w->v[p.next][0] == '-' && w->v[p.next][1]) {
        int rc = option(&p, w->v[p.next++]);
        if (rc) {
            return rc;
        }
    }

    w->v += p.next;
    w->n -= p.next;
    return 0;
}

int args_parse(const struct command *cmd, struct globals *g, void *to, struct arguments *w)
{
    struct parse p = {cmd, g, to, w, 0};
    int n = 0;
    int before = -1;

    while (p.next < w->n) {
        char *word = w->v[p.next++];
        int rc = 0;
        if (before < 0 && strcmp(word, "--") == 0) {
            before = n;
        } else if (before < 0 && word[0] == '-' && word[1]) {
            rc = option(&p, word);
        } else {
            w->v[n++] = word;
        }
        if (rc) {
            return rc;
        }
    }

    w->v[n] = NULL;
    w->n = n;
    w->before = before < 0 ? n : before;
    if (n >= cmd->min && n <= cmd->max) {
        return 0;
    }

    if (n > cmd->max) {
        message_print("%s: '%s' is one word too many: lapse %s %s", cmd->name,
                      printable_argument(w->v[cmd->max]), cmd->name, cmd->words);
    } else {
        message_print("%s: a word is missing: lapse %s %s", cmd->name, cmd->name, cmd->words);
    }

    return USAGE;
}

/* ---- help ---- */
static void help_options(const char *title, const struct opt *o, FILE *to)
{
    fprintf(to, "\n%s:\n", title);
    for (; o->name; o++) {
        char left[48];
        const char *text = o->help;
        snprintf(left, sizeof left, "--%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
        fprintf(to, "  %c%c%c %-24s ", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
                o->letter ? ',' : ' ', left);
        for (size_t n; n = strcspn(text, "\n"), text[n]; text += n + 1) {
            fprintf(to, "%.*s\n%31s", (int)n, text, "");
        }
        fprintf(to, "%s\n", text);
    }
}

void args_help(const struct command *cmd, FILE *to)
{
    if (cmd) {
        fprintf(to, "usage: lapse %s %s\n\n%s", cmd->name, cmd->words, cmd->text);
        if (cmd->opts) {
            help_options("options", cmd->opts, to);
        }
    } else {
        fputs("usage: lapse [OPTION...] COMMAND ...\n\nJobs that run at the moment they are due, "
              "with Redis as the store.\n"
              "\ncommands (lapse help COMMAND tells all about one):\n",
              to);
        for (const struct command *const *c = commands; *c; c++) {
            fprintf(to, "  %-11s %s\n", (*c)->name, (*c)->summary);
        }
    }

    help_options("options of every command", global_opts, to);
    fprintf(to,
            "\nexit codes:\n  0   done\n  1   the answer was no: no such job, it exists already, "
            "it is running\n"
            "  2   a wrong argument; nothing was changed\n  69  Redis cannot be reached, or its "
            "answer was lost\n"
            "  70  out of memory, or stored data that cannot be read\n  74  stdout would not take "
            "the output\n"
            "  77  not allowed: wrong password or missing right\n%s"
            "  141 the reader of stdout went away, as head does; nothing is said\n",
            cmd && cmd->exits ? cmd->exits : "");
}
