/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_OPTIONS_H
#define LAPSE_OPTIONS_H
#include "redis/address.h"
#include <lapse.h>

enum option_kind {
    OPTION_TEXT,
    OPTION_MS,
    OPTION_COUNT,
    OPTION_BYTES,
    OPTION_FLAGS,
    OPTION_NOTIFY
};
struct option_row {
    const char *name;
    enum option_kind kind;
    size_t at, size;       /* of the field in struct lapse_options */
    int64_t def, min, max; /* ms, count or bytes */
    const char *def_text;  /* of a text, and as the documents show it */
    const char *text;      /* what it is for */
};
extern const struct option_row option_rows[];
extern const size_t option_rows_n;

/* The settings of one handle: defaults filled in, texts our own. */
struct options {
    struct lapse_options set;
    struct address address;
    char *texts; /* the one allocation */
    size_t texts_len;
};
/* EINVAL: out of range, or a newer caller's field is not 0. ENOMEM. */
int options_read(struct options *out, const struct lapse_options *in);
void options_free(struct options *o);

#endif
