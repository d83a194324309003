/* SPDX-License-Identifier: MIT */
/* The error list of lapse.h as text and as numbers. */
#include "base/error.h"
#include <stdio.h>
#include <stdlib.h>

const char *lapse_strerror(int err)
{
    switch (err) {
    case LAPSE_OK: return "ok";
#define LAPSE_X(name, number, did, text) \
    case number: return text;
        LAPSE_ERRORS(LAPSE_X)
#undef LAPSE_X
    default: return "unknown error";
    }
}

int lapse_outcome_unknown(int err)
{
    enum { NO, MAYBE };

    switch (err) {
#define LAPSE_X(name, number, did, text) \
    case number: return did;
        LAPSE_ERRORS(LAPSE_X) /* NOLINT(bugprone-branch-clone): a row for each code */
#undef LAPSE_X
    default: return 0;
    }
}

int err_code(const char *name, size_t len)
{
#define LAPSE_X(code, number, did, text)                            \
    if (len == sizeof #code - 1 && memcmp(name, #code, len) == 0) { \
        return number;                                              \
    }
    LAPSE_ERRORS(LAPSE_X)
#undef LAPSE_X
    return 0;
}

void err_assert(const char *what, const char *file, int line)
{
    fprintf(stderr, "lapse: this cannot happen: %s (%s:%d)\n", what, file, line);
    abort();
}
