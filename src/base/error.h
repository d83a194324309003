/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_ERR_H
#define LAPSE_ERR_H
#include <lapse.h>
#include <stdbool.h>

/* What cannot happen, always checked: a wrong state dies near its cause. Never for what the world
 * can do to us. */
#define ASSERT(x) ((x) ? (void)0 : err_assert(#x, __FILE__, __LINE__))
_Noreturn void err_assert(const char *what, const char *file, int line);

/* Redis refused a request as a whole, and did nothing of it. */
static inline bool err_is_refusal(int err)
{
    return err == LAPSE_EREFUSED || err == LAPSE_EDENIED;
}

/* The code of a script's answer such as "EEXIST"; 0 when it is none. */
int err_code(const char *name, size_t len);

#endif
