/* SPDX-License-Identifier: MIT */
/* Passwords: from a file, the URL or LAPSE_PASSWORD, and nowhere to be seen. */
#include "tool.h"
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static const char PASSWORD[] = "s3cret /@:%?#";
static const char ENCODED[] = "s3cret%20%2F%40%3A%25%3F%23";

static struct server *locked_redis(void)
{
    static const char *const args[] = {"--requirepass", "s3cret /@:%?#", NULL};
    struct server *s = server_start_opts(args);
    setenv("LAPSE_URL", s->url, 1);
    unsetenv("LAPSE_PASSWORD");
    return s;
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) &&
              !fchmod(fd, mode));
    close(fd);
}

Test(password, that_is_wrong_or_missing_exits_77)
{
    struct server *s = locked_redis();

    /* with an hour's patience it would hang if it waited although it was refused */
    expect(lapse("get", "q", "i", "-o", "reply_ms=1h"), 77, "", "permission denied");
    setenv("LAPSE_PASSWORD", "wr0ng", 1);
    struct proc *p = lapse("schedule", "q", "--in", "1s", "-o", "reply_ms=1h");
    cr_assert(!strstr(p->err, "wr0ng"), "%s", p->err);
    expect(p, 77, "", "LAPSE_PASSWORD");
    expect(lapse("listen", "q", "-o", "reply_ms=1h"), 77, "", "permission denied");
    expect(lapse("listen", "q", "--no-wait", "-o", "reply_ms=1h"), 77, "", "permission denied");
    server_stop(s);
}

Test(password, comes_from_the_environment)
{
    struct server *s = locked_redis();
    setenv("LAPSE_PASSWORD", PASSWORD, 1);
    expect(lapse("depth", "q"), 0, "\"waiting\":0", NULL);
    server_stop(s);
}

static bool in_memory(const char *path)
{
    struct statfs fs;
    return !statfs(path, &fs) && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

Test(password, comes_from_a_file_that_only_its_owner_can_read)
{
    struct server *s = locked_redis();
    char path[4200];

    snprintf(path, sizeof path, "%s/password", s->dir);
    write_file(path, PASSWORD, 0600);
    expect(lapse("depth", "q", "--password-file", path), 0, "\"waiting\":0", NULL);
    write_file(path, "s3cret /@:%?#\n", 0400);

    struct proc *p = lapse("depth", "q", "--password-file", path);
    cr_assert_eq(p->err_len, 0, "%s", p->err);
    expect(p, 0, "\"waiting\":0", NULL);
    write_file(path, "s3cret /@:%?#\r\n", 0400);
    expect(lapse("depth", "q", "--password-file", path), 0, "\"waiting\":0", NULL);
    write_file(path, "\n", 0600);
    expect(lapse("depth", "q", "--password-file", path), 2, "", "not a password");
    expect(lapse("depth", "q", "--password-file", s->dir), 2, "", s->dir);
    server_stop(s);
}

Test(password, with_control_characters_is_blamed_itself_and_not_the_url)
{
    static const char *const odd[] = {"s3cr\n3t0p\n", "s3cr\r\n3t0p\r\n", "s3cr\t3t0p", "s3cr\x7f",
                                      "\x1bs3cr",     "s3cr\n\n",         "\r\n"};
    char dir[64];
    char path[100];

    test_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/password", dir);
    setenv("LAPSE_URL", "unix:///nonexistent/redis.sock", 1);

    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        write_file(path, odd[i], 0600);
        struct proc *p = lapse("depth", "q", "--password-file", path);
        cr_expect(!strstr(p->err, "s3cr") && !strstr(p->err, "3t0p") && !strstr(p->err, "url"),
                  "%s", p->err);
        expect(p, 2, "", "not a password: must be one line of 1 to 1024 bytes without control");
        setenv("LAPSE_PASSWORD", odd[i], 1);
        p = lapse("depth", "q");
        cr_expect(!strstr(p->err, "s3cr") && !strstr(p->err, "3t0p") && !strstr(p->err, "url"),
                  "%s", p->err);
        expect(p, 2, "",
               "LAPSE_PASSWORD '...': not a password: must be one line of 1 to 1024 bytes without "
               "control");
        unsetenv("LAPSE_PASSWORD");
    }

    test_dir_remove(dir);
}

