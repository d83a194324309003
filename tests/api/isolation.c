/* SPDX-License-Identifier: MIT */
/* Queues, databases and spaces do not meet; bodies come back byte for byte. */
#include "audit.h"
#include "handler.h"

FLOW_ALL_MODES(isolation, many_queues_of_one_listener_run_their_own_jobs)
{
    enum { QUEUES = 8, EACH = 15 };
    static const char *const names[QUEUES] = {"a", "b", "A", "a.b", "a-b", "a_b", "0", "a.b.c"};
    struct flow *f = flow_start(mode);
    struct flow_handler w[QUEUES];
    size_t settled = 0;

    for (int q = 0; q < QUEUES; q++) {
        w[q] = (struct flow_handler){.way = FLOW_DONE};
        flow_listen(f, names[q], &w[q]);
    }

    for (int i = 0; i < EACH; i++) {
        for (int q = 0; q < QUEUES; q++) {
            char id[16];
            snprintf(id, sizeof id, "%d", i);
            cr_assert_eq(flow_schedule(f, names[q], id, i % 5 * 25, NULL), 0);
        }
    }

    for (int q = 0; q < QUEUES; q++) {
        flow_until(f, w[q].settled == EACH);
        settled += w[q].settled;
        flow_each_once(&w[q], EACH);
        for (int i = 0; i < EACH; i++) {
            cr_assert_str_eq(w[q].runs[i].job.queue, names[q]);
        }
    }

    cr_assert_eq(settled, QUEUES * EACH);
    flow_end(f, "a", "b", "A", "a.b", "a-b", "a_b", "0", "a.b.c");
}

FLOW_ALL_MODES(isolation, two_databases_with_the_same_queue_and_ids)
{
    place_not_in_cluster("there is one database");

    enum { N = 12 };
    struct flow *f = flow_bare(mode, NULL);
    struct lapse_options opts = flow_options(f);
    struct flow_handler w[2] = {{.way = FLOW_DONE}, {.way = FLOW_DONE}};
    struct lapse *l[2];
    char url[160];

    snprintf(url, sizeof url, "%s?db=3", f->server->url);
    l[0] = flow_open(f, &opts);
    opts.url = url;
    l[1] = flow_open(f, &opts);

    for (int db = 0; db < 2; db++) {
        f->l = l[db];
        flow_listen(f, "q", &w[db]);
        for (int i = 0; i < N; i++) {
            struct lapse_spec s = flow_job_spec("q", NULL, i % 4 * 30);
            char id[8];
            snprintf(id, sizeof id, "%d", i);
            s.id = id;
            s.body = db ? "three" : "zero";
            s.body_len = db ? 5 : 4;
            cr_assert_eq(flow_spec(f, &s, NULL), 0);
        }
    }

    for (int db = 0; db < 2; db++) {
        flow_until(f, w[db].settled == N);
        flow_each_once(&w[db], N);
        for (int i = 0; i < N; i++) {
            cr_assert_str_eq(w[db].runs[i].job.body, db ? "three" : "zero");
        }
    }

    flow_close(f, l[1], 5000);
    redis_do(f->server, "SELECT 3");
    cr_assert_eq(audit(f->server, "lapse", "q", NULL), 0);
    redis_do(f->server, "SELECT 0");
    flow_end(f, "q");
}

