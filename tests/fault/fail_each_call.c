/* SPDX-License-Identifier: MIT */
/* F22, F23: every scenario with every fault at every place. LAPSE_SCENARIO=name plays one scenario,
 * LAPSE_INJECT=read:EINTR:3 one fault; a line that says what went wrong says both. */
#include "scenario.h"
#include "server.h"
#include "child.h"
#include "fault.h"
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SCENARIOS = 128, CULPRITS = 24, AT_ONCE = 4, PLAY_S = 60 };
enum outcome {
    PASSED,
    FAILED,
    DIED, /* hiredis or libev, of its own doing */
    LOST, /* likewise, a block of memory */
};
struct result { /* of one play */
    bool fired;
    long runs;
    enum outcome outcome;
    char reason[512], culprit[96];
};
struct tally {
    long plays, fired, failed, died, lost;
    struct {
        char name[96];
        long n;
    } culprits[CULPRITS];
    struct result last;
};
static struct result *result; /* in shared memory */

/* ---- in the process of one play ---- */
void play_fail(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(result->reason, sizeof result->reason, format, ap);
    va_end(ap);
    result->outcome = FAILED;
    result->fired = inject_fired();
    _exit(1);
}

static void on_failed(const char *what)
{
    play_fail("not so: %s", what);
}

void play_lost_outside(const char *by)
{
    result->outcome = LOST;
    snprintf(result->culprit, sizeof result->culprit, "a block of %s is lost", by);
}

/* Neither the C library's nor a sanitizer's. */
static bool is_beyond_libc(const Dl_info *info)
{
    return !strstr(info->dli_fname, "libc.so") && !strstr(info->dli_fname, "san.so");
}

/* It died in a library: which, where, and below which of its functions. */
static void blame_library(void *const *frames, int i, int n, Dl_info info)
{
    const char *file = strrchr(info.dli_fname, '/');
    const char *function = "?";
    void *library = info.dli_fbase;
    long offset = (char *)frames[i] - (char *)library;

    while (!info.dli_sname && i + 1 < n && dladdr(frames[i + 1], &info) &&
           info.dli_fbase == library) {
        i++;
    }
    if (info.dli_fbase == library && info.dli_sname) {
        function = info.dli_sname;
    }

    result->outcome = DIED;
    snprintf(result->culprit, sizeof result->culprit, "%s+%#lx under %s", file ? file + 1 : "?",
             offset, function);
}

/* The first object below libc and this handler is where it died. */
static void on_death(int sig)
{
    void *frames[48];
    int n = backtrace(frames, 48);
    int i = 2;
    Dl_info info;
    Dl_info self;

    result->fired = inject_fired();
    result->outcome = FAILED;
    snprintf(result->reason, sizeof result->reason, "signal %d", sig);

    dladdr((void *)(uintptr_t)on_death, &self);
    while (i < n && !(dladdr(frames[i], &info) && is_beyond_libc(&info))) {
        i++;
    }

    if (i < n && info.dli_fbase != self.dli_fbase) {
        blame_library(frames, i, n, info);
    } else {
        backtrace_symbols_fd(frames, n, STDERR_FILENO);
    }

    _exit(2);
}

static void watch_for_death(void)
{
    static const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE};
    void *frame[1];

    backtrace(frame, 1); /* loads what it needs while there is memory */
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        signal(signals[i], on_death);
    }
    signal(SIGALRM, SIG_DFL);
    alarm(PLAY_S);
}

static enum outcome play(const struct scenario *s, const struct injection *i, long nth,
                         unsigned seed)
{
    int status;

    *result = (struct result){.outcome = PASSED};

    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        watch_for_death();
        test_failed = on_failed;
        result->runs = play_scenario(s, i, nth, seed);
        result->fired = inject_fired();
        _exit(0);
    }

    waitpid(pid, &status, 0);

    if (result->outcome == PASSED && status) {
        bool hangs = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
        result->outcome = FAILED;
        result->fired = true;
        snprintf(result->reason, sizeof result->reason, "status %x%s", (unsigned)status,
                 hangs ? ": it hangs" : "");
    }

    return result->outcome;
}

