/* SPDX-License-Identifier: MIT */
/* For LD_PRELOAD: gettimeofday(2), time(2) and the clocks of clock_gettime(2) but CLOCK_BOOTTIME,
 * moved as clock.h says. */
#include "clock.h"
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const struct wall_clock *moved;

__attribute__((constructor)) static void map(void)
{
    const char *path = getenv("LAPSE_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *moved, PROT_READ, MAP_SHARED, fd, 0);

    moved = p == MAP_FAILED ? NULL : p;
    if (fd >= 0) {
        close(fd);
    }
}

/* The kernel's, without the C library, which is what we stand before. */
static int64_t real_us(clockid_t which)
{
    struct timespec t;
    syscall(SYS_clock_gettime, which, &t);
    return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int64_t wall_us(void)
{
    int64_t us = real_us(CLOCK_REALTIME);

    if (!moved) {
        return us;
    }
    int64_t ppm = moved->slew_ppm;
    return us + moved->step_us +
           (ppm ? (real_us(CLOCK_MONOTONIC) - moved->since_us) * ppm / 1000000 : 0);
}

int clock_gettime(clockid_t which, struct timespec *t)
{
    bool wall = which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE;
    bool awake =
        which == CLOCK_MONOTONIC || which == CLOCK_MONOTONIC_COARSE || which == CLOCK_MONOTONIC_RAW;

    if (!wall && !(awake && moved && moved->asleep_us)) {
        return (int)syscall(SYS_clock_gettime, which, t);
    }

    int64_t us = wall ? wall_us() : real_us(which) - moved->asleep_us;
    *t = (struct timespec){us / 1000000, us % 1000000 * 1000};
    return 0;
}

int gettimeofday(struct timeval *t, void *zone)
{
    int64_t us = wall_us();
    (void)zone;
    *t = (struct timeval){us / 1000000, us % 1000000};
    return 0;
}

time_t time(time_t *out)
{
    time_t s = wall_us() / 1000000;
    if (out) {
        *out = s;
    }
    return s;
}
