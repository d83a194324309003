/* SPDX-License-Identifier: MIT */
/* What a host name stands for: stands in for getaddrinfo() of the C library. */
#ifndef RESOLVER_H
#define RESOLVER_H

/* addresses: numbers, which NULL ends; they must live as long as the test. */
void resolver_set(const char *host, const char *const *addresses);
long resolver_lookups(void); /* how often that name was looked up */
/* Asks this at each lookup of any name: 0, or the error that it fails with. */
void resolver_fail(int (*error)(void));
#endif
