/* SPDX-License-Identifier: MIT */
/* URLs: as the library reads them, and as the program takes the password out. */
#include "redis/address.h"
#include "redis/tls.h"
#include "fuzz.h"
#include "cli/message.h"
#include "cli/password.h"
#include "cli/url_mask.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_quiet();
    unsetenv("LAPSE_URL");
    unsetenv("LAPSE_PASSWORD");
    return 0;
}

static void place(const char *host, int port, bool unix_socket)
{
    MUST(host && *host);
    MUST(unix_socket ? *host == '/' && strlen(host) < 108 : port >= 1 && port <= 65535);
}

static void sentinels(const struct address *u, const struct address *checked)
{
    MUST(u->n_seeds >= 1 && u->n_seeds <= ADDRESS_SEEDS && u->n_seeds == checked->n_seeds);
    for (unsigned i = 0; i < u->n_seeds; i++) {
        place(u->seeds[i].host, u->seeds[i].port, false);
        MUST(strlen(u->seeds[i].host) <= ADDRESS_HOST_MAX);
        MUST(u->seeds[i].port == checked->seeds[i].port);
    }
    MUST(!u->host && u->master && *u->master);
    MUST(!u->sentinel_user || u->sentinel_password);
}

static void library(const char *text)
{
    struct address u;
    struct address checked;
    char *out = malloc(2 * strlen(text) + 2);

    MUST(out);

    int ok = address_parse(&u, text, out);
    MUST(address_parse(&checked, text, NULL) == ok);
    MUST(ok || *address_rule(text));

    if (ok) {
        MUST(u.db >= 0 && u.db <= 1 << 20);
        if (u.kind == ADDRESS_SENTINEL) {
            sentinels(&u, &checked);
        } else {
            place(u.host, u.port, u.unix_socket);
        }
        MUST(!u.password || *u.password);
        MUST(!u.user || (*u.user && u.password));
        MUST(u.unix_socket == checked.unix_socket && u.db == checked.db && u.port == checked.port);
    }

    free(out);
}

/* setenv() would keep each text, and libFuzzer look for leaks after each input. */
static void set_env_password(const char *password)
{
    static char variable[64];

    snprintf(variable, sizeof variable, "LAPSE_PASSWORD=%s", password);
    MUST(putenv(variable) == 0);
}

/* Their password is the last part of what is shown that can hold a *. */
static void nothing_of_sentinels_is_shown(const struct address *u, const char *shown)
{
    const char *at = strstr(shown, "?") ? strstr(strstr(shown, "?"), "sentinel_password=") : NULL;

    if (u->kind != ADDRESS_SENTINEL || !u->sentinel_password) {
        return;
    }
    MUST(at);
    at += strlen("sentinel_password=");
    size_t len = strcspn(at, "&");
    MUST(len > 0 && strspn(at, "*") >= len);
}

/* A URL with a password comes apart into one without it and the password, which is then nowhere
 * else. */
static void program(const char *text, const char *env_password)
{
    struct globals g = {.opts = lapse_options_init(), .url = strdup(text)};
    char *out = malloc(2 * strlen(text) + 4096);
    char *env;
    struct address u;
    struct address shown;

    MUST(g.url && out);
    set_env_password(env_password);

    int given = address_parse(&u, text, NULL);
    int rc = url_make(&g);
    if (rc == 0) {
        MUST(address_parse(&u, g.secret_url, out) == 1);
        MUST(strlen(g.shown_url) <= strlen(text));
        nothing_of_sentinels_is_shown(&u, g.shown_url);
        const char *at = strchr(text + 8, '@');
        const char *colon = at ? memchr(text, ':', (size_t)(at - text)) : NULL;
        colon = colon ? memchr(colon + 1, ':', (size_t)(at - colon - 1)) : NULL;
        if (given && u.password && colon && *env_password == '\0') {
            size_t len = (size_t)(at - colon - 1);
            MUST(strspn(g.url + (colon + 1 - text), "*") >= len);
            MUST(strlen(g.shown_url) == strlen(text) - len - 1 - !u.user);
        }
        /* what is shown is a URL by itself, but for a user, who needs a password */
        MUST(u.user || (address_parse(&shown, g.shown_url, NULL) == 1 && shown.db == u.db &&
                        shown.port == u.port));
        env = getenv("LAPSE_PASSWORD");
        MUST(!*env_password || env[strspn(env, "*")] == '\0');
    } else {
        MUST(!given || *env_password || (u.tls && !tls_built()));
    }

    url_wipe(&g);
    free(g.shown_url);
    free(g.url);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);

    library(text);
    if (strlen(text) >= 8) {
        program(text, "");
        program(text, "env pass@/:%");
    }
    free(text);
    return 0;
}
