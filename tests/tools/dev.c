/* SPDX-License-Identifier: MIT */
/* lapse dev leaves nothing behind, however it ends; and the demo and the examples, which run on it or on a server of
 * ours. */
#include "tool.h"
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

struct dev {
    struct proc *p;
    char url[128], dir[128], tmp[64];
    int server; /* pid */
};

static int pid_of_server(const char *url)
{
    char line[300];
    snprintf(line, sizeof line, "redis-cli -s '%.100s' info server | tr -d '\\r' | sed -n 's/^process_id://p'",
             url + strlen("unix://"));
    struct proc *p = shell(line);
    int pid = atoi(p->out);
    cr_assert(pid > 0, "%s", p->err);
    proc_free(p);
    return pid;
}

static struct dev start(const char *queue)
{
    struct dev d = {.p = NULL};
    struct stat st;
    test_dir(d.tmp, sizeof d.tmp);
    setenv("XDG_RUNTIME_DIR", d.tmp, 1);
    setenv("LAPSE_PASSWORD", "of another Redis", 1);
    d.p = proc_start((const char *const[]){"lapse", "dev", "-v", queue, NULL});
    until_out(d.p, "\n");
    cr_assert_eq(sscanf(d.p->out, "%127[^\n]", d.url), 1);
    snprintf(d.dir, sizeof d.dir, "%.100s", d.url + strlen("unix://"));
    *strrchr(d.dir, '/') = '\0';
    cr_assert(!strncmp(d.dir, d.tmp, strlen(d.tmp)), "%s", d.url);
    cr_assert(!stat(d.dir, &st) && (st.st_mode & 0777) == 0700);
    setenv("LAPSE_URL", d.url, 1);
    unsetenv("LAPSE_PASSWORD");
    d.server = pid_of_server(d.url);
    return d;
}

static void all_gone(struct dev *d)
{
    until_no_process(d->server);
    until_gone(d->dir);
    test_dir_remove(d->tmp);
}

Test(dev, prints_its_url_listens_and_leaves_nothing_behind)
{
    struct dev d = start("q");
    expect(lapse("schedule", "q", "--id", "i", "--in", "0s", "hello"), 0, NULL, NULL);
    until_out(d.p, "\"body\":\"hello\"");
    proc_signal(d.p, SIGTERM);
    expect(d.p, 0, NULL, NULL);
    cr_assert(access(d.dir, F_OK), "it exits when all is gone, not before");
    all_gone(&d);
}

Test(dev, without_queues_is_just_the_server)
{
    struct dev d = start(NULL);
    expect(lapse("depth", "q"), 0, "\"waiting\":0", NULL);
    proc_signal(d.p, SIGINT);
    expect(d.p, 0, NULL, NULL);
    all_gone(&d);
}

Test(dev, leaves_nothing_behind_after_kill_9)
{
    struct dev d = start("q");
    proc_signal(d.p, SIGKILL);
    expect(d.p, 128 + SIGKILL, NULL, NULL);
    all_gone(&d);
}

Test(dev, ends_with_69_when_its_server_does)
{
    struct dev d = start("q");
    kill(d.server, SIGKILL);
    expect(d.p, 69, NULL, "the private redis-server ended");
    all_gone(&d);
}

Test(dev, says_what_to_install_when_there_is_no_redis_server)
{
    setenv("PATH", "/nonexistent", 1);
    expect(lapse("dev", "q"), 69, "", "apt-get install redis-server");
}

Test(dev, shows_the_servers_words_when_it_does_not_start)
{
    char dir[64], conf[100];
    test_dir(dir, sizeof dir);
    setenv("XDG_RUNTIME_DIR", dir, 1);
    snprintf(conf, sizeof conf, "%s/bad.conf", dir);
    FILE *f = fopen(conf, "w");
    cr_assert(f);
    fputs("no-such-setting yes\n", f);
    fclose(f);
    expect(lapse("dev", "--conf", conf), 69, "", "no-such-setting");
    expect(lapse("dev", "--conf", "/nonexistent"), 2, "", "/nonexistent");
    unlink(conf);
    cr_assert(!rmdir(dir), "something is left in %s", dir);
}

Test(examples, end_well)
{
    static const struct {
        const char *name, *says;
    } table[] = {
        {"examples/order_timeout", "order-2 was not paid in time"},
        {"examples/session_idle", "session-42 was idle for 1000 ms"},
        {"examples/webhook_retry", "hook-7: try 3 of 5: 200"},
    };
    struct server *s = tool_redis();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct proc *p = proc_run(NULL, table[i].name, s->url, NULL);
        cr_assert_eq(p->err_len, 0, "%s", p->err);
        expect(p, 0, table[i].says, NULL);
    }
    cr_assert_eq(audit(s, "lapse", "orders", "sessions", "webhooks", NULL), 0);
    server_stop(s);
}

Test(demo, tells_its_story_and_exits_0, .timeout = 60)
{
    char line[4200];
    snprintf(line, sizeof line, "cd '%s' && BUILD='%s' tools/demo.sh", test_root(), test_build());
    int64_t start_ms = test_now_ms();
    struct proc *p = shell(line);
    proc_wait(p, 20000);
    cr_assert_eq(count_of(p->out, "not paid: cancelled"), 5, "%s", p->out);
    cr_assert(has(p, "order-6  is paid") && has(p, "order-7  is prolonged") && has(p, "the handler fails") &&
                  has(p, "the second try") && has(p, "no event ever came") && has(p, "order-9  loses its trigger"),
              "%s", p->out);
    cr_assert(has(p, "none missing, none twice, none early") && has(p, "scheduled"), "%s", p->out);
    cr_assert(!has(p, "FAULT") && !has(p, "\033"), "%s", p->out);
    cr_assert(test_now_ms() - start_ms < 15000);
    expect(p, 0, NULL, NULL);
}
