/* SPDX-License-Identifier: MIT */
/* What Redis's errors mean: a code for the caller, and a line for ops that says what to do. */
#include "refusal.h"
#include <string.h>

bool refusal_is(struct span s, const char *word)
{
    size_t len = strlen(word);
    return s.len >= len && memcmp(s.at, word, len) == 0;
}

/* What the refusals that ops can mend mean, by the first word of Redis's error. */
static const char *advice(struct span error)
{
    static const struct {
        const char *word, *text;
    } rows[] = {
        {"OOM", "it is out of memory: raise maxmemory; due jobs still run"},
        {"READONLY", "it is a replica: give the URL of the master"},
        {"LOADING", "it is loading its data; this passes"},
        {"BUSY", "a script runs too long there; SCRIPT KILL ends it"},
        {"MISCONF", "it cannot write to its disk"},
        {"NOREPLICAS", "too few replicas are connected (min-replicas-to-write)"},
        {"NOPERM", "the user lacks a right"},
        {"NOAUTH", "the URL needs a password"},
        {"WRONGTYPE", "a key of ours was written by another program"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (refusal_is(error, rows[i].word)) {
            return rows[i].text;
        }
    }
    return "see its documentation";
}

int refusal_code(struct log *log, const char *script, struct span error)
{
    char text[LOG_VALUE];
    bool broken = refusal_is(error, "LAPSE EBROKEN");
    log_escape(text, sizeof text, error.at, error.len);
    log_line(log, LOG_REFUSED, LOG_ERR, "Redis %s %s: %s (%s)", broken ? "broke off in the middle of" : "refused",
             script, text, broken ? "some of it may have happened" : advice(error));
    return broken ? LAPSE_EBROKEN : LAPSE_EREFUSED;
}
