/* SPDX-License-Identifier: MIT */
#ifndef JSON_H
#define JSON_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* One object on one line. */
struct json {
    FILE *to;
    int n; /* members so far */
};
void json_begin(struct json *j, FILE *to);
void json_text(struct json *j, const char *name, const char *text);
void json_int(struct json *j, const char *name, int64_t value);
void json_bool(struct json *j, const char *name, bool value);
void json_ms(struct json *j, const char *name, int64_t us); /* in ms with three decimals */
/* As NAME_base64 where it is not UTF-8. */
void json_bytes(struct json *j, const char *name, const void *bytes, size_t len);
/* A member that is a list of texts. */
void json_texts(struct json *j, const char *name, const char *const *texts, unsigned n);
/* The same of any bytes; all as NAME_base64 where one is not UTF-8. */
struct json_part {
    const void *bytes;
    size_t len;
};
void json_parts(struct json *j, const char *name, const struct json_part *parts, unsigned n);
/* A member that is a list of numbers. */
void json_ints(struct json *j, const char *name, const int64_t *values, unsigned n);
/* A member that is an object of texts; its names may be any texts. */
void json_open(struct json *j, const char *name);
void json_pair(struct json *j, const char *name, const char *text);
void json_close(struct json *j);
/* A member that is a list of objects. */
void json_list_open(struct json *j, const char *name);
void json_item_open(struct json *j, bool is_first);
void json_list_close(struct json *j);
void json_end(struct json *j);
#endif
