/* SPDX-License-Identifier: MIT */
#include "doctor/report.h"
#include "cli/json.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FIX_BYTES = 2200 };

static const char *const verdict_names[N_VERDICTS] = {"OK", "WARN", "FAIL"};

/* "redis-cli CONFIG SET ..." is for another server, also where it stands behind other words;
 * "redis-cli --cluster ..." names its own. */
static const char *fix_there(const char *fix, const char *at, char out[FIX_BYTES])
{
    static const char cli[] = "redis-cli ";
    const char *port = strrchr(at, ':');
    const char *found;
    size_t used = 0;

    if (!is_shell_safe(at, ":")) {
        return fix;
    }

    while ((found = strstr(fix, cli))) {
        found += sizeof cli - 1;
        snprintf(out + used, FIX_BYTES - used, "%.*s", (int)(found - fix), fix);
        used = strlen(out);
        if (*found != '-') {
            snprintf(out + used, FIX_BYTES - used, "-h %.*s -p %s ", (int)(port - at), at,
                     port + 1);
            used = strlen(out);
        }
        fix = found;
    }
    snprintf(out + used, FIX_BYTES - used, "%s", fix);
    return out;
}

static void write_text(const struct finding *f, const char *text)
{
    const char *verdict = verdict_names[f->verdict];

    if (f->queue) {
        printf("%-4s  %-11s  %s: %s\n", verdict, f->check, f->queue, text);
    } else if (f->at) {
        printf("%-4s  %-11s  %s: %s\n", verdict, f->check, f->at, text);
    } else {
        printf("%-4s  %-11s  %s\n", verdict, f->check, text);
    }
    if (f->fix) {
        printf("%19s%s\n", "fix: ", f->fix);
    }
}

static void write_json(const struct finding *f, const char *text)
{
    struct json j;

    json_begin(&j, stdout);
    json_text(&j, "check", f->check);
    if (f->at) {
        json_text(&j, "server", f->at);
    }
    if (f->queue) {
        json_text(&j, "queue", f->queue);
    }
    json_text(&j, "verdict", verdict_names[f->verdict]);
    json_text(&j, "text", text);
    if (f->fix) {
        json_text(&j, "fix", f->fix);
    }
    json_end(&j);
}

void report(struct doctor *d, struct finding f, const char *format, ...)
{
    char text[1024];
    char fix[FIX_BYTES];
    va_list args;

    if (d->at && !f.at) {
        if (f.verdict == FINE && !f.queue) {
            return; /* of one of many what is not */
        }
        f.at = d->at;
    }
    if (f.at && f.fix) {
        f.fix = fix_there(f.fix, f.at, fix);
    }

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    d->n_verdicts[f.verdict]++;

    if (d->g->json) {
        write_json(&f, text);
    } else {
        write_text(&f, text);
    }

    fflush(stdout);
}

void report_summary(const struct doctor *d)
{
    if (!d->g->json) {
        printf("%u FAIL, %u WARN, %u OK\n", d->n_verdicts[FAIL], d->n_verdicts[WARN],
               d->n_verdicts[FINE]);
    }
}

bool is_shell_safe(const char *text, const char *also)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

    if (*text == '\0' || *text == '-') {
        return false;
    }

    for (const char *c = text; *c; c++) {
        if (!strchr(letters, *c) && !strchr(also, *c)) {
            return false;
        }
    }

    return true;
}
