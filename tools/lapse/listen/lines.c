/* SPDX-License-Identifier: MIT */
/* Fired jobs as lines on stdout. A reader that is slow, or a terminal that was stopped, must not
 * stop the loop, which renews the leases and hears signals: nothing here waits, and what is not
 * taken stays here with its jobs held. They count as running, so no more than max_running of them
 * are ever claimed. When the reader is gone, jobs whose line is not out whole stay here unsettled,
 * until the end of the handle gives them back: nobody has seen them, so they have used no try. */
#include "listen/lines.h"
#include "cli/message.h"
#include "cli/print.h"
#include "cli/stdout.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TURN = 64 }; /* writes before the loop gets its turn */
#define LATER_S 0.02
enum step { MORE, NO_MORE, NOT_NOW, GONE };

struct line {
    struct line *next;
    struct lapse_job *job; /* NULL: it is of none */
    void *arg;
    char *text; /* from open_memstream */
    size_t len, sent;
};

static struct line *pop(struct lines *s)
{
    struct line *line = s->first;

    s->first = line->next;
    s->n -= line->job != NULL;
    if (!s->first) {
        s->last = &s->first;
        ev_io_stop(s->loop, &s->writable);
        ev_timer_stop(s->loop, &s->later);
    }

    return line;
}

static void drop(struct line *line)
{
    free(line->text);
    free(line);
}

static void put_back(struct lines *s, struct lapse_job *job, const char *reason, void *arg)
{
    lapse_retry(job, LAPSE_BACKOFF, reason, s->settled, arg);
}

void lines_give_up(struct lines *s, const char *reason)
{
    if (!s->first || s->is_broken) {
        return;
    }

    ev_io_stop(s->loop, &s->writable);
    ev_timer_stop(s->loop, &s->later);
    s->is_broken = 1;
    s->n_kept = s->n;
    if (stdout_error_code() != UNREAD && !s->n) {
        message_print("stdout: %s", reason);
    } else if (stdout_error_code() != UNREAD) {
        message_print("stdout: %s; not done: %u; they go back, no try used", reason, s->n_kept);
    }

    s->broken(s->broken_arg);
}

static enum step write_some(struct lines *s)
{
    struct line *line = s->first;
    ssize_t n;

    if (line->job && !line->sent && !lapse_job_until_ms(line->job)) {
        /* it waited here for so long that it is another's now, who will print it */
        put_back(s, line->job, "the lease ended while stdout was blocked", line->arg);
        drop(pop(s));
        return s->first ? MORE : NO_MORE;
    }

    n = output_write(&s->out, line->text + line->sent, line->len - line->sent);
    if (n < 0) {
        return errno == EINTR || errno == EAGAIN ? NOT_NOW : GONE;
    }

    line->sent += (size_t)n;

    if (line->sent == line->len) {
        pop(s);
        if (line->job) {
            lapse_done(line->job, s->settled, line->arg);
        }
        drop(line);
    }

    return s->first ? MORE : NO_MORE;
}

static void on_writable(struct ev_loop *loop, ev_io *w, int events)
{
    struct lines *s = w->data;
    enum step is = MORE;
    int n = 0;

    (void)events;
    for (; is == MORE && n < TURN; n++) {
        is = write_some(s);
    }

    if (is == GONE) {
        lines_give_up(s, strerror(errno));
    } else if (is == NOT_NOW && n == 1) {
        /* a terminal calls itself writable with less room than its next character takes */
        ev_io_stop(loop, w);
        ev_timer_again(loop, &s->later);
    }
}

static void on_later(struct ev_loop *loop, ev_timer *w, int events)
{
    struct lines *s = w->data;
    (void)events;
    ev_timer_stop(loop, w);
    ev_io_start(loop, &s->writable);
}

void lines_init(struct lines *s)
{
    s->first = NULL;
    s->last = &s->first;
    s->n = s->n_kept = 0;
    s->is_broken = 0;
    output_open(&s->out, 1);
    ev_io_init(&s->writable, on_writable, s->out.fd, EV_WRITE);
    ev_timer_init(&s->later, on_later, 0, LATER_S);
    s->writable.data = s->later.data = s;
}

static void append(struct lines *s, struct line *line)
{
    *s->last = line;
    s->last = &line->next;
    s->n += line->job != NULL;
    if (s->is_broken) {
        s->n_kept = s->n;
    } else if (!ev_is_active(&s->later)) {
        ev_io_start(s->loop, &s->writable);
    }
}

int lines_add_text(struct lines *s, char *text, size_t len)
{
    struct line *line = calloc(1, sizeof *line);

    if (!line) {
        free(text);
        return -1;
    }

    line->text = text;
    line->len = len;
    append(s, line);
    return 0;
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
    append(s, line);
}

void lines_free(struct lines *s)
{
    while (s->first) {
        struct line *line = pop(s);
        if (line->job) {
            lapse_done(line->job, NULL, NULL); /* cut loose by the close: this only frees it */
        }
        free(line->arg);
        drop(line);
    }

    output_close(&s->out);
}
