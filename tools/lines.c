/* SPDX-License-Identifier: MIT */
/* Fired jobs as lines on stdout. A reader that is slow must not stop the loop, which renews the leases, so nothing here
 * blocks: what poll() calls writable takes PIPE_BUF bytes at once, and the rest waits with its jobs held. O_NONBLOCK
 * would be simpler, but it belongs to the open file, which others (the terminal's shell) share. When the reader is
 * gone, jobs whose line is not out whole are put back: nobody has seen them. */
#include "lines.h"
#include "print.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TURN = 64 }; /* writes before the loop gets its turn */

struct line {
    struct line *next;
    struct lapse_job *job;
    void *arg;
    char *text; /* from open_memstream */
    size_t len, sent;
};

static struct line *pop(struct lines *s)
{
    struct line *line = s->first;
    s->first = line->next;
    if (!s->first) {
        s->last = &s->first;
        ev_io_stop(s->loop, &s->writable);
    }
    return line;
}

static void drop(struct line *line)
{
    free(line->text);
    free(line);
}

static void put_back(struct lines *s, struct lapse_job *job, const char *why, void *arg)
{
    lapse_retry(job, LAPSE_BACKOFF, why, s->settled, arg);
}

static void give_up(struct lines *s, const char *reason)
{
    unsigned n = 0;
    for (; s->first; n++) {
        struct line *line = pop(s);
        put_back(s, line->job, "the listener's stdout was closed", line->arg);
        drop(line);
    }
    say("stdout: %s; put back, not done: %u", reason, n);
    s->broken(s->broken_arg);
}

/* 1: go on, 0: stdout takes no more now, -1: it is gone */
static int write_some(struct lines *s)
{
    struct line *line = s->first;
    struct pollfd ready = {.fd = 1, .events = POLLOUT};
    size_t left = line->len - line->sent;
    ssize_t n;
    if (!line->sent && !lapse_job_until_ms(line->job)) {
        /* it waited here for so long that it is another's now, who will print it */
        put_back(s, line->job, "the lease ended while stdout was blocked", line->arg);
        drop(pop(s));
        return s->first != NULL;
    }
    if (poll(&ready, 1, 0) <= 0) {
        return 0;
    }
    n = write(1, line->text + line->sent, left < PIPE_BUF ? left : PIPE_BUF);
    if (n < 0) {
        return errno == EINTR || errno == EAGAIN ? 0 : -1;
    }
    line->sent += (size_t)n;
    if (line->sent == line->len) {
        pop(s);
        lapse_done(line->job, s->settled, line->arg);
        drop(line);
    }
    return s->first != NULL;
}

static void on_writable(struct ev_loop *loop, ev_io *w, int events)
{
    struct lines *s = w->data;
    int go = 1;
    (void)loop, (void)events;
    for (int i = 0; go > 0 && i < TURN; i++) {
        go = write_some(s);
    }
    if (go < 0) {
        give_up(s, strerror(errno));
    }
}

void lines_init(struct lines *s)
{
    s->first = NULL;
    s->last = &s->first;
    ev_io_init(&s->writable, on_writable, 1, EV_WRITE);
    s->writable.data = s;
}

void lines_add(struct lines *s, struct lapse_job *job, void *arg)
{
    struct line *line = calloc(1, sizeof *line);
    FILE *to = line ? open_memstream(&line->text, &line->len) : NULL;
    int failed = !to;
    if (to) {
        print_fired(s->g, job, to);
        failed = ferror(to);
        failed |= fclose(to) != 0;
    }
    if (failed) {
        put_back(s, job, "the listener is out of memory", arg);
        if (line) {
            drop(line);
        }
        return;
    }
    line->job = job;
    line->arg = arg;
    *s->last = line;
    s->last = &line->next;
    ev_io_start(s->loop, &s->writable);
}

void lines_free(struct lines *s)
{
    while (s->first) {
        struct line *line = pop(s);
        lapse_done(line->job, NULL, NULL); /* cut loose by the close: this only frees it */
        drop(line);
    }
}
