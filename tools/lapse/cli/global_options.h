/* SPDX-License-Identifier: MIT */
#ifndef GLOBAL_OPTIONS_H
#define GLOBAL_OPTIONS_H
#include "command.h"

/* The options of every command; their fields are those of struct globals. Ends with a NULL name, as
 * no_options does. --help and --version have no setter. */
extern const struct opt global_options[];
extern const struct opt no_options[];
#endif
