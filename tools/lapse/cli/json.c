/* SPDX-License-Identifier: MIT */
/* Writes JSON objects, one a line. A body is any bytes: valid UTF-8 (no overlong form, no
 * surrogate) is a string, everything else is base64 under another name, so that a reader never has
 * to guess. A character that a terminal or an editor would obey is escaped: a reader of JSON gets
 * the same text, and a person who looks at the line sees all of it. It is escaped wherever stdout
 * leads, because what is in a file today is on a terminal tomorrow. Times, tries and tokens are
 * JSON numbers: all of them stay far below 2^53. */
#include "cli/json.h"
#include "cli/text.h"
#include <inttypes.h>
#include <string.h>

static void json_name(struct json *j, const char *name)
{
    fprintf(j->to, "%s\"%s\":", j->n++ ? "," : "", name);
}

static void json_string(FILE *to, const unsigned char *text, size_t len)
{
    static const char *const shorts[256] = {
        ['"'] = "\\\"", ['\\'] = "\\\\", ['\n'] = "\\n", ['\r'] = "\\r",
        ['\t'] = "\\t", ['\b'] = "\\b",  ['\f'] = "\\f",
    };

    putc('"', to);

    while (len) {
        size_t n = text_char(text, len);
        uint32_t code = text_code(text, n);

        if (shorts[*text]) {
            fputs(shorts[*text], to);
        } else if (text_is_control(code)) {
            fprintf(to, "\\u%04x", code);
        } else {
            fwrite(text, 1, n, to);
        }

        text += n;
        len -= n;
    }

    putc('"', to);
}

static void json_base64(FILE *to, const unsigned char *b, size_t len)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    putc('"', to);

    for (size_t i = 0; i < len; i += 3) {
        unsigned second = i + 1 < len ? b[i + 1] : 0;
        unsigned third = i + 2 < len ? b[i + 2] : 0;
        unsigned bits = (unsigned)b[i] << 16 | second << 8 | third;

        putc(letters[bits >> 18], to);
        putc(letters[bits >> 12 & 63], to);
        putc(i + 1 < len ? letters[bits >> 6 & 63] : '=', to);
        putc(i + 2 < len ? letters[bits & 63] : '=', to);
    }

    putc('"', to);
}

void json_begin(struct json *j, FILE *to)
{
    j->to = to;
    j->n = 0;
    putc('{', to);
}

void json_text(struct json *j, const char *name, const char *text)
{
    json_bytes(j, name, text, strlen(text));
}

void json_int(struct json *j, const char *name, int64_t value)
{
    json_name(j, name);
    fprintf(j->to, "%" PRId64, value);
}

void json_bool(struct json *j, const char *name, bool value)
{
    json_name(j, name);
    fputs(value ? "true" : "false", j->to);
}

void json_ms(struct json *j, const char *name, int64_t us)
{
    int64_t size_us = us < 0 ? -us : us;

    json_name(j, name);
    fprintf(j->to, "%s%" PRId64 ".%03d", us < 0 ? "-" : "", size_us / 1000, (int)(size_us % 1000));
}

void json_bytes(struct json *j, const char *name, const void *bytes, size_t len)
{
    char other[40];

    if (text_is_utf8(bytes, len)) {
        json_name(j, name);
        json_string(j->to, bytes, len);
        return;
    }

    snprintf(other, sizeof other, "%s_base64", name);
    json_name(j, other);
    json_base64(j->to, bytes, len);
}

void json_texts(struct json *j, const char *name, const char *const *texts, unsigned n)
{
    json_name(j, name);
    for (unsigned i = 0; i < n; i++) {
        putc(i ? ',' : '[', j->to);
        json_string(j->to, (const unsigned char *)texts[i], strlen(texts[i]));
    }
    fputs(n ? "]" : "[]", j->to);
}

void json_parts(struct json *j, const char *name, const struct json_part *parts, unsigned n)
{
    char other[40];
    bool are_texts = true;

    for (unsigned i = 0; i < n; i++) {
        are_texts = are_texts && text_is_utf8(parts[i].bytes, parts[i].len);
    }
    snprintf(other, sizeof other, "%s_base64", name);
    json_name(j, are_texts ? name : other);
    for (unsigned i = 0; i < n; i++) {
        putc(i ? ',' : '[', j->to);
        if (are_texts) {
            json_string(j->to, parts[i].bytes, parts[i].len);
        } else {
            json_base64(j->to, parts[i].bytes, parts[i].len);
        }
    }
    fputs(n ? "]" : "[]", j->to);
}

void json_ints(struct json *j, const char *name, const int64_t *values, unsigned n)
{
    json_name(j, name);
    putc('[', j->to);
    for (unsigned i = 0; i < n; i++) {
        fprintf(j->to, i ? ",%" PRId64 : "%" PRId64, values[i]);
    }
    putc(']', j->to);
}

void json_open(struct json *j, const char *name)
{
    json_name(j, name);
    putc('{', j->to);
    j->n = 0;
}

void json_pair(struct json *j, const char *name, const char *text)
{
    if (j->n++) {
        putc(',', j->to);
    }
    json_string(j->to, (const unsigned char *)name, strlen(name));
    putc(':', j->to);
    json_string(j->to, (const unsigned char *)text, strlen(text));
}

void json_close(struct json *j)
{
    putc('}', j->to);
    j->n = 1;
}

void json_list_open(struct json *j, const char *name)
{
    json_name(j, name);
    putc('[', j->to);
}

void json_item_open(struct json *j, bool is_first)
{
    fputs(is_first ? "{" : ",{", j->to);
    j->n = 0;
}

void json_list_close(struct json *j)
{
    putc(']', j->to);
}

void json_end(struct json *j)
{
    fputs("}\n", j->to);
}
