/* SPDX-License-Identifier: MIT */
#include "test.h"
#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { TIMEOUT_S = 60 };

/* Criterion's own --timeout only lowers limits that tests have; a test without one would hang
 * forever. */
ReportHook(PRE_ALL)(struct criterion_test_set *set)
{
    FOREACH_SET (struct criterion_suite_set *suite, set->suites) {
        bool has_one = suite->suite.data && suite->suite.data->timeout > 0;
        FOREACH_SET (struct criterion_test *test, suite->tests) {
            if (test->data->timeout <= 0 && !has_one) {
                test->data->timeout = TIMEOUT_S;
            }
        }
    }
}

const char *test_build(void)
{
    const char *dir = getenv("LAPSE_TEST_BUILD");
    return dir ? dir : "build";
}

const char *test_root(void)
{
    const char *dir = getenv("LAPSE_TEST_ROOT");
    return dir ? dir : ".";
}

void test_dir(char *out, size_t size)
{
    const char *tmp = getenv("TMPDIR");
    int n = snprintf(out, size, "%s/t.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    cr_assert(n > 0 && (size_t)n < size, "TMPDIR is too long for a Unix socket: %s", tmp);
    cr_assert(mkdtemp(out), "mkdtemp %s: %m", out);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path) && errno != ENOENT;
}

void test_dir_remove(const char *dir)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

char *test_read_file(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");

    cr_assert(f, "%s: %m", path);

    char *text = NULL;
    size_t size = 0;
    size_t n = 0;
    size_t got;
    do {
        size = size ? 2 * size : 4096;
        text = realloc(text, size + 1);
        cr_assert(text);
        got = fread(text + n, 1, size - n, f);
        n += got;
    } while (got > 0);

    fclose(f);
    text[n] = 0;
    if (len) {
        *len = n;
    }

    return text;
}

int64_t test_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void fail_as_criterion_does(const char *what)
{
    cr_assert_fail("not so: %s", what);
}

void (*test_failed)(const char *what) = fail_as_criterion_does;

void test_check(bool holds, const char *what)
{
    if (!holds) {
        test_failed(what);
    }
}
