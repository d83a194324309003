/* SPDX-License-Identifier: MIT */
/* lapse_sync_open(), lapse_sync_close(): the life of the thread that the loop runs in.
 *
 * lapse_sync_close() goes through the same door as every call: the loop gives back what no thread
 * has begun, and closes its handle. It goes on until all workers have ended, as they may still
 * settle, and only then ends itself. */
#include "sync/around.h"
#include "sync/pool.h"
#include "sync/settle.h"
#include "base/error.h"
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- the thread of the loop ---- */
static void on_wake(struct ev_loop *loop, ev_io *io, int events)
{
    struct lapse_sync *s = io->data;
    uint64_t times;
    ssize_t got = read(s->wake_fd, &times, sizeof times);
    (void)got; /* it fails only if there is nothing to read */
    (void)events;

    calls_ask(s);

    pthread_mutex_lock(&s->mutex);
    bool quitting = s->quitting;
    pthread_mutex_unlock(&s->mutex);
    if (quitting) {
        ev_break(loop, EVBREAK_ALL);
    }
}

static void *sync_work(void *arg)
{
    struct lapse_sync *s = arg;

    pthread_setname_np(pthread_self(), "lapse-sync");
    calls_begin(s);
    ev_run(s->loop, 0);

    return NULL;
}

/* Signals are for the threads of the program, but for those that a fault of this thread raises. */
static bool sync_start_thread(struct lapse_sync *s)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
    sigset_t blocked;
    sigset_t before;

    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        sigdelset(&blocked, faults[i]);
    }

    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    int err = pthread_create(&s->thread, NULL, sync_work, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);

    return err == 0;
}

/* ---- opening ---- */
/* The default of an option that is a time. */
static struct lapse_options default_of(const char *option)
{
    static const struct {
        const char *name;
        const char *def;
    } defaults[] = {
#define LAPSE_X(name, type, kind, def, ...) {#name, def},
        LAPSE_OPTIONS(LAPSE_X)
#undef LAPSE_X
    };
    struct lapse_options o = lapse_options_init();

    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        if (strcmp(defaults[i].name, option) == 0) {
            lapse_options_set(&o, option, defaults[i].def);
        }
    }

    return o;
}

/* As lapse_open() has read them: the struct of an older caller ends earlier. */
static void sync_read_options(struct lapse_sync *s, const struct lapse_options *opts)
{
    struct lapse_options o = lapse_options_init();

    if (opts) {
        memcpy(&o, opts, opts->size < sizeof o ? opts->size : sizeof o);
    }

    s->reply_ms = o.reply_ms ? o.reply_ms : default_of("reply_ms").reply_ms;
    int64_t replicas_ms = o.replicas_ms ? o.replicas_ms : default_of("replicas_ms").replicas_ms;
    s->copies_ms = 2 * replicas_ms; /* the next round comes after that of now */
    s->wants_copies = o.replicas > 0;
}

static void sync_free(struct lapse_sync *s)
{
    if (s->handle) {
        lapse_abandon(s->handle);
    }
    if (s->loop) {
        ev_loop_destroy(s->loop);
    }
    if (s->wake_fd >= 0) {
        close(s->wake_fd);
    }

    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->mutex);
    lapse_allocate(s, 0);
}

static int sync_start(struct lapse_sync *s, const struct lapse_options *opts)
{
    s->loop = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!s->loop || s->wake_fd < 0) {
        return LAPSE_ENOMEM;
    }

    int err = lapse_open(&s->handle, s->loop, opts);
    if (err) {
        return err;
    }

    sync_read_options(s, opts);
    ev_io_init(&s->wake, on_wake, s->wake_fd, EV_READ);
    s->wake.data = s;
    ev_io_start(s->loop, &s->wake);

    return sync_start_thread(s) ? 0 : LAPSE_ENOMEM;
}

int lapse_sync_open(struct lapse_sync **out, const struct lapse_options *opts)
{
    struct lapse_sync *s = out ? lapse_allocate(NULL, sizeof *s) : NULL;

    if (!out) {
        return LAPSE_EINVAL;
    }
    if (!s) {
        return LAPSE_ENOMEM;
    }

    memset(s, 0, sizeof *s);
    s->pid = getpid();
    s->wake_fd = -1;
    list_init(&s->settling);
    list_init(&s->listed);
    list_init(&s->spares);
    list_init(&s->pools);
    for (size_t i = 0; i < SYNC_SURROUNDED; i++) {
        list_init(&s->surrounded[i]);
    }
    pthread_mutex_init(&s->mutex, NULL);
    call_condition(&s->changed);

    int err = sync_start(s, opts);
    if (err) {
        sync_free(s);
        return err;
    }

    *out = s;
    return 0;
}

/* ---- closing ---- */
static void on_closed(void *arg)
{
    struct lapse_sync *s = arg;

    s->handle = NULL;
    settles_end(s);

    pthread_mutex_lock(&s->mutex);
    s->closed = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
}

static int close_ask(struct call *c)
{
    struct lapse_sync *s = c->sync;
    const int64_t *grace_ms = c->args;

    for (struct pool *p; (p = pool_find(s, NULL));) {
        pool_stop(p);
    }
    lapse_close(s->handle, *grace_ms, on_closed, s);

    return CALL_OVER;
}

/* Asks the loop to close the handle, and waits until nothing needs it any more. */
static void sync_close_handle(struct lapse_sync *s, int64_t grace_ms)
{
    struct call c = {.sync = s, .ask = close_ask, .args = &grace_ms};

    list_init(&c.node);
    call_condition(&c.progress);

    pthread_mutex_lock(&s->mutex);
    ASSERT(!s->closing); /* one thread closes it, once */
    s->closing = true;
    list_insert(&s->listed, &c.node);
    pthread_mutex_unlock(&s->mutex);
    calls_wake(s);

    pthread_mutex_lock(&s->mutex);
    while (!s->closed || !pools_ended(s) || s->n_callers > 0) {
        pthread_cond_wait(&s->changed, &s->mutex);
    }
    s->quitting = true;
    pthread_mutex_unlock(&s->mutex);
    calls_wake(s);

    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&c.progress);
}

void lapse_sync_close(struct lapse_sync *s, int64_t grace_ms)
{
    if (!s || s->pid != getpid()) {
        return;
    }
    /* a handler, and the thread of the loop, would wait for themselves */
    ASSERT(!pools_have_this_thread(s) && call_check(s, 0) == 0);

    sync_close_handle(s, grace_ms);
    pools_reap(s);
    for (struct list *i; (i = list_pop(&s->spares));) {
        call_free(CONTAINER(i, struct call, node));
    }
    arounds_free(s);
    sync_free(s);
}
