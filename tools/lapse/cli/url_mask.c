/* SPDX-License-Identifier: MIT */
/* The URL that the library gets, made of its parts: the address from -u or LAPSE_URL, the password
 * from a file, from that URL or from LAPSE_PASSWORD, whichever comes first. A password is copied
 * here once and nowhere else: all other places (argv, which ps shows; the environment) are
 * overwritten at once, our copy is wiped when lapse_open() has read it, and what messages show
 * never held it. */
#include "cli/url_mask.h"
#include "cli/message.h"
#include "cli/password.h"
#include "redis/address.h"
#include "redis/tls.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ESCAPED_BYTES = 3 * PASSWORD_BYTES }; /* a password, each byte as %XX */

/* How much of a URL comes before the colon and the password. */
static size_t url_head_len(const struct address_parts *p)
{
    return p->scheme.len + p->user.len;
}

static bool looks_like_url(const char *word)
{
    static const char *const marks[] = {"://",     "@",     "%40",        "redis:",    "redis/",
                                        "rediss:", "unix:", "+sentinel:", "sentinel_p"};

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (strcasestr(word, marks[i])) {
            return true;
        }
    }

    return *word == ':';
}

/* A URL that is refused shows nothing between its scheme and its last @, because a mistyped
 * password may hold any of : / ? and @; and nothing at all behind the scheme if a : but no @
 * follows, or if it has the password of Sentinels, which comes last. */
struct piece url_secret(const char *word, bool is_url)
{
    const char *start = strstr(word, "://");
    const char *at = strrchr(word, '@');
    const char *end = word + strlen(word);

    if (!is_url && !looks_like_url(word)) {
        return (struct piece){0, 0};
    }

    if (start && (!at || start < at)) {
        start += 3;
    } else {
        start = word;
    }

    if (at && !strstr(at, "://") && !strcasestr(at, "pass") && !strcasestr(word, "sentinel_p")) {
        end = at;
    } else if (!at && !strchr(start, ':') && !strstr(start, "%40") && !strcasestr(start, "pass")) {
        return (struct piece){0, 0};
    }

    return (struct piece){(size_t)(start - word), (size_t)(end - start)};
}

static void percent_encode(char *to, const char *password)
{
    for (; *password; password++) {
        to += sprintf(to, "%%%02X", (unsigned char)*password);
    }
}

static void overwrite(char *secret, size_t len)
{
    for (; len; len--) {
        *(volatile char *)secret++ = '*';
    }
}

/* A span of one text, in a copy that begins or ends as it does. */
static void overwrite_span(char *copy, const char *text, struct span secret)
{
    if (secret.at) {
        overwrite(copy + (secret.at - text), secret.len);
    }
}

/* In a valid URL its passwords; else all that may be one. */
void url_blot(char *url)
{
    struct piece secret = url_secret(url, true);
    struct address a;
    struct address_parts p;

    if (address_parse(&a, url, NULL) && address_split(&p, url)) {
        overwrite_span(url, url, p.password);
        overwrite_span(url, url, p.sentinel_password);
        return;
    }

    overwrite(url + secret.at, secret.len);
}

void url_blot_env(void)
{
    char *url = getenv("LAPSE_URL");
    char *password = getenv("LAPSE_PASSWORD");

    if (url) {
        url_blot(url);
    }
    if (password) {
        overwrite(password, strlen(password));
    }
}

static int bad_url(const char *url, const char *rule)
{
    return usage_errorf("url '%s': %s", printable_url(url), rule);
}

static char *given_url(const struct globals *g)
{
    static char local[] = "redis://127.0.0.1:6379";
    char *env = getenv("LAPSE_URL");

    if (g->url) {
        return g->url;
    }
    return env && *env ? env : local;
}

/* The password that is not in the URL, or ""; 0, or USAGE after it has printed why. */
static int read_password(const struct globals *g, const struct address_parts *p,
                         char password[PASSWORD_ROOM])
{
    const char *env = getenv("LAPSE_PASSWORD");

    *password = '\0';
    if (g->password_file) {
        return password_read(g->password_file, password);
    }

    if (p->password.len || !env || !*env) {
        return 0;
    }
    if (!is_password(env, strlen(env))) {
        return usage_error("LAPSE_PASSWORD", "...", PASSWORD_RULE);
    }
    strcpy(password, env);

    return 0;
}

/* Fills g->secret_url and g->shown_url; 0, or an exit code after it has printed why. */
static int url_join(struct globals *g, const char *url, const struct address_parts *p,
                    const char *password)
{
    size_t len = strlen(url);
    int before = (int)url_head_len(p);
    const char *rest = p->place.at;

    g->secret_url = calloc(1, len + ESCAPED_BYTES + 3);
    g->shown_url = malloc(len + 1);
    if (!g->secret_url || !g->shown_url) {
        message_print("out of memory");
        return INTERNAL;
    }

    int shown = sprintf(g->shown_url, "%.*s%s", before, url, p->user.len ? "@" : "");
    strcpy(g->shown_url + shown, rest);
    overwrite_span(g->shown_url + shown, rest, p->sentinel_password);

    if (*password) {
        sprintf(g->secret_url, "%.*s:", before, url);
        percent_encode(g->secret_url + before + 1, password);
        strcat(strcat(g->secret_url, "@"), rest);
    } else if (p->user.len && !p->password.len) {
        return bad_url(url, "a user needs a password; set LAPSE_PASSWORD or use --password-file");
    } else {
        strcpy(g->secret_url, url);
    }

    if (p->tls && !tls_built()) {
        return bad_url(url, TLS_NEEDS);
    }
    if (lapse_options_set(&g->opts, "url", g->secret_url)) {
        return bad_url(url, address_rule(g->secret_url));
    }

    return 0;
}

int url_make(struct globals *g)
{
    char password[PASSWORD_ROOM];
    char *url = given_url(g);
    struct address_parts p;
    int rc = address_split(&p, url) ? 0 : bad_url(url, address_rule(url));

    *password = '\0';
    if (!rc) {
        rc = read_password(g, &p, password);
    }
    if (!rc) {
        rc = url_join(g, url, &p, password);
    }
    explicit_bzero(password, sizeof password);

    /* also where another place won */
    if (g->url) {
        url_blot(g->url);
    }
    url_blot_env();

    if (rc) {
        url_wipe(g);
    }

    return rc;
}

void url_wipe(struct globals *g)
{
    if (g->secret_url) {
        explicit_bzero(g->secret_url, strlen(g->secret_url));
    }
    free(g->secret_url);
    g->secret_url = NULL;
    g->opts.url = NULL;
}
