/* SPDX-License-Identifier: MIT */
#ifndef HELP_H
#define HELP_H
#include "command.h"
#include <stdio.h>

void help_print(FILE *to); /* the commands and the exit codes */
void help_print_command(const struct command *cmd, FILE *to);
void help_print_global_options(FILE *to);
#endif
