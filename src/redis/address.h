/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_ADDRESS_H
#define LAPSE_ADDRESS_H
#include "base/span.h"

/* Where a Redis is, and as whom we log in there. */
struct address {
    bool unix_socket; /* host is its path */
    bool tls;
    char *host;
    int port;
    int db;
    char *user;     /* NULL: none */
    char *password; /* NULL: none */

    /* of a URL with TLS, by the options: files, and the name to expect; NULL or "": none */
    const char *tls_ca;
    const char *tls_cert;
    const char *tls_key;
    const char *tls_name;
};

/* The parts of a URL, as they are written. */
struct address_parts {
    bool unix_socket;
    bool tls;
    struct span scheme;   /* with the "://" */
    struct span user;     /* at NULL: there is no login */
    struct span password; /* at NULL: nor a password */
    struct span place;    /* all that follows */
};

/* Splits a redis://, rediss:// or unix:// URL, and checks nothing of its parts. false: it is none
 * of them. */
bool address_split(struct address_parts *p, const char *text);

/* Reads a redis://, rediss:// or unix:// URL, %-decoded. The texts of a are written to out;
 * twice the length of the URL is enough. With out NULL it only checks. false: it is no such URL. */
bool address_parse(struct address *a, const char *text, char *out);

#endif
