/* SPDX-License-Identifier: MIT */
#include "support.h"
#include <lapse.h>
#include <stdlib.h>

static long live, countdown;
static bool failed;

static void *counting(void *old, size_t size)
{
    if (size == 0) {
        live -= old != NULL;
        free(old);
        return NULL;
    }
    if (countdown > 0 && --countdown == 0) {
        failed = true;
        return NULL;
    }
    void *p = realloc(old, size);
    live += p && !old;
    return p;
}

void alloc_install(void)
{
    lapse_set_allocator(counting);
}

long alloc_live(void)
{
    return live;
}

void alloc_fail(long nth)
{
    countdown = nth;
    failed = false;
}

bool alloc_has_failed(void)
{
    return failed;
}
