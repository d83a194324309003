/* SPDX-License-Identifier: MIT */
/* lapse dev leaves nothing behind, however it ends; and the demo and the examples, which run on it
 * or on a server of ours. */
#include "tool.h"
#include "audit.h"
#include "proxy.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
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

    snprintf(line, sizeof line,
             "redis-cli -s '%.100s' info server | tr -d '\\r' | sed -n 's/^process_id://p'",
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
    char conf[4200];

    snprintf(conf, sizeof conf, "%s/redis.conf", test_root());
    test_dir(d.tmp, sizeof d.tmp);
    setenv("XDG_RUNTIME_DIR", d.tmp, 1);
    setenv("LAPSE_PASSWORD", "of another Redis", 1);
    d.p = proc_start((const char *const[]){"lapse", "dev", "-v", "--conf", conf, queue, NULL});
    until_out(d.p, "\n");
    cr_assert_eq(sscanf(d.p->out, "%127[^\n]", d.url), 1);
    snprintf(d.dir, sizeof d.dir, "%.100s", d.url + strlen("unix://"));
    *strrchr(d.dir, '/') = '\0';
    cr_assert(strncmp(d.dir, d.tmp, strlen(d.tmp)) == 0, "%s", d.url);
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

    expect(lapse("-u", "redis://elsewhere", "dev"), 2, "",
           "a Redis of its own, and prints its URL");
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

Test(dev, that_cannot_print_its_url_ends)
{
    setenv("root", test_root(), 1);
    expect(shell("$lapse dev --conf $root/redis.conf > /dev/full"), 74, "",
           "stdout: No space left on device");
    expect(shell("$lapse dev --json --conf $root/redis.conf > /dev/full"), 74, "",
           "stdout: No space left on device");
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
    expect(d.p, 69, NULL, "the private redis-server exited");
    all_gone(&d);
}

Test(dev, says_what_to_install_when_there_is_no_redis_server)
{
    setenv("PATH", "/nonexistent", 1);
    expect(lapse("dev", "q"), 69, "", "apt-get install redis-server");
}

Test(dev, shows_the_servers_words_when_it_does_not_start)
{
    char dir[64];
    char conf[100];

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

/* ---- a cluster ---- */
struct dev_cluster {
    struct proc *p;
    char url[320], password[40], tmp[64];
    int ports[6];
};

static void set_conf_of_ours(char conf[4200])
{
    snprintf(conf, 4200, "%s/redis.conf", test_root());
}

static void start_cluster(struct dev_cluster *d, const char *queue)
{
    char conf[4200];
    char *at;
    int n = 0;

    set_conf_of_ours(conf);
    test_dir(d->tmp, sizeof d->tmp);
    setenv("XDG_RUNTIME_DIR", d->tmp, 1);
    d->p =
        proc_start((const char *const[]){"lapse", "dev", "--cluster", "--conf", conf, queue, NULL});
    until_out(d->p, "\n");
    cr_assert_eq(sscanf(d->p->out, "%319[^\n]", d->url), 1);
    cr_assert_eq(sscanf(d->url, "redis+cluster://:%39[0-9a-f]@", d->password), 1, "%s", d->url);
    cr_assert_eq(strlen(d->password), 32);

    at = strchr(d->url, '@') + 1;
    for (int used = 0; sscanf(at, "127.0.0.1:%d%n", &d->ports[n], &used) == 1; at += used) {
        n++;
        used += at[used] == ',';
    }
    cr_assert(n == 6 && !*at, "%s", d->url);
    setenv("LAPSE_URL", d->url, 1);
    setenv("REDISCLI_AUTH", d->password, 1);
}

/* What a node says, by redis-cli. */
static struct proc *node_says(int port, const char *words)
{
    char line[200];

    snprintf(line, sizeof line, "redis-cli -p %d %s", port, words);
    return shell(line);
}

static int pid_of_node(int port)
{
    struct proc *p = node_says(port, "INFO server");
    const char *at = strstr(p->out, "process_id:");

    cr_assert(at, "%s%s", p->out, p->err);
    int pid = atoi(at + strlen("process_id:"));
    proc_free(p);
    return pid;
}

/* A failover takes seconds. */
static void until_master(int port)
{
    int64_t end_ms = test_now_ms() + PROC_WAIT_MS;

    for (bool seen = false; !seen; poll(NULL, 0, 50)) {
        struct proc *p = node_says(port, "CLUSTER NODES");
        seen = has(p, "myself,master");
        cr_assert(seen || test_now_ms() < end_ms, "%s%s", p->out, p->err);
        proc_free(p);
    }
}

static void cluster_is_gone(struct dev_cluster *d, const int pids[6])
{
    for (int i = 0; i < 6; i++) {
        until_no_process(pids[i]);
    }
    until_empty(d->tmp);
}

Test(dev, of_a_cluster_starts_three_masters_and_their_replicas_and_ends_all_of_them)
{
    struct dev_cluster d;
    int pids[6];

    start_cluster(&d, NULL);
    for (int i = 0; i < 6; i++) {
        pids[i] = pid_of_node(d.ports[i]);
    }
    expect(node_says(d.ports[0], "CLUSTER INFO"), 0, "cluster_state:ok", NULL);
    struct proc *p = node_says(d.ports[5], "CLUSTER NODES");
    cr_assert_eq(count_of(p->out, "master - "), 3, "%s", p->out);
    cr_assert_eq(count_of(p->out, "slave "), 3, "%s", p->out);
    expect(p, 0, "10922-16383", NULL);
    expect(node_says(d.ports[1], "CONFIG GET notify-keyspace-events"), 0, "xE", NULL);

    proc_signal(d.p, SIGTERM);
    expect(d.p, 0, NULL, NULL);
    cluster_is_gone(&d, pids);
}

/* Other users of the machine reach its ports, and see its command lines. */
Test(dev, of_a_cluster_lets_nobody_in_who_has_not_its_url)
{
    struct dev_cluster d;
    int pids[6];
    char path[40];

    start_cluster(&d, NULL);
    for (int i = 0; i < 6; i++) {
        pids[i] = pid_of_node(d.ports[i]);
        snprintf(path, sizeof path, "/proc/%d/cmdline", pids[i]);
        size_t len;
        char *words = test_read_file(path, &len);
        cr_assert_null(memmem(words, len, d.password, strlen(d.password)));
        free(words);
    }
    unsetenv("REDISCLI_AUTH");
    for (int i = 0; i < 6; i++) {
        expect(node_says(d.ports[i], "GET x"), 0, "NOAUTH", NULL);
    }

    proc_signal(d.p, SIGKILL);
    expect(d.p, 128 + SIGKILL, NULL, NULL);
    cluster_is_gone(&d, pids);
}

Test(dev, of_a_cluster_goes_on_without_a_master_and_ends_with_the_last_node)
{
    struct dev_cluster d;
    int pids[6];
    char line[120];

    start_cluster(&d, "q");
    for (int i = 0; i < 6; i++) {
        pids[i] = pid_of_node(d.ports[i]);
    }
    expect(lapse("schedule", "q", "--id", "i", "--in", "0s", "hello"), 0, NULL, NULL);
    until_out(d.p, "\"body\":\"hello\"");
    expect(lapse("doctor", "q"), 0, "3 masters, 3 replicas, and each slot has a node", "");

    kill(pids[0], SIGKILL);
    snprintf(line, sizeof line, "the node 127.0.0.1:%d exited; 5 of 6 run", d.ports[0]);
    until_err(d.p, line);
    until_master(d.ports[3]); /* its replica */

    for (int i = 1; i < 6; i++) {
        kill(pids[i], SIGKILL);
    }
    expect(d.p, 69, NULL, "the private redis-server exited");
    cluster_is_gone(&d, pids);
}

Test(dev, of_a_cluster_starts_none_that_is_open_to_all_or_that_cannot_start)
{
    static const struct {
        const char *conf, *says;
    } table[] = {
        {"user default on nopass ~* &* +@all\n", "lets anyone in without a password"},
        {"replicaof 127.0.0.1 1\n", "replicaof directive not allowed"},
        {"no-such-setting yes\n", "no-such-setting"},
    };
    char dir[64];
    char conf[100];

    test_dir(dir, sizeof dir);
    setenv("XDG_RUNTIME_DIR", dir, 1);
    snprintf(conf, sizeof conf, "%s/given.conf", dir);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        FILE *f = fopen(conf, "w");
        cr_assert(f && fputs(table[i].conf, f) >= 0 && fclose(f) == 0);
        expect(lapse("dev", "--cluster", "--conf", conf), 69, "", table[i].says);
    }
    unlink(conf);
    cr_assert(!rmdir(dir), "something is left in %s", dir);
}

/* ---- whose redis.conf ---- */
static void write_conf(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) &&
              !fchmod(fd, mode));
    close(fd);
}

