/* SPDX-License-Identifier: MIT */
#include "own_network.h"
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void net_do(const char *format, ...)
{
    char line[256];
    va_list ap;

    va_start(ap, format);
    vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    cr_assert_eq(system(line), 0, "%s", line);
}

void net_own(void)
{
    if (system("command -v ip iptables tc >/dev/null 2>&1")) {
        cr_skip_test("not permitted here: ip, iptables and tc are not installed");
    }

    if (unshare(CLONE_NEWNET)) {
        cr_skip_test("not permitted here: a network namespace of one's own: %s", strerror(errno));
    }

    if (system("ip link set lo up mtu 1500 && iptables -L >/dev/null 2>&1")) {
        cr_skip_test("not permitted here: a packet filter of one's own");
    }
}

int net_established(const char *ip, int port)
{
    enum { ESTABLISHED = 1 };
    struct in_addr want;
    char line[256];
    unsigned addr;
    unsigned at;
    unsigned state;
    int n = 0;
    FILE *f = fopen("/proc/self/net/tcp", "r");

    cr_assert(f && inet_aton(ip, &want));
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%*d: %*x:%*x %x:%x %x", &addr, &at, &state) == 3 && addr == want.s_addr &&
            (int)at == port && state == ESTABLISHED) {
            n++;
        }
    }

    fclose(f);

    return n;
}
