/* SPDX-License-Identifier: MIT */
/* The options as data: the rows of LAPSE_OPTIONS, which lapse_open(), lapse_options_set(), -o of
 * the program and the documents all use. Zero always means the default. */
#include "api/options.h"
#include "base/mem.h"
#include "base/quantity.h"
#include "job/keys.h"
#include "base/log.h"
#include "redis/tls.h"
#include <stdio.h>
#include <unistd.h>

enum { PATH_BYTES = 4095, HOST_BYTES = 253 };

const struct option_row option_rows[] = {
#define LAPSE_X(name, type, kind, def, least, most, text)                                  \
    {#name, OPTION_##kind, offsetof(struct lapse_options, name), sizeof(type), def, least, \
     most,  text},
    LAPSE_OPTIONS(LAPSE_X)
#undef LAPSE_X
};
const size_t option_rows_n = sizeof option_rows / sizeof *option_rows;

/* ---- fields: unsigned, size_t, int64_t, const char * ---- */
static int64_t option_number(const struct lapse_options *o, const struct option_row *row)
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

static void option_set_number(struct lapse_options *o, const struct option_row *row, int64_t value)
{
    uint32_t narrow = (uint32_t)value;

    if (row->size == sizeof narrow) {
        memcpy((char *)o + row->at, &narrow, sizeof narrow);
    } else {
        memcpy((char *)o + row->at, &value, sizeof value);
    }
}

static const char *option_text(const struct lapse_options *o, const struct option_row *row)
{
    const char *text;
    memcpy(&text, (const char *)o + row->at, sizeof text);
    return text;
}

static void option_set_text(struct lapse_options *o, const struct option_row *row, const char *text)
{
    memcpy((char *)o + row->at, &text, sizeof text);
}

/* ---- values ---- */
static int64_t parse_flags(const char *text)
{
    static const struct {
        const char *name;
        enum lapse_flag flag;
    } rows[] = {
        {"none", 0},
        {"no_events", LAPSE_NO_EVENTS},
        {"no_alarm", LAPSE_NO_ALARM},
        {"may_evict", LAPSE_MAY_EVICT},
    };
    struct span rest = span_of(text);
    int64_t flags = 0;

    for (bool more = true; more;) {
        struct span name = rest;
        size_t i = 0;
        more = span_cut(&rest, ',', &name);
        while (i < sizeof rows / sizeof *rows && !span_is(name, rows[i].name)) {
            i++;
        }
        if (i == sizeof rows / sizeof *rows) {
            return -1;
        }
        flags |= rows[i].flag;
    }

    return flags;
}

static int64_t parse_notify(const char *text)
{
    if (strcmp(text, "keyspace") == 0) {
        return LAPSE_KEYSPACE;
    }
    return strcmp(text, "keyevent") == 0 ? LAPSE_KEYEVENT : -1;
}

int64_t option_parse(const struct option_row *row, const char *text)
{
    int64_t n = -1;

    if (row->kind == OPTION_FLAGS) {
        return parse_flags(text);
    }
    if (row->kind == OPTION_NOTIFY) {
        return parse_notify(text);
    }

    if (span_decimal(span_of(text), INT64_MAX, &n)) {
        return n;
    }
    if (row->kind == OPTION_MS) {
        quantity_ms(text, &n);
    } else if (row->kind == OPTION_BYTES) {
        quantity_bytes(text, &n);
    }
    return n;
}

static bool number_is_valid(const struct option_row *row, int64_t n)
{
    switch (row->kind) {
    case OPTION_FLAGS: return (n & ~(LAPSE_NO_EVENTS | LAPSE_NO_ALARM | LAPSE_MAY_EVICT)) == 0;
    case OPTION_NOTIFY: return n == LAPSE_KEYEVENT || n == LAPSE_KEYSPACE;
    default: return n >= option_parse(row, row->least) && n <= option_parse(row, row->most);
    }
}

static bool is_printable(const char *text, size_t most)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 127) {
            return false;
        }
    }
    return len <= most;
}

static bool path_is_valid(const char *text)
{
    return is_printable(text, PATH_BYTES);
}

/* What cannot be the name in a certificate. */
static bool host_is_valid(const char *text)
{
    return is_printable(text, HOST_BYTES) && !strpbrk(text, " /@*");
}

static bool text_is_valid(const struct option_row *row, const char *text)
{
    struct address a;

    switch (row->kind) {
    case OPTION_URL: return address_parse(&a, text, NULL) && (!a.tls || tls_built());
    case OPTION_FILE: return path_is_valid(text);
    case OPTION_HOST: return host_is_valid(text);
    case OPTION_SPACE: return keys_space_ok(span_of(text));
    default: return keys_name_ok(span_of(text));
    }
}

static const struct option_row *find_row(const char *name)
{
    for (size_t i = 0; i < option_rows_n; i++) {
        if (strcmp(option_rows[i].name, name) == 0) {
            return &option_rows[i];
        }
    }
    return NULL;
}

int lapse_options_set(struct lapse_options *o, const char *name, const char *value)
{
    if (!o || !name || !value) {
        return LAPSE_EINVAL;
    }

    const struct option_row *row = find_row(name);
    if (!row || row->at + row->size > o->size) {
        return LAPSE_EINVAL; /* or the caller's struct is older than the option */
    }

    if (option_is_text(row)) {
        if (!text_is_valid(row, value)) {
            return LAPSE_EINVAL;
        }
        option_set_text(o, row, value);
        return 0;
    }

    int64_t n = option_parse(row, value);
    if (!number_is_valid(row, n)) {
        return LAPSE_EINVAL;
    }
    option_set_number(o, row, n);
    return 0;
}

