/* SPDX-License-Identifier: MIT */
#include "script/calendars.h"
#include "base/mem.h"
#include "job/attributes.h"
#include "job/keys.h"
#include <string.h>

static const int64_t MOMENT_MAX = 99999999999999; /* the year 5138 */

/* ---- which there are ---- */
void calendars_init(struct calendars *cs, struct script *script)
{
    *cs = (struct calendars){.script = script};
}

static const struct calendar *calendar_find(const struct calendars *cs, struct span name)
{
    for (unsigned i = 0; i < cs->n; i++) {
        if (span_is(name, cs->of[i].name)) {
            return &cs->of[i];
        }
    }
    return NULL;
}

int calendars_add(struct calendars *cs, const char *name, lapse_next_fn *next, void *arg)
{
    if (!name || !next || !calendar_name_ok(span_of(name))) {
        return LAPSE_EINVAL;
    }
    if (calendar_find(cs, span_of(name))) {
        return LAPSE_EEXIST;
    }
    if (cs->n == CALENDARS_MAX) {
        return LAPSE_EFULL;
    }

    struct calendar *c = &cs->of[cs->n++];
    memcpy(c->name, name, strlen(name) + 1);
    c->next = next;
    c->arg = arg;
    return 0;
}

/* ---- moments ---- */
bool calendars_know_time(const struct calendars *cs)
{
    return topo_time_us(cs->script->topo) != 0;
}

/* By Redis's clock, if it was heard. */
static int64_t calendars_now_ms(const struct calendars *cs)
{
    int64_t now_us = topo_time_us(cs->script->topo);
    return (now_us ? now_us : clock_wall_us()) / 1000;
}

/* The next moment of a rule; 0: there is none; -1: it is wrong, or the function is. */
static int64_t calendar_next(const struct calendar *c, const char *rule, int64_t after_ms)
{
    int64_t ms = c->next(rule, after_ms, c->arg);

    if (ms == 0 || ms > MOMENT_MAX) {
        return 0;
    }
    return ms > after_ms ? ms : -1;
}

/* Appends moments until there are enough, or there is none until until_ms (0: no limit). */
static bool moments_add(struct moments *m, const struct calendar *c, const char *rule,
                        int64_t after_ms, int64_t until_ms)
{
    while (m->n < MOMENTS_MAX && !m->is_whole) {
        int64_t ms = calendar_next(c, rule, after_ms);

        if (ms < 0) {
            return false;
        }
        m->is_whole = ms == 0 || (until_ms && ms > until_ms);
        if (!m->is_whole) {
            m->ms[m->n++] = after_ms = ms;
        }
    }
    return true;
}

/* The last moment until then, looked for by halves; after_ms: there is none behind that. */
static int64_t moment_before(const struct calendar *c, const char *rule, int64_t after_ms,
                             int64_t end_ms)
{
    int64_t found = after_ms;
    int64_t low = after_ms;
    int64_t high = end_ms; /* there is none after it, until then */

    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        int64_t ms = calendar_next(c, rule, middle);

        if (ms > 0 && ms <= end_ms) {
            found = low = ms;
        } else {
            high = middle;
        }
    }
    return found;
}

bool calendars_first(const struct calendars *cs, const struct lapse_series *s, struct lapse_due due,
                     struct moments *out)
{
    const struct calendar *c = calendar_find(cs, span_of(s->calendar));
    int64_t now_ms = calendars_now_ms(cs);
    int64_t due_ms = due.at_ms ? due.at_ms : now_ms + due.delay_ms;
    int64_t after_ms = due_ms > now_ms ? due_ms - 1 : now_ms;

    *out = (struct moments){.n = 0};
    return c && moments_add(out, c, s->rule, after_ms, s->until_ms) && out->n > 0;
}

/* ---- refills ---- */
struct refill {
    struct refill_request request;
    char key[KEYS_MAX];
    char texts[];
};

static void on_refilled(struct refill_request *request, int err)
{
    (void)err;
    mem_free(CONTAINER(request, struct refill, request));
}

static struct span copy_text(char **to, struct span text)
{
    struct span copy = {memcpy(*to, text.at, text.len), text.len};
    *to += text.len;
    return copy;
}