/* The longest, with each end of a line; and one byte more. */
Test(password, of_1024_bytes_is_taken_with_its_end_of_line_and_no_longer_one)
{
    static const char *const ends[] = {"", "\n", "\r\n"};
    char dir[64];
    char path[100];
    char text[1100];

    test_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/password", dir);
    setenv("LAPSE_URL", "unix:///nonexistent/redis.sock", 1);

    for (size_t i = 0; i < 3; i++) {
        memset(text, 'x', 1025);
        strcpy(text + 1024, ends[i]);
        write_file(path, text, 0600);
        expect(lapse("depth", "q", "--password-file", path), 69, "", NULL);
        text[1024] = 'x';
        strcpy(text + 1025, ends[i]);
        write_file(path, text, 0600);
        expect(lapse("depth", "q", "--password-file", path), 2, "", "not a password");
        strcpy(text + 1024, "\r\nmore");
        write_file(path, text, 0600);
        expect(lapse("depth", "q", "--password-file", path), 2, "", "not a password");
    }

    test_dir_remove(dir);
}

Test(password, of_a_file_on_disk_that_others_can_read_is_refused)
{
    static const mode_t modes[] = {0644, 0640, 0444, 0440, 0604};
    struct server *s = locked_redis();
    char path[4200];

    snprintf(path, sizeof path, "%s/password.%d", test_build(), (int)getpid());
    if (in_memory(test_build())) {
        cr_skip_test("all is in memory here");
    }

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        write_file(path, PASSWORD, modes[i]);
        expect(lapse("depth", "q", "--password-file", path), 2, "", "chmod 600");
        unlink(path);
    }

    server_stop(s);
}

/* As Docker (0444), Kubernetes (0644) and systemd (0440) make them. */
Test(password, of_a_container_or_a_service_is_taken_with_a_warning)
{
    static const mode_t modes[] = {0440, 0444, 0644};
    static const mode_t bad[] = {0666, 0464};
    static const char shm[] = "/dev/shm";
    struct server *s = locked_redis();
    char path[64];

    snprintf(path, sizeof path, "%s/lapse-password.%d", shm, (int)getpid());
    if (!in_memory(shm)) {
        cr_skip_test("no /dev/shm");
    }

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        write_file(path, PASSWORD, modes[i]);
        expect(lapse("depth", "q", "--password-file", path), 0, "\"waiting\":0",
               "can be read by other users");
        unlink(path);
    }

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file(path, PASSWORD, bad[i]);
        expect(lapse("depth", "q", "--password-file", path), 2, "", "chmod 600");
        unlink(path);
    }

    if (!geteuid()) {
        write_file(path, PASSWORD, 0444);
        cr_assert(!chown(path, 65534, 65534));
        expect(lapse("depth", "q", "--password-file", path), 2, "", "chmod 600");
        unlink(path);
    }

    server_stop(s);
}

Test(password, comes_from_stdin)
{
    struct server *s = locked_redis();

    setenv("pw", PASSWORD, 1);
    expect(shell("printf '%s\\n' \"$pw\" | $lapse depth q --password-file -"), 0, "\"waiting\":0",
           NULL);
    expect(shell("printf '%s' \"$pw\" | $lapse depth q --password-file -"), 0, "\"waiting\":0",
           NULL);
    expect(shell("$lapse depth q --password-file - < /dev/null"), 2, "", "not a password");
    expect(shell("printf '%s' \"$pw\" | $lapse schedule q --in 1h - --password-file -"), 2, "",
           "is read from stdin already");
    server_stop(s);
}

