/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_ARGS_H
#define LAPSE_ARGS_H
#include "base/span.h"
#include <inttypes.h>
#include <stdio.h>

/* Arguments of scripts: numbers become texts in buffers that live as long as the request. */
enum { ARG_NUMBER_MAX = 24 };

static inline struct span arg_number(char buf[ARG_NUMBER_MAX], int64_t number)
{
    int len = snprintf(buf, ARG_NUMBER_MAX, "%" PRId64, number);
    return (struct span){buf, (size_t)len};
}

#endif
