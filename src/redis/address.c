/* SPDX-License-Identifier: MIT */
/* The forms of URL, by RFC 3986: redis://[[user]:password@]host[:port][/db],
 * unix://[[user]:password@]/path[?db=n], and that of Sentinels, which has several hosts:
 * redis+sentinel://[[user]:password@]host[:port][,host[:port]...]/MASTER[?db=n&...], and that of a
 * cluster, redis+cluster://[[user]:password@]host[:port][,host[:port]...]. With rediss instead of
 * redis it is TLS. redis-cli reads a lone "secret@" as a password, others as a user; we
 * take it for a user without one, and refuse. */
#include "redis/address.h"
#include "base/span.h"
#include <string.h>

/* SOCKET_PATH_MAX: what fits into a sockaddr_un */
enum {
    PORT = 6379,
    SENTINEL_PORT = 26379,
    PORT_MAX = 65535,
    DB_MAX = 1 << 20,
    SOCKET_PATH_MAX = 107
};

static const char FORMS[] =
    "must be redis://[[user]:password@]host[:port][/db], the same with rediss:// for TLS, or "
    "unix://[[user]:password@]/path[?db=n], or "
    "redis+sentinel://[[user]:password@]host[:port][,host[:port]...]/MASTER[?db=n], or "
    "redis+cluster://[[user]:password@]host[:port][,host[:port]...]";

/* A URL that is being read: what it comes to, and where its texts go. */
struct reading {
    struct address *a;
    char *out;       /* NULL: it is only checked */
    const char *why; /* it is refused */
};

static bool refuse(struct reading *r, const char *why)
{
    r->why = why;
    return false;
}

/* ---- texts and numbers ---- */
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

/* Copies a span, %XX decoded; false: a bad escape or a control character. */
static bool read_text(struct reading *r, struct span s, char **field)
{
    char *to = r->out;

    for (size_t i = 0; i < s.len; i++) {
        int c = (unsigned char)s.at[i];
        if (c == '%') {
            if (i + 2 >= s.len || hex_digit(s.at[i + 1]) < 0 || hex_digit(s.at[i + 2]) < 0) {
                return refuse(r, "a % begins an escape of two hexadecimal digits (%25 is a %)");
            }
            c = hex_digit(s.at[i + 1]) * 16 + hex_digit(s.at[i + 2]);
            i += 2;
        }
        if (c < ' ' || c == 127) {
            return refuse(r, "it must not have control characters");
        }
        if (to) {
            *to++ = (char)c;
        }
    }

    if (to) {
        *field = r->out;
        *to++ = '\0';
        r->out = to;
    }

    return true;
}

static bool read_number(struct span s, int max, int *out)
{
    int64_t n;

    if (!span_decimal(s, max, &n)) {
        return false;
    }
    *out = (int)n;
    return true;
}

static bool read_db(struct reading *r, struct span s)
{
    return read_number(s, DB_MAX, &r->a->db) || refuse(r, "a database is a number");
}

static bool has(struct span s, char c)
{
    return s.len && memchr(s.at, c, s.len);
}

static bool has_several_hosts(enum address_kind kind)
{
    return kind != ADDRESS_REDIS;
}

/* ---- [user]:password@, or nothing ---- */
static bool read_login(struct reading *r, const struct address_parts *p)
{
    struct address *a = r->a;

    if (!p->user.at) {
        return true;
    }
    if (!p->password.at || p->password.len == 0) {
        return refuse(r, "a user needs a password");
    }
    if (has_several_hosts(p->kind) && (has(p->user, ',') || has(p->password, ','))) {
        return refuse(r, "a comma in a user or a password is written %2C, and an @ %40");
    }
    return (p->user.len == 0 || read_text(r, p->user, &a->user)) &&
           read_text(r, p->password, &a->password);
}

/* ---- hosts ---- */
/* An @ in a host would be part of a password, and the host is looked up and logged. */
static bool has_at(struct span host)
{
    return memchr(host.at, '@', host.len) || memmem(host.at, host.len, "%40", 3);
}

