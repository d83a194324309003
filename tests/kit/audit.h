/* SPDX-License-Identifier: MIT */
/* What must hold of Redis, and of this process, when no operation is under way. */
#ifndef AUDIT_H
#define AUDIT_H
#include "server.h"
#include <stddef.h>

/* Takes the names of queues, which NULL ends. Returns the number of defects; each is printed to
 * stderr. */
int audit(struct server *s, const char *space, ...);
int audit_queues(struct server *s, const char *space, const char *const *names, size_t n);
int fds_open(void); /* descriptors of this process */
#endif
