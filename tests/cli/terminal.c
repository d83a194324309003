/* SPDX-License-Identifier: MIT */
/* What a terminal gets to see, and what becomes of us when it, or a reader of stderr, stops
 * reading. */
#include "tool.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

struct terminal {
    int master;
    char name[64]; /* of the side that programs write to */
};

static struct terminal terminal(void)
{
    struct terminal t = {.master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
    cr_assert(t.master >= 0 && !grantpt(t.master) && !unlockpt(t.master));
    cr_assert(!ptsname_r(t.master, t.name, sizeof t.name));
    return t;
}

enum { ROOM = 1 << 19 };

/* What can be read there, until it has this text (NULL: until nobody has it open for writing any
 * more). Meanwhile this listener, if there is one, is asked for its statistics. */
static char *read_until(int fd, const char *text, struct proc *asked)
{
    static char seen[ROOM];
    size_t len = 0;
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    int64_t end = test_now_ms() + PROC_WAIT_MS;

    *seen = '\0';

    while (test_now_ms() < end && (!text || !strstr(seen, text))) {
        ssize_t n = poll(&readable, 1, 5) > 0 ? read(fd, seen + len, ROOM - 1 - len) : -2;
        if (asked) {
            proc_signal(asked, SIGUSR1);
        }
        if (n >= 0 || (n == -1 && errno == EIO)) {
            len += n > 0 ? (size_t)n : 0;
            seen[len] = '\0';
            if (n <= 0) {
                break;
            }
        }
    }

    cr_assert(!text || strstr(seen, text), "not to be read: %s", text);

    return seen;
}

Test(json, escapes_what_a_terminal_would_obey_and_stays_the_same_text)
{
    static const struct {
        const char *body, *shown;
    } table[] = {
        {"\xc2\x80 \xc2\x9b\x33\x31m \xc2\x9f", "\\u0080 \\u009b31m \\u009f"},
        {"\xe2\x80\xaa\xe2\x80\xab\xe2\x80\xac\xe2\x80\xad\xe2\x80\xae",
         "\\u202a\\u202b\\u202c\\u202d\\u202e"},
        {"\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9", "\\u2066\\u2067\\u2068\\u2069"},
        {"\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "\\u200e\\u200f\\u061c"},
        {"\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029"},
        {"\x1b[2J\x7f\a", "\\u001b[2J\\u007f\\u0007"},
        /* their neighbours are letters, or blanks */
        {"\xc2\xa0\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa\xd8\x9b"
         "\xd8\x9d",
         "\xc2\xa0\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa\xd8\x9b"
         "\xd8\x9d"},
        {"caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x8e\x89",
         "caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x8e\x89"},
    };
    struct server *s = tool_redis();

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char id[8];
        char member[300];
        char line[300];
        snprintf(id, sizeof id, "i%zu", i);
        snprintf(member, sizeof member, "\"body\":\"%s\"", table[i].shown);
        expect(lapse("schedule", "q", "--id", id, "--in", "1h", table[i].body), 0, NULL, NULL);
        expect(lapse("get", "q", id), 0, member, NULL);

        struct terminal t = terminal();
        snprintf(line, sizeof line, "$lapse get q %s > %s", id, t.name);
        expect(shell(line), 0, "", NULL);
        cr_expect(strstr(read_until(t.master, NULL, NULL), member));
        close(t.master);
    }

    server_stop(s);
}

/* The last line of a history draws its steps, one character each. */
Test(sparkline, of_a_history_is_drawn_on_a_terminal_alone)
{
    enum { STEPS = 24 };
    struct server *s = tool_redis();
    char line[300];
    char spaces[STEPS + 1];

    memset(spaces, ' ', sizeof spaces);
    spaces[STEPS] = '\0';
    expect(lapse("schedule", "q", "--id", "a", "--in", "0s"), 0, NULL, NULL);
    struct terminal t = terminal();
    snprintf(line, sizeof line, "$lapse history q --format text > %s", t.name);
    expect(shell(line), 0, "", NULL);
    const char *seen = read_until(t.master, NULL, NULL);
    const char *drawn = strstr(seen, "claimed ");
    cr_assert(drawn, "%s", seen);
    snprintf(line, sizeof line, "claimed %s at most 0\r\n", spaces);
    cr_expect_str_eq(drawn, line);
    close(t.master);

    expect(lapse("claim", "q"), 0, NULL, NULL);
    t = terminal();
    snprintf(line, sizeof line, "$lapse history q --format text > %s", t.name);
    expect(shell(line), 0, "", NULL);
    seen = read_until(t.master, NULL, NULL);
    drawn = strstr(seen, "claimed ");
    cr_assert(drawn && strstr(drawn, "\xe2\x96\x88"), "%s", seen);
    cr_expect(strstr(drawn, " at most 1\r\n"), "%s", drawn);
    close(t.master);

    struct proc *p = lapse("history", "q", "--format", "text");
    cr_assert_eq(proc_wait(p, PROC_WAIT_MS), 0);
    cr_expect_null(strstr(p->out, "at most"), "%s", p->out);
    proc_free(p);
    server_stop(s);
}

Test(json, of_bytes_that_break_off_in_a_character_is_base64)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "i", "--in", "1h", "\xc2"), 0, NULL, NULL);
    expect(lapse("get", "q", "i"), 0, "\"body_base64\":\"wg==\"", NULL);
    expect(lapse("schedule", "q", "--id", "j", "--in", "1h", "\xe2\x80"), 0, NULL, NULL);
    expect(lapse("get", "q", "j"), 0, "\"body_base64\":\"4oA=\"", NULL);
    server_stop(s);
}