/* Takes a host off the beginning of *rest; in brackets it may hold colons. */
static bool read_host(struct reading *r, struct span *rest, char **field)
{
    struct span host = *rest;

    if (span_skip(rest, "[")) {
        if (!span_cut(rest, ']', &host)) {
            return refuse(r, "a [ needs its ]");
        }
    } else {
        size_t len = 0;
        while (len < rest->len && rest->at[len] != ':') {
            len++;
        }
        host.len = len;
        *rest = (struct span){rest->at + len, rest->len - len};
    }

    if (host.len == 0) {
        return refuse(r, "a host is missing");
    }
    if (has_at(host)) {
        return refuse(r, "an @ in a user or a password is written %40, and a comma %2C");
    }
    if (has(host, '?')) {
        return refuse(r, "a host has no ?");
    }
    return read_text(r, host, field);
}

/* host[:port] */
static bool read_place(struct reading *r, struct span text, int port, struct address_place *place)
{
    place->port = port;
    if (!read_host(r, &text, &place->host)) {
        return false;
    }
    if (text.len == 0) {
        return true;
    }

    if (!span_skip(&text, ":") || !read_number(text, PORT_MAX, &place->port) || place->port == 0) {
        return refuse(r, "a port is a number from 1 to 65535, behind a colon; an address with "
                         "colons stands in brackets: [::1]:6379");
    }
    return true;
}

/* ---- the forms ---- */
/* /path[?db=n] */
static bool read_socket(struct reading *r, struct span rest)
{
    struct span path = rest;

    if (span_cut(&rest, '?', &path)) {
        if (!span_skip(&rest, "db=") || !read_db(r, rest)) {
            return refuse(r, FORMS);
        }
    }
    if (path.len <= 1 || path.len > SOCKET_PATH_MAX || *path.at != '/') {
        return refuse(r, FORMS);
    }
    return read_text(r, path, &r->a->host);
}

/* host[:port][/db] */
static bool read_server(struct reading *r, struct span rest)
{
    struct address_place place = {.host = NULL};
    struct span host = rest;

    if (span_cut(&rest, '/', &host) && rest.len && !read_db(r, rest)) {
        return false;
    }
    if (!read_place(r, host, PORT, &place)) {
        return false;
    }

    r->a->host = place.host;
    r->a->port = place.port;
    return true;
}

/* host[:port][,host[:port]...] */
static bool read_seeds(struct reading *r, struct span rest, int port)
{
    struct address *a = r->a;

    for (bool more = true; more;) {
        struct span text = rest;

        more = span_cut(&rest, ',', &text);
        if (a->n_seeds == ADDRESS_SEEDS) {
            return refuse(r, "at most 16 hosts");
        }
        if (text.len > ADDRESS_HOST_MAX) {
            return refuse(r, "a host has at most 253 bytes");
        }
        if (!read_place(r, text, port, &a->seeds[a->n_seeds])) {
            return false;
        }
        a->n_seeds++;
    }

    return true;
}

/* name=value[&name=value...], each name once */
static bool read_query(struct reading *r, struct span rest)
{
    enum { DB, USER, PASSWORD, NAMES };
    static const char *const names[NAMES] = {"db=", "sentinel_user=", "sentinel_password="};
    char **const fields[NAMES] = {NULL, &r->a->sentinel_user, &r->a->sentinel_password};
    bool given[NAMES] = {false};

    for (bool more = true; more;) {
        struct span value = rest;
        int i = 0;

        more = span_cut(&rest, '&', &value);
        while (i < NAMES && !span_skip(&value, names[i])) {
            i++;
        }
        if (i == NAMES || given[i] || value.len == 0) {
            return refuse(r, "behind the ? are db, sentinel_user and sentinel_password, each once "
                             "and with a value: ?db=1&sentinel_user=u&sentinel_password=p");
        }
        given[i] = true;
        if (i == DB ? !read_db(r, value) : !read_text(r, value, fields[i])) {
            return false;
        }
    }

    return !given[USER] || given[PASSWORD] || refuse(r, "a user needs a password");
}

