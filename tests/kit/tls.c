/* SPDX-License-Identifier: MIT */
#include "tls.h"
#include "redis.h"
#include "test.h"
#include <criterion/criterion.h>
#include <lapse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void tls_needed(void)
{
    struct lapse_options o = lapse_options_init();

    if (lapse_options_set(&o, "url", "rediss://h")) {
        cr_skip_test("built without TLS");
    }
}

/* ---- keys ---- */
static const char MAKE_KEYS[] =
    "set -e; cd '%s'; exec 2>log; "
    "key() { openssl ecparam -name prime256v1 -genkey -noout -out $1-key.pem; }; "
    "root() { key $1; openssl req -x509 -new -key $1-key.pem -subj /CN=$2 -days 9 -out $1.pem; }; "
    "sign() { key $1; openssl req -new -key $1-key.pem -subj /CN=$3 -out $1.csr; "
    "  printf 'subjectAltName=%%s\\n' \"$4\" > $1.ext; "
    "  openssl x509 -req -in $1.csr -CA $2.pem -CAkey $2-key.pem -CAcreateserial "
    "    -extfile $1.ext $5 -out $1.pem; }; "
    "here=DNS:localhost,IP:127.0.0.1; "
    "root ca lapse-test-authority; root stranger another-authority; root self localhost; "
    "sign good ca localhost $here; sign other ca other.test DNS:other.test; "
    "past='-not_before 20200101000000Z -not_after 20210101000000Z'; "
    "sign expired ca localhost $here \"$past\" || sign expired ca localhost $here '-days -1'; "
    "sign foreign stranger localhost $here; sign client ca client DNS:client; ";

void tls_write_only(const struct keys *k, FILE *f)
{
    fprintf(f,
            "port 0\ntls-cert-file %s/good.pem\ntls-key-file %s/good-key.pem\n"
            "tls-ca-cert-file %s\ntls-auth-clients no\ntls-replication yes\n",
            k->dir, k->dir, k->ca);
}

/* A Sentinel knows no clusters. */
static void keys_write_only(struct keys *k)
{
    snprintf(k->only, sizeof k->only, "%s/only.conf", k->dir);
    FILE *f = fopen(k->only, "w");

    cr_assert(f, "%s: %m", k->only);
    tls_write_only(k, f);
    fprintf(f, "tls-cluster yes\n");
    cr_assert(!fclose(f));
}

static void keys_name(struct keys *k)
{
    snprintf(k->ca, sizeof k->ca, "%s/ca.pem", k->dir);
    snprintf(k->client, sizeof k->client, "%s/client.pem", k->dir);
    snprintf(k->client_key, sizeof k->client_key, "%s/client-key.pem", k->dir);
}

void keys_make(struct keys *k)
{
    char line[4096];

    test_dir(k->dir, sizeof k->dir);
    keys_name(k);
    snprintf(line, sizeof line, MAKE_KEYS, k->dir);
    /* all of the line is ours; NOLINTNEXTLINE(cert-env33-c) */
    cr_assert_eq(system(line), 0, "openssl: see %s/log", k->dir);
    keys_write_only(k);
}

/* Of tests that begin at the same time each makes keys; the first to be ready gives its own. */
void keys_of_the_run(struct keys *k)
{
    const char *tmp = getenv("TMPDIR");
    struct keys own;

    cr_assert(tmp && *tmp, "TMPDIR is not set: start the tests by tests/run.sh");
    *k = (struct keys){0};
    snprintf(k->dir, sizeof k->dir, "%s/keys", tmp);
    keys_name(k);
    if (access(k->dir, F_OK) == 0) {
        return;
    }

    keys_make(&own);
    if (rename(own.dir, k->dir)) {
        cr_assert_eq(access(k->dir, F_OK), 0, "%s: %m", k->dir);
        keys_remove(&own);
    }
}

void tls_give(const struct keys *k, const char *certificate, struct server *s)
{
    redis_do(s, "CONFIG SET tls-cert-file %s/%s.pem tls-key-file %s/%s-key.pem", k->dir,
             certificate, k->dir, certificate);
}

void keys_remove(struct keys *k)
{
    test_dir_remove(k->dir);
}

/* ---- a server ---- */
enum { PATH = 96 };

const char *const *tls_server_args(const struct keys *k, const char *certificate, int port,
                                   const char *const *more)
{
    static char port_text[8];
    static char paths[3][PATH];
    static const char *args[SERVER_ARGS + 1];
    size_t n = 0;

    snprintf(port_text, sizeof port_text, "%d", port);
    snprintf(paths[0], PATH, "%s/%s.pem", k->dir, certificate);
    snprintf(paths[1], PATH, "%s/%s-key.pem", k->dir, certificate);
    snprintf(paths[2], PATH, "%s", k->ca);

    const char *const first[] = {"--tls-port",         port_text, "--tls-cert-file",    paths[0],
                                 "--tls-key-file",     paths[1],  "--tls-ca-cert-file", paths[2],
                                 "--tls-auth-clients", "no"};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        args[n++] = first[i];
    }
    for (; more && *more; more++) {
        args[n++] = *more;
    }
    args[n] = NULL;

    return args;
}
