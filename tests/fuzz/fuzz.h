/* SPDX-License-Identifier: MIT */
/* What the fuzz targets share. Each is one file with one function, LLVMFuzzerTestOneInput(): built
 * by clang it is driven by libFuzzer (make fuzz), built by any compiler it replays its corpus (make
 * test). */
#ifndef FUZZ_H
#define FUZZ_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* What must hold for any input. */
#define MUST(x) ((x) ? (void)0 : (dprintf(2, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))

/* The input, eaten from its start; past its end there are zeros. */
struct eat {
    const uint8_t *at;
    size_t left;
};
static inline uint8_t eat_byte(struct eat *e)
{
    uint8_t byte = e->left ? *e->at : 0;
    e->at += e->left > 0;
    e->left -= e->left > 0;
    return byte;
}
static inline uint64_t eat_number(struct eat *e, unsigned bytes)
{
    uint64_t n = 0;
    while (bytes--) {
        n = n << 8 | eat_byte(e);
    }
    return n;
}
/* In a block of exactly its size, and a NUL after it unless it is bytes; the caller's to free. */
static inline char *eat_copy(struct eat *e, size_t len, bool text)
{
    len = len < e->left ? len : e->left;
    char *copy = malloc(len + text + !(len + text));
    MUST(copy);
    if (len) {
        memcpy(copy, e->at, len);
    }
    if (text) {
        copy[len] = '\0';
    }
    e->at += len;
    e->left -= len;
    return copy;
}
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    struct eat e = {data, size};
    return eat_copy(&e, size, true);
}
/* Messages for people go nowhere, and a sanitizer's reports are still heard. */
static inline void fuzz_quiet(void)
{
    MUST(freopen("/dev/null", "w", stdout));
    stderr = fopen("/dev/null", "w");
    MUST(stderr);
}
#endif
