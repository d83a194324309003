/* SPDX-License-Identifier: MIT */
/* A client in another language, that of tools/examples, by functions and by the hashes of the
 * scripts. `make test` installs what it needs; where that is missing, these tests are skipped. */
#include "audit.h"
#include "tool.h"
#include <unistd.h>

static const char *path_of(char out[4200], const char *root, const char *file)
{
    snprintf(out, 4200, "%s/%s", root, file);
    return out;
}

static struct server *node_redis(bool by_function)
{
    char path[4200];

    if (access(path_of(path, test_build(), "node/node_modules/ioredis"), F_OK)) {
        cr_skip_test("ioredis is not installed: make test");
    }

    struct server *s = server_start_tcp(NULL);
    setenv("LAPSE_URL", s->tcp_url, 1);
    setenv("LAPSE", path_of(path, test_build(), "lapse"), 1);
    setenv("NODE_PATH", path_of(path, test_build(), "node/node_modules"), 1);
    if (by_function) {
        expect(lapse("functions", "--load"), 0, NULL, NULL);
        unsetenv("LAPSE_LUA");
    } else {
        setenv("LAPSE_LUA", path_of(path, test_build(), "lua"), 1);
    }
    return s;
}

static void node_runs(const char *file, const char *scenario, const char *out)
{
    char path[4200];
    struct proc *p =
        proc_start((const char *const[]){"node", path_of(path, test_root(), file), scenario, NULL});

    proc_wait(p, PROC_WAIT_MS);
    cr_assert_eq(p->status, 0, "%s: %s%s", scenario ? scenario : file, p->out, p->err);
    expect(p, 0, out, "");
}

/* In both ways, on a Redis of its own. */
static void plays(const char *scenario)
{
    for (int by_function = 0; by_function < 2; by_function++) {
        struct server *s = node_redis(by_function);

        node_runs("tests/cli/client.js", scenario, "");
        cr_assert_eq(audit(s, "lapse", "q", "n", "c", NULL), 0);
        server_stop(s);
    }
}

Test(node, example_does_what_it_says)
{
    for (int by_function = 0; by_function < 2; by_function++) {
        struct server *s = node_redis(by_function);

        node_runs("tools/examples/client.js", NULL, "waits: unpaid\nruns: 4711 unpaid\n");
        no_jobs(s, "orders");
        server_stop(s);
    }
}

Test(node, schedules_reschedules_cancels_and_gets)
{
    plays("jobs");
}

Test(node, claims_and_settles_and_a_stale_token_changes_nothing)
{
    plays("settles");
}

Test(node, writes_what_c_reads_and_would_have_written)
{
    plays("written");
}

Test(node, reads_what_c_has_written)
{
    plays("read");
}

Test(node, waits_while_the_queue_is_paused)
{
    plays("paused");
}

Test(node, schedules_a_job_that_a_listener_of_c_runs)
{
    plays("listened");
}
