/* SPDX-License-Identifier: MIT */
/* Listeners that are killed, and that sleep longer than their leases. */
#include "workload.h"
#include "proxy.h"
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>

enum { CREW = 4 };

Test(f4, of_a_killed_listener_no_job_is_lost, .timeout = 900)
{
    struct server *s = server_start();
    struct work_opts o = work_opts();
    long kills = fault_n(15, 200);
    long every_ms = fault_n(400, 1000);

    o.listeners = CREW;
    o.per_s = 200;
    o.jobs = kills * every_ms * o.per_s / 1000;
    o.delay_ms = 500;
    o.hold_ms = 300;
    o.lapse.lease_ms = 1000;
    o.lapse.sweep_ms = 500;

    struct work *w = work_start(s, &o);
    for (long i = 0; i < kills; i++) {
        work_wait(w, (int)(every_ms / 2 + random() % every_ms));
        work_kill(w, (int)(random() % CREW));
    }

    struct verdict v = work_end(w, 60000);
    fault_row("F4", "kill -9 of a listener",
              "200 kills: 0 lost; a second run only after the end of a lease",
              "%ld kills amid %ld jobs: 0 lost; %ld runs again, all after the end of a lease; max "
              "%.0f ms late",
              kills, v.jobs, v.twice, v.late_max_ms);
    server_stop(s);
}

Test(f5, a_listener_that_slept_longer_than_its_lease_may_not_settle, .timeout = 900)
{
    struct server *s = server_start();
    struct work_opts o = work_opts();
    long pauses = fault_n(10, 100);

    o.listeners = CREW;
    o.per_s = 200;
    o.jobs = pauses * 900 * o.per_s / 1000;
    o.delay_ms = 500;
    o.hold_ms = 200;
    o.lapse.lease_ms = 500;
    o.lapse.sweep_ms = 200;

    struct work *w = work_start(s, &o);
    for (long i = 0; i < pauses; i++) {
        int k = (int)(random() % CREW);
        work_signal(w, k, SIGSTOP);
        work_wait(w, 250 + (int)(random() % 1250)); /* half to three times its leases */
        work_signal(w, k, SIGCONT);
        work_wait(w, 20);
    }

    struct verdict v = work_end(w, 60000);
    cr_assert_gt(v.stale, 0);
    fault_row("F5", "SIGSTOP of a listener for 0.5 to 3 leases",
              "100 pauses: no two holders, each stale settle refused",
              "%ld pauses amid %ld jobs: 0 lost, no two holders; %ld stale settles, all refused",
              pauses, v.jobs, v.stale);
    server_stop(s);
}

Test(f5, a_settle_that_was_longer_on_its_way_than_the_lease_is_refused, .timeout = 300)
{
    struct server *s = server_start();
    struct proxy *p = proxy_start(s);
    struct work_opts o = work_opts();
    long times = fault_n(6, 60);

    o.listener_url = p->url;
    o.listeners = 3;
    o.direct = 1;
    o.per_s = 200;
    o.jobs = times * o.per_s * 3 / 2;
    o.delay_ms = 500;
    o.hold_ms = 1000; /* the next holder has it still when the settle arrives */
    o.lapse.lease_ms = 400;
    o.lapse.sweep_ms = 100;

    struct work *w = work_start(s, &o);
    for (long i = 0; i < times; i++) {
        work_wait(w, 700);
        work_nemesis(w, "a slow wire");
        proxy_delay(p, 700);
        work_wait(w, 900);
        proxy_delay(p, 0);
    }

    struct verdict v = work_end(w, 60000);
    cr_assert_gt(v.stale, 0);
    proxy_stop(p);
    server_stop(s);
}
