/* SPDX-License-Identifier: MIT */
/* Pages that were edited are indexed in bulk: many at once is cheaper than one by one. The edits of
 * a shop are gathered, and indexed when none has come for a while, or when there are enough.
 *
 *     lapse dev                              prints the URL of a Redis to try things on
 *     LAPSE_URL=unix://... bulk_index        in another terminal
 *
 * Seven pages are edited; five are indexed at once, and then the others. The index takes all of
 * them but page 3, which it refuses the first time.
 *
 * A job has many pages and is settled as a whole. If it were retried as a whole, the pages that the
 * index has taken would be sent again. So those that failed are gathered again, and then the job is
 * done: in this order, since a crash in between has them twice, and the other order might lose
 * them. They meet the pages that were edited meanwhile, and each page counts its tries itself: here
 * as the first letter of the part. */
#include <ev.h>
#include <lapse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGES = 7, AT_ONCE = 5, QUIET_MS = 100, TRIES = 5 };

static unsigned n_indexed;

static void check(int err, const char *what)
{
    if (err) {
        fprintf(stderr, "bulk_index: %s: %s\n", what, lapse_strerror(err));
        exit(1);
    }
}

static void on_log(int level, const char *line, void *arg)
{
    (void)level;
    (void)arg;
    fprintf(stderr, "bulk_index: %s\n", line);
}

/* ---- a page was edited ---- */
/* A part: its try, and the page. */
static void gather(struct lapse *l, int try, const char *page, lapse_cb *fn, void *arg)
{
    struct lapse_gather limits = lapse_gather_init();
    struct lapse_spec edit = lapse_spec_init();
    char part[64];

    limits.quiet_ms = QUIET_MS;
    limits.most = AT_ONCE;
    snprintf(part, sizeof part, "%d%s", try, page);

    edit.queue = "index";
    edit.id = "shop-1"; /* the group */
    edit.on_conflict = LAPSE_GATHER;
    edit.gather = &limits;
    edit.body = part;
    edit.body_len = strlen(part);
    check(lapse_schedule(l, &edit, fn, arg), "gathering a page");
}

static void on_gathered(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)job;
    (void)arg;
    check(err, "gathering a page");
}

/* ---- the index ---- */
static int index_takes(const char *page, int try)
{
    return strcmp(page, "page 3") != 0 || try > 1;
}

/* ---- pages are to be indexed ---- */
/* Of one job: it is done when all pages that failed are in Redis again. */
struct bulk {
    struct lapse_job *job;
    unsigned n_waiting; /* answers to these pages */
    int err;            /* of one of them */
};

static void on_settled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)job;
    (void)arg;
    if (err) {
        printf("settling a job: %s\n", lapse_strerror(err)); /* it runs again */
    }
    if (n_indexed == PAGES) {
        lapse_close(l, 1000, NULL, NULL); /* a service would go on */
    }
}

static void settle(struct bulk *b)
{
    if (b->n_waiting > 0) {
        return;
    }

    if (b->err) {
        lapse_retry(b->job, LAPSE_BACKOFF, lapse_strerror(b->err), on_settled, NULL);
    } else {
        lapse_done(b->job, on_settled, NULL);
    }
    free(b);
}

static void on_gathered_again(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct bulk *b = arg;

    (void)l;
    (void)job;
    b->n_waiting--;
    b->err = err ? err : b->err;
    settle(b);
}

static void try_page(struct lapse *l, struct bulk *b, const char *part, size_t len)
{
    char page[64];
    int try = part[0] - '0';

    snprintf(page, sizeof page, "%.*s", (int)len - 1, part + 1);
    if (index_takes(page, try)) {
        printf("  %s\n", page);
        n_indexed++;
    } else if (try < TRIES) {
        printf("  %s failed: it is gathered again\n", page);
        b->n_waiting++;
        gather(l, try + 1, page, on_gathered_again, b);
    } else {
        printf("  %s failed too often\n", page); /* one for your log */
    }
}

static void on_pages(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct bulk *b = calloc(1, sizeof *b);
    const char *part;
    size_t len;

    (void)arg;
    check(b ? 0 : LAPSE_ENOMEM, "a job");
    b->job = job;
    printf("%s: %u pages\n", lapse_job_series(job), lapse_job_parts(job));
    for (unsigned i = 0; (part = lapse_job_part(job, i, &len)); i++) {
        try_page(l, b, part, len);
    }
    settle(b);
}

int main(int argc, char **argv)
{
    struct ev_loop *loop = EV_DEFAULT;
    struct lapse_options options = lapse_options_init();
    struct lapse *l;

    setvbuf(stdout, NULL, _IOLBF, 0);
    options.url = argc > 1 ? argv[1] : getenv("LAPSE_URL");
    options.log = on_log;
    check(lapse_open(&l, loop, &options), "opening");
    check(lapse_listen(l, "index", NULL, on_pages, NULL), "listening");

    for (int i = 1; i <= PAGES; i++) {
        char page[16];
        snprintf(page, sizeof page, "page %d", i);
        gather(l, 1, page, on_gathered, NULL);
    }

    ev_run(loop, 0); /* returns when the handle is closed */

    return 0;
}
