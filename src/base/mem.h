/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_MEM_H
#define LAPSE_MEM_H
#include <stdbool.h>
#include <stddef.h>

/* head + tail bytes, the head zeroed; NULL: out of memory, or an overflow */
void *mem_new(size_t head, size_t tail);
void *mem_grow(void *old, size_t n, size_t size); /* n elements of size; NULL: old is as it was */
void mem_free(void *p);
void mem_wipe(void *p, size_t len); /* for secrets: is not optimised away */

/* Copies a text to pages of its own, which no core has; NULL: out of memory. */
char *mem_hide(const char *secret);
void mem_hide_free(char *secret); /* wipes it; NULL is fine */

/* Reads a caller's struct that begins with its size. Fields that an older caller lacks are 0;
 * false: the caller is newer, and asks by a field that we do not know. out->size is out_size. */
bool mem_read_sized(void *out, size_t out_size, const void *in);

#endif