/* ---- who does not read ---- */
static struct proc *start_shell(const char *line)
{
    proc_free(shell("true")); /* sets $lapse */
    return proc_start((const char *const[]){"/bin/sh", "-c", line, NULL});
}

static void schedule_large(int n)
{
    char *body = calloc(1, 50001);

    memset(body, 'x', 50000);
    for (int i = 0; i < n; i++) {
        char id[16];
        snprintf(id, sizeof id, "i%d", i);
        expect(lapse("schedule", "q", "--id", id, "--in", "0s", body), 0, NULL, NULL);
    }
    free(body);
}

Test(terminal, that_does_not_read_holds_up_neither_leases_nor_signals)
{
    struct server *s = tool_redis();
    struct terminal t = terminal();
    char line[300];

    schedule_large(6);
    snprintf(line, sizeof line, "exec $lapse listen q -o lease_ms=9s > %s", t.name);

    struct proc *p = start_shell(line);
    until_depth(s, "q", "due", 0);
    until_renewed(s, "q", 2);
    proc_signal(p, SIGUSR1);
    until_err(p, "claimed 6");
    proc_signal(p, SIGTERM);
    until_err(p, "send the signal again to quit now");
    cr_expect_eq(count_of(read_until(t.master, NULL, NULL), "\"try\":1,"), 6);
    expect(p, 0, NULL, NULL);
    no_jobs(s, "q");
    close(t.master);
    server_stop(s);
}

Test(terminal, that_was_stopped_gets_its_lines_when_it_goes_on)
{
    struct server *s = tool_redis();
    struct terminal t = terminal();
    char line[300];
    int slave = open(t.name, O_RDWR | O_NOCTTY | O_CLOEXEC);

    cr_assert(slave >= 0 && !tcflow(slave, TCOOFF));
    schedule_large(1);
    snprintf(line, sizeof line, "exec $lapse listen q -o lease_ms=9s > %s", t.name);

    struct proc *p = start_shell(line);
    until_depth(s, "q", "run", 1);
    until_renewed(s, "q", 2);
    proc_signal(p, SIGTERM);
    until_err(p, "waiting for 1 running job;");
    cr_assert(!tcflow(slave, TCOON));
    read_until(t.master, "\"try\":1,", NULL);
    expect(p, 0, NULL, NULL);
    no_jobs(s, "q");
    close(slave);
    close(t.master);
    server_stop(s);
}

/* The job whose line it does not take goes back; the slack for Redis's answers is not waited
 * for. */
Test(terminal, that_stays_stopped_is_waited_for_no_longer_than_the_grace)
{
    struct server *s = tool_redis();
    struct terminal t = terminal();
    char line[300];
    int slave = open(t.name, O_RDWR | O_NOCTTY | O_CLOEXEC);

    cr_assert(slave >= 0 && !tcflow(slave, TCOOFF));
    expect(lapse("schedule", "q", "--id", "i", "--in", "0s", "--tries", "1"), 0, NULL, NULL);
    snprintf(line, sizeof line, "exec $lapse listen q --grace 0s > %s", t.name);

    struct proc *p = start_shell(line);
    until_depth(s, "q", "run", 1);
    for (int64_t end_ms = test_now_ms() + 10000; !proc_until_err(p, "claimed 1", 20);
         proc_signal(p, SIGUSR1)) {
        cr_assert_lt(test_now_ms(), end_ms, "it has not heard of its claim");
    }

    proc_signal(p, SIGTERM);
    expect(p, 74, NULL,
           "stdout: nobody reads it; returning 1 job to the queue without using a try");
    p = lapse("get", "q", "i");
    cr_expect(has(p, "\"state\":\"waiting\"") && has(p, "\"try\":0"), "%s", p->out);
    expect(p, 0, NULL, NULL);
    close(slave);
    close(t.master);
    server_stop(s);
}