/* hosts/MASTER[?query] */
static bool read_sentinels(struct reading *r, struct span rest)
{
    struct span master = rest;
    struct span hosts = rest;
    bool has_query = span_cut(&rest, '?', &master);
    bool has_master = span_cut(&master, '/', &hosts);

    if (!has_master) {
        hosts = master;
    }
    if (!read_seeds(r, hosts, SENTINEL_PORT)) {
        return false;
    }
    if (!has_master || master.len == 0 || has(master, '/')) {
        return refuse(r, "behind the hosts comes the name of the master, as Sentinel has it: "
                         "redis+sentinel://host/MASTER");
    }
    return read_text(r, master, &r->a->master) && (!has_query || read_query(r, rest));
}

/* hosts */
static bool read_cluster(struct reading *r, struct span hosts)
{
    if (has(hosts, '/') || has(hosts, '?')) {
        return refuse(r, "nothing comes behind the hosts: a cluster has one database, which is 0");
    }
    return read_seeds(r, hosts, PORT);
}

/* ---- what is asked for ---- */
/* A query's password, as it is written. */
static struct span find_sentinel_password(struct span place)
{
    static const char name[] = "sentinel_password=";
    struct span rest = place;
    struct span value;

    if (!span_cut(&rest, '?', &value)) {
        return (struct span){NULL, 0};
    }
    for (bool more = true; more;) {
        value = rest;
        more = span_cut(&rest, '&', &value);
        if (span_skip(&value, name)) {
            return value;
        }
    }
    return (struct span){NULL, 0};
}

static bool split_scheme(struct address_parts *p, struct span *rest)
{
    static const struct {
        const char *text;
        enum address_kind kind;
        bool unix_socket;
        bool tls;
    } schemes[] = {
        {"redis://", ADDRESS_REDIS, false, false},
        {"rediss://", ADDRESS_REDIS, false, true},
        {"unix://", ADDRESS_REDIS, true, false},
        {"redis+sentinel://", ADDRESS_SENTINEL, false, false},
        {"rediss+sentinel://", ADDRESS_SENTINEL, false, true},
        {"redis+cluster://", ADDRESS_CLUSTER, false, false},
        {"rediss+cluster://", ADDRESS_CLUSTER, false, true},
    };

    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        const char *start = rest->at;
        if (span_skip(rest, schemes[i].text)) {
            p->kind = schemes[i].kind;
            p->unix_socket = schemes[i].unix_socket;
            p->tls = schemes[i].tls;
            p->scheme = (struct span){start, (size_t)(rest->at - start)};
            return true;
        }
    }
    return false;
}

bool address_split(struct address_parts *p, const char *text)
{
    struct span rest = span_of(text);

    *p = (struct address_parts){.unix_socket = false};
    if (!split_scheme(p, &rest)) {
        return false;
    }
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

    if (p->kind == ADDRESS_SENTINEL) {
        p->sentinel_password = find_sentinel_password(p->place);
    }

    return true;
}

static bool read_url(struct reading *r, const char *text)
{
    struct address_parts p;

    *r->a = (struct address){.kind = ADDRESS_REDIS};
    if (!address_split(&p, text)) {
        return refuse(r, FORMS);
    }
    r->a->kind = p.kind;
    r->a->unix_socket = p.unix_socket;
    r->a->tls = p.tls;

    if (!read_login(r, &p)) {
        return false;
    }
    if (p.kind == ADDRESS_SENTINEL) {
        return read_sentinels(r, p.place);
    }
    if (p.kind == ADDRESS_CLUSTER) {
        return read_cluster(r, p.place);
    }
    return p.unix_socket ? read_socket(r, p.place) : read_server(r, p.place);
}

bool address_parse(struct address *a, const char *text, char *out)
{
    struct reading r = {.a = a, .out = out};

    return read_url(&r, text);
}

const char *address_rule(const char *text)
{
    struct address a = {.kind = ADDRESS_REDIS};
    struct reading r = {.a = &a, .why = FORMS};

    read_url(&r, text);
    return has_several_hosts(a.kind) ? r.why : FORMS;
}
