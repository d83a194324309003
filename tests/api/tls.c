/* SPDX-License-Identifier: MIT */
/* rediss://: a Redis that is who it should be is used, and none else; the log says what is wrong.
 * Where lapse is built without TLS only the refusal is tested. */
#include "tls.h"
#include "ask.h"
#include "cluster.h"
#include "handler.h"
#include "listening.h"
#include "sentinels.h"
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

struct secured {
    struct flow *f;
    struct keys keys;
    int port;
    char url[120];
    struct lapse_options opts;
};

/* A server of its own; the handle is opened by secured_open(). */
static void secured_start(struct secured *s, const char *certificate, const char *const *more)
{
    tls_needed();
    keys_make(&s->keys);
    s->port = server_free_port();
    s->f = flow_bare(FLOW_FULL, tls_server_args(&s->keys, certificate, s->port, more));
    snprintf(s->url, sizeof s->url, "rediss://%slocalhost:%d", server_login(), s->port);
    s->opts = flow_options(s->f);
    s->opts.url = s->url;
    s->opts.tls_ca = s->keys.ca;
}

static void secured_open(struct secured *s)
{
    s->f->l = flow_open(s->f, &s->opts);
}

static void secured_end(struct secured *s)
{
    struct keys keys = s->keys;
    flow_end(s->f, "q");
    keys_remove(&keys);
}

/* The server is refused, and a line says this. */
static void is_refused(struct secured *s, const char *why)
{
    s->opts.reply_ms = 500;
    flow_allow_log(s->f, "cannot connect to Redis at ");
    secured_open(s);
    flow_until(s->f, flow_logged(s->f, why) > 0);
    cr_assert_eq(flow_get(s->f, "q", "a", NULL), LAPSE_EDOWN);
    secured_end(s);
}

Test(tls, without_it_a_rediss_url_is_einval_and_the_log_says_what_is_needed)
{
    struct lapse_options o = lapse_options_init();
    struct lapse *l = NULL;

    if (lapse_options_set(&o, "url", "rediss://h") == 0) {
        cr_skip_test("built with TLS");
    }

    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_options opts = flow_options(f);
    flow_allow_log(f, "rediss://: ");
    opts.url = "rediss://ann:secretive@h";
    cr_assert_eq(lapse_open(&l, f->loop, &opts), LAPSE_EINVAL);
    cr_assert_null(l);
    cr_assert_eq(flow_logged(f, "secretive"), 0);
    cr_assert_eq(flow_logged(f, "needs hiredis 1.0 or later with hiredis_ssl, and OpenSSL"), 1);
    flow_end(f, "q");
}

Test(tls, a_certificate_without_its_key_is_einval)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_options opts = flow_options(f);
    struct lapse *l = NULL;

    flow_allow_log(f, "tls_cert and tls_key: one needs the other");
    opts.tls_cert = "/a";
    cr_assert_eq(lapse_open(&l, f->loop, &opts), LAPSE_EINVAL);
    opts.tls_cert = NULL;
    opts.tls_key = "/a";
    cr_assert_eq(lapse_open(&l, f->loop, &opts), LAPSE_EINVAL);
    flow_end(f, "q");
}

Test(tls, jobs_are_scheduled_and_run)
{
    struct secured s;
    struct flow_handler w = {.way = FLOW_DONE};

    secured_start(&s, "good", NULL);
    secured_open(&s);
    cr_assert_eq(flow_schedule(s.f, "q", "a", 20, NULL), 0);
    w.f = s.f;
    flow_listen(s.f, "q", &w);
    flow_until(s.f, w.settled == 1);
    secured_end(&s);
}

/* Many records, both ways. */
Test(tls, a_body_of_a_mebibyte_comes_back_whole)
{
    struct secured s;
    struct flow_job job;
    enum { SIZE = 1 << 20 };

    secured_start(&s, "good", NULL);
    secured_open(&s);
    char *body = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++) {
        body[i] = (char)(i * 7 + i / 251);
    }

    struct lapse_spec spec = flow_job_spec("q", "a", 3600000);
    spec.body = body;
    spec.body_len = SIZE;
    cr_assert_eq(flow_spec(s.f, &spec, NULL), 0);
    cr_assert_eq(flow_get(s.f, "q", "a", &job), 0);
    cr_assert(job.body_len == SIZE && memcmp(job.body, body, SIZE) == 0);
    free(body);
    secured_end(&s);
}

Test(tls, a_password_goes_through_it)
{
    struct secured s;

    secured_start(&s, "good", NULL);
    redis_do(s.f->server, "ACL SETUSER ann on >pass:word ~* &* +@all");
    snprintf(s.url, sizeof s.url, "rediss://ann:pass%%3Aword@127.0.0.1:%d", s.port);
    secured_open(&s);
    cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_ENOENT);
    secured_end(&s);
}

Test(tls, a_connection_that_is_lost_is_made_again)
{
    struct secured s;

    secured_start(&s, "good", NULL);
    secured_open(&s);
    cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_ENOENT);
    flow_allow_log(s.f, "lost the connection to Redis at localhost");
    redis_do(s.f->server, "CLIENT KILL TYPE normal");
    flow_until(s.f, flow_stats(s.f->l).reconnects == 1);
    cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_ENOENT);
    secured_end(&s);
}

