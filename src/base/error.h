/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_ERROR_H
#define LAPSE_ERROR_H
#include <lapse.h>
#include <stdbool.h>

/* Checks, in every build, what can be false only by a bug of ours, so that a wrong state ends near
 * its cause. Never for what the world can do to us. */
#define ASSERT(x) ((x) ? (void)0 : err_assert(#x, __FILE__, __LINE__))
_Noreturn void err_assert(const char *what, const char *file, int line);

/* Redis refused a request as a whole, and did nothing of it. */
static inline bool err_is_refusal(int err)
{
    return err == LAPSE_EREFUSED || err == LAPSE_EDENIED || err == LAPSE_EHALF;
}

/* The code that a script answered by its name, such as "EEXIST"; 0: it is no name of a code. */
int err_code(const char *name, size_t len);

#endif
