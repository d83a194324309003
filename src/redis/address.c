/* SPDX-License-Identifier: MIT */
/* The two forms of URL, by RFC 3986: redis://[[user]:password@]host[:port][/db],
 * unix://[[user]:password@]/path[?db=n]. redis-cli reads a lone "secret@" as a password, others as
 * a user; we take it for a user without one, and refuse. */
#include "redis/address.h"
#include "job/keys.h"
#include <string.h>

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Copies a span, %XX decoded, to *out and moves on; 0 for a bad escape or a control character. */
static int decode(struct span s, char **out, char **field)
{
    char *to = *out;

    for (size_t i = 0; i < s.len; i++) {
        int c = (unsigned char)s.at[i];
        if (c == '%') {
            if (i + 2 >= s.len || hex(s.at[i + 1]) < 0 || hex(s.at[i + 2]) < 0) {
                return 0;
            }
            c = hex(s.at[i + 1]) * 16 + hex(s.at[i + 2]);
            i += 2;
        }
        if (c < ' ' || c == 127) {
            return 0;
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

    return 1;
}

static int number(struct span s, int max, int *out)
{
    long n = 0;

    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] < '0' || s.at[i] > '9' || (n = n * 10 + (s.at[i] - '0')) > max) {
            return 0;
        }
    }
    *out = (int)n;
    return s.len > 0;
}

/* Cuts what is before mark off s; 0 when there is no mark. */
static int cut(struct span *s, char mark, struct span *before)
{
    const char *at = memchr(s->at, mark, s->len);

    if (!at) {
        return 0;
    }
    *before = (struct span){s->at, (size_t)(at - s->at)};
    *s = (struct span){at + 1, s->len - before->len - 1};
    return 1;
}

static int login(struct url *u, struct span *rest, char **out)
{
    struct span who;
    struct span user;
    struct span authority = {rest->at, u->local ? strcspn(rest->at, "/") : strcspn(rest->at, "/?")};

    if (!cut(&authority, '@', &who)) {
        return 1;
    }

    *rest = (struct span){authority.at, rest->len - who.len - 1};
    if (!cut(&who, ':', &user)) {
        return 0;
    }

    return (user.len == 0 || decode(user, out, &u->user)) && who.len > 0 &&
           decode(who, out, &u->password);
}

static int unix_socket(struct url *u, struct span rest, char *out)
{
    struct span path = rest;

    if (cut(&rest, '?', &path)) {
        if (rest.len < 4 || memcmp(rest.at, "db=", 3) != 0 ||
            !number((struct span){rest.at + 3, rest.len - 3}, 1 << 20, &u->db)) {
            return 0;
        }
    }
    return path.len > 1 && path.len < 108 && *path.at == '/' && decode(path, &out, &u->host);
}

/* An @ in a host would be of a password, whose rest we would look up and log. */
static int has_at(struct span host)
{
    return memchr(host.at, '@', host.len) || memmem(host.at, host.len, "%40", 3);
}

static int tcp(struct url *u, struct span rest, char *out)
{
    struct span host = rest;
    struct span port = {0};

    u->port = 6379;

    if (cut(&rest, '/', &host)) {
        if (rest.len && !number(rest, 1 << 20, &u->db)) {
            return 0;
        }
    }

    if (host.len && *host.at == '[') {
        port = host;
        if (!cut(&port, ']', &host)) {
            return 0;
        }
        host = (struct span){host.at + 1, host.len - 1};
        if (port.len && (*port.at != ':' || port.len == 1)) {
            return 0;
        }
        port = port.len ? (struct span){port.at + 1, port.len - 1} : port;
    } else {
        port = host;
        if (!cut(&port, ':', &host)) {
            port.len = 0;
        } else if (!port.len) {
            return 0;
        }
    }

    if (port.len && (!number(port, 65535, &u->port) || u->port == 0)) {
        return 0;
    }

    return host.len > 0 && !memchr(host.at, '?', host.len) && !has_at(host) &&
           decode(host, &out, &u->host);
}

int url_parse(struct url *u, const char *text, char *out)
{
    *u = (struct url){0};
    u->local = strncmp(text, "unix://", 7) == 0;
    if (!u->local && strncmp(text, "redis://", 8) != 0) {
        return 0;
    }

    size_t skip = u->local ? 7 : 8;
    struct span rest = {text + skip, strlen(text + skip)};
    return login(u, &rest, &out) && (u->local ? unix_socket(u, rest, out) : tcp(u, rest, out));
}
