/* SPDX-License-Identifier: MIT */
#ifndef CHANNELS_H
#define CHANNELS_H
#include "doctor/doctor.h"

enum { CHANNEL_BYTES = 300 };

/* The pattern of the expiry events that a listener subscribes to. */
void channel_of_events(const struct doctor *d, char out[CHANNEL_BYTES]);
#endif
