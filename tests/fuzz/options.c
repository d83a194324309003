/* SPDX-License-Identifier: MIT */
/* Options as text, a name=value in each line: what is taken by name is taken by lapse_open(). */
#include "api/options.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char *rest = text;
    struct lapse_options set = lapse_options_init();
    struct lapse_options before;
    struct options read;

    for (char *line; (line = strsep(&rest, "\n"));) {
        char *value = strchr(line, '=');
        if (value) {
            *value++ = '\0';
            before = set;
            int err = lapse_options_set(&set, line, value);
            MUST(err == 0 || err == LAPSE_EINVAL);
            MUST(!err || memcmp(&before, &set, sizeof set) == 0); /* an error did nothing */
        }
    }

    MUST(options_read(&read, &set) == 0);

    for (size_t i = 0; i < option_rows_n; i++) {
        const struct option_row *row = &option_rows[i];
        int64_t wide = 0;
        /* little-endian, as our machines are */
        memcpy(&wide, (const char *)&read.set + row->at, row->size);
        MUST(!*row->most || wide >= option_parse(row, row->least));
        MUST(!*row->most || wide <= option_parse(row, row->most));
        MUST(row->kind != OPTION_NOTIFY || wide <= LAPSE_KEYSPACE);
    }

    options_free(&read);
    free(text);

    return 0;
}