Test(password, in_the_url_wins_over_the_environment_and_a_file_over_both)
{
    struct server *s = locked_redis();
    char url[300];
    char path[128];

    snprintf(url, sizeof url, "unix://:%s@%s", ENCODED, s->socket);
    setenv("LAPSE_PASSWORD", "wrong", 1);
    expect(lapse("depth", "q", "-u", url), 0, "\"waiting\":0", NULL);
    snprintf(path, sizeof path, "%s/password", s->dir);
    write_file(path, PASSWORD, 0600);
    snprintf(url, sizeof url, "unix://default:wrong@%s", s->socket);
    expect(lapse("depth", "q", "-u", url, "--password-file", path), 0, "\"waiting\":0", NULL);
    server_stop(s);
}

static char *proc_file(struct proc *p, const char *name, size_t *len)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)p->pid, name);
    return test_read_file(path, len);
}

Test(password, is_not_to_be_seen_in_argv_environment_or_log)
{
    struct server *s = locked_redis();
    char url[300];
    size_t len;

    snprintf(url, sizeof url, "unix://:%s@%s", ENCODED, s->socket);

    struct proc *p = lapse_start("listen", "q", "-v", "-u", url);
    until_err(p, "listening on unix:///");

    char *cmdline = proc_file(p, "cmdline", &len);
    cr_assert(memmem(cmdline, len, "listen", 6) && !memmem(cmdline, len, "s3cret", 6));
    free(cmdline);
    proc_signal(p, SIGTERM);
    proc_wait(p, PROC_WAIT_MS);
    cr_assert(!strstr(p->err, "s3cret"), "%s", p->err);
    expect(p, 0, NULL, NULL);

    setenv("LAPSE_PASSWORD", PASSWORD, 1);
    p = lapse_start("listen", "q", "-v");
    until_err(p, "listening on");

    char *environment = proc_file(p, "environ", &len);
    cr_assert(memmem(environment, len, "LAPSE_PASSWORD", 14) &&
              !memmem(environment, len, "s3cret", 6));
    free(environment);
    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

/* ---- slips ---- */
static struct proc *start_line(const char *line,
                               const char *url) /* words are divided by |; % is the URL */
{
    static char words[2048];
    const char *argv[32] = {"lapse"};
    size_t n = 1;
    size_t len = 0;

    for (; *line && len < sizeof words - 400; line++) {
        len += (size_t)(*line == '%' && url ? sprintf(words + len, "%s", url)
                                            : sprintf(words + len, "%c", *line));
    }

    for (char *at = words, *word; (word = strsep(&at, "|")) && n < 31;) {
        argv[n++] = word;
    }

    argv[n] = NULL;

    struct proc *p = proc_start(argv);
    proc_close_in(p);

    return p;
}

/* Pieces of the passwords of the tables. */
static void is_silent(const char *line, const char *text)
{
    cr_expect(!strstr(text, "s3cr") && !strstr(text, "3t0p"), "%s: %s", line, text);
}

/* Each is refused: the password is s3cr, 3t0p or both with something between. */
static const char *const slips[] = {
    "get|q|i|-u|unix://:s3cr/3t0p@/path",
    "get|q|i|-u|unix://:s3cr@3t0p@path",
    "get|q|i|-u|unix:/:s3cr@/path",
    "get|q|i|-u|redis://:s3cr/3t0p@host",
    "get|q|i|-u|redis://:s3cr?3t0p@host",
    "get|q|i|-u|redis://ann:s3cr/3t0p@host:6379/0",
    "get|q|i|-u|redis://ann:s3cr@3t0p@host",
    "get|q|i|-u|redis://ann:s3cr#3t0p@host:99999",
    "get|q|i|-u|redis://:s3cr%3t0p@host",
    "get|q|i|-u|redis://:s3cr",
    "get|q|i|-u|redis://ann:s3cr",
    "get|q|i|-u|redis://s3cr@host",
    "get|q|i|-u|redis://s3cr:@host",
    "get|q|i|-u|redis://s3cr%40host",
    "get|q|i|-u|redis://:s3cr%40host",
    "get|q|i|-u|rediss://:s3cr@host:0",
    "get|q|i|-u|rediss://:s3cr/3t0p@host",
    "get|q|i|-u|http://ann:s3cr@host",
    "get|q|i|-u|redis:/:s3cr@host",
    "get|q|i|-u|redis:///:s3cr@host",
    "get|q|i|-u|redis:/:s3cr",
    "get|q|i|-u|redis//:s3cr",
    "get|q|i|-u|:s3cr@host",
    "get|q|i|-u|:s3cr",
    "get|q|i|-u|ann:s3cr@host",
    "get|q|i|-u|ann:s3cr",
    "get|q|i|-u|redis://host:6379?password=s3cr",
    "get|q|i|-u|redis://host?password=s3cr",
    "get|q|i|-u|redis://a@host?password=s3cr",
    "get|q|i|-u|redis://:s3cr@host,redis://:3t0p",
    "get|q|i|-u|redis://:s3cr@host,redis://:3t0p@other",
    "get|q|i|-u|s3cr@redis://host",
    "get|q|i|-u| redis://:s3cr@host",
    "get|q|i|-u|redis://:s3cr |3t0p@host",
    "get|q|i|-u|redis:// |:s3cr@host",
    "get|q|i|-u|redis://|:s3cr",
    "get|q|i|-uunix://:s3cr/3t0p@/path",
    "get|q|i|--url=unix://:s3cr/3t0p@/path",
    "get|q|i|-o|url=unix://:s3cr/3t0p@/path",
    "get|q|i|-o|url=redis://:s3cr@host|-u|redis://:3t0p@host:0",
    "get|q|i|-u|redis://:s3cr@host:0|-u|redis://:3t0p@host:0",
    "get|q|i|--ur=redis://:s3cr@host",
    "get|q|i|--ur=redis://:s3=cr3t0p@host",
    "get|q|i|--urlredis://:s3cr@host",
    "get|q|i|--urlredis://:s3cr=3t0p",
    "get|q|i|--redis://:s3cr@host",
    "get|q|i|-redis://:s3cr@host",
    "get|q|i|-vuredis://:s3cr@host",
    "get|q|i|--password=s3cr",
    "get|q|i|--passwd|s3cr",
    "get|q|i|--verbose=redis://:s3cr@host",
    "get|q|i|--format|redis://:s3cr@host",
    "get|q|i|--password-file|redis://:s3cr@host",
    "get|q|i|-o|redis://:s3cr@host",
    "get|q|i|-o|redis://:s3cr=3t0p@host",
    "get|q|i|-o|uri=redis://:s3cr@host",
    "get|q|i|-o|lease_ms=redis://:s3cr@host",
    "get|q|i|-o|space=redis://:s3cr@host",
    "get|q|i|-o|password=s3cr",
    "get|q|i|redis://:s3cr@host",
    "get|redis://:s3cr@host|q|i",
    "get|redis://:s3cr@host|i",
    "depth|redis://:s3cr@host",
    "depth|q|unix://:s3cr@/path",
    "depth|q|redis:s3cr",
    "listen|redis://:s3cr@host",
    "listen|q|--exec|--|redis://:s3cr@host",
    "listen|q|--env|MY-PASSWORD=s3cr|--exec|--|true",
    "listen|q|--count|redis://:s3cr@host",
    "schedule|q|--in|redis://:s3cr@host",
    "schedule|q|--at|redis://:s3cr@host",
    "schedule|q|--in|1s|--tries|redis://:s3cr@host",
    "schedule|q|--in|1s|--on-conflict|redis://:s3cr@host",
    "schedule|q|--in|1s|body|redis://:s3cr@host",
    "schedule|q|--in|1s|--id|redis://:s3cr@host {",
    "list|q|--state|redis://:s3cr@host",
    "bench|redis://:s3cr@host",
    "bench|--rate|redis://:s3cr@host",
    "doctor|redis://:s3cr@host",
    "doctor|-u|redis://:s3cr/3t0p@host",
    "bench|-u|redis://:s3cr/3t0p@host",
    "redis://:s3cr@host|get|q|i",
    "-u|redis://:s3cr@host|redis://:3t0p@host",
    "help|redis://:s3cr@host",
    "dev|-u|redis://:s3cr@host",
    "dev|redis://:s3cr@host",
    "dev|--conf|redis://:s3cr@host",
};

Test(password, is_in_no_message_however_its_url_is_mistyped)
{
    setenv("LAPSE_URL", "unix:///nonexistent/redis.sock", 1);
    for (size_t i = 0; i < sizeof slips / sizeof *slips; i++) {
        struct proc *p = start_line(slips[i], NULL);
        proc_wait(p, PROC_WAIT_MS);
        cr_expect_eq(p->status, 2, "%s: status %d: %s", slips[i], p->status, p->err);
        cr_expect(*p->err, "%s: it says nothing", slips[i]);
        is_silent(slips[i], p->err);
        is_silent(slips[i], p->out);
        proc_free(p);
    }
}

Test(password, of_a_mistyped_url_in_the_environment_is_in_no_message)
{
    static const char *const urls[] = {"unix://:s3cr/3t0p@/path", "redis://s3cr@host",
                                       "redis://:s3cr", ":s3cr@host", "redis://ann:s3cr?3t0p@host"};

    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        setenv("LAPSE_URL", urls[i], 1);
        struct proc *p = lapse("get", "q", "i");
        is_silent(urls[i], p->err);
        expect(p, 2, "", "lapse get: url '");
    }
}

