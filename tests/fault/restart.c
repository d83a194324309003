/* SPDX-License-Identifier: MIT */
/* Redis dies and comes back with all it had, or with less, depending on its persistence. */
#include "workload.h"
#include "audit.h"
#include "process.h"
#include "redis.h"
#include "test.h"
#include <criterion/criterion.h>
#include <glob.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CYCLE_MS = 1000, RATE = 200 };

static struct work *begin(struct server *s, struct work_opts *o, long cycles, long down_ms)
{
    o->listeners = 3;
    o->per_s = RATE;
    o->jobs = cycles * (CYCLE_MS + down_ms / 2) * RATE / 1000;
    o->delay_ms = 3000;
    return work_start(s, o);
}

static long down_for(long most_ms)
{
    return 200 + random() % (most_ms - 200);
}

/* How long after its return all that fell due meanwhile was taken, ms. */
static int64_t until_caught_up(struct server *s, int64_t back_ms)
{
    int64_t by_ms = redis_now_ms(s);
    int64_t deadline = test_now_ms() + 20000;

    while (redis_int(s, "ZCOUNT lapse:{" WORK_QUEUE "}:due -inf %lld", (long long)by_ms) > 0) {
        cr_assert_lt(test_now_ms(), deadline, "what fell due while Redis was down does not run");
        poll(NULL, 0, 1);
    }
    return test_now_ms() - back_ms;
}

/* ---- F6 ---- */
Test(f6, a_redis_that_syncs_always_and_is_killed_loses_nothing, .timeout = 900)
{
    static const char *const args[] = {"--appendfsync", "always", NULL};
    struct server *s = server_start_opts(args);
    struct work_opts o = work_opts();
    long cycles = fault_n(4, 30);
    long most_ms = fault_n(1200, 3000);
    int64_t worst_ms = 0;
    struct work *w = begin(s, &o, cycles, most_ms);

    for (long i = 0; i < cycles; i++) {
        work_wait(w, CYCLE_MS);
        work_nemesis(w, "kill -9 of Redis");
        server_kill9(s);
        work_wait(w, (int)down_for(most_ms));
        server_restart(s);
        int64_t took = until_caught_up(s, test_now_ms());
        worst_ms = took > worst_ms ? took : worst_ms;
        redis_rewrite_log(s);
    }

    struct verdict v = work_end(w, 60000);
    fault_row("F6", "kill -9 of Redis, appendfsync always, down 0.2 to 3 s",
              "30 times: 0 lost; all overdue run within 500 ms of its return",
              "%ld times amid %ld jobs: 0 lost of %ld acknowledged; overdue run within %lld ms; "
              "%ld ran again",
              cycles, v.jobs, v.ok, (long long)worst_ms, v.twice);
    server_stop(s);
}

/* ---- F7 ---- */
enum { WINDOW_MS = 2000 };

Test(f7, a_redis_that_syncs_every_second_and_is_killed_loses_at_most_two_seconds, .timeout = 900)
{
    static const char *const args[] = {"--appendfsync", "everysec", NULL};
    struct server *s = server_start_opts(args);
    struct work_opts o = work_opts();
    long cycles = fault_n(4, 30);
    struct work *w = begin(s, &o, cycles, 400);

    for (long i = 0; i < cycles; i++) {
        work_wait(w, CYCLE_MS);
        work_nemesis(w, "kill -9 of Redis");
        int64_t since_ms = test_now_ms() - WINDOW_MS; /* before its end, however long that takes */
        server_kill9(s);
        /* it writes later while an fsync is under way */
        work_rolled_back(w, since_ms);
        work_wait(w, (int)down_for(400));
        server_restart(s);
        redis_rewrite_log(s);
    }

    struct verdict v = work_end(w, 60000);
    fault_row("F7a", "kill -9 of Redis, appendfsync everysec", "30 times: 0 lost",
              "%ld times amid %ld jobs: %ld lost of %ld acknowledged", cycles, v.jobs,
              v.lost_in_window, v.ok);
    server_stop(s);
}

/* The files of its log that Redis appends to, or has appended to. */
static glob_t logs_of(const struct server *s)
{
    char pattern[120];
    glob_t g;

    snprintf(pattern, sizeof pattern, "%s/appendonlydir/*.incr.aof", s->dir);
    cr_assert_eq(glob(pattern, 0, NULL, &g), 0, "%s", pattern);
    return g;
}

