/* SPDX-License-Identifier: MIT */
/* The settings as data: one row has the name, the default and the range that lapse_open(),
 * lapse_options_set(), -o of the program and tools/doc/settings.md all use. Zero always means the
 * default. */
#include "api/options.h"
#include "job/keys.h"
#include "base/mem.h"
#include "base/quantity.h"
#include <stdio.h>
#include <unistd.h>

#define ROW(field, kind, def, min, max, def_text, text)                             \
    {                                                                               \
#field, kind, offsetof(struct lapse_options, field),                        \
            sizeof((struct lapse_options *)0)->field, def, min, max, def_text, text \
    }
#define DAY ((int64_t)24 * 3600 * 1000)
const struct option_row option_rows[] = {
    ROW(url, OPTION_TEXT, 0, 0, 0, "redis://127.0.0.1:6379",
        "where Redis is: redis://[[user]:password@]host[:port][/db] or "
        "unix://[[user]:password@]/path[?db=n]"),
    ROW(space, OPTION_TEXT, 0, 1, 64, "lapse", "first part of every key; letters, digits, . _ -"),
    ROW(name, OPTION_TEXT, 0, 1, 64, "host:pid", "this listener's name, shown to others"),
    ROW(lease_ms, OPTION_MS, 30000, 100, DAY, "30s",
        "a crashed process's jobs come back after; renewed while held"),
    ROW(run_ms, OPTION_MS, 600000, 100, 366 * DAY, "10m",
        "longest run of one job, from its handler's start"),
    ROW(sweep_ms, OPTION_MS, 5000, 10, DAY, "5s",
        "everything due is looked for at least this often"),
    ROW(reply_ms, OPTION_MS, 5000, 50, 3600000, "5s", "give up on a silent Redis after"),
    ROW(max_running, OPTION_COUNT, 256, 1, 100000, "256", "jobs held by handlers at once"),
    ROW(max_pending, OPTION_COUNT, 10000, 1, 10000000, "10000",
        "requests waiting for Redis; one more is EFULL"),
    ROW(max_bytes, OPTION_BYTES, 64 << 20, 1 << 20, (int64_t)1 << 40, "64MiB",
        "their bodies together, likewise"),
    ROW(flags, OPTION_FLAGS, 0, 0, LAPSE_NO_EVENTS | LAPSE_NO_ALARM | LAPSE_MAY_EVICT, "none",
        "with commas: no_events (late by up to sweep_ms where others schedule), no_alarm (late by "
        "seconds), may_evict"),
    ROW(arm_ahead_ms, OPTION_MS, 0, 0, 3652 * DAY, "0",
        "a job due later than that gets its trigger key, 112 bytes, as it comes near; 0: at once"),
    ROW(notify, OPTION_NOTIFY, 0, 0, LAPSE_KEYSPACE, "keyevent",
        "keyevent: hear of all expiries in Redis (flags Ex); keyspace: the server sends only ours "
        "(flags Kx)"),
};
const size_t option_rows_n = sizeof option_rows / sizeof *option_rows;