Test(terminal, that_was_stopped_keeps_dev_neither_from_its_jobs_nor_from_its_end)
{
    struct terminal t = terminal();
    char line[4600];
    char tmp[64];
    int slave = open(t.name, O_RDWR | O_NOCTTY | O_CLOEXEC);

    cr_assert(slave >= 0 && !tcflow(slave, TCOOFF));
    test_dir(tmp, sizeof tmp);
    setenv("XDG_RUNTIME_DIR", tmp, 1);
    snprintf(line, sizeof line, "exec $lapse dev q -v --conf '%s/redis.conf' > %s", test_root(),
             t.name);

    struct proc *p = start_shell(line);
    until_err(p, "listening on");
    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, NULL);

    p = start_shell(line);
    until_err(p, "listening on");
    cr_assert(!tcflow(slave, TCOON));
    read_until(t.master, "redis.sock", NULL);
    proc_signal(p, SIGTERM);
    expect(p, 0, NULL, NULL);
    close(slave);
    close(t.master);
    test_dir_remove(tmp);
}

/* A shell that shares the open file would find its own writes cut short. */
Test(terminal, is_not_set_to_another_mode_for_others)
{
    struct server *s = tool_redis();
    struct terminal t = terminal();
    char line[300];

    expect(lapse("schedule", "q", "--id", "i", "--in", "0s"), 0, NULL, NULL);
    snprintf(line, sizeof line,
             "exec 3<> %s; $lapse listen q -v --count 1 >&3 2>&3 || exit; flags=$(sed -n "
             "'s/^flags://p' /proc/$$/fdinfo/3); [ $((flags & 04000)) = 0 ]",
             t.name);
    expect(shell(line), 0, "", NULL);
    cr_expect(strstr(read_until(t.master, NULL, NULL), "\"try\":1,"));
    close(t.master);
    server_stop(s);
}

/* What is behind a terminal takes a little more a little later. */
static void fill(int fd)
{
    char x[512];
    struct pollfd writable = {.fd = fd, .events = POLLOUT};

    memset(x, 'x', sizeof x);
    do {
        for (size_t len = sizeof x; len;) {
            if (write(fd, x, len) < 0) {
                cr_assert_eq(errno, EAGAIN);
                len /= 2;
            }
        }
    } while (poll(&writable, 1, 100) > 0);
}

/* Its jobs run, its leases are renewed, it hears signals; and once its output is read again, it
 * prints what is missing. */
static void runs_although_its_output_is_not_read(struct server *s, const char *name, int reader)
{
    char line[300];

    snprintf(line, sizeof line, "exec $lapse listen q -v --exec -- true 2> %s", name);

    struct proc *p = start_shell(line);
    for (int i = 0; i < 3; i++) {
        char id[8];
        snprintf(id, sizeof id, "i%d", i);
        expect(lapse("schedule", "q", "--id", id, "--in", "0s"), 0, NULL, NULL);
        until_depth(s, "q", "due", 0);
        until_depth(s, "q", "run", 0);
        proc_signal(p, SIGUSR1);
    }

    read_until(reader, "lapse: lines lost because stderr was blocked: ", p);
    read_until(reader, "claimed 3", p);
    proc_signal(p, SIGTERM);
    expect(p, 0, "", NULL);
    no_jobs(s, "q");
}

Test(stderr, that_is_a_full_pipe_holds_up_nothing_and_lost_lines_are_counted)
{
    struct server *s = tool_redis();
    char name[128];

    snprintf(name, sizeof name, "%s/stderr", s->dir);
    cr_assert(!mkfifo(name, 0600));
    int fd = open(name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    cr_assert(fd >= 0);
    fill(fd);
    runs_although_its_output_is_not_read(s, name, fd);
    close(fd);
    server_stop(s);
}

Test(stderr, that_is_a_stalled_terminal_holds_up_nothing_and_lost_lines_are_counted)
{
    struct server *s = tool_redis();
    struct terminal t = terminal();
    int slave = open(t.name, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

    cr_assert(slave >= 0);
    fill(slave);
    runs_although_its_output_is_not_read(s, t.name, t.master);
    close(slave);
    close(t.master);
    server_stop(s);
}
