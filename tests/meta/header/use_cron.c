/* SPDX-License-Identifier: MIT */
/* Uses all of lapse_cron.h, as C11 and as C++17 with every warning an error. It links nothing else
 * of lapse, so it does not call lapse_cron(). */
#include <lapse_cron.h>
#include <stdio.h>

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

    printf("lapse_cron " LAPSE_VERSION ": %d wrong\n", wrong);
    return wrong != 0;
}
