/* SPDX-License-Identifier: MIT */
#include "base/mem.h"
#include <criterion/criterion.h>
#include <lapse.h>
#include <stdio.h>
#include <stdlib.h>

/* An allocator that notes what it was asked for, and hands out dirty memory. */
static struct {
    int calls;
    void *old;
    size_t size;
    bool fails;
} asked;

static void *dirty(void *old, size_t size)
{
    asked.calls++;
    asked.old = old;
    asked.size = size;
    if (size == 0) {
        free(old);
        return NULL;
    }

    if (asked.fails || size > 1 << 20) {
        return NULL;
    }

    void *p = realloc(old, size);
    return old ? p : memset(p, 0xa5, size);
}

Test(mem, new_zeroes_the_head_and_leaves_the_tail)
{
    lapse_set_allocator(dirty);

    unsigned char *p = mem_new(7, 5);
    cr_assert_not_null(p);
    cr_expect_eq(asked.size, 12);
    cr_expect_null(asked.old);
    for (int i = 0; i < 12; i++) {
        cr_expect_eq(p[i], i < 7 ? 0 : 0xa5, "byte %d", i);
    }

    mem_free(p);
    p = mem_new(0, 3);
    cr_expect_eq(p[0], 0xa5);
    mem_free(p);
    p = mem_new(3, 0);
    cr_expect_eq(p[2], 0);
    mem_free(p);
}

Test(mem, new_refuses_a_sum_that_does_not_fit)
{
    lapse_set_allocator(dirty);
    cr_expect_null(mem_new(SIZE_MAX, 1));
    cr_expect_null(mem_new(1, SIZE_MAX));
    cr_expect_null(mem_new(SIZE_MAX - 7, 8));
    cr_expect_null(mem_new(SIZE_MAX, SIZE_MAX));
    cr_expect_eq(asked.calls, 0, "the allocator was asked for %zu", asked.size);
    cr_expect_null(mem_new(SIZE_MAX - 8, 8));
    cr_expect_null(mem_new(SIZE_MAX, 0));
    cr_expect_eq(asked.calls, 2, "SIZE_MAX itself is for the allocator to refuse");
    cr_expect_eq(asked.size, SIZE_MAX);
}

Test(mem, grow_refuses_a_product_that_does_not_fit)
{
    lapse_set_allocator(dirty);
    cr_expect_null(mem_grow(NULL, SIZE_MAX / 8 + 1, 8));
    cr_expect_null(mem_grow(NULL, 8, SIZE_MAX / 8 + 1));
    cr_expect_null(mem_grow(NULL, SIZE_MAX, SIZE_MAX));
    cr_expect_eq(asked.calls, 0, "the allocator was asked for %zu", asked.size);
    cr_expect_null(mem_grow(NULL, SIZE_MAX / 8, 8));
    cr_expect_eq(asked.calls, 1);
    cr_expect_eq(asked.size, SIZE_MAX / 8 * 8);
}

Test(mem, grow_keeps_what_there_was)
{
    lapse_set_allocator(dirty);
    char *p = mem_grow(NULL, 3, 2);
    char *old = p;
    cr_assert_not_null(p);
    memcpy(p, "abcdef", 6);
    p = mem_grow(p, 1000, 2);
    cr_assert_not_null(p);
    cr_expect_eq(asked.old, old);
    cr_expect_eq(asked.size, 2000);
    cr_expect_arr_eq(p, "abcdef", 6);
    mem_free(p);
}

Test(mem, grow_that_fails_leaves_the_old_as_it_was)
{
    lapse_set_allocator(dirty);
    char *p = mem_grow(NULL, 6, 1);
    memcpy(p, "abcdef", 6);
    asked.fails = true;
    cr_expect_null(mem_grow(p, 100, 1));
    cr_expect_null(mem_grow(p, SIZE_MAX, 2));
    cr_expect_null(mem_grow(p, 0, 8), "0 would free it");
    cr_expect_null(mem_grow(p, 8, 0));
    cr_expect_arr_eq(p, "abcdef", 6);
    mem_free(p);
}

Test(mem, new_says_when_there_is_none)
{
    lapse_set_allocator(dirty);
    asked.fails = true;
    cr_expect_null(mem_new(16, 16));
    cr_expect_eq(asked.calls, 1);
}

