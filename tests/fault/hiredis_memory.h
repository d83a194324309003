/* SPDX-License-Identifier: MIT */
/* The memory of hiredis: the injection "hiredis" (injection.h) makes its allocations fail, and its
 * blocks are counted. */
#ifndef HIREDIS_MEMORY_H
#define HIREDIS_MEMORY_H

void hiredis_memory_watch(void); /* from now on */
/* Blocks that were not freed; by: the function that made one of them. */
long hiredis_memory_live(const char **by);
#endif
