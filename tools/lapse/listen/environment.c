/* SPDX-License-Identifier: MIT */
/* What a command sees of the environment: a few variables that are passed on, because any other may
 * be a secret, as the password of Redis is, and those that --env names. */
#include "listen/environment.h"
#include "cli/message.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_variable(const char *variable, const char *name)
{
    size_t len = strcspn(name, "=");

    return strncmp(variable, name, len) == 0 && variable[len] == '=';
}

int set_env(const struct opt *o, char *value, void *field)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    struct env_options *options = field;
    size_t len = strspn(value, letters);

    (void)o;
    if (!len || (value[len] && value[len] != '=') || strncmp(value, "LAPSE_", 6) == 0) {
        value[strcspn(value, "=")] = '\0'; /* its value may be a secret */
        return usage_error("--env", value,
                           "must be NAME or NAME=VALUE; names that start with LAPSE_ are reserved");
    }

    if (options->n == ENV_OPTIONS) {
        return usage_error("--env", value, "is one too many: at most 64 are allowed");
    }

    options->v[options->n++] = value;
    return 0;
}

/* The last option for a variable; NULL: none. */
static const char *option_for(const struct env_options *options, const char *variable)
{
    for (unsigned i = options->n; i; i--) {
        if (is_variable(variable, options->v[i - 1])) {
            return options->v[i - 1];
        }
    }
    return NULL;
}

static bool is_passed_on(const char *variable, const struct env_options *options)
{
    static const char *const names[] = {"HOME", "LANG",   "LANGUAGE", "LOGNAME", "SHELL",
                                        "TERM", "TMPDIR", "TZ",       "USER",    "XDG_RUNTIME_DIR"};
    const char *option = option_for(options, variable);

    if (option) {
        return !strchr(option, '=');
    }

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (is_variable(variable, names[i])) {
            return true;
        }
    }

    return strncmp(variable, "LC_", 3) == 0;
}

char **environment_make(const struct env_options *options, size_t n_more, size_t *n)
{
    static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    size_t most = 1 + options->n + n_more + 1;
    char **env;

    for (char **e = environ; *e; e++) {
        most++;
    }

    *n = 0;
    env = malloc(most * sizeof *env);
    if (!env) {
        return NULL;
    }

    if (!option_for(options, path)) {
        env[(*n)++] = path;
    }

    for (char **e = environ; *e; e++) {
        if (is_passed_on(*e, options)) {
            env[(*n)++] = *e;
        }
    }

    for (unsigned i = 0; i < options->n; i++) {
        const char *option = options->v[i];
        if (strchr(option, '=') && option_for(options, option) == option) {
            env[(*n)++] = (char *)(uintptr_t)option;
        }
    }

    return env;
}
