/* SPDX-License-Identifier: MIT */
#include "commands/gather.h"
#include "cli/message.h"
#include "job/group.h"
#include "job/series.h"
#include <string.h>

static int gather_error(const char *value)
{
    return usage_error("--gather", value,
                       "must be most=N with quiet=DURATION or age=DURATION or both, a comma "
                       "between; N is from 1 to 1000, as in quiet=5s,most=100,age=1m");
}

/* NAME=VALUE */
static bool read_limit(struct lapse_gather *g, char *word)
{
    char *value = strchr(word, '=');
    int64_t *ms = NULL;

    if (!value) {
        return false;
    }

    *value++ = '\0';
    if (strcmp(word, "most") == 0) {
        return parse_count(value, GROUP_MOST_MAX, &g->most) == 0;
    }
    if (strcmp(word, "quiet") == 0) {
        ms = &g->quiet_ms;
    } else if (strcmp(word, "age") == 0) {
        ms = &g->age_ms;
    }
    return ms && *ms == 0 && parse_duration(value, ms) == 0 && *ms > 0;
}

int set_gather(const struct opt *o, char *value, void *field)
{
    struct gather_option *g = field;
    char words[128];

    (void)o;
    g->given = value;
    if (strlen(value) >= sizeof words) {
        return gather_error(value);
    }

    strcpy(words, value);
    for (char *word = words; word;) {
        char *comma = strchr(word, ',');

        if (comma) {
            *comma++ = '\0';
        }
        if (!read_limit(&g->limits, word)) {
            return gather_error(value);
        }
        word = comma;
    }
    return group_ok(&g->limits) ? 0 : gather_error(value);
}

int gather_read(struct gather_option *g, struct lapse_spec *spec, const struct when *when)
{
    if (!g->given) {
        return 0;
    }
    if (!spec->id) {
        return usage_errorf("--gather: the id names the group: give --id, too");
    }
    if (strlen(spec->id) > SERIES_ID_MAX) {
        return usage_errorf("the id of a group may have at most 238 characters, and this one has "
                            "%zu: that of its job is longer",
                            strlen(spec->id));
    }
    if (when->in || when->at) {
        return usage_errorf("--gather says when the group is due: leave out --in and --at");
    }
    if (spec->on_conflict || spec->unique || spec->series) {
        return usage_errorf("--gather is used without --on-conflict, --unique, --stage, --every "
                            "and --cron");
    }

    spec->on_conflict = LAPSE_GATHER;
    spec->gather = &g->limits;
    return 0;
}

int check_part(const struct lapse_spec *spec)
{
    if (spec->gather && spec->body_len > GROUP_PART_MAX) {
        return usage_errorf("the body has %zu bytes; a part of a group may have at most 1048568 "
                            "(1 MiB less 8)",
                            spec->body_len);
    }
    return 0;
}

size_t gather_bytes(const struct lapse_spec *spec)
{
    char text[GROUP_TEXT_MAX];

    if (!spec->gather) {
        return 0;
    }
    return 2 + group_put(text, spec->gather) + 3 + SERIES_OF_MAX + 2 + GROUP_PARTS_DIGITS;
}