Test(mem, free_takes_null_and_tells_the_allocator_of_nothing_else)
{
    lapse_set_allocator(dirty);
    mem_free(NULL);
    cr_expect_eq(asked.calls, 0);
    void *p = mem_new(1, 0);
    mem_free(p);
    cr_expect_eq(asked.calls, 2);
    cr_expect_eq(asked.old, p);
    cr_expect_eq(asked.size, 0);
}

Test(mem, null_for_an_allocator_is_libc_again)
{
    lapse_set_allocator(dirty);
    lapse_set_allocator(NULL);
    char *p = mem_new(4, 4);
    cr_assert_not_null(p);
    memcpy(p, "12345678", 8);
    p = mem_grow(p, 4096, 4);
    cr_assert_not_null(p);
    cr_expect_arr_eq(p, "12345678", 8);
    mem_free(p); /* LeakSanitizer sees whether that freed it */
    cr_expect_eq(asked.calls, 0);
}

/* ---- callers' structs ---- */
struct sized {
    size_t size;
    char a[8], b[8];
};

/* of a block of exactly that size, for ASan to see */
static bool read_sized(struct sized *out, size_t size, const char *after_size)
{
    char *in = calloc(1, size);

    memcpy(in, &size, sizeof size);
    memcpy(in + sizeof size, after_size, size - sizeof size);
    memset(out, 0x5a, sizeof *out);
    bool ok = mem_read_sized(out, sizeof *out, in);
    free(in);
    return ok;
}

Test(mem, a_struct_of_our_size_is_read_whole)
{
    struct sized out;
    cr_assert(read_sized(&out, sizeof out, "aaaaaaa7bbbbbbb8"));
    cr_expect_eq(out.size, sizeof out);
    cr_expect_arr_eq(out.a, "aaaaaaa7", 8);
    cr_expect_arr_eq(out.b, "bbbbbbb8", 8);
}

Test(mem, an_older_callers_struct_lacks_what_is_0_then)
{
    for (size_t has = 0; has <= 16; has++) {
        struct sized out;
        char want[16] = {0};
        memset(want, 'x', has);
        cr_assert(read_sized(&out, sizeof out.size + has, "xxxxxxxxxxxxxxxx"));
        cr_expect_eq(out.size, sizeof out);
        cr_expect_arr_eq(out.a, want, 8, "of %zu bytes", has);
        cr_expect_arr_eq(out.b, want + 8, 8, "of %zu bytes", has);
    }
}

Test(mem, a_newer_callers_struct_may_have_no_more_than_zeros)
{
    struct sized out;
    char in[16 + 9] = "aaaaaaaabbbbbbbb";

    cr_expect(read_sized(&out, sizeof out + 9, in));
    cr_expect_eq(out.size, sizeof out);
    cr_expect_arr_eq(out.b, "bbbbbbbb", 8);
    for (size_t i = 0; i < 9; i++) {
        in[16 + i] = (char)0x80;
        cr_expect_not(read_sized(&out, sizeof out + 9, in), "byte %zu", i);
        cr_expect_eq(out.size, (size_t)0x5a5a5a5a5a5a5a5a, "and nothing is touched");
        in[16 + i] = 0;
    }
}

Test(mem, wipe_clears_so_many_bytes)
{
    char secret[] = "0123456789";

    mem_wipe(secret + 2, 5);
    cr_expect_arr_eq(secret,
                     "01\0\0\0\0\0"
                     "789",
                     sizeof secret);
    mem_wipe(secret, 0);
    cr_expect_eq(secret[0], '0');
}

Test(mem, a_hidden_text_is_in_no_core)
{
    char *secret = mem_hide("correcthorse");
    char line[512];
    unsigned long from = 0;
    unsigned long to = 0;
    unsigned long a;
    unsigned long b;
    unsigned long at = (unsigned long)(uintptr_t)secret;
    bool kept_out = false;
    FILE *maps = fopen("/proc/self/smaps", "re");

    cr_assert(secret && maps);
    cr_expect_str_eq(secret, "correcthorse");

    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx ", &a, &b) == 2) {
            from = a;
            to = b;
        }
        kept_out |=
            from <= at && at < to && strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " dd");
    }

    fclose(maps);
    cr_expect(kept_out);
    mem_hide_free(secret);
    mem_hide_free(NULL);
}
