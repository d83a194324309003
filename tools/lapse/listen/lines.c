/* SPDX-License-Identifier: MIT */
/* Due jobs as lines on stdout. A reader that is slow, or a terminal that was stopped, must not stop
 * the loop, which renews the leases and receives the signals: nothing here waits, and lines that
 * are not taken stay here while their jobs are held. Those count as running, so that no more than
 * max_running are ever claimed. When the reader is gone, jobs whose line was not written completely
 * stay here unsettled until the end of the handle gives them back: nobody has seen them, so they
 * have used no try. */
#include "listen/lines.h"
#include "cli/message.h"
#include "cli/print.h"
#include "cli/stdout.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TURN_WRITES = 64 }; /* before the loop gets its turn */
#define LATER_S 0.02
enum step { MORE, NO_MORE, NOT_NOW, GONE };

struct line {
    struct line *next;
    struct lapse_job *job; /* NULL: of none */
    void *arg;
    char *text; /* from open_memstream() */
    size_t len, sent;
};

/* ---- a line ---- */
static void line_free(struct line *line)
{
    free(line->text);
    free(line);
}

static struct line *lines_pop(struct lines *s)
{
    struct line *line = s->first;

    s->first = line->next;
    if (line->job) {
        s->n_jobs--;
    }

    if (!s->first) {
        s->last = &s->first;
        ev_io_stop(s->loop, &s->writable);
        ev_timer_stop(s->loop, &s->later);
    }

    return line;
}

static void lines_push(struct lines *s, struct line *line)
{
    *s->last = line;
    s->last = &line->next;
    if (line->job) {
        s->n_jobs++;
    }

    if (s->is_broken) {
        s->n_unsettled = s->n_jobs;
    } else if (!ev_is_active(&s->later)) {
        ev_io_start(s->loop, &s->writable);
    }
}

static void lines_retry_job(struct lines *s, struct lapse_job *job, const char *reason, void *arg)
{
    lapse_retry(job, LAPSE_BACKOFF, reason, s->settled, arg);
}

/* ---- writing ---- */
void lines_give_up(struct lines *s, const char *reason)
{
    if (!s->first || s->is_broken) {
        return;
    }

    ev_io_stop(s->loop, &s->writable);
    ev_timer_stop(s->loop, &s->later);
    s->is_broken = true;
    s->n_unsettled = s->n_jobs;

    if (stdout_error_code() != UNREAD) {
        if (s->n_jobs) {
            message_print("stdout: %s; returning %u job%s to the queue without using a try", reason,
                          s->n_jobs, s->n_jobs == 1 ? "" : "s");
        } else {
            message_print("stdout: %s", reason);
        }
    }

    s->broken(s->broken_arg);
}

static enum step lines_write_some(struct lines *s)
{
    struct line *line = s->first;
    ssize_t n;

    if (line->job && !line->sent && !lapse_job_until_ms(line->job)) {
        /* it waited for so long that another listener has the job now, and will print it */
        lines_retry_job(s, line->job, "the lease ended while stdout was blocked", line->arg);
        line_free(lines_pop(s));
        return s->first ? MORE : NO_MORE;
    }

    n = output_write(&s->out, line->text + line->sent, line->len - line->sent);
    if (n < 0) {
        return errno == EINTR || errno == EAGAIN ? NOT_NOW : GONE;
    }

    line->sent += (size_t)n;

    if (line->sent == line->len) {
        lines_pop(s);
        if (line->job) {
            lapse_done(line->job, s->settled, line->arg);
        }
        line_free(line);
    }

    return s->first ? MORE : NO_MORE;
}

static void on_writable(struct ev_loop *loop, ev_io *w, int events)
{
    struct lines *s = w->data;
    enum step step = MORE;
    int n = 0;

    (void)events;
    for (; step == MORE && n < TURN_WRITES; n++) {
        step = lines_write_some(s);
    }

    if (step == GONE) {
        lines_give_up(s, strerror(errno));
    } else if (step == NOT_NOW && n == 1) {
        /* a terminal calls itself writable even where its next character does not fit */
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

/* ---- adding ---- */
bool lines_add_text(struct lines *s, char *text, size_t len)
{
    struct line *line = calloc(1, sizeof *line);

    if (!line) {
        free(text);
        return false;
    }

    line->text = text;
    line->len = len;
    lines_push(s, line);

    return true;
}

/* False: out of memory. */
static bool line_print(struct line *line, const struct globals *g, const struct lapse_job *job)
{
    FILE *to = open_memstream(&line->text, &line->len);
    bool failed;

    if (!to) {
        return false;
    }

    print_fired(g, job, to);
    failed = ferror(to);

    return fclose(to) == 0 && !failed;
}

void lines_add_job(struct lines *s, struct lapse_job *job, void *arg)
{
    struct line *line = calloc(1, sizeof *line);

    if (!line || !line_print(line, s->g, job)) {
        lines_retry_job(s, job, "the listener is out of memory", arg);
        if (line) {
            line_free(line);
        }
        return;
    }

    line->job = job;
    line->arg = arg;
    lines_push(s, line);
}

/* ---- the life of all ---- */
void lines_init(struct lines *s)
{
    s->first = NULL;
    s->last = &s->first;
    s->n_jobs = 0;
    s->n_unsettled = 0;
    s->is_broken = false;

    output_open(&s->out, 1);
    ev_io_init(&s->writable, on_writable, s->out.fd, EV_WRITE);
    ev_timer_init(&s->later, on_later, 0, LATER_S);
    s->writable.data = s;
    s->later.data = s;
}

void lines_free(struct lines *s)
{
    while (s->first) {
        struct line *line = lines_pop(s);

        if (line->job) {
            lapse_done(line->job, NULL, NULL); /* after the close this only frees it */
        }
        free(line->arg);
        line_free(line);
    }

    output_close(&s->out);
}
