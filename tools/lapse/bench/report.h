/* SPDX-License-Identifier: MIT */
#ifndef REPORT_H
#define REPORT_H
#include "bench/bench.h"

/* JSON members keep their names and their order; new ones go to the end. A phase that was not run
 * has none, and what the user may not know (INFO) is left out. */
void report_json(const struct bench *b);
void report_text(const struct bench *b);

struct percentile {
    const char *json, *text;
    unsigned per_myriad;
};
enum { N_PERCENTILES = 5, MEDIAN = 5000 };
extern const struct percentile percentiles[N_PERCENTILES];
#endif
