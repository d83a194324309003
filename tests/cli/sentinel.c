/* SPDX-License-Identifier: MIT */
/* redis+sentinel:// in a shell. */
#include "sentinels.h"
#include "tool.h"
#include <lapse.h>
#include <unistd.h>

Test(sentinel, a_url_that_is_refused_says_why_and_shows_no_password)
{
    static const struct {
        const char *url, *said;
    } rows[] = {
        {"redis+sentinel:///m", "url 'redis+sentinel:///m': a host is missing"},
        {"redis+sentinel://a,,b/m", "url 'redis+sentinel://a,,b/m': a host is missing"},
        {"redis+sentinel://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17/m", ": at most 16 hosts"},
        {"redis+sentinel://h:0/m", ": a port is a number from 1 to 65535"},
        {"redis+sentinel://h:65536/m", ": a port is a number from 1 to 65535"},
        {"redis+sentinel://h:/m", ": a port is a number from 1 to 65535"},
        {"redis+sentinel://[::1/m", ": a [ needs its ]"},
        {"redis+sentinel://h", "url 'redis+sentinel://h': behind the hosts comes the name"},
        {"redis+sentinel://u:s3cret,x@h/m", "url 'redis+sentinel://***@h/m': a comma in a user"},
        {"redis+sentinel://u:s3cret@x@h/m", "url 'redis+sentinel://***@h/m': an @ in a user"},
        {"redis+sentinel://h/m?sentinel_password=s3cret&x=1",
         "url 'redis+sentinel://***': behind the ? are db, sentinel_user and sentinel_password"},
        {"redis+sentinel://h/m?sentinel_password=s3@cret&x=1",
         "url 'redis+sentinel://***': behind"},
        {"redis+sentinel://h/m?sentinel_user=u", ": a user needs a password"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct proc *p = lapse("-u", rows[i].url, "depth", "q");
        cr_expect(!strstr(p->err, "s3cret") && !strstr(p->err, "cret&"), "%s", p->err);
        expect(p, 2, "", rows[i].said);
    }
}

Test(sentinel, a_url_with_tls_is_refused_where_that_is_not_built)
{
    struct lapse_options o = lapse_options_init();

    if (lapse_options_set(&o, "url", "rediss://h") == 0) {
        cr_skip_test("built with TLS");
    }
    expect(lapse("-u", "rediss+sentinel://u:s3cret@h/m", "depth", "q"), 2, "",
           "url 'rediss+sentinel://***@h/m': this lapse was built without TLS");
}

/* A Sentinel that wants a password, and its master, which wants another. */
struct locked {
    struct sentinels *s;
    char url[300];
};

static void locked_start(struct locked *l)
{
    l->s = sentinels_start(1, 1, "s3cret", 30000);
    redis_do(l->s->redis[0], "ACL SETUSER ann on >t0ken ~* &* +@all");
    snprintf(l->url, sizeof l->url,
             "redis+sentinel://ann:t0ken@127.0.0.1:%d/m?sentinel_password=s3cret",
             l->s->sentinel[0]->port);
}

Test(sentinel, every_command_finds_the_master)
{
    struct locked l;

    locked_start(&l);
    setenv("LAPSE_URL", l.url, 1);
    expect(lapse("schedule", "q", "--id", "a", "--in", "0s"), 0, "\"a\"", "");
    expect(lapse("claim", "q"), 0, "\"id\":\"a\"", "");
    expect(lapse("depth", "q"), 0, "\"running\":1", "");
    expect(lapse("doctor", "q"), 0, "OK    role         master", "");
    expect(lapse("functions", "--load"), 0, NULL, NULL);
    expect(lapse("bench", "--rtt", "1ms"), 2, "", "under Sentinel: give the URL of the master");
    sentinels_stop(l.s);
}

Test(sentinel, no_password_of_its_url_is_seen)
{
    static const char *const words[] = {"depth", "doctor", "bench", "functions"};
    struct locked l;

    locked_start(&l);
    server_kill9(l.s->redis[0]);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct proc *p = lapse("-v", "-u", l.url, words[i], i == 0 ? "q" : "--json");
        cr_expect(!strstr(p->err, "s3cret") && !strstr(p->err, "t0ken"), "%s", p->err);
        cr_expect(!strstr(p->out, "s3cret") && !strstr(p->out, "t0ken"), "%s", p->out);
        expect(p, words[i][0] == 'f' ? 2 : 69, NULL, NULL);
    }

    server_kill9(l.s->sentinel[0]);
    struct proc *p = lapse_start("-u", l.url, "listen", "q", "-v");
    until_err(p, "cannot ask the Sentinel at 127.0.0.1:");
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)p->pid);
    size_t len;
    char *seen = test_read_file(path, &len);
    cr_expect_null(memmem(seen, len, "s3cret", 6));
    cr_expect_null(memmem(seen, len, "t0ken", 5));
    cr_expect(!strstr(p->err, "s3cret") && !strstr(p->err, "t0ken"), "%s", p->err);
    free(seen);
    proc_free(p);
    sentinels_stop(l.s);
}

