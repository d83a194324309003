/* SPDX-License-Identifier: MIT */
#include "listen/told.h"
#include "base/mem.h"

struct told {
    struct task task;
    struct context *context;
    enum lapse_event what;
    struct lapse_job *job; /* a dup */
    struct told_end end;
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
    struct told_end end = told->end;

    mem_free(told->job);
    mem_free(told);
    if (alive && end.fn) {
        end.fn(end.arg);
    }
}

/* The job is freed when it was told; NULL: there was no memory for it. */
static struct told *told_push(struct task_queue *tasks, struct context *c, enum lapse_event what,
                              struct lapse_job *job)
{
    struct told *told = job ? mem_new(sizeof *told, 0) : NULL;

    if (!told) {
        mem_free(job);
        return NULL;
    }

    *told = (struct told){.task = {.run = told_run, .done = told_done}, .context = c};
    told->what = what;
    told->job = job;
    list_init(&told->task.node);
    task_queue_push(tasks, &told->task);

    return told;
}

void told_of_job(struct task_queue *tasks, struct context *c, enum lapse_event what,
                 const struct lapse_job *job)
{
    if (c->on_event) {
        told_push(tasks, c, what, lapse_job_dup(job));
    }
}

bool told_of_row(struct task_queue *tasks, struct context *c, enum lapse_event what,
                 const char *queue, const struct job_row *row, const struct told_end *end)
{
    size_t len = c->on_event ? job_texts_len(queue, row, true) : 0;
    struct lapse_job *job = c->on_event ? mem_new(sizeof *job, len) : NULL;

    if (!job) {
        return false;
    }

    job_fill(job, queue, row, (char *)(job + 1), true);
    job->is_dup = true;

    struct told *told = told_push(tasks, c, what, job);
    if (told && end) {
        told->end = *end;
    }

    return told;
}
