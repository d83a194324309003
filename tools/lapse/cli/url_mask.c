/* SPDX-License-Identifier: MIT */
/* The URL that the library gets, put together from where its parts are kept: the address from -u or
 * LAPSE_URL, the password from a file, from that URL or from LAPSE_PASSWORD, the first of them. A
 * password is copied here once and nowhere else: all other places (argv, which ps shows; the
 * environment) are blotted out at once, ours is wiped when lapse_open() has read it, and what is
 * shown in messages never held it. */
#include "cli/url_mask.h"
#include "cli/message.h"
#include "cli/password.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define URL_RULE                                             \
    "must be redis://[[user]:password@]host[:port][/db] or " \
    "unix://[[user]:password@]/path[?db=n]"

struct parts { /* of scheme://user:password@rest; lengths, in order */
    size_t scheme, user, password, rest;
};

static struct parts split(const char *url)
{
    const char *start = strstr(url, "://");
    const char *end;
    const char *at;
    const char *colon;
    struct parts p = {0};

    start = start ? start + 3 : url;
    p.scheme = (size_t)(start - url);

    /* the path of a socket may hold an @ of its own; in a redis:// URL the last one ends the
     * password */
    end = strncmp(url, "unix:", 5) ? start + strlen(start) : start + strcspn(start, "/");
    at = memrchr(start, '@', (size_t)(end - start));

    if (at) {
        colon = memchr(start, ':', (size_t)(at - start));
        p.user = (size_t)((colon ? colon : at) - start);
        p.password = colon ? (size_t)(at - colon - 1) : 0;
        p.rest = (size_t)(at + 1 - url);
    } else {
        p.rest = p.scheme;
    }

    return p;
}

/* Whatever slip there was, a URL that is refused shows nothing between its scheme and its last @,
 * for a password may hold any of : / ? and @; and nothing at all behind the scheme where a : but no
 * @ follows. */
struct piece url_secret(const char *word, int is_url)
{
    static const char *const marks[] = {"://", "@", "%40", "redis:", "redis/", "rediss:", "unix:"};
    const char *start = strstr(word, "://");
    const char *at = strrchr(word, '@');
    const char *end = word + strlen(word);

    is_url |= *word == ':';
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        is_url |= strcasestr(word, marks[i]) != NULL;
    }

    start = start && (!at || start < at) ? start + 3 : word;

    if (at && !strstr(at, "://") && !strcasestr(at, "pass")) {
        end = at;
    } else if (!at && !strchr(start, ':') && !strstr(start, "%40") && !strcasestr(start, "pass")) {
        is_url = 0;
    }

    return is_url ? (struct piece){(size_t)(start - word), (size_t)(end - start)}
                  : (struct piece){0, 0};
}

static void encode(char *to, const char *password)
{
    for (; *password; password++) {
        to += sprintf(to, "%%%02X", (unsigned char)*password);
    }
}

static void blot(char *secret, size_t len)
{
    for (; len; len--) {
        *(volatile char *)secret++ = '*';
    }
}

/* Of a URL that is taken, its password; else all that may be one. */
void url_blot(char *url)
{
    struct lapse_options scratch = lapse_options_init();
    struct piece secret = url_secret(url, 1);

    if (!lapse_options_set(&scratch, "url", url)) {
        struct parts p = split(url);
        secret = (struct piece){p.scheme + p.user + 1, p.password};
    }
    blot(url + secret.at, secret.len);
}

void url_blot_env(void)
{
    char *url = getenv("LAPSE_URL");
    char *password = getenv("LAPSE_PASSWORD");

    if (url) {
        url_blot(url);
    }
    if (password) {
        blot(password, strlen(password));
    }
}

static int bad_url(const char *url, const char *rule)
{
    return usage_errorf("url '%s': %s", printable_url(url), rule);
}

int url_make(struct globals *g)
{
    char *env_url = getenv("LAPSE_URL");
    char *env_password = getenv("LAPSE_PASSWORD");
    char password[PASSWORD_ROOM] = "";
    char *url = g->url ? g->url : env_url && *env_url ? env_url : (char *)"redis://127.0.0.1:6379";
    struct parts p = split(url);
    size_t len = strlen(url);
    size_t extra = 3 * PASSWORD_BYTES + 3;
    int rc = 0;

    if (g->password_file) {
        rc = password_read(g->password_file, password);
    } else if (!p.password && env_password && *env_password &&
               !is_password(env_password, strlen(env_password))) {
        rc = usage_error("LAPSE_PASSWORD", "...", PASSWORD_RULE);
    } else if (!p.password && env_password) {
        strcpy(password, env_password);
    }

    g->secret_url = calloc(1, len + extra);
    g->shown_url = malloc(len + 1);
    if (!g->secret_url || !g->shown_url) {
        message_print("out of memory");
        rc = INTERNAL;
    }

    if (!rc) {
        strcpy(g->secret_url, url);
        sprintf(g->shown_url, "%.*s%s%s", (int)(p.scheme + p.user), url, p.user ? "@" : "",
                url + p.rest);
        if (*password) {
            sprintf(g->secret_url, "%.*s:", (int)(p.scheme + p.user), url);
            encode(g->secret_url + p.scheme + p.user + 1, password);
            strcat(strcat(g->secret_url, "@"), url + p.rest);
        }
        if (p.user && !p.password && !*password) {
            rc = bad_url(url, "a user needs a password; set LAPSE_PASSWORD or use --password-file");
        } else if (lapse_options_set(&g->opts, "url", g->secret_url)) {
            rc = bad_url(url, URL_RULE);
        }
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
