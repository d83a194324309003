/* SPDX-License-Identifier: MIT */
#include "api/request.h"
#include "base/mem.h"
#include "job/keys.h"

#define YEAR_2200_MS ((int64_t)7258118400000)

static int request_check(const struct lapse *l, const struct request_spec *spec)
{
    const struct lapse_options *set = &l->context.options;

    if (l->closing && !spec->of_lease) {
        return LAPSE_ECLOSED;
    }
    if (l->n_pending >= set->max_pending || spec->body_len > set->max_bytes - l->n_bytes) {
        return LAPSE_EFULL;
    }

    return 0;
}

static void request_leave(struct request *r)
{
    struct lapse *l = r->handle;

    l->n_pending--;
    l->n_bytes -= r->body_len;
}

static void request_tell(struct request *r, int err)
{
    struct lapse *l = r->handle;

    request_leave(r);
    r->err = err;
    task_queue_push(&l->tasks, &r->task);
}

static void on_copied(struct fence_wait *w, int err)
{
    request_tell(CONTAINER(w, struct request, copies), err);
}

int request_new(void **out, struct lapse *l, const struct request_spec *spec)
{
    size_t queue_size = strlen(spec->queue) + 1;
    size_t id_size = strlen(spec->id) + 1;
    int err = request_check(l, spec);

    if (err) {
        return err;
    }

    size_t tail_len = 2 * (queue_size + id_size) + KEYS_MAX + spec->extra_len + spec->answer_id_len;
    struct request *r = mem_new(spec->size, tail_len);
    if (!r) {
        return LAPSE_ENOMEM;
    }

    char *queue = (char *)r + spec->size;
    char *id = queue + queue_size;
    char *key = id + id_size;

    r->task = (struct task){.run = spec->run, .done = spec->done};
    r->handle = l;
    r->arg = spec->arg;
    r->body_len = spec->body_len;
    r->queue = memcpy(queue, spec->queue, queue_size);
    r->id = (struct span){memcpy(id, spec->id, id_size), id_size - 1};
    r->key = (struct span){key, keys_of(key, l->context.options.space, spec->queue, KEYS_DUE)};
    r->copies = (struct fence_wait){
        .key = r->key, .wanted = fences_own_copies(&l->fences), .end = on_copied};
    list_init(&r->copies.node);
    r->extra = key + KEYS_MAX;
    r->texts = r->extra + spec->extra_len;

    l->n_pending++;
    l->n_bytes += spec->body_len;
    *out = r;

    return 0;
}

void request_drop(struct request *r)
{
    request_leave(r);
    mem_free(r);
}

void request_wrote(struct request *r, int64_t sent_us)
{
    if (r->copies.sent_us == 0) {
        r->copies.sent_us = sent_us;
    }
}

void request_end(struct request *r, int err)
{
    if (!err && r->copies.sent_us && fence_is_wanted(&r->copies.wanted)) {
        fences_add(&r->handle->fences, &r->copies);
    } else {
        fence_forget(&r->copies);
        request_tell(r, err);
    }
}

int64_t request_until_us(const struct lapse *l)
{
    return clock_us() + l->context.options.reply_ms * 1000;
}

/* The exact rule, ten years from Redis's now, is the script's; before the first reply this process
 * does not know Redis's clock. */
static int64_t request_latest_due_ms(const struct lapse *l)
{
    int64_t now_us = topo_time_us(&l->topo);

    return now_us ? now_us / 1000 + JOB_TEN_YEARS_MS : YEAR_2200_MS;
}

bool request_due_is_valid(const struct lapse *l, struct lapse_due due)
{
    if (due.delay_ms && due.at_ms) {
        return false;
    }

    return due.delay_ms >= 0 && due.delay_ms <= JOB_TEN_YEARS_MS && due.at_ms >= 0 &&
           due.at_ms <= request_latest_due_ms(l);
}