/* ---- in the process of one scenario ---- */
static void count_culprit(struct tally *t, const char *name, long n)
{
    size_t k = 0;

    while (k < CULPRITS - 1 && *t->culprits[k].name && strcmp(t->culprits[k].name, name) != 0) {
        k++;
    }
    strcpy(t->culprits[k].name, name);
    t->culprits[k].n += n;
}

static void count(struct tally *t, const struct scenario *s, const struct injection *i, long nth)
{
    t->plays++;
    if (result->fired) {
        t->fired++;
    }

    switch (result->outcome) {
    case PASSED: break;
    case FAILED:
        t->failed++;
        fault_say("FAILED: LAPSE_SCENARIO=%s LAPSE_INJECT=%s:%s:%ld: %s (%s)", s->name, i->what,
                  i->name, nth, result->reason, result->fired ? "then" : "before that happened");
        break;
    case DIED:
        t->died++;
        count_culprit(t, result->culprit, 1);
        break;
    case LOST: t->lost++; count_culprit(t, result->culprit, 1);
    }
}

static bool asked_for(const struct injection *i, long *only)
{
    const char *want = getenv("LAPSE_INJECT");
    char name[64];
    int n = snprintf(name, sizeof name, "%s:%s:", i->what, i->name);
    *only = want && strncmp(want, name, (size_t)n) == 0 ? atol(want + n) : 0;
    return !want || *only;
}

/* Which faults are tried with a scenario, at which places: until there is no such place any
 * more. */
struct plan {
    const struct injection *faults;
    size_t n_faults;
    long step;  /* places n, n + step...; 0: places 1, 2, 3, 5, 8... */
    long every; /* one fault in so many, other ones for each scenario */
};

static void fail_at_each_place(struct tally *t, const struct scenario *s, const struct injection *f,
                               long first, long step)
{
    long nth = first;
    long before = 0;

    do {
        play(s, f, nth, (unsigned)nth);
        count(t, s, f, nth);

        long further = step;
        if (step == 0) {
            further = before ? before : 1;
        }
        before = nth;
        nth += further;
    } while (result->fired && t->failed < 3);
}

static void fail_each_call(struct tally *t, const struct scenario *s, size_t at,
                           const struct plan *p)
{
    for (size_t i = 0; i < p->n_faults; i++) {
        const struct injection *f = &p->faults[i];
        long only;

        if (!asked_for(f, &only)) {
            continue;
        }
        if (only) {
            play(s, f, only, (unsigned)only);
            count(t, s, f, only);
        } else if ((i + at) % (size_t)p->every == 0) {
            fail_at_each_place(t, s, f, p->step ? 1 + (long)at % p->step : 1, p->step);
        }
    }
}

static void run_scenario(struct tally *t, const struct scenario *s, size_t at, const struct plan *p)
{
    static const struct injection none = {"none", 0, ""};

    result = &t->last;
    play_server = s->tcp ? server_start_tcp(NULL) : server_start();
    inject_install();
    play(s, NULL, 0, 0);
    count(t, s, &none, 0);
    if (!t->failed) {
        fail_each_call(t, s, at, p);
    }

    server_stop(play_server);
}

/* ---- in the test ---- */
static size_t all_scenarios(const struct scenario **out)
{
    const struct scenario *tables[] = {scenarios_requests, scenarios_listening, scenarios_life};
    const char *only = getenv("LAPSE_SCENARIO");
    size_t n = 0;

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        for (const struct scenario *s = tables[i]; s->name; s++) {
            if (!only || strcmp(only, s->name) == 0) {
                out[n++] = s;
            }
        }
    }

    cr_assert(n > 0 && n <= SCENARIOS);

    return n;
}

static void add(struct tally *sum, const struct tally *one)
{
    sum->plays += one->plays;
    sum->fired += one->fired;
    sum->failed += one->failed;
    sum->died += one->died;
    sum->lost += one->lost;

    for (size_t i = 0; i < CULPRITS && one->culprits[i].n; i++) {
        count_culprit(sum, one->culprits[i].name, one->culprits[i].n);
    }
}