/* ---- a handle's own ---- */
enum { DEFAULT_NAME = KEYS_NAME_MAX + 1, CLUSTER_ARM_AHEAD_MS = 60000 };

static void make_name(char name[DEFAULT_NAME])
{
    char host[KEYS_NAME_MAX + 1] = "";

    if (gethostname(host, sizeof host) != 0 || !keys_name_ok(span_of(host))) {
        memcpy(host, "localhost", sizeof "localhost");
    }
    snprintf(name, DEFAULT_NAME, "%.48s:%d", host, (int)getpid());
}

/* Fills in the defaults, and checks what is given. */
static bool options_complete(struct lapse_options *o, const char *name)
{
    for (const struct option_row *row = option_rows; row < option_rows + option_rows_n; row++) {
        if (option_is_text(row)) {
            if (!option_text(o, row)) {
                option_set_text(o, row, row->kind == OPTION_NAME ? name : row->def);
            }
            if (!text_is_valid(row, option_text(o, row))) {
                return false;
            }
        } else {
            if (option_number(o, row) == 0) {
                option_set_number(o, row, option_parse(row, row->def));
            }
            if (!number_is_valid(row, option_number(o, row))) {
                return false;
            }
        }
    }

    return true;
}

/* false: out of memory, and the password is nowhere any more. */
static bool options_hide(char **password)
{
    char *shown = *password;

    if (!shown) {
        return true;
    }
    *password = mem_hide(shown);
    mem_wipe(shown, strlen(shown));
    return *password != NULL;
}

/* Copies the texts; the URL is taken apart, and its passwords hidden. */
static int options_own_texts(struct options *o)
{
    const char **texts[] = {&o->set.space,    &o->set.name,    &o->set.tls_ca,
                            &o->set.tls_cert, &o->set.tls_key, &o->set.tls_name};
    enum { TEXTS = sizeof texts / sizeof *texts };

    o->texts_len = 2 * (strlen(o->set.url) + 1);
    for (size_t i = 0; i < TEXTS; i++) {
        o->texts_len += strlen(*texts[i]) + 1;
    }
    o->texts = mem_new(o->texts_len, 0);
    if (!o->texts) {
        return LAPSE_ENOMEM;
    }

    char *to = o->texts;
    for (size_t i = 0; i < TEXTS; i++) {
        size_t len = strlen(*texts[i]) + 1;
        *texts[i] = memcpy(to, *texts[i], len);
        to += len;
    }

    address_parse(&o->address, o->set.url, to);
    o->set.url = NULL;
    o->address.tls_ca = o->set.tls_ca;
    o->address.tls_cert = o->set.tls_cert;
    o->address.tls_key = o->set.tls_key;
    o->address.tls_name = o->set.tls_name;

    bool hidden = options_hide(&o->address.password);
    hidden = options_hide(&o->address.sentinel_password) && hidden;
    if (!hidden) {
        options_free(o);
        return LAPSE_ENOMEM;
    }

    return 0;
}

/* EINVAL does not say which: the log does, where something is missing that can be had. */
static void options_say(const struct lapse_options *o, const char *what)
{
    struct log log = {.fn = o->log, .arg = o->log_arg};
    log_line(&log, LOG_CONNECT, LOG_ERR, "%s", what);
}

/* Which part of the URL it is could be a secret: the rule must do. */
static void options_say_url(const struct lapse_options *o)
{
    char line[512];

    snprintf(line, sizeof line, "the URL is refused: %s", address_rule(o->url));
    options_say(o, line);
}

static bool options_agree(const struct lapse_options *o)
{
    struct address a;

    if (o->url && !address_parse(&a, o->url, NULL)) {
        options_say_url(o);
        return false;
    }
    if (o->url && !tls_built() && a.tls) {
        options_say(o, "rediss://: " TLS_NEEDS);
        return false;
    }
    if ((o->tls_cert && *o->tls_cert) != (o->tls_key && *o->tls_key)) {
        options_say(o, TLS_PAIR);
        return false;
    }
    return true;
}

int options_read(struct options *out, const struct lapse_options *in)
{
    struct lapse_options defaults = lapse_options_init();
    struct options o = {.texts = NULL};
    char name[DEFAULT_NAME];

    in = in ? in : &defaults;
    if (in->size < offsetof(struct lapse_options, space) ||
        !mem_read_sized(&o.set, sizeof o.set, in)) {
        return LAPSE_EINVAL;
    }

    make_name(name);
    if (!options_agree(&o.set) || !options_complete(&o.set, name)) {
        return LAPSE_EINVAL;
    }

    int err = options_own_texts(&o);
    if (err) {
        return err;
    }

    /* each trigger is a key more to be moved with its slot */
    if (o.address.kind == ADDRESS_CLUSTER && !o.set.arm_ahead_ms) {
        o.set.arm_ahead_ms = CLUSTER_ARM_AHEAD_MS;
    }
    *out = o;
    return 0;
}

void options_free(struct options *o)
{
    if (o->texts) {
        mem_hide_free(o->address.password);
        mem_hide_free(o->address.sentinel_password);
        mem_wipe(o->texts, o->texts_len);
        mem_free(o->texts);
        o->texts = o->address.password = o->address.sentinel_password = NULL;
    }
}
