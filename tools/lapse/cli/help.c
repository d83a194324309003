/* SPDX-License-Identifier: MIT */
/* The help, from the same tables that the command line is read with. */
#include "cli/help.h"
#include "cli/global_options.h"
#include <string.h>

enum { COLUMNS = 80, TEXT_COLUMN = 31 };

/* The text of an option, from TEXT_COLUMN on. */
static void print_wrapped(const char *text, FILE *to)
{
    size_t column = TEXT_COLUMN;

    while (*text) {
        size_t len = strcspn(text, " \n");

        if (column > TEXT_COLUMN && column + 1 + len > COLUMNS) {
            fprintf(to, "\n%*s", TEXT_COLUMN, "");
            column = TEXT_COLUMN;
        } else if (column > TEXT_COLUMN) {
            putc(' ', to);
            column++;
        }

        fwrite(text, 1, len, to);
        column += len;
        text += len;
        text += strspn(text, " \n");
    }

    putc('\n', to);
}

static void help_options(const char *title, const struct opt *o, FILE *to)
{
    fprintf(to, "\n%s:\n", title);

    for (; o->name; o++) {
        const char *space = o->arg ? " " : "";
        const char *arg = o->arg ? o->arg : "";
        char left[48];

        snprintf(left, sizeof left, "--%s%s%s", o->name, space, arg);
        if (o->letter) {
            fprintf(to, "  -%c, %-24s ", o->letter, left);
        } else {
            fprintf(to, "      %-24s ", left);
        }
        print_wrapped(o->help, to);
    }
}

void help_print_command(const struct command *cmd, FILE *to)
{
    fprintf(to, "usage: lapse %s %s\n\n%s", cmd->name, cmd->usage, cmd->text);

    if (cmd->opts) {
        help_options("options", cmd->opts, to);
    }
    if (cmd->exits) {
        fprintf(to, "\nexit codes of this command:\n%s", cmd->exits);
    }

    fputs("\n"
          "lapse help options shows the options of every command, lapse help the exit\n"
          "codes.\n",
          to);
}

void help_print_global_options(FILE *to)
{
    fputs("usage: lapse [OPTION...] COMMAND [OPTION...] [ARGUMENT...]\n", to);
    help_options("options of every command", global_options, to);
}

void help_print(FILE *to)
{
    fputs("usage: lapse [OPTION...] COMMAND [OPTION...] [ARGUMENT...]\n"
          "\n"
          "Runs jobs at the moment they are due, with Redis as the store.\n"
          "\n"
          "commands:\n",
          to);
    for (const struct command *const *c = commands; *c; c++) {
        fprintf(to, "  %-11s %s\n", (*c)->name, (*c)->summary);
    }

    fputs("\n"
          "lapse help COMMAND shows a command and its options, lapse help options those\n"
          "of every command.\n"
          "\n"
          "exit codes:\n"
          "  0    success\n"
          "  1    request refused: no such job, it exists, it is running, or not claimed\n"
          "  2    invalid arguments; nothing was changed\n"
          "  69   Redis cannot be reached, or its reply was lost\n"
          "  70   out of memory, or stored data that cannot be read\n"
          "  74   standard output could not be written\n"
          "  77   permission denied: wrong password or missing permission\n"
          "  141  the reader of standard output went away, as head does; no message\n",
          to);
}