/* Cuts off what was not synced, as a power cut may; how many bytes that was. */
static long cut_power(struct server *s, const char *synced)
{
    char line[400];
    glob_t g = logs_of(s);
    long cut = 0;

    for (size_t i = 0; i < g.gl_pathc; i++) {
        long long size = 0;
        long long was = 0;
        FILE *f = fopen(synced, "r");
        cr_assert(f, "nothing was ever synced: is it preloaded?");
        while (fgets(line, sizeof line, f)) {
            line[strcspn(line, "\n")] = 0;
            if (strcmp(strchr(line, ' ') + 1, g.gl_pathv[i]) == 0) {
                size = strtoll(line, NULL, 10);
            }
        }
        fclose(f);
        f = fopen(g.gl_pathv[i], "r+");
        cr_assert(f && !fseek(f, 0, SEEK_END) && (was = ftell(f)) >= size &&
                  !ftruncate(fileno(f), size));
        fclose(f);
        cut += (long)(was - size);
    }

    globfree(&g);

    return cut;
}

Test(f7, a_power_cut_loses_at_most_two_seconds_and_leaves_no_half_job, .timeout = 900)
{
    static const char *const args[] = {"--appendfsync", "everysec", NULL};
    char dir[64];
    char synced[80];
    char preload[4096];
    struct work_opts o = work_opts();
    long cycles = fault_n(4, 30);
    long cut = 0;

    test_dir(dir, sizeof dir);
    snprintf(synced, sizeof synced, "%s/synced", dir);
    snprintf(preload, sizeof preload, "%s/preload/fsync.so", test_build());
    setenv("LD_PRELOAD", preload, 1); /* it affects only redis-server */
    setenv("LAPSE_SYNCED", synced, 1);

    struct server *s = server_start_opts(args);
    struct work *w = begin(s, &o, cycles, 400);
    for (long i = 0; i < cycles; i++) {
        work_wait(w, CYCLE_MS);
        work_nemesis(w, "power cut");
        int64_t since_ms = test_now_ms() - WINDOW_MS;
        server_kill9(s);
        work_rolled_back(w, since_ms);
        cut += cut_power(s, synced);
        work_wait(w, (int)down_for(400));
        server_restart(s);
        redis_rewrite_log(s);
    }

    unsetenv("LD_PRELOAD");

    struct verdict v = work_end(w, 60000);
    cr_assert_gt(cut, 0, "no byte was lost: no power cut at all");
    fault_row("F7b", "power cut, appendfsync everysec: the log cut to its last fdatasync",
              "30 times: lost only what was acknowledged less than 2 s before, no half-written job",
              "%ld times amid %ld jobs: %ld lost of %ld acknowledged, at most %.0f ms before; %ld "
              "bytes of log cut; audit 0",
              cycles, v.jobs, v.lost_in_window, v.ok, v.window_ms, cut);
    test_dir_remove(dir);
    server_stop(s);
}

/* ---- F8 ---- */
/* Since when Redis may have forgotten: the start of the last save that ended well. */
static int64_t kept_until_ms(struct server *s)
{
    char *info = redis_str(s, "INFO persistence");
    const char *at = strstr(info, "rdb_last_save_time:");
    const char *took = strstr(info, "rdb_last_bgsave_time_sec:");

    cr_assert(at && took);
    long long took_s = strtoll(strchr(took, ':') + 1, NULL, 10);
    int64_t saved_ms =
        (strtoll(strchr(at, ':') + 1, NULL, 10) - (took_s > 0 ? took_s : 0) - 1) * 1000;
    free(info);
    return test_now_ms() - (redis_now_ms(s) - saved_ms);
}

Test(f8, a_redis_that_saves_now_and_then_keeps_what_was_in_its_save, .timeout = 900)
{
    static const char *const args[] = {"--appendonly", "no", "--save", "1 1", NULL};
    struct server *s = server_start_opts(args);
    struct work_opts o = work_opts();
    long cycles = fault_n(2, 10);
    int64_t worst_ms = 0;
    struct work *w = begin(s, &o, 2 * cycles, 2 * CYCLE_MS);

    for (long i = 0; i < cycles; i++) {
        work_wait(w, 2 * CYCLE_MS + (int)(random() % CYCLE_MS));
        work_nemesis(w, "kill -9 of Redis");
        int64_t since_ms = kept_until_ms(s);
        server_kill9(s);
        work_rolled_back(w, since_ms);
        work_wait(w, (int)down_for(600));
        server_restart(s);
        int64_t took = until_caught_up(s, test_now_ms());
        worst_ms = took > worst_ms ? took : worst_ms;
    }

    struct verdict v = work_end(w, 60000);
    fault_row("F8", "kill -9 of Redis with snapshots only (save 1 1), which drop overdue triggers",
              "10 times: no job of the snapshot lost; overdue run within 500 ms",
              "%ld times amid %ld jobs: 0 of the snapshot lost (%ld younger ones, at most %.0f "
              "ms); overdue run within %lld ms",
              cycles, v.jobs, v.lost_in_window, v.window_ms, (long long)worst_ms);
    server_stop(s);
}