/* A folder of ours to be in, with a redis.conf that a server would object to: so it is seen who
 * reads it. */
static void enter_folder(char out[128])
{
    char build[4096];

    cr_assert(realpath(test_build(), build));
    setenv("LAPSE_TEST_BUILD", build, 1);
    test_dir(out, 128);
    setenv("XDG_RUNTIME_DIR", out, 1);
    cr_assert(!chdir(out) && !mkdir("in", 0755) && !chdir("in") && !chmod(".", 0755));
    write_conf("redis.conf", "planted yes\n", 0644);
}

static void leave_folder(const char *dir)
{
    cr_assert(!chdir("/"));
    test_dir_remove(dir);
}

static void is_refused(const char *why)
{
    struct proc *p = lapse_start("dev");

    until_err(p, why);
    proc_signal(p, SIGTERM); /* where lapse is installed, it runs with the installed one */
    proc_wait(p, PROC_WAIT_MS);
    cr_expect(!strstr(p->err, "planted"), "%s", p->err);
    proc_free(p);
}

Test(dev, reads_a_redis_conf_that_only_we_could_have_placed)
{
    char dir[128];

    enter_folder(dir);
    expect(lapse("dev"), 69, "", "planted");
    cr_assert(!chmod("redis.conf", 0600) && !chmod(".", 0700));
    expect(lapse("dev"), 69, "", "planted");
    leave_folder(dir);
}

