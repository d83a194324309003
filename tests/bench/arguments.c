/* SPDX-License-Identifier: MIT */
#include "bench.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char **arguments; /* NULL at the end */

void arguments_set(char **words)
{
    arguments = words;
}

static const char *argument_find(const char *name)
{
    size_t len = strlen(name);

    for (char **word = arguments; *word; word++) {
        if (strncmp(*word, name, len) == 0 && (*word)[len] == '=') {
            return *word + len + 1;
        }
    }

    return NULL;
}

const char *argument(const char *name, const char *otherwise)
{
    const char *value = argument_find(name);

    if (value) {
        return value;
    }
    if (!otherwise) {
        die("missing argument %s=", name);
    }

    return otherwise;
}

static int64_t argument_parse(const char *name, const char *value)
{
    char *end;
    int64_t n = strtoll(value, &end, 10);

    if (end == value || *end) {
        die("%s=%s: not a number", name, value);
    }

    return n;
}

int64_t argument_int(const char *name, int64_t otherwise)
{
    const char *value = argument_find(name);
    return value ? argument_parse(name, value) : otherwise;
}

int64_t argument_required(const char *name)
{
    return argument_parse(name, argument(name, NULL));
}

const char *argument_option(size_t nth, const char **value)
{
    static char name[64];

    for (char **word = arguments; *word; word++) {
        char *equals = strchr(*word, '=');
        if (strncmp(*word, "o.", 2) != 0 || !equals) {
            continue;
        }
        if (nth == 0) {
            snprintf(name, sizeof name, "%.*s", (int)(equals - *word - 2), *word + 2);
            *value = equals + 1;
            return name;
        }
        nth--;
    }

    return NULL;
}