Test(password, of_a_url_that_was_given_as_an_id_is_in_no_message)
{
    struct server *s = tool_redis();
    struct proc *p = lapse("cancel", "q", "redis://:s3cr@host");

    is_silent("cancel", p->err);
    expect(p, 1, "", "q/redis://***@host: no such job");
    expect(lapse("cancel", "q", "ann@example.org:1"), 1, "", "q/ann@example.org:1: no such job");
    server_stop(s);
}

/* % is the server's URL with its password in it. */
static const char *const starts[] = {
    "listen|q|-v|-u|%",
    "listen|q|-v|-u%",
    "listen|q|-v|--url=%",
    "listen|q|-v|-o|url=%",
    "-u|%|listen|q|-v",
    "-u|redis://:s3cr@host|-v|listen|q|-u|%",
    "listen|q|-v|-u|redis://:s3cr@host|-u|%",
    "listen|q|-v|-u|unix://:s3cr/3t0p@/path|-o|url=%",
    "listen|q|-v|-o|url=redis://:s3cr@host|-u|%",
    "listen|q|-v|-o|url=redis://:s3cr@host|-o|url=redis://s3cr@host|--url=%",
    "listen|q|-v|-u|:s3cr@host|-u%",
    "listen|q|-v|-u|ann:s3cr|-u|redis:s3cr|-u|%",
};

