/* SPDX-License-Identifier: MIT */
/* What a terminal gets to see, and what becomes of us when it, or a reader of stderr, stops reading. */
#include "tool.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
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

/* What was written to it, until nobody has it open any more. */
static void read_all(struct terminal *t, char *out, size_t size)
{
    size_t len = 0;
    ssize_t n;
    while (len < size - 1 && (n = read(t->master, out + len, size - 1 - len)) > 0) {
        len += (size_t)n;
    }
    out[len] = '\0';
}

Test(json, escapes_what_a_terminal_would_obey_and_stays_the_same_text)
{
    static const struct {
        const char *body, *shown;
    } table[] = {
        {"\xc2\x80 \xc2\x9b\x33\x31m \xc2\x9f", "\\u0080 \\u009b31m \\u009f"},
        {"\xe2\x80\xaa\xe2\x80\xab\xe2\x80\xac\xe2\x80\xad\xe2\x80\xae", "\\u202a\\u202b\\u202c\\u202d\\u202e"},
        {"\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9", "\\u2066\\u2067\\u2068\\u2069"},
        {"\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "\\u200e\\u200f\\u061c"},
        {"\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029"},
        {"\x1b[2J\x7f\a", "\\u001b[2J\\u007f\\u0007"},
        /* their neighbours are letters, or blanks */
        {"\xc2\xa0\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa\xd8\x9b\xd8\x9d",
         "\xc2\xa0\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa\xd8\x9b\xd8\x9d"},
        {"caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x8e\x89",
         "caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x8e\x89"},
    };
    struct server *s = tool_redis();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char id[8], member[300], line[300], seen[4096];
        snprintf(id, sizeof id, "i%zu", i);
        snprintf(member, sizeof member, "\"body\":\"%s\"", table[i].shown);
        expect(lapse("schedule", "q", "--id", id, "--in", "1h", table[i].body), 0, NULL, NULL);
        expect(lapse("get", "q", id), 0, member, NULL);

        struct terminal t = terminal();
        snprintf(line, sizeof line, "$lapse get q %s > %s", id, t.name);
        expect(shell(line), 0, "", NULL);
        read_all(&t, seen, sizeof seen);
        close(t.master);
        cr_expect(strstr(seen, member), "%s", seen);
    }
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
