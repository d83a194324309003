/* SPDX-License-Identifier: MIT */
/* The forms of URL, by RFC 3986: redis://[[user]:password@]host[:port][/db], the same with
 * rediss:// for TLS, and unix://[[user]:password@]/path[?db=n]. redis-cli reads a lone "secret@"
 * as a password, others as a user; we take it for a user without one, and refuse. */
#include "redis/address.h"
#include "base/span.h"
#include <string.h>

/* SOCKET_PATH_MAX: what fits into a sockaddr_un */
enum { PORT = 6379, PORT_MAX = 65535, DB_MAX = 1 << 20, SOCKET_PATH_MAX = 107 };

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

/* Copies a span, %XX decoded, to *out and moves on; false: a bad escape or a control character. */
static bool address_decode(struct span s, char **out, char **field)
{
    char *to = *out;

    for (size_t i = 0; i < s.len; i++) {
        int c = (unsigned char)s.at[i];
        if (c == '%') {
            if (i + 2 >= s.len || hex_digit(s.at[i + 1]) < 0 || hex_digit(s.at[i + 2]) < 0) {
                return false;
            }
            c = hex_digit(s.at[i + 1]) * 16 + hex_digit(s.at[i + 2]);
            i += 2;
        }
        if (c < ' ' || c == 127) {
            return false;
        }
        if (to) {
            *to++ = (char)c;
        }
    }

    if (to) {
        *field = *out;
        *to++ = '\0';
        *out = to;
    }

    return true;
}

static bool address_number(struct span s, int max, int *out)
{
    int64_t n;

    if (!span_decimal(s, max, &n)) {
        return false;
    }
    *out = (int)n;
    return true;
}

/* [user]:password@, or nothing */
static bool address_login(struct address *a, const struct address_parts *p, char **out)
{
    if (!p->user.at) {
        return true;
    }
    if (!p->password.at || p->password.len == 0) {
        return false;
    }
    return (p->user.len == 0 || address_decode(p->user, out, &a->user)) &&
           address_decode(p->password, out, &a->password);
}

/* /path[?db=n] */
static bool address_socket(struct address *a, struct span rest, char *out)
{
    struct span path = rest;

    if (span_cut(&rest, '?', &path)) {
        if (!span_skip(&rest, "db=") || !address_number(rest, DB_MAX, &a->db)) {
            return false;
        }
    }

    return path.len > 1 && path.len <= SOCKET_PATH_MAX && *path.at == '/' &&
           address_decode(path, &out, &a->host);
}

/* An @ in a host would be part of a password, and the host is looked up and logged. */
static bool has_at(struct span host)
{
    return memchr(host.at, '@', host.len) || memmem(host.at, host.len, "%40", 3);
}

/* host[:port][/db]; a host in brackets may hold colons */
static bool address_host(struct address *a, struct span rest, char *out)
{
    struct span host = rest;
    struct span port;
    bool has_port;

    if (span_cut(&rest, '/', &host) && rest.len && !address_number(rest, DB_MAX, &a->db)) {
        return false;
    }

    if (span_skip(&host, "[")) {
        port = host;
        if (!span_cut(&port, ']', &host)) {
            return false;
        }
        has_port = span_skip(&port, ":");
        if (!has_port && port.len) {
            return false;
        }
    } else {
        port = host;
        has_port = span_cut(&port, ':', &host);
    }

    a->port = PORT;
    if (has_port && (!address_number(port, PORT_MAX, &a->port) || a->port == 0)) {
        return false;
    }

    return host.len > 0 && !memchr(host.at, '?', host.len) && !has_at(host) &&
           address_decode(host, &out, &a->host);
}

bool address_split(struct address_parts *p, const char *text)
{
    struct span rest = span_of(text);

    *p = (struct address_parts){.unix_socket = span_skip(&rest, "unix://")};
    p->tls = !p->unix_socket && span_skip(&rest, "rediss://");
    if (!p->unix_socket && !p->tls && !span_skip(&rest, "redis://")) {
        return false;
    }

    p->scheme = (struct span){text, (size_t)(rest.at - text)};
    p->place = rest;

    /* a path may hold an @ of its own, and so may what is no host */
    struct span authority = {rest.at, strcspn(rest.at, p->unix_socket ? "/" : "/?")};
    struct span login;
    if (span_cut(&authority, '@', &login)) {
        p->place = (struct span){authority.at, rest.len - login.len - 1};
        p->password = login;
        if (!span_cut(&p->password, ':', &p->user)) {
            p->user = login;
            p->password = (struct span){NULL, 0};
        }
    }

    return true;
}

bool address_parse(struct address *a, const char *text, char *out)
{
    struct address_parts p;

    *a = (struct address){0};
    if (!address_split(&p, text) || !address_login(a, &p, &out)) {
        return false;
    }

    a->unix_socket = p.unix_socket;
    a->tls = p.tls;
    return p.unix_socket ? address_socket(a, p.place, out) : address_host(a, p.place, out);
}
