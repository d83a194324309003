/* SPDX-License-Identifier: MIT */
/* Linked into every program of make coverage: what leaves by _exit() or abort() is counted too. */
#include <stdlib.h>
#include <unistd.h>

void __gcov_dump(void);
_Noreturn void __real__exit(int status);
_Noreturn void __real_abort(void);
_Noreturn void __wrap__exit(int status);
_Noreturn void __wrap_abort(void);

_Noreturn void __wrap__exit(int status)
{
    __gcov_dump();
    __real__exit(status);
}

_Noreturn void __wrap_abort(void)
{
    __gcov_dump();
    __real_abort();
}
