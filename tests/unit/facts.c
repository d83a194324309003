/* SPDX-License-Identifier: MIT */
#include "script_facts.h"
#include <criterion/criterion.h>

/* Where several listeners share 256 kbit/s, as in f12 of the fault tests, one whose requests wait
 * behind longer texts takes Redis for dead. */
Test(facts, no_text_of_a_script_is_longer_than_32_KiB)
{
    for (int i = 0; i < SCRIPTS_N; i++) {
        cr_assert_leq(script_facts[i].len, 32 * 1024, "%s", script_facts[i].name);
    }
}
