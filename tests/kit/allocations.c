/* SPDX-License-Identifier: MIT */
#include "allocations.h"
#include <lapse.h>
#include <stdatomic.h>
#include <stdlib.h>

/* the threads of liblapse-sync allocate at the same time */
static atomic_long live;
static atomic_long made;
static atomic_long countdown;
static long one_in;
static unsigned random_state;
static atomic_bool failed;

static bool is_to_fail(void)
{
    random_state = random_state * 1103515245 + 12345;
    if (countdown > 0 && atomic_fetch_sub(&countdown, 1) == 1) {
        return true;
    }
    return one_in && (random_state >> 8) % (unsigned long)one_in == 0;
}

static void *counting(void *old, size_t size)
{
    if (size == 0) {
        live -= old ? 1 : 0;
        free(old);
        return NULL;
    }

    if (is_to_fail()) {
        failed = true;
        return NULL;
    }

    void *p = realloc(old, size);
    made++;
    if (p && !old) {
        live++;
    }
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
