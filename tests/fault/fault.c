/* SPDX-License-Identifier: MIT */
#include "fault.h"
#include "test.h"
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool fault_full(void)
{
    const char *s = getenv("LAPSE_SOAK");
    return s && strcmp(s, "1") == 0;
}

long fault_n(long brief, long full)
{
    return fault_full() ? full : brief;
}

void fault_say(const char *format, ...)
{
    char line[512];
    va_list ap;

    va_start(ap, format);
    vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    fprintf(stderr, "%s\n", line);
}

void fault_row(const char *row, const char *fault, const char *goal, const char *reached, ...)
{
    char path[256];
    char line[1024];
    int n = snprintf(line, sizeof line, "%s\t%s\t%s\t", row, fault, goal);
    va_list ap;

    va_start(ap, reached);
    n += vsnprintf(line + n, sizeof line - (size_t)n, reached, ap);
    va_end(ap);
    cr_assert_lt((size_t)n + 1, sizeof line, "%s: too long a row", row);
    memcpy(line + n, "\n", 2);
    snprintf(path, sizeof path, "%s/fault.rows", test_build());

    FILE *f = fopen(path, "a"); /* one write: rows run side by side */
    cr_assert(f && fputs(line, f) >= 0 && fclose(f) == 0, "%s: %m", path);
}
