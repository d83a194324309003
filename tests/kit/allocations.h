/* SPDX-License-Identifier: MIT */
/* Counts the allocations of lapse, by lapse_set_allocator(), and makes some of them fail. */
#ifndef ALLOCATIONS_H
#define ALLOCATIONS_H
#include <stdbool.h>

void alloc_install(void); /* before the first lapse_open() */
long alloc_live(void);    /* blocks that were not given back */
long alloc_made(void);    /* blocks that were asked for, those that were enlarged included */

/* The nth allocation from now fails, once; 0: none does. */
void alloc_fail(long nth);
/* One in so many fails, at random, until alloc_fail(). */
void alloc_fail_often(long of, unsigned seed);
bool alloc_has_failed(void); /* since alloc_fail() */
#endif
