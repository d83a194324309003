/* SPDX-License-Identifier: MIT */
#ifndef JSON_H
#define JSON_H
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json { /* one object on one line */
    FILE *to;
    int n; /* members so far */
};
void json_begin(struct json *j, FILE *to);
void json_text(struct json *j, const char *name, const char *text);
void json_int(struct json *j, const char *name, int64_t value);
void json_bool(struct json *j, const char *name, int value);
/* in ms, three decimals */
void json_ms(struct json *j, const char *name, int64_t us);
/* NAME_base64 if not UTF-8 */
void json_bytes(struct json *j, const char *name, const void *bytes, size_t len);
void json_end(struct json *j);
#endif
