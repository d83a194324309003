/* SPDX-License-Identifier: MIT */
/* A checker that accepts everything shows nothing: it must find the programs whose scripts lack a
 * guard (tests/meta/broken). */
#include "fault.h"
#include "process.h"
#include "test.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *guard, *row, *invariants; /* which of them may see it first */
} broken[] = {
    {"due", "f2/*", "I2"},         {"taken", "f3/*", "I3"},      {"token", "f5/a_settle*", "I4"},
    {"lease", "f5/a_lis*", "I12"}, {"busy", "f1/any*", "I3 I5"}, {"growth", "f32/tok*", "I3"},
    {"holder", "f32/a_h*", "I4"},
};
enum { N = sizeof broken / sizeof *broken };

static bool names(const char *out, const char *invariants)
{
    char all[40];
    char what[40];

    snprintf(all, sizeof all, "%s", invariants);
    for (char *rest = all, *one; (one = strtok_r(rest, " ", &rest));) {
        snprintf(what, sizeof what, "%s job ", one);
        if (strstr(out, what)) {
            return true;
        }
    }

    return false;
}

Test(broken, without_a_guard_the_history_is_refused_for_the_right_reason, .timeout = 300)
{
    struct proc *p[N];
    char dir[64];

    test_dir(dir, sizeof dir);
    setenv("LAPSE_HISTORY", dir, 1);
    /* a Criterion program that finds it takes itself for a test of this one */
    unsetenv("BXFI_MAP");
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* a test that fails leaves its things behind */

    for (int i = 0; i < N; i++) {
        char path[4096];
        char filter[40];
        snprintf(path, sizeof path, "%s/broken/%s/fault", test_build(), broken[i].guard);
        snprintf(filter, sizeof filter, "%s", broken[i].row);
        p[i] = proc_start((const char *const[]){path, "--filter", filter, NULL});
    }

    for (int i = 0; i < N; i++) {
        int status = proc_wait(p[i], 120000);
        cr_assert_eq(status, 1, "%s: status %d\n%s", broken[i].guard, status, p[i]->err);
        cr_assert(names(p[i]->err, broken[i].invariants), "%s: none of %s:\n%s", broken[i].guard,
                  broken[i].invariants, p[i]->err);
        proc_free(p[i]);
    }

    test_dir_remove(dir);
    fault_row("checker", "scripts without a guard: due, taken, token, lease, busy, growth, holder",
              "each such build refused, for the right reason", "%d of %d", N, N);
}
