/* SPDX-License-Identifier: MIT */
/* The settings of the queues, as far as there are any. A user who may not read them hears nothing
 * of it: of the rights that a listener needs, check_rights() says which are missing. */
#include "doctor/ask.h"
#include "doctor/checks.h"
#include "doctor/report.h"
#include "base/span.h"
#include "cli/message.h"
#include "job/keys.h"
#include "redis/redis_error.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { TYPE_BYTES = 32, TARGET_BYTES = 300 };

/* Until when no job is claimed, ms; 0: jobs are. */
static int64_t paused_until_ms(const char *settings)
{
    const char *at = strstr(settings, " paused=");
    int64_t until_ms = 0;

    if (at) {
        struct span digits = span_of(at + strlen(" paused="));
        struct span rest = digits;
        if (span_cut(&rest, ' ', &digits)) {
            span_decimal(digits, EXACT_MAX, &until_ms);
        }
    }

    return until_ms > (int64_t)time(NULL) * 1000 ? until_ms : 0;
}

/* The type of the key that jobs are forwarded to, if it is a wrong one; else "". */
static void wrong_type(struct doctor *d, const char *settings, char out[TYPE_BYTES])
{
    const char *at = strstr(settings, " forward=");
    char target[TARGET_BYTES];

    *out = '\0';
    if (!at) {
        return;
    }

    at += strlen(" forward=");
    snprintf(target, sizeof target, "%.*s", (int)strcspn(at, " "), at);
    char *key = strchr(target, ':');
    if (!key) {
        return;
    }

    *key++ = '\0';
    redisReply *r = ASK(d, "TYPE", key);
    bool is_known = r && r->type == REDIS_REPLY_STATUS;
    if (is_known && strcmp(r->str, "none") != 0 && strcmp(r->str, target) != 0) {
        snprintf(out, TYPE_BYTES, "%s", r->str);
    }
    freeReplyObject(r);
}

static void report_settings(struct doctor *d, struct finding f, const char *text)
{
    char fix[KEYS_MAX];
    char type[TYPE_BYTES];

    wrong_type(d, text, type);
    if (strncmp(text, "1 ", 2) != 0) {
        f.verdict = FAIL;
        f.fix = "upgrade lapse to the version that wrote them";
        report(d, f, "in a format that this version cannot read: it claims no job");
    } else if (*type) {
        f.verdict = FAIL;
        f.fix = fix;
        snprintf(fix, sizeof fix, "lapse forward %s --off", f.queue);
        report(d, f, "jobs wait, for the type of their target is %s: %s", type,
               printable(text + 2));
    } else if (paused_until_ms(text) > 0) {
        f.verdict = WARN;
        f.fix = fix;
        snprintf(fix, sizeof fix, "lapse unpause %s", f.queue);
        report(d, f, "paused, no job is claimed: %s", printable(text + 2));
    } else {
        report(d, f, "%s", printable(text + 2));
    }
}

static void check_queue_settings(struct doctor *d, const char *queue)
{
    struct finding f = {.check = "settings", .queue = queue};
    char key[KEYS_MAX];
    char fix[KEYS_MAX + 20];
    char error[VALUE_BYTES];

    keys_of(key, d->space, queue, KEYS_CONF);
    redisReply *r = ASK(d, "GET", key);

    if (r && is_text(r)) {
        report_settings(d, f, r->str);
    } else if (is_error(r) && redis_error_of(span_of(r->str)) == REDIS_ERROR_WRONG_TYPE) {
        f.verdict = FAIL;
        f.fix = fix;
        snprintf(fix, sizeof fix, "redis-cli DEL '%s'", key);
        report(d, f, "cannot be read, and count as missing: %s", printable(r->str));
    } else if (is_error(r) && !is_denied(r)) { /* such as of a slot that is moving */
        f.verdict = WARN;
        report(d, f, "cannot be read: %s", explain_error(r->str, error));
    }

    freeReplyObject(r);
}

void check_settings(struct doctor *d)
{
    for (int i = 0; i < d->queues.n && !d->code; i++) {
        check_queue_settings(d, d->queues.names[i]);
    }
}
