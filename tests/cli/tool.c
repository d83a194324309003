/* SPDX-License-Identifier: MIT */
#include "tool.h"
#include "audit.h"
#include "cluster.h"
#include <errno.h>
#include <poll.h>
#include <unistd.h>

struct server *tool_redis(void)
{
    struct server *s = server_start();
    setenv("LAPSE_URL", s->url, 1);
    return s;
}

void tool_cluster_url(const struct cluster *c, const char *login)
{
    char url[CLUSTER_URL];

    cluster_url(c, login, url);
    setenv("LAPSE_URL", url, 1);
}

struct cluster *tool_cluster(int n_masters, int n_replicas)
{
    struct cluster *c = cluster_start(n_masters, n_replicas);

    tool_cluster_url(c, server_login());
    return c;
}

struct proc *shell(const char *line)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/lapse", test_build());
    setenv("lapse", path, 1);
    return proc_run(NULL, "/bin/sh", "-c", line, NULL);
}

void expect(struct proc *p, int status, const char *out, const char *err)
{
    proc_wait(p, PROC_WAIT_MS);
    cr_assert_eq(p->status, status, "status %d, not %d\nstdout: %s\nstderr: %s", p->status, status,
                 p->out, p->err);
    cr_assert(!out || strstr(p->out, out), "stdout lacks '%s':\n%s\nstderr: %s", out, p->out,
              p->err);
    cr_assert(!err || strstr(p->err, err), "stderr lacks '%s':\n%s\nstdout: %s", err, p->err,
              p->out);
    proc_free(p);
}

void until_out(struct proc *p, const char *text)
{
    cr_assert(proc_until_out(p, text, PROC_WAIT_MS), "stdout lacks '%s':\n%s\nstderr: %s", text,
              p->out, p->err);
}

void until_err(struct proc *p, const char *text)
{
    cr_assert(proc_until_err(p, text, PROC_WAIT_MS), "stderr lacks '%s':\n%s\nstdout: %s", text,
              p->err, p->out);
}

static void pause_ms(int ms)
{
    poll(NULL, 0, ms);
}

void until_depth(struct server *s, const char *queue, const char *set, long long n)
{
    int64_t end = test_now_ms() + PROC_WAIT_MS;
    long long now = -1;

    while (test_now_ms() < end && (now = redis_int(s, "ZCARD lapse:{%s}:%s", queue, set)) != n) {
        pause_ms(5);
    }
    cr_assert_eq(now, n, "%s of %s has %lld members, not %lld", set, queue, now, n);
}

/* When the lease ends that is the first (0) or the last (-1) to end. */
static long long lease_end_ms(struct server *s, const char *queue, int which)
{
    char *score = redis_str(
        s, "EVAL %s 0 lapse:{%s}:run %d",
        "return redis.call('ZRANGE', ARGV[1], ARGV[2], ARGV[2], 'WITHSCORES')[2]", queue, which);

    cr_assert(score, "no job of %s runs", queue);
    long long end_ms = atoll(score);
    free(score);

    return end_ms;
}

void until_renewed(struct server *s, const char *queue, int times)
{
    for (int i = 0; i < times; i++) {
        int64_t deadline = test_now_ms() + PROC_WAIT_MS;
        long long last = lease_end_ms(s, queue, -1);
        while (lease_end_ms(s, queue, 0) <= last) {
            cr_assert(test_now_ms() < deadline, "a lease of %s is not renewed", queue);
            pause_ms(5);
        }
    }
}

void until_gone(const char *path)
{
    int64_t end = test_now_ms() + PROC_WAIT_MS;
    while (test_now_ms() < end && !access(path, F_OK)) {
        pause_ms(5);
    }
    cr_assert(access(path, F_OK), "%s is still there", path);
}

void until_empty(const char *folder)
{
    int64_t end = test_now_ms() + 10000;
    while (test_now_ms() < end && rmdir(folder)) {
        pause_ms(5);
    }
    cr_assert(access(folder, F_OK), "something is left in %s", folder);
}

/* gone, or a zombie that waits for a parent that is none of ours */
static bool is_running(pid_t pid)
{
    char path[40];
    char state = 'Z';
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    f = fopen(path, "re");
    if (!f) {
        return false;
    }

    if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1) {
        state = 'Z';
    }

    fclose(f);

    return state != 'Z';
}

void until_no_process(pid_t pid)
{
    int64_t end = test_now_ms() + PROC_WAIT_MS;
    while (test_now_ms() < end && is_running(pid)) {
        pause_ms(5);
    }
    cr_assert(!is_running(pid), "process %d still runs", (int)pid);
}

bool has(const struct proc *p, const char *text)
{
    return strstr(p->out, text) != NULL;
}

int count_of(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) {
        n++;
    }
    return n;
}

long long member(const char *json, const char *name)
{
    char key[40];
    const char *at;

    snprintf(key, sizeof key, "\"%s\":", name);
    at = strstr(json, key);
    cr_assert(at, "no member '%s' in %s", name, json);
    return strtoll(at + strlen(key), NULL, 10);
}

void no_jobs(struct server *s, const char *queue)
{
    cr_assert_eq(audit(s, "lapse", queue, NULL), 0);
    cr_assert_eq(redis_int(s, "HLEN lapse:{%s}:jobs", queue), 0);
}

struct busy_listener busy_listener_start(void)
{
    struct busy_listener busy = {.server = tool_redis()};
    char command[400];

    snprintf(busy.fifo, sizeof busy.fifo, "%s/fifo", busy.server->dir);
    snprintf(command, sizeof command, "mkfifo %s; echo begun; read x < %s; echo $x", busy.fifo,
             busy.fifo);
    expect(lapse("schedule", "q", "--id", "a", "--in", "0s", "x"), 0, NULL, NULL);
    busy.proc = lapse_start("listen", "q", "-o", "name=worker", "-j", "1", "--exec", "--", "sh",
                            "-c", command);
    until_out(busy.proc, "begun");
    expect(lapse("schedule", "q", "--id", "b", "--in", "0s", "x"), 0, NULL, NULL);

    return busy;
}

void busy_listener_ends(struct busy_listener *busy)
{
    FILE *f = fopen(busy->fifo, "w");

    cr_assert(f);
    fputs("ended\n", f);
    fclose(f);
    expect(busy->proc, 0, "begun\nended\n", NULL);
    cr_assert_eq(redis_int(busy->server, "ZCARD lapse:{q}:due"), 1);
    cr_assert_eq(redis_int(busy->server, "ZCARD lapse:{q}:run"), 0);
    server_stop(busy->server);
}

struct scripted_server *fake_redis(const char *reply)
{
    struct scripted_server *s = scripted_server_start(reply, strlen(reply));

    setenv("LAPSE_URL", s->url, 1);
    return s;
}