static void refill_send(struct calendars *cs, const struct calendar_series *s,
                        const struct refill_spec *spec)
{
    size_t len = s->id.len + spec->series.len + spec->calendar.len + spec->moments.len;
    struct refill *r = mem_new(sizeof *r, len);

    if (!r) {
        return;
    }

    char *to = r->texts;
    struct refill_spec kept = {.id = copy_text(&to, s->id),
                               .series = copy_text(&to, spec->series),
                               .calendar = copy_text(&to, spec->calendar),
                               .moments = copy_text(&to, spec->moments)};
    memcpy(r->key, s->key.at, s->key.len);
    r->request.end = on_refilled;
    r->request.request.until_us = clock_us() + cs->script->context->options.reply_ms * 1000;
    script_refill(cs->script, &r->request, (struct span){r->key, s->key.len}, &kept);
}

static void say_dry(const struct calendars *cs, const struct calendar_series *s, struct span name)
{
    char id[LOG_VALUE];

    if (s->is_dry) {
        log_line(&cs->script->context->log, LOG_CALENDAR, LOG_WARNING,
                 "queue %s: series %s waits for its next moments, which nobody has worked out: no "
                 "listener of the queue knows the calendar %.*s; see lapse_calendar()",
                 s->queue, log_escape(id, sizeof id, s->id.at, s->id.len), (int)name.len, name.at);
    }
}

/* Those that it still has, and those behind them. Of moments that passed while it had none the last
 * one is enough, unless each is wanted. */
static bool moments_go_on(const struct calendars *cs, const struct calendar *c,
                          const struct calendar_series *s, struct span series, const char *rule,
                          struct moments *out)
{
    struct lapse_series says;
    struct moments had;
    int64_t after_ms = s->after_ms;
    int64_t end_ms = calendars_now_ms(cs);

    if (!series_read(series, &says, NULL) || !series_moments(series, &had)) {
        return false;
    }

    *out = (struct moments){.n = 0};
    for (unsigned i = 0; i < had.n; i++) {
        after_ms = had.ms[i] > after_ms ? had.ms[i] : after_ms;
        if (!s->is_dry && had.ms[i] >= s->next_ms) {
            out->ms[out->n++] = had.ms[i];
        }
    }

    if (says.until_ms && says.until_ms < end_ms) {
        end_ms = says.until_ms;
    }
    if (out->n == 0 && says.catch_up != LAPSE_CATCH_UP_ALL && after_ms < end_ms) {
        int64_t last_ms = moment_before(c, rule, after_ms, end_ms);
        if (last_ms > after_ms) {
            out->ms[out->n++] = after_ms = last_ms;
        }
    }
    return moments_add(out, c, rule, after_ms, says.until_ms);
}

/* What its record says; false: that cannot be read. */
static bool calendar_series_read(const struct calendar_series *s, struct refill_spec *out,
                                 struct span *name, char rule[CALENDAR_RULE_MAX + 1])
{
    struct span text;

    if (!attributes_find(s->attributes, 'S', &out->series) ||
        !attributes_find(s->attributes, 'C', &out->calendar) ||
        !calendar_read(out->calendar, name, &text)) {
        return false;
    }

    memcpy(rule, text.at, text.len);
    rule[text.len] = '\0';
    return true;
}

int64_t calendars_correct(struct calendars *cs, const struct calendar_series *s,
                          struct lapse_due due)
{
    char rule[CALENDAR_RULE_MAX + 1];
    char text[MOMENTS_TEXT_MAX];
    struct span name;
    struct refill_spec spec;
    struct lapse_series says;
    struct moments moments;

    if (!calendar_series_read(s, &spec, &name, rule) || !series_read(spec.series, &says, NULL)) {
        return s->next_ms;
    }

    const struct calendar *c = calendar_find(cs, name);
    says.calendar = c ? c->name : "";
    says.rule = rule;
    if (!calendars_first(cs, &says, due, &moments) || moments.ms[0] >= s->next_ms) {
        return s->next_ms;
    }

    spec.moments = (struct span){text, moments_put(text, &moments)};
    refill_send(cs, s, &spec);
    return moments.ms[0];
}

void calendars_refill(struct calendars *cs, const struct calendar_series *s)
{
    char rule[CALENDAR_RULE_MAX + 1];
    char text[MOMENTS_TEXT_MAX];
    struct span name;
    struct refill_spec spec;
    struct moments moments;

    if (!calendar_series_read(s, &spec, &name, rule)) {
        return;
    }

    const struct calendar *c = calendar_find(cs, name);
    if (!c || !moments_go_on(cs, c, s, spec.series, rule, &moments)) {
        say_dry(cs, s, name);
        return;
    }

    spec.moments = (struct span){text, moments_put(text, &moments)};
    refill_send(cs, s, &spec);
}
