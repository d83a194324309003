/* SPDX-License-Identifier: MIT */
/* Cron lines: eight bytes are the moment, the rest is the rule. */
#include "fuzz.h"
#include <lapse_cron.h>

enum { MOMENTS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct eat e = {data, size};
    int64_t ms = (int64_t)eat_number(&e, 8);
    char *rule = eat_copy(&e, e.left, true);
    char reason[128] = "";

    int wrong = lapse_cron_check(rule, reason, sizeof reason);
    MUST(wrong == 0 || wrong == LAPSE_EINVAL);
    MUST((wrong != 0) == (strncmp(reason, "column ", 7) == 0));
    MUST(!wrong || (size_t)atol(reason + 7) <= strlen(rule) + 1);

    for (int i = 0; i < MOMENTS; i++) {
        int64_t next_ms = lapse_cron_next(rule, ms);

        MUST((next_ms == -1) == (wrong != 0));
        MUST(wrong || next_ms == 0 || (next_ms > ms && next_ms % 1000 == 0));
        ms = next_ms > 0 ? next_ms : ms;
    }
    free(rule);

    return 0;
}
