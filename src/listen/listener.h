/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_WORK_H
#define LAPSE_WORK_H
#include "listen/queue.h"

void work_init(struct work *w, struct context *context, struct script *script,
               struct task_queue *tasks);
int work_handle(struct work *w, const char *queue, unsigned max_running, lapse_handler *fn,
                void *arg);
int work_stop(struct work *w, const char *queue); /* ENOENT */
/* A job of the queue was made due then, by this process: our own word is the fastest. */
void work_told(struct work *w, const char *queue, int64_t due_ms);
/* Once in each turn of the loop, before it sleeps: claims for the queues that owe, as far as there
 * are slots, and frees the queues that stopped and have nothing on its way. */
void work_turn(struct work *w);
void work_up(struct work *w);        /* the connection is there */
void work_drain(struct work *w);     /* takes nothing more, gives back what is not begun */
bool work_give_back(struct work *w); /* what handlers have; false: they have nothing */
bool work_idle(const struct work *w);
void work_end(struct work *w);   /* before the connection is closed */
void work_close(struct work *w); /* after it */

#endif
