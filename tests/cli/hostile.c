/* SPDX-License-Identifier: MIT */
/* lapse listen --exec, when ids, bodies and what surrounds it mean harm. */
#include "tool.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

/* In a fresh folder, where whatever a shell makes of an id would be seen. */
static void enter_folder(char out[128])
{
    char build[4096];
    cr_assert(realpath(test_build(), build));
    setenv("LAPSE_TEST_BUILD", build, 1);
    test_dir(out, 128);
    cr_assert_eq(chdir(out), 0);
}

static void leave_folder(const char *dir)
{
    int n = 0;
    DIR *d = opendir(".");

    cr_assert(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (*e->d_name != '.') {
            n++;
        }
    }

    closedir(d);
    cr_assert_eq(n, 0, "%d files were made", n);
    cr_assert_eq(chdir("/"), 0);
    test_dir_remove(dir);
}

static void put(const char *id, const char *body, size_t len)
{
    struct proc *p = proc_start(
        (const char *const[]){"lapse", "schedule", "--in", "0s", "--id", id, "--", "q", "-", NULL});
    proc_write(p, body, len);
    proc_close_in(p);
    expect(p, 0, NULL, NULL);
}

static const char *const ids[] = {
    ";touch${IFS}x",
    "$(>x)",
    "`>x`",
    "|>x",
    "&>x",
    ">x",
    "-rf",
    "--",
    "--exec",
    "-",
    "../../x",
    "/etc/passwd",
    "*",
    "~",
    "%n%n%s%99d",
    "\\n\\x00\\",
    "'\"'\"'",
    "#",
    "!x",
    "a=b",
    "LD_PRELOAD=x",
    "$IFS$9",
    "<(x)",
    "x;>x;#",
};

Test(hostile, ids_and_bodies_reach_the_command_byte_for_byte_and_do_nothing_else)
{
    struct server *s = tool_redis();
    char dir[128];
    char all[256 + 8];

    enter_folder(dir);
    for (int i = 0; i < 256; i++) {
        all[i] = (char)i; /* with NUL, line breaks, and no UTF-8 */
    }

    memcpy(all + 256, "\xed\xa0\x80\xc0\xaf\xff\xfe", 8);

    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        if (strpbrk(ids[i], "{}")) {
            expect(lapse("schedule", "--in", "0s", "--id", ids[i], "--", "q"), 2, "",
                   "must be 1 to 255");
            continue;
        }
        put(ids[i], all, sizeof all);
        struct proc *p = lapse("listen", "q", "--count", "1", "--exec", "--", "sh", "-c",
                               "printf '%s\\n' \"$LAPSE_ID\"; exec cat");
        size_t len = strlen(ids[i]);
        cr_assert_eq(p->out_len, len + 1 + sizeof all, "%s: %zu bytes", ids[i], p->out_len);
        cr_assert(memcmp(p->out, ids[i], len) == 0 && p->out[len] == '\n' &&
                      memcmp(p->out + len + 1, all, sizeof all) == 0,
                  "%s", ids[i]);
        expect(p, 0, NULL, NULL);
    }

    no_jobs(s, "q");
    leave_folder(dir);
    server_stop(s);
}

Test(hostile, an_id_with_other_bytes_is_refused_and_one_planted_runs_nothing)
{
    static const char *const bad[] = {"a\nb", "a b", "\x1b[2J", "a\x7f", "\xc3\xa9", "{a}", ""};
    struct server *s = tool_redis();

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect(lapse("schedule", "--in", "0s", "--id", bad[i], "--", "q", "x"), 2, "",
               "must be 1 to 255");
        redis_do(s, "ZADD lapse:{q}:due 1000 %s", bad[i]);
        redis_do(s, "HSET lapse:{q}:jobs %s %b", bad[i], "\1\0planted", (size_t)9);
    }

    redis_do(s, "ZADD lapse:{q}:due 1000 %b", "good\0x", (size_t)6);
    redis_do(s, "HSET lapse:{q}:jobs %b %b", "good\0x", (size_t)6, "\1\0planted", (size_t)9);
    put("good", "x", 1);

    struct proc *p =
        lapse_start("listen", "q", "-v", "--exec", "--", "sh", "-c", "echo ran \"$LAPSE_ID\"");
    until_out(p, "ran good\n");
    proc_signal(p, SIGTERM);
    proc_wait(p, PROC_WAIT_MS);
    cr_expect_str_eq(p->out, "ran good\n");
    for (const char *c = p->err; *c; c++) {
        cr_assert(*c == '\n' || (*c >= ' ' && *c <= '~'), "byte %02x on stderr: %s",
                  (unsigned char)*c, p->err);
    }

    cr_expect(!strstr(p->err, "planted"), "a body is in the log: %s", p->err);
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