Test(tls, a_server_of_another_name_is_refused)
{
    struct secured s;

    secured_start(&s, "other", NULL);
    is_refused(&s, "TLS: hostname mismatch: the certificate /CN=other.test is not one of localhost "
                   "(tls_name, or else the host of the URL)");
}

Test(tls, of_a_server_another_address_than_that_of_its_certificate_is_refused)
{
    struct secured s;

    secured_start(&s, "other", NULL);
    snprintf(s.url, sizeof s.url, "rediss://%s127.0.0.1:%d", server_login(), s.port);
    is_refused(&s, "TLS: IP address mismatch: the certificate /CN=other.test is not one of "
                   "127.0.0.1");
}

Test(tls, the_name_to_expect_may_be_another_than_that_of_the_url)
{
    struct secured s;

    secured_start(&s, "other", NULL);
    s.opts.tls_name = "other.test";
    secured_open(&s);
    cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_ENOENT);
    secured_end(&s);
}

Test(tls, a_certificate_that_has_expired_is_refused)
{
    struct secured s;

    secured_start(&s, "expired", NULL);
    is_refused(&s, "TLS: certificate has expired: the certificate /CN=localhost, of the chain of "
                   "localhost");
}

Test(tls, a_certificate_that_signed_itself_is_refused)
{
    struct secured s;

    secured_start(&s, "self", NULL);
    is_refused(&s, "TLS: self-signed certificate: the certificate /CN=localhost");
}

Test(tls, a_certificate_of_an_authority_that_is_not_ours_is_refused)
{
    struct secured s;

    secured_start(&s, "foreign", NULL);
    is_refused(&s, "TLS: unable to get local issuer certificate: the certificate /CN=localhost");
}

Test(tls, the_authorities_of_the_system_do_not_know_ours)
{
    struct secured s;

    secured_start(&s, "good", NULL);
    s.opts.tls_ca = NULL;
    is_refused(&s, "TLS: self-signed certificate in certificate chain: the certificate "
                   "/CN=lapse-test-authority, of the chain of localhost");
}

Test(tls, a_server_that_speaks_only_version_1_1_is_refused)
{
    static const char *const more[] = {"--tls-protocols", "TLSv1.1", "--tls-ciphers",
                                       "DEFAULT:@SECLEVEL=0", NULL};
    struct secured s;

    secured_start(&s, "good", more);
    is_refused(&s, "(TLS 1.2 or later is needed)");
}

Test(tls, a_file_that_is_not_there_is_named)
{
    struct secured s;

    secured_start(&s, "good", NULL);
    s.opts.tls_ca = "/nowhere.pem";
    is_refused(&s, "tls_ca /nowhere.pem: No such file or directory");
}

Test(tls, our_certificate_is_shown_where_redis_asks_for_it)
{
    static const char *const more[] = {"--tls-auth-clients", "yes", NULL};
    struct secured s;

    secured_start(&s, "good", more);
    s.opts.tls_cert = s.keys.client;
    s.opts.tls_key = s.keys.client_key;
    secured_open(&s);
    cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_ENOENT);
    secured_end(&s);
}

Test(tls, where_redis_asks_for_a_certificate_and_there_is_none_the_log_says_so)
{
    static const char *const more[] = {"--tls-auth-clients", "yes", NULL};
    struct secured s;

    secured_start(&s, "good", more);
    flow_allow_log(s.f, "lost the connection to Redis at ");
    is_refused(&s, "certificate required");
}

/* A port without TLS takes the hello for a command, or waits for more of it. What it was sent must
 * not be a command of ours. */
Test(tls, a_port_that_never_answers_is_given_up_after_reply_ms_and_nothing_is_sent_in_plain)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    char url[120];
    char sent[4096] = "";

    tls_needed();

    struct flow *f = flow_bare(FLOW_FULL, NULL);
    int mute = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(mute >= 0 && !bind(mute, (struct sockaddr *)&in, len) && !listen(mute, 8) &&
              !getsockname(mute, (struct sockaddr *)&in, &len));

    struct lapse_options opts = flow_options(f);
    snprintf(url, sizeof url, "rediss://ann:secretive@127.0.0.1:%d", ntohs(in.sin_port));
    opts.url = url;
    opts.reply_ms = 200;
    flow_allow_log(f, "cannot connect to Redis at ");
    f->l = flow_open(f, &opts);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_EDOWN);
    flow_until(f, flow_logged(f, "no answer to the hello of TLS; is this a port for TLS?") > 0);

    int fd = accept(mute, NULL, NULL);
    ssize_t n = read(fd, sent, sizeof sent);
    cr_assert(n > 5 && sent[0] == 22 && sent[1] == 3, "a record of a handshake");
    cr_assert_null(memmem(sent, (size_t)n, "secretive", 9));
    cr_assert_null(memmem(sent, (size_t)n, "AUTH", 4));
    close(fd);
    close(mute);
    flow_end(f);
}

