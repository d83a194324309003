/* SPDX-License-Identifier: MIT */
#ifndef CHECKS_H
#define CHECKS_H
#include "client/cluster_sync.h"
#include "doctor/doctor.h"

/* Each prints its findings. */
void check_server(struct doctor *d);      /* server.c: server, role */
void check_rights(struct doctor *d);      /* rights.c */
void check_events(struct doctor *d);      /* events.c */
void check_memory(struct doctor *d);      /* memory.c: eviction, memory, buffers */
void check_persistence(struct doctor *d); /* persistence.c: persistence, replicas */
void check_sentinel(struct doctor *d);    /* sentinel.c; only under Sentinel */
void check_cluster(struct doctor *d);     /* cluster.c: slots, coverage, timeout, size; of a node */
void check_clock(struct doctor *d);       /* expiry.c */
void check_jobs(struct doctor *d);        /* jobs.c */
void check_dead(struct doctor *d);        /* dead.c: of queues that have many */
void check_parts(struct doctor *d);       /* parts.c: of groups that are gone */
void check_settings(struct doctor *d);    /* settings.c: of queues that have any */
void check_expiry(struct doctor *d);      /* expiry.c; after the jobs, for it needs their number */

/* events.c, of a replica: its notify-keyspace-events. */
void check_flags(struct doctor *d);
/* expiry.c: how far the clock of d->redis is ahead of this machine's; false: it did not say. */
bool measure_clock(struct doctor *d, int64_t *ahead_us);

/* doctor.c: all of the above. */
void check_all(struct doctor *d);
/* nodes.c: of a cluster, each node. */
void check_nodes(struct doctor *d);

/* cluster.c, of any node of a cluster: coverage, timeout. */
void check_node_settings(struct doctor *d);
/* The node that is looked at, as a command names it. */
void cluster_place(const struct doctor *d, char out[CLUSTER_PLACE]);
enum { FIX_COMMAND = 400, FIX_TOGETHER = 1400 };
/* The command that finishes moves of slots. */
void cluster_fix(const struct doctor *d, char out[FIX_COMMAND]);
/* astray.c */
/* What closes the slots that are open in this line of CLUSTER NODES; "": the lines of their queues
 * have it. Returns how many of them have keys on two nodes, of which it names the first. */
int fix_open(struct doctor *d, const char *line, char fix[FIX_TOGETHER]);
/* error: what a script answered for a queue. false: it is not EHALF, and nothing is reported. */
bool report_half(struct doctor *d, const char *check, const char *queue, const char *error);

/* find_queues.c: looks for the queues that the user did not name. */
void find_queues(struct doctor *d);
#endif
