/* SPDX-License-Identifier: MIT */
/* Writes flat JSON objects, one a line. A body is any bytes: what is valid UTF-8 (no overlong form,
 * no surrogate) is a string, the rest is base64 under another name, so that a reader never has to
 * guess. A character that a terminal or an editor would obey is escaped: a reader of JSON gets the
 * same text, and whoever looks at the line sees all of it. This is so wherever stdout leads, for
 * what a file has today a terminal shows tomorrow. Times, tries and tokens are JSON numbers: all
 * stay far below 2^53. */
#include "cli/json.h"
#include "cli/text.h"
#include <inttypes.h>

static void name_of(struct json *j, const char *name)
{
    fprintf(j->to, "%s\"%s\":", j->n++ ? "," : "", name);
}

static void string(FILE *to, const unsigned char *text, size_t len)
{
    static const char *const shorts[256] = {
        ['"'] = "\\\"", ['\\'] = "\\\\", ['\n'] = "\\n", ['\r'] = "\\r",
        ['\t'] = "\\t", ['\b'] = "\\b",  ['\f'] = "\\f",
    };

    putc('"', to);

    for (size_t n; len; len -= n, text += n) {
        n = text_char(text, len);
        uint32_t code = text_code(text, n);
        if (shorts[*text]) {
            fputs(shorts[*text], to);
        } else if (text_is_obeyed(code)) {
            fprintf(to, "\\u%04x", code);
        } else {
            fwrite(text, 1, n, to);
        }
    }

    putc('"', to);
}

static void base64(FILE *to, const unsigned char *b, size_t len)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    putc('"', to);
    for (size_t i = 0; i < len; i += 3) {
        unsigned three = (unsigned)b[i] << 16 | (i + 1 < len ? b[i + 1] : 0u) << 8 |
                         (i + 2 < len ? b[i + 2] : 0u);
        putc(letters[three >> 18], to);
        putc(letters[three >> 12 & 63], to);
        putc(i + 1 < len ? letters[three >> 6 & 63] : '=', to);
        putc(i + 2 < len ? letters[three & 63] : '=', to);
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
    size_t len = 0;
    while (text[len]) {
        len++;
    }
    json_bytes(j, name, text, len);
}

void json_int(struct json *j, const char *name, int64_t value)
{
    name_of(j, name);
    fprintf(j->to, "%" PRId64, value);
}

void json_bool(struct json *j, const char *name, int value)
{
    name_of(j, name);
    fputs(value ? "true" : "false", j->to);
}

void json_ms(struct json *j, const char *name, int64_t us)
{
    name_of(j, name);
    fprintf(j->to, "%s%" PRId64 ".%03d", us < 0 ? "-" : "", (us < 0 ? -us : us) / 1000,
            (int)((us < 0 ? -us : us) % 1000));
}

void json_bytes(struct json *j, const char *name, const void *bytes, size_t len)
{
    char other[40];

    if (text_is_utf8(bytes, len)) {
        name_of(j, name);
        string(j->to, bytes, len);
    } else {
        snprintf(other, sizeof other, "%s_base64", name);
        name_of(j, other);
        base64(j->to, bytes, len);
    }
}

void json_end(struct json *j)
{
    fputs("}\n", j->to);
}
