/* SPDX-License-Identifier: MIT */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H
#include "command.h"

/* Reads the options before the command; 0 or USAGE. */
int arguments_read_global(struct globals *g, struct arguments *args);
/* Reads the options and arguments of a command, its own options into the struct at to; 0 or
 * USAGE. */
int arguments_read(const struct command *cmd, struct globals *g, void *to, struct arguments *args);
/* NULL: there is none, and the nearest name has been printed. */
const struct command *command_find(const char *name);
#endif
