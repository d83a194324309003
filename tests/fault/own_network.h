/* SPDX-License-Identifier: MIT */
/* A network of the test's own, gone with it: a namespace whose one link is its loopback, which
 * packet filter and traffic control treat as any other. What must not suffer goes by the Unix
 * socket. */
#ifndef NET_H
#define NET_H

/* This process, and those it forks from now on, are in it. Skips the test where that is not
 * permitted. */
void net_own(void);
/* Runs a command line, whose status must be 0. */
__attribute__((format(printf, 1, 2))) void net_do(const char *format, ...);
int net_established(const char *ip, int port); /* connections of ours to there */
#endif
