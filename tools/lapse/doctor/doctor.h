/* SPDX-License-Identifier: MIT */
#ifndef DOCTOR_H
#define DOCTOR_H
#include "client/redis_sync.h"
#include "command.h"
#include "doctor/queues.h"

enum verdict { FINE, WARN, FAIL, N_VERDICTS };
/* Each may do what those before it may. */
enum doctor_role { FOR_MONITOR, FOR_PRODUCER, FOR_LISTENER, N_ROLES };
extern const char *const role_names[N_ROLES];

struct cluster_sync;
struct members;

struct doctor {
    struct globals *g;
    char *url; /* with its password; owned, wiped */
    const char *space;
    bool repair;
    bool half;     /* repair what looks like a half queue, too */
    unsigned role; /* whose rights the user should have */

    struct redis_sync redis;
    char *info;       /* all that INFO says; "": this user may not run it */
    const char *eval; /* EVAL, or EVAL_RO for a user who may only read */
    bool is_replica;
    const char *at;  /* the server that is looked at, host:port; NULL: that of the URL */
    bool is_cluster; /* a node of one */
    struct cluster_sync *cluster;  /* that of the URL; NULL: it is of no cluster */
    const struct members *members; /* its nodes, as far as they are known */
    const char *own_queue; /* a name of which all keys are on this node; NULL: any would do */
    struct queues queues;
    bool queues_named;  /* by the user; otherwise they were found */
    int64_t n_triggers; /* jobs that may have one */
    int64_t ahead_us;   /* how far its clock is ahead of this machine's */
    bool has_clock;     /* that was measured */

    unsigned n_verdicts[N_VERDICTS];
    int code; /* to exit with; not 0: no more checks */
};

/* Fills d->info, which is NULL or was freed. */
void doctor_read_info(struct doctor *d);
int64_t doctor_reply_ms(const struct doctor *d);
/* The first queue, or the name of one that does not exist. */
const char *doctor_queue(const struct doctor *d);
/* A second connection to the server that is looked at; 0, or an exit code after it has printed
 * why. Of a node of a cluster nothing is printed, and r->why says it. */
int doctor_connect_again(const struct doctor *d, struct redis_sync *r);
#endif