Test(sentinel, a_wrong_name_and_a_wrong_kind_of_server_are_named)
{
    struct sentinels *s = sentinels_start(1, 1, NULL, 30000);
    char url[200];

    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d/other", s->sentinel[0]->port);
    expect(lapse("-u", url, "depth", "q"), 69, "", "it knows no master of the name other");
    expect(lapse("-u", url, "doctor"), 69, "", "it knows no master of the name other");
    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d/m", s->redis[0]->port);
    expect(lapse("-u", url, "depth", "q"), 69, "", "(it is no Sentinel: give redis:// for a");
    expect(lapse("-u", url, "doctor"), 69, "", "(it is no Sentinel: give redis:// for a");
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", s->sentinel[0]->port);
    expect(lapse("-u", url, "depth", "q"), 69, "", "it is a Sentinel");
    expect(lapse("-u", url, "doctor"), 2, "", "is a Sentinel: give redis+sentinel://127.0.0.1:");
    sentinels_stop(s);
}

Test(sentinel, who_is_not_let_in_learns_why)
{
    struct sentinels *s = sentinels_start(1, 1, NULL, 30000);
    int port = s->sentinel[0]->port;
    char url[260];
    char said[200];

    redis_do(s->redis[0], "CONFIG SET requirepass t0ken");
    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d/m", port);
    expect(lapse("-u", url, "depth", "q"), 77, "", "set LAPSE_PASSWORD or use --password-file");
    expect(lapse("-u", url, "doctor"), 77, "", "/m: PING: NOAUTH Authentication required.\n");

    snprintf(url, sizeof url, "redis+sentinel://:t0ken@127.0.0.1:%d/m?sentinel_password=x", port);
    snprintf(said, sizeof said, "Sentinel 127.0.0.1:%d: AUTH: ERR AUTH <password> called", port);
    struct proc *p = lapse("-u", url, "doctor");
    cr_expect_eq(count_of(p->err, "AUTH: ERR"), 1, "%s", p->err);
    cr_expect(!strstr(p->err, "could not be reached"), "%s", p->err);
    expect(p, 77, "", said);
    sentinels_stop(s);

    s = sentinels_start(1, 1, "s3cret", 30000);
    setenv("LAPSE_PASSWORD", "s3cret", 1); /* that of Redis */
    p = lapse("-u", s->url, "depth", "q");
    cr_expect(!strstr(p->err, "LAPSE_PASSWORD"), "%s", p->err);
    expect(p, 77, "",
           "; give them in the URL: ?sentinel_password=PASSWORD, or ?sentinel_user=USER&");
    expect(lapse("-u", s->url, "listen", "q"), 77, "",
           "the user or password for the Sentinels is wrong or missing");
    expect(lapse("-u", s->url, "doctor"), 77, "", "NOAUTH");
    unsetenv("LAPSE_PASSWORD");

    redis_do(s->sentinel[0], "AUTH s3cret");
    redis_do(s->sentinel[0], "ACL SETUSER u on >p -@all +ping");
    snprintf(url, sizeof url, "%s?sentinel_user=u&sentinel_password=p", s->url);
    p = lapse("-u", url, "depth", "q");
    cr_expect(!strstr(p->err, "doctor"), "%s", p->err);
    expect(p, 77, "",
           "the user for the Sentinels (sentinel_user of the URL, or their default) lacks a "
           "permission: ");
    sentinels_stop(s);
}
