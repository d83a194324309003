/* SPDX-License-Identifier: MIT */
/* What Redis spends on a claim of one job, and on one at a moment of a series, which makes the job
 * and sends the series on to its next moment. Asked is the script alone, and Redis says how long it
 * took, so no listener and no network counts. Its own verb:
 *
 *     firing  at= n= scripts=     n claims of each kind; scripts: the folder that has them */
#include "bench.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS "2 lapse:{bench}:due lapse:{bench}:none"

enum { SCRIPT_MAX = 65536, PATH_LEN = 512, SHA_LEN = 40, IN_FLIGHT = 64, HUNDRED = 100 };

/* Records as src/lua/README.md draws them, without the body. */
static const char plain[] = "\1\0";
static const char series[] = "\2\0\21S\17l 0 0 e 3600000";

struct record {
    const char *header;
    size_t len;
};

static void load(const char *name, char sha[SHA_LEN + 1])
{
    char path[PATH_LEN];
    char *text = alloc_touched(SCRIPT_MAX, 1);

    snprintf(path, sizeof path, "%s/%s.lua", argument("scripts", NULL), name);
    FILE *f = fopen(path, "r");
    size_t len = f ? fread(text, 1, SCRIPT_MAX, f) : 0;
    if (len == 0 || len == SCRIPT_MAX) {
        die("%s: cannot be read", path);
    }
    fclose(f);

    redisReply *r = pipe_ask("SCRIPT LOAD %b", text, len);
    snprintf(sha, SHA_LEN + 1, "%s", r->str);
    freeReplyObject(r);
    free(text);
}

static void schedule(const char *sha, int64_t n, const struct record *record)
{
    char text[64 + BODY_LEN];

    memcpy(text, record->header, record->len);
    memset(text + record->len, 'x', BODY_LEN);
    for (int64_t i = 0; i < n; i++) {
        pipe_add("EVALSHA %s " KEYS " 0 job-%016lld +0 0 %b", sha, (long long)i, text,
                 record->len + BODY_LEN);
        pipe_wait(IN_FLIGHT);
    }
    pipe_wait(0);
}

/* Of all scripts since the statistics were reset. */
static double script_us(void)
{
    redisReply *r = pipe_ask("INFO commandstats");
    const char *at = strstr(r->str, "cmdstat_evalsha:calls=");
    long long calls = 0;
    long long us = 0;

    if (!at || sscanf(at, "cmdstat_evalsha:calls=%lld,usec=%lld", &calls, &us) != 2 || calls == 0) {
        die("INFO commandstats says nothing of EVALSHA");
    }
    freeReplyObject(r);
    return (double)us / (double)calls;
}

/* us a claim: the least of a hundred each, as other programs of the machine take time, too */
static double claims_us(int64_t n, const struct record *record)
{
    char schedule_sha[SHA_LEN + 1];
    char claim_sha[SHA_LEN + 1];
    double least = 1e9;

    freeReplyObject(pipe_ask("FLUSHALL"));
    load("schedule", schedule_sha);
    load("claim", claim_sha);
    schedule(schedule_sha, n, record);
    for (int64_t i = 0; i < n; i += HUNDRED) {
        freeReplyObject(pipe_ask("CONFIG RESETSTAT"));
        for (int k = 0; k < HUNDRED; k++) {
            freeReplyObject(pipe_ask("EVALSHA %s " KEYS " 0 holder 3600000 1", claim_sha));
        }
        double us = script_us();
        least = us < least ? us : least;
    }
    return least;
}

static int firing_verb(const char *verb)
{
    static const struct record jobs = {plain, sizeof plain - 1};
    static const struct record firings = {series, sizeof series - 1};

    if (strcmp(verb, "firing") != 0) {
        return -1;
    }

    int64_t n = argument_required("n");
    figure("claim_us", claims_us(n, &jobs));
    figure("firing_us", claims_us(n, &firings));
    return 0;
}

int main(int argc, char **argv)
{
    static const struct system firing = {.open = pipe_open, .verb = firing_verb};
    return bench_main(argc, argv, &firing);
}
