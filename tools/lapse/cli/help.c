/* SPDX-License-Identifier: MIT */
/* The help, from the same tables that the command line is read with. */
#include "cli/help.h"
#include "cli/global_options.h"
#include <string.h>

static void help_options(const char *title, const struct opt *o, FILE *to)
{
    fprintf(to, "\n%s:\n", title);
    for (; o->name; o++) {
        const char *text = o->help;
        char left[48];

        snprintf(left, sizeof left, "--%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
        if (o->letter) {
            fprintf(to, "  -%c, %-24s ", o->letter, left);
        } else {
            fprintf(to, "      %-24s ", left);
        }

        for (size_t n; n = strcspn(text, "\n"), text[n]; text += n + 1) {
            fprintf(to, "%.*s\n%31s", (int)n, text, "");
        }
        fprintf(to, "%s\n", text);
    }
}

void help_print(const struct command *cmd, FILE *to)
{
    if (cmd) {
        fprintf(to, "usage: lapse %s %s\n\n%s", cmd->name, cmd->usage, cmd->text);
        if (cmd->opts) {
            help_options("options", cmd->opts, to);
        }
    } else {
        fputs("usage: lapse [OPTION...] COMMAND ...\n"
              "\n"
              "Jobs that run at the moment they are due, with Redis as the store.\n"
              "\n"
              "commands (lapse help COMMAND tells all about one):\n",
              to);
        for (const struct command *const *c = commands; *c; c++) {
            fprintf(to, "  %-11s %s\n", (*c)->name, (*c)->summary);
        }
    }

    help_options("options of every command", global_options, to);
    fputs("\n"
          "exit codes:\n"
          "  0   done\n"
          "  1   the answer was no: no such job, it exists already, it is running\n"
          "  2   a wrong argument; nothing was changed\n"
          "  69  Redis cannot be reached, or its answer was lost\n"
          "  70  out of memory, or stored data that cannot be read\n"
          "  74  stdout would not take the output\n"
          "  77  not allowed: wrong password or missing right\n",
          to);
    if (cmd && cmd->exits) {
        fputs(cmd->exits, to);
    }
    fputs("  141 the reader of stdout went away, as head does; nothing is said\n", to);
}
