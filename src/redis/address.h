/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_ADDRESS_H
#define LAPSE_ADDRESS_H
#include <stdbool.h>

/* Where a Redis is, and as whom we log in there. */
struct address {
    bool unix_socket; /* host is its path */
    char *host;
    int port;
    int db;
    char *user;     /* NULL: none */
    char *password; /* NULL: none */
};

/* Splits a redis:// or unix:// URL, %-decoded. The texts of a are written to out; twice the length
 * of the URL is enough. With out NULL it only checks. false: it is no such URL. */
bool address_parse(struct address *a, const char *text, char *out);

#endif
