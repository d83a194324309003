/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_API_SERIES_H
#define LAPSE_API_SERIES_H
#include "api/request.h"

struct series_name {
    const char *queue, *id;
};

/* Pauses a series, or ends its pause. As lapse_pause(), which gives fn "". */
int series_pause(struct lapse *l, const struct series_name *series, bool is_paused,
                 lapse_text_fn *fn, void *arg);

#endif
