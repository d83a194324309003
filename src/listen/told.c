/* SPDX-License-Identifier: MIT */
#include "listen/told.h"
#include "base/mem.h"

struct told {
    struct task task;
    struct context *context;
    enum lapse_event what;
    struct lapse_job *job; /* a dup */
};

static void told_run(struct task *t)
{
    struct told *told = CONTAINER(t, struct told, task);
    struct context *c = told->context;

    if (c->on_event) {
        c->on_event(c->handle, told->what, told->job, c->on_event_arg);
    }
}

static void told_done(struct task *t, bool alive)
{
    struct told *told = CONTAINER(t, struct told, task);
    (void)alive;

    mem_free(told->job);
    mem_free(told);
}

void told_of_job(struct task_queue *tasks, struct context *c, enum lapse_event what,
                 const struct lapse_job *job)
{
    if (!c->on_event) {
        return;
    }

    struct told *told = mem_new(sizeof *told, 0);
    struct lapse_job *dup = lapse_job_dup(job);
    if (!told || !dup) {
        mem_free(told);
        mem_free(dup);
        return;
    }

    *told = (struct told){.task = {.run = told_run, .done = told_done}, .context = c};
    told->what = what;
    told->job = dup;
    list_init(&told->task.node);
    task_queue_push(tasks, &told->task);
}

void told_of_dead(struct task_queue *tasks, struct context *c, const char *queue,
                  const struct job_row *row)
{
    size_t len = c->on_event ? job_texts_len(queue, row, true) : 0;
    struct lapse_job *job = c->on_event ? mem_new(sizeof *job, len) : NULL;

    if (!job) {
        return;
    }

    job_fill(job, queue, row, (char *)(job + 1), true);
    told_of_job(tasks, c, LAPSE_EVENT_DIED, job);
    mem_free(job);
}
