/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include <time.h>
#include <unistd.h>

static int64_t read_us(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t clock_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

int64_t clock_wall_us(void)
{
    return read_us(CLOCK_REALTIME);
}

uint64_t clock_random(void)
{
    uint64_t r = 0;

    if (getentropy(&r, sizeof r) != 0) {
        r = (uint64_t)clock_us() * 0x9e3779b97f4a7c15u ^ (uint64_t)getpid() << 32;
    }
    return r;
}
