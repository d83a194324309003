/* SPDX-License-Identifier: MIT */
/* lapse(1): finds the command and hands it the rest of the command line. */
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
    &cmd_schedule,  &cmd_cancel,  &cmd_reschedule, &cmd_requeue, &cmd_run,       &cmd_kill,
    &cmd_get,       &cmd_wait,    &cmd_batch,      &cmd_list,    &cmd_depth,     &cmd_queues,
    &cmd_listeners, &cmd_history, &cmd_quiet,      &cmd_stop,    &cmd_remove,    &cmd_configure,
    &cmd_pause,     &cmd_unpause, &cmd_forward,    &cmd_adopt,   &cmd_claim,     &cmd_report,
    &cmd_done,      &cmd_retry,   &cmd_snooze,     &cmd_fail,    &cmd_release,   &cmd_renew,
    &cmd_listen,    &cmd_dev,     &cmd_bench,      &cmd_doctor,  &cmd_functions, &cmd_cron,
    &cmd_help,      NULL,
};

static int help_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    const struct command *about;
    int rc = arguments_read(cmd, g, NULL, args);

    if (rc) {
        return rc;
    }
    if (g->json) {
        return usage_error("--format", "json", "help is printed as text only");
    }

    if (!args->n) {
        help_print(stdout);
        return 0;
    }
    if (strcmp(args->v[0], "options") == 0) {
        help_print_global_options(stdout);
        return 0;
    }

    about = command_find(args->v[0]);
    if (!about) {
        return USAGE;
    }
    help_print_command(about, stdout);

    return 0;
}

const struct command cmd_help = {
    .name = "help",
    .usage = "[COMMAND | options]",
    .summary = "show help",
    .min = 0,
    .max = 1,
    .text = "Shows the commands and exit codes of lapse, a command with its options, or the\n"
            "options of every command.\n"
            "\n"
            "examples:\n"
            "  lapse help listen\n"
            "  lapse help options\n",
    .run = help_run,
};

/* If fd 0, 1 or 2 were closed, the next socket would get its number, and our output would go to
 * Redis. */
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
    struct arguments args = {argv + 1, argc - 1, 0};
    const struct command *cmd;
    int rc;

    hold_standard_fds();
    signal(SIGPIPE, SIG_IGN);

    rc = arguments_read_global(&g, &args);
    if (rc) {
        return rc;
    }

    if (!args.n) {
        help_print(stderr);
        return USAGE;
    }

    cmd = command_find(args.v[0]);
    if (!cmd) {
        return USAGE;
    }

    args.v++;
    args.n--;
    rc = cmd->run(cmd, &g, &args);
    free(g.shown_url);

    return close_stdout(rc);
}
