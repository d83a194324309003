/* SPDX-License-Identifier: MIT */
#include "doctor/report.h"
#include "cli/json.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const verdict_names[N_VERDICTS] = {"OK", "WARN", "FAIL"};

static void write_text(const struct finding *f, const char *text)
{
    const char *verdict = verdict_names[f->verdict];

    if (f->queue) {
        printf("%-4s  %-11s  %s: %s\n", verdict, f->check, f->queue, text);
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
    va_list args;

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
