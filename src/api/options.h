/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_OPTIONS_H
#define LAPSE_OPTIONS_H
#include "redis/address.h"
#include <lapse.h>

enum option_kind {
    OPTION_URL,
    OPTION_SPACE,
    OPTION_FILE,
    OPTION_HOST,
    OPTION_NAME,
    OPTION_MS,
    OPTION_COUNT,
    OPTION_BYTES,
    OPTION_FLAGS,
    OPTION_NOTIFY
};

/* A row of LAPSE_OPTIONS. */
struct option_row {
    const char *name;
    enum option_kind kind;
    size_t at; /* of the field in struct lapse_options */
    size_t size;
    const char *def;
    const char *least; /* "": the kind says what is valid */
    const char *most;
    const char *text;
};
extern const struct option_row option_rows[];
extern const size_t option_rows_n;

static inline bool option_is_text(const struct option_row *row)
{
    return row->kind <= OPTION_NAME;
}

/* The number that a text stands for, whether in range or not; -1: it is no value of that kind. */
int64_t option_parse(const struct option_row *row, const char *text);

/* The options of one handle: complete, with texts of our own. */
struct options {
    struct lapse_options set; /* but for url, which may hold a password */
    struct address address;
    char *texts; /* one allocation */
    size_t texts_len;
};

/* EINVAL: out of range, or a newer caller has set a field that we do not know. ENOMEM. */
int options_read(struct options *out, const struct lapse_options *in);
void options_free(struct options *o);

#endif