Test(dev, does_not_read_a_redis_conf_that_is_a_link_or_no_file)
{
    char dir[128];

    enter_folder(dir);
    cr_assert(!rename("redis.conf", "download") && !symlink("download", "redis.conf"));
    is_refused("ignoring ./redis.conf: it is a symbolic link");
    cr_assert(!unlink("redis.conf") && !mkfifo("redis.conf", 0600));
    is_refused("ignoring ./redis.conf: it is not a file");
    cr_assert(!unlink("redis.conf") && !mkdir("redis.conf", 0700));
    is_refused("ignoring ./redis.conf: it is not a file");
    leave_folder(dir);
}

Test(dev, does_not_read_a_redis_conf_that_others_can_write_or_swap)
{
    static const struct {
        mode_t file, folder;
        const char *why;
    } table[] = {
        {0664, 0755, "other users can write to it"},
        {0646, 0755, "other users can write to it"},
        {0644, 0775, "other users can write to its folder"},
        {0644, 0757, "other users can write to its folder"},
        {0644, 01777, "other users can write to its folder"},
    };
    char dir[128];

    enter_folder(dir);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cr_assert(!chmod("redis.conf", table[i].file) && !chmod(".", table[i].folder));
        is_refused(table[i].why);
    }

    leave_folder(dir);
}

Test(dev, does_not_read_a_redis_conf_of_another_user_or_in_the_folder_of_one)
{
    enum { NOBODY = 65534 };
    char dir[128];

    if (geteuid()) {
        cr_skip("root alone can give files away");
    }

    enter_folder(dir);
    cr_assert(!chown("redis.conf", NOBODY, NOBODY));
    is_refused("it belongs to another user");
    cr_assert(!chown("redis.conf", 0, 0) && !chown(".", NOBODY, NOBODY));
    is_refused("its folder belongs to another user");
    leave_folder(dir);
}

/* What is swapped after the look cannot matter: the server reads what was looked at. */
Test(dev, gives_its_server_a_copy_of_what_was_looked_at)
{
    char dir[128];
    char line[400];
    char expected[300];

    enter_folder(dir);
    write_conf("redis.conf", "maxclients 77\n", 0644);

    struct proc *p = lapse_start("dev");
    until_out(p, "\n");

    char url[128];
    cr_assert_eq(sscanf(p->out, "unix://%127[^\n]", url), 1);
    snprintf(line, sizeof line,
             "redis-cli -s '%s' info server; redis-cli -s '%s' config get maxclients", url, url);

    struct proc *cli = shell(line);
    *strrchr(url, '/') = '\0';
    snprintf(expected, sizeof expected, "config_file:%s/redis.conf\r\n", url);
    cr_expect(has(cli, expected) && has(cli, "maxclients\n77\n"), "not %s: %s", expected, cli->out);
    proc_free(cli);
    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, NULL);
    leave_folder(dir);
}

