/* SPDX-License-Identifier: MIT */
#ifndef HELP_H
#define HELP_H
#include "command.h"
#include <stdio.h>

void help_print(const struct command *cmd, FILE *to); /* NULL: of the whole program */
#endif
