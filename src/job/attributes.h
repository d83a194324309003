/* SPDX-License-Identifier: MIT */
/* What a job asks for beside its body: a part of its record, which src/lua/README.md draws. */
#ifndef LAPSE_ATTRIBUTES_H
#define LAPSE_ATTRIBUTES_H
#include "base/span.h"

enum {
    ATTRIBUTES_MAX = 4096, /* bytes, in all */
    PRIORITY_MAX = 255,
    TAGS_MAX = 8,
    HEADERS_MAX = 16,
    HEADER_VALUE_MAX = 255,
    GUARD_VALUE_MAX = 255
};

struct attributes {
    size_t len;
    unsigned char bytes[ATTRIBUTES_MAX];
};

/* Appends one; they come in the order of their letters. false: that are too many bytes. */
bool attributes_add(struct attributes *a, char letter, struct span value);

struct attribute {
    char letter;
    struct span value; /* points into the text */
};

/* Takes the first off the text. false: there is none, or its length is wrong. */
bool attributes_take(struct span *text, struct attribute *out);

/* Can this version read them? It may skip a small letter, and must know a capital one. */
bool attributes_ok(struct span text);

/* The first of a letter. false: there is none. */
bool attributes_find(struct span text, char letter, struct span *value);

/* Takes NAME=VALUE apart. false: it is none, and counts as missing. */
bool header_read(struct span text, struct span *name, struct span *value);

/* OP KEY FIELD VALUE: a job runs only where that is so. */
struct guard {
    char op; /* = ! + - */
    struct span key;
    struct span field; /* may be empty: it is no hash */
    struct span value;
};

/* Takes it apart. false: it is none. */
bool guard_read(struct span text, struct guard *out);

#endif
