/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_OWNER_H
#define LAPSE_OWNER_H
#include "base/span.h"

/* The rank of the listener that owns a job, of n_members. Listeners and scripts agree on it, so it
 * must stay the same; src/lua/lib/owners.lua is its twin. */
int64_t owner_of(struct span id, int64_t n_members);

#endif
