/* SPDX-License-Identifier: MIT */
/* lapse(1): finds the command and hands it the rest. The table is all there is to know of a
 * command: its help, its options and its nearest name come from it. */
#include "cli/arguments.h"
#include "cli/help.h"
#include "cli/message.h"
#include "cli/stdout.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

const struct command *const commands[] = {
    &cmd_schedule, &cmd_cancel, &cmd_reschedule, &cmd_get,    &cmd_list, &cmd_depth,
    &cmd_listen,   &cmd_dev,    &cmd_bench,      &cmd_doctor, &cmd_help, NULL,
};

static int help(const struct command *cmd, struct globals *g, struct arguments *w)
{
    const struct command *about = NULL;
    int rc = arguments_read(cmd, g, NULL, w);

    if (!rc && g->json) {
        rc = usage_error("--format", "json", "help is printed as text only");
    }

    if (!rc && w->n && !(about = command_find(w->v[0]))) {
        rc = USAGE;
    }

    if (!rc) {
        help_print(about, stdout);
    }

    return rc;
}

const struct command cmd_help = {
    "help",
    "[COMMAND]",
    "all about a command",
    0,
    1,
    NULL,
    "Prints how to use lapse, or one command of it.\n",
    NULL,
    help,
};

/* A closed 0, 1 or 2 would be the number of the next socket, and our output would go to Redis. */
static void hold_standard_fds(void)
{
    static const int unusable[] = {O_WRONLY, O_RDONLY, O_WRONLY};

    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", unusable[fd]) != fd) {
            abort();
        }
    }
}

int main(int argc, char **argv)
{
    struct globals g = {.opts = lapse_options_init(), .connect_wait_ms = -1};
    struct arguments w = {argv + 1, argc - 1, 0};
    const struct command *cmd;
    int rc;

    hold_standard_fds();
    signal(SIGPIPE, SIG_IGN);
    rc = arguments_read_global(&g, &w);
    if (rc) {
        return rc;
    }

    if (!w.n) {
        help_print(NULL, stderr);
        return USAGE;
    }

    cmd = command_find(w.v[0]);
    if (!cmd) {
        return USAGE;
    }

    w.v++;
    w.n--;
    rc = cmd->run(cmd, &g, &w);
    free(g.shown_url);

    return close_stdout(rc);
}