/* ---- F72 ---- */
/* The file that Redis appends to now. */
static void log_path(const struct server *s, char path[200])
{
    static const char name[] = "/appendonly.aof.";
    glob_t g = logs_of(s);
    long newest = 0;

    for (size_t i = 0; i < g.gl_pathc; i++) {
        long nth = strtol(strstr(g.gl_pathv[i], name) + strlen(name), NULL, 10);
        if (nth > newest) {
            newest = nth;
            snprintf(path, 200, "%s", g.gl_pathv[i]);
        }
    }

    globfree(&g);
}

static long size_of(const char *path)
{
    struct stat file;

    cr_assert_eq(stat(path, &file), 0, "%s", path);
    return (long)file.st_size;
}

static void schedule(struct server *s, const char *what, long i)
{
    char id[24];

    snprintf(id, sizeof id, "%s-%ld", what, i);
    struct proc *p =
        proc_run(NULL, "lapse", "-u", s->url, "schedule", "q", "--id", id, "--in", "1h", NULL);
    cr_assert_eq(p->status, 0, "%s", p->err);
    proc_free(p);
}

static bool is_there(struct server *s, const char *what, long i)
{
    return redis_int(s, "HEXISTS lapse:{q}:jobs %s-%lld", what, (long long)i);
}

Test(f72, of_a_script_at_which_the_log_ends_nothing_is_left_once_it_is_rewritten, .timeout = 600)
{
    static const char *const args[] = {"--appendfsync", "always", NULL};
    struct server *s = server_start_opts(args);
    long times = fault_n(10, 200);
    long lost = 0;
    char path[200];

    for (long i = 0; i < times; i++) {
        schedule(s, "before", i);
        log_path(s, path);
        long from = size_of(path);
        schedule(s, "cut", i);
        long to = size_of(path);

        server_kill9(s);
        cr_assert_eq(truncate(path, from + 1 + (to - from - 1) * i / times), 0);
        server_restart(s);
        redis_rewrite_log(s);
        bool is_lost = !is_there(s, "cut", i);
        lost += is_lost;
        schedule(s, "after", i);

        server_kill9(s);
        server_restart(s);
        cr_assert(is_there(s, "before", i) && is_there(s, "after", i));
        cr_assert_eq(!is_there(s, "cut", i), is_lost, "job cut-%ld came back", i);
        cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    }

    cr_assert_gt(lost, 0);
    fault_row("F72",
              "the log of Redis ends amid a script; it is rewritten, and Redis is killed again",
              "200 times: nothing of that script, and all of the others",
              "%ld ends, %ld jobs lost by them: none came back, no half of one", times, lost);
    server_stop(s);
}

/* ---- F9 ---- */
Test(f9, what_an_administrator_does_is_not_noticed, .timeout = 300)
{
    static const char *const act[] = {"DEBUG RELOAD",     "BGREWRITEAOF",     "SCRIPT FLUSH",
                                      "CONFIG RESETSTAT", "CONFIG SET hz 50", "MEMORY PURGE"};
    enum { N = sizeof act / sizeof *act };
    struct server *s = server_start();
    struct work_opts o = work_opts();
    long acts = fault_n(40, 100);
    long refused = 0;

    o.per_s = 1000;
    o.jobs = acts * 100;

    struct work *w = work_start(s, &o);
    for (long i = 0; i < acts; i++) {
        const char *what = act[random() % N];
        work_note(w, what);
        char *answer = redis_str(s, what);
        /* a rewrite is under way already */
        if (strncmp(answer, "ERR", 3) == 0) {
            refused++;
        }
        free(answer);
        work_wait(w, (int)(random() % 150));
    }

    struct verdict v = work_end(w, 60000);
    cr_assert_eq(v.ok, o.jobs, "%ld of %ld enqueues were told of it", o.jobs - v.ok, o.jobs);
    cr_assert_lt(refused, acts / 2);
    fault_row("F9", "reload, rewrite, SCRIPT FLUSH, RESETSTAT and the like",
              "100 acts: 0 lost, no error seen by a user",
              "%ld acts amid %ld jobs: 0 lost, 0 twice, 0 errors; max %.0f ms late", acts - refused,
              v.jobs, v.late_max_ms);
    server_stop(s);
}