FLOW_ALL_MODES(isolation, two_spaces_with_the_same_queue_and_ids)
{
    enum { N = 12 };
    static const char *const spaces[2] = {"lapse", "lapse2"};
    struct flow *f = flow_bare(mode, NULL);
    struct flow_handler w[2] = {{.way = FLOW_DONE}, {.way = FLOW_DONE}};

    server_allow(f->server, "~lapse2:{*}:* &lapse2:{*}:notice:* &lapse2:{}:wake:*");

    for (int k = 0; k < 2; k++) {
        struct lapse_options opts = flow_options(f);
        opts.space = spaces[k];
        f->l = flow_open(f, &opts);
        flow_listen(f, "q", &w[k]);
        for (int i = 0; i < N; i++) {
            struct lapse_spec s = flow_job_spec("q", NULL, i % 4 * 30);
            char id[8];
            snprintf(id, sizeof id, "%d", i);
            s.id = id;
            s.body = spaces[k];
            s.body_len = strlen(spaces[k]);
            cr_assert_eq(flow_spec(f, &s, NULL), 0);
        }
    }

    for (int k = 0; k < 2; k++) {
        flow_until(f, w[k].settled == N);
        flow_each_once(&w[k], N);
        for (int i = 0; i < N; i++) {
            cr_assert_str_eq(w[k].runs[i].job.body, spaces[k]);
        }
    }

    while (f->n_open) {
        flow_close(f, f->handles[0], 5000);
    }

    cr_assert_eq(audit(f->server, "lapse2", "q", NULL), 0);
    flow_end(f, "q");
}

Test(isolation, bodies_of_any_bytes_and_sizes_reach_the_handler)
{
    static const size_t sizes[] = {0,     1,      2,      255,     256,     4096,
                                   65537, 262143, 262145, 1 << 20, 1 << 20, 1 << 20};
    enum { N = sizeof sizes / sizeof *sizes };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    unsigned char *bytes = malloc(N + (1 << 20));

    cr_assert(bytes);
    for (size_t i = 0; i < N + (1 << 20); i++) {
        bytes[i] = (unsigned char)(i * 31 >> 3); /* each byte value, NUL among them */
    }

    for (size_t i = 0; i < N; i++) {
        char id[8];
        snprintf(id, sizeof id, "%zu", i);
        struct lapse_spec s = flow_job_spec("q", id, i % 2 ? 0 : 30);
        s.body = sizes[i] ? bytes + i : NULL;
        s.body_len = sizes[i];
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }

    flow_listen(f, "q", &w);
    flow_until(f, w.settled == N);
    flow_each_once(&w, N);

    for (size_t k = 0; k < N; k++) {
        size_t i = strtoul(w.runs[k].job.id, NULL, 10);
        cr_assert_eq(w.runs[k].job.body_len, sizes[i]);
        cr_assert_eq(memcmp(w.runs[k].job.body, bytes + i, sizes[i]), 0, "body %zu", i);
    }

    free(bytes);
    flow_end(f, "q");
}

/* The strangest letters that an id may have, byte for byte, also in events and wakes. */
FLOW_ALL_MODES(isolation, ids_of_all_allowed_letters_run_once)
{
    enum { LONGEST = 255 };
    static const char *const odd[] = {"-rf", "$(x)", ";ls",  "%s%n", "*",  "?",  "[a]", "\\",
                                      "\"",  "'",    "due",  "run",  "0",  "-1", "nan", "members",
                                      ":",   "t:",   "../x", "a|b",  "<>", "&",  "~",   "^"};
    enum { ODD = sizeof odd / sizeof *odd };
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    char all[128];
    char longest[LONGEST + 1];
    size_t n = 0;

    for (char c = '!'; c <= '~'; c++) {
        if (c != '{' && c != '}') {
            all[n++] = c;
        }
    }

    all[n] = 0;
    memset(longest, 'x', LONGEST);
    longest[LONGEST] = 0;
    flow_listen(f, "q", &w);
    for (size_t i = 0; i < ODD; i++) {
        cr_assert_eq(flow_schedule(f, "q", odd[i], i % 2 ? 0 : 50, NULL), 0);
    }

    cr_assert_eq(flow_schedule(f, "q", all, 50, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", longest, 50, NULL), 0);
    flow_until(f, w.settled == ODD + 2);
    flow_each_once(&w, ODD + 2);
    for (size_t i = 0; i < ODD; i++) {
        cr_assert_eq(flow_runs_of(&w, odd[i]), 1, "%s", odd[i]);
    }

    cr_assert_eq(flow_runs_of(&w, all) + flow_runs_of(&w, longest), 2);
    flow_end(f, "q");
}
