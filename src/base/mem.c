/* SPDX-License-Identifier: MIT */
/* The only file that allocates. Tests make the n-th allocation fail by lapse_set_allocator(). */
#include "base/mem.h"
#include <lapse.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

static void *from_libc(void *old, size_t size)
{
    if (size) {
        return realloc(old, size);
    }
    free(old);
    return NULL;
}

static void *(*allocate)(void *, size_t) = from_libc;

void lapse_set_allocator(void *(*alloc)(void *old, size_t size))
{
    allocate = alloc ? alloc : from_libc;
}

void *lapse_allocate(void *old, size_t size)
{
    return allocate(old, size);
}

void *mem_new(size_t head, size_t tail)
{
    void *p = head + tail < head ? NULL : allocate(NULL, head + tail);
    if (p) {
        memset(p, 0, head);
    }
    return p;
}

void *mem_grow(void *old, size_t n, size_t size)
{
    /* to an allocator, a size of 0 means free */
    return !n || !size || n > SIZE_MAX / size ? NULL : allocate(old, n * size);
}

void mem_free(void *p)
{
    if (p) {
        allocate(p, 0);
    }
}

void mem_wipe(void *p, size_t len)
{
    explicit_bzero(p, len);
}

/* Not from the allocator: a core file leaves out whole pages, and others have data in theirs. */
char *mem_hide(const char *secret)
{
    size_t size = strlen(secret) + 1;
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        return NULL;
    }
    madvise(p, size, MADV_DONTDUMP);
    return memcpy(p, secret, size);
}

void mem_hide_free(char *secret)
{
    if (secret) {
        size_t size = strlen(secret) + 1;
        mem_wipe(secret, size);
        munmap(secret, size);
    }
}

bool mem_read_sized(void *out, size_t out_size, const void *in)
{
    size_t size;

    memcpy(&size, in, sizeof size);
    for (size_t i = out_size; i < size; i++) {
        if (((const char *)in)[i]) {
            return false;
        }
    }

    memset(out, 0, out_size);
    memcpy(out, in, size < out_size ? size : out_size);
    memcpy(out, &out_size, sizeof out_size);
    return true;
}
