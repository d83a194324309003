/* SPDX-License-Identifier: MIT */
#include "commands/many.h"
#include "cli/json.h"
#include "cli/message.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PENDING = 10000 }; /* the default of max_pending */

int set_before(const struct opt *o, char *value, void *field)
{
    struct when when = {.at = NULL};
    int rc = set_at(o, value, &when);

    if (!rc && when.due.at_ms == 0) {
        return usage_error("--before", value, "must be later than 1970");
    }
    *(int64_t *)field = when.due.at_ms;
    return rc;
}

/* ---- arguments ---- */
static bool many_selects(const struct many *m)
{
    return m->state || m->tag || m->batch || m->reason || m->before_ms || m->limit || m->spread_ms;
}

static int check_ids(const struct many *m, const struct arguments *args)
{
    if (m->n_jobs > 0 && many_selects(m)) {
        return usage_errorf("id '%s' and options of a selection: use only one of them",
                            printable_argument(args->v[1]));
    }

    for (int i = 1; i < args->n; i++) {
        if (check_id(args->v[i])) {
            return USAGE;
        }
    }
    return 0;
}

static int check_selection(const struct many *m, const struct command *cmd)
{
    if (m->n_jobs == 0 && !m->where.state && !m->tag && !m->batch) {
        return usage_errorf("missing argument ID, or option --state, --tag or --batch; usage: "
                            "lapse %s %s",
                            cmd->name, cmd->usage);
    }
    if (m->tag && m->batch) {
        return usage_errorf("--tag and --batch: use only one of them");
    }
    if (m->reason && strlen(m->reason) > 200) {
        const char *option = m->reason_option ? m->reason_option : "--reason";
        return usage_error(option, m->reason, "must have at most 200 bytes");
    }
    if (m->spread_ms > TEN_YEARS_MS - m->when.due.delay_ms) {
        return usage_errorf("--in and --spread are more than ten years together");
    }

    return 0;
}

int many_read(struct many *m, const struct command *cmd, const struct arguments *args)
{
    m->once.queue = args->v[0];
    m->n_jobs = args->n - 1;
    m->where.size = sizeof m->where;
    m->where.tag = m->tag;
    m->where.batch = m->batch;
    m->where.reason = m->reason;
    m->where.before_ms = m->before_ms;
    m->where.most = m->limit;
    if (m->state) {
        m->where.state = (enum lapse_state)m->state;
    }

    if (check_queue(m->once.queue) || check_ids(m, args) || check_selection(m, cmd)) {
        return USAGE;
    }

    m->jobs = calloc((size_t)args->n, sizeof *m->jobs);
    if (!m->jobs) {
        message_print("out of memory");
        return INTERNAL;
    }
    for (int i = 0; i < m->n_jobs; i++) {
        m->jobs[i] = (struct many_job){m, args->v[1 + i]};
    }
    return 0;
}

/* ---- requests ---- */
unsigned many_flags(const struct many *m)
{
    return m->running ? LAPSE_RUNNING_TOO : 0;
}

static int many_send(struct oneshot *o)
{
    struct many *m = (struct many *)o;
    int err = m->n_jobs == 0 ? m->ask_all(m) : 0;

    for (int i = 0; !err && i < m->n_jobs; i++) {
        err = m->ask_job(&m->jobs[i]);
    }
    return err;
}

int many_run(struct many *m, struct globals *g)
{
    unsigned n = (unsigned)m->n_jobs * 2; /* requeue asks twice */

    if (n > PENDING && g->opts.max_pending < n) {
        g->opts.max_pending = n;
    }

    int rc = oneshot_run(&m->once, g, many_send);
    free(m->jobs);
    return rc;
}

/* ---- the answer of a selection ---- */
static void many_print(const struct many *m, uint64_t n_running)
{
    struct json j;

    if (m->once.g->text) {
        printf("%s: %" PRIu64 " %s, %" PRIu64 " running\n", m->once.queue, m->n, m->done,
               n_running);
        return;
    }

    json_begin(&j, stdout);
    json_text(&j, "queue", m->once.queue);
    json_int(&j, m->done, (int64_t)m->n);
    json_int(&j, "running", (int64_t)n_running);
    json_end(&j);
}

void many_counted(struct lapse *l, int err, uint64_t n, uint64_t n_running, void *arg)
{
    struct many *m = arg;

    (void)l;
    m->n += n;
    if (oneshot_replied(&m->once, err, m->once.queue, NULL)) {
        many_print(m, n_running);
    } else if (m->once.n_open == 0 && m->n > 0) {
        message_print("%s: before that %" PRIu64 " jobs were %s", m->once.queue, m->n, m->done);
    }
}
