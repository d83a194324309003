/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_URL_H
#define LAPSE_URL_H
#include <stdbool.h>

/* Where Redis is. */
struct url {
    bool local;     /* a Unix socket: host is its path */
    char *host;     /* the texts lie where url_parse() was told */
    char *user;     /* NULL: none */
    char *password; /* NULL: none; in struct options: hidden, and wiped with options_free() */
    int port, db;
};

/* Splits redis:// and unix:// URLs, %-decoded; the texts are written to out (twice the URL's length
 * is enough). out NULL: only checks. false: it is no such URL. */
bool url_parse(struct url *u, const char *text, char *out);

#endif