Test(password, of_every_url_is_erased_from_argv_and_environment_of_a_listener)
{
    static const char *const args[] = {"--requirepass", "s3cr3t0p", NULL};
    struct server *s = server_start_opts(args);
    char url[300];
    size_t len;

    snprintf(url, sizeof url, "unix://:s3cr3t0p@%s", s->socket);
    setenv("LAPSE_URL", "unix://:s3cr/3t0p@/path", 1);
    setenv("LAPSE_PASSWORD", "s3cr", 1);

    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        struct proc *p = start_line(starts[i], url);
        until_err(p, "listening on unix:///");
        char *environment = proc_file(p, "environ", &len);
        cr_expect(memmem(environment, len, "LAPSE_PASSWORD=", 15) &&
                  !memmem(environment, len, "s3cr", 4) && !memmem(environment, len, "3t0p", 4));
        free(environment);
        char *cmdline = proc_file(p, "cmdline", &len);
        cr_expect(memmem(cmdline, len, "listen", 6) &&
                      memmem(cmdline, len, s->socket, strlen(s->socket)),
                  "%s", starts[i]);
        cr_expect(!memmem(cmdline, len, "s3cr", 4) && !memmem(cmdline, len, "3t0p", 4), "%s",
                  starts[i]);
        free(cmdline);
        proc_signal(p, SIGTERM);
        proc_wait(p, PROC_WAIT_MS);
        is_silent(starts[i], p->err);
        expect(p, 0, NULL, NULL);
    }

    server_stop(s);
}

