/* SPDX-License-Identifier: MIT */
/* The users of tools/doc/users.md and redis.conf, made as these say, are still there when Redis
 * comes back. */
#include "tool.h"
#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>

struct own { /* a server without the users that all tests have */
    char dir[64], socket[80], root[4096];
    struct proc *p;
};

static struct own prepare(void)
{
    struct own o = {.p = NULL};

    test_dir(o.dir, sizeof o.dir);
    snprintf(o.socket, sizeof o.socket, "%s/redis", o.dir);
    cr_assert(realpath(test_root(), o.root));
    setenv("root", o.root, 1);
    setenv("dir", o.dir, 1);
    return o;
}

static bool answers(const struct own *o)
{
    redisContext *c = redisConnectUnix(o->socket);
    bool yes = c && !c->err;

    if (c) {
        redisFree(c);
    }
    return yes;
}

static void start(struct own *o, const char *conf, const char *acl)
{
    const char *given = getenv("LAPSE_TEST_SERVER");
    const char *server = given ? given : "redis-server";
    const char *acl_option = acl ? "--aclfile" : NULL;
    int64_t end = test_now_ms() + 10000;

    o->p = proc_start((const char *const[]){server, conf, "--port", "0", "--unixsocket", o->socket,
                                            "--dir", o->dir, "--appendfsync", "always", acl_option,
                                            acl, NULL});
    while (!answers(o) && test_now_ms() < end) {
        poll(NULL, 0, 5);
    }

    cr_assert(answers(o), "%s%s", o->p->out, o->p->err);
}

static void stop(struct own *o)
{
    proc_signal(o->p, SIGKILL);
    proc_wait(o->p, PROC_WAIT_MS);
    proc_free(o->p);
    remove(o->socket);
}

static void do_their_work(const struct own *o)
{
    char producer[200];
    char listener[200];
    char monitor[200];

    snprintf(producer, sizeof producer, "unix://lapse_producer:secret@%s", o->socket);
    snprintf(listener, sizeof listener, "unix://lapse_listener:secret@%s", o->socket);
    snprintf(monitor, sizeof monitor, "unix://lapse_monitor:secret@%s", o->socket);
    expect(
        lapse("-u", producer, "schedule", "q", "--in", "0s", "--id", "i", "--connect-wait", "10s"),
        0, NULL, NULL);
    expect(lapse("-u", monitor, "depth", "q"), 0, "\"waiting\":1", NULL);
    expect(lapse("-u", listener, "listen", "q", "--count", "1"), 0, "\"id\":\"i\"", NULL);
}

Test(users, of_the_documents_are_still_there_after_a_restart)
{
    struct own o = prepare();
    char conf[4200];
    char acl[100];

    snprintf(conf, sizeof conf, "%s/redis.conf", o.root);
    snprintf(acl, sizeof acl, "%s/users.acl", o.dir);
    expect(shell(": > $dir/users.acl"), 0, NULL, NULL);
    start(&o, conf, acl);

    /* all commands of the document, as they stand there */
    struct proc *p =
        shell("grep '^    ' $root/tools/doc/users.md | "
              "sed \"s|redis-cli|redis-cli -s $dir/redis|; s/PASSWORD/secret/\" | sh -e");

    cr_assert(count_of(p->out, "OK\n") >= 3, "%s", p->out);
    expect(p, 0, NULL, NULL);
    do_their_work(&o);
    stop(&o);
    start(&o, conf, acl);
    do_their_work(&o);
    stop(&o);
    test_dir_remove(o.dir);
}

Test(users, of_redis_conf_are_there_when_their_lines_are_taken)
{
    struct own o = prepare();
    char conf[100];

    snprintf(conf, sizeof conf, "%s/mine.conf", o.dir);
    expect(shell("sed 's/^# user /user /; s/PASSWORD/secret/' $root/redis.conf > $dir/mine.conf"),
           0, NULL, NULL);
    start(&o, conf, NULL);
    do_their_work(&o);
    stop(&o);
    test_dir_remove(o.dir);
}