/* Field types differ in width only: unsigned, size_t, int64_t. */
static int64_t number(const struct lapse_options *o, const struct option_row *row)
{
    uint32_t narrow;
    int64_t wide;

    if (row->size == sizeof narrow) {
        memcpy(&narrow, (const char *)o + row->at, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, (const char *)o + row->at, sizeof wide);
    return wide;
}

static void set_number(struct lapse_options *o, const struct option_row *row, int64_t value)
{
    uint32_t narrow = (uint32_t)value;

    if (row->size == sizeof narrow) {
        memcpy((char *)o + row->at, &narrow, sizeof narrow);
    } else {
        memcpy((char *)o + row->at, &value, sizeof value);
    }
}

static int64_t flags(const char *s)
{
    for (int64_t set = 0;;) {
        size_t len = strcspn(s, ",");
        if (len == 9 && strncmp(s, "no_events", len) == 0) {
            set |= LAPSE_NO_EVENTS;
        } else if (len == 8 && strncmp(s, "no_alarm", len) == 0) {
            set |= LAPSE_NO_ALARM;
        } else if (len == 9 && strncmp(s, "may_evict", len) == 0) {
            set |= LAPSE_MAY_EVICT;
        } else if (len != 4 || strncmp(s, "none", len) != 0) {
            return -1;
        }
        if (!s[len]) {
            return set;
        }
        s += len + 1;
    }
}

/* A plain number is of the unit that the option's name says: lease_ms, max_bytes. -1: it is no
 * value of its kind. */
static int64_t parse(const struct option_row *row, const char *text)
{
    int64_t n = -1;

    switch (row->kind) {
    case OPTION_MS:
        if (!span_decimal(span_of(text), INT64_MAX, &n)) {
            quantity_ms(text, &n);
        }
        return n;
    case OPTION_BYTES:
        if (!span_decimal(span_of(text), INT64_MAX, &n)) {
            quantity_bytes(text, &n);
        }
        return n;
    case OPTION_COUNT: span_decimal(span_of(text), INT64_MAX, &n); return n;
    case OPTION_NOTIFY:
        if (strcmp(text, "keyspace") == 0) {
            return LAPSE_KEYSPACE;
        }
        return strcmp(text, "keyevent") == 0 ? LAPSE_KEYEVENT : -1;
    default: return flags(text);
    }
}

static bool text_ok(const struct option_row *row, const char *s)
{
    struct address parts;
    if (strcmp(row->name, "url") == 0) {
        return address_parse(&parts, s, NULL);
    }
    if (strcmp(row->name, "space") == 0) {
        return keys_space_ok(span_of(s));
    }
    return keys_name_ok(span_of(s));
}

int lapse_options_set(struct lapse_options *o, const char *name, const char *value)
{
    if (!o || !name || !value) {
        return LAPSE_EINVAL;
    }

    for (size_t i = 0; i < option_rows_n; i++) {
        const struct option_row *row = &option_rows[i];
        if (strcmp(row->name, name) != 0 || row->at + row->size > o->size) {
            continue; /* or the caller's struct is older than the option */
        }
        if (row->kind == OPTION_TEXT) {
            if (!text_ok(row, value)) {
                return LAPSE_EINVAL;
            }
            memcpy((char *)o + row->at, &value, sizeof value);
            return 0;
        }
        int64_t n = parse(row, value);
        if (n < row->min || n > row->max) {
            return LAPSE_EINVAL;
        }
        set_number(o, row, n);
        return 0;
    }

    return LAPSE_EINVAL;
}

int options_read(struct options *out, const struct lapse_options *in)
{
    struct lapse_options init = lapse_options_init();
    struct options o = {0};

    in = in ? in : &init;
    if (in->size < offsetof(struct lapse_options, space) ||
        !mem_read_sized(&o.set, sizeof o.set, in)) {
        return LAPSE_EINVAL;
    }

    char host[65] = "";
    char name[65];
    if (gethostname(host, sizeof host) != 0 || !keys_name_ok(span_of(host))) {
        strcpy(host, "localhost");
    }

    snprintf(name, sizeof name, "%.48s:%d", host, (int)getpid());
    o.set.url = o.set.url ? o.set.url : option_rows[0].def_text;
    o.set.space = o.set.space ? o.set.space : option_rows[1].def_text;
    o.set.name = o.set.name ? o.set.name : name;

    for (size_t i = 0; i < option_rows_n; i++) {
        const struct option_row *row = &option_rows[i];
        const char *text;
        memcpy(&text, (const char *)&o.set + row->at, row->kind == OPTION_TEXT ? sizeof text : 0);
        if (row->kind == OPTION_TEXT) {
            if (!text_ok(row, text)) {
                return LAPSE_EINVAL;
            }
            continue;
        }
        int64_t n = number(&o.set, row);
        if (n == 0) {
            set_number(&o.set, row, n = row->def);
        }
        if (n < row->min || n > row->max || (row->kind == OPTION_FLAGS && n & ~row->max)) {
            return LAPSE_EINVAL;
        }
    }

    size_t url_len = strlen(o.set.url) + 1;
    size_t space_len = strlen(o.set.space) + 1;
    size_t name_len = strlen(o.set.name) + 1;
    o.texts_len = 2 * url_len + space_len + name_len;
    o.texts = mem_new(o.texts_len, 0);
    if (!o.texts) {
        return LAPSE_ENOMEM;
    }

    memcpy(o.texts, o.set.space, space_len);
    memcpy(o.texts + space_len, o.set.name, name_len);
    address_parse(&o.address, o.set.url, o.texts + space_len + name_len);
    o.set.url = NULL; /* it may hold a password; o.address has the parts */

    if (o.address.password) {
        char *hidden = mem_hide(o.address.password);
        mem_wipe(o.address.password, strlen(o.address.password));
        o.address.password = hidden;
        if (!hidden) {
            options_free(&o);
            return LAPSE_ENOMEM;
        }
    }

    o.set.space = o.texts;
    o.set.name = o.texts + space_len;
    *out = o;

    return 0;
}

void options_free(struct options *o)
{
    if (o->texts) {
        mem_hide_free(o->address.password);
        mem_wipe(o->texts, o->texts_len);
        mem_free(o->texts);
        o->texts = o->address.password = NULL;
    }
}
