/* SPDX-License-Identifier: MIT */
#include "script.h"

SCRIPTS(eviction);

Test(eviction, says_which_policies_may_evict_any_key)
{
    static const struct {
        const char *name, *says;
    } rows[] = {
        {"noeviction", "[U 0]"},      {"volatile-lru", "[U 0]"},   {"volatile-lfu", "[U 0]"},
        {"volatile-random", "[U 0]"}, {"volatile-ttl", "[U 0]"},   {"allkeys-lru", "[U 1]"},
        {"allkeys-lfu", "[U 1]"},     {"allkeys-random", "[U 1]"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ask("CONFIG SET maxmemory-policy %s", rows[i].name);
        RUN("eviction", "0", rows[i].says);
    }

    KEYS("");
}

Test(eviction, does_not_ask_what_the_user_may_not_know)
{
    ask("CONFIG SET maxmemory-policy allkeys-lru");
    ask("ACL SETUSER default -info");
    RUN("eviction", "0", "[U 0]");
    same(__FILE__, __LINE__, "log", show(ask("ACL LOG")), "[]");
}
