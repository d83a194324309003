/* SPDX-License-Identifier: MIT */
/* What every test needs: paths, a folder of its own, files, the time. A test is a process of its
 * own (Criterion forks), so nothing in the kit keeps state between tests, and setenv() in a test
 * concerns that test alone. An error in the kit fails the test. */
#ifndef TEST_H
#define TEST_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

const char *test_build(void); /* LAPSE_TEST_BUILD, or "build" */
const char *test_root(void);  /* LAPSE_TEST_ROOT, or "." */

/* Makes an empty folder that only this test uses. */
void test_dir(char *out, size_t size);
void test_dir_remove(const char *dir);

/* The text is the caller's to free, and ends with a NUL byte that len does not count. len: may be
 * NULL. */
char *test_read_file(const char *path, size_t *len);

int64_t test_now_ms(void); /* monotonic */

/* Fails the test unless this holds. A process that the test forked, which cannot do so as Criterion
 * does, sets a way of its own: it does not return. */
#define TEST_CHECK(cond) test_check(cond, #cond)
void test_check(bool holds, const char *what);
extern void (*test_failed)(const char *what);
#endif
