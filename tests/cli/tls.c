/* SPDX-License-Identifier: MIT */
/* rediss:// in a shell; without TLS, a tunnel of stunnel. */
#include "tls.h"
#include "tool.h"
#include <unistd.h>

static bool built_with_tls(void)
{
    struct proc *p = lapse("--version");
    bool with = has(p, " (with TLS)\n");

    if (!with) {
        cr_assert(has(p, " (without TLS)\n"));
    }
    expect(p, 0, "lapse 0.", "");
    return with;
}

Test(tls, without_it_a_rediss_url_is_refused_and_says_what_would_be_needed)
{
    if (built_with_tls()) {
        cr_skip_test("built with TLS");
    }
    expect(lapse("-u", "rediss://ann:secretive@h", "depth", "q"), 2, "",
           "url 'rediss://***@h': this lapse was built without TLS, which needs hiredis 1.0");
}

/* Each gives the program a password, and a URL that is refused. */
static const char *const refused[] = {
    "$lapse depth q -u rediss://ann:s3cret@h",
    "$lapse depth q -u rediss://:s3cret@h",
    "$lapse depth q -u rediss://ann:%733cret@h",
    "$lapse depth q -o url=rediss://ann:s3cret@h",
    "LAPSE_URL=rediss://ann:s3cret@h $lapse depth q",
    "LAPSE_PASSWORD=s3cret $lapse depth q -u rediss://ann@h",
    "echo s3cret | $lapse depth q -u rediss://ann@h --password-file -",
    "$lapse listen q -v -u rediss://ann:s3cret@h",
    "$lapse doctor -u rediss://ann:s3cret@h",
    "$lapse bench -u rediss://ann:s3cret@h",
    "$lapse functions --load -u rediss://ann:s3cret@h",
};

Test(tls, without_it_a_refused_url_shows_no_password)
{
    if (built_with_tls()) {
        cr_skip_test("built with TLS");
    }

    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct proc *p = shell(refused[i]);
        proc_wait(p, PROC_WAIT_MS);
        cr_expect(!strstr(p->err, "3cret") && !has(p, "3cret"), "%s: %s", refused[i], p->err);
        expect(p, 2, "", "@h': this lapse was built without TLS, which needs ");
    }
}

Test(tls, every_connection_of_the_program_uses_it)
{
    struct keys keys;
    char url[64];
    char ca[120];

    if (!built_with_tls()) {
        cr_skip_test("built without TLS");
    }

    keys_make(&keys);
    int port = server_free_port();
    struct server *s = server_start_opts(tls_server_args(&keys, "good", port, NULL));
    snprintf(url, sizeof url, "rediss://localhost:%d", port);
    snprintf(ca, sizeof ca, "tls_ca=%s", keys.ca);
    expect(lapse("-u", url, "-o", ca, "schedule", "q", "--id", "a", "--in", "1h"), 0, "\"a\"", "");
    expect(lapse("-u", url, "-o", ca, "doctor"), 0, NULL, NULL);
    expect(lapse("-u", url, "depth", "q"), 69, "", "self-signed certificate in certificate chain");
    expect(lapse("-u", url, "doctor"), 69, NULL, "self-signed certificate in certificate chain");
    expect(lapse("-u", url, "-o", ca, "-o", "tls_key=/x", "doctor"), 69, NULL,
           "tls_cert and tls_key: one needs the other");
    expect(lapse("-u", url, "-o", ca, "-o", "tls_cert=/x", "doctor"), 69, NULL,
           "tls_cert and tls_key: one needs the other");
    server_stop(s);
    keys_remove(&keys);
}

/* The recipe of tools/doc/operating.md. */
static void stunnel_write(const struct keys *k, int accept, int connect, const char *name)
{
    char path[96];

    snprintf(path, sizeof path, "%s/stunnel.conf", k->dir);
    FILE *f = fopen(path, "w");
    cr_assert(f, "%s: %m", path);
    fprintf(f,
            "pid =\nforeground = yes\n[redis]\nclient = yes\naccept = 127.0.0.1:%d\n"
            "connect = 127.0.0.1:%d\nCAfile = %s\nverifyChain = yes\ncheckHost = %s\n"
            "sslVersionMin = TLSv1.2\n",
            accept, connect, k->ca, name);
    cr_assert(!fclose(f));
}

static void through_stunnel(const char *name, int status, const char *out)
{
    struct keys keys;
    char url[64];
    char conf[96];

    keys_make(&keys);
    int port = server_free_port();
    struct server *s = server_start_opts(tls_server_args(&keys, "good", port, NULL));
    int plain = server_free_port();
    stunnel_write(&keys, plain, port, name);
    snprintf(conf, sizeof conf, "%s/stunnel.conf", keys.dir);
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", plain);
    struct proc *tunnel = proc_start((const char *const[]){"stunnel4", conf, NULL});
    until_err(tunnel, "Configuration successful");
    expect(lapse("-u", url, "depth", "q"), status, out, NULL);
    proc_free(tunnel);
    server_stop(s);
    keys_remove(&keys);
}

static void stunnel_needed(void)
{
    if (system("command -v stunnel4 >/dev/null") != 0) {
        cr_skip_test("stunnel4 is not installed");
    }
}

Test(tls, a_tunnel_of_stunnel_leads_to_a_redis_with_tls)
{
    stunnel_needed();
    through_stunnel("localhost", 0, "\"waiting\":0");
}

Test(tls, a_tunnel_of_stunnel_refuses_another_name)
{
    stunnel_needed();
    through_stunnel("other.test", 69, "");
}
