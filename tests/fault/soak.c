/* SPDX-License-Identifier: MIT */
/* All faults, at random, for long: shows what needs two faults at once, and what leaks. */
#include "workload.h"
#include "proxy.h"
#include "redis.h"
#include "test.h"
#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CREW = 4, THE_OLD_ONE = 3, LEASE_MS = 2000, RATE = 200 };

struct soak {
    struct server *server;
    struct proxy *proxy;
    struct work *w;
    long strikes;
};

static long between(long least, long most)
{
    return least + random() % (most - least + 1);
}

static void kill_a_listener(struct soak *k)
{
    work_kill(k->w, (int)between(0, THE_OLD_ONE - 1));
}

static void replace_a_listener(struct soak *k)
{
    work_replace(k->w, (int)between(0, THE_OLD_ONE - 1));
}

static void pause_a_listener(struct soak *k)
{
    int i = (int)between(0, CREW - 1);
    work_signal(k->w, i, SIGSTOP);
    work_wait(k->w, (int)between(LEASE_MS / 2, 3 * LEASE_MS));
    work_signal(k->w, i, SIGCONT);
}

static void restart_redis(struct soak *k)
{
    work_nemesis(k->w, "kill -9 of Redis");
    server_kill9(k->server);
    work_wait(k->w, (int)between(100, 2000));
    server_restart(k->server);
    redis_rewrite_log(k->server);
}

static void administrate(struct soak *k)
{
    static const char *const act[] = {"DEBUG RELOAD", "BGREWRITEAOF", "SCRIPT FLUSH",
                                      "CONFIG RESETSTAT"};
    const char *what = act[between(0, 3)];
    work_note(k->w, what);
    free(redis_str(k->server, what)); /* a rewrite may be under way */
}

static void cut_connections(struct soak *k)
{
    work_nemesis(k->w, "CLIENT KILL");
    redis_do(k->server, "CLIENT KILL TYPE pubsub");
    redis_do(k->server, "CLIENT KILL TYPE normal SKIPME yes");
}

static void cut_in_a_reply(struct soak *k)
{
    work_nemesis(k->w, "a cut in the middle");
    proxy_cut_after(k->proxy, random() % 2 ? PROXY_UP : PROXY_DOWN, between(1, 5000));
}

static void swallow(struct soak *k)
{
    work_nemesis(k->w, "a wire that swallows");
    proxy_swallow(k->proxy, true);
    work_wait(k->w, (int)between(500, 4000));
    proxy_heal(k->proxy);
}

static void slow_down(struct soak *k)
{
    work_nemesis(k->w, "a slow wire");
    proxy_delay(k->proxy, (int)between(50, 1000));
    work_wait(k->w, (int)between(500, 3000));
    proxy_delay(k->proxy, 0);
}

static void delete_triggers(struct soak *k)
{
    work_note(k->w, "no triggers");
    redis_do(k->server, "EVAL %s 0",
             "for _, k in ipairs(redis.call('KEYS', 'lapse:{q}:t:*')) do redis.call('DEL', k) end");
}

static void forge_events(struct soak *k)
{
    work_note(k->w, "forged events");
    for (int i = 0; i < 1000; i++) {
        redis_do(k->server, "PUBLISH __keyevent@0__:expired lapse:{q}:t:p%d.0-%ld", i % 2,
                 between(0, 20000));
    }
}

static void (*const strike[])(struct soak *) = {
    kill_a_listener, replace_a_listener, pause_a_listener, restart_redis,
    administrate,    cut_connections,    cut_in_a_reply,   swallow,
    slow_down,       delete_triggers,    forge_events,
};

