/* SPDX-License-Identifier: MIT */
/* Uses all of lapse_cron.h, as C11 and as C++17 with every warning an error. As C++17 it links
 * nothing else of lapse, and so calls neither lapse_cron() nor lapse_sync_cron(). */
#include <lapse_cron.h>
#include <stdio.h>

#ifndef __cplusplus
/* There is no Redis. */
static int use_handles(void)
{
    struct lapse_options o = lapse_options_init();
    struct lapse_spec spec = lapse_spec_init();
    struct lapse_series series = lapse_series_init();
    struct lapse_sync *s = NULL;
    int wrong = 0;

    o.url = "unix:///nowhere/redis";
    o.reply_ms = 50;
    series.calendar = "cron";
    series.rule = "30 9 * * mon-fri Europe/Berlin";
    spec.queue = "orders";
    spec.series = &series;

    wrong += lapse_sync_open(&s, &o) != 0;
    wrong += lapse_sync_schedule(s, &spec, 0, NULL) != LAPSE_EINVAL;
    wrong += lapse_sync_cron(s) != 0;
    wrong += lapse_sync_cron(s) != LAPSE_EEXIST;
    wrong += lapse_sync_schedule(s, &spec, 0, NULL) != LAPSE_EDOWN;
    lapse_sync_close(s, 0);
    wrong += lapse_cron(NULL) != LAPSE_EINVAL;

    return wrong;
}
#endif

int main(void)
{
    char reason[128];
    int wrong = 0;

    wrong += lapse_cron_check("0 9 * * mon-fri Europe/Berlin", reason, sizeof reason) != 0;
    wrong += lapse_cron_check("0 9 * * mon-fry", reason, sizeof reason) != LAPSE_EINVAL;
    wrong += lapse_cron_next("0 0 * * *", 1) != 86400000;
    wrong += lapse_cron_next("0 0 31 2 *", 1) != 0;
    wrong += lapse_cron_next("0 0", 1) != -1;
    wrong += lapse_cron_calendar("0 0 * * *", 1, NULL) != 86400000;
#ifndef __cplusplus
    wrong += use_handles();
#endif

    printf("lapse_cron " LAPSE_VERSION ": %d wrong\n", wrong);
    return wrong != 0;
}
