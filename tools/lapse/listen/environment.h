/* SPDX-License-Identifier: MIT */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H
#include "command.h"

/* The --env options: NAME is passed on, NAME=VALUE is set. */
enum { ENV_OPTIONS = 64 };
struct env_options {
    const char *v[ENV_OPTIONS];
    unsigned n;
};
/* Setter of --env, for a struct env_options; 0, or USAGE after it has printed why. */
int set_env(const struct opt *o, char *value, void *field);

/* The environment for commands: *n variables, and places for n_more and the NULL after them. To be
 * freed; NULL: out of memory. */
char **environment_make(const struct env_options *options, size_t n_more, size_t *n);
#endif