Test(password, of_another_redis_is_erased_from_the_environment_of_dev)
{
    char dir[128];
    char conf[4200];
    size_t len;

    test_dir(dir, sizeof dir);
    setenv("XDG_RUNTIME_DIR", dir, 1);
    setenv("LAPSE_URL", "redis://:s3cr@host", 1);
    setenv("LAPSE_PASSWORD", "3t0p", 1);
    snprintf(conf, sizeof conf, "%s/redis.conf", test_root());

    struct proc *p = lapse_start("dev", "--conf", conf);
    until_out(p, "\n");

    char *environment = proc_file(p, "environ", &len);
    cr_expect(memmem(environment, len, "LAPSE_PASSWORD=", 15) &&
              !memmem(environment, len, "s3cr", 4) && !memmem(environment, len, "3t0p", 4));
    free(environment);
    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, NULL);
    test_dir_remove(dir);
}

Test(password, that_another_place_won_over_is_not_to_be_seen_either)
{
    struct server *s = locked_redis();
    char url[300];
    char path[128];
    size_t len;

    snprintf(path, sizeof path, "%s/password", s->dir);
    write_file(path, PASSWORD, 0600);
    snprintf(url, sizeof url, "unix://:un0sed@%s", s->socket);
    setenv("LAPSE_URL", "redis://:un1sed@127.0.0.1", 1);
    setenv("LAPSE_PASSWORD", "un2sed", 1);

    struct proc *p = lapse_start("listen", "q", "-v", "-u", url, "--password-file", path);
    until_err(p, "listening on");

    char *environment = proc_file(p, "environ", &len);
    cr_assert(memmem(environment, len, "LAPSE_PASSWORD", 14));
    cr_expect(!memmem(environment, len, "un1sed", 6) && !memmem(environment, len, "un2sed", 6));
    free(environment);

    char *cmdline = proc_file(p, "cmdline", &len);
    cr_expect(memmem(cmdline, len, "listen", 6) && !memmem(cmdline, len, "un0sed", 6));
    free(cmdline);
    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

/* How often its memory has the text: in what a core has, and in what is kept from one. */
struct hits {
    int core, kept;
};

static int hits_between(int mem, unsigned long from, unsigned long to, const char *text)
{
    static char bytes[1 << 20];
    size_t len = strlen(text);
    size_t had = 0;
    int n = 0;

    while (from < to) {
        size_t want = to - from < sizeof bytes - had ? to - from : sizeof bytes - had;
        ssize_t got = pread(mem, bytes + had, want, (off_t)from);
        if (got <= 0) {
            break; /* the kernel's own pages */
        }
        from += (size_t)got;
        had += (size_t)got;
        for (char *at = bytes; (at = memmem(at, had - (size_t)(at - bytes), text, len)); at++) {
            n++;
        }
        size_t tail = had < len - 1 ? had : len - 1;
        memmove(bytes, bytes + had - tail, tail);
        had = tail;
    }

    return n;
}

static struct hits memory_has(struct proc *p, const char *text)
{
    struct hits hits = {0, 0};
    char path[40];
    char line[512];
    unsigned long from = 0;
    unsigned long to = 0;
    unsigned long a;
    unsigned long b;

    snprintf(path, sizeof path, "/proc/%d/mem", (int)p->pid);

    int mem = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%d/smaps", (int)p->pid);

    FILE *maps = fopen(path, "re");
    cr_assert(mem >= 0 && maps);

    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx ", &a, &b) == 2) {
            from = a;
            to = b;
        } else if (strncmp(line, "VmFlags:", 8) == 0) {
            *(strstr(line, " dd") ? &hits.kept : &hits.core) += hits_between(mem, from, to, text);
        }
    }

    fclose(maps);
    close(mem);

    return hits;
}