static long rss_kib(pid_t pid)
{
    char path[64];
    long pages = 0;

    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *f = fopen(path, "r");
    cr_assert(f && fscanf(f, "%*d %ld", &pages) == 1);
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static int fds_of(pid_t pid)
{
    char path[64];
    int n = -2; /* . and .. */

    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    cr_assert(d);
    while (readdir(d)) {
        n++;
    }

    closedir(d);
    return n;
}

static struct work_opts soak_opts(const struct soak *k, long seconds)
{
    struct work_opts o = work_opts();
    const char *seed = getenv("LAPSE_SEED");

    o.seed = seed ? (unsigned)strtoul(seed, NULL, 10) : 1;
    o.listener_url = k->proxy->url;
    o.listeners = CREW;
    o.direct = 2;
    o.per_s = RATE;
    o.jobs = seconds * RATE;
    o.delay_ms = 3000;
    o.hold_ms = 200;
    o.retry = o.cancel = o.reschedule = 20;
    o.fail = 2;
    o.lapse.lease_ms = LEASE_MS;
    o.lapse.sweep_ms = 1000;
    return o;
}

/* Strikes until all is asked. Returns the memory of the old one after a fifth of the time. */
static long strike_for(struct soak *k, long seconds)
{
    int64_t start_ms = test_now_ms();
    int64_t told_ms = start_ms;
    long warm_kib = 0;

    while (!work_asked_all(k->w)) {
        work_wait(k->w, (int)(fault_full() ? between(5000, 20000) : between(200, 600)));
        strike[random() % (long)(sizeof strike / sizeof *strike)](k);
        k->strikes++;

        int64_t now_ms = test_now_ms();
        if (!warm_kib && now_ms - start_ms > seconds * 200) {
            warm_kib = rss_kib(work_pid(k->w, THE_OLD_ONE));
        }
        if (now_ms - told_ms > 60000) {
            told_ms = now_ms;
            fault_say("soak: %lld s, %ld faults, %ld runs", (long long)(now_ms - start_ms) / 1000,
                      k->strikes, work_starts(k->w));
        }
    }

    work_wait(k->w, 3 * LEASE_MS);
    return warm_kib;
}

Test(f28, any_faults_for_long_lose_nothing_and_leak_nothing, .timeout = 36000)
{
    /* "everysec" writes later while an fsync is under way, and kill -9 then loses what was
     * acknowledged */
    static const char *const args[] = {"--appendfsync", "always", NULL};
    struct server *s = server_start_opts(args);
    struct soak k = {.server = s, .proxy = proxy_start(s)};
    const char *asked = getenv("LAPSE_SOAK_S");
    long seconds = asked ? strtol(asked, NULL, 10) : fault_n(12, 3600);
    struct work_opts o = soak_opts(&k, seconds);

    srandom(o.seed);
    k.w = work_start(s, &o);
    work_nemesis(k.w, "any faults from here on; a lease may end by itself on a busy machine");

    int fds = fds_of(work_pid(k.w, THE_OLD_ONE));
    long warm_kib = strike_for(&k, seconds);
    long grown_kib = rss_kib(work_pid(k.w, THE_OLD_ONE)) - warm_kib;
    int more_fds;

    /* a connection may be on its way */
    for (int64_t end_ms = test_now_ms() + 10000;
         (more_fds = fds_of(work_pid(k.w, THE_OLD_ONE)) - fds) != 0 && test_now_ms() < end_ms;) {
        work_wait(k.w, 5);
    }

    struct verdict v = work_end(k.w, 120000);
    cr_assert_eq(more_fds, 0, "%d descriptors more than at the start", more_fds);
    fault_row("F28",
              "any of these at random: kills, pauses, restarts, cuts, swallowed and slow bytes, "
              "forged events",
              "1 h, 720,000 jobs: 0 lost; at most 1 MiB more memory, no descriptor more",
              "%ld s, %ld faults, %ld jobs: 0 lost of %ld acknowledged; %ld runs again; %+ld KiB, "
              "%+d descriptors",
              seconds, k.strikes, v.jobs, v.ok, v.twice, grown_kib, more_fds);
    proxy_stop(k.proxy);
    server_stop(s);
}
