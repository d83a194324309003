/* SPDX-License-Identifier: MIT */
#include "script.h"

SCRIPTS(fence);

static long long changes(void)
{
    const char *info = ask("INFO persistence")->str;
    const char *at = strstr(info, "rdb_changes_since_last_save:");

    cr_assert(at, "%s", info);
    return atoll(strchr(at, ':') + 1);
}

Test(fence, changes_something_and_leaves_nothing)
{
    long long before = changes();

    RUN("fence", "0", "[U]");
    cr_assert_gt(changes(), before);
    KEYS("");
    HEARD("");
}

Test(fence, touches_nothing_else)
{
    everything();
    char *before = dumps();

    RUN("fence", "0", "[U+20000]");
    same(__FILE__, __LINE__, "keys", dumps(), before);
    HEARD("");
    ask("FLUSHALL");
}

/* Another program may have written it. */
Test(fence, removes_whatever_has_its_name)
{
    ask("LPUSH s:{q}:fence x");
    RUN("fence", "0", "[U]");
    KEYS("");
}
