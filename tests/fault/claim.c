/* SPDX-License-Identifier: MIT */
/* Processes that claim in a loop, and are killed. */
#include "workload.h"
#include <criterion/criterion.h>
#include <stdlib.h>

enum { CREW = 8, KILLED = 2 };

Test(f41, of_killed_processes_that_claim_no_job_is_lost, .timeout = 900)
{
    struct server *s = server_start();
    struct work_opts o = work_opts();
    long kills = 0;

    o.listeners = CREW;
    o.claims = 5;
    o.jobs = fault_n(3000, 20000);
    o.per_s = 1000;
    o.delay_ms = 500;
    o.hold_ms = 20;
    o.lapse.lease_ms = 1000;
    o.lapse.sweep_ms = 500;

    struct work *w = work_start(s, &o);
    while (!work_asked_all(w)) {
        work_wait(w, 1000);
        long first = random() % CREW;
        for (long i = 0; i < KILLED; i++, kills++) {
            work_kill(w, (int)((first + i * 3) % CREW));
        }
    }

    struct verdict v = work_end(w, 60000);
    fault_row("F41", "kill -9 of two of eight processes that claim, each second",
              "20,000 jobs: 0 lost; a second run only after the end of a lease",
              "%ld kills amid %ld jobs: 0 lost; %ld runs again, all after the end of a lease; max "
              "%.0f ms late",
              kills, v.jobs, v.twice, v.late_max_ms);
    server_stop(s);
}