/* ---- many servers ---- */
/* Not one of them takes a connection without TLS. They are started before the flow, which counts
 * the descriptors that are left. */
struct many {
    struct keys keys;
    struct flow *f;
    struct flow_handler handler;
    struct lapse_options opts;
};

static void many_make_keys(struct many *m)
{
    tls_needed();
    keys_make(&m->keys);
}

static void many_start(struct many *m, const char *url)
{
    m->f = flow_bare(FLOW_FULL, NULL);
    m->handler = (struct flow_handler){.f = m->f, .way = FLOW_DONE};
    m->opts = flow_options(m->f);
    m->opts.tls_ca = m->keys.ca;
    m->opts.url = url;
}

static void many_end(struct many *m)
{
    flow_end(m->f);
    keys_remove(&m->keys);
}

/* A queue of each master, in their order. */
static void queue_of_master(const struct cluster *c, int master, char queue[16])
{
    for (int i = 0;; i++) {
        snprintf(queue, 16, "q%d", i);
        int slot = cluster_slot_of_queue(c, queue);
        if (cluster_owner(c, c->nodes[master].server, slot) == master) {
            return;
        }
    }
}

Test(tls, in_a_cluster_all_masters_are_used_and_a_queue_that_moves_is_followed)
{
    struct many m;
    char url[CLUSTER_URL];
    char queue[16];

    many_make_keys(&m);
    struct cluster *c = cluster_start_tls(3, 0, &m.keys);
    cluster_url(c, server_login(), url);
    many_start(&m, url);
    m.f->l = flow_open(m.f, &m.opts);
    for (int i = 0; i < c->n_masters; i++) {
        queue_of_master(c, i, queue);
        flow_listen(m.f, queue, &m.handler);
        cr_assert_eq(flow_schedule(m.f, queue, "a", 20, NULL), 0);
    }
    flow_until(m.f, m.handler.settled == 3);

    cluster_move(c, cluster_slot_of_queue(c, queue), 0);
    cr_assert_eq(flow_schedule(m.f, queue, "b", 20, NULL), 0);
    flow_until(m.f, m.handler.settled == 4);
    cr_assert_gt(flow_stats(m.f->l).moved, 0);
    many_end(&m);
    cluster_stop(c);
}

Test(tls, in_a_cluster_a_master_of_another_name_is_refused_and_the_others_are_used)
{
    struct many m;
    char url[CLUSTER_URL];
    char queue[16];

    many_make_keys(&m);
    struct cluster *c = cluster_start_tls(3, 0, &m.keys);
    tls_give(&m.keys, "other", c->nodes[1].server);
    cluster_url(c, server_login(), url);
    many_start(&m, url);
    flow_allow_log(m.f, "cannot ");
    flow_allow_log(m.f, "/CN=other.test");
    m.opts.reply_ms = 5000;
    m.f->l = flow_open(m.f, &m.opts);
    queue_of_master(c, 1, queue);
    cr_assert_eq(flow_schedule(m.f, queue, "a", 0, NULL), LAPSE_EDOWN);
    cr_assert_gt(flow_logged(m.f, "IP address mismatch"), 0);
    queue_of_master(c, 2, queue);
    cr_assert_eq(flow_schedule(m.f, queue, "a", 60000, NULL), 0);
    many_end(&m);
    cluster_stop(c);
}

Test(tls, under_sentinel_the_master_is_found_and_after_a_failover_the_new_one, .timeout = 120)
{
    struct many m;

    many_make_keys(&m);
    struct sentinels *s = sentinels_start_tls(2, 1, &m.keys);
    many_start(&m, s->url);
    flow_allow_log(m.f, "the master is now Redis at ");
    flow_allow_log(m.f, "connection");
    flow_allow_log(m.f, "cannot connect");
    flow_allow_log(m.f, "as Sentinel says");
    m.f->l = flow_open(m.f, &m.opts);
    flow_listen(m.f, "q", &m.handler);
    cr_assert_eq(flow_schedule(m.f, "q", "a", 20, NULL), 0);
    flow_until(m.f, m.handler.settled == 1);

    sentinels_fail_over(s);
    flow_until(m.f, flow_stats(m.f->l).failovers == 1);
    flow_poll(m.f, flow_schedule(m.f, "q", "b", 20, NULL) == 0);
    flow_until(m.f, m.handler.settled == 2);
    many_end(&m);
    sentinels_stop(s);
}

Test(tls, a_sentinel_of_an_authority_that_is_not_ours_is_not_asked)
{
    struct many m;

    many_make_keys(&m);
    struct sentinels *s = sentinels_start_tls(1, 1, &m.keys);
    many_start(&m, s->url);
    m.opts.tls_ca = NULL; /* the system knows nothing of our authority */
    flow_allow_log(m.f, "cannot ask the Sentinel at ");
    m.opts.reply_ms = 2000;
    m.f->l = flow_open(m.f, &m.opts);
    cr_assert_eq(flow_schedule(m.f, "q", "a", 0, NULL), LAPSE_EDOWN);
    cr_assert_gt(flow_logged(m.f, "certificate"), 0);
    many_end(&m);
    sentinels_stop(s);
}