/* The library keeps it, to log in again. */
static void is_kept_once_and_out_of_cores(struct proc *p, struct server *s)
{
    static const char *const ids[] = {"\"id\":\"a\"", "\"id\":\"b\"", "\"id\":\"c\""};

    until_err(p, "listening on");
    setenv("LAPSE_PASSWORD", PASSWORD, 1);

    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        char id[] = {(char)('a' + i), '\0'};
        expect(lapse("schedule", "q", "-u", s->url, "--in", "0s", "--id", id), 0, NULL, NULL);
        until_out(p, ids[i]);
        struct hits plain = memory_has(p, PASSWORD);
        struct hits encoded = memory_has(p, ENCODED);
        cr_expect_eq(plain.core, 0, "connection %zu: %d times", i, plain.core);
        cr_expect_eq(plain.kept, 1, "connection %zu: %d times", i, plain.kept);
        cr_expect_eq(encoded.core + encoded.kept, 0, "encoded: %d times", encoded.core);
        redis_do(s, "CLIENT KILL TYPE normal SKIPME yes"); /* so that it logs in once more */
        redis_do(s, "CLIENT KILL TYPE pubsub");
    }

    unsetenv("LAPSE_PASSWORD");
    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, NULL);
}

Test(password, is_in_no_core)
{
#ifdef __SANITIZE_ADDRESS__
    cr_skip("all that AddressSanitizer maps would be read");
#endif
    struct server *s = locked_redis();
    char url[300];
    char path[128];
    snprintf(path, sizeof path, "%s/password", s->dir);
    write_file(path, PASSWORD, 0600);
    redis_do(s, "AUTH %s", PASSWORD);
    is_kept_once_and_out_of_cores(lapse_start("listen", "q", "-v", "--password-file", path), s);
    snprintf(url, sizeof url, "unix://:%s@%s", ENCODED, s->socket);
    is_kept_once_and_out_of_cores(lapse_start("listen", "q", "-v", "-u", url), s);
    setenv("LAPSE_PASSWORD", PASSWORD, 1);
    is_kept_once_and_out_of_cores(lapse_start("listen", "q", "-v"), s);
    server_stop(s);
}

Test(password, and_url_are_not_given_to_the_command)
{
    struct server *s = locked_redis();

    setenv("LAPSE_PASSWORD", PASSWORD, 1);
    expect(lapse("schedule", "q", "--in", "0s", "--id", "i"), 0, NULL, NULL);
    struct proc *p = lapse("listen", "q", "--count", "1", "--exec", "--", "env");
    cr_assert(!has(p, "LAPSE_PASSWORD") && !has(p, "LAPSE_URL") && !has(p, "s3cret"), "%s", p->out);
    expect(p, 0, "LAPSE_ID=i\n", NULL);
    server_stop(s);
}

Test(right, that_is_missing_inside_a_script_exits_77)
{
    struct server *s = server_start();
    char url[300];

    snprintf(url, sizeof url, "unix://lapse_producer:secret@%s", s->socket);
    redis_do(s, "ACL SETUSER lapse_producer -zadd");

    struct proc *p = lapse("-u", url, "schedule", "q", "--in", "1s");
    cr_expect(strcasestr(p->err, "zadd"), "it is not named: %s", p->err);
    expect(p, 77, "", "lapse doctor");
    redis_do(s, "ACL SETUSER lapse_producer -hmget");
    expect(lapse("-u", url, "schedule", "q", "--in", "1s"), 77, "", "permission denied");
    redis_do(s, "ACL SETUSER lapse_producer -select");
    snprintf(url, sizeof url, "unix://lapse_producer:secret@%s?db=1", s->socket);
    expect(lapse("-u", url, "schedule", "q", "--in", "1s"), 77, "", "permission denied");
    server_stop(s);
}

Test(right, that_is_missing_exits_77)
{
    struct server *s = server_start();
    char url[300];

    redis_do(s, "ACL SETUSER reader on >pw resetkeys ~other:* &* +@all");
    snprintf(url, sizeof url, "unix://reader:pw@%s", s->socket);
    expect(lapse("-u", url, "depth", "q"), 77, "", "lacks a permission");
    expect(lapse("-u", url, "schedule", "q", "--in", "1s"), 77, "", "permission denied");
    expect(lapse("-u", url, "listen", "q"), 77, "", "permission denied");
    expect(lapse("-u", url, "depth", "q", "-o", "space=other"), 0, "\"waiting\":0", NULL);
    server_stop(s);
}
