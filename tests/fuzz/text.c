/* SPDX-License-Identifier: MIT */
/* Untrusted bytes on their way to a log or a terminal: printable ASCII comes out, whatever
 * goes in. */
#include "fuzz.h"
#include "cli/json.h"
#include "base/log.h"
#include "cli/text.h"
#include "cli/message.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_quiet();
    return 0;
}

static bool is_printable(const char *s)
{
    for (; *s; s++) {
        if (*s < ' ' || *s > '~') {
            return false;
        }
    }
    return true;
}

/* In UTF-8, for which the first bytes of a character stand in no other. */
static bool obeyed(const unsigned char *s)
{
    return *s < ' ' || *s == 127 || (*s == 0xc2 && s[1] < 0xa0) || (*s == 0xd8 && s[1] == 0x9c) ||
           (*s == 0xe2 && s[1] == 0x80 &&
            (s[2] == 0x8e || s[2] == 0x8f || (s[2] >= 0xa8 && s[2] <= 0xae))) ||
           (*s == 0xe2 && s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9);
}

static bool shows_nothing_obeyed(const char *s)
{
    const unsigned char *at = (const unsigned char *)s;

    for (size_t len = strlen(s), n; len; at += n, len -= n) {
        n = text_char(at, len);
        if (!n || text_is_control(text_code(at, n))) {
            return false;
        }
    }
    return true;
}

static void on_line(int level, const char *line, void *arg)
{
    (void)level;
    MUST(is_printable(line) && strlen(line) < 1024);
    ++*(unsigned *)arg;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char cut[64];
    char *text = fuzz_text(data, size);
    char *json = NULL;
    size_t room = size ? data[0] + 1u : 1;
    size_t len;
    char *out = malloc(room);
    unsigned said = 0;

    MUST(out);
    log_escape(out, room, data, size);
    MUST(strlen(out) < room && is_printable(out));

    struct log log = {.fn = on_line, .arg = &said};
    log_line(&log, LOG_REFUSED, LOG_ERR, "Redis said: %s (%.*s)", text, (int)size, text);
    MUST(said == 1);

    const char *shown = printable(text);
    MUST(is_printable(shown) && strlen(shown) <= 4 * 256 + 3);
    text_escaped(cut, sizeof cut, data, size);
    MUST(shows_nothing_obeyed(cut) && strlen(cut) < sizeof cut);
    text_repaired(cut, sizeof cut, text);
    MUST(text_is_utf8(cut, strlen(cut)) && strlen(cut) < sizeof cut);
    usage_error("value", text, "no");

    FILE *to = open_memstream(&json, &len);
    struct json j;
    MUST(to);
    json_begin(&j, to);
    json_bytes(&j, "body", data, size);
    json_end(&j);
    MUST(!fclose(to) && len >= 12 && text_is_utf8(json, len) && json[len - 1] == '\n');
    for (size_t i = 0; i + 1 < len; i++) {
        MUST(!obeyed((unsigned char *)json + i));
    }

    free(json);
    free(out);
    free(text);

    return 0;
}