/* In processes of their own, a few at a time. Returns how many of these broke off. */
static size_t run_all(const struct scenario *const *scenarios, size_t n, struct tally *t,
                      const struct plan *p)
{
    size_t running = 0;
    size_t broken = 0;

    for (size_t i = 0; i < n || running > 0;) {
        if (i < n && running < AT_ONCE) {
            pid_t pid = fork();
            cr_assert(pid >= 0);
            if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                run_scenario(&t[i], scenarios[i], i, p);
                _exit(0);
            }
            running++;
            i++;
        } else {
            int status;
            wait(&status);
            running--;
            broken += status ? 1 : 0;
        }
    }

    return broken;
}

static size_t fail_at_all_places(const struct plan *p, struct tally *sum)
{
    const struct scenario *scenarios[SCENARIOS];
    size_t n = all_scenarios(scenarios);
    struct tally *t = shared_new(n * sizeof *t);
    size_t broken = run_all(scenarios, n, t, p);

    *sum = (struct tally){.plays = 0};

    for (size_t i = 0; i < n; i++) {
        if (fault_full()) {
            fault_say("%s: %ld plays, %ld faults, %ld died outside", scenarios[i]->name, t[i].plays,
                      t[i].fired, t[i].died);
        }
        add(sum, &t[i]);
    }
    shared_free(t, n * sizeof *t);

    for (size_t i = 0; i < CULPRITS && sum->culprits[i].n; i++) {
        fault_say("hiredis: %s: %ld times", sum->culprits[i].name, sum->culprits[i].n);
    }
    cr_assert(sum->failed == 0 && broken == 0, "%ld of %ld plays failed; %zu scenarios broke off",
              sum->failed, sum->plays, broken);

    return n;
}

Test(f22, each_allocation_of_each_scenario_may_fail, .timeout = 3600)
{
    static const struct injection alloc[] = {{"alloc", 0, "NULL"}};
    struct tally t;
    size_t n = fail_at_all_places(&(struct plan){alloc, 1, 1, 1}, &t);

    cr_assert_eq(t.died + t.lost, 0);
    fault_row("F22", "an allocation of lapse fails",
              "every one in >= 60 scenarios: no crash, no leak, no lie, it goes on",
              "%zu scenarios, %ld allocations failed, each alone: all hold", n, t.fired);
}

Test(f22, one_allocation_in_a_hundred_may_fail_for_long, .timeout = 1800)
{
    static const struct injection alloc = {"alloc", 0, "NULL"};
    long n = fault_n(1, 60);
    long runs = 0;

    result = shared_new(sizeof *result);
    play_server = server_start();
    inject_install();

    for (long seed = 1; seed <= n; seed++) {
        cr_assert_eq(play(&scenario_random, &alloc, -100, (unsigned)seed), PASSED, "seed %ld: %s",
                     seed, result->reason);
        cr_assert(result->fired);
        runs += result->runs;
    }

    server_stop(play_server);
    fault_row("F22", "1 % of lapse's allocations fail, at random", "10 minutes: the same",
              "%ld s, %ld jobs run: all hold", n * fault_n(5, 10), runs);
}

/* What dies within hiredis dies of it: 0.14.1 calls abort() for some of its allocations, does not
 * look at what others gave it, and forgets one block where the text of a command finds no room.
 * What it survives, we survive. */
Test(f22, each_allocation_of_hiredis_may_fail_where_it_survives, .timeout = 3600)
{
    static const struct injection hiredis[] = {{"hiredis", 0, "NULL"}};
    struct tally t;
    size_t n = fail_at_all_places(&(struct plan){hiredis, 1, fault_n(40, 1), 1}, &t);

    fault_row("F22", "an allocation of hiredis fails", "our side holds where hiredis does",
              "%zu scenarios, %ld allocations failed: all hold but %ld times that hiredis itself "
              "crashed, and %ld that it lost a block",
              n, t.fired, t.died, t.lost);
}

Test(f23, each_system_call_of_each_scenario_may_fail, .timeout = 7200)
{
    struct tally t;
    size_t n_faults = 0;

    while (inject_calls[n_faults].what) {
        n_faults++;
    }

    size_t n = fail_at_all_places(&(struct plan){inject_calls, n_faults, 0, fault_n(8, 1)}, &t);
    cr_assert_eq(t.died + t.lost, 0);
    fault_row("F23", "a system call fails",
              ">= 40 errors in every scenario: no crash, no descriptor lost, nothing lost",
              "%zu scenarios, %zu errors, %ld calls failed: all hold", n, n_faults, t.fired);
}