Test(dev, takes_a_configuration_that_was_named_from_wherever_it_is)
{
    char dir[128];

    enter_folder(dir);
    cr_assert(!rename("redis.conf", "other") && !symlink("other", "link.conf") &&
              !chmod("other", 0666));
    expect(lapse("dev", "--conf", "link.conf"), 69, "", "planted");
    expect(shell("echo 'piped yes' | $lapse dev --conf /dev/stdin"), 69, "", "piped");
    expect(lapse("dev", "--conf", "."), 2, "", "--conf");
    expect(shell("head -c 2000000 /dev/zero | $lapse dev --conf /dev/stdin"), 2, "",
           "File too large");
    leave_folder(dir);
}

/* The configuration is the user's: what is wrong with it is put right there, and nowhere else. */
Test(dev, gives_advice_that_it_takes_itself)
{
    static const struct {
        const char *conf;
        int status;
        const char *advice;
    } table[] = {
        {"maxmemory-policy allkeys-lru\n", 78, "maxmemory-policy noeviction"},
        {"requirepass secret\n", 77, "requirepass"},
        {"replicaof 127.0.0.1 1\n", 69, "replicaof"},
    };
    static const char *const refused[] = {"--force", "LAPSE_PASSWORD", "--password-file",
                                          "LAPSE_URL", "-u "};
    char dir[128];

    enter_folder(dir);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        write_conf("redis.conf", table[i].conf, 0644);
        struct proc *p = lapse("dev", "q");
        for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
            cr_expect(!strstr(p->err, refused[k]), "%s: %s", refused[k], p->err);
        }
        cr_expect(strstr(p->err, "--conf"), "%s", p->err);
        expect(p, table[i].status, NULL, table[i].advice);
    }

    leave_folder(dir);
}

/* delayq's story: four moments under one id, and one cancel that undoes those that are to come. */
Test(examples, trial_ends_reminds_three_times_and_deletes_unless_paid)
{
    struct server *s = tool_redis();
    struct proc *p = proc_run(NULL, "examples/trial_ends", NULL);

    cr_assert_eq(p->err_len, 0, "%s", p->err);
    cr_assert(has(p, "bob: day 23: a mail") && has(p, "bob: day 28: a mail") &&
                  has(p, "bob: day 29: a mail") && has(p, "bob: day 30: deleted\n"),
              "%s", p->out);
    cr_assert(has(p, "ann: day 28: a mail") && has(p, "ann: has paid\n") &&
                  has(p, "ann: nothing is to come any more\n"),
              "%s", p->out);
    cr_assert(!has(p, "ann: day 29") && !has(p, "ann: day 30"), "%s", p->out);
    expect(p, 0, NULL, NULL);
    no_jobs(s, "trials");
    server_stop(s);
}

/* What has failed is with those that come later, and nothing is indexed twice. */
Test(examples, bulk_index_tries_pages_that_failed_again)
{
    struct server *s = tool_redis();
    struct proc *p = proc_run(NULL, "examples/bulk_index", NULL);

    cr_assert_eq(p->err_len, 0, "%s", p->err);
    cr_assert(has(p, "shop-1: 5 pages\n  page 1\n  page 2\n  page 3 failed: it is gathered again\n"
                     "  page 4\n"),
              "%s", p->out);
    for (int i = 1; i <= 7; i++) {
        char line[16];
        snprintf(line, sizeof line, "  page %d\n", i);
        cr_assert_eq(count_of(p->out, line), 1, "%s", p->out);
    }
    expect(p, 0, NULL, NULL);
    no_jobs(s, "index");
    server_stop(s);
}

