/* SPDX-License-Identifier: MIT */
#include "bench.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { AN_HOUR_MS = 3600000, PUTS_BETWEEN_WAITS = 100 };

struct planned_put {
    int64_t put_us, due_ms, number;
};

void put_numbered(const struct system *system, const char *kind, int64_t number, int64_t due_ms)
{
    char id[ID_LEN + 24];
    char body[BODY_LEN + 1];

    snprintf(id, sizeof id, "%.*s%016" PRId64, KIND_LEN, kind, number);
    snprintf(body, sizeof body, "%-*s", BODY_LEN, "a hundred bytes, as everybody measures with");
    system->put(id, body, due_ms);
}

int produce_bulk(const struct system *system, const char *kind, int64_t step_us, int64_t first_ms)
{
    int64_t n = argument_required("n");
    int64_t from = argument_int("from", 0);
    int64_t start_us = now_us();

    for (int64_t i = 0; i < n; i++) {
        put_numbered(system, kind, from + i, first_ms + i * step_us / 1000);
        if ((i + 1) % PUTS_BETWEEN_WAITS == 0) {
            system->wait(system->window);
        }
    }

    system->wait(0);

    double took_s = (double)(now_us() - start_us) / 1e6;
    figure("s", took_s);
    figure("jobs_s", (double)n / took_s);

    return 0;
}

int produce_singly(const struct system *system)
{
    int64_t n = argument_required("n");
    int64_t start_us = now_us();
    int64_t *us = alloc_touched(n, sizeof *us);

    for (int64_t i = 0; i < n; i++) {
        int64_t before_us = now_us();
        put_numbered(system, "one-", i, before_us / 1000 + AN_HOUR_MS);
        system->wait(0);
        us[i] = now_us() - before_us;
    }

    figure("jobs_s", (double)n * 1e6 / (double)(now_us() - start_us));
    figure_times(us, (size_t)n);
    free(us);

    return 0;
}

static int compare_puts(const void *a, const void *b)
{
    int64_t x = ((const struct planned_put *)a)->put_us;
    int64_t y = ((const struct planned_put *)b)->put_us;
    return (x > y) - (x < y);
}

/* How long before its due moment a job is put differs from job to job, as in life: with one length
 * for all, a system that counts in whole seconds would look punctual. And it is no whole number of
 * ms, or each put would coincide with a due moment. */
static struct planned_put *plan_puts(int64_t n)
{
    int64_t t0_ms = argument_required("t0");
    int64_t rate = argument_required("rate");
    int64_t lead_ms = argument_int("lead", 1000);
    int64_t jitter_ms = argument_int("jitter", 1000);
    struct planned_put *plan = alloc_touched(n, sizeof *plan);

    for (int64_t i = 0; i < n; i++) {
        int64_t due_us = t0_ms * 1000 + i * 1000000 / rate;
        int64_t before_us = lead_ms * 1000;
        if (jitter_ms > 0) {
            before_us += i * 7919 % 1000 * jitter_ms + i * 611953 % 1000;
        }
        plan[i].put_us = due_us - before_us;
        plan[i].due_ms = lead_ms ? due_us / 1000 : 0;
        plan[i].number = i;
    }

    qsort(plan, (size_t)n, sizeof *plan, compare_puts);

    return plan;
}

int produce_at_rate(const struct system *system, const char *kind)
{
    int64_t n = argument_required("n");
    double seconds = (double)n / (double)argument_required("rate");
    struct planned_put *plan = plan_puts(n);
    int64_t behind_us = 0;
    int64_t most_behind_us = 0;

    for (int64_t i = 0; i < n;) {
        sleep_until_us(plan[i].put_us);

        int64_t now = now_us();
        while (i < n && plan[i].put_us <= now) {
            put_numbered(system, kind, plan[i].number, plan[i].due_ms);
            i++;
        }
        system->wait(0);

        behind_us = now_us() - plan[i - 1].put_us;
        if (behind_us > most_behind_us) {
            most_behind_us = behind_us;
        }
    }

    figure("behind_ms", (double)most_behind_us / 1000);
    figure("reached_s", (double)n / (seconds + (double)behind_us / 1e6));
    free(plan);

    return 0;
}
