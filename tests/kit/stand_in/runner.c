/* SPDX-License-Identifier: MIT */
/* In place of Criterion's runner, under valgrind: forks for each test, where Criterion executes the
 * program again, and valgrind takes a second to translate it each time. Tests, their assertions and
 * what is printed of them are Criterion's; of its options there are --filter and --jobs. */
#include <criterion/criterion.h>
#include <criterion/options.h>
#include <fnmatch.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* valgrind is some thirty times slower */
enum { TIMEOUT_S = 300, SKIPPED = 77, JOBS_MAX = 64 };

/* where the linker gathers what Test() and TestSuite() define; not every program has suites */
extern struct criterion_test *__start_cr_tst[], *__stop_cr_tst[];
__attribute__((weak)) extern struct criterion_suite *__start_cr_sts[], *__stop_cr_sts[];

/* of the test that this process runs */
static const struct criterion_test *running;
static const struct criterion_test_extra_data *running_suite;
static bool has_failed;

static const struct criterion_test_extra_data *suite_of(const struct criterion_test *test)
{
    for (struct criterion_suite **suite = __start_cr_sts; suite < __stop_cr_sts; suite++) {
        if (!strcmp((*suite)->name, test->category)) {
            return (*suite)->data;
        }
    }
    return NULL;
}

/* Test() defines a function that calls these three. */

void criterion_internal_test_setup(void)
{
    if (running_suite && running_suite->init) {
        running_suite->init();
    }
    if (running->data->init) {
        running->data->init();
    }
}

void criterion_internal_test_main(void (*test)(void))
{
    test();
}

void criterion_internal_test_teardown(void)
{
    if (running->data->fini) {
        running->data->fini();
    }
    if (running_suite && running_suite->fini) {
        running_suite->fini();
    }
}

/* What assertions call. */

void criterion_send_assert(struct criterion_assert_stats *assertion)
{
    if (!assertion->passed) {
        has_failed = true;
        printf("[----] %s:%u: Assertion Failed\n[----]   %s\n", assertion->file, assertion->line,
               assertion->message);
        fflush(stdout);
    }
}

void cri_asserts_passed_incr(void)
{
}

void criterion_continue_test(void)
{
}

void criterion_abort_test(void)
{
    exit(EXIT_FAILURE);
}

__attribute__((format(printf, 1, 2))) void criterion_skip_test(const char *format, ...)
{
    va_list args;

    printf("[SKIP] %s::%s: ", running->category, running->name);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    exit(SKIPPED);
}

static void run_here(const struct criterion_test *test)
{
    running = test;
    running_suite = suite_of(test);
    alarm(TIMEOUT_S);
    test->test();
    exit(has_failed ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* of the processes that run a test */
static struct run {
    pid_t pid;
    const struct criterion_test *test;
} runs[JOBS_MAX];
static unsigned runs_n;
static unsigned failed_n;

static void begin(const struct criterion_test *test)
{
    fflush(NULL);
    pid_t pid = fork();

    if (pid < 0) {
        perror("fork");
        exit(EXIT_FAILURE);
    }
    if (!pid) {
        run_here(test);
    }
    runs[runs_n++] = (struct run){pid, test};
}

static void judge(const struct criterion_test *test, int status)
{
    int by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;

    if (by == test->data->signal && (code == EXIT_SUCCESS || code == SKIPPED)) {
        return;
    }

    failed_n++;
    printf("[FAIL] %s::%s: ", test->category, test->name);
    if (by == SIGALRM) {
        printf("took longer than %d s\n", TIMEOUT_S);
    } else if (by) {
        printf("ended by signal %d\n", by);
    } else {
        printf("exit status %d\n", code);
    }
}

static void end_one(void)
{
    int status;
    pid_t pid = wait(&status);

    for (unsigned i = 0; i < runs_n; i++) {
        if (runs[i].pid == pid) {
            judge(runs[i].test, status);
            runs[i] = runs[--runs_n];
            return;
        }
    }
}

static bool is_chosen(const struct criterion_test *test, const char *filter)
{
    char name[256];
    snprintf(name, sizeof name, "%s/%s", test->category, test->name);
    return !filter || !fnmatch(filter, name, FNM_EXTMATCH);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"filter", required_argument, NULL, 'f'},
        {"jobs", required_argument, NULL, 'j'},
        {0},
    };
    const char *filter = NULL;
    unsigned jobs = 1;
    unsigned tests_n = 0;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'f': filter = optarg; break;
        case 'j': jobs = (unsigned)strtoul(optarg, NULL, 10); break;
        default: return 2;
        }
    }
    if (jobs < 1 || jobs > JOBS_MAX) {
        fprintf(stderr, "--jobs %u: it is 1 to %d\n", jobs, JOBS_MAX);
        return 2;
    }

    for (struct criterion_test **test = __start_cr_tst; test < __stop_cr_tst; test++) {
        if (!is_chosen(*test, filter)) {
            continue;
        }
        if (runs_n == jobs) {
            end_one();
        }
        begin(*test);
        tests_n++;
    }
    while (runs_n) {
        end_one();
    }

    printf("[====] Synthesis: Tested: %u | Passing: %u | Failing: %u\n", tests_n,
           tests_n - failed_n, failed_n);
    return failed_n > 0;
}