Test(examples, end_well)
{
    static const struct {
        const char *name, *says;
    } table[] = {
        {"examples/first", "session 42 was idle for a second"},
        {"examples/order_timeout", "order-2 was not paid in time"},
        {"examples/session_idle", "session-42 was idle for 1000 ms"},
        {"examples/webhook_retry", "hook-7: try 3 of 5: 200"},
        {"examples/blocking", "1000 orders timed out meanwhile"},
        {"examples/trial_ends", "bob: day 30: deleted"},
        {"examples/bulk_index", "shop-1: 5 pages"},
    };
    struct server *s = tool_redis();

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct proc *p = proc_run(NULL, table[i].name, NULL); /* LAPSE_URL is set */
        cr_assert_eq(p->err_len, 0, "%s", p->err);
        expect(p, 0, table[i].says, NULL);
    }

    cr_assert_eq(audit(s, "lapse", "orders", "sessions", "webhooks", "order", "report", "trials",
                       "index", NULL),
                 0);
    server_stop(s);
}

/* Its stdout has room for one line and no more: in the second it stands still. */
static struct proc *start_into_nearly_full_pipe(const char *url, size_t line_len)
{
    char line[4400];
    struct proc *p;

    snprintf(line, sizeof line,
             "read -r n; printf \"%%${n}s\"; exec '%s/examples/order_timeout' '%s'", test_build(),
             url);
    p = proc_start((const char *const[]){"/bin/sh", "-c", line, NULL});
    int size = fcntl(p->out_fd, F_SETPIPE_SZ, 4096);
    cr_assert(size > 0, "%m");
    snprintf(line, sizeof line, "%zu\n", (size_t)size - line_len);
    proc_write(p, line, strlen(line));
    return p;
}

static void until_line_in_pipe(struct proc *p, size_t line_len)
{
    int64_t end_ms = test_now_ms() + PROC_WAIT_MS;
    int empty = fcntl(p->out_fd, F_GETPIPE_SZ) - (int)line_len;

    for (int len = 0; len <= empty; poll(NULL, 0, 1)) {
        cr_assert(!ioctl(p->out_fd, FIONREAD, &len));
        cr_assert_lt(test_now_ms(), end_ms, "%d bytes of %d", len, empty);
    }
}

/* Neither cancels a paid order nor gives its money back. */
Test(examples, order_that_was_paid_stays_paid_although_the_cancel_has_no_answer)
{
    static const char first[] = "order-1 is placed\n";
    struct server *s = tool_redis();
    struct proxy *wire = proxy_start(s);
    struct proc *p = start_into_nearly_full_pipe(wire->url, sizeof first - 1);

    /* no answer from here on: of the cancel, and where half a second has passed already, perhaps of
     * the second order, which is placed again then */
    until_line_in_pipe(p, sizeof first - 1);
    proxy_swallow(wire, true);
    until_out(p, "order-1 is paid\n");
    until_err(p, "no answer from Redis");
    proxy_heal(wire);

    /* the cancel is asked again, beside the claim of what is overdue: either comes first */
    proc_wait(p, PROC_WAIT_MS);
    cr_expect(has(p, "order-1 was paid: nothing to do\n") ||
                  has(p, "the job of order-1 is cancelled\n"),
              "%s", p->out);
    cr_expect(!has(p, "too late") && !has(p, "order-1 was not paid"), "%s", p->out);
    expect(p, 0, "order-2 was not paid in time", NULL);
    cr_assert_eq(redis_int(s, "EXISTS lapse:{orders}:due lapse:{orders}:run lapse:{orders}:dead"),
                 0);
    proxy_stop(wire);
    server_stop(s);
}

Test(demo, tells_its_story_and_exits_0, .timeout = 60)
{
    char line[4200];

    snprintf(line, sizeof line, "cd '%s' && BUILD='%s' tools/build/demo.sh", test_root(),
             test_build());

    struct proc *p = shell(line);
    proc_wait(p, PROC_WAIT_MS);
    cr_assert_eq(count_of(p->out, "not paid: cancelled"), 5, "%s", p->out);
    cr_assert(has(p, "order-6  is paid") && has(p, "order-7  gets more time") &&
                  has(p, "the handler fails") && has(p, "the second try") &&
                  has(p, "no event came") && has(p, "order-9  loses its trigger"),
              "%s", p->out);
    cr_assert(has(p, "none missing, none twice, none early") && has(p, "scheduled"), "%s", p->out);
    cr_assert(!has(p, "FAULT") && !has(p, "\033"), "%s", p->out);
    expect(p, 0, NULL, NULL); /* after 12 s it gives up */
}