Test(hostile, environment_is_not_for_the_command)
{
    static const char *const names[] = {
        "HOME=",
        "LANG=",
        "LANGUAGE=",
        "LOGNAME=",
        "SHELL=",
        "TERM=",
        "TMPDIR=",
        "TZ=",
        "USER=",
        "XDG_RUNTIME_DIR=",
        "LC_",
        "LAPSE_QUEUE=q\n",
        "LAPSE_ID=i\n",
        "LAPSE_TRY=1\n",
        "LAPSE_TOKEN=",
        "LAPSE_DUE_MS=",
        "LAPSE_LATE_MS=",
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"};
    struct server *s = tool_redis();

    setenv("LD_LIBRARY_PATH", "/tmp/evil", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "s3cret", 1);
    setenv("LAPSE_PASSWORD", "s3cret", 1);
    setenv("LAPSE_ID", "forged", 1);
    setenv("TZ", "Europe/Prague", 1);
    setenv("LC_ALL", "C", 1);
    unsetenv("LAPSE_PASSWORD");
    put("i", "x", 1);

    struct proc *p = lapse("listen", "q", "--count", "1", "--exec", "--", "env");
    int n = 0;
    for (char *line = p->out, *end; (end = strchr(line, '\n')); line = end + 1) {
        size_t k = 0;
        while (k < sizeof names / sizeof *names && strncmp(line, names[k], strlen(names[k])) != 0) {
            k++;
        }
        cr_expect(k < sizeof names / sizeof *names, "it gets %.*s", (int)(end - line), line);
        n += k >= sizeof names / sizeof *names - 7;
    }

    cr_expect_eq(n, 7, "%s", p->out);
    cr_expect(has(p, "TZ=Europe/Prague\n") && has(p, "LC_ALL=C\n"), "%s", p->out);
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

Test(hostile, environment_that_is_named_is_for_the_command)
{
    struct server *s = tool_redis();

    setenv("TOKEN_OF_MINE", "abc", 1);
    setenv("PATH_OF_MINE", "no", 1);
    put("i", "x", 1);

    struct proc *p = lapse("listen", "q", "--count", "1", "--env", "TOKEN_OF_MINE", "--env",
                           "A=", "--env", "PATH", "--env", "HOME=/h", "--env", "B=1", "--env",
                           "B=2", "--env", "UNSET", "--exec", "--", "env");
    char path[8192];
    snprintf(path, sizeof path, "PATH=%s\n", getenv("PATH"));
    cr_expect(has(p, "TOKEN_OF_MINE=abc\n") && has(p, "A=\n") && has(p, "HOME=/h\n") &&
                  has(p, "B=2\n"),
              "%s", p->out);
    cr_expect(has(p, path) && !has(p, "B=1") && !has(p, "UNSET") && !has(p, "PATH_OF_MINE"), "%s",
              p->out);
    cr_expect_eq(count_of(p->out, "HOME="), 1);
    cr_expect_eq(count_of(p->out, "PATH="), 1);
    expect(p, 0, NULL, NULL);

    static const char *const bad[] = {"", "=x", "A B", "LAPSE_ID=x", "LAPSE_URL", "A-B=1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect(lapse("listen", "q", "--env", bad[i], "--exec", "--", "env"), 2, "", "--env");
    }

    server_stop(s);
}

static void program(const char *path)
{
    FILE *f = fopen(path, "we");
    cr_assert(f && fputs("#!/bin/sh\necho it ran\n", f) >= 0 && !fchmod(fileno(f), 0755));
    fclose(f);
}

Test(hostile, programs_are_not_looked_for_in_the_current_folder)
{
    struct server *s = tool_redis();
    char dir[128];
    char path[256];

    enter_folder(dir);
    program("env-of-mine");
    setenv("PATH", ".::bin:/usr/bin:/bin", 1);
    cr_assert(!mkdir("bin", 0700));
    program("bin/env-of-mine");
    expect(lapse("listen", "q", "--exec", "--", "env-of-mine"), 2, "", "not found in PATH");
    put("i", "x", 1);
    expect(lapse("listen", "q", "--count", "1", "--exec", "--", "./env-of-mine"), 0, "it ran",
           NULL);
    put("i", "x", 1);
    snprintf(path, sizeof path, "%s/bin", dir);
    setenv("PATH", path, 1);
    expect(lapse("listen", "q", "--count", "1", "--exec", "--", "env-of-mine"), 0, "it ran", NULL);
    unlink("env-of-mine"), unlink("bin/env-of-mine"), rmdir("bin");
    leave_folder(dir);
    server_stop(s);
}

Test(hostile, root_is_warned_that_commands_run_as_root)
{
    struct server *s = tool_redis();

    put("i", "x", 1);
    struct proc *p = lapse("listen", "q", "--count", "1", "--exec", "--", "true");
    cr_expect_eq(count_of(p->err, "true runs as root"), geteuid() == 0, "%s", p->err);
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

/* What dev makes is its owner's alone, whatever the umask. */
Test(hostile, others_cannot_enter_the_folder_of_dev)
{
    char dir[128];
    char path[512];
    char conf[4200];
    struct stat st;

    test_dir(dir, sizeof dir);
    setenv("XDG_RUNTIME_DIR", dir, 1);
    snprintf(conf, sizeof conf, "%s/redis.conf", test_root());
    umask(0);

    struct proc *p = lapse_start("dev", "--conf", conf);
    until_out(p, "\n");

    char *at = strstr(p->out, "unix://");
    cr_assert(at, "%s", p->out);
    snprintf(path, sizeof path, "%s", at + 7);
    *strrchr(path, '/') = '\0';
    cr_assert(!stat(path, &st));
    cr_expect_eq(st.st_mode & 0777, 0700);
    strcat(path, "/redis.log");
    cr_assert(!lstat(path, &st), "%s", path);
    cr_expect(S_ISREG(st.st_mode) && (st.st_mode & 0777) == 0600, "%o", st.st_mode);
    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, NULL);
    test_dir_remove(dir);
}
