/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_ADDRESS_H
#define LAPSE_ADDRESS_H
#include "base/span.h"

enum { ADDRESS_SEEDS = 16, ADDRESS_HOST_MAX = 253 /* bytes of a host that is one of several */ };

/* A server, by its name or address. */
struct address_place {
    char *host;
    int port;
};

/* What a URL names: one Redis, the Sentinels that know where it is, or some nodes of a cluster. */
enum address_kind { ADDRESS_REDIS, ADDRESS_SENTINEL, ADDRESS_CLUSTER };

/* Where a Redis is, and as whom we log in there. */
struct address {
    enum address_kind kind;
    bool unix_socket; /* host is its path */
    bool tls;
    char *host; /* NULL: a Sentinel, or the cluster, is to say it */
    int port;
    int db;
    char *user;     /* NULL: none */
    char *password; /* NULL: none */

    /* of a URL with several hosts: these */
    struct address_place seeds[ADDRESS_SEEDS];
    unsigned n_seeds;

    /* of a URL of Sentinels: how they call the master, and as whom we log in there */
    char *master;
    char *sentinel_user;     /* NULL: none */
    char *sentinel_password; /* NULL: none */

    /* of a URL with TLS, by the options: files, and the name to expect; NULL or "": none */
    const char *tls_ca;
    const char *tls_cert;
    const char *tls_key;
    const char *tls_name;
};

/* The parts of a URL, as they are written. */
struct address_parts {
    enum address_kind kind;
    bool unix_socket;
    bool tls;
    struct span scheme;            /* with the "://" */
    struct span user;              /* at NULL: there is no login */
    struct span password;          /* at NULL: nor a password */
    struct span place;             /* all that follows */
    struct span sentinel_password; /* in that; at NULL: there is none */
};

/* Splits a URL, and checks nothing of its parts. false: its scheme is not one of ours. */
bool address_split(struct address_parts *p, const char *text);

/* Reads a URL, %-decoded. The texts of a are written to out; twice the length of the URL is enough.
 * With out NULL it only checks. false: it is no such URL. */
bool address_parse(struct address *a, const char *text, char *out);

/* The rule that a refused URL breaks. It shows none of its parts, which may be secret. */
const char *address_rule(const char *text);

#endif
