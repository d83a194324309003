/* SPDX-License-Identifier: MIT */
/* malloc() and its relatives are defined here, in the program, so hiredis calls these. They fail,
 * and count, for callers in its library; all others get the next ones, of a sanitizer or the C
 * library. hiredis has functions to set for that only from 1.0 on. */
#include "hiredis_memory.h"
#include "injection.h"
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- is the caller hiredis? ---- */
static struct {
    uintptr_t from, to;
} library; /* the code of hiredis */

static int look_for_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    if (!strstr(info->dlpi_name, "libhiredis")) {
        return 0;
    }

    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_flags & PF_X) {
            library.from = info->dlpi_addr + part->p_vaddr;
            library.to = library.from + part->p_memsz;
        }
    }

    return 1;
}

static bool is_of_hiredis(const void *caller)
{
    return (uintptr_t)caller >= library.from && (uintptr_t)caller < library.to;
}

/* ---- blocks: an open-addressed table by address ---- */
enum { BLOCKS = 1 << 16 };
static struct block {
    void *at, *by;
} blocks[BLOCKS];
static long n_blocks;

static struct block *block_of(const void *at)
{
    uintptr_t i = (uintptr_t)at / 16 * 2654435761u % BLOCKS;

    while (blocks[i].at && blocks[i].at != at) {
        i = (i + 1) % BLOCKS;
    }
    return &blocks[i];
}

static void block_add(void *at, void *by)
{
    if (at && n_blocks < BLOCKS / 2) {
        *block_of(at) = (struct block){at, by};
        n_blocks++;
    }
}

static void block_remove(const void *at)
{
    if (!at || n_blocks == 0) {
        return;
    }

    struct block *b = block_of(at);
    if (!b->at) {
        return;
    }

    /* those behind it may have their place before it */
    n_blocks--;
    b->at = NULL;
    for (size_t i = ((size_t)(b - blocks) + 1) % BLOCKS; blocks[i].at; i = (i + 1) % BLOCKS) {
        struct block moved = blocks[i];
        blocks[i].at = NULL;
        *block_of(moved.at) = moved;
    }
}

void hiredis_memory_watch(void)
{
    dl_iterate_phdr(look_for_library, NULL);
    cr_assert(library.from, "libhiredis is not linked as a shared library");
}

long hiredis_memory_live(const char **by)
{
    Dl_info info;

    for (size_t i = 0; i < BLOCKS; i++) {
        if (blocks[i].at) {
            *by = dladdr(blocks[i].by, &info) && info.dli_sname ? info.dli_sname : "?";
        }
    }
    return n_blocks;
}

/* ---- in place of the C library's ---- */
#define CALLER __builtin_return_address(0)

static struct { /* what would have been called */
    void *(*malloc)(size_t n);
    void *(*calloc)(size_t n, size_t size);
    void *(*realloc)(void *old, size_t n);
    char *(*strdup)(const char *text);
    void (*free)(void *p);
} next;

/* false while it is being looked up: dlsym() frees the text of an earlier error, and allocates one
 * for a new error. */
static bool is_next_known(void)
{
    static bool begun;
    static bool done;

    if (!begun) {
        begun = true;
        *(void **)&next.malloc = dlsym(RTLD_NEXT, "malloc");
        *(void **)&next.calloc = dlsym(RTLD_NEXT, "calloc");
        *(void **)&next.realloc = dlsym(RTLD_NEXT, "realloc");
        *(void **)&next.strdup = dlsym(RTLD_NEXT, "strdup");
        *(void **)&next.free = dlsym(RTLD_NEXT, "free");
        done = true;
    }
    return done;
}

static bool fails(const void *caller)
{
    return !is_next_known() || (is_of_hiredis(caller) && inject_strikes("hiredis"));
}

static void *made(void *at, void *caller)
{
    if (is_of_hiredis(caller)) {
        block_add(at, caller);
    }
    return at;
}

void *malloc(size_t n)
{
    return fails(CALLER) ? NULL : made(next.malloc(n), CALLER);
}

void *calloc(size_t n, size_t size)
{
    return fails(CALLER) ? NULL : made(next.calloc(n, size), CALLER);
}

void *realloc(void *old, size_t n)
{
    if (fails(CALLER)) {
        return NULL;
    }
    block_remove(old);
    return made(next.realloc(old, n), CALLER);
}

char *strdup(const char *text)
{
    return fails(CALLER) ? NULL : made(next.strdup(text), CALLER);
}

/* What hiredis made is freed by its users too. */
void free(void *p)
{
    if (is_next_known()) {
        block_remove(p);
        next.free(p);
    }
}
