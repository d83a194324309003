/* SPDX-License-Identifier: MIT */
#include "allocations.h"
#include <lapse.h>
#include <stdlib.h>

static long live, made, countdown, one_in;
static unsigned random_state;
static bool failed;

static void *counting(void *old, size_t size)
{
    if (size == 0) {
        live -= old != NULL;
        free(old);
        return NULL;
    }

    random_state = random_state * 1103515245 + 12345;

    if ((countdown > 0 && --countdown == 0) ||
        (one_in && (random_state >> 8) % (unsigned long)one_in == 0)) {
        failed = true;
        return NULL;
    }

    made++;

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

long alloc_made(void)
{
    return made;
}

void alloc_fail(long nth)
{
    countdown = nth;
    one_in = 0;
    failed = false;
}

void alloc_fail_often(long of, unsigned seed)
{
    alloc_fail(0);
    one_in = of;
    random_state = seed;
}

bool alloc_has_failed(void)
{
    return failed;
}
