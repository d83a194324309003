/* SPDX-License-Identifier: MIT */
/* Before the C library's: a host name stands for the addresses that a test says. */
#include "resolver.h"
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>

static const char *name;
static const char *const *addresses;
static long asked;

void resolver_set(const char *host, const char *const *list)
{
    name = host;
    addresses = list;
}

long resolver_lookups(void)
{
    return asked;
}

typedef int ask(const char *, const char *, const struct addrinfo *, struct addrinfo **);

/* A list of the C library's lists is one that its freeaddrinfo() frees whole. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's are reserved
 */
int getaddrinfo(const char *restrict host, const char *restrict service,
                const struct addrinfo *restrict wanted, struct addrinfo **restrict out)
{
    ask *real;
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (!name || !host || strcmp(host, name) != 0) {
        return real(host, service, wanted, out);
    }

    asked++;
    *out = NULL;

    struct addrinfo **end = out;
    for (const char *const *text = addresses; *text; text++) {
        if (real(*text, service, wanted, end) == 0) {
            while (*end) {
                end = &(*end)->ai_next;
            }
        }
    }

    return *out ? 0 : EAI_NONAME;
}
