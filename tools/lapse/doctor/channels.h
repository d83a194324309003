/* SPDX-License-Identifier: MIT */
#ifndef CHANNELS_H
#define CHANNELS_H
#include "doctor/doctor.h"
#include "job/keys.h"

/* The pattern of the expiry events that a listener subscribes to. */
void channel_of_events(const struct doctor *d, char out[KEYS_MAX]);
#endif
