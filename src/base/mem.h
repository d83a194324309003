/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_MEM_H
#define LAPSE_MEM_H
#include <stdbool.h>
#include <stddef.h>

/* Allocates head + tail bytes, of which the head is zeroed. NULL: out of memory, or an overflow. */
void *mem_new(size_t head, size_t tail);
/* Makes old have n elements of size. NULL: likewise, and old is as it was. */
void *mem_grow(void *old, size_t n, size_t size);
void mem_free(void *p);
/* Zeroes a secret; the compiler does not take it away. */
void mem_wipe(void *p, size_t len);

/* Copies a secret to pages of its own, which no core file has. NULL: out of memory. */
char *mem_hide(const char *secret);
/* Wipes and frees it; NULL is fine. */
void mem_hide_free(char *secret);

/* Reads a caller's struct that begins with its size. Fields that an older caller lacks become 0,
 * and out->size is out_size. false: the caller is newer, and has set a field that we do not know.
 * */
bool mem_read_sized(void *out, size_t out_size, const void *in);

#endif
