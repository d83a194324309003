/* SPDX-License-Identifier: MIT */
/* The fault runs. A row is a fault injected for real into real programs, what must hold, and
 * the figure reached. Each runs in a short form (make test-fault) and with all its figures
 * (make soak). */
#ifndef FAULT_H
#define FAULT_H
#include <stdbool.h>

bool fault_full(void);               /* all the figures are asked for */
long fault_n(long brief, long full); /* how many, by that */
/* Progress: one line on stderr. */
__attribute__((format(printf, 1, 2))) void fault_say(const char *format, ...);
/* One line of the table at the end: "F10", the fault, the goal, what was reached. Call it when the
 * row holds. */
__attribute__((format(printf, 4, 5))) void fault_row(const char *row, const char *fault,
                                                     const char *goal, const char *reached, ...);
#endif
